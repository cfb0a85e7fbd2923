/* Schedules: learning rates at hand-made points, and whole courses that PyTorch 2.15 printed. */
#include "tests/unit/evaluate.h"

#include "compiler/passes/schedule.h"

#include <math.h>

static double rate(const ty_schedule *s, double lr, double t)
{
    ty_graph *g = ty_graph_new();
    ty_val clock = new_input(g, TY_F64, 0, NULL);
    const void *inputs[] = {&t};
    double v = *(double *)evaluate(g, ty_schedule_build(g, s, lr, clock), inputs, false);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_stays),
        cmocka_unit_test(step_drops_at_its_size),
        cmocka_unit_test(exponential_multiplies),
        cmocka_unit_test(polynomial_ends_at_zero),
        cmocka_unit_test(warmup_rises_then_falls),
        cmocka_unit_test(warmup_of_none_starts_at_the_top),
        cmocka_unit_test(one_cycle_is_pytorchs),
        cmocka_unit_test(one_cycle_goes_straight),
        cmocka_unit_test(one_cycle_without_a_rise_only_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
