/* remote_mpirun.h - the command lines by which the platform's own toolkit starts mpirun, word for word: programs that
 * read them, and options that count on what stands before them, find what they know. There are two: for MPI, and for
 * SageMaker's data parallel library, whose settings travel with it. */
#ifndef TY_DIST_AGENT_REMOTE_MPIRUN_H
#define TY_DIST_AGENT_REMOTE_MPIRUN_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>

typedef struct ty_mpirun {
    const char *const *hosts; /* [n_hosts], the leader first */
    int n_hosts;
    const int *processes;      /* [n_hosts]: what each has room for */
    int n_processes;           /* 0: as many as there is room for */
    bool data_parallel;        /* the line of the data parallel library */
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
