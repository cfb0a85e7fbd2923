/* rows.h - the columns that are wanted of all files, in memory, by row.
 *
 * A file's rows stand one behind the other, its row groups as they come, and files in their order: a row is a number.
 * Columns are found by name in each file, wherever they stand in it.
 */
#ifndef TY_CONTAINER_INPUT_PARQUET_ROWS_H
#define TY_CONTAINER_INPUT_PARQUET_ROWS_H

#include "container/input/parquet/opened.h"

#include <stdatomic.h>

typedef struct rows_group {
    int64_t first, n;      /* rows */
    _Atomic int left;      /* private: columns that are not there yet */
    parquet_values *value; /* [n_columns] */
    const void *
        *plain;     /* [n_columns] their v where a row is an element, all are there and of the joined form; else NULL */
    bool has_nulls; /* in any of them */
} rows_group;

typedef struct parquet_rows {
    const char *const *path; /* [n_files]; borrowed */
    parquet_opened *opened;  /* [n_files] at rest */
    int n_files;
    const parquet_column **column; /* [n_columns] that are wanted, as the first file has them */
    int n_columns;
    struct rows_pool *pool; /* private, while columns are read */
    struct rows_part *part; /* [n_parts] private */
    int n_parts;
    parquet_form
        *form; /* [n_columns] that holds the values of all files: some may have integers where others have doubles */
    rows_group *group;
    int n_groups;
    int64_t n_rows;
    bool first_only; /* the first row group of the first file is enough */
    /* All columns of a group are there: by the thread that has read the last one, which may give them back. NULL:
     * nothing is to be done. */
    void (*done)(void *ctx, int group);
    void *ctx;
    _Atomic bool failed; /* private: a column could not be read */
} parquet_rows;

/* Which row groups there are, and whether they have the columns. opened, path, column and first_only are filled. */
int parquet_rows_plan(parquet_rows *r, ty_arena *a, ty_error *err);
/* Then: reads all that is wanted, in so many threads. What is made lies in the arena but for values. On failure nothing
 * of them is left. */
int parquet_rows_read(parquet_rows *r, int n_threads, ty_arena *a, ty_error *err);
void parquet_rows_fini(parquet_rows *r);
/* For `done`: a group's values are not needed any more; their memory is for others. */
void parquet_rows_give_back(parquet_rows *r, int group);

/* The group that holds a row. */
const rows_group *parquet_rows_group(const parquet_rows *r, int64_t row);

/* "FILE: row N", by the file's own rows. */
void parquet_rows_place(const parquet_rows *r, int64_t row, char *out, size_t n);

/* Number of the column of that name; where there is none, of "NAME.bytes", as data sets of pictures and sounds are
 * written; -1: none. */
int parquet_find_column(const parquet_file *f, const char *name);

/* Where a file has a column that `like`, another file, has: its number; -1: it has none, or one of another kind. The
 * caller names the file. */
int parquet_match_column(const parquet_file *f, const parquet_column *wanted, const char *like, ty_error *err);
/* What holds both: integers of any width are 64 bits, numbers of several kinds doubles. */
parquet_form parquet_join(parquet_form a, parquet_form b);

/* Memory that a column of a row group takes when it is decoded, as the footer says. */
int64_t parquet_chunk_memory(const parquet_file *f, int group, int column);
/* The same of several, one after the other in column: [n]. */
int64_t parquet_group_memory(const parquet_file *f, int group, const int *column, int n);
/* Memory that values take. */
int64_t parquet_rows_bytes(const parquet_rows *r);

#endif
