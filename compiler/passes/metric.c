/* metric.c - one row a kind. Sums and counts are f32: exact up to 2^24 rows a batch. */
#include "compiler/passes/metric.h"

#include "compiler/ir/build.h"

#include <inttypes.h>
#include <math.h>

typedef struct metric_args {
    const ty_metric *metric;
    const ty_loss_operands *in;
    const ty_metric_classes *classes;
} metric_args;

typedef ty_metric_parts metric_fn(ty_graph *g, const metric_args *a);

static ty_metric_parts metric_quotient(ty_val sum, ty_val count)
{
    return (ty_metric_parts){2, {"sum", "count"}, {sum, count}};
}

static ty_metric_parts metric_nothing(void)
{
    return (ty_metric_parts){0};
}

static ty_val metric_number(ty_graph *g, ty_val truth)
{
    return ty_b_cast(g, truth, TY_F32);
}

static ty_metric_parts metric_share(ty_graph *g, ty_val hit, ty_val keep)
{
    if (hit == TY_NONE)
        return metric_nothing();
    ty_val ones = ty_b_full(g, TY_F32, ty_b_rank(g, hit), ty_graph_type(g, hit)->dim, 1);
    return metric_quotient(ty_loss_sum(g, metric_number(g, hit), keep), ty_loss_sum(g, ones, keep));
}

/* ---- what is compared ----------------------------------------------------------------------------------------------
 */

/* One number an element: outputs and targets f32 of one shape, and what counts (TY_NONE: all). */
typedef struct metric_pairs {
    ty_val x, y, keep;
} metric_pairs;

/* Rows of classes: [R, C] f32, i64[R], bool[R]. */
typedef struct metric_rows {
    ty_val x, label, keep;
    int64_t n, c;
} metric_rows;

static bool metric_is_single(ty_graph *g, const metric_args *a)
{
    const ty_type *x = ty_graph_type(g, a->in->output), *y = ty_graph_type(g, a->in->target);
    bool one_each = ty_type_elems(x) == ty_type_elems(y);
    bool is_class = !ty_dtype_is_float((ty_dtype)y->dtype) && y->dtype != TY_BOOL && y->rank < x->rank && x->rank > 0 &&
                    x->dim[x->rank - 1] > 1;
    return one_each && !is_class && !a->classes->dense_labels;
}

static bool metric_pairs_of(ty_graph *g, const metric_args *a, metric_pairs *out)
{
    out->x = ty_b_cast(g, a->in->output, TY_F32);
    out->y = ty_loss_match(g, ty_b_cast(g, a->in->target, TY_F32), out->x, "target");
    if (out->y == TY_NONE)
        return false;
    out->keep = ty_loss_stretch_rows(g, a->in->rows, out->x);
    return true;
}

static ty_val metric_labels(ty_graph *g, const metric_args *a)
{
    if (!a->classes->dense_labels)
        return ty_loss_labels(g, a->in->target, a->in->output, a->classes->class_axis);
    ty_val y = ty_loss_match(g, a->in->target, a->in->output, "target");
    y = ty_loss_class_rows(g, y, a->classes->class_axis);
    return y == TY_NONE ? TY_NONE : ty_b_argreduce(g, y, TY_MAX, 1, false);
}

static bool metric_rows_of(ty_graph *g, const metric_args *a, metric_rows *out)
{
    out->x = ty_loss_class_rows(g, ty_b_cast(g, a->in->output, TY_F32), a->classes->class_axis);
    out->label = metric_labels(g, a);
    if (out->x == TY_NONE || out->label == TY_NONE)
        return false;
    out->n = ty_b_dim(g, out->x, 0);
    out->c = ty_b_dim(g, out->x, 1);
    out->keep = ty_b_ne(g, out->label, ty_b_full_like(g, out->label, (double)a->classes->ignore_index));
    if (a->in->rows != TY_NONE) {
        ty_val mask = ty_loss_class_mask(g, a->in->rows, a->in->output, a->classes->class_axis);
        out->keep = ty_b_binary(g, TY_OP_AND, out->keep, mask);
    }
    return out->keep != TY_NONE;
}

/* The number of each column: i64[R, C]. */
static ty_val metric_columns(ty_graph *g, const metric_rows *r)
{
    return ty_b_iota(g, ty_type_make(TY_I64, 2, (int64_t[]){r->n, r->c}), 1);
}

/* Labels as i64[R, 1], 0 in rows that are left out: fit to look up with. */
static ty_val metric_safe_labels(ty_graph *g, const metric_rows *r, const metric_args *a)
{
    ty_val ignored = ty_b_eq(g, r->label, ty_b_full_like(g, r->label, (double)a->classes->ignore_index));
    return ty_b_unsqueeze(g, ty_b_select(g, ignored, ty_b_full_like(g, r->label, 0), r->label), 1);
}

/* ---- shares and means
 * ------------------------------------------------------------------------------------------------
 */

static ty_metric_parts metric_accuracy(ty_graph *g, const metric_args *a)
{
    metric_pairs p;
    metric_rows r;
    if (metric_is_single(g, a)) {
        if (!metric_pairs_of(g, a, &p))
            return metric_nothing();
        ty_val says = ty_b_lt(g, ty_b_full_like(g, p.x, a->metric->threshold), p.x);
        ty_val is = ty_b_lt(g, ty_b_full_like(g, p.y, 0.5), p.y);
        return metric_share(g, ty_b_eq(g, says, is), p.keep);
    }
    if (!metric_rows_of(g, a, &r))
        return metric_nothing();
    return metric_share(g, ty_b_eq(g, ty_b_argreduce(g, r.x, TY_MAX, 1, false), r.label), r.keep);
}

/* How many classes stand before the label: larger, or equal and earlier, or no number. */
static ty_metric_parts metric_top_k(ty_graph *g, const metric_args *a)
{
    metric_rows r;
    if (!metric_rows_of(g, a, &r))
        return metric_nothing();
    ty_val label = metric_safe_labels(g, &r, a), own = ty_b_take(g, r.x, label, 1);
    ty_val above = ty_b_unary(g, TY_OP_NOT, ty_b_le(g, r.x, own));
    ty_val tied = ty_b_binary(g, TY_OP_AND, ty_b_eq(g, r.x, own), ty_b_lt(g, metric_columns(g, &r), label));
    ty_val before = metric_number(g, ty_b_binary(g, TY_OP_OR, above, tied));
    ty_val place = ty_b_sum(g, before, 2, false);
    ty_val hit = ty_b_lt(g, place, ty_b_full_like(g, place, (double)a->metric->k));
    ty_val is_number = ty_b_squeeze(g, ty_b_eq(g, own, own), 1);
    return metric_share(g, ty_b_binary(g, TY_OP_AND, hit, is_number), r.keep);
}

static ty_metric_parts metric_deviation(ty_graph *g, const metric_args *a, bool square)
{
    metric_pairs p;
    if (!metric_pairs_of(g, a, &p))
        return metric_nothing();
    ty_val r = ty_b_sub(g, p.x, p.y), size = square ? ty_b_square(g, r) : ty_b_unary(g, TY_OP_ABS, r);
    return metric_quotient(ty_loss_sum(g, size, p.keep), ty_loss_sum(g, ty_b_full_like(g, p.x, 1), p.keep));
}

static ty_metric_parts metric_mae(ty_graph *g, const metric_args *a)
{
    return metric_deviation(g, a, false);
}

static ty_metric_parts metric_mse(ty_graph *g, const metric_args *a)
{
    return metric_deviation(g, a, true);
}

static ty_metric_parts metric_mape(ty_graph *g, const metric_args *a)
{
    metric_pairs p;
    if (!metric_pairs_of(g, a, &p))
        return metric_nothing();
    ty_val size = ty_b_unary(g, TY_OP_ABS, ty_b_sub(g, p.x, p.y));
    ty_val of = ty_b_max(g, ty_b_unary(g, TY_OP_ABS, p.y), ty_b_full_like(g, p.y, 0x1p-52));
    return metric_quotient(ty_loss_sum(g, ty_b_div(g, size, of), p.keep),
                           ty_loss_sum(g, ty_b_full_like(g, p.x, 1), p.keep));
}

static ty_metric_parts metric_r2(ty_graph *g, const metric_args *a)
{
    metric_pairs p;
    if (!metric_pairs_of(g, a, &p))
        return metric_nothing();
    ty_val y = p.keep == TY_NONE ? p.y : ty_b_select(g, p.keep, p.y, ty_b_full_like(g, p.y, NAN));
    return (ty_metric_parts){2, {"outputs", "targets"}, {ty_b_flatten(g, p.x), ty_b_flatten(g, y)}};
}

static ty_metric_parts metric_perplexity(ty_graph *g, const metric_args *a)
{
    metric_rows r;
    if (!metric_rows_of(g, a, &r))
        return metric_nothing();
    ty_val in[2] = {r.x, r.label};
    ty_attr attr = {.index = a->classes->ignore_index};
    ty_val term = ty_graph_emit(g, TY_OP_XENT, &attr, in, 2);
    if (term == TY_NONE)
        return metric_nothing();
    return metric_quotient(ty_loss_sum(g, term, r.keep), ty_loss_sum(g, ty_b_full_like(g, term, 1), r.keep));
}

/* ---- counts of classes ---------------------------------------------------------------------------------------------
 */

/* f32[3, C] from says and is, bool[R, C], and what counts, bool[R, C] or TY_NONE. */
static ty_metric_parts metric_counts(ty_graph *g, ty_val says, ty_val is, ty_val keep)
{
    ty_val truth[3] = {ty_b_binary(g, TY_OP_AND, says, is), says, is}, row[3];
    for (int i = 0; i < 3; i++) {
        ty_val counted = keep == TY_NONE ? truth[i] : ty_b_binary(g, TY_OP_AND, truth[i], keep);
        row[i] = ty_b_sum(g, metric_number(g, counted), 1, true);
    }
    return (ty_metric_parts){1, {"counts"}, {ty_b_concat(g, row, 3, 0)}};
}

static ty_metric_parts metric_counts_of_singles(ty_graph *g, const metric_args *a)
{
    metric_pairs p;
    if (!metric_pairs_of(g, a, &p))
        return metric_nothing();
    int64_t flat[2] = {ty_type_elems(ty_graph_type(g, p.x)), 1};
    ty_val says = ty_b_lt(g, ty_b_full_like(g, p.x, a->metric->threshold), p.x);
    ty_val is = ty_b_lt(g, ty_b_full_like(g, p.y, 0.5), p.y);
    ty_val keep = p.keep == TY_NONE ? TY_NONE : ty_b_reshape(g, p.keep, 2, flat);
    return metric_counts(g, ty_b_reshape(g, says, 2, flat), ty_b_reshape(g, is, 2, flat), keep);
}

static ty_metric_parts metric_confusion(ty_graph *g, const metric_args *a)
{
    metric_rows r;
    bool binary = a->metric->average == TY_AVERAGE_BINARY;
    if (metric_is_single(g, a)) {
        if (a->metric->average == TY_AVERAGE_MACRO)
            ty_graph_fail(g, TY_E_CONFIG, "average: macro needs classes, and the output has one number an element");
        return metric_counts_of_singles(g, a);
    }
    if (!metric_rows_of(g, a, &r))
        return metric_nothing();
    if (binary && r.c != 2) {
        ty_graph_fail(g, TY_E_SHAPE, "average: binary needs two classes, found %" PRId64, r.c);
        return metric_nothing();
    }
    ty_val best = ty_b_unsqueeze(g, ty_b_argreduce(g, r.x, TY_MAX, 1, false), 1), column = metric_columns(g, &r);
    ty_val says = ty_b_eq(g, column, best), is = ty_b_eq(g, column, ty_b_unsqueeze(g, r.label, 1));
    ty_val keep = ty_b_broadcast(g, ty_b_unsqueeze(g, r.keep, 1), 2, (int64_t[]){r.n, r.c});
    ty_metric_parts all = metric_counts(g, says, is, keep);
    if (binary)
        all.value[0] = ty_b_slice_axis(g, all.value[0], 1, 1, 2);
    return all;
}

/* ---- scores --------------------------------------------------------------------------------------------------------
 */

/* f32[R] scores and labels 1, 0, -1 from scores, truth and what counts. */
static ty_metric_parts metric_scores(ty_graph *g, ty_val score, ty_val is, ty_val keep)
{
    ty_val label = metric_number(g, is);
    if (keep != TY_NONE)
        label = ty_b_select(g, keep, label, ty_b_full_like(g, label, -1));
    return (ty_metric_parts){2, {"scores", "labels"}, {ty_b_flatten(g, score), ty_b_flatten(g, label)}};
}

static ty_metric_parts metric_auc(ty_graph *g, const metric_args *a)
{
    metric_pairs p;
    metric_rows r;
    if (metric_is_single(g, a)) {
        if (!metric_pairs_of(g, a, &p))
            return metric_nothing();
        return metric_scores(g, p.x, ty_b_lt(g, ty_b_full_like(g, p.y, 0.5), p.y), p.keep);
    }
    if (!metric_rows_of(g, a, &r))
        return metric_nothing();
    if (r.c != 2) {
        ty_graph_fail(g, TY_E_SHAPE, "expected one number an element or two classes, found %" PRId64 " classes", r.c);
        return metric_nothing();
    }
    ty_val score = ty_b_sub(g, ty_b_slice_axis(g, r.x, 1, 1, 2), ty_b_slice_axis(g, r.x, 1, 0, 1));
    ty_val is = ty_b_eq(g, r.label, ty_b_full_like(g, r.label, 1));
    return metric_scores(g, ty_b_squeeze(g, score, 1), is, r.keep);
}

/* ---- the table -----------------------------------------------------------------------------------------------------
 */

static const struct metric_kind {
    const char *text;
    metric_fn *build;
    bool is_by_row;
} metric_kinds[TY_N_METRIC_KINDS] = {
    [TY_METRIC_ACCURACY] = {"accuracy", metric_accuracy, false},
    [TY_METRIC_MAE] = {"mae", metric_mae, false},
    [TY_METRIC_MSE] = {"mse", metric_mse, false},
    [TY_METRIC_TOP_K] = {"top_k", metric_top_k, false},
    [TY_METRIC_PERPLEXITY] = {"perplexity", metric_perplexity, false},
    [TY_METRIC_PRECISION] = {"precision", metric_confusion, false},
    [TY_METRIC_RECALL] = {"recall", metric_confusion, false},
    [TY_METRIC_F1] = {"f1", metric_confusion, false},
    [TY_METRIC_AUC] = {"auc", metric_auc, true},
    [TY_METRIC_AVERAGE_PRECISION] = {"average_precision", metric_auc, true},
    [TY_METRIC_IOU] = {"iou", metric_confusion, false},
    [TY_METRIC_RMSE] = {"rmse", metric_mse, false},
    [TY_METRIC_MAPE] = {"mape", metric_mape, false},
    [TY_METRIC_R2] = {"r2", metric_r2, true},
};

bool ty_metric_is_by_row(ty_metric_kind kind)
{
    return metric_kinds[kind].is_by_row;
}

int ty_metric_build(ty_graph *g, const ty_metric *metric, const ty_loss_operands *in, const ty_metric_classes *classes,
                    ty_metric_parts *out, ty_error *err)
{
    if ((unsigned)metric->kind >= TY_N_METRIC_KINDS)
        return ty_error_set(err, TY_E_INTERNAL, "metric: no kind %d", (int)metric->kind);
    metric_args a = {metric, in, classes};
    *out = metric_nothing();
    if (in->output != TY_NONE && in->target != TY_NONE)
        *out = metric_kinds[metric->kind].build(g, &a);
    if (!ty_graph_failed(g, err))
        return 0;
    return ty_error_wrap(err, "metric \"%s\" (%s of output \"%s\")", metric->name, metric_kinds[metric->kind].text,
                         metric->output);
}
