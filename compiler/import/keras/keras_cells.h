/* keras_cells.h - recurrent cells and how a sequence goes through them. Private to compiler/import/keras.
 *
 * A stack of cells equals its cells one behind the other, each over the whole sequence: a masked step keeps the states
 * of all of them, and what it hands from cell to cell is never used.
 */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_CELLS_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_CELLS_H

#include "compiler/import/keras/keras.h"
#include "compiler/ops/recurrence.h"

typedef enum keras_cell_kind { KERAS_CELL_SIMPLE, KERAS_CELL_GRU, KERAS_CELL_LSTM, KERAS_CELL_STACK } keras_cell_kind;

enum { KERAS_MAX_STATES = 64 };

/* What create() of a cell leaves in layer->note. */
typedef struct keras_cell {
    keras_cell_kind kind;
    keras_layer *layer;
    int gates; /* blocks of units columns in the kernels */
    int64_t units;
    bool use_bias, reset_after;
    double dropout, recurrent_dropout;          /* rates; 0 where the layer has none that acts */
    const ty_doc *activation, *gate_activation; /* NULL: linear, or the defaults: */
    const char *name, *gate_name;               /* "tanh", "sigmoid"; NULL: nothing that a name says */
    keras_layer **part;                         /* of a stack */
    int n_parts;
} keras_cell;

/* The cell that a layer is; NULL if it is none (nothing has failed). The layer has been created. */
const keras_cell *keras_cell_of(const keras_layer *layer);
/* Number of states, and their widths. */
int keras_cell_states(const keras_cell *cell, int64_t *width);
/* Width of an output. */
int64_t keras_cell_width(const keras_cell *cell);

/* A sequence on its way through one cell. */
typedef struct keras_run {
    keras_call *c;
    const keras_cell *cell;
    int64_t steps, batch;
    ty_val x;          /* [T, B, I], in the order of time */
    ty_val mask;       /* bool [T, B, 1] or TY_NONE: false, the step keeps states and output */
    bool backward;     /* from the last step to the first */
    bool wants_states; /* state[] is read afterwards */
    ty_val state[2];   /* [B, H] before, then after all steps: h, and an LSTM's c */
    ty_val y;          /* result [T, B, H], in the order in which steps were made */
} keras_run;

/* keras_recur.c. Not for stacks. False: failed. */
bool keras_run_cell(keras_run *r);
/* The cell as one `rnn`: keras_recur_whole.c. False: it does not fit, and nothing was done. */
bool keras_run_whole(keras_run *r);

/* What create() of LSTM, GRU, SimpleRNN and RNN leaves in layer->note. Bidirectional changes it. */
typedef struct keras_rnn {
    const keras_cell *cell;
    bool sequences, states, backwards;
    bool zero_masked; /* outputs of masked steps are zeros, not repeated */
} keras_rnn;
keras_rnn *keras_rnn_of(const keras_layer *layer); /* NULL: another class, or not created */

/* The layer's dropout as a factor [1, width] .. of shape dim: 0 or 1 / (1 - rate). */
ty_val keras_drop_factor(keras_call *c, double rate, int rank, const int64_t *dim);

#endif
