/* keras_layers_conv_lstm.c - ConvLSTM1D to 3D: an LSTM whose products are convolutions, over [B, T, spatial.., C] or
 * [B, T, C, spatial..].
 *
 * The input's part of all gates of all steps is one convolution; each step adds that of the state, which has the
 * window's size and keeps the plane's, and applies the gates. Dropout: factors for each gate, the same in every step.
 * Letters: T steps, B batch, C channels, F filters. Gates i, f, c, o. Steps lie one behind the other along axis 0, in
 * values [rows, channels, spatial..], so that layouts are chosen as for other convolutions.
 */
#include "compiler/import/keras/keras_cells.h"
#include "compiler/import/keras/keras_window.h"

enum { GATES = 4, MAX_STEPS = 1024 }; /* that are unrolled */

typedef struct conv_lstm {
    keras_call *c;
    ty_graph *g;
    keras_layer *cell;
    int n; /* axes of space */
    int64_t filters, steps, batch;
    keras_window in, again; /* of the input and of the state */
    ty_val kernel;          /* of the state: [4 F, F, window..] */
    ty_val factor[GATES];   /* of the state, for each gate; TY_NONE: none */
} conv_lstm;

static bool conv_lstm_input_ok(keras_call *c, int n)
{
    if (ty_b_rank(c->g, c->in[0]) == n + 3 && ty_b_dim(c->g, c->in[0], 1) >= 1)
        return true;
    char found[160];
    keras_fail(c, TY_E_SHAPE,
               "expected an input [batch, steps, channels and %d of space] of at least one step, found %s", n,
               ty_type_text(ty_graph_type(c->g, c->in[0]), found, sizeof found));
    return false;
}

static bool conv_lstm_read(keras_call *c, conv_lstm *l)
{
    *l = (conv_lstm){.c = c, .g = c->g, .cell = c->layer->note, .n = c->layer->row->arg};
    if (!conv_lstm_input_ok(c, l->n) || !keras_window_settings(c, l->n, "kernel_size", 0, false, &l->in))
        return false;
    l->again = l->in;
    l->again.padding = KERAS_PAD_SAME;
    for (int i = 0; i < l->n; i++) {
        l->again.attr.step[i] = l->again.attr.dil[i] = 1;
        l->again.extent[i] = l->again.attr.size[i];
    }
    l->filters = keras_int(c, "filters", 0);
    if (!c->failed && (l->filters < 1 || l->filters > KERAS_WINDOW_MOST / GATES))
        keras_fail_key(c, "filters", "expected a number from 1 to %d", KERAS_WINDOW_MOST / GATES);
    if (!c->failed && keras_flag(c, "stateful", false))
        keras_fail_key(c, "stateful", "must be false");
    l->batch = ty_b_dim(c->g, c->in[0], 0);
    l->steps = ty_b_dim(c->g, c->in[0], 1);
    if (!c->failed && l->steps > MAX_STEPS)
        keras_fail(c, TY_E_LIMIT, "%lld steps; at most %d are possible", (long long)l->steps, MAX_STEPS);
    return !c->failed;
}

/* ---- weights ---- */

static void conv_lstm_kernel(keras_call *c, const conv_lstm *l, int64_t channels, keras_spec *spec)
{
    spec->rank = l->n + 2;
    for (int i = 0; i < l->n; i++)
        spec->dim[i] = l->in.attr.size[i];
    spec->dim[l->n] = channels;
    spec->dim[l->n + 1] = GATES * l->filters;
    keras_add_weight_to(c, l->cell, spec);
}

void keras_create_conv_lstm(keras_call *c)
{
    conv_lstm l;
    if (!conv_lstm_read(c, &l))
        return;
    c->layer->note = l.cell = keras_part(c, "cell", "conv_lstm_cell", NULL);
    if (!l.cell)
        return;
    keras_spec kernel = {.label = "kernel",
                         .initializer = "kernel_initializer",
                         .regularizer = "kernel_regularizer",
                         .constraint = "kernel_constraint"};
    keras_spec again = {.label = "recurrent_kernel",
                        .initializer = "recurrent_initializer",
                        .initializer_absent = "orthogonal",
                        .regularizer = "recurrent_regularizer",
                        .constraint = "recurrent_constraint"};
    keras_spec bias = {.label = "bias",
                       .rank = 1,
                       .dim = {GATES * l.filters},
                       .initializer = "bias_initializer",
                       .initializer_absent = "zeros",
                       .regularizer = "bias_regularizer",
                       .constraint = "bias_constraint"};
    if (keras_flag(c, "unit_forget_bias", true)) {
        bias.ones_lo = l.filters;
        bias.ones_hi = 2 * l.filters;
    }
    conv_lstm_kernel(c, &l, ty_b_dim(c->g, c->in[0], l.in.first ? 2 : l.n + 2), &kernel);
    conv_lstm_kernel(c, &l, l.filters, &again);
    if (keras_flag(c, "use_bias", true))
        keras_add_weight_to(c, l.cell, &bias);
}

/* ---- convolutions ---- */

static ty_val conv_lstm_conv(const keras_window *w, ty_graph *g, ty_val x, ty_val kernel)
{
    ty_attr attr = w->attr;
    attr.groups = 1;
    return ty_graph_emit(g, TY_OP_CONV, &attr, (ty_val[]){x, kernel}, 2);
}

/* v [rows, 4 F, ..] of a gate. */
static ty_val conv_lstm_gate(const conv_lstm *l, ty_val v, int axis, int gate)
{
    return v == TY_NONE ? v : ty_b_slice_axis(l->g, v, axis, gate * l->filters, (gate + 1) * l->filters);
}

static double conv_lstm_rate(keras_call *c, const char *key)
{
    double rate = keras_number(c, key, 0);
    return c->training && rate > 0 && rate < 1 ? rate : 0;
}

/* Each gate reads the input, [T B, C, spatial..], under factors of its own, which are the same in all steps. */
static ty_val conv_lstm_dropped(conv_lstm *l, ty_val x, ty_val kernel, double rate)
{
    const ty_type t = *ty_graph_type(l->g, x);
    ty_type step = t, all = t;
    ty_val part[GATES];
    step.dim[0] = l->batch;
    all.rank++;
    all.dim[0] = l->steps;
    for (int i = 0; i < t.rank; i++)
        all.dim[i + 1] = step.dim[i];
    for (int k = 0; k < GATES; k++) {
        ty_val factor = ty_b_unsqueeze(l->g, keras_drop_factor(l->c, rate, step.rank, step.dim), 0);
        ty_val y = ty_b_mul(l->g, ty_b_reshape(l->g, x, all.rank, all.dim), factor);
        y = ty_b_reshape(l->g, y, t.rank, t.dim);
        part[k] = conv_lstm_conv(&l->in, l->g, y, conv_lstm_gate(l, kernel, 0, k));
    }
    return ty_b_concat(l->g, part, GATES, 1);
}

/* x with its first two axes in the other order. */
static ty_val conv_lstm_swapped(ty_graph *g, ty_val x)
{
    int64_t turn[TY_MAX_RANK];
    for (int i = 0; i < TY_MAX_RANK; i++)
        turn[i] = i < 2 ? 1 - i : i;
    return ty_b_transpose(g, x, turn);
}

/* The input's part of all steps: [T B, 4 F, spatial..]. */
static ty_val conv_lstm_input(conv_lstm *l)
{
    ty_graph *g = l->g;
    const ty_type t = *ty_graph_type(g, l->c->in[0]);
    int64_t flat[TY_MAX_RANK] = {l->steps * l->batch};
    for (int i = 2; i < t.rank; i++)
        flat[i - 1] = t.dim[i];
    ty_val x = ty_b_reshape(g, conv_lstm_swapped(g, keras_float(l->c, l->c->in[0])), t.rank - 1, flat);
    x = keras_to_first(l->c, x, l->in.first);
    ty_val kernel = keras_window_turned(l->c, keras_var_of(l->c, l->cell, "kernel"));
    ty_val bias = keras_var_of(l->c, l->cell, "bias");
    double rate = conv_lstm_rate(l->c, "dropout");
    if (!keras_window_place(l->c, &l->in, x))
        return TY_NONE;
    ty_val y = rate > 0 ? conv_lstm_dropped(l, x, kernel, rate) : conv_lstm_conv(&l->in, g, x, kernel);
    return bias == TY_NONE || y == TY_NONE ? y : ty_b_add(g, y, keras_on_axis(l->c, bias, 1, t.rank - 1));
}

/* The state's part: [B, 4 F, spatial..]. */
static ty_val conv_lstm_state(const conv_lstm *l, ty_val h)
{
    ty_val part[GATES];
    if (l->factor[0] == TY_NONE)
        return conv_lstm_conv(&l->again, l->g, h, l->kernel);
    for (int k = 0; k < GATES; k++)
        part[k] = conv_lstm_conv(&l->again, l->g, ty_b_mul(l->g, h, l->factor[k]), conv_lstm_gate(l, l->kernel, 0, k));
    return ty_b_concat(l->g, part, GATES, 1);
}

/* ---- steps ---- */

/* Keras' default where there is no such key, and linear where it is null. */
static ty_val conv_lstm_act(const conv_lstm *l, const char *key, const char *usual, ty_val x)
{
    const ty_doc *given = ty_doc_find(l->c->config, key);
    return given ? keras_activation(l->c, given, x) : keras_activation_named(l->c, usual, x);
}

static void conv_lstm_step(const conv_lstm *l, ty_val xw, ty_val *state)
{
    ty_graph *g = l->g;
    ty_val z = ty_b_add(g, xw, conv_lstm_state(l, state[0])), gate[GATES];
    for (int k = 0; k < GATES; k++)
        gate[k] = conv_lstm_act(l, k == 2 ? "activation" : "recurrent_activation", k == 2 ? "tanh" : "sigmoid",
                                conv_lstm_gate(l, z, 1, k));
    state[1] = ty_b_add(g, ty_b_mul(g, gate[1], state[1]), ty_b_mul(g, gate[0], gate[2]));
    state[0] = ty_b_mul(g, gate[3], conv_lstm_act(l, "activation", "tanh", state[1]));
}

/* Zeros, or argument initial_state: two values as the layer's outputs lie. */
static bool conv_lstm_begin(conv_lstm *l, ty_val xw, ty_val *state)
{
    const ty_type t = *ty_graph_type(l->g, xw);
    const keras_arg *given = keras_argument(l->c, 1, "initial_state");
    int64_t dim[TY_MAX_RANK] = {l->batch, l->filters};
    for (int i = 2; i < t.rank; i++)
        dim[i] = t.dim[i];
    bool two = given && given->kind == KERAS_LIST && given->n_items == 2 && given->item[0].kind == KERAS_TENSOR &&
               given->item[1].kind == KERAS_TENSOR;
    if (given && !two) {
        keras_fail(l->c, TY_E_SHAPE, "initial_state: expected a list of two tensors");
        return false;
    }
    for (int k = 0; k < 2; k++) {
        ty_val v = two ? keras_to_first(l->c, keras_float(l->c, given->item[k].val), l->in.first)
                       : ty_b_full(l->g, TY_F32, t.rank, dim, 0);
        state[k] = ty_b_broadcast(l->g, v, t.rank, dim);
    }
    double rate = conv_lstm_rate(l->c, "recurrent_dropout");
    for (int k = 0; k < GATES; k++)
        l->factor[k] = rate > 0 ? keras_drop_factor(l->c, rate, t.rank, dim) : TY_NONE;
    return keras_window_place(l->c, &l->again, state[0]);
}

/* y of steps, [B, F, spatial..] each: [B, T, ..] as the layer has it. */
static ty_val conv_lstm_sequence(const conv_lstm *l, const ty_val *y)
{
    ty_val all = keras_from_first(l->c, ty_b_concat_many(l->g, y, (int)l->steps, 0), l->in.first);
    if (all == TY_NONE)
        return all;
    const ty_type t = *ty_graph_type(l->g, all);
    int64_t dim[TY_MAX_RANK] = {l->steps, l->batch};
    for (int i = 1; i < t.rank; i++)
        dim[i + 1] = t.dim[i];
    return conv_lstm_swapped(l->g, ty_b_reshape(l->g, all, t.rank + 1, dim));
}

void keras_call_conv_lstm(keras_call *c)
{
    conv_lstm l;
    ty_val state[2];
    if (!conv_lstm_read(c, &l))
        return;
    if (c->mask && c->mask[0] != TY_NONE) {
        keras_fail(c, TY_E_UNSUPPORTED, "sequences with a mask are not supported");
        return;
    }
    bool sequences = keras_flag(c, "return_sequences", false), backwards = keras_flag(c, "go_backwards", false);
    ty_val xw = conv_lstm_input(&l), *y = keras_alloc(c, (size_t)l.steps, sizeof *y);
    l.kernel = keras_window_turned(c, keras_var_of(c, l.cell, "recurrent_kernel"));
    if (xw == TY_NONE || !conv_lstm_begin(&l, xw, state))
        return;
    for (int64_t k = 0; k < l.steps && !c->failed; k++) {
        int64_t t = backwards ? l.steps - 1 - k : k;
        conv_lstm_step(&l, ty_b_slice_axis(c->g, xw, 0, t * l.batch, (t + 1) * l.batch), state);
        y[k] = state[0];
    }
    if (c->failed)
        return;
    keras_set(c, 0, sequences ? conv_lstm_sequence(&l, y) : keras_from_first(c, state[0], l.in.first));
    for (int k = 0; k < 2 && keras_flag(c, "return_state", false); k++)
        keras_set(c, k + 1, keras_from_first(c, state[k], l.in.first));
}
