/* moments.h - what normalising, filling and cutting into buckets has to know of numbers, learnt in one pass. Private to
 * this folder.
 *
 * Mean and squares are Welford's recurrence, joined as Chan, Golub and LeVeque do ("Updating formulae and a pairwise
 * algorithm for computing sample variances", 1979): no cancellation however far the mean lies from 0. Quantiles are
 * exact up to `limit` values; of more a sample is kept, each value by a hash of its number, whose threshold halves
 * when there is no more room: which values stay does not depend on the order of joining.
 */
#ifndef TY_CONTAINER_INPUT_MAP_MOMENTS_H
#define TY_CONTAINER_INPUT_MAP_MOMENTS_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { MAP_KEPT = 1 << 22 }; /* of all cells of a field together */

typedef struct map_kept {
    double v;
    uint64_t hash;
} map_kept;

/* Zeroed: nothing seen; keeps says whether values are kept. */
typedef struct map_moments {
    int64_t n;
    double mean, squares; /* sum of squared distances from the mean */
    double min, max;
    bool keeps;
    map_kept *kept;              /* on the heap; sorted by map_moments_sort */
    int64_t n_kept, room, limit; /* limit: of n_kept; at least 1 */
    uint64_t threshold;          /* values whose hash is above it are not kept; 0: all are */
} map_moments;

int map_moments_see(map_moments *m, double v, uint64_t number, ty_error *err);
int map_moments_join(map_moments *m, const map_moments *other, ty_error *err);
double map_moments_deviation(const map_moments *m);
/* Of kept values: */
void map_moments_sort(map_moments *m);
double map_moments_quantile(const map_moments *m, double q); /* linear between neighbours, as numpy.quantile */
double map_moments_most_frequent(const map_moments *m);      /* of several the smallest */
void map_moments_drop(map_moments *m);                       /* frees what is kept */

#endif
