/* CTC: against all paths written out, against PyTorch's numbers, its gradient against PyTorch's and central
 * differences.
 *
 * PyTorch's numbers (2.15, float64): torch.nn.functional.ctc_loss(x.log_softmax(2), labels, input_lengths,
 * target_lengths), reduction="none" for terms, x [T, N, C] = ((7 i mod 11) - 5) / 4 for the flat number i.
 */
#include "tests/unit/evaluate.h"
#include "tests/unit/gradients.h"

#include "compiler/passes/ctc.h"
#include "compiler/passes/loss.h"

enum { T = 5, N = 3, C = 4, S = 3 };

static const int64_t labels[] = {1, 2, 2, 3, 1, 2, 2, 2, 1};
static const int64_t short_labels[] = {1, 2, 2, 3, 1, 2, 2, 0, 0};
static const int64_t steps[] = {5, 4, 3};
static const int64_t lengths[] = {3, 2, 1};

static float *logits(void)
{
    static float x[T * N * C];
    for (int i = 0; i < T * N * C; i++)
        x[i] = 0.25f * (float)(i * 7 % 11 - 5);
    return x;
}

static void expect_near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 3e-6 * fmax(1, fabs(want)) || got == want))
        fail_msg("%s: expected %.9g, found %.9g", what, want, got);
}

/* ---- all paths ------------------------------------------------------------------------------------------------------
 */

/* Whether a path of n steps, repeats merged and blanks dropped, reads as the labels. */
static bool reads_as(const int *path, int n, const int64_t *label, int length, int blank)
{
    int k = 0;
    for (int t = 0; t < n; t++) {
        if (path[t] == blank || (t > 0 && path[t] == path[t - 1]))
            continue;
        if (k == length || path[t] != label[k++])
            return false;
    }
    return k == length;
}

static double log_softmax_of(const float *row, int c)
{
    double sum = 0;
    for (int k = 0; k < C; k++)
        sum += exp((double)row[k]);
    return (double)row[c] - log(sum);
}

static double plain_term(int sample, int n, const int64_t *label, int length, int blank)
{
    double total = 0;
    int path[T], n_paths = 1;
    for (int t = 0; t < n; t++)
        n_paths *= C;
    for (int number = 0; number < n_paths; number++) {
        double p = 0;
        for (int t = 0, rest = number; t < n; t++, rest /= C) {
            path[t] = rest % C;
            p += log_softmax_of(logits() + (t * N + sample) * C, path[t]);
        }
        if (reads_as(path, n, label, length, blank))
            total += exp(p);
    }
    return -log(total);
}

/* ---- ours -----------------------------------------------------------------------------------------------------------
 */

static ty_val integers(ty_graph *g, int rank, const int64_t *dim, const int64_t *data)
{
    return data ? ty_b_const(g, ty_type_make(TY_I64, rank, dim), data) : TY_NONE;
}

/* The mean over samples of terms divided by their length is what the loss gives: single terms by masks. */
static double our_term(const ty_loss_term *t, int sample, const int64_t *label, const int64_t *n_steps,
                       const int64_t *length)
{
    ty_graph *g = ty_graph_new();
    ty_val x = ty_b_const(g, ty_type_make(TY_F32, SHAPE(T, N, C)), logits());
    if (t->time_axis == 1)
        x = ty_b_transpose(g, x, (int64_t[]){1, 0, 2});
    ty_val terms = ty_ctc_terms(g, t, x, integers(g, SHAPE(N, S), label), integers(g, SHAPE(N), n_steps),
                                integers(g, SHAPE(N), length));
    expect_ok(g);
    double out = ((double *)evaluate(g, terms, NULL, false))[sample];
    ty_graph_free(g);
    int64_t l = length ? length[sample] : S;
    return out * (double)(l > 0 ? l : 1);
}

static void expect_terms(const ty_loss_term *t, const int64_t *label, const int64_t *n_steps, const int64_t *length,
                         const double *torch)
{
    for (int i = 0; i < N; i++) {
        double got = our_term(t, i, label, n_steps, length);
        double want =
            plain_term(i, n_steps ? (int)n_steps[i] : T, label + S * i, length ? (int)length[i] : S, (int)t->blank);
        expect_near("all paths", got, want);
        expect_near("PyTorch", got, torch[i]);
    }
}

static void terms_are_sums_over_paths(void **state)
{
    (void)state;
    ty_loss_term t = {.kind = TY_LOSS_CTC, .output = "y", .weight = 1};
    static const int64_t other[] = {1, 2, 2, 0, 1, 2, 2, 2, 1};
    for (t.time_axis = 0; t.time_axis < 2; t.time_axis++) {
        t.blank = 0;
        expect_terms(&t, short_labels, steps, lengths, (const double[]){4.231681, 3.76171715, 2.82859616});
        expect_terms(&t, labels, NULL, NULL, (const double[]){4.231681, 4.01061782, 5.29240326});
        t.blank = 3;
        expect_terms(&t, other, NULL, NULL, (const double[]){4.42870139, 4.0152878, 5.28685397});
    }
}

/* Three equal labels need five steps; no labels at all need none. */
static void what_does_not_fit_is_infinite(void **state)
{
    (void)state;
    static const int64_t equal[] = {1, 1, 1, 3, 1, 2, 2, 2, 1}, four[] = {4, 5, 5}, none[] = {3, 0, 3};
    ty_loss_term t = {.kind = TY_LOSS_CTC, .output = "y", .weight = 1};
    expect_terms(&t, equal, four, none, (const double[]){INFINITY, 8.25932389, 5.29240326});
    t.zero_infinity = true;
    assert_true(our_term(&t, 0, equal, four, none) == 0);
    expect_near("others stay", our_term(&t, 1, equal, four, none), 8.25932389);
}

/* ---- the loss -------------------------------------------------------------------------------------------------------
 */

typedef struct loss_options {
    ty_loss_term term;
    const float *weight;
    int valid;
} loss_options;

static ty_loss_sums build_loss(ty_graph *g, ty_val x, const loss_options *o)
{
    ty_error err = {0};
    ty_loss_sums s;
    ty_loss_operands in = {.output = x,
                           .target = integers(g, SHAPE(N, S), short_labels),
                           .sample_weight = TY_NONE,
                           .rows = TY_NONE,
                           .other = TY_NONE,
                           .input_lengths = integers(g, SHAPE(N), steps),
                           .target_lengths = integers(g, SHAPE(N, 1), lengths)};
    if (o->weight)
        in.sample_weight = ty_b_const(g, ty_type_make(TY_F32, SHAPE(N)), o->weight);
    if (o->valid < N) {
        ty_val number = ty_b_iota(g, ty_type_make(TY_I64, SHAPE(N)), 0);
        in.rows = ty_b_lt(g, number, ty_b_full_like(g, number, o->valid));
    }
    if (ty_loss_term_build(g, &o->term, &in, &s, &err) < 0)
        fail_msg("%s", err.message);
    return s;
}

static void loss_is_the_mean_by_length(void **state)
{
    (void)state;
    loss_options o = {.term = {.kind = TY_LOSS_CTC, .output = "y", .weight = 1}, .valid = N};
    double term[N] = {4.231681 / 3, 3.76171715 / 2, 2.82859616};
    ty_graph *g = ty_graph_new();
    ty_val x = ty_b_const(g, ty_type_make(TY_F32, SHAPE(T, N, C)), logits());
    ty_loss_sums s = build_loss(g, x, &o);
    expect_near("PyTorch's mean", *(double *)evaluate(g, ty_b_div(g, s.sum, s.count), NULL, false), 2.04000502);
    o.valid = 2;
    s = build_loss(g, x, &o);
    expect_near("two rows", *(double *)evaluate(g, s.sum, NULL, false), term[0] + term[1]);
    expect_near("count", *(double *)evaluate(g, s.count, NULL, false), 2);
    o.weight = (const float[]){2, 0.5f, 7};
    s = build_loss(g, x, &o);
    expect_near("weighed", *(double *)evaluate(g, s.sum, NULL, false), 2 * term[0] + 0.5 * term[1]);
    expect_near("weights", *(double *)evaluate(g, s.count, NULL, false), 2.5);
    ty_graph_free(g);
}

static void gradient_is_pytorchs(void **state)
{
    (void)state;
    static const double want[T * N * C] = {
        0.00378141425,
        -0.0792457142,
        0.0111722782,
        0.0642920218,
        0.0178113671,
        0.0143803561,
        0.0827532357,
        -0.114944959,
        -0.117972918,
        0.198768984,
        -0.107696523,
        0.0269004567,
        0.00265858822,
        -0.000517956317,
        -0.022436108,
        0.0202954761,
        -1.16791235e-05,
        -0.0212776916,
        0.0365615113,
        -0.0152721406,
        -0.108276121,
        0.0537360417,
        -0.0592191216,
        0.113759201,
        -0.0165507159,
        0.0662563279,
        -0.0586724309,
        0.00896681891,
        -0.0214938584,
        -0.0330297191,
        0.00988419249,
        0.044639385,
        -0.0743340666,
        0.0287607122,
        -0.0153130739,
        0.0608864282,
        -0.0577581889,
        0.0179120139,
        0.00192644127,
        0.0379197337,
        -0.0849683222,
        -0.0282281277,
        0.0827532357,
        0.0304432141,
        0,
        0,
        0,
        0,
        0.0245639109,
        0.00958690407,
        -0.054446291,
        0.0202954761,
    };
    loss_options o = {.term = {.kind = TY_LOSS_CTC, .output = "y", .weight = 1}, .valid = N};
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_val x = new_input(g, TY_F32, SHAPE(T, N, C)), dx;
    ty_loss_sums s = build_loss(g, x, &o);
    assert_int_equal(ty_pass_autodiff(g, ty_b_div(g, s.sum, s.count), &x, 1, &dx, &err), 0);
    const void *inputs[] = {logits()};
    const double *got = evaluate(g, dx, inputs, false);
    for (int i = 0; i < T * N * C; i++)
        expect_near("slope", got[i], want[i]);
    ty_graph_free(g);
}

static ty_val build_mean(ty_graph *g, const ty_val *x, const void *ctx)
{
    ty_loss_sums s = build_loss(g, ty_b_cast(g, x[0], TY_F32), ctx);
    return ty_b_cast(g, ty_b_div(g, s.sum, s.count), TY_F64);
}

static void gradient_is_the_slope(void **state)
{
    (void)state;
    loss_options o = {.term = {.kind = TY_LOSS_CTC, .output = "y", .weight = 1}, .valid = N};
    gradcheck(&(gradcheck_case){.name = "ctc",
                                .build = build_mean,
                                .ctx = &o,
                                .n_in = 1,
                                .in = {GRAD_IN(T, N, C)},
                                .h = 1e-3,
                                .tolerance = 1e-3});
}

/* A sample that does not fit must not spoil the slopes of the others. */
static void misfits_have_no_slope(void **state)
{
    (void)state;
    static const int64_t equal[] = {1, 1, 1, 3, 1, 2, 2, 2, 1}, four[] = {4, 5, 5};
    ty_loss_term t = {.kind = TY_LOSS_CTC, .output = "y", .weight = 1, .zero_infinity = true};
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_val x = new_input(g, TY_F32, SHAPE(T, N, C)), dx;
    ty_val terms = ty_ctc_terms(g, &t, x, integers(g, SHAPE(N, S), equal), integers(g, SHAPE(N), four), TY_NONE);
    assert_int_equal(ty_pass_autodiff(g, ty_b_sum(g, terms, 1, false), &x, 1, &dx, &err), 0);
    const void *inputs[] = {logits()};
    const double *got = evaluate(g, dx, inputs, false);
    double others = 0;
    for (int i = 0; i < T * N * C; i++) {
        if (i / C % N == 0)
            assert_true(got[i] == 0);
        assert_true(isfinite(got[i]));
        others += fabs(got[i]);
    }
    assert_true(others > 0.1);
    ty_graph_free(g);
}

static void expect_refused(const ty_loss_term *t, int rank, const int64_t *dim, ty_dtype labels_are, const char *words)
{
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_val x = ty_b_full(g, TY_F32, rank, dim, 0), y = ty_b_full(g, labels_are, SHAPE(N, S), 1);
    assert_int_equal(ty_ctc_terms(g, t, x, y, TY_NONE, TY_NONE), TY_NONE);
    assert_true(ty_graph_failed(g, &err));
    if (!strstr(err.message, words))
        fail_msg("expected \"%s\", found \"%s\"", words, err.message);
    ty_graph_free(g);
}

static void refusals(void **state)
{
    (void)state;
    ty_loss_term t = {.kind = TY_LOSS_CTC, .output = "y", .weight = 1};
    expect_refused(&t, SHAPE(N, C), TY_I64, "expected [T, batch, classes], found f32[3,4]");
    expect_refused(&t, SHAPE(N, T, C), TY_I64, "target: expected integers [batch, labels]");
    expect_refused(&t, SHAPE(T, N, C), TY_F32, "target: expected integers [batch, labels]");
    t.blank = 4;
    expect_refused(&t, SHAPE(T, N, C), TY_I64, "blank: expected 0 to 3, found 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_are_sums_over_paths),
        cmocka_unit_test(what_does_not_fit_is_infinite),
        cmocka_unit_test(loss_is_the_mean_by_length),
        cmocka_unit_test(gradient_is_pytorchs),
        cmocka_unit_test(gradient_is_the_slope),
        cmocka_unit_test(misfits_have_no_slope),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
