/* values.h - elements on their way out of pages. Private to this folder. */
#ifndef TY_CONTAINER_INPUT_PARQUET_VALUES_H
#define TY_CONTAINER_INPUT_PARQUET_VALUES_H

#include "container/input/parquet/parquet.h"

/* Of a column in one group: more are refused. */
#define PARQUET_MAX_ELEMENTS ((int64_t)1 << 30)
#define PARQUET_MAX_BYTES    ((size_t)1 << 34)

/* As what a type is stored in pages. INT96 and FIXED are bytes. */
parquet_form parquet_raw_form(parquet_type t);

/* Nothing is in them, of another form perhaps; memory stays. */
void parquet_values_again(parquet_values *v, parquet_form form);
/* Room for n more elements behind those that are there. */
int parquet_reserve(parquet_values *v, int64_t n, ty_error *err);
/* Room for n more bytes. */
int parquet_reserve_bytes(parquet_values *v, size_t n, ty_error *err);

/* Decodes n values of a page to v's elements [v->n, v->n + n), for which there is room, and adds none. dictionary: what
 * numbers of encoding RLE_DICTIONARY mean; NULL: there is none. */
int parquet_decode(int encoding, const uint8_t *p, const uint8_t *end, int64_t n, const parquet_column *column,
                   const parquet_values *dictionary, parquet_values *v, ty_error *err);

/* Elements as they are stored become column->form. */
int parquet_convert(const parquet_column *column, parquet_values *v, ty_error *err);

#endif
