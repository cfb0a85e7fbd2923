/* own_places.h - for kernels written by hand (own.h): the numbers of an index sorted with their places.
 *
 * Elements are a row of the table in the upper half, its place in the index in the lower one; equal rows keep the order
 * of their places. A number outside the table becomes the table's length, behind all others.
 *
 *     ty_cuda_places x = ty_cuda_places_of(o, index, n, table);
 *     o->scratch(o->ctx, ty_cuda_places_bytes(&x) + ...);
 *     ty_cuda_places_sort(&x);                                 the first n longs of the scratch memory
 */
#ifndef TY_TARGET_CUDA_OWN_PLACES_H
#define TY_TARGET_CUDA_OWN_PLACES_H

#include "compiler/target/cuda/own.h"

enum { TY_PLACES_TILE = 2048, TY_PLACES_THREADS = 256 };

typedef struct ty_cuda_places {
    const ty_cuda_own *o;
    int index;               /* operand: i32 or i64 */
    const char *type;        /* its type in memory */
    int other;               /* operand or result of n longs, for elements half sorted; or TY_CUDA_OWN_SCRATCH */
    int64_t n, table, tiles; /* n, table: less than 2^31 */
} ty_cuda_places;

/* `other` is behind what else there is in the scratch memory. */
ty_cuda_places ty_cuda_places_of(const ty_cuda_own *o, int index, int64_t n, int64_t table);
/* Of the scratch memory: n longs sorted, then counts, then the other n longs if they are there. A multiple of 8. */
int64_t ty_cuda_places_bytes(const ty_cuda_places *x);
void ty_cuda_places_sort(const ty_cuda_places *x);

/* ---- for what goes on with them ---- */

/* Text that makes of s[thread], of 256 ints, the sum up to and with the thread. */
extern const char ty_cuda_places_running[];
/* ints behind the sorted elements: counts[0 ... n-1] become sums of those before each, counts[n] that of all. */
void ty_cuda_places_scan(const ty_cuda_places *x, int64_t n);

/* ---- own_scatter.c: scatter (operands: x 0, index 1, update 2; result 3) by sorting ---- */

/* Whether it is done so: sums of floats, an index that is worth it. */
bool ty_cuda_own_adds_rows(ty_dtype dtype, ty_combine how, int64_t outer, int64_t n_index, int64_t table);
/* Adds the update's rows to those of the result, which is there already. */
void ty_cuda_own_add_rows(const ty_cuda_own *o, ty_dtype dtype, int64_t n_index, int64_t table, int64_t inner);

#endif
