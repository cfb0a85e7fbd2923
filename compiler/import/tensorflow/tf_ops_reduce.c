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

/* data [ids.., rest..], ids -> [n, rest..]. Rows with a negative id go nowhere. empty: what a segment of no rows has.
 */
static ty_val segment(tf_ctx *c, ty_val x, ty_val ids, int64_t n, ty_combine how, double empty)
{
    ty_graph *g = c->g;
    int64_t dim[TY_MAX_RANK], rows = 1;
    int rank = 1, k = tf_rank(c, ids);
    if (k > tf_rank(c, x) || tf_rank(c, x) - k + 1 > TY_MAX_RANK || n < 0) {
        tf_fail_input(c, 1, TY_E_SHAPE, "does not fit the data");
        return TY_NONE;
    }
    for (int i = 0; i < k; i++)
        rows *= tf_dim(c, x, i);
    dim[0] = rows;
    for (int i = k; i < tf_rank(c, x); i++)
        dim[rank++] = tf_dim(c, x, i);
    x = ty_b_reshape(g, x, rank, dim);
    ids = ty_b_cast(g, ty_b_flatten(g, ids), TY_I64);
    ty_val zero = ty_b_full_like(g, ids, 0), last = ty_b_full_like(g, ids, n > 0 ? (double)n - 1 : 0);
    ty_val away = ty_b_binary(g, TY_OP_OR, ty_b_lt(g, ids, zero), ty_b_lt(g, last, ids));
    if (away == TY_NONE)
        return TY_NONE;
    ids = ty_b_select(g, away, zero, ids);
    for (int i = 1; i < rank; i++)
        away = ty_b_unsqueeze(g, away, i);
    x = ty_b_select(g, away, ty_b_full_like(g, x, empty), x);
    dim[0] = n;
    return tf_shape_ok(c, rank, dim)
               ? ty_b_scatter(g, ty_b_full(g, tf_dtype_of(c, x), rank, dim, empty), ids, x, 0, how)
               : TY_NONE;
}

/* data, ids, number of segments; arg: the ty_combine. */
void tf_op_unsorted_segment(tf_ctx *c)
{
    ty_combine how = (ty_combine)c->row->arg;
    int64_t n;
    if (tf_const_int(c, 2, &n))
        tf_set(c, 0, segment(c, tf_in(c, 0), tf_in(c, 1), n, how, empty_of(how, tf_dtype_of(c, tf_in(c, 0)))));
}

/* How many rows each segment has, as [n, 1 ..] against the result. */
static ty_val segment_counts(tf_ctx *c, ty_val like, ty_val ids, int64_t n)
{
    int64_t dim[TY_MAX_RANK] = {n, 1, 1, 1, 1, 1, 1, 1};
    ty_val one = ty_b_full(c->g, tf_dtype_of(c, like), 1, tf_type(c, ids)->dim, 1);
    return ty_b_reshape(c->g, segment(c, one, ids, n, TY_SUM, 0), tf_rank(c, like), dim);
}

/* data, which of its rows, ids that are known and do not fall: sums of these rows; arg 1: their mean, 2: over the root
 * of how many they are. With a fourth input, the number of segments, ids may be anything. */
void tf_op_sparse_segment(tf_ctx *c)
{
    ty_graph *g = c->g;
    const int64_t *id;
    int64_t n_ids, n;
    ty_val data = tf_in(c, 0), ids = tf_in(c, 2);
    if (tf_has(c, 3) ? !tf_const_int(c, 3, &n) : !tf_const_ints(c, 2, &id, &n_ids))
        return;
    if (!tf_has(c, 3))
        n = n_ids > 0 ? id[n_ids - 1] + 1 : 0;
    if (tf_rank(c, data) < 1 || tf_rank(c, ids) != 1 || tf_rank(c, tf_in(c, 1)) != 1 ||
        tf_dim(c, tf_in(c, 1), 0) != tf_dim(c, ids, 0)) {
        tf_fail_input(c, 2, TY_E_SHAPE, "must be as many as the rows that are taken");
        return;
    }
    ty_val at = tf_index(c, tf_in(c, 1), tf_dim(c, data, 0));
    ty_val y = at == TY_NONE ? at : segment(c, ty_b_gather(g, data, at, 0), ids, n, TY_SUM, 0);
    if (y == TY_NONE)
        return;
    ty_val counts = segment_counts(c, y, ids, n);
    counts = ty_b_max(g, counts, ty_b_full_like(g, counts, 1));
    if (c->row->arg)
        y = ty_b_div(g, y, c->row->arg == 2 ? ty_b_unary(g, TY_OP_SQRT, counts) : counts);
    tf_set(c, 0, y);
}

/* data, ids that are known and do not fall: as many segments as the last one says, 0 where one has no rows. arg: the
 * ty_combine, -1: the mean. */
void tf_op_segment(tf_ctx *c)
{
    ty_graph *g = c->g;
    const int64_t *id;
    int64_t n_ids;
    ty_val ids = tf_in(c, 1), x = tf_in(c, 0);
    if (!tf_const_ints(c, 1, &id, &n_ids))
        return;
    if (tf_rank(c, ids) != 1 || tf_rank(c, x) < 1 || tf_dim(c, x, 0) != n_ids) {
        tf_fail_input(c, 1, TY_E_SHAPE, "does not fit the data");
        return;
    }
    bool is_mean = c->row->arg < 0;
    ty_combine how = is_mean ? TY_SUM : (ty_combine)c->row->arg;
    int64_t n = n_ids > 0 ? id[n_ids - 1] + 1 : 0;
    ty_val y = segment(c, x, ids, n, how, empty_of(how, tf_dtype_of(c, x)));
    if (y == TY_NONE)
        return;
    ty_val counts = segment_counts(c, y, ids, n), none = ty_b_full_like(g, counts, 0);
    if (is_mean)
        y = ty_b_div(g, y, ty_b_max(g, counts, ty_b_full_like(g, counts, 1)));
    if (how == TY_MAX || how == TY_MIN)
        y = ty_b_select(g, ty_b_eq(g, counts, none), ty_b_full_like(g, y, 0), y);
    tf_set(c, 0, y);
}
