/* rows.c - the records of one chunk into rows. */
#include "container/input/table/walk.h"

#include "base/pages.h"
#include "container/input/convert.h"
#include "container/input/header.h"
#include "container/input/number.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one value ---- */

static int walk_refuse(const table_walk *w, const ty_csv_field *f, const table_field *tf, const char *expected,
                       ty_error *err)
{
    int shown = f->n < 40 ? (int)f->n : 40;
    ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected %s, found \"%.*s\"%s", tf->declared->name, expected,
                 shown, f->text, f->n > 40 ? "..." : "");
    return ty_csv_at(&w->csv, f->line, f->column, err);
}

static int walk_store_missing(table_walk *w, const ty_csv_field *f, const table_target *at, ty_error *err)
{
    const table_field *tf = &w->t->field[at->field];
    ty_field_info *seen = &w->chunk->seen[at->field];
    bool is_whole = tf->kind == TABLE_INTEGER || tf->kind == TABLE_SCALED_INTEGER;
    bool is_mapped = tf->kind == TABLE_MAPPED; /* its map knows what stands for it, or refuses it */
    if (!is_mapped && !tf->declared->missing_given && (is_whole || w->t->ds->bad.skip)) {
        walk_refuse(w, f, tf, is_whole ? "a whole number" : "a number", err);
        return ty_error_help(err, "the value is missing; say what stands for it: missing: 0");
    }
    double v = tf->declared->missing_given && !is_mapped ? tf->declared->missing : (double)NAN;
    if (tf->kind == TABLE_INTEGER)
        w->whole[tf->slot + at->elem] = (int64_t)v;
    else
        w->real[tf->slot + at->elem] = v;
    if (seen->n_missing++ == 0)
        seen->first_missing = w->chunk->n_rows;
    return 0;
}

static void walk_store_real(table_walk *w, const table_target *at, double v)
{
    ty_field_info *seen = &w->chunk->seen[at->field];
    w->real[w->t->field[at->field].slot + at->elem] = v;
    if (!isfinite(v) && seen->n_not_finite++ == 0)
        seen->first_not_finite = w->chunk->n_rows;
}

bool table_whole_of(double v, int64_t *out)
{
    if (!(v >= -0x1p63 && v < 0x1p63) || v != floor(v))
        return false;
    *out = (int64_t)v;
    return true;
}

/* The way for everything unusual: quotes, spaces, missing values, errors. */
int walk_store_slow(table_walk *w, const ty_csv_field *f, const table_target *at, ty_error *err)
{
    const table_field *tf = &w->t->field[at->field];
    int64_t *whole = &w->whole[tf->slot + at->elem];
    if (tf->kind == TABLE_TEXT)
        return walk_store_text(w, f, at);
    const char *p = f->text, *end = f->text + f->n;
    while (p < end && isspace((unsigned char)*p))
        p++;
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    if (ty_csv_is_missing(&w->t->missing, p, (size_t)(end - p)))
        return walk_store_missing(w, f, at, err);
    double v;
    if (w->t->has_missing_numbers && ty_number_scan(p, end, &v) == end && ty_csv_is_missing_number(&w->t->missing, v))
        return walk_store_missing(w, f, at, err);
    if (tf->kind == TABLE_INTEGER && ty_integer_scan(p, end, whole) == end)
        return 0;
    if (ty_number_scan(p, end, &v) != end) {
        walk_refuse(w, f, tf, "a number", err);
        if (w->t->header == NULL && w->chunk->first + w->chunk->n_rows == 0)
            return ty_error_help(err, "if the first line is a header, say header: yes in the recipe's data");
        return ty_error_help(err, "choose other columns for the field, or turn the text into numbers first");
    }
    if (tf->kind != TABLE_INTEGER) {
        walk_store_real(w, at, v);
        return 0;
    }
    if (table_whole_of(v, whole))
        return 0;
    walk_refuse(w, f, tf, "a whole number within 64 bits", err);
    return ty_error_help(err, "declare the field with type: float32, or choose another column");
}

/* Behind a delimiter, or behind a line feed; ty_csv_skip_to knows the rest. */
static inline bool walk_pass(ty_csv *c, const char *p, bool *last)
{
    if (p < c->end && *p == c->delimiter) {
        c->at = p + 1;
        *last = false;
        return true;
    }
    return ty_csv_skip_to(c, p, last);
}

/* An unquoted number of the plain kind, read where it stands. False: take the slow way. */
static inline bool walk_store_fast(table_walk *w, const table_target *at, bool *last)
{
    ty_csv *c = &w->csv;
    const char *p;
    if (at->kind == TABLE_TEXT || w->t->has_missing_numbers)
        return false;
    if (at->kind == TABLE_INTEGER) {
        p = ty_integer_plain(c->at, c->end, &w->whole[at->slot]);
        return p != NULL && walk_pass(c, p, last);
    }
    p = ty_number_plain(c->at, c->end, &w->real[at->slot]);
    if (p != NULL) /* finite */
        return walk_pass(c, p, last);
    double v;
    p = ty_number_scan(c->at, c->end, &v);
    if (p == NULL || !walk_pass(c, p, last))
        return false;
    walk_store_real(w, at, v);
    return true;
}

/* ---- one record ---- */

static int walk_ragged(const table_walk *w, int64_t line, int64_t column, int64_t found, ty_error *err)
{
    const table_impl *t = w->t;
    ty_error_set(err, TY_E_DATA, "the record has %s%lld fields, expected %lld as in the first",
                 found > t->n_columns ? "at least " : "", (long long)found, (long long)t->n_columns);
    ty_csv_at(&w->csv, line, column, err);
    return ty_error_help(err, "a text that holds '%c' must stand in double quotes",
                         t->delimiter == '\t' ? ' ' : t->delimiter);
}

static int walk_column_slow(table_walk *w, int32_t target, ty_csv_field *f, ty_error *err)
{
    if (ty_csv_next(&w->csv, f, err) < 0)
        return -1;
    for (; target >= 0; target = w->t->target[target].next)
        if (walk_store_slow(w, f, &w->t->target[target], err) < 0)
            return -1;
    return 0;
}

static int walk_check_wholes(table_walk *w, int64_t line, int field, ty_error *err)
{
    const table_field *tf = &w->t->field[field];
    const ty_field_info *info = &w->t->ds->field[field];
    ty_field_info *seen = &w->chunk->seen[field];
    for (int32_t i = 0; i < tf->n_elems; i++) {
        int64_t v = w->whole[tf->slot + i];
        if (v < tf->min || v > tf->max) {
            ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": column %d holds %lld, which does not fit %s", info->name,
                         (int)tf->column[i], (long long)v, ty_dtype_text((ty_dtype)info->type.dtype));
            ty_error_at(err, "%s:%lld", w->csv.name, (long long)line);
            return ty_error_help(err, "declare a wider type: values from %lld to %lld fit", (long long)tf->min,
                                 (long long)tf->max);
        }
        bool none = seen->min_sample < 0;
        if (none || v < seen->min) {
            seen->min = v;
            seen->min_sample = w->chunk->n_rows;
        }
        if (none || v > seen->max) {
            seen->max = v;
            seen->max_sample = w->chunk->n_rows;
        }
    }
    return 0;
}

static int walk_scale_wholes(table_walk *w, int64_t line, int field, ty_error *err)
{
    const table_field *tf = &w->t->field[field];
    for (int32_t i = 0; i < tf->n_elems; i++) {
        double real = w->real[tf->slot + i], v = real * tf->declared->scale + tf->declared->offset;
        if (table_whole_of(v, &w->whole[tf->slot + i]))
            continue;
        ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": column %d holds %g, which scaled is %g: no whole number",
                     tf->declared->name, (int)tf->column[i], real, v);
        ty_error_at(err, "%s:%lld", w->csv.name, (long long)line);
        return ty_error_help(err, "declare the field with type: float32, or another scale and offset");
    }
    return 0;
}

static void walk_put_floats(const table_walk *w, const table_field *tf, ty_dtype dtype, void *to)
{
    double *real = w->real + tf->slot, scale = tf->declared->scale, offset = tf->declared->offset;
    if (scale != 1.0 || offset != 0.0)
        for (int32_t i = 0; i < tf->n_elems; i++)
            real[i] = real[i] * scale + offset;
    if (dtype == TY_F32)
        for (int32_t i = 0; i < tf->n_elems; i++)
            ((float *)to)[i] = (float)real[i];
    else
        ty_convert_from_f64(dtype, real, to, tf->n_elems);
}

/* The staged row goes to its place in the block, in the batch type. */
static int walk_finish_field(table_walk *w, int64_t line, int field, ty_error *err)
{
    const table_field *tf = &w->t->field[field];
    const ty_field_info *info = &w->t->ds->field[field];
    uint8_t *to = tf->data + (size_t)(w->chunk->first + w->chunk->n_rows) * info->row_bytes;
    if (tf->kind == TABLE_TEXT || tf->kind == TABLE_MAPPED)
        return walk_finish_mapped(w, line, field, err);
    if (tf->kind == TABLE_FLOAT) {
        walk_put_floats(w, tf, (ty_dtype)info->type.dtype, to);
        return 0;
    }
    if (tf->kind == TABLE_SCALED_INTEGER && walk_scale_wholes(w, line, field, err) < 0)
        return -1;
    if (walk_check_wholes(w, line, field, err) < 0)
        return -1;
    ty_convert_from_i64((ty_dtype)info->type.dtype, w->whole + tf->slot, to, tf->n_elems);
    return 0;
}

int walk_note_line(table_chunk *c, int64_t line, ty_error *err)
{
    if (c->n_jumps > 0) {
        const table_jump *last = &c->jump[c->n_jumps - 1];
        if (last->line + (c->n_rows - last->sample) == line)
            return 0;
    }
    if (c->n_jumps == c->cap_jumps) {
        int64_t cap = c->cap_jumps == 0 ? 4 : c->cap_jumps * 2;
        table_jump *grown = realloc(c->jump, (size_t)cap * sizeof *grown);
        if (grown == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for the line numbers of %lld records", (long long)cap);
        c->jump = grown;
        c->cap_jumps = cap;
    }
    c->jump[c->n_jumps++] = (table_jump){c->n_rows, line};
    return 0;
}

static int walk_columns(table_walk *w, ty_error *err)
{
    const table_impl *t = w->t;
    ty_csv_field f = {.last = false};
    int64_t line = w->csv.line, column = 0;
    for (; !f.last; column++) {
        const char *line_start = w->csv.line_start;
        if (column == t->n_columns)
            return walk_ragged(w, w->csv.line, w->csv.at - line_start + 1, column + 1, err);
        line = w->csv.line;
        f.column = w->csv.at - line_start + 1;
        int32_t target = t->first_target[column];
        if (target >= 0 && t->target[target].next < 0 && walk_store_fast(w, &t->target[target], &f.last))
            continue;
        if (walk_column_slow(w, target, &f, err) < 0)
            return -1;
    }
    return column == t->n_columns ? 0 : walk_ragged(w, line, f.column, column, err);
}

int walk_record(table_walk *w, ty_error *err)
{
    int64_t line = w->csv.line;
    if (w->plain.used_bytes > WALK_PLAIN_BYTES)
        walk_forget_texts(w);
    int done = w->t->has_missing_numbers ? 0 : w->ways->record(w, err);
    if (done < 0 || (done == 0 && walk_columns(w, err) < 0))
        return -1;
    for (int i = 0; i < w->t->n_fields; i++)
        if (walk_finish_field(w, line, i, err) < 0)
            return -1;
    if (w->t->learns && walk_learn(w, line, err) < 0)
        return -1;
    if (walk_note_line(w->chunk, line, err) < 0)
        return -1;
    w->chunk->n_rows++;
    return 0;
}

/* Moves behind the record that begins at `start`, of which something is wrong: to the line feed behind it. */
static int walk_pass_over(ty_csv *c, const ty_csv *start, ty_error *err)
{
    ty_csv_field f = {0};
    *c = *start;
    while (!f.last)
        if (ty_csv_next(c, &f, err) < 0) {
            if (c->at == c->end)
                return -1; /* a quote that is never closed */
            const char *feed = memchr(c->at, '\n', (size_t)(c->end - c->at));
            ty_csv_skip_to(c, feed ? feed : c->end, &f.last);
        }
    return 0;
}

/* The same, or none where it is bad and bad ones are left out: then there is one reader only. */
static int walk_take_record(table_walk *w, ty_error *err)
{
    ty_dataset *ds = w->t->ds;
    ty_csv start = w->csv;
    size_t bytes = (size_t)ds->n_fields * sizeof *w->known;
    if (!ds->bad.skip)
        return walk_record(w, err);
    memcpy(w->known, w->chunk->seen, bytes);
    if (walk_record(w, err) == 0)
        return 0;
    if (ty_bad_leave_out(&ds->bad, err) < 0)
        return -1;
    memcpy(w->chunk->seen, w->known, bytes);
    return walk_pass_over(&w->csv, &start, err);
}

/* ---- the chunk ---- */

static int walk_all(table_walk *w, ty_error *err)
{
    table_chunk *chunk = w->chunk;
    bool more = true; /* than blank lines */
    while (w->csv.at < chunk->to && chunk->n_rows < chunk->bound) {
        more = ty_csv_more(&w->csv) && w->csv.at < chunk->to;
        if (!more)
            break;
        int64_t n_tile = w->tile ? walk_tile_read(w, err) : 0;
        if (n_tile < 0 || (n_tile == 0 && walk_take_record(w, err) < 0))
            return -1;
    }
    if (chunk->n_rows == chunk->bound && w->csv.at < chunk->to)
        more = ty_csv_more(&w->csv) && w->csv.at <= chunk->to;
    chunk->line_at = w->csv.line;
    chunk->at = more || chunk->goes_on ? w->csv.at : chunk->to;
    return 0;
}

static void walk_end(table_walk *w)
{
    walk_tile_free(w->tile);
    free(w->real);
    free(w->whole);
    free(w->text);
    ty_arena_fini(&w->plain);
    free(w->known);
    free(w);
}

static table_walk *walk_begin(const table_impl *t, table_chunk *chunk)
{
    table_walk *w = malloc(sizeof *w);
    if (!w)
        return NULL;
    memset(w, 0, offsetof(table_walk, place));
    w->t = t;
    w->chunk = chunk;
    w->ways = walk_ways_number(walk_ways_taken);
    w->lane = w->lane_at = chunk->from;
    w->csv = (ty_csv){.at = chunk->from,
                      .end = chunk->end,
                      .line_start = chunk->from,
                      .line = chunk->line,
                      .name = chunk->name,
                      .delimiter = t->delimiter};
    w->real = malloc((size_t)t->n_slots * sizeof *w->real + 1);
    w->whole = malloc((size_t)t->n_slots * sizeof *w->whole + 1);
    w->text = calloc((size_t)t->n_slots + 1, sizeof *w->text);
    w->known = calloc((size_t)t->n_fields, sizeof *w->known);
    ty_arena_init(&w->plain);
    if (w->real && w->whole && w->text && w->known && (!w->ways->real || walk_tile_new(t, &w->tile) == 0))
        return w;
    walk_end(w);
    return NULL;
}

void table_parse(const table_impl *t, table_chunk *chunk)
{
    ty_error *err = &chunk->error;
    ty_pages_expect_read(chunk->from, (size_t)(chunk->to - chunk->from));
    table_walk *w = walk_begin(t, chunk);
    chunk->seen = calloc((size_t)t->n_fields, sizeof *chunk->seen);
    for (int i = 0; chunk->seen && i < t->n_fields; i++)
        chunk->seen[i] =
            (ty_field_info){.min_sample = -1, .max_sample = -1, .first_missing = -1, .first_not_finite = -1};
    chunk->rc = w && chunk->seen ? walk_all(w, err) : ty_error_set(err, TY_E_LIMIT, "no memory to read delimited text");
    if (w)
        walk_end(w);
}

void table_chunk_fini(table_chunk *chunk)
{
    free(chunk->seen);
    free(chunk->jump);
}
