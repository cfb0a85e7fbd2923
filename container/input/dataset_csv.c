/* dataset_csv.c - delimited text, parsed once into dense rows in memory.
 *
 * Every field owns one block [n_samples, row] in its batch type; scale, offset and missing values are applied while
 * parsing, so that reading a sample is one copy. A column that no field uses is skipped without being looked at. Before
 * a file is parsed its line feeds are counted: that bounds its records, so that the blocks grow once a file.
 */
#include "container/input/bytes.h"
#include "container/input/convert.h"
#include "container/input/csv.h"
#include "container/input/format.h"
#include "container/input/number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TABLE_MAX_COLUMNS (1 << 20)
#define TABLE_LOOK_ROWS   100 /* with types_only */

/* Records follow line by line except at these: (record, line) pairs let any record's line be found again. */
typedef struct table_jump {
    int64_t sample, line;
} table_jump;

typedef struct table_file {
    const ty_data_file *file;
    int64_t first; /* sample */
    table_jump *jump;
    int64_t n_jumps, cap_jumps;
} table_file;

typedef enum table_kind { TABLE_FLOAT, TABLE_INTEGER, TABLE_SCALED_INTEGER } table_kind;

typedef struct table_field {
    uint8_t *data; /* [n_samples, row_bytes] */
    int32_t *column;
    int32_t n_elems;
    table_kind kind;
    const ty_field *declared; /* while loading */
    double *real;             /* one row on its way, before scaling */
    int64_t *whole;           /* or as integers */
    int64_t min, max;         /* of the batch type, if an integer */
} table_field;

/* Which field element a column feeds; a column may feed several. */
typedef struct table_target {
    int32_t field, elem;
    int32_t next; /* -1: no more */
} table_target;

typedef struct table_impl {
    table_field *field;
    table_file *file;
    int n_fields, n_files;
    /* While loading: */
    ty_dataset *ds;
    ty_arena scratch;
    int64_t n_columns;
    const char *const *header; /* NULL: none */
    int32_t *first_target;     /* by column; -1: unused */
    table_target *target;
    int64_t capacity; /* samples that the blocks have room for */
    char delimiter;
} table_impl;

/* --- One value --- */

static bool table_is_missing(const char *p, size_t n)
{
    static const char *const markers[] = {"", "NA", "N/A", "null", "None", "?"};
    for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++)
        if (strlen(markers[i]) == n && strncasecmp(markers[i], p, n) == 0)
            return true;
    return false;
}

static int table_refuse(const ty_csv *c, const ty_csv_field *f, const table_field *tf, const char *expected,
                        ty_error *err)
{
    int shown = f->n < 40 ? (int)f->n : 40;
    ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected %s, found \"%.*s\"%s", tf->declared->name, expected,
                 shown, f->text, f->n > 40 ? "..." : "");
    return ty_csv_at(c, f->line, f->column, err);
}

static int table_store_missing(table_impl *t, const ty_csv *c, const ty_csv_field *f, int32_t field, int32_t elem,
                               ty_error *err)
{
    table_field *tf = &t->field[field];
    ty_field_info *info = &t->ds->field[field];
    if (tf->kind != TABLE_FLOAT && !tf->declared->missing_given) {
        table_refuse(c, f, tf, "a whole number", err);
        return ty_error_help(err, "the value is missing; say what stands for it: missing: 0");
    }
    double v = tf->declared->missing_given ? tf->declared->missing : (double)NAN;
    if (tf->kind == TABLE_INTEGER)
        tf->whole[elem] = (int64_t)v;
    else
        tf->real[elem] = v;
    if (info->n_missing++ == 0)
        info->first_missing = t->ds->n_samples;
    return 0;
}

static void table_store_real(table_impl *t, int32_t field, int32_t elem, double v)
{
    ty_field_info *info = &t->ds->field[field];
    t->field[field].real[elem] = v;
    if (!isfinite(v) && info->n_not_finite++ == 0)
        info->first_not_finite = t->ds->n_samples;
}

/* "5.0" and "5e0" are whole numbers too. */
static bool table_whole_of(double v, int64_t *out)
{
    if (!(v >= -0x1p63 && v < 0x1p63) || v != floor(v))
        return false;
    *out = (int64_t)v;
    return true;
}

/* The way for everything unusual: quotes, spaces, missing values, errors. */
static int table_store_slow(table_impl *t, const ty_csv *c, const ty_csv_field *f, int32_t field, int32_t elem,
                            ty_error *err)
{
    table_field *tf = &t->field[field];
    const char *p = f->text, *end = f->text + f->n;
    while (p < end && isspace((unsigned char)*p))
        p++;
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    if (table_is_missing(p, (size_t)(end - p)))
        return table_store_missing(t, c, f, field, elem, err);
    double v;
    if (tf->kind == TABLE_INTEGER && ty_integer_scan(p, end, &tf->whole[elem]) == end)
        return 0;
    if (ty_number_scan(p, end, &v) != end) {
        table_refuse(c, f, tf, "a number", err);
        if (t->header == NULL && t->ds->n_samples == 0)
            return ty_error_help(err, "if the first line is a header, say header: true in the recipe's data");
        return ty_error_help(err, "choose other columns for the field, or turn the text into numbers first");
    }
    if (tf->kind != TABLE_INTEGER) {
        table_store_real(t, field, elem, v);
        return 0;
    }
    if (table_whole_of(v, &tf->whole[elem]))
        return 0;
    table_refuse(c, f, tf, "a whole number within 64 bits", err);
    return ty_error_help(err, "declare the field with type: float32, or choose another column");
}

/* An unquoted number of the plain kind, read where it stands. False: take the slow way. */
static inline bool table_store_fast(table_impl *t, ty_csv *c, const table_target *at, bool *last)
{
    table_field *tf = &t->field[at->field];
    const char *p;
    if (tf->kind == TABLE_INTEGER) {
        int64_t whole;
        p = ty_integer_scan(c->at, c->end, &whole);
        if (p == NULL || !ty_csv_skip_to(c, p, last))
            return false;
        tf->whole[at->elem] = whole;
        return true;
    }
    double v;
    p = ty_number_scan(c->at, c->end, &v);
    if (p == NULL || !ty_csv_skip_to(c, p, last))
        return false;
    table_store_real(t, at->field, at->elem, v);
    return true;
}

/* --- One record --- */

static int table_ragged(const table_impl *t, const ty_csv *c, const ty_csv_field *f, int64_t found, ty_error *err)
{
    ty_error_set(err, TY_E_DATA, "the record has %s%lld fields, expected %lld as in the first",
                 found > t->n_columns ? "at least " : "", (long long)found, (long long)t->n_columns);
    ty_csv_at(c, f->line, f->column, err);
    return ty_error_help(err, "a text that holds '%c' must stand in double quotes",
                         t->delimiter == '\t' ? ' ' : t->delimiter);
}

static int table_read_column(table_impl *t, ty_csv *c, int64_t column, ty_csv_field *f, ty_error *err)
{
    int32_t target = t->first_target[column];
    if (target >= 0 && t->target[target].next < 0) {
        *f = (ty_csv_field){.line = c->line, .column = c->at - c->line_start + 1};
        if (table_store_fast(t, c, &t->target[target], &f->last))
            return 0;
    }
    if (ty_csv_next(c, f, err) < 0)
        return -1;
    for (; target >= 0; target = t->target[target].next)
        if (table_store_slow(t, c, f, t->target[target].field, t->target[target].elem, err) < 0)
            return -1;
    return 0;
}

static int table_check_wholes(table_impl *t, const ty_csv *c, int64_t line, int field, ty_error *err)
{
    table_field *tf = &t->field[field];
    ty_field_info *info = &t->ds->field[field];
    for (int32_t i = 0; i < tf->n_elems; i++) {
        int64_t v = tf->whole[i];
        if (v < tf->min || v > tf->max) {
            ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": column %d holds %lld, which does not fit %s", info->name,
                         (int)tf->column[i], (long long)v, ty_dtype_text((ty_dtype)info->type.dtype));
            ty_error_at(err, "%s:%lld", c->name, (long long)line);
            return ty_error_help(err, "declare a wider type: values from %lld to %lld fit", (long long)tf->min,
                                 (long long)tf->max);
        }
        bool none = info->min_sample < 0;
        if (none || v < info->min) {
            info->min = v;
            info->min_sample = t->ds->n_samples;
        }
        if (none || v > info->max) {
            info->max = v;
            info->max_sample = t->ds->n_samples;
        }
    }
    return 0;
}

static int table_scale_wholes(table_impl *t, const ty_csv *c, int64_t line, int field, ty_error *err)
{
    table_field *tf = &t->field[field];
    for (int32_t i = 0; i < tf->n_elems; i++) {
        double v = tf->real[i] * tf->declared->scale + tf->declared->offset;
        if (table_whole_of(v, &tf->whole[i]))
            continue;
        ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": column %d holds %g, which scaled is %g: no whole number",
                     tf->declared->name, (int)tf->column[i], tf->real[i], v);
        ty_error_at(err, "%s:%lld", c->name, (long long)line);
        return ty_error_help(err, "declare the field with type: float32, or another scale and offset");
    }
    return 0;
}

/* The staged row goes to its place in the block, in the batch type. */
static int table_finish_field(table_impl *t, const ty_csv *c, int64_t line, int field, ty_error *err)
{
    table_field *tf = &t->field[field];
    const ty_field_info *info = &t->ds->field[field];
    uint8_t *dst = tf->data + (size_t)t->ds->n_samples * info->row_bytes;
    if (tf->kind == TABLE_FLOAT) {
        double scale = tf->declared->scale, offset = tf->declared->offset;
        if (scale != 1.0 || offset != 0.0)
            for (int32_t i = 0; i < tf->n_elems; i++)
                tf->real[i] = tf->real[i] * scale + offset;
        ty_convert_from_f64((ty_dtype)info->type.dtype, tf->real, dst, tf->n_elems);
        return 0;
    }
    if (tf->kind == TABLE_SCALED_INTEGER && table_scale_wholes(t, c, line, field, err) < 0)
        return -1;
    if (table_check_wholes(t, c, line, field, err) < 0)
        return -1;
    ty_convert_from_i64((ty_dtype)info->type.dtype, tf->whole, dst, tf->n_elems);
    return 0;
}

static int table_note_line(table_file *tf, int64_t sample, int64_t line, ty_error *err)
{
    if (tf->n_jumps > 0) {
        const table_jump *last = &tf->jump[tf->n_jumps - 1];
        if (last->line + (sample - last->sample) == line)
            return 0;
    }
    if (tf->n_jumps == tf->cap_jumps) {
        int64_t cap = tf->cap_jumps == 0 ? 4 : tf->cap_jumps * 2;
        table_jump *grown = realloc(tf->jump, (size_t)cap * sizeof *grown);
        if (grown == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for the line numbers of %lld records", (long long)cap);
        tf->jump = grown;
        tf->cap_jumps = cap;
    }
    tf->jump[tf->n_jumps++] = (table_jump){sample, line};
    return 0;
}

static int table_read_record(table_impl *t, ty_csv *c, table_file *file, ty_error *err)
{
    int64_t line = c->line;
    ty_csv_field f = {0};
    if (t->ds->n_samples >= t->capacity)
        return ty_error_set(err, TY_E_INTERNAL, "more records than lines were counted");
    for (int64_t column = 0;; column++) {
        if (column == t->n_columns) {
            f.line = c->line;
            f.column = c->at - c->line_start + 1;
            return table_ragged(t, c, &f, column + 1, err);
        }
        if (table_read_column(t, c, column, &f, err) < 0)
            return -1;
        if (f.last) {
            if (column + 1 < t->n_columns)
                return table_ragged(t, c, &f, column + 1, err);
            break;
        }
    }
    for (int i = 0; i < t->n_fields; i++)
        if (table_finish_field(t, c, line, i, err) < 0)
            return -1;
    if (table_note_line(file, t->ds->n_samples, line, err) < 0)
        return -1;
    t->ds->n_samples++;
    return 0;
}

/* --- Header and columns --- */

/* The first record as text. *is_data: a field of it is a number, or none is text, so that it cannot be taken for a
 * header. */
static int table_first_record(table_impl *t, ty_csv *c, const char ***names, int64_t *n_names, bool *is_data,
                              ty_error *err)
{
    ty_csv probe = *c;
    ty_csv_field f = {0};
    int64_t n = 0;
    for (; !f.last; n++)
        if (ty_csv_next(&probe, &f, err) < 0)
            return -1;
        else if (n == TABLE_MAX_COLUMNS)
            return ty_error_set(err, TY_E_LIMIT, "more than %d columns", TABLE_MAX_COLUMNS);
    *names = TY_NEW_ARRAY(&t->scratch, const char *, n);
    *n_names = n;
    bool has_number = false, has_text = false;
    for (int64_t i = 0; i < n; i++) {
        if (ty_csv_next(c, &f, err) < 0)
            return -1;
        char *name = ty_arena_alloc(&t->scratch, f.n + 1), *end = name + ty_csv_unquote(&f, name);
        while (isspace((unsigned char)*name))
            name++;
        while (end > name && isspace((unsigned char)end[-1]))
            *--end = 0;
        double v;
        bool is_number = ty_number_scan(name, end, &v) == end;
        has_number = has_number || is_number;
        has_text = has_text || !(is_number || table_is_missing(name, (size_t)(end - name)));
        (*names)[i] = name;
    }
    *is_data = has_number || !has_text;
    return 0;
}

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

static int table_map_field(table_impl *t, int index, ty_error *err)
{
    table_field *tf = &t->field[index];
    const ty_field *f = tf->declared;
    const char *spec = f->columns != NULL ? f->columns : f->name;
    if (ty_columns_resolve(spec, t->header, t->n_columns, &t->ds->arena, &tf->column, &tf->n_elems, err) < 0)
        return ty_error_wrap(err, "field \"%s\"", f->name);
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
    tf->real = TY_NEW_ARRAY(&t->scratch, double, tf->n_elems);
    tf->whole = TY_NEW_ARRAY(&t->scratch, int64_t, tf->n_elems);
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
            t->target[used] = (table_target){.field = i, .elem = k, .next = t->first_target[column]};
            t->first_target[column] = used;
        }
    return 0;
}

static bool table_needs_header(const table_impl *t)
{
    for (int i = 0; i < t->n_fields; i++) {
        const ty_field *f = t->field[i].declared;
        if (ty_columns_need_header(f->columns != NULL ? f->columns : f->name))
            return true;
    }
    return false;
}

/* Looks at the first record of a file: skips it if it is a header; with the first file, lays out the table. */
static int table_begin_file(table_impl *t, ty_csv *c, int index, ty_csv_header mode, ty_error *err)
{
    ty_csv start = *c;
    const char **names = NULL;
    int64_t n_names = 0;
    bool is_data = false;
    if (table_first_record(t, c, &names, &n_names, &is_data, err) < 0)
        return -1;
    bool may_be = index == 0 || t->header != NULL;
    bool is_header = mode == TY_CSV_HEADER_YES || (mode == TY_CSV_HEADER_AUTO && may_be && !is_data);
    if (!is_header)
        *c = start;
    if (index > 0)
        return is_header ? table_same_header(t, c, names, n_names, err) : 0;
    t->n_columns = n_names;
    t->header = is_header ? names : NULL;
    if (!is_header && mode == TY_CSV_HEADER_AUTO && table_needs_header(t)) {
        ty_error_set(err, TY_E_CONFIG, "a column is given by name, but the first line is no header: it holds numbers");
        ty_error_at(err, "%s:%lld", c->name, (long long)start.line);
        return ty_error_help(err, "give the columns by number, or say header: true if it is a header all the same");
    }
    return table_map_columns(t, err);
}

/* --- Files --- */

static int table_reserve(table_impl *t, int64_t capacity, ty_error *err)
{
    for (int i = 0; i < t->n_fields; i++) {
        size_t bytes;
        if (__builtin_mul_overflow((size_t)capacity, t->ds->field[i].row_bytes, &bytes) || bytes > (size_t)INT64_MAX)
            return ty_error_set(err, TY_E_LIMIT, "%lld samples are too many for memory", (long long)capacity);
        uint8_t *grown = realloc(t->field[i].data, bytes > 0 ? bytes : 1);
        if (grown == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for %lld samples of field \"%s\", %zu bytes",
                                (long long)capacity, t->ds->field[i].name, bytes);
        t->field[i].data = grown;
    }
    t->capacity = capacity;
    return 0;
}

/* No more records than lines, and none shorter than its delimiters and its line feed. */
static int64_t table_bound(const table_impl *t, const ty_csv *c)
{
    int64_t lines = 1, n = c->end - c->at;
    for (const char *p = c->at; (p = memchr(p, '\n', (size_t)(c->end - p))) != NULL; p++)
        lines++;
    int64_t by_length = n / t->n_columns + 1;
    return lines < by_length ? lines : by_length;
}

static char table_delimiter(const ty_data_source *src, const ty_data_file *file, const ty_bytes *bytes)
{
    if (src->csv_delimiter != 0)
        return src->csv_delimiter;
    size_t n = strlen(file->name);
    if (n > 3 && strcasecmp(file->name + n - 3, ".gz") == 0)
        n -= 3;
    if (n >= 4 && strncasecmp(file->name + n - 4, ".tsv", 4) == 0)
        return '\t';
    return ty_csv_guess_delimiter((const char *)bytes->data, bytes->n);
}

static int table_load_bytes(table_impl *t, int index, const ty_bytes *bytes, const ty_data_source *src, ty_error *err)
{
    table_file *file = &t->file[index];
    ty_csv c;
    if (index == 0)
        t->delimiter = table_delimiter(src, file->file, bytes);
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
    int64_t most = src->types_only ? TABLE_LOOK_ROWS : table_bound(t, &c);
    if (table_reserve(t, t->ds->n_samples + most, err) < 0)
        return -1;
    while (ty_csv_more(&c) && !(src->types_only && t->ds->n_samples == most))
        if (table_read_record(t, &c, file, err) < 0)
            return -1;
    return 0;
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

static int table_load(table_impl *t, const ty_data_source *src, ty_error *err)
{
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

static int table_read(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err)
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

static const ty_dataset_ops table_ops = {.read = table_read, .place = table_place, .close = table_close};

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
    t->n_files = ds->n_files;
    t->file = TY_NEW_ARRAY(&ds->arena, table_file, ds->n_files);
    for (int i = 0; i < t->n_fields; i++)
        t->field[i].declared = &src->fields[i];
    for (int i = 0; i < t->n_files; i++) {
        t->file[i].file = &ds->files[i];
        ds->stats.file_bytes += ds->files[i].n_bytes;
    }
    ds->stats.n_files = ds->n_files;
    ds->impl = t;
    ds->ops = &table_ops;
    ty_arena_init(&t->scratch);
    int rc = table_load(t, src, err);
    ty_arena_fini(&t->scratch);
    return rc;
}
