/* values.c - room for elements, and what their bytes mean. */
#include "container/input/parquet/values.h"

#include "container/input/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

parquet_form parquet_raw_form(parquet_type t)
{
    static const parquet_form forms[PARQUET_N_TYPES] = {
        [PARQUET_BOOLEAN] = PARQUET_AS_I32,      [PARQUET_INT32] = PARQUET_AS_I32,  [PARQUET_INT64] = PARQUET_AS_I64,
        [PARQUET_INT96] = PARQUET_AS_BYTES,      [PARQUET_FLOAT] = PARQUET_AS_F32,  [PARQUET_DOUBLE] = PARQUET_AS_F64,
        [PARQUET_BYTE_ARRAY] = PARQUET_AS_BYTES, [PARQUET_FIXED] = PARQUET_AS_BYTES};
    return forms[t];
}

int parquet_reserve(parquet_values *v, int64_t n, ty_error *err)
{
    if (n > PARQUET_MAX_ELEMENTS - v->n)
        return ty_error_set(err, TY_E_LIMIT, "a row group has more than %lld values of it",
                            (long long)PARQUET_MAX_ELEMENTS);
    if (v->v != NULL && n <= v->room - v->n)
        return 0;
    int64_t room = v->n + n > 2 * v->room ? v->n + n : 2 * v->room;
    void *grown = realloc(v->v, (size_t)room * parquet_form_bytes(v->form) + 1);
    if (grown == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %lld values of it", (long long)room);
    v->v = grown;
    if (v->null != NULL) {
        uint8_t *null = realloc(v->null, (size_t)room + 1);
        if (null == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for %lld values of it", (long long)room);
        v->null = null;
    }
    v->room = room;
    return 0;
}

void parquet_values_again(parquet_values *v, parquet_form form)
{
    free(v->null);
    free(v->first);
    int64_t bytes = v->room * (int64_t)parquet_form_bytes(v->form);
    *v = (parquet_values){.form = form,
                          .v = v->v,
                          .room = bytes / (int64_t)parquet_form_bytes(form),
                          .bytes = v->bytes,
                          .bytes_room = v->bytes_room};
}

int parquet_reserve_bytes(parquet_values *v, size_t n, ty_error *err)
{
    if (v->bytes != NULL && n <= v->bytes_room - v->n_bytes)
        return 0;
    if (n > PARQUET_MAX_BYTES - v->n_bytes)
        return ty_error_set(err, TY_E_LIMIT, "its values take more than %zu bytes in a row group", PARQUET_MAX_BYTES);
    size_t room = v->n_bytes + n > 2 * v->bytes_room ? v->n_bytes + n : 2 * v->bytes_room;
    uint8_t *grown = realloc(v->bytes, room + 1);
    if (grown == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %zu bytes of it", room);
    v->bytes = grown;
    v->bytes_room = room;
    return 0;
}

void parquet_values_fini(parquet_values *v)
{
    free(v->v);
    free(v->bytes);
    free(v->null);
    free(v->first);
    *v = (parquet_values){0};
}

/* ---- meaning ---- */

/* A big-endian integer of any length, in two's complement. */
static double value_big_endian(const uint8_t *p, size_t n)
{
    double v = n > 0 && p[0] >= 0x80 ? -1.0 : 0.0;
    bool negative = v < 0.0;
    v = 0.0;
    for (size_t i = 0; i < n; i++) /* of a negative one the complement, so that no digits are lost */
        v = v * 256.0 + (negative ? (uint8_t)~p[i] : p[i]);
    return negative ? -v - 1.0 : v;
}

static float value_half(const uint8_t *p)
{
    double v;
    ty_convert_to_f64(TY_F16, p, &v, 1);
    return (float)v;
}

/* Nanoseconds of the day, then the Julian day; wraps as 64 bits do beyond the year 2262. */
static int64_t value_int96(const uint8_t *p)
{
    uint64_t of_day;
    uint32_t day;
    memcpy(&of_day, p, 8);
    memcpy(&day, p + 8, 4);
    return (int64_t)(((uint64_t)day - 2440588u) * UINT64_C(86400000000000) + of_day);
}

static double value_decimal(const parquet_values *v, int64_t i, double power)
{
    const parquet_span *s = v->v;
    double whole = v->form == PARQUET_AS_I32   ? (double)((const int32_t *)v->v)[i]
                   : v->form == PARQUET_AS_I64 ? (double)((const int64_t *)v->v)[i]
                   : s[i].n == 0               ? 0.0
                                               : value_big_endian(v->bytes + s[i].at, (size_t)s[i].n);
    return whole / power;
}

/* Elements in a form of at most as many bytes go to the same place. */
static int convert_wider(parquet_values *v, parquet_form form, ty_error *err)
{
    if (parquet_form_bytes(form) <= parquet_form_bytes(v->form))
        return 0;
    void *grown = realloc(v->v, (size_t)v->n * parquet_form_bytes(form) + 1);
    if (grown == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %lld values of it", (long long)v->n);
    v->v = grown;
    v->room = v->n;
    return 0;
}

static int convert_unsigned(parquet_values *v, ty_error *err)
{
    int64_t *to = v->v;
    for (int64_t i = 0; v->form == PARQUET_AS_I64 && i < v->n; i++)
        if (to[i] < 0)
            return ty_error_set(err, TY_E_DATA_VALUE, "%llu is beyond what an int64 holds", (unsigned long long)to[i]);
    if (v->form == PARQUET_AS_I64)
        return 0;
    if (convert_wider(v, PARQUET_AS_I64, err) < 0)
        return -1;
    to = v->v;
    for (int64_t i = v->n - 1; i >= 0; i--)
        to[i] = ((const uint32_t *)v->v)[i];
    return 0;
}

static int convert_decimal(const parquet_column *column, parquet_values *v, ty_error *err)
{
    double power = pow(10.0, column->scale);
    if (convert_wider(v, PARQUET_AS_F64, err) < 0)
        return -1;
    bool narrow = v->form == PARQUET_AS_I32;
    for (int64_t k = 0; k < v->n; k++) {
        int64_t i = narrow ? v->n - 1 - k : k;
        double value = value_decimal(v, i, power);
        memcpy((char *)v->v + 8 * i, &value, 8);
    }
    return 0;
}

static void convert_bytes(const parquet_column *column, parquet_values *v)
{
    static const uint8_t none[12] = {0};
    const parquet_span *s = v->v;
    for (int64_t i = 0; i < v->n; i++) {
        bool is_null = v->null && v->null[i];
        const uint8_t *p = is_null ? none : v->bytes + s[i].at;
        int64_t whole = column->type == PARQUET_INT96 && !is_null ? value_int96(p) : 0;
        float half = column->logic == PARQUET_FLOAT16 ? value_half(p) : 0.0f;
        if (column->form == PARQUET_AS_I64)
            memcpy((char *)v->v + 8 * i, &whole, 8);
        else
            memcpy((char *)v->v + 4 * i, &half, 4);
    }
}

int parquet_convert(const parquet_column *column, parquet_values *v, ty_error *err)
{
    int rc = 0;
    bool drops = v->form == PARQUET_AS_BYTES && column->form != PARQUET_AS_BYTES;
    if (column->logic == PARQUET_DECIMAL)
        rc = convert_decimal(column, v, err);
    else if (column->logic == PARQUET_UNSIGNED)
        rc = convert_unsigned(v, err);
    else if (drops)
        convert_bytes(column, v);
    if (drops) {
        free(v->bytes);
        v->bytes = NULL;
        v->n_bytes = v->bytes_room = 0;
    }
    v->form = column->form;
    return rc;
}
