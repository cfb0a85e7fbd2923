/* winograd_grid.h - the tiles of a convolution by Winograd's algorithm, and the layout of what they are transformed to.
 * Shared by native_winograd.c and native_winograd_dw.c. */
#ifndef TY_TARGET_CPU_WINOGRAD_GRID_H
#define TY_TARGET_CPU_WINOGRAD_GRID_H

#include "compiler/target/cpu/convolution.h"
#include "compiler/target/cpu/library.h"
#include "compiler/target/cpu/panel.h"
#include "compiler/target/cpu/winograd.h"

enum { TY_WINOGRAD_LINE = 16 }; /* floats of a cache line */

/* A channels-last convolution of `in` to `out`; tiles are those of the result, image by image, row by row. */
typedef struct ty_winograd_grid {
    const ty_panel_kernels *panels;
    const ty_winograd_kernels *kernels;
    ty_dtype in_type, out_type; /* TY_F32 or TY_BF16 */
    float *zeros;               /* what lies outside: as many as a position has channels */
    int64_t images, in_h, in_w, in_c, out_h, out_w, out_c;
    int64_t lo_h, lo_w; /* padding in front */
    int64_t tiles_h, tiles_w, tiles;
} ty_winograd_grid;

/* Of a convolution with attr of x to y; turned: of its gradient, from y to x. Fails with UNSUPPORTED if it is none for
 * Winograd's algorithm, of other types, or not marked for it, or if strict determinism asks for plain sums. */
int ty_winograd_grid_init(ty_winograd_grid *g, const ty_panel_kernels *panels, const ty_library_shape *shape,
                          const ty_type *x, const ty_type *w, const ty_type *y, bool turned, ty_error *err);
void ty_winograd_grid_free(ty_winograd_grid *g);
/* Two operations a product of a tile's point, which are a quarter of the definition's. */
double ty_winograd_flops(const ty_winograd_grid *g);

/* "winograd:avx512" and the shapes: convolution.h. */
void ty_winograd_text(const ty_winograd_grid *g, const ty_attr *attr, const ty_type *x, const ty_type *w,
                      char out[TY_CONVOLUTION_TEXT]);

/* Fails with UNSUPPORTED where this machine is quicker directly: with bfloat16, if it multiplies tiles of it (AMX). */
int ty_winograd_expect_pays(const ty_library_shape *shape, ty_error *err);

/* Transforms n tiles from `first` on: tile t of them goes to place->to + t * row_step. patches: of x, those that lie
 * below the tiles; tiles: of y. */
void ty_winograd_patches(const ty_winograd_grid *g, const void *x, int64_t first, int64_t n,
                         const ty_winograd_place *place, int64_t row_step);
void ty_winograd_tiles(const ty_winograd_grid *g, const void *y, int64_t first, int64_t n,
                       const ty_winograd_place *place, int64_t row_step);
/* Writes n tiles of y from `first` on, of the `channels` channels from y's on: tile t lies at from + t * row_step. */
void ty_winograd_results(const ty_winograd_grid *g, void *y, int64_t first, int64_t n, int64_t channels,
                         const float *from, int64_t step, int64_t row_step);

/* The calls on some of panel.h's kernels, not the best ones alone. turned: the gradient of x. */
int ty_winograd_prepare(const ty_panel_kernels *panels, const ty_library_shape *s, bool turned, ty_library_call *out,
                        ty_error *err);
int ty_winograd_prepare_dw(const ty_panel_kernels *panels, const ty_library_shape *s, ty_library_call *out,
                           ty_error *err);

/* Whole cache lines for so many floats, an odd number of lines: such rows fall into different sets of a cache. */
int64_t ty_winograd_odd(int64_t floats);

#endif
