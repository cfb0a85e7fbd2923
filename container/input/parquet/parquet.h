/* parquet.h - Parquet files: columns of tables, out of foreign bytes.
 *
 * Source: apache/parquet-format (README.md, parquet.thrift, Encodings.md, LogicalTypes.md, Compression.md). A file is
 * row groups; a group has a chunk of every column; a chunk is pages, of which the first may be a dictionary. What is
 * nested is flattened: a struct's member is a column "address.city", a list of numbers or texts is one column whose
 * rows have several elements, and so is a list of lists, whose elements follow one another.
 *
 * All versions of data pages, all encodings and the codecs Snappy, gzip, Zstandard, Brotli and LZ4 are read; encrypted
 * files and LZO are refused by name.
 */
#ifndef TY_CONTAINER_INPUT_PARQUET_PARQUET_H
#define TY_CONTAINER_INPUT_PARQUET_PARQUET_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As parquet.thrift numbers them. */
typedef enum parquet_type {
    PARQUET_BOOLEAN,
    PARQUET_INT32,
    PARQUET_INT64,
    PARQUET_INT96,
    PARQUET_FLOAT,
    PARQUET_DOUBLE,
    PARQUET_BYTE_ARRAY,
    PARQUET_FIXED,
    PARQUET_N_TYPES
} parquet_type;

/* What a value means beside its type. Dates and times are the integers that they are stored as. */
typedef enum parquet_logic {
    PARQUET_PLAIN,
    PARQUET_UNSIGNED,
    PARQUET_DECIMAL, /* an integer times 10^-scale */
    PARQUET_FLOAT16
} parquet_logic;

/* What values become. */
typedef enum parquet_form {
    PARQUET_AS_I32,
    PARQUET_AS_I64, /* INT96: nanoseconds since 1970 */
    PARQUET_AS_F32,
    PARQUET_AS_F64, /* doubles and decimals */
    PARQUET_AS_BYTES
} parquet_form;

typedef struct parquet_column {
    const char *name; /* of a list: without the ".list.element" that it ends in */
    parquet_type type;
    int length; /* bytes of a value of type FIXED */
    parquet_logic logic;
    int scale;
    parquet_form form;
    int max_def, max_rep; /* levels at which a value is there, and lists around it */
    int list_def;         /* from this level on an element is there, if only as null */
    const char *odd;      /* why it cannot be read; NULL: it can */
} parquet_column;

typedef struct parquet_chunk {
    int64_t at, n_bytes, n_values;
    int64_t n_unpacked; /* bytes of its pages before they were compressed, as the file says */
    int codec;
    bool is_elsewhere; /* in a file of its own */
    bool is_encrypted;
} parquet_chunk;

typedef struct parquet_group {
    int64_t n_rows;
    parquet_chunk *chunk; /* [n_columns] */
} parquet_group;

typedef struct parquet_file {
    const uint8_t *bytes; /* borrowed; NULL: columns are read from elsewhere (parquet_read_chunk) */
    size_t n;
    parquet_column *column;
    int n_columns;
    parquet_group *group;
    int n_groups;
    int64_t n_rows;
} parquet_file;

/* Whether these are the first bytes of one. */
bool parquet_has_magic(const uint8_t *p, size_t n);
/* The same, and it can be read: refused if not. */
int parquet_check_magic(const uint8_t *p, size_t n, ty_error *err);

/* Reads the footer into the arena. TY_E_DATA: the bytes are no Parquet, damaged or encrypted. The caller names the
 * file. */
int parquet_open(const uint8_t *bytes, size_t n, ty_arena *a, parquet_file *out, ty_error *err);

/* The same, of a file of which only the end is at hand. Bytes at its end that tell how many there have to be. */
#define PARQUET_TAIL_BYTES 8
/* Bytes at the end of a file of n bytes that hold its footer; 0: it is refused. */
size_t parquet_footer_bytes(const uint8_t tail[PARQUET_TAIL_BYTES], size_t n, ty_error *err);
/* footer: so many bytes. */
int parquet_open_footer(const uint8_t *footer, size_t n_footer, size_t n, ty_arena *a, parquet_file *out,
                        ty_error *err);

/* A value of type BYTES. */
typedef struct parquet_span {
    uint64_t at, n; /* in parquet_values.bytes */
} parquet_span;

/* Values of a column in one group, the caller's. */
typedef struct parquet_values {
    parquet_form form;
    int64_t n; /* elements: rows, unless it is a list */
    int64_t n_rows;
    void *v;        /* [n] of the form: int32_t, int64_t, float, double, parquet_span */
    uint8_t *bytes; /* [n_bytes] what BYTES are made of; values that are alike may share theirs */
    size_t n_bytes;
    uint8_t *null;            /* [n] 1: there is none, and v has zeros; NULL: all are there */
    int64_t *first;           /* lists: [n_rows + 1]: row i has elements [first[i], first[i + 1]); NULL: no list */
    int64_t room, first_room; /* private: elements, and rows, that there is room for */
    size_t bytes_room;        /* private */
} parquet_values;

static inline size_t parquet_form_bytes(parquet_form f)
{
    return f == PARQUET_AS_BYTES ? sizeof(parquet_span) : f == PARQUET_AS_I32 || f == PARQUET_AS_F32 ? 4 : 8;
}

/* Element i, of numbers. */
static inline double parquet_number(const parquet_values *v, int64_t i)
{
    switch (v->form) {
    case PARQUET_AS_I32:
        return ((const int32_t *)v->v)[i];
    case PARQUET_AS_I64:
        return (double)((const int64_t *)v->v)[i];
    case PARQUET_AS_F32:
        return (double)((const float *)v->v)[i];
    default:
        return ((const double *)v->v)[i];
    }
}

/* The same, of whole numbers. */
static inline int64_t parquet_whole(const parquet_values *v, int64_t i)
{
    return v->form == PARQUET_AS_I64 ? ((const int64_t *)v->v)[i] : ((const int32_t *)v->v)[i];
}

/* What reading takes beside values, kept from column to column; one thread's. Zeroed: there is none yet. */
typedef struct parquet_room {
    uint8_t *page;
    size_t page_bytes;
    uint32_t *level; /* [2 * n_levels] definition, then repetition levels */
    int64_t n_levels;
    uint8_t *chunk; /* of a file that is not in memory (opened.h) */
    size_t chunk_bytes;
} parquet_room;

void parquet_room_fini(parquet_room *room);

/* Any thread. out: zeroed, or values whose memory may be used again. most: rows that are wanted, for which some pages
 * will do; 0: all. The error names the column. */
int parquet_read(const parquet_file *f, int group, int column, int64_t most, parquet_room *room, parquet_values *out,
                 ty_error *err);
/* The same, of a column whose bytes in that group are these, or begin so: n of them. */
int parquet_read_chunk(const parquet_file *f, int group, int column, const uint8_t *bytes, size_t n, int64_t most,
                       parquet_room *room, parquet_values *out, ty_error *err);
void parquet_values_fini(parquet_values *v); /* a zeroed one is fine */

#endif
