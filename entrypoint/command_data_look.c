/* command_data_look.c - `trainyard data head`, and how data are opened to be looked at. */
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

int ty_data_open_looked(const ty_arguments_given *given, ty_arena *a, ty_data_opened *d, ty_error *err)
{
    return (given->value[TY_DATA_RECIPE] ? ty_data_open_declared : ty_data_open)(given, a, d, err);
}

bool ty_data_is_media(const ty_arguments_given *given, const ty_field_info *f)
{
    return (f->image || f->audio) && !given->value[TY_DATA_RECIPE];
}

int ty_data_column_files(const ty_arguments_given *given, ty_arena *a, ty_data_file **files, int *n, ty_error *err)
{
    ty_data_source source = {.paths = &given->words[1], .n_paths = 1, .format = given->value[TY_DATA_FORMAT]};
    const ty_format *format = NULL;
    const char *pattern = given->value[TY_DATA_FILES];
    ty_error unread = {0};
    int n_all = 0;
    *n = 0;
    if (given->value[TY_DATA_RECIPE] || given->value[TY_DATA_SKIP_BAD])
        return 0;
    if (ty_files_list(source.paths, 1, a, files, &n_all, err) < 0)
        return -1;
    for (int i = 0; i < n_all; i++)
        if (!pattern || ty_file_matches(&(*files)[i], pattern))
            (*files)[(*n)++] = (*files)[i];
    bool is_known = *n > 1 && ty_format_detect(&source, *files, *n, &format, &unread) == 0;
    if (!is_known || !ty_format_is_columns(format->name))
        *n = 0;
    return 0;
}

int ty_data_open_one(const ty_arguments_given *given, const char *path, ty_arena *a, ty_data_opened *d, ty_error *err)
{
    ty_arguments_given one = *given;
    one.words[1] = path;
    return ty_data_open_looked(&one, a, d, err);
}

enum { HEAD_MOST = 8 }; /* numbers of a field that are shown */

static int head_print_texts(const ty_dataset *ds, int field, int64_t sample, ty_error *err)
{
    int64_t n;
    if (ty_dataset_read(ds, field, &sample, 1, &n, err) < 0)
        return -1;
    printf("  %s list  of %lld text%s\n", ds->field[field].name, (long long)n, n == 1 ? "" : "s");
    return 0;
}

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

/* Of many files of columns the first is enough, if it has as many samples. */
static int head_open(const ty_arguments_given *given, int64_t rows, ty_arena *a, ty_data_opened *d, ty_error *err)
{
    ty_data_file *files;
    int n;
    if (ty_data_column_files(given, a, &files, &n, err) < 0)
        return -1;
    if (n > 1 && ty_data_open_one(given, files[0].path, a, d, err) < 0)
        return -1;
    if (n > 1 && d->ds->n_samples >= rows)
        return 0;
    if (n > 1)
        ty_dataset_close(d->ds);
    return ty_data_open_looked(given, a, d, err);
}

int ty_command_data_head(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_data_opened d;
    int64_t rows;
    char place[400];
    if (head_rows(given, &rows, err) < 0 || head_open(given, rows, a, &d, err) < 0)
        return -1;
    int rc = 0;
    for (int64_t s = 0; rc == 0 && s < rows && s < d.ds->n_samples; s++) {
        printf("%s\n", ty_dataset_place(d.ds, 0, s, place, sizeof place));
        for (int i = 0; rc == 0 && i < d.ds->n_fields; i++)
            rc = ty_data_is_media(given, &d.ds->field[i])
                     ? ty_dataset_encoded(d.ds, i, s, d.ds->field[i].audio ? head_print_sound : head_print_picture,
                                          (void *)d.ds->field[i].name, err)
                 : ty_data_measures(&d, i, TY_MEASURE_TEXTS)      ? head_print_texts(d.ds, i, s, err)
                 : ty_data_measures(&d, i, TY_MEASURE_CHARACTERS) ? head_print_text(d.ds, i, s, err)
                                                                  : head_print_field(d.ds, i, s, err);
    }
    ty_dataset_close(d.ds);
    return rc;
}
