/* loss_keras.c - see loss_keras.h. */
#include "compiler/passes/loss_keras.h"

#include "compiler/ir/build.h"
#include "compiler/ops/softmax.h"

#include <inttypes.h>
#include <math.h>

#define KERAS_EPSILON 1e-7 /* keras.config.epsilon() */

/* One term while it is built: rows flattened, classes last. */
typedef struct keras_rows {
    const ty_loss_term *t;
    ty_val x;      /* f32[R, C]: the output, or what went into the softmax or sigmoid that it is */
    ty_val y;      /* f32[R, C], NONE for class numbers */
    ty_val labels; /* i64[R], NONE for others */
    bool logits;   /* x is no probability */
} keras_rows;

typedef ty_val keras_row_fn(ty_graph *g, const keras_rows *r); /* f32[R] */

/* ---- arithmetic ---- */

static ty_val keras_clip(ty_graph *g, ty_val x, double lo, double hi)
{
    return ty_b_max(g, ty_b_min(g, x, ty_b_full_like(g, x, hi)), ty_b_full_like(g, x, lo));
}

/* a - x */
static ty_val keras_less(ty_graph *g, double a, ty_val x)
{
    return ty_b_add_s(g, ty_b_neg(g, x), a);
}

static ty_val keras_sum(ty_graph *g, ty_val x)
{
    return ty_b_sum(g, x, 2, false);
}

static ty_val keras_mean(ty_graph *g, ty_val x)
{
    return ty_b_mean(g, x, 2, false);
}

/* x^gamma for x of at least 0. */
static ty_val keras_power(ty_graph *g, ty_val x, double gamma)
{
    if (gamma == 2)
        return ty_b_square(g, x);
    return gamma == 1 ? x : ty_b_binary(g, TY_OP_POW, x, ty_b_full_like(g, x, gamma));
}

/* ---- what went into a softmax or a sigmoid ---- */

static ty_val keras_softmax_input(const ty_graph *g, ty_val x, int axis)
{
    uint32_t node = ty_val_node(x);
    const ty_attr *attr = ty_graph_attr(g, node);
    bool is = ty_graph_op(g, node) == TY_OP_SOFTMAX && !(attr->flags & TY_SOFTMAX_LOG) && attr->axis == axis;
    return is ? ty_graph_in(g, node, 0) : TY_NONE;
}

/* ---- rows ---- */

static ty_val keras_sparse_crossentropy(ty_graph *g, const keras_rows *r)
{
    ty_val x = r->logits ? r->x : ty_b_log(g, keras_clip(g, r->x, KERAS_EPSILON, 1 - KERAS_EPSILON));
    ty_val in[2] = {x, r->labels};
    ty_attr attr = {.index = r->t->ignore_index};
    return ty_graph_emit(g, TY_OP_XENT, &attr, in, 2);
}

/* y (1 - e) + e / n */
static ty_val keras_smoothed(ty_graph *g, const keras_rows *r, double n)
{
    double e = r->t->label_smoothing;
    return e == 0 ? r->y : ty_b_add_s(g, ty_b_mul_s(g, r->y, 1 - e), e / n);
}

/* A row of probabilities of sum 1, away from 0 and 1. */
static ty_val keras_shares(ty_graph *g, ty_val p)
{
    ty_val whole = ty_b_sum(g, p, 2, true);
    return keras_clip(g, ty_b_div(g, p, whole), KERAS_EPSILON, 1 - KERAS_EPSILON);
}

static ty_val keras_categorical_crossentropy(ty_graph *g, const keras_rows *r)
{
    ty_val y = keras_smoothed(g, r, r->x == TY_NONE ? 1 : (double)ty_b_dim(g, r->x, 1));
    ty_val log = r->logits ? ty_b_softmax(g, r->x, 1, true) : ty_b_log(g, keras_shares(g, r->x));
    return ty_b_neg(g, keras_sum(g, ty_b_mul(g, y, log)));
}

static ty_val keras_categorical_focal(ty_graph *g, const keras_rows *r)
{
    ty_val y = keras_smoothed(g, r, r->x == TY_NONE ? 1 : (double)ty_b_dim(g, r->x, 1));
    ty_val p = keras_shares(g, r->logits ? ty_b_softmax(g, r->x, 1, false) : r->x);
    ty_val factor = ty_b_mul_s(g, keras_power(g, keras_less(g, 1, p), r->t->gamma), r->t->alpha);
    return ty_b_neg(g, keras_sum(g, ty_b_mul(g, factor, ty_b_mul(g, y, ty_b_log(g, p)))));
}

/* -(y log p + (1 - y) log(1 - p)), element by element; from logits max(x, 0) - x y + log(1 + exp(-|x|)). */
static ty_val keras_binary(ty_graph *g, const keras_rows *r, ty_val y)
{
    if (r->logits)
        return ty_b_sub(g, ty_b_softplus(g, r->x), ty_b_mul(g, r->x, y));
    ty_val p = keras_clip(g, r->x, KERAS_EPSILON, 1 - KERAS_EPSILON);
    ty_val yes = ty_b_mul(g, y, ty_b_log(g, p));
    ty_val no = ty_b_mul(g, keras_less(g, 1, y), ty_b_log(g, keras_less(g, 1, p)));
    return ty_b_neg(g, ty_b_add(g, yes, no));
}

static ty_val keras_binary_crossentropy(ty_graph *g, const keras_rows *r)
{
    return keras_mean(g, keras_binary(g, r, keras_smoothed(g, r, 2)));
}

static ty_val keras_binary_focal(ty_graph *g, const keras_rows *r)
{
    ty_val y = keras_smoothed(g, r, 2), p = r->logits ? ty_b_sigmoid(g, r->x) : r->x;
    ty_val q = ty_b_add(g, ty_b_mul(g, y, p), ty_b_mul(g, keras_less(g, 1, y), keras_less(g, 1, p)));
    ty_val term = ty_b_mul(g, keras_power(g, keras_less(g, 1, q), r->t->gamma), keras_binary(g, r, y));
    if (r->t->balanced) {
        double a = r->t->alpha;
        term = ty_b_mul(g, term, ty_b_add_s(g, ty_b_mul_s(g, y, 2 * a - 1), 1 - a));
    }
    return keras_mean(g, term);
}

static ty_val keras_difference(ty_graph *g, const keras_rows *r)
{
    return ty_b_sub(g, r->x, r->y);
}

static ty_val keras_mse(ty_graph *g, const keras_rows *r)
{
    return keras_mean(g, ty_b_square(g, keras_difference(g, r)));
}

static ty_val keras_mae(ty_graph *g, const keras_rows *r)
{
    return keras_mean(g, ty_b_unary(g, TY_OP_ABS, keras_difference(g, r)));
}

static ty_val keras_mape(ty_graph *g, const keras_rows *r)
{
    ty_val size = ty_b_unary(g, TY_OP_ABS, r->y);
    size = ty_b_max(g, size, ty_b_full_like(g, size, KERAS_EPSILON));
    ty_val share = ty_b_unary(g, TY_OP_ABS, ty_b_div(g, keras_difference(g, r), size));
    return ty_b_mul_s(g, keras_mean(g, share), 100);
}

static ty_val keras_log1p(ty_graph *g, ty_val x)
{
    return ty_b_log(g, ty_b_add_s(g, ty_b_max(g, x, ty_b_full_like(g, x, KERAS_EPSILON)), 1));
}

static ty_val keras_msle(ty_graph *g, const keras_rows *r)
{
    return keras_mean(g, ty_b_square(g, ty_b_sub(g, keras_log1p(g, r->x), keras_log1p(g, r->y))));
}

static ty_val keras_huber(ty_graph *g, const keras_rows *r)
{
    double delta = r->t->delta;
    ty_val d = keras_difference(g, r), size = ty_b_unary(g, TY_OP_ABS, d);
    ty_val inside = ty_b_mul_s(g, ty_b_square(g, d), 0.5);
    ty_val outside = ty_b_add_s(g, ty_b_mul_s(g, size, delta), -delta * delta / 2);
    return keras_mean(g, ty_b_select(g, ty_b_le(g, size, ty_b_full_like(g, size, delta)), inside, outside));
}

/* d + log(1 + exp(-2 d)) - log 2 */
static ty_val keras_log_cosh(ty_graph *g, const keras_rows *r)
{
    ty_val d = keras_difference(g, r), tail = ty_b_softplus(g, ty_b_mul_s(g, d, -2));
    return keras_mean(g, ty_b_add_s(g, ty_b_add(g, d, tail), -M_LN2));
}

static ty_val keras_kl_divergence(ty_graph *g, const keras_rows *r)
{
    ty_val y = keras_clip(g, r->y, KERAS_EPSILON, 1), x = keras_clip(g, r->x, KERAS_EPSILON, 1);
    return keras_sum(g, ty_b_mul(g, y, ty_b_log(g, ty_b_div(g, y, x))));
}

static ty_val keras_poisson(ty_graph *g, const keras_rows *r)
{
    ty_val log = ty_b_log(g, ty_b_add_s(g, r->x, KERAS_EPSILON));
    return keras_mean(g, ty_b_sub(g, r->x, ty_b_mul(g, r->y, log)));
}

/* Of length 1, unless it is shorter than epsilon. */
static ty_val keras_direction(ty_graph *g, ty_val x)
{
    ty_val squares = ty_b_sum(g, ty_b_square(g, x), 2, true);
    squares = ty_b_max(g, squares, ty_b_full_like(g, squares, KERAS_EPSILON * KERAS_EPSILON));
    return ty_b_mul(g, x, ty_b_unary(g, TY_OP_RSQRT, squares));
}

static ty_val keras_cosine_similarity(ty_graph *g, const keras_rows *r)
{
    return ty_b_neg(g, keras_sum(g, ty_b_mul(g, keras_direction(g, r->x), keras_direction(g, r->y))));
}

/* max(0, 1 - y' x) */
static ty_val keras_hinges(ty_graph *g, const keras_rows *r)
{
    ty_val zero = ty_b_full_like(g, r->y, 0), one = ty_b_full_like(g, r->y, 1);
    ty_val plain = ty_b_binary(g, TY_OP_OR, ty_b_eq(g, r->y, zero), ty_b_eq(g, r->y, one));
    ty_val all = ty_b_reduce(g, ty_b_cast(g, plain, TY_F32), TY_MIN, 3, false);
    ty_val binary = ty_b_lt(g, ty_b_scalar(g, TY_F32, 0.5), all);
    ty_val y = ty_b_select(g, binary, ty_b_add_s(g, ty_b_mul_s(g, r->y, 2), -1), r->y);
    return ty_b_relu(g, keras_less(g, 1, ty_b_mul(g, y, r->x)));
}

static ty_val keras_hinge(ty_graph *g, const keras_rows *r)
{
    return keras_mean(g, keras_hinges(g, r));
}

static ty_val keras_squared_hinge(ty_graph *g, const keras_rows *r)
{
    return keras_mean(g, ty_b_square(g, keras_hinges(g, r)));
}

static ty_val keras_categorical_hinge(ty_graph *g, const keras_rows *r)
{
    ty_val right = keras_sum(g, ty_b_mul(g, r->y, r->x));
    ty_val wrong = ty_b_reduce(g, ty_b_mul(g, keras_less(g, 1, r->y), r->x), TY_MAX, 2, false);
    return ty_b_relu(g, ty_b_add_s(g, ty_b_sub(g, wrong, right), 1));
}

/* ---- the table ---- */

typedef enum keras_probability { KERAS_NONE, KERAS_SOFTMAX, KERAS_SIGMOID } keras_probability;

static const struct keras_kind {
    keras_row_fn *row;
    keras_probability probability; /* of which the loss takes what went in */
} keras_kinds[TY_N_LOSS_KINDS] = {
    [TY_LOSS_KERAS_SPARSE_CROSSENTROPY] = {keras_sparse_crossentropy, KERAS_SOFTMAX},
    [TY_LOSS_KERAS_CATEGORICAL_CROSSENTROPY] = {keras_categorical_crossentropy, KERAS_SOFTMAX},
    [TY_LOSS_KERAS_CATEGORICAL_FOCAL] = {keras_categorical_focal, KERAS_NONE},
    [TY_LOSS_KERAS_BINARY_CROSSENTROPY] = {keras_binary_crossentropy, KERAS_SIGMOID},
    [TY_LOSS_KERAS_BINARY_FOCAL] = {keras_binary_focal, KERAS_SIGMOID},
    [TY_LOSS_KERAS_MSE] = {keras_mse, KERAS_NONE},
    [TY_LOSS_KERAS_MAE] = {keras_mae, KERAS_NONE},
    [TY_LOSS_KERAS_MAPE] = {keras_mape, KERAS_NONE},
    [TY_LOSS_KERAS_MSLE] = {keras_msle, KERAS_NONE},
    [TY_LOSS_KERAS_HUBER] = {keras_huber, KERAS_NONE},
    [TY_LOSS_KERAS_LOG_COSH] = {keras_log_cosh, KERAS_NONE},
    [TY_LOSS_KERAS_KL_DIVERGENCE] = {keras_kl_divergence, KERAS_NONE},
    [TY_LOSS_KERAS_POISSON] = {keras_poisson, KERAS_NONE},
    [TY_LOSS_KERAS_COSINE_SIMILARITY] = {keras_cosine_similarity, KERAS_NONE},
    [TY_LOSS_KERAS_HINGE] = {keras_hinge, KERAS_NONE},
    [TY_LOSS_KERAS_SQUARED_HINGE] = {keras_squared_hinge, KERAS_NONE},
    [TY_LOSS_KERAS_CATEGORICAL_HINGE] = {keras_categorical_hinge, KERAS_NONE},
};

bool ty_loss_is_keras(ty_loss_kind kind)
{
    return kind < TY_N_LOSS_KINDS && keras_kinds[kind].row;
}

bool ty_loss_keras_has_labels(ty_loss_kind kind)
{
    return kind == TY_LOSS_KERAS_SPARSE_CROSSENTROPY;
}

bool ty_loss_keras_has_shares(ty_loss_kind kind)
{
    return kind == TY_LOSS_KERAS_CATEGORICAL_CROSSENTROPY || kind == TY_LOSS_KERAS_CATEGORICAL_FOCAL ||
           kind == TY_LOSS_KERAS_CATEGORICAL_HINGE;
}

/* ---- weights ---- */

/* One number for each row, or for each row of the batch, which it then has again and again: f32[R]. */
static ty_val keras_row_weights(ty_graph *g, ty_val w, ty_val x, int64_t rows)
{
    if (w == TY_NONE || x == TY_NONE)
        return TY_NONE;
    int64_t n = ty_type_elems(ty_graph_type(g, w)), batch = ty_b_dim(g, x, 0);
    w = ty_b_flatten(g, ty_b_cast(g, w, TY_F32));
    if (n == rows)
        return w;
    if (n != batch || rows % (batch ? batch : 1))
        return ty_graph_fail(g, TY_E_SHAPE,
                             "sample weights: expected %" PRId64 ", one a row of the output, or %" PRId64
                             ", one a row of the batch, found %" PRId64,
                             rows, batch, n);
    return ty_b_flatten(g, ty_b_broadcast(g, ty_b_unsqueeze(g, w, 1), 2, (int64_t[]){batch, rows / batch}));
}

/* The class of each row: its label, the largest of several numbers, or the nearest whole number: i64[R]. */
static ty_val keras_classes(ty_graph *g, const keras_rows *r)
{
    if (r->labels != TY_NONE || r->y == TY_NONE)
        return r->labels;
    if (ty_b_dim(g, r->y, 1) > 1)
        return ty_b_argreduce(g, r->y, TY_MAX, 1, false);
    ty_val nearest = ty_b_unary(g, TY_OP_FLOOR, ty_b_add_s(g, ty_b_flatten(g, r->y), 0.5));
    return ty_b_cast(g, nearest, TY_I64);
}

/* The weight of each row's class; classes behind the list weigh 1. */
static ty_val keras_class_weights(ty_graph *g, const keras_rows *r)
{
    int64_t n = r->t->n_class_weights;
    float *data = TY_NEW_ARRAY(ty_graph_arena(g), float, n);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)r->t->class_weights[i];
    ty_val table = ty_b_const_copy(g, ty_type_make(TY_F32, 1, &n), data), class = keras_classes(g, r);
    if (class == TY_NONE)
        return TY_NONE;
    ty_val zero = ty_b_full_like(g, class, 0), last = ty_b_full_like(g, class, (double)n - 1);
    ty_val inside = ty_b_max(g, ty_b_min(g, class, last), zero), known = ty_b_eq(g, class, inside);
    ty_val w = ty_b_gather(g, table, inside, 0);
    return ty_b_select(g, known, w, ty_b_full_like(g, w, 1));
}

static ty_val keras_weights(ty_graph *g, const keras_rows *r, const ty_loss_operands *in, ty_val x, int64_t rows)
{
    ty_val w = TY_NONE;
    if (in->sample_weight != TY_NONE)
        w = keras_row_weights(g, in->sample_weight, x, rows);
    if (r->t->n_class_weights && !in->evaluates) {
        ty_val by_class = keras_class_weights(g, r);
        w = in->sample_weight == TY_NONE ? by_class : ty_b_mul(g, w, by_class);
    }
    return w;
}

/* ---- the frame ---- */

static int keras_axis(ty_graph *g, ty_val x, int class_axis)
{
    return class_axis < 0 ? class_axis + ty_b_rank(g, x) : class_axis;
}

/* [batch] is [batch, 1]. */
static ty_val keras_at_least_two(ty_graph *g, ty_val x)
{
    return x != TY_NONE && ty_b_rank(g, x) == 1 ? ty_b_unsqueeze(g, x, 1) : x;
}

/* What the crossentropies of p are computed from. */
static ty_val keras_source(ty_graph *g, const ty_loss_term *t, ty_val x, bool *logits)
{
    ty_val in = TY_NONE;
    keras_probability p = keras_kinds[t->kind].probability;
    *logits = t->from_logits;
    if (x == TY_NONE || t->from_logits)
        return x;
    if (p == KERAS_SOFTMAX)
        in = keras_softmax_input(g, x, keras_axis(g, x, t->class_axis));
    else if (p == KERAS_SIGMOID)
        in = ty_b_sigmoid_input(g, x);
    *logits = in != TY_NONE;
    return in == TY_NONE ? x : in;
}

static bool keras_rows_of(ty_graph *g, const ty_loss_term *t, const ty_loss_operands *in, ty_val x, keras_rows *out)
{
    *out = (keras_rows){.t = t, .y = TY_NONE, .labels = TY_NONE};
    ty_val source = keras_at_least_two(g, ty_b_cast(g, keras_source(g, t, in->output, &out->logits), TY_F32));
    out->x = ty_loss_class_rows(g, source, t->class_axis);
    if (ty_loss_keras_has_labels(t->kind)) {
        ty_val whole = ty_b_cast(g, in->target, TY_I64);
        out->labels = ty_loss_labels(g, whole, x, t->class_axis);
    } else {
        ty_val y = ty_loss_match(g, ty_b_cast(g, in->target, TY_F32), x, "target");
        out->y = ty_loss_class_rows(g, y, t->class_axis);
    }
    return !ty_graph_failed(g, NULL);
}

/* bool[R]: rows that count, or TY_NONE. */
static ty_val keras_keep(ty_graph *g, const keras_rows *r, const ty_loss_operands *in, ty_val x)
{
    ty_val keep = ty_loss_class_mask(g, in->rows, x, r->t->class_axis);
    if (r->labels == TY_NONE || r->t->ignore_index == TY_XENT_IGNORES_NONE)
        return keep;
    ty_val known = ty_b_ne(g, r->labels, ty_b_full_like(g, r->labels, (double)r->t->ignore_index));
    return keep == TY_NONE ? known : ty_b_binary(g, TY_OP_AND, keep, known);
}

static ty_val keras_count(ty_graph *g, const ty_loss_term *t, ty_val w, ty_val keep, int64_t rows)
{
    if (t->reduction == TY_REDUCTION_SUM)
        return ty_b_scalar(g, TY_F32, 1);
    if (t->reduction == TY_REDUCTION_WEIGHTED_MEAN && w != TY_NONE)
        return ty_loss_sum(g, w, keep);
    if (keep == TY_NONE)
        return ty_b_scalar(g, TY_F32, (double)rows);
    /* Where a mask leaves nothing the loss is 0. */
    ty_val n = ty_loss_sum(g, ty_b_cast(g, keep, TY_F32), TY_NONE);
    return ty_b_max(g, n, ty_b_full_like(g, n, KERAS_EPSILON));
}

ty_loss_sums ty_loss_keras(ty_graph *g, const ty_loss_term *t, const ty_loss_operands *in)
{
    const ty_loss_sums nothing = {TY_NONE, TY_NONE};
    keras_rows r;
    ty_val x = keras_at_least_two(g, ty_b_cast(g, in->output, TY_F32));
    if (!keras_rows_of(g, t, in, x, &r))
        return nothing;
    int64_t rows = ty_b_dim(g, r.x, 0);
    ty_val term = keras_kinds[t->kind].row(g, &r), w = keras_weights(g, &r, in, x, rows);
    ty_val keep = keras_keep(g, &r, in, x), whole = w == TY_NONE ? term : ty_b_mul(g, w, term);
    if (ty_graph_failed(g, NULL))
        return nothing;
    return (ty_loss_sums){ty_loss_sum(g, whole, keep), keras_count(g, t, w, keep, rows)};
}
