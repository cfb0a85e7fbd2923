/* records_parquet.c - rows of Parquet files (parquet/rows.h): a field is one column or several, as in a table, or one
 * whose rows are lists of any length, or bytes that are a picture or a sound.
 *
 * The columns that fields use are decoded when the data are opened, and stay in memory as they are stored; those that
 * no field uses are not looked at. A row's frame is a place in memory that nothing is read at: its distance from the
 * first row's is its number.
 */
#include "base/crew.h"
#include "container/input/header.h"
#include "container/input/parquet/blocks.h"
#include "container/input/records.h"
#include "container/input/survey.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const uint8_t *rows_base(const records_impl *impl)
{
    return impl->file[0].bytes.data;
}

/* ---- fields and columns ---- */

static int parquet_no_column(const parquet_file *f, const ty_field *d, const char *name, ty_error *err)
{
    char names[200] = "";
    size_t n = 0;
    for (int i = 0; i < f->n_columns && n + 40 < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%.36s", i ? ", " : "", f->column[i].name);
    ty_error_set(err, TY_E_CONFIG, "field \"%s\": the file has no column \"%s\"", d->name, name);
    return ty_error_help(err, "its columns are %s%s; say which it is: columns: NAME", names,
                         n + 40 < sizeof names ? "" : " ...");
}

/* Numbers of columns in the file. */
static int parquet_resolve(const parquet_file *f, records_field *field, ty_arena *a, ty_error *err)
{
    const ty_field *d = &field->declared;
    if (d->columns) {
        const char **names = TY_NEW_ARRAY(a, const char *, f->n_columns);
        for (int i = 0; i < f->n_columns; i++)
            names[i] = f->column[i].name;
        return ty_columns_resolve(d->columns, names, f->n_columns, a, &field->column, &field->n_columns, err) < 0
                   ? ty_error_wrap(err, "field \"%s\"", d->name)
                   : 0;
    }
    int k = parquet_find_column(f, field->name);
    if (k < 0)
        return parquet_no_column(f, d, field->name, err);
    field->column = TY_NEW_ARRAY(a, int32_t, 1);
    field->column[0] = k;
    field->n_columns = 1;
    return 0;
}

/* What a field without transforms takes are numbers. */
static int parquet_check(const parquet_file *f, const records_field *field, ty_error *err)
{
    const ty_field *d = &field->declared;
    bool is_media = ty_media_is(&field->media);
    for (int32_t i = 0; i < field->n_columns; i++) {
        const parquet_column *c = &f->column[field->column[i]];
        bool is_bytes = c->form == PARQUET_AS_BYTES;
        if (c->max_rep > 0 && field->n_columns > 1)
            return ty_error_set(err, TY_E_CONFIG, "field \"%s\": column \"%s\" holds lists, and can be a field alone",
                                d->name, c->name);
        if (is_media && (!is_bytes || c->max_rep > 0 || field->n_columns > 1))
            return ty_error_set(err, TY_E_CONFIG, "field \"%s\": a %s is the bytes of one column, and \"%s\" has none",
                                d->name, ty_media_noun(&field->media), c->name);
        if (!is_bytes || is_media || d->map)
            continue;
        ty_error_set(err, TY_E_CONFIG, "field \"%s\": column \"%s\" holds text, which feeds no model as it is", d->name,
                     c->name);
        return ty_error_help(err,
                             "say what becomes of it: %s: {vocabulary: auto}, hash: N, classes: auto, a tokenizer, "
                             "or image: or audio: if it holds pictures or sounds",
                             d->name);
    }
    return 0;
}

/* Elements of several columns are of one kind: floats if all are, else doubles, which hold any number but some of 64
 * bits. */
static ty_dtype parquet_decoded(const parquet_rows *r, const records_field *f)
{
    static const ty_dtype dtypes[] = {[PARQUET_AS_I32] = TY_I64,
                                      [PARQUET_AS_I64] = TY_I64,
                                      [PARQUET_AS_F32] = TY_F32,
                                      [PARQUET_AS_F64] = TY_F64,
                                      [PARQUET_AS_BYTES] = TY_U8};
    ty_dtype all = dtypes[r->form[f->column[0]]];
    for (int32_t k = 1; k < f->n_columns; k++)
        if (dtypes[r->form[f->column[k]]] != all)
            all = TY_F64;
    return all;
}

/* Numbers, where nothing else is declared: what a model takes as float32; an integer by itself as it is. One column has
 * one number a row, even if all of them are null. */
static void parquet_settle_type(const parquet_file *f, records_field *field)
{
    ty_field *d = &field->declared;
    if (d->map || ty_media_is(&field->media))
        return;
    bool is_flat = field->n_columns == 1 && f->column[field->column[0]].max_rep == 0;
    if (is_flat && !d->shape_given && d->max_length == 0) {
        d->shape_given = true;
        d->rank = 0;
    }
    if (is_flat && d->missing_given) /* scaled like any other value, as in CSV */
        d->missing = d->missing * d->scale + d->offset;
    if (d->dtype_given)
        return;
    parquet_form form = f->column[field->column[0]].form;
    bool is_whole = form == PARQUET_AS_I32 || form == PARQUET_AS_I64;
    d->dtype = field->n_columns == 1 && is_whole && d->scale == 1.0 && d->offset == 0.0 ? TY_I64 : TY_F32;
    d->dtype_given = true;
}

/* Columns that fields use become numbers of those that are read. */
static void parquet_want(parquet_rows *r, records_impl *impl, ty_arena *a)
{
    const parquet_file *f = &r->file[0];
    int32_t *slot = TY_NEW_ARRAY(a, int32_t, f->n_columns);
    r->column = TY_NEW_ARRAY(a, const parquet_column *, f->n_columns);
    for (int i = 0; i < f->n_columns; i++)
        slot[i] = -1;
    for (int i = 0; i < impl->n_fields; i++)
        for (int32_t k = 0; k < impl->field[i].n_columns; k++) {
            int32_t *column = &impl->field[i].column[k];
            if (slot[*column] < 0) {
                slot[*column] = r->n_columns;
                r->column[r->n_columns++] = &f->column[*column];
            }
            *column = slot[*column];
        }
}

/* ---- opening ---- */

static int parquet_open_files(records_impl *impl, parquet_rows *r, ty_arena *a, ty_error *err)
{
    const char **path = TY_NEW_ARRAY(a, const char *, impl->n_files);
    r->file = TY_NEW_ARRAY(a, parquet_file, impl->n_files);
    r->path = path;
    r->n_files = impl->n_files;
    for (int i = 0; i < impl->n_files; i++) {
        const ty_bytes *b = &impl->file[i].bytes;
        path[i] = impl->file[i].file->path;
        if (parquet_open(b->data, b->n, a, &r->file[i], err) < 0)
            return ty_error_at(err, "%s", path[i]);
    }
    return 0;
}

static void parquet_give_back(records_impl *impl)
{
    for (int i = 0; i < impl->n_files; i++)
        ty_bytes_close(&impl->file[i].bytes);
}

/* Places for all rows, in addresses that take no memory. */
static int parquet_place_rows(records_impl *impl, const parquet_rows *r, ty_error *err)
{
    size_t n = (size_t)r->n_rows, at = 0;
    uint8_t *base = mmap(NULL, n > 0 ? n : 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    parquet_give_back(impl);
    if (base == MAP_FAILED)
        return ty_error_set(err, TY_E_LIMIT, "no addresses for %zu rows", n);
    for (int i = 0; i < impl->n_files; i++) {
        size_t rows = !r->first_only ? (size_t)r->file[i].n_rows : i == 0 ? n : 0;
        impl->file[i].bytes = (ty_bytes){.data = base + at, .n = rows};
        at += rows;
    }
    return 0;
}

static int64_t parquet_longest(const parquet_rows *r, int32_t column)
{
    int64_t most = 1;
    for (int g = 0; g < r->n_groups; g++) {
        const parquet_values *v = &r->group[g].value[column];
        for (int64_t i = 0; v->first && i < v->n_rows; i++)
            most = v->first[i + 1] - v->first[i] > most ? v->first[i + 1] - v->first[i] : most;
    }
    return most;
}

static void parquet_take_longest(records_impl *impl, const parquet_rows *r)
{
    for (int i = 0; i < impl->n_fields; i++) {
        records_field *f = &impl->field[i];
        bool is_list = r->column[f->column[0]]->max_rep > 0;
        if (is_list && !f->declared.map && !f->declared.shape_given && f->declared.max_length == 0)
            f->declared.max_length = parquet_longest(r, f->column[0]);
    }
}

/* ---- blocks ---- */

/* Whether all that the field has are numbers, one a column. */
static bool parquet_is_numbers(const records_field *f, const parquet_rows *r)
{
    const ty_field *d = &f->declared;
    int64_t elems = d->shape_given ? ty_dims_elems_checked(d->rank, d->dim, 8) : f->n_columns;
    for (int32_t k = 0; k < f->n_columns; k++)
        if (r->column[f->column[k]]->max_rep > 0)
            return false;
    return !d->map && !ty_media_is(&f->media) && d->max_length == 0 && elems == f->n_columns;
}

static bool parquet_takes_blocks(const records_impl *impl, const ty_data_source *src, const parquet_rows *r)
{
    bool all = !src->types_only && !src->skip_bad;
    for (int i = 0; i < impl->n_fields; i++)
        all = all && parquet_is_numbers(&impl->field[i], r);
    return all;
}

static int parquet_read_blocks(ty_dataset *ds, parquet_rows *r, int n_threads, ty_error *err)
{
    records_impl *impl = ds->impl;
    parquet_blocks *b = impl->blocks = TY_NEW(&ds->arena, parquet_blocks);
    *b = (parquet_blocks){.rows = r, .info = ds->field, .n_fields = impl->n_fields};
    b->field = TY_NEW_ARRAY(&ds->arena, block_field, impl->n_fields);
    for (int i = 0; i < impl->n_fields; i++) {
        records_field *f = &impl->field[i];
        if (records_settle(f, &(records_cell){.dtype = f->decoded}, f->n_columns, &ds->field[i], err) < 0)
            return -1;
        b->field[i] = (block_field){.declared = &f->declared, .column = f->column, .n_columns = f->n_columns};
        b->field[i].min = f->min;
        b->field[i].max = f->max;
    }
    if (parquet_blocks_read(b, n_threads, &ds->arena, err) < 0)
        return -1;
    ds->n_samples = r->n_rows;
    for (int i = 0; i < impl->n_fields; i++)
        ds->stats.memory_bytes += r->n_rows * (int64_t)ds->field[i].row_bytes;
    return 0;
}

static int parquet_read_all(ty_dataset *ds, const ty_data_source *src, parquet_rows *r, ty_error *err)
{
    records_impl *impl = ds->impl;
    int n_threads = src->n_threads > 0 ? src->n_threads : ty_crew_processors();
    for (int i = 0; i < impl->n_fields; i++)
        if (parquet_resolve(&r->file[0], &impl->field[i], &ds->arena, err) < 0 ||
            parquet_check(&r->file[0], &impl->field[i], err) < 0)
            return ty_error_at(err, "%s", r->path[0]);
    for (int i = 0; i < impl->n_fields; i++)
        parquet_settle_type(&r->file[0], &impl->field[i]);
    parquet_want(r, impl, &ds->arena);
    r->first_only = src->types_only;
    if (parquet_rows_plan(r, &ds->arena, err) < 0)
        return -1;
    for (int i = 0; i < impl->n_fields; i++)
        impl->field[i].decoded = parquet_decoded(r, &impl->field[i]);
    if (parquet_takes_blocks(impl, src, r))
        return parquet_read_blocks(ds, r, n_threads, err);
    if (parquet_rows_read(r, n_threads, &ds->arena, err) < 0)
        return -1;
    ds->stats.memory_bytes = parquet_rows_bytes(r);
    if (src->any_length)
        parquet_take_longest(impl, r);
    return 0;
}

static int parquet_prepare(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    parquet_rows *r = TY_NEW(&ds->arena, parquet_rows);
    if (parquet_open_files(impl, r, &ds->arena, err) < 0 || parquet_read_all(ds, src, r, err) < 0)
        return -1;
    impl->rows = r;
    if (impl->blocks != NULL)
        parquet_give_back(impl);
    return impl->blocks != NULL ? 0 : parquet_place_rows(impl, r, err);
}

static void parquet_fini(records_impl *impl)
{
    if (impl->blocks != NULL)
        parquet_blocks_fini(impl->blocks);
    if (impl->rows == NULL || impl->blocks != NULL) /* its files are open yet, or lie in blocks */
        return;
    size_t n = (size_t)impl->rows->n_rows;
    if (rows_base(impl) != NULL)
        munmap((void *)(uintptr_t)rows_base(impl), n > 0 ? n : 1);
    for (int i = 0; i < impl->n_files; i++)
        impl->file[i].bytes = (ty_bytes){0};
    parquet_rows_fini(impl->rows);
}

static const uint8_t *parquet_rows_of(const records_impl *impl, int field)
{
    return impl->blocks ? impl->blocks->field[field].data : NULL;
}

static void parquet_place(const records_impl *impl, int64_t row, char *out, size_t n)
{
    parquet_rows_place(impl->rows, row, out, n);
}

/* ---- rows ---- */

/* The elements of a row. */
static void parquet_elements(const parquet_values *v, int64_t row, int64_t *from, int64_t *n)
{
    *from = v->first ? v->first[row] : row;
    *n = v->first ? v->first[row + 1] - *from : 1;
}

static bool parquet_is_null(const parquet_values *v, int64_t at)
{
    return v->null && v->null[at];
}

/* A place without a value in a row of several columns; -1: there is none. */
static int32_t parquet_first_null(const records_field *f, const records_cell *c)
{
    for (int32_t k = 0; k < f->n_columns; k++) {
        const parquet_values *v = &c->u.row.value[f->column[k]];
        int64_t from, n;
        parquet_elements(v, c->u.row.row, &from, &n);
        for (int64_t i = 0; v->null && i < n; i++)
            if (v->null[from + i])
                return k;
    }
    return -1;
}

static int parquet_refuse_null(const records_look *look, const records_field *f, int32_t column, ty_error *err)
{
    ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": column \"%s\" has no value (null)", f->declared.name,
                 look->impl->rows->column[f->column[column]]->name);
    return ty_error_help(err, "say what stands for it: missing: 0");
}

static int parquet_find_cell(records_look *look, int i, const rows_group *g, int64_t row, ty_error *err)
{
    const records_field *f = &look->impl->field[i];
    const parquet_values *v = &g->value[f->column[0]];
    records_cell *c = &look->cell[i];
    int64_t from, n;
    parquet_elements(v, row, &from, &n);
    c->is_there = true;
    c->dtype = f->decoded;
    c->n = f->n_columns > 1 ? f->n_columns : n;
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
    int32_t null = f->declared.missing_given ? -1 : parquet_first_null(f, c);
    return null < 0 ? 0 : parquet_refuse_null(look, f, null, err);
}

static int parquet_find(records_look *look, const ty_frame *record, ty_error *err)
{
    const records_impl *impl = look->impl;
    int64_t row = record->data - rows_base(impl);
    const rows_group *g = parquet_rows_group(impl->rows, row);
    for (int i = records_first(look); i < records_end(look); i++)
        if (parquet_find_cell(look, i, g, row - g->first, err) < 0)
            return -1;
    return 0;
}

static int64_t parquet_count(const records_cell *c)
{
    return c->n;
}

static double parquet_number(const parquet_values *v, int64_t at)
{
    switch (v->form) {
    case PARQUET_AS_I32:
        return ((const int32_t *)v->v)[at];
    case PARQUET_AS_I64:
        return (double)((const int64_t *)v->v)[at];
    case PARQUET_AS_F32:
        return (double)((const float *)v->v)[at];
    default:
        return ((const double *)v->v)[at];
    }
}

/* Element `at` as number k of look->stored. What stands for no value is scaled like any other, as in tables. */
static void parquet_store(records_look *look, const records_cell *c, const parquet_values *v, int64_t at, int64_t k)
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
static int64_t parquet_decode_alike(records_look *look, const records_field *f, const records_cell *c, int64_t n)
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

static int64_t parquet_decode_row(records_look *look, const records_cell *c, int64_t max)
{
    const records_field *f = &look->impl->field[c->u.row.field];
    if (f->n_columns == 1) {
        const parquet_values *v = &c->u.row.value[f->column[0]];
        int64_t from, n;
        parquet_elements(v, c->u.row.row, &from, &n);
        for (int64_t k = 0; k < n && k < max; k++)
            parquet_store(look, c, v, from + k, k);
        return n;
    }
    int64_t n = f->n_columns < max ? f->n_columns : max;
    for (int64_t k = parquet_decode_alike(look, f, c, n); k < n; k++)
        parquet_store(look, c, &c->u.row.value[f->column[k]], c->u.row.row, k);
    return f->n_columns;
}

/* ---- transforms, pictures and sounds ---- */

/* Numbers as a text, for vocabularies and hashes over several columns of which one is text. */
static ty_text parquet_text(const parquet_values *v, int64_t at, char **room)
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

enum { PARQUET_TEXT_BYTES = 32 }; /* of a number */

/* Integers stay such if all are there; else they are numbers, of which one may be NaN. */
static int parquet_cells(records_look *look, const records_cell *c, bool wants_text, ty_cells *out, ty_error *err)
{
    const records_field *f = &look->impl->field[c->u.row.field];
    bool is_text = false, is_whole = true;
    for (int32_t k = 0; k < f->n_columns; k++) {
        parquet_form form = c->u.row.value[f->column[k]].form;
        is_text |= form == PARQUET_AS_BYTES;
        is_whole &= form == PARQUET_AS_I32 || form == PARQUET_AS_I64;
    }
    is_whole &= parquet_first_null(f, c) < 0;
    is_text |= wants_text && !is_whole;
    records_cell as = *c;
    as.dtype = is_whole ? TY_I64 : TY_F64;
    if (records_bytes(look, (size_t)c->n * (sizeof(ty_text) + PARQUET_TEXT_BYTES) + 64, err) < 0)
        return -1;
    out->n = c->n;
    if (!is_text) {
        out->kind = is_whole ? TY_CELLS_INTEGERS : TY_CELLS_NUMBERS;
        out->u.integer = look->stored;
        parquet_decode_row(look, &as, c->n);
        return 0;
    }
    ty_text *text = look->stored;
    char *room = (char *)(text + c->n);
    int64_t from, n;
    parquet_elements(&c->u.row.value[f->column[0]], c->u.row.row, &from, &n);
    for (int64_t k = 0; k < c->n; k++)
        text[k] = f->n_columns == 1 ? parquet_text(&c->u.row.value[f->column[0]], from + k, &room)
                                    : parquet_text(&c->u.row.value[f->column[k]], c->u.row.row, &room);
    out->kind = TY_CELLS_TEXTS;
    out->u.text = text;
    return 0;
}

static int parquet_encoded(const records_cell *c, const uint8_t **bytes, size_t *n, ty_error *err)
{
    const parquet_values *v = &c->u.row.value[c->u.row.column];
    const parquet_span *s = (const parquet_span *)v->v + c->u.row.row;
    (void)err;
    *bytes = c->is_there ? v->bytes + s->at : NULL;
    *n = c->is_there ? (size_t)s->n : 0;
    return 0;
}

const records_kind records_parquet = {.framing = TY_FRAMES_ROWS,
                                      .fini = parquet_fini,
                                      .block = parquet_rows_of,
                                      .block_place = parquet_place,
                                      .prepare = parquet_prepare,
                                      .find = parquet_find,
                                      .count = parquet_count,
                                      .decode = parquet_decode_row,
                                      .cells = parquet_cells,
                                      .encoded = parquet_encoded};

/* ---- what the first file has ---- */

/* The first value of a column of bytes tells. */
static int parquet_survey_bytes(const parquet_file *f, int column, ty_data_part *part, ty_error *err)
{
    parquet_values v = {0};
    int64_t at = 0;
    part->is_text = true;
    if (f->n_groups == 0 || f->group[0].n_rows == 0)
        return 0;
    parquet_room room = {0};
    int rc = parquet_read(f, 0, column, 1, &room, &v, err);
    parquet_room_fini(&room);
    if (rc < 0)
        return -1;
    while (at < v.n && parquet_is_null(&v, at))
        at++;
    if (at < v.n) {
        const parquet_span *s = (const parquet_span *)v.v + at;
        part->is_picture = s->n > 0 && ty_image_has_magic(v.bytes + s->at, (size_t)s->n);
        part->is_sound = s->n > 0 && ty_audio_has_magic(v.bytes + s->at, (size_t)s->n);
        part->is_text = !part->is_picture && !part->is_sound;
    }
    parquet_values_fini(&v);
    return 0;
}

/* "image.bytes" is a field "image". */
static const char *parquet_part_name(const parquet_column *c, const ty_data_part *part, ty_arena *a)
{
    size_t n = strlen(c->name);
    bool is_bytes = (part->is_picture || part->is_sound) && n > 6 && strcmp(c->name + n - 6, ".bytes") == 0;
    return is_bytes ? ty_arena_strndup(a, c->name, n - 6) : c->name;
}

static int parquet_survey(const parquet_file *f, ty_arena *a, ty_data_survey *out, ty_error *err)
{
    out->is_table = true;
    out->part = TY_NEW_ARRAY(a, ty_data_part, f->n_columns + 1);
    for (int i = 0; i < f->n_columns; i++) {
        const parquet_column *c = &f->column[i];
        ty_data_part *part = &out->part[out->n_parts];
        *part = (ty_data_part){.name = NULL};
        out->is_table &= c->max_rep == 0 && c->odd == NULL;
        if (c->odd || (c->max_rep > 0 && c->form == PARQUET_AS_BYTES)) {
            out->left_out = out->left_out ? ty_arena_printf(a, "%s, %s", out->left_out, c->name) : c->name;
            continue;
        }
        if (c->form == PARQUET_AS_BYTES && parquet_survey_bytes(f, i, part, err) < 0)
            return -1;
        part->name = parquet_part_name(c, part, a);
        out->is_table &= !part->is_picture && !part->is_sound;
        out->n_parts++;
    }
    return 0;
}

int ty_survey_parquet(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a,
                      ty_data_survey *out, ty_error *err)
{
    ty_bytes bytes;
    parquet_file f;
    (void)n_files;
    if (ty_bytes_open(files[0].path, &(ty_bytes_options){.no_map = src->no_map}, &bytes, err) < 0)
        return -1;
    int rc = parquet_open(bytes.data, bytes.n, a, &f, err);
    if (rc == 0)
        rc = parquet_survey(&f, a, out, err);
    ty_bytes_close(&bytes);
    return rc < 0 ? ty_error_at(err, "%s", files[0].path) : 0;
}
