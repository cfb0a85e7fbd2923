/* cudnn.h - convolutions by cuDNN: what it must be told, which no GPU is needed to know, and the call.
 *
 * Through cuDNN's graph of operations (cudnnBackend...), since its older functions are deprecated: descriptors of three
 * tensors and of the windows, an operation, a graph of that one operation, then the engines that cuDNN proposes, best
 * first. Taken is the first that gives the same bits in every run, keeps the precision, and fits into the workspace.
 */
#ifndef TY_TARGET_CUDA_CUDNN_H
#define TY_TARGET_CUDA_CUDNN_H

#include "compiler/ops/sliding.h"
#include "compiler/target/cuda/library.h"

enum { TY_CUDNN_RANK = 2 + TY_SLIDING_AXES };

/* A tensor as cuDNN sees it: image (or filter), channel, spatial axes; strides say how it lies. */
typedef struct ty_cudnn_tensor {
    int64_t dim[TY_CUDNN_RANK], stride[TY_CUDNN_RANK];
} ty_cudnn_tensor;

/* y = x windowed with w; the op computes y (conv), x (conv_dx) or w (conv_dw) from the two others. conv_bias computes y
 * and goes on with it: + z, which lies as y does, + bias, a ReLU. */
typedef struct ty_cudnn_conv {
    ty_op op;
    int n_axes; /* spatial: 2 or 3; one axis is seen as two */
    int rank;   /* 2 + n_axes */
    ty_cudnn_tensor x, w, y, bias;
    bool biases, adds, relu; /* what of it there is: adds and relu only where biases */
    int64_t step[TY_SLIDING_AXES], dil[TY_SLIDING_AXES], lo[TY_SLIDING_AXES], hi[TY_SLIDING_AXES];
    ty_dtype dtype;
    unsigned type, compute; /* cudnnDataType_t: of the tensors, of sums */
} ty_cudnn_conv;

/* The convolution that `node` is. TY_E_UNSUPPORTED for types that cuDNN does not take. */
int ty_cudnn_conv_of(const ty_graph *g, uint32_t node, ty_cudnn_conv *out, ty_error *err);
/* Appends all of it, on one line. */
void ty_cudnn_print(const ty_cudnn_conv *c, ty_buf *out);
/* Bytes of workspace that an engine may use: those of x, w and y and a quarter more, at least 32 MiB, at most 1 GiB.
 * Engines that work in another layout or type, or on more channels than there are, copy there what they read and write,
 * and of float32 the quick ones do (ARCHITECTURE.md has what cuDNN asks for). */
size_t ty_cudnn_conv_workspace(const ty_cudnn_conv *c);

/* ---- on a GPU: rows of library.c ---- */

int ty_cudnn_describe(const ty_graph *g, uint32_t node, ty_buf *out, ty_error *err);
size_t ty_cudnn_workspace(const ty_graph *g, uint32_t node);
/* TY_E_NO_FUSION: there is no engine for the convolution with what follows it on this GPU. */
int ty_cudnn_prepare(ty_cuda_libraries *libraries, const ty_graph *g, uint32_t node, const CUdeviceptr *at,
                     ty_cuda_library_call *out, ty_error *err);

/* What was chosen: the engine by its number and its knobs (`type=value`), and its workspace. */
typedef struct ty_cudnn_planned {
    char engine[256];
    int64_t workspace_bytes;
    int n_proposed, n_will_do; /* engines: proposed, and of those the ones that keep bits and precision */
} ty_cudnn_planned;

/* What preparing would take on a GPU that need not be here, of which cuDNN's JSON form of a device's properties is
 * known (from 9.8 on). tf32: as of the libraries. */
int ty_cudnn_try(const ty_graph *g, uint32_t node, const char *properties, bool tf32, ty_cudnn_planned *out,
                 ty_error *err);
void ty_cudnn_close(cudnnHandle_t handle); /* NULL: nothing */

#endif
