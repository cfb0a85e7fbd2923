/* buffers.c - buffers of a batch, inflated: bits of nulls, offsets. */
#include "container/input/arrow/reader.h"
#include "container/input/parquet/codec.h"
#include "container/input/parquet/values.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

int arrow_damaged(const arrow_reader *r, const char *what)
{
    ty_error_set(r->err, TY_E_DATA, "%s", what);
    return ty_error_help(r->err, "the file was cut short or changed while it was written or copied: make it anew");
}

/* ---- buffers ---- */

/* Compressed ones begin with the number of bytes that they become, -1: they are as they were. */
static int buffer_inflate(const arrow_reader *r, arrow_buffer *b)
{
    int64_t n = -1;
    uint8_t *out = NULL;
    if (b->n < 8)
        return b->n == 0 ? 0 : arrow_damaged(r, "a compressed buffer is too short");
    memcpy(&n, b->data, sizeof n);
    n = (int64_t)le64toh((uint64_t)n);
    if (n == -1) {
        memmove(b->data, b->data + 8, b->n -= 8);
        return 0;
    }
    if (n < 0 || n > (int64_t)PARQUET_MAX_BYTES)
        return arrow_damaged(r, "a compressed buffer has an impossible length");
    int rc = r->batch->codec == 0 ? parquet_unpack_lz4(b->data + 8, b->n - 8, (size_t)n, &out, r->err)
                                  : parquet_unpack_zstd(b->data + 8, b->n - 8, (size_t)n, &out, r->err);
    if (rc < 0)
        return -1;
    free(b->data);
    *b = (arrow_buffer){.data = out, .n = (size_t)n};
    return 0;
}

int arrow_buffer_read(const arrow_reader *r, const int64_t place[2], arrow_buffer *out)
{
    *out = (arrow_buffer){.data = malloc((size_t)place[1] + 8), .n = (size_t)place[1]};
    if (!out->data)
        return ty_error_set(r->err, TY_E_LIMIT, "no memory for %zu bytes of it", out->n);
    if (arrow_get(r->bytes, r->batch->body + place[0], out->n, out->data, r->err) == 0 &&
        (r->batch->codec < 0 || buffer_inflate(r, out) == 0))
        return 0;
    free(out->data);
    *out = (arrow_buffer){.data = NULL};
    return -1;
}

/* ---- nulls ---- */

/* Sets null[i] for those of the n rows of a place that are. A buffer that is left out says that none is. */
int arrow_nulls_add(const arrow_reader *r, arrow_place p, int64_t from, int64_t n, uint8_t *null)
{
    arrow_buffer bits;
    if (r->batch->node[p.node][1] == 0 || r->batch->buffer[p.buffer][1] == 0)
        return 0;
    if (arrow_buffer_read(r, r->batch->buffer[p.buffer], &bits) < 0)
        return -1;
    int rc = (int64_t)bits.n < (from + n + 7) / 8 ? arrow_damaged(r, "its nulls are fewer than its values") : 0;
    for (int64_t i = 0; rc == 0 && i < n; i++)
        null[i] |= !arrow_bit(bits.data, from + i);
    free(bits.data);
    return rc;
}

/* ---- offsets ---- */

int64_t arrow_whole(const uint8_t *p, int bytes, bool is_signed)
{
    uint64_t v = 0;
    memcpy(&v, p, (size_t)bytes);
    v = le64toh(v);
    int shift = 64 - 8 * bytes;
    return is_signed ? (int64_t)(v << shift) >> shift : (int64_t)v;
}

/* The n + 1 offsets from `from` on, which rise and do not go beyond `most`; *out: of malloc. */
int arrow_offsets_read(const arrow_reader *r, int number, int bytes, int64_t from, int64_t n, int64_t most,
                       int64_t **out)
{
    arrow_buffer b;
    *out = NULL;
    if (arrow_buffer_read(r, r->batch->buffer[number], &b) < 0)
        return -1;
    bool is_empty = b.n == 0 && from + n == 0; /* of no rows there need not be one */
    int rc =
        !is_empty && (int64_t)b.n < (from + n + 1) * bytes ? arrow_damaged(r, "it has fewer offsets than rows") : 0;
    int64_t *at = rc == 0 ? malloc(((size_t)n + 1) * sizeof *at) : NULL;
    for (int64_t i = 0; at && i <= n; i++) {
        at[i] = is_empty ? 0 : arrow_whole(b.data + (from + i) * bytes, bytes, true);
        if (rc == 0 && (at[i] < (i > 0 ? at[i - 1] : 0) || at[i] > most))
            rc = arrow_damaged(r, "its offsets do not rise, or go beyond what there is");
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
