/* pmix.h - the plug-in that lets Open MPI's processes find each other: a PMIx server for the ranks of this host.
 *
 * libtrainyard-pmix.so (dist/plugin/pmix.c) is the only object that is linked with libpmix. There is one server a
 * process, whatever number of jobs follow one another in it: a restarted job is a new namespace.
 */
#ifndef TY_DIST_AGENT_PMIX_H
#define TY_DIST_AGENT_PMIX_H

#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

/* The table's version: a plug-in of another one is refused. */
#define TY_PMIX_VERSION 1

/* Called by threads of the library, never after job_close() has returned. They must not call the table. */
typedef struct ty_pmix_hooks {
    void *ctx;
    /* Every rank of this host is in a fence over all ranks; the blob is this host's part. One is open at a time. */
    void (*fence)(void *ctx, const void *blob, size_t n_bytes);
    void (*aborted)(void *ctx, int rank, int status, const char *text);
} ty_pmix_hooks;

typedef struct ty_pmix_map {
    const char *name;         /* the namespace: unique for each job and generation, at most 255 bytes */
    const char *const *hosts; /* [n_hosts] */
    const int *ranks;         /* [n_hosts] ranks of each, numbered through */
    int n_hosts, self;
    const char *folder; /* for session files of the job; whoever made it removes it */
} ty_pmix_map;

typedef struct ty_pmix_job ty_pmix_job;

typedef struct ty_pmix {
    /* Starts the server; it listens on the loopback interface, its files lie in `folder`, and `host` is what it calls
     * this host. Once is enough. */
    int (*open)(const char *folder, const char *host, ty_error *err);
    void (*close)(void);
    int (*job_open)(const ty_pmix_map *map, const ty_pmix_hooks *hooks, ty_pmix_job **job, ty_error *err);
    /* The variables that a rank of this host needs, NULL-terminated "NAME=value"; free_environment() frees them. */
    int (*environment)(ty_pmix_job *job, int rank, char ***variables, ty_error *err);
    void (*free_environment)(char **variables);
    /* Answers the open fence with all hosts' blobs, one after the other in the order of hosts. */
    void (*fence_done)(ty_pmix_job *job, const void *all, size_t n_bytes);
    /* NULL is fine. An open fence fails. */
    void (*job_close)(ty_pmix_job *job);
} ty_pmix;

#endif
