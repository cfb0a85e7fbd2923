/* opened.h - a Parquet file of which only what is wanted is read: its footer, and columns of row groups one by one.
 *
 * Nothing is mapped. That suits files which are larger than memory, and those that an object store sends when they are
 * read: one request for the end of the file, one for each column of a row group.
 */
#ifndef TY_CONTAINER_INPUT_PARQUET_OPENED_H
#define TY_CONTAINER_INPUT_PARQUET_OPENED_H

#include "container/input/parquet/parquet.h"

typedef struct parquet_opened {
    int fd; /* -1: closed */
    parquet_file file;
    ty_arena arena; /* of the footer */
} parquet_opened;

/* n_bytes: the file must be so long; -1: it may have any length. The error names the file. On failure nothing is open.
 */
int parquet_opened_open(const char *path, int64_t n_bytes, parquet_opened *out, ty_error *err);
void parquet_opened_close(parquet_opened *o); /* one that is closed is fine */

/* As parquet_read. Any thread, each with a room of its own. */
int parquet_opened_read(const parquet_opened *o, int group, int column, parquet_room *room, parquet_values *out,
                        ty_error *err);

#endif
