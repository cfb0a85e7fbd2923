/* sliding.h - windows that slide over the spatial axes of [N, C, spatial..]: what convolution and pooling share.
 *
 * Output position o covers the input positions o * step - lo + k * dil, k < size, that are inside [0, in). One and two
 * spatial axes are seen as three with leading 1s, so that one loop nest serves all.
 *
 * With TY_SLIDING_LAST in an op's flags x and y (and an index) are [N, spatial.., C] instead; weights [O, C, spatial..]
 * stay as they are unless TY_SLIDING_WEIGHTS_LAST makes them [O, spatial.., C].
 * Positions in a spatial plane, as the index of a maximum holds them, do not depend on the layout.
 */
#ifndef TY_COMPILER_OPS_SLIDING_H
#define TY_COMPILER_OPS_SLIDING_H

#include "compiler/ops/op.h"

#define TY_SLIDING_AXES 3
/* In attr->flags. */
#define TY_SLIDING_LAST         1u /* channels-last */
#define TY_SLIDING_WINOGRAD     2u /* of a convolution: Winograd's tiles may compute it (compiler/passes/winograd.c) */
#define TY_SLIDING_WEIGHTS_LAST 4u /* of a convolution: its weights are channels-last too */

typedef struct ty_sliding {
    int64_t in[TY_SLIDING_AXES], out[TY_SLIDING_AXES], size[TY_SLIDING_AXES];
    int64_t step[TY_SLIDING_AXES], dil[TY_SLIDING_AXES], lo[TY_SLIDING_AXES];
    int64_t in_elems, out_elems, size_elems; /* of one plane, one window */
} ty_sliding;

/* The type of x or y as [N, C, spatial..], and of that the type in the layout that attr names. */
ty_type ty_sliding_first(const ty_attr *attr, const ty_type *t);
ty_type ty_sliding_laid(const ty_attr *attr, const ty_type *first);
/* What the weights are to those functions: attributes by which they lie as x would. */
ty_attr ty_sliding_of_weights(const ty_attr *attr);

/* For reference functions: *first becomes t seen as [N, C, spatial..], t itself or a copy; leave frees the copy, after
 * writing it into `to` unless that is NULL. */
int ty_sliding_enter(const ty_attr *attr, const ty_ref *t, ty_ref *first, ty_error *err);
void ty_sliding_leave(const ty_attr *attr, ty_ref *first, ty_ref *to);

/* attr->n is 1 to 3. */
int ty_sliding_expect_axes(const ty_attr *attr, ty_error *err);
/* Checks attr's n, step, dil, lo, hi and `size` (attr->n extents) against x and fills *s. */
int ty_sliding_make(ty_sliding *s, const ty_attr *attr, const ty_type *x, const int64_t *size, ty_error *err);
/* 0 if every window holds at least one element of the input, as a maximum needs. */
int ty_sliding_expect_inside(const ty_sliding *s, ty_error *err);
/* [n, c, out..] in the layout of attr. */
int ty_sliding_result(const ty_sliding *s, const ty_attr *attr, ty_dtype dtype, int64_t n, int64_t c, ty_type *res,
                      ty_error *err);

/* For tap k of a window along an axis: the output positions [*first, *end) at which it is inside the input; the input
 * position of *first is *at. */
void ty_sliding_span(const ty_sliding *s, int axis, int64_t k, int64_t *first, int64_t *end, int64_t *at);

#endif
