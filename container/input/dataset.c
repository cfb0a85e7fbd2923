/* dataset.c - opening by format, and everything that is the same for all formats. */
#include "container/input/dataset.h"

#include "base/clock.h"
#include "base/hash.h"
#include "container/input/format.h"
#include "container/input/mapped.h"
#include "container/input/transform.h"
#include "container/input/media.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int dataset_check_source(const ty_data_source *src, ty_error *err)
{
    if (src->n_fields < 1 || src->n_fields > 4096)
        return ty_error_set(err, TY_E_CONFIG, "%d fields are declared, expected 1 to 4096", src->n_fields);
    for (int i = 0; i < src->n_fields; i++) {
        if (ty_field_check(&src->fields[i], err) < 0)
            return -1;
        for (int k = 0; k < i; k++)
            if (strcmp(src->fields[i].name, src->fields[k].name) == 0)
                return ty_error_set(err, TY_E_CONFIG, "field \"%s\" is declared twice", src->fields[i].name);
    }
    return 0;
}

static bool dataset_wants(const ty_data_source *src, const ty_data_file *file)
{
    if (src->pattern != NULL && !ty_file_matches(file, src->pattern))
        return false;
    for (int i = 0; i < src->n_fields; i++)
        if (src->fields[i].file == NULL || ty_file_matches(file, src->fields[i].file))
            return true;
    return false;
}

/* What lies beside PICTURES.rec for MXNet's tools: PICTURES.idx and PICTURES.lst. */
static bool dataset_is_companion(const ty_data_file *files, int n, const ty_data_file *file)
{
    size_t bytes = strlen(file->name);
    if (bytes < 4 || (strcmp(file->name + bytes - 4, ".idx") != 0 && strcmp(file->name + bytes - 4, ".lst") != 0))
        return false;
    for (int i = 0; i < n; i++)
        if (strlen(files[i].name) == bytes && memcmp(files[i].name, file->name, bytes - 4) == 0 &&
            strcmp(files[i].name + bytes - 4, ".rec") == 0)
            return true;
    return false;
}

static int dataset_list_files(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    ty_data_file *files;
    int n_files, n_kept = 0;
    if (ty_files_list(src->paths, src->n_paths, &ds->arena, &files, &n_files, err) < 0)
        return -1;
    for (int i = 0; i < n_files; i++)
        if (dataset_wants(src, &files[i]) && !dataset_is_companion(files, n_files, &files[i]))
            files[n_kept++] = files[i];
    ds->files = files;
    ds->n_files = n_kept;
    if (n_kept > 0)
        return 0;
    ty_error_set(err, TY_E_CHANNEL, "none of the %d files matches the pattern \"%s\"", n_files,
                 src->pattern != NULL ? src->pattern : src->fields[0].file);
    ty_error_help(err, "the first file is \"%s\"", files[0].name);
    return ty_error_at(err, "%s", src->paths[0]);
}

static uint64_t dataset_hash_text(uint64_t h, const char *s)
{
    return s != NULL ? ty_fnv1a(h, s, strlen(s) + 1) : ty_fnv1a(h, "\xff", 1);
}

static uint64_t dataset_hash_files(uint64_t h, const ty_dataset *ds)
{
    for (int i = 0; i < ds->n_files; i++) {
        h = dataset_hash_text(h, ds->files[i].name);
        h = ty_fnv1a(h, &ds->files[i].n_bytes, sizeof ds->files[i].n_bytes);
    }
    return h;
}

static uint64_t dataset_hash_field(uint64_t h, const ty_field *f, const ty_field_info *info)
{
    double numbers[4] = {f->scale, f->offset, f->missing_given ? f->missing : 0.0, (double)f->max_length};
    h = dataset_hash_text(dataset_hash_text(h, f->name), f->columns);
    h = dataset_hash_text(dataset_hash_text(h, f->member), f->file);
    for (int i = 0; i < TY_N_TEXT_PARTS; i++)
        h = f->part[i] ? dataset_hash_text(h, f->part[i]) : h;
    h = ty_fnv1a(h, &info->type, sizeof info->type);
    h = ty_fnv1a(h, numbers, sizeof numbers);
    if (f->map) {
        uint64_t learnt = ty_map_fingerprint(f->map);
        h = ty_fnv1a(h, &learnt, sizeof learnt);
    }
    return ty_media_fingerprint(h, info->image, info->audio);
}

static uint64_t dataset_hash_fields(uint64_t h, const ty_dataset *ds, const ty_data_source *src)
{
    for (int i = 0; i < src->n_fields; i++)
        h = dataset_hash_field(h, &src->fields[i], &ds->field[i]);
    for (int i = 0; src->csv_missing.text && i < src->csv_missing.n; i++)
        h = dataset_hash_text(h, src->csv_missing.text[i]);
    h = ty_fnv1a(h, &ds->index.base, sizeof ds->index.base);
    if (ds->settings != 0)
        h = ty_fnv1a(h, &ds->settings, sizeof ds->settings);
    return h;
}

static void dataset_take_fingerprint(ty_dataset *ds, const ty_data_source *src)
{
    uint64_t format = dataset_hash_text(TY_FNV_START, ds->format);
    uint64_t all = dataset_hash_fields(dataset_hash_files(format, ds), ds, src);
    ds->fingerprint = ty_fnv1a(all, &ds->n_samples, sizeof ds->n_samples);
    ds->files_fingerprint = dataset_hash_files(TY_FNV_START, ds);
    ds->fields_fingerprint = dataset_hash_fields(format, ds, src);
    for (int i = 0; i < src->n_fields; i++)
        ds->field[i].fingerprint = dataset_hash_field(TY_FNV_START, &src->fields[i], &ds->field[i]);
}

/* Pictures and sounds lie in formats that have them. */
static int dataset_check_media(const ty_data_source *src, const ty_format *format, ty_error *err)
{
    for (int i = 0; i < src->n_fields; i++) {
        if (src->fields[i].audio != NULL && !format->sounds) {
            ty_error_set(err, TY_E_CONFIG, "field \"%s\" has audio:, but %s data hold no encoded sounds",
                         src->fields[i].name, format->name);
            return ty_error_help(err,
                                 "samples that are numbers need none: scale, offset and shape are the field's own; "
                                 "sounds lie in audio, tfrecord, recordio and parquet data");
        }
        if (src->fields[i].image == NULL || format->pictures)
            continue;
        ty_error_set(err, TY_E_CONFIG, "field \"%s\" has image:, but %s data hold no encoded pictures",
                     src->fields[i].name, format->name);
        return ty_error_help(err, "numbers that are pixels need none: scale, offset and shape are the field's own; "
                                  "pictures lie in images, mxnet, tfrecord, recordio and parquet data");
    }
    return 0;
}

/* Pairs lie in formats whose samples have texts by name. */
static int dataset_check_pairs(const ty_data_source *src, const ty_format *format, ty_error *err)
{
    for (int i = 0; i < src->n_fields && !format->pairs; i++) {
        if (!ty_field_has_parts(&src->fields[i]))
            continue;
        ty_error_set(err, TY_E_CONFIG, "field \"%s\": %s data hold no two texts of a sample", src->fields[i].name,
                     format->name);
        return ty_error_help(err, "pair and words are for csv, jsonlines, tfrecord, parquet and arrow data");
    }
    return 0;
}

void ty_field_info_reset(ty_field_info *info)
{
    info->min = info->max = 0;
    info->min_sample = info->max_sample = info->first_missing = info->first_not_finite = -1;
    info->n_missing = info->n_not_finite = 0;
}

void ty_field_info_take(ty_field_info *all, const ty_field_info *seen, int64_t first)
{
    if (seen->min_sample >= 0 && (all->min_sample < 0 || seen->min < all->min)) {
        all->min = seen->min;
        all->min_sample = first + seen->min_sample;
    }
    if (seen->max_sample >= 0 && (all->max_sample < 0 || seen->max > all->max)) {
        all->max = seen->max;
        all->max_sample = first + seen->max_sample;
    }
    if (all->n_missing == 0 && seen->n_missing > 0)
        all->first_missing = first + seen->first_missing;
    if (all->n_not_finite == 0 && seen->n_not_finite > 0)
        all->first_not_finite = first + seen->first_not_finite;
    all->n_missing += seen->n_missing;
    all->n_not_finite += seen->n_not_finite;
}

static int dataset_fill(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    const ty_format *format = NULL;
    if (dataset_check_source(src, err) < 0 || dataset_list_files(ds, src, err) < 0 ||
        ty_format_detect(src, ds->files, ds->n_files, &format, err) < 0)
        return -1;
    ds->format = format->name;
    if (src->windows.length > 0 && format->survey != ty_survey_windows) {
        ty_error_set(err, TY_E_CONFIG, "window: samples of %s data are no windows", format->name);
        return ty_error_help(err, "window goes with format: text or tokens");
    }
    ds->n_fields = src->n_fields;
    if (dataset_check_media(src, format, err) < 0 || dataset_check_pairs(src, format, err) < 0)
        return -1;
    ds->field = TY_NEW_ARRAY(&ds->arena, ty_field_info, src->n_fields);
    for (int i = 0; i < src->n_fields; i++) {
        ds->field[i].name = ty_arena_strdup(&ds->arena, src->fields[i].name);
        ty_field_info_reset(&ds->field[i]);
    }
    return ty_transform_open(ds, src, format, err);
}

int ty_dataset_open(const ty_data_source *src, ty_dataset **out, ty_error *err)
{
    int64_t start = ty_clock_ns();
    ty_error unread = {0};
    err = err ? err : &unread;
    ty_dataset *ds = calloc(1, sizeof *ds);
    if (ds == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory to open data");
    ty_arena_init(&ds->arena);
    ds->work = TY_NEW(&ds->arena, _Atomic size_t);
    ds->bad = (ty_bad){.skip = src->skip_bad, .max = src->max_bad};
    int rc = dataset_fill(ds, src, err);
    if (ty_mapped_check(err) < 0 || rc < 0) {
        ty_format_doubt(src, ds->files, ds->n_files, err);
        ty_dataset_close(ds);
        return -1;
    }
    dataset_take_fingerprint(ds, src);
    ds->stats.load_ms = (double)(ty_clock_ns() - start) / 1e6;
    *out = ds;
    return 0;
}

void ty_dataset_close(ty_dataset *ds)
{
    if (ds == NULL)
        return;
    if (ds->ops != NULL)
        ds->ops->close(ds);
    ty_arena_fini(&ds->arena);
    free(ds);
}

int ty_dataset_find(const ty_dataset *ds, const char *field)
{
    for (int i = 0; i < ds->n_fields; i++)
        if (strcmp(ds->field[i].name, field) == 0)
            return i;
    return -1;
}

static int dataset_check_samples(const ty_dataset *ds, const int64_t *samples, int64_t n, ty_error *err)
{
    for (int64_t i = 0; i < n; i++)
        if (samples[i] < 0 || samples[i] >= ds->n_samples)
            return ty_error_set(err, TY_E_INTERNAL, "sample %lld does not exist: there are %lld", (long long)samples[i],
                                (long long)ds->n_samples);
    return 0;
}

int ty_dataset_read(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err)
{
    if (field < 0 || field >= ds->n_fields)
        return ty_error_set(err, TY_E_INTERNAL, "no field number %d in the data", field);
    if (dataset_check_samples(ds, samples, n, err) < 0)
        return -1;
    int rc = ds->transforms ? ty_transform_read(ds, field, samples, n, out, err)
                            : ds->ops->read(ds, field, samples, n, out, err);
    if (rc == 0)
        ty_transform_hide(ds, field, &(ty_pick){.sample = samples, .n = n}, out);
    return ty_mapped_check(err) < 0 ? -1 : rc;
}

static int dataset_read_fields(const ty_dataset *ds, const ty_pick *pick, void *const *out, ty_error *err)
{
    if (ds->transforms)
        return ty_transform_read_all(ds, pick, out, err);
    if (ds->ops->read_all)
        return ds->ops->read_all(ds, pick, out, err);
    for (int i = 0; i < ds->n_fields; i++)
        if (ds->ops->read(ds, i, pick->sample, pick->n, out[i], err) < 0)
            return -1;
    return 0;
}

int ty_dataset_read_all(const ty_dataset *ds, const ty_pick *pick, void *const *out, ty_error *err)
{
    if (dataset_check_samples(ds, pick->sample, pick->n, err) < 0)
        return -1;
    int rc = dataset_read_fields(ds, pick, out, err);
    for (int i = 0; rc == 0 && i < ds->n_fields; i++)
        ty_transform_hide(ds, i, pick, out[i]);
    return ty_mapped_check(err) < 0 ? -1 : rc;
}

size_t ty_dataset_work_bytes(const ty_dataset *ds)
{
    return ds->work ? atomic_load_explicit(ds->work, memory_order_relaxed) : 0;
}

int ty_dataset_encoded(const ty_dataset *ds, int field, int64_t sample, ty_encoded_see *see, void *ctx, ty_error *err)
{
    if (!ds->ops->encoded || !(ds->field[field].image || ds->field[field].audio))
        return ty_error_set(err, TY_E_INTERNAL, "field \"%s\" holds nothing that is encoded", ds->field[field].name);
    return ds->ops->encoded(ds, field, sample, see, ctx, err);
}

const char *ty_dataset_place(const ty_dataset *ds, int field, int64_t sample, char *out, size_t n)
{
    if (n > 0)
        out[0] = 0;
    if (field >= 0 && field < ds->n_fields && sample >= 0 && sample < ds->n_samples)
        ds->ops->place(ds, ds->transforms && field >= ds->transforms->n_stored ? 0 : field, sample, out, n);
    return out;
}

int ty_dataset_check_range(const ty_dataset *ds, int field, int64_t min, int64_t max, const char *what, ty_error *err)
{
    const ty_field_info *f = &ds->field[field];
    if (!f->is_integer || f->min_sample < 0 || (f->min >= min && f->max <= max))
        return 0;
    bool low = f->min < min;
    char place[TY_ERROR_PLACE_BYTES];
    ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": found %lld, expected %lld to %lld (%s)", f->name,
                 (long long)(low ? f->min : f->max), (long long)min, (long long)max, what);
    if (f->is_mapped)
        return ty_error_help(err, "its transforms make %lld ids: the model needs as many, or the field fewer",
                             (long long)f->max + 1);
    ty_error_at(err, "%s", ty_dataset_place(ds, field, low ? f->min_sample : f->max_sample, place, sizeof place));
    if (f->max > max && f->max - 1 == max && f->min > min && f->min - 1 == min)
        return ty_error_help(err, "the values seem to count from %lld: give the field offset: -1", (long long)f->min);
    return ty_error_help(err, "the whole field holds values from %lld to %lld; check its column and the model's size",
                         (long long)f->min, (long long)f->max);
}

/* 1234567 as "1,234,567". */
static const char *dataset_group_digits(int64_t v, char out[32])
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%lld", (long long)v), w = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            out[w++] = ',';
        out[w++] = digits[i];
    }
    out[w] = 0;
    return out;
}

const char *ty_dataset_summary(const ty_dataset *ds, char *out, size_t n)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    char samples[32], files[32], left_out[64] = "";
    double size = (double)ds->stats.file_bytes;
    int unit = 0;
    for (; size >= 1000.0 && unit < 4; unit++)
        size /= 1000.0;
    if (ds->bad.n > 0)
        snprintf(left_out, sizeof left_out, ", %lld bad record%s left out", (long long)ds->bad.n,
                 ds->bad.n == 1 ? "" : "s");
    snprintf(out, n, "%s sample%s, %s file%s, %.*f %s %s%s", dataset_group_digits(ds->n_samples, samples),
             ds->n_samples == 1 ? "" : "s", dataset_group_digits(ds->stats.n_files, files),
             ds->stats.n_files == 1 ? "" : "s", unit == 0 || size >= 100.0 ? 0 : 1, size, units[unit], ds->format,
             left_out);
    return out;
}
