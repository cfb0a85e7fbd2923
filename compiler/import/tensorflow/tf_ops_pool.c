/* tf_ops_pool.c - pooling and its gradients. Padding does not count in an average; the first of equals in a window is
 * the maximum.
 */
#include "compiler/import/tensorflow/tf_window.h"

enum { MAX_RESULTS = 1 << 20, MAX_TAPS = 1 << 12 };

/* Window lists are attributes, or inputs 1 and 2 (V2). */
static bool pool_read(tf_ctx *c, tf_window *w, const ty_type *x)
{
    int64_t in[TY_MAX_RANK];
    if (!tf_window_layout(c, w, x->rank))
        return false;
    for (int i = 0; i < w->n; i++)
        in[i] = tf_window_spatial(w, x->dim, i);
    return tf_window_read(c, w, NULL, in);
}

/* Input 0 as [N, C, spatial..], and its windows. False (and failed). */
static bool pool_start(tf_ctx *c, ty_val *x, tf_window *w, ty_attr *a)
{
    *x = tf_in(c, 0);
    if (!pool_read(c, w, tf_type(c, *x)))
        return false;
    *a = tf_window_attr(w);
    *x = tf_window_first(c, w, *x);
    return true;
}

/* Positions in planes [N, C, spatial..] as TensorFlow counts them: in [spatial.., C], with N in front if asked. */
static ty_val pool_positions(tf_ctx *c, ty_val at, const ty_type *x)
{
    ty_graph *g = c->g;
    ty_type t = *tf_type(c, at);
    int64_t area = 1;
    t.dtype = TY_I64;
    for (int i = 2; i < x->rank; i++)
        area *= x->dim[i];
    ty_val y = ty_b_mul_s(g, ty_b_cast(g, at, TY_I64), (double)x->dim[1]);
    y = ty_b_add(g, y, ty_b_iota(g, t, 1));
    if (tf_attr_bool(c->node, "include_batch_in_index", false))
        y = ty_b_add(g, y, ty_b_mul_s(g, ty_b_iota(g, t, 0), (double)(area * x->dim[1])));
    return y;
}

/* The maxima; arg 1: and where they are. */
void tf_op_max_pool(tf_ctx *c)
{
    ty_val x;
    tf_window w;
    ty_attr a;
    if (!pool_start(c, &x, &w, &a))
        return;
    ty_val y = ty_graph_emit(c->g, TY_OP_POOL_MAX, &a, &x, 1);
    tf_set(c, 0, tf_window_back(c, &w, y));
    if (!c->row->arg || y == TY_NONE)
        return;
    ty_val at = pool_positions(c, ty_val_make(ty_val_node(y), 1), tf_type(c, x));
    tf_set(c, 1, ty_b_cast(c->g, tf_window_back(c, &w, at), tf_attr_dtype(c, "Targmax", TY_I64)));
}

/* x, y, dy; arg 1: x, dy, positions. Which element was the maximum is found again: the same node as in forward. */
void tf_op_max_pool_grad(tf_ctx *c)
{
    ty_val x, dy = tf_in(c, c->row->arg ? 1 : 2);
    tf_window w;
    ty_attr a;
    if (!pool_start(c, &x, &w, &a))
        return;
    ty_val y = ty_graph_emit(c->g, TY_OP_POOL_MAX, &a, &x, 1);
    if (y == TY_NONE)
        return;
    ty_val in[] = {tf_window_first(c, &w, dy), ty_val_make(ty_val_node(y), 1)};
    a.type = *tf_type(c, x);
    tf_set(c, 0, tf_window_back(c, &w, ty_graph_emit(c->g, TY_OP_POOL_MAX_GRAD, &a, in, 2)));
}

/* How many elements of x each result averages, as [1, 1, spatial..]. */
static ty_val pool_counts(tf_ctx *c, const tf_window *w, const ty_type *x, const ty_type *y)
{
    ty_val counts = ty_b_scalar(c->g, (ty_dtype)x->dtype, 1);
    for (int i = 0; i < w->n; i++) {
        int64_t n = y->dim[i + 2], in = x->dim[i + 2], dim[TY_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
        double *v = tf_alloc(c, (size_t)n, sizeof *v);
        if (n > MAX_RESULTS || w->size[i] > MAX_TAPS) {
            tf_fail(c, TY_E_LIMIT, "a window of %lld over %lld results is too large", (long long)w->size[i],
                    (long long)n);
            return TY_NONE;
        }
        for (int64_t o = 0; o < n; o++)
            for (int64_t k = 0; k < w->size[i]; k++) {
                int64_t at = o * w->step[i] - w->lo[i] + k * w->dil[i];
                v[o] += at >= 0 && at < in;
            }
        dim[i + 2] = n;
        counts = ty_b_mul(c->g, counts, tf_floats(c, (ty_dtype)x->dtype, w->n + 2, dim, v));
    }
    return counts;
}

void tf_op_avg_pool(tf_ctx *c)
{
    ty_val x;
    tf_window w;
    ty_attr a;
    if (!pool_start(c, &x, &w, &a))
        return;
    ty_val y = ty_graph_emit(c->g, TY_OP_POOL_SUM, &a, &x, 1);
    if (y == TY_NONE)
        return;
    y = ty_b_div(c->g, y, pool_counts(c, &w, tf_type(c, x), tf_type(c, y)));
    tf_set(c, 0, tf_window_back(c, &w, y));
}

/* shape of x, dy */
void tf_op_avg_pool_grad(tf_ctx *c)
{
    const int64_t *dim;
    int64_t n;
    ty_val dy = tf_in(c, 1);
    tf_window w;
    if (!tf_const_ints(c, 0, &dim, &n) || !tf_shape_ok(c, n, dim))
        return;
    ty_type x = ty_type_make(tf_dtype_of(c, dy), (int)n, dim);
    if (!pool_read(c, &w, &x))
        return;
    ty_attr a = tf_window_attr(&w);
    a.type = tf_window_type(&w, tf_dtype_of(c, dy), dim);
    dy = tf_window_first(c, &w, dy);
    if (dy == TY_NONE)
        return;
    ty_val each = ty_b_div(c->g, dy, pool_counts(c, &w, &a.type, tf_type(c, dy)));
    tf_set(c, 0, tf_window_back(c, &w, ty_graph_emit(c->g, TY_OP_POOL_SUM_GRAD, &a, &each, 1)));
}
