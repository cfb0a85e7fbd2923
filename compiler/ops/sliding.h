/* sliding.h - windows that slide over the spatial axes of [N, C, spatial..]: what convolution and pooling share.
 *
 * Output position o covers the input positions o * step - lo + k * dil, k < size, that are inside [0, in). One and two
 * spatial axes are seen as three with leading 1s, so that one loop nest serves all.
 */
#ifndef TY_COMPILER_OPS_SLIDING_H
#define TY_COMPILER_OPS_SLIDING_H

#include "compiler/ops/op.h"

#define TY_SLIDING_AXES 3

typedef struct ty_sliding {
    int64_t in[TY_SLIDING_AXES], out[TY_SLIDING_AXES], size[TY_SLIDING_AXES];
    int64_t step[TY_SLIDING_AXES], dil[TY_SLIDING_AXES], lo[TY_SLIDING_AXES];
    int64_t in_elems, out_elems, size_elems; /* of one plane, one window */
} ty_sliding;

/* attr->n is 1 to 3. */
int ty_sliding_expect_axes(const ty_attr *attr, ty_error *err);
/* Checks attr's n, step, dil, lo, hi and `size` (attr->n extents) against x [N, C, spatial..] and fills *s. */
int ty_sliding_make(ty_sliding *s, const ty_attr *attr, const ty_type *x, const int64_t *size, ty_error *err);
/* 0 if every window holds at least one element of the input, as a maximum needs. */
int ty_sliding_expect_inside(const ty_sliding *s, ty_error *err);
/* [n, c, out..] */
int ty_sliding_result(const ty_sliding *s, const ty_attr *attr, ty_dtype dtype, int64_t n, int64_t c, ty_type *res,
                      ty_error *err);

/* For tap k of a window along an axis: the output positions [*first, *end) at which it is inside the input; the input
 * position of *first is *at. */
void ty_sliding_span(const ty_sliding *s, int axis, int64_t k, int64_t *first, int64_t *end, int64_t *at);

#endif
