/* records_field.c - a field of a record: its type, from the first record that has it; checked; written to a batch.
 *
 * Data sets check every record when they are opened (records_see) and only decode later; streams see a record once, so
 * that records_put checks as it goes.
 */
#pragma GCC optimize("O3") /* loops as vectors */
#include "container/input/convert.h"
#include "container/input/records.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_CHECK_BLOCK = 512 }; /* elements at a time */

/* ---- names ---- */

static int records_feature(records_impl *impl, const char *name)
{
    for (int i = 0; i < impl->n_features; i++)
        if (strcmp(impl->feature[i], name) == 0)
            return i;
    impl->feature[impl->n_features] = name;
    return impl->n_features++;
}

void records_name_fields(records_impl *impl, int n, ty_arena *a)
{
    impl->feature = TY_NEW_ARRAY(a, const char *, (1 + TY_N_TEXT_PARTS) * n + 1);
    for (int i = 0; i < n; i++) {
        records_field *f = &impl->field[i];
        const ty_field *d = &f->declared;
        f->name = impl->names[i] = ty_arena_strdup(a, d->member ? d->member : d->name);
        for (int k = 0; k < TY_N_TEXT_PARTS; k++)
            f->also[k] = d->part[k] ? ty_arena_strdup(a, d->part[k]) : NULL;
        if (i >= impl->n_fields)
            continue;
        f->feature[0] = records_feature(impl, f->name);
        for (int k = 0; k < TY_N_TEXT_PARTS; k++)
            f->feature[1 + k] = f->also[k] ? records_feature(impl, f->also[k]) : -1;
    }
}

/* ---- one reader ---- */

int records_look_init(records_look *look, const records_impl *impl, int only, ty_error *err)
{
    *look = (records_look){.impl = impl, .frames.how = impl->kind->framing, .only = only};
    look->example.name = impl->feature;
    look->example.n = impl->n_features;
    look->feature = calloc((size_t)impl->n_features + 1, sizeof *look->feature);
    look->cell = calloc((size_t)impl->n_fields, sizeof *look->cell);
    look->part = calloc((size_t)impl->n_fields, sizeof *look->part);
    if (look->feature && look->cell && look->part)
        return 0;
    return ty_error_set(err, TY_E_LIMIT, "no memory to read records");
}

size_t records_look_bytes(const records_look *look)
{
    const records_entries *line = &look->line;
    size_t media = 0;
    for (int i = 0; look->reader && i < look->impl->n_fields; i++)
        media += ty_media_reader_bytes(&look->reader[i]);
    media = look->media_bytes > media ? look->media_bytes : media;
    size_t held = 0;
    for (int k = 0; k <= TY_N_TEXT_PARTS; k++)
        held += look->held[k].bytes;
    return look->stored_bytes + held + look->joined_bytes + look->row_bytes + look->split_bytes + look->unpacked.room +
           media + (size_t)line->room * (sizeof *line->index + sizeof *line->value);
}

void records_look_fini(records_look *look)
{
    ty_work_raise(look->impl->work, records_look_bytes(look));
    ty_frames_fini(&look->frames);
    free(look->feature);
    free(look->cell);
    free(look->part);
    free(look->stored);
    for (int k = 0; k <= TY_N_TEXT_PARTS; k++)
        free(look->held[k].p);
    free(look->joined);
    free(look->line.index);
    free(look->line.value);
    free(look->split);
    parquet_unpacked_fini(&look->unpacked);
    free(look->row);
    records_free_readers(look);
}

int records_bytes(records_look *look, size_t n_bytes, ty_error *err)
{
    if (n_bytes <= look->stored_bytes)
        return 0;
    void *grown = realloc(look->stored, n_bytes);
    if (!grown)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %zu bytes of a record", n_bytes);
    look->stored = grown;
    look->stored_bytes = n_bytes;
    return 0;
}

/* Room for n elements of 8 bytes at most, all of a tensor's, and what a sparse one needs behind them. */
int records_room(records_look *look, const records_cell *c, int64_t n, ty_error *err)
{
    int64_t elems = c->n > n ? c->n : n;
    return records_bytes(look, (size_t)elems * 8 + c->scratch_bytes + 64, err);
}

/* ---- fields ---- */

static int field_refuse(const records_field *f, ty_error *err, const char *fmt, long long a, long long b)
{
    char what[160];
    snprintf(what, sizeof what, fmt, a, b);
    return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": %s", f->declared.name, what);
}

static int field_fits_type(const records_field *f, const records_cell *c, ty_error *err)
{
    static const char *const kinds[] = {
        [TY_F32] = "floats", [TY_F64] = "doubles", [TY_I64] = "integers", [TY_U8] = "bytes"};
    if (c->dtype == f->stored || f->takes_any)
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected %s as in the first record, found %s",
                        f->declared.name, kinds[f->stored], kinds[c->dtype]);
}

static int field_fits_length(const records_field *f, int64_t n, ty_error *err)
{
    if (n < 0)
        return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": its list is malformed, or holds no numbers",
                            f->declared.name);
    if (n == f->n_elems || f->declared.max_length > 0)
        return 0;
    field_refuse(f, err, "expected %lld values, found %lld", (long long)f->n_elems, (long long)n);
    return ty_error_help(err,
                         "if records differ in length say max_length: N, which fills up short ones and cuts long ones");
}

/* Types and shape of the batch, from the first record that has the field. */
int records_settle(records_field *f, const records_cell *c, int64_t found, ty_field_info *info, ty_error *err)
{
    const ty_field *d = &f->declared;
    bool scaled = d->scale != 1.0 || d->offset != 0.0;
    ty_dtype dtype = d->dtype_given ? d->dtype : scaled ? TY_F32 : c->dtype;
    int64_t n = d->max_length > 0 ? d->max_length : found;
    f->stored = c->dtype;
    f->is_settled = true;
    info->type =
        d->shape_given ? ty_type_make(dtype, d->rank, d->dim) : ty_type_make(dtype, n != 1 || d->max_length, &n);
    if (n < 0)
        return field_fits_length(f, -1, err);
    if (ty_dims_elems_checked(info->type.rank, info->type.dim, ty_dtype_bytes(dtype)) < 0 || n > RECORDS_MAX_ELEMS)
        return ty_error_set(err, TY_E_LIMIT, "field \"%s\": a sample is too big", d->name);
    f->n_elems = ty_type_elems(&info->type);
    info->row_bytes = ty_type_bytes(&info->type);
    info->is_integer = ty_dtype_is_integer(dtype);
    ty_integer_range(dtype, &f->min, &f->max);
    return 0;
}

static int field_missing(const records_field *f, ty_field_info *info, int64_t sample, ty_error *err)
{
    if (f->declared.max_length > 0) /* an empty list, which is written as none */
        return 0;
    if (info->n_missing++ == 0)
        info->first_missing = sample;
    if (f->declared.missing_given)
        return 0;
    ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": the record has no \"%s\"", f->declared.name, f->name);
    return ty_error_help(err,
                         "if it is called otherwise there say member: NAME; if records may lack it say what stands for "
                         "it: missing: 0");
}

static void field_note(ty_field_info *info, int64_t v, int64_t sample)
{
    bool none = info->min_sample < 0;
    if (none || v < info->min) {
        info->min = v;
        info->min_sample = sample;
    }
    if (none || v > info->max) {
        info->max = v;
        info->max_sample = sample;
    }
}

/* One stored number as the batch's integer. */
static int field_whole(const records_field *f, double v, int64_t *out, ty_error *err)
{
    v = v * f->declared.scale + f->declared.offset;
    if (v >= -0x1p63 && v < 0x1p63 && v == floor(v)) {
        *out = (int64_t)v;
        return 0;
    }
    return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected a whole number, found %.17g", f->declared.name,
                        v);
}

static int field_check_integers(const records_field *f, ty_dtype from, const void *stored, int64_t n,
                                ty_field_info *info, int64_t sample, ty_error *err)
{
    bool plain = from == TY_I64 && f->declared.scale == 1.0 && f->declared.offset == 0.0;
    double real[RECORDS_CHECK_BLOCK];
    int64_t low, high;
    if (plain && info->min_sample >= 0 && ty_convert_range(TY_I64, stored, n, &low, &high) && low >= info->min &&
        high <= info->max) /* those are within the type */
        return 0;
    for (int64_t at = 0; at < n; at += RECORDS_CHECK_BLOCK) {
        int64_t some = n - at < RECORDS_CHECK_BLOCK ? n - at : RECORDS_CHECK_BLOCK;
        if (!plain)
            ty_convert_to_f64(from, (const char *)stored + (size_t)at * ty_dtype_bytes(from), real, some);
        for (int64_t i = 0; i < some; i++) {
            int64_t v = plain ? ((const int64_t *)stored)[at + i] : 0;
            if (!plain && field_whole(f, real[i], &v, err) < 0)
                return -1;
            if (v < f->min || v > f->max)
                return field_refuse(f, err, "%lld does not fit its type, which ends at %lld", (long long)v,
                                    (long long)(v < f->min ? f->min : f->max));
            field_note(info, v, sample);
        }
    }
    return 0;
}

/* How many of n floats are not finite: those whose exponent has all bits set. */
static int64_t field_count_odd(const void *stored, int64_t n)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t odd = 0, bits;
    for (int64_t i = 0; i < n; i++) {
        memcpy(&bits, (const char *)stored + 4 * i, sizeof bits);
        odd += (bits & exponent) == exponent;
    }
    return odd;
}

static void field_check_floats(const records_field *f, const void *stored, int64_t n, ty_field_info *info,
                               int64_t sample)
{
    double real[RECORDS_CHECK_BLOCK];
    int64_t bad = 0;
    if (f->stored == TY_F32)
        bad = field_count_odd(stored, n);
    for (int64_t at = 0; f->stored == TY_F64 && at < n; at += RECORDS_CHECK_BLOCK) {
        int64_t some = n - at < RECORDS_CHECK_BLOCK ? n - at : RECORDS_CHECK_BLOCK;
        ty_convert_to_f64(f->stored, (const char *)stored + (size_t)at * ty_dtype_bytes(f->stored), real, some);
        for (int64_t i = 0; i < some; i++)
            bad += !(fabs(real[i]) <= 1.7976931348623157e308);
    }
    if (bad > 0 && info->n_not_finite == 0)
        info->first_not_finite = sample;
    info->n_not_finite += bad;
}

/* ---- the first walk ---- */

int records_see(records_look *look, int i, ty_field_info *info, int64_t sample, ty_error *err)
{
    const records_impl *impl = look->impl;
    records_field *f = &impl->field[i];
    const records_cell *c = &look->cell[i];
    if (ty_media_is(&f->media))
        return records_see_media(look, i, info, err);
    if (f->declared.map)
        return records_see_mapped(look, i, info, err);
    int64_t n = !c->is_there ? 0 : f->is_settled ? 1 : impl->kind->count(c), occur = -2;
    if (n != 0) {
        if ((!f->is_settled && records_settle(f, c, n, info, err) < 0) || field_fits_type(f, c, err) < 0 ||
            (c->n > RECORDS_MAX_ELEMS && field_fits_length(f, -1, err) < 0))
            return -1;
        if (impl->kind->occurring)
            occur = impl->kind->occurring(look, c, err);
        if (occur == -2 && records_room(look, c, f->n_elems, err) < 0)
            return -1;
        n = occur == -2 ? impl->kind->decode(look, c, f->n_elems) : occur < 0 ? -1 : c->n;
    }
    if (n == 0) /* a list without elements is none */
        return field_missing(f, info, sample, err);
    if (field_fits_length(f, n, err) < 0)
        return -1;
    n = occur >= 0 ? occur : n < f->n_elems ? n : f->n_elems;
    if (info->is_integer)
        return field_check_integers(f, c->dtype, look->stored, n, info, sample, err);
    field_check_floats(f, look->stored, n, info, sample);
    return 0;
}

/* ---- batches ---- */

/* What stands where nothing is: `missing` as it is, not scaled. */
static void records_fill(const records_field *f, const ty_type *type, char *out, int64_t n)
{
    double fill = f->declared.missing_given ? f->declared.missing : 0.0;
    size_t each = ty_dtype_bytes((ty_dtype)type->dtype);
    if (n > 0)
        ty_convert_from_f64((ty_dtype)type->dtype, &fill, out, 1);
    for (int64_t i = 1; i < n; i++)
        memcpy(out + (size_t)i * each, out, each);
}

/* Integers of a record that was seen when the index was made lie where all of them did then. */
static int field_check_kept(const records_field *f, ty_dtype from, const void *stored, int64_t n,
                            const ty_field_info *info, ty_error *err)
{
    ty_field_info seen = {0};
    ty_field_info_reset(&seen);
    if (field_check_integers(f, from, stored, n, &seen, 0, err) < 0)
        return -1;
    if (seen.min_sample < 0 || (info->min_sample >= 0 && seen.min >= info->min && seen.max <= info->max))
        return 0;
    return field_refuse(f, err, "expected %lld to %lld, as when the index was made", (long long)info->min,
                        (long long)info->max);
}

int records_put(records_look *look, int i, const ty_field_info *info, char *out, ty_error *err)
{
    const records_field *f = &look->impl->field[i];
    const records_cell *c = &look->cell[i];
    ty_dtype to = (ty_dtype)info->type.dtype;
    int64_t n = 0;
    if (ty_media_is(&f->media))
        return records_put_media(look, i, info, out, err);
    if (f->declared.map)
        return records_put_mapped(look, i, info, out, err);
    if (c->is_there) {
        if (field_fits_type(f, c, err) < 0 || (c->n > RECORDS_MAX_ELEMS && field_fits_length(f, -1, err) < 0) ||
            records_room(look, c, f->n_elems, err) < 0)
            return -1;
        n = look->impl->kind->decode(look, c, f->n_elems);
    }
    if (n == 0 && !look->is_known && field_missing(f, &(ty_field_info){0}, 0, err) < 0)
        return -1;
    if (n != 0 && field_fits_length(f, n, err) < 0)
        return -1;
    n = n < f->n_elems ? n : f->n_elems;
    if (info->is_integer && !look->is_known && !(c->dtype == to && f->declared.scale == 1 && f->declared.offset == 0) &&
        field_check_integers(f, c->dtype, look->stored, n, &(ty_field_info){0}, 0, err) < 0)
        return -1;
    if (info->is_integer && !look->is_known && look->impl->kept &&
        field_check_kept(f, c->dtype, look->stored, n, info, err) < 0)
        return -1;
    if (n > 0)
        ty_convert_scaled(c->dtype, look->stored, to, out, n, f->declared.scale, f->declared.offset);
    records_fill(f, &info->type, out + (size_t)n * ty_dtype_bytes(to), f->n_elems - n);
    return 0;
}

int records_settle_rest(const records_impl *impl, ty_field_info *info, bool has_records, ty_error *err)
{
    for (int i = 0; i < impl->n_fields; i++) {
        records_field *f = &impl->field[i];
        const ty_field *d = &f->declared;
        if (f->is_settled)
            continue;
        if (ty_media_is(&f->media)) {
            if (records_settle_no_media(f, &info[i], err) < 0)
                return -1;
            continue;
        }
        if (d->map) {
            if (records_settle_mapped(f, ty_map_n_cells(d->map), &info[i], err) < 0)
                return -1;
            continue;
        }
        if (has_records && !(d->missing_given && d->dtype_given && (d->shape_given || d->max_length > 0))) {
            ty_error_set(err, TY_E_DATA, "field \"%s\": no record has \"%s\"", d->name, f->name);
            return ty_error_help(err, "`member: NAME` names the feature that the field is");
        }
        records_cell none = {.dtype = TY_F32};
        if (records_settle(f, &none, 1, &info[i], err) < 0)
            return -1;
        f->takes_any = true;
    }
    return 0;
}
