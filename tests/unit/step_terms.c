/* Terms of the loss that read more than one output, or weights, inside a whole step: pairs, lengths, penalties, and the
 * outputs that metrics leave. Steps run in the double interpreter.
 */
#include "tests/unit/onnx_model.h"

#include "base/file.h"
#include "compiler/passes/step.h"

#include <math.h>
#include <unistd.h>

enum { BATCH = 4, IN = 2, OUT = 3 };

static const float first[] = {1, -0.5f, 0.25f, 0, 2, -1};
static const float second[] = {0.5f, 1, -1, 0.75f, 0, 1};
static const float batch_x[] = {1, 2, 0, -1, 0.5f, 0.25f, 3, 1};
static const float batch_same[] = {1, 0, 1, 0};
static const int64_t batch_labels[] = {0, 2, 1, 2};

static char model_path[64];

static int make_path(void **state)
{
    (void)state;
    snprintf(model_path, sizeof model_path, "/tmp/ty-unit-step-terms-%d.onnx", (int)getpid());
    return 0;
}

static int remove_path(void **state)
{
    (void)state;
    unlink(model_path);
    return 0;
}

/* x [N, 2] -> MatMul tower.first -> a, MatMul tower.second -> b; LogSoftmax of a -> p */
static ty_model *two_towers(void)
{
    model_text t;
    ty_error err = {0};
    ty_model *m;
    model_begin(&t, 18);
    model_input(&t, "x", 1, SHAPE(-1, IN));
    model_floats(&t, "tower.first", SHAPE(IN, OUT), first);
    model_floats(&t, "tower.second", SHAPE(IN, OUT), second);
    model_node(&t, "MatMul", "x,tower.first", "a", "");
    model_node(&t, "MatMul", "x,tower.second", "b", "");
    attr_int(&t, "axis", -1);
    model_node(&t, "LogSoftmax", "a", "p", "");
    model_output(&t, "a", 1);
    model_output(&t, "b", 1);
    model_output(&t, "p", 1);
    model_end(&t);
    if (ty_file_write(model_path, t.file.data, t.file.len, 0600, &err) < 0 || ty_model_open(model_path, &m, &err) < 0)
        fail_msg("%s", err.message);
    ty_buf_fini(&t.file);
    return m;
}

typedef struct plan {
    ty_train_spec spec;
    ty_binding input[3];
    ty_loss_term term[3];
    ty_metric metric[3];
} plan;

static plan *plan_of(plan *p, int n_loss)
{
    *p = (plan){.input = {{"x", ty_type_make(TY_F32, SHAPE(BATCH, IN))},
                          {"same", ty_type_make(TY_F32, SHAPE(BATCH))},
                          {"label", ty_type_make(TY_I64, SHAPE(BATCH))}},
                .term = {{.kind = TY_LOSS_CONTRASTIVE,
                          .output = "a",
                          .other = "b",
                          .target = "same",
                          .weight = 1,
                          .margin = 4,
                          .class_axis = -1}}};
    p->spec = (ty_train_spec){.inputs = p->input,
                              .n_inputs = 3,
                              .loss = p->term,
                              .n_loss = n_loss,
                              .optimizer = {.kind = TY_OPT_SGD, .lr = 0.1},
                              .schedule = {.kind = TY_SCHED_CONSTANT},
                              .accumulate = 1,
                              .batch_norm_statistics = true,
                              .eval_valid_rows = true,
                              .metrics = p->metric};
    return p;
}

static void expect_near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * fmax(1, fabs(want))))
        fail_msg("%s: expected %.9g, found %.9g", what, want, got);
}

/* ---- running --------------------------------------------------------------------------------------------------------
 */

typedef struct run {
    ty_model *m;
    ty_step s;
    ty_interp *it;
} run;

static run start(const plan *p)
{
    ty_error err = {0};
    run r = {.m = two_towers()};
    if (ty_step_build(r.m, &p->spec, &r.s, &err) < 0 || ty_graph_verify(r.s.g, &err) < 0 ||
        ty_interp_new(r.s.g, &r.it, &err) < 0)
        fail_msg("%s", err.message);
    return r;
}

static void end(run *r)
{
    ty_interp_free(r->it);
    ty_step_fini(&r->s);
    ty_model_free(r->m);
}

static void run_tape(const run *r, ty_tape tape, int64_t valid)
{
    ty_error err = {0};
    const void *inputs[] = {batch_x, batch_same, batch_labels, &valid};
    if (ty_interp_run(r->it, tape, inputs, false, &err) < 0)
        fail_msg("%s", err.message);
}

static const double *output_of(const run *r, const char *name, ty_tape tape)
{
    for (int i = 0; i < ty_graph_n_outputs(r->s.g); i++)
        if (strcmp(ty_graph_output(r->s.g, i)->name, name) == 0 && (ty_graph_output(r->s.g, i)->tapes & (uint32_t)tape))
            return ty_interp_output(r->it, i)->f;
    fail_msg("no output %s", name);
    return NULL;
}

/* ---- by hand --------------------------------------------------------------------------------------------------------
 */

static double tower(const float *w, int row, int k)
{
    return (double)batch_x[IN * row] * (double)w[k] + (double)batch_x[IN * row + 1] * (double)w[OUT + k];
}

static double contrastive_of(int row)
{
    double square = 0;
    for (int k = 0; k < OUT; k++)
        square += pow(tower(first, row, k) - tower(second, row, k), 2);
    double lack = fmax(0, 4 - sqrt(square));
    return batch_same[row] > 0 ? square / 2 : lack * lack / 2;
}

static double size_of(const float *w, int power)
{
    double sum = 0;
    for (int i = 0; i < IN * OUT; i++)
        sum += pow(fabs((double)w[i]), power);
    return sum;
}

/* ---- the tests ------------------------------------------------------------------------------------------------------
 */

static void pairs_read_two_outputs(void **state)
{
    (void)state;
    plan p;
    run r = start(plan_of(&p, 1));
    double sum = 0;
    for (int row = 0; row < BATCH; row++)
        sum += contrastive_of(row);
    run_tape(&r, TY_TAPE_LAST, BATCH);
    expect_near("training", output_of(&r, "loss", TY_TAPE_LAST)[0], sum / BATCH);
    end(&r);
    r = start(&p);
    run_tape(&r, TY_TAPE_EVAL, 2);
    expect_near("evaluation", output_of(&r, "loss.sum", TY_TAPE_EVAL)[0], contrastive_of(0) + contrastive_of(1));
    expect_near("rows", output_of(&r, "loss.count", TY_TAPE_EVAL)[0], 2);
    end(&r);
}

/* Weights after a step with n of the batch's rows: as a batch of n, or as the first n of a larger one. */
static void weights_after(int n, bool masked, double loss[1], double w[2][IN * OUT])
{
    plan p;
    plan_of(&p, 1)->spec.train_valid_rows = masked;
    for (int i = 0; i < 3 && !masked; i++)
        p.input[i].type.dim[0] = n;
    run r = start(&p);
    run_tape(&r, TY_TAPE_LAST, n);
    loss[0] = output_of(&r, "loss", TY_TAPE_LAST)[0];
    for (int i = 0; i < IN * OUT; i++)
        for (int k = 0; k < 2; k++)
            w[k][i] = ty_interp_state(r.it, 0)->f[k * IN * OUT + i];
    end(&r);
}

static void rows_that_do_not_count_do_not_train(void **state)
{
    (void)state;
    for (int n = 1; n <= BATCH; n++) {
        double loss[2], w[2][2][IN * OUT];
        weights_after(n, false, &loss[0], w[0]);
        weights_after(n, true, &loss[1], w[1]);
        expect_near("loss", loss[1], loss[0]);
        for (int i = 0; i < 2 * IN * OUT; i++)
            expect_near("weight", w[1][i / (IN * OUT)][i % (IN * OUT)], w[0][i / (IN * OUT)][i % (IN * OUT)]);
    }
}

static void penalties_are_part_of_the_loss(void **state)
{
    (void)state;
    plan p;
    plan_of(&p, 3);
    p.term[1] = (ty_loss_term){.kind = TY_LOSS_L1, .weight = 0.25};
    p.term[1].tensors = (const char *const[]){"*.second"};
    p.term[1].n_tensors = 1;
    p.term[2] = (ty_loss_term){.kind = TY_LOSS_L2, .weight = 0.5};
    double penalty = 0.25 * size_of(second, 1) + 0.5 * (size_of(first, 2) + size_of(second, 2)), sum = 0;
    run r = start(&p);
    run_tape(&r, TY_TAPE_EVAL, 3);
    for (int row = 0; row < 3; row++)
        sum += contrastive_of(row);
    double loss = output_of(&r, "loss.sum", TY_TAPE_EVAL)[0] / output_of(&r, "loss.count", TY_TAPE_EVAL)[0];
    expect_near("evaluation", loss, sum / 3 + penalty);
    run_tape(&r, TY_TAPE_LAST, BATCH);
    expect_near("training", output_of(&r, "loss", TY_TAPE_LAST)[0], (sum + contrastive_of(3)) / BATCH + penalty);
    end(&r);
}

static int count_live(const ty_graph *g, ty_tape tape, ty_op op)
{
    uint8_t *live = calloc(ty_graph_n_nodes(g) + 1, 1);
    int n = 0;
    assert_non_null(live);
    ty_graph_mark_live(g, (uint32_t)tape, live);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        n += live[id] && ty_graph_op(g, id) == op;
    free(live);
    return n;
}

/* The nll of the model's log-softmax trains as the cross-entropy of its logits does, and in training nothing is left of
 * the log-softmax; in evaluation it is an output, and read. */
static void likelihood_is_joined_in_training(void **state)
{
    (void)state;
    plan p;
    run r[2];
    double eval[2];
    for (int nll = 0; nll < 2; nll++) {
        plan_of(&p, 1)->spec.eval_valid_rows = true;
        p.term[0] = (ty_loss_term){.kind = nll ? TY_LOSS_NLL : TY_LOSS_SOFTMAX_CROSS_ENTROPY,
                                   .output = nll ? "p" : "a",
                                   .target = "label",
                                   .weight = 1,
                                   .ignore_index = -100,
                                   .class_axis = -1};
        r[nll] = start(&p);
        run_tape(&r[nll], TY_TAPE_EVAL, 3);
        eval[nll] = output_of(&r[nll], "loss.sum", TY_TAPE_EVAL)[0];
        run_tape(&r[nll], TY_TAPE_LAST, BATCH);
    }
    expect_near("training", output_of(&r[1], "loss", TY_TAPE_LAST)[0], output_of(&r[0], "loss", TY_TAPE_LAST)[0]);
    expect_near("evaluation", eval[1], eval[0]);
    for (int k = 0; k < IN * OUT; k++)
        expect_near("weight", ty_interp_state(r[1].it, 0)->f[k], ty_interp_state(r[0].it, 0)->f[k]);
    assert_int_equal(count_live(r[1].s.g, TY_TAPE_LAST, TY_OP_SOFTMAX), 0);
    assert_int_equal(count_live(r[1].s.g, TY_TAPE_LAST, TY_OP_XENT), 1);
    assert_int_equal(count_live(r[1].s.g, TY_TAPE_EVAL, TY_OP_SOFTMAX), 1);
    assert_int_equal(count_live(r[1].s.g, TY_TAPE_EVAL, TY_OP_XENT), 0);
    end(&r[0]);
    end(&r[1]);
}

/* Alone, l2's gradient is 2 w: a rate of 0.1 takes a fifth of each weight. Frozen weights have no part. */
static void penalties_pull_weights_to_zero(void **state)
{
    (void)state;
    plan p;
    plan_of(&p, 1);
    p.term[0] = (ty_loss_term){.kind = TY_LOSS_L2, .weight = 1};
    p.spec.frozen = (const char *const[]){"tower.first"};
    p.spec.n_frozen = 1;
    run r = start(&p);
    assert_int_equal(r.s.n_trained, IN * OUT);
    run_tape(&r, TY_TAPE_LAST, BATCH);
    expect_near("loss", output_of(&r, "loss", TY_TAPE_LAST)[0], size_of(second, 2));
    for (int i = 0; i < r.s.n_weights; i++)
        for (int k = 0; r.s.weights[i].trained && k < IN * OUT; k++)
            expect_near("weight", ty_interp_state(r.it, r.s.weights[i].state)->f[r.s.weights[i].offset + k],
                        0.8 * (double)second[k]);
    end(&r);
}

/* Evaluation with averaged weights averages in the penalty too. Weights by steps: w, 0.8 w, 0.64 w; the average: 0.8 w,
 * then 0.72 w. */
static void penalties_follow_averages(void **state)
{
    (void)state;
    plan p;
    plan_of(&p, 1);
    p.term[0] = (ty_loss_term){.kind = TY_LOSS_L2, .weight = 1};
    p.spec.ema_decay = 0.5;
    p.spec.use_ema = true;
    run r = start(&p);
    run_tape(&r, TY_TAPE_LAST, BATCH);
    run_tape(&r, TY_TAPE_LAST, BATCH);
    run_tape(&r, TY_TAPE_EVAL, BATCH);
    double loss = output_of(&r, "loss.sum", TY_TAPE_EVAL)[0] / output_of(&r, "loss.count", TY_TAPE_EVAL)[0];
    expect_near("evaluation", loss, 0.72 * 0.72 * (size_of(first, 2) + size_of(second, 2)));
    end(&r);
}

static void metrics_leave_their_parts(void **state)
{
    (void)state;
    plan p;
    plan_of(&p, 1);
    p.spec.n_metrics = 2;
    p.metric[0] = (ty_metric){.kind = TY_METRIC_F1, .name = "f1", .output = "a", .target = "label"};
    p.metric[1] = (ty_metric){.kind = TY_METRIC_TOP_K, .name = "top_2", .output = "a", .target = "label", .k = 2};
    run r = start(&p);
    run_tape(&r, TY_TAPE_EVAL, 3);
    double counts[3 * OUT] = {0};
    for (int row = 0; row < 3; row++) {
        int best = 0;
        for (int k = 1; k < OUT; k++)
            best = tower(first, row, k) > tower(first, row, best) ? k : best;
        counts[batch_labels[row]] += best == batch_labels[row];
        counts[OUT + best]++;
        counts[2 * OUT + batch_labels[row]]++;
    }
    for (int i = 0; i < 3 * OUT; i++)
        expect_near("counts", output_of(&r, "f1.counts", TY_TAPE_EVAL)[i], counts[i]);
    expect_near("rows", output_of(&r, "top_2.count", TY_TAPE_EVAL)[0], 3);
    end(&r);
}

static void expect_refused(const plan *p, const char *words)
{
    ty_error err = {0};
    ty_step s;
    ty_model *m = two_towers();
    assert_int_equal(ty_step_build(m, &p->spec, &s, &err), -1);
    if (!strstr(err.message, words))
        fail_msg("expected \"%s\", found \"%s\"", words, err.message);
    ty_model_free(m);
}

static void refusals(void **state)
{
    (void)state;
    plan p;
    plan_of(&p, 1)->term[0].other = "c";
    expect_refused(&p, "the model has no output \"c\"");
    plan_of(&p, 1)->term[0].other = NULL;
    expect_refused(&p, "expected a second output");
    plan_of(&p, 1)->term[0] = (ty_loss_term){.kind = TY_LOSS_L1, .weight = 1};
    p.term[0].tensors = (const char *const[]){"tower.first", "*.third"};
    p.term[0].n_tensors = 2;
    expect_refused(&p, "a name like \"*.third\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(likelihood_is_joined_in_training),    cmocka_unit_test(pairs_read_two_outputs),
        cmocka_unit_test(rows_that_do_not_count_do_not_train), cmocka_unit_test(penalties_are_part_of_the_loss),
        cmocka_unit_test(penalties_pull_weights_to_zero),      cmocka_unit_test(penalties_follow_averages),
        cmocka_unit_test(metrics_leave_their_parts),           cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
