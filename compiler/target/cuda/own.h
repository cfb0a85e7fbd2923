/* own.h - ops that neither the kernel language nor a library computes, on a GPU: kernels written by hand.
 *
 * They are text in the words of render.h, with the shapes as constants in front, so that they are compiled, cached,
 * launched and judged like printed ones. Results do not depend on the number of blocks nor on the order in which
 * threads run: where several values meet in one place, one thread brings them together in a fixed order.
 *
 *     ty_cuda_own o = {.g = g, .node = node, .ctx = list, .launch = ..., .copy = ...};
 *     if (ty_cuda_own_add(&o, err) < 0) ...          calls launch() and copy() in order, or neither
 */
#ifndef TY_TARGET_CUDA_OWN_H
#define TY_TARGET_CUDA_OWN_H

#include "base/buf.h"
#include "compiler/ir/graph.h"
#include "compiler/target/cuda/render.h"

/* An op makes at most so many launches and copies. */
enum { TY_CUDA_OWN_MAX = 32 };

typedef struct ty_cuda_own ty_cuda_own;

/* Operands and results are meant by number: the node's operands, then its results. */
struct ty_cuda_own {
    const ty_graph *g;
    uint32_t node;
    bool starts_in_place; /* result 0 lies where operand 0 does */
    bool starts_at_zero;  /* operand 0 has no memory: it is zeros */
    void *ctx;
    /* text: parameters and body of a kernel, which point at operands and results which[0 ... n-1], in order. */
    void (*launch)(void *ctx, const ty_buf *text, ty_cuda_launch launch, const int *which, int n);
    void (*copy)(void *ctx, int to, int from);
    void (*scratch)(void *ctx, int64_t bytes); /* the op needs so much besides, at TY_CUDA_OWN_SCRATCH */
    /* left: the scratch memory begins with what comes of operand `index` and this number alone, from the op's last
     * launch on. finds: another op has left that there, and neither it nor the operand has been written since. */
    void (*left)(void *ctx, int index, int64_t number);
    bool (*finds)(void *ctx, int index, int64_t number);
};

/* In which[]: memory that the op has for itself, from its first launch to its last; aligned as all memory is. */
enum { TY_CUDA_OWN_SCRATCH = -1 };

/* Fails with UNSUPPORTED, before it calls anything, where there is no kernel for the node. */
int ty_cuda_own_add(const ty_cuda_own *o, ty_error *err);

/* own_index.c, own_line.c, own_sort.c, own_rows.c, own_pool.c, own_rnn.c, own_attend.c, own_attend_grad.c: one function
 * an op. Fails as ty_cuda_own_add does, for types that it does not compute. */
typedef int ty_cuda_own_fn(const ty_cuda_own *o, ty_error *err);
ty_cuda_own_fn ty_cuda_own_scatter, ty_cuda_own_put;
ty_cuda_own_fn ty_cuda_own_scan, ty_cuda_own_argreduce, ty_cuda_own_sort;
ty_cuda_own_fn ty_cuda_own_find_rows, ty_cuda_own_sum_rows;
ty_cuda_own_fn ty_cuda_own_rnn_steps, ty_cuda_own_rnn_grad;
ty_cuda_own_fn ty_cuda_own_attend, ty_cuda_own_attend_grad;
ty_cuda_own_fn ty_cuda_own_pool_max, ty_cuda_own_pool_max_grad, ty_cuda_own_pool_sum, ty_cuda_own_pool_sum_grad;

/* ---- for those functions ---- */

/* Type of operand i, or of result i - n_in. */
const ty_type *ty_cuda_own_type(const ty_cuda_own *o, int i);
/* Appends what LD and ST are in the kernel: a number in memory as it is computed with, and back. */
void ty_cuda_own_words(ty_buf *out, ty_dtype dtype);
/* A thread an item, 256 a block; blocks walk in strides. */
ty_cuda_launch ty_cuda_own_flat(int64_t items);
/* Appends `a` combined with `b`, both C expressions without effects: NaN wins in MAX and MIN, integers wrap. */
void ty_cuda_own_combine(ty_buf *out, ty_combine how, ty_dtype dtype, const char *a, const char *b);

#endif
