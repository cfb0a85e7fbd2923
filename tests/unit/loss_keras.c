/* Keras' losses against Keras' own numbers.
 *
 * Keras 3.15 on TensorFlow, float32: keras.losses.NAME(...)(target, output), the same with sample_weight = weights, the
 * same with the mask {true, false, true, true} on the output, and the gradient for element [0, 1] of the output
 * (tf.GradientTape), with the inputs below.
 */
#include "tests/unit/evaluate.h"

#include "compiler/passes/loss_keras.h"
#include "compiler/passes/passes.h"

#include <math.h>

#define ROWS    4
#define CLASSES 3

static const float x[] = {0.2f, -1.5f, 0.9f, 2, 0.1f, -0.4f, 0.6f, 0.3f, 0.1f, -0.7f, 1.1f, 0.05f};
static const float p[] = {0.2f, 0.5f, 0.3f, 0.7f, 0.1f, 0.2f, 0.6f, 0.3f, 0.1f, 0.05f, 0.9f, 0.05f};
static const float twice_p[] = {0.4f, 1, 0.6f, 1.4f, 0.2f, 0.4f, 1.2f, 0.6f, 0.2f, 0.1f, 1.8f, 0.1f};
static const float y[] = {0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0};
static const float r[] = {0.5f, -0.5f, 1.5f, 2.5f, 0, -1.4f, 0.1f, 0.2f, 0.3f, -2, 3, 0.5f};
static const float size[] = {0.5f, 0.5f, 1.5f, 2.5f, 0, 1.4f, 0.1f, 0.2f, 0.3f, 2, 3, 0.5f};
static const float weights[] = {0.5f, 2, 0, 1.5f};
static const bool mask[] = {true, false, true, true};
static const int64_t labels[] = {2, 0, 1, 1};

static const struct keras_case {
    ty_loss_term term;
    const float *output;
    const void *target;
    double plain, weighed, masked, slope;
} cases[] = {
    {{.kind = TY_LOSS_KERAS_SPARSE_CROSSENTROPY, .from_logits = true},
     x,
     labels,
     0.56155926,
     0.321265101,
     0.676964939,
     0.0142880604},
    {{.kind = TY_LOSS_KERAS_SPARSE_CROSSENTROPY}, p, labels, 0.717495263, 0.368344277, 0.837768734, 0.249999985},
    {{.kind = TY_LOSS_KERAS_SPARSE_CROSSENTROPY, .from_logits = true, .ignore_index = 1},
     x,
     labels,
     0.338689446,
     0.330851495,
     0.46203652,
     0.0285761207},
    {{.kind = TY_LOSS_KERAS_CATEGORICAL_CROSSENTROPY, .from_logits = true, .label_smoothing = 0.1},
     x,
     y,
     0.646142602,
     0.441473424,
     0.741964936,
     0.0059547266},
    {{.kind = TY_LOSS_KERAS_CATEGORICAL_CROSSENTROPY}, twice_p, y, 0.717495263, 0.368344307, 0.837768734, 0.125},
    {{.kind = TY_LOSS_KERAS_CATEGORICAL_FOCAL, .from_logits = true, .alpha = 0.25, .gamma = 2},
     x,
     y,
     0.0412245356,
     0.00749170501,
     0.0542925075,
     0.00125842844},
    {{.kind = TY_LOSS_KERAS_CATEGORICAL_FOCAL, .alpha = 0.5, .gamma = 1.5, .label_smoothing = 0.2},
     p,
     y,
     0.260796905,
     0.178560495,
     0.304623663,
     0.116105437},
    {{.kind = TY_LOSS_KERAS_BINARY_CROSSENTROPY, .from_logits = true, .label_smoothing = 0.2},
     x,
     y,
     0.587938905,
     0.53208369,
     0.604547441,
     0.00686879456},
    {{.kind = TY_LOSS_KERAS_BINARY_CROSSENTROPY}, p, y, 0.436584473, 0.228534207, 0.505981684, 0.166666657},
    {{.kind = TY_LOSS_KERAS_BINARY_FOCAL, .from_logits = true, .alpha = 0.3, .gamma = 2, .balanced = true},
     x,
     y,
     0.0857630298,
     0.0623219535,
     0.0919077024,
     0.000993480906},
    {{.kind = TY_LOSS_KERAS_BINARY_FOCAL, .alpha = 0.25, .gamma = 3},
     p,
     y,
     0.0936680883,
     0.0228261966,
     0.123610698,
     0.0641550273},
    {{.kind = TY_LOSS_KERAS_MSE}, x, r, 0.709374964, 0.958229125, 0.80583334, -0.166666672},
    {{.kind = TY_LOSS_KERAS_MAE}, x, r, 0.662500024, 0.802083313, 0.705555558, -0.0833333358},
    {{.kind = TY_LOSS_KERAS_MAPE}, x, r, 8333435, 16666721, 126.111122, -16.666666},
    {{.kind = TY_LOSS_KERAS_MSLE}, p, size, 0.287222743, 0.41133672, 0.270628601, 0},
    {{.kind = TY_LOSS_KERAS_HUBER, .delta = 0.7}, x, r, 0.272187501, 0.357239574, 0.297916651, -0.0583333336},
    {{.kind = TY_LOSS_KERAS_LOG_COSH}, x, r, 0.279799938, 0.370843679, 0.310968041, -0.0634661838},
    {{.kind = TY_LOSS_KERAS_KL_DIVERGENCE}, p, y, 0.717492402, 0.368341565, 0.837765872, -5.00000006e-08},
    {{.kind = TY_LOSS_KERAS_POISSON}, p, size, 1.57418418, 1.95637786, 1.63836777, 2.23517418e-08},
    {{.kind = TY_LOSS_KERAS_COSINE_SIMILARITY}, x, r, -0.822411656, -0.942370296, -0.779800892, -0.0483358428},
    {{.kind = TY_LOSS_KERAS_HINGE}, x, y, 0.645833313, 0.506250024, 0.672222257, 0},
    {{.kind = TY_LOSS_KERAS_HINGE}, x, r, 0.53458333, 0.409791648, 0.552777767, 0.0416666679},
    {{.kind = TY_LOSS_KERAS_SQUARED_HINGE}, x, y, 0.706041694, 0.471145838, 0.766944468, 0},
    {{.kind = TY_LOSS_KERAS_CATEGORICAL_HINGE}, x, y, 0.399999976, 0.0375000015, 0.533333361, 0},
};

static bool has_labels(const struct keras_case *c)
{
    return c->target == labels;
}

/* A term as recipes make it. */
static ty_loss_term term_of(const struct keras_case *c)
{
    ty_loss_term t = c->term;
    t.class_axis = -1;
    t.weight = 1;
    if (t.ignore_index == 0)
        t.ignore_index = -100;
    return t;
}

typedef struct built {
    ty_graph *g;
    ty_val output, target, weight, mask;
    const void *inputs[4];
} built;

static built begin(const struct keras_case *c)
{
    built b = {.g = ty_graph_new(), .inputs = {c->output, c->target, weights, mask}};
    int64_t dim[2] = {ROWS, CLASSES};
    b.output = new_input(b.g, TY_F32, 2, dim);
    b.target = has_labels(c) ? new_input(b.g, TY_I64, 1, dim) : new_input(b.g, TY_F32, 2, dim);
    b.weight = new_input(b.g, TY_F32, 1, dim);
    b.mask = new_input(b.g, TY_BOOL, 1, dim);
    return b;
}

static ty_val loss_of(built *b, const ty_loss_term *t, bool weighed, bool masked)
{
    ty_loss_operands in = {.output = b->output,
                           .target = b->target,
                           .sample_weight = weighed ? b->weight : TY_NONE,
                           .rows = masked ? b->mask : TY_NONE,
                           .other = TY_NONE,
                           .input_lengths = TY_NONE,
                           .target_lengths = TY_NONE};
    ty_loss_sums sums;
    ty_error err = {0};
    if (ty_loss_term_build(b->g, t, &in, &sums, &err) < 0)
        fail_msg("%s", err.message);
    return ty_b_div(b->g, sums.sum, sums.count);
}

static void expect(const struct keras_case *c, const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 3e-6 * fmax(fabs(want), 0.05)))
        fail_msg("%s, %s: expected %.9g, found %.9g", ty_loss_text(c->term.kind), what, want, got);
}

static double value(built *b, ty_val v)
{
    return *(const double *)evaluate(b->g, v, b->inputs, false);
}

static void losses_are_keras(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct keras_case *c = &cases[i];
        const ty_loss_term t = term_of(c);
        built b = begin(c);
        expect(c, "plain", value(&b, loss_of(&b, &t, false, false)), c->plain);
        expect(c, "weighed", value(&b, loss_of(&b, &t, true, false)), c->weighed);
        expect(c, "masked", value(&b, loss_of(&b, &t, false, true)), c->masked);
        ty_graph_free(b.g);
    }
}

static void slopes_are_keras(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct keras_case *c = &cases[i];
        const ty_loss_term t = term_of(c);
        built b = begin(c);
        ty_val grad, loss = loss_of(&b, &t, false, false);
        ty_error err = {0};
        if (ty_pass_autodiff(b.g, loss, &b.output, 1, &grad, &err) < 0)
            fail_msg("%s", err.message);
        ty_val at = ty_b_reshape(b.g, ty_b_slice_axis(b.g, ty_b_flatten(b.g, grad), 0, 1, 2), 0, NULL);
        expect(c, "slope", value(&b, at), c->slope);
        ty_graph_free(b.g);
    }
}

/* What went into a softmax or a sigmoid is taken, so that probabilities of 0 and 1 still have a slope. */
static void probabilities_are_seen_through(void **state)
{
    (void)state;
    static const float far[] = {60, -60, 0, 2, 0.1f, -0.4f, 0.6f, 0.3f, 0.1f, -0.7f, 1.1f, 0.05f};
    static const ty_loss_kind kinds[] = {TY_LOSS_KERAS_SPARSE_CROSSENTROPY, TY_LOSS_KERAS_CATEGORICAL_CROSSENTROPY,
                                         TY_LOSS_KERAS_BINARY_CROSSENTROPY, TY_LOSS_KERAS_BINARY_FOCAL};
    for (int k = 0; k < 4; k++) {
        struct keras_case c = {
            {.kind = kinds[k], .alpha = 1, .gamma = 2}, far, k == 0 ? (const void *)labels : y, 0, 0, 0, 0};
        ty_loss_term t = term_of(&c);
        built b = begin(&c);
        ty_val raw = b.output;
        t.from_logits = true;
        double want = value(&b, loss_of(&b, &t, false, false));
        t.from_logits = false;
        b.output = k < 2 ? ty_b_softmax(b.g, raw, 1, false) : ty_b_sigmoid(b.g, raw);
        expect(&c, "through", value(&b, loss_of(&b, &t, false, false)), want);
        assert_true(want > 4);
        ty_graph_free(b.g);
    }
}

/* sum: divided by nothing; weighted_mean: by the weights; class weights go by labels, in training alone. */
static void reductions(void **state)
{
    (void)state;
    const struct keras_case *c = &cases[0];
    ty_loss_term t = term_of(c);
    built b = begin(c);
    t.reduction = TY_REDUCTION_SUM;
    expect(c, "sum", value(&b, loss_of(&b, &t, false, false)), 4 * c->plain);
    t.reduction = TY_REDUCTION_WEIGHTED_MEAN;
    expect(c, "weighted mean", value(&b, loss_of(&b, &t, true, false)), c->weighed * 4 / 4);
    t.reduction = TY_REDUCTION_MEAN;
    t.class_weights = (const double[]){2, 0, 0.5}; /* of the rows: 0.5, 2, 0, 0 */
    t.n_class_weights = 3;
    double first = value(&b, loss_of(&b, &t, false, false));
    t.n_class_weights = 2; /* class 2 then weighs 1 */
    double second = value(&b, loss_of(&b, &t, false, false));
    double row0 = log(exp(0.2) + exp(-1.5) + exp(0.9)) - 0.9, row1 = log(exp(2) + exp(0.1) + exp(-0.4)) - 2;
    expect(c, "class weights", first, (0.5 * row0 + 2 * row1) / 4);
    expect(c, "class weights, one less", second, (row0 + 2 * row1) / 4);
    ty_loss_operands in = {
        .output = b.output, .target = b.target, .sample_weight = TY_NONE, .rows = TY_NONE, .evaluates = true};
    ty_loss_sums sums = ty_loss_keras(b.g, &t, &in);
    expect(c, "evaluation", value(&b, ty_b_div(b.g, sums.sum, sums.count)), c->plain);
    ty_graph_free(b.g);
}

/* Steps of sequences: weights of the batch's rows go on over the steps, masks are of the steps. */
static void rows_of_sequences(void **state)
{
    (void)state;
    static const float out[] = {1, 2, 3, 4, 5, 6, 7, 8}, target[8] = {0}, w[] = {1, 3};
    static const bool m[] = {true, false, true, true};
    const void *inputs[] = {out, target, w, m};
    ty_loss_term t = {.kind = TY_LOSS_KERAS_MAE, .class_axis = -1, .weight = 1};
    ty_graph *g = ty_graph_new();
    ty_val a = new_input(g, TY_F32, 3, (int64_t[]){2, 2, 2}), b = new_input(g, TY_F32, 3, (int64_t[]){2, 2, 2});
    ty_loss_operands in = {.output = a, .target = b, .rows = TY_NONE};
    in.sample_weight = new_input(g, TY_F32, 1, (int64_t[]){2});
    ty_val keep = new_input(g, TY_BOOL, 2, (int64_t[]){2, 2});
    ty_loss_sums sums = ty_loss_keras(g, &t, &in);
    /* rows: 1.5 3.5 | 5.5 7.5, weights 1 1 | 3 3 */
    assert_float_equal(*(double *)evaluate(g, sums.sum, inputs, false), 1.5 + 3.5 + 3 * (5.5 + 7.5), 1e-5);
    assert_float_equal(*(double *)evaluate(g, sums.count, inputs, false), 4, 0);
    in.rows = keep;
    sums = ty_loss_keras(g, &t, &in);
    assert_float_equal(*(double *)evaluate(g, sums.sum, inputs, false), 1.5 + 3 * (5.5 + 7.5), 1e-5);
    assert_float_equal(*(double *)evaluate(g, sums.count, inputs, false), 3, 0);
    ty_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_keras),
        cmocka_unit_test(slopes_are_keras),
        cmocka_unit_test(probabilities_are_seen_through),
        cmocka_unit_test(reductions),
        cmocka_unit_test(rows_of_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
