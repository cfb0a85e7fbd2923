/* arrow.h - Arrow's files, as Hugging Face's data sets and Feather are written: columns of tables, out of foreign
 * bytes.
 *
 * Source: apache/arrow, docs/source/format/Columnar.rst, format/Message.fbs and Schema.fbs. A stream is a schema, and
 * dictionaries and record batches, each a message of FlatBuffers and the buffers of its columns behind it. A file has a
 * magic number before them and a footer behind, which says where they are: by it alone they are found, for polars
 * writes no length before the first and dictionaries behind the batches. Tables are told as Parquet's are
 * (parquet.h): a record batch is a row group, a struct's member a column "image.bytes", a list a column whose rows have
 * several elements.
 *
 * Buffers may be compressed with LZ4 or Zstandard. A column of numbers of a dictionary has the values that they stand
 * for, those of its batch: dictionaries may be replaced and may grow. Unions, maps, runs and views of lists are refused
 * by name.
 */
#ifndef TY_CONTAINER_INPUT_ARROW_ARROW_H
#define TY_CONTAINER_INPUT_ARROW_ARROW_H

#include "container/input/parquet/parquet.h"

/* Where the bytes are: in a file, or in memory (data not NULL). */
typedef struct arrow_bytes {
    int fd;
    const uint8_t *data;
    int64_t n;
} arrow_bytes;

typedef struct arrow_file arrow_file;

/* Whether these are the first bytes of one, of at least 16. */
bool arrow_has_magic(const uint8_t *p, size_t n);

/* Reads the schema and where batches lie into the arena; columns and row groups of *out. The caller names the file. */
int arrow_open(arrow_bytes bytes, ty_arena *a, parquet_file *out, arrow_file **file, ty_error *err);

/* As parquet_read; any thread. The caller names the column. */
int arrow_read(const arrow_file *file, arrow_bytes bytes, int group, int column, parquet_values *out, ty_error *err);

/* All of [at, at + n), which must be there. */
int arrow_get(arrow_bytes bytes, int64_t at, size_t n, uint8_t *out, ty_error *err);

#endif
