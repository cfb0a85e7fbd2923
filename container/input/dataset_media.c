/* dataset_media.c - folders of pictures or sounds, and lists of them.
 *
 * A sample is a file. Opening looks at the headers of all of them; where means are wanted of the data, or bad pictures
 * are to be left out, it decodes all of them once, on all cores. Reading opens a file, decodes it and forgets it:
 * memory is that of one picture a reading thread, however many there are.
 */
#include "base/crew.h"
#include "container/input/bytes.h"
#include "container/input/convert.h"
#include "container/input/format.h"
#include "container/input/listed.h"
#include "container/input/map/map.h"
#include "container/input/media.h"
#include "container/input/mixing.h"
#include "container/input/transform.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEDIA_BLOCK = 256, MEDIA_MAX_THREADS = 16 }; /* samples of a job of the first walk */

#define MEDIA_MAX_FILE ((size_t)1 << 30)

/* A field is the picture or sound, or its label. */
typedef struct media_field {
    ty_field declared;
    ty_media media; /* settled; none: the label */
    ty_map *map;    /* of the label; NULL: numbers of a list as they are */
} media_field;

typedef struct media_impl {
    ty_listed list;
    const char *usual; /* "image", "audio": what the field is that declares nothing */
    const char *noun;  /* "picture", "sound" */
    media_field *field;
    int64_t *sample; /* [n_samples] which of the list it is: bad ones are left out */
    bool no_map;
    int mixed; /* field whose pictures are mixed; -1: none */
} media_impl;

/* One reading thread's. */
typedef struct media_look {
    ty_media_reader *reader; /* [n_fields] */
    float *other;            /* a row, for mixing */
    size_t file_bytes;       /* of the largest file that was in memory */
} media_look;

static int media_open_file(const media_impl *impl, int64_t at, bool whole, ty_bytes *out, ty_error *err)
{
    ty_bytes_options options = {.no_map = whole, .max_inflated_bytes = MEDIA_MAX_FILE};
    if (ty_bytes_open(impl->list.path[at], &options, out, err) < 0)
        return -1;
    if (out->n <= MEDIA_MAX_FILE)
        return 0;
    ty_error_set(err, TY_E_LIMIT, "the %s takes %zu bytes, expected at most %zu", impl->noun, out->n, MEDIA_MAX_FILE);
    ty_bytes_close(out);
    return -1;
}

/* A list's line stands in front of the file that it names. */
static int media_at(const media_impl *impl, int64_t at, ty_error *err)
{
    if (impl->list.lst == NULL)
        return ty_error_at(err, "%s", impl->list.path[at]);
    return ty_error_at(err, "%s:%lld: %s", impl->list.lst, (long long)impl->list.line[at], impl->list.path[at]);
}

static int media_look_init(media_look *look, const ty_dataset *ds, ty_error *err)
{
    const media_impl *impl = ds->impl;
    look->other = NULL;
    look->file_bytes = 0;
    look->reader = calloc((size_t)ds->n_fields, sizeof *look->reader);
    if (look->reader == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory to read %ss", impl->noun);
    for (int i = 0; i < ds->n_fields; i++)
        ty_media_reader_init(&look->reader[i], &impl->field[i].media);
    return 0;
}

static void media_look_fini(media_look *look, const ty_dataset *ds)
{
    size_t work = look->file_bytes;
    for (int i = 0; look->reader != NULL && i < ds->n_fields; i++) {
        work += ty_media_reader_bytes(&look->reader[i]);
        ty_media_reader_fini(&look->reader[i]);
    }
    ty_work_raise(ds->work, work);
    free(look->reader);
    free(look->other);
}

/* ---- the walk ---- */

/* A job's part of the list. */
typedef struct media_walk {
    ty_dataset *ds;
    bool deep;
    int64_t first, n;
    ty_image_sums *sums, *one; /* [n_fields]: of the part, of a picture */
    uint8_t *bad;              /* [list.n] */
} media_walk;

static int media_check(const media_walk *w, media_look *look, int64_t at, ty_error *err)
{
    const ty_dataset *ds = w->ds;
    const media_impl *impl = ds->impl;
    ty_bytes bytes;
    size_t work = 0;
    int rc = media_open_file(impl, at, w->deep || impl->no_map, &bytes, err);
    if (rc < 0)
        return media_at(impl, at, err);
    memset(w->one, 0, (size_t)ds->n_fields * sizeof *w->one);
    for (int i = 0; rc == 0 && i < ds->n_fields; i++) {
        const ty_media *media = &impl->field[i].media;
        if (!ty_media_is(media))
            continue;
        size_t one = 0;
        rc = ty_media_look(media, bytes.data, bytes.n, &one, err);
        work += one;
        if (rc == 0 && w->deep)
            rc = ty_media_see(&look->reader[i], bytes.data, bytes.n, &w->one[i], err);
        if (rc < 0)
            ty_error_wrap(err, "field \"%s\"", ds->field[i].name);
    }
    if (rc == 0)
        ty_work_raise(ds->work, work + bytes.n);
    ty_bytes_close(&bytes);
    return rc < 0 ? media_at(impl, at, err) : 0;
}

static void media_run(const ty_job *job)
{
    media_walk *w = job->to;
    media_look look;
    bool ok = media_look_init(&look, w->ds, NULL) == 0;
    for (int64_t at = w->first; at < w->first + w->n; at++) {
        w->bad[at] = !ok || media_check(w, &look, at, NULL) < 0;
        for (int i = 0; i < w->ds->n_fields && !w->bad[at]; i++)
            ty_image_sums_add(&w->sums[i], &w->one[i]);
    }
    media_look_fini(&look, w->ds);
}

/* Those that are bad once more, in order, for what is wrong with them. */
static int media_leave_out(media_walk *w, media_impl *impl, ty_error *err)
{
    ty_dataset *ds = w->ds;
    media_look look;
    int rc = media_look_init(&look, ds, err);
    for (int64_t at = 0; rc == 0 && at < impl->list.n; at++) {
        if (w->bad[at] && media_check(w, &look, at, err) < 0)
            rc = ty_bad_leave_out(&ds->bad, err);
        else
            impl->sample[ds->n_samples++] = at;
    }
    media_look_fini(&look, ds);
    return rc;
}

static int media_threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MEDIA_MAX_THREADS ? MEDIA_MAX_THREADS : (int)n;
}

static int media_take_means(media_impl *impl, const ty_data_source *src, ty_image_sums *sums, size_t n, ty_error *err)
{
    for (size_t i = 0; i < n; i++) {
        media_field *f = &impl->field[i];
        if (!ty_media_learns(&f->media))
            continue;
        if (!src->types_only && ty_image_sums_agree(&sums[i], &src->agree, err) < 0)
            return -1;
        ty_image_plan_take(f->media.image, &sums[i]);
        if (!src->types_only && f->declared.image)
            ty_image_plan_keep(f->declared.image, f->media.image);
    }
    return 0;
}

/* Looks at the first n of the list. */
static int media_walk_all(ty_dataset *ds, const ty_data_source *src, bool deep, int64_t n, ty_error *err)
{
    media_impl *impl = ds->impl;
    int64_t n_jobs = (n + MEDIA_BLOCK - 1) / MEDIA_BLOCK;
    size_t fields = (size_t)ds->n_fields;
    if (n_jobs > INT32_MAX)
        return ty_error_set(err, TY_E_LIMIT, "%lld %ss are too many", (long long)n, impl->noun);
    ty_job *jobs = calloc((size_t)n_jobs + 1, sizeof *jobs);
    media_walk *walks = calloc((size_t)n_jobs + 1, sizeof *walks);
    ty_image_sums *sums = calloc(((size_t)n_jobs + 1) * 2 * fields, sizeof *sums);
    uint8_t *bad = calloc((size_t)impl->list.n + 1, 1);
    ty_crew *crew = NULL;
    for (int64_t i = 0; jobs && walks && sums && bad && i <= n_jobs; i++) {
        int64_t first = i * MEDIA_BLOCK, left = n - first;
        walks[i] = (media_walk){ds,
                                deep,
                                first,
                                left < MEDIA_BLOCK ? left : MEDIA_BLOCK,
                                sums + (size_t)i * 2 * fields,
                                sums + ((size_t)i * 2 + 1) * fields,
                                bad};
        jobs[i] = (ty_job){.run = media_run, .to = &walks[i]};
    }
    int rc = -1;
    if (jobs && walks && sums && bad && (crew = ty_crew_start(jobs, (int)n_jobs, media_threads() - 1)) != NULL) {
        ty_crew_end(crew);
        rc = media_leave_out(&walks[n_jobs], impl, err);
        for (int64_t i = 0; rc == 0 && i < n_jobs; i++)
            for (size_t k = 0; k < fields; k++)
                ty_image_sums_add(&walks[n_jobs].sums[k], &walks[i].sums[k]);
        if (rc == 0)
            rc = media_take_means(impl, src, walks[n_jobs].sums, fields, err);
    } else {
        ty_error_set(err, TY_E_LIMIT, "no memory to look at %lld %ss", (long long)n, impl->noun);
    }
    free(jobs);
    free(walks);
    free(sums);
    free(bad);
    return rc;
}

/* ---- fields ---- */

/* The first that is one; what is wrong with it comes out in the walk. */
static int media_first(const media_impl *impl, const ty_media *media, ty_media_info *out, ty_error *err)
{
    int rc = -1;
    for (int64_t at = 0; rc < 0 && at < impl->list.n && at < 1000; at++) {
        ty_bytes bytes;
        ty_error one = {0};
        if (media_open_file(impl, at, impl->no_map, &bytes, &one) == 0) {
            rc = ty_media_probe(media, bytes.data, bytes.n, out, &one);
            ty_bytes_close(&bytes);
        }
        if (rc < 0 && at == 0) {
            media_at(impl, at, &one);
            *err = one;
        }
    }
    return rc;
}

/* By what `like` has settled, else by the first of the list; an empty list settles it too. */
static int media_settle_media(ty_dataset *ds, const ty_data_source *src, int i, ty_error *err)
{
    const media_impl *impl = ds->impl;
    media_field *f = &impl->field[i];
    ty_dtype dtype = f->declared.dtype_given ? f->declared.dtype : TY_F32;
    int like = src->like != NULL ? ty_dataset_find(src->like, ds->field[i].name) : -1;
    const ty_field_info *known = like >= 0 ? &src->like->field[like] : NULL;
    ty_media_info first;
    if (impl->list.n > 0 && media_first(impl, &f->media, &first, err) < 0)
        return -1;
    if (known && (f->media.audio ? known->audio != NULL : known->image != NULL))
        ty_media_take(&f->media, known->image, known->audio);
    else if (ty_media_settle(&f->media, impl->list.n > 0 ? &first : NULL, err) < 0)
        return ty_error_wrap(err, "field \"%s\"", ds->field[i].name);
    ds->field[i].image = f->media.image;
    ds->field[i].audio = f->media.audio;
    ds->field[i].type = ty_media_type(&f->media, dtype);
    ds->field[i].row_bytes = ty_type_bytes(&ds->field[i].type);
    return 0;
}

/* Labels of a list, as numbers. */
static int media_settle_numbers(ty_dataset *ds, media_field *f, ty_field_info *info, ty_error *err)
{
    const ty_listed *list = &((media_impl *)ds->impl)->list;
    int64_t n = list->n_numbers, low, high;
    bool whole = list->is_whole && f->declared.scale == 1.0 && f->declared.offset == floor(f->declared.offset);
    ty_dtype dtype = f->declared.dtype_given ? f->declared.dtype : whole && n == 1 ? TY_I64 : TY_F32;
    info->type = f->declared.shape_given ? ty_type_make(dtype, f->declared.rank, f->declared.dim)
                                         : ty_type_make(dtype, n > 1, &n);
    if (ty_type_elems(&info->type) != n)
        return ty_error_set(err, TY_E_SHAPE, "field \"%s\": a line of the list has %lld labels, its shape %lld",
                            info->name, (long long)n, (long long)ty_type_elems(&info->type));
    info->row_bytes = ty_type_bytes(&info->type);
    info->is_integer = ty_dtype_is_integer(dtype);
    ty_integer_range(dtype, &low, &high);
    for (int64_t i = 0; info->is_integer && i < ds->n_samples * n; i++) {
        int64_t at = ((media_impl *)ds->impl)->sample[i / n];
        double v = list->number[at * n + i % n] * f->declared.scale + f->declared.offset;
        if (v != floor(v) || v < (double)low || v > (double)high) {
            ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": %.17g is no %s", info->name, v, ty_dtype_text(dtype));
            return media_at(ds->impl, at, err);
        }
        if (info->min_sample < 0 || v < (double)info->min)
            info->min = (int64_t)v, info->min_sample = i / n;
        if (info->max_sample < 0 || v > (double)info->max)
            info->max = (int64_t)v, info->max_sample = i / n;
    }
    return 0;
}

static void media_cells(const ty_listed *list, int64_t at, ty_text *text, ty_cells *out)
{
    if (list->lst != NULL) {
        *out = (ty_cells){.kind = TY_CELLS_NUMBERS, .n = list->n_numbers};
        out->u.number = list->number + at * list->n_numbers;
        return;
    }
    *text = (ty_text){list->label[at], strlen(list->label[at])};
    *out = (ty_cells){.kind = TY_CELLS_TEXTS, .n = 1, .u.text = text};
}

static int media_settle_map(ty_dataset *ds, const ty_data_source *src, media_field *f, ty_field_info *info,
                            ty_error *err)
{
    const media_impl *impl = ds->impl;
    ty_text text;
    ty_cells cells;
    bool learns = !ty_map_is_settled(f->map);
    for (int64_t i = 0; i < ds->n_samples && learns; i++) {
        media_cells(&impl->list, impl->sample[i], &text, &cells);
        if (ty_map_see(f->map, &cells, err) < 0)
            return media_at(impl, impl->sample[i], err);
    }
    if (learns && (ty_agree_map(&src->agree, f->map, err) < 0 || ty_map_settle(f->map, err) < 0))
        return -1;
    if (ty_map_type(f->map, impl->list.lst ? impl->list.n_numbers : 1, f->declared.dtype_given, f->declared.dtype,
                    f->declared.shape_given ? f->declared.rank : -1, f->declared.dim, &info->type, err) < 0)
        return -1;
    info->row_bytes = ty_type_bytes(&info->type);
    void *row = malloc(info->row_bytes + 1);
    int rc = row ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for a label");
    for (int64_t i = 0; rc == 0 && i < ds->n_samples; i++) { /* a class that the training data do not have */
        media_cells(&impl->list, impl->sample[i], &text, &cells);
        if ((rc = ty_map_put(f->map, &cells, &info->type, row, err)) < 0)
            media_at(impl, impl->sample[i], err);
    }
    free(row);
    ty_map_info(f->map, info);
    return rc;
}

static int media_settle_label(ty_dataset *ds, const ty_data_source *src, int i, ty_error *err)
{
    media_impl *impl = ds->impl;
    media_field *f = &impl->field[i];
    ty_field_info *info = &ds->field[i];
    for (int64_t k = 0; impl->list.lst == NULL && k < impl->list.n; k++)
        if (impl->list.label[k][0] == 0) {
            ty_error_set(err, TY_E_DATA, "field \"%s\": the %s lies in no folder, whose name would be its class",
                         info->name, impl->noun);
            ty_error_help(err, "put %ss of a class into a folder of their own, or give a list, NAME.lst", impl->noun);
            return media_at(impl, k, err);
        }
    if (f->map != NULL)
        return media_settle_map(ds, src, f, info, err);
    return media_settle_numbers(ds, f, info, err);
}

/* Folders without declared classes are numbered in the order of their names, and stay what they were for `like`. */
static int media_take_map(ty_dataset *ds, const ty_data_source *src, int i, ty_error *err)
{
    media_impl *impl = ds->impl;
    media_field *f = &impl->field[i];
    f->map = f->declared.map;
    if (f->map != NULL || impl->list.lst != NULL)
        return 0;
    int like = src->like != NULL ? ty_dataset_find(src->like, ds->field[i].name) : -1;
    if (like >= 0 && strcmp(src->like->format, ds->format) == 0) {
        f->map = ((const media_impl *)src->like->impl)->field[like].map;
        return 0;
    }
    ty_map_spec spec = {.field = ds->field[i].name, .way = TY_MAP_CLASSES, .scale = 1.0};
    return ty_map_new(&spec, &ds->arena, &f->map, err);
}

static int media_take_field(ty_dataset *ds, const ty_data_source *src, int i, ty_error *err)
{
    const media_impl *impl = ds->impl;
    media_field *f = &impl->field[i];
    const char *name = src->fields[i].member ? src->fields[i].member : src->fields[i].name;
    f->declared = src->fields[i];
    f->declared.name = ds->field[i].name;
    f->media = ty_media_declared(&f->declared, name, impl->usual, &ds->arena);
    if (!ty_media_is(&f->media))
        return media_take_map(ds, src, i, err);
    return ty_media_check(&f->media, f->declared.dtype_given ? f->declared.dtype : TY_F32, err);
}

static int media_settle(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    media_impl *impl = ds->impl;
    bool deep = src->skip_bad;
    for (int i = 0; i < ds->n_fields; i++) {
        const ty_media *media = &impl->field[i].media;
        if (media_take_field(ds, src, i, err) < 0 || (ty_media_is(media) && media_settle_media(ds, src, i, err) < 0))
            return -1;
        deep = deep || ty_media_learns(media) || ty_media_decodes_all(media);
    }
    /* An object store fetches a file to show its header: that is left to reading. */
    int64_t n = src->types_only ? 0 : src->no_map && !deep ? 1 : impl->list.n;
    if (media_walk_all(ds, src, deep && !src->types_only, n < impl->list.n ? n : impl->list.n, err) < 0)
        return -1;
    for (int i = 0; i < ds->n_fields; i++)
        if (!ty_media_is(&impl->field[i].media) && media_settle_label(ds, src, i, err) < 0)
            return -1;
    return ty_mixing_find(ds->field, ds->n_fields, &((media_impl *)ds->impl)->mixed, err);
}

/* ---- reading ---- */

static int media_put_media(const ty_dataset *ds, media_look *look, int field, int64_t sample, const ty_chance *chance,
                           void *out, ty_error *err)
{
    const media_impl *impl = ds->impl;
    int64_t at = impl->sample[sample];
    ty_bytes bytes;
    if (media_open_file(impl, at, true, &bytes, err) < 0)
        return media_at(impl, at, err);
    look->file_bytes = bytes.n > look->file_bytes ? bytes.n : look->file_bytes;
    int rc = ty_media_read(&look->reader[field], bytes.data, bytes.n, chance, (ty_dtype)ds->field[field].type.dtype,
                           out, err);
    ty_bytes_close(&bytes);
    if (rc < 0)
        ty_error_wrap(err, "field \"%s\"", ds->field[field].name);
    return rc < 0 ? media_at(impl, at, err) : 0;
}

static int media_put_label(const ty_dataset *ds, int field, int64_t sample, void *out, ty_error *err)
{
    const media_impl *impl = ds->impl;
    const media_field *f = &impl->field[field];
    const ty_field_info *info = &ds->field[field];
    int64_t at = impl->sample[sample];
    ty_text text;
    ty_cells cells;
    media_cells(&impl->list, at, &text, &cells);
    if (f->map != NULL)
        return ty_map_put(f->map, &cells, &info->type, out, err) < 0 ? media_at(impl, at, err) : 0;
    ty_convert_scaled(TY_F64, cells.u.number, (ty_dtype)info->type.dtype, out, cells.n, f->declared.scale,
                      f->declared.offset);
    return 0;
}

static int media_put(const ty_dataset *ds, media_look *look, int field, int64_t sample, const ty_chance *chance,
                     void *out, ty_error *err)
{
    const media_impl *impl = ds->impl;
    if (!ty_media_is(&impl->field[field].media))
        return media_put_label(ds, field, sample, out, err);
    return media_put_media(ds, look, field, sample, chance, out, err);
}

/* The other picture of the mix, augmented as it would be by itself, and its label. */
static int media_mix(const ty_dataset *ds, media_look *look, const ty_chance *chance, void *const *rows, ty_error *err)
{
    const media_impl *impl = ds->impl;
    ty_image_mixing m;
    ty_chance other = *chance;
    ty_image_plan_mixing(impl->field[impl->mixed].media.image, chance, ds->n_samples, &m);
    if (m.share >= 1.0)
        return 0;
    if (look->other == NULL && ty_mixing_room(ds->field, ds->n_fields, &look->other, err) < 0)
        return -1;
    other.sample = m.other;
    for (int i = 0; i < ds->n_fields; i++) {
        if (!ty_mixing_takes(&ds->field[i]))
            continue;
        if (media_put(ds, look, i, m.other, &other, look->other, err) < 0)
            return -1;
        ty_mixing_blend(&ds->field[i], &m, rows[i], look->other);
    }
    return 0;
}

static int media_read(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err)
{
    media_look look;
    int rc = media_look_init(&look, ds, err);
    for (int64_t i = 0; rc == 0 && i < n; i++)
        rc = media_put(ds, &look, field, samples[i], &(ty_chance){.sample = samples[i]},
                       (char *)out + (size_t)i * ds->field[field].row_bytes, err);
    media_look_fini(&look, ds);
    return rc;
}

static int media_read_all(const ty_dataset *ds, const ty_pick *pick, void *const *out, ty_error *err)
{
    const media_impl *impl = ds->impl;
    media_look look;
    void **rows = calloc((size_t)ds->n_fields, sizeof *rows);
    int rc = media_look_init(&look, ds, err);
    if (rc == 0 && rows == NULL)
        rc = ty_error_set(err, TY_E_LIMIT, "no memory to read %ss", impl->noun);
    for (int64_t i = 0; rc == 0 && i < pick->n; i++) {
        ty_chance chance = {pick->seed, pick->epoch, pick->sample[i], pick->augment};
        for (int k = 0; rc == 0 && k < ds->n_fields; k++) {
            rows[k] = (char *)out[k] + (size_t)i * ds->field[k].row_bytes;
            rc = media_put(ds, &look, k, chance.sample, &chance, rows[k], err);
        }
        if (rc == 0 && impl->mixed >= 0 && pick->augment)
            rc = media_mix(ds, &look, &chance, rows, err);
    }
    media_look_fini(&look, ds);
    free(rows);
    return rc;
}

static int media_encoded(const ty_dataset *ds, int field, int64_t sample, ty_encoded_see *see, void *ctx, ty_error *err)
{
    const media_impl *impl = ds->impl;
    int64_t at = impl->sample[sample];
    ty_bytes bytes;
    (void)field;
    if (media_open_file(impl, at, impl->no_map, &bytes, err) < 0)
        return media_at(impl, at, err);
    int rc = see(ctx, bytes.data, bytes.n, err);
    ty_bytes_close(&bytes);
    return rc < 0 ? media_at(impl, at, err) : 0;
}

static void media_place(const ty_dataset *ds, int field, int64_t sample, char *out, size_t n)
{
    const media_impl *impl = ds->impl;
    int64_t at = impl->sample[sample];
    (void)field;
    if (impl->list.lst != NULL)
        snprintf(out, n, "%s:%lld: %s", impl->list.lst, (long long)impl->list.line[at], impl->list.path[at]);
    else
        snprintf(out, n, "%s", impl->list.path[at]);
}

static void media_close(ty_dataset *ds)
{
    (void)ds; /* everything lies in its arena */
}

static const ty_dataset_ops media_ops = {
    .read = media_read,
    .read_all = media_read_all,
    .place = media_place,
    .encoded = media_encoded,
    .close = media_close,
};

static int media_open(ty_dataset *ds, const ty_data_source *src, const char *usual, const char *noun, ty_error *err)
{
    media_impl *impl = TY_NEW(&ds->arena, media_impl);
    impl->usual = usual;
    impl->noun = noun;
    ds->impl = impl;
    ds->ops = &media_ops;
    ds->is_partial = src->types_only;
    impl->no_map = src->no_map;
    impl->mixed = -1;
    impl->field = TY_NEW_ARRAY(&ds->arena, media_field, src->n_fields);
    if (ty_listed_make(ds->files, ds->n_files, &ds->arena, &impl->list, err) < 0)
        return -1;
    impl->sample = TY_NEW_ARRAY(&ds->arena, int64_t, impl->list.n + 1);
    ds->stats.n_files = ds->n_files;
    for (int i = 0; i < ds->n_files; i++)
        ds->stats.file_bytes += ds->files[i].n_bytes;
    return media_settle(ds, src, err);
}

int ty_dataset_open_images(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return media_open(ds, src, "image", "picture", err);
}

int ty_dataset_open_audio(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return media_open(ds, src, "audio", "sound", err);
}
