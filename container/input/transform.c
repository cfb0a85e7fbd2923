/* transform.c - see transform.h. */
#include "container/input/transform.h"

#include "container/input/convert.h"
#include "container/input/map/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRANSFORM_BLOCK = 64 }; /* samples at a time, while learning */

bool ty_field_is_cross(const ty_field *f)
{
    return f->map && ty_map_declared(f->map)->way == TY_MAP_CROSS;
}

/* ---- opening ---- */

/* A look at the first records must not settle what all of them have a say in. */
static int transform_copy(const ty_data_source *src, ty_dataset *ds, ty_field **out, ty_error *err)
{
    ty_field *f = ty_arena_copy(&ds->arena, src->fields, (size_t)src->n_fields * sizeof *f);
    for (int i = 0; i < src->n_fields; i++)
        if (f[i].map && src->types_only && !ty_map_is_settled(f[i].map) &&
            ty_map_new(ty_map_declared(f[i].map), &ds->arena, &f[i].map, err) < 0)
            return -1;
    *out = f;
    return 0;
}

/* What the format is to read: the fields that it has, and no maps where it does not know them. */
static const ty_field *transform_stored(ty_dataset *ds, ty_transforms *m, const ty_format *format, int n)
{
    ty_field *f = ty_arena_copy(&ds->arena, m->field, (size_t)n * sizeof *f);
    bool *is_stored = TY_NEW_ARRAY(&ds->arena, bool, n);
    for (int i = 0; i < m->n_stored; i++) {
        if (!f[i].map || format->maps)
            continue;
        is_stored[i] = true;
        f[i].map = NULL;
        f[i].dtype_given = f[i].shape_given = false;
        f[i].max_length = 0;
    }
    m->is_stored = is_stored;
    return f;
}

static void transform_cells(const ty_field_info *stored, const void *row, void *room, ty_cells *out)
{
    ty_dtype dtype = (ty_dtype)stored->type.dtype;
    out->n = ty_type_elems(&stored->type);
    out->kind = ty_dtype_is_integer(dtype) ? TY_CELLS_INTEGERS : TY_CELLS_NUMBERS;
    if (out->kind == TY_CELLS_INTEGERS)
        ty_convert_to_i64(dtype, row, room, out->n);
    else
        ty_convert_to_f64(dtype, row, room, out->n);
    out->u.number = room;
}

/* Room for stored rows and the cells of one. */
static int transform_room(const ty_field_info *stored, int64_t n, char **rows, void **cells, ty_error *err)
{
    *rows = malloc((size_t)n * stored->row_bytes + 1);
    *cells = malloc((size_t)ty_type_elems(&stored->type) * 8 + 8);
    if (*rows && *cells)
        return 0;
    return ty_error_set(err, TY_E_LIMIT, "no memory for %lld samples of field \"%s\"", (long long)n, stored->name);
}

static int transform_at(const ty_dataset *ds, int field, int64_t sample, ty_error *err)
{
    char place[TY_ERROR_PLACE_BYTES] = "";
    if (err->place[0] == 0) {
        ds->ops->place(ds, field, sample, place, sizeof place);
        ty_error_at(err, "%s", place);
    }
    return -1;
}

static int transform_learn(ty_dataset *ds, int i, ty_map *map, ty_error *err)
{
    const ty_field_info *stored = &ds->field[i];
    int64_t samples[TRANSFORM_BLOCK];
    char *rows = NULL;
    void *room = NULL;
    ty_cells cells;
    int rc = transform_room(stored, TRANSFORM_BLOCK, &rows, &room, err);
    for (int64_t at = 0; rc == 0 && at < ds->n_samples; at += TRANSFORM_BLOCK) {
        int64_t n = ds->n_samples - at < TRANSFORM_BLOCK ? ds->n_samples - at : TRANSFORM_BLOCK;
        for (int64_t k = 0; k < n; k++)
            samples[k] = at + k;
        rc = ds->ops->read(ds, i, samples, n, rows, err);
        for (int64_t k = 0; rc == 0 && k < n; k++) {
            transform_cells(stored, rows + (size_t)k * stored->row_bytes, room, &cells);
            rc = ty_map_see(map, &cells, err) < 0 ? transform_at(ds, i, at + k, err) : 0;
        }
    }
    free(rows);
    free(room);
    return rc;
}

static int transform_type(ty_field_info *info, const ty_field *f, int64_t n_cells, ty_error *err)
{
    if (ty_map_type(f->map, n_cells, f->dtype_given, f->dtype, f->shape_given ? f->rank : -1, f->dim, &info->type,
                    err) < 0)
        return -1;
    info->row_bytes = ty_type_bytes(&info->type);
    ty_map_info(f->map, info);
    return 0;
}

void ty_map_info(const ty_map *m, ty_field_info *info)
{
    int64_t n = ty_map_n_ids(m);
    info->is_mapped = true;
    info->is_integer = n > 0;
    info->min = 0;
    info->max = n > 0 ? n - 1 : 0;
    info->min_sample = info->max_sample = n > 0 ? 0 : -1;
}

static int transform_settle_stored(ty_dataset *ds, ty_transforms *m, const ty_data_source *src, ty_error *err)
{
    for (int i = 0; i < m->n_stored; i++) {
        ty_map *map = m->field[i].map;
        if (!m->is_stored[i])
            continue;
        if (!ty_map_is_settled(map) && (transform_learn(ds, i, map, err) < 0 ||
                                        ty_agree_map(&src->agree, map, err) < 0 || ty_map_settle(map, err) < 0))
            return -1;
        m->stored[i] = ds->field[i];
        if (transform_type(&ds->field[i], &m->field[i], ty_type_elems(&m->stored[i].type), err) < 0)
            return -1;
        ds->field[i].n_missing = ds->field[i].n_not_finite = 0;
    }
    return 0;
}

int ty_transform_settle_cross(const ty_field *cross, const ty_field_info *stored, int n_stored, int *from,
                              ty_field_info *info_of_cross, ty_error *err)
{
    const ty_map_spec *d = ty_map_declared(cross->map);
    for (int c = 0; c < d->n_cross; c++) {
        from[c] = 0;
        while (from[c] < n_stored && strcmp(stored[from[c]].name, d->cross[c]) != 0)
            from[c]++;
        const ty_field_info *info = &stored[from[c]];
        if (from[c] == n_stored)
            return ty_error_set(err, TY_E_CONFIG, "field \"%s\" crosses \"%s\", which is no field of the data",
                                d->field, d->cross[c]);
        if (!ty_dtype_is_integer((ty_dtype)info->type.dtype) || ty_type_elems(&info->type) != 1) {
            char text[160];
            ty_error_set(err, TY_E_CONFIG, "field \"%s\" crosses \"%s\", which is %s, expected one integer", d->field,
                         d->cross[c], ty_type_text(&info->type, text, sizeof text));
            return ty_error_help(err, "give that field a vocabulary, hash, buckets or type: int64");
        }
    }
    return transform_type(info_of_cross, cross, 1, err);
}

static int transform_settle_cross(ty_dataset *ds, ty_transforms *m, int i, ty_error *err)
{
    int *from = TY_NEW_ARRAY(&ds->arena, int, ty_map_declared(m->field[i].map)->n_cross);
    m->cross[i - m->n_stored] = from;
    return ty_transform_settle_cross(&m->field[i], ds->field, m->n_stored, from, &ds->field[i], err);
}

/* The maps of fields in which words are hidden. */
static const ty_map *const *transform_hides(ty_dataset *ds, const ty_field *fields, int n)
{
    const ty_map **map = TY_NEW_ARRAY(&ds->arena, const ty_map *, n);
    bool any = false;
    for (int i = 0; i < n; i++)
        if (fields[i].map && ty_map_hides(fields[i].map)) {
            map[i] = fields[i].map;
            any = true;
        }
    return any ? map : NULL;
}

int ty_transform_open(ty_dataset *ds, const ty_data_source *src, const ty_format *format, ty_error *err)
{
    int n = src->n_fields, n_maps = 0;
    for (int i = 0; i < n; i++)
        n_maps += src->fields[i].map != NULL;
    if (n_maps == 0)
        return format->open(ds, src, err);
    ty_transforms *m = TY_NEW(&ds->arena, ty_transforms);
    ty_field *fields;
    if (transform_copy(src, ds, &fields, err) < 0)
        return -1;
    m->field = fields;
    while (m->n_stored < n && !ty_field_is_cross(&fields[m->n_stored]))
        m->n_stored++;
    m->stored = TY_NEW_ARRAY(&ds->arena, ty_field_info, n);
    m->cross = TY_NEW_ARRAY(&ds->arena, int *, n);
    ty_data_source inner = *src;
    inner.fields = transform_stored(ds, m, format, n);
    inner.n_fields = ds->n_fields = m->n_stored;
    int rc = format->open(ds, &inner, err);
    if (rc == 0)
        rc = transform_settle_stored(ds, m, src, err);
    ds->n_fields = n;
    for (int i = m->n_stored; rc == 0 && i < n; i++)
        rc = transform_settle_cross(ds, m, i, err);
    bool any = m->n_stored < n;
    for (int i = 0; i < m->n_stored; i++)
        any = any || m->is_stored[i];
    ds->transforms = any ? m : NULL;
    ds->hides = transform_hides(ds, fields, n);
    for (int i = 0; rc < 0 && i < n; i++)
        if (fields[i].map && !ty_map_is_settled(fields[i].map))
            ty_map_forget(fields[i].map);
    return rc;
}

/* ---- reading ---- */

void ty_transform_hide(const ty_dataset *ds, int field, const ty_pick *pick, void *rows)
{
    const ty_map *map = ds->hides ? ds->hides[field] : NULL;
    const ty_field_info *info = &ds->field[field];
    for (int64_t k = 0; map && k < pick->n; k++)
        ty_map_hide(map, &info->type, (char *)rows + (size_t)k * info->row_bytes,
                    &(ty_chance){pick->seed, pick->epoch, pick->sample[k], pick->augment});
}

static int transform_put(const ty_dataset *ds, int i, const int64_t *samples, int64_t n, const char *rows, void *room,
                         char *out, ty_error *err)
{
    const ty_field_info *stored = &ds->transforms->stored[i], *info = &ds->field[i];
    ty_cells cells;
    for (int64_t k = 0; k < n; k++) {
        transform_cells(stored, rows + (size_t)k * stored->row_bytes, room, &cells);
        if (ty_map_put(ds->transforms->field[i].map, &cells, &info->type, out + (size_t)k * info->row_bytes, err) < 0)
            return transform_at(ds, i, samples[k], err);
    }
    return 0;
}

static int transform_read_stored(const ty_dataset *ds, int i, const int64_t *samples, int64_t n, char *out,
                                 ty_error *err)
{
    char *rows = NULL;
    void *room = NULL;
    int rc = transform_room(&ds->transforms->stored[i], n, &rows, &room, err);
    if (rc == 0)
        rc = ds->ops->read(ds, i, samples, n, rows, err);
    if (rc == 0)
        rc = transform_put(ds, i, samples, n, rows, room, out, err);
    free(rows);
    free(room);
    return rc;
}

int ty_transform_cross(const ty_map *map, const ty_field_info *const *from, const char *const *rows, int64_t n,
                       const ty_field_info *info, char *out, ty_error *err)
{
    int64_t ids[64];
    int n_cross = ty_map_declared(map)->n_cross;
    for (int64_t k = 0; k < n; k++) {
        for (int c = 0; c < n_cross; c++)
            ty_convert_to_i64((ty_dtype)from[c]->type.dtype, rows[c] + (size_t)k * from[c]->row_bytes, &ids[c], 1);
        if (ty_map_cross(map, ids, &info->type, out + (size_t)k * info->row_bytes, err) < 0)
            return -1;
    }
    return 0;
}

static int transform_cross_rows(const ty_dataset *ds, int i, const char *const *rows, int64_t n, char *out,
                                ty_error *err)
{
    const ty_transforms *m = ds->transforms;
    const ty_field_info *from[64];
    for (int c = 0; c < ty_map_declared(m->field[i].map)->n_cross; c++)
        from[c] = &ds->field[m->cross[i - m->n_stored][c]];
    return ty_transform_cross(m->field[i].map, from, rows, n, &ds->field[i], out, err);
}

static int transform_read_cross(const ty_dataset *ds, int i, const int64_t *samples, int64_t n, char *out,
                                ty_error *err)
{
    const ty_transforms *m = ds->transforms;
    const int *from = m->cross[i - m->n_stored];
    int n_cross = ty_map_declared(m->field[i].map)->n_cross, rc = 0;
    char *rows[64] = {0};
    for (int c = 0; rc == 0 && c < n_cross; c++) {
        rows[c] = malloc((size_t)n * ds->field[from[c]].row_bytes + 1);
        rc = rows[c] ? ty_transform_read(ds, from[c], samples, n, rows[c], err)
                     : ty_error_set(err, TY_E_LIMIT, "no memory to cross fields");
    }
    if (rc == 0)
        rc = transform_cross_rows(ds, i, (const char *const *)rows, n, out, err);
    for (int c = 0; c < n_cross; c++)
        free(rows[c]);
    return rc;
}

int ty_transform_read(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err)
{
    if (field >= ds->transforms->n_stored)
        return transform_read_cross(ds, field, samples, n, out, err);
    if (ds->transforms->is_stored[field])
        return transform_read_stored(ds, field, samples, n, out, err);
    return ds->ops->read(ds, field, samples, n, out, err);
}

int ty_transform_read_all(const ty_dataset *ds, const ty_pick *pick, void *const *out, ty_error *err)
{
    const ty_transforms *m = ds->transforms;
    int rc = ds->ops->read_all ? ds->ops->read_all(ds, pick, out, err) : 0;
    for (int i = 0; rc == 0 && !ds->ops->read_all && i < m->n_stored; i++)
        rc = ty_transform_read(ds, i, pick->sample, pick->n, out[i], err);
    for (int i = m->n_stored; rc == 0 && i < ds->n_fields; i++) {
        const char *rows[64];
        for (int c = 0; c < ty_map_declared(m->field[i].map)->n_cross; c++)
            rows[c] = out[m->cross[i - m->n_stored][c]];
        rc = transform_cross_rows(ds, i, rows, pick->n, out[i], err);
    }
    return rc;
}
