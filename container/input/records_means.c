/* records_means.c - mean and deviation of pictures in records, on all cores.
 *
 * The walk that opens a data set reads headers alone. Where means are wanted of the data every picture is decoded once
 * behind it, in blocks that threads share. Sums are exact, so that neither blocks nor threads change the result.
 */
#include "base/crew.h"
#include "container/input/records.h"

#include <stdlib.h>

enum { MEANS_BLOCK = 256, MEANS_MAX_THREADS = 16 };

/* A job's samples. */
typedef struct means_walk {
    const ty_dataset *ds;
    int64_t first, n;
    int64_t bad;         /* the first sample that is; -1: none */
    ty_image_sums *sums; /* [n_fields] */
} means_walk;

static int means_see(const means_walk *w, records_look *look, int64_t sample, ty_error *err)
{
    return records_find(w->ds->impl, look, sample, err) < 0 ? -1 : records_sum_pictures(look, w->sums, err);
}

static void means_run(const ty_job *job)
{
    means_walk *w = job->to;
    records_look look;
    if (records_look_init(&look, w->ds->impl, -1, NULL) < 0)
        w->bad = w->first;
    for (int64_t i = w->first; i < w->first + w->n && w->bad < 0; i++)
        w->bad = means_see(w, &look, i, NULL) < 0 ? i : -1;
    records_look_fini(&look);
}

/* What is wrong with a sample, by its place. */
static int means_refuse(const means_walk *w, ty_error *err)
{
    char place[TY_ERROR_PLACE_BYTES];
    records_look look;
    int rc = records_look_init(&look, w->ds->impl, -1, err);
    if (rc == 0)
        rc = means_see(w, &look, w->bad, err);
    records_look_fini(&look);
    if (rc == 0)
        return ty_error_set(err, TY_E_LIMIT, "no memory to look at all pictures");
    w->ds->ops->place(w->ds, 0, w->bad, place, sizeof place);
    return ty_error_at(err, "%s", place);
}

static int means_add(const records_impl *impl, means_walk *walks, int64_t n, ty_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        if (walks[i].bad >= 0)
            return means_refuse(&walks[i], err);
        for (int k = 0; k < impl->n_fields; k++)
            ty_image_sums_add(&impl->field[k].sums, &walks[i].sums[k]);
    }
    return 0;
}

int records_walk_means(ty_dataset *ds, ty_error *err)
{
    const records_impl *impl = ds->impl;
    int64_t n = (ds->n_samples + MEANS_BLOCK - 1) / MEANS_BLOCK;
    int threads = ty_crew_processors() < MEANS_MAX_THREADS ? ty_crew_processors() : MEANS_MAX_THREADS, rc = -1;
    if (n > INT32_MAX)
        return ty_error_set(err, TY_E_LIMIT, "%lld pictures are too many", (long long)ds->n_samples);
    ty_job *jobs = calloc((size_t)n + 1, sizeof *jobs);
    means_walk *walks = calloc((size_t)n + 1, sizeof *walks);
    ty_image_sums *sums = calloc(((size_t)n + 1) * (size_t)impl->n_fields, sizeof *sums);
    for (int64_t i = 0; jobs && walks && sums && i < n; i++) {
        int64_t first = i * MEANS_BLOCK, left = ds->n_samples - first;
        walks[i] =
            (means_walk){ds, first, left < MEANS_BLOCK ? left : MEANS_BLOCK, -1, sums + (size_t)(i * impl->n_fields)};
        jobs[i] = (ty_job){.run = means_run, .to = &walks[i]};
    }
    ty_crew *crew = jobs && walks && sums ? ty_crew_start(jobs, (int)n, threads - 1) : NULL;
    if (crew) {
        ty_crew_end(crew);
        rc = means_add(impl, walks, n, err);
    } else
        ty_error_set(err, TY_E_LIMIT, "no memory to look at %lld pictures", (long long)ds->n_samples);
    free(jobs);
    free(walks);
    free(sums);
    return rc;
}
