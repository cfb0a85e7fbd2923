/* metric.c - one row a kind. Sums and counts are f32: exact up to 2^24 rows a batch. */
#include "compiler/passes/metric.h"

#include "compiler/ir/build.h"

typedef ty_loss_sums metric_fn(ty_graph *g, const ty_loss_operands *in, const ty_metric_classes *classes);

static ty_loss_sums metric_share(ty_graph *g, ty_val hit, ty_val keep)
{
    if (hit == TY_NONE)
        return (ty_loss_sums){TY_NONE, TY_NONE};
    ty_val ones = ty_b_full(g, TY_F32, ty_b_rank(g, hit), ty_graph_type(g, hit)->dim, 1);
    return (ty_loss_sums){ty_loss_sum(g, ty_b_cast(g, hit, TY_F32), keep), ty_loss_sum(g, ones, keep)};
}

/* One logit an element. */
static ty_loss_sums metric_binary(ty_graph *g, const ty_loss_operands *in)
{
    ty_val x = ty_b_cast(g, in->output, TY_F32);
    ty_val y = ty_loss_match(g, ty_b_cast(g, in->target, TY_F32), x, "target");
    if (y == TY_NONE)
        return (ty_loss_sums){TY_NONE, TY_NONE};
    ty_val says = ty_b_lt(g, ty_b_full_like(g, x, 0), x), is = ty_b_lt(g, ty_b_full_like(g, y, 0.5), y);
    return metric_share(g, ty_b_eq(g, says, is), ty_loss_stretch_rows(g, in->rows, x));
}

static ty_loss_sums metric_classes(ty_graph *g, const ty_loss_operands *in, const ty_metric_classes *classes)
{
    ty_val rows = ty_loss_class_rows(g, in->output, classes->class_axis);
    ty_val labels = ty_loss_labels(g, in->target, in->output, classes->class_axis);
    if (rows == TY_NONE || labels == TY_NONE)
        return (ty_loss_sums){TY_NONE, TY_NONE};
    ty_val best = ty_b_argreduce(g, rows, TY_MAX, 1, false);
    ty_val keep = ty_b_ne(g, labels, ty_b_full_like(g, labels, (double)classes->ignore_index));
    if (in->rows != TY_NONE) {
        ty_val mask = ty_loss_class_mask(g, in->rows, in->output, classes->class_axis);
        keep = ty_b_binary(g, TY_OP_AND, keep, mask);
    }
    return metric_share(g, ty_b_eq(g, best, labels), keep);
}

static ty_loss_sums metric_accuracy(ty_graph *g, const ty_loss_operands *in, const ty_metric_classes *classes)
{
    const ty_type *x = ty_graph_type(g, in->output), *y = ty_graph_type(g, in->target);
    bool one_each = ty_type_elems(x) == ty_type_elems(y);
    bool is_class = !ty_dtype_is_float((ty_dtype)y->dtype) && y->dtype != TY_BOOL && y->rank < x->rank && x->rank > 0 &&
                    x->dim[x->rank - 1] > 1;
    return one_each && !is_class ? metric_binary(g, in) : metric_classes(g, in, classes);
}

static ty_loss_sums metric_mae(ty_graph *g, const ty_loss_operands *in, const ty_metric_classes *classes)
{
    (void)classes;
    ty_val x = ty_b_cast(g, in->output, TY_F32);
    ty_val y = ty_loss_match(g, ty_b_cast(g, in->target, TY_F32), x, "target");
    if (y == TY_NONE)
        return (ty_loss_sums){TY_NONE, TY_NONE};
    ty_val keep = ty_loss_stretch_rows(g, in->rows, x), size = ty_b_unary(g, TY_OP_ABS, ty_b_sub(g, x, y));
    return (ty_loss_sums){ty_loss_sum(g, size, keep), ty_loss_sum(g, ty_b_full_like(g, x, 1), keep)};
}

static const struct metric_kind {
    const char *text;
    metric_fn *build;
} metric_kinds[TY_N_METRIC_KINDS] = {
    [TY_METRIC_ACCURACY] = {"accuracy", metric_accuracy},
    [TY_METRIC_MAE] = {"mae", metric_mae},
};

int ty_metric_build(ty_graph *g, const ty_metric *metric, const ty_loss_operands *in, const ty_metric_classes *classes,
                    ty_loss_sums *out, ty_error *err)
{
    if ((unsigned)metric->kind >= TY_N_METRIC_KINDS)
        return ty_error_set(err, TY_E_INTERNAL, "metric: no kind %d", (int)metric->kind);
    *out = (ty_loss_sums){TY_NONE, TY_NONE};
    if (in->output != TY_NONE && in->target != TY_NONE)
        *out = metric_kinds[metric->kind].build(g, in, classes);
    if (!ty_graph_failed(g, err))
        return 0;
    return ty_error_wrap(err, "metric \"%s\" (%s of output \"%s\")", metric->name, metric_kinds[metric->kind].text,
                         metric->output);
}
