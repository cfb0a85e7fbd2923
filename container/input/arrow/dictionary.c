/* dictionary.c - columns of numbers of values that lie in a dictionary, which may come in pieces. */
#include "container/input/arrow/reader.h"
#include "container/input/parquet/values.h"

#include <stdlib.h>
#include <string.h>

/* Value number `index` of the dictionary as element i. */
static void coded_take(parquet_values *v, int64_t i, const parquet_values *from, int64_t index)
{
    size_t each = parquet_form_bytes(v->form);
    memcpy((char *)v->v + (size_t)i * each, (const char *)from->v + (size_t)index * each, each);
    if (v->null)
        v->null[i] |= from->null && from->null[index];
}

static int coded_look_up(const arrow_reader *r, const uint8_t *index, int64_t n, const parquet_values *from)
{
    const arrow_column *c = r->column;
    parquet_values *v = r->out;
    size_t each = parquet_form_bytes(v->form);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = arrow_whole(index + i * c->index_bytes, c->index_bytes, c->is_signed);
        if (v->null && v->null[i])
            memset((char *)v->v + (size_t)i * each, 0, each);
        else if (k < 0 || k >= from->n)
            return arrow_damaged(r, "it has a number beyond its dictionary");
        else
            coded_take(v, i, from, k);
    }
    return 0;
}

/* Texts share the dictionary's bytes. */
static int coded_share(const arrow_reader *r, const parquet_values *from)
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

static int coded_values(const arrow_reader *r, int64_t from, int64_t n, const parquet_values *values)
{
    arrow_buffer b;
    if (arrow_buffer_read(r, r->batch->buffer[r->column->value.buffer + 1], &b) < 0)
        return -1;
    int rc = (int64_t)b.n < (from + n) * r->column->index_bytes
                 ? arrow_damaged(r, "it has fewer values than its batch has rows")
                 : coded_share(r, values);
    if (rc == 0)
        rc = coded_look_up(r, b.data + from * r->column->index_bytes, n, values);
    free(b.data);
    return rc;
}

/* ---- in pieces ---- */

/* A piece's values behind those that are there. */
static int pieces_add(parquet_values *all, const parquet_values *piece, ty_error *err)
{
    size_t each = parquet_form_bytes(all->form);
    if (parquet_reserve(all, piece->n, err) < 0 || parquet_reserve_bytes(all, piece->n_bytes, err) < 0)
        return -1;
    if (!all->null && (all->null = calloc((size_t)all->room + 1, 1)) == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %lld values of it", (long long)all->room);
    if (piece->n > 0)
        memcpy((char *)all->v + (size_t)all->n * each, piece->v, (size_t)piece->n * each);
    for (int64_t i = 0; i < piece->n; i++)
        all->null[all->n + i] = piece->null ? piece->null[i] : 0;
    for (int64_t i = 0; all->form == PARQUET_AS_BYTES && i < piece->n; i++)
        ((parquet_span *)all->v)[all->n + i].at += all->n_bytes;
    if (piece->n_bytes > 0)
        memcpy(all->bytes + all->n_bytes, piece->bytes, piece->n_bytes);
    all->n += piece->n;
    all->n_bytes += piece->n_bytes;
    return 0;
}

static int pieces_read_one(const arrow_reader *r, const arrow_batch *piece, parquet_values *all)
{
    parquet_values values = {.form = all->form};
    arrow_reader d = {.batch = piece, .bytes = r->bytes, .out = &values, .err = r->err};
    d.column = &r->schema->dictionary[r->column->dictionary].values;
    int rc = arrow_values_read(&d, 0, piece->n_rows, NULL);
    if (rc == 0 && all->n == 0 && piece->before == NULL) {
        *all = values; /* mostly there is no other */
        return 0;
    }
    if (rc == 0)
        rc = pieces_add(all, &values, r->err);
    parquet_values_fini(&values);
    return rc;
}

/* The first piece first. */
static int pieces_read(const arrow_reader *r, const arrow_batch *last, parquet_values *all)
{
    int64_t n = 0;
    for (const arrow_batch *b = last; b; b = b->before)
        n++;
    const arrow_batch **piece = malloc((size_t)n * sizeof *piece);
    if (!piece)
        return ty_error_set(r->err, TY_E_LIMIT, "no memory for %lld pieces of its dictionary", (long long)n);
    int64_t k = n;
    for (const arrow_batch *b = last; b; b = b->before)
        piece[--k] = b;
    int rc = 0;
    for (; rc == 0 && k < n; k++)
        rc = pieces_read_one(r, piece[k], all);
    free(piece);
    return rc;
}

int arrow_coded_read(const arrow_reader *r, int64_t from, int64_t n)
{
    const arrow_column *c = r->column;
    const arrow_batch *batch = r->batch->dictionary ? r->batch->dictionary[c->dictionary] : NULL;
    if (batch == NULL)
        return n == 0 ? 0 : arrow_damaged(r, "its dictionary is not there");
    parquet_values values = {.form = c->form};
    int rc = batch->n_values > PARQUET_MAX_ELEMENTS ? arrow_damaged(r, "its dictionary has too many values")
                                                    : pieces_read(r, batch, &values);
    if (rc == 0)
        rc = coded_values(r, from, n, &values);
    parquet_values_fini(&values);
    return rc;
}
