/* onnx_ops_flow.c - sequences, optionals, and control flow that is known before training starts.
 *
 * None of it reaches the graph: sequences are lists of values, a condition picks a branch, a loop is unrolled.
 */
#include "compiler/import/onnx_import.h"

enum { MAX_TRIPS = 4096, MAX_SEQUENCE = 1 << 16 };

/* ---- sequences ----------------------------------------------------------------------------------------------------
 */

static bool is_sequence(onnx_ctx *c, int i)
{
    if (c->in[i]->kind == ONNX_SEQUENCE)
        return true;
    onnx_fail_input(c, i, TY_E_UNSUPPORTED, "must be a sequence");
    return false;
}

/* Position `i` as an input gives it, in a list of n; `absent` without that input. */
static bool sequence_position(onnx_ctx *c, int input, int64_t n, int64_t absent, int64_t *at)
{
    if (!onnx_const_int(c, input, absent, at))
        return false;
    *at += *at < 0 ? n : 0;
    if (*at >= 0 && *at < n)
        return true;
    onnx_fail_input(c, input, TY_E_SHAPE, "is outside the sequence of %lld", (long long)n);
    return false;
}

void onnx_op_sequence_construct(onnx_ctx *c)
{
    ty_val *seq = onnx_alloc(c, (size_t)c->n_in + 1, sizeof *seq);
    for (int i = 0; i < c->n_in; i++)
        seq[i] = onnx_in(c, i);
    onnx_set_sequence(c, 0, seq, c->n_in);
}

void onnx_op_sequence_empty(onnx_ctx *c)
{
    onnx_set_sequence(c, 0, NULL, 0);
}

void onnx_op_sequence_at(onnx_ctx *c)
{
    int64_t at;
    if (is_sequence(c, 0) && sequence_position(c, 1, c->in[0]->n_seq, 0, &at))
        onnx_set(c, 0, c->in[0]->seq[at]);
}

void onnx_op_sequence_length(onnx_ctx *c)
{
    if (is_sequence(c, 0))
        onnx_set(c, 0, onnx_int_const(c, c->in[0]->n_seq));
}

void onnx_op_sequence_insert(onnx_ctx *c)
{
    int64_t n = is_sequence(c, 0) ? c->in[0]->n_seq : 0, at;
    if (c->failed || !onnx_const_int(c, 2, n, &at))
        return;
    at += at < 0 ? n : 0;
    if (at < 0 || at > n) {
        onnx_fail_input(c, 2, TY_E_SHAPE, "is outside the sequence of %lld", (long long)n);
        return;
    }
    if (n >= MAX_SEQUENCE) {
        onnx_fail(c, TY_E_LIMIT, "SequenceInsert: more than %d entries", MAX_SEQUENCE);
        return;
    }
    ty_val *seq = onnx_alloc(c, (size_t)n + 1, sizeof *seq);
    for (int64_t i = 0; i <= n; i++)
        seq[i] = i == at ? onnx_in(c, 1) : c->in[0]->seq[i < at ? i : i - 1];
    onnx_set_sequence(c, 0, seq, (int)n + 1);
}

void onnx_op_sequence_erase(onnx_ctx *c)
{
    int64_t n = is_sequence(c, 0) ? c->in[0]->n_seq : 0, at;
    if (c->failed || !sequence_position(c, 1, n, n - 1, &at))
        return;
    ty_val *seq = onnx_alloc(c, (size_t)n, sizeof *seq);
    for (int64_t i = 0; i < n - 1; i++)
        seq[i] = c->in[0]->seq[i < at ? i : i + 1];
    onnx_set_sequence(c, 0, seq, (int)n - 1);
}

void onnx_op_concat_from_sequence(onnx_ctx *c)
{
    if (!is_sequence(c, 0))
        return;
    const onnx_item *s = c->in[0];
    bool stack = onnx_attr_int(c, "new_axis", 0);
    int axis, rank = s->n_seq ? onnx_rank(c, s->seq[0]) + stack : 0;
    if (s->n_seq < 1 || rank > TY_MAX_RANK) {
        onnx_fail(c, TY_E_SHAPE, "ConcatFromSequence: an empty sequence, or too many dimensions");
        return;
    }
    if (!onnx_axis(c, onnx_attr_int(c, "axis", 0), rank, &axis))
        return;
    ty_val *in = onnx_alloc(c, (size_t)s->n_seq, sizeof *in);
    for (int i = 0; i < s->n_seq; i++)
        in[i] = stack ? ty_b_unsqueeze(c->g, s->seq[i], axis) : s->seq[i];
    onnx_set(c, 0, ty_b_concat(c->g, in, s->n_seq, axis));
}

/* ---- optionals ----------------------------------------------------------------------------------------------------
 */

void onnx_op_optional_has_element(onnx_ctx *c)
{
    bool has = onnx_has(c, 0) && c->in[0]->kind != ONNX_UNSET;
    onnx_set(c, 0, ty_b_scalar(c->g, TY_BOOL, has));
}

/* Optional and OptionalGetElement: the thing itself. */
void onnx_op_optional(onnx_ctx *c)
{
    if (!onnx_has(c, 0))
        return;
    c->out[0].kind = c->in[0]->kind;
    c->out[0].val = c->in[0]->val;
    c->out[0].seq = c->in[0]->seq;
    c->out[0].n_seq = c->in[0]->n_seq;
}

/* ---- control flow -------------------------------------------------------------------------------------------------
 */

static const onnx_graph *body_of(onnx_ctx *c, const char *name)
{
    const onnx_attr *a = onnx_find_attr(c, name);
    if (!a || !a->g)
        onnx_fail(c, TY_E_MODEL_FILE, "%s: attribute %s holds no graph", c->node->op_type, name);
    return a ? a->g : NULL;
}

void onnx_op_if(onnx_ctx *c)
{
    int64_t cond;
    if (!onnx_is_const(c, 0)) {
        onnx_fail_input(c, 0, TY_E_UNSUPPORTED, "depends on the data; a branch must be known before training starts");
        onnx_help(c, "write the choice with Where, or export the model with the condition fixed");
        return;
    }
    if (!onnx_const_int(c, 0, 0, &cond))
        return;
    const onnx_graph *body = body_of(c, cond ? "then_branch" : "else_branch");
    if (body)
        onnx_import_subgraph(c, body, NULL, 0, c->out, c->n_out);
}

/* A condition inside a loop must be known too. */
static bool loop_goes_on(onnx_ctx *c, const onnx_item *cond)
{
    const int64_t *v;
    int64_t n;
    if (cond->kind == ONNX_TENSOR && onnx_val_ints(c, cond->val, &v, &n) && n == 1)
        return v[0] != 0;
    if (cond->kind != ONNX_FAULTY)
        onnx_fail(c, TY_E_UNSUPPORTED, "Loop: its condition depends on the data");
    return false;
}

typedef struct loop {
    const onnx_graph *body;
    int n_carried, n_scanned;
    int64_t trips;   /* most of them */
    onnx_item *io;   /* iteration, condition, carried values */
    onnx_item *out;  /* condition, carried values, scanned values of one trip */
    ty_val *scanned; /* [n_scanned][trips done] */
    int64_t n_done;
} loop;

static bool loop_read(onnx_ctx *c, loop *l)
{
    int64_t trips = INT64_MAX, cond = 1;
    l->body = body_of(c, "body");
    if (!l->body || (onnx_has(c, 0) && !onnx_const_int(c, 0, 0, &trips)) ||
        (onnx_has(c, 1) && !onnx_const_int(c, 1, 1, &cond)))
        return false;
    l->n_carried = c->n_in > 2 ? c->n_in - 2 : 0;
    l->n_scanned = (int)l->body->outputs.n - 1 - l->n_carried;
    if (l->n_scanned < 0) {
        onnx_fail(c, TY_E_MODEL_FILE, "Loop: the body has %zu outputs for %d carried values", l->body->outputs.n,
                  l->n_carried);
        return false;
    }
    l->trips = cond ? (trips < 0 ? 0 : trips) : 0;
    l->trips = l->trips > MAX_TRIPS ? MAX_TRIPS + 1 : l->trips;
    l->io = onnx_alloc(c, (size_t)l->n_carried + 2, sizeof *l->io);
    l->out = onnx_alloc(c, l->body->outputs.n + 1, sizeof *l->out);
    l->scanned = onnx_alloc(c, (size_t)l->n_scanned * (size_t)(l->trips + 1) + 1, sizeof *l->scanned);
    for (int i = 0; i < l->n_carried; i++)
        l->io[i + 2] =
            c->in[i + 2] ? *c->in[i + 2] : (onnx_item){.kind = ONNX_UNSET, .val = TY_NONE, .initializer = -1};
    l->io[1] = (onnx_item){.val = ty_b_scalar(c->g, TY_BOOL, 1), .initializer = -1, .producer = -1, .origin = "loop"};
    return true;
}

static bool loop_trip(onnx_ctx *c, loop *l)
{
    l->io[0] = (onnx_item){.val = onnx_int_const(c, l->n_done), .initializer = -1, .producer = -1, .origin = "loop"};
    if (!onnx_import_subgraph(c, l->body, l->io, l->n_carried + 2, l->out, (int)l->body->outputs.n))
        return false;
    for (int i = 0; i < l->n_carried; i++)
        l->io[i + 2] = l->out[i + 1];
    for (int i = 0; i < l->n_scanned; i++) {
        ty_val v = l->out[1 + l->n_carried + i].val;
        l->scanned[i * (l->trips + 1) + l->n_done] = ty_b_unsqueeze(c->g, v, 0);
    }
    l->n_done++;
    return loop_goes_on(c, &l->out[0]);
}

void onnx_op_loop(onnx_ctx *c)
{
    loop l = {0};
    if (!loop_read(c, &l))
        return;
    while (l.n_done < l.trips && !c->failed && loop_trip(c, &l))
        if (l.n_done >= MAX_TRIPS)
            onnx_fail(c, TY_E_LIMIT, "Loop: more than %d trips", MAX_TRIPS);
    for (int i = 0; i < l.n_carried && i < c->n_out; i++)
        c->out[i] = l.io[i + 2];
    for (int i = 0; i < l.n_scanned && l.n_carried + i < c->n_out; i++) {
        if (l.n_done == 0)
            onnx_unset(c, l.n_carried + i, "the loop has no trips");
        else
            onnx_set(c, l.n_carried + i, ty_b_concat(c->g, l.scanned + i * (l.trips + 1), (int)l.n_done, 0));
    }
}

/* Scan of opset 9 and later: the last inputs are cut along their axis, one piece a trip. */
enum { MAX_SCANNED = 16 };

typedef struct scan {
    const onnx_graph *body;
    int n_state, n_in, n_out; /* carried values, cut inputs, stacked outputs */
    int64_t axis[MAX_SCANNED], backward[MAX_SCANNED], out_axis[MAX_SCANNED], out_backward[MAX_SCANNED];
    int64_t steps;
    onnx_item *io, *out; /* of one trip */
    ty_val *made;        /* [n_out][steps] */
} scan;

static bool scan_attrs(onnx_ctx *c, scan *s)
{
    int64_t n_in = onnx_attr_int(c, "num_scan_inputs", 0), n_state = c->n_in - n_in;
    s->body = body_of(c, "body");
    int64_t n_out = s->body ? (int64_t)s->body->outputs.n - n_state : 0;
    if (c->failed)
        return false;
    if (n_in < 1 || n_state < 0 || n_out < 0 || n_in > MAX_SCANNED || n_out > MAX_SCANNED) {
        onnx_fail_attr(c, "num_scan_inputs", "does not fit the inputs");
        return false;
    }
    s->n_in = (int)n_in;
    s->n_state = (int)n_state;
    s->n_out = (int)n_out;
    return onnx_attr_int_list(c, "scan_input_axes", n_in, 0, s->axis) &&
           onnx_attr_int_list(c, "scan_input_directions", n_in, 0, s->backward) &&
           onnx_attr_int_list(c, "scan_output_axes", n_out, 0, s->out_axis) &&
           onnx_attr_int_list(c, "scan_output_directions", n_out, 0, s->out_backward);
}

/* All cut axes must have one length: the number of trips. */
static bool scan_steps(onnx_ctx *c, scan *s)
{
    s->steps = -1;
    for (int i = 0; i < s->n_in; i++) {
        ty_val x = onnx_in(c, s->n_state + i);
        int axis;
        if (x == TY_NONE)
            onnx_fail_input(c, s->n_state + i, TY_E_SHAPE, "must be a tensor");
        if (c->failed || !onnx_axis(c, s->axis[i], onnx_rank(c, x), &axis))
            return false;
        s->axis[i] = axis;
        int64_t n = onnx_dim(c, x, axis);
        if ((s->steps >= 0 && s->steps != n) || n < 1 || n > MAX_TRIPS) {
            onnx_fail(c, TY_E_SHAPE, "Scan: inputs of %lld and %lld steps; 1 to %d are possible", (long long)s->steps,
                      (long long)n, MAX_TRIPS);
            return false;
        }
        s->steps = n;
    }
    s->io = onnx_alloc(c, (size_t)c->n_in + 1, sizeof *s->io);
    s->out = onnx_alloc(c, s->body->outputs.n + 1, sizeof *s->out);
    s->made = onnx_alloc(c, (size_t)(s->n_out * s->steps) + 1, sizeof *s->made);
    return true;
}

static bool scan_trip(onnx_ctx *c, scan *s, int64_t t)
{
    for (int i = 0; i < s->n_in; i++) {
        int64_t at = s->backward[i] ? s->steps - 1 - t : t;
        ty_val piece = ty_b_slice_axis(c->g, onnx_in(c, s->n_state + i), (int)s->axis[i], at, at + 1);
        s->io[s->n_state + i] = (onnx_item){
            .val = ty_b_squeeze(c->g, piece, (int)s->axis[i]), .initializer = -1, .producer = -1, .origin = "scan"};
    }
    if (!onnx_import_subgraph(c, s->body, s->io, c->n_in, s->out, (int)s->body->outputs.n))
        return false;
    for (int i = 0; i < s->n_state; i++)
        s->io[i] = s->out[i];
    for (int i = 0; i < s->n_out; i++)
        s->made[i * s->steps + (s->out_backward[i] ? s->steps - 1 - t : t)] = s->out[s->n_state + i].val;
    return true;
}

static void scan_stack(onnx_ctx *c, scan *s, int i)
{
    ty_val *piece = s->made + i * s->steps;
    int axis;
    if (piece[0] == TY_NONE || !onnx_axis(c, s->out_axis[i], onnx_rank(c, piece[0]) + 1, &axis))
        return;
    for (int64_t t = 0; t < s->steps; t++)
        piece[t] = ty_b_unsqueeze(c->g, piece[t], axis);
    onnx_set(c, s->n_state + i, ty_b_concat(c->g, piece, (int)s->steps, axis));
}

void onnx_op_scan(onnx_ctx *c)
{
    scan s = {0};
    if (!scan_attrs(c, &s) || !scan_steps(c, &s))
        return;
    for (int i = 0; i < s.n_state; i++)
        s.io[i] = c->in[i] ? *c->in[i] : (onnx_item){.kind = ONNX_UNSET, .val = TY_NONE, .initializer = -1};
    for (int64_t t = 0; t < s.steps; t++)
        if (!scan_trip(c, &s, t))
            return;
    for (int i = 0; i < s.n_state && i < c->n_out; i++)
        c->out[i] = s.io[i];
    for (int i = 0; i < s.n_out && s.n_state + i < c->n_out; i++)
        scan_stack(c, &s, i);
}
