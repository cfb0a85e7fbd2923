/* records_parquet.h - rows of Parquet as records. Private to records_parquet*.c and survey_parquet.c.
 *
 * A field is one column or several, as in a table, or one whose rows are lists of any length, or bytes that are a
 * picture or a sound. Where the values of a row lie is the business of who finds it: records_parquet.c has all of them
 * in memory, records_parquet_stream.c one row at a time.
 */
#ifndef TY_CONTAINER_INPUT_RECORDS_PARQUET_H
#define TY_CONTAINER_INPUT_RECORDS_PARQUET_H

#include "container/input/parquet/rows.h"
#include "container/input/records.h"

/* Which columns of the first file make the fields of impl, held against their declarations: r->column, and the fields'
 * numbers in it. The error has no place. */
int parquet_fields_take(const parquet_file *first, records_impl *impl, parquet_rows *r, ty_arena *a, ty_error *err);
/* The numbers of a field's columns in the file. */
int parquet_field_columns(const parquet_file *f, records_field *field, ty_arena *a, ty_error *err);
/* When r->form is known: as what fields are decoded. */
void parquet_fields_decode_as(const parquet_rows *r, records_impl *impl);

static inline bool parquet_is_null(const parquet_values *v, int64_t at)
{
    return v->null && v->null[at];
}

/* For a stream: what all files have, by their footers; impl->rows and impl->packing. The error has its place. */
int parquet_stream_begin(records_impl *impl, const ty_data_file *files, int n_files, ty_error *err);

/* What row `row` of g has for the fields that are looked for; g's values must stay while the cells are used. */
int parquet_row_find(records_look *look, const rows_group *g, int64_t row, ty_error *err);
/* Those of a records_kind. */
int64_t parquet_row_count(const records_cell *c);
int64_t parquet_row_decode(records_look *look, const records_cell *c, int64_t max);
int parquet_row_cells(records_look *look, const records_cell *c, bool wants_text, ty_cells *out, ty_error *err);
int parquet_row_encoded(const records_cell *c, const uint8_t **bytes, size_t *n, ty_error *err);

#endif
