/* The training loop against a trace: which call comes when, for runs that end, stop, resume and fail. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "entrypoint/loop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct trace {
    char text[4096];
    int64_t step, stop_before, nan_at, inf_norm_at; /* -1: never */
    int64_t taken;                                  /* results */
    double loss_scale;
    const char *fail;             /* name of the call that fails */
    int64_t epoch, batch;         /* streams: where batches come from; epoch e has 2 + e % 2 of them */
    int64_t better_at, enough_at; /* evaluations of these steps say so; 0: none */
    int64_t last_batch;           /* this one does not come, and the run is told to stop; counted from 1, 0: all come */
} trace;

static void note(trace *t, const char *fmt, ...) TY_PRINTF(2, 3);
static void note(trace *t, const char *fmt, ...)
{
    size_t len = strlen(t->text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(t->text + len, sizeof t->text - len, fmt, args);
    va_end(args);
}

static int outcome(trace *t, const char *name, ty_error *err)
{
    return t->fail && strcmp(t->fail, name) == 0 ? ty_error_set(err, TY_E_IO, "%s failed", name) : 0;
}

static int on_batch(void *ctx, bool last, ty_error *err)
{
    trace *t = ctx;
    if (t->last_batch > 0 && t->last_batch-- == 1)
        return TY_LOOP_STOPPED;
    note(t, last ? "B" : "b");
    t->step += last;
    t->batch++;
    bool ends = t->batch == 2 + t->epoch % 2;
    t->epoch += ends;
    t->batch = ends ? 0 : t->batch;
    return outcome(t, "batch", err) < 0 ? -1 : ends ? TY_LOOP_EPOCH_ENDS : 0;
}
static int on_drop(void *ctx, ty_error *err)
{
    note(ctx, "x");
    return outcome(ctx, "drop", err);
}
static int on_result(void *ctx, ty_step_result *r, ty_error *err)
{
    trace *t = ctx;
    t->taken++;
    assert_true(t->taken <= t->step);
    if (t->step > t->taken)
        note(t, "<%lld>", (long long)t->taken);
    *r = (ty_step_result){t->taken == t->nan_at ? NAN : (double)t->taken, 0.5,
                          t->taken == t->inf_norm_at ? INFINITY : 1, t->loss_scale};
    return outcome(t, "result", err);
}
static int on_evaluate(void *ctx, const ty_loop_position *at, ty_error *err)
{
    trace *t = ctx;
    note(t, " E%lld ", (long long)at->step);
    return outcome(t, "evaluate", err) < 0            ? -1
           : t->better_at && at->step == t->better_at ? TY_LOOP_BETTER
           : t->enough_at && at->step == t->enough_at ? TY_LOOP_ENOUGH
                                                      : 0;
}
static int on_checkpoint(void *ctx, const ty_loop_position *at, ty_error *err)
{
    note(ctx, " C%lld(%lld,%lld) ", (long long)at->step, (long long)at->epoch, (long long)at->batch);
    return outcome(ctx, "checkpoint", err);
}
static int on_report(void *ctx, const ty_loop_report *r, ty_error *err)
{
    note(ctx, " R%lld/%lld=%g ", (long long)r->at.step, (long long)r->n_steps, r->mean_loss);
    return outcome(ctx, "report", err);
}
static bool on_stop(void *ctx)
{
    trace *t = ctx;
    return t->stop_before >= 0 && t->step >= t->stop_before;
}

#define KNOWN 0, 0, 0, false /* nothing is said of epochs: their length is known */

static int run(trace *t, const ty_loop_plan *given, ty_loop_result *result, ty_error *err)
{
    ty_loop_plan own = *given, *plan = &own;
    ty_loop_calls calls = {.ctx = t,
                           .batch = on_batch,
                           .drop = on_drop,
                           .result = on_result,
                           .evaluate = on_evaluate,
                           .checkpoint = on_checkpoint,
                           .report = on_report,
                           .stop_requested = on_stop};
    t->step = t->taken = plan->first_step;
    t->epoch = plan->first_epoch;
    t->batch = plan->first_batch;
    int rc = ty_loop_run(plan, &calls, result, err);
    if (rc == 0 && !result->stopped && plan->batches_per_epoch == 0) /* the end is known now */
        assert_int_equal(plan->total_steps, result->steps_done);
    return rc;
}

typedef struct row {
    const char *name;
    ty_loop_plan plan;
    int64_t stop_before;
    const char *expected;
    int64_t steps_done;
    bool stopped;
} row;

#define NEVER .stop_before = -1
static const row rows[] = {
    {"plain", {0, 3, 3, 1, {0}, {0}, {0}, 1, KNOWN}, NEVER, "BBB R3/3=2  E3  C3(1,0) ", 3, false},
    {"by steps",
     {0, 4, 10, 1, {2, false}, {0}, {3, false}, 1, KNOWN},
     NEVER,
     "BB R2/2=1.5 B C3(0,3) B R4/2=3.5  E4  C4(0,4) ",
     4,
     false},
    {"by epochs",
     {0, 4, 2, 1, {0}, {1, true}, {1, true}, 1, KNOWN},
     NEVER,
     "BB E2  C2(1,0) BB E4  C4(2,0)  R4/4=2.5 ",
     4,
     false},
    {"every second epoch",
     {0, 4, 1, 1, {0}, {2, true}, {3, true}, 1, KNOWN},
     NEVER,
     "BB E2 B C3(3,0) B E4  R4/4=2.5  C4(4,0) ",
     4,
     false},
    {"accumulate",
     {0, 2, 4, 2, {0}, {0}, {1, false}, 1, KNOWN},
     NEVER,
     "bB C1(0,2) bB C2(1,0)  R2/2=1.5  E2 ",
     2,
     false},
    {"steps across an epoch",
     {0, 3, 3, 2, {0}, {1, true}, {0}, 1, KNOWN},
     NEVER,
     "bBbB E2 bB E3  R3/3=2  C3(2,0) ",
     3,
     false},
    {"stop", {0, 5, 5, 1, {0}, {0}, {0}, 1, KNOWN}, 2, "BB R2/2=1.5  C2(0,2) ", 2, true},
    {"stop where a checkpoint is", {0, 5, 5, 1, {0}, {0}, {2, false}, 1, KNOWN}, 2, "BB C2(0,2)  R2/2=1.5 ", 2, true},
    {"stop before the first step", {0, 5, 5, 1, {0}, {0}, {0}, 1, KNOWN}, 0, "", 0, true},
    {"stop before the first step of a resumed run", {3, 5, 5, 1, {0}, {0}, {0}, 1, KNOWN}, 3, "", 3, true},
    {"stop at the very end is an end", {0, 2, 2, 1, {0}, {0}, {0}, 1, KNOWN}, 2, "BB R2/2=1.5  E2  C2(1,0) ", 2, false},
    {"resumed",
     {3, 5, 2, 1, {0}, {1, true}, {1, true}, 1, KNOWN},
     NEVER,
     "B E4  C4(2,0) B R5/2=4.5  E5  C5(2,1) ",
     5,
     false},
    {"resumed at the end", {5, 5, 2, 1, {0}, {0}, {0}, 1, KNOWN}, NEVER, " E5 ", 5, false},
    /* <2>: the result of step 2 is taken while later ones are under way */
    {"two under way",
     {0, 4, 9, 1, {2, false}, {0}, {0}, 2, KNOWN},
     NEVER,
     "BB<1>B<2> R2/2=1.5 B<3> R4/2=3.5  E4  C4(0,4) ",
     4,
     false},
    {"all are taken before a checkpoint",
     {0, 4, 9, 1, {1, false}, {0}, {2, false}, 2, KNOWN},
     NEVER,
     "BB<1> R1/1=1  R2/1=2  C2(0,2) BB<3> R3/1=3  R4/1=4  C4(0,4)  E4 ",
     4,
     false},
    {"and before an evaluation",
     {0, 3, 2, 1, {0}, {1, true}, {0}, 3, KNOWN},
     NEVER,
     "BB<1> E2 B R3/3=2  E3  C3(1,1) ",
     3,
     false},
    {"three under way, of micro-batches",
     {0, 4, 9, 2, {0}, {0}, {0}, 3, KNOWN},
     NEVER,
     "bBbBbB<1>bB<2><3> R4/4=2.5  E4  C4(0,8) ",
     4,
     false},
    /* Streams: epochs of 2, 3, 2, 3 ... batches, which nobody has said. */
    {"a stream, by epochs",
     {0, 0, 0, 1, {0}, {1, true}, {1, true}, 1, 2, 0, 0, false},
     NEVER,
     "BB E2  C2(1,0) BBB E5  C5(2,0)  R5/5=3 ",
     5,
     false},
    {"a stream, by steps",
     {0, 4, 0, 1, {0}, {2, false}, {3, false}, 2, 9, 0, 0, false},
     NEVER,
     "BB<1> E2 B C3(1,1) B E4  R4/4=2.5  C4(1,2) ",
     4,
     false},
    {"steps across epochs of a stream",
     {0, 0, 0, 2, {0}, {1, true}, {0}, 1, 3, 0, 0, false},
     NEVER,
     "bB E1 bBbB E3 bx R3/3=2  C3(2,1) ",
     3,
     false},
    {"a stream resumed",
     {4, 0, 0, 1, {0}, {1, true}, {0}, 1, 3, 1, 2, false},
     NEVER,
     "B E5 BB E7  R7/3=6  C7(3,0) ",
     7,
     false},
    {"a stream resumed at its end", {7, 0, 0, 1, {0}, {0}, {0}, 1, 3, 3, 0, false}, NEVER, " E7 ", 7, false},
    {"a stream that is stopped",
     {0, 0, 0, 1, {0}, {0}, {0}, 2, 9, 0, 0, false},
     3,
     "BB<1>B<2> R3/3=2  C3(1,1) ",
     3,
     true},
    {"a stop takes what is under way", {0, 5, 5, 1, {0}, {0}, {0}, 2, KNOWN}, 2, "BB<1> R2/2=1.5  C2(0,2) ", 2, true},
};

static void traces(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trace t = {.stop_before = rows[i].stop_before, .nan_at = -1, .inf_norm_at = -1};
        ty_loop_result result;
        ty_error err = {0};
        assert_int_equal(run(&t, &rows[i].plan, &result, &err), 0);
        if (strcmp(t.text, rows[i].expected) != 0)
            fail_msg("%s: expected \"%s\", found \"%s\"", rows[i].name, rows[i].expected, t.text);
        assert_int_equal(result.steps_done, rows[i].steps_done);
        assert_int_equal(result.stopped, rows[i].stopped);
    }
}

static void a_stop_while_a_batch_is_awaited(void **state)
{
    (void)state;
    static const struct {
        int64_t accumulate, last_batch;
        const char *expected;
        int64_t steps_done;
    } cases[] = {{1, 4, "BBB R3/3=2  C3(1,1) ", 3}, {2, 4, "bBbx R1/1=1  C1(1,0) ", 1}, {1, 1, "", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const ty_loop_plan plan = {0, 0, 0, cases[i].accumulate, {0}, {0}, {0}, 1, 9, 0, 0, false};
        trace t = {.stop_before = -1, .nan_at = -1, .inf_norm_at = -1, .last_batch = cases[i].last_batch};
        ty_loop_result result;
        ty_error err = {0};
        assert_int_equal(run(&t, &plan, &result, &err), 0);
        assert_string_equal(t.text, cases[i].expected);
        assert_int_equal(result.steps_done, cases[i].steps_done);
        assert_true(result.stopped);
    }
}

static void evaluations_save_and_end_the_run(void **state)
{
    (void)state;
    static const struct {
        int64_t better_at, enough_at;
        ty_loop_plan plan;
        const char *expected;
        int64_t steps_done;
    } cases[] = {
        {2, 0, {0, 4, 2, 1, {0}, {1, true}, {0}, 1, KNOWN}, "BB E2  C2(1,0) BB E4  R4/4=2.5  C4(2,0) ", 4},
        {0, 2, {0, 9, 9, 1, {0}, {1, false}, {0}, 1, KNOWN}, "B E1 B E2  R2/2=1.5  C2(0,2) ", 2},
        {0, 2, {0, 9, 9, 1, {0}, {1, false}, {1, false}, 1, KNOWN}, "B E1  C1(0,1) B E2  C2(0,2)  R2/2=1.5 ", 2},
        {0, 5, {0, 0, 0, 1, {0}, {1, true}, {0}, 2, 9, 0, 0, false}, "BB<1> E2 BB<3>B<4> E5  R5/5=3  C5(2,0) ", 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        trace t = {.stop_before = -1,
                   .nan_at = -1,
                   .inf_norm_at = -1,
                   .better_at = cases[i].better_at,
                   .enough_at = cases[i].enough_at};
        ty_loop_result result;
        ty_error err = {0};
        assert_int_equal(run(&t, &cases[i].plan, &result, &err), 0);
        assert_string_equal(t.text, cases[i].expected);
        assert_int_equal(result.steps_done, cases[i].steps_done);
        assert_false(result.stopped);
    }
    /* Resumed behind its end, it has nothing left to do. */
    ty_loop_plan over = {2, 9, 9, 1, {0}, {1, false}, {0}, 1, 0, 0, 0, true};
    assert_true(ty_loop_is_over(&over));
}

static void not_finite_is_refused_before_it_is_saved(void **state)
{
    (void)state;
    const ty_loop_plan plan = {0, 5, 2, 1, {0}, {0}, {1, false}, 1, KNOWN};
    ty_loop_result result;
    ty_error err = {0};
    trace t = {.stop_before = -1, .nan_at = 3, .inf_norm_at = -1};
    assert_int_equal(run(&t, &plan, &result, &err), -1);
    assert_int_equal(err.code, TY_E_NOT_FINITE);
    assert_non_null(strstr(err.message, "the loss is nan at step 3 (epoch 1, batch 0)"));
    assert_string_equal(t.text, "B C1(0,1) B C2(1,0) B");
    ty_loop_plan two = plan; /* one step later, but as early as before where something is saved */
    two.in_flight = 2;
    trace late = {.stop_before = -1, .nan_at = 3, .inf_norm_at = -1};
    two.checkpoint.n = 2;
    assert_int_equal(run(&late, &two, &result, &err), -1);
    assert_non_null(strstr(err.message, "the loss is nan at step 3 (epoch 1, batch 0)"));
    assert_string_equal(late.text, "BB<1> C2(1,0) BB<3>");
    assert_int_equal(result.steps_done, 2);
    trace norm = {.stop_before = -1, .nan_at = -1, .inf_norm_at = 1};
    assert_int_equal(run(&norm, &plan, &result, &err), -1);
    assert_non_null(strstr(err.message, "gradient is inf at step 1"));
    assert_string_equal(norm.text, "B");
}

/* With a scaled loss such a step was skipped, until the scale has fallen so far that it cannot help. */
static void a_scaled_gradient_may_overflow(void **state)
{
    (void)state;
    const ty_loop_plan plan = {0, 2, 2, 1, {0}, {0}, {0}, 1, KNOWN};
    ty_loop_result result;
    ty_error err = {0};
    trace skipped = {.stop_before = -1, .nan_at = -1, .inf_norm_at = 1, .loss_scale = 65536};
    assert_int_equal(run(&skipped, &plan, &result, &err), 0);
    assert_int_equal(result.steps_done, 2);
    trace fallen = {.stop_before = -1, .nan_at = -1, .inf_norm_at = 1, .loss_scale = 0x1p-14};
    assert_int_equal(run(&fallen, &plan, &result, &err), -1);
    assert_int_equal(err.code, TY_E_NOT_FINITE);
}

static void a_failing_call_ends_the_run(void **state)
{
    (void)state;
    static const char *const names[] = {"batch", "evaluate", "checkpoint", "report"};
    const ty_loop_plan plan = {0, 2, 1, 1, {1, false}, {1, false}, {1, false}, 1, KNOWN};
    for (size_t i = 0; i < 4; i++) {
        trace t = {.stop_before = -1, .nan_at = -1, .inf_norm_at = -1, .fail = names[i]};
        ty_loop_result result;
        ty_error err = {0};
        assert_int_equal(run(&t, &plan, &result, &err), -1);
        assert_non_null(strstr(err.message, names[i]));
        assert_null(strchr(t.text, '2'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces),
        cmocka_unit_test(a_stop_while_a_batch_is_awaited),
        cmocka_unit_test(evaluations_save_and_end_the_run),
        cmocka_unit_test(not_finite_is_refused_before_it_is_saved),
        cmocka_unit_test(a_scaled_gradient_may_overflow),
        cmocka_unit_test(a_failing_call_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
