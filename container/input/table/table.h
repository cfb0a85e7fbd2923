/* table.h - delimited text on its way into dense rows. Private to dataset_csv.c and this folder.
 *
 * The text of a file is cut into chunks at line ends (split.c); each is parsed by whoever is free (rows.c), into rows
 * that are reserved for it, and what is found is put together in the order of the chunks (chunks.c). Where a chunk ends
 * is guessed from quotes alone, so it is checked: a chunk counts only if the one before ended where it begins. Hence
 * rows, ranges and errors are what one reader would find, whatever the number of threads. A single thread is one reader
 * and guesses nothing.
 */
#ifndef TY_CONTAINER_INPUT_TABLE_TABLE_H
#define TY_CONTAINER_INPUT_TABLE_TABLE_H

#include "container/input/csv.h"
#include "container/input/dataset.h"

/* Records follow line by line except at these: (record, line) pairs let any record's line be found again. */
typedef struct table_jump {
    int64_t sample, line;
} table_jump;

typedef struct table_file {
    const ty_data_file *file;
    int64_t first; /* sample */
    table_jump *jump;
    int64_t n_jumps, cap_jumps;
} table_file;

/* Numbers first; MAPPED: of a field with transforms, NaN where one is missing. */
typedef enum table_kind { TABLE_FLOAT, TABLE_SCALED_INTEGER, TABLE_MAPPED, TABLE_INTEGER, TABLE_TEXT } table_kind;

typedef struct table_field {
    uint8_t *data; /* [n_samples, row_bytes] */
    int32_t *column;
    int32_t n_elems, n_part[TY_N_TEXT_PARTS]; /* the last ones are those of the parts */
    int32_t slot;                             /* of its first element in a row on its way; the others follow */
    table_kind kind;
    const ty_field *declared; /* while loading */
    int64_t min, max;         /* of the batch type, if an integer */
} table_field;

/* Which field element a column feeds; a column may feed several. */
typedef struct table_target {
    int32_t field, elem;
    int32_t next; /* -1: no more */
    int32_t slot; /* in a row on its way */
    table_kind kind;
} table_target;

/* A column that is used, and the first of its targets. */
typedef struct table_read {
    int32_t column, target;
} table_read;

typedef struct table_impl {
    table_field *field;
    table_file *file;
    int n_fields, n_files;
    /* While loading: */
    ty_dataset *ds;
    ty_arena scratch;
    int64_t n_columns, n_slots;
    const char *const *header; /* NULL: none */
    int32_t *first_target;     /* by column; -1: unused */
    table_read *read;          /* [n_read] columns that are not, rising */
    int64_t n_read;
    table_target *target;
    int64_t capacity; /* samples that the blocks have room for */
    char delimiter;
    ty_csv_missing missing;   /* what stands for no value */
    bool has_missing_numbers; /* a number may, so that all go the slow way */
    bool learns;              /* a walk of its own, for transforms that learn: by one reader */
} table_impl;

/* ---- chunks ---- */

typedef struct table_chunk {
    const char *from, *to, *end; /* the chunk; the end of the text, where a record may run beyond `to` */
    const char *name;            /* of the file, for places */
    int64_t line;                /* of `from` */
    int64_t bound;               /* no more records than that are in it */
    int64_t first;               /* number of the row that its first record goes to */
    bool goes_on;                /* who reads what follows begins where this ended, not at `to` */
    /* What came of it; samples count from its first. */
    const char *at; /* behind its last record */
    int64_t line_at;
    int64_t n_rows;
    ty_field_info *seen; /* [n_fields]; ranges, missing and not finite values */
    table_jump *jump;
    int64_t n_jumps, cap_jumps;
    int rc;
    ty_error error;
} table_chunk;

enum { TABLE_CHUNK_BYTES = 1 << 20 };

/* Cuts the text from `from`, in line `line`, into chunks of about so many bytes; `columns` a record at least. Returns
 * how many, the array being the caller's (free()); -1: no memory. */
int64_t table_split(const char *from, const char *end, int64_t line, int64_t columns, size_t bytes, table_chunk **out);
/* Parses one chunk into the rows from chunk->first on. Any thread. */
void table_parse(const table_impl *t, table_chunk *chunk);
/* Frees what came of it. */
void table_chunk_fini(table_chunk *chunk);

/* Reads all records from c on, in several threads, as the next samples of the dataset. most: of them; 0: all. */
int table_load_records(table_impl *t, table_file *file, const ty_csv *c, int64_t most, int n_threads, ty_error *err);
/* Room for so many samples. */
int table_reserve(table_impl *t, int64_t capacity, ty_error *err);

/* "5.0" and "5e0" are whole numbers too. */
bool table_whole_of(double v, int64_t *out);

#endif
