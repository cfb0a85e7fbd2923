/* onnx_ops_norm.c - normalisations.
 *
 * Letters: N batch, C channels, G groups, S elements of a plane.
 */
#include "compiler/import/onnx_import.h"

#include <math.h>

/* ---- batch --------------------------------------------------------------------------------------------------------
 */

typedef struct bn_args {
    ty_val x, scale, bias, mean, var;
    double eps, momentum;
    int rank;
    ty_dtype dtype; /* of x */
} bn_args;

static ty_val bn_param(onnx_ctx *c, int i, ty_dtype dtype)
{
    return ty_b_cast(c->g, onnx_in(c, i), dtype);
}

static bool bn_read(onnx_ctx *c, bn_args *a)
{
    a->x = onnx_in(c, 0);
    a->rank = onnx_rank(c, a->x);
    a->dtype = onnx_dtype_of(c, a->x);
    a->eps = onnx_attr_float(c, "epsilon", 1e-5);
    a->momentum = onnx_attr_float(c, "momentum", 0.9);
    if (a->rank < 2) {
        onnx_fail_input(c, 0, TY_E_SHAPE, "must have at least 2 dimensions");
        return false;
    }
    if (c->opset < 9 && !onnx_attr_int(c, "spatial", 1)) {
        onnx_fail_attr(c, "spatial", "statistics for each position are not supported");
        return false;
    }
    for (int i = 1; i < 5; i++)
        if (onnx_rank(c, onnx_in(c, i)) != 1 || onnx_dim(c, onnx_in(c, i), 0) != onnx_dim(c, a->x, 1)) {
            onnx_fail_input(c, i, TY_E_SHAPE, "must be [%lld], one number a channel", (long long)onnx_dim(c, a->x, 1));
            return false;
        }
    a->scale = bn_param(c, 1, a->dtype);
    a->bias = bn_param(c, 2, a->dtype);
    a->mean = onnx_in(c, 3);
    a->var = onnx_in(c, 4);
    return true;
}

/* (x - mean) * (scale / sqrt(var + eps)) + bias */
static void bn_eval(onnx_ctx *c, const bn_args *a)
{
    ty_graph *g = c->g;
    ty_val mean = ty_b_cast(g, a->mean, a->dtype), var = ty_b_cast(g, a->var, a->dtype);
    ty_val factor = ty_b_mul(g, a->scale, ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, var, a->eps)));
    ty_val y = ty_b_sub(g, a->x, onnx_per_channel(c, mean, a->rank));
    y = ty_b_mul(g, y, onnx_per_channel(c, factor, a->rank));
    onnx_set(c, 0, ty_b_add(g, y, onnx_per_channel(c, a->bias, a->rank)));
}

/* f old + (1 - f) new, in the statistic's own type. */
static ty_val bn_blend(onnx_ctx *c, const bn_args *a, int input, ty_val fresh)
{
    ty_graph *g = c->g;
    ty_val old = onnx_in(c, input);
    int init = c->in[input]->initializer;
    if (c->imp->binding->mode == TY_ONNX_TRAIN && init >= 0 && onnx_updated(c, init) != TY_NONE)
        old = onnx_updated(c, init);
    fresh = ty_b_cast(g, fresh, onnx_dtype_of(c, old));
    return ty_b_add(g, ty_b_mul_s(g, old, a->momentum), ty_b_mul_s(g, fresh, 1 - a->momentum));
}

static void bn_train(onnx_ctx *c, const bn_args *a, bool pytorch)
{
    ty_graph *g = c->g;
    int replicas = pytorch && c->imp->binding->batch_norm_replicas > 1 ? c->imp->binding->batch_norm_replicas : 1;
    ty_attr attr = {.value = a->eps, .replicas = replicas > 1 ? replicas : 0};
    ty_val in[] = {a->x, a->scale, a->bias};
    ty_val y = ty_graph_emit(g, TY_OP_BATCHNORM, &attr, in, 3);
    if (y == TY_NONE)
        return;
    ty_val mean = ty_val_make(ty_val_node(y), 1), var = ty_val_make(ty_val_node(y), 2);
    int64_t channels = onnx_dim(c, a->x, 1),
            n = channels ? ty_type_elems(onnx_type_of(c, a->x)) / channels * replicas : 0;
    if (pytorch && n < 2) {
        onnx_fail(c, TY_E_SHAPE, "BatchNormalization: %lld value a channel has no variance to learn", (long long)n);
        onnx_help(c, "use a larger batch");
        return;
    }
    onnx_set(c, 0, y);
    ty_val unbiased = pytorch ? ty_b_mul_s(g, var, (double)n / (double)(n - 1)) : var;
    ty_val new_mean = bn_blend(c, a, 3, mean), new_var = bn_blend(c, a, 4, unbiased);
    if (pytorch && c->in[3]->initializer >= 0)
        onnx_update(c, c->in[3]->initializer, new_mean);
    if (pytorch && c->in[4]->initializer >= 0)
        onnx_update(c, c->in[4]->initializer, new_var);
    onnx_set(c, 1, new_mean);
    onnx_set(c, 2, new_var);
}

void onnx_op_batch_normalization(onnx_ctx *c)
{
    bn_args a;
    if (!bn_read(c, &a))
        return;
    ty_onnx_mode mode = c->imp->binding->mode;
    bool written =
        c->opset >= 14 ? onnx_attr_int(c, "training_mode", 0) : c->opset < 7 && !onnx_attr_int(c, "is_test", 0);
    if (mode == TY_ONNX_TRAIN || (mode == TY_ONNX_AS_WRITTEN && written && c->opset >= 14))
        bn_train(c, &a, mode == TY_ONNX_TRAIN);
    else
        bn_eval(c, &a);
    for (int i = 1; i < c->n_out && mode == TY_ONNX_EVAL && c->opset >= 14; i++)
        onnx_set(c, i, i == 1 ? a.mean : a.var);
    for (int i = 1; i < c->n_out; i++)
        onnx_unset(c, i, "statistics are outputs of training-mode nodes of opset 14 and later");
}

/* ---- layer, rms -----------------------------------------------------------------------------------------------------
 */

/* True if v has the shape of x's axes from `axis` on: then the composite takes it. */
static bool covers(onnx_ctx *c, ty_val v, ty_val x, int axis)
{
    if (v == TY_NONE || onnx_rank(c, v) != onnx_rank(c, x) - axis)
        return false;
    for (int i = 0; i < onnx_rank(c, v); i++)
        if (onnx_dim(c, v, i) != onnx_dim(c, x, axis + i))
            return false;
    return true;
}

/* Normalises over the axes from `axis` on; in f32 if x has 16 bits, where stash_type says so. */
static ty_val norm_tail(onnx_ctx *c, ty_val x, ty_val scale, ty_val bias, int axis, double eps, bool rms, bool wide)
{
    ty_graph *g = c->g;
    ty_dtype dtype = onnx_dtype_of(c, x);
    int n_axes = onnx_rank(c, x) - axis;
    bool widen = wide && ty_dtype_bytes(dtype) < 4;
    if (!widen && covers(c, scale, x, axis) && (bias == TY_NONE || covers(c, bias, x, axis)))
        return ty_b_norm(g, x, scale, bias, n_axes, eps, rms);
    ty_val y = ty_b_norm(g, widen ? ty_b_cast(g, x, TY_F32) : x, TY_NONE, TY_NONE, n_axes, eps, rms);
    y = ty_b_cast(g, y, dtype);
    y = scale == TY_NONE ? y : ty_b_mul(g, y, scale);
    return bias == TY_NONE ? y : ty_b_add(g, y, bias);
}

static void norm_statistics(onnx_ctx *c, ty_val x, int axis, double eps)
{
    ty_graph *g = c->g;
    uint32_t axes = ty_b_all_axes(g, x) & ~((1u << axis) - 1);
    ty_val wide = ty_b_cast(g, x, ty_dtype_bytes(onnx_dtype_of(c, x)) < 4 ? TY_F32 : onnx_dtype_of(c, x));
    ty_val mean = ty_b_mean(g, wide, axes, true);
    ty_val var = ty_b_mean(g, ty_b_square(g, ty_b_sub(g, wide, mean)), axes, true);
    if (onnx_wants(c, 1))
        onnx_set(c, 1, mean);
    if (onnx_wants(c, 2))
        onnx_set(c, 2, ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, var, eps)));
}

/* arg 1: RMSNormalization. */
void onnx_op_layer_normalization(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    int axis;
    if (!onnx_axis(c, onnx_attr_int(c, "axis", -1), onnx_rank(c, x), &axis))
        return;
    double eps = onnx_attr_float(c, "epsilon", 1e-5);
    bool wide = onnx_attr_int(c, "stash_type", 1) == 1;
    onnx_set(c, 0, norm_tail(c, x, onnx_in(c, 1), c->row->arg ? TY_NONE : onnx_in(c, 2), axis, eps, c->row->arg, wide));
    if (onnx_wants(c, 1) || onnx_wants(c, 2))
        norm_statistics(c, x, axis, eps);
}

/* ---- instance, group
 * -------------------------------------------------------------------------------------------------- */

/* x seen as [N * G, C / G * S], normalised over the last axis, without scale. */
static ty_val norm_groups(onnx_ctx *c, ty_val x, int64_t groups, double eps, bool wide)
{
    const ty_type t = *onnx_type_of(c, x);
    int64_t rows = t.dim[0] * groups, dim[] = {rows, rows ? ty_type_elems(&t) / rows : 0};
    ty_val y = norm_tail(c, ty_b_reshape(c->g, x, 2, dim), TY_NONE, TY_NONE, 1, eps, false, wide);
    return ty_b_reshape(c->g, y, t.rank, t.dim);
}

static bool norm_rank_ok(onnx_ctx *c, ty_val x)
{
    if (onnx_rank(c, x) >= 2)
        return true;
    onnx_fail_input(c, 0, TY_E_SHAPE, "must have at least 2 dimensions");
    return false;
}

void onnx_op_instance_normalization(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    int rank = onnx_rank(c, x);
    if (!norm_rank_ok(c, x))
        return;
    ty_val y = norm_groups(c, x, onnx_dim(c, x, 1), onnx_attr_float(c, "epsilon", 1e-5), false);
    y = ty_b_mul(g, y, onnx_per_channel(c, onnx_in(c, 1), rank));
    onnx_set(c, 0, ty_b_add(g, y, onnx_per_channel(c, onnx_in(c, 2), rank)));
}

/* Opset 18 scales each group, 21 each channel. */
static ty_val group_param(onnx_ctx *c, int i, int64_t channels, int64_t groups, int rank)
{
    ty_val v = onnx_in(c, i);
    if (onnx_rank(c, v) == 1 && onnx_dim(c, v, 0) == groups && groups != channels) {
        int64_t thin[] = {groups, 1}, wide[] = {groups, channels / groups};
        v = ty_b_broadcast(c->g, ty_b_reshape(c->g, v, 2, thin), 2, wide);
    }
    return onnx_per_channel(c, v, rank);
}

void onnx_op_group_normalization(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    int64_t groups = onnx_attr_int(c, "num_groups", 0);
    if (!norm_rank_ok(c, x))
        return;
    int64_t channels = onnx_dim(c, x, 1);
    if (groups < 1 || channels % groups) {
        onnx_fail_attr(c, "num_groups", "must divide the %lld channels", (long long)channels);
        return;
    }
    int rank = onnx_rank(c, x);
    ty_val y = norm_groups(c, x, groups, onnx_attr_float(c, "epsilon", 1e-5), onnx_attr_int(c, "stash_type", 1) == 1);
    y = ty_b_mul(g, y, group_param(c, 1, channels, groups, rank));
    onnx_set(c, 0, ty_b_add(g, y, group_param(c, 2, channels, groups, rank)));
}

/* ---- the older ones -----------------------------------------------------------------------------------------------
 */

/* x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ^ beta */
void onnx_op_lrn(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    const ty_type t = *onnx_type_of(c, x);
    int64_t size = onnx_attr_int(c, "size", 0);
    double alpha = onnx_attr_float(c, "alpha", 1e-4), beta = onnx_attr_float(c, "beta", 0.75);
    if (!norm_rank_ok(c, x))
        return;
    if (size < 1 || size > 1 << 16) {
        onnx_fail_attr(c, "size", "must be positive");
        return;
    }
    int64_t rows = t.dim[0] * t.dim[1], plane[] = {t.dim[0], 1, t.dim[1], rows ? ty_type_elems(&t) / rows : 0};
    ty_attr a = {
        .n = 2, .size = {size, 1}, .step = {1, 1}, .dil = {1, 1}, .lo = {(size - 1) / 2, 0}, .hi = {size / 2, 0}};
    ty_val squares = ty_b_reshape(g, ty_b_square(g, x), 4, plane);
    ty_val sum = ty_b_reshape(g, ty_graph_emit(g, TY_OP_POOL_SUM, &a, &squares, 1), t.rank, t.dim);
    ty_val base = ty_b_add_s(g, ty_b_mul_s(g, sum, alpha / (double)size), onnx_attr_float(c, "bias", 1));
    onnx_set(c, 0, ty_b_div(g, x, ty_b_binary(g, TY_OP_POW, base, ty_b_full_like(g, base, beta))));
}

void onnx_op_lp_normalization(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    int axis;
    int64_t p = onnx_attr_int(c, "p", 2);
    if (!onnx_axis(c, onnx_attr_int(c, "axis", -1), onnx_rank(c, x), &axis))
        return;
    if (p != 1 && p != 2) {
        onnx_fail_attr(c, "p", "must be 1 or 2");
        return;
    }
    ty_val n = p == 2 ? ty_b_unary(g, TY_OP_SQRT, ty_b_sum(g, ty_b_square(g, x), 1u << axis, true))
                      : ty_b_sum(g, ty_b_unary(g, TY_OP_ABS, x), 1u << axis, true);
    onnx_set(c, 0, ty_b_div(g, x, n));
}

void onnx_op_mean_variance_normalization(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    static const int64_t usual[] = {0, 2, 3};
    const int64_t *axes = usual;
    int64_t n = 3;
    uint32_t mask;
    onnx_attr_ints(c, "axes", &axes, &n);
    if (!onnx_axes(c, axes, n, onnx_rank(c, x), &mask))
        return;
    ty_val d = ty_b_sub(g, x, ty_b_mean(g, x, mask, true));
    ty_val deviation = ty_b_unary(g, TY_OP_SQRT, ty_b_mean(g, ty_b_square(g, d), mask, true));
    onnx_set(c, 0, ty_b_div(g, d, ty_b_add_s(g, deviation, 1e-9)));
}
