/* keras_ops_order.c - medians and quantiles; reductions that leave out what is no number. */
#include "compiler/import/keras/keras_ops.h"

#include <math.h>

/* ---- quantiles ---- */

/* What is reduced comes last, as one axis. */
typedef struct order_rows {
    ty_val x; /* sorted, [rows, n] */
    int64_t n;
    int rank;
    int64_t dim[TY_MAX_RANK]; /* of the result */
} order_rows;

static bool order_read(keras_call *c, order_rows *r)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_float(c);
    uint32_t axes;
    if (x == TY_NONE || !keras_op_axes(c, "axis", ty_b_rank(g, x), &axes))
        return false;
    const ty_type t = *ty_graph_type(g, x);
    int64_t perm[TY_MAX_RANK], flat[] = {1, 1};
    bool keep = keras_flag(c, "keepdims", false);
    int at = 0;
    r->rank = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < t.rank; i++)
            if ((axes >> i & 1) == (uint32_t)pass) {
                perm[at++] = i;
                flat[pass] *= t.dim[i];
            }
    for (int i = 0; i < t.rank; i++)
        if (keep || !(axes >> i & 1))
            r->dim[r->rank++] = axes >> i & 1 ? 1 : t.dim[i];
    r->n = flat[1];
    if (r->n < 1) {
        keras_fail(c, TY_E_SHAPE, "%s: expected elements", c->layer->class_name);
        return false;
    }
    r->x = ty_b_sort(g, ty_b_reshape(g, ty_b_transpose(g, x, perm), 2, flat), 1, false, NULL);
    return true;
}

/* The element at a position between two. */
static ty_val order_at(keras_call *c, const order_rows *r, double at, int method)
{
    enum { LINEAR, LOWER, HIGHER, MIDPOINT, NEAREST };
    ty_graph *g = c->g;
    double low = floor(at), part = at - low;
    part = method == LOWER ? 0 : method == HIGHER ? ceil(part) : method == NEAREST ? rint(at) - low : part;
    if (method == MIDPOINT && part > 0)
        part = 0.5;
    int64_t first = (int64_t)low, second = first + 1 < r->n ? first + 1 : first;
    ty_val a = ty_b_slice_axis(g, r->x, 1, first, first + 1), b = ty_b_slice_axis(g, r->x, 1, second, second + 1);
    ty_val y = part == 0 ? a : part == 1 ? b : ty_b_add(g, ty_b_mul_s(g, a, 1 - part), ty_b_mul_s(g, b, part));
    return ty_b_reshape(g, y, r->rank, r->dim);
}

void keras_op_median(keras_call *c)
{
    order_rows r;
    if (order_read(c, &r))
        keras_set(c, 0, order_at(c, &r, (double)(r.n - 1) / 2, 0));
}

static bool order_number(const keras_arg *a, double by, double *out)
{
    bool is_float = a->kind == KERAS_FLOAT;
    if (!is_float && a->kind != KERAS_INT)
        return false;
    *out = (is_float ? a->number : (double)a->integer) / by;
    return *out >= 0 && *out <= 1;
}

/* arg: what q is a share of, 1 or 100. A list of them makes a new first axis. Keras 3.15 forgets the method of a
 * Quantile in a model. */
void keras_op_quantile(keras_call *c)
{
    static const char *const methods[] = {"linear", "lower", "higher", "midpoint", "nearest", NULL};
    int method = c->layer->op->arg == 1 ? 0 : keras_choice(c, "method", "linear", methods);
    const keras_arg *q = keras_argument(c, 1, "q");
    order_rows r;
    if (c->failed || !order_read(c, &r))
        return;
    bool is_list = q && q->kind == KERAS_LIST;
    int n = is_list ? q->n_items : 1;
    ty_val *each = keras_alloc(c, (size_t)n + 1, sizeof *each);
    for (int i = 0; i < n; i++) {
        double share;
        if (!q || !order_number(is_list ? &q->item[i] : q, c->layer->op->arg, &share)) {
            keras_fail(c, TY_E_UNSUPPORTED, "%s: q must be numbers from 0 to %d", c->layer->class_name,
                       c->layer->op->arg);
            return;
        }
        each[i] = order_at(c, &r, share * (double)(r.n - 1), method);
        each[i] = is_list ? ty_b_unsqueeze(c->g, each[i], 0) : each[i];
    }
    keras_set(c, 0, is_list ? ty_b_concat_many(c->g, each, n, 0) : each[0]);
}

/* ---- without what is no number ---- */

typedef struct order_numbers {
    ty_val x, is_nan;
    uint32_t axes;
    bool keep;
} order_numbers;

static bool numbers_read(keras_call *c, order_numbers *r)
{
    r->x = keras_op_float(c);
    r->keep = keras_flag(c, "keepdims", false);
    if (r->x == TY_NONE || !keras_op_axes(c, "axis", ty_b_rank(c->g, r->x), &r->axes))
        return false;
    r->is_nan = ty_b_ne(c->g, r->x, r->x);
    return true;
}

static ty_val numbers_with(keras_call *c, const order_numbers *r, ty_val x, double instead)
{
    return ty_b_select(c->g, r->is_nan, ty_b_full_like(c->g, x, instead), x);
}

/* arg: ty_combine. Of the largest and smallest of none there is no number. */
void keras_op_nan_reduce(keras_call *c)
{
    ty_graph *g = c->g;
    ty_combine how = (ty_combine)c->layer->op->arg;
    order_numbers r;
    if (!numbers_read(c, &r))
        return;
    double none = how == TY_SUM ? 0 : how == TY_PROD ? 1 : how == TY_MAX ? -INFINITY : INFINITY;
    ty_val y = ty_b_reduce(g, numbers_with(c, &r, r.x, none), how, r.axes, r.keep);
    if (how == TY_MAX || how == TY_MIN) {
        ty_val all = ty_b_reduce(g, r.is_nan, TY_MIN, r.axes, r.keep);
        y = ty_b_select(g, all, ty_b_full_like(g, y, (double)NAN), y);
    }
    keras_set(c, 0, y);
}

static ty_val numbers_mean(keras_call *c, const order_numbers *r, ty_val x, bool keep)
{
    ty_graph *g = c->g;
    ty_val one = numbers_with(c, r, ty_b_full_like(g, x, 1), 0);
    return ty_b_div(g, ty_b_sum(g, numbers_with(c, r, x, 0), r->axes, keep), ty_b_sum(g, one, r->axes, keep));
}

/* arg 0: mean, 1: variance, 2: its root. */
void keras_op_nan_mean(keras_call *c)
{
    ty_graph *g = c->g;
    order_numbers r;
    if (!numbers_read(c, &r))
        return;
    ty_val y = numbers_mean(c, &r, r.x, c->layer->op->arg ? true : r.keep);
    if (c->layer->op->arg) {
        ty_val clean = ty_b_select(g, r.is_nan, y, r.x);
        y = numbers_mean(c, &r, ty_b_square(g, ty_b_sub(g, clean, y)), r.keep);
    }
    keras_set(c, 0, c->layer->op->arg == 2 ? ty_b_unary(g, TY_OP_SQRT, y) : y);
}
