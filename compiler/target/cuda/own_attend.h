/* own_attend.h - what attention in tiles and its gradient have in common, as kernels for a GPU (own_attend_tile.c).
 * Used by own_attend.c and own_attend_grad.c alone; how they work is said there.
 */
#ifndef TY_TARGET_CUDA_OWN_ATTEND_H
#define TY_TARGET_CUDA_OWN_ATTEND_H

#include "compiler/ops/attend.h"
#include "compiler/target/cuda/own.h"

/* Operands by number, of the gradient all six; a mask if there is one, a seed and a step; results come behind them. */
enum { TY_OWN_ATTEND_Q, TY_OWN_ATTEND_K, TY_OWN_ATTEND_V, TY_OWN_ATTEND_Y, TY_OWN_ATTEND_LSE, TY_OWN_ATTEND_DY };

/* Bytes that a kernel's text may have. */
enum { TY_OWN_ATTEND_TEXT = 1 << 16 };

typedef struct ty_own_attend {
    ty_dtype dtype;
    ty_attend_sizes a;
    double scale;
    bool wide; /* heads of more than 64 numbers */
    bool masked;
    ty_attend_mask mask;
    bool drops;
    ty_attend_dropout dropout;
    int n_in; /* operands */
} ty_own_attend;

/* The number of the gradient of operand q, k or v: where these are parts of one tensor, so are their gradients. */
static inline int ty_own_attend_result(const ty_own_attend *x, int part)
{
    return x->n_in + (x->a.packed ? 0 : part);
}

/* Operands and results of a kernel, in the order of its parameters: operands first, a mask behind them. */
typedef struct ty_own_attend_operands {
    int at[12], n;
} ty_own_attend_operands;

/* All operands, and `more` numbers. */
ty_own_attend_operands ty_own_attend_operands_of(const ty_own_attend *x, const int *more, int n_more);
/* The mask's parameter, with a comma behind it; "" without one. Those of dropout likewise. */
const char *ty_own_attend_parameter(const ty_own_attend *x);
const char *ty_own_attend_drawn(const ty_own_attend *x);

/* What a kernel keeps of a warp's rows, and what it goes through at a time. */
typedef struct ty_own_attend_shape {
    int mt, other; /* times 16 rows a warp; rows of a tile, of which keys go through SUB at a time */
    int group;     /* rows of a tile where warps multiply together; 0: they never do */
    bool keys;     /* a block has keys, not queries */
    bool small;    /* three blocks have room where warps multiply together */
    int bytes;     /* of shared memory that a block asks for there */
} ty_own_attend_shape;

/* UNSUPPORTED: numbers that are not 16-bit, heads that are no multiple of 16 up to 128, or 2^31 rows. */
int ty_own_attend_read(const ty_cuda_own *o, ty_own_attend *out, ty_error *err);
/* Of a block. */
int ty_own_attend_rows(const ty_own_attend_shape *shape);

/* ---- text, in the order in which a kernel has it ---- */

/* Of ty_own_attend_open: words for dropout. */
void ty_own_attend_drop_words(const ty_own_attend *x, ty_buf *text);
/* Behind the parameters: constants, macros, and what a tile is. */
void ty_own_attend_open(const ty_own_attend *x, const ty_own_attend_shape *shape, ty_buf *text);
/* Where q, k and v, or their gradients, are parts of one tensor: behind q's heads are k's, and v's behind those. */
void ty_own_attend_behind(const ty_own_attend *x, const char *name, int part, ty_buf *text);
/* Memory for rows that are kept, where warps multiply together. */
void ty_own_attend_kept(const char *name, ty_buf *text);
/* Opens the loop over a block's items: tiles of ROWS queries, or keys, of each head, of each `outer`. Where there is a
 * mask, those of some heads with most to do come first. */
void ty_own_attend_items(const ty_own_attend *x, const ty_own_attend_shape *shape, ty_buf *text);
/* Through tiles of keys and values, of which the first is asked for, ks and vs. */
extern const char ty_own_attend_keys[];
/* What is not seen of a tile's scores, and what a mask does to them: of all p[t] where each warp multiplies by itself;
 * or by group, of the scores `of` of one t. */
void ty_own_attend_mask(const ty_own_attend *x, bool by_group, ty_buf *text);

/* ---- of the gradient (own_attend_grad.c), its kernel for short sequences in own_attend_short.c ---- */

/* Parameters, what `results` are called behind them, and all that ty_own_attend_open adds. */
void ty_own_attend_back(const ty_own_attend *x, const ty_own_attend_shape *shape, const char *results, ty_buf *text);
/* Of each of a thread's rows: d, the sum of y dy. What is done with it follows, and closes two loops. */
extern const char ty_own_attend_delta[];

/* Which sums over queries a kernel has; the text of its products of keys with queries, of a test for keys that there
 * are not, of how far the sums of a pair of queries are from those of the next in most_at and less_at, and of the head
 * of the queries. */
typedef struct ty_own_attend_sums_of {
    bool dk, dv;
    const char *products, *keys_end, *pairs, *head;
} ty_own_attend_sums_of;

void ty_own_attend_sums(const ty_own_attend_sums_of *of, ty_buf *text);
/* What a few queries add to the sums of the warp's keys; and the sums into memory, which ends the kernel. */
extern const char ty_own_attend_few[], ty_own_attend_store[];

/* Whether a block has registers for all sums of a head's keys, and sees all of its queries; then the kernel. */
bool ty_own_attend_is_short(const ty_own_attend *x);
void ty_own_attend_short(const ty_cuda_own *o, const ty_own_attend *x);

/* The kernel is done; text is freed. which, n: its operands and results (own.h). */
void ty_own_attend_launch(const ty_cuda_own *o, const ty_own_attend *x, const ty_own_attend_shape *shape, ty_buf *text,
                          ty_own_attend_operands which);

#endif
