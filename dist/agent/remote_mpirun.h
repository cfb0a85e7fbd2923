/* remote_mpirun.h - the command line by which the platform's own toolkit starts mpirun, word for word: programs that
 * read it, and options that count on what stands before them, find what they know. */
#ifndef TY_DIST_AGENT_REMOTE_MPIRUN_H
#define TY_DIST_AGENT_REMOTE_MPIRUN_H

#include "base/arena.h"
#include "base/error.h"

typedef struct ty_mpirun {
    const char *const *hosts; /* [n_hosts], the leader first */
    int n_hosts;
    int processes_per_host;
    int n_processes;           /* 0: n_hosts * processes_per_host */
    const char *interface;     /* "eth0" */
    const char *options;       /* the user's own, as one text: words at blanks; "--NCCL_DEBUG X" is ours. NULL: none */
    const char *preload;       /* a library for LD_PRELOAD, as the toolkit gives its own; NULL: none */
    const char *instance_type; /* "ml.p4d.24xlarge": what is known to have EFA gets its variables; NULL: unknown */
    const char *const *names;  /* of variables to be exported, NULL-terminated; credentials of AWS come before by
                                * themselves if they are set */
    const char *const *envp;   /* where they are looked for; NULL: our environment */
    const char *const *argv;   /* the program and its arguments, NULL-terminated */
} ty_mpirun;

/* The words, NULL-terminated, in the arena. TY_E_CONFIG: --NCCL_DEBUG without a value. */
int ty_mpirun_command(const ty_mpirun *m, ty_arena *a, char ***words, ty_error *err);

#endif
