/* records_transform.c - fields of records that have transforms (map/map.h): found, learnt, made. */
#include "container/input/convert.h"
#include "container/input/transform.h"
#include "container/input/records.h"

#include <stdlib.h>
#include <string.h>

/* Numbers as they are stored, in look->stored. */
static int mapped_numbers(records_look *look, const records_cell *c, ty_cells *out, ty_error *err)
{
    int64_t n = look->impl->kind->count(c);
    if (n < 0 || n > RECORDS_MAX_ELEMS)
        return ty_error_set(err, TY_E_DATA_VALUE, "its list is malformed or too long");
    /* Doubles stand behind the elements as they are stored. */
    size_t elems = (size_t)(c->n > n ? c->n : n) * 8 + c->scratch_bytes + 64, at = elems + (8 - elems % 8) % 8;
    if (records_bytes(look, at + (size_t)n * 8, err) < 0)
        return -1;
    if (look->impl->kind->decode(look, c, n) != n)
        return ty_error_set(err, TY_E_DATA_VALUE, "its list is malformed");
    out->n = n;
    out->kind = c->dtype == TY_I64 ? TY_CELLS_INTEGERS : TY_CELLS_NUMBERS;
    out->u.integer = look->stored;
    if (c->dtype == TY_I64)
        return 0;
    double *real = (double *)((char *)look->stored + at);
    ty_convert_to_f64(c->dtype, look->stored, real, n);
    out->u.number = real;
    return 0;
}

static int mapped_part(records_look *look, int i, const records_cell *c, ty_cells *out, ty_error *err)
{
    const records_field *f = &look->impl->field[i];
    *out = (ty_cells){.kind = TY_CELLS_NUMBERS};
    if (!c->is_there)
        return 0;
    int rc =
        look->impl->kind->cells ? look->impl->kind->cells(look, c, ty_map_wants_text(f->declared.map), out, err) : 1;
    if (rc == 1)
        rc = mapped_numbers(look, c, out, err);
    return rc < 0 ? ty_error_wrap(err, "field \"%s\"", f->declared.name) : 0;
}

/* One part, which stays where the next one is not decoded: in look->held[k]. */
static int mapped_hold(records_look *look, int i, int k, ty_cells *out, ty_error *err)
{
    const records_cell *c = k == 0 ? &look->cell[i] : &look->part[i][k - 1];
    const records_held was = look->held[k];
    int rc = mapped_part(look, i, c, out, err);
    look->held[k] = (records_held){look->stored, look->stored_bytes};
    look->stored = was.p;
    look->stored_bytes = was.bytes;
    return rc;
}

/* The field's own texts and behind them those of its parts, whole numbers as digits. */
static int mapped_join(records_look *look, int i, ty_cells *out, ty_error *err)
{
    enum { DIGITS = 32 };
    ty_cells cells[1 + TY_N_TEXT_PARTS];
    int64_t n = 0;
    for (int k = 0; k <= TY_N_TEXT_PARTS; n += cells[k++].n)
        if (mapped_hold(look, i, k, &cells[k], err) < 0)
            return -1;
    size_t bytes = (size_t)n * (sizeof(ty_text) + DIGITS) + 1; /* all may be absent */
    if (bytes > look->joined_bytes) {
        void *grown = realloc(look->joined, bytes);
        if (!grown)
            return ty_error_set(err, TY_E_LIMIT, "no memory for the texts of a record");
        look->joined = grown;
        look->joined_bytes = bytes;
    }
    ty_text *text = look->joined;
    char *digits = (char *)(text + n);
    *out = (ty_cells){.kind = TY_CELLS_TEXTS, .n = n, .u.text = text};
    for (int k = 0; k <= TY_N_TEXT_PARTS; k++) {
        if (k > 0)
            out->n_part[k - 1] = cells[k].n;
        for (int64_t at = 0; at < cells[k].n; at++, digits += DIGITS)
            if (!ty_cells_text(&cells[k], at, digits, text++))
                return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected texts or whole numbers",
                                    look->impl->field[i].declared.name);
    }
    return 0;
}

static int mapped_cells(records_look *look, int i, ty_cells *out, ty_error *err)
{
    bool joins = records_has_parts(&look->impl->field[i]) && !look->impl->kind->has_parts;
    return joins ? mapped_join(look, i, out, err) : mapped_part(look, i, &look->cell[i], out, err);
}

int records_settle_mapped(records_field *f, int64_t n_cells, ty_field_info *info, ty_error *err)
{
    const ty_field *d = &f->declared;
    if (ty_map_type(d->map, n_cells, d->dtype_given, d->dtype, d->shape_given ? d->rank : -1, d->dim, &info->type,
                    err) < 0)
        return -1;
    info->row_bytes = ty_type_bytes(&info->type);
    ty_map_info(d->map, info);
    f->n_elems = ty_type_elems(&info->type);
    f->is_settled = true;
    return 0;
}

int records_see_mapped(records_look *look, int i, ty_field_info *info, ty_error *err)
{
    records_field *f = &look->impl->field[i];
    ty_cells cells;
    if (!ty_map_is_settled(f->declared.map))
        return 0; /* records_learn does it */
    if (mapped_cells(look, i, &cells, err) < 0)
        return -1;
    if (!f->is_settled &&
        records_settle_mapped(f, cells.n > 0 ? cells.n : ty_map_n_cells(f->declared.map), info, err) < 0)
        return -1;
    if (info->row_bytes > look->row_bytes) {
        char *grown = realloc(look->row, info->row_bytes);
        if (!grown)
            return ty_error_set(err, TY_E_LIMIT, "no memory for a row of field \"%s\"", f->declared.name);
        look->row = grown;
        look->row_bytes = info->row_bytes;
    }
    return ty_map_put(f->declared.map, &cells, &info->type, look->row, err);
}

int records_put_mapped(records_look *look, int i, const ty_field_info *info, char *out, ty_error *err)
{
    ty_cells cells;
    if (mapped_cells(look, i, &cells, err) < 0)
        return -1;
    return ty_map_put(look->impl->field[i].declared.map, &cells, &info->type, out, err);
}

/* Of all fields, before one of them learns. */
static int records_check(records_look *look, ty_error *err)
{
    ty_cells cells;
    for (int i = 0; i < look->impl->n_fields; i++) {
        const ty_field *d = &look->impl->field[i].declared;
        bool is_whole = d->dtype_given && ty_dtype_is_integer(d->dtype);
        if (d->map && !ty_map_is_settled(d->map) &&
            (mapped_cells(look, i, &cells, err) < 0 || ty_map_check(d->map, &cells, is_whole, err) < 0))
            return -1;
    }
    return 0;
}

int records_learn(records_look *look, ty_error *err)
{
    ty_cells cells;
    if (look->impl->skips_bad && records_check(look, err) < 0)
        return -1;
    for (int i = 0; i < look->impl->n_fields; i++) {
        ty_map *map = look->impl->field[i].declared.map;
        if (map && !ty_map_is_settled(map) &&
            (mapped_cells(look, i, &cells, err) < 0 || ty_map_see(map, &cells, err) < 0))
            return -1;
    }
    return 0;
}

int records_settle_map(const records_field *f, const char *format, const ty_data_file *file, ty_error *err)
{
    ty_map *map = f->declared.map;
    if (ty_map_settle(map, err) == 0)
        return 0;
    if (file)
        ty_error_at(err, "%s", file->path);
    if (ty_map_has_seen(map))
        return -1;
    if (f->declared.columns && strcmp(format, "csv") != 0)
        return ty_error_help(
            err, "columns are of tables: a field of %s data is one value, by its name, or member: NAME", format);
    return ty_error_help(err, "no record has a value called \"%s\"; member: NAME says that it is called otherwise",
                         f->name);
}

int records_settle_maps(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    for (int i = 0; i < impl->n_fields; i++) {
        ty_map *map = impl->field[i].declared.map;
        if (!map || ty_map_is_settled(map))
            continue;
        if (ty_agree_map(&src->agree, map, err) < 0 ||
            records_settle_map(&impl->field[i], ds->format, ds->n_files > 0 ? ds->files : NULL, err) < 0 ||
            records_settle_mapped(&impl->field[i], ty_map_n_cells(map), &ds->field[i], err) < 0)
            return -1;
    }
    return 0;
}
