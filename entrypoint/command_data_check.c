/* command_data_check.c - `trainyard data check`: all data are read, and told about field by field. */
#include "base/json.h"
#include "container/input/profile.h"
#include "entrypoint/command_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many, and where the first is. */
typedef struct check_some {
    int64_t n;
    const char *first;
} check_some;

/* Texts, of which a sample may have several: how long they are, where the longest is, those that are no UTF-8. Of lists
 * of texts: how many a sample has, where most are, samples with one that is no UTF-8. */
typedef struct check_text {
    int64_t n, least, most, sum, n_empty;
    const char *longest;
    check_some damaged;
} check_text;

/* What is known of a field, of all files so far. */
typedef struct check_field {
    const char *name, *type, *shown; /* "i64[]", and "text" where it is that of one */
    bool is_text, is_media;
    bool is_list; /* of texts */
    bool has_whole, has_range;
    int64_t min, max; /* of whole numbers */
    double lo, hi;
    check_some missing, not_finite;
    check_text text;
} check_field;

/* All of it. sum: of the first file's data set what is told of it, added up over all; its memory is gone. */
typedef struct check_all {
    ty_dataset sum;
    const char *left_out;
    int64_t n_text;
    check_field *field;
    int n_fields;
} check_all;

static const char *check_place(const ty_data_opened *d, ty_arena *a, int field, int64_t sample)
{
    char place[400];
    return ty_arena_printf(a, "%s", ty_dataset_place(d->ds, field, sample, place, sizeof place));
}

/* ---- one file ---- */

static void check_see_text(const ty_data_opened *d, ty_arena *a, int field, check_text *t, int64_t sample,
                           int64_t characters, bool damaged)
{
    t->n++;
    t->least = characters < t->least ? characters : t->least;
    t->most = characters > t->most ? characters : t->most;
    t->sum += characters;
    t->n_empty += characters == 0;
    if (damaged && t->damaged.n++ == 0)
        t->damaged.first = check_place(d, a, field, sample);
}

static int check_read_texts(const ty_data_opened *d, ty_arena *a, int field, check_text *out, ty_error *err)
{
    int64_t n = ty_type_elems(&d->ds->field[field].type), longest = 0, most = -1;
    int64_t *characters = calloc(2 * (size_t)n + 1, sizeof *characters), *damaged = characters + n;
    int rc = characters ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for %lld texts", (long long)n);
    *out = (check_text){.least = INT64_MAX, .most = -1};
    for (int64_t i = 0; rc == 0 && i < d->ds->n_samples; i++) {
        rc = ty_dataset_read(d->ds, field, &i, 1, characters, err) < 0
                 ? -1
                 : ty_dataset_read(d->ds, field + 1, &i, 1, damaged, err);
        for (int64_t k = 0; rc == 0 && k < n; k++) {
            check_see_text(d, a, field, out, i, characters[k], damaged[k] != 0);
            longest = out->most > most ? i : longest;
            most = out->most;
        }
    }
    free(characters);
    if (rc == 0 && out->n > 0)
        out->longest = check_place(d, a, field, longest);
    return rc;
}

/* Of whole numbers the range is known, and pictures and sounds are seen. Where features are missing, records have zeros
 * for them here: then there is no range. */
static int check_read_range(const ty_data_opened *d, ty_arena *a, int i, check_field *out, ty_error *err)
{
    const ty_field_info *f = &d->ds->field[i];
    ty_field_profile p = {.first_not_finite = -1};
    int rc = f->is_integer || f->image || f->audio ? 0 : ty_data_range(d->ds, i, &p, err);
    if (rc < 0)
        return -1;
    out->has_range = p.n > 0 && (f->n_missing == 0 || d->survey.is_table);
    out->lo = p.min;
    out->hi = p.max;
    p.n_not_finite -= p.n_not_finite > f->n_missing ? f->n_missing : p.n_not_finite; /* missing ones are NaN */
    if (f->n_not_finite > 0)
        p.first_not_finite = f->first_not_finite;
    out->not_finite.n = p.n_not_finite;
    if (p.n_not_finite > 0)
        out->not_finite.first = check_place(d, a, i, p.first_not_finite);
    return 0;
}

static int check_read_field(const ty_arguments_given *given, const ty_data_opened *d, ty_arena *a, int i,
                            check_field *out, ty_error *err)
{
    const ty_field_info *f = &d->ds->field[i];
    char type[160];
    *out = (check_field){.name = ty_arena_printf(a, "%s", f->name)};
    out->is_list = ty_data_measures(d, i, TY_MEASURE_TEXTS);
    out->is_text = out->is_list || ty_data_measures(d, i, TY_MEASURE_CHARACTERS);
    out->is_media = ty_data_is_media(given, f);
    const char *media = !out->is_media ? NULL : f->audio ? "sound" : "picture";
    out->type = media ? media : ty_arena_printf(a, "%s", ty_type_text(&f->type, type, sizeof type));
    out->shown = !out->is_text ? out->type : out->is_list ? "lists of texts" : f->type.rank > 0 ? "texts" : "text";
    out->has_whole = f->is_integer && f->min_sample >= 0;
    out->min = f->min;
    out->max = f->max;
    out->missing.n = f->n_missing;
    if (f->n_missing > 0)
        out->missing.first = check_place(d, a, i, f->first_missing);
    return out->is_text ? check_read_texts(d, a, i, &out->text, err) : check_read_range(d, a, i, out, err);
}

static int check_read(const ty_arguments_given *given, const ty_data_opened *d, ty_arena *a, check_all *out,
                      ty_error *err)
{
    *out = (check_all){.sum = *d->ds, .n_text = d->n_text};
    out->left_out = d->survey.left_out ? ty_arena_printf(a, "%s", d->survey.left_out) : NULL;
    out->field = TY_NEW_ARRAY(a, check_field, d->ds->n_fields + 1);
    for (int i = 0; i < d->ds->n_fields; i++)
        if (!ty_data_measures(d, i, TY_MEASURE_FAULTS) &&
            check_read_field(given, d, a, i, &out->field[out->n_fields++], err) < 0)
            return -1;
    return 0;
}

/* ---- several ---- */

static void check_add_some(check_some *to, const check_some *more)
{
    to->first = to->n > 0 ? to->first : more->first;
    to->n += more->n;
}

static void check_add_text(check_text *to, const check_text *more)
{
    to->n += more->n;
    to->sum += more->sum;
    to->n_empty += more->n_empty;
    to->least = more->least < to->least ? more->least : to->least;
    to->longest = more->most > to->most ? more->longest : to->longest;
    to->most = more->most > to->most ? more->most : to->most;
    check_add_some(&to->damaged, &more->damaged);
}

static void check_add_field(check_field *to, const check_field *more)
{
    if (more->has_whole) {
        to->min = to->has_whole && to->min < more->min ? to->min : more->min;
        to->max = to->has_whole && to->max > more->max ? to->max : more->max;
    }
    if (more->has_range) {
        to->lo = to->has_range && to->lo < more->lo ? to->lo : more->lo;
        to->hi = to->has_range && to->hi > more->hi ? to->hi : more->hi;
    }
    to->has_whole |= more->has_whole;
    to->has_range |= more->has_range;
    check_add_some(&to->missing, &more->missing);
    check_add_some(&to->not_finite, &more->not_finite);
    check_add_text(&to->text, &more->text);
}

/* Whether files have the same fields; else they are read together, which says what is wrong. */
static bool check_fits(const check_all *a, const check_all *b)
{
    bool same = a->n_fields == b->n_fields;
    for (int i = 0; same && i < a->n_fields; i++)
        same = strcmp(a->field[i].name, b->field[i].name) == 0 && strcmp(a->field[i].type, b->field[i].type) == 0;
    return same;
}

static void check_add(check_all *to, const check_all *more)
{
    to->sum.n_samples += more->sum.n_samples;
    to->sum.n_files += more->sum.n_files;
    to->sum.stats.n_files += more->sum.stats.n_files;
    to->sum.stats.file_bytes += more->sum.stats.file_bytes;
    to->sum.stats.load_ms += more->sum.stats.load_ms;
    for (int i = 0; i < to->n_fields; i++)
        check_add_field(&to->field[i], &more->field[i]);
}

/* One after the other, each alone in memory. 0: they do not fit each other; 1: done. */
static int check_each(const ty_arguments_given *given, const ty_data_file *files, int n, ty_arena *a, check_all *out,
                      ty_error *err)
{
    for (int i = 0; i < n; i++) {
        ty_arena one;
        ty_data_opened d;
        check_all found;
        ty_arena_init(&one);
        int rc = ty_data_open_one(given, files[i].path, &one, &d, err);
        if (rc == 0) {
            rc = check_read(given, &d, a, i == 0 ? out : &found, err);
            ty_dataset_close(d.ds);
        }
        ty_arena_fini(&one);
        if (rc < 0)
            return -1;
        if (i > 0 && !check_fits(out, &found))
            return 0;
        if (i > 0)
            check_add(out, &found);
    }
    return 1;
}

/* ---- told ---- */

static void check_print_some(const check_some *s, const char *what)
{
    if (s->n > 0)
        printf("  %" PRId64 " %s, first at %s", s->n, what, s->first);
}

static void check_print_text(const check_text *t, bool is_list)
{
    if (t->n > 0)
        printf("  %" PRId64 " to %" PRId64 " %s, mean %.1f, the longest at %s", t->least, t->most,
               is_list ? "texts" : "characters", (double)t->sum / (double)t->n, t->longest);
    if (t->n_empty > 0)
        printf("  %" PRId64 " empty", t->n_empty);
    check_print_some(&t->damaged, "no UTF-8");
}

static void check_print_field(const check_field *f, int width)
{
    printf("  %-*s  %-16s", width, f->name, f->shown);
    if (f->is_text)
        check_print_text(&f->text, f->is_list);
    if (f->is_media)
        printf("  all were decoded; their formats and sizes: trainyard data stats");
    if (f->has_whole && !f->is_text)
        printf("  %" PRId64 " to %" PRId64, f->min, f->max);
    if (f->has_range)
        printf("  %.6g to %.6g", f->lo, f->hi);
    if (!f->is_text)
        check_print_some(&f->missing, "missing");
    check_print_some(&f->not_finite, "not finite");
    putchar('\n');
}

static void check_print(const check_all *all)
{
    char text[160];
    int width = 0;
    for (int i = 0; i < all->n_fields; i++)
        width = (int)strlen(all->field[i].name) > width ? (int)strlen(all->field[i].name) : width;
    printf("%s, read and checked in %.0f ms\n", ty_dataset_summary(&all->sum, text, sizeof text),
           all->sum.stats.load_ms);
    for (int i = 0; i < all->n_fields; i++)
        check_print_field(&all->field[i], width);
    if (all->left_out)
        printf("  left out, neither numbers nor texts: %s\n", all->left_out);
}

static void check_put_text(ty_json_writer *w, const check_text *t, bool is_list)
{
    if (t->n == 0)
        return;
    ty_json_put_int(w, is_list ? "least_texts" : "least_characters", t->least);
    ty_json_put_int(w, is_list ? "most_texts" : "most_characters", t->most);
    ty_json_put_int(w, "empty", t->n_empty);
    ty_json_put_int(w, "not_utf8", t->damaged.n);
}

static void check_put_field(ty_json_writer *w, const check_field *f)
{
    ty_json_open_map(w, NULL);
    ty_json_put_string(w, "name", f->name);
    ty_json_put_string(w, "type", f->type);
    ty_json_put_int(w, "missing", f->missing.n);
    ty_json_put_int(w, "not_finite", f->not_finite.n);
    if (f->is_text)
        check_put_text(w, &f->text, f->is_list);
    if (f->has_whole) {
        ty_json_put_int(w, "min", f->min);
        ty_json_put_int(w, "max", f->max);
    } else if (f->has_range) {
        ty_json_put_float(w, "min", f->lo);
        ty_json_put_float(w, "max", f->hi);
    }
    ty_json_close(w);
}

static void check_print_json(const check_all *all)
{
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, 1 << 24);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "format", all->sum.format);
    ty_json_put_int(&w, "samples", all->sum.n_samples);
    ty_json_put_int(&w, "files", all->sum.stats.n_files);
    ty_json_put_int(&w, "bytes", all->sum.stats.file_bytes);
    ty_json_put_int(&w, "text_columns", all->n_text);
    ty_json_put_int(&w, "bad_records", all->sum.bad.n);
    ty_json_open_list(&w, "fields");
    for (int i = 0; i < all->n_fields; i++)
        check_put_field(&w, &all->field[i]);
    ty_json_close(&w);
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

int ty_command_data_check(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_data_file *files;
    ty_data_opened d = {.ds = NULL};
    check_all all;
    int n;
    if (ty_data_column_files(given, a, &files, &n, err) < 0)
        return -1;
    int rc = n > 1 ? check_each(given, files, n, a, &all, err) : 0;
    if (rc == 0 && ty_data_open_looked(given, a, &d, err) == 0)
        rc = check_read(given, &d, a, &all, err) < 0 ? -1 : 1;
    if (rc > 0)
        (given->value[TY_DATA_JSON] ? check_print_json : check_print)(&all);
    ty_dataset_close(d.ds);
    return rc > 0 ? 0 : -1;
}
