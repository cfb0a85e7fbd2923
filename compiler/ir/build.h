/* build.h - typed constructors over ty_graph_emit, and the derived forms that importers and gradients share.
 *
 * All take and return values of one graph; TY_NONE in gives TY_NONE out; errors are sticky in the graph (graph.h).
 * Nothing here adds an op: what is derived (sigmoid, mean, where ...) is written in terms of the rows of ops.def.
 */
#ifndef TY_COMPILER_IR_BUILD_H
#define TY_COMPILER_IR_BUILD_H

#include "compiler/ir/graph.h"

/* leaves */
ty_val ty_b_input(ty_graph *g, int input);
ty_val ty_b_state(ty_graph *g, int state);
/* Data of up to 4096 bytes are copied and hash-consed by content; larger ones are referenced (the caller keeps them
 * alive and unchanged as long as the graph) and hash-consed by address. */
ty_val ty_b_const(ty_graph *g, ty_type type, const void *data);
/* Data of any size are copied, and again by every pass that makes a new graph: for tables that nobody else keeps. */
ty_val ty_b_const_copy(ty_graph *g, ty_type type, const void *data);
ty_val ty_b_scalar(ty_graph *g, ty_dtype dtype, double value); /* shape [] */
ty_val ty_b_full(ty_graph *g, ty_dtype dtype, int rank, const int64_t *dim, double value);
ty_val ty_b_full_like(ty_graph *g, ty_val like, double value); /* same dtype and shape */
ty_val ty_b_iota(ty_graph *g, ty_type type, int axis);
ty_val ty_b_rng(ty_graph *g, ty_val seed, ty_val step, int64_t stream, int rank, const int64_t *dim);

/* elementwise. The binary forms broadcast as NumPy does; dtypes must agree. */
ty_val ty_b_unary(ty_graph *g, ty_op op, ty_val x);
ty_val ty_b_binary(ty_graph *g, ty_op op, ty_val a, ty_val b);
ty_val ty_b_neg(ty_graph *g, ty_val x);
ty_val ty_b_exp(ty_graph *g, ty_val x);
ty_val ty_b_log(ty_graph *g, ty_val x);
ty_val ty_b_add(ty_graph *g, ty_val a, ty_val b);
ty_val ty_b_sub(ty_graph *g, ty_val a, ty_val b);
ty_val ty_b_mul(ty_graph *g, ty_val a, ty_val b);
ty_val ty_b_div(ty_graph *g, ty_val a, ty_val b);
ty_val ty_b_max(ty_graph *g, ty_val a, ty_val b);
ty_val ty_b_min(ty_graph *g, ty_val a, ty_val b);
/* With a number on the right, in a's dtype. */
ty_val ty_b_add_s(ty_graph *g, ty_val a, double s);
ty_val ty_b_mul_s(ty_graph *g, ty_val a, double s);
ty_val ty_b_eq(ty_graph *g, ty_val a, ty_val b);
ty_val ty_b_ne(ty_graph *g, ty_val a, ty_val b);
ty_val ty_b_lt(ty_graph *g, ty_val a, ty_val b);
ty_val ty_b_le(ty_graph *g, ty_val a, ty_val b);
ty_val ty_b_select(ty_graph *g, ty_val cond, ty_val a, ty_val b); /* broadcasts all three */
ty_val ty_b_cast(ty_graph *g, ty_val x, ty_dtype dtype);          /* x itself if it has that dtype */
ty_val ty_b_square(ty_graph *g, ty_val x);
ty_val ty_b_reciprocal(ty_graph *g, ty_val x);
ty_val ty_b_sigmoid(ty_graph *g, ty_val x);       /* 1 / (1 + exp(-x)) */
ty_val ty_b_sigmoid_input(ty_graph *g, ty_val x); /* v if x is ty_b_sigmoid(g, v), else TY_NONE */
ty_val ty_b_softplus(ty_graph *g, ty_val x);      /* max(x, 0) + log1p(exp(-|x|)) */
ty_val ty_b_relu(ty_graph *g, ty_val x);          /* slope 0 at 0 */
ty_val ty_b_sign(ty_graph *g, ty_val x);

/* movement */
ty_val ty_b_reshape(ty_graph *g, ty_val x, int rank, const int64_t *dim);   /* x itself if the shape is the same */
ty_val ty_b_transpose(ty_graph *g, ty_val x, const int64_t *perm);          /* perm: rank entries */
ty_val ty_b_broadcast(ty_graph *g, ty_val x, int rank, const int64_t *dim); /* NumPy rules; leading 1s are added */
ty_val ty_b_slice(ty_graph *g, ty_val x, const int64_t *lo, const int64_t *hi, const int64_t *step); /* step NULL: 1 */
ty_val ty_b_slice_axis(ty_graph *g, ty_val x, int axis, int64_t lo, int64_t hi);
ty_val ty_b_pad(ty_graph *g, ty_val x, const int64_t *lo, const int64_t *hi, double value);
ty_val ty_b_concat(ty_graph *g, const ty_val *in, int n_in, int axis);
/* The same for as many inputs as a model may have: a kernel asks for each element which input it is from, and with too
 * many it would be too long. Passes that join what lies in memory want one node: ty_b_concat. */
ty_val ty_b_concat_many(ty_graph *g, const ty_val *in, int n_in, int axis);
ty_val ty_b_reverse(ty_graph *g, ty_val x, uint32_t axes);
ty_val ty_b_unsqueeze(ty_graph *g, ty_val x, int axis);
ty_val ty_b_squeeze(ty_graph *g, ty_val x, int axis);
ty_val ty_b_flatten(ty_graph *g, ty_val x); /* to [elems] */

/* index, reduction */
ty_val ty_b_gather(ty_graph *g, ty_val x, ty_val index, int axis);
ty_val ty_b_take(ty_graph *g, ty_val x, ty_val index, int axis);
ty_val ty_b_scatter(ty_graph *g, ty_val x, ty_val index, ty_val update, int axis, ty_combine mode);
ty_val ty_b_put(ty_graph *g, ty_val x, ty_val index, ty_val update, int axis, ty_combine mode);
/* The rows of a table of n_rows rows that i names; order and start for ty_b_sum_rows. */
ty_val ty_b_find_rows(ty_graph *g, ty_val i, int64_t n_rows, ty_val *order, ty_val *start);
ty_val ty_b_sum_rows(ty_graph *g, ty_val u, ty_val order, ty_val start);
ty_val ty_b_get_rows(ty_graph *g, ty_val x, ty_val rows);
ty_val ty_b_set_rows(ty_graph *g, ty_val x, ty_val rows, ty_val u);
ty_val ty_b_sort(ty_graph *g, ty_val x, int axis, bool descending, ty_val *indices); /* indices may be NULL */
ty_val ty_b_reduce(ty_graph *g, ty_val x, ty_combine how, uint32_t axes, bool keep_dims);
ty_val ty_b_sum(ty_graph *g, ty_val x, uint32_t axes, bool keep_dims);
ty_val ty_b_mean(ty_graph *g, ty_val x, uint32_t axes, bool keep_dims);
ty_val ty_b_argreduce(ty_graph *g, ty_val x, ty_combine how, int axis, bool last);
ty_val ty_b_scan(ty_graph *g, ty_val x, ty_combine how, int axis, bool exclusive, bool from_end);

/* Of replicas, ops/across.c: x itself if there is one. */
ty_val ty_b_all_reduce(ty_graph *g, ty_val x, int64_t replicas);
ty_val ty_b_all_gather(ty_graph *g, ty_val x, int64_t replicas);
/* The same of gradients, which may be rounded on their way: a sum of those of elements lo .. hi - 1 of a state. */
ty_val ty_b_all_reduce_gradients(ty_graph *g, ty_val x, int64_t replicas, int state, int64_t lo, int64_t hi);
ty_val ty_b_reduce_scatter_gradients(ty_graph *g, ty_val x, ty_val replica, int64_t replicas, int state, int64_t lo,
                                     int64_t hi);
ty_val ty_b_all_gather_gradients(ty_graph *g, ty_val x, int64_t replicas);

/* contraction, window, composites: attributes as in ops.def */
ty_val ty_b_dot(ty_graph *g, ty_val a, ty_val b, bool trans_a, bool trans_b);
/* c + the product, as c's type; the product of 16-bit floats is not rounded if c is f32. */
ty_val ty_b_dot_add(ty_graph *g, ty_val a, ty_val b, ty_val c, bool trans_a, bool trans_b);
/* The product of 16-bit floats as f32, not rounded; other products as they are. */
ty_val ty_b_dot_wide(ty_graph *g, ty_val a, ty_val b, bool trans_a, bool trans_b);
/* The product of matrices, never computed in 16 bits. */
ty_val ty_b_dot_full(ty_graph *g, ty_val a, ty_val b);
/* NumPy matmul: broadcasts batch dims, handles vectors. */
ty_val ty_b_matmul(ty_graph *g, ty_val a, ty_val b);
ty_val ty_b_softmax(ty_graph *g, ty_val x, int axis, bool log);
ty_val ty_b_norm(ty_graph *g, ty_val x, ty_val scale, ty_val bias, int n_axes, double eps, bool rms);

/* Dims of a value. */
int ty_b_rank(const ty_graph *g, ty_val v);
int64_t ty_b_dim(const ty_graph *g, ty_val v, int axis);
ty_dtype ty_b_dtype(const ty_graph *g, ty_val v);
/* All axes as a mask. */
uint32_t ty_b_all_axes(const ty_graph *g, ty_val v);
/* Sums away what broadcasting from `like`'s shape to v's had stretched: the gradient of NumPy broadcasting. */
ty_val ty_b_unbroadcast(ty_graph *g, ty_val v, const ty_type *like);

#endif
