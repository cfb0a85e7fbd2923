/* records_walk.c - the walk that opens files of records: where each begins is noted, and every field of every record is
 * held against its declaration. Threads look ahead where no record depends on those before it (spans.h).
 */
#include "base/crew.h"
#include "container/input/records.h"
#include "container/input/spans.h"

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
    if (framing == TY_FRAMES_ROWS)
        return ty_error_at(err, "%s: row %lld", file->file->path, (long long)record->at);
    return ty_error_at(err, "%s: record %lld at byte %zu", file->file->path, (long long)record->record, record->at);
}

static int records_reserve(uint64_t **at, int64_t *room, int64_t n, ty_error *err)
{
    if (n <= *room)
        return 0;
    int64_t more = n > 2 * *room ? n > 1024 ? n : 1024 : 2 * *room;
    uint64_t *grown = realloc(*at, (size_t)more * sizeof *grown);
    if (!grown)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the places of %lld records", (long long)more);
    *at = grown;
    *room = more;
    return 0;
}

int records_note(uint64_t **at, int64_t *n, int64_t *room, uint64_t where, ty_error *err)
{
    if (records_reserve(at, room, *n + 1, err) < 0)
        return -1;
    (*at)[(*n)++] = where;
    return 0;
}

/* What is known of the fields: to go back to where a record turns out bad in its middle, or to look ahead with. */
typedef struct records_known {
    ty_field_info *info;
    records_field *field;
} records_known;

typedef struct records_walk {
    ty_dataset *ds;
    records_look look;
    records_known before;  /* the record that is walked, if it may be left out */
    records_known for_all; /* what threads look ahead with */
    int64_t most;          /* records of a file */
} records_walk;

static void records_keep_known(const ty_dataset *ds, records_known *k)
{
    const records_impl *impl = ds->impl;
    memcpy(k->info, ds->field, (size_t)ds->n_fields * sizeof *k->info);
    memcpy(k->field, impl->field, (size_t)ds->n_fields * sizeof *k->field);
}

/* ---- in order ---- */

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
static int records_walk_record(records_walk *w, records_file *file, const ty_frame *record, bool is_right,
                               ty_error *err)
{
    ty_dataset *ds = w->ds;
    records_look *look = &w->look;
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
    return records_leave_out(ds, &w->before, err) < 0 ? -1 : 1;
}

/* The first of those that were left out before from byte `at` on. */
static int64_t records_bad_from(const records_file *file, uint64_t at)
{
    int64_t low = 0, high = file->n_bad;
    while (low < high) {
        int64_t mid = (low + high) / 2;
        if (file->bad[mid] < at)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int records_walk_to(records_walk *w, records_file *file, size_t to, ty_error *err)
{
    ty_dataset *ds = w->ds;
    ty_frames *frames = &w->look.frames;
    ty_frame record;
    int64_t bad = records_bad_from(file, frames->at);
    int more;
    while (frames->at < to && file->n < w->most &&
           (more = records_next(w->look.impl->kind, frames, &record, err)) != 0) {
        if (more < 0 && err->code != TY_E_DATA_VALUE) /* where the next one begins is not known */
            return ty_error_at(err, "%s", file->file->path);
        if (bad < file->n_bad && file->bad[bad] == record.at) {
            bad++;
            continue;
        }
        if (ds->bad.skip)
            records_keep_known(ds, &w->before);
        int rc = records_walk_record(w, file, &record, more == 1, err);
        if (rc < 0 || (rc == 0 && records_note(&file->at, &file->n, &file->room, record.at, err) < 0))
            return -1;
        ds->n_samples += rc == 0;
    }
    return 0;
}

static int walk_redo(const records_spans *s, records_file *file, size_t to, ty_error *err)
{
    return records_walk_to(s->ctx, file, to, err);
}

/* ---- ahead ---- */

typedef struct walk_found {
    uint64_t *at; /* where records begin */
    int64_t n, room;
    records_known known; /* numbers of samples count from the span's first on */
} walk_found;

static void walk_fini(records_span *span)
{
    walk_found *f = span->found;
    if (f) {
        free(f->at);
        free(f->known.info);
        free(f->known.field);
    }
    free(f);
}

/* What is known, with nothing seen. */
static walk_found *walk_found_new(const records_walk *w)
{
    size_t n = (size_t)w->ds->n_fields;
    walk_found *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->known.info = calloc(n, sizeof *f->known.info);
    f->known.field = calloc(n, sizeof *f->known.field);
    for (size_t i = 0; f->known.info && f->known.field && i < n; i++) {
        f->known.info[i] = w->for_all.info[i];
        ty_field_info_reset(&f->known.info[i]);
        f->known.field[i] = w->for_all.field[i];
        f->known.field[i].sums = (ty_image_sums){{0}, {0}, 0};
    }
    return f;
}

/* The record has a field that no record had before, whose type it decides: this is done in order. */
static bool walk_settles(const records_look *look, int i)
{
    const records_field *f = &look->impl->field[i];
    if (f->is_settled)
        return false;
    return ty_media_is(&f->media) || f->declared.map ||
           (look->cell[i].is_there && look->impl->kind->count(&look->cell[i]) != 0);
}

static bool walk_see(records_look *look, const ty_frame *record, walk_found *f)
{
    bool is_right = look->impl->kind->find(look, record, NULL) == 0;
    for (int i = 0; is_right && i < look->impl->n_fields; i++)
        is_right = !walk_settles(look, i) && records_see(look, i, &f->known.info[i], f->n, NULL) == 0;
    return is_right && records_note(&f->at, &f->n, &f->room, record->at, NULL) == 0;
}

static bool walk_span(records_span *span, records_look *look, walk_found *f)
{
    ty_frame record;
    bool is_clean = records_span_begin(span, &look->frames);
    int64_t bad = records_bad_from(span->file, span->from);
    int more;
    while (is_clean && (more = records_span_next(span, &look->frames, &record)) != 0) {
        if (more == 1 && bad < span->file->n_bad && span->file->bad[bad] == record.at)
            bad++;
        else
            is_clean = more == 1 && walk_see(look, &record, f);
    }
    return records_span_end(span, &look->frames, is_clean);
}

static bool walk_ahead(records_span *span)
{
    walk_found *f = span->found = walk_found_new(span->all->ctx);
    if (!f || !f->known.info || !f->known.field)
        return false;
    records_impl mine = *span->all->impl;
    records_look look;
    mine.field = f->known.field;
    bool is_clean = records_look_init(&look, &mine, -1, NULL) == 0;
    look.is_known = true;
    is_clean = is_clean && walk_span(span, &look, f);
    records_look_fini(&look);
    return is_clean;
}

static int walk_take(records_span *span, ty_error *err)
{
    const records_walk *w = span->all->ctx;
    const walk_found *f = span->found;
    records_impl *impl = w->ds->impl;
    records_file *file = span->file;
    if (records_reserve(&file->at, &file->room, file->n + f->n, err) < 0)
        return -1;
    if (f->n > 0)
        memcpy(file->at + file->n, f->at, (size_t)f->n * sizeof *f->at);
    for (int i = 0; i < w->ds->n_fields; i++) {
        ty_field_info_take(&w->ds->field[i], &f->known.info[i], w->ds->n_samples);
        ty_image_sums_add(&impl->field[i].sums, &f->known.field[i].sums);
    }
    file->n += f->n;
    w->ds->n_samples += f->n;
    return 0;
}

/* ---- all files ---- */

static void walk_begin(const records_spans *s)
{
    records_walk *w = s->ctx;
    records_keep_known(w->ds, &w->for_all);
}

static int walk_known(const records_spans *s)
{
    int n = 0;
    for (int i = 0; i < s->impl->n_fields; i++)
        n += s->impl->field[i].is_settled;
    return n;
}

/* A map that learns takes records in order. */
static bool walk_learns(const records_impl *impl)
{
    for (int i = 0; i < impl->n_fields; i++)
        if (impl->field[i].declared.map && !ty_map_is_settled(impl->field[i].declared.map))
            return true;
    return false;
}

/* Only the first records of the first file. */
static int records_walk_first(records_walk *w, const records_impl *impl, ty_error *err)
{
    records_file *file = &impl->file[0];
    w->most = RECORDS_LOOK;
    w->look.frames.bytes = file->bytes.data;
    w->look.frames.n = file->bytes.n;
    return records_walk_to(w, file, file->bytes.n, err);
}

static records_known records_known_new(ty_dataset *ds)
{
    return (records_known){TY_NEW_ARRAY(&ds->arena, ty_field_info, ds->n_fields),
                           TY_NEW_ARRAY(&ds->arena, records_field, ds->n_fields)};
}

void records_number_files(const ty_dataset *ds)
{
    const records_impl *impl = ds->impl;
    int64_t first = 0;
    for (int i = 0; i < impl->n_files; i++) {
        impl->file[i].first = first;
        first += impl->file[i].n;
    }
}

int records_threads(const ty_data_source *src)
{
    return src->n_threads > 0 ? src->n_threads : ty_crew_processors();
}

int records_walk_all(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    records_walk w = {.ds = ds, .most = INT64_MAX, .before = records_known_new(ds), .for_all = records_known_new(ds)};
    records_spans spans = {.impl = impl,
                           .frames = &w.look.frames,
                           .n_threads = walk_learns(impl) ? 1 : records_threads(src),
                           .bytes = src->span_bytes,
                           .ctx = &w,
                           .begin = walk_begin,
                           .known = walk_known,
                           .ahead = walk_ahead,
                           .take = walk_take,
                           .redo = walk_redo,
                           .fini = walk_fini};
    int rc = records_look_init(&w.look, impl, -1, err);
    w.look.is_known = true;
    if (rc == 0)
        rc = src->types_only ? records_walk_first(&w, impl, err) : records_spans_run(&spans, err);
    records_look_fini(&w.look);
    records_number_files(ds);
    return rc;
}
