/* keras_layers_pool.c - pooling: windows, whole planes, and windows that adapt to a size wanted. */
#include "compiler/import/keras/keras_ops.h"
#include "compiler/import/keras/keras_window.h"

#include <string.h>

/* arg of a row: axes of space, and whether the largest or the average is taken. */
enum { POOL_AXES = 7, POOL_AVERAGE = 8 };
enum { POOL_MATRIX = 1 << 22 }; /* positions times results of an axis that windows adapt to */

static int pool_axes(const keras_call *c)
{
    return c->layer->row->arg & POOL_AXES;
}

static bool pool_averages(const keras_call *c)
{
    return c->layer->row->arg & POOL_AVERAGE;
}

/* ---- windows ---- */

/* Elements that each result of an axis averages: padding does not count. */
static ty_val pool_counts(keras_call *c, const keras_window *w, ty_val x, ty_val y)
{
    ty_dtype dtype = ty_b_dtype(c->g, y);
    ty_val counts = ty_b_scalar(c->g, dtype, 1);
    for (int i = 0; i < (int)w->attr.n; i++) {
        int64_t n = ty_b_dim(c->g, y, i + 2), in = ty_b_dim(c->g, x, i + 2), size = w->attr.size[i];
        double *v = keras_alloc(c, (size_t)n + 1, sizeof *v);
        if (w->attr.lo[i] == 0 && w->attr.hi[i] == 0) {
            counts = ty_b_mul_s(c->g, counts, (double)size);
            continue;
        }
        for (int64_t o = 0; o < n; o++) {
            int64_t from = o * w->attr.step[i] - w->attr.lo[i], to = from + size;
            v[o] = (double)((to < in ? to : in) - (from > 0 ? from : 0));
        }
        ty_val along = keras_const(c, dtype, 1, &n, v);
        counts = ty_b_mul(c->g, counts, keras_on_axis(c, along, i + 2, (int)w->attr.n + 2));
    }
    return counts;
}

static void pool_emit(keras_call *c, int axes, bool averages)
{
    keras_window w;
    if (!keras_window_read(c, axes, "pool_size", 2, true, &w))
        return;
    ty_val x = keras_to_first(c, keras_float(c, c->in[0]), w.first), y;
    if (!keras_window_place(c, &w, x))
        return;
    y = ty_graph_emit(c->g, averages ? TY_OP_POOL_SUM : TY_OP_POOL_MAX, &w.attr, &x, 1);
    if (y != TY_NONE && averages)
        y = ty_b_div(c->g, y, pool_counts(c, &w, x, y));
    keras_set(c, 0, keras_from_first(c, y, w.first));
}

void keras_call_pool(keras_call *c)
{
    pool_emit(c, pool_axes(c), pool_averages(c));
}

/* The same as an operation: over as many axes as there are. */
void keras_op_pool_windows(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "inputs");
    int rank = x == TY_NONE ? 0 : ty_b_rank(c->g, x);
    if (rank < 3 || rank > 5) {
        if (x != TY_NONE)
            keras_fail(c, TY_E_SHAPE, "%s: expected 3 to 5 dimensions", c->layer->class_name);
        return;
    }
    pool_emit(c, rank - 2, c->layer->op->arg & POOL_AVERAGE);
}

/* ---- whole planes ---- */

/* The mean over steps that a mask [N, T] leaves; of none left: 0 / 0, as in Keras. */
static ty_val pool_masked_mean(keras_call *c, ty_val x, ty_val mask, int axis, bool keep)
{
    ty_val steps = ty_b_unsqueeze(c->g, mask, axis == 1 ? 2 : 1);
    ty_val kept = ty_b_select(c->g, steps, x, ty_b_full_like(c->g, x, 0));
    ty_val count = ty_b_sum(c->g, ty_b_cast(c->g, steps, ty_b_dtype(c->g, x)), 1u << axis, keep);
    return ty_b_div(c->g, ty_b_sum(c->g, kept, 1u << axis, keep), count);
}

void keras_call_pool_global(keras_call *c)
{
    int n = pool_axes(c);
    bool keep = keras_flag(c, "keepdims", false), first = keras_channels_first(c);
    uint32_t axes = 0;
    if (c->failed || !keras_has_planes(c, n))
        return;
    ty_val x = keras_float(c, c->in[0]), mask = n == 1 && pool_averages(c) ? c->mask[0] : TY_NONE;
    for (int i = 0; i < n; i++)
        axes |= 1u << keras_space_axis(first, i);
    if (x == TY_NONE)
        return;
    if (mask != TY_NONE)
        keras_set(c, 0, pool_masked_mean(c, x, mask, keras_space_axis(first, 0), keep));
    else if (pool_averages(c))
        keras_set(c, 0, ty_b_mean(c->g, x, axes, keep));
    else
        keras_set(c, 0, ty_b_reduce(c->g, x, TY_MAX, axes, keep));
}

/* ---- windows that adapt ---- */

/* Result o of `out` takes positions floor(o in / out) to ceil((o + 1) in / out) - 1. */
static int64_t pool_from(int64_t o, int64_t in, int64_t out)
{
    return o * in / out;
}

static int64_t pool_to(int64_t o, int64_t in, int64_t out)
{
    return ((o + 1) * in + out - 1) / out;
}

static ty_val pool_adaptive_mean(keras_call *c, ty_val x, int axis, int64_t in, int64_t out)
{
    double *m = keras_alloc(c, (size_t)(in * out) + 1, sizeof *m);
    for (int64_t o = 0; o < out; o++) {
        int64_t from = pool_from(o, in, out), to = pool_to(o, in, out);
        for (int64_t i = from; i < to; i++)
            m[o * in + i] = 1.0 / (double)(to - from);
    }
    return keras_along(c, x, axis, out, m);
}

/* Each window laid out on its own, shorter ones with their last position again, which is never the first maximum. */
static ty_val pool_adaptive_max(keras_call *c, ty_val x, int axis, int64_t in, int64_t out)
{
    int64_t most = 1;
    for (int64_t o = 0; o < out; o++) {
        int64_t n = pool_to(o, in, out) - pool_from(o, in, out);
        most = n > most ? n : most;
    }
    int64_t *index = keras_alloc(c, (size_t)(out * most) + 1, sizeof *index);
    for (int64_t o = 0; o < out; o++)
        for (int64_t k = 0; k < most; k++) {
            int64_t at = pool_from(o, in, out) + k, last = pool_to(o, in, out) - 1;
            index[o * most + k] = at < last ? at : last;
        }
    int n = ty_b_rank(c->g, x) - 2;
    ty_attr a = {.n = (uint32_t)n};
    for (int i = 0; i < n; i++) {
        a.size[i] = a.step[i] = i + 2 == axis ? most : 1;
        a.dil[i] = 1;
    }
    ty_val spread = keras_pick(c, x, axis, out * most, index);
    return ty_graph_emit(c->g, TY_OP_POOL_MAX, &a, &spread, 1);
}

void keras_call_pool_adaptive(keras_call *c)
{
    int n = pool_axes(c);
    int64_t size[TY_MAX_RANK];
    bool first = keras_channels_first(c);
    if (c->failed || !keras_has_planes(c, n) || !keras_ints(c, "output_size", n, 0, size))
        return;
    ty_val x = keras_to_first(c, keras_float(c, c->in[0]), first);
    for (int i = 0; i < n && x != TY_NONE; i++) {
        int64_t in = ty_b_dim(c->g, x, i + 2);
        if (size[i] < 1 || size[i] > POOL_MATRIX || in > POOL_MATRIX / size[i]) {
            keras_fail_key(c, "output_size", "expected positive numbers, for %lld positions at most %d", (long long)in,
                           (int)(POOL_MATRIX / (in > 0 ? in : 1)));
            return;
        }
        x = pool_averages(c) ? pool_adaptive_mean(c, x, i + 2, in, size[i])
                             : pool_adaptive_max(c, x, i + 2, in, size[i]);
    }
    keras_set(c, 0, keras_from_first(c, x, first));
}
