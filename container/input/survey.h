/* survey.h - what the files of a channel hold, for who has declared no fields.
 *
 * Looks at names, headers and the first record alone, of tables and JSON Lines at the first hundred. What a survey
 * finds becomes declarations (entrypoint/found.h), which ty_dataset_open() then holds against all of the data as if
 * they had been written by hand.
 */
#ifndef TY_CONTAINER_INPUT_SURVEY_H
#define TY_CONTAINER_INPUT_SURVEY_H

#include "container/input/dataset.h"

/* An array, or a column of a table. */
typedef struct ty_data_part {
    const char *name; /* npz: of the member; records: of the feature; npy, IDX: of the file without what follows its
                       * first dot; a column's in the header, NULL where there is no header */
    const char *file; /* npy, IDX: shell pattern that matches this file alone; else NULL */
    bool is_text;    /* columns: of the first records one has neither a number nor a missing value there; records: bytes
                      * that read as one line of UTF-8 */
    bool is_picture; /* encoded: it becomes a row by an image plan (image/plan.h) */
    bool is_list;    /* Parquet, Arrow: rows have several numbers, or texts (is_text, too), perhaps not all as many */
    bool is_sound;   /* encoded: it becomes a row by an audio plan (audio/plan.h) */
} ty_data_part;

typedef struct ty_data_survey {
    const char *format; /* "csv" */
    bool is_table;      /* parts are columns */
    ty_data_part *part;
    int n_parts;
    /* "a, b": JSON Lines: keys whose values are neither numbers nor texts; Parquet: columns of lists of pictures or
     * sounds, or that cannot be read. NULL: none */
    const char *left_out;
} ty_data_survey;

/* src->fields is not looked at. Everything lies in the arena. */
int ty_data_survey_make(const ty_data_source *src, ty_arena *a, ty_data_survey *out, ty_error *err);

/* Memory that columns of Parquet files take when they are decoded. */
typedef struct ty_parquet_memory {
    double growth;        /* per byte of a file as it lies there */
    uint64_t group_bytes; /* of the largest row group: a stream has two at a time */
    int64_t n_rows;       /* of the file */
} ty_parquet_memory;

/* Of those that these fields use (n_fields 0: of all columns), by the footer of `path`; where that does not say growth
 * is 1. */
ty_parquet_memory ty_parquet_measure(const char *path, const ty_field *fields, int n_fields);

#endif
