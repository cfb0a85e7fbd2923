/* subset.c - see subset.h. Numbers of samples are looked up in a table; all else is the base's. */
#include "container/input/subset.h"

#include "base/pages.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct subset {
    ty_dataset *base;
    bool owns_base;
    uint32_t *sample; /* [n_samples], rising: numbers in the base */
    size_t bytes;
} subset;

/* ---- reading ---- */

static int64_t *subset_numbers(const ty_dataset *ds, const int64_t *samples, int64_t n, ty_error *err)
{
    const subset *s = ds->impl;
    int64_t *out = malloc((size_t)n * sizeof *out + 1);
    if (!out)
        ty_error_set(err, TY_E_LIMIT, "no memory for the numbers of %lld samples", (long long)n);
    for (int64_t i = 0; out && i < n; i++)
        out[i] = s->sample[samples[i]];
    return out;
}

static int subset_read(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err)
{
    const subset *s = ds->impl;
    int64_t *numbers = subset_numbers(ds, samples, n, err);
    int rc = numbers ? ty_dataset_read(s->base, field, numbers, n, out, err) : -1;
    free(numbers);
    return rc;
}

static int subset_read_all(const ty_dataset *ds, const ty_pick *pick, void *const *out, ty_error *err)
{
    const subset *s = ds->impl;
    ty_pick of_base = *pick;
    int64_t *numbers = subset_numbers(ds, pick->sample, pick->n, err);
    of_base.sample = numbers;
    int rc = numbers ? ty_dataset_read_all(s->base, &of_base, out, err) : -1;
    free(numbers);
    return rc;
}

static void subset_place(const ty_dataset *ds, int field, int64_t sample, char *out, size_t n)
{
    const subset *s = ds->impl;
    ty_dataset_place(s->base, field, s->sample[sample], out, n);
}

static int subset_encoded(const ty_dataset *ds, int field, int64_t sample, ty_encoded_see *see, void *ctx,
                          ty_error *err)
{
    const subset *s = ds->impl;
    return ty_dataset_encoded(s->base, field, s->sample[sample], see, ctx, err);
}

static void subset_close(ty_dataset *ds)
{
    subset *s = ds->impl;
    ty_pages_free(s->sample, s->bytes);
    if (s->owns_base)
        ty_dataset_close(s->base);
}

static const ty_dataset_ops subset_ops = {.read = subset_read,
                                          .read_all = subset_read_all,
                                          .place = subset_place,
                                          .encoded = subset_encoded,
                                          .close = subset_close};

/* ---- making ---- */

/* The place of a sample of the base; -1: it is in the other part. */
static int64_t subset_find(const subset *s, int64_t n, int64_t sample)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (s->sample[middle] < sample)
            low = middle + 1;
        else
            high = middle;
    }
    return sample >= 0 && low < n && s->sample[low] == sample ? low : -1;
}

/* Of the base's smallest and largest value what is in this part; the other one has the rest. */
static void subset_take_range(const subset *s, int64_t n, ty_field_info *f)
{
    int64_t least = subset_find(s, n, f->min_sample), most = subset_find(s, n, f->max_sample);
    if (least < 0)
        f->min = f->max;
    if (most < 0)
        f->max = least < 0 ? f->max : f->min;
    f->min_sample = least < 0 ? most : least;
    f->max_sample = most < 0 ? least : most;
}

static void subset_take_fields(ty_dataset *ds, const ty_dataset *base)
{
    const subset *s = ds->impl;
    ds->field = ty_arena_copy(&ds->arena, base->field, sizeof *base->field * (size_t)base->n_fields);
    for (int i = 0; i < ds->n_fields; i++) {
        ty_field_info *f = &ds->field[i];
        subset_take_range(s, ds->n_samples, f);
        f->first_missing = subset_find(s, ds->n_samples, f->first_missing);
        f->first_not_finite = subset_find(s, ds->n_samples, f->first_not_finite);
    }
}

/* With room for n numbers. */
static ty_dataset *subset_new(ty_dataset *base, int64_t n)
{
    ty_dataset *ds = calloc(1, sizeof *ds);
    if (!ds)
        return NULL;
    *ds = *base;
    ty_arena_init(&ds->arena);
    subset *s = TY_NEW(&ds->arena, subset);
    *s = (subset){.base = base, .bytes = (size_t)n * sizeof *s->sample};
    s->sample = ty_pages_new(s->bytes);
    ds->ops = &subset_ops;
    ds->impl = s;
    ds->n_samples = n;
    ds->transforms = NULL;
    ds->hides = NULL; /* the base does it */
    if (s->sample)
        return ds;
    ty_dataset_close(ds);
    return NULL;
}

/* is_split[i]: sample i goes to the part that is split off. */
static void subset_deal(ty_dataset *rest, ty_dataset *split, const bool *is_split, int64_t n)
{
    int64_t at[2] = {0, 0};
    uint32_t *to[2] = {((subset *)rest->impl)->sample, ((subset *)split->impl)->sample};
    for (int64_t i = 0; i < n; i++)
        to[is_split[i]][at[is_split[i]]++] = (uint32_t)i;
}

static int subset_draw(const ty_dataset *base, int64_t n_split, uint64_t seed, bool *is_split, ty_error *err)
{
    int64_t n = base->n_samples;
    if (base->settings != 0) { /* windows */
        memset(is_split + n - n_split, 1, (size_t)n_split);
        return 0;
    }
    size_t bytes = (size_t)n * sizeof(uint32_t);
    uint32_t *order = ty_pages_new(bytes);
    if (!order)
        return ty_error_set(err, TY_E_LIMIT, "no memory to draw from %lld samples", (long long)n);
    ty_rng_permutation(seed, TY_STREAM_SPLIT, 0, n, order);
    for (int64_t i = 0; i < n_split; i++)
        is_split[order[i]] = true;
    ty_pages_free(order, bytes);
    return 0;
}

static int subset_make(ty_dataset *base, const bool *is_split, int64_t n_split, ty_dataset **rest, ty_dataset **split,
                       ty_error *err)
{
    int64_t n = base->n_samples;
    *rest = subset_new(base, n - n_split);
    *split = *rest ? subset_new(base, n_split) : NULL;
    if (!*split) {
        ty_dataset_close(*rest);
        return ty_error_set(err, TY_E_LIMIT, "no memory to divide %lld samples", (long long)n);
    }
    subset_deal(*rest, *split, is_split, n);
    subset_take_fields(*rest, base);
    subset_take_fields(*split, base);
    (*split)->stats = (ty_data_stats){0}; /* all of it is counted once */
    (*split)->bad = (ty_bad){0};
    ((subset *)(*rest)->impl)->owns_base = true;
    return 0;
}

int64_t ty_split_samples(int64_t n, double share)
{
    int64_t n_split = llround(share * (double)n);
    return n_split < 1 ? 1 : n_split > n - 1 ? n - 1 : n_split;
}

int ty_dataset_split(ty_dataset *base, double share, uint64_t seed, ty_dataset **rest, ty_dataset **split,
                     ty_error *err)
{
    int64_t n = base->n_samples, n_split = ty_split_samples(n, share);
    if (n < 2)
        return ty_error_set(err, TY_E_DATA, "%lld samples cannot be divided", (long long)n);
    if (n > UINT32_MAX)
        return ty_error_set(err, TY_E_LIMIT, "%lld samples are too many to divide", (long long)n);
    bool *is_split = calloc((size_t)n, sizeof *is_split);
    if (!is_split)
        return ty_error_set(err, TY_E_LIMIT, "no memory to divide %lld samples", (long long)n);
    int rc = subset_draw(base, n_split, seed, is_split, err);
    if (rc == 0)
        rc = subset_make(base, is_split, n_split, rest, split, err);
    free(is_split);
    return rc;
}
