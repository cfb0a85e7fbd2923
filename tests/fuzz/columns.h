/* columns.h - what holds of all that is read of a table: a refusal says why, values lie in what was read. */
#ifndef TY_TESTS_FUZZ_COLUMNS_H
#define TY_TESTS_FUZZ_COLUMNS_H

#include "container/input/parquet/parquet.h"

#include <stdlib.h>

static inline void check_error(const ty_error *err)
{
    if (err->code == TY_E_NONE || err->code == TY_E_INTERNAL || !err->message[0])
        abort();
}

static inline void check_values(const parquet_values *v, int64_t n_rows)
{
    if (v->n_rows != n_rows || (v->first ? v->first[n_rows] != v->n : v->n != n_rows))
        abort();
    for (int64_t i = 0; v->first && i < n_rows; i++)
        if (v->first[i] > v->first[i + 1] || v->first[i] < 0)
            abort();
    for (int64_t i = 0; v->form == PARQUET_AS_BYTES && i < v->n; i++) {
        const parquet_span *s = (const parquet_span *)v->v + i;
        if (s->at > v->n_bytes || s->n > v->n_bytes - s->at)
            abort();
    }
}

#endif
