/* cudnn_graph.h - a convolution in the words of cuDNN's backend: descriptors, and how they are made and given back.
 *
 *     ty_cudnn_maker m = {.lib = lib};
 *     graph = ty_cudnn_graph(&m, handle, &conv, &places);
 *     if (ty_cudnn_error(&m, err) < 0) ...
 *     ty_cudnn_release(&m);
 *
 * A maker lists all that it has made. The first failure is kept and makes all that follows do nothing, so that a
 * description reads from top to bottom.
 */
#ifndef TY_TARGET_CUDA_CUDNN_GRAPH_H
#define TY_TARGET_CUDA_CUDNN_GRAPH_H

#include "compiler/target/cuda/cudnn.h"

enum { TY_CUDNN_MOST = 160 };

typedef struct ty_cudnn_maker {
    const ty_cudnn *lib;
    cudnnBackendDescriptor_t all[TY_CUDNN_MOST];
    int n;
    unsigned status;
    const char *what;             /* failed */
    cudnnBackendDescriptor_t gpu; /* what is known of a GPU that is not here; NULL: the handle's is asked */
} ty_cudnn_maker;

cudnnBackendDescriptor_t ty_cudnn_new(ty_cudnn_maker *m, unsigned kind);
void ty_cudnn_set(ty_cudnn_maker *m, cudnnBackendDescriptor_t d, unsigned attribute, unsigned type, int64_t n,
                  const void *value);
void ty_cudnn_link(ty_cudnn_maker *m, cudnnBackendDescriptor_t d, unsigned attribute, cudnnBackendDescriptor_t value);
void ty_cudnn_finish(ty_cudnn_maker *m, cudnnBackendDescriptor_t d, const char *what);
/* Gives one back before the others; NULL: nothing. */
void ty_cudnn_drop(ty_cudnn_maker *m, cudnnBackendDescriptor_t d);
void ty_cudnn_release(ty_cudnn_maker *m);
int ty_cudnn_error(const ty_cudnn_maker *m, ty_error *err);

/* Addresses of x, w and y; of bias and z where the convolution has them. */
typedef struct ty_cudnn_places {
    CUdeviceptr x, w, y, bias, z;
} ty_cudnn_places;

/* What cuDNN may count on: 16 or less. */
int64_t ty_cudnn_alignment(CUdeviceptr at);
/* handle: NULL for a GPU that is not here. */
cudnnBackendDescriptor_t ty_cudnn_graph(ty_cudnn_maker *m, cudnnHandle_t handle, const ty_cudnn_conv *c,
                                        const ty_cudnn_places *at);
/* Where the tensors of the graph are, for a run. */
cudnnBackendDescriptor_t ty_cudnn_pack(ty_cudnn_maker *m, const ty_cudnn_conv *c, const ty_cudnn_places *at,
                                       CUdeviceptr workspace);

#endif
