/* keras_layers_conv.c - Conv1D to 3D and their transposes, depthwise and separable convolutions.
 *
 * Kernels: Conv [window.., in / groups, out], transposed [window.., out, in], depthwise [window.., in, multiplier]. The
 * graph's are [out, in / groups, window..]; of a transposed convolution, which is the gradient of one to its input,
 * that reads [in, out, window..].
 */
#include "compiler/import/keras/keras_window.h"

#include <string.h>

/* ---- kernels ---- */

/* [window.., in, multiplier] as [in * multiplier, 1, window..]: result channel in * multiplier + j. */
static ty_val conv_turned_depthwise(keras_call *c, ty_val kernel)
{
    if (kernel == TY_NONE)
        return kernel;
    const ty_type t = *ty_graph_type(c->g, kernel);
    int64_t perm[TY_MAX_RANK], dim[TY_MAX_RANK] = {t.dim[t.rank - 2] * t.dim[t.rank - 1], 1};
    for (int i = 0; i < t.rank; i++)
        perm[i] = i < 2 ? t.rank - 2 + i : i - 2;
    for (int i = 2; i < t.rank; i++)
        dim[i] = t.dim[i - 2];
    return ty_b_reshape(c->g, ty_b_transpose(c->g, kernel, perm), t.rank, dim);
}

/* ---- what all have in common ---- */

static int64_t conv_channels(keras_call *c, const keras_window *w)
{
    return ty_b_dim(c->g, c->in[0], keras_channel_axis(w->first, (int)w->attr.n));
}

/* A count that the configuration must have. */
static int64_t conv_count(keras_call *c, const char *key, int64_t absent)
{
    int64_t n = keras_int(c, key, absent);
    if (!c->failed && (n < 1 || n > KERAS_WINDOW_MOST))
        keras_fail_key(c, key, "expected a number from 1 to %d", KERAS_WINDOW_MOST);
    return n;
}

static bool conv_read(keras_call *c, keras_window *w)
{
    if (keras_config(c, "lora_rank")) {
        keras_fail_key(c, "lora_rank", "adapters of low rank are not supported");
        keras_help(c, "merge them: load the model, set layer.lora_enabled = False, save it");
        return false;
    }
    return keras_window_read(c, c->layer->row->arg, "kernel_size", 0, false, w);
}

/* Where a kernel's initializer, regularizer and constraint stand. */
static const keras_spec conv_kernel = {
    .label = "kernel",
    .initializer = "kernel_initializer",
    .regularizer = "kernel_regularizer",
    .constraint = "kernel_constraint",
};
static const keras_spec conv_depth_kernel = {
    .label = "kernel",
    .initializer = "depthwise_initializer",
    .regularizer = "depthwise_regularizer",
    .constraint = "depthwise_constraint",
};
static const keras_spec conv_point_kernel = {
    .label = "pointwise_kernel",
    .initializer = "pointwise_initializer",
    .regularizer = "pointwise_regularizer",
    .constraint = "pointwise_constraint",
};

/* A kernel [window.., a, b], or [1.., a, b]. label: another than the template's, or NULL. */
static void conv_declare(keras_call *c, const keras_window *w, const keras_spec *kind, const char *label, int64_t a,
                         int64_t b)
{
    int n = (int)w->attr.n;
    bool has_window = kind != &conv_point_kernel;
    keras_spec spec = *kind;
    spec.label = label ? label : kind->label;
    spec.rank = n + 2;
    for (int i = 0; i < n; i++)
        spec.dim[i] = has_window ? w->attr.size[i] : 1;
    spec.dim[n] = a;
    spec.dim[n + 1] = b;
    keras_add_weight(c, &spec);
}

static void conv_declare_bias(keras_call *c, int64_t n)
{
    if (keras_flag(c, "use_bias", true))
        keras_add_weight(c, &(keras_spec){.label = "bias",
                                          .rank = 1,
                                          .dim = {n},
                                          .initializer = "bias_initializer",
                                          .initializer_absent = "zeros",
                                          .regularizer = "bias_regularizer",
                                          .constraint = "bias_constraint"});
}

/* Bias, the layer's own order, activation. y is [N, C, spatial..]. */
static void conv_finish(keras_call *c, const keras_window *w, ty_val y)
{
    ty_val bias = keras_var(c, "bias");
    if (y == TY_NONE)
        return;
    if (bias != TY_NONE)
        y = ty_b_add(c->g, y, keras_on_axis(c, bias, 1, ty_b_rank(c->g, y)));
    keras_set(c, 0, keras_activation(c, keras_config(c, "activation"), keras_from_first(c, y, w->first)));
}

/* ---- convolution ---- */

void keras_create_conv(keras_call *c)
{
    keras_window w;
    if (!conv_read(c, &w))
        return;
    int64_t filters = conv_count(c, "filters", 0), groups = conv_count(c, "groups", 1), in = conv_channels(c, &w);
    if (!c->failed && (in % groups || filters % groups))
        keras_fail_key(c, "groups", "expected a divisor of %lld channels in and %lld out", (long long)in,
                       (long long)filters);
    if (c->failed)
        return;
    conv_declare(c, &w, &conv_kernel, NULL, in / groups, filters);
    conv_declare_bias(c, filters);
}

/* Zeros that a layer in front has put around x become padding of the convolution. x: without them; lo, hi: by spatial
 * axis. */
static ty_val conv_without_zeros(keras_call *c, const keras_window *w, ty_val x, int64_t *lo, int64_t *hi)
{
    int n = (int)w->attr.n, channels = keras_channel_axis(w->first, n);
    if (x == TY_NONE || ty_graph_op(c->g, ty_val_node(x)) != TY_OP_PAD)
        return x;
    const ty_attr *pad = ty_graph_attr(c->g, ty_val_node(x));
    if (w->padding != KERAS_PAD_VALID || pad->value != 0 || pad->lo[0] || pad->hi[0] || pad->lo[channels] ||
        pad->hi[channels])
        return x;
    for (int i = 0; i < n; i++) {
        lo[i] = pad->lo[keras_space_axis(w->first, i)];
        hi[i] = pad->hi[keras_space_axis(w->first, i)];
    }
    return ty_graph_in(c->g, ty_val_node(x), 0);
}

void keras_call_conv(keras_call *c)
{
    keras_window w;
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0};
    if (!conv_read(c, &w))
        return;
    ty_val x = keras_float(c, c->in[0]);
    if (!keras_window_place(c, &w, keras_to_first(c, x, w.first)))
        return;
    x = conv_without_zeros(c, &w, x, lo, hi);
    for (int i = 0; i < (int)w.attr.n; i++) {
        w.attr.lo[i] += lo[i];
        w.attr.hi[i] += hi[i];
    }
    ty_val in[] = {keras_to_first(c, x, w.first), keras_window_turned(c, keras_var(c, "kernel"))};
    w.attr.groups = keras_int(c, "groups", 1);
    conv_finish(c, &w, ty_graph_emit(c->g, TY_OP_CONV, &w.attr, in, 2));
}

/* ---- transposed convolution ---- */

void keras_create_conv_transpose(keras_call *c)
{
    keras_window w;
    if (!conv_read(c, &w))
        return;
    int64_t filters = conv_count(c, "filters", 0);
    if (c->failed)
        return;
    conv_declare(c, &w, &conv_kernel, NULL, filters, conv_channels(c, &w));
    conv_declare_bias(c, filters);
}

/* Size of the result along axis i (compute_conv_transpose_output_shape); extra: output_padding, or -1. */
static int64_t conv_transpose_size(const keras_window *w, int i, int64_t in, int64_t extra)
{
    int64_t step = w->attr.step[i], extent = w->extent[i];
    if (w->padding == KERAS_PAD_SAME)
        return extra < 0 ? in * step : (in - 1) * step + extent % 2 + extra;
    return (in - 1) * step + (extra < 0 && extent < step ? step : extent) + (extra > 0 ? extra : 0);
}

/* The result is what a convolution with these paddings would make x of. */
static bool conv_transpose_place(keras_call *c, keras_window *w, ty_val x, int64_t filters)
{
    int n = (int)w->attr.n;
    int64_t extra[TY_MAX_RANK], dim[TY_MAX_RANK] = {ty_b_dim(c->g, x, 0), filters};
    bool has_extra = keras_config(c, "output_padding");
    if (!keras_ints(c, "output_padding", n, 0, extra))
        return false;
    for (int i = 0; i < n; i++) {
        int64_t in = ty_b_dim(c->g, x, i + 2), step = w->attr.step[i];
        if (extra[i] < 0 || (has_extra && extra[i] >= step)) {
            keras_fail_key(c, "output_padding", "expected numbers smaller than the stride, %lld", (long long)step);
            return false;
        }
        int64_t out = dim[i + 2] = conv_transpose_size(w, i, in, has_extra ? extra[i] : -1);
        int64_t total = w->padding == KERAS_PAD_SAME ? (in - 1) * step + w->extent[i] - out : 0;
        w->attr.lo[i] = total > 0 ? total / 2 : 0;
        w->attr.hi[i] = total > 0 ? total - total / 2 : 0;
        if (out >= 1 && (w->padding != KERAS_PAD_SAME || (out + step - 1) / step == in))
            continue;
        keras_fail(c, TY_E_SHAPE, "no convolution with these strides and paddings makes %lld positions of %lld",
                   (long long)in, (long long)out);
        return false;
    }
    w->attr.type = ty_type_make(ty_b_dtype(c->g, x), n + 2, dim);
    return true;
}

void keras_call_conv_transpose(keras_call *c)
{
    keras_window w;
    if (!conv_read(c, &w))
        return;
    ty_val in[] = {keras_to_first(c, keras_float(c, c->in[0]), w.first),
                   keras_window_turned(c, keras_var(c, "kernel"))};
    if (in[0] == TY_NONE || !conv_transpose_place(c, &w, in[0], keras_int(c, "filters", 0)))
        return;
    w.attr.groups = 1;
    conv_finish(c, &w, ty_graph_emit(c->g, TY_OP_CONV_DX, &w.attr, in, 2));
}

/* ---- depthwise, separable ---- */

void keras_create_conv_depthwise(keras_call *c)
{
    keras_window w;
    if (!conv_read(c, &w))
        return;
    int64_t multiplier = conv_count(c, "depth_multiplier", 1), in = conv_channels(c, &w);
    if (c->failed)
        return;
    conv_declare(c, &w, &conv_depth_kernel, NULL, in, multiplier);
    conv_declare_bias(c, in * multiplier);
}

static ty_val conv_depthwise(keras_call *c, keras_window *w, const char *label)
{
    ty_val in[] = {keras_to_first(c, keras_float(c, c->in[0]), w->first),
                   conv_turned_depthwise(c, keras_var(c, label))};
    if (!keras_window_place(c, w, in[0]))
        return TY_NONE;
    w->attr.groups = conv_channels(c, w);
    return ty_graph_emit(c->g, TY_OP_CONV, &w->attr, in, 2);
}

void keras_call_conv_depthwise(keras_call *c)
{
    keras_window w;
    if (conv_read(c, &w))
        conv_finish(c, &w, conv_depthwise(c, &w, "kernel"));
}

void keras_create_conv_separable(keras_call *c)
{
    keras_window w;
    if (!conv_read(c, &w))
        return;
    int64_t multiplier = conv_count(c, "depth_multiplier", 1), filters = conv_count(c, "filters", 0);
    int64_t in = conv_channels(c, &w);
    if (c->failed)
        return;
    conv_declare(c, &w, &conv_depth_kernel, "depthwise_kernel", in, multiplier);
    conv_declare(c, &w, &conv_point_kernel, NULL, in * multiplier, filters);
    conv_declare_bias(c, filters);
}

void keras_call_conv_separable(keras_call *c)
{
    keras_window w;
    if (!conv_read(c, &w))
        return;
    ty_val in[] = {conv_depthwise(c, &w, "depthwise_kernel"), keras_window_turned(c, keras_var(c, "pointwise_kernel"))};
    ty_attr point = {.n = w.attr.n, .groups = 1};
    for (uint32_t i = 0; i < point.n; i++)
        point.step[i] = point.dil[i] = 1;
    if (in[0] != TY_NONE && in[1] != TY_NONE)
        conv_finish(c, &w, ty_graph_emit(c->g, TY_OP_CONV, &point, in, 2));
}
