/* dataset_array.c - npy, npz and IDX: arrays whose first axis counts the samples.
 *
 * Every field is a list of parts, one a file, one behind the other. A part that is little-endian and in C order stays
 * where it is, in the mapped file; any other is turned into that form once. Reading converts row by row.
 */
#include "container/input/bytes.h"
#include "container/input/convert.h"
#include "container/input/format.h"
#include "container/input/idx.h"
#include "container/input/npy.h"
#include "base/zip.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAYS_SCAN_BLOCK 2048

typedef struct arrays_part {
    const ty_data_file *file;
    ty_bytes bytes; /* of the file, while `array` points into it */
    uint8_t *owned; /* or memory of our own */
    ty_array array; /* native */
    int64_t first;  /* number of its first sample */
    int64_t n_rows;
} arrays_part;

typedef struct arrays_field {
    arrays_part *part;
    int n_parts;
    int64_t n_elems; /* of one sample */
    double scale, offset;
} arrays_field;

typedef struct arrays_impl {
    arrays_field *field;
    int n_fields;
    bool *file_used; /* by n_files of the dataset */
} arrays_impl;

typedef int (*arrays_decode_fn)(const ty_field *f, arrays_part *part, size_t max_bytes, ty_error *err);

static int arrays_decode_npy(const ty_field *f, arrays_part *part, size_t max_bytes, ty_error *err)
{
    (void)f, (void)max_bytes;
    return ty_npy_parse(part->bytes.data, part->bytes.n, &part->array, err);
}

static int arrays_decode_idx(const ty_field *f, arrays_part *part, size_t max_bytes, ty_error *err)
{
    (void)f, (void)max_bytes;
    return ty_idx_parse(part->bytes.data, part->bytes.n, &part->array, err);
}

static bool arrays_is_member(const ty_zip_entry *e, const char *name)
{
    size_t n = strlen(name);
    return e->name_bytes >= n && memcmp(e->name, name, n) == 0 &&
           (e->name_bytes == n || (e->name_bytes == n + 4 && memcmp(e->name + n, ".npy", 4) == 0));
}

static int arrays_no_member(const ty_zip *z, const char *wanted, ty_error *err)
{
    ty_zip_walk walk = {0};
    ty_zip_entry e;
    ty_error_set(err, TY_E_DATA, "the archive has no array \"%s\"", wanted);
    for (int i = 0; i < 10 && ty_zip_next(z, &walk, &e, NULL) == 1; i++)
        ty_error_detail(err, "it holds \"%.*s\"", (int)e.name_bytes, e.name);
    return ty_error_help(err, "name the array in the field's declaration: member: NAME");
}

static int arrays_decode_npz(const ty_field *f, arrays_part *part, size_t max_bytes, ty_error *err)
{
    const char *wanted = f->member != NULL ? f->member : f->name;
    ty_zip z;
    ty_zip_walk walk = {0};
    ty_zip_entry e;
    if (ty_zip_open(part->bytes.data, part->bytes.n, &z, err) < 0)
        return -1;
    int more;
    while ((more = ty_zip_next(&z, &walk, &e, err)) == 1)
        if (arrays_is_member(&e, wanted))
            break;
    if (more <= 0)
        return more < 0 ? -1 : arrays_no_member(&z, wanted, err);
    const uint8_t *content;
    if (ty_zip_read(&z, &e, max_bytes, &content, &part->owned, err) < 0)
        return -1;
    if (ty_npy_parse(content, (size_t)e.plain_bytes, &part->array, err) < 0)
        return ty_error_wrap(err, "array \"%s\"", wanted);
    return 0;
}

/* Turns the part into native order, and lets the file go when nothing points into it any more. */
static int arrays_settle(arrays_part *part, bool types_only, ty_error *err)
{
    if (!types_only && !ty_array_is_native(&part->array)) {
        uint8_t *native = malloc(part->array.n_bytes > 0 ? part->array.n_bytes : 1);
        if (native == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for an array of %zu bytes", part->array.n_bytes);
        ty_array_copy_native(&part->array, native);
        free(part->owned);
        part->owned = native;
        part->array.data = native;
    }
    if (part->owned != NULL)
        ty_bytes_close(&part->bytes);
    return 0;
}

static int arrays_load_part(const ty_field *f, const ty_data_source *src, arrays_decode_fn decode, arrays_part *part,
                            ty_error *err)
{
    ty_bytes_options options = {.no_map = src->no_map, .max_inflated_bytes = src->max_inflated_bytes};
    size_t max = src->max_inflated_bytes != 0 ? src->max_inflated_bytes : TY_BYTES_MAX_INFLATED;
    if (ty_bytes_open(part->file->path, &options, &part->bytes, err) < 0)
        return -1;
    if (decode(f, part, max, err) < 0 || arrays_settle(part, src->types_only, err) < 0)
        return -1;
    if (part->array.rank == 0)
        return ty_error_set(err, TY_E_DATA, "the array is one number, expected a first axis that counts the samples");
    if (ty_dims_elems_checked(part->array.rank - 1, part->array.dim + 1, 8) < 0)
        return ty_error_set(err, TY_E_DATA, "one sample of the array has more elements than memory has addresses");
    part->n_rows = part->array.dim[0];
    if (part->n_rows > INT64_MAX / 2 - part->first)
        return ty_error_set(err, TY_E_DATA, "%lld samples are more than can be counted", (long long)part->n_rows);
    return 0;
}

static bool arrays_wants_file(const ty_field *f, int n_fields, bool by_member, const ty_data_file *file)
{
    if (f->file != NULL)
        return ty_file_matches(file, f->file);
    if (by_member || n_fields == 1)
        return true;
    char pattern[300];
    snprintf(pattern, sizeof pattern, "%s*", f->name);
    return ty_file_matches(file, pattern);
}

/* All parts of one field have the same sample shape. */
static int arrays_check_part(const arrays_field *af, const arrays_part *part, ty_error *err)
{
    const ty_array *a = &af->part[0].array, *b = &part->array;
    if (a->rank == b->rank && memcmp(a->dim + 1, b->dim + 1, sizeof(int64_t) * (size_t)(a->rank - 1)) == 0)
        return 0;
    char ours[160], theirs[160];
    ty_type ta = ty_type_make(a->dtype, a->rank, a->dim), tb = ty_type_make(b->dtype, b->rank, b->dim);
    return ty_error_set(
        err, TY_E_DATA, "the array is %s, but that of \"%s\" is %s: shapes must agree behind the first axis",
        ty_type_text(&tb, theirs, sizeof theirs), af->part[0].file->name, ty_type_text(&ta, ours, sizeof ours));
}

static int arrays_load_field(ty_dataset *ds, const ty_data_source *src, int index, arrays_decode_fn decode,
                             ty_error *err)
{
    arrays_impl *impl = ds->impl;
    arrays_field *af = &impl->field[index];
    const ty_field *f = &src->fields[index];
    int64_t first = 0;
    af->part = TY_NEW_ARRAY(&ds->arena, arrays_part, ds->n_files);
    for (int i = 0; i < ds->n_files; i++) {
        if (!arrays_wants_file(f, src->n_fields, decode == arrays_decode_npz, &ds->files[i]))
            continue;
        arrays_part *part = &af->part[af->n_parts++];
        part->file = &ds->files[i];
        part->first = first;
        if (arrays_load_part(f, src, decode, part, err) < 0 || arrays_check_part(af, part, err) < 0) {
            ty_error_wrap(err, "field \"%s\"", f->name);
            return ty_error_at(err, "%s", part->file->path);
        }
        first += part->n_rows;
        impl->file_used[i] = true;
        ds->stats.memory_bytes += (int64_t)(part->owned != NULL  ? part->array.n_bytes
                                            : part->bytes.mapped ? 0
                                                                 : part->bytes.n);
    }
    if (af->n_parts > 0)
        return 0;
    ty_error_set(err, TY_E_CHANNEL, "field \"%s\": none of %d files is called \"%s%s\"", f->name, ds->n_files,
                 f->file != NULL ? f->file : f->name, f->file != NULL ? "" : "*");
    ty_error_help(err, "say file: PATTERN in the field's declaration; there is \"%s\"", ds->files[0].name);
    return ty_error_at(err, "%s", src->paths[0]);
}

static int arrays_shape(ty_dataset *ds, const ty_field *f, int index, ty_error *err)
{
    arrays_field *af = &((arrays_impl *)ds->impl)->field[index];
    ty_field_info *info = &ds->field[index];
    const ty_array *a = &af->part[0].array;
    bool scaled = f->scale != 1.0 || f->offset != 0.0;
    ty_dtype dtype = f->dtype_given ? f->dtype : scaled ? TY_F32 : a->dtype;
    ty_type stored = ty_type_make(a->dtype, a->rank - 1, a->dim + 1);
    info->type = ty_type_make(dtype, stored.rank, stored.dim);
    if (f->shape_given) {
        info->type = ty_type_make(dtype, f->rank, f->dim);
        if (ty_type_elems(&info->type) != ty_type_elems(&stored)) {
            char want[160], have[160];
            ty_error_set(err, TY_E_DATA, "field \"%s\": a sample is %s in the file, declared is %s", f->name,
                         ty_type_text(&stored, have, sizeof have), ty_type_text(&info->type, want, sizeof want));
            ty_error_help(err, "both must have the same number of elements");
            return ty_error_at(err, "%s", af->part[0].file->path);
        }
    }
    if (ty_dims_elems_checked(info->type.rank, info->type.dim, ty_dtype_bytes(dtype)) < 0)
        return ty_error_set(err, TY_E_LIMIT, "field \"%s\": a sample is too big", f->name);
    af->n_elems = ty_type_elems(&info->type);
    af->scale = f->scale;
    af->offset = f->offset;
    info->row_bytes = ty_type_bytes(&info->type);
    info->is_integer = ty_dtype_is_integer(dtype);
    return 0;
}

static int arrays_refuse_value(ty_dataset *ds, int index, const arrays_part *part, int64_t elem, double value,
                               const char *expected, ty_error *err)
{
    const arrays_field *af = &((arrays_impl *)ds->impl)->field[index];
    int64_t row = af->n_elems > 0 ? elem / af->n_elems : 0;
    ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": %.17g does not fit %s: expected %s", ds->field[index].name, value,
                 ty_dtype_text((ty_dtype)ds->field[index].type.dtype), expected);
    ty_error_at(err, "%s: row %lld", part->file->path, (long long)row);
    return ty_error_help(err, "declare a wider type for the field, or a scale and offset that make the values fit");
}

/* A block of elements as int64 values of the batch, refusing what the batch type cannot hold. */
static int arrays_integer_block(ty_dataset *ds, int index, const arrays_part *part, int64_t at, int64_t n, int64_t *out,
                                ty_error *err)
{
    const arrays_field *af = &((arrays_impl *)ds->impl)->field[index];
    ty_dtype to = (ty_dtype)ds->field[index].type.dtype, from = part->array.dtype;
    const uint8_t *src = part->array.data + (size_t)at * ty_dtype_bytes(from);
    int64_t min, max;
    ty_integer_range(to, &min, &max);
    if (ty_dtype_is_integer(from) && af->scale == 1.0 && af->offset == 0.0) {
        ty_convert_to_i64(from, src, out, n);
    } else {
        double block[ARRAYS_SCAN_BLOCK];
        ty_convert_to_f64(from, src, block, n);
        for (int64_t i = 0; i < n; i++) {
            double v = block[i] * af->scale + af->offset;
            if (!(v >= -0x1p63 && v < 0x1p63) || v != floor(v))
                return arrays_refuse_value(ds, index, part, at + i, v, "a whole number within its range", err);
            out[i] = (int64_t)v;
        }
    }
    for (int64_t i = 0; i < n; i++)
        if (out[i] < min || out[i] > max)
            return arrays_refuse_value(ds, index, part, at + i, (double)out[i], "a value within its range", err);
    return 0;
}

/* A block that fits the batch's type and lies within what has been seen has nothing to tell. */
static bool arrays_is_within(const ty_dataset *ds, int index, const arrays_part *part, int64_t at, int64_t n)
{
    const arrays_field *af = &((const arrays_impl *)ds->impl)->field[index];
    const ty_field_info *info = &ds->field[index];
    int64_t low, high, min, max;
    if (info->min_sample < 0 || af->scale != 1.0 || af->offset != 0.0 ||
        !ty_convert_range(part->array.dtype, part->array.data + (size_t)at * ty_dtype_bytes(part->array.dtype), n, &low,
                          &high))
        return false;
    ty_integer_range((ty_dtype)info->type.dtype, &min, &max);
    return low >= min && high <= max && low >= info->min && high <= info->max;
}

/* All that the stored type can hold has been seen: nothing is left to find. */
static bool arrays_is_all_seen(const ty_dataset *ds, int index, const arrays_part *part)
{
    const arrays_field *af = &((const arrays_impl *)ds->impl)->field[index];
    const ty_field_info *info = &ds->field[index];
    int64_t min, max;
    ty_integer_range((ty_dtype)info->type.dtype, &min, &max);
    return info->min_sample >= 0 && part->array.dtype == (ty_dtype)info->type.dtype && part->array.dtype != TY_BOOL &&
           af->scale == 1.0 && af->offset == 0.0 && info->min == min && info->max == max;
}

/* Smallest and largest value of an integer field; this is also the only place where a conversion can be refused. */
static int arrays_scan_part(ty_dataset *ds, int index, const arrays_part *part, ty_error *err)
{
    ty_field_info *info = &ds->field[index];
    int64_t block[ARRAYS_SCAN_BLOCK];
    int64_t n_elems = ((arrays_impl *)ds->impl)->field[index].n_elems, total = part->n_rows * n_elems;
    for (int64_t at = 0; at < total && !arrays_is_all_seen(ds, index, part); at += ARRAYS_SCAN_BLOCK) {
        int64_t n = total - at < ARRAYS_SCAN_BLOCK ? total - at : ARRAYS_SCAN_BLOCK;
        if (arrays_is_within(ds, index, part, at, n))
            continue;
        if (arrays_integer_block(ds, index, part, at, n, block, err) < 0)
            return -1;
        for (int64_t i = 0; i < n; i++) {
            bool none = info->min_sample < 0;
            int64_t sample = part->first + (at + i) / n_elems;
            if (none || block[i] < info->min) {
                info->min = block[i];
                info->min_sample = sample;
            }
            if (none || block[i] > info->max) {
                info->max = block[i];
                info->max_sample = sample;
            }
        }
    }
    return 0;
}

static int arrays_finish(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    arrays_impl *impl = ds->impl;
    for (int i = 0; i < src->n_fields; i++) {
        arrays_field *af = &impl->field[i];
        if (arrays_shape(ds, &src->fields[i], i, err) < 0)
            return -1;
        const arrays_part *last = &af->part[af->n_parts - 1];
        int64_t n = last->first + last->n_rows;
        if (i > 0 && n != ds->n_samples) {
            ty_error_set(err, TY_E_DATA, "field \"%s\" has %lld samples, but field \"%s\" has %lld",
                         src->fields[i].name, (long long)n, src->fields[0].name, (long long)ds->n_samples);
            return ty_error_at(err, "%s", last->file->path);
        }
        ds->n_samples = n;
        for (int k = 0; ds->field[i].is_integer && !src->types_only && k < af->n_parts; k++)
            if (arrays_scan_part(ds, i, &af->part[k], err) < 0)
                return -1;
    }
    for (int i = 0; i < ds->n_files; i++) {
        ds->stats.n_files += impl->file_used[i];
        ds->stats.file_bytes += impl->file_used[i] ? ds->files[i].n_bytes : 0;
    }
    return 0;
}

static const arrays_part *arrays_find_part(const arrays_field *af, int64_t sample)
{
    int low = 0, high = af->n_parts - 1;
    while (low < high) {
        int mid = (low + high + 1) / 2;
        if (af->part[mid].first <= sample)
            low = mid;
        else
            high = mid - 1;
    }
    /* Empty parts share their first sample with the one behind them; the search has found the last of those. */
    return &af->part[low];
}

static int arrays_read(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err)
{
    (void)err;
    const arrays_field *af = &((const arrays_impl *)ds->impl)->field[field];
    const ty_field_info *info = &ds->field[field];
    const arrays_part *part = &af->part[0];
    uint8_t *dst = out;
    for (int64_t i = 0; i < n; i++, dst += info->row_bytes) {
        if (samples[i] < part->first || samples[i] >= part->first + part->n_rows)
            part = arrays_find_part(af, samples[i]);
        size_t row = (size_t)af->n_elems * ty_dtype_bytes(part->array.dtype);
        ty_convert_scaled(part->array.dtype, part->array.data + (size_t)(samples[i] - part->first) * row,
                          (ty_dtype)info->type.dtype, dst, af->n_elems, af->scale, af->offset);
    }
    return 0;
}

static void arrays_place(const ty_dataset *ds, int field, int64_t sample, char *out, size_t n)
{
    const arrays_part *part = arrays_find_part(&((const arrays_impl *)ds->impl)->field[field], sample);
    snprintf(out, n, "%s: row %lld", part->file->path, (long long)(sample - part->first));
}

static void arrays_close(ty_dataset *ds)
{
    arrays_impl *impl = ds->impl;
    for (int i = 0; impl != NULL && i < impl->n_fields; i++)
        for (int k = 0; k < impl->field[i].n_parts; k++) {
            ty_bytes_close(&impl->field[i].part[k].bytes);
            free(impl->field[i].part[k].owned);
        }
}

static const ty_dataset_ops arrays_ops = {.read = arrays_read, .place = arrays_place, .close = arrays_close};

static int arrays_open(ty_dataset *ds, const ty_data_source *src, arrays_decode_fn decode, ty_error *err)
{
    arrays_impl *impl = TY_NEW(&ds->arena, arrays_impl);
    impl->field = TY_NEW_ARRAY(&ds->arena, arrays_field, src->n_fields);
    impl->n_fields = src->n_fields;
    impl->file_used = TY_NEW_ARRAY(&ds->arena, bool, ds->n_files);
    ds->impl = impl;
    ds->ops = &arrays_ops;
    for (int i = 0; i < src->n_fields; i++)
        if (arrays_load_field(ds, src, i, decode, err) < 0)
            return -1;
    return arrays_finish(ds, src, err);
}

int ty_dataset_open_npy(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return arrays_open(ds, src, arrays_decode_npy, err);
}

int ty_dataset_open_npz(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return arrays_open(ds, src, arrays_decode_npz, err);
}

int ty_dataset_open_idx(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return arrays_open(ds, src, arrays_decode_idx, err);
}
