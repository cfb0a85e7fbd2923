/* optimizer.c - the rules of optimizer.h, one function each, and their table at the end. */
#include "compiler/passes/optimizer.h"

#include "compiler/ir/build.h"

/* One group's update while it is built. */
typedef struct opt_rule {
    ty_graph *g;
    const ty_optimizer *o;
    const ty_opt_clock *clock;
    double decay;
    bool by_rows;
    const ty_segments *segments;
    ty_val p, grad, squares;
    const ty_val *moment;
    ty_val *next;
} opt_rule;

/* ---- arithmetic
 * ------------------------------------------------------------------------------------------------------ */

static ty_val opt_number(ty_graph *g, double v)
{
    return ty_b_scalar(g, TY_F64, v);
}

/* A scalar f64 where it meets vectors. */
static ty_val opt_f32(const opt_rule *r, ty_val scalar)
{
    return ty_b_cast(r->g, scalar, TY_F32);
}

/* 1 - beta^k, f64. */
static ty_val opt_correction(const opt_rule *r, double beta)
{
    ty_val power = ty_b_binary(r->g, TY_OP_POW, opt_number(r->g, beta), r->clock->k);
    return ty_b_add_s(r->g, ty_b_neg(r->g, power), 1);
}

/* a x + b y with numbers a and b. */
static ty_val opt_blend(const opt_rule *r, double a, ty_val x, double b, ty_val y)
{
    return ty_b_add(r->g, ty_b_mul_s(r->g, x, a), ty_b_mul_s(r->g, y, b));
}

static ty_val opt_sqrt(const opt_rule *r, ty_val x)
{
    return ty_b_unary(r->g, TY_OP_SQRT, x);
}

/* g^2, g being r->grad or what decay has made of it. */
static ty_val opt_square(const opt_rule *r, ty_val g)
{
    return r->squares == TY_NONE ? ty_b_square(r->g, g) : r->squares;
}

/* p - rate step, rate a scalar f64. */
static ty_val opt_descend(const opt_rule *r, ty_val p, ty_val rate, ty_val step)
{
    return ty_b_sub(r->g, p, ty_b_mul(r->g, step, opt_f32(r, rate)));
}

/* g + d p: decay as part of the gradient. */
static ty_val opt_decayed(const opt_rule *r)
{
    return r->decay == 0 ? r->grad : ty_b_add(r->g, r->grad, ty_b_mul_s(r->g, r->p, r->decay));
}

/* p - lr d p: decay beside the gradient. */
static ty_val opt_shrunk(const opt_rule *r)
{
    if (r->decay == 0)
        return r->p;
    ty_val keep = ty_b_add_s(r->g, ty_b_mul_s(r->g, r->clock->lr, -r->decay), 1);
    return ty_b_mul(r->g, r->p, opt_f32(r, keep));
}

/* ---- rules
 * ----------------------------------------------------------------------------------------------------------- */

static ty_opt_moments sgd_moments(const ty_optimizer *o)
{
    return o->momentum == 0 ? (ty_opt_moments){0} : (ty_opt_moments){1, {"m"}};
}

static ty_val sgd_update(const opt_rule *r)
{
    ty_val g = opt_decayed(r), step = g;
    if (r->o->momentum != 0) {
        /* The first step takes the whole gradient, whatever the dampening. */
        ty_val share = opt_number(r->g, 1 - r->o->dampening);
        if (r->o->dampening != 0)
            share = ty_b_select(r->g, ty_b_le(r->g, r->clock->k, opt_number(r->g, 1)), opt_number(r->g, 1), share);
        ty_val fresh = r->o->dampening == 0 ? g : ty_b_mul(r->g, g, opt_f32(r, share));
        ty_val m = ty_b_add(r->g, ty_b_mul_s(r->g, r->moment[0], r->o->momentum), fresh);
        r->next[0] = m;
        step = r->o->nesterov ? ty_b_add(r->g, g, ty_b_mul_s(r->g, m, r->o->momentum)) : m;
    }
    return opt_descend(r, r->p, r->clock->lr, step);
}

static const char *rows_plain(const ty_optimizer *o)
{
    (void)o;
    return NULL;
}

static const char *sgd_rows(const ty_optimizer *o)
{
    return o->momentum == 0 ? NULL : "with momentum moves every row that was ever touched at every step";
}

static ty_opt_moments adam_moments(const ty_optimizer *o)
{
    return (ty_opt_moments){o->amsgrad ? 3 : 2, {"m", "v", "x"}};
}

/* m and v of the adam family, into next[0] and next[1]. */
static void adam_averages(const opt_rule *r, ty_val g)
{
    r->next[0] = opt_blend(r, r->o->beta1, r->moment[0], 1 - r->o->beta1, g);
    r->next[1] = opt_blend(r, r->o->beta2, r->moment[1], 1 - r->o->beta2, opt_square(r, g));
}

static ty_val adam_step(const opt_rule *r, ty_val p, ty_val g)
{
    adam_averages(r, g);
    ty_val x = r->next[1];
    if (r->o->amsgrad)
        x = r->next[2] = ty_b_max(r->g, r->moment[2], r->next[1]);
    ty_val scale = ty_b_reciprocal(r->g, opt_sqrt(r, opt_correction(r, r->o->beta2)));
    ty_val size = ty_b_add_s(r->g, ty_b_mul(r->g, opt_sqrt(r, x), opt_f32(r, scale)), r->o->eps);
    ty_val rate = ty_b_div(r->g, r->clock->lr, opt_correction(r, r->o->beta1));
    return opt_descend(r, p, rate, ty_b_div(r->g, r->next[0], size));
}

static const char *adam_rows(const ty_optimizer *o)
{
    return o->amsgrad ? "with amsgrad is defined for dense gradients only" : NULL;
}

static ty_val keras_adam_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    adam_averages(r, r->grad);
    ty_val x = r->next[1];
    if (r->o->amsgrad)
        x = r->next[2] = ty_b_max(b, r->moment[2], r->next[1]);
    ty_val ratio = ty_b_div(b, opt_sqrt(r, opt_correction(r, r->o->beta2)), opt_correction(r, r->o->beta1));
    ty_val step = ty_b_div(b, r->next[0], ty_b_add_s(b, opt_sqrt(r, x), r->o->eps));
    return opt_descend(r, opt_shrunk(r), ty_b_mul(b, r->clock->lr, ratio), step);
}

/* Rows of a table as in SparseAdam, which adds eps where Keras does. */
static ty_val adam_update(const opt_rule *r)
{
    return r->by_rows ? keras_adam_update(r) : adam_step(r, r->p, opt_decayed(r));
}

static ty_val adamw_update(const opt_rule *r)
{
    return r->by_rows ? keras_adam_update(r) : adam_step(r, opt_shrunk(r), r->grad);
}

static ty_opt_moments nadam_moments(const ty_optimizer *o)
{
    (void)o;
    return (ty_opt_moments){2, {"m", "v"}};
}

/* u(i) = beta1 (1 - 0.96^(i momentum_decay) / 2) */
static ty_val nadam_u(ty_graph *g, const ty_optimizer *o, ty_val i)
{
    double decay = o->kind == TY_OPT_KERAS_NADAM ? 1 : o->momentum_decay;
    ty_val power = ty_b_binary(g, TY_OP_POW, opt_number(g, 0.96), ty_b_mul_s(g, i, decay));
    return ty_b_mul_s(g, ty_b_add_s(g, ty_b_mul_s(g, power, -0.5), 1), o->beta1);
}

static ty_val nadam_product(ty_graph *g, const ty_optimizer *o, const ty_opt_clock *clock)
{
    return ty_b_mul(g, clock->product, nadam_u(g, o, clock->k));
}

static ty_val nadam_step(const opt_rule *r, ty_val from, ty_val g)
{
    ty_graph *b = r->g;
    ty_val one = opt_number(b, 1), lr = r->clock->lr;
    adam_averages(r, g);
    ty_val u = nadam_u(b, r->o, r->clock->k), after = nadam_u(b, r->o, ty_b_add_s(b, r->clock->k, 1));
    ty_val product = nadam_product(b, r->o, r->clock);
    ty_val scale = ty_b_reciprocal(b, opt_sqrt(r, opt_correction(r, r->o->beta2)));
    ty_val size = ty_b_add_s(b, ty_b_mul(b, opt_sqrt(r, r->next[1]), opt_f32(r, scale)), r->o->eps);
    ty_val now = ty_b_div(b, ty_b_mul(b, lr, ty_b_sub(b, one, u)), ty_b_sub(b, one, product));
    ty_val then = ty_b_div(b, ty_b_mul(b, lr, after), ty_b_sub(b, one, ty_b_mul(b, product, after)));
    ty_val p = opt_descend(r, from, now, ty_b_div(b, g, size));
    return opt_descend(r, p, then, ty_b_div(b, r->next[0], size));
}

static ty_val nadam_update(const opt_rule *r)
{
    return nadam_step(r, r->p, opt_decayed(r));
}

static ty_val keras_nadam_update(const opt_rule *r)
{
    return nadam_step(r, opt_shrunk(r), r->grad);
}

static ty_opt_moments adamax_moments(const ty_optimizer *o)
{
    (void)o;
    return (ty_opt_moments){2, {"m", "s"}};
}

static ty_val adamax_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    ty_val g = opt_decayed(r);
    ty_val m = opt_blend(r, r->o->beta1, r->moment[0], 1 - r->o->beta1, g);
    ty_val size = ty_b_add_s(b, ty_b_unary(b, TY_OP_ABS, g), r->o->eps);
    ty_val s = ty_b_max(b, ty_b_mul_s(b, r->moment[1], r->o->beta2), size);
    r->next[0] = m;
    r->next[1] = s;
    return opt_descend(r, r->p, ty_b_div(b, r->clock->lr, opt_correction(r, r->o->beta1)), ty_b_div(b, m, s));
}

static ty_val keras_adamax_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    ty_val m = opt_blend(r, r->o->beta1, r->moment[0], 1 - r->o->beta1, r->grad);
    ty_val size = r->squares == TY_NONE ? ty_b_unary(b, TY_OP_ABS, r->grad) : r->squares;
    ty_val s = ty_b_max(b, ty_b_mul_s(b, r->moment[1], r->o->beta2), size);
    ty_val rate = ty_b_div(b, r->clock->lr, opt_correction(r, r->o->beta1));
    r->next[0] = m;
    r->next[1] = s;
    return opt_descend(r, opt_shrunk(r), rate, ty_b_div(b, m, ty_b_add_s(b, s, r->o->eps)));
}

static ty_opt_moments rmsprop_moments(const ty_optimizer *o)
{
    ty_opt_moments m = {1, {"v"}};
    if (o->centered)
        m.name[m.n++] = "a";
    if (o->momentum != 0)
        m.name[m.n++] = "m";
    return m;
}

/* The averages into next; returns what the root is taken of. Next free moment: *at. */
static ty_val rmsprop_square(const opt_rule *r, ty_val g, int *at)
{
    ty_graph *b = r->g;
    ty_val v = opt_blend(r, r->o->alpha, r->moment[0], 1 - r->o->alpha, opt_square(r, g)), x = v;
    r->next[0] = v;
    if (r->o->centered) {
        ty_val a = opt_blend(r, r->o->alpha, r->moment[1], 1 - r->o->alpha, g);
        x = ty_b_sub(b, v, ty_b_square(b, a));
        r->next[1] = a;
    }
    *at = r->o->centered ? 2 : 1;
    return x;
}

static ty_val rmsprop_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    int at;
    ty_val g = opt_decayed(r), x = rmsprop_square(r, g, &at);
    ty_val q = ty_b_div(b, g, ty_b_add_s(b, opt_sqrt(r, x), r->o->eps));
    if (r->o->momentum != 0)
        q = r->next[at] = ty_b_add(b, ty_b_mul_s(b, r->moment[at], r->o->momentum), q);
    return opt_descend(r, r->p, r->clock->lr, q);
}

static ty_val keras_rmsprop_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    int at;
    ty_val x = rmsprop_square(r, r->grad, &at);
    ty_val q = ty_b_div(b, r->grad, opt_sqrt(r, ty_b_add_s(b, x, r->o->eps)));
    if (r->o->momentum == 0)
        return opt_descend(r, opt_shrunk(r), r->clock->lr, q);
    ty_val last = ty_b_mul_s(b, r->moment[at], r->o->momentum);
    r->next[at] = ty_b_add(b, last, ty_b_mul(b, q, opt_f32(r, r->clock->lr)));
    return ty_b_sub(b, opt_shrunk(r), r->next[at]);
}

static ty_opt_moments adagrad_moments(const ty_optimizer *o)
{
    (void)o;
    return (ty_opt_moments){1, {"v"}};
}

/* The vector holds v less the initial accumulator, so that it starts at zero as all others do. */
static ty_val adagrad_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    ty_val g = opt_decayed(r), v = ty_b_add(b, r->moment[0], ty_b_square(b, g));
    r->next[0] = v;
    ty_val slower = ty_b_add_s(b, ty_b_mul_s(b, ty_b_add_s(b, r->clock->k, -1), r->o->lr_decay), 1);
    ty_val size = opt_sqrt(r, ty_b_add_s(b, v, r->o->initial_accumulator));
    ty_val q = ty_b_div(b, g, ty_b_add_s(b, size, r->o->eps));
    return opt_descend(r, r->p, ty_b_div(b, r->clock->lr, slower), q);
}

static ty_val keras_adagrad_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    ty_val v = r->next[0] = ty_b_add(b, r->moment[0], opt_square(r, r->grad));
    ty_val size = opt_sqrt(r, ty_b_add_s(b, v, r->o->initial_accumulator + r->o->eps));
    return opt_descend(r, opt_shrunk(r), r->clock->lr, ty_b_div(b, r->grad, size));
}

static ty_opt_moments adadelta_moments(const ty_optimizer *o)
{
    (void)o;
    return (ty_opt_moments){2, {"v", "s"}};
}

static ty_val adadelta_step(const opt_rule *r, ty_val p, ty_val g)
{
    ty_graph *b = r->g;
    double rho = r->o->rho;
    ty_val v = opt_blend(r, rho, r->moment[0], 1 - rho, opt_square(r, g));
    ty_val top = opt_sqrt(r, ty_b_add_s(b, r->moment[1], r->o->eps));
    ty_val c = ty_b_div(b, top, opt_sqrt(r, ty_b_add_s(b, v, r->o->eps))), q = ty_b_mul(b, c, g);
    ty_val square = r->squares == TY_NONE ? ty_b_square(b, q) : ty_b_mul(b, ty_b_square(b, c), r->squares);
    r->next[0] = v;
    r->next[1] = opt_blend(r, rho, r->moment[1], 1 - rho, square);
    return opt_descend(r, p, r->clock->lr, q);
}

static ty_val adadelta_update(const opt_rule *r)
{
    return adadelta_step(r, r->p, opt_decayed(r));
}

static ty_val keras_adadelta_update(const opt_rule *r)
{
    return adadelta_step(r, opt_shrunk(r), r->grad);
}

static ty_opt_moments lion_moments(const ty_optimizer *o)
{
    (void)o;
    return (ty_opt_moments){1, {"m"}};
}

static ty_val lion_update(const opt_rule *r)
{
    ty_val c = opt_blend(r, r->o->beta1, r->moment[0], 1 - r->o->beta1, r->grad);
    r->next[0] = opt_blend(r, r->o->beta2, r->moment[0], 1 - r->o->beta2, r->grad);
    return opt_descend(r, opt_shrunk(r), r->clock->lr, ty_b_sign(r->g, c));
}

/* Whether each tensor of the group gets a ratio of its own: not those that are spared the decay of the others. */
static bool opt_adapts(const opt_rule *r)
{
    return r->decay != 0 || r->o->weight_decay == 0;
}

/* a / b, or 1 if one of them is not above 0. */
static ty_val opt_ratio(const opt_rule *r, ty_val a, ty_val b)
{
    ty_val zero = ty_b_scalar(r->g, TY_F32, 0), one = ty_b_scalar(r->g, TY_F32, 1);
    ty_val q = ty_b_select(r->g, ty_b_lt(r->g, zero, b), ty_b_div(r->g, a, b), one);
    return ty_b_select(r->g, ty_b_lt(r->g, zero, a), q, one);
}

/* step times |p| / |step| of each tensor. */
static ty_val lamb_adapted(const opt_rule *r, ty_val p, ty_val step)
{
    ty_graph *b = r->g;
    ty_val *p_norm = TY_NEW_ARRAY(ty_graph_arena(b), ty_val, r->segments->n);
    ty_val *norm = TY_NEW_ARRAY(ty_graph_arena(b), ty_val, r->segments->n);
    ty_segment_norms(b, p, r->segments, p_norm);
    ty_segment_norms(b, step, r->segments, norm);
    for (int i = 0; i < r->segments->n; i++)
        norm[i] = opt_ratio(r, p_norm[i], norm[i]);
    return ty_b_mul(b, step, ty_segment_spread(b, norm, r->segments));
}

/* M / (sqrt(V) + eps) */
static ty_val lamb_step(const opt_rule *r)
{
    ty_graph *b = r->g;
    adam_averages(r, r->grad);
    ty_val m_scale = ty_b_reciprocal(b, opt_correction(r, r->o->beta1));
    ty_val v_scale = ty_b_reciprocal(b, opt_correction(r, r->o->beta2));
    ty_val m = ty_b_mul(b, r->next[0], opt_f32(r, m_scale)), v = ty_b_mul(b, r->next[1], opt_f32(r, v_scale));
    return ty_b_div(b, m, ty_b_add_s(b, opt_sqrt(r, v), r->o->eps));
}

static ty_val lamb_update(const opt_rule *r)
{
    ty_val step = lamb_step(r);
    if (r->decay != 0)
        step = ty_b_add(r->g, step, ty_b_mul_s(r->g, r->p, r->decay));
    if (opt_adapts(r))
        step = lamb_adapted(r, r->p, step);
    return opt_descend(r, r->p, r->clock->lr, step);
}

static ty_val keras_lamb_update(const opt_rule *r)
{
    ty_val p = opt_shrunk(r);
    return opt_descend(r, p, r->clock->lr, lamb_adapted(r, p, lamb_step(r)));
}

/* trust |p| / (|g| + d |p| + eps) for each tensor, spread over its elements. */
static ty_val lars_ratios(const opt_rule *r)
{
    ty_graph *b = r->g;
    ty_val *p_norm = TY_NEW_ARRAY(ty_graph_arena(b), ty_val, r->segments->n);
    ty_val *norm = TY_NEW_ARRAY(ty_graph_arena(b), ty_val, r->segments->n);
    ty_val zero = ty_b_scalar(b, TY_F32, 0), one = ty_b_scalar(b, TY_F32, 1);
    ty_segment_norms(b, r->p, r->segments, p_norm);
    ty_segment_norms(b, r->grad, r->segments, norm);
    for (int i = 0; i < r->segments->n; i++) {
        ty_val size = ty_b_add_s(b, opt_blend(r, 1, norm[i], r->decay, p_norm[i]), r->o->eps);
        ty_val ratio = opt_ratio(r, ty_b_mul_s(b, p_norm[i], r->o->trust), size);
        norm[i] = ty_b_select(b, ty_b_lt(b, zero, norm[i]), ratio, one);
    }
    return ty_segment_spread(b, norm, r->segments);
}

static ty_val lars_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    ty_val step = opt_decayed(r);
    if (opt_adapts(r))
        step = ty_b_mul(b, step, lars_ratios(r));
    step = ty_b_mul(b, step, opt_f32(r, r->clock->lr));
    if (r->o->momentum != 0)
        step = r->next[0] = ty_b_add(b, ty_b_mul_s(b, r->moment[0], r->o->momentum), step);
    return ty_b_sub(b, r->p, step);
}

static ty_opt_moments ftrl_moments(const ty_optimizer *o)
{
    (void)o;
    return (ty_opt_moments){2, {"n", "z"}};
}

static ty_val ftrl_power(const opt_rule *r, ty_val n)
{
    ty_val x = ty_b_add_s(r->g, n, r->o->initial_accumulator);
    return r->o->lr_power == -0.5 ? opt_sqrt(r, x)
                                  : ty_b_binary(r->g, TY_OP_POW, x, ty_b_full_like(r->g, x, -r->o->lr_power));
}

/* As adagrad's, the vector n is less its start. */
static ty_val ftrl_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    ty_val p = opt_shrunk(r), per_lr = ty_b_reciprocal(b, r->clock->lr);
    ty_val n = r->next[0] = ty_b_add(b, r->moment[0], opt_square(r, r->grad)), power = ftrl_power(r, n);
    ty_val sigma = ty_b_mul(b, ty_b_sub(b, power, ftrl_power(r, r->moment[0])), opt_f32(r, per_lr));
    ty_val g = ty_b_add(b, r->grad, ty_b_mul_s(b, p, 2 * r->o->l2_shrinkage));
    ty_val z = r->next[1] = ty_b_add(b, r->moment[1], ty_b_sub(b, g, ty_b_mul(b, sigma, p)));
    ty_val l1 = ty_b_full_like(b, z, r->o->l1), minus = ty_b_full_like(b, z, -r->o->l1);
    ty_val top = ty_b_sub(b, ty_b_max(b, ty_b_min(b, z, l1), minus), z);
    ty_val l2 = ty_b_add_s(b, ty_b_mul_s(b, per_lr, r->o->beta), 2 * r->o->l2);
    ty_val size = ty_b_add(b, ty_b_mul(b, power, opt_f32(r, per_lr)), opt_f32(r, l2));
    return ty_b_div(b, top, size);
}

static ty_val keras_sgd_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    ty_val p = opt_shrunk(r), step = ty_b_mul(b, r->grad, opt_f32(r, r->clock->lr));
    if (r->o->momentum == 0)
        return ty_b_sub(b, p, step);
    ty_val m = r->next[0] = ty_b_sub(b, ty_b_mul_s(b, r->moment[0], r->o->momentum), step);
    return ty_b_add(b, p, r->o->nesterov ? ty_b_sub(b, ty_b_mul_s(b, m, r->o->momentum), step) : m);
}

/* ---- the table
 * ------------------------------------------------------------------------------------------------------- */

static const struct opt_kind {
    const char *text;
    ty_opt_moments (*moments)(const ty_optimizer *o);
    ty_val (*update)(const opt_rule *r);
    ty_val (*product)(ty_graph *g, const ty_optimizer *o, const ty_opt_clock *clock);
    const char *(*rows)(const ty_optimizer *o); /* why it cannot update rows alone, or NULL; no function: never can */
} opt_kinds[TY_N_OPTIMIZER_KINDS] = {
    [TY_OPT_SGD] = {"sgd", sgd_moments, sgd_update, NULL, sgd_rows},
    [TY_OPT_ADAM] = {"adam", adam_moments, adam_update, NULL, adam_rows},
    [TY_OPT_ADAMW] = {"adamw", adam_moments, adamw_update, NULL, adam_rows},
    [TY_OPT_NADAM] = {"nadam", nadam_moments, nadam_update, nadam_product, NULL},
    [TY_OPT_ADAMAX] = {"adamax", adamax_moments, adamax_update, NULL, NULL},
    [TY_OPT_RMSPROP] = {"rmsprop", rmsprop_moments, rmsprop_update, NULL, NULL},
    [TY_OPT_ADAGRAD] = {"adagrad", adagrad_moments, adagrad_update, NULL, rows_plain},
    [TY_OPT_ADADELTA] = {"adadelta", adadelta_moments, adadelta_update, NULL, NULL},
    [TY_OPT_LION] = {"lion", lion_moments, lion_update, NULL, NULL},
    [TY_OPT_LAMB] = {"lamb", nadam_moments, lamb_update, NULL, NULL},
    [TY_OPT_LARS] = {"lars", sgd_moments, lars_update, NULL, NULL},
    [TY_OPT_FTRL] = {"ftrl", ftrl_moments, ftrl_update, NULL, rows_plain},
    [TY_OPT_KERAS_SGD] = {"keras_sgd", sgd_moments, keras_sgd_update, NULL, sgd_rows},
    [TY_OPT_KERAS_ADAM] = {"keras_adam", adam_moments, keras_adam_update, NULL, adam_rows},
    [TY_OPT_KERAS_NADAM] = {"keras_nadam", nadam_moments, keras_nadam_update, nadam_product, NULL},
    [TY_OPT_KERAS_ADAMAX] = {"keras_adamax", adamax_moments, keras_adamax_update, NULL, NULL},
    [TY_OPT_KERAS_RMSPROP] = {"keras_rmsprop", rmsprop_moments, keras_rmsprop_update, NULL, NULL},
    [TY_OPT_KERAS_ADAGRAD] = {"keras_adagrad", adagrad_moments, keras_adagrad_update, NULL, rows_plain},
    [TY_OPT_KERAS_ADADELTA] = {"keras_adadelta", adadelta_moments, keras_adadelta_update, NULL, NULL},
    [TY_OPT_KERAS_LAMB] = {"keras_lamb", nadam_moments, keras_lamb_update, NULL, NULL},
};

ty_opt_reads ty_optimizer_reads(const ty_optimizer *o)
{
    static const uint8_t reads[TY_N_OPTIMIZER_KINDS] = {
        [TY_OPT_FTRL] = TY_OPT_READS_SQUARES,          [TY_OPT_KERAS_ADAM] = TY_OPT_READS_SQUARES,
        [TY_OPT_KERAS_NADAM] = TY_OPT_READS_SQUARES,   [TY_OPT_KERAS_ADAMAX] = TY_OPT_READS_SIZES,
        [TY_OPT_KERAS_RMSPROP] = TY_OPT_READS_SQUARES, [TY_OPT_KERAS_ADAGRAD] = TY_OPT_READS_SQUARES,
        [TY_OPT_KERAS_LAMB] = TY_OPT_READS_SQUARES,    [TY_OPT_KERAS_ADADELTA] = TY_OPT_READS_SQUARES};
    return (ty_opt_reads)reads[o->kind];
}

const char *ty_optimizer_text(ty_optimizer_kind kind)
{
    return kind < TY_N_OPTIMIZER_KINDS ? opt_kinds[kind].text : "?";
}

const char *ty_optimizer_refuses_rows(const ty_optimizer *o)
{
    const struct opt_kind *kind = &opt_kinds[o->kind];
    return kind->rows ? kind->rows(o) : "has no rule for some rows of a table alone";
}

ty_opt_moments ty_optimizer_moments(const ty_optimizer *o)
{
    return opt_kinds[o->kind].moments(o);
}

bool ty_optimizer_needs_product(const ty_optimizer *o)
{
    return opt_kinds[o->kind].product != NULL;
}

ty_val ty_optimizer_next_product(ty_graph *g, const ty_optimizer *o, const ty_opt_clock *clock)
{
    return opt_kinds[o->kind].product ? opt_kinds[o->kind].product(g, o, clock) : TY_NONE;
}

ty_val ty_optimizer_update(ty_graph *g, const ty_optimizer *o, const ty_opt_clock *clock, const ty_opt_group *group,
                           ty_val p, ty_val grad, const ty_val *moment, ty_val *next)
{
    opt_rule rule = {.g = g,
                     .o = o,
                     .clock = clock,
                     .decay = group->decay,
                     .by_rows = group->by_rows,
                     .segments = &group->segments,
                     .p = p,
                     .grad = grad,
                     .squares = group->squares,
                     .moment = moment,
                     .next = next};
    return opt_kinds[o->kind].update(&rule);
}
