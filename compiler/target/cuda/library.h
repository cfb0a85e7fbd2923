/* library.h - ops that are not generated, on a GPU: which library computes them, what it is told, and the call.
 *
 * Describing needs no GPU: what a library is told is worked out from the node alone. Preparing needs one, happens once
 * and may be slow; running gives the call to the stream and returns, so that it can be captured into a graph.
 */
#ifndef TY_TARGET_CUDA_LIBRARY_H
#define TY_TARGET_CUDA_LIBRARY_H

#include "base/arena.h"
#include "base/buf.h"
#include "compiler/ir/graph.h"
#include "compiler/target/cuda/gpu.h"
#include "compiler/target/cuda/tune.h"

/* What calls share. */
typedef struct ty_cuda_libraries {
    /* each opened by the first call that is prepared with it; NULL: no call needs it */
    cublasLtHandle_t cublaslt;
    cudnnHandle_t cudnn;
    const ty_gpu *gpu;
    CUdeviceptr workspace; /* calls on one stream use it one after the other: as large as the largest may */
    bool tf32;             /* float32 may be multiplied with ten bits of mantissa */
    ty_cuda_tuner tuner;   /* timing writes into the results of calls: nothing there may be needed yet */
    ty_arena *arena;       /* of prepared calls */
} ty_cuda_libraries;

typedef struct ty_cuda_library_call {
    int (*run)(const void *prepared, ty_error *err);
    void (*release)(void *prepared);
    void *prepared; /* NULL: there is no call */
} ty_cuda_library_call;

/* Closes those that preparing has opened, after their calls were released. */
void ty_cuda_libraries_close(ty_cuda_libraries *libraries);

/* Whether something computes the node on a GPU. */
bool ty_cuda_library_has(const ty_graph *g, uint32_t node);
/* Bytes of workspace that the node's call may use: 0 if no library computes it. The same on all machines, so that
 * memory is known before a GPU is asked, and the choice of an algorithm does not depend on what else a program does. */
size_t ty_cuda_library_workspace(const ty_graph *g, uint32_t node);
/* at: where the operands are, then the results; what has none points at memory that nobody reads. The call is to be
 * released. */
int ty_cuda_library_prepare(ty_cuda_libraries *libraries, const ty_graph *g, uint32_t node, const CUdeviceptr *at,
                            ty_cuda_library_call *out, ty_error *err);
void ty_cuda_library_release(ty_cuda_library_call *call);
/* Milliseconds of a run of a prepared call, on whatever its operands are; a first run loads its code. For
 * ty_cuda_candidates. */
int ty_cuda_library_time(const ty_gpu *gpu, const ty_cuda_library_call *call, double *ms, ty_error *err);

/* Appends on one line: the op, the library, what it is told. `none yet` stands in the place of the library for an op
 * that nothing computes on a GPU so far; then its attributes and types follow. */
void ty_cuda_library_print(const ty_graph *g, uint32_t node, ty_buf *out);

#endif
