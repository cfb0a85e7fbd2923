/* Losses of margins, angles and pairs, dense labels, penalties: each against a plain implementation in doubles, against
 * PyTorch's numbers, and its gradient against central differences.
 *
 * PyTorch's numbers (2.15, float64) come from torch.nn.functional with the inputs below: cross_entropy(x, p),
 * multi_margin_loss(x, labels), cosine_embedding_loss(x, z, sign, margin), (1 - cosine_similarity(x, z)).mean().
 */
#include "tests/unit/evaluate.h"
#include "tests/unit/gradients.h"

#include "compiler/passes/loss.h"

#define ROWS        4
#define CLASSES     3
#define FLOATS(...) ((const float[]){__VA_ARGS__})

static const float x_data[] = {1, 2, 3, 0, 0, 0, -1, 4, 0.5f, 2, 1, 0};
static const float z_data[] = {0.5f, -1, 2, 1, 1, 1, 0.25f, 4, 1, -2, -1, 0.5f};
static const float p_data[] = {0.25f, 0.25f, 0.5f, 1, 0, 0, 0, 0.75f, 0.25f, 0.1f, 0.2f, 0.7f};
static const int64_t labels[] = {2, 0, 1, 1};
static const float sign[] = {1, -1, 1, -1};
static const float same[] = {1, 0, 1, 0};
static const float weights[] = {1, 2, 0.5f, 4};
static const double class_weights[] = {10, 1, 0.5};

static void expect_near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 2e-6 * fmax(1, fabs(want))))
        fail_msg("%s: expected %.9g, found %.9g", what, want, got);
}

/* ---- the kinds with inputs above: what to build, what a row's term is
 * ------------------------------------------------
 */

typedef struct kind_case {
    ty_loss_term term;
    double (*plain)(const ty_loss_term *t, int row); /* the term of a row */
    double torch;                                    /* mean, where PyTorch has the loss; NAN: it has not */
} kind_case;

static double dot(const float *a, const float *b)
{
    double sum = 0;
    for (int i = 0; i < CLASSES; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static double plain_dense(const ty_loss_term *t, int row)
{
    const float *x = x_data + CLASSES * row, *p = p_data + CLASSES * row;
    double sum = 0, out = 0;
    for (int c = 0; c < CLASSES; c++)
        sum += exp((double)x[c]);
    for (int c = 0; c < CLASSES; c++) {
        double share = (1 - t->label_smoothing) * (double)p[c] + t->label_smoothing / CLASSES;
        out -= share * ((double)x[c] - log(sum)) * (t->n_class_weights ? class_weights[c] : 1);
    }
    return out;
}

static double plain_multi_margin(const ty_loss_term *t, int row)
{
    const float *x = x_data + CLASSES * row;
    double sum = 0;
    for (int c = 0; c < CLASSES; c++)
        if (c != labels[row])
            sum += fmax(0, t->margin - (double)x[labels[row]] + (double)x[c]);
    return sum / CLASSES * (t->n_class_weights ? class_weights[labels[row]] : 1);
}

static double plain_cos(int row)
{
    const float *x = x_data + CLASSES * row, *z = z_data + CLASSES * row;
    double scale = sqrt(dot(x, x)) * sqrt(dot(z, z));
    return scale > 0 ? dot(x, z) / scale : 0;
}

static double plain_cosine(const ty_loss_term *t, int row)
{
    (void)t;
    return 1 - plain_cos(row);
}

static double plain_cosine_embedding(const ty_loss_term *t, int row)
{
    return sign[row] > 0 ? 1 - plain_cos(row) : fmax(0, plain_cos(row) - t->margin);
}

static double plain_contrastive(const ty_loss_term *t, int row)
{
    double square = 0;
    for (int i = 0; i < CLASSES; i++)
        square += pow((double)x_data[CLASSES * row + i] - (double)z_data[CLASSES * row + i], 2);
    double lack = fmax(0, t->margin - sqrt(square));
    return same[row] > 0 ? square / 2 : lack * lack / 2;
}

#define TERM(...)                                                                                        \
    {                                                                                                    \
        .output = "y", .weight = 1, .pos_weight = 1, .ignore_index = -100, .class_axis = -1, __VA_ARGS__ \
    }
#define DENSE .kind = TY_LOSS_SOFTMAX_CROSS_ENTROPY, .dense_labels = true
static const kind_case kinds[] = {
    {TERM(DENSE), plain_dense, 1.29377345},
    {TERM(DENSE, .label_smoothing = 0.3), plain_dense, 1.41439845},
    {TERM(DENSE, .label_smoothing = 0.3, .class_weights = class_weights, .n_class_weights = 3), plain_dense,
     5.83489599},
    {TERM(.kind = TY_LOSS_MULTI_MARGIN, .margin = 1), plain_multi_margin, 0.333333333},
    {TERM(.kind = TY_LOSS_MULTI_MARGIN, .margin = 0.5, .class_weights = class_weights, .n_class_weights = 3),
     plain_multi_margin, 0.958333333},
    {TERM(.kind = TY_LOSS_COSINE), plain_cosine, (0.475109341 + 1 + 0.0528091732 + 1.97590007) / 4},
    {TERM(.kind = TY_LOSS_COSINE_EMBEDDING), plain_cosine_embedding, 0.131979629},
    {TERM(.kind = TY_LOSS_COSINE_EMBEDDING, .margin = -0.5), plain_cosine_embedding, NAN},
    {TERM(.kind = TY_LOSS_CONTRASTIVE, .margin = 1), plain_contrastive, NAN},
    {TERM(.kind = TY_LOSS_CONTRASTIVE, .margin = 5), plain_contrastive, NAN},
};
#define N_KINDS (int)(sizeof kinds / sizeof kinds[0])

static ty_loss_operands operands_of(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val z)
{
    ty_loss_operands in = {.output = x, .sample_weight = TY_NONE, .rows = TY_NONE, .other = z, .target = TY_NONE};
    if (t->dense_labels)
        in.target = ty_b_const(g, ty_type_make(TY_F32, SHAPE(ROWS, CLASSES)), p_data);
    else if (t->kind == TY_LOSS_MULTI_MARGIN)
        in.target = ty_b_const(g, ty_type_make(TY_I64, SHAPE(ROWS)), labels);
    else if (t->kind == TY_LOSS_COSINE)
        in.target = z;
    else
        in.target = ty_b_const(g, ty_type_make(TY_F32, SHAPE(ROWS)), t->kind == TY_LOSS_CONTRASTIVE ? same : sign);
    return in;
}

static ty_loss_sums build_sums(ty_graph *g, const ty_loss_term *t, const ty_loss_operands *in)
{
    ty_error err = {0};
    ty_loss_sums s;
    if (ty_loss_term_build(g, t, in, &s, &err) < 0)
        fail_msg("%s", err.message);
    return s;
}

static double number_of(ty_graph *g, ty_val v)
{
    return *(double *)evaluate(g, v, NULL, false);
}

/* valid: rows that count. */
static void expect_kind(const kind_case *k, bool weighed, int valid)
{
    ty_graph *g = ty_graph_new();
    double sum = 0, count = 0;
    ty_val x = ty_b_const(g, ty_type_make(TY_F32, SHAPE(ROWS, CLASSES)), x_data);
    ty_val z = ty_b_const(g, ty_type_make(TY_F32, SHAPE(ROWS, CLASSES)), z_data);
    ty_loss_operands in = operands_of(g, &k->term, x, z);
    if (weighed)
        in.sample_weight = ty_b_const(g, ty_type_make(TY_F32, SHAPE(ROWS)), weights);
    if (valid < ROWS) {
        ty_val number = ty_b_iota(g, ty_type_make(TY_I64, SHAPE(ROWS)), 0);
        in.rows = ty_b_lt(g, number, ty_b_full_like(g, number, valid));
    }
    ty_loss_sums s = build_sums(g, &k->term, &in);
    for (int row = 0; row < valid; row++) {
        double w = weighed ? (double)weights[row] : 1;
        sum += w * k->plain(&k->term, row);
        count += w;
    }
    expect_near(ty_loss_text(k->term.kind), number_of(g, s.sum), sum);
    expect_near("count", number_of(g, s.count), count);
    if (!weighed && valid == ROWS && !isnan(k->torch))
        expect_near("PyTorch's number", number_of(g, s.sum) / ROWS, k->torch);
    ty_graph_free(g);
}

static void kinds_follow_their_formulas(void **state)
{
    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        expect_kind(&kinds[i], false, ROWS);
        expect_kind(&kinds[i], true, ROWS);
        expect_kind(&kinds[i], true, 3);
        expect_kind(&kinds[i], false, 1);
    }
}

/* ---- gradients ------------------------------------------------------------------------------------------------------
 */

static ty_val build_mean(ty_graph *g, const ty_val *x, const void *ctx)
{
    const ty_loss_term *t = ctx;
    ty_loss_operands in = operands_of(g, t, ty_b_cast(g, x[0], TY_F32), ty_b_cast(g, x[1], TY_F32));
    ty_loss_sums s = build_sums(g, t, &in);
    return ty_b_cast(g, ty_b_div(g, s.sum, s.count), TY_F64);
}

/* The double interpreter rounds at casts to f32: hence the wide step. */
static void gradients_are_slopes(void **state)
{
    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        gradcheck_case c = {.name = ty_loss_text(kinds[i].term.kind),
                            .build = build_mean,
                            .ctx = &kinds[i].term,
                            .n_in = 2,
                            .in = {GRAD_IN(ROWS, CLASSES), GRAD_IN(ROWS, CLASSES)},
                            .h = 1e-3,
                            .tolerance = 1e-3};
        gradcheck(&c);
    }
}

/* d/dx of the mean, at x_data and z_data. */
static void expect_slope(const ty_loss_term *t, const double *want)
{
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_val x = new_input(g, TY_F32, SHAPE(ROWS, CLASSES)), dx;
    ty_val z = ty_b_const(g, ty_type_make(TY_F32, SHAPE(ROWS, CLASSES)), z_data);
    ty_loss_operands in = operands_of(g, t, x, z);
    ty_loss_sums s = build_sums(g, t, &in);
    assert_int_equal(ty_pass_autodiff(g, ty_b_div(g, s.sum, s.count), &x, 1, &dx, &err), 0);
    const void *inputs[] = {x_data};
    const double *got = evaluate(g, dx, inputs, false);
    for (int i = 0; i < ROWS * CLASSES; i++)
        expect_near(ty_loss_text(t->kind), got[i], want[i]);
    ty_graph_free(g);
}

static void gradients_are_pytorchs(void **state)
{
    (void)state;
    expect_slope(&kinds[0].term,
                 (const double[]){-0.0399923567, -0.00131788224, 0.0413102389, -0.166666667, 0.0833333333, 0.0833333333,
                                  0.00162448583, 0.0535950738, -0.0552195596, 0.141310239, 0.0111821178, -0.152492357});
    expect_slope(&kinds[6].term, (const double[]){-0.0052072486, 0.0479066871, -0.0302020419, 0, 0, 0, -0.0173704449,
                                                  -0.00337905312, -0.00770846492, 0, 0, 0});
    /* (0.5 * (same * d**2 + (1 - same) * clamp(5 - d, min=0)**2)).mean(), d = (x - z).square().sum(1).sqrt() */
    expect_slope(&kinds[9].term, (const double[]){0.125, 0.75, 0.25, 0.471687836, 0.471687836, 0.471687836, -0.3125, 0,
                                                  -0.125, -0.111111111, -0.0555555556, 0.0138888889});
}

/* Where a vector is zero, or two are equal, there is no direction: the slope is 0 and not NaN. */
static void degenerate_pairs_have_no_slope(void **state)
{
    (void)state;
    for (int i = 5; i < N_KINDS; i++) {
        ty_graph *g = ty_graph_new();
        ty_error err = {0};
        ty_val x = new_input(g, TY_F32, SHAPE(ROWS, CLASSES)), dx;
        ty_val zero = ty_b_full(g, TY_F32, SHAPE(ROWS, CLASSES), 0);
        ty_loss_operands in = operands_of(g, &kinds[i].term, x, zero);
        ty_loss_sums s = build_sums(g, &kinds[i].term, &in);
        assert_int_equal(ty_pass_autodiff(g, s.sum, &x, 1, &dx, &err), 0);
        const void *inputs[] = {FLOATS(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)};
        const double *got = evaluate(g, dx, inputs, false);
        for (int k = 0; k < ROWS * CLASSES; k++)
            assert_true(got[k] == 0);
        ty_graph_free(g);
    }
}

/* ---- elements -------------------------------------------------------------------------------------------------------
 */

static ty_loss_operands elements(ty_graph *g, int n, const float *x, const float *y, const float *w)
{
    ty_type t = ty_type_make(TY_F32, SHAPE(n));
    return (ty_loss_operands){.output = ty_b_const(g, t, x),
                              .target = ty_b_const(g, t, y),
                              .sample_weight = w ? ty_b_const(g, t, w) : TY_NONE,
                              .rows = TY_NONE};
}

static void hinge_takes_signs_and_bits(void **state)
{
    (void)state;
    const float *targets[] = {FLOATS(-1, 1, 1, 1), FLOATS(0, 1, 1, 1)};
    ty_loss_term t = TERM(.kind = TY_LOSS_HINGE, .margin = 1);
    for (int i = 0; i < 2; i++) {
        ty_graph *g = ty_graph_new();
        ty_loss_operands in = elements(g, 4, FLOATS(1, -2, 0.5f, 3), targets[i], NULL);
        expect_near("hinge", number_of(g, build_sums(g, &t, &in).sum) / 4, 1.375); /* clamp(1 - x * s, min=0).mean() */
        in = elements(g, 4, FLOATS(1, -2, 0.5f, 3), targets[i], weights);
        ty_loss_sums s = build_sums(g, &t, &in);
        expect_near("weighed", number_of(g, s.sum), 2 + 2 * 3 + 0.5 * 0.5);
        expect_near("weights", number_of(g, s.count), 7.5);
        ty_graph_free(g);
    }
}

static ty_val build_hinge(ty_graph *g, const ty_val *x, const void *ctx)
{
    ty_loss_operands in = elements(g, 4, x_data, sign, NULL);
    in.output = ty_b_cast(g, x[0], TY_F32);
    ty_loss_sums s = build_sums(g, ctx, &in);
    return ty_b_cast(g, ty_b_div(g, s.sum, s.count), TY_F64);
}

static void hinge_slopes(void **state)
{
    (void)state;
    ty_loss_term t = TERM(.kind = TY_LOSS_HINGE, .margin = 0.3);
    gradcheck(&(gradcheck_case){
        .name = "hinge", .build = build_hinge, .ctx = &t, .n_in = 1, .in = {GRAD_IN(4)}, .h = 1e-3, .tolerance = 1e-3});
}

/* kl_div weighs whole rows: sum over rows of w kl / sum of w. */
static void divergence_weighs_rows(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_type type = ty_type_make(TY_F32, SHAPE(2, 2));
    ty_loss_term t = TERM(.kind = TY_LOSS_KL_DIV);
    ty_loss_operands in = {
        .output = ty_b_const(g, type, FLOATS(logf(0.25f), logf(0.75f), logf(0.5f), logf(0.5f))),
        .target = ty_b_const(g, type, FLOATS(0.5f, 0.5f, 0.125f, 0.875f)),
        .sample_weight = ty_b_const(g, ty_type_make(TY_F32, SHAPE(2)), FLOATS(3, 0.5f)),
        .rows = TY_NONE,
    };
    double first = 0.5 * log(0.5 / 0.25) + 0.5 * log(0.5 / 0.75);
    double second = 0.125 * log(0.125 / 0.5) + 0.875 * log(0.875 / 0.5);
    ty_loss_sums s = build_sums(g, &t, &in);
    expect_near("sum", number_of(g, s.sum), 3 * first + 0.5 * second);
    expect_near("count", number_of(g, s.count), 3.5);
    ty_graph_free(g);
}

/* ---- penalties ------------------------------------------------------------------------------------------------------
 */

static void penalties_add_up_tensors(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val tensors[2] = {ty_b_const(g, ty_type_make(TY_F32, SHAPE(3)), FLOATS(1, -2, 0.5f)),
                         ty_b_const(g, ty_type_make(TY_F32, SHAPE(1, 2)), FLOATS(-3, 4))};
    ty_loss_operands in = {.output = TY_NONE,
                           .target = TY_NONE,
                           .sample_weight = TY_NONE,
                           .rows = TY_NONE,
                           .tensors = tensors,
                           .n_tensors = 2};
    ty_loss_term t = {.kind = TY_LOSS_L1, .weight = 1};
    ty_loss_sums s = build_sums(g, &t, &in);
    expect_near("l1", number_of(g, s.sum), 10.5);
    expect_near("l1's count", number_of(g, s.count), 1);
    t.kind = TY_LOSS_L2;
    s = build_sums(g, &t, &in);
    expect_near("l2", number_of(g, s.sum), 1 + 4 + 0.25 + 9 + 16);
    ty_graph_free(g);
}

static ty_val build_penalty(ty_graph *g, const ty_val *x, const void *ctx)
{
    ty_loss_operands in = {
        .output = TY_NONE, .target = TY_NONE, .sample_weight = TY_NONE, .rows = TY_NONE, .tensors = x, .n_tensors = 2};
    return ty_b_cast(g, build_sums(g, ctx, &in).sum, TY_F64);
}

static void penalty_slopes(void **state)
{
    (void)state;
    for (int kind = TY_LOSS_L1; kind <= TY_LOSS_L2; kind++)
        gradcheck(&(gradcheck_case){.name = ty_loss_text((ty_loss_kind)kind),
                                    .build = build_penalty,
                                    .ctx = &(ty_loss_term){.kind = (ty_loss_kind)kind, .weight = 1},
                                    .n_in = 2,
                                    .in = {GRAD_IN(3), GRAD_IN(2, 2)},
                                    .gap = 0.1,
                                    .h = 1e-3,
                                    .tolerance = 1e-3});
}

/* ---- refusals -------------------------------------------------------------------------------------------------------
 */

static void expect_refused(const ty_loss_term *t, const ty_loss_operands *in, ty_graph *g, const char *words)
{
    ty_error err = {0};
    ty_loss_sums s;
    assert_int_equal(ty_loss_term_build(g, t, in, &s, &err), -1);
    if (!strstr(err.message, words))
        fail_msg("expected \"%s\", found \"%s\"", words, err.message);
    ty_graph_free(g);
}

static void refusals(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = ty_b_const(g, ty_type_make(TY_F32, SHAPE(ROWS, CLASSES)), x_data);
    ty_loss_operands in = operands_of(g, &kinds[6].term, x, TY_NONE);
    expect_refused(&kinds[6].term, &in, g, "expected a second output, found none");
    g = ty_graph_new();
    in = operands_of(g, &kinds[6].term, ty_b_const(g, ty_type_make(TY_F32, SHAPE(ROWS, CLASSES)), x_data),
                     ty_b_const(g, ty_type_make(TY_F32, SHAPE(2, 3)), z_data));
    expect_refused(&kinds[6].term, &in, g, "other: expected the shape of the output, f32[4,3], found f32[2,3]");
    g = ty_graph_new();
    in = operands_of(g, &kinds[0].term, ty_b_const(g, ty_type_make(TY_F32, SHAPE(ROWS, CLASSES)), x_data), TY_NONE);
    ty_loss_term t = kinds[0].term;
    t.kind = TY_LOSS_NLL;
    expect_refused(&t, &in, g, "dense labels belong to softmax_cross_entropy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_follow_their_formulas),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(gradients_are_pytorchs),
        cmocka_unit_test(degenerate_pairs_have_no_slope),
        cmocka_unit_test(hinge_takes_signs_and_bits),
        cmocka_unit_test(hinge_slopes),
        cmocka_unit_test(divergence_weighs_rows),
        cmocka_unit_test(penalties_add_up_tensors),
        cmocka_unit_test(penalty_slopes),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
