/* optimizer.c - see optimizer.h. In the rules p is the parameter, g its gradient, d the weight decay, k counts from 1.
 */
#include "compiler/passes/optimizer.h"

#include "compiler/ir/build.h"

/* One group's update while it is built. */
typedef struct opt_rule {
    ty_graph *g;
    const ty_optimizer *o;
    const ty_opt_clock *clock;
    double decay;
    ty_val p, grad;
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

static ty_opt_moments adam_moments(const ty_optimizer *o)
{
    return (ty_opt_moments){o->amsgrad ? 3 : 2, {"m", "v", "x"}};
}

/* m and v of the adam family, into next[0] and next[1]. */
static void adam_averages(const opt_rule *r, ty_val g)
{
    r->next[0] = opt_blend(r, r->o->beta1, r->moment[0], 1 - r->o->beta1, g);
    r->next[1] = opt_blend(r, r->o->beta2, r->moment[1], 1 - r->o->beta2, ty_b_square(r->g, g));
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

static ty_val adam_update(const opt_rule *r)
{
    return adam_step(r, r->p, opt_decayed(r));
}

static ty_val adamw_update(const opt_rule *r)
{
    ty_val p = r->p;
    if (r->decay != 0) {
        ty_val keep = ty_b_add_s(r->g, ty_b_mul_s(r->g, r->clock->lr, -r->decay), 1);
        p = ty_b_mul(r->g, p, opt_f32(r, keep));
    }
    return adam_step(r, p, r->grad);
}

static ty_opt_moments nadam_moments(const ty_optimizer *o)
{
    (void)o;
    return (ty_opt_moments){2, {"m", "v"}};
}

/* u(i) = beta1 (1 - 0.96^(i momentum_decay) / 2) */
static ty_val nadam_u(ty_graph *g, const ty_optimizer *o, ty_val i)
{
    ty_val power = ty_b_binary(g, TY_OP_POW, opt_number(g, 0.96), ty_b_mul_s(g, i, o->momentum_decay));
    return ty_b_mul_s(g, ty_b_add_s(g, ty_b_mul_s(g, power, -0.5), 1), o->beta1);
}

static ty_val nadam_product(ty_graph *g, const ty_optimizer *o, const ty_opt_clock *clock)
{
    return ty_b_mul(g, clock->product, nadam_u(g, o, clock->k));
}

static ty_val nadam_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    ty_val g = opt_decayed(r), one = opt_number(b, 1), lr = r->clock->lr;
    adam_averages(r, g);
    ty_val u = nadam_u(b, r->o, r->clock->k), after = nadam_u(b, r->o, ty_b_add_s(b, r->clock->k, 1));
    ty_val product = nadam_product(b, r->o, r->clock);
    ty_val scale = ty_b_reciprocal(b, opt_sqrt(r, opt_correction(r, r->o->beta2)));
    ty_val size = ty_b_add_s(b, ty_b_mul(b, opt_sqrt(r, r->next[1]), opt_f32(r, scale)), r->o->eps);
    ty_val now = ty_b_div(b, ty_b_mul(b, lr, ty_b_sub(b, one, u)), ty_b_sub(b, one, product));
    ty_val then = ty_b_div(b, ty_b_mul(b, lr, after), ty_b_sub(b, one, ty_b_mul(b, product, after)));
    ty_val p = opt_descend(r, r->p, now, ty_b_div(b, g, size));
    return opt_descend(r, p, then, ty_b_div(b, r->next[0], size));
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

static ty_opt_moments rmsprop_moments(const ty_optimizer *o)
{
    ty_opt_moments m = {1, {"v"}};
    if (o->centered)
        m.name[m.n++] = "a";
    if (o->momentum != 0)
        m.name[m.n++] = "m";
    return m;
}

static ty_val rmsprop_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    int at = 1;
    ty_val g = opt_decayed(r);
    ty_val v = opt_blend(r, r->o->alpha, r->moment[0], 1 - r->o->alpha, ty_b_square(b, g)), x = v;
    r->next[0] = v;
    if (r->o->centered) {
        ty_val a = opt_blend(r, r->o->alpha, r->moment[at], 1 - r->o->alpha, g);
        x = ty_b_sub(b, v, ty_b_square(b, a));
        r->next[at++] = a;
    }
    ty_val q = ty_b_div(b, g, ty_b_add_s(b, opt_sqrt(r, x), r->o->eps));
    if (r->o->momentum != 0)
        q = r->next[at] = ty_b_add(b, ty_b_mul_s(b, r->moment[at], r->o->momentum), q);
    return opt_descend(r, r->p, r->clock->lr, q);
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

static ty_opt_moments adadelta_moments(const ty_optimizer *o)
{
    (void)o;
    return (ty_opt_moments){2, {"v", "s"}};
}

static ty_val adadelta_update(const opt_rule *r)
{
    ty_graph *b = r->g;
    double rho = r->o->rho;
    ty_val g = opt_decayed(r), v = opt_blend(r, rho, r->moment[0], 1 - rho, ty_b_square(b, g));
    ty_val top = opt_sqrt(r, ty_b_add_s(b, r->moment[1], r->o->eps));
    ty_val q = ty_b_mul(b, ty_b_div(b, top, opt_sqrt(r, ty_b_add_s(b, v, r->o->eps))), g);
    r->next[0] = v;
    r->next[1] = opt_blend(r, rho, r->moment[1], 1 - rho, ty_b_square(b, q));
    return opt_descend(r, r->p, r->clock->lr, q);
}

/* ---- the table
 * ------------------------------------------------------------------------------------------------------- */

static const struct opt_kind {
    const char *text;
    ty_opt_moments (*moments)(const ty_optimizer *o);
    ty_val (*update)(const opt_rule *r);
    ty_val (*product)(ty_graph *g, const ty_optimizer *o, const ty_opt_clock *clock);
} opt_kinds[TY_N_OPTIMIZER_KINDS] = {
    [TY_OPT_SGD] = {"sgd", sgd_moments, sgd_update, NULL},
    [TY_OPT_ADAM] = {"adam", adam_moments, adam_update, NULL},
    [TY_OPT_ADAMW] = {"adamw", adam_moments, adamw_update, NULL},
    [TY_OPT_NADAM] = {"nadam", nadam_moments, nadam_update, nadam_product},
    [TY_OPT_ADAMAX] = {"adamax", adamax_moments, adamax_update, NULL},
    [TY_OPT_RMSPROP] = {"rmsprop", rmsprop_moments, rmsprop_update, NULL},
    [TY_OPT_ADAGRAD] = {"adagrad", adagrad_moments, adagrad_update, NULL},
    [TY_OPT_ADADELTA] = {"adadelta", adadelta_moments, adadelta_update, NULL},
};

const char *ty_optimizer_text(ty_optimizer_kind kind)
{
    return kind < TY_N_OPTIMIZER_KINDS ? opt_kinds[kind].text : "?";
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

ty_val ty_optimizer_update(ty_graph *g, const ty_optimizer *o, const ty_opt_clock *clock, double decay, ty_val p,
                           ty_val grad, const ty_val *moment, ty_val *next)
{
    opt_rule rule = {g, o, clock, decay, p, grad, moment, next};
    return opt_kinds[o->kind].update(&rule);
}
