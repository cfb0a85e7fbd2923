/* Losses and metrics: numbers worked out by hand, rows left out, gradients by central differences, refusals. */
#include "tests/unit/evaluate.h"
#include "tests/unit/gradients.h"

#include "compiler/passes/loss.h"
#include "compiler/passes/metric.h"

#define NONE ((ty_val)TY_NONE)

static ty_loss_term term_of(ty_loss_kind kind)
{
    return (ty_loss_term){.kind = kind,
                          .output = "y",
                          .target = "t",
                          .weight = 1,
                          .delta = 1,
                          .pos_weight = 1,
                          .ignore_index = -100,
                          .class_axis = -1};
}

static void expect_near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * fmax(1, fabs(want))))
        fail_msg("%s: expected %.9g, found %.9g", what, want, got);
}

/* Output, target and weights are constants; valid < 0: all rows count. */
typedef struct loss_case {
    ty_loss_term term;
    int rank;
    int64_t dim[3];
    float x[12];
    int target_rank;
    int64_t target_dim[3];
    const float *y;        /* float target */
    const int64_t *labels; /* or class numbers */
    const float *w;        /* shaped as the target */
    int valid;
} loss_case;

static ty_val constant(ty_graph *g, ty_dtype dtype, int rank, const int64_t *dim, const void *data)
{
    return ty_b_const(g, ty_type_make(dtype, rank, dim), data);
}

static ty_val first_rows(ty_graph *g, int64_t batch, int valid)
{
    if (valid < 0)
        return TY_NONE;
    ty_val number = ty_b_iota(g, ty_type_make(TY_I64, 1, &batch), 0);
    return ty_b_lt(g, number, ty_b_full_like(g, number, valid));
}

static ty_loss_operands operands(ty_graph *g, const loss_case *c)
{
    const void *target = c->y ? (const void *)c->y : c->labels;
    ty_dtype dtype = c->y ? TY_F32 : TY_I64;
    return (ty_loss_operands){
        .output = constant(g, TY_F32, c->rank, c->dim, c->x),
        .target = target ? constant(g, dtype, c->target_rank, c->target_dim, target) : NONE,
        .sample_weight = c->w ? constant(g, TY_F32, c->target_rank, c->target_dim, c->w) : NONE,
        .rows = first_rows(g, c->dim[0], c->valid),
    };
}

static void expect_loss(const loss_case *c, double sum, double count)
{
    ty_error err = {0};
    ty_loss_sums s;
    ty_graph *g = ty_graph_new();
    ty_loss_operands in = operands(g, c);
    if (ty_loss_term_build(g, &c->term, &in, &s, &err) < 0)
        fail_msg("%s", err.message);
    expect_near("sum", *(double *)evaluate(g, s.sum, NULL, false), sum);
    expect_near("count", *(double *)evaluate(g, s.count, NULL, false), count);
    ty_graph_free(g);
}

#define FLOATS(...) ((const float[]){__VA_ARGS__})
#define LABELS(...) ((const int64_t[]){__VA_ARGS__})

/* ---- elements -------------------------------------------------------------------------------------------------------
 */

static loss_case of_elements(ty_loss_kind kind)
{
    static const float target[] = {0, 1, 0.25f, 3};
    return (loss_case){.term = term_of(kind),
                       .rank = 2,
                       .dim = {2, 2},
                       .x = {1, -2, 0.5f, 3},
                       .target_rank = 2,
                       .target_dim = {2, 2},
                       .y = target,
                       .valid = -1};
}

static void squares(void **state)
{
    (void)state;
    loss_case c = of_elements(TY_LOSS_MSE);
    expect_loss(&c, 1 + 9 + 0.0625, 4);
    c.valid = 1;
    expect_loss(&c, 10, 2);
    c.w = FLOATS(2, 1, 4, 100);
    expect_loss(&c, 11, 3);
    c.valid = -1;
    expect_loss(&c, 2 + 9 + 0.25, 107);
}

static void absolutes(void **state)
{
    (void)state;
    loss_case c = of_elements(TY_LOSS_MAE);
    expect_loss(&c, 1 + 3 + 0.25, 4);
}

static void huber_bends_at_delta(void **state)
{
    (void)state;
    loss_case c = of_elements(TY_LOSS_HUBER);
    c.term.delta = 0.5;
    expect_loss(&c, 0.5 * 0.75 + 0.5 * 2.75 + 0.03125, 4);
    c.term.delta = 1;
    expect_loss(&c, 0.5 + 2.5 + 0.03125, 4);
}

static double plain_bce(double x, double y, double p)
{
    return (1 - y) * x + (1 + (p - 1) * y) * (log(1 + exp(-fabs(x))) + fmax(-x, 0));
}

static void binary_logits(void **state)
{
    (void)state;
    loss_case c = of_elements(TY_LOSS_BCE_LOGITS);
    for (int k = 0; k < 2; k++) {
        double p = c.term.pos_weight = k ? 3.5 : 1;
        expect_loss(&c, plain_bce(1, 0, p) + plain_bce(-2, 1, p) + plain_bce(0.5, 0.25, p) + plain_bce(3, 3, p), 4);
    }
    c.x[0] = 200; /* far out: neither overflow nor loss of the tail */
    c.x[1] = -300;
    c.term.pos_weight = 1;
    expect_loss(&c, 200 + 300 + plain_bce(0.5, 0.25, 1) + plain_bce(3, 3, 1), 4);
}

static void kl_divides_by_rows(void **state)
{
    (void)state;
    loss_case c = of_elements(TY_LOSS_KL_DIV);
    float log_p[] = {logf(0.25f), logf(0.75f), -INFINITY, 0};
    memcpy(c.x, log_p, sizeof log_p);
    c.y = FLOATS(0.5f, 0.5f, 0, 1); /* y = 0 beside -inf is 0, not NaN */
    double first = 0.5 * (log(0.5) - log(0.25)) + 0.5 * (log(0.5) - log(0.75));
    expect_loss(&c, first, 2);
    c.valid = 1;
    expect_loss(&c, first, 1);
}

static void mean_takes_any_shape(void **state)
{
    (void)state;
    loss_case c = {.term = term_of(TY_LOSS_MEAN), .rank = 1, .dim = {3}, .x = {1, 2, 6}, .valid = -1};
    expect_loss(&c, 9, 3);
    c.valid = 2;
    expect_loss(&c, 3, 2);
    loss_case one = {.term = term_of(TY_LOSS_MEAN), .rank = 0, .x = {7}, .valid = -1};
    expect_loss(&one, 7, 1);
}

static void dims_of_one_do_not_spread(void **state)
{
    (void)state;
    loss_case c = {.term = term_of(TY_LOSS_MSE),
                   .rank = 2,
                   .dim = {3, 1},
                   .x = {1, 2, 3},
                   .target_rank = 1,
                   .target_dim = {3},
                   .y = FLOATS(1, 1, 1),
                   .valid = -1};
    expect_loss(&c, 5, 3); /* NumPy's rules would make it nine terms */
}

static void masked_rows_may_hold_anything(void **state)
{
    (void)state;
    loss_case c = of_elements(TY_LOSS_MSE);
    c.x[2] = NAN;
    c.x[3] = INFINITY;
    c.valid = 1;
    expect_loss(&c, 10, 2);
}

/* ---- classes --------------------------------------------------------------------------------------------------------
 */

/* -log softmax of class k among three numbers. */
static double plain_xent(const float *x, int k)
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += exp((double)x[i]);
    return log(sum) - (double)x[k];
}

static loss_case of_classes(ty_loss_kind kind)
{
    static const int64_t target[] = {2, 0, -100, 1};
    return (loss_case){.term = term_of(kind),
                       .rank = 2,
                       .dim = {4, 3},
                       .x = {1, 2, 3, 0, 0, 0, -1, 4, 0.5f, 2, 1, 0},
                       .target_rank = 1,
                       .target_dim = {4},
                       .labels = target,
                       .valid = -1};
}

static void cross_entropy(void **state)
{
    (void)state;
    loss_case c = of_classes(TY_LOSS_SOFTMAX_CROSS_ENTROPY);
    double l0 = plain_xent(c.x, 2), l1 = plain_xent(c.x + 3, 0), l2 = plain_xent(c.x + 6, 1),
           l3 = plain_xent(c.x + 9, 1);
    expect_loss(&c, l0 + l1 + l3, 3);
    c.valid = 2;
    expect_loss(&c, l0 + l1, 2);
    c.valid = -1;
    c.term.ignore_index = 1;
    c.labels = LABELS(2, 0, 1, 1);
    expect_loss(&c, l0 + l1, 2);
    c.term.ignore_index = -100;
    c.w = FLOATS(1, 2, 3, 4);
    expect_loss(&c, l0 + 2 * l1 + 3 * l2 + 4 * l3, 10);
    c.w = NULL;
    c.term.class_weights = (const double[]){10, 1, 0.5};
    c.term.n_class_weights = 3;
    expect_loss(&c, 0.5 * l0 + 10 * l1 + l2 + l3, 12.5);
}

static void smoothing(void **state)
{
    (void)state;
    loss_case c = of_classes(TY_LOSS_SOFTMAX_CROSS_ENTROPY);
    double want = 0;
    int label[] = {2, 0, 0, 1};
    c.term.label_smoothing = 0.3;
    for (int r = 0; r < 4; r++)
        for (int k = 0; k < 3 && r != 2; k++)
            want += plain_xent(c.x + 3 * r, k) * (0.3 / 3 + (k == label[r] ? 0.7 : 0));
    expect_loss(&c, want, 3);
}

static void likelihood_of_log_probabilities(void **state)
{
    (void)state;
    loss_case c = of_classes(TY_LOSS_NLL);
    expect_loss(&c, -(3 + 0 + 1), 3);
    c.term.class_weights = (const double[]){10, 1, 0.5};
    c.term.n_class_weights = 3;
    expect_loss(&c, -(1.5 + 0 + 1), 11.5);
    c.valid = 1;
    expect_loss(&c, -1.5, 0.5);
}

/* ---- nll of a log-softmax ---- */

static int count_ops(const ty_graph *g, ty_val root, ty_op op)
{
    static uint8_t needed[1000];
    int n = 0;
    memset(needed, 0, sizeof needed);
    needed[ty_val_node(root)] = 1;
    for (uint32_t id = ty_val_node(root) + 1; id-- > 0;) {
        n += needed[id] && ty_graph_op(g, id) == op;
        for (uint32_t k = 0; needed[id] && k < ty_graph_node(g, id)->n_in; k++)
            if (ty_graph_in(g, id, (int)k) != TY_NONE)
                needed[ty_val_node(ty_graph_in(g, id, (int)k))] = 1;
    }
    return n;
}

/* x [rank: dim] -> log-softmax (or softmax) along axis -> nll along class_axis of it seen as [seen] */
typedef struct joined {
    int rank;
    int64_t dim[4];
    int axis;
    bool log, is_kept;
    int seen_rank;
    int64_t seen[4];
    int class_axis, n_xent;
} joined;

static void expect_joined(const joined *j, int which)
{
    static const float x[12] = {1, 0, 2, 0, 3, 0, -1, 2, 4, 1, 0.5f, 0};
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_loss_sums s, apart;
    ty_loss_term t = term_of(TY_LOSS_NLL);
    t.class_axis = j->class_axis;
    t.label_smoothing = 0.1; /* nothing to nll */
    t.class_weights = (const double[]){10, 1, 0.5};
    t.n_class_weights = 3;
    int64_t n_labels = 4;
    ty_val p = ty_b_softmax(g, new_input(g, TY_F32, j->rank, j->dim), j->axis, j->log);
    ty_loss_operands in = {.output = ty_b_reshape(g, p, j->seen_rank, j->seen), .is_kept = j->is_kept};
    in.target = ty_b_const(g, ty_type_make(TY_I64, 1, &n_labels), LABELS(2, 0, -100, 1));
    in.target = ty_b_reshape(g, in.target, 2, (int64_t[]){2, 2});
    in.sample_weight = in.rows = TY_NONE;
    if (ty_loss_term_build(g, &t, &in, &s, &err) < 0)
        fail_msg("%d: %s", which, err.message);
    in.is_kept = true;
    assert_int_equal(ty_loss_term_build(g, &t, &in, &apart, &err), 0);
    assert_int_equal(count_ops(g, apart.sum, TY_OP_XENT), 0);
    if (count_ops(g, s.sum, TY_OP_XENT) != j->n_xent || count_ops(g, s.sum, TY_OP_SOFTMAX) != !j->n_xent)
        fail_msg("%d: %d cross-entropies, %d softmaxes", which, count_ops(g, s.sum, TY_OP_XENT),
                 count_ops(g, s.sum, TY_OP_SOFTMAX));
    const void *data[] = {x};
    double sum = *(double *)evaluate(g, apart.sum, data, false), n = *(double *)evaluate(g, apart.count, data, false);
    expect_near("sum", *(double *)evaluate(g, s.sum, data, false), sum);
    expect_near("count", *(double *)evaluate(g, s.count, data, false), n);
    ty_graph_free(g);
}

static void likelihood_of_log_softmax_is_cross_entropy(void **state)
{
    (void)state;
    static const joined forms[] = {
        {2, {4, 3}, 1, true, false, 3, {2, 2, 3}, 2, 1},       /* flattened rows, as language models have them */
        {3, {2, 3, 2}, 1, true, false, 3, {2, 3, 2}, 1, 1},    /* classes before places */
        {3, {2, 2, 3}, 2, true, false, 3, {2, 2, 3}, -1, 1},   /* */
        {4, {2, 3, 1, 2}, 1, true, false, 3, {2, 3, 2}, 1, 1}, /* */
        {3, {2, 2, 3}, 2, true, true, 3, {2, 2, 3}, -1, 0},    /* the log-softmax is there anyway */
        {3, {2, 2, 3}, 1, true, false, 3, {2, 2, 3}, -1, 0},   /* along another axis */
        {3, {2, 2, 3}, 2, false, false, 3, {2, 2, 3}, -1, 0},  /* no logarithm */
        {2, {2, 6}, 1, true, false, 3, {2, 2, 3}, -1, 0},      /* over more than the classes */
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        expect_joined(&forms[i], (int)i);
}

static void classes_on_another_axis(void **state)
{
    (void)state;
    loss_case c = {.term = term_of(TY_LOSS_SOFTMAX_CROSS_ENTROPY),
                   .rank = 3,
                   .dim = {2, 3, 2}, /* [batch, class, place] */
                   .x = {1, 0, 2, 0, 3, 0, -1, 2, 4, 1, 0.5f, 0},
                   .target_rank = 2,
                   .target_dim = {2, 2},
                   .labels = LABELS(2, 0, 1, 1),
                   .valid = -1};
    c.term.class_axis = 1;
    double first = plain_xent(FLOATS(1, 2, 3), 2) + plain_xent(FLOATS(0, 0, 0), 0);
    double second = plain_xent(FLOATS(-1, 4, 0.5f), 1) + plain_xent(FLOATS(2, 1, 0), 1);
    expect_loss(&c, first + second, 4);
    c.valid = 1;
    expect_loss(&c, first, 2);
    c.term.class_axis = -2;
    expect_loss(&c, first, 2);
}

/* ---- gradients ------------------------------------------------------------------------------------------------------
 */

static ty_val build_term(ty_graph *g, const ty_val *x, const void *ctx)
{
    const ty_loss_term *t = ctx;
    ty_error err = {0};
    ty_loss_sums s;
    ty_loss_operands in = {
        .output = ty_b_cast(g, x[0], TY_F32), .target = TY_NONE, .sample_weight = TY_NONE, .rows = TY_NONE};
    if (t->kind == TY_LOSS_NLL || t->kind == TY_LOSS_SOFTMAX_CROSS_ENTROPY)
        in.target = ty_b_const(g, ty_type_make(TY_I64, SHAPE(4)), LABELS(2, 0, 1, 2));
    else if (t->kind != TY_LOSS_MEAN)
        in.target = ty_b_const(g, ty_type_make(TY_F32, SHAPE(4, 3)),
                               FLOATS(0.25f, 0, 1, 2, 0.5f, 0.125f, 1, 1, 1, 0, 0.75f, 0.3f));
    if (ty_loss_term_build(g, t, &in, &s, &err) < 0)
        fail_msg("%s", err.message);
    return ty_b_cast(g, ty_b_div(g, s.sum, s.count), TY_F64);
}

/* The double interpreter rounds at casts to f32: hence the wide step. */
static void gradients_are_slopes(void **state)
{
    (void)state;
    for (int k = 0; k <= TY_LOSS_MEAN; k++) { /* the later kinds: loss_kinds.c, ctc.c */
        ty_loss_term t = term_of((ty_loss_kind)k);
        t.delta = 0.4;
        t.pos_weight = 2;
        t.label_smoothing = 0.1;
        gradcheck(&(gradcheck_case){.name = ty_loss_text(t.kind),
                                    .build = build_term,
                                    .ctx = &t,
                                    .n_in = 1,
                                    .in = {GRAD_IN(4, 3)},
                                    .h = 1e-3,
                                    .tolerance = 1e-3});
    }
}

/* At 0 the logistic loss has slope sigmoid(0) - y, whatever its pieces do there: a head of zeros must learn. */
static void logits_of_zero_have_a_slope(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_loss_term t = term_of(TY_LOSS_BCE_LOGITS);
    ty_loss_sums s;
    ty_val x = new_input(g, TY_F32, SHAPE(2)), dx;
    ty_loss_operands in = {
        .output = x, .target = constant(g, TY_F32, SHAPE(2), FLOATS(0, 1)), .sample_weight = TY_NONE, .rows = TY_NONE};
    assert_int_equal(ty_loss_term_build(g, &t, &in, &s, &err), 0);
    assert_int_equal(ty_pass_autodiff(g, s.sum, &x, 1, &dx, &err), 0);
    const void *inputs[] = {FLOATS(0, 0)};
    expect_floats(g, dx, inputs, 2, (double[]){0.5, -0.5});
    ty_graph_free(g);
}

/* ---- metrics --------------------------------------------------------------------------------------------------------
 */

static void expect_metric(ty_metric_kind kind, const loss_case *c, double sum, double count)
{
    ty_error err = {0};
    ty_metric_parts s;
    ty_graph *g = ty_graph_new();
    ty_loss_operands in = operands(g, c);
    ty_metric metric = {.kind = kind, .name = "m", .output = "y", .target = "t"};
    ty_metric_classes classes = {c->term.class_axis, c->term.ignore_index, false};
    if (ty_metric_build(g, &metric, &in, &classes, &s, &err) < 0)
        fail_msg("%s", err.message);
    expect_near("sum", *(double *)evaluate(g, s.value[0], NULL, false), sum);
    expect_near("count", *(double *)evaluate(g, s.value[1], NULL, false), count);
    ty_graph_free(g);
}

static void accuracy_of_classes(void **state)
{
    (void)state;
    loss_case c = of_classes(TY_LOSS_SOFTMAX_CROSS_ENTROPY);
    expect_metric(TY_METRIC_ACCURACY, &c, 2, 3);
    c.valid = 1;
    expect_metric(TY_METRIC_ACCURACY, &c, 1, 1);
    loss_case other = {.term = term_of(TY_LOSS_NLL),
                       .rank = 3,
                       .dim = {2, 3, 2},
                       .x = {1, 0, 2, 0, 3, 9, -1, 2, 4, 1, 0.5f, 0},
                       .target_rank = 2,
                       .target_dim = {2, 2},
                       .labels = LABELS(2, 0, 1, 0),
                       .valid = -1};
    other.term.class_axis = 1;
    expect_metric(TY_METRIC_ACCURACY, &other, 3, 4);
}

static void accuracy_of_single_logits(void **state)
{
    (void)state;
    loss_case c = {.term = term_of(TY_LOSS_BCE_LOGITS),
                   .rank = 2,
                   .dim = {4, 1},
                   .x = {1, -1, 3, -0.5f},
                   .target_rank = 1,
                   .target_dim = {4},
                   .y = FLOATS(1, 1, 0, 0),
                   .valid = -1};
    expect_metric(TY_METRIC_ACCURACY, &c, 2, 4);
    c.valid = 1;
    expect_metric(TY_METRIC_ACCURACY, &c, 1, 1);
}

static void mean_absolute_error(void **state)
{
    (void)state;
    loss_case c = of_elements(TY_LOSS_MSE);
    expect_metric(TY_METRIC_MAE, &c, 4.25, 4);
    c.valid = 1;
    expect_metric(TY_METRIC_MAE, &c, 4, 2);
}

/* ---- refusals -------------------------------------------------------------------------------------------------------
 */

static void expect_refused(const loss_case *c, const char *words)
{
    ty_error err = {0};
    ty_loss_sums s;
    ty_graph *g = ty_graph_new();
    ty_loss_operands in = operands(g, c);
    assert_int_equal(ty_loss_term_build(g, &c->term, &in, &s, &err), -1);
    if (!strstr(err.message, words))
        fail_msg("expected \"%s\", found \"%s\"", words, err.message);
    ty_graph_free(g);
}

static void refusals_name_both_sides(void **state)
{
    (void)state;
    loss_case c = of_elements(TY_LOSS_MSE);
    c.target_rank = 1;
    expect_refused(&c, "loss mse on output \"y\": target: expected the shape of the output, f32[2,2], found f32[2]");
    c = of_elements(TY_LOSS_KL_DIV);
    c.w = FLOATS(1, 1, 1, 1);
    expect_refused(&c, "sample weights");
    c = of_elements(TY_LOSS_MSE);
    c.y = NULL;
    expect_refused(&c, "expected a target, found none");
    c = of_classes(TY_LOSS_SOFTMAX_CROSS_ENTROPY);
    c.target_dim[0] = 3;
    expect_refused(&c, "target: expected i64[4]");
    c.target_rank = 2;
    c.target_dim[0] = 4;
    c.target_dim[1] = 3;
    c.labels = LABELS(0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0);
    expect_refused(&c, "found i64[4,3]; one-hot rows need dense_labels: true");
    c = of_classes(TY_LOSS_NLL);
    c.y = FLOATS(1, 2, 3, 4);
    expect_refused(&c, "expected class numbers (an integer type), found f32[4]");
    c = of_classes(TY_LOSS_NLL);
    c.term.class_axis = 2;
    expect_refused(&c, "class_axis: expected -2 to 1, found 2");
    c = of_classes(TY_LOSS_NLL);
    c.term.class_weights = (const double[]){1, 2};
    c.term.n_class_weights = 2;
    expect_refused(&c, "class_weights: expected 3 numbers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squares),
        cmocka_unit_test(absolutes),
        cmocka_unit_test(huber_bends_at_delta),
        cmocka_unit_test(binary_logits),
        cmocka_unit_test(kl_divides_by_rows),
        cmocka_unit_test(mean_takes_any_shape),
        cmocka_unit_test(dims_of_one_do_not_spread),
        cmocka_unit_test(masked_rows_may_hold_anything),
        cmocka_unit_test(cross_entropy),
        cmocka_unit_test(smoothing),
        cmocka_unit_test(likelihood_of_log_probabilities),
        cmocka_unit_test(likelihood_of_log_softmax_is_cross_entropy),
        cmocka_unit_test(classes_on_another_axis),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(logits_of_zero_have_a_slope),
        cmocka_unit_test(accuracy_of_classes),
        cmocka_unit_test(accuracy_of_single_logits),
        cmocka_unit_test(mean_absolute_error),
        cmocka_unit_test(refusals_name_both_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
