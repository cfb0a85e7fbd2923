/* records_parquet_fields.c - which columns fields are made of, and as what their values are decoded. */
#include "container/input/header.h"
#include "container/input/records_parquet.h"

#include <stdio.h>
#include <string.h>

static int fields_no_column(const parquet_file *f, const ty_field *d, const char *name, ty_error *err)
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
int parquet_field_columns(const parquet_file *f, records_field *field, ty_arena *a, ty_error *err)
{
    const ty_field *d = &field->declared;
    if (d->columns) {
        const char **names = TY_NEW_ARRAY(a, const char *, f->n_columns);
        for (int i = 0; i < f->n_columns; i++)
            names[i] = f->column[i].name;
        return ty_field_columns(d, names, f->n_columns, a, &field->column, &field->n_columns, field->n_part, err);
    }
    field->column = TY_NEW_ARRAY(a, int32_t, 1 + TY_N_TEXT_PARTS);
    field->n_columns = 0;
    for (int k = 0; k <= TY_N_TEXT_PARTS; k++) {
        const char *name = k == 0 ? field->name : d->part[k - 1];
        int column = name ? parquet_find_column(f, name) : 0;
        if (column < 0)
            return fields_no_column(f, d, name, err);
        if (k > 0)
            field->n_part[k - 1] = name != NULL;
        if (name)
            field->column[field->n_columns++] = column;
    }
    return 0;
}

static int fields_refuse_text(const ty_field *d, const parquet_column *c, ty_error *err)
{
    if (c->max_rep > 0) {
        ty_error_set(err, TY_E_CONFIG,
                     "field \"%s\": column \"%s\" holds lists of texts, which feed no model as they are", d->name,
                     c->name);
        return ty_error_help(err,
                             "say what becomes of the texts, and how many a row has: %s: {vocabulary: auto, "
                             "max_length: 128}; hash: N or classes: auto in place of vocabulary",
                             d->name);
    }
    ty_error_set(err, TY_E_CONFIG, "field \"%s\": column \"%s\" holds text, which feeds no model as it is", d->name,
                 c->name);
    return ty_error_help(err,
                         "say what becomes of it: %s: {vocabulary: auto}, hash: N, classes: auto, a tokenizer, "
                         "or image: or audio: if it holds pictures or sounds",
                         d->name);
}

/* What a field without transforms takes are numbers. */
static int fields_check(const parquet_file *f, const records_field *field, ty_error *err)
{
    const ty_field *d = &field->declared;
    bool is_media = ty_media_is(&field->media);
    for (int32_t i = 0; i < field->n_columns; i++) {
        const parquet_column *c = &f->column[field->column[i]];
        bool is_bytes = c->form == PARQUET_AS_BYTES;
        if (c->max_rep > 0 && field->n_columns > 1 && !ty_field_has_parts(d))
            return ty_error_set(err, TY_E_CONFIG, "field \"%s\": column \"%s\" holds lists, and can be a field alone",
                                d->name, c->name);
        if (is_media && (!is_bytes || c->max_rep > 0 || field->n_columns > 1))
            return ty_error_set(err, TY_E_CONFIG, "field \"%s\": a %s is the bytes of one column, and \"%s\" has none",
                                d->name, ty_media_noun(&field->media), c->name);
        if (is_bytes && !is_media && !d->map)
            return fields_refuse_text(d, c, err);
    }
    return 0;
}

/* Elements of several columns are of one kind: floats if all are, else doubles, which hold any number but some of 64
 * bits. */
static ty_dtype fields_decoded(const parquet_rows *r, const records_field *f)
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
static void fields_settle_type(const parquet_file *f, records_field *field)
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
static void fields_want(const parquet_file *f, parquet_rows *r, records_impl *impl, ty_arena *a)
{
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

int parquet_fields_take(const parquet_file *first, records_impl *impl, parquet_rows *r, ty_arena *a, ty_error *err)
{
    for (int i = 0; i < impl->n_fields; i++)
        if (parquet_field_columns(first, &impl->field[i], a, err) < 0 || fields_check(first, &impl->field[i], err) < 0)
            return -1;
    for (int i = 0; i < impl->n_fields; i++)
        fields_settle_type(first, &impl->field[i]);
    fields_want(first, r, impl, a);
    return 0;
}

void parquet_fields_decode_as(const parquet_rows *r, records_impl *impl)
{
    for (int i = 0; i < impl->n_fields; i++)
        impl->field[i].decoded = fields_decoded(r, &impl->field[i]);
}
