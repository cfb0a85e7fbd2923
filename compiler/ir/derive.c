/* derive.c - forms written in terms of the ops, shared by importers and gradients. */
#include "compiler/ir/build.h"
#include "compiler/ir/storage.h"

#include <string.h>

static ty_val derive_number(ty_graph *g, ty_val like, double value)
{
    return like == TY_NONE ? TY_NONE : ty_b_scalar(g, ty_b_dtype(g, like), value);
}

ty_val ty_b_add_s(ty_graph *g, ty_val a, double s)
{
    return ty_b_add(g, a, derive_number(g, a, s));
}

ty_val ty_b_mul_s(ty_graph *g, ty_val a, double s)
{
    return ty_b_mul(g, a, derive_number(g, a, s));
}

ty_val ty_b_ne(ty_graph *g, ty_val a, ty_val b)
{
    return ty_b_unary(g, TY_OP_NOT, ty_b_eq(g, a, b));
}

ty_val ty_b_square(ty_graph *g, ty_val x)
{
    return ty_b_mul(g, x, x);
}

ty_val ty_b_reciprocal(ty_graph *g, ty_val x)
{
    return ty_b_div(g, derive_number(g, x, 1), x);
}

ty_val ty_b_sigmoid(ty_graph *g, ty_val x)
{
    return ty_b_reciprocal(g, ty_b_add_s(g, ty_b_exp(g, ty_b_neg(g, x)), 1));
}

/* Nodes are found by building the same again. */
ty_val ty_b_sigmoid_input(ty_graph *g, ty_val x)
{
    uint32_t div = ty_val_node(x);
    if (ty_graph_op(g, div) != TY_OP_DIV)
        return TY_NONE;
    uint32_t sum = ty_val_node(ty_graph_in(g, div, 1));
    for (int k = 0; k < 2 && ty_graph_op(g, sum) == TY_OP_ADD; k++) {
        uint32_t power = ty_val_node(ty_graph_in(g, sum, k));
        if (ty_graph_op(g, power) != TY_OP_EXP)
            continue;
        uint32_t minus = ty_val_node(ty_graph_in(g, power, 0));
        if (ty_graph_op(g, minus) != TY_OP_NEG)
            continue;
        ty_val v = ty_graph_in(g, minus, 0);
        return ty_b_sigmoid(g, v) == x ? v : TY_NONE;
    }
    return TY_NONE;
}

/* log(1 + exp(x)) without overflow. The kink of max and |x| at 0 cancels in the value, but not in gradients of its
 * parts: both take slope 1/2 and 0 there, which add up to the right 1/2. */
ty_val ty_b_softplus(ty_graph *g, ty_val x)
{
    ty_val tail = ty_b_unary(g, TY_OP_LOG1P, ty_b_exp(g, ty_b_neg(g, ty_b_unary(g, TY_OP_ABS, x))));
    return ty_b_add(g, ty_b_max(g, x, derive_number(g, x, 0)), tail);
}

/* Written so that a NaN passes through. */
ty_val ty_b_relu(ty_graph *g, ty_val x)
{
    ty_val zero = derive_number(g, x, 0);
    return ty_b_select(g, ty_b_le(g, x, zero), zero, x);
}

/* -1, 1; zero and NaN stay what they are. */
ty_val ty_b_sign(ty_graph *g, ty_val x)
{
    ty_val zero = derive_number(g, x, 0);
    ty_val below = ty_b_select(g, ty_b_lt(g, x, zero), derive_number(g, x, -1), x);
    return ty_b_select(g, ty_b_lt(g, zero, x), derive_number(g, x, 1), below);
}

ty_val ty_b_sum(ty_graph *g, ty_val x, uint32_t axes, bool keep_dims)
{
    return ty_b_reduce(g, x, TY_SUM, axes, keep_dims);
}

ty_val ty_b_mean(ty_graph *g, ty_val x, uint32_t axes, bool keep_dims)
{
    double count = 1;
    for (int i = 0; i < ty_b_rank(g, x); i++)
        if (axes >> i & 1)
            count *= (double)ty_b_dim(g, x, i);
    return ty_b_div(g, ty_b_sum(g, x, axes, keep_dims), derive_number(g, x, count));
}

/* ---- matmul ---- */

/* a [.., M, K] by b [K, N]: one product of [.. * M, K], which is faster than a batch that repeats b. */
static ty_val derive_flat_matmul(ty_graph *g, ty_val a, ty_val b)
{
    ty_type t = *ty_graph_type(g, a);
    int64_t flat[2] = {1, t.dim[t.rank - 1]};
    for (int i = 0; i < t.rank - 1; i++)
        flat[0] *= t.dim[i];
    ty_val y = ty_b_dot(g, ty_b_reshape(g, a, 2, flat), b, false, false);
    t.dim[t.rank - 1] = ty_b_dim(g, b, 1);
    return ty_b_reshape(g, y, t.rank, t.dim);
}

/* Stretches the batch dims of v (all but the last two) to `batch`. */
static ty_val derive_stretch_batch(ty_graph *g, ty_val v, int n_batch, const int64_t *batch)
{
    int rank = ty_b_rank(g, v);
    int64_t dim[TY_MAX_RANK];
    memcpy(dim, batch, sizeof(int64_t) * (size_t)n_batch);
    dim[n_batch] = ty_b_dim(g, v, rank - 2);
    dim[n_batch + 1] = ty_b_dim(g, v, rank - 1);
    return ty_b_broadcast(g, v, n_batch + 2, dim);
}

/* Dim i of n batch dims of v, aligned at the end; 1 where v has none. */
static int64_t derive_batch_dim(const ty_graph *g, ty_val v, int i, int n)
{
    int own = i - (n - (ty_b_rank(g, v) - 2));
    return own < 0 ? 1 : ty_b_dim(g, v, own);
}

static ty_val derive_batched_matmul(ty_graph *g, ty_val a, ty_val b)
{
    int n = (ty_b_rank(g, a) > ty_b_rank(g, b) ? ty_b_rank(g, a) : ty_b_rank(g, b)) - 2;
    int64_t batch[TY_MAX_RANK];
    for (int i = 0; i < n; i++) {
        int64_t p = derive_batch_dim(g, a, i, n), q = derive_batch_dim(g, b, i, n);
        batch[i] = p == 1 ? q : p;
    }
    return ty_b_dot(g, derive_stretch_batch(g, a, n, batch), derive_stretch_batch(g, b, n, batch), false, false);
}

ty_val ty_b_matmul(ty_graph *g, ty_val a, ty_val b)
{
    if (a == TY_NONE || b == TY_NONE || g->failed)
        return TY_NONE;
    if (ty_b_rank(g, a) == 0 || ty_b_rank(g, b) == 0)
        return ty_graph_fail(g, TY_E_SHAPE, "matmul: a scalar is no matrix");
    bool a_vector = ty_b_rank(g, a) == 1, b_vector = ty_b_rank(g, b) == 1;
    if (a_vector)
        a = ty_b_unsqueeze(g, a, 0);
    if (b_vector)
        b = ty_b_unsqueeze(g, b, 1);
    bool flat = ty_b_rank(g, b) == 2 && ty_b_rank(g, a) > 2;
    ty_val y = flat ? derive_flat_matmul(g, a, b) : derive_batched_matmul(g, a, b);
    if (b_vector)
        y = ty_b_squeeze(g, y, ty_b_rank(g, y) - 1);
    if (a_vector)
        y = ty_b_squeeze(g, y, ty_b_rank(g, y) - 1 - !b_vector);
    return y;
}

ty_val ty_b_unbroadcast(ty_graph *g, ty_val v, const ty_type *like)
{
    if (v == TY_NONE || g->failed)
        return TY_NONE;
    const ty_type *t = ty_graph_type(g, v);
    int extra = t->rank - like->rank;
    uint32_t axes = extra > 0 ? (1u << extra) - 1 : 0;
    for (int i = 0; i < like->rank && extra >= 0; i++)
        if (like->dim[i] == 1 && t->dim[i + extra] != 1)
            axes |= 1u << (i + extra);
    return ty_b_reshape(g, ty_b_sum(g, v, axes, false), like->rank, like->dim);
}
