/* keras_recur.c - a sequence through one cell: as the composite `rnn` where that is possible (keras_recur_whole.c),
 * else step by step.
 *
 * Step by step, the input's part of all gates of all steps is one product; each step adds the state's part and applies
 * the gates. Letters: T steps, B batch, I input size, H units, G gates.
 *
 * Dropout: one factor for the inputs and one for the states, the same in every step. With recurrent dropout each gate
 * has factors of its own (Keras' implementation 1), but in SimpleRNN.
 */
#include "compiler/import/keras/keras_cells.h"

enum { MAX_STEPS = 4096 }; /* that are unrolled */

/* What all steps read. */
typedef struct recur {
    keras_run *r;
    keras_call *c;
    ty_graph *g;
    const keras_cell *cell;
    ty_val xw;                       /* [T, B, G H] */
    ty_val kernel;                   /* of the state: [H, G H] */
    ty_val bias;                     /* [G H]: of the state's part, GRU with reset_after; else TY_NONE */
    ty_val factor[TY_RNN_MAX_GATES]; /* of the state, for each gate; TY_NONE: none */
} recur;

ty_val keras_drop_factor(keras_call *c, double rate, int rank, const int64_t *dim)
{
    ty_graph *g = c->g;
    ty_val u = keras_uniform(c, rank, dim);
    ty_val kept = ty_b_le(g, ty_b_full_like(g, u, rate), u);
    return ty_b_select(g, kept, ty_b_full_like(g, u, 1 / (1 - rate)), ty_b_full_like(g, u, 0));
}

static ty_val gate(const recur *s, ty_val all, int k)
{
    if (all == TY_NONE)
        return all;
    int axis = ty_b_rank(s->g, all) - 1;
    return ty_b_slice_axis(s->g, all, axis, k * s->cell->units, (k + 1) * s->cell->units);
}

/* x [.., I] times w [I, N] */
static ty_val product(ty_graph *g, ty_val x, ty_val w)
{
    if (x == TY_NONE || w == TY_NONE)
        return TY_NONE;
    if (ty_b_rank(g, x) < 3)
        return ty_b_dot(g, x, w, false, false);
    int64_t dim[] = {ty_b_dim(g, x, 0), ty_b_dim(g, x, 1), ty_b_dim(g, w, 1)};
    int64_t flat[] = {dim[0] * dim[1], ty_b_dim(g, x, 2)};
    return ty_b_reshape(g, ty_b_dot(g, ty_b_reshape(g, x, 2, flat), w, false, false), 3, dim);
}

/* ---- what comes from the input -------------------------------------------------------------------------------------
 */

/* Each gate reads the input under a factor of its own. */
static ty_val input_by_gates(recur *s, ty_val w)
{
    int64_t dim[] = {1, s->r->batch, ty_b_dim(s->g, s->r->x, 2)};
    ty_val part[TY_RNN_MAX_GATES];
    for (int k = 0; k < s->cell->gates; k++) {
        ty_val x = ty_b_mul(s->g, s->r->x, keras_drop_factor(s->c, s->cell->dropout, 3, dim));
        part[k] = product(s->g, x, gate(s, w, k));
    }
    return ty_b_concat(s->g, part, s->cell->gates, 2);
}

/* The input's bias and the state's, where they are apart. */
static ty_val input_bias(recur *s)
{
    ty_val bias = keras_var_of(s->c, s->cell->layer, "bias");
    if (!s->cell->reset_after || bias == TY_NONE)
        return bias;
    s->bias = ty_b_squeeze(s->g, ty_b_slice_axis(s->g, bias, 0, 1, 2), 0);
    return ty_b_squeeze(s->g, ty_b_slice_axis(s->g, bias, 0, 0, 1), 0);
}

static void read_input(recur *s)
{
    bool drop = s->c->training && s->cell->dropout > 0;
    bool by_gates = drop && s->cell->recurrent_dropout > 0 && s->cell->gates > 1;
    ty_val w = keras_var_of(s->c, s->cell->layer, "kernel"), x = s->r->x;
    int64_t dim[] = {1, s->r->batch, ty_b_dim(s->g, x, 2)};
    if (drop && !by_gates)
        x = ty_b_mul(s->g, x, keras_drop_factor(s->c, s->cell->dropout, 3, dim));
    s->xw = by_gates ? input_by_gates(s, w) : product(s->g, x, w);
    ty_val bias = input_bias(s);
    if (bias != TY_NONE)
        s->xw = ty_b_add(s->g, s->xw, bias);
}

static void read_state_factors(recur *s)
{
    int64_t dim[] = {s->r->batch, s->cell->units};
    for (int k = 0; k < TY_RNN_MAX_GATES; k++)
        s->factor[k] = s->c->training && s->cell->recurrent_dropout > 0 && k < s->cell->gates
                           ? keras_drop_factor(s->c, s->cell->recurrent_dropout, 2, dim)
                           : TY_NONE;
}

/* ---- one step
 * --------------------------------------------------------------------------------------------------------
 */

static ty_val act(recur *s, ty_val x)
{
    return s->cell->activation ? keras_activation(s->c, s->cell->activation, x)
                               : keras_activation_named(s->c, "tanh", x);
}

static ty_val act_gate(recur *s, ty_val x)
{
    return s->cell->gate_activation ? keras_activation(s->c, s->cell->gate_activation, x)
                                    : keras_activation_named(s->c, "sigmoid", x);
}

static ty_val dropped(const recur *s, ty_val h, int k)
{
    return s->factor[k] == TY_NONE ? h : ty_b_mul(s->g, h, s->factor[k]);
}

/* The state's part of gates 0 to n - 1: [B, n H]. */
static ty_val state_part(const recur *s, ty_val h, int n)
{
    ty_val part[TY_RNN_MAX_GATES];
    if (s->factor[0] == TY_NONE || n == 1)
        return product(s->g, dropped(s, h, 0), ty_b_slice_axis(s->g, s->kernel, 1, 0, n * s->cell->units));
    for (int k = 0; k < n; k++)
        part[k] = product(s->g, dropped(s, h, k), gate(s, s->kernel, k));
    return ty_b_concat_many(s->g, part, n, 1);
}

static void step_simple(recur *s, ty_val xw, ty_val *state)
{
    state[0] = act(s, ty_b_add(s->g, xw, state_part(s, state[0], 1)));
}

static void step_gru(recur *s, ty_val xw, ty_val *state)
{
    ty_graph *g = s->g;
    int n = s->cell->reset_after ? 3 : 2;
    ty_val h = state[0], inner = state_part(s, h, n), fresh;
    if (s->bias != TY_NONE)
        inner = ty_b_add(g, inner, s->bias);
    ty_val z = act_gate(s, ty_b_add(g, gate(s, xw, 0), gate(s, inner, 0)));
    ty_val reset = act_gate(s, ty_b_add(g, gate(s, xw, 1), gate(s, inner, 1)));
    if (n == 3)
        fresh = ty_b_mul(g, reset, gate(s, inner, 2));
    else
        fresh = product(g, ty_b_mul(g, reset, dropped(s, h, 2)), gate(s, s->kernel, 2));
    fresh = act(s, ty_b_add(g, gate(s, xw, 2), fresh));
    ty_val keep = ty_b_sub(g, ty_b_full_like(g, z, 1), z);
    state[0] = ty_b_add(g, ty_b_mul(g, z, h), ty_b_mul(g, keep, fresh));
}

/* Gates i, f, c, o. */
static void step_lstm(recur *s, ty_val xw, ty_val *state)
{
    ty_graph *g = s->g;
    ty_val z = ty_b_add(g, xw, state_part(s, state[0], 4));
    ty_val i = act_gate(s, gate(s, z, 0)), f = act_gate(s, gate(s, z, 1));
    state[1] = ty_b_add(g, ty_b_mul(g, f, state[1]), ty_b_mul(g, i, act(s, gate(s, z, 2))));
    state[0] = ty_b_mul(g, act_gate(s, gate(s, z, 3)), act(s, state[1]));
}

static ty_val at_step(ty_graph *g, ty_val series, int64_t t)
{
    return ty_b_squeeze(g, ty_b_slice_axis(g, series, 0, t, t + 1), 0);
}

/* ---- all steps
 * -------------------------------------------------------------------------------------------------------
 */

/* The step at time t; *y is the output before it, then its own. */
static void run_step(recur *s, int64_t t, ty_val *y)
{
    static void (*const step[])(recur *, ty_val, ty_val *) = {step_simple, step_gru, step_lstm};
    keras_run *r = s->r;
    ty_val before[2] = {r->state[0], r->state[1]};
    step[s->cell->kind](s, at_step(s->g, s->xw, t), r->state);
    if (r->mask == TY_NONE) {
        *y = r->state[0];
        return;
    }
    ty_val live = at_step(s->g, r->mask, t);
    *y = ty_b_select(s->g, live, r->state[0], *y);
    for (int k = 0; k < 1 + (s->cell->kind == KERAS_CELL_LSTM); k++)
        r->state[k] = ty_b_select(s->g, live, r->state[k], before[k]);
}

static void run_steps(keras_run *r)
{
    keras_call *c = r->c;
    recur s = {.r = r, .c = c, .g = c->g, .cell = r->cell, .bias = TY_NONE};
    if (r->steps > MAX_STEPS) {
        keras_fail(c, TY_E_LIMIT,
                   "%s: %lld steps with a mask, an activation or a dropout that are computed step by step;"
                   " at most %d are possible",
                   c->layer->class_name, (long long)r->steps, MAX_STEPS);
        return;
    }
    ty_val *y = keras_alloc(c, (size_t)r->steps, sizeof *y);
    s.kernel = keras_var_of(c, r->cell->layer, "recurrent_kernel");
    read_input(&s);
    read_state_factors(&s);
    ty_val last = ty_b_full_like(c->g, r->state[0], 0);
    for (int64_t k = 0; k < r->steps && !c->failed; k++) {
        run_step(&s, r->backward ? r->steps - 1 - k : k, &last);
        y[k] = ty_b_unsqueeze(c->g, last, 0);
    }
    r->y = c->failed ? TY_NONE : ty_b_concat_many(c->g, y, (int)r->steps, 0);
}

bool keras_run_cell(keras_run *r)
{
    r->y = TY_NONE;
    if (!keras_run_whole(r) && !r->c->failed)
        run_steps(r);
    return !r->c->failed && r->y != TY_NONE;
}
