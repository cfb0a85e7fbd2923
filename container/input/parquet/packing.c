/* packing.c - see packing.h. */
#include "container/input/parquet/packing.h"

#include <stdlib.h>
#include <string.h>

static size_t padded(size_t n)
{
    return (n + 7) / 8 * 8;
}

/* Zeros behind n bytes: what is equal has equal bytes. */
static void pad(uint8_t *out, size_t n)
{
    memset(out + n, 0, padded(n) - n);
}

void parquet_packing_init(parquet_packing *p, const parquet_rows *r, ty_arena *a)
{
    size_t end = 0;
    *p = (parquet_packing){.column = r->column, .form = r->form, .n_columns = r->n_columns, .like = r->path[0]};
    p->at = TY_NEW_ARRAY(a, size_t, r->n_columns + 1);
    p->fixed = TY_NEW_ARRAY(a, int, r->n_columns + 1);
    for (size_t each = 8; each >= 4; each -= 4)
        for (int c = 0; c < r->n_columns; c++) {
            bool is_number = r->form[c] != PARQUET_AS_BYTES && r->column[c]->max_rep == 0;
            if (!is_number)
                p->fixed[c] = -1;
            if (!is_number || parquet_form_bytes(r->form[c]) != each)
                continue;
            p->at[c] = end;
            p->fixed[c] = p->n_fixed++;
            end += each;
        }
    p->nulls = end;
    p->n_head = padded(end + (size_t)p->n_fixed);
}

/* ---- lists and texts ---- */

enum { LIST_WORDS = 4 }; /* 0, n, n_bytes, has_null */

static void list_of(const parquet_values *v, int64_t row, int64_t *from, int64_t *n)
{
    *from = v->first ? v->first[row] : row;
    *n = v->first ? v->first[row + 1] - *from : 1;
}

static size_t list_text_bytes(const parquet_values *v, int64_t from, int64_t n)
{
    size_t bytes = 0;
    for (int64_t i = 0; v->form == PARQUET_AS_BYTES && i < n; i++)
        bytes += ((const parquet_span *)v->v)[from + i].n;
    return bytes;
}

static size_t list_bytes(const parquet_values *v, parquet_form form, int64_t row)
{
    int64_t from, n;
    list_of(v, row, &from, &n);
    return LIST_WORDS * sizeof(int64_t) + padded((size_t)n * parquet_form_bytes(form)) +
           (v->null ? padded((size_t)n) : 0) + padded(list_text_bytes(v, from, n));
}

/* One number as another form. */
static void put_number(const parquet_values *v, int64_t i, parquet_form form, uint8_t *out)
{
    size_t each = parquet_form_bytes(form);
    if (v->form == form) {
        memcpy(out, (const char *)v->v + (size_t)i * each, each);
    } else if (form == PARQUET_AS_I64) {
        int64_t whole = parquet_whole(v, i);
        memcpy(out, &whole, sizeof whole);
    } else {
        double real = parquet_number(v, i);
        memcpy(out, &real, sizeof real);
    }
}

static void list_put_texts(const parquet_values *v, int64_t from, int64_t n, uint8_t *spans, uint8_t *bytes)
{
    uint64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const parquet_span *s = (const parquet_span *)v->v + from + i;
        const parquet_span here = {at, s->n};
        memcpy(spans + (size_t)i * sizeof here, &here, sizeof here);
        if (s->n > 0)
            memcpy(bytes + at, v->bytes + s->at, s->n);
        at += s->n;
    }
}

/* Returns the end of what it has written. */
static uint8_t *list_put(const parquet_values *v, parquet_form form, int64_t row, uint8_t *out)
{
    int64_t from, n;
    list_of(v, row, &from, &n);
    size_t n_text = list_text_bytes(v, from, n), each = parquet_form_bytes(form);
    const int64_t words[LIST_WORDS] = {0, n, (int64_t)n_text, v->null != NULL};
    uint8_t *elements = out + sizeof words, *null = elements + padded((size_t)n * each);
    uint8_t *text = null + (v->null ? padded((size_t)n) : 0);
    memcpy(out, words, sizeof words);
    if (form == PARQUET_AS_BYTES)
        list_put_texts(v, from, n, elements, text);
    else if (v->form == form && n > 0)
        memcpy(elements, (const char *)v->v + (size_t)from * each, (size_t)n * each);
    else
        for (int64_t i = 0; i < n; i++)
            put_number(v, from + i, form, elements + (size_t)i * each);
    if (v->null && n > 0)
        memcpy(null, v->null + from, (size_t)n);
    pad(elements, (size_t)n * each);
    if (v->null)
        pad(null, (size_t)n);
    pad(text, n_text);
    return text + padded(n_text);
}

/* ---- rows ---- */

size_t parquet_packed_bytes(const parquet_packing *p, const parquet_values *v, int64_t row)
{
    size_t n = PARQUET_PACKED_HEAD + p->n_head;
    for (int c = 0; p->n_fixed < p->n_columns && c < p->n_columns; c++)
        if (p->fixed[c] < 0)
            n += list_bytes(&v[c], p->form[c], row);
    return n;
}

static void pack_column(const parquet_values *v, parquet_form form, int64_t from, int64_t n, const size_t *at,
                        uint8_t *out)
{
    if (v->form != form)
        for (int64_t i = 0; i < n; i++)
            put_number(v, from + i, form, out + at[i]);
    else if (parquet_form_bytes(form) == 4)
        for (int64_t i = 0; i < n; i++)
            memcpy(out + at[i], (const char *)v->v + (from + i) * 4, 4);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(out + at[i], (const char *)v->v + (from + i) * 8, 8);
}

/* Returns where the row ends. */
static uint8_t *pack_rest(const parquet_packing *p, const parquet_values *v, int64_t row, uint8_t *out)
{
    for (int c = 0; c < p->n_columns; c++)
        if (p->fixed[c] < 0)
            out = list_put(&v[c], p->form[c], row, out);
    return out;
}

void parquet_pack_rows(const parquet_packing *p, const parquet_values *v, int64_t from, int64_t n, const size_t *at,
                       uint8_t *out)
{
    for (int64_t i = 0; i < n; i++) {
        uint8_t *row = out + at[i];
        memset(row + PARQUET_PACKED_HEAD + p->nulls, 0, p->n_head - p->nulls);
        uint8_t *end = row + PARQUET_PACKED_HEAD + p->n_head;
        if (p->n_fixed < p->n_columns)
            end = pack_rest(p, v, from + i, end);
        uint64_t bytes = (uint64_t)(end - row) - PARQUET_PACKED_HEAD;
        memcpy(row, &bytes, sizeof bytes);
    }
    for (int c = 0; c < p->n_columns; c++) {
        if (p->fixed[c] < 0)
            continue;
        pack_column(&v[c], p->form[c], from, n, at, out + PARQUET_PACKED_HEAD + p->at[c]);
        for (int64_t i = 0; v[c].null && i < n; i++)
            out[at[i] + PARQUET_PACKED_HEAD + p->nulls + (size_t)p->fixed[c]] = v[c].null[from + i];
    }
}

/* Returns where the next column begins. */
static uint8_t *unpack_list(const parquet_column *column, uint8_t *p, parquet_values *v)
{
    int64_t *words = (int64_t *)(void *)p;
    p += LIST_WORDS * sizeof *words;
    v->n = words[1];
    v->n_bytes = (size_t)words[2];
    v->first = column->max_rep > 0 ? words : NULL;
    v->v = p;
    p += padded((size_t)v->n * parquet_form_bytes(v->form));
    v->null = words[3] ? p : NULL;
    p += words[3] ? padded((size_t)v->n) : 0;
    v->bytes = p;
    return p + padded(v->n_bytes);
}

/* Columns of numbers, which lie at the same place in every row. */
static void unpack_lay(const parquet_packing *p, parquet_unpacked *u)
{
    for (int c = 0; c < p->n_columns; c++) {
        u->v[c] = (parquet_values){.form = p->form[c], .n = 1, .n_rows = 1};
        u->plain[c] = u->v[c].v = p->fixed[c] < 0 ? NULL : u->row + p->at[c];
    }
    u->has_nulls = false;
}

static int unpack_room(const parquet_packing *p, parquet_unpacked *u, size_t n, ty_error *err)
{
    if (!u->v) {
        u->v = malloc(((size_t)p->n_columns + 1) * sizeof *u->v);
        u->plain = malloc(((size_t)p->n_columns + 1) * sizeof *u->plain);
    }
    free(u->row);
    u->room = n + n / 4;
    u->row = malloc(u->room + 1);
    if (!u->v || !u->plain || !u->row)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a row of %zu bytes", n);
    unpack_lay(p, u);
    return 0;
}

/* Numbers without a value; those of the row before have theirs again. */
static bool unpack_nulls(const parquet_packing *p, parquet_unpacked *u)
{
    uint8_t any = 0, *null = u->row + p->nulls;
    for (int k = 0; k < p->n_fixed; k++)
        any |= null[k];
    for (int c = 0; (any || u->has_nulls) && c < p->n_columns; c++) {
        if (p->fixed[c] < 0)
            continue;
        bool is_null = null[p->fixed[c]];
        u->v[c].null = is_null ? null + p->fixed[c] : NULL;
        u->plain[c] = is_null ? NULL : u->v[c].v;
    }
    return any;
}

int parquet_unpack_row(const parquet_packing *p, parquet_unpacked *u, const uint8_t *row, size_t n, ty_error *err)
{
    if ((n > u->room || !u->row) && unpack_room(p, u, n, err) < 0)
        return -1;
    memcpy(u->row, row, n);
    bool has_nulls = unpack_nulls(p, u);
    uint8_t *rest = u->row + p->n_head;
    for (int c = 0; p->n_fixed < p->n_columns && c < p->n_columns; c++) {
        if (p->fixed[c] >= 0)
            continue;
        parquet_values *v = &u->v[c];
        rest = unpack_list(p->column[c], rest, v);
        has_nulls |= v->null != NULL;
        u->plain[c] = v->null || v->first ? NULL : v->v;
    }
    u->has_nulls = has_nulls;
    return 0;
}

void parquet_unpacked_fini(parquet_unpacked *u)
{
    free(u->v);
    free(u->plain);
    free(u->row);
    *u = (parquet_unpacked){0};
}
