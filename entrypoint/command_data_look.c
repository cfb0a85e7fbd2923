/* command_data_look.c - `trainyard data check` and `head`. */
#include "base/json.h"
#include "base/tensor.h"
#include "container/input/convert.h"
#include "container/input/audio/audio.h"
#include "container/input/image/image.h"
#include "container/input/profile.h"
#include "entrypoint/command_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int look_open(const ty_arguments_given *given, ty_arena *a, ty_data_opened *d, ty_error *err)
{
    return (given->value[TY_DATA_RECIPE] ? ty_data_open_declared : ty_data_open)(given, a, d, err);
}

/* A picture or sound that nobody has declared: what is read of it is of a size that says nothing. */
static bool look_is_media(const ty_arguments_given *given, const ty_field_info *f)
{
    return (f->image || f->audio) && !given->value[TY_DATA_RECIPE];
}

static const char *look_type(const ty_arguments_given *given, const ty_field_info *f, char *out, size_t n)
{
    return !look_is_media(given, f) ? ty_type_text(&f->type, out, n) : f->audio ? "sound" : "picture";
}

/* ---- check ---- */

/* Of whole numbers the range is known, and pictures and sounds are seen. Where features are missing, records have zeros
 * for them here: then there is no range. */
static int check_range(const ty_data_opened *d, int i, ty_field_profile *p, bool *has_range, ty_error *err)
{
    const ty_field_info *f = &d->ds->field[i];
    *p = (ty_field_profile){.first_not_finite = -1};
    *has_range = false;
    if (f->is_integer || f->image || f->audio)
        return 0;
    int rc = ty_data_range(d->ds, i, p, err);
    *has_range = p->n > 0 && (f->n_missing == 0 || d->survey.is_table);
    p->n_not_finite -= p->n_not_finite > f->n_missing ? f->n_missing : p->n_not_finite; /* missing ones are NaN */
    if (f->n_not_finite > 0)
        p->first_not_finite = f->first_not_finite;
    return rc;
}

static int check_print_field(const ty_arguments_given *given, const ty_data_opened *d, int i, int width, ty_error *err)
{
    const ty_dataset *ds = d->ds;
    const ty_field_info *f = &ds->field[i];
    char type[160], place[400];
    ty_field_profile p;
    bool has_range;
    if (check_range(d, i, &p, &has_range, err) < 0)
        return -1;
    printf("  %-*s  %-16s", width, f->name, look_type(given, f, type, sizeof type));
    if (look_is_media(given, f))
        printf("  all were decoded; their formats and sizes: trainyard data stats");
    if (f->is_integer && f->min_sample >= 0)
        printf("  %" PRId64 " to %" PRId64, f->min, f->max);
    if (has_range)
        printf("  %.6g to %.6g", p.min, p.max);
    if (f->n_missing > 0)
        printf("  %" PRId64 " missing, first at %s", f->n_missing,
               ty_dataset_place(ds, i, f->first_missing, place, sizeof place));
    if (p.n_not_finite > 0)
        printf("  %" PRId64 " not finite, first at %s", p.n_not_finite,
               ty_dataset_place(ds, i, p.first_not_finite, place, sizeof place));
    putchar('\n');
    return 0;
}

/* Texts, of which a sample may have several: how long they are, where the longest is, and where the first that is no
 * UTF-8. */
typedef struct check_text {
    int64_t n, least, most, most_sample, sum, n_empty, n_damaged, first_damaged;
} check_text;

static void check_see_text(check_text *t, int64_t sample, int64_t characters, bool damaged)
{
    t->n++;
    t->least = characters < t->least ? characters : t->least;
    if (characters > t->most)
        t->most = characters, t->most_sample = sample;
    t->sum += characters;
    t->n_empty += characters == 0;
    if (damaged && t->n_damaged++ == 0)
        t->first_damaged = sample;
}

static int check_texts(const ty_data_opened *d, int field, check_text *out, ty_error *err)
{
    int64_t n = ty_type_elems(&d->ds->field[field].type);
    int64_t *characters = calloc(2 * (size_t)n + 1, sizeof *characters), *damaged = characters + n;
    int rc = characters ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for %lld texts", (long long)n);
    *out = (check_text){.least = INT64_MAX, .most = -1};
    for (int64_t i = 0; rc == 0 && i < d->ds->n_samples; i++) {
        rc = ty_dataset_read(d->ds, field, &i, 1, characters, err) < 0
                 ? -1
                 : ty_dataset_read(d->ds, field + 1, &i, 1, damaged, err);
        for (int64_t k = 0; rc == 0 && k < n; k++)
            check_see_text(out, i, characters[k], damaged[k] != 0);
    }
    free(characters);
    return rc;
}

static int check_print_text(const ty_data_opened *d, int i, int width, ty_error *err)
{
    const ty_dataset *ds = d->ds;
    char place[400];
    check_text t;
    if (check_texts(d, i, &t, err) < 0)
        return -1;
    printf("  %-*s  %-16s", width, ds->field[i].name, ds->field[i].type.rank > 0 ? "texts" : "text");
    if (t.n > 0)
        printf("  %" PRId64 " to %" PRId64 " characters, mean %.1f, the longest at %s", t.least, t.most,
               (double)t.sum / (double)t.n, ty_dataset_place(ds, i, t.most_sample, place, sizeof place));
    if (t.n_empty > 0)
        printf("  %" PRId64 " empty", t.n_empty);
    if (t.n_damaged > 0)
        printf("  %" PRId64 " no UTF-8, first at %s", t.n_damaged,
               ty_dataset_place(ds, i, t.first_damaged, place, sizeof place));
    putchar('\n');
    return 0;
}

static int check_print(const ty_arguments_given *given, const ty_data_opened *d, ty_error *err)
{
    char text[160];
    int width = 0;
    for (int i = 0; i < d->ds->n_fields; i++)
        if (!ty_data_measures(d, i, TY_MEASURE_FAULTS))
            width = (int)strlen(d->ds->field[i].name) > width ? (int)strlen(d->ds->field[i].name) : width;
    printf("%s, read and checked in %.0f ms\n", ty_dataset_summary(d->ds, text, sizeof text), d->ds->stats.load_ms);
    for (int i = 0; i < d->ds->n_fields; i++)
        if (ty_data_measures(d, i, TY_MEASURE_CHARACTERS)) {
            if (check_print_text(d, i, width, err) < 0)
                return -1;
        } else if (!ty_data_measures(d, i, TY_MEASURE_FAULTS) && check_print_field(given, d, i, width, err) < 0)
            return -1;
    if (d->survey.left_out)
        printf("  left out, neither numbers nor texts: %s\n", d->survey.left_out);
    return 0;
}

static int check_print_json(const ty_arguments_given *given, const ty_data_opened *d, ty_error *err)
{
    check_text t;
    ty_field_profile p;
    bool has_range;
    int rc = 0;
    ty_buf out;
    ty_json_writer w;
    char type[160];
    ty_buf_init(&out, 1 << 24);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "format", d->ds->format);
    ty_json_put_int(&w, "samples", d->ds->n_samples);
    ty_json_put_int(&w, "files", d->ds->stats.n_files);
    ty_json_put_int(&w, "bytes", d->ds->stats.file_bytes);
    ty_json_put_int(&w, "text_columns", d->n_text);
    ty_json_put_int(&w, "bad_records", d->ds->bad.n);
    ty_json_open_list(&w, "fields");
    for (int i = 0; i < d->ds->n_fields; i++) {
        const ty_field_info *f = &d->ds->field[i];
        bool is_text = ty_data_measures(d, i, TY_MEASURE_CHARACTERS);
        if (ty_data_measures(d, i, TY_MEASURE_FAULTS))
            continue;
        rc = rc == 0 ? check_range(d, i, &p, &has_range, err) : rc;
        if (rc < 0)
            break;
        ty_json_open_map(&w, NULL);
        ty_json_put_string(&w, "name", f->name);
        ty_json_put_string(&w, "type", look_type(given, f, type, sizeof type));
        ty_json_put_int(&w, "missing", f->n_missing);
        ty_json_put_int(&w, "not_finite", p.n_not_finite);
        if (is_text && rc == 0 && (rc = check_texts(d, i, &t, err)) == 0 && t.n > 0) {
            ty_json_put_int(&w, "least_characters", t.least);
            ty_json_put_int(&w, "most_characters", t.most);
            ty_json_put_int(&w, "empty", t.n_empty);
            ty_json_put_int(&w, "not_utf8", t.n_damaged);
        }
        if (f->is_integer && f->min_sample >= 0) {
            ty_json_put_int(&w, "min", f->min);
            ty_json_put_int(&w, "max", f->max);
        } else if (has_range) {
            ty_json_put_float(&w, "min", p.min);
            ty_json_put_float(&w, "max", p.max);
        }
        ty_json_close(&w);
    }
    ty_json_close(&w);
    ty_json_close(&w);
    if (rc == 0)
        puts(out.data);
    ty_buf_fini(&out);
    return rc;
}

int ty_command_data_check(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_data_opened d;
    if (look_open(given, a, &d, err) < 0)
        return -1;
    int rc = (given->value[TY_DATA_JSON] ? check_print_json : check_print)(given, &d, err);
    ty_dataset_close(d.ds);
    return rc;
}

/* ---- head ---- */

enum { HEAD_MOST = 8 }; /* numbers of a field that are shown */

/* A text is read as how long it is; a sample may have several. */
static int head_print_text(const ty_dataset *ds, int field, int64_t sample, ty_error *err)
{
    int64_t n = ty_type_elems(&ds->field[field].type), *length = calloc((size_t)n + 1, sizeof *length);
    int rc = length ? ty_dataset_read(ds, field, &sample, 1, length, err)
                    : ty_error_set(err, TY_E_LIMIT, "no memory for %lld texts", (long long)n);
    if (rc == 0) {
        printf("  %s %s", ds->field[field].name, ds->field[field].type.rank > 0 ? "texts  of" : "text  of");
        for (int64_t i = 0; i < n && i < HEAD_MOST; i++)
            printf(" %lld", (long long)length[i]);
        printf("%s character%s\n", n > HEAD_MOST ? " ..." : "", n == 1 && length[0] == 1 ? "" : "s");
    }
    free(length);
    return rc;
}

static int head_print_picture(void *ctx, const uint8_t *bytes, size_t n, ty_error *err)
{
    const char *name = ctx;
    ty_image_info info;
    if (ty_image_probe(bytes, n, &info, err) < 0)
        return -1;
    printf("  %s picture  %s, %d x %d pixels, %d channel%s, %zu bytes\n", name, info.format, info.width, info.height,
           info.channels, info.channels == 1 ? "" : "s", n);
    return 0;
}

static int head_print_sound(void *ctx, const uint8_t *bytes, size_t n, ty_error *err)
{
    const char *name = ctx;
    ty_audio_info info;
    if (ty_audio_probe(bytes, n, &info, err) < 0)
        return -1;
    printf("  %s sound  %s, %.4g s, %d frames a second, %d channel%s, %zu bytes\n", name, info.format,
           (double)info.frames / info.rate, info.rate, info.channels, info.channels == 1 ? "" : "s", n);
    return 0;
}

static int head_print_field(const ty_dataset *ds, int field, int64_t sample, ty_error *err)
{
    const ty_field_info *f = &ds->field[field];
    int64_t n = ty_type_elems(&f->type), shown = n < HEAD_MOST ? n : HEAD_MOST;
    double v[HEAD_MOST];
    char type[160];
    void *row = malloc(f->row_bytes + 1);
    if (!row)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a sample of %zu bytes", f->row_bytes);
    int rc = ty_dataset_read(ds, field, &sample, 1, row, err);
    if (rc == 0) {
        ty_convert_to_f64((ty_dtype)f->type.dtype, row, v, shown);
        printf("  %s %s ", f->name, ty_type_text(&f->type, type, sizeof type));
        for (int64_t i = 0; i < shown; i++)
            printf(" %.9g", v[i]);
        puts(n > shown ? " ..." : "");
    }
    free(row);
    return rc;
}

static int head_rows(const ty_arguments_given *given, int64_t *out, ty_error *err)
{
    const char *text = given->value[TY_DATA_ROWS];
    char *end;
    *out = 5;
    if (!text)
        return 0;
    *out = strtoll(text, &end, 10);
    if (end == text || *end || *out < 1)
        return ty_error_set(err, TY_E_USAGE, "--rows needs a number of samples, found \"%.100s\"", text);
    return 0;
}

int ty_command_data_head(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_data_opened d;
    int64_t rows;
    char place[400];
    if (head_rows(given, &rows, err) < 0 || look_open(given, a, &d, err) < 0)
        return -1;
    int rc = 0;
    for (int64_t s = 0; rc == 0 && s < rows && s < d.ds->n_samples; s++) {
        printf("%s\n", ty_dataset_place(d.ds, 0, s, place, sizeof place));
        for (int i = 0; rc == 0 && i < d.ds->n_fields; i++)
            rc = look_is_media(given, &d.ds->field[i])
                     ? ty_dataset_encoded(d.ds, i, s, d.ds->field[i].audio ? head_print_sound : head_print_picture,
                                          (void *)d.ds->field[i].name, err)
                 : ty_data_measures(&d, i, TY_MEASURE_CHARACTERS) ? head_print_text(d.ds, i, s, err)
                                                                  : head_print_field(d.ds, i, s, err);
    }
    ty_dataset_close(d.ds);
    return rc;
}
