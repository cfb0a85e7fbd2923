/* decode.c - encodings of values.
 *
 * Source: parquet-format, Encodings.md. Numbers in Parquet are little-endian, as they are here (a big-endian host would
 * have to turn them).
 */
#include "container/input/parquet/bits.h"
#include "container/input/parquet/values.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values of pages are copied as they stand");

enum {
    ENCODING_PLAIN = 0,
    ENCODING_PLAIN_DICTIONARY = 2,
    ENCODING_RLE = 3,
    ENCODING_DELTA = 5,
    ENCODING_DELTA_LENGTHS = 6,
    ENCODING_DELTA_BYTES = 7,
    ENCODING_RLE_DICTIONARY = 8,
    ENCODING_SPLIT = 9
};

typedef struct decoder {
    const uint8_t *p, *end;
    int64_t n;
    const parquet_column *column;
    const parquet_values *dictionary;
    parquet_values *v;
    ty_error *err;
} decoder;

static int decode_short(const decoder *d)
{
    return ty_error_set(d->err, TY_E_DATA, "a page holds fewer values than its header says");
}

static void *decode_to(const decoder *d)
{
    return (char *)d->v->v + (size_t)d->v->n * parquet_form_bytes(d->v->form);
}

/* Bytes of a value of fixed size; 0: of any. */
static size_t decode_width(const decoder *d)
{
    switch (d->column->type) {
    case PARQUET_INT96:
        return 12;
    case PARQUET_FIXED:
        return (size_t)d->column->length;
    case PARQUET_BYTE_ARRAY:
    case PARQUET_BOOLEAN:
        return 0;
    default:
        return parquet_form_bytes(d->v->form);
    }
}

/* ---- as they are ---- */

static int decode_plain_bits(decoder *d)
{
    int32_t *out = decode_to(d);
    if ((uint64_t)d->n > 8 * (uint64_t)(d->end - d->p))
        return decode_short(d);
    for (int64_t i = 0; i < d->n; i++)
        out[i] = d->p[i / 8] >> (i % 8) & 1;
    return 0;
}

static int decode_plain_fixed(decoder *d, size_t width)
{
    parquet_span *out = decode_to(d);
    if ((uint64_t)d->n > (uint64_t)(d->end - d->p) / width)
        return decode_short(d);
    size_t all = (size_t)d->n * width, base = d->v->n_bytes;
    if (d->v->form != PARQUET_AS_BYTES) {
        memcpy(out, d->p, all);
        return 0;
    }
    if (parquet_reserve_bytes(d->v, all, d->err) < 0)
        return -1;
    memcpy(d->v->bytes + base, d->p, all);
    d->v->n_bytes += all;
    for (int64_t i = 0; i < d->n; i++)
        out[i] = (parquet_span){base + (size_t)i * width, width};
    return 0;
}

/* Lengths of four bytes stand between them: all of it is kept. */
static int decode_plain_bytes(decoder *d)
{
    parquet_span *out = decode_to(d);
    size_t all = (size_t)(d->end - d->p), base = d->v->n_bytes, at = 0;
    for (int64_t i = 0; i < d->n; i++) {
        uint32_t n;
        if (all - at < 4)
            return decode_short(d);
        memcpy(&n, d->p + at, 4);
        at += 4;
        if (n > all - at)
            return decode_short(d);
        out[i] = (parquet_span){base + at, n};
        at += n;
    }
    if (parquet_reserve_bytes(d->v, at, d->err) < 0)
        return -1;
    if (at > 0)
        memcpy(d->v->bytes + base, d->p, at);
    d->v->n_bytes += at;
    return 0;
}

static int decode_plain(decoder *d)
{
    if (d->column->type == PARQUET_BOOLEAN)
        return decode_plain_bits(d);
    return d->column->type == PARQUET_BYTE_ARRAY ? decode_plain_bytes(d) : decode_plain_fixed(d, decode_width(d));
}

/* ---- numbers in a dictionary ---- */

static int decode_dictionary(decoder *d)
{
    const parquet_values *from = d->dictionary;
    size_t each = parquet_form_bytes(d->v->form);
    char *out = decode_to(d);
    if (from == NULL)
        return ty_error_set(d->err, TY_E_DATA, "a page has numbers of a dictionary, and there is none before it");
    if (d->n == 0)
        return 0;
    if (d->p == d->end)
        return decode_short(d);
    uint32_t *number = malloc((size_t)d->n * sizeof *number);
    if (number == NULL)
        return ty_error_set(d->err, TY_E_LIMIT, "no memory for %lld values of a page", (long long)d->n);
    int width = *d->p++, rc = 0;
    if (!bits_hybrid(&d->p, d->end, width, d->n, number))
        rc = decode_short(d);
    for (int64_t i = 0; rc == 0 && i < d->n; i++) {
        if (number[i] >= (uint64_t)from->n)
            rc = ty_error_set(d->err, TY_E_DATA, "value %u of a dictionary of %lld", number[i], (long long)from->n);
        else
            memcpy(out + (size_t)i * each, (const char *)from->v + number[i] * each, each);
    }
    free(number);
    return rc;
}

/* ---- booleans in runs ---- */

static int decode_runs(decoder *d)
{
    uint32_t length;
    if (d->column->type != PARQUET_BOOLEAN)
        return ty_error_set(d->err, TY_E_DATA, "a page has runs (RLE) of values that are no booleans");
    if (d->end - d->p < 4)
        return decode_short(d);
    memcpy(&length, d->p, 4);
    d->p += 4;
    if (length > (size_t)(d->end - d->p))
        return decode_short(d);
    return bits_hybrid(&d->p, d->p + length, 1, d->n, decode_to(d)) ? 0 : decode_short(d);
}

/* ---- differences ---- */

static int64_t *decode_whole(decoder *d)
{
    int64_t *out = malloc((size_t)d->n * sizeof *out + 1);
    if (out == NULL) {
        ty_error_set(d->err, TY_E_LIMIT, "no memory for %lld values of a page", (long long)d->n);
    } else if (!bits_delta(&d->p, d->end, d->n, out)) {
        decode_short(d);
        free(out);
        out = NULL;
    }
    return out;
}

static int decode_delta(decoder *d)
{
    if (d->column->type != PARQUET_INT32 && d->column->type != PARQUET_INT64)
        return ty_error_set(d->err, TY_E_DATA, "a page has differences of values that are no integers");
    int64_t *whole = decode_whole(d);
    if (whole == NULL)
        return -1;
    if (d->v->form == PARQUET_AS_I64)
        memcpy(decode_to(d), whole, (size_t)d->n * sizeof *whole);
    for (int64_t i = 0; d->v->form == PARQUET_AS_I32 && i < d->n; i++)
        ((int32_t *)decode_to(d))[i] = (int32_t)(uint32_t)whole[i];
    free(whole);
    return 0;
}

/* Bytes behind their lengths; `before`: how many of the value before each begins with, NULL: none. */
static int decode_joined(decoder *d, const int64_t *before, const int64_t *length)
{
    parquet_span *out = decode_to(d), last = {0};
    for (int64_t i = 0; i < d->n; i++) {
        size_t left = (size_t)(d->end - d->p);
        int64_t shared = before ? before[i] : 0;
        if (length[i] < 0 || (uint64_t)length[i] > left || shared < 0 || (uint64_t)shared > last.n)
            return decode_short(d);
        size_t n = (size_t)(shared + length[i]);
        if (parquet_reserve_bytes(d->v, n, d->err) < 0)
            return -1;
        uint8_t *to = d->v->bytes + d->v->n_bytes;
        if (shared > 0)
            memcpy(to, d->v->bytes + last.at, (size_t)shared);
        if (length[i] > 0)
            memcpy(to + shared, d->p, (size_t)length[i]);
        out[i] = last = (parquet_span){d->v->n_bytes, n};
        d->v->n_bytes += n;
        d->p += length[i];
    }
    return 0;
}

static int decode_delta_bytes(decoder *d, bool has_prefixes)
{
    if (d->v->form != PARQUET_AS_BYTES || (!has_prefixes && d->column->type != PARQUET_BYTE_ARRAY))
        return ty_error_set(d->err, TY_E_DATA, "a page has lengths of values that are no bytes");
    int64_t *before = has_prefixes ? decode_whole(d) : NULL;
    if (has_prefixes && before == NULL)
        return -1;
    int64_t *length = decode_whole(d);
    int rc = length ? decode_joined(d, before, length) : -1;
    free(before);
    free(length);
    return rc;
}

/* ---- first all first bytes, then all second ones ---- */

static int decode_split(decoder *d)
{
    size_t width = decode_width(d), n = (size_t)d->n, base = d->v->n_bytes;
    if (width == 0 || d->column->type == PARQUET_INT96)
        return ty_error_set(d->err, TY_E_DATA, "a page has split bytes of values that have no fixed length");
    if (n > (size_t)(d->end - d->p) / width)
        return decode_short(d);
    bool is_bytes = d->v->form == PARQUET_AS_BYTES;
    if (is_bytes && parquet_reserve_bytes(d->v, n * width, d->err) < 0)
        return -1;
    uint8_t *out = is_bytes ? d->v->bytes + base : decode_to(d);
    for (size_t k = 0; k < width; k++)
        for (size_t i = 0; i < n; i++)
            out[i * width + k] = d->p[k * n + i];
    for (size_t i = 0; is_bytes && i < n; i++)
        ((parquet_span *)decode_to(d))[i] = (parquet_span){base + i * width, width};
    d->v->n_bytes += is_bytes ? n * width : 0;
    return 0;
}

int parquet_decode(int encoding, const uint8_t *p, const uint8_t *end, int64_t n, const parquet_column *column,
                   const parquet_values *dictionary, parquet_values *v, ty_error *err)
{
    decoder d = {p, end, n, column, dictionary, v, err};
    switch (encoding) {
    case ENCODING_PLAIN:
        return decode_plain(&d);
    case ENCODING_PLAIN_DICTIONARY:
    case ENCODING_RLE_DICTIONARY:
        return decode_dictionary(&d);
    case ENCODING_RLE:
        return decode_runs(&d);
    case ENCODING_DELTA:
        return decode_delta(&d);
    case ENCODING_DELTA_LENGTHS:
        return decode_delta_bytes(&d, false);
    case ENCODING_DELTA_BYTES:
        return decode_delta_bytes(&d, true);
    case ENCODING_SPLIT:
        return decode_split(&d);
    default:
        return ty_error_set(err, TY_E_DATA, "a page has encoding %d, which is not known", encoding);
    }
}
