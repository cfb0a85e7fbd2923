/* schedule.c - one function a kind. Formulas: PyTorch's schedulers in closed form, as train-cases/README.md has them.
 *
 * All in f64, so that step counts beyond 2^24 still change the rate.
 */
#include "compiler/passes/schedule.h"

#include "compiler/ir/build.h"
#include "compiler/passes/schedule_keras.h"

#include <math.h>

/* A span of steps that is used as a divisor. */
static double schedule_span(double steps)
{
    return steps > 1 ? steps : 1;
}

static ty_val schedule_number(ty_graph *g, double v)
{
    return ty_b_scalar(g, TY_F64, v);
}

static ty_val schedule_power_of(ty_graph *g, double base, ty_val exponent)
{
    return ty_b_binary(g, TY_OP_POW, schedule_number(g, base), exponent);
}

/* (1 + cos(pi p)) / 2: from 1 at p = 0 to 0 at p = 1. */
static ty_val schedule_cosine(ty_graph *g, ty_val p)
{
    ty_val wave = ty_b_unary(g, TY_OP_COS, ty_b_mul_s(g, p, M_PI));
    return ty_b_mul_s(g, ty_b_add_s(g, wave, 1), 0.5);
}

static ty_val schedule_constant(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    (void)s;
    (void)t;
    return schedule_number(g, lr);
}

static ty_val schedule_step(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    ty_val drops = ty_b_unary(g, TY_OP_FLOOR, ty_b_div(g, t, schedule_number(g, s->step_size)));
    return ty_b_mul_s(g, schedule_power_of(g, s->gamma, drops), lr);
}

static ty_val schedule_exponential(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    return ty_b_mul_s(g, schedule_power_of(g, s->gamma, t), lr);
}

static ty_val schedule_polynomial(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    ty_val total = schedule_number(g, s->total);
    ty_val left = ty_b_add_s(g, ty_b_neg(g, ty_b_div(g, ty_b_min(g, t, total), total)), 1);
    ty_val factor = s->power == 1 ? left : ty_b_binary(g, TY_OP_POW, left, schedule_number(g, s->power));
    return s->min_lr == 0 ? ty_b_mul_s(g, factor, lr) : ty_b_add_s(g, ty_b_mul_s(g, factor, lr - s->min_lr), s->min_lr);
}

static ty_val schedule_warmup_cosine(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    ty_val after = schedule_number(g, lr);
    if (s->cosine > 0) {
        ty_val p = ty_b_div(g, ty_b_add_s(g, t, -s->warmup), schedule_number(g, s->cosine));
        after = ty_b_add_s(g, ty_b_mul_s(g, schedule_cosine(g, p), lr - s->min_lr), s->min_lr);
    }
    if (!(s->warmup > 0))
        return after;
    ty_val rise = ty_b_mul_s(g, t, lr * (1 - s->start_factor) / s->warmup);
    ty_val before = ty_b_add_s(g, rise, lr * s->start_factor);
    return ty_b_select(g, ty_b_lt(g, t, schedule_number(g, s->warmup)), before, after);
}

/* From u at p = 0 to v at p = 1. */
static ty_val schedule_between(ty_graph *g, const ty_schedule *s, double u, double v, ty_val p)
{
    ty_val q = s->anneal_linear ? p : ty_b_add_s(g, ty_b_neg(g, schedule_cosine(g, p)), 1);
    return ty_b_add_s(g, ty_b_mul_s(g, q, v - u), u);
}

/* Behind the last step the rate stays where it is. */
static ty_val schedule_one_cycle(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    double start = lr / s->div_factor, end = start / s->final_div_factor;
    double peak = s->pct_start * s->total - 1, rest = s->total - 1 - peak;
    ty_val down_p = ty_b_mul_s(g, ty_b_add_s(g, t, -peak), rest > 0 ? 1 / rest : 0);
    ty_val down = schedule_between(g, s, lr, end, ty_b_min(g, down_p, schedule_number(g, 1)));
    if (peak <= 0)
        return down;
    ty_val up = schedule_between(g, s, start, lr, ty_b_mul_s(g, t, 1 / peak));
    return ty_b_select(g, ty_b_le(g, t, schedule_number(g, peak)), up, down);
}

/* PyTorch's CosineAnnealingWarmRestarts (Loshchilov and Hutter 2017, "SGDR"): cycle i has cycle * mult^i steps and
 * begins at step cycle (mult^i - 1) / (mult - 1). */
static ty_val schedule_cosine_restarts(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    double first = schedule_span(s->cycle), mult = s->cycle_mult;
    ty_val done = ty_b_div(g, t, schedule_number(g, first)), p;
    if (mult == 1) {
        p = ty_b_sub(g, done, ty_b_unary(g, TY_OP_FLOOR, done));
    } else {
        ty_val grown = ty_b_log(g, ty_b_add_s(g, ty_b_mul_s(g, done, mult - 1), 1));
        /* Rounding must not put the first step of a cycle into the last one. */
        ty_val cycle = ty_b_unary(g, TY_OP_FLOOR, ty_b_add_s(g, ty_b_mul_s(g, grown, 1 / log(mult)), 1e-10));
        ty_val size = schedule_power_of(g, mult, cycle);
        ty_val begin = ty_b_mul_s(g, ty_b_add_s(g, size, -1), first / (mult - 1));
        p = ty_b_div(g, ty_b_sub(g, t, begin), ty_b_mul_s(g, size, first));
    }
    return ty_b_add_s(g, ty_b_mul_s(g, schedule_cosine(g, p), lr - s->min_lr), s->min_lr);
}

/* PyTorch's MultiStepLR with factors of one's own: factors[i] from step boundaries[i - 1] on. */
static ty_val schedule_piecewise(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    ty_val v = schedule_number(g, lr * s->factors[0]);
    for (int i = 0; i < s->n_boundaries; i++)
        v = ty_b_select(g, ty_b_lt(g, t, schedule_number(g, s->boundaries[i])), v,
                        schedule_number(g, lr * s->factors[i + 1]));
    return v;
}

static const struct schedule_kind {
    const char *text;
    ty_schedule_fn *build;
} schedule_kinds[TY_N_SCHEDULE_KINDS] = {
    [TY_SCHED_CONSTANT] = {"constant", schedule_constant},
    [TY_SCHED_STEP] = {"step", schedule_step},
    [TY_SCHED_EXPONENTIAL] = {"exponential", schedule_exponential},
    [TY_SCHED_POLYNOMIAL] = {"polynomial", schedule_polynomial},
    [TY_SCHED_WARMUP_COSINE] = {"warmup_cosine", schedule_warmup_cosine},
    [TY_SCHED_ONE_CYCLE] = {"one_cycle", schedule_one_cycle},
    [TY_SCHED_COSINE_RESTARTS] = {"cosine_restarts", schedule_cosine_restarts},
    [TY_SCHED_PIECEWISE] = {"piecewise", schedule_piecewise},
    [TY_SCHED_PLATEAU] = {"plateau", schedule_constant},
    [TY_SCHED_KERAS_EXPONENTIAL] = {"keras_exponential", ty_schedule_keras_exponential},
    [TY_SCHED_KERAS_INVERSE_TIME] = {"keras_inverse_time", ty_schedule_keras_inverse_time},
    [TY_SCHED_KERAS_POLYNOMIAL] = {"keras_polynomial", ty_schedule_keras_polynomial},
    [TY_SCHED_KERAS_COSINE] = {"keras_cosine", ty_schedule_keras_cosine},
    [TY_SCHED_KERAS_COSINE_RESTARTS] = {"keras_cosine_restarts", ty_schedule_keras_cosine_restarts},
};

const char *ty_schedule_text(ty_schedule_kind kind)
{
    return kind < TY_N_SCHEDULE_KINDS ? schedule_kinds[kind].text : "?";
}

/* As PyTorch's SequentialLR of LinearLR and the schedule: it begins behind the ramp. Its first rate is ramped. */
static ty_val schedule_ramped(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    ty_val zero = schedule_number(g, 0), one = schedule_number(g, 1);
    ty_val v = schedule_kinds[s->kind].build(g, s, lr, ty_b_max(g, ty_b_add_s(g, t, -s->ramp), zero));
    ty_val rise = ty_b_add_s(g, ty_b_mul_s(g, t, (1 - s->ramp_start) / s->ramp), s->ramp_start);
    ty_val share = ty_b_select(g, ty_b_lt(g, t, schedule_number(g, s->ramp)), rise, one);
    return ty_b_mul(g, v, share);
}

ty_val ty_schedule_build(ty_graph *g, const ty_schedule *s, double lr, ty_val t, ty_val plateau)
{
    if ((unsigned)s->kind >= TY_N_SCHEDULE_KINDS)
        return ty_graph_fail(g, TY_E_INTERNAL, "schedule: no kind %d", (int)s->kind);
    ty_val v = s->ramp > 0 ? schedule_ramped(g, s, lr, t) : schedule_kinds[s->kind].build(g, s, lr, t);
    return plateau == TY_NONE ? v : ty_b_mul(g, v, plateau);
}

/* PyTorch's ReduceLROnPlateau.step(). */
bool ty_plateau_note(const ty_schedule *s, double lr, double *state, double value)
{
    double sign = s->maximize ? -1 : 1, best = state[TY_PLATEAU_BEST];
    double margin = s->threshold_absolute ? s->threshold : s->threshold * best;
    bool better = !state[TY_PLATEAU_SEEN] || sign * value < sign * best - margin;
    if (better && !isnan(value)) {
        state[TY_PLATEAU_SEEN] = 1;
        state[TY_PLATEAU_BEST] = value;
        state[TY_PLATEAU_BAD] = 0;
    } else {
        state[TY_PLATEAU_BAD]++;
    }
    if (state[TY_PLATEAU_COOLDOWN] > 0) {
        state[TY_PLATEAU_COOLDOWN]--;
        state[TY_PLATEAU_BAD] = 0;
    }
    if (state[TY_PLATEAU_BAD] <= s->patience)
        return false;
    double old = lr * state[TY_PLATEAU_FACTOR], fresh = fmax(old * s->factor, s->min_lr);
    state[TY_PLATEAU_COOLDOWN] = s->cooldown;
    state[TY_PLATEAU_BAD] = 0;
    if (!(old - fresh > 1e-8)) /* PyTorch's eps: smaller changes are not made */
        return false;
    state[TY_PLATEAU_FACTOR] = fresh / lr;
    return true;
}
