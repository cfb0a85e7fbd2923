/* parquet_spelled.h - values of columns as text, one line a column, as tests/golden/parquet/make.py spells them. */
#ifndef TY_TESTS_UNIT_PARQUET_SPELLED_H
#define TY_TESTS_UNIT_PARQUET_SPELLED_H

#include "base/buf.h"
#include "container/input/parquet/parquet.h"

#include <inttypes.h>
#include <string.h>

static inline void spell(const parquet_values *v, int64_t i, ty_buf *out)
{
    const parquet_span *s = (const parquet_span *)v->v + i;
    if (v->null && v->null[i])
        ty_buf_adds(out, "null");
    else if (v->form == PARQUET_AS_I32)
        ty_buf_addf(out, "%" PRId32, ((const int32_t *)v->v)[i]);
    else if (v->form == PARQUET_AS_I64)
        ty_buf_addf(out, "%" PRId64, ((const int64_t *)v->v)[i]);
    else if (v->form == PARQUET_AS_F32)
        ty_buf_addf(out, "%.9g", (double)((const float *)v->v)[i]);
    else if (v->form == PARQUET_AS_F64)
        ty_buf_addf(out, "%.15g", ((const double *)v->v)[i]);
    else if (s->n == 0)
        ty_buf_adds(out, "\"\"");
    else
        for (uint64_t k = 0; k < s->n; k++)
            ty_buf_addf(out, "%02x", v->bytes[s->at + k]);
}

static inline void spell_rows(const parquet_values *v, ty_buf *out)
{
    for (int64_t row = 0; row < v->n_rows; row++) {
        int64_t from = v->first ? v->first[row] : row, to = v->first ? v->first[row + 1] : row + 1;
        ty_buf_adds(out, v->first ? " [" : " ");
        for (int64_t i = from; i < to; i++) {
            ty_buf_adds(out, i > from ? " " : "");
            spell(v, i, out);
        }
        ty_buf_adds(out, v->first ? "]" : "");
    }
}

static inline void compare_lines(const char *name, const char *found, const char *expected)
{
    while (*found || *expected) {
        size_t n = strcspn(found, "\n"), m = strcspn(expected, "\n");
        if (n != m || memcmp(found, expected, n) != 0)
            fail_msg("%s:\nfound    %.*s\nexpected %.*s", name, (int)n, found, (int)m, expected);
        found += n + (found[n] != 0);
        expected += m + (expected[m] != 0);
    }
}

#endif
