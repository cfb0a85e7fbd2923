/* mirror.h - a planned step on one GPU or on several of this host, the mirrored strategy: every GPU has all weights and
 * runs the same tapes on rows of its own. Or on one GPU, with replicas in other processes.
 *
 *     ty_mirror_new(plans, n_plans, &options, &mirror, err)
 *     ... then as cuda.h has it, with ty_mirror_ in front
 *
 * With several, each GPU has a thread, which alone talks to it; a call here asks all of them and returns when all have
 * answered. They are built one after the other and get ready together (ty_cuda_ready). What a run is given are the rows
 * of all replicas, those of replica 0 first; the last input of the graph is the replica's number, whatever is given for
 * it. States go to all GPUs and come back from the first, results come from the first: what is not the same on all is
 * no output of a step that replicas share (compiler/passes/across.h).
 *
 * With replicas in other processes (`others`) there is one GPU here, rows and number of a run are this replica's own,
 * and states go to it and come from it alone.
 *
 * A state that is in parts (compiler/exchange.h) is another one on each GPU: the first's is the caller's memory, those
 * of the others are the mirror's own, zeros at first (ty_mirror_divide, ty_mirror_state).
 *
 * Where one GPU fails, those that wait for it are let go (nccl.h), and the error is that of the first that failed, by
 * number: "GPU 2: starting a step: ...". Every later call fails with it.
 */
#ifndef TY_TARGET_CUDA_MIRROR_H
#define TY_TARGET_CUDA_MIRROR_H

#include "compiler/target/cuda/cuda.h"
#include "compiler/target/cuda/nccl.h"

typedef struct ty_mirror ty_mirror;

typedef struct ty_mirror_options {
    ty_cuda_options each; /* device is taken from the list; group, replica and like are the mirror's */
    const int *devices;   /* numbers, each once */
    int n;                /* 1 to TY_MAX_GPUS; with 1 there are no threads */
    ty_cross_device how;
    const ty_mirror *beside;      /* on the same GPUs: each lends its memory (cuda.h); NULL: none */
    const ty_nccl_others *others; /* NULL: all replicas are here. Copied; n is 1 then */
} ty_mirror_options;

int ty_mirror_new(const ty_plan *const *plans, int n_plans, const ty_mirror_options *opt, ty_mirror **out,
                  ty_error *err);
void ty_mirror_free(ty_mirror *mirror); /* NULL is fine */
/* Nobody here waits for a replica any more, and the mirror is only to be freed. Any thread. */
void ty_mirror_let_go(ty_mirror *mirror);
/* Of one GPU. */
const ty_cuda_report *ty_mirror_report_of(const ty_mirror *mirror);
/* The only one here, whose thread is the caller's; NULL where there are several. */
ty_cuda *ty_mirror_alone(const ty_mirror *mirror);
/* A run call by call, on all GPUs at the same time: nanoseconds of each call on the GPU where it took longest. */
int ty_mirror_run_timed(ty_mirror *mirror, int plan, const void *const *inputs, int64_t *call_ns, ty_error *err);
/* Before anything is uploaded: each GPU has a part of this state. */
int ty_mirror_divide(ty_mirror *mirror, int state, ty_error *err);
/* How many GPUs are here; the memory that a state of one of them is sent from and fetched to. */
int ty_mirror_n(const ty_mirror *mirror);
void *ty_mirror_state(const ty_mirror *mirror, int number, int state);
/* The first GPU's, to ask what its calls are: all have the same. */
const ty_cuda *ty_mirror_first(const ty_mirror *mirror);
int ty_mirror_upload(ty_mirror *mirror, ty_error *err);
int ty_mirror_download(ty_mirror *mirror, ty_error *err);
int ty_mirror_start(ty_mirror *mirror, int plan, const void *const *inputs, ty_error *err);
int ty_mirror_finish(ty_mirror *mirror, int plan, ty_error *err);
int ty_mirror_drain(ty_mirror *mirror, int plan, ty_error *err);
const void *ty_mirror_value(const ty_mirror *mirror, int plan, ty_val v);
/* After a download: whether all GPUs hold the same bytes of every state that is not in parts; TY_E_INTERNAL names the
 * first that does not.
 */
int ty_mirror_check(ty_mirror *mirror, ty_error *err);

#endif
