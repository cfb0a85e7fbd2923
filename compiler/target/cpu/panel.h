/* panel.h - the inner loops of float32 products: c [rows, 32] = a [rows, k] b [k, 32], with b packed as a panel.
 *
 * oneDNN packs its operands in every call, or multiplies them where they lie. The first is as much work as the product
 * itself where the left side has a few dozen rows that meet the same matrix again and again: a step of a recurrence
 * (native_rnn.c). The second is slow where rows lie a power of two apart (native_dot.c). Here the matrix is packed
 * into panels of 32 columns, each [k, 32], and multiplied panel by panel. The left side is read where it lies if its
 * rows are contiguous; else it is packed into tiles.
 *
 * Every element is one sum in the order of k, whatever the number of rows: the bits do not depend on how rows and
 * panels are dealt to threads. They do depend on whether the machine has fused multiply-add.
 */
#ifndef TY_TARGET_CPU_PANEL_H
#define TY_TARGET_CPU_PANEL_H

#include <stdbool.h>
#include <stdint.h>

#define TY_PANEL 32

/* A panel of `depth` rows lies as strips of `strip` columns, each [depth, strip]: its element (i, j) is
 * panel[(j / strip * depth + i) * strip + j % strip]. Its rows from i on begin at panel + i * strip. It begins at a
 * multiple of 64 bytes. */

/* Panels of n columns. */
static inline int64_t ty_panels_of(int64_t n)
{
    return (n + TY_PANEL - 1) / TY_PANEL;
}

/* c[r * c_step + j] = sum over i < k of a[r * a_step + i] panel(i, j), added to what is there if `adds`. All 32 columns
 * are written. */
typedef void ty_panel_rows_fn(const float *a, int64_t a_step, int64_t rows, int64_t k, const float *panel,
                              int64_t depth, float *c, int64_t c_step, bool adds);
/* The same of a turned left side: its element (r, i) is a[i * a_step + r]. For a few dozen columns: rows far apart in a
 * should be packed. */
typedef ty_panel_rows_fn ty_panel_columns_fn;
/* The same as `rows` and `columns` where what they step over lies at `at`: a's element (r, i) is a[r * a_step + at[i]],
 * or turned a[i * a_step + at[r]]. */
typedef void ty_panel_rows_at_fn(const float *a, int64_t a_step, const int64_t *at, int64_t rows, int64_t k,
                                 const float *panel, int64_t depth, float *c, int64_t c_step, bool adds);
typedef ty_panel_rows_at_fn ty_panel_columns_at_fn;
/* The same with a packed by pack_tiles. */
typedef void ty_panel_tiles_fn(const float *tiles, int64_t rows, int64_t k, const float *panel, int64_t depth, float *c,
                               int64_t c_step, bool adds);
/* Packs rows of a whose element (r, i) is a[i * k_step + r]: rows * k floats. */
typedef void ty_panel_pack_tiles_fn(float *tiles, const float *a, int64_t rows, int64_t k, int64_t k_step);
/* panel(i, j) <- b[i * step + j], or turned b[j * step + i], for i < k and j < n; zeros for the other columns. */
typedef void ty_panel_pack_fn(float *panel, int64_t depth, const float *b, int64_t step, int64_t k, int64_t n);
/* b[j * step + i] <- panel(i, j), for i < k and j < n. */
typedef void ty_panel_unpack_fn(float *b, int64_t step, const float *panel, int64_t depth, int64_t k, int64_t n);

typedef struct ty_panel_kernels {
    const char *name;
    int tile_rows; /* at most, whose sums lie in registers */
    int strip;
    ty_panel_rows_fn *rows;
    ty_panel_columns_fn *columns;
    ty_panel_rows_at_fn *rows_at;
    ty_panel_columns_at_fn *columns_at;
    ty_panel_tiles_fn *tiles;
    ty_panel_pack_tiles_fn *pack_tiles;
    ty_panel_pack_fn *pack, *pack_turned;
    ty_panel_unpack_fn *unpack_turned;
} ty_panel_kernels;

#define TY_PANEL_KINDS 3
/* Those that this machine can run, the quickest first; returns their number. */
int ty_panel_usable(const ty_panel_kernels *out[TY_PANEL_KINDS]);
const ty_panel_kernels *ty_panel_best(void);

/* The same for bfloat16: what is called a float of a, b and the panel is two neighbours in the sum, the first in the
 * lower half; k, depth and the steps of a and b count pairs, c has floats. Where the sum goes down a matrix, neighbours
 * are in two rows: a of pack_tiles and b of pack have bfloat16 in place of floats, and their steps count those, from
 * row to row. columns, rows_at, columns_at and unpack_turned are NULL. A pair's products are added up in an order of
 * the machine's own, and subnormal numbers are zeros. NULL: this machine has no such instruction. */
const ty_panel_kernels *ty_panel_pairs(void);

#endif
