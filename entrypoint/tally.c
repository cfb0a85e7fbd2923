/* tally.c - one row a kind: which outputs, how they are gathered, how the value comes out. */
#include "entrypoint/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HITS, SAID, TRUE_ONES, N_COUNTS };

typedef struct tally_kind {
    const char *part[TY_TALLY_MAX_PARTS + 1];
    int (*add)(ty_tally *t, const ty_tensor *const *parts, ty_error *err);
    double (*value)(ty_tally *t);
    bool prefers_high, is_share, is_of_numbers;
} tally_kind;

/* ---- sums ---- */

static int add_sum(ty_tally *t, const ty_tensor *const *parts, ty_error *err)
{
    (void)err;
    t->sum += (double)*(const float *)parts[0]->data;
    t->count += (double)*(const float *)parts[1]->data;
    return 0;
}

static double mean(ty_tally *t)
{
    return t->count > 0 ? t->sum / t->count : NAN;
}

static double exp_of_mean(ty_tally *t)
{
    return exp(mean(t));
}

static double root_of_mean(ty_tally *t)
{
    return sqrt(mean(t));
}

/* ---- how much of the targets' variance is explained ---- */

/* Welford's update, so that targets far from 0 lose nothing. */
static int add_pairs(ty_tally *t, const ty_tensor *const *parts, ty_error *err)
{
    int64_t n = ty_type_elems(&parts[0]->type);
    const float *output = parts[0]->data, *target = parts[1]->data;
    if (n != ty_type_elems(&parts[1]->type))
        return ty_error_set(err, TY_E_INTERNAL, "a metric has other numbers of outputs and targets");
    for (int64_t i = 0; i < n; i++) {
        double y = (double)target[i], off = y - t->mean, wrong = (double)output[i] - y;
        if (isnan(y))
            continue;
        t->count++;
        t->mean += off / t->count;
        t->square += off * (y - t->mean);
        t->sum += wrong * wrong;
    }
    return 0;
}

/* Of targets that are all the same, as scikit-learn: 1 if they are met, else 0. */
static double explained(ty_tally *t)
{
    if (t->count < 2)
        return NAN;
    return t->square > 0 ? 1 - t->sum / t->square : t->sum > 0 ? 0 : 1;
}

/* ---- counts of classes ---- */

static int add_counts(ty_tally *t, const ty_tensor *const *parts, ty_error *err)
{
    int64_t n = ty_type_elems(&parts[0]->type);
    if (!t->counts) {
        t->n_classes = n / N_COUNTS;
        t->counts = calloc((size_t)n, sizeof *t->counts);
        if (!t->counts)
            return ty_error_set(err, TY_E_LIMIT, "no memory for the counts of %lld classes", (long long)t->n_classes);
    }
    if (n != t->n_classes * N_COUNTS)
        return ty_error_set(err, TY_E_INTERNAL, "a metric's counts have changed their size");
    for (int64_t i = 0; i < n; i++)
        t->counts[i] += (double)((const float *)parts[0]->data)[i];
    return 0;
}

static double quotient(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static double class_precision(double hits, double said, double truth)
{
    (void)truth;
    return quotient(hits, said);
}

static double class_recall(double hits, double said, double truth)
{
    (void)said;
    return quotient(hits, truth);
}

/* 2 P R / (P + R) with P = hits / said, R = hits / truth */
static double class_f1(double hits, double said, double truth)
{
    return quotient(2 * hits, said + truth);
}

static double class_iou(double hits, double said, double truth)
{
    return quotient(hits, said + truth - hits);
}

/* Classes that neither occur nor are said have no say; the one class of the binary form always has. */
static double mean_over_classes(const ty_tally *t, double (*of)(double hits, double said, double truth))
{
    double sum = 0;
    int64_t n = 0, c = t->n_classes;
    for (int64_t i = 0; i < c; i++) {
        double hits = t->counts[HITS * c + i], said = t->counts[SAID * c + i], truth = t->counts[TRUE_ONES * c + i];
        if (c > 1 && said == 0 && truth == 0)
            continue;
        sum += of(hits, said, truth);
        n++;
    }
    return n > 0 ? sum / (double)n : NAN;
}

static double precision(ty_tally *t)
{
    return mean_over_classes(t, class_precision);
}

static double recall(ty_tally *t)
{
    return mean_over_classes(t, class_recall);
}

static double f1(ty_tally *t)
{
    return mean_over_classes(t, class_f1);
}

static double iou(ty_tally *t)
{
    return mean_over_classes(t, class_iou);
}

/* ---- scores ---- */

static int make_room(ty_tally *t, size_t n, ty_error *err)
{
    if (t->n_scores + n <= t->n_room)
        return 0;
    size_t room = t->n_room * 2 > t->n_scores + n ? t->n_room * 2 : t->n_scores + n;
    ty_tally_score *scores = realloc(t->scores, room * sizeof *scores);
    if (!scores)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the scores of %zu rows", room);
    t->scores = scores;
    t->n_room = room;
    return 0;
}

static int add_scores(ty_tally *t, const ty_tensor *const *parts, ty_error *err)
{
    int64_t n = ty_type_elems(&parts[0]->type);
    const float *score = parts[0]->data, *label = parts[1]->data;
    if (n != ty_type_elems(&parts[1]->type))
        return ty_error_set(err, TY_E_INTERNAL, "a metric has other numbers of scores and labels");
    if (make_room(t, (size_t)n, err) < 0)
        return -1;
    for (int64_t i = 0; i < n; i++)
        if (label[i] >= 0)
            t->scores[t->n_scores++] = (ty_tally_score){score[i], label[i] > 0.5f};
    return 0;
}

/* NaN behind all numbers. */
static int compare_scores(const void *a, const void *b)
{
    float x = ((const ty_tally_score *)a)->score, y = ((const ty_tally_score *)b)->score;
    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
    return (x > y) - (x < y);
}

/* Pairs of a positive and a negative row in which the positive one has the higher score, ties at one half, as a share
 * of all pairs (Mann and Whitney's U). Counted twice, in integers: exact below 2^63 pairs. */
static double area(ty_tally *t)
{
    uint64_t wins = 0, n_negative = 0, n_positive = 0;
    if (t->n_scores > 0)
        qsort(t->scores, t->n_scores, sizeof *t->scores, compare_scores);
    for (size_t i = 0, end; i < t->n_scores; i = end) {
        uint64_t positive = 0;
        for (end = i; end < t->n_scores && compare_scores(&t->scores[i], &t->scores[end]) == 0; end++)
            positive += t->scores[end].is_positive;
        uint64_t negative = end - i - positive;
        wins += 2 * n_negative * positive + negative * positive;
        n_negative += negative;
        n_positive += positive;
    }
    return n_positive > 0 && n_negative > 0 ? (double)wins / 2 / ((double)n_positive * (double)n_negative) : NAN;
}

/* From the highest score down, equal ones at once: the precision of all so far, for the recall that they add. */
static double average_precision(ty_tally *t)
{
    double hits = 0, n_positive = 0, sum = 0;
    if (t->n_scores > 0)
        qsort(t->scores, t->n_scores, sizeof *t->scores, compare_scores);
    for (size_t i = 0; i < t->n_scores; i++)
        n_positive += t->scores[i].is_positive;
    for (size_t end = t->n_scores, i; end > 0; end = i) {
        double more = 0;
        for (i = end; i > 0 && compare_scores(&t->scores[i - 1], &t->scores[end - 1]) == 0; i--)
            more += t->scores[i - 1].is_positive;
        hits += more;
        sum += more * hits / (double)(t->n_scores - i);
    }
    return n_positive > 0 ? sum / n_positive : NAN;
}

/* ---- the table ---- */

static const tally_kind kinds[TY_N_METRIC_KINDS] = {
    [TY_METRIC_ACCURACY] = {{"sum", "count"}, add_sum, mean, true, true, false},
    [TY_METRIC_MAE] = {{"sum", "count"}, add_sum, mean, false, false, true},
    [TY_METRIC_MSE] = {{"sum", "count"}, add_sum, mean, false, false, true},
    [TY_METRIC_TOP_K] = {{"sum", "count"}, add_sum, mean, true, true, false},
    [TY_METRIC_PERPLEXITY] = {{"sum", "count"}, add_sum, exp_of_mean, false, false, false},
    [TY_METRIC_PRECISION] = {{"counts"}, add_counts, precision, true, true, false},
    [TY_METRIC_RECALL] = {{"counts"}, add_counts, recall, true, true, false},
    [TY_METRIC_F1] = {{"counts"}, add_counts, f1, true, true, false},
    [TY_METRIC_AUC] = {{"scores", "labels"}, add_scores, area, true, false, false},
    [TY_METRIC_AVERAGE_PRECISION] = {{"scores", "labels"}, add_scores, average_precision, true, false, false},
    [TY_METRIC_IOU] = {{"counts"}, add_counts, iou, true, true, false},
    [TY_METRIC_RMSE] = {{"sum", "count"}, add_sum, root_of_mean, false, false, true},
    [TY_METRIC_MAPE] = {{"sum", "count"}, add_sum, mean, false, true, true},
    [TY_METRIC_R2] = {{"outputs", "targets"}, add_pairs, explained, true, false, true},
};

const char *ty_tally_part(ty_metric_kind kind, int i)
{
    return kinds[kind].part[i];
}

int ty_tally_add(ty_tally *t, const ty_tensor *const *parts, ty_error *err)
{
    for (int i = 0; kinds[t->kind].part[i]; i++)
        if (!parts[i] || !parts[i]->data || parts[i]->type.dtype != TY_F32 || ty_type_elems(&parts[i]->type) < 1)
            return ty_error_set(err, TY_E_INTERNAL, "a metric's %s are missing", kinds[t->kind].part[i]);
    return kinds[t->kind].add(t, parts, err);
}

double ty_tally_value(ty_tally *t)
{
    return kinds[t->kind].value(t);
}

void ty_tally_fini(ty_tally *t)
{
    free(t->counts);
    free(t->scores);
    *t = (ty_tally){.kind = t->kind};
}

bool ty_tally_prefers_high(ty_metric_kind kind)
{
    return kinds[kind].prefers_high;
}

bool ty_tally_is_share(ty_metric_kind kind)
{
    return kinds[kind].is_share;
}

bool ty_tally_is_of_numbers(ty_metric_kind kind)
{
    return kinds[kind].is_of_numbers;
}
