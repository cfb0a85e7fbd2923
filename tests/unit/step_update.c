/* The update inside a step: rates by layer, averages, clipping by tensor, the plateau. Rules and schedules themselves:
 * optimizer.c, schedule.c.
 */
#include "tests/unit/step_case.h"

static double state_number(const ty_step *s, ty_interp *it, const char *state, int i)
{
    int number = state_named(s, state);
    if (number < 0)
        fail_msg("no state %s", state);
    return ty_interp_state(it, number)->f[i];
}

static void layers_learn_at_their_own_rate(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p, q;
    plan_of(&p);
    plan_of(&q)->spec.lr_scale = (const ty_lr_scale[]){{"w1", 0.25}, {"b2", 0}, {"b*", 2}};
    q.spec.n_lr_scale = 3;
    ty_step a = build(m, &p), b = build(m, &q);
    expect_segments(&a, "param.0", "w1@0 b2@32 w2@35 b1@59");
    expect_segments(&b, "param.0", "w2@0");
    expect_segments(&b, "param.2", "w1@0");
    expect_segments(&b, "param.4", "b1@0"); /* "b*" is met first, in the order of the file */
    expect_segments(&b, "param.6", "b2@0");
    ty_interp *one = interpret(&a), *two = interpret(&b);
    static const struct {
        const char *state;
        int at, n;
        double factor;
    } parts[] = {{"param.0", 35, 24, 1}, {"param.2", 0, 32, 0.25}, {"param.4", 59, 8, 2}, {"param.6", 32, 3, 0}};
    double before[4][32];
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < parts[k].n; i++)
            before[k][i] = state_number(&b, two, parts[k].state, i);
    run_tape(one, TY_TAPE_LAST, batch_x, batch_t, NULL);
    run_tape(two, TY_TAPE_LAST, batch_x, batch_t, NULL);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < parts[k].n; i++) {
            double plain = state_number(&a, one, "param.0", parts[k].at + i) - before[k][i];
            expect_near(parts[k].state, state_number(&b, two, parts[k].state, i) - before[k][i],
                        parts[k].factor * plain);
        }
    expect_near("lr", output_of(&b, two, "lr", TY_TAPE_LAST), 0.5);
    ty_interp_free(one);
    ty_interp_free(two);
    ty_step_fini(&a);
    ty_step_fini(&b);
    ty_model_free(m);
}

static void averages_follow_and_are_evaluated(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p, q;
    plan_of(&p)->spec.ema_decay = 0.75;
    plan_of(&q)->spec.ema_decay = 0.75;
    q.spec.use_ema = true;
    ty_step a = build(m, &p), b = build(m, &q);
    expect_segments(&b, "ema.0", "w1@0 b2@32 w2@35 b1@59");
    assert_int_equal(weight_named(&a, "w2")->state, state_named(&a, "param.0"));
    assert_int_equal(weight_named(&b, "w2")->state, state_named(&b, "ema.0"));
    assert_int_equal(weight_named(&b, "idle")->state, -1);
    ty_interp *one = interpret(&a), *two = interpret(&b);
    double want[67], loss[2];
    for (int i = 0; i < 67; i++)
        assert_true(state_number(&b, two, "ema.0", i) == state_number(&b, two, "param.0", i));
    for (int step = 0; step < 3; step++) {
        run_tape(one, TY_TAPE_LAST, batch_x, batch_t, NULL);
        run_tape(two, TY_TAPE_LAST, batch_x, batch_t, NULL);
        for (int i = 0; i < 67; i++) {
            double now = state_number(&b, two, "param.0", i);
            expect_near("parameter", now, state_number(&a, one, "param.0", i));
            want[i] = step == 0 ? now : 0.75 * want[i] + 0.25 * now;
            expect_near("average", state_number(&b, two, "ema.0", i), want[i]);
        }
        run_tape(one, TY_TAPE_EVAL, batch_x, batch_t, NULL);
        run_tape(two, TY_TAPE_EVAL, batch_x, batch_t, NULL);
        loss[0] = output_of(&a, one, "loss.sum", TY_TAPE_EVAL);
        loss[1] = output_of(&b, two, "loss.sum", TY_TAPE_EVAL);
        assert_int_equal(fabs(loss[0] - loss[1]) < 1e-9, step == 0);
    }
    ty_interp_free(one);
    ty_interp_free(two);
    ty_step_fini(&a);
    ty_step_fini(&b);
    ty_model_free(m);
}

/* Plain descent at rate 1: the way of each tensor is its clipped gradient. */
static void tensors_are_clipped_alone(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p;
    plan_of(&p)->spec.clip = TY_CLIP_NORM;
    p.spec.clip_max = 0.125;
    p.spec.optimizer.lr = 1;
    ty_step s = build(m, &p);
    ty_interp *it = interpret(&s);
    double before[67];
    for (int i = 0; i < 67; i++)
        before[i] = state_number(&s, it, "param.0", i);
    run_tape(it, TY_TAPE_LAST, batch_x, batch_t, NULL);
    static const int start[] = {0, 32, 35, 59, 67};
    for (int k = 0; k < 4; k++) {
        double sum = 0;
        for (int i = start[k]; i < start[k + 1]; i++)
            sum += pow(state_number(&s, it, "param.0", i) - before[i], 2);
        expect_near("norm of a tensor's step", sqrt(sum), 0.125);
    }
    ty_interp_free(it);
    ty_step_fini(&s);
    ty_model_free(m);
}

static void plateau_lowers_the_rate(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p;
    plan_of(&p)->spec.schedule = (ty_schedule){.kind = TY_SCHED_PLATEAU, .factor = 0.25};
    ty_step s = build(m, &p);
    ty_interp *it = interpret(&s);
    run_tape(it, TY_TAPE_LAST, batch_x, batch_t, NULL);
    expect_near("lr", output_of(&s, it, "lr", TY_TAPE_LAST), 0.5);
    double *numbers = ty_interp_state(it, state_named(&s, "plateau"))->f;
    assert_false(ty_plateau_note(&p.spec.schedule, 0.5, numbers, 3));
    assert_true(ty_plateau_note(&p.spec.schedule, 0.5, numbers, 4));
    run_tape(it, TY_TAPE_LAST, batch_x, batch_t, NULL);
    expect_near("lr", output_of(&s, it, "lr", TY_TAPE_LAST), 0.125);
    ty_interp_free(it);
    ty_step_fini(&s);
    ty_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_learn_at_their_own_rate),
        cmocka_unit_test(averages_follow_and_are_evaluated),
        cmocka_unit_test(tensors_are_clipped_alone),
        cmocka_unit_test(plateau_lowers_the_rate),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
