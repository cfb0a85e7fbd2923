/* local.h - a managed job on this machine: `trainyard local`.
 *
 *     INTO/hosts/algo-N/   the host's /opt/ml while it runs (stage.h); removed, unless it is to be kept
 *     INTO/logs/algo-N.log what it printed
 *     INTO/model.tar.gz, INTO/output/, INTO/checkpoints/   what is left (collect.h)
 *
 * Hosts are containers of an engine (local_engine.h) or processes of this user: the program `train` that lies beside
 * this one, with SAGEMAKER_BASE_DIR for /opt/ml and addresses on the loopback interface.
 */
#ifndef TY_ENTRYPOINT_LOCAL_H
#define TY_ENTRYPOINT_LOCAL_H

#include "base/arena.h"
#include "base/error.h"
#include "estimator_spec/stage.h"

typedef struct ty_local_options {
    int nodes;                    /* 0: as the job says */
    const char *image;            /* in place of the job's; NULL */
    const char *into;             /* NULL: the job's name, in this folder */
    const char *engine_options;   /* words for `docker run`; NULL */
    const char *fault;            /* mishap.h; NULL */
    const ty_stage_input *inputs; /* [n_inputs] */
    int n_inputs;
    const char *const *words; /* for `train`, NULL-terminated */
    enum { TY_LOCAL_EITHER, TY_LOCAL_DOCKER, TY_LOCAL_PROCESSES } way;
    bool keep; /* the hosts' trees */
} ty_local_options;

/* Runs the job. Returns the exit status that tells how it ended (follow.h), or -1 if it did not come so far. */
int ty_local(const char *file, const ty_local_options *o, ty_arena *a, ty_error *err);

#endif
