/* schedule_keras.c - see schedule_keras.h. All in f64, as schedule.c. */
#include "compiler/passes/schedule_keras.h"

#include "compiler/ir/build.h"

#include <math.h>

static ty_val keras_number(ty_graph *g, double v)
{
    return ty_b_scalar(g, TY_F64, v);
}

/* t / decay_steps, whole stairs of it if asked for. */
static ty_val keras_share(ty_graph *g, const ty_schedule *s, ty_val t)
{
    ty_val share = ty_b_div(g, t, keras_number(g, s->decay_steps));
    return s->staircase ? ty_b_unary(g, TY_OP_FLOOR, share) : share;
}

ty_val ty_schedule_keras_exponential(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    ty_val power = ty_b_binary(g, TY_OP_POW, keras_number(g, s->decay_rate), keras_share(g, s, t));
    return ty_b_mul_s(g, power, lr);
}

ty_val ty_schedule_keras_inverse_time(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    ty_val size = ty_b_add_s(g, ty_b_mul_s(g, keras_share(g, s, t), s->decay_rate), 1);
    return ty_b_div(g, keras_number(g, lr), size);
}

ty_val ty_schedule_keras_polynomial(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    ty_val n = keras_number(g, s->decay_steps);
    if (s->cycles) {
        ty_val minus = ty_b_unary(g, TY_OP_FLOOR, ty_b_neg(g, ty_b_div(g, t, n)));
        n = ty_b_mul(g, n, ty_b_max(g, ty_b_neg(g, minus), keras_number(g, 1)));
    } else {
        t = ty_b_min(g, t, n);
    }
    ty_val left = ty_b_add_s(g, ty_b_neg(g, ty_b_div(g, t, n)), 1);
    ty_val factor = s->power == 1 ? left : ty_b_binary(g, TY_OP_POW, left, keras_number(g, s->power));
    return ty_b_add_s(g, ty_b_mul_s(g, factor, lr - s->min_lr), s->min_lr);
}

/* high ((1 - alpha) factor (1 + cos(pi p)) / 2 + alpha) */
static ty_val keras_wave(ty_graph *g, const ty_schedule *s, double high, ty_val p, ty_val factor)
{
    ty_val wave = ty_b_add_s(g, ty_b_unary(g, TY_OP_COS, ty_b_mul_s(g, p, M_PI)), 1);
    if (factor != TY_NONE)
        wave = ty_b_mul(g, wave, factor);
    return ty_b_add_s(g, ty_b_mul_s(g, wave, 0.5 * (1 - s->alpha) * high), s->alpha * high);
}

ty_val ty_schedule_keras_cosine(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    double high = s->has_target ? s->target : lr, warmup = s->has_target ? s->warmup : 0;
    ty_val one = keras_number(g, 1), n = keras_number(g, s->decay_steps);
    ty_val p = ty_b_min(g, ty_b_div(g, ty_b_add_s(g, t, -warmup), n), one);
    ty_val after = keras_wave(g, s, high, p, TY_NONE);
    if (!(warmup > 0))
        return after;
    ty_val before = ty_b_add_s(g, ty_b_mul_s(g, t, (high - lr) / warmup), lr);
    return ty_b_select(g, ty_b_lt(g, t, keras_number(g, warmup)), before, after);
}

/* As schedule.c's restarts, with a number for the cycle. */
ty_val ty_schedule_keras_cosine_restarts(ty_graph *g, const ty_schedule *s, double lr, ty_val t)
{
    double mult = s->cycle_mult;
    ty_val done = ty_b_div(g, t, keras_number(g, s->cycle)), cycle, p;
    if (mult == 1) {
        cycle = ty_b_unary(g, TY_OP_FLOOR, done);
        p = ty_b_sub(g, done, cycle);
    } else {
        ty_val grown = ty_b_log(g, ty_b_add_s(g, ty_b_mul_s(g, done, mult - 1), 1));
        /* Rounding must not put the first step of a cycle into the last one. */
        cycle = ty_b_unary(g, TY_OP_FLOOR, ty_b_add_s(g, ty_b_mul_s(g, grown, 1 / log(mult)), 1e-10));
        ty_val size = ty_b_binary(g, TY_OP_POW, keras_number(g, mult), cycle);
        ty_val begin = ty_b_mul_s(g, ty_b_add_s(g, size, -1), 1 / (mult - 1));
        p = ty_b_div(g, ty_b_sub(g, done, begin), size);
    }
    ty_val factor = s->m_mul == 1 ? TY_NONE : ty_b_binary(g, TY_OP_POW, keras_number(g, s->m_mul), cycle);
    return keras_wave(g, s, lr, p, factor);
}
