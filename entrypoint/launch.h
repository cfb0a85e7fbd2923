/* launch.h - from the worker of one host to the ranks of all: what the agent is told, and what its end means.
 *
 * Each host makes the agent's options (dist/agent/agent.h) out of its own files. A host whose files are wrong does not
 * stay away, for then the others would wait until their patience ends: it comes to the meeting with its trouble in
 * place of a good word, which nobody else has, and so all hosts end at once, each with the reason of that one.
 *
 * Beside the recipe (`distributed`) two variables tell what only the outside knows.
 *
 * TRAINYARD_SECRET: what agents prove to each other that they belong to this job, the same on all hosts. Without it,
 * job name, ARN and hosts stand for it: that keeps two jobs apart, but no attacker.
 *
 * TRAINYARD_HOST_ADDRESSES, "algo-1=10.0.0.5,algo-2=10.0.0.6:7778": where names cannot be looked up, as in tests.
 */
#ifndef TY_ENTRYPOINT_LAUNCH_H
#define TY_ENTRYPOINT_LAUNCH_H

#include "container/config/failure.h"
#include "entrypoint/cluster.h"
#include "entrypoint/launch_variables.h"

typedef struct ty_launch {
    const ty_container_config *config;
    const ty_cluster *cluster;             /* NULL with trouble */
    const ty_recipe_distributed *how;      /* NULL: the defaults */
    const ty_error *trouble;               /* NULL; else why this host cannot begin: nothing is started anywhere */
    const char *const *argv, *const *envp; /* of a rank; envp is ours where NULL */
    const char *cwd;                       /* NULL: ours */
    bool by_mpirun;                        /* argv is a program that mpirun starts, with the cluster's words for it */
} ty_launch;

typedef struct ty_launch_end {
    int status;   /* exit status of the job */
    bool stopped; /* somebody asked for it, here or on another host */
    /* A failure of a rank: who was first, the same on all hosts. */
    char host[256], phase[16];
    int rank;
    int64_t step;
    bool is_named; /* the error's message begins with that rank or host */
} ty_launch_end;

/* Runs the ranks of this host until all ranks of all hosts have ended. -1: they failed, or never began; the error is
 * the job's, and `end` what a failure file should say (rank -1, step -1: unknown). */
int ty_launch_ranks(const ty_launch *l, ty_arena *a, ty_launch_end *end, ty_error *err);

#endif
