/* cudnn_engine.h - which of cuDNN's engines computes a convolution.
 *
 * cuDNN proposes engines with settings of their knobs, best first by its own estimate. Those that give other bits from
 * run to run, or keep less precision than was asked for, are left out. Of what remains the first few are timed where a
 * cache keeps the choice (tune.h), by the engine's number and its knobs, else the first that can be planned within the
 * workspace is taken.
 */
#ifndef TY_TARGET_CUDA_CUDNN_ENGINE_H
#define TY_TARGET_CUDA_CUDNN_ENGINE_H

#include "compiler/target/cuda/cudnn_graph.h"

/* A plan and the addresses it is run with. */
typedef struct ty_cudnn_run {
    const ty_cudnn *lib;
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t plan, pack;
    bool follows; /* there is something behind the convolution */
    ty_cudnn_planned of;
} ty_cudnn_run;

/* TY_E_NO_FUSION: refused with what follows the convolution; else TY_E_LIBRARY. */
int ty_cudnn_execute(const void *run, ty_error *err);

/* Fills run->plan, a descriptor of m's, and what is known `of` it. Timed only if libraries->tuner has where to keep the
 * choice. TY_E_LIBRARY: there is none; TY_E_NO_FUSION: not with what follows the convolution. */
int ty_cudnn_choose(ty_cudnn_maker *m, ty_cuda_libraries *libraries, const ty_cudnn_conv *c, const ty_cudnn_places *at,
                    cudnnBackendDescriptor_t graph, ty_cudnn_run *run, ty_error *err);

#endif
