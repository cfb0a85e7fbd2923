#include "dist/api/buckets.h"

#include <stdbool.h>

static size_t whole_slots(size_t n)
{
    return (n + TY_BUCKET_SLOT_BYTES - 1) / TY_BUCKET_SLOT_BYTES * TY_BUCKET_SLOT_BYTES;
}

static int64_t elems_of(const trainyard_parameter *p)
{
    int64_t n = 1;
    for (int i = 0; i < p->ndim; i++)
        n *= p->shape[i];
    return n;
}

int ty_buckets_lay(const trainyard_parameter *parameters, int n, int64_t limit_bytes, ty_bucket_slot *slots,
                   ty_bucket *buckets, size_t *n_bytes)
{
    size_t limit = limit_bytes > 0 ? (size_t)limit_bytes : TY_BUCKET_BYTES, at = 0;
    int n_buckets = 0;
    for (int i = n - 1; i >= 0; i--) {
        ty_dtype dtype = (ty_dtype)parameters[i].dtype;
        int64_t elems = elems_of(&parameters[i]);
        size_t bytes = whole_slots((size_t)elems * ty_dtype_bytes(dtype));
        ty_bucket *bucket = n_buckets ? &buckets[n_buckets - 1] : NULL;
        size_t allowed = n_buckets == 1 && limit > TY_BUCKET_FIRST_BYTES ? TY_BUCKET_FIRST_BYTES : limit;
        if (!bucket || bucket->dtype != dtype || bucket->n_bytes + bytes > allowed) {
            bucket = &buckets[n_buckets++];
            *bucket = (ty_bucket){dtype, at, 0, i, i};
        }
        slots[i] = (ty_bucket_slot){n_buckets - 1, dtype, at, elems};
        bucket->first = i;
        bucket->n_bytes += bytes;
        at += bytes;
    }
    *n_bytes = at;
    return n_buckets;
}
