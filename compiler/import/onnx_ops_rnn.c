/* onnx_ops_rnn.c - RNN, GRU and LSTM.
 *
 * A direction with the usual activations is the composite `rnn`, over the weights as they lay before the exporter put
 * the gates into ONNX's order. What `rnn` does not know (other activations, clip, peepholes, lengths) is unrolled over
 * time: the input's part of all gates of all steps is one product; each step adds the state's part and applies the
 * gates.
 * Letters: T steps, B batch, I input size, H hidden size, D directions (1 or 2), G gates (RNN 1, GRU 3, LSTM 4).
 * Formulas and gate order (iofc, zrh): the ONNX text of the three operators.
 */
#include "compiler/import/onnx_import.h"
#include "compiler/ops/recurrence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_STEPS = 4096, MAX_ACTS = 6 }; /* MAX_STEPS: that are unrolled */

typedef enum rnn_kind { KIND_RNN, KIND_GRU, KIND_LSTM } rnn_kind;

typedef struct rnn {
    onnx_ctx *c;
    rnn_kind kind;
    int gates, n_dirs, n_acts; /* n_acts: activations of a direction */
    int64_t steps, batch, in, hidden;
    bool reverse_only, batch_first, linear_before_reset, input_forget;
    double clip; /* 0: none */
    const char *act[MAX_ACTS];
    double alpha[MAX_ACTS], beta[MAX_ACTS];
    ty_val x;   /* [T, B, I] */
    ty_val len; /* i64 [B, 1], or TY_NONE: all steps count */
} rnn;

/* One direction while it runs. */
typedef struct rnn_dir {
    int first_act;
    ty_val w, r; /* [G H, I], [G H, H] */
    ty_val
        bias_x; /* [G H] or TY_NONE: both biases, but GRU with linear_before_reset keeps the new gate's R bias apart */
    ty_val bias_new; /* [H] or TY_NONE */
    ty_val peephole; /* [3 H] or TY_NONE */
    ty_val h, state; /* [B, H]; state: the LSTM's c */
} rnn_dir;

/* ---- reading ------------------------------------------------------------------------------------------------------
 */

static void read_activations(rnn *r)
{
    static const char *const usual[][3] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    static const int count[] = {1, 2, 3};
    onnx_ctx *c = r->c;
    const onnx_attr *a = onnx_find_attr(c, "activations");
    const double *alpha = NULL, *beta = NULL;
    int64_t n_alpha = 0, n_beta = 0;
    r->n_acts = count[r->kind];
    int total = r->n_acts * r->n_dirs;
    if (a && (int)a->strings.n != total) {
        onnx_fail_attr(c, "activations", "must have %d entries", total);
        return;
    }
    onnx_attr_floats(c, "activation_alpha", &alpha, &n_alpha);
    onnx_attr_floats(c, "activation_beta", &beta, &n_beta);
    for (int i = 0; i < total; i++) {
        r->act[i] = usual[r->kind][i % r->n_acts];
        if (a) {
            const ty_bytes *text = ONNX_AT(a->strings, ty_bytes, i);
            char *copy = onnx_alloc(c, text->n + 1, 1);
            if (text->n)
                memcpy(copy, text->data, text->n);
            r->act[i] = copy;
        }
        r->alpha[i] = i < n_alpha ? alpha[i] : NAN;
        r->beta[i] = i < n_beta ? beta[i] : NAN;
    }
}

static bool expect_dims(rnn *r, int input, int rank, const int64_t *dim)
{
    onnx_ctx *c = r->c;
    if (!onnx_has(c, input))
        return true;
    const ty_type *t = onnx_type_of(c, onnx_in(c, input));
    bool same = t->rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = t->dim[i] == dim[i];
    char want[64] = "";
    for (int i = 0; i < rank; i++)
        snprintf(want + strlen(want), sizeof want - strlen(want), "%s%lld", i ? ", " : "", (long long)dim[i]);
    if (!same)
        onnx_fail_input(c, input, TY_E_SHAPE, "must be [%s]", want);
    return same;
}

static bool check_shapes(rnn *r)
{
    int64_t gh = r->gates * r->hidden, d = r->n_dirs;
    int state = r->batch_first ? 1 : 0;
    int64_t init[] = {state ? r->batch : d, state ? d : r->batch, r->hidden};
    return expect_dims(r, 1, 3, (int64_t[]){d, gh, r->in}) && expect_dims(r, 2, 3, (int64_t[]){d, gh, r->hidden}) &&
           expect_dims(r, 3, 2, (int64_t[]){d, 2 * gh}) && expect_dims(r, 4, 1, &r->batch) &&
           expect_dims(r, 5, 3, init) &&
           (r->kind != KIND_LSTM ||
            (expect_dims(r, 6, 3, init) && expect_dims(r, 7, 2, (int64_t[]){d, 3 * r->hidden})));
}

/* Lengths matter unless they are known to be T. */
static void read_lengths(rnn *r)
{
    onnx_ctx *c = r->c;
    const int64_t *v;
    int64_t n = 0, full = 0, dim[] = {r->batch, 1};
    r->len = TY_NONE;
    if (!onnx_has(c, 4))
        return;
    if (onnx_is_const(c, 4) && onnx_const_ints(c, 4, &v, &n))
        while (full < n && v[full] == r->steps)
            full++;
    if (n == 0 || full < n)
        r->len = ty_b_reshape(c->g, ty_b_cast(c->g, onnx_in(c, 4), TY_I64), 2, dim);
}

static bool rnn_read(onnx_ctx *c, rnn *r)
{
    static const char *const directions[] = {"forward", "reverse", "bidirectional", NULL};
    static const int gates[] = {1, 3, 4};
    static const int64_t swap[] = {1, 0, 2};
    *r = (rnn){.c = c, .kind = (rnn_kind)c->row->arg};
    r->gates = gates[r->kind];
    int direction = onnx_attr_choice(c, "direction", "forward", directions);
    r->n_dirs = direction == 2 ? 2 : 1;
    r->reverse_only = direction == 1;
    r->batch_first = onnx_attr_int(c, "layout", 0);
    r->linear_before_reset = onnx_attr_int(c, "linear_before_reset", 0);
    r->input_forget = onnx_attr_int(c, "input_forget", 0);
    r->clip = onnx_attr_float(c, "clip", 0);
    r->x = onnx_in(c, 0);
    if (onnx_rank(c, r->x) != 3 || onnx_rank(c, onnx_in(c, 2)) != 3) {
        onnx_fail(c, TY_E_SHAPE, "%s: X and R must have 3 dimensions", c->node->op_type);
        return false;
    }
    if (r->batch_first)
        r->x = ty_b_transpose(c->g, r->x, swap);
    r->steps = onnx_dim(c, r->x, 0);
    r->batch = onnx_dim(c, r->x, 1);
    r->in = onnx_dim(c, r->x, 2);
    r->hidden = onnx_dim(c, onnx_in(c, 2), 2);
    if (r->steps < 1 || r->hidden < 1) {
        onnx_fail(c, TY_E_LIMIT, "%s: %lld steps of %lld units; at least one of each is needed", c->node->op_type,
                  (long long)r->steps, (long long)r->hidden);
        return false;
    }
    if (onnx_attr_int(c, "hidden_size", r->hidden) != r->hidden)
        onnx_fail_attr(c, "hidden_size", "is not the %lld of the weights", (long long)r->hidden);
    read_activations(r);
    if (c->failed || !check_shapes(r))
        return false;
    read_lengths(r);
    return true;
}

/* ---- parts of weights -----------------------------------------------------------------------------------------------
 */

/* Row d of a [D, ...] input, without the axis. */
static ty_val direction_of(rnn *r, int input, int d)
{
    ty_val v = onnx_in(r->c, input);
    return v == TY_NONE ? v : ty_b_squeeze(r->c->g, ty_b_slice_axis(r->c->g, v, 0, d, d + 1), 0);
}

static ty_val initial(rnn *r, int input, int d)
{
    ty_val v = onnx_in(r->c, input);
    int axis = r->batch_first ? 1 : 0;
    int64_t dim[] = {r->batch, r->hidden};
    if (v == TY_NONE)
        return ty_b_full(r->c->g, onnx_dtype_of(r->c, r->x), 2, dim, 0);
    return ty_b_squeeze(r->c->g, ty_b_slice_axis(r->c->g, v, axis, d, d + 1), axis);
}

static ty_val gate(rnn *r, ty_val all, int axis, int k)
{
    return ty_b_slice_axis(r->c->g, all, axis, k * r->hidden, (k + 1) * r->hidden);
}

static void read_bias(rnn *r, rnn_dir *d, int number)
{
    ty_graph *g = r->c->g;
    int64_t gh = r->gates * r->hidden;
    ty_val both = direction_of(r, 3, number);
    d->bias_x = d->bias_new = TY_NONE;
    if (both == TY_NONE)
        return;
    ty_val wb = ty_b_slice_axis(g, both, 0, 0, gh), rb = ty_b_slice_axis(g, both, 0, gh, 2 * gh);
    if (r->kind == KIND_GRU && r->linear_before_reset) {
        d->bias_new = gate(r, rb, 0, 2);
        ty_val zero = ty_b_full(g, onnx_dtype_of(r->c, rb), 1, &r->hidden, 0);
        rb = ty_b_concat(g, (ty_val[]){ty_b_slice_axis(g, rb, 0, 0, 2 * r->hidden), zero}, 2, 0);
    }
    d->bias_x = ty_b_add(g, wb, rb);
}

static bool is_backward(const rnn *r, int number)
{
    return number == 1 || r->reverse_only;
}

/* ---- the usual kinds: one composite --------------------------------------------------------------------------------
 */

/* The activations are those of `rnn`, and nothing is asked for that it does not know. */
static bool is_usual(const rnn *r, const rnn_dir *d)
{
    static const char *const usual[][3] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    ty_dtype dtype = onnx_dtype_of(r->c, r->x);
    bool same = true, relu = r->kind == KIND_RNN && strcmp(r->act[d->first_act], "Relu") == 0;
    for (int i = 0; i < r->n_acts; i++)
        same &= strcmp(r->act[d->first_act + i], usual[r->kind][i]) == 0;
    return (same || relu) && (dtype == TY_F32 || dtype == TY_F64) && r->len == TY_NONE && !(r->clip > 0) &&
           !r->input_forget && !onnx_has(r->c, 7);
}

/* part is `slice` of a tensor, whole blocks of H rows: that tensor. from[0 .. *n) receives which blocks. */
static ty_val blocks_of(const rnn *r, ty_val part, int64_t *from, int64_t *n)
{
    const ty_graph *g = r->c->g;
    if (ty_graph_op(g, ty_val_node(part)) != TY_OP_SLICE)
        return TY_NONE;
    const ty_attr *slice = ty_graph_attr(g, ty_val_node(part));
    *n = ty_b_dim(g, part, 0) / r->hidden;
    if (slice->step[0] != 1 || slice->lo[0] % r->hidden != 0 || ty_b_dim(g, part, 0) % r->hidden != 0)
        return TY_NONE;
    for (int64_t b = 0; b < *n; b++)
        from[b] = slice->lo[0] / r->hidden + b;
    return ty_graph_in(g, ty_val_node(part), 0);
}

/* v puts the G blocks of H rows of another tensor into another order: that tensor, and where block b comes from. */
static ty_val reordered_from(const rnn *r, ty_val v, int64_t *from)
{
    const ty_graph *g = r->c->g;
    uint32_t node = ty_val_node(v), seen = 0;
    ty_val source = TY_NONE;
    if (ty_graph_op(g, node) != TY_OP_CONCAT || ty_graph_attr(g, node)->axis != 0)
        return TY_NONE;
    for (int64_t i = 0, done = 0, n = 0; i < ty_graph_node(g, node)->n_in; i++, done += n) {
        ty_val whole = blocks_of(r, ty_graph_in(g, node, (int)i), from + done, &n);
        if (whole == TY_NONE || (source != TY_NONE && whole != source))
            return TY_NONE;
        source = whole;
    }
    if (source == TY_NONE || !ty_type_same(ty_graph_type(g, source), ty_graph_type(g, v)))
        return TY_NONE;
    for (int b = 0; b < r->gates; b++)
        seen |= 1u << from[b];
    return seen == (1u << r->gates) - 1 ? source : TY_NONE;
}

enum { WHOLE_W, WHOLE_R, WHOLE_BIAS, WHOLE_RBIAS, WHOLE_N };

/* Takes the exporter's reordering back, if all weights have the same: their gradients then need none either. block[k],
 * the place of gate k, goes from ONNX's order to the order found. */
static void undo_reordering(const rnn *r, ty_val *weight, int64_t *block)
{
    ty_val source[WHOLE_N] = {TY_NONE, TY_NONE, TY_NONE, TY_NONE};
    int64_t from[TY_RNN_MAX_GATES], first[TY_RNN_MAX_GATES];
    for (int i = 0; i < WHOLE_N; i++) {
        if (weight[i] == TY_NONE)
            continue;
        source[i] = reordered_from(r, weight[i], i == 0 ? first : from);
        if (source[i] == TY_NONE || (i > 0 && memcmp(from, first, sizeof *from * (size_t)r->gates) != 0))
            return;
    }
    memcpy(weight, source, sizeof source);
    for (int k = 0; k < r->gates; k++)
        block[k] = first[block[k]];
}

/* The biases of x and of the state are one vector, but for the new gate of a GRU with linear_before_reset. */
static ty_val whole_bias(const rnn *r, const ty_val *weight, int64_t new_block, bool apart)
{
    ty_graph *g = r->c->g;
    int64_t gh = r->gates * r->hidden, dim = gh + (apart ? r->hidden : 0), lo = new_block * r->hidden;
    ty_val of_x = weight[WHOLE_BIAS], of_h = weight[WHOLE_RBIAS], part[3];
    int n = 0;
    if (of_x == TY_NONE)
        return ty_b_full(g, onnx_dtype_of(r->c, r->x), 1, &dim, 0);
    if (!apart)
        return ty_b_add(g, of_x, of_h);
    ty_val own = ty_b_slice_axis(g, of_h, 0, lo, lo + r->hidden);
    if (lo > 0)
        part[n++] = ty_b_slice_axis(g, of_h, 0, 0, lo);
    part[n++] = ty_b_full(g, onnx_dtype_of(r->c, r->x), 1, &r->hidden, 0);
    if (lo + r->hidden < gh)
        part[n++] = ty_b_slice_axis(g, of_h, 0, lo + r->hidden, gh);
    ty_val sum = ty_b_add(g, of_x, ty_b_concat(g, part, n, 0));
    return ty_b_concat(g, (ty_val[]){sum, own}, 2, 0);
}

static void read_biases(rnn *r, int number, ty_val *weight)
{
    int64_t gh = r->gates * r->hidden;
    ty_val both = direction_of(r, 3, number);
    weight[WHOLE_BIAS] = both == TY_NONE ? TY_NONE : ty_b_slice_axis(r->c->g, both, 0, 0, gh);
    weight[WHOLE_RBIAS] = both == TY_NONE ? TY_NONE : ty_b_slice_axis(r->c->g, both, 0, gh, 2 * gh);
}

/* Direction `number` as one `rnn`; returns its outputs [T, B, H]. */
static ty_val whole_direction(rnn *r, rnn_dir *d, int number)
{
    static const int64_t onnx_block[][TY_RNN_MAX_GATES] = {
        {0},
        {[TY_RNN_Z] = 0, [TY_RNN_R] = 1, [TY_RNN_N] = 2},
        {[TY_RNN_I] = 0, [TY_RNN_O] = 1, [TY_RNN_F] = 2, [TY_RNN_G] = 3}};
    ty_graph *g = r->c->g;
    bool apart = r->kind == KIND_GRU && r->linear_before_reset;
    bool relu = r->kind == KIND_RNN && strcmp(r->act[d->first_act], "Relu") == 0;
    ty_attr attr = {.n = (uint32_t)r->gates,
                    .flags = (is_backward(r, number) ? TY_RNN_BACKWARD : 0) | (apart ? TY_RNN_RESET_AFTER : 0) |
                             (relu ? TY_RNN_RELU : 0)};
    ty_val weight[WHOLE_N] = {d->w, d->r};
    memcpy(attr.lo, onnx_block[r->kind], sizeof onnx_block[0]);
    read_biases(r, number, weight);
    if (ty_graph_failed(g, NULL))
        return TY_NONE;
    undo_reordering(r, weight, attr.lo);
    ty_val in[] = {r->x, weight[WHOLE_W], weight[WHOLE_R], whole_bias(r, weight, attr.lo[TY_RNN_N], apart),
                   d->h, d->state};
    ty_val y = ty_graph_emit(g, TY_OP_RNN, &attr, in, r->kind == KIND_LSTM ? 6 : 5);
    if (y == TY_NONE)
        return TY_NONE;
    int64_t last = is_backward(r, number) ? 0 : r->steps - 1;
    d->h = ty_b_squeeze(g, ty_b_slice_axis(g, y, 0, last, last + 1), 0);
    d->state = ty_val_make(ty_val_node(y), 1);
    return y;
}

/* ---- what is unrolled -----------------------------------------------------------------------------------------------
 */

static ty_val activate(rnn *r, const rnn_dir *d, int k, ty_val x)
{
    ty_graph *g = r->c->g;
    if (r->clip > 0) {
        ty_val lo = ty_b_full_like(g, x, -r->clip), hi = ty_b_full_like(g, x, r->clip);
        x = ty_b_select(g, ty_b_lt(g, x, lo), lo, x);
        x = ty_b_select(g, ty_b_lt(g, hi, x), hi, x);
    }
    int at = d->first_act + k;
    return onnx_activation(r->c, r->act[at], x, r->alpha[at], r->beta[at]);
}

/* ---- one step: xw [B, G H] is the input's part ----------------------------------------------------------------------
 */

static void step_rnn(rnn *r, rnn_dir *d, ty_val xw)
{
    ty_graph *g = r->c->g;
    d->h = activate(r, d, 0, ty_b_add(g, xw, ty_b_dot(g, d->h, d->r, false, true)));
}

static void step_gru(rnn *r, rnn_dir *d, ty_val xw)
{
    ty_graph *g = r->c->g;
    int64_t h2 = 2 * r->hidden;
    ty_val fresh, zr, hr = TY_NONE;
    if (r->linear_before_reset) {
        hr = ty_b_dot(g, d->h, d->r, false, true);
        zr = ty_b_slice_axis(g, hr, 1, 0, h2);
    } else
        zr = ty_b_dot(g, d->h, ty_b_slice_axis(g, d->r, 0, 0, h2), false, true);
    zr = activate(r, d, 0, ty_b_add(g, ty_b_slice_axis(g, xw, 1, 0, h2), zr));
    ty_val z = gate(r, zr, 1, 0), reset = gate(r, zr, 1, 1);
    if (r->linear_before_reset) {
        fresh = gate(r, hr, 1, 2);
        fresh = d->bias_new == TY_NONE ? fresh : ty_b_add(g, fresh, d->bias_new);
        fresh = ty_b_mul(g, reset, fresh);
    } else
        fresh = ty_b_dot(g, ty_b_mul(g, reset, d->h), gate(r, d->r, 0, 2), false, true);
    fresh = activate(r, d, 1, ty_b_add(g, gate(r, xw, 1, 2), fresh));
    ty_val keep = ty_b_sub(g, ty_b_full_like(g, z, 1), z);
    d->h = ty_b_add(g, ty_b_mul(g, keep, fresh), ty_b_mul(g, z, d->h));
}

/* Gates i, o, f, c; a peephole adds P . c to i and f from the old state, to o from the new one. */
static void step_lstm(rnn *r, rnn_dir *d, ty_val xw)
{
    ty_graph *g = r->c->g;
    ty_val sum = ty_b_add(g, xw, ty_b_dot(g, d->h, d->r, false, true)), part[4], p[3];
    for (int k = 0; k < 4; k++)
        part[k] = gate(r, sum, 1, k);
    for (int k = 0; k < 3 && d->peephole != TY_NONE; k++)
        p[k] = gate(r, d->peephole, 0, k);
    if (d->peephole != TY_NONE) {
        part[0] = ty_b_add(g, part[0], ty_b_mul(g, d->state, p[0]));
        part[2] = ty_b_add(g, part[2], ty_b_mul(g, d->state, p[2]));
    }
    ty_val i = activate(r, d, 0, part[0]);
    ty_val f = r->input_forget ? ty_b_sub(g, ty_b_full_like(g, i, 1), i) : activate(r, d, 0, part[2]);
    ty_val fresh = activate(r, d, 1, part[3]);
    d->state = ty_b_add(g, ty_b_mul(g, f, d->state), ty_b_mul(g, i, fresh));
    if (d->peephole != TY_NONE)
        part[1] = ty_b_add(g, part[1], ty_b_mul(g, d->state, p[1]));
    d->h = ty_b_mul(g, activate(r, d, 0, part[1]), activate(r, d, 2, d->state));
}

/* ---- all steps ----------------------------------------------------------------------------------------------------
 */

/* Past its length, a row keeps its state and gives zeros. */
static ty_val hold(rnn *r, rnn_dir *d, const rnn_dir *before, int64_t t)
{
    ty_graph *g = r->c->g;
    if (r->len == TY_NONE)
        return d->h;
    ty_val live = ty_b_lt(g, ty_b_scalar(g, TY_I64, (double)t), r->len);
    ty_val y = ty_b_select(g, live, d->h, ty_b_full_like(g, d->h, 0));
    d->h = ty_b_select(g, live, d->h, before->h);
    if (r->kind == KIND_LSTM)
        d->state = ty_b_select(g, live, d->state, before->state);
    return y;
}

/* Direction `number`, step by step; returns its outputs [T, B, H]. */
static ty_val unroll_direction(rnn *r, rnn_dir *d, int number)
{
    static void (*const step[])(rnn *, rnn_dir *, ty_val) = {step_rnn, step_gru, step_lstm};
    ty_graph *g = r->c->g;
    bool backward = is_backward(r, number);
    int64_t flat[] = {r->steps * r->batch, r->in}, gh = r->gates * r->hidden, row[] = {r->batch, gh};
    int64_t all[] = {r->steps, r->batch, r->hidden};
    if (r->steps > MAX_STEPS) {
        onnx_fail(r->c, TY_E_LIMIT,
                  "%s: %lld steps; at most %d are possible with clip, peepholes, lengths or these activations",
                  r->c->node->op_type, (long long)r->steps, MAX_STEPS);
        return TY_NONE;
    }
    ty_val *y = onnx_alloc(r->c, (size_t)r->steps, sizeof *y);
    read_bias(r, d, number);
    if (r->kind == KIND_LSTM)
        d->peephole = direction_of(r, 7, number);
    ty_val xw = ty_b_dot(g, ty_b_reshape(g, r->x, 2, flat), d->w, false, true);
    xw = d->bias_x == TY_NONE ? xw : ty_b_add(g, xw, d->bias_x);
    for (int64_t k = 0; k < r->steps && !r->c->failed && !ty_graph_failed(g, NULL); k++) {
        int64_t t = backward ? r->steps - 1 - k : k;
        rnn_dir before = *d;
        step[r->kind](r, d, ty_b_reshape(g, ty_b_slice_axis(g, xw, 0, t * r->batch, (t + 1) * r->batch), 2, row));
        y[t] = hold(r, d, &before, t);
    }
    if (r->c->failed || ty_graph_failed(g, NULL))
        return TY_NONE;
    return ty_b_reshape(g, ty_b_concat(g, y, (int)r->steps, 0), 3, all);
}

static ty_val run_direction(rnn *r, rnn_dir *d, int number)
{
    *d = (rnn_dir){.first_act = number * r->n_acts,
                   .w = direction_of(r, 1, number),
                   .r = direction_of(r, 2, number),
                   .h = initial(r, 5, number),
                   .state = r->kind == KIND_LSTM ? initial(r, 6, number) : TY_NONE,
                   .peephole = TY_NONE};
    return is_usual(r, d) ? whole_direction(r, d, number) : unroll_direction(r, d, number);
}

/* Final states of the directions: [D, B, H], or [B, D, H] with layout 1. */
static ty_val final_state(rnn *r, const ty_val *state)
{
    int axis = r->batch_first ? 1 : 0;
    ty_val each[2];
    for (int d = 0; d < r->n_dirs; d++)
        each[d] = ty_b_unsqueeze(r->c->g, state[d], axis);
    return ty_b_concat(r->c->g, each, r->n_dirs, axis);
}

/* Y: [T, D, B, H], or [B, T, D, H]. y[d] is [T, B, H]. */
static ty_val all_outputs(rnn *r, const ty_val *y)
{
    ty_graph *g = r->c->g;
    static const int64_t batch_first[] = {2, 0, 1, 3};
    ty_val each[2];
    for (int d = 0; d < r->n_dirs; d++)
        each[d] = ty_b_unsqueeze(g, y[d], 1);
    ty_val all = ty_b_concat(g, each, r->n_dirs, 1);
    return r->batch_first ? ty_b_transpose(g, all, batch_first) : all;
}

void onnx_op_rnn(onnx_ctx *c)
{
    rnn r;
    rnn_dir d[2];
    ty_val h[2], state[2], y[2];
    if (!rnn_read(c, &r))
        return;
    for (int k = 0; k < r.n_dirs; k++) {
        y[k] = run_direction(&r, &d[k], k);
        h[k] = d[k].h;
        state[k] = d[k].state;
    }
    if (c->failed || ty_graph_failed(c->g, NULL))
        return;
    if (onnx_wants(c, 0))
        onnx_set(c, 0, all_outputs(&r, y));
    if (onnx_wants(c, 1))
        onnx_set(c, 1, final_state(&r, h));
    if (r.kind == KIND_LSTM && onnx_wants(c, 2))
        onnx_set(c, 2, final_state(&r, state));
}
