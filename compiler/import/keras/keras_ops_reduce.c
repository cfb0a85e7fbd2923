/* keras_ops_reduce.c - reductions, scans, and where the largest stands. */
#include "compiler/import/keras/keras_ops.h"

#include <math.h>
#include <string.h>

static bool keeps(keras_call *c)
{
    return keras_flag(c, "keepdims", false);
}

/* x and the axes of its configuration; bools and short integers are counted in 32 bits. */
static bool reduce_read(keras_call *c, bool floats, ty_val *x, uint32_t *axes)
{
    *x = floats ? keras_op_float(c) : keras_op_in(c, 0, "x");
    if (*x == TY_NONE || !keras_op_axes(c, "axis", ty_b_rank(c->g, *x), axes))
        return false;
    ty_dtype dtype = ty_b_dtype(c->g, *x);
    if (dtype == TY_BOOL || dtype == TY_I8 || dtype == TY_I16)
        *x = ty_b_cast(c->g, *x, TY_I32);
    return true;
}

/* arg: ty_combine. */
void keras_op_reduce(keras_call *c)
{
    ty_val x, y;
    uint32_t axes;
    if (!reduce_read(c, false, &x, &axes))
        return;
    ty_combine how = (ty_combine)c->layer->op->arg;
    y = ty_b_reduce(c->g, x, how, axes, keeps(c));
    const ty_doc *initial = keras_config(c, "initial");
    if (initial && (how == TY_MAX || how == TY_MIN)) {
        ty_val bound = ty_b_full_like(c->g, y, keras_number(c, "initial", 0));
        y = ty_b_binary(c->g, how == TY_MAX ? TY_OP_MAX : TY_OP_MIN, y, bound);
    }
    keras_set(c, 0, y);
}

/* All and Any; arg: TY_MIN, TY_MAX. */
void keras_op_reduce_bool(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    uint32_t axes;
    if (x != TY_NONE && keras_op_axes(c, "axis", ty_b_rank(c->g, x), &axes))
        keras_set(c, 0, ty_b_reduce(c->g, ty_b_cast(c->g, x, TY_BOOL), (ty_combine)c->layer->op->arg, axes, keeps(c)));
}

void keras_op_mean(keras_call *c)
{
    ty_val x;
    uint32_t axes;
    if (reduce_read(c, true, &x, &axes))
        keras_set(c, 0, ty_b_mean(c->g, x, axes, keeps(c)));
}

/* Biased. */
static ty_val variance(ty_graph *g, ty_val x, uint32_t axes, bool keep)
{
    return ty_b_mean(g, ty_b_square(g, ty_b_sub(g, x, ty_b_mean(g, x, axes, true))), axes, keep);
}

/* arg 1: its root. */
void keras_op_variance(keras_call *c)
{
    ty_val x;
    uint32_t axes;
    if (!reduce_read(c, true, &x, &axes))
        return;
    ty_val y = variance(c->g, x, axes, keeps(c));
    keras_set(c, 0, c->layer->op->arg ? ty_b_unary(c->g, TY_OP_SQRT, y) : y);
}

void keras_op_moments(keras_call *c)
{
    ty_val x = keras_op_float(c);
    uint32_t axes;
    if (x == TY_NONE || !keras_op_axes(c, "axes", ty_b_rank(c->g, x), &axes))
        return;
    keras_set(c, 0, ty_b_mean(c->g, x, axes, keeps(c)));
    keras_set(c, 1, variance(c->g, x, axes, keeps(c)));
}

void keras_op_ptp(keras_call *c)
{
    ty_val x;
    uint32_t axes;
    if (reduce_read(c, false, &x, &axes))
        keras_set(
            c, 0,
            ty_b_sub(c->g, ty_b_reduce(c->g, x, TY_MAX, axes, keeps(c)), ty_b_reduce(c->g, x, TY_MIN, axes, keeps(c))));
}

void keras_op_count_nonzero(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    uint32_t axes;
    if (x != TY_NONE && keras_op_axes(c, "axis", ty_b_rank(c->g, x), &axes))
        keras_set(c, 0, ty_b_sum(c->g, ty_b_cast(c->g, ty_b_cast(c->g, x, TY_BOOL), TY_I32), axes, false));
}

/* log(sum(exp(x - m))) + m; m, the largest, is a constant for the gradient, which does not depend on it. */
void keras_op_logsumexp(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x;
    uint32_t axes;
    if (!reduce_read(c, true, &x, &axes))
        return;
    ty_val most = ty_b_reduce(g, x, TY_MAX, axes, true), far = ty_b_full_like(g, most, INFINITY);
    ty_val finite = ty_b_lt(g, ty_b_unary(g, TY_OP_ABS, most), far);
    most = ty_b_select(g, finite, most, ty_b_full_like(g, most, 0));
    ty_val sum = ty_b_log(g, ty_b_sum(g, ty_b_exp(g, ty_b_sub(g, x, most)), axes, true));
    ty_val y = ty_b_add(g, sum, most);
    if (!keeps(c))
        for (int i = ty_b_rank(g, x) - 1; i >= 0; i--)
            y = axes >> i & 1 ? ty_b_squeeze(g, y, i) : y;
    keras_set(c, 0, y);
}

void keras_op_average(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x, w = keras_op_optional(c, 1, "weights");
    uint32_t axes;
    if (!reduce_read(c, true, &x, &axes))
        return;
    if (w == TY_NONE) {
        keras_set(c, 0, ty_b_mean(g, x, axes, false));
        return;
    }
    w = ty_b_cast(g, w, ty_b_dtype(g, x));
    int rank = ty_b_rank(g, x), axis = -1;
    for (int i = 0; i < rank; i++)
        axis = axes == 1u << i ? i : axis;
    if (ty_b_rank(g, w) == 1 && rank > 1 && axis >= 0) {
        int64_t dim[TY_MAX_RANK];
        for (int i = 0; i < rank; i++)
            dim[i] = i == axis ? ty_b_dim(g, w, 0) : 1;
        w = ty_b_reshape(g, w, rank, dim);
    }
    const ty_type t = *ty_graph_type(g, x);
    w = ty_b_broadcast(g, w, t.rank, t.dim);
    keras_set(c, 0, ty_b_div(g, ty_b_sum(g, ty_b_mul(g, x, w), axes, false), ty_b_sum(g, w, axes, false)));
}

/* Along one axis, or, where that is null, of the flattened value. */
static bool axis_read(keras_call *c, int64_t absent, ty_val *x, int *axis)
{
    *x = keras_op_in(c, 0, "x");
    if (*x == TY_NONE || !keras_op_axis(c, "axis", absent, ty_b_rank(c->g, *x), axis))
        return false;
    if (*axis < 0) {
        *x = ty_b_flatten(c->g, *x);
        *axis = 0;
    }
    return true;
}

/* arg: TY_MAX, TY_MIN. The first of equals, as int32. */
void keras_op_argreduce(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "x");
    int axis, rank = ty_b_rank(g, x);
    bool all = !keras_config(c, "axis");
    if (x == TY_NONE || !axis_read(c, 0, &x, &axis))
        return;
    if (ty_b_dtype(g, x) == TY_BOOL)
        x = ty_b_cast(g, x, TY_I32);
    ty_val at = ty_b_cast(g, ty_b_argreduce(g, x, (ty_combine)c->layer->op->arg, axis, false), TY_I32);
    static const int64_t ones[TY_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (keeps(c))
        at = all ? ty_b_reshape(g, at, rank, ones) : ty_b_unsqueeze(g, at, axis);
    keras_set(c, 0, at);
}

/* arg: TY_SUM, TY_PROD. */
void keras_op_scan(keras_call *c)
{
    ty_val x;
    int axis;
    if (!axis_read(c, 0, &x, &axis))
        return;
    ty_dtype own = ty_b_dtype(c->g, x), dtype = keras_op_dtype(c, "dtype", own == TY_BOOL ? TY_I32 : own);
    keras_set(c, 0, ty_b_scan(c->g, ty_b_cast(c->g, x, dtype), (ty_combine)c->layer->op->arg, axis, false, false));
}

/* arg 1: the places instead, as int32. */
void keras_op_sort(keras_call *c)
{
    ty_val x, at;
    int axis;
    if (!axis_read(c, -1, &x, &axis))
        return;
    ty_val y = ty_b_sort(c->g, x, axis, false, &at);
    keras_set(c, 0, c->layer->op->arg ? ty_b_cast(c->g, at, TY_I32) : y);
}

void keras_op_top_k(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "x"), at;
    int last = ty_b_rank(g, x) - 1;
    int64_t k = keras_int(c, "k", 1);
    if (x == TY_NONE || c->failed)
        return;
    if (last < 0 || k < 1 || k > ty_b_dim(g, x, last)) {
        keras_fail_key(c, "k", "must be between 1 and the length of the last axis");
        return;
    }
    ty_val y = ty_b_sort(g, x, last, true, &at);
    keras_set(c, 0, ty_b_slice_axis(g, y, last, 0, k));
    keras_set(c, 1, ty_b_cast(g, ty_b_slice_axis(g, at, last, 0, k), TY_I32));
}

/* ---- norms ----------------------------------------------------------------------------------------------------------
 */

/* ord of vectors: 2, 1, infinities as texts. */
void keras_op_norm(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x;
    uint32_t axes;
    const ty_doc *ord = keras_config(c, "ord");
    if (!reduce_read(c, true, &x, &axes))
        return;
    int n = __builtin_popcount(axes);
    bool whole = !ord || (ord->kind == TY_DOC_STRING && strcmp(ord->string, "fro") == 0 && n == 2);
    double order = 2;
    if (ord && ord->kind == TY_DOC_STRING && strcmp(ord->string, "inf") == 0)
        order = INFINITY;
    else if (!whole && (ty_doc_float(ord, &order, NULL) < 0 || order <= 0))
        n = 0;
    ty_val size = ty_b_unary(g, TY_OP_ABS, x);
    if (whole || (n == 1 && order == 2))
        keras_set(c, 0, ty_b_unary(g, TY_OP_SQRT, ty_b_sum(g, ty_b_square(g, x), axes, keeps(c))));
    else if (n == 1 && order == 1)
        keras_set(c, 0, ty_b_sum(g, size, axes, keeps(c)));
    else if (n == 1 && isinf(order))
        keras_set(c, 0, ty_b_reduce(g, size, TY_MAX, axes, keeps(c)));
    else
        keras_fail_key(c, "ord", "must be null, or 1, 2 or inf along one axis");
}

/* x / max(norm, epsilon); of order 2 as x min(rsqrt(sum x^2), 1 / epsilon). */
void keras_op_normalize(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_float(c);
    uint32_t axes;
    double eps = keras_number(c, "epsilon", 1e-7);
    if (x == TY_NONE || !keras_op_axes(c, "axis", ty_b_rank(g, x), &axes))
        return;
    if (keras_int(c, "order", 2) != 2) {
        if (!c->failed)
            keras_fail_key(c, "order", "must be 2");
        return;
    }
    ty_val inverse = ty_b_unary(g, TY_OP_RSQRT, ty_b_sum(g, ty_b_square(g, x), axes, true));
    ty_val most = ty_b_full_like(g, inverse, 1 / eps);
    keras_set(c, 0, ty_b_mul(g, x, ty_b_select(g, ty_b_lt(g, most, inverse), most, inverse)));
}
