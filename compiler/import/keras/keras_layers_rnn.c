/* keras_layers_rnn.c - LSTM, GRU, SimpleRNN, and RNN around a cell: [B, T, I] -> [B, T, H] or [B, H], and states.
 *
 * A layer that goes backwards yields its outputs in the order in which it made them: the last time first.
 */
#include "compiler/import/keras/keras_cells.h"

static void rnn_options(keras_call *c, keras_rnn *r)
{
    r->sequences = keras_flag(c, "return_sequences", false);
    r->states = keras_flag(c, "return_state", false);
    r->backwards = keras_flag(c, "go_backwards", false);
    r->zero_masked = keras_flag(c, "zero_output_for_mask", false);
    if (!c->failed && keras_flag(c, "stateful", false)) {
        keras_fail_key(c, "stateful", "must be false");
        keras_help(c, "states that outlive a batch are not kept: hand them on with return_state and initial_state");
    }
    if (!c->failed && keras_flag(c, "time_major", false))
        keras_fail_key(c, "time_major", "must be false, as it is in Keras 3");
}

void keras_create_rnn(keras_call *c)
{
    static const char *const cells[][2] = {[KERAS_CELL_SIMPLE] = {"simple_rnn_cell", "SimpleRNNCell"},
                                           [KERAS_CELL_GRU] = {"gru_cell", "GRUCell"},
                                           [KERAS_CELL_LSTM] = {"lstm_cell", "LSTMCell"}};
    ty_graph *g = c->g;
    int kind = c->layer->row->arg;
    keras_rnn *r = keras_keep(c, 1, sizeof *r);
    rnn_options(c, r);
    if (c->failed)
        return;
    if (ty_b_rank(g, c->in[0]) != 3 || ty_b_dim(g, c->in[0], 1) < 1) {
        char found[160];
        keras_fail(c, TY_E_SHAPE, "expected an input [batch, steps, size] of at least one step, found %s",
                   ty_type_text(ty_graph_type(g, c->in[0]), found, sizeof found));
        return;
    }
    keras_layer *cell = kind == KERAS_CELL_STACK ? keras_sub(c, "cell", keras_config(c, "cell"), NULL)
                                                 : keras_part(c, "cell", cells[kind][0], cells[kind][1]);
    ty_val step = ty_b_squeeze(g, ty_b_slice_axis(g, c->in[0], 1, 0, 1), 1);
    if (!cell || !keras_create_layer(c, cell, &step, 1))
        return;
    r->cell = keras_cell_of(cell);
    if (!r->cell)
        keras_fail(c, TY_E_UNSUPPORTED, "a cell of class %s is not known here", cell->class_name);
    else
        c->layer->note = r;
}

keras_rnn *keras_rnn_of(const keras_layer *layer)
{
    return layer->row && layer->row->create == keras_create_rnn ? layer->note : NULL;
}

/* ---- states
 * ----------------------------------------------------------------------------------------------------------
 */

/* Tensors of a nested list, in order; counts on when there are more than max. */
static int flat_tensors(const keras_arg *a, ty_val *out, int n, int max)
{
    if (a->kind == KERAS_TENSOR && n < max)
        out[n] = a->val;
    if (a->kind == KERAS_TENSOR)
        return n + 1;
    for (int i = 0; i < a->n_items && (a->kind == KERAS_LIST || a->kind == KERAS_DICT); i++)
        n = flat_tensors(&a->item[i], out, n, max);
    return n;
}

/* The initial states: argument initial_state; in legacy files also more tensors of the first argument; else zeros. */
static bool rnn_states(keras_call *c, const keras_rnn *r, ty_val *state, int64_t batch)
{
    int64_t width[KERAS_MAX_STATES];
    int n = keras_cell_states(r->cell, width), given = c->n_in - 1;
    const keras_arg *a = keras_argument(c, 1, "initial_state");
    for (int i = 0; i < n && i < given; i++)
        state[i] = c->in[i + 1];
    if (a)
        given = flat_tensors(a, state, 0, n);
    if (given > 0 && given != n) {
        keras_fail(c, TY_E_SHAPE, "expected %d initial states, found %d", n, given);
        return false;
    }
    for (int i = 0; i < n; i++) {
        int64_t dim[] = {batch, width[i]};
        if (given == 0)
            state[i] = ty_b_full(c->g, TY_F32, 2, dim, 0);
        state[i] = ty_b_broadcast(c->g, keras_float(c, state[i]), 2, dim);
    }
    return true;
}

/* ---- the run
 * ---------------------------------------------------------------------------------------------------------
 */

static ty_val time_first(ty_graph *g, ty_val x)
{
    return ty_b_transpose(g, x, (int64_t[]){1, 0, 2});
}

/* Through the cells of the layer, one behind the other. run: all but cell and states; its y is the last one's. */
static bool rnn_run(keras_run *run, const keras_cell *cell, ty_val *state)
{
    ty_graph *g = run->c->g;
    bool is_stack = cell->kind == KERAS_CELL_STACK;
    if (is_stack && run->backward) {
        run->x = ty_b_reverse(g, run->x, 1);
        run->mask = ty_b_reverse(g, run->mask, 1);
        run->backward = false;
    }
    for (int i = 0, at = 0; i < (is_stack ? cell->n_parts : 1); i++) {
        run->cell = is_stack ? keras_cell_of(cell->part[i]) : cell;
        int n = run->cell->kind == KERAS_CELL_LSTM ? 2 : 1;
        for (int k = 0; k < n; k++)
            run->state[k] = state[at + k];
        if (!keras_run_cell(run))
            return false;
        for (int k = 0; k < n; k++)
            state[at++] = run->state[k];
        run->x = run->y;
    }
    return true;
}

/* mask: bool [T, B, 1] in the order in which steps were made. */
static ty_val rnn_output(ty_graph *g, const keras_rnn *r, const keras_run *run, ty_val mask)
{
    ty_val y = run->y;
    if (!r->sequences && run->mask == TY_NONE)
        return run->state[0];
    if (!r->sequences) {
        y = ty_b_slice_axis(g, y, 0, run->steps - 1, run->steps);
        mask = ty_b_slice_axis(g, mask, 0, run->steps - 1, run->steps);
    }
    if (mask != TY_NONE && r->zero_masked)
        y = ty_b_select(g, mask, y, ty_b_full_like(g, y, 0));
    return r->sequences ? time_first(g, y) : ty_b_squeeze(g, y, 0);
}

/* The mask that steps obey: Keras finds it by itself only if the sequence is the only tensor of the call. */
static ty_val rnn_mask(const keras_call *c)
{
    bool alone = !keras_argument(c, 1, "initial_state") || keras_argument(c, 2, "mask");
    ty_val mask = alone && c->mask ? c->mask[0] : TY_NONE;
    return mask == TY_NONE ? mask : time_first(c->g, ty_b_unsqueeze(c->g, ty_b_cast(c->g, mask, TY_BOOL), 2));
}

void keras_call_rnn(keras_call *c)
{
    ty_graph *g = c->g;
    const keras_rnn *r = c->layer->note;
    ty_val x = keras_float(c, c->in[0]), state[KERAS_MAX_STATES];
    if (ty_b_rank(g, x) != 3 || ty_b_dim(g, x, 1) < 1) {
        keras_fail(c, TY_E_SHAPE, "expected an input [batch, steps, size] of at least one step");
        return;
    }
    keras_run run = {.c = c, .steps = ty_b_dim(g, x, 1), .batch = ty_b_dim(g, x, 0), .wants_states = r->states};
    if (!rnn_states(c, r, state, run.batch))
        return;
    run.x = time_first(g, x);
    run.mask = rnn_mask(c);
    run.backward = r->backwards;
    ty_val mask = r->backwards ? ty_b_reverse(g, run.mask, 1) : run.mask;
    if (!rnn_run(&run, r->cell, state))
        return;
    keras_set(c, 0, rnn_output(g, r, &run, mask));
    keras_set_mask(c, 0, r->sequences && c->mask ? c->mask[0] : TY_NONE);
    int64_t width[KERAS_MAX_STATES];
    for (int i = 0; r->states && i < keras_cell_states(r->cell, width); i++)
        keras_set(c, i + 1, state[i]);
}
