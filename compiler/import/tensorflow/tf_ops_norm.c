/* tf_ops_norm.c - batch normalization: fused, its gradient, and the form that Keras 3 exports.
 *
 * A signature written for inference normalizes by moving statistics. Where it is trained, layers whose moving
 * statistics are variables take the batch's, and the variables move, as the layer does in Keras: by its default
 * momentum, which an exported file does not tell. Fused layers (Keras 2) move toward the unbiased variance, Keras 3
 * toward the biased.
 */
#include "compiler/import/tensorflow/tf_ops.h"

#include <string.h>

#define KERAS_MOMENTUM 0.99

typedef struct bn_args {
    ty_val x;            /* channels along axis */
    ty_val scale, shift; /* [C]; shift may be TY_NONE */
    int mean, var;       /* variables */
    double eps;
    int axis;
    bool unbiased;
} bn_args;

/* x with its channels behind the batch; turned back with back. */
static ty_val to_second(tf_ctx *c, ty_val x, int axis, bool back)
{
    int64_t perm[TY_MAX_RANK];
    int rank = tf_rank(c, x), n = 0;
    if (axis == 1 || x == TY_NONE)
        return x;
    if (back) {
        for (int i = 0; i < rank; i++)
            perm[i] = i == 0 ? 0 : i == axis ? 1 : i < axis ? i + 1 : i;
        return ty_b_transpose(c->g, x, perm);
    }
    perm[n++] = 0;
    perm[n++] = axis;
    for (int i = 1; i < rank; i++)
        if (i != axis)
            perm[n++] = i;
    return ty_b_transpose(c->g, x, perm);
}

static void bn_move(tf_ctx *c, int variable, ty_val fresh, double keep)
{
    ty_val old = tf_present(c->imp, variable);
    fresh = ty_b_cast(c->g, fresh, tf_dtype_of(c, old));
    tf_assign(c, variable, ty_b_add(c->g, ty_b_mul_s(c->g, old, keep), ty_b_mul_s(c->g, fresh, 1 - keep)));
}

/* By the batch's statistics, which also go to mean and var (NULL: not wanted), the variance biased. */
static ty_val bn_batch(tf_ctx *c, const bn_args *a, ty_val *mean, ty_val *var, int replicas)
{
    ty_graph *g = c->g;
    ty_dtype dtype = tf_dtype_of(c, a->x);
    ty_attr attr = {.value = a->eps, .replicas = replicas > 1 ? replicas : 0};
    ty_val shift = a->shift == TY_NONE ? ty_b_full_like(g, a->scale, 0) : a->shift;
    ty_val in[] = {to_second(c, a->x, a->axis, false), ty_b_cast(g, a->scale, dtype), ty_b_cast(g, shift, dtype)};
    ty_val y = ty_graph_emit(g, TY_OP_BATCHNORM, &attr, in, 3);
    if (y == TY_NONE)
        return y;
    *mean = ty_val_make(ty_val_node(y), 1);
    *var = ty_val_make(ty_val_node(y), 2);
    return to_second(c, y, a->axis, true);
}

static double bn_count(tf_ctx *c, ty_val x, int axis)
{
    int64_t channels = tf_dim(c, x, axis);
    return channels ? (double)(ty_type_elems(tf_type(c, x)) / channels) : 0;
}

/* The layer in training; its statistics move. */
static ty_val bn_train(tf_ctx *c, const bn_args *a)
{
    int replicas = c->imp->binding->batch_norm_replicas > 1 ? c->imp->binding->batch_norm_replicas : 1;
    double n = bn_count(c, a->x, a->axis) * replicas;
    ty_val mean, var, y = bn_batch(c, a, &mean, &var, replicas);
    if (y == TY_NONE)
        return y;
    if (a->unbiased && n > 1)
        var = ty_b_mul_s(c->g, var, n / (n - 1));
    bn_move(c, a->mean, mean, KERAS_MOMENTUM);
    bn_move(c, a->var, var, KERAS_MOMENTUM);
    return y;
}

/* A variable of moving statistics that this training may move. */
static bool moves(const tf_ctx *c, int variable)
{
    const ty_model_binding *b = c->imp->binding;
    return variable >= 0 && b->mode == TY_MODEL_TRAIN && tf_is_differentiated(c) && b->weights &&
           b->weights[variable] != TY_NONE && tf_variable_at(c->imp->file, variable)->is_running;
}

/* ---- fused --------------------------------------------------------------------------------------------------------
 */

static ty_val per_channel(tf_ctx *c, ty_val v, int rank, int axis)
{
    int64_t dim[TY_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    dim[axis] = ty_type_elems(tf_type(c, v));
    return ty_b_reshape(c->g, v, rank, dim);
}

static int channel_axis(tf_ctx *c, int rank)
{
    return strncmp(tf_text(c, "data_format", "NHWC"), "NC", 2) == 0 ? 1 : rank - 1;
}

/* The statistics are float32 where x is half as wide. */
static ty_val bn_fixed(tf_ctx *c, const bn_args *a, ty_val mean, ty_val var)
{
    ty_graph *g = c->g;
    int rank = tf_rank(c, a->x);
    ty_dtype wide = tf_dtype_of(c, var);
    ty_val factor = ty_b_mul(g, ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, var, a->eps)), a->scale);
    ty_val y = ty_b_sub(g, ty_b_cast(g, a->x, wide), per_channel(c, mean, rank, a->axis));
    y = ty_b_mul(g, y, per_channel(c, factor, rank, a->axis));
    y = ty_b_add(g, y, per_channel(c, a->shift, rank, a->axis));
    return ty_b_cast(g, y, tf_dtype_of(c, a->x));
}

/* Running averages of mean and variance, where the operation makes them itself. */
static ty_val blend(tf_ctx *c, ty_val old, ty_val fresh, double factor)
{
    if (factor == 1 || old == TY_NONE)
        return fresh;
    return ty_b_add(c->g, ty_b_mul_s(c->g, old, 1 - factor), ty_b_mul_s(c->g, fresh, factor));
}

static void fused_train(tf_ctx *c, const bn_args *a)
{
    double n = bn_count(c, a->x, a->axis), factor = tf_attr_float(c->node, "exponential_avg_factor", 1);
    ty_val mean, var, y = bn_batch(c, a, &mean, &var, 1);
    if (y == TY_NONE)
        return;
    mean = ty_b_cast(c->g, mean, TY_F32);
    var = ty_b_cast(c->g, var, TY_F32);
    ty_val unbiased = ty_b_mul_s(c->g, var, n > 1 ? n / (n - 1) : 1);
    tf_set(c, 0, y);
    tf_set(c, 1, factor == 1 ? mean : blend(c, tf_in(c, 3), mean, factor));
    tf_set(c, 2, factor == 1 ? unbiased : blend(c, tf_in(c, 4), unbiased, factor));
    tf_set(c, 3, mean);
    tf_set(c, 4, var);
    tf_set_other(c, 5);
}

/* x, scale, offset, mean, variance -> y, mean, variance, and for the gradient: mean, biased variance, nothing */
void tf_op_fused_batch_norm(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    bn_args a = {.x = x, .scale = tf_in(c, 1), .shift = tf_in(c, 2), .eps = tf_attr_float(c->node, "epsilon", 1e-4)};
    if (tf_rank(c, x) < 2) {
        tf_fail_input(c, 0, TY_E_SHAPE, "must have channels");
        return;
    }
    a.axis = channel_axis(c, tf_rank(c, x));
    a.unbiased = true;
    if (tf_attr_bool(c->node, "is_training", true)) {
        fused_train(c, &a);
        return;
    }
    a.mean = c->in[3].variable;
    a.var = c->in[4].variable;
    ty_val mean = tf_in(c, 3), var = tf_in(c, 4);
    tf_set(c, 0, moves(c, a.mean) && moves(c, a.var) ? bn_train(c, &a) : bn_fixed(c, &a, mean, var));
    for (int i = 1; i < 5; i++)
        tf_set(c, i, i % 2 ? mean : var);
    tf_set_other(c, 5);
}

/* dy, x, scale, mean, variance -> dx, dscale, doffset. By the batch's statistics, x moves them too. */
void tf_op_fused_batch_norm_grad(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val dy = tf_in(c, 0), x = tf_in(c, 1);
    int rank = tf_rank(c, x), axis = channel_axis(c, rank);
    ty_dtype dtype = tf_dtype_of(c, x), wide = tf_dtype_of(c, tf_in(c, 4));
    uint32_t others = ty_b_all_axes(g, x) & ~(1u << axis);
    double n = bn_count(c, x, axis);
    dy = ty_b_cast(g, dy, wide);
    ty_val rstd = ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, tf_in(c, 4), tf_attr_float(c->node, "epsilon", 1e-4)));
    ty_val centred = ty_b_sub(g, ty_b_cast(g, x, wide), per_channel(c, tf_in(c, 3), rank, axis));
    ty_val unit = ty_b_mul(g, centred, per_channel(c, rstd, rank, axis));
    ty_val dscale = ty_b_sum(g, ty_b_mul(g, dy, unit), others, false), dshift = ty_b_sum(g, dy, others, false);
    ty_val inner = dy;
    if (tf_attr_bool(c->node, "is_training", true) && n > 0) {
        ty_val along = ty_b_mul(g, unit, per_channel(c, ty_b_mul_s(g, dscale, 1 / n), rank, axis));
        inner = ty_b_sub(g, ty_b_sub(g, dy, per_channel(c, ty_b_mul_s(g, dshift, 1 / n), rank, axis)), along);
    }
    ty_val dx = ty_b_mul(g, inner, per_channel(c, ty_b_mul(g, ty_b_cast(g, tf_in(c, 2), wide), rstd), rank, axis));
    tf_set(c, 0, ty_b_cast(g, dx, dtype));
    tf_set(c, 1, dscale);
    tf_set(c, 2, dshift);
    tf_set_other(c, 3);
    tf_set_other(c, 4);
}

/* ---- Keras 3: x m + (beta - mean m), m = gamma / sqrt(variance + eps) ----------------------------------------------
 */

static ty_val plain(const tf_ctx *c, ty_val v)
{
    while (v != TY_NONE) {
        ty_op op = ty_graph_op(c->g, ty_val_node(v));
        if (op != TY_OP_RESHAPE && op != TY_OP_BROADCAST)
            break;
        v = ty_graph_in(c->g, ty_val_node(v), 0);
    }
    return v;
}

static bool has_op(const tf_ctx *c, ty_val v, ty_op op)
{
    return v != TY_NONE && ty_graph_op(c->g, ty_val_node(v)) == op;
}

static ty_val operand(const tf_ctx *c, ty_val v, int i)
{
    return ty_graph_in(c->g, ty_val_node(v), i);
}

/* A moving statistic, or -1. */
static int statistic(const tf_ctx *c, ty_val v)
{
    v = plain(c, v);
    if (has_op(c, v, TY_OP_CAST))
        v = operand(c, v, 0);
    int variable = tf_variable_of(c, v);
    return moves(c, variable) ? variable : -1;
}

static bool is_rstd(const tf_ctx *c, ty_val v, bn_args *a)
{
    v = plain(c, v);
    if (!has_op(c, v, TY_OP_RSQRT))
        return false;
    ty_val sum = plain(c, operand(c, v, 0));
    if (!has_op(c, sum, TY_OP_ADD) || !ty_graph_splat_value(c->g, operand(c, sum, 1), &a->eps))
        return false;
    a->var = statistic(c, operand(c, sum, 0));
    return a->var >= 0;
}

/* m, with or without a scale. */
static bool is_factor(const tf_ctx *c, ty_val v, bn_args *a)
{
    v = plain(c, v);
    a->scale = TY_NONE;
    if (is_rstd(c, v, a))
        return true;
    for (int i = 0; i < 2 && has_op(c, v, TY_OP_MUL); i++)
        if (is_rstd(c, operand(c, v, i), a)) {
            a->scale = operand(c, v, !i);
            return true;
        }
    return false;
}

/* mean m, either way round; the mean may be negated. */
static bool is_moved_mean(const tf_ctx *c, ty_val v, ty_val factor, bool negated, bn_args *a)
{
    v = plain(c, v);
    for (int i = 0; i < 2 && has_op(c, v, TY_OP_MUL); i++) {
        ty_val mean = plain(c, operand(c, v, !i));
        if (plain(c, operand(c, v, i)) != factor || (negated && !has_op(c, mean, TY_OP_NEG)))
            continue;
        a->mean = statistic(c, negated ? operand(c, mean, 0) : mean);
        if (a->mean >= 0)
            return true;
    }
    return false;
}

/* beta - mean m, or -mean m. */
static bool is_shift(const tf_ctx *c, ty_val v, ty_val factor, bn_args *a)
{
    v = plain(c, v);
    a->shift = TY_NONE;
    if (is_moved_mean(c, v, factor, true, a))
        return true;
    if (!has_op(c, v, TY_OP_SUB) || !is_moved_mean(c, operand(c, v, 1), factor, false, a))
        return false;
    a->shift = operand(c, v, 0);
    return true;
}

/* Along which axis a factor [.. C ..] is not stretched. */
static int factor_axis(const tf_ctx *c, ty_val v)
{
    int axis = tf_rank(c, v) - 1;
    if (!has_op(c, v, TY_OP_BROADCAST))
        return axis;
    const ty_type *from = tf_type(c, operand(c, v, 0));
    for (int i = 0; i < from->rank; i++)
        if (from->dim[i] != 1)
            return i;
    return axis;
}

/* A vector of C numbers, from whatever shape the file stretches it. */
static ty_val channels_of(tf_ctx *c, ty_val v, int64_t n)
{
    v = plain(c, v);
    if (ty_type_elems(tf_type(c, v)) != n)
        return ty_b_broadcast(c->g, ty_b_reshape(c->g, v, 0, NULL), 1, &n);
    return ty_b_reshape(c->g, v, 1, &n);
}

/* a + b, where that is the end of a batch normalization that is trained: that. TY_NONE: it is not. */
static ty_val raise_sum(tf_ctx *c, ty_val product, ty_val shift)
{
    bn_args a = {.x = TY_NONE};
    for (int i = 0; i < 2 && has_op(c, product, TY_OP_MUL); i++) {
        ty_val m = operand(c, product, i);
        if (!is_factor(c, m, &a) || !is_shift(c, shift, plain(c, m), &a))
            continue;
        a.x = operand(c, product, !i);
        a.axis = factor_axis(c, m);
        int64_t n = tf_dim(c, a.x, a.axis);
        if (tf_rank(c, a.x) < 2 || ty_type_elems(&tf_variable_at(c->imp->file, a.mean)->type) != n)
            return TY_NONE;
        a.scale = a.scale == TY_NONE ? ty_b_full(c->g, tf_dtype_of(c, a.x), 1, &n, 1) : channels_of(c, a.scale, n);
        a.shift = a.shift == TY_NONE ? TY_NONE : channels_of(c, a.shift, n);
        return bn_train(c, &a);
    }
    return TY_NONE;
}

void tf_op_add(tf_ctx *c)
{
    ty_val a = tf_in(c, 0), b = tf_in(c, 1);
    if (c->imp->binding->mode == TY_MODEL_TRAIN && tf_is_differentiated(c) && tf_is_float(c, a)) {
        ty_val y = raise_sum(c, a, b);
        if (y == TY_NONE)
            y = raise_sum(c, b, a);
        if (y != TY_NONE) {
            tf_set(c, 0, y);
            return;
        }
    }
    tf_set(c, 0, ty_b_add(c->g, a, b));
}

/* ---- over neighbouring channels ---- */

/* y = x / base^beta, base = bias + alpha times the sum of squares over the channels up to `radius` away; channels last.
 */
typedef struct norm_across {
    int64_t radius;
    double bias, alpha, beta;
} norm_across;

static bool norm_across_read(tf_ctx *c, ty_val x, norm_across *n)
{
    *n = (norm_across){tf_attr_int(c->node, "depth_radius", 5), tf_attr_float(c->node, "bias", 1),
                       tf_attr_float(c->node, "alpha", 1), tf_attr_float(c->node, "beta", 0.5)};
    if (tf_rank(c, x) != 4 || n->radius < 0 || n->radius > 1 << 16)
        tf_fail_input(c, 0, TY_E_SHAPE, "must have 4 dimensions, and depth_radius must not be negative");
    return !c->failed;
}

/* Sums over the window of each channel. */
static ty_val norm_across_sum(tf_ctx *c, const norm_across *n, ty_val x)
{
    const ty_type t = *tf_type(c, x);
    int64_t plane[] = {t.dim[0] * t.dim[1] * t.dim[2], 1, t.dim[3], 1};
    ty_attr a = {.n = 2, .size = {2 * n->radius + 1, 1}, .step = {1, 1}, .dil = {1, 1}};
    a.lo[0] = a.hi[0] = n->radius;
    ty_val flat = ty_b_reshape(c->g, x, 4, plane);
    return ty_b_reshape(c->g, ty_graph_emit(c->g, TY_OP_POOL_SUM, &a, &flat, 1), t.rank, t.dim);
}

static ty_val norm_across_base(tf_ctx *c, const norm_across *n, ty_val x)
{
    ty_val sum = norm_across_sum(c, n, ty_b_square(c->g, x));
    return ty_b_add_s(c->g, ty_b_mul_s(c->g, sum, n->alpha), n->bias);
}

void tf_op_lrn(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0);
    norm_across n;
    if (!norm_across_read(c, x, &n))
        return;
    ty_val base = norm_across_base(c, &n, x), power = ty_b_full_like(g, base, n.beta);
    tf_set(c, 0, ty_b_div(g, x, ty_b_binary(g, TY_OP_POW, base, power)));
}

/* dy, x, y: dy base^-beta - 2 alpha beta x times the sum of dy y / base. */
void tf_op_lrn_grad(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val dy = tf_in(c, 0), x = tf_in(c, 1), y = tf_in(c, 2);
    norm_across n;
    if (!norm_across_read(c, x, &n))
        return;
    ty_val base = norm_across_base(c, &n, x);
    ty_val own = ty_b_mul(g, dy, ty_b_binary(g, TY_OP_POW, base, ty_b_full_like(g, base, -n.beta)));
    ty_val others = norm_across_sum(c, &n, ty_b_div(g, ty_b_mul(g, dy, y), base));
    tf_set(c, 0, ty_b_sub(g, own, ty_b_mul_s(g, ty_b_mul(g, x, others), 2 * n.alpha * n.beta)));
}
