/* packing.h - a row of a table as bytes of its own: what a stream keeps in its shuffle buffer and in batches.
 *
 *     8 bytes    how many follow, a multiple of 8
 *     fixed      numbers of 8 bytes, then of 4, each column's at its place; then a byte for each of them, 1: null
 *     the rest   of each column of lists, texts or bytes, in their order:
 *                0, n, n_bytes, has_null: 8 bytes each; n elements; if has_null n bytes, 1: null; n_bytes of what
 *                texts are made of; each padded to a multiple of 8
 *
 * A list's elements are found as those of row 0 by {0, n}, and so a packed row reads as columns of one row without
 * being copied. It never leaves the process.
 */
#ifndef TY_CONTAINER_INPUT_PARQUET_PACKING_H
#define TY_CONTAINER_INPUT_PARQUET_PACKING_H

#include "container/input/parquet/rows.h"

#define PARQUET_PACKED_HEAD 8

typedef struct parquet_packing {
    const parquet_column *const *column; /* [n_columns] as the first file has them */
    const parquet_form *form;            /* [n_columns] as they are packed */
    int n_columns, n_fixed;
    size_t *at;          /* [n_columns] of a number in the fixed part */
    int *fixed;          /* [n_columns] its number among those; -1: it is in the rest */
    size_t nulls;        /* where their nulls begin */
    size_t n_head;       /* bytes of the fixed part */
    const char *like;    /* the first file */
    int64_t group_bytes; /* memory of the largest row group's columns; who reads has two at a time (flow.h) */
} parquet_packing;

/* r->column and r->form, which are borrowed. */
void parquet_packing_init(parquet_packing *p, const parquet_rows *r, ty_arena *a);

/* Bytes of a row with its head. v: [n_columns] */
size_t parquet_packed_bytes(const parquet_packing *p, const parquet_values *v, int64_t row);
/* Rows [from, from + n), the i-th at out + at[i]. */
void parquet_pack_rows(const parquet_packing *p, const parquet_values *v, int64_t from, int64_t n, const size_t *at,
                       uint8_t *out);
/* Columns of one row, that of the last parquet_unpack_row: of numbers only their values and nulls change from row to
 * row.
 */
typedef struct parquet_unpacked {
    parquet_values *v;  /* [n_columns] */
    const void **plain; /* [n_columns] as in rows_group */
    bool has_nulls;
    uint8_t *row; /* private: its bytes */
    size_t room;
} parquet_unpacked;

/* A row of n bytes, without its head. u: zeroed before the first of them. */
int parquet_unpack_row(const parquet_packing *p, parquet_unpacked *u, const uint8_t *row, size_t n, ty_error *err);
void parquet_unpacked_fini(parquet_unpacked *u); /* a zeroed one is fine */

#endif
