/* lanes.h - what neighbouring points of a kernel's fastest loop have in common: points first, first + 1, ... of a
 * variable, as many as the width, where first is a multiple of the width. They are what a thread of a GPU takes at a
 * time: it reads and writes them by wide instructions where they lie side by side, and computes once what is the same
 * for all of them.
 *
 *     i % 64 with a width of 8: side by side, since no group of eight crosses a multiple of 64;  i / 64: the same
 */
#ifndef TY_COMPILER_KERNEL_LANES_H
#define TY_COMPILER_KERNEL_LANES_H

#include "compiler/kernel/kernel.h"

typedef struct ty_lanes {
    const ty_kernel *k;
    int var;       /* the loop variable */
    int64_t width; /* a power of two that divides its extent */
    uint8_t *same; /* by instruction: the same at all points; from ty_lanes_make */
    bool anywhere; /* first may be any number: the points are counted from where `begin` is aligned, not the variable */
    ty_ix
        begin; /* anywhere: the only address of which that is known, for elements of as many bytes as fill an access */
} ty_lanes;

/* An index at point first + n is that at first + step * n; that at first is a multiple of unit (0: is 0). */
typedef struct ty_lane_ix {
    bool known;
    int64_t step, unit;
} ty_lane_ix;

/* arena: of `same`. */
ty_lanes ty_lanes_make_anywhere(const ty_kernel *k, int var, int64_t width, ty_ix begin, ty_arena *arena);
ty_lanes ty_lanes_make(const ty_kernel *k, int var, int64_t width, ty_arena *arena);
/* Of ix - less. */
ty_lane_ix ty_lanes_ix(const ty_lanes *l, ty_ix ix, int64_t less);
/* Whether the variable is taken apart in an address (i / 64), which yet goes up by the same *step from point to point.
 * less: taken off the address. */
bool ty_lanes_step(const ty_lanes *l, ty_ix addr, int64_t less, int64_t *step);
/* Bytes that one access may have at an address, at most 16, where the buffer begins at a multiple of `align` bytes and
 * `less` is taken off; 0 where points do not lie side by side, or an access would be no wider than an element. */
int ty_lanes_access(const ty_lanes *l, ty_ix addr, uint32_t guard, int64_t less, ty_dtype dtype, int align);

#endif
