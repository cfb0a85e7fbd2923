/* reduce.h - elements of several ranks made one, in the order of the ranks. */
#ifndef TY_DIST_COMM_REDUCE_H
#define TY_DIST_COMM_REDUCE_H

#include "base/tensor.h"
#include "dist/comm/comm.h"

/* out[i] = ((in[0][i] op in[1][i]) op in[2][i]) ... for i of n elements. 16-bit floats are added up in float32 and
 * rounded once, or not at all where out_dtype is TY_F32; else out_dtype is dtype. An average is divided by `divisor` in
 * the end (before the rounding). `out` may be one of `in` where types are equal. */
void ty_reduce_ranks(ty_dtype dtype, ty_reduce reduce, const void *const *in, int n_in, int divisor, ty_dtype out_dtype,
                     void *out, int64_t n);
/* x[i] = x[i] / divisor, for what an engine has added up. Not for bool. */
void ty_reduce_divide(ty_dtype dtype, void *x, int64_t n, int divisor);
ty_reduce
ty_reduce_of_bools(ty_reduce reduce); /* the one of bytes 0 and 1 that means it: max for "or", min for "and" */
bool ty_reduce_allowed(ty_dtype dtype, ty_reduce reduce);

#endif
