/* native_rnn.h - between the loops over time (native_rnn.c) and what a step does beside its product
 * (native_rnn_cell.c).
 *
 * A tile is some rows of the batch by some hidden units. The product leaves the state's part of a tile's gates in
 * `sum`; a cell function makes of it what the step leaves behind. All pointers of a step are to its first row.
 */
#ifndef TY_TARGET_CPU_NATIVE_RNN_H
#define TY_TARGET_CPU_NATIVE_RNN_H

#include "compiler/ops/recurrence.h"

typedef struct ty_rnn_tile {
    int64_t row, rows, unit, units;
    const float *sum;             /* of the tile's first row and unit */
    int64_t sum_row, sum_product; /* floats from a row's sums to the next row's; from a product's to the next one's */
} ty_rnn_tile;

/* One step forward. */
typedef struct ty_rnn_step {
    const float *xw, *bias; /* [B, G H]; [G H (+ H)] */
    const float *h, *c;     /* [B, H]; c: LSTM */
    float *gates;           /* [B, G H] */
    float *kept;            /* [B, H]: LSTM: c'; GRU: see rnn_steps.c */
    float *h_new;           /* [B, H] */
} ty_rnn_step;

/* One step back. */
typedef struct ty_rnn_back {
    const float *dy;        /* [B, H] */
    const float *h, *h_new; /* [B, H] before and after the step */
    const float *c, *c_new; /* LSTM */
    const float *gates;     /* [B, G H] */
    const float *kept;      /* GRU */
    float *carry;           /* [B, H]: LSTM: the gradient of c; GRU: the part of h's gradient that skips the gates */
    float *dpre, *drec;     /* [B, G H]; drec == dpre unless the two differ */
} ty_rnn_back;

typedef void ty_rnn_cell_fn(const ty_recurrence *r, const ty_rnn_tile *tile, const ty_rnn_step *s);
typedef void ty_rnn_back_fn(const ty_recurrence *r, const ty_rnn_tile *tile, const ty_rnn_back *s);

ty_rnn_cell_fn ty_rnn_cell_vanilla, ty_rnn_cell_gru, ty_rnn_cell_lstm;
ty_rnn_back_fn ty_rnn_back_vanilla, ty_rnn_back_gru, ty_rnn_back_lstm;
/* GRU with the reset before the product, in two parts: z, r and r h; then n and h. Back: n and z; then r, whose sum is
 * the product of n's gradient. */
ty_rnn_cell_fn ty_rnn_cell_reset, ty_rnn_cell_new;
ty_rnn_back_fn ty_rnn_back_new, ty_rnn_back_reset;

#endif
