/* infer_rows.c - see infer_rows.h. */
#include "entrypoint/infer_rows.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

static const ty_field *rows_field(const ty_recipe_data *d, const char *name)
{
    for (int i = 0; i < d->n_fields; i++)
        if (strcmp(d->fields[i].name, name) == 0)
            return &d->fields[i];
    return NULL;
}

static bool rows_is_input(const ty_preprocessing *p, const char *name)
{
    for (int i = 0; i < p->n_inputs; i++)
        if (strcmp(p->field[i], name) == 0)
            return true;
    return false;
}

/* In a model that is a folder, or beside it. */
static const char *rows_path(const char *model, ty_arena *a)
{
    const char *inside = ty_arena_printf(a, "%s/" TY_PREPROCESSING_NAME, model), *slash = strrchr(model, '/');
    if (ty_file_is_folder(model) && ty_file_exists(inside))
        return inside;
    return slash ? ty_arena_printf(a, "%.*s/" TY_PREPROCESSING_NAME, (int)(slash - model), model)
                 : TY_PREPROCESSING_NAME;
}

int ty_infer_rows_open(const char *model, ty_arena *a, ty_infer_rows *out, ty_error *err)
{
    const char *path = rows_path(model, a);
    *out = (ty_infer_rows){0};
    if (ty_preprocessing_read(path, a, &out->pre, err) < 0) {
        ty_error_help(err, "a model that was trained with transforms of its fields has this file beside it; others "
                           "take --input NAME=FILE.npy");
        return -1;
    }
    for (int i = 0; i < out->pre.data.n_fields; i++) {
        const ty_field *f = &out->pre.data.fields[i];
        if (f->map && !rows_is_input(&out->pre, f->name) && ty_map_declared(f->map)->way == TY_MAP_CLASSES)
            out->classes = f->map;
    }
    return 0;
}

/* The field of the input, and those that it crosses, before it. */
static int rows_fields(const ty_infer_rows *r, const char *input, ty_field out[66], ty_error *err)
{
    const ty_preprocessing *p = &r->pre;
    const ty_field *f = NULL;
    int n = 0;
    for (int i = 0; i < p->n_inputs; i++)
        if (strcmp(p->input[i], input) == 0)
            f = rows_field(&p->data, p->field[i]);
    if (!f)
        return ty_error_set(err, TY_E_CONFIG, TY_PREPROCESSING_NAME " names no field for input \"%s\"", input);
    const ty_map_spec *d = f->map ? ty_map_declared(f->map) : NULL;
    for (int i = 0; d && i < d->n_cross; i++) {
        const ty_field *crossed = rows_field(&p->data, d->cross[i]);
        if (!crossed)
            return ty_error_set(err, TY_E_CONFIG, TY_PREPROCESSING_NAME " has no field \"%s\"", d->cross[i]);
        out[n++] = *crossed;
    }
    out[n++] = *f;
    return n;
}

static int rows_take(const ty_dataset *ds, int field, ty_tensor *out, ty_error *err)
{
    const ty_field_info *info = &ds->field[field];
    int64_t dim[TY_MAX_RANK] = {ds->n_samples};
    memcpy(dim + 1, info->type.dim, sizeof *dim * (size_t)info->type.rank);
    out->type = ty_type_make((ty_dtype)info->type.dtype, info->type.rank + 1, dim);
    int64_t *samples = malloc((size_t)ds->n_samples * sizeof *samples + 1);
    out->data = malloc((size_t)ds->n_samples * info->row_bytes + 1);
    int rc =
        samples && out->data ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for %lld rows", (long long)ds->n_samples);
    for (int64_t i = 0; rc == 0 && i < ds->n_samples; i++)
        samples[i] = i;
    if (rc == 0)
        rc = ty_dataset_read(ds, field, samples, ds->n_samples, out->data, err);
    free(samples);
    return rc;
}

int ty_infer_rows_read(const ty_infer_rows *r, const char *path, const char *input, ty_arena *a, ty_tensor *tensor,
                       ty_error *err)
{
    const ty_recipe_data *d = &r->pre.data;
    ty_field *fields = TY_NEW_ARRAY(a, ty_field, 66);
    ty_dataset *ds;
    int n = rows_fields(r, input, fields, err);
    if (n < 0)
        return -1;
    ty_data_source source = {.paths = &path,
                             .n_paths = 1,
                             .format = d->format,
                             .fields = fields,
                             .n_fields = n,
                             .csv_header = (ty_csv_header)d->header,
                             .index_base = (ty_index_base)d->index_base,
                             .csv_missing = d->missing_values,
                             .blank_lines = d->blank_lines,
                             .csv_delimiter = d->delimiter ? d->delimiter[0] : 0};
    if (ty_dataset_open(&source, &ds, err) < 0)
        return -1;
    int rc =
        ds->n_samples > 0 ? rows_take(ds, n - 1, tensor, err) : ty_error_set(err, TY_E_DATA, "%s holds no row", path);
    ty_dataset_close(ds);
    return rc;
}

int ty_infer_rows_label(const ty_infer_rows *r, const ty_tensor *output, const char *path, bool *is_written,
                        ty_error *err)
{
    int64_t n = r->classes ? ty_map_n_ids(r->classes) : 0;
    *is_written = n > 1 && output->type.rank == 2 && output->type.dtype == TY_F32 && output->type.dim[1] == n;
    if (!*is_written)
        return 0;
    ty_buf text;
    ty_buf_init(&text, (size_t)1 << 32);
    const float *row = output->data;
    for (int64_t i = 0; i < output->type.dim[0]; i++, row += n) {
        int64_t best = 0;
        for (int64_t k = 1; k < n; k++)
            best = row[k] > row[best] ? k : best;
        ty_buf_addf(&text, "%s\n", ty_map_word(r->classes, best));
    }
    int rc = text.failed ? ty_error_set(err, TY_E_LIMIT, "no memory for %lld labels", (long long)output->type.dim[0])
                         : ty_file_write(path, text.data, text.len, 0644, err);
    ty_buf_fini(&text);
    return rc;
}
