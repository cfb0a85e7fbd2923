/* records_keep.c - see records_keep.h. */
#pragma GCC optimize("O3") /* the check of all places as vectors */
#include "container/input/records_keep.h"

#include "base/clock.h"
#include "base/entries.h"
#include "base/file.h"
#include "base/log.h"
#include "container/input/convert.h"
#include "container/input/map/map.h"
#include "container/input/transform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT_MAX_SEEN     ((size_t)1 << 30) /* of what transforms have seen */
#define KEPT_TICK_NS      INT64_C(20000000) /* of the clock that stamps files */
#define KEPT_SLOW_TICK_NS INT64_C(2000000000)

/* The part FACTS: a head, then n_files files and n_fields fields. */
typedef struct kept_head {
    int64_t n_files, n_fields, n_samples, n_bad;
    int64_t index_base, width, count; /* with which lines of LibSVM were walked */
    uint64_t work;                    /* memory that a thread's look came to */
    records_seen seen;
    char first_bad[256];
} kept_head;

typedef struct kept_file {
    int64_t n;        /* records */
    uint64_t n_bytes; /* of its content */
} kept_file;

typedef struct kept_field {
    ty_type type;
    int64_t is_settled, stored;
    int64_t min, max, min_sample, max_sample, n_missing, n_not_finite, first_missing, first_not_finite;
    uint64_t n_seen; /* bytes of what its map has seen */
} kept_field;

/* ---- finding ---- */

static bool kept_can_be(const records_impl *impl, const ty_data_source *src)
{
    bool any = src->keep.folders && src->keep.folders[0] && !src->types_only && impl->kind->is_kept;
    for (int i = 0; any && i < impl->n_fields; i++)
        any = !ty_media_is(&impl->field[i].media);
    return any;
}

/* Times of files go in steps: who writes twice in one step leaves the same time. */
static bool kept_is_young(const records_impl *impl)
{
    int64_t now = ty_clock_utc_ms() * 1000000;
    for (int i = 0; i < impl->n_files; i++) {
        const ty_file_id *id = &impl->file[i].bytes.id;
        int64_t latest = id->modified_ns > id->changed_ns ? id->modified_ns : id->changed_ns;
        if (now - latest < (latest % 1000000000 ? KEPT_TICK_NS : KEPT_SLOW_TICK_NS))
            return true;
    }
    return false;
}

/* The i-th of the folders; NULL: there are not as many. */
static const char *kept_folder(ty_arena *a, const char *folders, int i)
{
    for (; folders && i > 0; i--) {
        folders = strchr(folders, ':');
        folders = folders ? folders + 1 : NULL;
    }
    return folders ? ty_arena_strndup(a, folders, strcspn(folders, ":")) : NULL;
}

static bool kept_read_head(const ty_keep_file *f, kept_head *out)
{
    if (f->n[TY_KEEP_FACTS] < sizeof *out)
        return false;
    memcpy(out, f->part[TY_KEEP_FACTS], sizeof *out);
    return true;
}

static void kept_look(ty_dataset *ds, const char *folder, const char *name, bool may_remove)
{
    records_kept *k = ((records_impl *)ds->impl)->kept;
    ty_error err = {0};
    kept_head head;
    const char *path = ty_arena_printf(&ds->arena, "%s/" TY_ENTRIES_DATA "/%s", folder, name);
    int rc = ty_keep_open(path, &k->key, &k->file, &err);
    if (rc == 1 && kept_read_head(&k->file, &head)) {
        k->seen = head.seen;
        k->is_found = true;
        k->path = path;
    } else if (rc != 0) {
        ty_log_warning("data", "the kept index of the data is damaged and made anew: %s: %s", path,
                       rc < 0 ? err.message : "its facts are cut off");
        ty_keep_close(&k->file);
        if (may_remove)
            unlink(path);
    }
}

static void kept_look_all(ty_dataset *ds, const ty_data_source *src, const char *name)
{
    records_kept *k = ((records_impl *)ds->impl)->kept;
    const char *folder;
    for (int i = 0; !k->is_found && (folder = kept_folder(&ds->arena, src->keep.folders, i)) != NULL; i++)
        if (folder[0])
            kept_look(ds, folder, name, i == 0 && !src->keep.is_read_only);
    folder = kept_folder(&ds->arena, src->keep.folders, 0);
    if (!k->is_found && folder[0])
        k->path = ty_arena_printf(&ds->arena, "%s/" TY_ENTRIES_DATA "/%s", folder, name);
}

static void kept_explain(ty_dataset *ds, const ty_data_source *src)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 12);
    ty_keep_explain(kept_folder(&ds->arena, src->keep.folders, 0), &((records_impl *)ds->impl)->kept->key, &text);
    if (text.len > 0)
        ds->kept.differs = ty_arena_strdup(&ds->arena, text.data);
    ty_buf_fini(&text);
}

void records_keep_find(ty_dataset *ds, const ty_data_source *src)
{
    records_impl *impl = ds->impl;
    char name[32];
    if (!kept_can_be(impl, src))
        return;
    records_kept *k = impl->kept = TY_NEW(&ds->arena, records_kept);
    ds->kept.is_asked = true;
    ty_buf_init(&k->key, TY_KEEP_MAX_KEY);
    ty_buf_init(&k->told, 1 << 20);
    ds->bad.told = &k->told;
    k->is_young = kept_is_young(impl);
    if (!records_keep_key(ds, src, &k->key))
        return; /* a million files; nothing is kept */
    ty_keep_name(&k->key, name);
    kept_look_all(ds, src, name);
    if (!k->is_found)
        kept_explain(ds, src);
}

void records_keep_drop(records_impl *impl)
{
    records_kept *k = impl->kept;
    k->is_found = false;
    k->is_replaced = true;
    ty_keep_close(&k->file);
}

void records_keep_fini(records_impl *impl)
{
    records_kept *k = impl->kept;
    if (!k)
        return;
    ty_keep_close(&k->file);
    ty_buf_fini(&k->key);
    ty_buf_fini(&k->told);
    free((void *)k->checked);
    impl->kept = NULL;
}

/* ---- taking ---- */

/* FACTS, as they lie in the file: at a multiple of 64. */
typedef struct kept_facts {
    const kept_head *head;
    const kept_file *file;
    const kept_field *field;
} kept_facts;

static bool kept_facts_of(const records_impl *impl, kept_facts *out)
{
    const ty_keep_file *f = &impl->kept->file;
    const kept_head *head = out->head = (const kept_head *)(const void *)f->part[TY_KEEP_FACTS];
    if (head->n_files != impl->n_files || head->n_fields != impl->n_fields || head->n_samples < 0 || head->n_bad < 0 ||
        f->n[TY_KEEP_FACTS] !=
            sizeof *head + (size_t)impl->n_files * sizeof(kept_file) + (size_t)impl->n_fields * sizeof(kept_field) ||
        (uint64_t)head->n_samples > f->n[TY_KEEP_PLACES] / 8 || f->n[TY_KEEP_PLACES] != (size_t)head->n_samples * 8)
        return false;
    out->file = (const kept_file *)(const void *)(head + 1);
    out->field = (const kept_field *)(const void *)(out->file + impl->n_files);
    return head->index_base == impl->index_base && head->width == impl->width && head->count == impl->count;
}

/* They rise, and lie within: no difference is negative, as no bit at its top tells. One pass over all of them, without
 * a branch, for vectors. */
static bool kept_places_fit(const uint64_t *at, int64_t n, uint64_t n_bytes)
{
    uint64_t tops = n_bytes;
    if (n > 0)
        tops |= at[0] | (n_bytes - 1 - at[0]);
    for (int64_t i = 1; i < n; i++)
        tops |= at[i] | (at[i] - at[i - 1] - 1) | (n_bytes - 1 - at[i]);
    return n == 0 || (n_bytes > 0 && tops >> 63 == 0);
}

static bool kept_files_fit(const records_impl *impl, const kept_facts *facts)
{
    const uint64_t *at = (const uint64_t *)(const void *)impl->kept->file.part[TY_KEEP_PLACES];
    int64_t left = facts->head->n_samples;
    for (int i = 0; i < impl->n_files; i++) {
        int64_t n = facts->file[i].n;
        if (n < 0 || n > left || facts->file[i].n_bytes != impl->file[i].bytes.n ||
            !kept_places_fit(at, n, impl->file[i].bytes.n))
            return false;
        at += n;
        left -= n;
    }
    return left == 0;
}

static bool kept_learns(const records_field *f)
{
    return f->declared.map && !ty_map_is_settled(f->declared.map);
}

static bool kept_type_fits(const kept_field *k)
{
    const ty_type *t = &k->type;
    if (t->rank > TY_SAMPLE_MAX_RANK || t->dtype >= TY_N_DTYPES)
        return false;
    return ty_dims_elems_checked(t->rank, t->dim, ty_dtype_bytes((ty_dtype)t->dtype)) >= 0 &&
           ty_type_elems(t) <= RECORDS_MAX_ELEMS;
}

static bool kept_field_fits(const records_field *f, const kept_field *k)
{
    bool is_stored =
        f->declared.map || k->stored == TY_F32 || k->stored == TY_F64 || k->stored == TY_I64 || k->stored == TY_U8;
    if (!k->is_settled || kept_learns(f))
        return !k->is_settled && (kept_learns(f) || k->n_seen == 0);
    return kept_type_fits(k) && is_stored && k->n_seen == 0;
}

static bool kept_fields_fit(const records_impl *impl, const kept_facts *facts)
{
    uint64_t left = impl->kept->file.n[TY_KEEP_SEEN];
    for (int i = 0; i < impl->n_fields; i++) {
        if (!kept_field_fits(&impl->field[i], &facts->field[i]) || facts->field[i].n_seen > left)
            return false;
        left -= facts->field[i].n_seen;
    }
    return left == 0;
}

/* What maps have seen goes into them as another part's would. */
static bool kept_join(const records_impl *impl, const kept_facts *facts)
{
    const uint8_t *seen = impl->kept->file.part[TY_KEEP_SEEN];
    bool fits = true;
    for (int i = 0; fits && i < impl->n_fields; i++) {
        ty_map *map = impl->field[i].declared.map;
        if (kept_learns(&impl->field[i]))
            fits = ty_map_join(map, seen, (size_t)facts->field[i].n_seen, NULL) == 0 &&
                   ty_map_n_seen(map) == facts->head->n_samples;
        seen += facts->field[i].n_seen;
    }
    for (int i = 0; !fits && i < impl->n_fields; i++)
        if (kept_learns(&impl->field[i]))
            ty_map_forget(impl->field[i].declared.map);
    return fits;
}

static void kept_take_field(records_field *f, const kept_field *k, ty_field_info *info)
{
    if (!k->is_settled)
        return;
    f->is_settled = true;
    f->stored = (ty_dtype)k->stored;
    f->n_elems = ty_type_elems(&k->type);
    info->type = k->type;
    info->row_bytes = ty_type_bytes(&k->type);
    info->is_integer = ty_dtype_is_integer((ty_dtype)k->type.dtype);
    if (f->declared.map)
        ty_map_info(f->declared.map, info);
    else
        ty_integer_range((ty_dtype)k->type.dtype, &f->min, &f->max);
}

static void kept_take_range(const kept_field *k, ty_field_info *info)
{
    info->min = k->min;
    info->max = k->max;
    info->min_sample = k->min_sample;
    info->max_sample = k->max_sample;
    info->n_missing = k->n_missing;
    info->n_not_finite = k->n_not_finite;
    info->first_missing = k->first_missing;
    info->first_not_finite = k->first_not_finite;
}

static void kept_take_files(const records_impl *impl, const kept_facts *facts)
{
    uint64_t *at = (uint64_t *)(uintptr_t)impl->kept->file.part[TY_KEEP_PLACES]; /* read only from now on */
    for (int i = 0; i < impl->n_files; i++) {
        impl->file[i].at = at;
        impl->file[i].n = facts->file[i].n;
        at += facts->file[i].n;
    }
}

static void kept_repeat(ty_bad *bad, const ty_keep_file *f)
{
    const char *at = (const char *)f->part[TY_KEEP_TOLD], *end = at + f->n[TY_KEEP_TOLD], *stop;
    for (; at < end && (stop = memchr(at, 0, (size_t)(end - at))) != NULL; at = stop + 1)
        ty_bad_tell(bad->told, "%s", at);
}

static void kept_take_all(ty_dataset *ds, const kept_facts *facts)
{
    records_impl *impl = ds->impl;
    const kept_head *head = facts->head;
    kept_take_files(impl, facts);
    for (int i = 0; i < impl->n_fields; i++) {
        kept_take_field(&impl->field[i], &facts->field[i], &ds->field[i]);
        kept_take_range(&facts->field[i], &ds->field[i]);
    }
    ty_work_raise(ds->work, (size_t)head->work);
    ds->n_samples = head->n_samples;
    ds->bad.n = head->n_bad;
    memcpy(ds->bad.first, head->first_bad, sizeof ds->bad.first);
    ds->bad.first[sizeof ds->bad.first - 1] = 0;
    records_number_files(ds);
    ds->kept.made_s = impl->kept->file.made_s;
    ty_entries_touch(impl->kept->path);
    kept_repeat(&ds->bad, &impl->kept->file);
}

bool records_keep_take(ty_dataset *ds)
{
    records_impl *impl = ds->impl;
    kept_facts facts;
    if (!records_keep_holds(impl))
        return false;
    bool fits = kept_facts_of(impl, &facts) && kept_files_fit(impl, &facts) && kept_fields_fit(impl, &facts);
    if (fits) {
        impl->kept->checked = calloc((size_t)facts.head->n_samples / 64 + 1, sizeof *impl->kept->checked);
        fits = impl->kept->checked && kept_join(impl, &facts);
    }
    if (!fits) {
        records_keep_drop(impl);
        free((void *)impl->kept->checked);
        impl->kept->checked = NULL;
        return false;
    }
    kept_take_all(ds, &facts);
    return true;
}

/* ---- giving ---- */

static bool kept_files_are_same(const records_impl *impl)
{
    ty_file_id now;
    for (int i = 0; i < impl->n_files; i++) {
        const ty_file_id *then = &impl->file[i].bytes.id;
        if (!ty_file_id_of(impl->file[i].file->path, &now) || now.device != then->device || now.inode != then->inode ||
            now.n_bytes != then->n_bytes || now.modified_ns != then->modified_ns || now.changed_ns != then->changed_ns)
            return false;
    }
    return true;
}

static void kept_put_head(const ty_dataset *ds, kept_head *out)
{
    const records_impl *impl = ds->impl;
    memset(out, 0, sizeof *out);
    out->n_files = impl->n_files;
    out->n_fields = impl->n_fields;
    out->n_samples = ds->n_samples;
    out->n_bad = ds->bad.n;
    out->index_base = impl->index_base;
    out->width = impl->width;
    out->count = impl->count;
    out->work = ds->work ? atomic_load_explicit(ds->work, memory_order_relaxed) : 0;
    out->seen = impl->seen;
    snprintf(out->first_bad, sizeof out->first_bad, "%s", ds->bad.first);
}

static void kept_put_field(const records_field *f, const ty_field_info *info, uint64_t n_seen, kept_field *out)
{
    memset(out, 0, sizeof *out);
    out->type = info->type;
    out->is_settled = f->is_settled;
    out->stored = f->stored;
    out->min = info->min;
    out->max = info->max;
    out->min_sample = info->min_sample;
    out->max_sample = info->max_sample;
    out->n_missing = info->n_missing;
    out->n_not_finite = info->n_not_finite;
    out->first_missing = info->first_missing;
    out->first_not_finite = info->first_not_finite;
    out->n_seen = n_seen;
}

static int kept_put_facts(const ty_dataset *ds, ty_buf *facts, ty_buf *seen)
{
    const records_impl *impl = ds->impl;
    kept_head head;
    kept_field field;
    kept_put_head(ds, &head);
    ty_buf_add(facts, &head, sizeof head);
    for (int i = 0; i < impl->n_files; i++)
        ty_buf_add(facts, &(kept_file){impl->file[i].n, impl->file[i].bytes.n}, sizeof(kept_file));
    for (int i = 0; i < impl->n_fields; i++) {
        size_t before = seen->len;
        if (kept_learns(&impl->field[i]) && ty_map_write_seen(impl->field[i].declared.map, seen) < 0)
            return -1;
        kept_put_field(&impl->field[i], &ds->field[i], seen->len - before, &field);
        ty_buf_add(facts, &field, sizeof field);
    }
    return facts->failed ? -1 : 0;
}

static ty_keep_part kept_part(const ty_keep_piece *piece)
{
    return (ty_keep_part){piece, 1};
}

static void kept_write(ty_dataset *ds, const ty_keep *keep, const ty_keep_part *part, const char *folder)
{
    const records_kept *k = ((const records_impl *)ds->impl)->kept;
    ty_error err = {0};
    int64_t n = ty_keep_bytes(part);
    if (n > (keep->max_bytes > 0 ? keep->max_bytes : TY_ENTRIES_MAX_BYTES)) {
        ds->kept.too_big = n;
        return;
    }
    if (ty_file_mkdirs(ty_arena_printf(&ds->arena, "%s/" TY_ENTRIES_DATA, folder), 0700, &err) < 0 ||
        ty_keep_write(k->path, part, &err) < 0) {
        ty_log_warning("data", "the index of the data is not kept for the next run: %s", err.message);
        return;
    }
    ds->kept.n_bytes = n;
    ty_entries_trim(folder, strrchr(k->path, '/') + 1, keep->max_bytes);
}

static void kept_give(ty_dataset *ds, const ty_keep *keep, ty_keep_piece *places)
{
    const records_impl *impl = ds->impl;
    ty_buf facts, seen;
    ty_buf_init(&facts, TY_KEEP_MAX_KEY);
    ty_buf_init(&seen, KEPT_MAX_SEEN);
    for (int i = 0; i < impl->n_files; i++)
        places[i] = (ty_keep_piece){impl->file[i].at, (size_t)impl->file[i].n * sizeof *impl->file[i].at};
    if (kept_put_facts(ds, &facts, &seen) == 0) {
        const ty_keep_piece key = {impl->kept->key.data, impl->kept->key.len}, fact = {facts.data, facts.len};
        const ty_keep_piece told = {impl->kept->told.data, impl->kept->told.len}, saw = {seen.data, seen.len};
        const ty_keep_part part[TY_KEEP_PARTS] = {[TY_KEEP_KEY] = kept_part(&key),
                                                  [TY_KEEP_FACTS] = kept_part(&fact),
                                                  [TY_KEEP_TOLD] = kept_part(&told),
                                                  [TY_KEEP_SEEN] = kept_part(&saw),
                                                  [TY_KEEP_PLACES] = {places, impl->n_files}};
        kept_write(ds, keep, part, kept_folder(&ds->arena, keep->folders, 0));
    }
    ty_buf_fini(&facts);
    ty_buf_fini(&seen);
}

void records_keep_give(ty_dataset *ds, const ty_data_source *src, int64_t start_ns)
{
    const records_impl *impl = ds->impl;
    const records_kept *k = impl->kept;
    if (!k || !k->path || k->is_young || src->keep.is_read_only ||
        ty_clock_ns() - start_ns < src->keep.least_us * 1000 || (!k->is_replaced && ty_file_exists(k->path)) ||
        !kept_files_are_same(impl))
        return;
    ty_keep_piece *places = calloc((size_t)impl->n_files + 1, sizeof *places);
    if (places)
        kept_give(ds, &src->keep, places);
    free(places);
}

/* ---- records decoded first ---- */

bool records_keep_is_checked(const records_impl *impl, int64_t sample)
{
    if (!impl->kept || !impl->kept->checked)
        return true;
    uint64_t word = atomic_load_explicit(&impl->kept->checked[sample / 64], memory_order_relaxed);
    return word >> (sample % 64) & 1;
}

void records_keep_note(const records_impl *impl, int64_t sample)
{
    if (impl->kept && impl->kept->checked)
        atomic_fetch_or_explicit(&impl->kept->checked[sample / 64], UINT64_C(1) << (sample % 64), memory_order_relaxed);
}

int records_keep_refuse(const records_impl *impl, ty_error *err)
{
    if (impl->kept && impl->kept->path)
        unlink(impl->kept->path);
    return ty_error_detail(err, "all records were right when the data were opened before: the file has changed since, "
                                "and its times do not say so; the next run looks at all of them again");
}
