/* values.c - the values of a column in a record batch: nulls of what is around them, lists, and what lies in these. */
#include "container/input/arrow/reader.h"
#include "container/input/parquet/values.h"

#include <stdlib.h>
#include <string.h>

/* Rows that the structs around them are not there for. */
static int nulls_above(const arrow_reader *r, int64_t n, uint8_t *null)
{
    for (int i = 0; i < r->column->n_above; i++)
        if (arrow_nulls_add(r, r->column->above[i], 0, n, null) < 0)
            return -1;
    return 0;
}

/* Elements that the structs around them are not there for. */
static int nulls_inside(const arrow_reader *r, int64_t from, int64_t n, uint8_t *null)
{
    for (int i = 0; i < r->column->n_inside; i++)
        if (arrow_nulls_add(r, r->column->inside[i], from, n, null) < 0)
            return -1;
    return 0;
}

/* Values [from, from + n) of its own rows; null: of rows around them, or NULL. */
int arrow_values_read(const arrow_reader *r, int64_t from, int64_t n, const uint8_t *null)
{
    parquet_values *v = r->out;
    if (from + n > r->batch->node[r->column->value.node][0])
        return arrow_damaged(r, "it has fewer values than its lists");
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
    else if (arrow_nulls_add(r, r->column->value, from, n, v->null) < 0)
        return -1;
    v->n = n;
    if (r->column->is_coded) /* of which a value may be null */
        return arrow_coded_read(r, from, n);
    if (memchr(v->null, 1, (size_t)n) == NULL) {
        free(v->null);
        v->null = NULL;
    }
    return r->column->form == PARQUET_AS_BYTES ? arrow_texts_read(r, from, n) : arrow_numbers_read(r, from, n);
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
static int lists_offsets(const arrow_reader *r, const arrow_list *l, int64_t from, int64_t n, int64_t most,
                         int64_t **at)
{
    if (l->bytes > 0)
        return arrow_offsets_read(r, l->place.buffer + 1, l->bytes, from, n, most, at);
    if (l->size > 0 && from + n > most / l->size)
        return arrow_damaged(r, "it has fewer values than its lists");
    *at = malloc(((size_t)n + 1) * sizeof **at);
    for (int64_t i = 0; *at && i <= n; i++)
        (*at)[i] = (from + i) * l->size;
    return *at ? 0 : ty_error_set(r->err, TY_E_LIMIT, "no memory for %lld lists", (long long)n);
}

/* Of lists in lists one that is null would leave out elements in the middle of a row. */
static int lists_refuse_nulls(const arrow_reader *r, const arrow_list *l, int64_t from, int64_t n, const int64_t *at)
{
    uint8_t *null = calloc((size_t)n + 1, 1);
    int rc = null ? arrow_nulls_add(r, l->place, from, n, null)
                  : ty_error_set(r->err, TY_E_LIMIT, "no memory for its nulls");
    for (int64_t i = 0; rc == 0 && i < n; i++)
        if (null[i] && at[i + 1] > at[i])
            rc = ty_error_set(r->err, TY_E_DATA_VALUE, "a list in a list is null");
    free(null);
    return rc;
}

/* first[i], a row of list `level`, becomes its first element. */
static int lists_descend(const arrow_reader *r, int level, int64_t n, int64_t *first)
{
    const arrow_column *c = r->column;
    const arrow_list *l = &c->list[level];
    arrow_place below = level + 1 < c->n_lists ? c->list[level + 1].place : c->value;
    int64_t from = first[0], count = first[n] - from, *at;
    if (from + count > r->batch->node[l->place.node][0])
        return arrow_damaged(r, "it has fewer lists than those around them");
    if (lists_offsets(r, l, from, count, r->batch->node[below.node][0], &at) < 0)
        return -1;
    int rc = level > 0 ? lists_refuse_nulls(r, l, from, count, at) : 0;
    for (int64_t i = 0; i <= n; i++)
        first[i] = at[first[i] - from];
    free(at);
    return rc;
}

static int lists_read(const arrow_reader *r, int64_t n, uint8_t *null)
{
    parquet_values *v = r->out;
    int64_t *first = v->first = malloc(((size_t)n + 1) * sizeof *first);
    if (!first)
        return ty_error_set(r->err, TY_E_LIMIT, "no memory for %lld lists", (long long)n);
    for (int64_t i = 0; i <= n; i++)
        first[i] = i;
    if (arrow_nulls_add(r, r->column->list[0].place, 0, n, null) < 0)
        return -1;
    for (int level = 0; level < r->column->n_lists; level++)
        if (lists_descend(r, level, n, first) < 0)
            return -1;
    int64_t from = first[0];
    if (arrow_values_read(r, from, first[n] - from, NULL) < 0)
        return -1;
    for (int64_t i = 0; i <= n; i++)
        first[i] -= from;
    lists_close_up(v, null, n);
    return 0;
}

int arrow_read(const arrow_file *file, arrow_bytes bytes, int group, int column, parquet_values *out, ty_error *err)
{
    const arrow_column *c = &file->schema.column[column];
    arrow_reader r = {
        .schema = &file->schema, .batch = &file->batch[group], .column = c, .bytes = bytes, .out = out, .err = err};
    int64_t n = r.batch->n_rows;
    parquet_values_again(out, c->form);
    if (n > PARQUET_MAX_ELEMENTS || n > r.batch->node[c->n_lists > 0 ? c->list[0].place.node : c->value.node][0])
        return arrow_damaged(&r, "it has fewer values than its batch has rows, or more than are read");
    uint8_t *null = calloc((size_t)n + 1, 1);
    int rc = null ? nulls_above(&r, n, null) : ty_error_set(err, TY_E_LIMIT, "no memory for %lld rows", (long long)n);
    if (rc == 0)
        rc = c->n_lists > 0 ? lists_read(&r, n, null) : arrow_values_read(&r, 0, n, null);
    free(null);
    out->n_rows = n;
    if (rc < 0)
        parquet_values_fini(out);
    return rc;
}
