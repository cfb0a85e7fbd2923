/* cmodel_windows.c - layers that move a window over spatial axes: convolution, its transpose, pooling.
 *
 * x is [N, C, spatial...] with 1 to 3 spatial axes.
 */
#include "compiler/import/cmodel_net.h"

#include <math.h>
#include <string.h>

typedef struct window {
    ty_attr attr;
    int n;                       /* spatial axes */
    int64_t extent[TY_MAX_RANK]; /* (k - 1) d + 1 */
} window;

/* One number for all axes, or a list with one each; `otherwise` where neither is set. */
static bool window_spread(cmodel_net *net, const char *what, int64_t one, const ty_shape *many, int n,
                          int64_t otherwise, int64_t least, int64_t *out)
{
    if (many->n != 0 && many->n != n) {
        cmodel_fail(net, TY_E_ATTRIBUTE, "expected %d %s, one a spatial axis, found %lld", n, what, (long long)many->n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        out[i] = many->n ? many->dim[i] : one ? one : otherwise;
        if (out[i] >= least && out[i] <= 1 << 24)
            continue;
        cmodel_fail(net, TY_E_ATTRIBUTE, "%s: %lld is not in %lld to %d", what, (long long)out[i], (long long)least,
                    1 << 24);
        return false;
    }
    return true;
}

static void window_extents(window *w)
{
    memcpy(w->attr.hi, w->attr.lo, sizeof w->attr.hi);
    for (int i = 0; i < w->n; i++)
        w->extent[i] = (w->attr.size[i] - 1) * w->attr.dil[i] + 1;
}

static bool window_of_conv(cmodel_net *net, const cmodel_call *c, const ty_conv_options *o, window *w)
{
    if (!cmodel_rank_is(net, c->in[0], 3, 5))
        return false;
    int n = ty_b_rank(net->g, c->in[0]) - 2;
    *w = (window){.n = n, .attr = {.n = (uint32_t)n, .groups = o->groups ? o->groups : 1}};
    if (!window_spread(net, "kernels", c->args->from, &o->kernels, n, 0, 1, w->attr.size) ||
        !window_spread(net, "strides", o->stride, &o->strides, n, 1, 1, w->attr.step) ||
        !window_spread(net, "dilations", o->dilation, &o->dilations, n, 1, 1, w->attr.dil) ||
        !window_spread(net, "paddings", o->padding, &o->paddings, n, 0, 0, w->attr.lo))
        return false;
    window_extents(w);
    int64_t channels = ty_b_dim(net->g, c->in[0], 1), groups = w->attr.groups;
    if (groups >= 1 && channels % groups == 0 && c->args->count >= 1 && c->args->count % groups == 0)
        return true;
    cmodel_fail(net, TY_E_ATTRIBUTE, "%lld groups do not divide %lld channels in and %lld out", (long long)groups,
                (long long)channels, (long long)c->args->count);
    return false;
}

/* ---- convolution ------------------------------------------------------------------------------------------------ */

static ty_init window_init(ty_init given, double fan_in)
{
    double bound = 1 / sqrt(fan_in > 0 ? fan_in : 1);
    return given.kind == TY_INIT_DEFAULT ? (ty_init){TY_INIT_UNIFORM, -bound, bound} : given;
}

/* NAME.weight [first, second, kernel...]; PyTorch's fan_in is all but the first dimension. */
static ty_val window_weight(cmodel_net *net, const cmodel_call *c, const window *w, int64_t first, int64_t second,
                            ty_init init, double *fan_in)
{
    int64_t dim[TY_MAX_RANK] = {first, second};
    *fan_in = (double)second;
    for (int i = 0; i < w->n; i++) {
        dim[i + 2] = w->attr.size[i];
        *fan_in *= (double)dim[i + 2];
    }
    return cmodel_parameter(net, cmodel_join(net, c->args->name, "weight"), w->n + 2, dim, window_init(init, *fan_in));
}

static ty_val window_bias(cmodel_net *net, const cmodel_call *c, ty_val y, const ty_conv_options *o, double fan_in)
{
    if (o->no_bias || y == TY_NONE)
        return y;
    int64_t dim[TY_MAX_RANK] = {1, c->args->count, 1, 1, 1};
    ty_val b = cmodel_parameter(net, cmodel_join(net, c->args->name, "bias"), 1, &c->args->count,
                                window_init(o->bias, fan_in));
    return ty_b_add(net->g, y, ty_b_reshape(net->g, b, ty_b_rank(net->g, y), dim));
}

static ty_val op_conv(cmodel_net *net, const cmodel_call *c)
{
    const ty_conv_options *o = c->args->options;
    window w;
    double fan_in;
    if (!window_of_conv(net, c, o, &w))
        return TY_NONE;
    int64_t channels = ty_b_dim(net->g, c->in[0], 1) / w.attr.groups;
    ty_val weight = window_weight(net, c, &w, c->args->count, channels, o->weight, &fan_in);
    ty_attr attr = w.attr;
    memset(attr.size, 0, sizeof attr.size); /* conv takes the window from the weight */
    ty_val y = ty_graph_emit(net->g, TY_OP_CONV, &attr, (ty_val[]){c->in[0], weight}, 2);
    return window_bias(net, c, y, o, fan_in);
}

/* (in - 1) stride - 2 padding + extent + output padding */
static ty_val op_conv_transpose(cmodel_net *net, const cmodel_call *c)
{
    const ty_conv_options *o = c->args->options;
    ty_val x = c->in[0];
    window w;
    double fan_in;
    int64_t extra[TY_MAX_RANK], dim[TY_MAX_RANK] = {0};
    if (!window_of_conv(net, c, o, &w) ||
        !window_spread(net, "output paddings", o->output_padding, &o->output_paddings, w.n, 0, 0, extra))
        return TY_NONE;
    dim[0] = ty_b_dim(net->g, x, 0);
    dim[1] = c->args->count;
    for (int i = 0; i < w.n; i++) {
        int64_t reach, more = w.extent[i] + extra[i] - 2 * w.attr.lo[i];
        bool overflow = __builtin_mul_overflow(ty_b_dim(net->g, x, i + 2) - 1, w.attr.step[i], &reach);
        overflow = __builtin_add_overflow(reach, more, &dim[i + 2]) || overflow;
        if (overflow || extra[i] >= w.attr.step[i] || dim[i + 2] < 1)
            return cmodel_fail(
                net, TY_E_SHAPE,
                "output padding must be smaller than the stride, and padding leave something to address");
    }
    ty_val weight =
        window_weight(net, c, &w, ty_b_dim(net->g, x, 1), c->args->count / w.attr.groups, o->weight, &fan_in);
    ty_attr attr = w.attr;
    memset(attr.size, 0, sizeof attr.size);
    attr.type = ty_type_make(ty_b_dtype(net->g, x), w.n + 2, dim);
    ty_val y = ty_graph_emit(net->g, TY_OP_CONV_DX, &attr, (ty_val[]){x, weight}, 2);
    return window_bias(net, c, y, o, fan_in);
}

/* ---- pooling ---------------------------------------------------------------------------------------------------- */

/* With ceil the high padding grows until the last window fits; one that would begin beyond the padded input is dropped
 * (PyTorch's rule). */
static void pool_ceil(cmodel_net *net, ty_val x, window *w)
{
    for (int i = 0; i < w->n; i++) {
        int64_t in = ty_b_dim(net->g, x, i + 2), lo = w->attr.lo[i], step = w->attr.step[i];
        int64_t room = in + 2 * lo - w->extent[i];
        if (room < 0)
            continue;
        int64_t out = (room + step - 1) / step + 1;
        out -= (out - 1) * step >= in + lo;
        int64_t need = (out - 1) * step + w->extent[i] - in - lo;
        w->attr.hi[i] = need > lo ? need : lo;
    }
}

static bool window_of_pool(cmodel_net *net, const cmodel_call *c, const ty_pool_options *o, window *w)
{
    if (!cmodel_rank_is(net, c->in[0], 3, 5))
        return false;
    int n = ty_b_rank(net->g, c->in[0]) - 2;
    *w = (window){.n = n, .attr = {.n = (uint32_t)n}};
    if (!window_spread(net, "kernels", c->args->from, &o->kernels, n, 0, 1, w->attr.size) ||
        !window_spread(net, "dilations", o->dilation, &o->dilations, n, 1, 1, w->attr.dil) ||
        !window_spread(net, "paddings", o->padding, &o->paddings, n, 0, 0, w->attr.lo))
        return false;
    ty_shape same = {.n = n};
    memcpy(same.dim, w->attr.size, sizeof same.dim);
    if (!window_spread(net, "strides", o->stride, o->strides.n || o->stride ? &o->strides : &same, n, 1, 1,
                       w->attr.step))
        return false;
    window_extents(w);
    if (o->ceil)
        pool_ceil(net, c->in[0], w);
    for (int i = 0; i < n; i++)
        if (2 * w->attr.lo[i] > w->attr.size[i]) {
            cmodel_fail(net, TY_E_ATTRIBUTE, "padding %lld is more than half of the window", (long long)w->attr.lo[i]);
            return false;
        }
    return true;
}

static ty_val op_max_pool(cmodel_net *net, const cmodel_call *c)
{
    window w;
    return window_of_pool(net, c, c->args->options, &w) ? ty_graph_emit(net->g, TY_OP_POOL_MAX, &w.attr, c->in, 1)
                                                        : TY_NONE;
}

/* The sum over the window of x, divided by the same sum of ones: 1 inside, and on the padding if that counts. */
static ty_val op_avg_pool(cmodel_net *net, const cmodel_call *c)
{
    ty_graph *g = net->g;
    const ty_pool_options *o = c->args->options;
    window w;
    if (!window_of_pool(net, c, o, &w))
        return TY_NONE;
    const ty_type t = *ty_graph_type(g, c->in[0]);
    int64_t dim[TY_MAX_RANK] = {1, 1}, lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0};
    for (int i = 0; i < w.n; i++) {
        dim[i + 2] = t.dim[i + 2];
        lo[i + 2] = w.attr.lo[i];
    }
    memcpy(hi, lo, sizeof hi);
    ty_val sum = ty_graph_emit(g, TY_OP_POOL_SUM, &w.attr, c->in, 1);
    ty_val ones = ty_b_full(g, (ty_dtype)t.dtype, t.rank, dim, 1);
    ty_attr counting = w.attr;
    if (o->count_padding) {
        ones = ty_b_pad(g, ones, lo, hi, 1);
        for (int i = 0; i < w.n; i++) {
            counting.hi[i] -= counting.lo[i];
            counting.lo[i] = 0;
        }
    }
    return ty_b_div(g, sum, ty_graph_emit(g, TY_OP_POOL_SUM, &counting, &ones, 1));
}

/* arg: TY_MAX, or TY_SUM for the mean. */
static ty_val op_global_pool(cmodel_net *net, const cmodel_call *c)
{
    if (!cmodel_rank_is(net, c->in[0], 3, TY_MAX_RANK))
        return TY_NONE;
    uint32_t axes = ty_b_all_axes(net->g, c->in[0]) & ~3u;
    return c->arg == TY_MAX ? ty_b_reduce(net->g, c->in[0], TY_MAX, axes, true)
                            : ty_b_mean(net->g, c->in[0], axes, true);
}

const cmodel_row cmodel_windows[] = {
    {"conv", 1, 1, op_conv, 0},
    {"conv_transpose", 1, 1, op_conv_transpose, 0},
    {"max_pool", 1, 1, op_max_pool, 0},
    {"avg_pool", 1, 1, op_avg_pool, 0},
    {"global_max_pool", 1, 1, op_global_pool, TY_MAX},
    {"global_avg_pool", 1, 1, op_global_pool, TY_SUM},
    {NULL, 0, 0, NULL, 0},
};
