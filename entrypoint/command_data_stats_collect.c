/* command_data_stats_collect.c - distributions of fields, of the sizes of pictures and sounds, and counts of classes.
 */
#include "container/input/audio/audio.h"
#include "container/input/convert.h"
#include "container/input/image/image.h"
#include "entrypoint/command_data_stats.h"
#include "entrypoint/found.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STATS_MAX_CLASSES = 4096, STATS_MAX_FORMATS = 8, STATS_MAX_CHANNELS = 4, MEDIA_ROWS = 3 };

/* A field that follows the target so closely is perhaps made from it. */
#define STATS_LEAK 0.999

static const char *stats_odd(const ty_dataset *ds, const ty_field_profile *p, int i, ty_arena *a)
{
    const ty_field_info *f = &ds->field[i];
    if (ds->n_samples > 0 && p->n == 0)
        return "holds no number";
    if (f->n_missing > 0)
        return ty_arena_printf(a, "is missing in %.3g %% of the samples%s",
                               100.0 * (double)f->n_missing / (double)ds->n_samples,
                               p->is_constant ? ", and the same in all others" : "");
    if (p->is_constant)
        return "is the same in all samples";
    if (fabs(p->correlation) > STATS_LEAK)
        return ty_arena_printf(a, "follows the target (correlation %.4f): is it made from it?", p->correlation);
    return p->n_not_finite > 0 ? ty_arena_printf(a, "has %lld numbers that are not finite", (long long)p->n_not_finite)
                               : "";
}

/* ---- pictures and sounds ---- */

typedef struct media {
    double *size[MEDIA_ROWS]; /* of each sample */
    int64_t at;
    ty_stats_count format[STATS_MAX_FORMATS], channels[STATS_MAX_CHANNELS + 1];
    int n_formats;
} media;

static void media_count(media *m, const char *format, int channels)
{
    int k = 0;
    while (k < m->n_formats && strcmp(m->format[k].name, format) != 0)
        k++;
    if (k == m->n_formats && k < STATS_MAX_FORMATS)
        m->format[m->n_formats++].name = format;
    m->format[k < STATS_MAX_FORMATS ? k : STATS_MAX_FORMATS - 1].n++;
    m->channels[channels <= STATS_MAX_CHANNELS ? channels : 0].n++;
}

static int pictures_see(void *ctx, const uint8_t *bytes, size_t n, ty_error *err)
{
    media *m = ctx;
    ty_image_info info;
    if (ty_image_probe(bytes, n, &info, err) < 0)
        return -1;
    m->size[0][m->at] = info.width;
    m->size[1][m->at] = info.height;
    m->size[2][m->at] = (double)n;
    media_count(m, info.format, info.channels);
    return 0;
}

static int sounds_see(void *ctx, const uint8_t *bytes, size_t n, ty_error *err)
{
    media *m = ctx;
    ty_audio_info info;
    if (ty_audio_probe(bytes, n, &info, err) < 0)
        return -1;
    m->size[0][m->at] = (double)info.frames / info.rate;
    m->size[1][m->at] = info.rate;
    m->size[2][m->at] = (double)n;
    media_count(m, info.format, info.channels);
    return 0;
}

static const struct media_kind {
    const char *noun, *size[MEDIA_ROWS], *channels[STATS_MAX_CHANNELS + 1];
    ty_encoded_see *see;
} media_pictures = {"pictures",
                    {"width", "height", "bytes"},
                    {"other", "grey", "grey and alpha", "RGB", "RGB and alpha"},
                    pictures_see},
  media_sounds = {
      "sounds", {"seconds", "frames a second", "bytes"}, {"other", "one", "two", "three", "four"}, sounds_see};

static void stats_add_counts(ty_stats *s, const char *title, const ty_stats_count *all, int n)
{
    ty_stats_counts *c = &s->counts[s->n_counts++];
    *c = (ty_stats_counts){title, TY_NEW_ARRAY(s->a, ty_stats_count, n + 1), 0};
    for (int i = 0; i < n; i++)
        if (all[i].n > 0)
            c->count[c->n++] = all[i];
}

static int stats_collect_media(ty_stats *s, int at, const struct media_kind *kind, ty_error *err)
{
    const ty_dataset *ds = s->d->ds;
    const char *field = ds->field[at].name;
    media p = {.at = 0};
    double *all = malloc((size_t)(MEDIA_ROWS * ds->n_samples) * sizeof *all + 1);
    int rc =
        all ? 0
            : ty_error_set(err, TY_E_LIMIT, "no memory for the sizes of %lld %s", (long long)ds->n_samples, kind->noun);
    for (int k = 0; all && k < MEDIA_ROWS; k++)
        p.size[k] = all + k * ds->n_samples;
    for (int k = 0; k <= STATS_MAX_CHANNELS; k++)
        p.channels[k].name = kind->channels[k];
    for (; rc == 0 && p.at < ds->n_samples; p.at++)
        rc = ty_dataset_encoded(ds, at, p.at, kind->see, &p, err);
    for (int k = 0; rc == 0 && k < MEDIA_ROWS; k++) {
        ty_stats_row *row = &s->row[s->n_rows++];
        *row = (ty_stats_row){.name = ty_arena_printf(s->a, "%s (%s)", field, kind->size[k]), .odd = ""};
        ty_profile_numbers(p.size[k], ds->n_samples, &row->p);
    }
    free(all);
    if (rc < 0)
        return -1;
    stats_add_counts(s, ty_arena_printf(s->a, "formats of %s", field), p.format, p.n_formats);
    stats_add_counts(s, ty_arena_printf(s->a, "channels of %s", field), p.channels, STATS_MAX_CHANNELS + 1);
    return 0;
}

/* ---- classes ---- */

static int stats_more(const void *a, const void *b)
{
    const ty_stats_count *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp(x->name, y->name);
}

/* Whole numbers that are few, of a field that is called as targets are. */
static bool stats_is_class(const ty_dataset *ds, int i)
{
    const ty_field_info *f = &ds->field[i];
    return f->is_integer && f->min_sample >= 0 && f->min >= -1 && f->max - f->min < STATS_MAX_CLASSES &&
           ty_type_elems(&f->type) == 1 && ty_found_is_target(f->name);
}

static int stats_collect_classes(ty_stats *s, int i, ty_error *err)
{
    const ty_dataset *ds = s->d->ds;
    const ty_field_info *f = &ds->field[i];
    const ty_map *map = s->d->field[i].map;
    int n = (int)(f->max - f->min + 1);
    ty_stats_count *all = TY_NEW_ARRAY(s->a, ty_stats_count, n);
    uint64_t row;
    double v;
    for (int k = 0; k < n; k++) {
        const char *word = map ? ty_map_word(map, f->min + k) : NULL;
        all[k].name = word ? word : ty_arena_printf(s->a, "%lld", (long long)f->min + k);
    }
    for (int64_t at = 0; at < ds->n_samples; at++) {
        if (ty_dataset_read(ds, i, &at, 1, &row, err) < 0)
            return -1;
        ty_convert_to_f64((ty_dtype)f->type.dtype, &row, &v, 1);
        all[(int64_t)v - f->min].n++;
    }
    qsort(all, (size_t)n, sizeof *all, stats_more);
    stats_add_counts(s, ty_arena_printf(s->a, "classes of %s", f->name), all, n);
    return 0;
}

int ty_stats_collect(const ty_data_opened *d, int target, ty_arena *a, ty_stats *out, ty_error *err)
{
    const ty_dataset *ds = d->ds;
    ty_field_profile *p = TY_NEW_ARRAY(a, ty_field_profile, ds->n_fields);
    *out = (ty_stats){.d = d, .row = TY_NEW_ARRAY(a, ty_stats_row, ds->n_fields + 2 * MEDIA_ROWS), .a = a};
    out->picture = out->sound = -1;
    if (ty_data_profile(ds, target, p, err) < 0)
        return -1;
    for (int i = 0; i < ds->n_fields; i++) {
        out->row[out->n_rows++] =
            (ty_stats_row){ds->field[i].name, p[i], ds->field[i].n_missing, stats_odd(ds, &p[i], i, a)};
        if (ds->field[i].image && out->picture < 0 && ds->ops->encoded)
            out->picture = i;
        if (ds->field[i].audio && out->sound < 0 && ds->ops->encoded)
            out->sound = i;
    }
    if (out->picture >= 0 && stats_collect_media(out, out->picture, &media_pictures, err) < 0)
        return -1;
    if (out->sound >= 0 && stats_collect_media(out, out->sound, &media_sounds, err) < 0)
        return -1;
    for (int i = 0; i < ds->n_fields && out->n_counts < 8; i++)
        if (stats_is_class(ds, i) && stats_collect_classes(out, i, err) < 0)
            return -1;
    return 0;
}
