/* profile.c - see profile.h. */
#include "container/input/profile.h"

#include "container/input/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROFILE_BLOCK_BYTES = 1 << 20 };

/* A field's numbers of some samples, as doubles. */
typedef struct profile_block {
    void *stored;
    double *v;
    int64_t rows; /* samples that fit */
} profile_block;

static int block_init(profile_block *b, const ty_field_info *info, ty_error *err)
{
    int64_t elems = ty_type_elems(&info->type);
    int64_t row = (int64_t)info->row_bytes > elems * 8 ? (int64_t)info->row_bytes : elems * 8;
    b->rows = row > 0 && PROFILE_BLOCK_BYTES / row > 1 ? PROFILE_BLOCK_BYTES / row : 1;
    b->stored = malloc((size_t)b->rows * info->row_bytes + 1);
    b->v = malloc((size_t)(b->rows * elems) * sizeof *b->v + 1);
    return b->stored && b->v ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory to look at field \"%s\"", info->name);
}

static void block_fini(profile_block *b)
{
    free(b->stored);
    free(b->v);
}

/* Samples from `first` on; returns how many numbers there are, or -1. */
static int64_t block_read(profile_block *b, const ty_dataset *ds, int field, int64_t first, int64_t n, ty_error *err)
{
    const ty_type *type = &ds->field[field].type;
    int64_t samples[256], elems = ty_type_elems(type) * n;
    char *to = b->stored;
    for (int64_t at = 0; at < n; at += 256) {
        int64_t some = n - at < 256 ? n - at : 256;
        for (int64_t i = 0; i < some; i++)
            samples[i] = first + at + i;
        if (ty_dataset_read(ds, field, samples, some, to + (size_t)at * ds->field[field].row_bytes, err) < 0)
            return -1;
    }
    ty_convert_to_f64((ty_dtype)type->dtype, b->stored, b->v, elems);
    return elems;
}

typedef void profile_take(ty_field_profile *p, const double *v, int64_t n);

static int profile_walk(const ty_dataset *ds, int field, profile_take *take, ty_field_profile *p, ty_error *err)
{
    profile_block b = {0};
    int rc = block_init(&b, &ds->field[field], err);
    for (int64_t at = 0; rc == 0 && at < ds->n_samples; at += b.rows) {
        int64_t n = ds->n_samples - at < b.rows ? ds->n_samples - at : b.rows,
                elems = block_read(&b, ds, field, at, n, err);
        if (elems < 0)
            rc = -1;
        else
            take(p, b.v, elems);
    }
    block_fini(&b);
    return rc;
}

/* Mean and sum of squares by Welford's recurrence (Knuth, The Art of Computer Programming 2, 4.2.2): no digits are lost
 * to a mean far from zero. */
static void profile_moments(ty_field_profile *p, const double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) {
            if (p->n_not_finite++ == 0)
                p->first_not_finite = p->n; /* a number as yet, see ty_data_range */
            continue;
        }
        p->min = p->n == 0 || v[i] < p->min ? v[i] : p->min;
        p->max = p->n == 0 || v[i] > p->max ? v[i] : p->max;
        p->n++;
        p->n_zero += v[i] == 0;
        p->is_whole = p->is_whole && v[i] == floor(v[i]);
        double apart = v[i] - p->mean;
        p->mean += apart / (double)p->n;
        p->deviation += apart * (v[i] - p->mean); /* the sum of squares, until the end */
    }
}

static void profile_count(ty_field_profile *p, const double *v, int64_t n)
{
    double scale = p->max > p->min ? TY_PROFILE_BINS / (p->max - p->min) : 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            continue;
        int bin = (int)((v[i] - p->min) * scale);
        p->bin[bin < TY_PROFILE_BINS ? bin : TY_PROFILE_BINS - 1]++;
    }
}

/* Pearson's coefficient of two fields with a number a sample, over samples where both are finite. */
static int profile_correlate(const ty_dataset *ds, int a, int b, const ty_field_profile *p, double *out, ty_error *err)
{
    profile_block x = {0}, y = {0};
    double xy = 0, xx = 0, yy = 0;
    int rc = block_init(&x, &ds->field[a], err) < 0 || block_init(&y, &ds->field[b], err) < 0 ? -1 : 0;
    int64_t rows = x.rows < y.rows ? x.rows : y.rows;
    for (int64_t at = 0; rc == 0 && at < ds->n_samples; at += rows) {
        int64_t n = ds->n_samples - at < rows ? ds->n_samples - at : rows;
        if (block_read(&x, ds, a, at, n, err) < 0 || block_read(&y, ds, b, at, n, err) < 0)
            rc = -1;
        for (int64_t i = 0; rc == 0 && i < n; i++) {
            double u = x.v[i] - p[a].mean, v = y.v[i] - p[b].mean;
            if (isfinite(u) && isfinite(v))
                xy += u * v, xx += u * u, yy += v * v;
        }
    }
    block_fini(&x);
    block_fini(&y);
    *out = xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : (double)NAN;
    return rc;
}

static void profile_finish(ty_field_profile *p)
{
    p->deviation = p->n > 0 ? sqrt(p->deviation / (double)p->n) : 0;
    p->is_constant = p->n > 0 && p->min == p->max;
}

void ty_profile_numbers(const double *v, int64_t n, ty_field_profile *out)
{
    *out = (ty_field_profile){.is_whole = true, .correlation = (double)NAN};
    profile_moments(out, v, n);
    profile_count(out, v, n);
    profile_finish(out);
}

int ty_data_range(const ty_dataset *ds, int field, ty_field_profile *p, ty_error *err)
{
    *p = (ty_field_profile){.is_whole = true, .first_not_finite = -1, .correlation = (double)NAN};
    if (profile_walk(ds, field, profile_moments, p, err) < 0)
        return -1;
    if (p->n_not_finite > 0)
        p->first_not_finite /= ty_type_elems(&ds->field[field].type);
    profile_finish(p);
    return 0;
}

int ty_data_profile(const ty_dataset *ds, int target, ty_field_profile *out, ty_error *err)
{
    for (int i = 0; i < ds->n_fields; i++)
        if (ty_data_range(ds, i, &out[i], err) < 0 || profile_walk(ds, i, profile_count, &out[i], err) < 0)
            return -1;
    for (int i = 0; i < ds->n_fields; i++) {
        bool both = target >= 0 && i != target && ty_type_elems(&ds->field[i].type) == 1 &&
                    ty_type_elems(&ds->field[target].type) == 1;
        if (both && profile_correlate(ds, i, target, out, &out[i].correlation, err) < 0)
            return -1;
    }
    return 0;
}
