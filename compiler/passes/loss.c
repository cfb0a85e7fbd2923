/* loss.c - one row a kind: how each element's term is made, and how the terms are brought together.
 *
 * Kinds with a term for every element share one frame: terms, then sum(w l) / sum(w). Kinds over classes share another:
 * classes to the last axis, rows flattened, term and weight for each row; kinds over vectors do likewise. What is
 * masked out is selected away, not multiplied by zero: the rows behind the valid ones may hold anything.
 */
#include "compiler/passes/loss.h"

#include "compiler/ir/build.h"
#include "compiler/ops/softmax.h"
#include "compiler/passes/ctc.h"
#include "compiler/passes/loss_keras.h"

#include <inttypes.h>
#include <string.h>

typedef struct loss_rows {
    ty_val term, weight; /* f32[R]; the loss is (sum(term weight) + sum(spread)) / sum(weight) */
    ty_val spread;       /* f32[R] or TY_NONE */
} loss_rows;

/* One of element, rows, vectors, whole. */
typedef struct loss_kind {
    const char *text;
    bool needs_target;
    bool is_pair;
    bool per_row; /* the divisor is the number of rows, not of elements */
    ty_val (*element)(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y);
    loss_rows (*rows)(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val labels);      /* x [R, C], labels i64[R] */
    ty_val (*vectors)(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y, ty_val z); /* x, y [R, C], z f32[R] */
    ty_loss_sums (*whole)(ty_graph *g, const ty_loss_term *t, const ty_loss_operands *in);
} loss_kind;

/* ---- terms of elements: x output, y target, both f32 and of one shape
 * ------------------------------------------------ */

static ty_val loss_abs(ty_graph *g, ty_val x)
{
    return ty_b_unary(g, TY_OP_ABS, x);
}

static ty_val loss_mse(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y)
{
    (void)t;
    return ty_b_square(g, ty_b_sub(g, x, y));
}

static ty_val loss_mae(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y)
{
    (void)t;
    return loss_abs(g, ty_b_sub(g, x, y));
}

static ty_val loss_huber(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y)
{
    ty_val r = ty_b_sub(g, x, y), size = loss_abs(g, r), delta = ty_b_full_like(g, r, t->delta);
    ty_val inside = ty_b_mul_s(g, ty_b_square(g, r), 0.5);
    ty_val outside = ty_b_mul_s(g, ty_b_add_s(g, size, -t->delta / 2), t->delta);
    return ty_b_select(g, ty_b_le(g, size, delta), inside, outside);
}

/* (1 - y) x + (1 + (p - 1) y) (log1p(exp(-|x|)) + max(-x, 0)) */
static ty_val loss_bce(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y)
{
    ty_val positive = ty_b_softplus(g, ty_b_neg(g, x));
    ty_val one = ty_b_full_like(g, y, 1);
    if (t->pos_weight != 1)
        positive = ty_b_mul(g, ty_b_add(g, one, ty_b_mul_s(g, y, t->pos_weight - 1)), positive);
    return ty_b_add(g, ty_b_mul(g, ty_b_sub(g, one, y), x), positive);
}

/* y (log y - x), and 0 where y = 0. */
static ty_val loss_kl(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y)
{
    (void)t;
    ty_val zero = ty_b_full_like(g, y, 0), any = ty_b_lt(g, zero, y);
    ty_val safe = ty_b_select(g, any, y, ty_b_full_like(g, y, 1));
    ty_val term = ty_b_mul(g, y, ty_b_sub(g, ty_b_log(g, safe), x));
    return ty_b_select(g, any, term, zero);
}

/* max(0, margin - s x), s the sign that the target asks for */
static ty_val loss_hinge(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y)
{
    ty_val agrees = ty_b_select(g, ty_b_lt(g, ty_b_full_like(g, y, 0), y), x, ty_b_neg(g, x));
    return ty_b_relu(g, ty_b_add_s(g, ty_b_neg(g, agrees), t->margin));
}

static ty_val loss_mean(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y)
{
    (void)g;
    (void)t;
    (void)y;
    return x;
}

/* ---- terms of rows: x [R, C]
 * ------------------------------------------------------------------------------------------ */

static ty_val loss_class_weights(ty_graph *g, const ty_loss_term *t, int64_t n_classes)
{
    if (t->n_class_weights == 0)
        return TY_NONE;
    if (t->n_class_weights != n_classes)
        return ty_graph_fail(g, TY_E_SHAPE, "class_weights: expected %" PRId64 " numbers, one a class, found %d",
                             n_classes, t->n_class_weights);
    float *data = TY_NEW_ARRAY(ty_graph_arena(g), float, n_classes);
    for (int64_t i = 0; i < n_classes; i++)
        data[i] = (float)t->class_weights[i];
    return ty_b_const_copy(g, ty_type_make(TY_F32, 1, &n_classes), data);
}

/* Smoothing and class weights at once: the share that is spread over all classes weighs each by its own weight, in rows
 * that count. r: without smoothing. */
static loss_rows loss_spread(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val labels, ty_val weights, loss_rows r)
{
    double share = t->label_smoothing;
    ty_val all = ty_b_sum(g, ty_b_mul(g, ty_b_softmax(g, x, 1, true), weights), 2, false);
    ty_val ignored = ty_b_eq(g, labels, ty_b_full_like(g, labels, (double)t->ignore_index));
    r.spread =
        ty_b_select(g, ignored, ty_b_full_like(g, all, 0), ty_b_mul_s(g, all, -share / (double)ty_b_dim(g, x, 1)));
    r.term = ty_b_mul_s(g, r.term, 1 - share);
    return r;
}

static loss_rows loss_xent(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val labels)
{
    bool both = t->n_class_weights > 0 && t->label_smoothing > 0;
    ty_val in[3] = {x, labels, loss_class_weights(g, t, ty_b_dim(g, x, 1))};
    ty_attr attr = {.index = t->ignore_index, .value = both ? 0 : t->label_smoothing};
    ty_val term = ty_graph_emit(g, TY_OP_XENT, &attr, in, t->n_class_weights ? 3 : 2);
    if (term == TY_NONE)
        return (loss_rows){TY_NONE, TY_NONE, TY_NONE};
    loss_rows r = {term, ty_val_make(ty_val_node(term), 1), TY_NONE};
    return both ? loss_spread(g, t, x, labels, in[2], r) : r;
}

static loss_rows loss_nll(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val labels)
{
    ty_val ignored = ty_b_eq(g, labels, ty_b_full_like(g, labels, (double)t->ignore_index));
    ty_val safe = ty_b_select(g, ignored, ty_b_full_like(g, labels, 0), labels);
    ty_val picked = ty_b_squeeze(g, ty_b_take(g, x, ty_b_unsqueeze(g, safe, 1), 1), 1);
    ty_val weights = loss_class_weights(g, t, ty_b_dim(g, x, 1));
    ty_val one = ty_b_full_like(g, picked, 1), zero = ty_b_full_like(g, picked, 0);
    ty_val weight = t->n_class_weights ? ty_b_gather(g, weights, safe, 0) : one;
    return (loss_rows){ty_b_neg(g, picked), ty_b_select(g, ignored, zero, weight), TY_NONE};
}

/* The axis of `from` that a reshape makes axis `axis` of `to`, with the same entries; -1: there is none. */
static int loss_axis_before(const ty_type *to, int axis, const ty_type *from)
{
    int64_t outer = 1, before = 1;
    for (int i = 0; i < axis; i++)
        outer *= to->dim[i];
    for (int i = 0; i < from->rank; before *= from->dim[i++])
        if (before == outer && from->dim[i] == to->dim[axis])
            return i;
    return -1;
}

/* What x is the log-softmax of along `axis`, moved as x is behind it; TY_NONE if x is none. */
static ty_val loss_logits(ty_graph *g, ty_val x, int axis)
{
    if (x == TY_NONE || axis < 0)
        return TY_NONE;
    uint32_t node = ty_val_node(x);
    ty_op op = ty_graph_op(g, node);
    const ty_attr attr = *ty_graph_attr(g, node);
    const ty_type to = *ty_graph_type(g, x);
    if (op == TY_OP_SOFTMAX)
        return (attr.flags & TY_SOFTMAX_LOG) && attr.axis == axis ? ty_graph_in(g, node, 0) : TY_NONE;
    if (op != TY_OP_RESHAPE && op != TY_OP_TRANSPOSE)
        return TY_NONE;
    ty_val from = ty_graph_in(g, node, 0);
    bool turned = op == TY_OP_TRANSPOSE;
    from = loss_logits(g, from, turned ? (int)attr.lo[axis] : loss_axis_before(&to, axis, ty_graph_type(g, from)));
    if (from == TY_NONE)
        return TY_NONE;
    return turned ? ty_b_transpose(g, from, attr.lo) : ty_b_reshape(g, from, to.rank, to.dim);
}

/* The nll of x as the cross-entropy of what x is the log-softmax of; false if it is none. */
static bool loss_join(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val labels, loss_rows *out)
{
    ty_loss_term plain = *t;
    ty_val logits = loss_logits(g, x, 1);
    if (logits == TY_NONE)
        return false;
    plain.label_smoothing = 0;
    *out = loss_xent(g, &plain, logits, labels);
    return true;
}

/* u[y] / C * sum over c != y of max(0, margin - x[y] + x[c]); ignored rows 0 */
static loss_rows loss_multi_margin(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val labels)
{
    ty_val ignored = ty_b_eq(g, labels, ty_b_full_like(g, labels, (double)t->ignore_index));
    ty_val safe = ty_b_unsqueeze(g, ty_b_select(g, ignored, ty_b_full_like(g, labels, 0), labels), 1);
    if (safe == TY_NONE)
        return (loss_rows){TY_NONE, TY_NONE, TY_NONE};
    int64_t dim[2] = {ty_b_dim(g, x, 0), ty_b_dim(g, x, 1)};
    ty_val over = ty_b_add_s(g, ty_b_sub(g, x, ty_b_take(g, x, safe, 1)), t->margin);
    ty_val own = ty_b_eq(g, ty_b_iota(g, ty_type_make(TY_I64, 2, dim), 1), safe);
    ty_val term = ty_b_select(g, own, ty_b_full_like(g, x, 0), ty_b_relu(g, over));
    term = ty_b_mul_s(g, ty_b_sum(g, term, 2, false), 1.0 / (double)dim[1]);
    if (t->n_class_weights)
        term = ty_b_mul(g, term, ty_b_gather(g, loss_class_weights(g, t, dim[1]), ty_b_squeeze(g, safe, 1), 0));
    ty_val one = ty_b_full_like(g, term, 1), zero = ty_b_full_like(g, term, 0);
    return (loss_rows){term, ty_b_select(g, ignored, zero, one), TY_NONE};
}

/* ---- terms of vectors: x, y [R, C]
 * ------------------------------------------------------------------------------------ */

static ty_val loss_dot_rows(ty_graph *g, ty_val x, ty_val y)
{
    return ty_b_sum(g, ty_b_mul(g, x, y), 2, false);
}

/* -sum u y' log softmax(x); what y' leaves out may be impossible (-inf). */
static ty_val loss_dense(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y, ty_val z)
{
    (void)z;
    ty_val p = ty_b_softmax(g, x, 1, true), weights = loss_class_weights(g, t, ty_b_dim(g, x, 1));
    if (t->label_smoothing > 0)
        y = ty_b_add_s(g, ty_b_mul_s(g, y, 1 - t->label_smoothing), t->label_smoothing / (double)ty_b_dim(g, x, 1));
    if (t->n_class_weights)
        y = ty_b_mul(g, y, weights);
    ty_val zero = ty_b_full_like(g, y, 0);
    ty_val safe = ty_b_select(g, ty_b_eq(g, y, zero), zero, p);
    return ty_b_neg(g, loss_dot_rows(g, y, safe));
}

/* Below a product of squared lengths of 1e-16 (PyTorch's eps of 1e-8 for the lengths) the cosine counts as 0. */
static ty_val loss_cos(ty_graph *g, ty_val x, ty_val y)
{
    ty_val scale = ty_b_mul(g, loss_dot_rows(g, x, x), loss_dot_rows(g, y, y));
    ty_val any = ty_b_lt(g, ty_b_full_like(g, scale, 1e-16), scale);
    ty_val safe = ty_b_select(g, any, scale, ty_b_full_like(g, scale, 1));
    ty_val cosine = ty_b_mul(g, loss_dot_rows(g, x, y), ty_b_unary(g, TY_OP_RSQRT, safe));
    return ty_b_select(g, any, cosine, ty_b_full_like(g, cosine, 0));
}

static ty_val loss_cosine(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y, ty_val z)
{
    (void)t;
    (void)z;
    return ty_b_add_s(g, ty_b_neg(g, loss_cos(g, x, y)), 1);
}

static ty_val loss_cosine_embedding(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y, ty_val z)
{
    ty_val cosine = loss_cos(g, x, y), alike = ty_b_lt(g, ty_b_full_like(g, z, 0), z);
    ty_val apart = ty_b_relu(g, ty_b_add_s(g, cosine, -t->margin));
    return ty_b_select(g, alike, ty_b_add_s(g, ty_b_neg(g, cosine), 1), apart);
}

/* z d^2 / 2 + (1 - z) max(0, margin - d)^2 / 2; equal vectors have no direction to part in: slope 0 */
static ty_val loss_contrastive(ty_graph *g, const ty_loss_term *t, ty_val x, ty_val y, ty_val z)
{
    ty_val apart = ty_b_sub(g, x, y), square = loss_dot_rows(g, apart, apart), zero = ty_b_full_like(g, square, 0);
    ty_val any = ty_b_lt(g, zero, square);
    ty_val root = ty_b_unary(g, TY_OP_SQRT, ty_b_select(g, any, square, ty_b_full_like(g, square, 1)));
    ty_val distance = ty_b_select(g, any, root, zero);
    ty_val lack = ty_b_relu(g, ty_b_add_s(g, ty_b_neg(g, distance), t->margin));
    ty_val other = ty_b_mul(g, ty_b_sub(g, ty_b_full_like(g, z, 1), z), ty_b_square(g, lack));
    return ty_b_mul_s(g, ty_b_add(g, ty_b_mul(g, z, square), other), 0.5);
}

/* ---- terms of their own kind
 * ------------------------------------------------------------------------------------------ */

static ty_loss_sums loss_ctc(ty_graph *g, const ty_loss_term *t, const ty_loss_operands *in)
{
    ty_val term = ty_ctc_terms(g, t, in->output, in->target, in->input_lengths, in->target_lengths);
    if (term == TY_NONE)
        return (ty_loss_sums){TY_NONE, TY_NONE};
    ty_val weight = ty_b_full_like(g, term, 1);
    if (in->sample_weight != TY_NONE)
        weight = ty_loss_match(g, ty_b_cast(g, in->sample_weight, TY_F32), term, "sample weights");
    return (ty_loss_sums){ty_loss_sum(g, ty_b_mul(g, term, weight), in->rows), ty_loss_sum(g, weight, in->rows)};
}

static ty_loss_sums loss_penalty(ty_graph *g, const ty_loss_operands *in, bool square)
{
    ty_val sum = ty_b_scalar(g, TY_F32, 0);
    for (int i = 0; i < in->n_tensors; i++) {
        ty_val w = ty_b_cast(g, in->tensors[i], TY_F32);
        sum = ty_b_add(g, sum, ty_loss_sum(g, square ? ty_b_square(g, w) : loss_abs(g, w), TY_NONE));
    }
    return (ty_loss_sums){sum, ty_b_scalar(g, TY_F32, 1)};
}

static ty_loss_sums loss_l1(ty_graph *g, const ty_loss_term *t, const ty_loss_operands *in)
{
    (void)t;
    return loss_penalty(g, in, false);
}

static ty_loss_sums loss_l2(ty_graph *g, const ty_loss_term *t, const ty_loss_operands *in)
{
    (void)t;
    return loss_penalty(g, in, true);
}

/* ---- the table
 * -------------------------------------------------------------------------------------------------------- */

static const loss_kind loss_kinds[TY_N_LOSS_KINDS] = {
    [TY_LOSS_MSE] = {"mse", true, .element = loss_mse},
    [TY_LOSS_MAE] = {"mae", true, .element = loss_mae},
    [TY_LOSS_HUBER] = {"huber", true, .element = loss_huber},
    [TY_LOSS_BCE_LOGITS] = {"binary_cross_entropy_with_logits", true, .element = loss_bce},
    [TY_LOSS_SOFTMAX_CROSS_ENTROPY] = {"softmax_cross_entropy", true, .rows = loss_xent},
    [TY_LOSS_NLL] = {"nll", true, .rows = loss_nll},
    [TY_LOSS_KL_DIV] = {"kl_div", true, .per_row = true, .element = loss_kl},
    [TY_LOSS_MEAN] = {"mean", false, .element = loss_mean},
    [TY_LOSS_HINGE] = {"hinge", true, .element = loss_hinge},
    [TY_LOSS_MULTI_MARGIN] = {"multi_margin", true, .rows = loss_multi_margin},
    [TY_LOSS_COSINE] = {"cosine", true, .vectors = loss_cosine},
    [TY_LOSS_COSINE_EMBEDDING] = {"cosine_embedding", true, true, .vectors = loss_cosine_embedding},
    [TY_LOSS_CONTRASTIVE] = {"contrastive", true, true, .vectors = loss_contrastive},
    [TY_LOSS_CTC] = {"ctc", true, .whole = loss_ctc},
    [TY_LOSS_L1] = {"l1", false, .whole = loss_l1},
    [TY_LOSS_L2] = {"l2", false, .whole = loss_l2},
    [TY_LOSS_KERAS_SPARSE_CROSSENTROPY] = {"keras_sparse_crossentropy", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_CATEGORICAL_CROSSENTROPY] = {"keras_categorical_crossentropy", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_CATEGORICAL_FOCAL] = {"keras_categorical_focal", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_BINARY_CROSSENTROPY] = {"keras_binary_crossentropy", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_BINARY_FOCAL] = {"keras_binary_focal", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_MSE] = {"keras_mse", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_MAE] = {"keras_mae", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_MAPE] = {"keras_mape", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_MSLE] = {"keras_msle", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_HUBER] = {"keras_huber", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_LOG_COSH] = {"keras_log_cosh", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_KL_DIVERGENCE] = {"keras_kl_divergence", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_POISSON] = {"keras_poisson", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_COSINE_SIMILARITY] = {"keras_cosine_similarity", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_HINGE] = {"keras_hinge", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_SQUARED_HINGE] = {"keras_squared_hinge", true, .whole = ty_loss_keras},
    [TY_LOSS_KERAS_CATEGORICAL_HINGE] = {"keras_categorical_hinge", true, .whole = ty_loss_keras},
};

const char *ty_loss_text(ty_loss_kind kind)
{
    return kind < TY_N_LOSS_KINDS ? loss_kinds[kind].text : "?";
}

bool ty_loss_needs_target(ty_loss_kind kind)
{
    return kind < TY_N_LOSS_KINDS && loss_kinds[kind].needs_target;
}

bool ty_loss_is_pair(ty_loss_kind kind)
{
    return kind < TY_N_LOSS_KINDS && loss_kinds[kind].is_pair;
}

bool ty_loss_is_penalty(ty_loss_kind kind)
{
    return kind == TY_LOSS_L1 || kind == TY_LOSS_L2;
}

/* ---- shapes
 * ------------------------------------------------------------------------------------------------------------ */

/* Dims that are not 1, in order; how many. */
static int loss_real_dims(const ty_type *t, int64_t *dim)
{
    int n = 0;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] != 1)
            dim[n++] = t->dim[i];
    return n;
}

ty_val ty_loss_match(ty_graph *g, ty_val target, ty_val x, const char *what)
{
    if (target == TY_NONE || x == TY_NONE)
        return TY_NONE;
    const ty_type *t = ty_graph_type(g, target), *to = ty_graph_type(g, x);
    int64_t a[TY_MAX_RANK], b[TY_MAX_RANK];
    int n = loss_real_dims(t, a);
    if (n != loss_real_dims(to, b) || memcmp(a, b, sizeof *a * (size_t)n) != 0) {
        char found[160], expected[160];
        return ty_graph_fail(g, TY_E_SHAPE, "%s: expected the shape of the output, %s, found %s", what,
                             ty_type_text(to, expected, sizeof expected), ty_type_text(t, found, sizeof found));
    }
    ty_type type = *to;
    return ty_b_reshape(g, target, type.rank, type.dim);
}

/* A mask of x's first axes in x's shape. */
static ty_val loss_stretch_mask(ty_graph *g, ty_val mask, ty_val x)
{
    ty_type m = *ty_graph_type(g, mask), t = *ty_graph_type(g, x);
    int64_t dim[TY_MAX_RANK] = {0};
    bool fits = m.rank <= t.rank;
    for (int i = 0; i < t.rank; i++) {
        dim[i] = i < m.rank ? m.dim[i] : 1;
        fits = fits && (i >= m.rank || m.dim[i] == t.dim[i]);
    }
    char text[160], found[160];
    if (!fits)
        return ty_graph_fail(g, TY_E_SHAPE, "the mask of an output is %s, but what it masks %s",
                             ty_type_text(&m, found, sizeof found), ty_type_text(&t, text, sizeof text));
    return ty_b_broadcast(g, ty_b_reshape(g, mask, t.rank, dim), t.rank, t.dim);
}

ty_val ty_loss_stretch_rows(ty_graph *g, ty_val rows, ty_val x)
{
    if (rows == TY_NONE || x == TY_NONE)
        return TY_NONE;
    if (ty_b_rank(g, rows) > 1)
        return loss_stretch_mask(g, rows, x);
    ty_type t = *ty_graph_type(g, x);
    int64_t batch = ty_b_dim(g, rows, 0), dim[TY_MAX_RANK] = {0};
    if (t.rank == 0 || t.dim[0] % batch != 0) {
        char text[160];
        return ty_graph_fail(g, TY_E_SHAPE,
                             "an output of shape %s has no rows that can be left out: expected a first dim of %" PRId64
                             " (the batch) or a multiple of it",
                             ty_type_text(&t, text, sizeof text), batch);
    }
    int64_t repeat = t.dim[0] / batch;
    ty_val tall = ty_b_broadcast(g, ty_b_unsqueeze(g, rows, 1), 2, (int64_t[]){batch, repeat});
    for (int i = 0; i < t.rank; i++)
        dim[i] = i == 0 ? t.dim[0] : 1;
    return ty_b_broadcast(g, ty_b_reshape(g, tall, t.rank, dim), t.rank, t.dim);
}

static int loss_class_axis(ty_graph *g, ty_val x, int class_axis)
{
    int rank = ty_b_rank(g, x), axis = class_axis < 0 ? class_axis + rank : class_axis;
    if (axis >= 0 && axis < rank)
        return axis;
    ty_graph_fail(g, TY_E_SHAPE, "class_axis: expected %d to %d, found %d", -rank, rank - 1, class_axis);
    return -1;
}

ty_val ty_loss_class_rows(ty_graph *g, ty_val x, int class_axis)
{
    if (x == TY_NONE)
        return TY_NONE;
    int rank = ty_b_rank(g, x), axis = loss_class_axis(g, x, class_axis);
    if (axis < 0)
        return TY_NONE;
    int64_t perm[TY_MAX_RANK] = {0}, classes = ty_b_dim(g, x, axis);
    for (int i = 0; i < rank; i++)
        perm[i] = i == rank - 1 ? axis : i < axis ? i : i + 1;
    ty_val last = axis == rank - 1 ? x : ty_b_transpose(g, x, perm);
    int64_t elems = ty_type_elems(ty_graph_type(g, x));
    return ty_b_reshape(g, last, 2, (int64_t[]){classes ? elems / classes : 0, classes});
}

/* x's type without the class axis. */
static ty_type loss_label_type(ty_graph *g, ty_val x, int axis)
{
    const ty_type *t = ty_graph_type(g, x);
    ty_type out = {.dtype = TY_I64, .rank = (uint8_t)(t->rank - 1)};
    for (int i = 0; i < out.rank; i++)
        out.dim[i] = t->dim[i < axis ? i : i + 1];
    return out;
}

ty_val ty_loss_labels(ty_graph *g, ty_val target, ty_val x, int class_axis)
{
    if (target == TY_NONE || x == TY_NONE)
        return TY_NONE;
    int axis = loss_class_axis(g, x, class_axis);
    if (axis < 0)
        return TY_NONE;
    ty_type want = loss_label_type(g, x, axis), have = *ty_graph_type(g, target);
    int64_t a[TY_MAX_RANK], b[TY_MAX_RANK];
    int n = loss_real_dims(&have, a);
    char found[160], expected[160];
    if (ty_dtype_is_float((ty_dtype)have.dtype) || have.dtype == TY_BOOL)
        return ty_graph_fail(g, TY_E_TYPE, "target: expected class numbers (an integer type), found %s",
                             ty_type_text(&have, found, sizeof found));
    if (n != loss_real_dims(&want, b) || memcmp(a, b, sizeof *a * (size_t)n) != 0)
        return ty_graph_fail(g, TY_E_SHAPE,
                             "target: expected %s, one class number for each row of the output, found %s%s",
                             ty_type_text(&want, expected, sizeof expected), ty_type_text(&have, found, sizeof found),
                             n > 0 && n == loss_real_dims(ty_graph_type(g, x), b) && b[n - 1] == a[n - 1]
                                 ? "; one-hot rows need dense_labels: true"
                                 : "");
    return ty_b_flatten(g, ty_b_cast(g, target, TY_I64));
}

ty_val ty_loss_class_mask(ty_graph *g, ty_val rows, ty_val x, int class_axis)
{
    if (rows == TY_NONE || x == TY_NONE)
        return TY_NONE;
    int axis = loss_class_axis(g, x, class_axis);
    if (axis < 0)
        return TY_NONE;
    if (axis == 0)
        return ty_graph_fail(g, TY_E_SHAPE, "class_axis: axis 0 is the batch");
    ty_type t = loss_label_type(g, x, axis);
    return ty_b_flatten(g, ty_loss_stretch_rows(g, rows, ty_b_full(g, TY_I64, t.rank, t.dim, 0)));
}

ty_val ty_loss_sum(ty_graph *g, ty_val x, ty_val keep)
{
    if (keep != TY_NONE)
        x = ty_b_select(g, keep, x, ty_b_full_like(g, x, 0));
    return ty_b_sum(g, x, ty_b_all_axes(g, x), false);
}

/* ---- frames
 * ------------------------------------------------------------------------------------------------------------ */

/* Weights in the shape of the terms: given for each, or for each row. */
static ty_val loss_weights_like(ty_graph *g, ty_val weight, ty_val terms)
{
    weight = ty_b_cast(g, weight, TY_F32);
    if (weight == TY_NONE || terms == TY_NONE)
        return TY_NONE;
    const ty_type *w = ty_graph_type(g, weight), *t = ty_graph_type(g, terms);
    if (ty_type_elems(w) == t->dim[0] && t->rank > 1 && ty_type_elems(t) != t->dim[0]) {
        int64_t dim[TY_MAX_RANK] = {0};
        ty_type type = *t;
        for (int i = 0; i < type.rank; i++)
            dim[i] = i == 0 ? type.dim[0] : 1;
        return ty_b_broadcast(g, ty_b_reshape(g, weight, type.rank, dim), type.rank, type.dim);
    }
    return ty_loss_match(g, weight, terms, "sample weights");
}

static ty_val loss_count_elems(ty_graph *g, ty_val x, ty_val keep)
{
    if (keep == TY_NONE)
        return ty_b_scalar(g, TY_F32, (double)ty_type_elems(ty_graph_type(g, x)));
    return ty_loss_sum(g, ty_b_cast(g, keep, TY_F32), TY_NONE);
}

/* One weight for each row of the batch: kl_div. Their sum over the rows that count is the divisor. */
static ty_loss_sums loss_weighted_rows(ty_graph *g, const ty_loss_operands *in, ty_val terms)
{
    ty_type t = *ty_graph_type(g, terms), w = *ty_graph_type(g, in->sample_weight);
    int64_t batch = t.rank ? t.dim[0] : 1, dim[TY_MAX_RANK] = {0};
    char text[160];
    if (ty_type_elems(&w) != batch) {
        ty_graph_fail(g, TY_E_SHAPE, "sample weights: expected one for each of the %" PRId64 " rows, found %s", batch,
                      ty_type_text(&w, text, sizeof text));
        return (ty_loss_sums){TY_NONE, TY_NONE};
    }
    for (int i = 0; i < t.rank; i++)
        dim[i] = i == 0 ? batch : 1;
    ty_val flat = ty_b_flatten(g, ty_b_cast(g, in->sample_weight, TY_F32));
    ty_val wide = ty_b_broadcast(g, ty_b_reshape(g, flat, t.rank, dim), t.rank, t.dim);
    ty_val keep = in->rows == TY_NONE ? TY_NONE : ty_loss_stretch_rows(g, in->rows, terms);
    return (ty_loss_sums){ty_loss_sum(g, ty_b_mul(g, wide, terms), keep), ty_loss_sum(g, flat, in->rows)};
}

/* Rows of the batch that count: the divisor of kl_div. */
static ty_val loss_count_rows(ty_graph *g, ty_val x, ty_val rows)
{
    if (rows != TY_NONE)
        return ty_loss_sum(g, ty_b_cast(g, rows, TY_F32), TY_NONE);
    return ty_b_scalar(g, TY_F32, ty_b_rank(g, x) ? (double)ty_b_dim(g, x, 0) : 1);
}

static ty_loss_sums loss_elements(ty_graph *g, const loss_kind *kind, const ty_loss_term *t, const ty_loss_operands *in)
{
    ty_val x = ty_b_cast(g, in->output, TY_F32), y = TY_NONE;
    if (kind->needs_target)
        y = ty_loss_match(g, ty_b_cast(g, in->target, TY_F32), x, "target");
    ty_val l = kind->element(g, t, x, y);
    if (ty_graph_failed(g, NULL))
        return (ty_loss_sums){TY_NONE, TY_NONE};
    if (kind->per_row && in->sample_weight != TY_NONE)
        return loss_weighted_rows(g, in, l);
    bool rowless = in->rows != TY_NONE && ty_b_rank(g, x) == 0;
    ty_val keep = rowless ? TY_NONE : ty_loss_stretch_rows(g, in->rows, l);
    if (in->sample_weight != TY_NONE) {
        ty_val w = loss_weights_like(g, in->sample_weight, l);
        return (ty_loss_sums){ty_loss_sum(g, ty_b_mul(g, w, l), keep), ty_loss_sum(g, w, keep)};
    }
    ty_val count = kind->per_row ? loss_count_rows(g, x, in->rows) : loss_count_elems(g, l, keep);
    return (ty_loss_sums){ty_loss_sum(g, l, keep), count};
}

static ty_loss_sums loss_classes(ty_graph *g, const loss_kind *kind, const ty_loss_term *t, const ty_loss_operands *in)
{
    ty_val x = ty_b_cast(g, in->output, TY_F32);
    ty_val labels = ty_loss_labels(g, in->target, x, t->class_axis);
    ty_val rows = ty_loss_class_rows(g, x, t->class_axis);
    if (labels == TY_NONE || rows == TY_NONE)
        return (ty_loss_sums){TY_NONE, TY_NONE};
    loss_rows r;
    if (t->kind != TY_LOSS_NLL || in->is_kept || !loss_join(g, t, rows, labels, &r))
        r = kind->rows(g, t, rows, labels);
    if (in->sample_weight != TY_NONE) {
        ty_val shaped = ty_loss_match(g, in->sample_weight, in->target, "sample weights");
        ty_val w = ty_b_flatten(g, ty_b_cast(g, shaped, TY_F32));
        r.weight = ty_b_mul(g, r.weight, w);
        r.spread = r.spread == TY_NONE ? TY_NONE : ty_b_mul(g, r.spread, w);
    }
    ty_val keep = ty_loss_class_mask(g, in->rows, x, t->class_axis), whole = ty_b_mul(g, r.term, r.weight);
    if (r.spread != TY_NONE)
        whole = ty_b_add(g, whole, r.spread);
    return (ty_loss_sums){ty_loss_sum(g, whole, keep), ty_loss_sum(g, r.weight, keep)};
}

/* One number for each row of ty_loss_class_rows(x), flat f32[R]. */
static ty_val loss_row_numbers(ty_graph *g, ty_val v, ty_val x, int class_axis, const char *what)
{
    int axis = loss_class_axis(g, x, class_axis);
    if (axis < 0 || v == TY_NONE)
        return TY_NONE;
    ty_type want = loss_label_type(g, x, axis);
    ty_val like = ty_b_full(g, TY_F32, want.rank, want.dim, 0);
    return ty_b_flatten(g, ty_loss_match(g, ty_b_cast(g, v, TY_F32), like, what));
}

static ty_loss_sums loss_vectors(ty_graph *g, const loss_kind *kind, const ty_loss_term *t, const ty_loss_operands *in)
{
    ty_val x = ty_b_cast(g, in->output, TY_F32), y = kind->is_pair ? in->other : in->target, z = TY_NONE;
    if (kind->is_pair)
        z = loss_row_numbers(g, in->target, x, t->class_axis, "target");
    y = ty_loss_match(g, ty_b_cast(g, y, TY_F32), x, kind->is_pair ? "other" : "target");
    y = ty_loss_class_rows(g, y, t->class_axis);
    ty_val rows = ty_loss_class_rows(g, x, t->class_axis);
    if (ty_graph_failed(g, NULL))
        return (ty_loss_sums){TY_NONE, TY_NONE};
    ty_val term = kind->rows ? loss_dense(g, t, rows, y, z) : kind->vectors(g, t, rows, y, z), weight = TY_NONE;
    if (in->sample_weight != TY_NONE)
        weight = loss_row_numbers(g, in->sample_weight, x, t->class_axis, "sample weights");
    else if (term != TY_NONE)
        weight = ty_b_full_like(g, term, 1);
    ty_val keep = ty_loss_class_mask(g, in->rows, x, t->class_axis);
    return (ty_loss_sums){ty_loss_sum(g, ty_b_mul(g, term, weight), keep), ty_loss_sum(g, weight, keep)};
}

static ty_loss_sums loss_frame(ty_graph *g, const loss_kind *kind, const ty_loss_term *t, const ty_loss_operands *in)
{
    if (kind->whole)
        return kind->whole(g, t, in);
    if (kind->vectors || t->dense_labels)
        return loss_vectors(g, kind, t, in);
    return kind->rows ? loss_classes(g, kind, t, in) : loss_elements(g, kind, t, in);
}

int ty_loss_term_build(ty_graph *g, const ty_loss_term *term, const ty_loss_operands *in, ty_loss_sums *out,
                       ty_error *err)
{
    if ((unsigned)term->kind >= TY_N_LOSS_KINDS)
        return ty_error_set(err, TY_E_INTERNAL, "loss: no kind %d", (int)term->kind);
    const loss_kind *kind = &loss_kinds[term->kind];
    if (kind->needs_target && in->target == TY_NONE && !ty_graph_failed(g, NULL))
        ty_graph_fail(g, TY_E_CONFIG, "expected a target, found none");
    if (kind->is_pair && in->other == TY_NONE && !ty_graph_failed(g, NULL))
        ty_graph_fail(g, TY_E_CONFIG, "expected a second output, found none");
    if (term->dense_labels && term->kind != TY_LOSS_SOFTMAX_CROSS_ENTROPY)
        ty_graph_fail(g, TY_E_CONFIG, "dense labels belong to softmax_cross_entropy");
    *out = loss_frame(g, kind, term, in);
    if (!ty_graph_failed(g, err))
        return 0;
    if (!term->output)
        return ty_error_wrap(err, "loss %s", kind->text);
    return ty_error_wrap(err, "loss %s on output \"%s\"", kind->text, term->output);
}
