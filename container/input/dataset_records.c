/* dataset_records.c - files of records, whatever these are (records.h).
 *
 * Files stay mapped (or inflated) and are walked once: where each record begins is noted, every field of every record
 * is held against its declaration, and the range of integers becomes known. Reading a batch decodes its records
 * straight into it; nothing is kept in a second form.
 */
#include "container/input/format.h"
#include "container/input/mixing.h"
#include "container/input/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_LOOK = 100 }; /* records that types_only looks at */

int records_next(const records_kind *kind, ty_frames *frames, ty_frame *out, ty_error *err)
{
    int more;
    while ((more = ty_frames_next(frames, out, err)) == 1 && kind->is_none && kind->is_none(out))
        continue;
    return more;
}

int records_at(const records_file *file, ty_framing framing, const ty_frame *record, ty_error *err)
{
    if (ty_frames_are_lines(framing))
        return ty_error_at(err, "%s:%lld", file->file->path, (long long)record->record + 1);
    return ty_error_at(err, "%s: record %lld at byte %zu", file->file->path, (long long)record->record, record->at);
}

/* ---- the first walk ---- */

static void look_at_file(records_look *look, const records_file *file)
{
    look->frames.bytes = file->bytes.data;
    look->frames.n = file->bytes.n;
    look->frames.at = 0;
    look->frames.record = 0;
}

int records_note(uint64_t **at, int64_t *n, int64_t *room, uint64_t where, ty_error *err)
{
    if (*n == *room) {
        int64_t more = *room ? *room * 2 : 1024;
        uint64_t *grown = realloc(*at, (size_t)more * sizeof *grown);
        if (!grown)
            return ty_error_set(err, TY_E_LIMIT, "no memory for the places of %lld records", (long long)more);
        *at = grown;
        *room = more;
    }
    (*at)[(*n)++] = where;
    return 0;
}

/* What is known of the fields, to go back to where a record turns out bad in its middle. */
typedef struct records_known {
    ty_field_info *info;
    records_field *field;
} records_known;

static void records_keep_known(const ty_dataset *ds, records_known *k)
{
    const records_impl *impl = ds->impl;
    memcpy(k->info, ds->field, (size_t)ds->n_fields * sizeof *k->info);
    memcpy(k->field, impl->field, (size_t)ds->n_fields * sizeof *k->field);
}

static int records_leave_out(ty_dataset *ds, const records_known *k, ty_error *err)
{
    records_impl *impl = ds->impl;
    if (ds->bad.skip) {
        memcpy(ds->field, k->info, (size_t)ds->n_fields * sizeof *k->info);
        memcpy(impl->field, k->field, (size_t)ds->n_fields * sizeof *k->field);
    }
    return ty_bad_leave_out(&ds->bad, err);
}

/* One record whose frame is whole, if perhaps not its payload. 1: it is bad and left out. */
static int records_walk_record(ty_dataset *ds, records_look *look, records_file *file, const ty_frame *record,
                               bool is_right, const records_known *k, ty_error *err)
{
    int rc = is_right ? look->impl->kind->find(look, record, err) : -1;
    for (int i = 0; rc == 0 && i < look->impl->n_fields; i++)
        rc = records_see(look, i, &ds->field[i], ds->n_samples, err);
    if (rc == 0)
        rc = records_learn(look, err); /* of records that are right alone */
    if (rc == 0)
        return 0;
    if (is_right)
        records_at(file, look->impl->kind->framing, record, err);
    ty_error_at(err, "%s", file->file->path); /* a wrong checksum's message has the rest */
    return records_leave_out(ds, k, err) < 0 ? -1 : 1;
}

static int records_walk_file(ty_dataset *ds, records_look *look, records_file *file, int64_t most, records_known *k,
                             ty_error *err)
{
    ty_frame record;
    int64_t n_bad = 0;
    int more;
    look_at_file(look, file);
    while (file->n < most && (more = records_next(look->impl->kind, &look->frames, &record, err)) != 0) {
        if (more < 0 && err->code != TY_E_DATA_VALUE) /* where the next one begins is not known */
            return ty_error_at(err, "%s", file->file->path);
        if (n_bad < file->n_bad && file->bad[n_bad] == record.at) {
            n_bad++;
            continue;
        }
        if (ds->bad.skip)
            records_keep_known(ds, k);
        int rc = records_walk_record(ds, look, file, &record, more == 1, k, err);
        if (rc < 0 || (rc == 0 && records_note(&file->at, &file->n, &file->room, record.at, err) < 0))
            return -1;
        ds->n_samples += rc == 0;
    }
    return 0;
}

static int records_open_files(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    ty_bytes_options options = {.no_map = src->no_map, .max_inflated_bytes = src->max_inflated_bytes};
    for (int i = 0; i < impl->n_files; i++)
        if (ty_bytes_open(impl->file[i].file->path, &options, &impl->file[i].bytes, err) < 0)
            return -1;
    return impl->kind->prepare ? impl->kind->prepare(ds, src, err) : 0;
}

static int records_walk(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    records_look look;
    records_known known = {TY_NEW_ARRAY(&ds->arena, ty_field_info, ds->n_fields),
                           TY_NEW_ARRAY(&ds->arena, records_field, ds->n_fields)};
    int rc = records_look_init(&look, impl, -1, err);
    look.is_known = true;
    for (int i = 0; rc == 0 && i < (src->types_only ? 1 : impl->n_files); i++) {
        impl->file[i].first = ds->n_samples;
        rc = records_walk_file(ds, &look, &impl->file[i], src->types_only ? RECORDS_LOOK : INT64_MAX, &known, err);
    }
    records_look_fini(&look);
    return rc;
}

/* ---- the dataset ---- */

static const records_file *records_find_file(const records_impl *impl, int64_t sample)
{
    int low = 0, high = impl->n_files - 1;
    while (low < high) {
        int mid = (low + high + 1) / 2;
        if (impl->file[mid].first <= sample)
            low = mid;
        else
            high = mid - 1;
    }
    /* Files without records share their first sample with the one behind them; the search has found the last of those.
     */
    return &impl->file[low];
}

/* Finds the record and what it has for the fields that are looked for. */
int records_find(const records_impl *impl, records_look *look, int64_t sample, ty_error *err)
{
    const records_file *file = records_find_file(impl, sample);
    ty_frame record;
    look_at_file(look, file);
    look->frames.unchecked = look->is_known = true; /* it was checked when the file was opened */
    look->frames.at = file->at[sample - file->first];
    if (ty_frames_next(&look->frames, &record, err) != 1 || impl->kind->find(look, &record, err) < 0)
        return ty_error_at(err, "%s", file->file->path);
    return 0;
}

static int64_t records_line(const records_file *file, uint64_t at)
{
    int64_t line = 1;
    const uint8_t *p = file->bytes.data, *end = p + at;
    for (; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
        line++;
    return line;
}

/* Its number in the file, bad ones counted. */
static int64_t records_number(const ty_dataset *ds, const records_file *file, int64_t sample)
{
    const records_impl *impl = ds->impl;
    int64_t n = sample - file->first;
    if (ds->bad.n == 0)
        return n;
    ty_frames frames = {.bytes = file->bytes.data, .n = file->bytes.n, .how = impl->kind->framing, .unchecked = true};
    ty_frame record = {0};
    while (frames.at < file->at[n] && records_next(impl->kind, &frames, &record, NULL) == 1)
        continue;
    ty_frames_fini(&frames);
    return frames.record;
}

static void records_place(const ty_dataset *ds, int field, int64_t sample, char *out, size_t n)
{
    const records_impl *impl = ds->impl;
    const records_file *file = records_find_file(impl, sample);
    uint64_t at = file->at[sample - file->first];
    (void)field;
    if (ty_frames_are_lines(impl->kind->framing))
        snprintf(out, n, "%s:%lld", file->file->path, (long long)records_line(file, at));
    else
        snprintf(out, n, "%s: record %lld at byte %llu", file->file->path, (long long)records_number(ds, file, sample),
                 (unsigned long long)at);
}

/* What does not decode was not looked at when it was opened: a picture's pixels. */
static int records_put_at(const ty_dataset *ds, records_look *look, int field, int64_t sample, char *out, ty_error *err)
{
    char place[TY_ERROR_PLACE_BYTES];
    if (records_put(look, field, &ds->field[field], out, err) == 0)
        return 0;
    records_place(ds, field, sample, place, sizeof place);
    return ty_error_at(err, "%s", place);
}

static int records_read(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err)
{
    records_look look;
    int rc = records_look_init(&look, ds->impl, field, err);
    char *to = out;
    for (int64_t i = 0; rc == 0 && i < n; i++, to += ds->field[field].row_bytes) {
        rc = records_find(ds->impl, &look, samples[i], err);
        rc = rc < 0 ? rc : records_put_at(ds, &look, field, samples[i], to, err);
    }
    records_look_fini(&look);
    return rc;
}

/* The other sample of the mix, augmented as it would be by itself. */
static int records_mix(const ty_dataset *ds, records_look *look, int64_t row, void *const *out, ty_error *err)
{
    const records_impl *impl = ds->impl;
    ty_image_mixing m;
    ty_image_plan_mixing(ds->field[impl->mixed].image, &look->draw, ds->n_samples, &m);
    if (m.share >= 1.0)
        return 0;
    if ((look->other == NULL && ty_mixing_room(ds->field, ds->n_fields, &look->other, err) < 0) ||
        records_find(impl, look, m.other, err) < 0)
        return -1;
    look->draw.sample = m.other;
    for (int i = 0; i < impl->n_fields; i++) {
        if (!ty_mixing_takes(&ds->field[i]))
            continue;
        if (records_put_at(ds, look, i, m.other, (char *)look->other, err) < 0)
            return -1;
        ty_mixing_blend(&ds->field[i], &m, (float *)((char *)out[i] + (size_t)row * ds->field[i].row_bytes),
                        look->other);
    }
    return 0;
}

static int records_read_all(const ty_dataset *ds, const ty_pick *pick, void *const *out, ty_error *err)
{
    records_look look;
    int rc = records_look_init(&look, ds->impl, -1, err);
    for (int64_t i = 0; rc == 0 && i < pick->n; i++) {
        look.draw = (ty_image_draw){pick->seed, pick->epoch, pick->sample[i], pick->augment};
        rc = records_find(ds->impl, &look, pick->sample[i], err);
        for (int k = 0; rc == 0 && k < look.impl->n_fields; k++)
            rc =
                records_put_at(ds, &look, k, pick->sample[i], (char *)out[k] + (size_t)i * ds->field[k].row_bytes, err);
        if (rc == 0 && look.impl->mixed >= 0 && pick->augment)
            rc = records_mix(ds, &look, i, out, err);
    }
    records_look_fini(&look);
    return rc;
}

static void records_close(ty_dataset *ds)
{
    records_impl *impl = ds->impl;
    for (int i = 0; impl && i < impl->n_files; i++) {
        ty_bytes_close(&impl->file[i].bytes);
        free(impl->file[i].at);
        free(impl->file[i].bad);
    }
}

static const ty_dataset_ops records_ops = {
    .read = records_read, .read_all = records_read_all, .place = records_place, .close = records_close};

static records_impl *records_new(ty_dataset *ds, const ty_data_source *src, const records_kind *kind)
{
    records_impl *impl = TY_NEW(&ds->arena, records_impl);
    impl->kind = kind;
    impl->n_files = ds->n_files;
    impl->n_fields = src->n_fields;
    impl->mixed = -1;
    impl->file = TY_NEW_ARRAY(&ds->arena, records_file, ds->n_files);
    impl->field = TY_NEW_ARRAY(&ds->arena, records_field, src->n_fields);
    impl->names = TY_NEW_ARRAY(&ds->arena, const char *, src->n_fields);
    for (int i = 0; i < src->n_fields; i++) {
        const ty_field *d = &src->fields[i];
        impl->names[i] = ty_arena_strdup(&ds->arena, d->member ? d->member : d->name);
        impl->field[i] = (records_field){.declared = *d, .name = impl->names[i]};
        impl->field[i].declared.name = ds->field[i].name;
    }
    for (int i = 0; i < ds->n_files; i++)
        impl->file[i].file = &ds->files[i];
    return impl;
}

/* What may be left out is decoded when it is opened: later it could not be. */
static int records_take_plans(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    if (records_take_pictures(impl, ds->field, &ds->arena, src->like, err) < 0)
        return -1;
    impl->means_later = !src->skip_bad;
    for (int i = 0; i < impl->n_fields && src->skip_bad; i++)
        if (impl->field[i].plan)
            impl->field[i].plan->decode_all = true;
    return 0;
}

static int records_learn_means(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    if (records_want_means(impl) && impl->means_later && records_walk_means(ds, err) < 0)
        return -1;
    return records_take_means(impl, src->agree_sums, src->agree_ctx, err);
}

static int records_open(ty_dataset *ds, const ty_data_source *src, const records_kind *kind, ty_error *err)
{
    ds->impl = records_new(ds, src, kind);
    ds->ops = &records_ops;
    ds->is_partial = src->types_only;
    ds->stats.n_files = ds->n_files;
    for (int i = 0; i < ds->n_files; i++)
        ds->stats.file_bytes += ds->files[i].n_bytes;
    if (records_take_plans(ds, src, err) < 0 || records_open_files(ds, src, err) < 0 ||
        records_walk(ds, src, err) < 0 || records_settle_maps(ds, src, err) < 0)
        return -1;
    if (!src->types_only && records_learn_means(ds, src, err) < 0)
        return -1;
    records_impl *impl = ds->impl;
    if (records_settle_rest(impl, ds->field, ds->n_samples > 0, err) < 0)
        return -1;
    return ty_mixing_find(ds->field, ds->n_fields, &impl->mixed, err);
}

int ty_dataset_open_tfrecord(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return records_open(ds, src, &records_example, err);
}

int ty_dataset_open_recordio(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return records_open(ds, src, &records_tensor, err);
}

int ty_dataset_open_libsvm(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return records_open(ds, src, &records_libsvm, err);
}

int ty_dataset_open_mxnet(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return records_open(ds, src, &records_mxnet, err);
}

int ty_dataset_open_lines(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return records_open(ds, src, &records_lines, err);
}

int ty_dataset_open_json(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return records_open(ds, src, &records_json, err);
}
