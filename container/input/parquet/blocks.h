/* blocks.h - fields that are numbers, row by row: made as columns are decoded, so that reading a sample is one copy.
 *
 * A block is [rows, row_bytes] in the field's batch type. When all columns of a row group are there its rows are
 * filled, in tiles that fit the first cache, by the thread that decoded the last of them, and the columns are given
 * back.
 */
#ifndef TY_CONTAINER_INPUT_PARQUET_BLOCKS_H
#define TY_CONTAINER_INPUT_PARQUET_BLOCKS_H

#include "container/input/dataset.h"
#include "container/input/parquet/rows.h"

typedef struct block_field {
    const ty_field *declared; /* missing: of one column as it goes into the batch, of several as it is stored */
    const int32_t *column;    /* [n_columns] of those that are read */
    int32_t n_columns;
    int64_t min, max; /* of the batch type, if an integer */
    uint8_t *data;
    ty_field_info *seen; /* [n_groups] samples count from the group's first */
} block_field;

typedef struct parquet_blocks {
    parquet_rows *rows;
    ty_field_info *info; /* [n_fields] types are there; ranges come when all are filled */
    block_field *field;
    int n_fields;
    struct block_fault *fault; /* [n_faults] private, one a group */
    int n_faults;
} parquet_blocks;

/* Reads all, in so many threads; r has been planned. The error has its place. */
int parquet_blocks_read(parquet_blocks *b, int n_threads, ty_arena *a, ty_error *err);
void parquet_blocks_fini(parquet_blocks *b);

#endif
