/* values.c - the values of a column in a record batch, out of its buffers. */
#include "container/input/arrow/schema.h"
#include "container/input/convert.h"
#include "container/input/parquet/codec.h"
#include "container/input/parquet/values.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is read of a column, in the order in which it is read. */
typedef struct value_reader {
    const arrow_schema *schema;
    const arrow_batch *batch;
    const arrow_column *column;
    arrow_bytes bytes;
    parquet_values *out;
    ty_error *err;
} value_reader;

/* A buffer, inflated. */
typedef struct value_buffer {
    uint8_t *data; /* of malloc */
    size_t n;
} value_buffer;

static int value_damaged(const value_reader *r, const char *what)
{
    ty_error_set(r->err, TY_E_DATA, "%s", what);
    return ty_error_help(r->err, "the file was cut short or changed while it was written or copied: make it anew");
}

/* ---- buffers ---- */

/* Compressed ones begin with the number of bytes that they become, -1: they are as they were. */
static int buffer_inflate(const value_reader *r, value_buffer *b)
{
    int64_t n = -1;
    uint8_t *out = NULL;
    if (b->n < 8)
        return b->n == 0 ? 0 : value_damaged(r, "a compressed buffer is too short");
    memcpy(&n, b->data, sizeof n);
    n = (int64_t)le64toh((uint64_t)n);
    if (n == -1) {
        memmove(b->data, b->data + 8, b->n -= 8);
        return 0;
    }
    if (n < 0 || n > (int64_t)PARQUET_MAX_BYTES)
        return value_damaged(r, "a compressed buffer has an impossible length");
    int rc = r->batch->codec == 0 ? parquet_unpack_lz4(b->data + 8, b->n - 8, (size_t)n, &out, r->err)
                                  : parquet_unpack_zstd(b->data + 8, b->n - 8, (size_t)n, &out, r->err);
    if (rc < 0)
        return -1;
    free(b->data);
    *b = (value_buffer){.data = out, .n = (size_t)n};
    return 0;
}

static int buffer_read(const value_reader *r, int number, value_buffer *out)
{
    const int64_t *place = r->batch->buffer[number];
    *out = (value_buffer){.data = malloc((size_t)place[1] + 8), .n = (size_t)place[1]};
    if (!out->data)
        return ty_error_set(r->err, TY_E_LIMIT, "no memory for %zu bytes of it", out->n);
    if (arrow_get(r->bytes, r->batch->body + place[0], out->n, out->data, r->err) == 0 &&
        (r->batch->codec < 0 || buffer_inflate(r, out) == 0))
        return 0;
    free(out->data);
    *out = (value_buffer){.data = NULL};
    return -1;
}

/* ---- nulls ---- */

static bool bit_of(const uint8_t *bits, int64_t i)
{
    return bits[i / 8] >> (i % 8) & 1;
}

/* Sets null[i] for those of the n rows of a place that are. A buffer that is left out says that none is. */
static int nulls_add(const value_reader *r, arrow_place p, int64_t from, int64_t n, uint8_t *null)
{
    value_buffer bits;
    if (r->batch->node[p.node][1] == 0 || r->batch->buffer[p.buffer][1] == 0)
        return 0;
    if (buffer_read(r, p.buffer, &bits) < 0)
        return -1;
    int rc = (int64_t)bits.n < (from + n + 7) / 8 ? value_damaged(r, "its nulls are fewer than its values") : 0;
    for (int64_t i = 0; rc == 0 && i < n; i++)
        null[i] |= !bit_of(bits.data, from + i);
    free(bits.data);
    return rc;
}

/* Rows that the structs around them are not there for. */
static int nulls_above(const value_reader *r, int64_t n, uint8_t *null)
{
    for (int i = 0; i < r->column->n_above; i++)
        if (nulls_add(r, r->column->above[i], 0, n, null) < 0)
            return -1;
    return 0;
}

/* ---- numbers ---- */

static int64_t number_whole(const uint8_t *p, int bytes, bool is_signed)
{
    uint64_t v = 0;
    memcpy(&v, p, (size_t)bytes);
    v = le64toh(v);
    int shift = 64 - 8 * bytes;
    return is_signed ? (int64_t)(v << shift) >> shift : (int64_t)v;
}

/* Two's complement of up to 16 bytes. */
static double number_decimal(const uint8_t *p, int bytes, double power)
{
    if (bytes < 16)
        return (double)number_whole(p, bytes, true) / power;
    uint64_t low = (uint64_t)number_whole(p, 8, true), high = (uint64_t)number_whole(p + 8, 8, true);
    bool is_negative = high >> 63;
    if (is_negative) {
        low = ~low + 1;
        high = ~high + (low == 0);
    }
    double v = ((double)high * 0x1p64 + (double)low) / power;
    return is_negative ? -v : v;
}

static int numbers_whole(const value_reader *r, const uint8_t *p, int64_t n)
{
    const arrow_column *c = r->column;
    parquet_values *v = r->out;
    for (int64_t i = 0; i < n; i++) {
        int64_t whole = number_whole(p + i * c->bytes, c->bytes, c->kind == ARROW_INT);
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

static void numbers_other(const value_reader *r, const uint8_t *bits, int64_t from, int64_t n)
{
    const arrow_column *c = r->column;
    parquet_values *v = r->out;
    const uint8_t *p = c->kind == ARROW_BOOL ? bits : bits + from * c->bytes;
    double power = pow(10.0, c->scale);
    for (int64_t i = 0; c->kind == ARROW_BOOL && i < n; i++)
        ((int32_t *)v->v)[i] = bit_of(p, from + i);
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

static int numbers_read(const value_reader *r, int64_t from, int64_t n)
{
    const arrow_column *c = r->column;
    value_buffer b;
    if (c->kind == ARROW_NONE) {
        memset(r->out->v, 0, (size_t)n * 4);
        return 0;
    }
    if (buffer_read(r, c->value.buffer + 1, &b) < 0)
        return -1;
    int64_t needed = c->kind == ARROW_BOOL ? (from + n + 7) / 8 : (from + n) * c->bytes;
    int rc = (int64_t)b.n < needed ? value_damaged(r, "it has fewer values than its batch has rows") : 0;
    if (rc == 0 && (c->kind == ARROW_INT || c->kind == ARROW_UINT))
        rc = numbers_whole(r, b.data + from * c->bytes, n);
    else if (rc == 0)
        numbers_other(r, b.data, from, n);
    numbers_clear_nulls(r->out, n);
    free(b.data);
    return rc;
}

/* ---- offsets ---- */

/* The n + 1 offsets from `from` on, which rise and do not go beyond `most`; *out: of malloc. */
static int offsets_read(const value_reader *r, int number, int bytes, int64_t from, int64_t n, int64_t most,
                        int64_t **out)
{
    value_buffer b;
    *out = NULL;
    if (buffer_read(r, number, &b) < 0)
        return -1;
    bool is_empty = b.n == 0 && from + n == 0; /* of no rows there need not be one */
    int rc =
        !is_empty && (int64_t)b.n < (from + n + 1) * bytes ? value_damaged(r, "it has fewer offsets than rows") : 0;
    int64_t *at = rc == 0 ? malloc(((size_t)n + 1) * sizeof *at) : NULL;
    for (int64_t i = 0; at && i <= n; i++) {
        at[i] = is_empty ? 0 : number_whole(b.data + (from + i) * bytes, bytes, true);
        if (rc == 0 && (at[i] < (i > 0 ? at[i - 1] : 0) || at[i] > most))
            rc = value_damaged(r, "its offsets do not rise, or go beyond what there is");
    }
    free(b.data);
    if (rc == 0 && !at)
        rc = ty_error_set(r->err, TY_E_LIMIT, "no memory for %lld offsets", (long long)n);
    if (rc < 0)
        free(at);
    else
        *out = at;
    return rc;
}

/* ---- texts ---- */

static int texts_take(const value_reader *r, const value_buffer *b, const int64_t *at, int64_t n)
{
    parquet_values *v = r->out;
    size_t bytes = (size_t)(at[n] - at[0]);
    if (parquet_reserve_bytes(v, bytes, r->err) < 0)
        return -1;
    if (bytes > 0)
        memcpy(v->bytes, b->data + at[0], bytes);
    v->n_bytes = bytes;
    for (int64_t i = 0; i < n; i++) {
        bool is_null = v->null && v->null[i];
        ((parquet_span *)v->v)[i] = (parquet_span){.at = is_null ? 0 : (uint64_t)(at[i] - at[0]),
                                                   .n = is_null ? 0 : (uint64_t)(at[i + 1] - at[i])};
    }
    return 0;
}

static int texts_read(const value_reader *r, int64_t from, int64_t n)
{
    const arrow_column *c = r->column;
    bool is_fixed = c->kind == ARROW_FIXED;
    int64_t *at = NULL;
    value_buffer b;
    if (buffer_read(r, c->value.buffer + (is_fixed ? 1 : 2), &b) < 0)
        return -1;
    int rc;
    if (is_fixed) {
        at = malloc(((size_t)n + 1) * sizeof *at);
        for (int64_t i = 0; at && i <= n; i++)
            at[i] = (from + i) * c->bytes;
        rc = !at                    ? ty_error_set(r->err, TY_E_LIMIT, "no memory for %lld values of it", (long long)n)
             : at[n] > (int64_t)b.n ? value_damaged(r, "it has fewer values than its batch has rows")
                                    : 0;
    } else {
        rc = offsets_read(r, c->value.buffer + 1, c->bytes, from, n, (int64_t)b.n, &at);
    }
    if (rc == 0)
        rc = texts_take(r, &b, at, n);
    free(at);
    free(b.data);
    return rc;
}

/* ---- dictionaries ---- */

static int values_read(const value_reader *r, int64_t from, int64_t n, const uint8_t *null);

/* Value number `index` of the dictionary as element i. */
static void coded_take(parquet_values *v, int64_t i, const parquet_values *from, int64_t index)
{
    size_t each = parquet_form_bytes(v->form);
    memcpy((char *)v->v + (size_t)i * each, (const char *)from->v + (size_t)index * each, each);
    if (v->null)
        v->null[i] |= from->null && from->null[index];
}

static int coded_look_up(const value_reader *r, const uint8_t *index, int64_t n, const parquet_values *from)
{
    const arrow_column *c = r->column;
    parquet_values *v = r->out;
    size_t each = parquet_form_bytes(v->form);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = number_whole(index + i * c->index_bytes, c->index_bytes, c->is_signed);
        if (v->null && v->null[i])
            memset((char *)v->v + (size_t)i * each, 0, each);
        else if (k < 0 || k >= from->n)
            return value_damaged(r, "it has a number beyond its dictionary");
        else
            coded_take(v, i, from, k);
    }
    return 0;
}

/* Texts share the dictionary's bytes. */
static int coded_share(const value_reader *r, const parquet_values *from)
{
    if (from->form != PARQUET_AS_BYTES)
        return 0;
    if (parquet_reserve_bytes(r->out, from->n_bytes, r->err) < 0)
        return -1;
    if (from->n_bytes > 0)
        memcpy(r->out->bytes, from->bytes, from->n_bytes);
    r->out->n_bytes = from->n_bytes;
    return 0;
}

static int coded_values(const value_reader *r, int64_t from, int64_t n, const parquet_values *values)
{
    value_buffer b;
    if (buffer_read(r, r->column->value.buffer + 1, &b) < 0)
        return -1;
    int rc = (int64_t)b.n < (from + n) * r->column->index_bytes
                 ? value_damaged(r, "it has fewer values than its batch has rows")
                 : coded_share(r, values);
    if (rc == 0)
        rc = coded_look_up(r, b.data + from * r->column->index_bytes, n, values);
    free(b.data);
    return rc;
}

static int coded_read(const value_reader *r, int64_t from, int64_t n)
{
    const arrow_column *c = r->column;
    const arrow_batch *batch = r->batch->dictionary ? r->batch->dictionary[c->dictionary] : NULL;
    if (batch == NULL)
        return n == 0 ? 0 : value_damaged(r, "its dictionary is not there");
    parquet_values values = {.form = c->form};
    value_reader d = {.batch = batch, .bytes = r->bytes, .out = &values, .err = r->err};
    d.column = &r->schema->dictionary[c->dictionary].values;
    int rc = batch->n_rows > PARQUET_MAX_ELEMENTS ? value_damaged(r, "its dictionary has too many values")
                                                  : values_read(&d, 0, batch->n_rows, NULL);
    if (rc == 0)
        rc = coded_values(r, from, n, &values);
    parquet_values_fini(&values);
    return rc;
}

/* ---- a column ---- */

/* Elements that the structs around them are not there for. */
static int nulls_inside(const value_reader *r, int64_t from, int64_t n, uint8_t *null)
{
    for (int i = 0; i < r->column->n_inside; i++)
        if (nulls_add(r, r->column->inside[i], from, n, null) < 0)
            return -1;
    return 0;
}

/* Values [from, from + n) of its own rows; null: of rows around them, or NULL. */
static int values_read(const value_reader *r, int64_t from, int64_t n, const uint8_t *null)
{
    parquet_values *v = r->out;
    if (from + n > r->batch->node[r->column->value.node][0])
        return value_damaged(r, "it has fewer values than its lists");
    if (parquet_reserve(v, n, r->err) < 0)
        return -1;
    v->null = calloc((size_t)v->room + 1, 1);
    if (!v->null)
        return ty_error_set(r->err, TY_E_LIMIT, "no memory for %lld values of it", (long long)n);
    if (null && n > 0)
        memcpy(v->null, null, (size_t)n);
    if (nulls_inside(r, from, n, v->null) < 0)
        return -1;
    if (r->column->kind == ARROW_NONE && !r->column->is_coded)
        memset(v->null, 1, (size_t)n);
    else if (nulls_add(r, r->column->value, from, n, v->null) < 0)
        return -1;
    v->n = n;
    if (r->column->is_coded) /* of which a value may be null */
        return coded_read(r, from, n);
    if (memchr(v->null, 1, (size_t)n) == NULL) {
        free(v->null);
        v->null = NULL;
    }
    bool is_text = r->column->kind == ARROW_TEXT || r->column->kind == ARROW_FIXED;
    return is_text ? texts_read(r, from, n) : numbers_read(r, from, n);
}

/* Elements of rows that are null are none, though bytes may lie there. */
static void lists_close_up(parquet_values *v, const uint8_t *null, int64_t n_rows)
{
    size_t each = parquet_form_bytes(v->form);
    int64_t to = 0, from = 0;
    for (int64_t i = 0; i < n_rows; i++) {
        int64_t n = v->first[i + 1] - from;
        if (!null[i] && n > 0 && to != from) {
            memmove((char *)v->v + (size_t)to * each, (char *)v->v + (size_t)from * each, (size_t)n * each);
            if (v->null)
                memmove(v->null + to, v->null + from, (size_t)n);
        }
        from = v->first[i + 1];
        v->first[i] = to;
        to += null[i] ? 0 : n;
    }
    v->first[n_rows] = v->n = to;
}

/* The n + 1 offsets of a list's rows [from, from + n), of malloc. most: elements that there are. */
static int lists_offsets(const value_reader *r, const arrow_list *l, int64_t from, int64_t n, int64_t most,
                         int64_t **at)
{
    if (l->bytes > 0)
        return offsets_read(r, l->place.buffer + 1, l->bytes, from, n, most, at);
    if (l->size > 0 && from + n > most / l->size)
        return value_damaged(r, "it has fewer values than its lists");
    *at = malloc(((size_t)n + 1) * sizeof **at);
    for (int64_t i = 0; *at && i <= n; i++)
        (*at)[i] = (from + i) * l->size;
    return *at ? 0 : ty_error_set(r->err, TY_E_LIMIT, "no memory for %lld lists", (long long)n);
}

/* Of lists in lists one that is null would leave out elements in the middle of a row. */
static int lists_refuse_nulls(const value_reader *r, const arrow_list *l, int64_t from, int64_t n, const int64_t *at)
{
    uint8_t *null = calloc((size_t)n + 1, 1);
    int rc = null ? nulls_add(r, l->place, from, n, null) : ty_error_set(r->err, TY_E_LIMIT, "no memory for its nulls");
    for (int64_t i = 0; rc == 0 && i < n; i++)
        if (null[i] && at[i + 1] > at[i])
            rc = ty_error_set(r->err, TY_E_DATA_VALUE, "a list in a list is null");
    free(null);
    return rc;
}

/* first[i], a row of list `level`, becomes its first element. */
static int lists_descend(const value_reader *r, int level, int64_t n, int64_t *first)
{
    const arrow_column *c = r->column;
    const arrow_list *l = &c->list[level];
    arrow_place below = level + 1 < c->n_lists ? c->list[level + 1].place : c->value;
    int64_t from = first[0], count = first[n] - from, *at;
    if (from + count > r->batch->node[l->place.node][0])
        return value_damaged(r, "it has fewer lists than those around them");
    if (lists_offsets(r, l, from, count, r->batch->node[below.node][0], &at) < 0)
        return -1;
    int rc = level > 0 ? lists_refuse_nulls(r, l, from, count, at) : 0;
    for (int64_t i = 0; i <= n; i++)
        first[i] = at[first[i] - from];
    free(at);
    return rc;
}

static int lists_read(const value_reader *r, int64_t n, uint8_t *null)
{
    parquet_values *v = r->out;
    int64_t *first = v->first = malloc(((size_t)n + 1) * sizeof *first);
    if (!first)
        return ty_error_set(r->err, TY_E_LIMIT, "no memory for %lld lists", (long long)n);
    for (int64_t i = 0; i <= n; i++)
        first[i] = i;
    if (nulls_add(r, r->column->list[0].place, 0, n, null) < 0)
        return -1;
    for (int level = 0; level < r->column->n_lists; level++)
        if (lists_descend(r, level, n, first) < 0)
            return -1;
    int64_t from = first[0];
    if (values_read(r, from, first[n] - from, NULL) < 0)
        return -1;
    for (int64_t i = 0; i <= n; i++)
        first[i] -= from;
    lists_close_up(v, null, n);
    return 0;
}

int arrow_read(const arrow_file *file, arrow_bytes bytes, int group, int column, parquet_values *out, ty_error *err)
{
    const arrow_column *c = &file->schema.column[column];
    value_reader r = {
        .schema = &file->schema, .batch = &file->batch[group], .column = c, .bytes = bytes, .out = out, .err = err};
    int64_t n = r.batch->n_rows;
    parquet_values_again(out, c->form);
    if (n > PARQUET_MAX_ELEMENTS || n > r.batch->node[c->n_lists > 0 ? c->list[0].place.node : c->value.node][0])
        return value_damaged(&r, "it has fewer values than its batch has rows, or more than are read");
    uint8_t *null = calloc((size_t)n + 1, 1);
    int rc = null ? nulls_above(&r, n, null) : ty_error_set(err, TY_E_LIMIT, "no memory for %lld rows", (long long)n);
    if (rc == 0)
        rc = c->n_lists > 0 ? lists_read(&r, n, null) : values_read(&r, 0, n, null);
    free(null);
    out->n_rows = n;
    if (rc < 0)
        parquet_values_fini(out);
    return rc;
}
