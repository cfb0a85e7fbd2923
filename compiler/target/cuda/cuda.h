/* cuda.h - a planned step on a GPU: kernels compiled for it, library calls prepared, memory laid out, each tape
 * captured into one CUDA graph.
 *
 *     ty_cuda_new(plans, n, &options, &cuda, err)     slow; gets all memory that will ever be used
 *     ty_cuda_upload(cuda, err)                       states, from the caller's memory to the GPU
 *     for (each step)
 *         ty_cuda_run(cuda, plan, inputs, err)        inputs up, one graph, outputs down
 *     ty_cuda_download(cuda, err)                     states, back to the caller's memory
 *
 * Between upload and download the states live on the GPU, and the caller's copies are old. All functions are called
 * from the thread that opened it.
 */
#ifndef TY_TARGET_CUDA_CUDA_H
#define TY_TARGET_CUDA_CUDA_H

#include "compiler/compiler.h"
#include "compiler/passes/plan.h"

typedef struct ty_cuda ty_cuda;

typedef struct ty_cuda_options {
    int device;                /* number, from 0 */
    int threads;               /* that compile kernels */
    bool tf32;                 /* float32 products with ten bits of mantissa */
    void *const *state;        /* the caller's memory of each state of the graph */
    ty_compile_phases *phases; /* gets laps; not NULL */
} ty_cuda_options;

/* plans[i]: a checked plan; all of the same graph, which must outlive the result. TY_E_UNSUPPORTED names all ops that
 * nothing computes on a GPU; TY_E_LIMIT: the GPU's memory is too small, before anything has run. */
int ty_cuda_new(const ty_plan *const *plans, int n_plans, const ty_cuda_options *opt, ty_cuda **out, ty_error *err);
void ty_cuda_free(ty_cuda *cuda);
int ty_cuda_upload(ty_cuda *cuda, ty_error *err);
int ty_cuda_download(ty_cuda *cuda, ty_error *err);
/* inputs[k]: bytes of graph input k (NULL where the tape does not read it), which are no longer needed when it returns;
 * the outputs are then there. */
int ty_cuda_run(ty_cuda *cuda, int plan, const void *const *inputs, ty_error *err);
/* Bytes of the plan's output `v` in the host's memory, filled by each run of the plan. */
const void *ty_cuda_value(const ty_cuda *cuda, int plan, ty_val v);

#endif
