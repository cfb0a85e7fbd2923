/* Metrics: what a batch gives and what comes out over several batches, against brute force over all rows at once.
 *
 * Each case runs as in an evaluation: batches of five rows, the last one padded with NaN and legal labels behind the
 * valid rows, the graph of ty_metric_build in the interpreter, its parts through ty_tally.
 */
#include "tests/unit/evaluate.h"

#include "base/rng.h"
#include "compiler/passes/metric.h"
#include "entrypoint/tally.h"

#include <math.h>

enum { ROWS = 43, BATCH = 5, MAX_CLASSES = 4, IGNORED = -100 };

typedef struct data {
    int classes; /* 1: one number a row */
    float x[ROWS][MAX_CLASSES];
    int64_t label[ROWS];
} data;

/* Few distinct values: ties are common. */
static data make_data(int classes, uint32_t stream, bool ignored)
{
    data d = {.classes = classes};
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < classes; c++)
            d.x[r][c] = (float)(ty_rng_u32(7, stream, 0, (uint64_t)(r * MAX_CLASSES + c)) % 9) * 0.5f - 2;
        d.label[r] = ty_rng_u32(7, stream, 1, (uint64_t)r) % (classes == 1 ? 2 : (uint32_t)classes);
        if (ignored && r % 6 == 4)
            d.label[r] = IGNORED;
    }
    return d;
}

/* ---- ours -----------------------------------------------------------------------------------------------------------
 */

static void add_batch(const data *d, const ty_metric *m, ty_tally *tally, int first, int valid)
{
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    float x[BATCH * MAX_CLASSES], y[BATCH], part[2][BATCH * MAX_CLASSES * 3];
    int64_t label[BATCH];
    for (int r = 0; r < BATCH; r++) {
        bool counts = r < valid;
        for (int c = 0; c < d->classes; c++)
            x[r * d->classes + c] = counts ? d->x[first + r][c] : NAN;
        label[r] = counts ? d->label[first + r] : 1;
        y[r] = (float)label[r];
    }
    ty_val number = ty_b_iota(g, ty_type_make(TY_I64, SHAPE(BATCH)), 0);
    bool single = d->classes == 1;
    ty_loss_operands in = {
        .output = ty_b_const(g, ty_type_make(TY_F32, SHAPE(BATCH, d->classes)), x),
        .target = single ? ty_b_const(g, ty_type_make(TY_F32, SHAPE(BATCH)), y)
                         : ty_b_const(g, ty_type_make(TY_I64, SHAPE(BATCH)), label),
        .sample_weight = TY_NONE,
        .rows = ty_b_lt(g, number, ty_b_full_like(g, number, valid)),
    };
    ty_metric_parts p;
    ty_metric_classes classes = {-1, IGNORED, false};
    if (ty_metric_build(g, m, &in, &classes, &p, &err) < 0)
        fail_msg("%s", err.message);
    ty_tensor tensor[2];
    const ty_tensor *parts[2] = {NULL, NULL};
    for (int i = 0; i < p.n; i++) {
        assert_string_equal(p.suffix[i], ty_tally_part(m->kind, i));
        const double *v = evaluate(g, p.value[i], NULL, false);
        int64_t n = ty_type_elems(ty_graph_type(g, p.value[i]));
        assert_true(n <= BATCH * MAX_CLASSES * 3);
        for (int64_t k = 0; k < n; k++)
            part[i][k] = (float)v[k];
        tensor[i] = (ty_tensor){.type = *ty_graph_type(g, p.value[i]), .data = part[i]};
        parts[i] = &tensor[i];
    }
    assert_null(ty_tally_part(m->kind, p.n));
    if (ty_tally_add(tally, parts, &err) < 0)
        fail_msg("%s", err.message);
    ty_graph_free(g);
}

static double ours(const data *d, const ty_metric *m)
{
    ty_tally t = {.kind = m->kind};
    for (int first = 0; first < ROWS; first += BATCH)
        add_batch(d, m, &t, first, ROWS - first < BATCH ? ROWS - first : BATCH);
    double out = ty_tally_value(&t);
    ty_tally_fini(&t);
    return out;
}

static void expect_near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * fmax(1, fabs(want))))
        fail_msg("%s: expected %.9g, found %.9g", what, want, got);
}

/* ---- brute force ----------------------------------------------------------------------------------------------------
 */

static int best_of(const data *d, int r, double threshold)
{
    int best = 0;
    if (d->classes == 1)
        return (double)d->x[r][0] > threshold;
    for (int c = 1; c < d->classes; c++)
        if (d->x[r][c] > d->x[r][best])
            best = c;
    return best;
}

static double plain_top_k(const data *d, int k)
{
    int hits = 0, n = 0;
    for (int r = 0; r < ROWS; r++) {
        int taken[MAX_CLASSES] = {0};
        if (d->label[r] == IGNORED)
            continue;
        n++;
        for (int turn = 0; turn < k && turn < d->classes; turn++) {
            int best = -1;
            for (int c = 0; c < d->classes; c++)
                if (!taken[c] && (best < 0 || d->x[r][c] > d->x[r][best]))
                    best = c;
            taken[best] = 1;
        }
        hits += taken[d->label[r]];
    }
    return (double)hits / n;
}

static double plain_perplexity(const data *d)
{
    double total = 0;
    int n = 0;
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        if (d->label[r] == IGNORED)
            continue;
        for (int c = 0; c < d->classes; c++)
            sum += exp((double)d->x[r][c]);
        total += log(sum) - (double)d->x[r][d->label[r]];
        n++;
    }
    return exp(total / n);
}

/* of: 0 precision, 1 recall, 2 F1, of one class. NAN: the class neither occurs nor is said. */
static double plain_of_class(const data *d, int of, int c, double threshold)
{
    double hits = 0, false_hits = 0, misses = 0;
    for (int r = 0; r < ROWS; r++) {
        if (d->label[r] == IGNORED)
            continue;
        bool says = best_of(d, r, threshold) == c, is = d->label[r] == c;
        hits += says && is;
        false_hits += says && !is;
        misses += !says && is;
    }
    if (hits + false_hits + misses == 0)
        return NAN;
    double precision = hits + false_hits > 0 ? hits / (hits + false_hits) : 0;
    double recall = hits + misses > 0 ? hits / (hits + misses) : 0;
    double f1 = precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
    return of == 0 ? precision : of == 1 ? recall : f1;
}

static double plain_macro(const data *d, int of)
{
    double sum = 0;
    int n = 0;
    for (int c = 0; c < d->classes; c++) {
        double v = plain_of_class(d, of, c, 0);
        if (!isnan(v)) {
            sum += v;
            n++;
        }
    }
    return sum / n;
}

/* All pairs. */
static double plain_auc(const data *d)
{
    double wins = 0, n = 0;
    for (int a = 0; a < ROWS; a++)
        for (int b = 0; b < ROWS; b++) {
            if (d->label[a] != 1 || d->label[b] != 0)
                continue;
            double p = d->classes == 1 ? (double)d->x[a][0] : (double)(d->x[a][1] - d->x[a][0]);
            double q = d->classes == 1 ? (double)d->x[b][0] : (double)(d->x[b][1] - d->x[b][0]);
            wins += p > q ? 1 : p == q ? 0.5 : 0;
            n++;
        }
    return wins / n;
}

/* ---- the cases ------------------------------------------------------------------------------------------------------
 */

#define METRIC(...)                                            \
    (ty_metric)                                                \
    {                                                          \
        .name = "m", .output = "y", .target = "t", __VA_ARGS__ \
    }

static void top_k(void **state)
{
    (void)state;
    for (int stream = 0; stream < 3; stream++) {
        data d = make_data(4, (uint32_t)stream, stream == 1);
        for (int k = 1; k <= 4; k++) {
            ty_metric m = METRIC(.kind = TY_METRIC_TOP_K, .k = k);
            expect_near("top_k", ours(&d, &m), plain_top_k(&d, k));
        }
        expect_near("top 1", ours(&d, &METRIC(.kind = TY_METRIC_ACCURACY)), plain_top_k(&d, 1));
    }
}

static void nan_is_no_hit(void **state)
{
    (void)state;
    data d = make_data(4, 1, false);
    for (int r = 0; r < ROWS; r++)
        d.x[r][d.label[r]] = NAN;
    ty_metric m = METRIC(.kind = TY_METRIC_TOP_K, .k = 4);
    expect_near("NaN", ours(&d, &m), 0);
}

static void perplexity(void **state)
{
    (void)state;
    for (int ignored = 0; ignored < 2; ignored++) {
        data d = make_data(4, 2, ignored);
        expect_near("perplexity", ours(&d, &METRIC(.kind = TY_METRIC_PERPLEXITY)), plain_perplexity(&d));
    }
}

static void squares(void **state)
{
    (void)state;
    data d = make_data(1, 3, false);
    double square = 0, size = 0;
    for (int r = 0; r < ROWS; r++) {
        square += pow((double)d.x[r][0] - (double)d.label[r], 2);
        size += fabs((double)d.x[r][0] - (double)d.label[r]);
    }
    expect_near("mse", ours(&d, &METRIC(.kind = TY_METRIC_MSE)), square / ROWS);
    expect_near("mae", ours(&d, &METRIC(.kind = TY_METRIC_MAE)), size / ROWS);
}

/* Targets far from 0, of which 43 rows in single precision keep only so much: what is explained of their variance. */
static void explained_variance(void **state)
{
    (void)state;
    data d = make_data(1, 3, false);
    double wrong = 0, mean = 0, square = 0;
    for (int r = 0; r < ROWS; r++) {
        d.label[r] = 100000 + (r * 7) % 11;
        d.x[r][0] = 100000 + (float)((r * 7) % 11) + (float)(r % 3) * 0.5f;
        mean += (double)d.label[r] / ROWS;
        wrong += pow((double)d.x[r][0] - (double)d.label[r], 2);
    }
    for (int r = 0; r < ROWS; r++)
        square += pow((double)d.label[r] - mean, 2);
    expect_near("r2", ours(&d, &METRIC(.kind = TY_METRIC_R2)), 1 - wrong / square);
    for (int r = 0; r < ROWS; r++) { /* all the same: met, or not */
        d.label[r] = 3;
        d.x[r][0] = 3;
    }
    expect_near("r2 of the same", ours(&d, &METRIC(.kind = TY_METRIC_R2)), 1);
    d.x[0][0] = 4;
    expect_near("r2 of the same, missed", ours(&d, &METRIC(.kind = TY_METRIC_R2)), 0);
    expect_near("rmse", ours(&d, &METRIC(.kind = TY_METRIC_RMSE)), sqrt(1.0 / ROWS));
    expect_near("mape", ours(&d, &METRIC(.kind = TY_METRIC_MAPE)), 1.0 / 3 / ROWS);
}

static const ty_metric_kind confusion[] = {TY_METRIC_PRECISION, TY_METRIC_RECALL, TY_METRIC_F1};

static void macro_averages(void **state)
{
    (void)state;
    for (int ignored = 0; ignored < 2; ignored++) {
        data d = make_data(4, 4, ignored);
        for (int of = 0; of < 3; of++)
            expect_near("macro", ours(&d, &METRIC(.kind = confusion[of])), plain_macro(&d, of));
        for (int r = 0; r < ROWS; r++) { /* class 3 neither occurs nor is said; class 2 is never said */
            d.x[r][3] = d.x[r][2] = -9;
            if (d.label[r] == 3)
                d.label[r] = 0;
        }
        for (int of = 0; of < 3; of++)
            expect_near("macro of three", ours(&d, &METRIC(.kind = confusion[of])), plain_macro(&d, of));
    }
}

static void binary_forms(void **state)
{
    (void)state;
    data two = make_data(2, 5, true), one = make_data(1, 6, false);
    for (int of = 0; of < 3; of++) {
        ty_metric m = METRIC(.kind = confusion[of], .average = TY_AVERAGE_BINARY);
        expect_near("class 1 of two", ours(&two, &m), plain_of_class(&two, of, 1, 0));
        expect_near("macro of two", ours(&two, &METRIC(.kind = confusion[of])), plain_macro(&two, of));
        expect_near("single logits", ours(&one, &m), plain_of_class(&one, of, 1, 0));
        m.average = TY_AVERAGE_AUTO;
        m.threshold = 0.7;
        expect_near("a threshold", ours(&one, &m), plain_of_class(&one, of, 1, 0.7));
        m.threshold = 99;
        expect_near("nothing is said", ours(&one, &m), 0);
    }
}

static void areas(void **state)
{
    (void)state;
    for (uint32_t stream = 7; stream < 10; stream++) {
        data one = make_data(1, stream, false), two = make_data(2, stream, stream == 8);
        expect_near("single logits", ours(&one, &METRIC(.kind = TY_METRIC_AUC)), plain_auc(&one));
        expect_near("two classes", ours(&two, &METRIC(.kind = TY_METRIC_AUC)), plain_auc(&two));
    }
    data d = make_data(1, 7, false);
    for (int r = 0; r < ROWS; r++)
        d.label[r] = 1;
    assert_true(isnan(ours(&d, &METRIC(.kind = TY_METRIC_AUC))));
}

/* The most probable class of a dense label is the label. */
static void dense_labels(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 3, 3, 2, 1}, y[] = {0.2f, 0.3f, 0.5f, 0.1f, 0.8f, 0.1f};
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_type type = ty_type_make(TY_F32, SHAPE(2, 3));
    ty_loss_operands in = {
        .output = ty_b_const(g, type, x), .target = ty_b_const(g, type, y), .sample_weight = TY_NONE, .rows = TY_NONE};
    ty_metric_classes classes = {-1, IGNORED, true};
    ty_metric_parts p;
    ty_metric m = METRIC(.kind = TY_METRIC_ACCURACY);
    assert_int_equal(ty_metric_build(g, &m, &in, &classes, &p, &err), 0);
    expect_near("hits", *(double *)evaluate(g, p.value[0], NULL, false), 1);
    expect_near("rows", *(double *)evaluate(g, p.value[1], NULL, false), 2);
    ty_graph_free(g);
}

static void expect_refused(const ty_metric *m, int classes, const char *words)
{
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_metric_parts p;
    ty_loss_operands in = {.output = ty_b_full(g, TY_F32, SHAPE(BATCH, classes), 0),
                           .target = classes == 1 ? ty_b_full(g, TY_F32, SHAPE(BATCH), 0)
                                                  : ty_b_full(g, TY_I64, SHAPE(BATCH), 0),
                           .sample_weight = TY_NONE,
                           .rows = TY_NONE};
    assert_int_equal(ty_metric_build(g, m, &in, &(ty_metric_classes){-1, IGNORED, false}, &p, &err), -1);
    if (!strstr(err.message, words))
        fail_msg("expected \"%s\", found \"%s\"", words, err.message);
    ty_graph_free(g);
}

static void refusals(void **state)
{
    (void)state;
    expect_refused(&METRIC(.kind = TY_METRIC_AUC), 3, "two classes, found 3 classes");
    expect_refused(&METRIC(.kind = TY_METRIC_F1, .average = TY_AVERAGE_BINARY), 3, "binary needs two classes, found 3");
    expect_refused(&METRIC(.kind = TY_METRIC_F1, .average = TY_AVERAGE_MACRO), 1, "macro needs classes");
    ty_tally t = {.kind = TY_METRIC_F1};
    ty_error err = {0};
    assert_int_equal(ty_tally_add(&t, (const ty_tensor *const[]){NULL, NULL}, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_k),
        cmocka_unit_test(nan_is_no_hit),
        cmocka_unit_test(perplexity),
        cmocka_unit_test(squares),
        cmocka_unit_test(explained_variance),
        cmocka_unit_test(macro_averages),
        cmocka_unit_test(binary_forms),
        cmocka_unit_test(areas),
        cmocka_unit_test(dense_labels),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
