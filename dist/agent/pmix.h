/* pmix.h - the plug-in that lets Open MPI's processes find each other: a PMIx server for the ranks of this host.
 *
 * libtrainyard-pmix.so (dist/plugin/pmix.c) is the only object linked with libpmix. It needs no symbol of ours: what it
 * tells goes through the hooks, what it is asked through the table. Functions that can fail return 0 or -1 and then
 * have written a sentence to `why`.
 *
 * There is one server a process, whatever number of jobs follow one another: a restarted job is a new namespace.
 */
#ifndef TY_DIST_AGENT_PMIX_H
#define TY_DIST_AGENT_PMIX_H

#include <stddef.h>
#include <sys/types.h>

/* The table's version: a plug-in of another build is refused. */
#define TY_PMIX_PLUGIN_VERSION 1

enum { TY_PMIX_WHY_BYTES = 256 };

/* Called by threads of the library, never after job_close() has returned. */
typedef struct ty_pmix_hooks {
    void *ctx;
    /* Every rank of this host is in a fence over all ranks; the blob is this host's part. Only one is open at a time.
     */
    void (*fence)(void *ctx, const void *blob, size_t n_bytes);
    void (*aborted)(void *ctx, int rank, int status, const char *text);
} ty_pmix_hooks;

typedef struct ty_pmix_job {
    const char *name;         /* the namespace: unique for each job and generation, at most 255 bytes */
    const char *const *hosts; /* [n_hosts] */
    const int *ranks;         /* [n_hosts] ranks of each, numbered through */
    int n_hosts, self;
    const char *folder; /* session files of the job */
} ty_pmix_job;

typedef struct ty_pmix_handle ty_pmix_handle;

typedef struct ty_pmix_plugin {
    int version;                  /* TY_PMIX_PLUGIN_VERSION */
    const char *(*library)(void); /* "OpenPMIx 4.2.2 ...": hosts compare it */
    /* Starts the server; it listens on the loopback interface, and its files lie in `folder`. Once is enough. */
    int (*open)(const char *folder, char *why);
    void (*close)(void);
    int (*job_open)(const ty_pmix_job *job, const ty_pmix_hooks *hooks, ty_pmix_handle **handle, char *why);
    /* The variables that rank `rank` needs, NULL-terminated "NAME=value"; free_environment() frees them. */
    int (*environment)(ty_pmix_handle *handle, int rank, char ***variables, char *why);
    void (*free_environment)(char **variables);
    /* Answers the open fence with all hosts' blobs, one after the other; n_bytes < 0: the fence has failed. */
    void (*fence_done)(ty_pmix_handle *handle, const void *all, ssize_t n_bytes);
    void (*job_close)(ty_pmix_handle *handle);
} ty_pmix_plugin;

/* The one symbol of the plug-in. */
typedef const ty_pmix_plugin *ty_pmix_plugin_get(void);
#define TY_PMIX_PLUGIN_SYMBOL "ty_pmix_plugin_table"

#endif
