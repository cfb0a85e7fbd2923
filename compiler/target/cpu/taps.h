/* taps.h - convolutions of channels-last float32 tensors, a tap of the window at a time: each is a product of the
 * positions of a row that it lies over with its matrix of channels. Shared by native_taps.c and native_taps_dw.c.
 *
 * Dilated windows reach far beyond an image's edges, and strided ones meet a gradient's positions in turns: libraries
 * write all windows out then, zeros and all, and multiply once. Here what lies outside is left out, and nothing is
 * copied but weights.
 */
#ifndef TY_TARGET_CPU_TAPS_H
#define TY_TARGET_CPU_TAPS_H

#include "compiler/ops/sliding.h"
#include "compiler/target/cpu/convolution.h"
#include "compiler/target/cpu/library.h"
#include "compiler/target/cpu/panel.h"

/* Positions at a time: a few tiles of rows, whose numbers stay in the first cache. */
enum { TY_TAPS_CHUNK = 96 };

typedef struct ty_taps {
    const ty_panel_kernels *kernels;
    ty_sliding s;
    int64_t images, in_c, out_c;
    bool weights_last;
    int threads;
    char text[TY_CONVOLUTION_TEXT];
} ty_taps;

/* What the op of this shape is about; x, w and y are its operands and its result. UNSUPPORTED for channels-first
 * tensors, groups, other types than float32, and channels that are too few to fill a panel's half. */
int ty_taps_make(ty_taps *t, const ty_library_shape *shape, const ty_type *x, const ty_type *w, const ty_type *y,
                 ty_error *err);
/* The element of the weights for tap number `tap` of the window. */
static inline int64_t ty_taps_weight(const ty_taps *t, int64_t out, int64_t in, int64_t tap)
{
    return t->weights_last ? (out * t->s.size_elems + tap) * t->in_c + in
                           : (out * t->in_c + in) * t->s.size_elems + tap;
}
/* The position of x that tap k of an axis lies over at position `out` of y, -1 if it is outside. */
static inline int64_t ty_taps_in(const ty_taps *t, int axis, int64_t out, int64_t k)
{
    int64_t at = out * t->s.step[axis] - t->s.lo[axis] + k * t->s.dil[axis];
    return at >= 0 && at < t->s.in[axis] ? at : -1;
}

#endif
