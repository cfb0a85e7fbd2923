/* The step graph: what is trained, where it lies, what each tape does, and what is refused. Models are built here, byte
 * by byte; steps run in the double interpreter.
 */
#include "tests/unit/step_case.h"

/* ---- layout ---------------------------------------------------------------------------------------------------------
 */

static void arenas_follow_gradient_readiness(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p;
    plan_of(&p)->spec.optimizer =
        (ty_optimizer){.kind = TY_OPT_ADAM, .lr = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8};
    ty_step s = build(m, &p);
    expect_segments(&s, "param.0", "w1@0 b2@32 w2@35 b1@59"); /* 32 is a multiple of 16; 3, 24 and 8 are not */
    expect_segments(&s, "adam.m.0", "w1@0 b2@32 w2@35 b1@59");
    expect_segments(&s, "adam.v.0", "w1@0 b2@32 w2@35 b1@59");
    assert_int_equal(state_named(&s, "param.1"), -1);
    assert_int_equal(state_named(&s, "seed"), -1);
    assert_int_equal(state_named(&s, "grad.0"), -1);
    assert_int_equal(s.n_trained, 67);
    assert_true(weight_named(&s, "w2")->trained);
    assert_int_equal(weight_named(&s, "w2")->offset, 35);
    assert_int_equal(weight_named(&s, "w2")->segment, 2);
    assert_int_equal(weight_named(&s, "idle")->state, -1);
    ty_step_fini(&s);
    ty_model_free(m);
}

static void decay_splits_the_arena(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p;
    plan_of(&p)->spec.optimizer.weight_decay = 0.1;
    p.spec.no_decay = (const char *const[]){"b*"};
    p.spec.n_no_decay = 1;
    p.spec.frozen = (const char *const[]){"w2"};
    p.spec.n_frozen = 1;
    ty_step s = build(m, &p);
    expect_segments(&s, "param.0", "w1@0");
    expect_segments(&s, "param.1", "b2@0 b1@3");
    assert_false(weight_named(&s, "w2")->trained);
    ty_interp *it = interpret(&s);
    double before = ty_interp_state(it, state_named(&s, "param.1"))->f[0];
    run_tape(it, TY_TAPE_LAST, batch_x, (const int64_t[]){-100, -100, -100, 0}, NULL);
    assert_true(ty_interp_state(it, state_named(&s, "param.1"))->f[0] != before);
    ty_interp_free(it);
    ty_step_fini(&s);
    ty_model_free(m);
}

/* ---- tapes ----------------------------------------------------------------------------------------------------------
 */

/* Two micro-batches of equal size give the step that one batch of both gives. */
static void micro_batches_add_up(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan whole, half;
    plan_of(&whole)->spec.clip = TY_CLIP_GLOBAL_NORM;
    whole.spec.clip_max = 0.05;
    half = whole;
    half.spec.inputs = half.input;
    half.spec.loss = half.term;
    half.spec.accumulate = 2;
    half.input[0].type.dim[0] = half.input[1].type.dim[0] = BATCH / 2;
    ty_step a = build(m, &whole), b = build(m, &half);
    ty_interp *one = interpret(&a), *two = interpret(&b);
    for (int step = 0; step < 3; step++) {
        run_tape(one, TY_TAPE_LAST, batch_x, batch_t, NULL);
        run_tape(two, TY_TAPE_MICRO, batch_x, batch_t, NULL);
        double loss = output_of(&b, two, "loss", TY_TAPE_MICRO);
        run_tape(two, TY_TAPE_LAST, batch_x + 8, batch_t + 2, NULL);
        loss += output_of(&b, two, "loss", TY_TAPE_LAST);
        expect_near("loss", loss / 2, output_of(&a, one, "loss", TY_TAPE_LAST));
        expect_near("norm", output_of(&b, two, "grad_norm", TY_TAPE_LAST),
                    output_of(&a, one, "grad_norm", TY_TAPE_LAST));
        for (int i = 0; i < 67; i++)
            expect_near("parameter", ty_interp_state(two, state_named(&b, "param.0"))->f[i],
                        ty_interp_state(one, state_named(&a, "param.0"))->f[i]);
        assert_true(ty_interp_state(two, state_named(&b, "grad.0"))->f[5] == 0);
        assert_int_equal(ty_interp_state(two, state_named(&b, "step"))->i[0], step + 1);
    }
    ty_interp_free(one);
    ty_interp_free(two);
    ty_step_fini(&a);
    ty_step_fini(&b);
    ty_model_free(m);
}

static void evaluation_counts_valid_rows(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    ty_metric metric = {.kind = TY_METRIC_ACCURACY, .name = "accuracy", .output = "y", .target = "t"};
    plan p;
    plan_of(&p)->spec.eval_valid_rows = true;
    p.spec.metrics = &metric;
    p.spec.n_metrics = 1;
    ty_step s = build(m, &p);
    assert_int_equal(s.n_inputs, 3);
    ty_interp *it = interpret(&s);
    float other[16];
    memcpy(other, batch_x, sizeof other);
    for (int i = 8; i < 16; i++)
        other[i] = NAN;
    int64_t two = 2, all = BATCH;
    run_tape(it, TY_TAPE_EVAL, batch_x, batch_t, &two);
    double sum = output_of(&s, it, "loss.sum", TY_TAPE_EVAL), hits = output_of(&s, it, "accuracy.sum", TY_TAPE_EVAL);
    expect_near("count", output_of(&s, it, "loss.count", TY_TAPE_EVAL), 2);
    expect_near("accuracy's count", output_of(&s, it, "accuracy.count", TY_TAPE_EVAL), 2);
    run_tape(it, TY_TAPE_EVAL, other, batch_t, &two);
    expect_near("sum", output_of(&s, it, "loss.sum", TY_TAPE_EVAL), sum);
    expect_near("hits", output_of(&s, it, "accuracy.sum", TY_TAPE_EVAL), hits);
    run_tape(it, TY_TAPE_EVAL, batch_x, batch_t, &all);
    expect_near("count of all", output_of(&s, it, "loss.count", TY_TAPE_EVAL), 4);
    double loss = output_of(&s, it, "loss.sum", TY_TAPE_EVAL) / 4;
    run_tape(it, TY_TAPE_LAST, batch_x, batch_t, &two); /* training takes all rows */
    expect_near("training loss", output_of(&s, it, "loss", TY_TAPE_LAST), loss);
    ty_interp_free(it);
    ty_step_fini(&s);
    ty_model_free(m);
}

static void terms_are_added_by_weight(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p, q;
    plan_of(&p)->spec.eval_valid_rows = true;
    plan_of(&q)->spec.n_loss = 2;
    q.spec.inputs = q.input;
    q.spec.loss = q.term;
    q.spec.eval_valid_rows = true;
    q.term[1] = (ty_loss_term){.kind = TY_LOSS_MEAN, .output = "y", .weight = 0.5};
    p.term[0] = q.term[1];
    p.term[0].weight = 1;
    ty_step both = build(m, &q), mean = build(m, &p);
    p.term[0] = q.term[0];
    ty_step cross = build(m, &p);
    ty_interp *a = interpret(&both), *b = interpret(&mean), *c = interpret(&cross);
    int64_t valid = 3;
    ty_interp *all[] = {a, b, c};
    double loss[3], sum[3], count[3];
    for (int i = 0; i < 3; i++) {
        const ty_step *s = i == 0 ? &both : i == 1 ? &mean : &cross;
        run_tape(all[i], TY_TAPE_EVAL, batch_x, batch_t, &valid);
        sum[i] = output_of(s, all[i], "loss.sum", TY_TAPE_EVAL);
        count[i] = output_of(s, all[i], "loss.count", TY_TAPE_EVAL);
        run_tape(all[i], TY_TAPE_LAST, batch_x, batch_t, &valid);
        loss[i] = output_of(s, all[i], "loss", TY_TAPE_LAST);
        ty_interp_free(all[i]);
    }
    expect_near("training", loss[0], 0.5 * loss[1] + loss[2]);
    expect_near("rows", count[0], 3);
    expect_near("evaluation", sum[0] / count[0], 0.5 * sum[1] / count[1] + sum[2] / count[2]);
    ty_step_fini(&both);
    ty_step_fini(&mean);
    ty_step_fini(&cross);
    ty_model_free(m);
}

/* ---- statistics, ties, random numbers -------------------------------------------------------------------------------
 */

static ty_model *normalized(void)
{
    model_text t;
    model_begin(&t, 18);
    model_input(&t, "x", 1, SHAPE(-1, 4));
    model_floats(&t, "scale", SHAPE(4), (float[]){1, 1, 1, 1});
    model_floats(&t, "shift", SHAPE(4), (float[]){0, 0, 0, 0});
    model_floats(&t, "mean", SHAPE(4), (float[]){1, 2, 3, 4});
    model_floats(&t, "var", SHAPE(4), (float[]){1, 1, 1, 1});
    attr_float(&t, "momentum", 0.5f);
    model_node(&t, "BatchNormalization", "x,scale,shift,mean,var", "y", "");
    model_output(&t, "y", 1);
    return open_text(&t);
}

static void running_statistics_are_buffers(void **state)
{
    (void)state;
    ty_model *m = normalized();
    plan p;
    ty_step s = build(m, plan_of(&p));
    assert_int_equal(s.n_trained, 8);
    const ty_step_weight *mean = weight_named(&s, "mean");
    assert_int_equal(mean->state, state_named(&s, "buffer.mean"));
    assert_false(mean->trained);
    ty_interp *it = interpret(&s);
    run_tape(it, TY_TAPE_EVAL, batch_x, batch_t, NULL);
    assert_true(ty_interp_state(it, mean->state)->f[0] == 1);
    run_tape(it, TY_TAPE_LAST, batch_x, batch_t, NULL);
    expect_near("mean", ty_interp_state(it, mean->state)->f[0], 0.5 * 1 + 0.5 * (1 + 0.5 - 2 + 0) / 4);
    double d[] = {1 + 0.125, 0.5 + 0.125, -2 + 0.125, 0.125}, squares = 0;
    for (int i = 0; i < 4; i++)
        squares += d[i] * d[i];
    expect_near("variance", ty_interp_state(it, weight_named(&s, "var")->state)->f[0], 0.5 + 0.5 * squares / 3);
    ty_interp_free(it);
    ty_step_fini(&s);
    p.spec.batch_norm_statistics = false; /* then they are numbers like any other */
    s = build(m, &p);
    assert_int_equal(weight_named(&s, "mean")->state, -1);
    ty_step_fini(&s);
    ty_model_free(m);
}

/* y = x a + x b with a and b of equal type: tied they are one parameter with both gradients. */
static void tied_weights_are_one(void **state)
{
    (void)state;
    model_text t;
    model_begin(&t, 18);
    model_input(&t, "x", 1, SHAPE(-1, 4));
    model_floats(&t, "a", SHAPE(4, 3), numbers(12, 0.1f));
    model_floats(&t, "b", SHAPE(4, 3), numbers(12, 0.1f));
    model_floats(&t, "c", SHAPE(3), numbers(3, 0.1f));
    model_node(&t, "MatMul", "x,a", "p", "");
    model_node(&t, "MatMul", "x,b", "q", "");
    model_node(&t, "Add", "p,q", "r", "");
    model_node(&t, "Add", "r,c", "y", "");
    model_output(&t, "y", 1);
    ty_model *m = open_text(&t);
    const char *const group[] = {"a", "b", NULL}, *const wrong[] = {"a", "c", NULL};
    const char *const *tied[] = {group};
    plan p;
    ty_step apart = build(m, plan_of(&p));
    p.spec.tied = tied;
    p.spec.n_tied = 1;
    ty_step one = build(m, &p);
    assert_int_equal(apart.n_trained, 27);
    assert_int_equal(one.n_trained, 15);
    assert_int_equal(weight_named(&one, "b")->offset, weight_named(&one, "a")->offset);
    assert_true(weight_named(&one, "b")->trained);
    ty_interp *x = interpret(&apart), *y = interpret(&one);
    run_tape(x, TY_TAPE_LAST, batch_x, batch_t, NULL);
    run_tape(y, TY_TAPE_LAST, batch_x, batch_t, NULL);
    const ty_step_weight *at = weight_named(&apart, "a"), *to = weight_named(&one, "a");
    for (int i = 0; i < 12; i++) {
        double start = (double)((const float *)at->data)[i];
        expect_near("twice the change", ty_interp_state(y, to->state)->f[to->offset + i] - start,
                    2 * (ty_interp_state(x, at->state)->f[at->offset + i] - start));
    }
    ty_interp_free(x);
    ty_interp_free(y);
    ty_step_fini(&apart);
    ty_step_fini(&one);
    ty_error err = {0};
    tied[0] = wrong;
    assert_int_equal(ty_step_build(m, &p.spec, &one, &err), -1);
    assert_string_equal(err.message, "tied: \"a\" is f32[4,3], \"c\" is f32[3]");
    const char *const none[] = {"e", "f", NULL};
    tied[0] = none;
    assert_int_equal(ty_step_build(m, &p.spec, &one, &err), -1);
    assert_string_equal(err.message, "tied: the model has no weight \"e\"");
    ty_model_free(m);
}

static void dropout_draws_anew(void **state)
{
    (void)state;
    model_text t;
    bool yes = true;
    float half = 0.5f;
    model_begin(&t, 18);
    model_input(&t, "x", 1, SHAPE(-1, 4));
    model_floats(&t, "w", SHAPE(4, 3), numbers(12, 0.1f));
    model_raw(&t, "ratio", 1, 0, NULL, &half, sizeof half);
    model_raw(&t, "training", 9, 0, NULL, &yes, 1);
    model_node(&t, "Dropout", "x,ratio,training", "d", "");
    model_node(&t, "MatMul", "d,w", "y", "");
    model_output(&t, "y", 1);
    ty_model *m = open_text(&t);
    plan p;
    plan_of(&p)->spec.accumulate = 2;
    p.spec.seed = 7;
    p.spec.optimizer.lr = 0;
    p.spec.buffers = (const char *const[]){"ratio"};
    p.spec.n_buffers = 1;
    ty_step s = build(m, &p);
    ty_interp *it = interpret(&s);
    double loss[4];
    for (int i = 0; i < 4; i++) {
        ty_tape tape = i % 2 ? TY_TAPE_LAST : TY_TAPE_MICRO;
        run_tape(it, tape, batch_x, batch_t, NULL);
        loss[i] = output_of(&s, it, "loss", tape);
        for (int k = 0; k < i; k++)
            if (loss[k] == loss[i])
                fail_msg("draws %d and %d are the same", k, i);
    }
    assert_int_equal(ty_interp_state(it, state_named(&s, "seed"))->i[0], 7);
    assert_int_equal(ty_interp_state(it, state_named(&s, "micro"))->i[0], 0);
    ty_interp_free(it);
    it = interpret(&s);
    run_tape(it, TY_TAPE_MICRO, batch_x, batch_t, NULL);
    assert_true(output_of(&s, it, "loss", TY_TAPE_MICRO) == loss[0]);
    ty_interp_free(it);
    ty_step_fini(&s);
    ty_model_free(m);
}

/* ---- ranges ---------------------------------------------------------------------------------------------------------
 */

static void ranges_are_found(void **state)
{
    (void)state;
    model_text t;
    model_begin(&t, 18);
    model_input(&t, "ids", 7, SHAPE(-1, 2));
    model_floats(&t, "table", SHAPE(10, 3), numbers(30, 0.1f));
    model_node(&t, "Gather", "table,ids", "e", "embed");
    attr_int(&t, "keepdims", 0);
    model_ints(&t, "axes", 1, (int64_t[]){1});
    model_node(&t, "ReduceSum", "e,axes", "y", "");
    model_output(&t, "y", 1);
    ty_model *m = open_text(&t);
    plan p;
    plan_of(&p)->spec.eval_valid_rows = true;
    p.input[0] = (ty_binding){"ids", ty_type_make(TY_I64, SHAPE(BATCH, 2))};
    ty_step s = build(m, &p);
    assert_int_equal(s.ranges[0].hi, 9);
    assert_true(s.ranges[0].lo == 0 || s.ranges[0].lo == -10); /* negative ids count from the end */
    assert_non_null(strstr(s.ranges[0].what, "10 rows"));
    assert_int_equal(s.ranges[1].lo, 0);
    assert_int_equal(s.ranges[1].hi, 2);
    assert_true(s.ranges[1].has_also);
    assert_int_equal(s.ranges[1].also, -100);
    assert_true(s.ranges[2].lo > s.ranges[2].hi);
    ty_step_fini(&s);
    p.input[0].type.dtype = TY_I32; /* narrower ids are widened */
    p.input[1].type.dtype = TY_U8;
    p.term[0].kind = TY_LOSS_NLL;
    s = build(m, &p);
    assert_int_equal(s.ranges[0].hi, 9);
    assert_int_equal(s.ranges[1].hi, 2);
    assert_true(s.ranges[1].has_also);
    ty_step_fini(&s);
    ty_model_free(m);
}

/* ---- inference ------------------------------------------------------------------------------------------------------
 */

static void inference_has_no_states(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    ty_error err = {0};
    ty_step s, train;
    plan p;
    ty_binding x = {"x", ty_type_make(TY_F32, SHAPE(BATCH, 4))};
    assert_int_equal(ty_step_build_infer(m, &x, 1, &s, &err), 0);
    assert_int_equal(ty_graph_n_states(s.g), 0);
    assert_int_equal(ty_graph_n_outputs(s.g), 1);
    train = build(m, plan_of(&p));
    ty_interp *a = interpret(&s), *b = interpret(&train);
    run_tape(a, TY_TAPE_EVAL, batch_x, NULL, NULL);
    run_tape(b, TY_TAPE_EVAL, batch_x, batch_t, NULL);
    assert_true(output_of(&s, a, "y", TY_TAPE_EVAL) == output_of(&train, b, "y", TY_TAPE_EVAL));
    ty_interp_free(a);
    ty_interp_free(b);
    ty_step_fini(&s);
    ty_step_fini(&train);
    x.name = "z";
    assert_int_equal(ty_step_build_infer(m, &x, 1, &s, &err), -1);
    assert_string_equal(err.message, "input \"x\" of the model is bound to nothing");
    ty_model_free(m);
}

/* ---- refusals -------------------------------------------------------------------------------------------------------
 */

static void expect_refused(const ty_model *m, const plan *p, const char *message, const char *help)
{
    ty_error err = {0};
    ty_step s;
    assert_int_equal(ty_step_build(m, &p->spec, &s, &err), -1);
    assert_null(s.g);
    if (!strstr(err.message, message) || !strstr(err.help, help))
        fail_msg("expected \"%s\" (%s), found \"%s\" (%s)", message, help, err.message, err.help);
}

static void refusals_say_what_to_do(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p;
    plan_of(&p)->term[0].output = "Y";
    expect_refused(m, &p, "loss softmax_cross_entropy: the model has no output \"Y\"", "an output \"y\"");
    plan_of(&p)->term[0].target = "label";
    expect_refused(m, &p, "there is no input \"label\"", "");
    plan_of(&p)->spec.frozen = (const char *const[]){"w11"};
    p.spec.n_frozen = 1;
    expect_refused(m, &p, "frozen: the model has no weight \"w11\"", "did you mean \"w1\"?");
    p.spec.frozen = (const char *const[]){"q*"};
    expect_refused(m, &p, "frozen: no weight of the model matches \"q*\"", "model info");
    plan_of(&p)->spec.no_decay = (const char *const[]){"w*", "*.bais"};
    p.spec.n_no_decay = 2;
    expect_refused(m, &p, "no_decay: no weight of the model matches \"*.bais\"", "model info");
    plan_of(&p)->spec.buffers = (const char *const[]){"running_*"};
    p.spec.n_buffers = 1;
    expect_refused(m, &p, "buffers: no weight of the model matches \"running_*\"", "model info");
    plan_of(&p)->spec.frozen = (const char *const[]){"*"};
    p.spec.n_frozen = 1;
    expect_refused(m, &p, "nothing to train", "frozen");
    plan_of(&p)->input[0].name = "data";
    expect_refused(m, &p, "input \"x\" of the model is bound to nothing", "field");
    plan_of(&p)->spec.accumulate = 0;
    expect_refused(m, &p, "accumulate: expected 1 or more, found 0", "");
    plan_of(&p)->spec.n_loss = 0;
    expect_refused(m, &p, "loss: expected at least one term", "");
    plan_of(&p)->input[1].type.dim[0] = 5;
    expect_refused(m, &p, "target: expected i64[4]", "");
    ty_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arenas_follow_gradient_readiness),
        cmocka_unit_test(decay_splits_the_arena),
        cmocka_unit_test(micro_batches_add_up),
        cmocka_unit_test(evaluation_counts_valid_rows),
        cmocka_unit_test(terms_are_added_by_weight),
        cmocka_unit_test(running_statistics_are_buffers),
        cmocka_unit_test(tied_weights_are_one),
        cmocka_unit_test(dropout_draws_anew),
        cmocka_unit_test(ranges_are_found),
        cmocka_unit_test(inference_has_no_states),
        cmocka_unit_test(refusals_say_what_to_do),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
