/* write_rnn.c - recurrent layers: LSTM, GRU and RNN of one direction.
 *
 * ONNX has weights [directions, G H, ..] with gates in an order of its own (LSTM i, o, f, c; GRU z, r, h), and a bias
 * of both products, [directions, 2 G H].
 */
#include "compiler/export/writer.h"
#include "compiler/ops/recurrence.h"

#include <string.h>

static const int rnn_lstm_order[] = {TY_RNN_I, TY_RNN_O, TY_RNN_F, TY_RNN_G};
static const int rnn_other_order[] = {TY_RNN_Z, TY_RNN_R, TY_RNN_N};

static export_value *rnn_rows(export_ctx *c, export_value *x, int64_t lo, int64_t hi)
{
    export_begin(c, "Slice");
    export_use(c, x);
    export_use(c, export_ints(c, &lo, 1));
    export_use(c, export_ints(c, &hi, 1));
    export_use(c, export_ints(c, (int64_t[]){0}, 1));
    return export_end(c);
}

/* The blocks of axis 0 in ONNX's order. */
static export_value *rnn_ordered(export_ctx *c, export_value *x, const ty_attr *attr, int64_t hidden)
{
    const int *order = attr->n == TY_RNN_LSTM ? rnn_lstm_order : rnn_other_order;
    export_value *block[TY_RNN_MAX_GATES];
    bool same = true;
    for (uint32_t k = 0; k < attr->n; k++)
        same &= attr->lo[order[k]] == k;
    if (same)
        return x;
    for (uint32_t k = 0; k < attr->n; k++)
        block[k] = rnn_rows(c, x, attr->lo[order[k]] * hidden, (attr->lo[order[k]] + 1) * hidden);
    export_begin(c, "Concat");
    for (uint32_t k = 0; k < attr->n; k++)
        export_use(c, block[k]);
    export_attr_int(c, "axis", 0);
    return export_end(c);
}

static export_value *rnn_unsqueeze(export_ctx *c, export_value *x)
{
    return export_apply(c, "Unsqueeze", x, export_ints(c, (int64_t[]){0}, 1), NULL);
}

/* [1, 2 G H]: ours, then that of the recurrent product, which only a GRU that resets after it has (H numbers). */
static export_value *rnn_bias(export_ctx *c, const export_plan *p, const ty_attr *attr, int64_t hidden)
{
    ty_val v = p->in[TY_RNN_BIAS];
    ty_dtype dtype = (ty_dtype)export_type(c, v)->dtype;
    bool after = attr->flags & TY_RNN_RESET_AFTER;
    int64_t width = attr->n * hidden, zeros = after ? width - hidden : width;
    export_value *all = export_of(c, v), *own = after ? rnn_rows(c, all, 0, width) : all;
    export_value *rest = after ? rnn_rows(c, all, width, width + hidden) : NULL;
    own = rnn_ordered(c, own, attr, hidden);
    export_value *none = export_fill(c, dtype, 1, &zeros, 0);
    export_begin(c, "Concat");
    export_use(c, own);
    export_use(c, none);
    if (rest)
        export_use(c, rest);
    export_attr_int(c, "axis", 0);
    return rnn_unsqueeze(c, export_end(c));
}

static export_value *rnn_state(export_ctx *c, const export_plan *p, int k)
{
    if (k >= p->n_in || p->in[k] == TY_NONE)
        return NULL;
    return rnn_unsqueeze(c, export_of(c, p->in[k]));
}

static void rnn_attrs(export_ctx *c, const ty_attr *attr, int64_t hidden)
{
    static const char *const relu[] = {"Relu"};
    export_attr_int(c, "hidden_size", hidden);
    export_attr_text(c, "direction", attr->flags & TY_RNN_BACKWARD ? "reverse" : "forward");
    if (attr->flags & TY_RNN_RESET_AFTER)
        export_attr_int(c, "linear_before_reset", 1);
    if (attr->flags & TY_RNN_RELU)
        export_attr_texts(c, "activations", relu, 1);
}

void export_write_rnn(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    bool lstm = attr->n == TY_RNN_LSTM;
    int64_t hidden = export_type(c, p->in[TY_RNN_WEIGHT])->dim[1];
    export_value *in[8] = {export_of(c, p->in[TY_RNN_X])}, *out[3];
    in[1] = rnn_unsqueeze(c, rnn_ordered(c, export_of(c, p->in[TY_RNN_W]), attr, hidden));
    in[2] = rnn_unsqueeze(c, rnn_ordered(c, export_of(c, p->in[TY_RNN_WEIGHT]), attr, hidden));
    in[3] = rnn_bias(c, p, attr, hidden);
    in[5] = rnn_state(c, p, TY_RNN_H0);
    in[6] = lstm ? rnn_state(c, p, TY_RNN_C0) : NULL;
    export_begin(c, lstm ? "LSTM" : attr->n == TY_RNN_GRU ? "GRU" : "RNN");
    for (int k = 0; k < 7; k++)
        export_use(c, in[k]);
    rnn_attrs(c, attr, hidden);
    export_end_many(c, out, lstm ? 3 : 2);
    export_value *one = export_ints(c, (int64_t[]){1}, 1), *zero = export_ints(c, (int64_t[]){0}, 1);
    export_give(c, p, 0, export_apply(c, "Squeeze", out[0], one, NULL));
    export_give(c, p, 1, export_apply(c, "Squeeze", out[lstm ? 2 : 1], zero, NULL));
}
