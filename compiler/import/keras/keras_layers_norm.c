/* keras_layers_norm.c - normalisations.
 *
 * Letters: N batch, T steps, C channels, G groups.
 */
#include "compiler/import/keras/keras_window.h"

#include <string.h>

/* ---- what all have in common ---- */

static void norm_declare(keras_call *c, const char *label, const char *initializer, const char *initializer_absent,
                         int rank, const int64_t *dim)
{
    keras_spec spec = {.label = label, .rank = rank, .initializer = initializer};
    spec.initializer_absent = initializer_absent;
    memcpy(spec.dim, dim, (size_t)rank * sizeof *dim);
    if (strcmp(label, "gamma") == 0) {
        spec.regularizer = "gamma_regularizer";
        spec.constraint = "gamma_constraint";
    } else if (strcmp(label, "beta") == 0) {
        spec.regularizer = "beta_regularizer";
        spec.constraint = "beta_constraint";
    } else
        spec.is_statistic = strcmp(label, "scale") != 0;
    keras_add_weight(c, &spec);
}

/* gamma and beta, where the layer wants them. */
static void norm_declare_affine(keras_call *c, int rank, const int64_t *dim, bool has_gamma, bool has_beta)
{
    if (has_gamma)
        norm_declare(c, "gamma", "gamma_initializer", "ones", rank, dim);
    if (has_beta)
        norm_declare(c, "beta", "beta_initializer", "zeros", rank, dim);
}

static bool norm_has_one(keras_call *c, int least_rank)
{
    if (c->n_in == 1 && ty_b_rank(c->g, c->in[0]) >= least_rank)
        return true;
    keras_fail(c, TY_E_SHAPE, "expected one input of at least %d dimensions", least_rank);
    return false;
}

/* The layer's `axis`: a number or a list, as a set; -1 where it is missing. */
static bool norm_axes(keras_call *c, uint32_t *axes)
{
    int64_t list[TY_MAX_RANK] = {-1};
    int n = keras_config(c, "axis") ? keras_list(c, "axis", TY_MAX_RANK, list) : 1;
    *axes = 0;
    for (int i = 0; i < n; i++) {
        int axis;
        if (!keras_axis(c, list[i], ty_b_rank(c->g, c->in[0]), &axis))
            return false;
        *axes |= 1u << axis;
    }
    if (!c->failed && *axes == 0)
        keras_fail_key(c, "axis", "expected at least one axis");
    return !c->failed;
}

/* One axis; Keras 2 has a list of it. */
static bool norm_axis(keras_call *c, int *axis)
{
    uint32_t axes;
    if (!norm_axes(c, &axes))
        return false;
    *axis = __builtin_ctz(axes);
    if (axes != 1u << *axis)
        keras_fail_key(c, "axis", "expected one axis");
    return !c->failed;
}

/* An order of axes in which those of the set come last; false if they do already. */
static bool norm_order(uint32_t axes, int rank, int64_t *perm)
{
    int n = 0;
    bool moved = false;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < rank; i++)
            if ((int)(axes >> i & 1) == pass)
                perm[n++] = i;
    for (int i = 0; i < rank; i++)
        moved |= perm[i] != i;
    return moved;
}

static ty_val norm_turned_back(keras_call *c, ty_val y, int rank, const int64_t *perm)
{
    int64_t back[TY_MAX_RANK];
    for (int i = 0; i < rank; i++)
        back[perm[i]] = i;
    return ty_b_transpose(c->g, y, back);
}

/* The dims of the axes of a set, in order. */
static int norm_dims(const keras_call *c, uint32_t axes, int64_t *dim)
{
    int n = 0;
    for (int i = 0; i < ty_b_rank(c->g, c->in[0]); i++)
        if (axes >> i & 1)
            dim[n++] = ty_b_dim(c->g, c->in[0], i);
    return n;
}

/* ---- batch ---- */

typedef struct norm_batch {
    ty_val x, scale, bias; /* scale, bias [C] */
    int axis, rank;
    int64_t channels;
    double eps, momentum;
} norm_batch;

static bool norm_batch_read(keras_call *c, norm_batch *b)
{
    if (!norm_has_one(c, 2))
        return false;
    b->rank = ty_b_rank(c->g, c->in[0]);
    b->eps = keras_number(c, "epsilon", 1e-3);
    b->momentum = keras_number(c, "momentum", 0.99);
    if (keras_flag(c, "renorm", false))
        keras_fail_key(c, "renorm", "batch renormalisation is not supported");
    if (c->failed || !norm_axis(c, &b->axis))
        return false;
    b->channels = ty_b_dim(c->g, c->in[0], b->axis);
    return !c->failed;
}

void keras_create_batch_norm(keras_call *c)
{
    norm_batch b;
    if (!norm_batch_read(c, &b))
        return;
    norm_declare_affine(c, 1, &b.channels, keras_flag(c, "scale", true), keras_flag(c, "center", true));
    norm_declare(c, "moving_mean", "moving_mean_initializer", "zeros", 1, &b.channels);
    norm_declare(c, "moving_variance", "moving_variance_initializer", "ones", 1, &b.channels);
}

/* (x - mean) * (scale / sqrt(var + eps)) + bias */
static ty_val norm_batch_apply(keras_call *c, const norm_batch *b, ty_val mean, ty_val var)
{
    ty_graph *g = c->g;
    ty_val factor = ty_b_mul(g, b->scale, ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, var, b->eps)));
    ty_val y = ty_b_sub(g, b->x, keras_on_axis(c, mean, b->axis, b->rank));
    y = ty_b_mul(g, y, keras_on_axis(c, factor, b->axis, b->rank));
    return ty_b_add(g, y, keras_on_axis(c, b->bias, b->axis, b->rank));
}

static void norm_batch_blend(keras_call *c, const norm_batch *b, const char *label, ty_val fresh)
{
    ty_val old = keras_var_now(c, label);
    ty_val kept = ty_b_mul_s(c->g, old, b->momentum), taken = ty_b_mul_s(c->g, fresh, 1 - b->momentum);
    keras_update(c, label, ty_b_add(c->g, kept, ty_b_cast(c->g, taken, ty_b_dtype(c->g, old))));
}

/* The op has channels on axis 1. Where the last axis of [N, T, C] is meant, rows of [N T, C] are that already. */
static ty_val norm_batch_statistics(keras_call *c, const norm_batch *b, ty_val *mean, ty_val *var)
{
    ty_graph *g = c->g;
    const ty_type t = *ty_graph_type(g, b->x);
    int64_t perm[TY_MAX_RANK], rows[] = {b->channels ? ty_type_elems(&t) / b->channels : 0, b->channels};
    bool is_rows = b->rank <= 3 && b->axis == b->rank - 1;
    ty_attr attr = {.value = b->eps, .replicas = keras_replicas(c) > 1 ? keras_replicas(c) : 0};
    perm[0] = b->axis == 0 ? 1 : 0;
    perm[1] = b->axis;
    for (int i = 0, n = 2; i < b->rank; i++)
        if (i != perm[0] && i != perm[1])
            perm[n++] = i;
    ty_val in[] = {is_rows ? ty_b_reshape(g, b->x, 2, rows) : ty_b_transpose(g, b->x, perm), b->scale, b->bias};
    ty_val y = ty_graph_emit(g, TY_OP_BATCHNORM, &attr, in, 3);
    if (y == TY_NONE)
        return y;
    *mean = ty_val_make(ty_val_node(y), 1);
    *var = ty_val_make(ty_val_node(y), 2);
    return is_rows ? ty_b_reshape(g, y, b->rank, t.dim) : norm_turned_back(c, y, b->rank, perm);
}

/* Over the positions that the mask [N, T ..] leaves. */
static ty_val norm_batch_masked(keras_call *c, const norm_batch *b, ty_val mask, ty_val *mean, ty_val *var)
{
    ty_graph *g = c->g;
    uint32_t axes = ty_b_all_axes(g, b->x) & ~(1u << b->axis);
    ty_type t = *ty_graph_type(g, b->x);
    ty_val zero = ty_b_full_like(g, b->x, 0);
    ty_val at = ty_b_broadcast(g, ty_b_unsqueeze(g, mask, b->rank - 1), t.rank, t.dim);
    ty_val count = ty_b_add_s(g, ty_b_sum(g, ty_b_cast(g, at, (ty_dtype)t.dtype), axes, false), 1e-7);
    *mean = ty_b_div(g, ty_b_sum(g, ty_b_select(g, at, b->x, zero), axes, false), count);
    ty_val off = ty_b_sub(g, b->x, keras_on_axis(c, *mean, b->axis, b->rank));
    *var = ty_b_div(g, ty_b_sum(g, ty_b_square(g, ty_b_select(g, at, off, zero)), axes, false), count);
    return norm_batch_apply(c, b, *mean, *var);
}

/* Frozen layers use moving statistics in training too. The moving variance takes the biased one of the batch. */
void keras_call_batch_norm(keras_call *c)
{
    norm_batch b;
    if (!norm_batch_read(c, &b))
        return;
    b.x = keras_float(c, c->in[0]);
    b.scale = keras_var(c, "gamma");
    b.bias = keras_var(c, "beta");
    if (b.x == TY_NONE)
        return;
    b.scale = b.scale != TY_NONE ? b.scale : ty_b_full(c->g, ty_b_dtype(c->g, b.x), 1, &b.channels, 1);
    b.bias = b.bias != TY_NONE ? b.bias : ty_b_full(c->g, ty_b_dtype(c->g, b.x), 1, &b.channels, 0);
    if (!c->training || !c->layer->trainable) {
        keras_set(c, 0, norm_batch_apply(c, &b, keras_var_now(c, "moving_mean"), keras_var_now(c, "moving_variance")));
        return;
    }
    ty_val mask = c->mask[0], mean = TY_NONE, var = TY_NONE, y;
    if (mask != TY_NONE && ty_b_rank(c->g, mask) != b.rank - 1) {
        keras_fail(c, TY_E_SHAPE, "expected a mask of %d dimensions, found %d", b.rank - 1, ty_b_rank(c->g, mask));
        return;
    }
    y = mask == TY_NONE ? norm_batch_statistics(c, &b, &mean, &var) : norm_batch_masked(c, &b, mask, &mean, &var);
    if (y == TY_NONE)
        return;
    norm_batch_blend(c, &b, "moving_mean", mean);
    norm_batch_blend(c, &b, "moving_variance", var);
    keras_set(c, 0, y);
}

/* ---- layer, rms ---- */

void keras_create_layer_norm(keras_call *c)
{
    uint32_t axes;
    int64_t dim[TY_MAX_RANK];
    if (!norm_has_one(c, 1) || !norm_axes(c, &axes))
        return;
    bool rms = keras_flag(c, "rms_scaling", false);
    norm_declare_affine(c, norm_dims(c, axes, dim), dim, keras_flag(c, "scale", true) || rms,
                        keras_flag(c, "center", true) && !rms);
}

/* LayerNormalization's old rms_scaling: x / sqrt(variance + eps), the mean left in. */
static ty_val norm_by_variance(keras_call *c, ty_val x, ty_val gamma, uint32_t axes, double eps)
{
    ty_graph *g = c->g;
    ty_val off = ty_b_sub(g, x, ty_b_mean(g, x, axes, true));
    ty_val var = ty_b_mean(g, ty_b_square(g, off), axes, true);
    ty_val y = ty_b_mul(g, x, ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, var, eps)));
    return gamma == TY_NONE ? y : ty_b_mul(g, y, gamma);
}

/* Over axes that are the last ones of x. */
static ty_val norm_last(keras_call *c, ty_val x, int n, ty_val scale, ty_val bias, double eps, bool rms)
{
    const ty_type t = *ty_graph_type(c->g, x);
    if (scale == TY_NONE && bias != TY_NONE)
        scale = ty_b_full(c->g, (ty_dtype)t.dtype, n, t.dim + t.rank - n, 1);
    return ty_b_norm(c->g, x, scale, bias, n, eps, rms);
}

/* arg 1: RMSNormalization. */
void keras_call_layer_norm(keras_call *c)
{
    bool rms = c->layer->row->arg;
    uint32_t axes;
    int64_t perm[TY_MAX_RANK];
    double eps = keras_number(c, "epsilon", rms ? 1e-6 : 1e-3);
    if (!norm_has_one(c, 1) || !norm_axes(c, &axes))
        return;
    ty_val x = keras_float(c, c->in[0]), scale = keras_var(c, rms ? "scale" : "gamma");
    if (x == TY_NONE)
        return;
    int rank = ty_b_rank(c->g, x), n = __builtin_popcount(axes);
    bool moved = norm_order(axes, rank, perm);
    uint32_t last = ty_b_all_axes(c->g, x) & ~((1u << (rank - n)) - 1);
    ty_val y = moved ? ty_b_transpose(c->g, x, perm) : x;
    if (keras_flag(c, "rms_scaling", false))
        y = norm_by_variance(c, y, scale, last, eps);
    else
        y = norm_last(c, y, n, scale, keras_var(c, "beta"), eps, rms);
    keras_set(c, 0, moved ? norm_turned_back(c, y, rank, perm) : y);
}

/* Keras lays the scale against the last axes, whichever it is of. */
void keras_create_rms_norm(keras_call *c)
{
    uint32_t axes;
    int64_t dim[TY_MAX_RANK], perm[TY_MAX_RANK];
    if (!norm_has_one(c, 1) || !norm_axes(c, &axes))
        return;
    if (norm_order(axes, ty_b_rank(c->g, c->in[0]), perm))
        keras_fail_key(c, "axis", "expected the last axes");
    else
        norm_declare(c, "scale", NULL, "ones", norm_dims(c, axes, dim), dim);
}

/* ---- group, unit ---- */

typedef struct norm_group {
    int axis;
    int64_t channels, groups;
} norm_group;

static bool norm_group_read(keras_call *c, norm_group *n)
{
    if (!norm_has_one(c, 2) || !norm_axis(c, &n->axis))
        return false;
    n->channels = ty_b_dim(c->g, c->in[0], n->axis);
    n->groups = keras_int(c, "groups", 32);
    n->groups = n->groups == -1 ? n->channels : n->groups;
    if (!c->failed && n->axis == 0)
        keras_fail_key(c, "axis", "the batch has no groups");
    if (!c->failed && (n->groups < 1 || n->channels % n->groups))
        keras_fail_key(c, "groups", "expected -1 or a divisor of the %lld channels", (long long)n->channels);
    return !c->failed;
}

void keras_create_group_norm(keras_call *c)
{
    norm_group n;
    if (norm_group_read(c, &n))
        norm_declare_affine(c, 1, &n.channels, keras_flag(c, "scale", true), keras_flag(c, "center", true));
}

/* The channels' axis as [G, C / G]; statistics over all axes but the batch's and that of groups. */
void keras_call_group_norm(keras_call *c)
{
    ty_graph *g = c->g;
    norm_group n;
    int64_t split[TY_MAX_RANK];
    double eps = keras_number(c, "epsilon", 1e-3);
    if (!norm_group_read(c, &n) || c->failed)
        return;
    ty_val x = keras_float(c, c->in[0]), gamma = keras_var(c, "gamma"), beta = keras_var(c, "beta");
    if (x == TY_NONE)
        return;
    const ty_type t = *ty_graph_type(g, x);
    if (t.rank == TY_MAX_RANK) {
        keras_fail(c, TY_E_UNSUPPORTED, "expected an input of at most %d dimensions", TY_MAX_RANK - 1);
        return;
    }
    for (int i = 0, k = 0; i < t.rank; i++) {
        split[k++] = i == n.axis ? n.groups : t.dim[i];
        if (i == n.axis)
            split[k++] = n.channels / n.groups;
    }
    ty_val grouped = ty_b_reshape(g, x, t.rank + 1, split);
    uint32_t axes = ty_b_all_axes(g, grouped) & ~(1u | 1u << n.axis);
    ty_val off = ty_b_sub(g, grouped, ty_b_mean(g, grouped, axes, true));
    ty_val var = ty_b_mean(g, ty_b_square(g, off), axes, true);
    ty_val y = ty_b_mul(g, off, ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, var, eps)));
    y = ty_b_reshape(g, y, t.rank, t.dim);
    y = gamma == TY_NONE ? y : ty_b_mul(g, y, keras_on_axis(c, gamma, n.axis, t.rank));
    keras_set(c, 0, beta == TY_NONE ? y : ty_b_add(g, y, keras_on_axis(c, beta, n.axis, t.rank)));
}

/* x / |x|, where the norm is at least 1e-12. */
void keras_call_unit_norm(keras_call *c)
{
    ty_graph *g = c->g;
    uint32_t axes;
    if (!norm_has_one(c, 1) || !norm_axes(c, &axes))
        return;
    ty_val x = keras_float(c, c->in[0]);
    if (x == TY_NONE)
        return;
    ty_val sum = ty_b_sum(g, ty_b_square(g, x), axes, true);
    ty_val least = ty_b_max(g, sum, ty_b_full_like(g, sum, 1e-24));
    keras_set(c, 0, ty_b_mul(g, x, ty_b_unary(g, TY_OP_RSQRT, least)));
}
