/* keras_cells.c - LSTMCell, GRUCell, SimpleRNNCell, StackedRNNCells: weights, and one step of a cell that is called by
 * itself. */
#include "compiler/import/keras/keras_cells.h"

#include <stdio.h>
#include <string.h>

static double cell_rate(keras_call *c, const char *key)
{
    double rate = keras_number(c, key, 0);
    return rate > 0 && rate < 1 ? rate : 0;
}

/* The function under a key, which is `usual` where there is no such key, and linear where it is null. */
static const ty_doc *cell_activation(const keras_call *c, const char *key, const char *usual, const char **name)
{
    const ty_doc *given = ty_doc_find(c->config, key);
    *name = given ? keras_activation_name(given) : usual;
    return given;
}

static void cell_weights(keras_call *c, const keras_cell *cell)
{
    int64_t wide = cell->gates * cell->units;
    int64_t in = ty_b_dim(c->g, c->in[0], ty_b_rank(c->g, c->in[0]) - 1);
    keras_add_weight(c, &(keras_spec){.label = "kernel",
                                      .rank = 2,
                                      .dim = {in, wide},
                                      .initializer = "kernel_initializer",
                                      .regularizer = "kernel_regularizer",
                                      .constraint = "kernel_constraint"});
    keras_add_weight(c, &(keras_spec){.label = "recurrent_kernel",
                                      .rank = 2,
                                      .dim = {cell->units, wide},
                                      .initializer = "recurrent_initializer",
                                      .initializer_absent = "orthogonal",
                                      .regularizer = "recurrent_regularizer",
                                      .constraint = "recurrent_constraint"});
    keras_spec bias = {.label = "bias",
                       .rank = 1,
                       .dim = {wide},
                       .initializer = "bias_initializer",
                       .initializer_absent = "zeros",
                       .regularizer = "bias_regularizer",
                       .constraint = "bias_constraint"};
    if (cell->reset_after) {
        bias.rank = 2;
        bias.dim[0] = 2;
        bias.dim[1] = wide;
    }
    if (cell->kind == KERAS_CELL_LSTM && keras_flag(c, "unit_forget_bias", true)) {
        bias.ones_lo = cell->units;
        bias.ones_hi = 2 * cell->units;
    }
    if (cell->use_bias)
        keras_add_weight(c, &bias);
}

void keras_create_cell(keras_call *c)
{
    static const int gates[] = {[KERAS_CELL_SIMPLE] = 1, [KERAS_CELL_GRU] = 3, [KERAS_CELL_LSTM] = 4};
    keras_cell *cell = keras_keep(c, 1, sizeof *cell);
    *cell = (keras_cell){.kind = (keras_cell_kind)c->layer->row->arg, .layer = c->layer};
    cell->gates = gates[cell->kind];
    cell->units = keras_int(c, "units", 0);
    if (cell->units < 1 && !c->failed)
        keras_fail_key(c, "units", "must be at least 1");
    cell->use_bias = keras_flag(c, "use_bias", true);
    cell->reset_after = cell->kind == KERAS_CELL_GRU && keras_flag(c, "reset_after", true);
    cell->dropout = cell_rate(c, "dropout");
    cell->recurrent_dropout = cell_rate(c, "recurrent_dropout");
    cell->activation = cell_activation(c, "activation", "tanh", &cell->name);
    if (cell->kind != KERAS_CELL_SIMPLE)
        cell->gate_activation = cell_activation(c, "recurrent_activation", "sigmoid", &cell->gate_name);
    if (c->failed)
        return;
    c->layer->note = cell;
    cell_weights(c, cell);
}

/* ---- stacks ------------------------------------------------------------------------------------------------------
 */

static const char *stack_class(const ty_doc *cells, size_t at)
{
    const ty_doc *name = ty_doc_find(ty_doc_at(cells, at), "class_name");
    return name && name->kind == TY_DOC_STRING ? name->string : "";
}

/* How Keras numbers the layers of a list in a file: by class, in order. */
static const char *stack_place(keras_call *c, const ty_doc *cells, size_t at)
{
    static const struct {
        const char *class_name, *snake;
    } known[] = {{"LSTMCell", "lstm_cell"}, {"GRUCell", "gru_cell"}, {"SimpleRNNCell", "simple_rnn_cell"}};
    const char *class_name = stack_class(cells, at), *snake = "cell";
    int earlier = 0;
    for (size_t i = 0; i < at; i++)
        earlier += strcmp(stack_class(cells, i), class_name) == 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].class_name, class_name) == 0)
            snake = known[i].snake;
    char *place = keras_keep(c, 64, 1);
    snprintf(place, 64, earlier ? "cells/%s_%d" : "cells/%s", snake, earlier);
    return place;
}

void keras_create_stack(keras_call *c)
{
    const ty_doc *cells = keras_config(c, "cells");
    int n = (int)ty_doc_len(cells);
    if (n < 1 || n > KERAS_MAX_STATES / 2) {
        keras_fail_key(c, "cells", "must be a list of 1 to %d cells", KERAS_MAX_STATES / 2);
        return;
    }
    keras_cell *stack = keras_keep(c, 1, sizeof *stack);
    *stack = (keras_cell){.kind = KERAS_CELL_STACK, .layer = c->layer};
    stack->part = keras_keep(c, (size_t)n, sizeof *stack->part);
    ty_val x = c->in[0];
    for (; stack->n_parts < n; stack->n_parts++) {
        keras_layer *sub =
            keras_sub(c, stack_place(c, cells, (size_t)stack->n_parts), ty_doc_at(cells, (size_t)stack->n_parts), NULL);
        if (!sub || !keras_create_layer(c, sub, &x, 1))
            return;
        const keras_cell *cell = keras_cell_of(sub);
        if (!cell || cell->kind == KERAS_CELL_STACK) {
            keras_fail(c, TY_E_UNSUPPORTED, "StackedRNNCells: a %s cannot be one of its cells", sub->class_name);
            return;
        }
        stack->part[stack->n_parts] = sub;
        x = ty_b_full(c->g, TY_F32, 2, (int64_t[]){ty_b_dim(c->g, x, 0), keras_cell_width(cell)}, 0);
    }
    c->layer->note = stack;
}

/* ---- what is known of a cell ---------------------------------------------------------------------------------------
 */

const keras_cell *keras_cell_of(const keras_layer *layer)
{
    bool is_cell = layer->row && (layer->row->create == keras_create_cell || layer->row->create == keras_create_stack);
    return is_cell ? layer->note : NULL;
}

int64_t keras_cell_width(const keras_cell *cell)
{
    return cell->kind == KERAS_CELL_STACK ? keras_cell_width(keras_cell_of(cell->part[cell->n_parts - 1]))
                                          : cell->units;
}

int keras_cell_states(const keras_cell *cell, int64_t *width)
{
    int n = 0;
    for (int i = 0; i < cell->n_parts && n < KERAS_MAX_STATES; i++)
        n += keras_cell_states(keras_cell_of(cell->part[i]), width + n);
    if (cell->kind == KERAS_CELL_STACK)
        return n;
    width[0] = width[1] = cell->units;
    return cell->kind == KERAS_CELL_LSTM ? 2 : 1;
}

/* ---- a cell called by itself: cell(x [B, I], states) -> output, states
 * -----------------------------------------------
 */

void keras_call_cell(keras_call *c)
{
    ty_graph *g = c->g;
    const keras_cell *cell = keras_cell_of(c->layer);
    const keras_arg *states = keras_argument(c, 1, "states");
    keras_run r = {.c = c, .cell = cell, .steps = 1, .mask = TY_NONE, .wants_states = true};
    int n = keras_cell_states(cell, (int64_t[KERAS_MAX_STATES]){0});
    if (cell->kind == KERAS_CELL_STACK || !states || ty_b_rank(g, c->in[0]) != 2) {
        keras_fail(c, TY_E_UNSUPPORTED, "%s: called by itself it needs an input of 2 dimensions and its states",
                   c->layer->class_name);
        return;
    }
    for (int i = 0; i < n; i++) {
        const keras_arg *state = states->kind == KERAS_LIST && i < states->n_items ? &states->item[i] : states;
        r.state[i] = state->kind == KERAS_TENSOR ? state->val : TY_NONE;
    }
    r.batch = ty_b_dim(g, c->in[0], 0);
    r.x = ty_b_unsqueeze(g, keras_float(c, c->in[0]), 0);
    if (!keras_run_cell(&r))
        return;
    keras_set(c, 0, ty_b_squeeze(g, r.y, 0));
    for (int i = 0; i < n; i++)
        keras_set(c, i + 1, r.state[i]);
}
