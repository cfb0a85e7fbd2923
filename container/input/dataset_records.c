/* dataset_records.c - files of records, whatever these are (records.h).
 *
 * Files stay mapped (or inflated) and are walked once when they are opened (records_walk.c): where each record begins
 * is noted, and the range of integers becomes known. What that found may be kept for the next opening, which does
 * without the walk then (records_keep.h). Reading a batch decodes its records straight into it; nothing is kept in a
 * second form.
 */
#include "base/clock.h"
#include "container/input/format.h"
#include "container/input/mixing.h"
#include "container/input/records_keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- where records are ---- */

static void look_at_file(records_look *look, const records_file *file)
{
    look->frames.bytes = file->bytes.data;
    look->frames.n = file->bytes.n;
    look->frames.at = 0;
    look->frames.record = 0;
}

/* ---- the dataset ---- */

static bool records_has_blocks(const records_impl *impl)
{
    return impl->kind->block && impl->n_fields > 0 && impl->kind->block(impl, 0) != NULL;
}

static int records_gather(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err)
{
    const records_impl *impl = ds->impl;
    (void)err;
    const uint8_t *data = impl->kind->block(impl, field);
    size_t row = ds->field[field].row_bytes;
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)out + (size_t)i * row, data + (size_t)samples[i] * row, row);
    return 0;
}

static void records_gather_place(const ty_dataset *ds, int field, int64_t sample, char *out, size_t n)
{
    const records_impl *impl = ds->impl;
    (void)field;
    impl->kind->block_place(impl, sample, out, n);
}

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

/* The record at look->frames.at, where one was when the index was made. */
static int records_frame(const records_file *file, records_look *look, ty_frame *record, ty_error *err)
{
    ty_frames *f = &look->frames;
    bool begins = !ty_frames_are_lines(f->how) || f->at == 0 || file->bytes.data[f->at - 1] == '\n';
    int more = begins ? ty_frames_next(f, record, err) : 0;
    return more != 0 ? more : ty_error_set(err, TY_E_DATA, "no record begins at byte %zu any more", f->at);
}

/* Finds the record and what it has for the fields that are looked for. */
int records_find(const records_impl *impl, records_look *look, int64_t sample, ty_error *err)
{
    const records_file *file = records_find_file(impl, sample);
    ty_frame record;
    look_at_file(look, file);
    look->frames.unchecked = look->is_known = records_keep_is_checked(impl, sample);
    look->frames.at = file->at[sample - file->first];
    if (records_frame(file, look, &record, err) == 1 && impl->kind->find(look, &record, err) == 0)
        return 0;
    if (!look->is_known)
        records_keep_refuse(impl, err);
    return ty_error_at(err, "%s", file->file->path);
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
    else if (impl->kind->framing == TY_FRAMES_ROWS)
        snprintf(out, n, "%s: row %lld", file->file->path, (long long)at);
    else
        snprintf(out, n, "%s: record %lld at byte %llu", file->file->path, (long long)records_number(ds, file, sample),
                 (unsigned long long)at);
}

/* What does not decode was not looked at when it was opened: a picture's pixels, or a record of a kept index. */
static int records_put_at(const ty_dataset *ds, records_look *look, int field, int64_t sample, char *out, ty_error *err)
{
    char place[TY_ERROR_PLACE_BYTES];
    if (records_put(look, field, &ds->field[field], out, err) == 0)
        return 0;
    records_place(ds, field, sample, place, sizeof place);
    if (!look->is_known)
        records_keep_refuse(ds->impl, err);
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
        look.draw = (ty_chance){pick->seed, pick->epoch, pick->sample[i], pick->augment};
        rc = records_find(ds->impl, &look, pick->sample[i], err);
        for (int k = 0; rc == 0 && k < look.impl->n_fields; k++)
            rc =
                records_put_at(ds, &look, k, pick->sample[i], (char *)out[k] + (size_t)i * ds->field[k].row_bytes, err);
        if (rc == 0 && !look.is_known)
            records_keep_note(ds->impl, pick->sample[i]);
        if (rc == 0 && look.impl->mixed >= 0 && pick->augment)
            rc = records_mix(ds, &look, i, out, err);
    }
    records_look_fini(&look);
    return rc;
}

static int records_encoded(const ty_dataset *ds, int field, int64_t sample, ty_encoded_see *see, void *ctx,
                           ty_error *err)
{
    char place[TY_ERROR_PLACE_BYTES];
    const uint8_t *bytes = NULL;
    size_t n = 0;
    records_look look;
    int rc = records_look_init(&look, ds->impl, field, err);
    rc = rc < 0 ? rc : records_find(ds->impl, &look, sample, err);
    rc = rc < 0 ? rc : look.impl->kind->encoded(&look.cell[field], &bytes, &n, err);
    rc = rc < 0 ? rc : see(ctx, bytes ? bytes : (const uint8_t *)"", n, err);
    records_look_fini(&look);
    if (rc < 0)
        records_place(ds, field, sample, place, sizeof place);
    return rc < 0 ? ty_error_at(err, "%s", place) : 0;
}

static void records_close(ty_dataset *ds)
{
    records_impl *impl = ds->impl;
    if (impl && impl->kind->fini)
        impl->kind->fini(impl);
    for (int i = 0; impl && i < impl->n_files; i++) {
        ty_bytes_close(&impl->file[i].bytes);
        if (!ds->kept.made_s) /* else they lie in the kept file */
            free(impl->file[i].at);
        free(impl->file[i].bad);
    }
    if (impl)
        records_keep_fini(impl);
}

static const ty_dataset_ops records_ops = {
    .read = records_read,
    .read_all = records_read_all,
    .place = records_place,
    .encoded = records_encoded,
    .close = records_close,
};

static const ty_dataset_ops records_gather_ops = {
    .read = records_gather, .place = records_gather_place, .close = records_close};

static int records_open_files(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    ty_bytes_options options = {.no_map = src->no_map, .max_inflated_bytes = src->max_inflated_bytes};
    for (int i = 0; !impl->kind->opens_files && i < impl->n_files; i++)
        if (ty_bytes_open(impl->file[i].file->path, &options, &impl->file[i].bytes, err) < 0)
            return -1;
    records_keep_find(ds, src);
    return impl->kind->prepare ? impl->kind->prepare(ds, src, err) : 0;
}

static records_impl *records_new(ty_dataset *ds, const ty_data_source *src, const records_kind *kind)
{
    records_impl *impl = TY_NEW(&ds->arena, records_impl);
    impl->kind = kind;
    impl->n_files = ds->n_files;
    impl->n_fields = src->n_fields;
    impl->mixed = -1;
    impl->work = ds->work;
    impl->file = TY_NEW_ARRAY(&ds->arena, records_file, ds->n_files);
    impl->field = TY_NEW_ARRAY(&ds->arena, records_field, src->n_fields);
    impl->names = TY_NEW_ARRAY(&ds->arena, const char *, src->n_fields);
    for (int i = 0; i < src->n_fields; i++) {
        const ty_field *d = &src->fields[i];
        impl->field[i] = (records_field){.declared = *d};
        impl->field[i].declared.name = ds->field[i].name;
    }
    records_name_fields(impl, impl->n_fields, &ds->arena);
    for (int i = 0; i < ds->n_files; i++)
        impl->file[i].file = &ds->files[i];
    return impl;
}

/* What may be left out is decoded when it is opened: later it could not be. */
static int records_take_plans(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    if (records_take_media(impl, ds->field, &ds->arena, src->like, err) < 0)
        return -1;
    impl->skips_bad = src->skip_bad;
    impl->means_later = !src->skip_bad;
    for (int i = 0; i < impl->n_fields && src->skip_bad; i++)
        ty_media_decode_all(&impl->field[i].media, true);
    return 0;
}

static int records_learn_means(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    if (records_want_means(impl) && impl->means_later && records_walk_means(ds, err) < 0)
        return -1;
    return records_take_means(impl, &src->agree, err);
}

/* What all records say: as an earlier opening found it, or by looking at them. */
static int records_look_at_all(ty_dataset *ds, const ty_data_source *src, int64_t start_ns, ty_error *err)
{
    if (records_has_blocks(ds->impl)) {
        ds->ops = &records_gather_ops;
        return 0;
    }
    if (records_keep_take(ds))
        return 0;
    if (records_walk_all(ds, src, err) < 0)
        return -1;
    records_keep_give(ds, src, start_ns);
    ds->bad.told = NULL;
    return 0;
}

static int records_open(ty_dataset *ds, const ty_data_source *src, const records_kind *kind, ty_error *err)
{
    int64_t start_ns = ty_clock_ns();
    ds->impl = records_new(ds, src, kind);
    ds->ops = &records_ops;
    ds->is_partial = src->types_only;
    ds->stats.n_files = ds->n_files;
    for (int i = 0; i < ds->n_files; i++)
        ds->stats.file_bytes += ds->files[i].n_bytes;
    if (records_take_plans(ds, src, err) < 0 || records_open_files(ds, src, err) < 0 ||
        records_look_at_all(ds, src, start_ns, err) < 0 || records_settle_maps(ds, src, err) < 0)
        return -1;
    if (!src->types_only && records_learn_means(ds, src, err) < 0)
        return -1;
    records_impl *impl = ds->impl;
    if (records_settle_rest(impl, ds->field, ds->n_samples > 0, err) < 0)
        return -1;
    return ty_mixing_find(ds->field, ds->n_fields, &impl->mixed, err);
}

int ty_dataset_open_parquet(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return records_open(ds, src, &records_parquet, err);
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
