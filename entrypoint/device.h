/* device.h - where a session computes: on a GPU if there is one that can, else on the CPU, and why.
 *
 *     ty_device_choose(s, err)              a phase: what the recipe says, and what is there
 *     ty_device_options(s, &options)        of every compilation of the session's step
 *     if (ty_compile_train(...) < 0 && ty_device_give_up(s, err)) ...      again, on the CPU now
 *     if (... < 0 && err->code == TY_E_LIMIT && ty_device_fit(s, err)) ...      again, with less memory
 *     else ty_device_refuse(s, err)         says what takes the GPU's memory
 *
 * A rank among others takes the GPU of its place among those of its host, and either all ranks have one or none.
 *
 * With `device: auto` a step that the GPU cannot compute (an op that nothing computes there, cuDNN that is missing) is
 * no fault: the session goes on on the CPU, and the banner says why.
 */
#ifndef TY_ENTRYPOINT_DEVICE_H
#define TY_ENTRYPOINT_DEVICE_H

#include "entrypoint/session.h"

int ty_device_choose(ty_session *s, ty_error *err);
/* The GPU of this rank's place on its host, of those that are wanted (none: of all): 1 if every rank has one. 0: not,
 * and *why says what is missing, here or elsewhere. -1: the others cannot be asked. */
int ty_device_of_rank(ty_company *c, const int *wanted, int n_wanted, ty_arena *a, ty_machine_gpu *out, ty_error *why,
                      ty_error *err);
/* rc: of ty_budget_fit, with its error. Of several ranks either all go on on their GPUs or none, and where one has too
 * little memory there, all have: TY_E_LIMIT, and ty_device_fit is next. Another error ends this rank, and so the job.
 */
int ty_device_agree(ty_session *s, int rc, ty_error *err);
void ty_device_options(const ty_session *s, ty_compile_options *options);
/* Whether what failed is a reason to compute on the CPU, and the recipe allows it; *err is empty then. */
bool ty_device_give_up(ty_session *s, ty_error *err);
/* After TY_E_LIMIT, on all ranks: whether the step fits the GPU if parts of forward are computed again, and the recipe
 * allows that; s->temporary_bytes tells the compiler, and *err is empty then. */
bool ty_device_fit(ty_session *s, ty_error *err);
/* *err becomes: what is needed and free, the largest buffers with their layers, the largest batch that would fit.
 * Returns -1. */
int ty_device_refuse(ty_session *s, ty_error *err);
/* On how many devices a batch is shared out: GPUs of the mirrored strategy, or ranks; else 1. */
int ty_device_replicas(const ty_session *s);
/* "GPU 0, NVIDIA H200 (compute capability 9.0)", "GPU 0, ... (...); 4 ranks, a GPU each, joined by nccl, 8 rows each",
 * "GPUs 0, 1, NVIDIA H200 (...), mirrored by nccl, 32 rows each" or
 * "CPU, 8 threads (no GPU driver: ...)". Lies in the session's arena.
 */
const char *ty_device_text(ty_session *s);
/* Free memory of the session's GPU: of several, that of the one which has least. */
int ty_device_memory(const ty_session *s, uint64_t *free_bytes, ty_error *err);

#endif
