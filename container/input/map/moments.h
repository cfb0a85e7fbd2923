/* moments.h - what normalising, filling and cutting into buckets has to know of numbers, learnt in one pass. Private to
 * this folder.
 *
 * Values and their squares are added up in pairs of doubles (Dekker, "A floating-point technique for extending the
 * available precision", 1971): 106 bits, so that mean and deviation have no cancellation that the values did not have
 * before, and come out as the same doubles in whatever order, and on however many ranks, they were added. Quantiles are
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

/* hi + lo, of which hi is what the sum rounds to. */
typedef struct map_pair {
    double hi, lo;
} map_pair;

/* Zeroed: nothing seen; keeps says whether values are kept. */
typedef struct map_moments {
    int64_t n;
    map_pair sum, squares; /* of the values, of each times itself */
    double min, max;
    bool keeps;
    map_kept *kept;              /* on the heap; sorted by map_moments_sort */
    int64_t n_kept, room, limit; /* limit: of n_kept; at least 1 */
    uint64_t threshold;          /* values whose hash is above it are not kept; 0: all are */
} map_moments;

int map_moments_see(map_moments *m, double v, uint64_t number, ty_error *err);
int map_moments_join(map_moments *m, const map_moments *other, ty_error *err);
double map_moments_mean(const map_moments *m); /* 0 of none */
double map_moments_deviation(const map_moments *m);
/* Of kept values: */
void map_moments_sort(map_moments *m);
double map_moments_quantile(const map_moments *m, double q); /* linear between neighbours, as numpy.quantile */
double map_moments_most_frequent(const map_moments *m);      /* of several the smallest */
void map_moments_drop(map_moments *m);                       /* frees what is kept */

#endif
