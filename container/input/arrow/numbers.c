/* numbers.c - numbers of a column, out of its buffer. */
#include "container/input/arrow/reader.h"
#include "container/input/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two's complement of up to 16 bytes. */
static double number_decimal(const uint8_t *p, int bytes, double power)
{
    if (bytes < 16)
        return (double)arrow_whole(p, bytes, true) / power;
    uint64_t low = (uint64_t)arrow_whole(p, 8, true), high = (uint64_t)arrow_whole(p + 8, 8, true);
    bool is_negative = high >> 63;
    if (is_negative) {
        low = ~low + 1;
        high = ~high + (low == 0);
    }
    double v = ((double)high * 0x1p64 + (double)low) / power;
    return is_negative ? -v : v;
}

static int numbers_whole(const arrow_reader *r, const uint8_t *p, int64_t n)
{
    const arrow_column *c = r->column;
    parquet_values *v = r->out;
    for (int64_t i = 0; i < n; i++) {
        int64_t whole = arrow_whole(p + i * c->bytes, c->bytes, c->kind == ARROW_INT);
        if (c->kind == ARROW_UINT && c->bytes == 8 && whole < 0 && !(v->null && v->null[i]))
            return ty_error_set(r->err, TY_E_DATA_VALUE, "%llu is beyond what an int64 holds",
                                (unsigned long long)whole);
        if (v->form == PARQUET_AS_I64)
            ((int64_t *)v->v)[i] = whole;
        else
            ((int32_t *)v->v)[i] = (int32_t)whole;
    }
    return 0;
}

static void numbers_other(const arrow_reader *r, const uint8_t *bits, int64_t from, int64_t n)
{
    const arrow_column *c = r->column;
    parquet_values *v = r->out;
    const uint8_t *p = c->kind == ARROW_BOOL ? bits : bits + from * c->bytes;
    double power = pow(10.0, c->scale);
    for (int64_t i = 0; c->kind == ARROW_BOOL && i < n; i++)
        ((int32_t *)v->v)[i] = arrow_bit(p, from + i);
    for (int64_t i = 0; c->kind == ARROW_DECIMAL && i < n; i++)
        ((double *)v->v)[i] = number_decimal(p + i * c->bytes, c->bytes, power);
    for (int64_t i = 0; c->kind == ARROW_FLOAT && c->bytes == 2 && i < n; i++) {
        double half;
        ty_convert_to_f64(TY_F16, p + 2 * i, &half, 1);
        ((float *)v->v)[i] = (float)half;
    }
    if (c->kind == ARROW_FLOAT && c->bytes > 2 && n > 0)
        memcpy(v->v, p, (size_t)n * (size_t)c->bytes);
}

/* What is null has zeros. */
static void numbers_clear_nulls(parquet_values *v, int64_t n)
{
    size_t each = parquet_form_bytes(v->form);
    for (int64_t i = 0; v->null && i < n; i++)
        if (v->null[i])
            memset((char *)v->v + (size_t)i * each, 0, each);
}

int arrow_numbers_read(const arrow_reader *r, int64_t from, int64_t n)
{
    const arrow_column *c = r->column;
    arrow_buffer b;
    if (c->kind == ARROW_NONE) {
        memset(r->out->v, 0, (size_t)n * 4);
        return 0;
    }
    if (arrow_buffer_read(r, r->batch->buffer[c->value.buffer + 1], &b) < 0)
        return -1;
    int64_t needed = c->kind == ARROW_BOOL ? (from + n + 7) / 8 : (from + n) * c->bytes;
    int rc = (int64_t)b.n < needed ? arrow_damaged(r, "it has fewer values than its batch has rows") : 0;
    if (rc == 0 && (c->kind == ARROW_INT || c->kind == ARROW_UINT))
        rc = numbers_whole(r, b.data + from * c->bytes, n);
    else if (rc == 0)
        numbers_other(r, b.data, from, n);
    numbers_clear_nulls(r->out, n);
    free(b.data);
    return rc;
}
