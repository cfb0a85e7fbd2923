/* Schedules: learning rates at hand-made points, and whole courses that PyTorch 2.15 printed. */
#include "tests/unit/evaluate.h"

#include "compiler/passes/schedule.h"

#include <math.h>

/* PyTorch 2.15's numbers: for _ in range(n): print(optimizer.param_groups[0]["lr"]); optimizer.step();
 * scheduler.step(), with SGD([p], lr=0.5), in 10 digits. */

static double rate(const ty_schedule *s, double lr, double t)
{
    ty_graph *g = ty_graph_new();
    ty_val clock = new_input(g, TY_F64, 0, NULL);
    const void *inputs[] = {&t};
    double v = *(double *)evaluate(g, ty_schedule_build(g, s, lr, clock, TY_NONE), inputs, false);
    ty_graph_free(g);
    return v;
}

static void expect_rate(const ty_schedule *s, double lr, double t, double want)
{
    double got = rate(s, lr, t);
    if (!(fabs(got - want) <= 1e-7 * fabs(want) + 1e-15))
        fail_msg("%s at %g: expected %.12g, found %.12g", ty_schedule_text(s->kind), t, want, got);
}

static void expect_course(const ty_schedule *s, double lr, int n, const double *want)
{
    for (int t = 0; t < n; t++)
        expect_rate(s, lr, t, want[t]);
}

static void constant_stays(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_CONSTANT};
    expect_course(&s, 0.3, 3, (double[]){0.3, 0.3, 0.3});
}

static void step_drops_at_its_size(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_STEP, .step_size = 3, .gamma = 0.5};
    expect_course(&s, 0.8, 8, (double[]){0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2});
}

static void exponential_multiplies(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_EXPONENTIAL, .gamma = 0.5};
    expect_course(&s, 1, 4, (double[]){1, 0.5, 0.25, 0.125});
    s.gamma = 0.999999;
    expect_rate(&s, 1, 20000000, exp(20000000 * log(0.999999))); /* beyond what f32 counts */
}

static void polynomial_ends_at_zero(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_POLYNOMIAL, .total = 4, .power = 2};
    expect_course(&s, 1, 7, (double[]){1, 0.5625, 0.25, 0.0625, 0, 0, 0});
    s.power = 1;
    expect_course(&s, 1, 5, (double[]){1, 0.75, 0.5, 0.25, 0});
}

static void warmup_rises_then_falls(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_WARMUP_COSINE, .warmup = 4, .start_factor = 0.2, .cosine = 4, .min_lr = 0.1};
    double half = 0.1 + 0.9 * (1 + cos(acos(-1) / 4)) / 2;
    expect_course(&s, 1, 9, (double[]){0.2, 0.4, 0.6, 0.8, 1, half, 0.55, 1.1 - half, 0.1});
}

static void warmup_of_none_starts_at_the_top(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_WARMUP_COSINE, .cosine = 2};
    expect_course(&s, 1, 3, (double[]){1, 0.5, 0});
}

/* lr 0.01, total 15, pct_start 0.25, div_factor 25, final_div_factor 1000, cosine. */
static void one_cycle_is_pytorchs(void **state)
{
    (void)state;
    ty_schedule s = {
        .kind = TY_SCHED_ONE_CYCLE, .total = 15, .pct_start = 0.25, .div_factor = 25, .final_div_factor = 1000};
    static const double want[] = {0.0004,       0.0032060079, 0.0083433315,  0.0099878207,  0.0096984752,
                                  0.0090451232, 0.0080783842, 0.0068731580,  0.0055228214,  0.0041319938,
                                  0.0028084319, 0.0016546808, 0.00076012913, 0.00019408377, 4e-07};
    for (int t = 0; t < 15; t++) {
        double got = rate(&s, 0.01, t);
        if (!(fabs(got - want[t]) <= 1e-7 * want[t])) /* printed with 8 digits */
            fail_msg("at %d: expected %.9g, found %.9g", t, want[t], got);
    }
    expect_rate(&s, 0.01, 99, 4e-07);
}

static void one_cycle_goes_straight(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_ONE_CYCLE,
                     .total = 7,
                     .pct_start = 3.0 / 7,
                     .div_factor = 10,
                     .final_div_factor = 2,
                     .anneal_linear = true};
    expect_course(&s, 1, 7, (double[]){0.1, 0.55, 1, 0.7625, 0.525, 0.2875, 0.05});
}

static void one_cycle_without_a_rise_only_falls(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_ONE_CYCLE,
                     .total = 5,
                     .pct_start = 0.2,
                     .div_factor = 10,
                     .final_div_factor = 1,
                     .anneal_linear = true};
    expect_rate(&s, 1, 0, 1);
    expect_rate(&s, 1, 4, 0.1);
}

static void expect_pytorchs(const ty_schedule *s, int n, const double *want)
{
    for (int t = 0; t < n; t++) {
        double got = rate(s, 0.5, t);
        if (!(fabs(got - want[t]) <= 1e-9 * want[t] + 1e-12))
            fail_msg("%s at %d: expected %.10g, found %.10g", ty_schedule_text(s->kind), t, want[t], got);
    }
}

/* MultiStepLR(o, [2, 5], gamma=0.1) */
static void piecewise_is_multi_step(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_PIECEWISE,
                     .boundaries = (double[]){2, 5},
                     .factors = (double[]){1, 0.1, 0.01},
                     .n_boundaries = 2};
    expect_pytorchs(&s, 8, (double[]){0.5, 0.5, 0.05, 0.05, 0.05, 0.005, 0.005, 0.005});
}

/* CosineAnnealingWarmRestarts(o, 4, 1, eta_min=0.1), (o, 2, 2, eta_min=0.1) */
static void cosine_restarts(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_COSINE_RESTARTS, .cycle = 4, .cycle_mult = 1, .min_lr = 0.1};
    expect_pytorchs(
        &s, 10,
        (double[]){0.5, 0.4414213562, 0.3, 0.1585786438, 0.5, 0.4414213562, 0.3, 0.1585786438, 0.5, 0.4414213562});
    s.cycle = s.cycle_mult = 2;
    expect_pytorchs(&s, 15,
                    (double[]){0.5, 0.3, 0.5, 0.4414213562, 0.3, 0.1585786438, 0.5, 0.4847759065, 0.4414213562,
                               0.3765366865, 0.3, 0.2234633135, 0.1585786438, 0.1152240935, 0.5});
    for (double mult = 3; mult <= 10; mult++)
        for (double end = 1, size = 1, i = 0; i < 7; i++, size *= mult, end += size) {
            ty_schedule c = {.kind = TY_SCHED_COSINE_RESTARTS, .cycle = 1, .cycle_mult = mult};
            double last = rate(&c, 1, end - 1), first = rate(&c, 1, end);
            if (!(fabs(first - 1) < 1e-6) || (size > 2 && last > 0.7))
                fail_msg("mult %g, at %g: %g, then %g", mult, end, last, first);
        }
}

/* LinearLR(o, 1.0, 0.2, 5) */
static void polynomial_ends_where_it_is_told(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_POLYNOMIAL, .total = 5, .power = 1, .min_lr = 0.1};
    expect_pytorchs(&s, 8, (double[]){0.5, 0.42, 0.34, 0.26, 0.18, 0.1, 0.1, 0.1});
}

/* SequentialLR(o, [LinearLR(o, 0.2, 1.0, 4), PolynomialLR(o, 6, 2.0)], [4]) and
 * SequentialLR(o, [LinearLR(o, 0.25, 1.0, 3), StepLR(o, 2, 0.5)], [3]) */
static void a_ramp_stands_in_front(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_POLYNOMIAL, .total = 6, .power = 2, .ramp = 4, .ramp_start = 0.2};
    expect_pytorchs(
        &s, 12,
        (double[]){0.1, 0.2, 0.3, 0.4, 0.5, 0.3472222222, 0.2222222222, 0.125, 0.05555555556, 0.01388888889, 0, 0});
    ty_schedule t = {.kind = TY_SCHED_STEP, .step_size = 2, .gamma = 0.5, .ramp = 3, .ramp_start = 0.25};
    expect_pytorchs(&t, 9, (double[]){0.125, 0.25, 0.375, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125});
}

static void expect_plateau(const ty_schedule *s, const double *want)
{
    static const double seen[] = {1, .8, .8, .81, .9, .7, .7, .7, .7, .7, .7, .7, .2, .2, .2, .2, .2, .2};
    double state[TY_PLATEAU_NUMBERS] = {[TY_PLATEAU_FACTOR] = 1}, last = 0.5;
    for (int i = 0; i < 18; i++) {
        bool fell = ty_plateau_note(s, 0.5, state, seen[i]);
        double got = 0.5 * state[TY_PLATEAU_FACTOR];
        if (!(fabs(got - want[i]) <= 1e-9 * want[i]))
            fail_msg("evaluation %d: expected %.10g, found %.10g", i, want[i], got);
        assert_int_equal(fell, got < last);
        last = got;
    }
}

/* ReduceLROnPlateau(o, "min", 0.5, patience=1, threshold=1e-4, min_lr=0.05); (o, "max", 0.3, patience=2, threshold=0.1,
 * cooldown=2); (o, "min", 0.1, patience=0, threshold=0.05, threshold_mode="abs", cooldown=1): step() with `seen` */
static void plateau_is_pytorchs(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_PLATEAU, .factor = 0.5, .patience = 1, .threshold = 1e-4, .min_lr = 0.05};
    expect_plateau(
        &s, (double[]){.5, .5, .5, .25, .25, .25, .25, .125, .125, .0625, .0625, .05, .05, .05, .05, .05, .05, .05});
    ty_schedule max = {
        .kind = TY_SCHED_PLATEAU, .factor = 0.3, .patience = 2, .threshold = 0.1, .cooldown = 2, .maximize = true};
    expect_plateau(&max, (double[]){.5, .5, .5, .15, .15, .15, .15, .15, .045, .045, .045, .045, .045, .0135, .0135,
                                    .0135, .0135, .0135});
    ty_schedule abs = {
        .kind = TY_SCHED_PLATEAU, .factor = 0.1, .threshold = 0.05, .threshold_absolute = true, .cooldown = 1};
    expect_plateau(&abs, (double[]){.5, .5, .05, .05, .005, .005, 5e-4, 5e-4, 5e-5, 5e-5, 5e-6, 5e-6, 5e-6, 5e-7, 5e-7,
                                    5e-8, 5e-8, 5e-9});
}

static void plateau_multiplies(void **state)
{
    (void)state;
    ty_schedule s = {.kind = TY_SCHED_PLATEAU};
    ty_graph *g = ty_graph_new();
    double t = 3, factor = 0.25;
    const void *inputs[] = {&t, &factor};
    ty_val clock = new_input(g, TY_F64, 0, NULL), plateau = new_input(g, TY_F64, 0, NULL);
    assert_true(*(double *)evaluate(g, ty_schedule_build(g, &s, 0.5, clock, plateau), inputs, false) == 0.125);
    ty_graph_free(g);
}

/* Keras 3.15, float32: float(keras.optimizers.schedules.NAME(...)(t)). Near the border of a cycle its logarithm rounds.
 */
static void schedules_are_keras(void **state)
{
    (void)state;
    static const struct {
        ty_schedule s;
        double lr, want[12];
    } courses[] = {
        {{.kind = TY_SCHED_KERAS_EXPONENTIAL, .decay_steps = 4, .decay_rate = 0.7},
         0.2,
         {0.200000003, 0.182938248, 0.167332008, 0.153057113, 0.140000001, 0.128056765, 0.117132403, 0.107139982,
          0.0979999974, 0.0896397382, 0.0819926783, 0.0749979839}},
        {{.kind = TY_SCHED_KERAS_EXPONENTIAL, .decay_steps = 4, .decay_rate = 0.7, .staircase = true},
         0.2,
         {0.200000003, 0.200000003, 0.200000003, 0.200000003, 0.140000001, 0.140000001, 0.140000001, 0.140000001,
          0.0979999974, 0.0979999974, 0.0979999974, 0.0979999974}},
        {{.kind = TY_SCHED_KERAS_INVERSE_TIME, .decay_steps = 5, .decay_rate = 0.5},
         0.2,
         {0.200000003, 0.181818187, 0.166666657, 0.15384616, 0.142857149, 0.13333334, 0.125, 0.117647059, 0.111111119,
          0.105263159, 0.100000001, 0.0952381045}},
        {{.kind = TY_SCHED_KERAS_INVERSE_TIME, .decay_steps = 5, .decay_rate = 0.5, .staircase = true},
         0.2,
         {0.200000003, 0.200000003, 0.200000003, 0.200000003, 0.200000003, 0.13333334, 0.13333334, 0.13333334,
          0.13333334, 0.13333334, 0.100000001, 0.100000001}},
        {{.kind = TY_SCHED_KERAS_POLYNOMIAL, .decay_steps = 5, .min_lr = 0.01, .power = 1.5},
         0.2,
         {0.200000003, 0.14595294, 0.0983040258, 0.058066614, 0.0269941147, 0.00999999978, 0.00999999978, 0.00999999978,
          0.00999999978, 0.00999999978, 0.00999999978, 0.00999999978}},
        {{.kind = TY_SCHED_KERAS_POLYNOMIAL, .decay_steps = 5, .min_lr = 0.01, .power = 2, .cycles = true},
         0.2,
         {0.200000003, 0.131600007, 0.0784000009, 0.0403999984, 0.0175999999, 0.00999999978, 0.0403999984, 0.0271000005,
          0.0175999999, 0.0119000003, 0.00999999978, 0.0235111099}},
        {{.kind = TY_SCHED_KERAS_COSINE, .decay_steps = 6, .alpha = 0.2},
         0.1,
         {0.100000001, 0.0946410224, 0.0800000057, 0.0599999987, 0.0399999991, 0.0253589842, 0.0200000014, 0.0200000014,
          0.0200000014, 0.0200000014, 0.0200000014, 0.0200000014}},
        {{.kind = TY_SCHED_KERAS_COSINE,
          .decay_steps = 6,
          .alpha = 0.2,
          .target = 0.1,
          .has_target = true,
          .warmup = 3},
         0.01,
         {0.00999999978, 0.0399999991, 0.0700000003, 0.100000001, 0.0946410224, 0.0800000057, 0.0599999987,
          0.0399999991, 0.0253589842, 0.0200000014, 0.0200000014, 0.0200000014}},
        {{.kind = TY_SCHED_KERAS_COSINE_RESTARTS, .cycle = 3, .cycle_mult = 2, .m_mul = 0.5, .alpha = 0.1},
         0.1,
         {0.100000001, 0.0775000006, 0.0324999951, 0.0550000034, 0.051985573, 0.0437499993, 0.0324999988, 0.0212500039,
          0.0130144274, 0.0324999988, 0.0321166664, 0.0309927855}},
        {{.kind = TY_SCHED_KERAS_COSINE_RESTARTS, .cycle = 4, .cycle_mult = 1, .m_mul = 0.8},
         0.1,
         {0.100000001, 0.0853553414, 0.049999997, 0.0146446619, 0.0800000057, 0.0682842731, 0.0399999991, 0.0117157297,
          0.064000003, 0.054627426, 0.0320000015, 0.00937258359}},
    };
    for (size_t i = 0; i < sizeof courses / sizeof courses[0]; i++)
        for (int t = 0; t < 12; t++) {
            double got = rate(&courses[i].s, courses[i].lr, t), want = courses[i].want[t];
            if (!(fabs(got - want) <= 1e-6 * want))
                fail_msg("%zu: %s at %d: expected %.9g, found %.9g", i, ty_schedule_text(courses[i].s.kind), t, want,
                         got);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_are_keras),
        cmocka_unit_test(constant_stays),
        cmocka_unit_test(step_drops_at_its_size),
        cmocka_unit_test(exponential_multiplies),
        cmocka_unit_test(polynomial_ends_at_zero),
        cmocka_unit_test(warmup_rises_then_falls),
        cmocka_unit_test(warmup_of_none_starts_at_the_top),
        cmocka_unit_test(one_cycle_is_pytorchs),
        cmocka_unit_test(one_cycle_goes_straight),
        cmocka_unit_test(one_cycle_without_a_rise_only_falls),
        cmocka_unit_test(piecewise_is_multi_step),
        cmocka_unit_test(cosine_restarts),
        cmocka_unit_test(polynomial_ends_where_it_is_told),
        cmocka_unit_test(a_ramp_stands_in_front),
        cmocka_unit_test(plateau_is_pytorchs),
        cmocka_unit_test(plateau_multiplies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
