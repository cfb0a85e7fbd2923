/* opened.h - a table in a file of which only what is wanted is read: of Parquet its footer, of Arrow (arrow/arrow.h)
 * its messages, and columns of row groups one by one.
 *
 * Nothing is mapped. That suits files which are larger than memory, and those that an object store sends when they are
 * read: one request for the end of the file, one for each column of a row group. A file that is compressed as a whole
 * is inflated, and lies in memory.
 */
#ifndef TY_CONTAINER_INPUT_PARQUET_OPENED_H
#define TY_CONTAINER_INPUT_PARQUET_OPENED_H

#include "container/input/bytes.h"
#include "container/input/parquet/parquet.h"

typedef struct parquet_opened {
    const char *path; /* borrowed */
    int fd;           /* -1: closed, or at rest */
    ty_bytes whole;   /* if it was compressed */
    int64_t n_bytes;  /* as it lies there */
    parquet_file file;
    struct arrow_file *arrow; /* NULL: it is Parquet */
} parquet_opened;

/* The footer lies in the arena. n_bytes: the file must be so long; -1: it may have any length. The error names the
 * file. On failure nothing is open. */
int parquet_opened_open(const char *path, int64_t n_bytes, ty_arena *a, parquet_opened *out, ty_error *err);
/* Gives the descriptor back until something is read, for each read anew: of many files at once. */
void parquet_opened_rest(parquet_opened *o);
void parquet_opened_close(parquet_opened *o); /* one that is closed is fine */

/* As parquet_read. Any thread, each with a room of its own. */
int parquet_opened_read(const parquet_opened *o, int group, int column, int64_t most, parquet_room *room,
                        parquet_values *out, ty_error *err);

#endif
