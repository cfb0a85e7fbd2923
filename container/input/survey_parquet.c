/* survey_parquet.c - what the first Parquet file has. */
#include "container/input/parquet/opened.h"
#include "container/input/records_parquet.h"
#include "container/input/survey.h"
#include "container/input/transform.h"

#include <string.h>

/* The first value of a column of bytes tells. */
static int survey_bytes(const parquet_opened *o, int column, ty_data_part *part, ty_error *err)
{
    parquet_values v = {0};
    int64_t at = 0;
    const parquet_file *f = &o->file;
    part->is_text = true;
    if (f->n_groups == 0 || f->group[0].n_rows == 0)
        return 0;
    parquet_room room = {0};
    int rc = parquet_opened_read(o, 0, column, 1, &room, &v, err);
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
static const char *survey_part_name(const parquet_column *c, const ty_data_part *part, ty_arena *a)
{
    size_t n = strlen(c->name);
    bool is_bytes = (part->is_picture || part->is_sound) && n > 6 && strcmp(c->name + n - 6, ".bytes") == 0;
    return is_bytes ? ty_arena_strndup(a, c->name, n - 6) : c->name;
}

static void survey_leave_out(const char *name, ty_arena *a, ty_data_survey *out)
{
    out->left_out = out->left_out ? ty_arena_printf(a, "%s, %s", out->left_out, name) : name;
}

static int survey_columns(const parquet_opened *o, ty_arena *a, ty_data_survey *out, ty_error *err)
{
    const parquet_file *f = &o->file;
    out->is_table = true;
    out->part = TY_NEW_ARRAY(a, ty_data_part, f->n_columns + 1);
    for (int i = 0; i < f->n_columns; i++) {
        const parquet_column *c = &f->column[i];
        ty_data_part *part = &out->part[out->n_parts];
        *part = (ty_data_part){.name = NULL};
        out->is_table &= c->max_rep == 0 && c->odd == NULL;
        if (!c->odd && c->form == PARQUET_AS_BYTES && survey_bytes(o, i, part, err) < 0)
            return -1;
        part->is_list = c->max_rep > 0;
        if (c->odd || (part->is_list && (part->is_picture || part->is_sound))) {
            survey_leave_out(c->name, a, out);
            continue;
        }
        part->name = survey_part_name(c, part, a);
        out->is_table &= !part->is_picture && !part->is_sound;
        out->n_parts++;
    }
    return 0;
}

int ty_survey_parquet(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a,
                      ty_data_survey *out, ty_error *err)
{
    parquet_opened o;
    (void)src;
    (void)n_files;
    if (parquet_opened_open(files[0].path, -1, a, &o, err) < 0)
        return -1;
    int rc = survey_columns(&o, a, out, err);
    parquet_opened_close(&o);
    return rc < 0 ? ty_error_at(err, "%s", files[0].path) : 0;
}

/* ---- memory ---- */

static void measure_groups(const parquet_opened *o, const int *column, int n, ty_parquet_memory *out)
{
    double all = 0.0;
    for (int g = 0; g < o->file.n_groups; g++) {
        int64_t bytes = parquet_group_memory(&o->file, g, column, n);
        all += (double)bytes;
        out->group_bytes = (uint64_t)bytes > out->group_bytes ? (uint64_t)bytes : out->group_bytes;
    }
    out->growth = all / (double)o->n_bytes;
    out->n_rows = o->file.n_rows;
}

static void measure_want(const parquet_file *f, const ty_field *d, ty_arena *a, bool *is_wanted)
{
    ty_error ignored = {0};
    records_field field = {.declared = *d, .name = d->member ? d->member : d->name};
    if (parquet_field_columns(f, &field, a, &ignored) < 0)
        return; /* told by who opens the data */
    for (int32_t k = 0; k < field.n_columns; k++)
        is_wanted[field.column[k]] = true;
}

ty_parquet_memory ty_parquet_measure(const char *path, const ty_field *fields, int n_fields)
{
    parquet_opened o;
    ty_arena a;
    ty_error ignored = {0};
    ty_parquet_memory out = {.growth = 1.0};
    ty_arena_init(&a);
    int rc = parquet_opened_open(path, -1, &a, &o, &ignored);
    bool *is_wanted = TY_NEW_ARRAY(&a, bool, o.file.n_columns + 1);
    for (int c = 0; n_fields == 0 && c < o.file.n_columns; c++)
        is_wanted[c] = true;
    for (int i = 0; i < n_fields; i++)
        if (!ty_field_is_cross(&fields[i]))
            measure_want(&o.file, &fields[i], &a, is_wanted);
    int n = 0, *column = TY_NEW_ARRAY(&a, int, o.file.n_columns + 1);
    for (int c = 0; c < o.file.n_columns; c++)
        if (is_wanted[c])
            column[n++] = c;
    if (rc == 0)
        measure_groups(&o, column, n, &out);
    parquet_opened_close(&o);
    ty_arena_fini(&a);
    return out;
}
