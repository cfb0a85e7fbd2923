/* tf_ops_reduce.c - what combines elements along axes, or in segments. */
#include "compiler/import/tensorflow/tf_ops.h"

/* Axes from input 1. */
static bool axes_in(tf_ctx *c, uint32_t *mask)
{
    const int64_t *axes;
    int64_t n;
    return tf_const_ints(c, 1, &axes, &n) && tf_axes(c, axes, n, tf_rank(c, tf_in(c, 0)), mask);
}

static bool keeps_dims(tf_ctx *c)
{
    return tf_attr_bool(c->node, "keep_dims", tf_attr_bool(c->node, "keepdims", false));
}

/* arg: the ty_combine. */
void tf_op_reduce(tf_ctx *c)
{
    uint32_t axes;
    if (axes_in(c, &axes))
        tf_set(c, 0, ty_b_reduce(c->g, tf_in(c, 0), (ty_combine)c->row->arg, axes, keeps_dims(c)));
}

void tf_op_mean(tf_ctx *c)
{
    uint32_t axes;
    ty_val x = tf_in(c, 0);
    if (!axes_in(c, &axes))
        return;
    if (tf_is_float(c, x)) {
        tf_set(c, 0, ty_b_mean(c->g, x, axes, keeps_dims(c)));
        return;
    }
    int64_t n = 1;
    for (int i = 0; i < tf_rank(c, x); i++)
        n *= axes >> i & 1 ? tf_dim(c, x, i) : 1;
    ty_val sum = ty_b_sum(c->g, x, axes, keeps_dims(c));
    tf_set(c, 0, ty_b_div(c->g, sum, ty_b_full_like(c->g, sum, n ? (double)n : 1)));
}

/* arg TY_MIN: all, TY_MAX: any. */
void tf_op_reduce_bool(tf_ctx *c)
{
    uint32_t axes;
    if (!axes_in(c, &axes))
        return;
    ty_val x = ty_b_cast(c->g, tf_in(c, 0), TY_I32);
    tf_set(c, 0, ty_b_cast(c->g, ty_b_reduce(c->g, x, (ty_combine)c->row->arg, axes, keeps_dims(c)), TY_BOOL));
}

void tf_op_euclidean_norm(tf_ctx *c)
{
    uint32_t axes;
    if (axes_in(c, &axes))
        tf_set(c, 0, ty_b_unary(c->g, TY_OP_SQRT, ty_b_sum(c->g, ty_b_square(c->g, tf_in(c, 0)), axes, keeps_dims(c))));
}

/* arg: TY_MAX or TY_MIN; the first of equals. */
void tf_op_arg_reduce(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    int axis = 0;
    if (tf_has(c, 1) && !tf_axis_in(c, 1, tf_rank(c, x), &axis))
        return;
    ty_val y = ty_b_argreduce(c->g, x, (ty_combine)c->row->arg, axis, false);
    tf_set(c, 0, ty_b_cast(c->g, y, tf_attr_dtype(c, "output_type", TY_I64)));
}

/* arg: TY_SUM or TY_PROD. */
void tf_op_scan(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    int axis;
    if (tf_axis_in(c, 1, tf_rank(c, x), &axis))
        tf_set(c, 0,
               ty_b_scan(c->g, x, (ty_combine)c->row->arg, axis, tf_attr_bool(c->node, "exclusive", false),
                         tf_attr_bool(c->node, "reverse", false)));
}

/* ---- segments -----------------------------------------------------------------------------------------------------
 */

static double empty_of(ty_combine how, ty_dtype dtype)
{
    double most = dtype == TY_F32   ? 3.4028234663852886e38
                  : dtype == TY_F64 ? 1.7976931348623157e308
                  : dtype == TY_F16 ? 65504
                                    : 2147483647;
    return how == TY_SUM ? 0 : how == TY_PROD ? 1 : how == TY_MAX ? -most : most;
}

/* data [ids.., rest..], ids, number of segments -> [n, rest..]. Rows with a negative id go nowhere. arg: the
 * ty_combine. */
void tf_op_unsorted_segment(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0), ids = tf_in(c, 1);
    int64_t n, dim[TY_MAX_RANK], rows = 1;
    int rank = 1, k = tf_rank(c, ids);
    if (!tf_const_int(c, 2, &n))
        return;
    if (k > tf_rank(c, x) || tf_rank(c, x) - k + 1 > TY_MAX_RANK || n < 0) {
        tf_fail_input(c, 1, TY_E_SHAPE, "does not fit the data");
        return;
    }
    for (int i = 0; i < k; i++)
        rows *= tf_dim(c, x, i);
    dim[0] = rows;
    for (int i = k; i < tf_rank(c, x); i++)
        dim[rank++] = tf_dim(c, x, i);
    x = ty_b_reshape(g, x, rank, dim);
    ids = ty_b_cast(g, ty_b_flatten(g, ids), TY_I64);
    ty_combine how = (ty_combine)c->row->arg;
    double empty = empty_of(how, tf_dtype_of(c, x));
    ty_val zero = ty_b_full_like(g, ids, 0), last = ty_b_full_like(g, ids, n > 0 ? (double)n - 1 : 0);
    ty_val away = ty_b_binary(g, TY_OP_OR, ty_b_lt(g, ids, zero), ty_b_lt(g, last, ids));
    if (away == TY_NONE)
        return;
    ids = ty_b_select(g, away, zero, ids);
    for (int i = 1; i < rank; i++)
        away = ty_b_unsqueeze(g, away, i);
    x = ty_b_select(g, away, ty_b_full_like(g, x, empty), x);
    dim[0] = n;
    if (tf_shape_ok(c, rank, dim))
        tf_set(c, 0, ty_b_scatter(g, ty_b_full(g, tf_dtype_of(c, x), rank, dim, empty), ids, x, 0, how));
}
