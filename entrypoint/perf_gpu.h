/* perf_gpu.h - `trainyard perf` by NCCL: a GPU for each rank is what carries (dist/comm/perf.h).
 *
 *     ty_perf_gpu_open(comm, must, &gpu, err)      all ranks; *gpu NULL: not every one has a GPU
 *     ty_perf_run(comm, ty_perf_gpu_carrier(gpu), ...)
 *     ty_perf_gpu_close(gpu, cleanly)              before the comm
 */
#ifndef TY_ENTRYPOINT_PERF_GPU_H
#define TY_ENTRYPOINT_PERF_GPU_H

#include "dist/comm/perf.h"

typedef struct ty_perf_gpu ty_perf_gpu;

/* must: that a rank has none is an error, of all ranks. */
int ty_perf_gpu_open(ty_comm *comm, bool must, ty_perf_gpu **out, ty_error *err);
void ty_perf_gpu_close(ty_perf_gpu *gpu, bool cleanly);             /* NULL is fine */
const ty_perf_carrier *ty_perf_gpu_carrier(const ty_perf_gpu *gpu); /* NULL of NULL: the comm carries */
/* "NCCL 2.28.9, a GPU each (NVIDIA H200)" */
const char *ty_perf_gpu_text(const ty_perf_gpu *gpu);
/* Whether it has sums of this type. */
bool ty_perf_gpu_reduces(ty_dtype dtype);

#endif
