/* buckets.h - which gradient lies where.
 *
 * Greedy, from the last parameter to the first, since backward ends there: a bucket takes parameters of one type until
 * the limit; the first has a smaller limit, so that something travels early. A parameter above the limit is a bucket.
 */
#ifndef TY_DIST_API_BUCKETS_H
#define TY_DIST_API_BUCKETS_H

#include "base/tensor.h"
#include "dist/api/fault.h"

#include <stddef.h>
#include <stdint.h>

#define TY_BUCKET_SLOT_BYTES  64
#define TY_BUCKET_FIRST_BYTES (256 << 10)
#define TY_BUCKET_BYTES       (4 << 20)

typedef struct ty_bucket_slot {
    int bucket;
    ty_dtype dtype;
    size_t offset; /* in the arena */
    int64_t elems;
} ty_bucket_slot;

typedef struct ty_bucket {
    ty_dtype dtype;
    size_t offset, n_bytes; /* whole slots: with the gaps between them */
    int first, last;        /* parameters, first <= last */
} ty_bucket;

/* slots[n] and buckets[n] (room for the worst case) are the caller's. Returns the number of buckets; *n_bytes is the
 * arena's size. */
int ty_buckets_lay(const trainyard_parameter *parameters, int n, int64_t limit_bytes, ty_bucket_slot *slots,
                   ty_bucket *buckets, size_t *n_bytes);

#endif
