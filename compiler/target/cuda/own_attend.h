/* own_attend.h - what attention in tiles and its gradient have in common, as kernels for a GPU (own_attend_tile.c).
 * Used by own_attend.c and own_attend_grad.c alone; how they work is said there.
 */
#ifndef TY_TARGET_CUDA_OWN_ATTEND_H
#define TY_TARGET_CUDA_OWN_ATTEND_H

#include "compiler/ops/attend.h"
#include "compiler/target/cuda/own.h"

/* Operands by number, of the gradient all six; its results come behind them. */
enum { TY_OWN_ATTEND_Q, TY_OWN_ATTEND_K, TY_OWN_ATTEND_V, TY_OWN_ATTEND_Y, TY_OWN_ATTEND_LSE, TY_OWN_ATTEND_DY };

/* Bytes that a kernel's text may have. */
enum { TY_OWN_ATTEND_TEXT = 1 << 16 };

typedef struct ty_own_attend {
    ty_dtype dtype;
    ty_attend_sizes a;
    double scale;
    bool wide; /* heads of more than 64 numbers */
} ty_own_attend;

/* What a kernel keeps of a warp's rows, and what it goes through at a time. */
typedef struct ty_own_attend_shape {
    int mt, other; /* times 16 rows a warp; rows of a tile, of which keys go through SUB at a time */
    bool keys;     /* a block has keys, not queries */
} ty_own_attend_shape;

/* UNSUPPORTED: numbers that are not 16-bit, heads that are no multiple of 16 up to 128, or 2^31 rows. */
int ty_own_attend_read(const ty_cuda_own *o, ty_own_attend *out, ty_error *err);
/* Of a block. */
int ty_own_attend_rows(const ty_own_attend_shape *shape);

/* ---- text, in the order in which a kernel has it ---- */

/* Behind the parameters: constants, macros, and what a tile is. */
void ty_own_attend_open(const ty_own_attend *x, const ty_own_attend_shape *shape, ty_buf *text);
/* Where q, k and v, or their gradients, are parts of one tensor: behind q's heads are k's, and v's behind those. */
void ty_own_attend_behind(const ty_own_attend *x, const char *name, int part, ty_buf *text);
/* Opens the loop over a block's items: tiles of ROWS of `rows` rows, of each of `heads` heads, of each `outer`. Where
 * there is a mask, those with most to do come first. */
void ty_own_attend_items(const char *rows, const char *heads, bool last_first, ty_buf *text);
/* Through tiles of keys and values, of which the first is asked for, to the scores p of each. */
extern const char ty_own_attend_keys[];
/* Of a tile on the edge of what is seen: scores that are not are never the greatest, and nothing of the sum. */
extern const char ty_own_attend_mask[];
/* The kernel is done; text is freed. which, n: its operands and results (own.h). */
void ty_own_attend_launch(const ty_cuda_own *o, const ty_own_attend *x, const ty_own_attend_shape *shape, ty_buf *text,
                          const int *which, int n);

#endif
