/* texts.c - texts of a column: behind offsets, of one length, or where views point. */
#include "container/input/arrow/reader.h"
#include "container/input/parquet/values.h"

#include <stdlib.h>
#include <string.h>

static int texts_take(const arrow_reader *r, const arrow_buffer *b, const int64_t *at, int64_t n)
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

static int texts_in_a_row(const arrow_reader *r, int64_t from, int64_t n)
{
    const arrow_column *c = r->column;
    bool is_fixed = c->kind == ARROW_FIXED;
    int64_t *at = NULL;
    arrow_buffer b;
    if (arrow_buffer_read(r, r->batch->buffer[c->value.buffer + (is_fixed ? 1 : 2)], &b) < 0)
        return -1;
    int rc;
    if (is_fixed) {
        at = malloc(((size_t)n + 1) * sizeof *at);
        for (int64_t i = 0; at && i <= n; i++)
            at[i] = (from + i) * c->bytes;
        rc = !at                    ? ty_error_set(r->err, TY_E_LIMIT, "no memory for %lld values of it", (long long)n)
             : at[n] > (int64_t)b.n ? arrow_damaged(r, "it has fewer values than its batch has rows")
                                    : 0;
    } else {
        rc = arrow_offsets_read(r, c->value.buffer + 1, c->bytes, from, n, (int64_t)b.n, &at);
    }
    if (rc == 0)
        rc = texts_take(r, &b, at, n);
    free(at);
    free(b.data);
    return rc;
}

/* ---- views ---- */

/* Where the bytes of a view lie in those of the column: the buffer of views, then the others, one behind the other.
 * Short texts lie in the view itself, behind their length; of others the buffer and the place in it are told. at:
 * where each buffer begins, [n_loose + 1]. */
static int view_span(const arrow_reader *r, const uint8_t *view, size_t here, const size_t *at, int64_t n_loose,
                     parquet_span *out)
{
    int64_t n = arrow_whole(view, 4, true), buffer = arrow_whole(view + 8, 4, true);
    int64_t place = arrow_whole(view + 12, 4, true);
    *out = (parquet_span){.at = here + 4, .n = (uint64_t)n};
    if (n >= 0 && n <= 12)
        return 0;
    if (n < 0 || buffer < 0 || buffer >= n_loose || place < 0 ||
        (uint64_t)place + (uint64_t)n > at[buffer + 1] - at[buffer])
        return arrow_damaged(r, "it points outside of its buffers");
    out->at = at[buffer] + (uint64_t)place;
    return 0;
}

/* Adds a buffer's bytes to those of the column. */
static int views_add_bytes(const arrow_reader *r, const int64_t place[2])
{
    arrow_buffer b;
    parquet_values *v = r->out;
    if (arrow_buffer_read(r, place, &b) < 0)
        return -1;
    int rc = parquet_reserve_bytes(v, b.n, r->err);
    if (rc == 0 && b.n > 0)
        memcpy(v->bytes + v->n_bytes, b.data, b.n);
    v->n_bytes += rc == 0 ? b.n : 0;
    free(b.data);
    return rc;
}

static int views_spans(const arrow_reader *r, const size_t *at, int64_t n_loose, int64_t from, int64_t n)
{
    parquet_values *v = r->out;
    parquet_span *span = v->v;
    for (int64_t i = 0; i < n; i++) {
        size_t here = (size_t)(from + i) * 16;
        span[i] = (parquet_span){0};
        if (!(v->null && v->null[i]) && view_span(r, v->bytes + here, here, at, n_loose, &span[i]) < 0)
            return -1;
    }
    return 0;
}

static int views_read(const arrow_reader *r, int64_t from, int64_t n)
{
    const arrow_batch *b = r->batch;
    int64_t first = b->first_loose[r->column->view], n_loose = b->first_loose[r->column->view + 1] - first;
    size_t *at = malloc(((size_t)n_loose + 1) * sizeof *at);
    int rc = at ? views_add_bytes(r, b->buffer[r->column->value.buffer + 1])
                : ty_error_set(r->err, TY_E_LIMIT, "no memory for %lld buffers of it", (long long)n_loose);
    if (rc == 0 && (int64_t)r->out->n_bytes / 16 < from + n)
        rc = arrow_damaged(r, "it has fewer values than its batch has rows");
    for (int64_t i = 0; rc == 0 && i < n_loose; i++) {
        at[i] = r->out->n_bytes;
        rc = views_add_bytes(r, b->loose[first + i]);
    }
    if (rc == 0) {
        at[n_loose] = r->out->n_bytes;
        rc = views_spans(r, at, n_loose, from, n);
    }
    free(at);
    return rc;
}

int arrow_texts_read(const arrow_reader *r, int64_t from, int64_t n)
{
    return r->column->kind == ARROW_VIEW ? views_read(r, from, n) : texts_in_a_row(r, from, n);
}
