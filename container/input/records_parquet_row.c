/* records_parquet_row.c - the values of a row, out of columns in memory: numbers, lists, texts, pictures and sounds.
 */
#include "container/input/records_parquet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The elements of a row. */
static void row_elements(const parquet_values *v, int64_t row, int64_t *from, int64_t *n)
{
    *from = v->first ? v->first[row] : row;
    *n = v->first ? v->first[row + 1] - *from : 1;
}

/* A place without a value in a row of several columns; -1: there is none. */
static int32_t row_first_null(const records_field *f, const records_cell *c)
{
    for (int32_t k = 0; k < f->n_columns; k++) {
        const parquet_values *v = &c->u.row.value[f->column[k]];
        int64_t from, n;
        row_elements(v, c->u.row.row, &from, &n);
        for (int64_t i = 0; v->null && i < n; i++)
            if (v->null[from + i])
                return k;
    }
    return -1;
}

static int row_refuse_null(const records_look *look, const records_field *f, int32_t column, ty_error *err)
{
    ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": column \"%s\" has no value (null)", f->declared.name,
                 look->impl->rows->column[f->column[column]]->name);
    return ty_error_help(err, "say what stands for it: missing: 0");
}

/* Elements of all columns of a field that has parts, and of each of these. */
static int64_t row_count_parts(const records_field *f, const rows_group *g, int64_t row,
                               int64_t n_part[TY_N_TEXT_PARTS])
{
    int64_t all = 0, from, n;
    int32_t own = f->n_columns;
    for (int i = 0; i < TY_N_TEXT_PARTS; i++)
        own -= f->n_part[i];
    for (int32_t k = 0, part = -1, end = own; k < f->n_columns; k++) {
        while (k == end)
            end += f->n_part[++part];
        row_elements(&g->value[f->column[k]], row, &from, &n);
        all += n;
        if (part >= 0)
            n_part[part] += n;
    }
    return all;
}

static int row_find_cell(records_look *look, int i, const rows_group *g, int64_t row, ty_error *err)
{
    const records_field *f = &look->impl->field[i];
    const parquet_values *v = &g->value[f->column[0]];
    records_cell *c = &look->cell[i];
    int64_t from, n;
    row_elements(v, row, &from, &n);
    c->is_there = true;
    c->dtype = f->decoded;
    c->n = f->n_columns > 1 ? f->n_columns : n;
    memset(c->n_part, 0, sizeof c->n_part);
    if (records_has_parts(f))
        c->n = row_count_parts(f, g, row, c->n_part);
    c->scratch_bytes = 0;
    c->u.row.value = g->value;
    c->u.row.plain = g->plain;
    c->u.row.row = row;
    c->u.row.field = i;
    c->u.row.column = f->column[0];
    if (!g->has_nulls || f->declared.map)
        return 0;
    if (f->n_columns == 1 && v->first == NULL) {
        c->is_there = !parquet_is_null(v, from);
        return 0;
    }
    int32_t null = f->declared.missing_given ? -1 : row_first_null(f, c);
    return null < 0 ? 0 : row_refuse_null(look, f, null, err);
}

int parquet_row_find(records_look *look, const rows_group *g, int64_t row, ty_error *err)
{
    for (int i = records_first(look); i < records_end(look); i++)
        if (row_find_cell(look, i, g, row, err) < 0)
            return -1;
    return 0;
}

int64_t parquet_row_count(const records_cell *c)
{
    return c->n;
}

/* Element `at` as number k of look->stored. What stands for no value is scaled like any other, as in tables. */
static void row_store(records_look *look, const records_cell *c, const parquet_values *v, int64_t at, int64_t k)
{
    const ty_field *d = &look->impl->field[c->u.row.field].declared;
    bool is_null = parquet_is_null(v, at);
    double missing = d->map ? (double)NAN : d->missing;
    int64_t whole = isnan(missing) ? 0 : (int64_t)missing; /* nan: a look at data, which counts */
    if (c->dtype == TY_I64)
        ((int64_t *)look->stored)[k] = is_null                     ? whole
                                       : v->form == PARQUET_AS_I64 ? ((const int64_t *)v->v)[at]
                                                                   : ((const int32_t *)v->v)[at];
    else if (c->dtype == TY_F32)
        ((float *)look->stored)[k] = is_null ? (float)missing : ((const float *)v->v)[at];
    else
        ((double *)look->stored)[k] = is_null ? missing : parquet_number(v, at);
}

/* The usual row of a table: all of several columns of one kind. Returns how many it has stored; the next is another. */
static int64_t row_decode_alike(records_look *look, const records_field *f, const records_cell *c, int64_t n)
{
    const void *const *plain = c->u.row.plain;
    const parquet_form *form = look->impl->rows->form;
    int64_t row = c->u.row.row, k = 0;
    if (c->dtype == TY_F32)
        for (float *out = look->stored; k < n && plain[f->column[k]]; k++)
            out[k] = ((const float *)plain[f->column[k]])[row];
    else if (c->dtype == TY_F64)
        for (double *out = look->stored; k < n && plain[f->column[k]] && form[f->column[k]] == PARQUET_AS_F64; k++)
            out[k] = ((const double *)plain[f->column[k]])[row];
    else
        for (int64_t *out = look->stored; k < n && plain[f->column[k]] && form[f->column[k]] == PARQUET_AS_I64; k++)
            out[k] = ((const int64_t *)plain[f->column[k]])[row];
    return k;
}

int64_t parquet_row_decode(records_look *look, const records_cell *c, int64_t max)
{
    const records_field *f = &look->impl->field[c->u.row.field];
    if (f->n_columns == 1) {
        const parquet_values *v = &c->u.row.value[f->column[0]];
        int64_t from, n;
        row_elements(v, c->u.row.row, &from, &n);
        for (int64_t k = 0; k < n && k < max; k++)
            row_store(look, c, v, from + k, k);
        return n;
    }
    int64_t n = f->n_columns < max ? f->n_columns : max;
    for (int64_t k = row_decode_alike(look, f, c, n); k < n; k++)
        row_store(look, c, &c->u.row.value[f->column[k]], c->u.row.row, k);
    return f->n_columns;
}

/* ---- transforms, pictures and sounds ---- */

/* Numbers as a text, for vocabularies and hashes over several columns of which one is text. */
static ty_text row_text(const parquet_values *v, int64_t at, char **room)
{
    static const char none[1];
    if (parquet_is_null(v, at))
        return (ty_text){NULL, 0};
    if (v->form == PARQUET_AS_BYTES) {
        const parquet_span *s = (const parquet_span *)v->v + at;
        return (ty_text){s->n > 0 ? (const char *)v->bytes + s->at : none, (size_t)s->n};
    }
    char *text = *room;
    bool is_whole = v->form == PARQUET_AS_I32 || v->form == PARQUET_AS_I64;
    int n = is_whole ? sprintf(text, "%lld",
                               (long long)(v->form == PARQUET_AS_I64 ? ((const int64_t *)v->v)[at]
                                                                     : ((const int32_t *)v->v)[at]))
                     : sprintf(text, "%.17g", parquet_number(v, at));
    *room += n + 1;
    return (ty_text){text, (size_t)n};
}

enum { ROW_TEXT_BYTES = 32 }; /* of a number */

/* Of several columns, each of which may have lists, and whose null lists have no text. */
static void row_texts(const records_field *f, const records_cell *c, ty_text *text, char *room)
{
    for (int32_t k = 0; k < f->n_columns; k++) {
        const parquet_values *v = &c->u.row.value[f->column[k]];
        int64_t from, n;
        row_elements(v, c->u.row.row, &from, &n);
        for (int64_t i = 0; i < n; i++)
            *text++ = row_text(v, from + i, &room);
    }
}

/* Integers stay such if all are there; else they are numbers, of which one may be NaN. */
int parquet_row_cells(records_look *look, const records_cell *c, bool wants_text, ty_cells *out, ty_error *err)
{
    const records_field *f = &look->impl->field[c->u.row.field];
    bool is_text = false, is_whole = true;
    for (int32_t k = 0; k < f->n_columns; k++) {
        parquet_form form = c->u.row.value[f->column[k]].form;
        is_text |= form == PARQUET_AS_BYTES;
        is_whole &= form == PARQUET_AS_I32 || form == PARQUET_AS_I64;
    }
    is_whole &= row_first_null(f, c) < 0;
    is_text |= (wants_text && !is_whole) || records_has_parts(f);
    records_cell as = *c;
    as.dtype = is_whole ? TY_I64 : TY_F64;
    if (records_bytes(look, (size_t)c->n * (sizeof(ty_text) + ROW_TEXT_BYTES) + 64, err) < 0)
        return -1;
    out->n = c->n;
    if (!is_text) {
        out->kind = is_whole ? TY_CELLS_INTEGERS : TY_CELLS_NUMBERS;
        out->u.integer = look->stored;
        parquet_row_decode(look, &as, c->n);
        return 0;
    }
    ty_text *text = look->stored;
    row_texts(f, c, text, (char *)(text + c->n));
    out->kind = TY_CELLS_TEXTS;
    memcpy(out->n_part, c->n_part, sizeof c->n_part);
    out->u.text = text;
    return 0;
}

int parquet_row_encoded(const records_cell *c, const uint8_t **bytes, size_t *n, ty_error *err)
{
    const parquet_values *v = &c->u.row.value[c->u.row.column];
    const parquet_span *s = (const parquet_span *)v->v + c->u.row.row;
    (void)err;
    *bytes = c->is_there ? v->bytes + s->at : NULL;
    *n = c->is_there ? (size_t)s->n : 0;
    return 0;
}
