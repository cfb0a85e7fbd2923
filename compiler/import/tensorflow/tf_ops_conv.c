/* tf_ops_conv.c - convolutions and their gradients.
 *
 * Letters: N batch, C channels in, O channels out, M multiplier. TensorFlow's filters are [window.., C / groups, O],
 * the graph's [O, C / groups, window..]. A depthwise filter [window.., C, M] is one of C groups with M channels out
 * each: [C M, 1, window..].
 */
#include "compiler/import/tensorflow/tf_window.h"

#include <string.h>

/* A filter as the graph has it; depthwise: C groups. */
static ty_val filter_in(tf_ctx *c, const tf_window *w, ty_val filter, bool depthwise)
{
    int64_t perm[TY_MAX_RANK], dim[TY_MAX_RANK];
    perm[0] = depthwise ? w->n : w->n + 1;
    perm[1] = depthwise ? w->n + 1 : w->n;
    for (int i = 0; i < w->n; i++)
        perm[i + 2] = i;
    if (filter == TY_NONE)
        return filter;
    ty_val f = ty_b_transpose(c->g, filter, perm);
    if (!depthwise || f == TY_NONE)
        return f;
    dim[0] = tf_dim(c, f, 0) * tf_dim(c, f, 1);
    dim[1] = 1;
    for (int i = 0; i < w->n; i++)
        dim[i + 2] = tf_dim(c, f, i + 2);
    return ty_b_reshape(c->g, f, w->n + 2, dim);
}

/* A gradient of the graph's filter as the file has it: [window.., C, O]. */
static ty_val filter_out(tf_ctx *c, const tf_window *w, ty_val f, const int64_t *dim, bool depthwise)
{
    int64_t perm[TY_MAX_RANK], split[TY_MAX_RANK];
    if (f == TY_NONE)
        return f;
    if (depthwise) {
        split[0] = dim[w->n];
        split[1] = dim[w->n + 1];
        for (int i = 0; i < w->n; i++)
            split[i + 2] = dim[i];
        f = ty_b_reshape(c->g, f, w->n + 2, split);
    }
    for (int i = 0; i < w->n; i++)
        perm[i] = i + 2;
    perm[w->n] = depthwise ? 0 : 1;
    perm[w->n + 1] = depthwise ? 1 : 0;
    return ty_b_transpose(c->g, f, perm);
}

/* Type of the graph's filter for the file's dims. */
static ty_type filter_type(const tf_window *w, ty_dtype dtype, const int64_t *dim, bool depthwise)
{
    int64_t first[TY_MAX_RANK] = {depthwise ? dim[w->n] * dim[w->n + 1] : dim[w->n + 1], depthwise ? 1 : dim[w->n]};
    for (int i = 0; i < w->n; i++)
        first[i + 2] = dim[i];
    return ty_type_make(dtype, w->n + 2, first);
}

/* Window and groups for x of dims `x` and a filter of dims `f`. */
static bool conv_read(tf_ctx *c, tf_window *w, const ty_type *x, const ty_type *f, bool depthwise, ty_attr *a)
{
    int64_t in[TY_MAX_RANK];
    if (!tf_window_layout(c, w, x->rank))
        return false;
    if (f->rank != x->rank) {
        tf_fail(c, TY_E_SHAPE, "input and filter must have the same number of dimensions");
        return false;
    }
    for (int i = 0; i < w->n; i++)
        in[i] = tf_window_spatial(w, x->dim, i);
    if (!tf_window_read(c, w, f->dim, in))
        return false;
    int64_t channels = tf_window_channels(w, x->dim), each = f->dim[w->n];
    *a = tf_window_attr(w);
    a->groups = depthwise ? channels : each ? channels / each : 0;
    if (a->groups < 1 || (depthwise ? each != channels : each * a->groups != channels))
        tf_fail(c, TY_E_SHAPE, "an input of %lld channels does not fit a filter of %lld", (long long)channels,
                (long long)each);
    return !c->failed;
}

/* arg 1: depthwise. */
void tf_op_conv(tf_ctx *c)
{
    tf_window w;
    ty_attr a;
    if (!conv_read(c, &w, tf_type(c, tf_in(c, 0)), tf_type(c, tf_in(c, 1)), c->row->arg, &a))
        return;
    ty_val in[] = {tf_window_first(c, &w, tf_in(c, 0)), filter_in(c, &w, tf_in(c, 1), c->row->arg)};
    tf_set(c, 0, tf_window_back(c, &w, ty_graph_emit(c->g, TY_OP_CONV, &a, in, 2)));
}

/* A type whose dims are a constant input. */
static bool sized(tf_ctx *c, int i, ty_dtype dtype, ty_type *out)
{
    const int64_t *dim;
    int64_t n;
    if (!tf_const_ints(c, i, &dim, &n) || !tf_shape_ok(c, n, dim))
        return false;
    *out = ty_type_make(dtype, (int)n, dim);
    return true;
}

/* sizes of x, filter, dy -> dx; also what Keras writes for a transposed convolution. The sizes may leave the batch
 * open, or have the spatial dims alone. */
void tf_op_conv_backprop_input(tf_ctx *c)
{
    ty_val filter = tf_in(c, 1), dy = tf_in(c, 2);
    const ty_type *f = tf_type(c, filter);
    tf_window w;
    ty_attr a;
    ty_type x;
    if (!sized(c, 0, tf_dtype_of(c, dy), &x) || !tf_window_layout(c, &w, tf_rank(c, dy)))
        return;
    if (x.rank == w.n) { /* spatial dims alone */
        ty_type full = *tf_type(c, dy);
        for (int i = 0; i < w.n; i++)
            full.dim[i + (w.last ? 1 : 2)] = x.dim[i];
        full.dim[w.last ? w.n + 1 : 1] = f->dim[w.n];
        x = full;
    }
    if (!conv_read(c, &w, &x, f, c->row->arg, &a))
        return;
    a.type = tf_window_type(&w, tf_dtype_of(c, dy), x.dim);
    ty_val in[] = {tf_window_first(c, &w, dy), filter_in(c, &w, filter, c->row->arg)};
    tf_set(c, 0, tf_window_back(c, &w, ty_graph_emit(c->g, TY_OP_CONV_DX, &a, in, 2)));
}

/* x, sizes of the filter, dy -> dw */
void tf_op_conv_backprop_filter(tf_ctx *c)
{
    ty_val x = tf_in(c, 0), dy = tf_in(c, 2);
    tf_window w;
    ty_attr a;
    ty_type f;
    if (!sized(c, 1, tf_dtype_of(c, x), &f) || !conv_read(c, &w, tf_type(c, x), &f, c->row->arg, &a))
        return;
    a.type = filter_type(&w, tf_dtype_of(c, x), f.dim, c->row->arg);
    ty_val in[] = {tf_window_first(c, &w, x), tf_window_first(c, &w, dy)};
    ty_val dw = ty_graph_emit(c->g, TY_OP_CONV_DW, &a, in, 2);
    tf_set(c, 0, filter_out(c, &w, dw, f.dim, c->row->arg));
}

/* ---- bias ----------------------------------------------------------------------------------------------------------
 */

void tf_op_bias_add(tf_ctx *c)
{
    ty_val x = tf_in(c, 0), b = tf_in(c, 1);
    bool first = strncmp(tf_text(c, "data_format", "NHWC"), "NC", 2) == 0;
    if (tf_rank(c, b) != 1) {
        tf_fail_input(c, 1, TY_E_SHAPE, "must have one dimension");
        return;
    }
    if (first && tf_rank(c, x) > 2) {
        int64_t dim[TY_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
        dim[1] = tf_dim(c, b, 0);
        b = ty_b_reshape(c->g, b, tf_rank(c, x), dim);
    }
    tf_set(c, 0, ty_b_add(c->g, x, b));
}

void tf_op_bias_add_grad(tf_ctx *c)
{
    ty_val dy = tf_in(c, 0);
    bool first = strncmp(tf_text(c, "data_format", "NHWC"), "NC", 2) == 0;
    if (tf_rank(c, dy) < 2) {
        tf_fail_input(c, 0, TY_E_SHAPE, "must have 2 dimensions or more");
        return;
    }
    uint32_t channels = 1u << (first ? 1 : tf_rank(c, dy) - 1);
    tf_set(c, 0, ty_b_sum(c->g, dy, ty_b_all_axes(c->g, dy) & ~channels, false));
}
