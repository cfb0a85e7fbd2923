/* dataset_csv.c - delimited text, parsed once into dense rows in memory.
 *
 * Every field owns one block [n_samples, row] in its batch type; scale, offset and missing values are applied while
 * parsing, so that reading a sample is one copy. A column that no field uses is skipped without being looked at. Before
 * a file is parsed its line feeds are counted: that bounds its records, so that the blocks grow once a file. Columns
 * and header are found out here; table/table.h is how records are read.
 */
#include "base/crew.h"
#include "base/pages.h"
#include "container/input/bytes.h"
#include "container/input/convert.h"
#include "container/input/format.h"
#include "container/input/header.h"
#include "container/input/transform.h"
#include "container/input/table/table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_LOOK_ROWS 100 /* with types_only */

enum { TABLE_ALIGN = 2 << 20, TABLE_LARGE_BYTES = 2 << 20 };

/* --- Header and columns --- */

static int table_same_header(const table_impl *t, const ty_csv *c, const char *const *names, int64_t n, ty_error *err)
{
    for (int64_t i = 0; i < n && i < t->n_columns; i++)
        if (t->header != NULL && strcmp(t->header[i], names[i]) != 0) {
            ty_error_set(err, TY_E_DATA, "column %lld is called \"%s\" here and \"%s\" in \"%s\"", (long long)i,
                         names[i], t->header[i], t->file[0].file->name);
            return ty_error_at(err, "%s:1", c->name);
        }
    return 0;
}

/* Of one that is still to learn the type is not known, and nothing is stored. */
static int table_map_mapped(table_impl *t, int index, ty_error *err)
{
    table_field *tf = &t->field[index];
    const ty_field *f = tf->declared;
    ty_field_info *info = &t->ds->field[index];
    tf->kind = ty_map_wants_text(f->map) ? TABLE_TEXT : TABLE_MAPPED;
    if (!ty_map_is_settled(f->map))
        return 0;
    if (ty_map_type(f->map, tf->n_elems, f->dtype_given, f->dtype, f->shape_given ? f->rank : -1, f->dim, &info->type,
                    err) < 0)
        return -1;
    info->row_bytes = ty_type_bytes(&info->type);
    ty_map_info(f->map, info);
    return 0;
}

/* Whether this walk reads the field: all of them, but for what only has to be learnt. */
static bool table_wants(const table_impl *t, const ty_field *f)
{
    return !t->learns || t->ds->bad.skip || (f->map && !ty_map_is_settled(f->map));
}

static int table_map_field(table_impl *t, int index, ty_error *err)
{
    table_field *tf = &t->field[index];
    const ty_field *f = tf->declared;
    if (!table_wants(t, f)) {
        tf->n_elems = 0;
        tf->kind = TABLE_FLOAT;
        return 0;
    }
    if (ty_field_columns(f, t->header, t->n_columns, &t->ds->arena, &tf->column, &tf->n_elems, tf->n_part, err) < 0)
        return -1;
    tf->slot = (int32_t)t->n_slots;
    t->n_slots += tf->n_elems;
    if (f->map)
        return table_map_mapped(t, index, err);
    int64_t as_is[1] = {tf->n_elems};
    ty_dtype dtype = f->dtype_given ? f->dtype : TY_F32;
    ty_type type = f->shape_given ? ty_type_make(dtype, f->rank, f->dim) : ty_type_make(dtype, tf->n_elems != 1, as_is);
    if (ty_type_elems(&type) != tf->n_elems) {
        char text[160];
        ty_error_set(err, TY_E_CONFIG, "field \"%s\": its shape %s holds %lld values, but it has %d columns", f->name,
                     ty_type_text(&type, text, sizeof text), (long long)ty_type_elems(&type), (int)tf->n_elems);
        return ty_error_help(err, "the product of the shape must be the number of columns");
    }
    ty_field_info *info = &t->ds->field[index];
    info->type = type;
    info->row_bytes = ty_type_bytes(&type);
    info->is_integer = ty_dtype_is_integer(dtype);
    tf->kind = !info->is_integer                     ? TABLE_FLOAT
               : f->scale == 1.0 && f->offset == 0.0 ? TABLE_INTEGER
                                                     : TABLE_SCALED_INTEGER;
    ty_integer_range(dtype, &tf->min, &tf->max);
    if (tf->kind == TABLE_INTEGER && f->missing_given && !table_whole_of(f->missing, &(int64_t){0}))
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": missing: %g is no whole number", f->name, f->missing);
    return 0;
}

/* Turns the fields' columns into the table's targets. Later fields stand first in a chain; order means nothing. */
static int table_map_columns(table_impl *t, ty_error *err)
{
    int64_t n_targets = 0;
    for (int i = 0; i < t->n_fields; i++) {
        if (table_map_field(t, i, err) < 0)
            return -1;
        n_targets += t->field[i].n_elems;
    }
    t->target = TY_NEW_ARRAY(&t->scratch, table_target, n_targets);
    t->first_target = TY_NEW_ARRAY(&t->scratch, int32_t, t->n_columns);
    for (int64_t i = 0; i < t->n_columns; i++)
        t->first_target[i] = -1;
    int32_t used = 0;
    for (int i = 0; i < t->n_fields; i++)
        for (int32_t k = 0; k < t->field[i].n_elems; k++, used++) {
            int32_t column = t->field[i].column[k];
            t->target[used] = (table_target){.field = i,
                                             .elem = k,
                                             .next = t->first_target[column],
                                             .slot = t->field[i].slot + k,
                                             .kind = t->field[i].kind};
            t->first_target[column] = used;
        }
    t->read = TY_NEW_ARRAY(&t->scratch, table_read, t->n_columns);
    for (int64_t i = 0; i < t->n_columns; i++)
        if (t->first_target[i] >= 0)
            t->read[t->n_read++] = (table_read){(int32_t)i, t->first_target[i]};
    return 0;
}

static bool table_needs_header(const table_impl *t)
{
    for (int i = 0; i < t->n_fields; i++) {
        const ty_field *f = t->field[i].declared;
        if (ty_field_needs_header(f))
            return true;
    }
    return false;
}

/* Looks at the first record of a file: skips it if it is a header; with the first file, lays out the table. */
static int table_begin_file(table_impl *t, ty_csv *c, int index, ty_csv_header mode, ty_error *err)
{
    ty_csv start = *c;
    ty_csv_first first;
    if (ty_csv_first_record(c, &t->missing, &t->scratch, &first, err) < 0)
        return -1;
    bool may_be = index == 0 || t->header != NULL;
    bool is_header = mode == TY_CSV_HEADER_YES || (mode == TY_CSV_HEADER_AUTO && may_be && !first.is_data);
    if (!is_header)
        *c = start;
    if (index > 0)
        return is_header ? table_same_header(t, c, first.text, first.n, err) : 0;
    t->n_columns = first.n;
    t->header = is_header ? first.text : NULL;
    if (!is_header && mode == TY_CSV_HEADER_AUTO && table_needs_header(t)) {
        ty_error_set(err, TY_E_CONFIG, "a column is given by name, but the first line is no header: it holds numbers");
        ty_error_at(err, "%s:%lld", c->name, (long long)start.line);
        return ty_error_help(err, "give the columns by number, or say header: yes if it is a header all the same");
    }
    return table_map_columns(t, err);
}

/* --- Files --- */

/* The block with room for so many bytes, of which `used` are kept. A large one begins where a huge page may. */
static uint8_t *table_grow(uint8_t *data, size_t used, size_t bytes)
{
    if (bytes < TABLE_LARGE_BYTES || used > bytes / 8)
        return realloc(data, bytes > 0 ? bytes : 1);
    uint8_t *grown = aligned_alloc(TABLE_ALIGN, (bytes + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN);
    if (grown) {
        ty_pages_expect_update(grown, TABLE_ALIGN);
        if (used > 0)
            memcpy(grown, data, used);
        free(data);
    }
    return grown;
}

int table_reserve(table_impl *t, int64_t capacity, ty_error *err)
{
    for (int i = 0; i < t->n_fields; i++) {
        size_t bytes;
        if (__builtin_mul_overflow((size_t)capacity, t->ds->field[i].row_bytes, &bytes) || bytes > (size_t)INT64_MAX)
            return ty_error_set(err, TY_E_LIMIT, "%lld samples are too many for memory", (long long)capacity);
        uint8_t *grown = table_grow(t->field[i].data, (size_t)t->ds->n_samples * t->ds->field[i].row_bytes, bytes);
        if (grown == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for %lld samples of field \"%s\", %zu bytes",
                                (long long)capacity, t->ds->field[i].name, bytes);
        t->field[i].data = grown;
    }
    t->capacity = capacity;
    return 0;
}

static int table_load_bytes(table_impl *t, int index, const ty_bytes *bytes, const ty_data_source *src, ty_error *err)
{
    table_file *file = &t->file[index];
    ty_csv c;
    if (index == 0)
        t->delimiter = ty_csv_delimiter(src, file->file->name, (const char *)bytes->data, bytes->n);
    if (ty_csv_init(&c, file->file->path, (const char *)bytes->data, bytes->n, t->delimiter, err) < 0)
        return -1;
    file->first = t->ds->n_samples;
    if (!ty_csv_more(&c)) {
        if (index > 0)
            return 0;
        return ty_error_set(err, TY_E_DATA, "the first file has no records, so that its columns are not known");
    }
    if (table_begin_file(t, &c, index, src->csv_header, err) < 0)
        return -1;
    int n_threads = src->n_threads > 0 ? src->n_threads : ty_crew_processors();
    return table_load_records(t, file, &c, src->types_only ? TABLE_LOOK_ROWS : 0, n_threads, err);
}

static int table_load_file(table_impl *t, int index, const ty_data_source *src, ty_error *err)
{
    ty_bytes bytes;
    ty_bytes_options options = {.no_map = src->no_map, .max_inflated_bytes = src->max_inflated_bytes};
    if (ty_bytes_open(t->file[index].file->path, &options, &bytes, err) < 0)
        return -1;
    int rc = table_load_bytes(t, index, &bytes, src, err);
    ty_bytes_close(&bytes);
    return rc < 0 ? ty_error_at(err, "%s", t->file[index].file->path) : 0;
}

/* The walk for transforms that learn, of which nothing else stays. */
static int table_learn(table_impl *t, const ty_data_source *src, ty_error *err)
{
    ty_dataset *ds = t->ds;
    ty_bad bad = ds->bad;
    ty_field_info *known = ty_arena_copy(&t->scratch, ds->field, (size_t)t->n_fields * sizeof *known);
    bool any = false;
    for (int i = 0; i < t->n_fields; i++)
        any = any || (t->field[i].declared->map && !ty_map_is_settled(t->field[i].declared->map));
    if (!any)
        return 0;
    t->learns = true;
    ds->bad.quiet = true; /* the walk behind it tells */
    for (int i = 0; i < (src->types_only ? 1 : t->n_files); i++)
        if (table_load_file(t, i, src, err) < 0)
            return -1;
    for (int i = 0; i < t->n_fields; i++) {
        ty_map *map = t->field[i].declared->map;
        if (map && !ty_map_is_settled(map) && (ty_agree_map(&src->agree, map, err) < 0 || ty_map_settle(map, err) < 0))
            return -1;
    }
    for (int i = 0; i < t->n_files; i++)
        t->file[i].n_jumps = 0;
    memcpy(ds->field, known, (size_t)t->n_fields * sizeof *known);
    ds->bad = bad;
    ds->n_samples = t->capacity = t->n_slots = t->n_read = 0;
    t->learns = false;
    return 0;
}

static int table_load(table_impl *t, const ty_data_source *src, ty_error *err)
{
    if (table_learn(t, src, err) < 0)
        return -1;
    for (int i = 0; i < (src->types_only ? 1 : t->n_files); i++)
        if (table_load_file(t, i, src, err) < 0)
            return -1;
    if (table_reserve(t, t->ds->n_samples, err) < 0)
        return -1;
    for (int i = 0; i < t->n_fields; i++)
        t->ds->stats.memory_bytes += t->ds->n_samples * (int64_t)t->ds->field[i].row_bytes;
    return 0;
}

/* --- The dataset --- */

static int table_gather(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err)
{
    (void)err;
    const uint8_t *data = ((const table_impl *)ds->impl)->field[field].data;
    size_t row = ds->field[field].row_bytes;
    uint8_t *dst = out;
    for (int64_t i = 0; i < n; i++, dst += row)
        memcpy(dst, data + (size_t)samples[i] * row, row);
    return 0;
}

static void table_place(const ty_dataset *ds, int field, int64_t sample, char *out, size_t n)
{
    const table_impl *t = ds->impl;
    (void)field;
    int f = t->n_files - 1;
    while (f > 0 && t->file[f].first > sample)
        f--;
    const table_file *file = &t->file[f];
    int64_t low = 0, high = file->n_jumps - 1;
    while (low < high) {
        int64_t mid = (low + high + 1) / 2;
        if (file->jump[mid].sample <= sample)
            low = mid;
        else
            high = mid - 1;
    }
    snprintf(out, n, "%s:%lld", file->file->path, (long long)(file->jump[low].line + sample - file->jump[low].sample));
}

static void table_close(ty_dataset *ds)
{
    table_impl *t = ds->impl;
    for (int i = 0; i < t->n_fields; i++)
        free(t->field[i].data);
    for (int i = 0; i < t->n_files; i++)
        free(t->file[i].jump);
}

static const ty_dataset_ops table_ops = {.read = table_gather, .place = table_place, .close = table_close};

static int table_check_delimiter(char d, ty_error *err)
{
    if (d == 0 || !(isalnum((unsigned char)d) || strchr(".+-\"\r\n", d) != NULL))
        return 0;
    ty_error_set(err, TY_E_CONFIG, "the CSV delimiter cannot be '%c': it may stand inside a number or end a line", d);
    return ty_error_help(err, "use a comma, tab, semicolon, space, or |");
}

int ty_dataset_open_csv(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    if (table_check_delimiter(src->csv_delimiter, err) < 0)
        return -1;
    table_impl *t = TY_NEW(&ds->arena, table_impl);
    t->ds = ds;
    t->n_fields = src->n_fields;
    t->field = TY_NEW_ARRAY(&ds->arena, table_field, src->n_fields);
    t->missing = ty_csv_missing_copy(&src->csv_missing, &ds->arena);
    t->has_missing_numbers = ty_csv_has_missing_numbers(&t->missing);
    t->n_files = ds->n_files;
    t->file = TY_NEW_ARRAY(&ds->arena, table_file, ds->n_files);
    for (int i = 0; i < t->n_fields; i++)
        t->field[i].declared = &src->fields[i];
    for (int i = 0; i < t->n_files; i++) {
        t->file[i].file = &ds->files[i];
        ds->stats.file_bytes += ds->files[i].n_bytes;
    }
    ds->stats.n_files = ds->n_files;
    ds->is_partial = src->types_only;
    ds->impl = t;
    ds->ops = &table_ops;
    ty_arena_init(&t->scratch);
    int rc = table_load(t, src, err);
    ty_arena_fini(&t->scratch);
    return rc;
}
