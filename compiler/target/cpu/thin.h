/* thin.h - convolutions whose x has few channels, as a network's first one has, channels-last, float32.
 *
 * A row of a window is contiguous in x, and the windows of a row of y are a fixed distance apart. With the rows of x
 * below it copied one behind the other, what lies outside too, number (position, tap) of the windows of a row of y is
 * rows[position * step + at[tap]], the left side of a product on the loops of panel.h. Shared by native_thin.c
 * (forward) and native_thin_dw.c (the gradient of the weights, whose left side is the same, turned).
 */
#ifndef TY_TARGET_CPU_THIN_H
#define TY_TARGET_CPU_THIN_H

#include "compiler/target/cpu/convolution.h"
#include "compiler/target/cpu/library.h"
#include "compiler/target/cpu/panel.h"

enum { TY_THIN_CHANNELS = 4 /* at most, of x */, TY_THIN_TAPS = 512 /* at most, of a window in all channels */ };

typedef struct ty_thin {
    const ty_panel_kernels *kernels;
    int64_t images, in_h, in_w, in_c, out_h, out_w, out_c;
    int64_t size[2], step[2], lo[2];
    int64_t row_floats;  /* of a row of x with what lies outside */
    int64_t rows_floats; /* of the rows below one of y, in whole cache lines */
    int64_t n_panels;    /* of filters */
    int64_t taps, at[TY_THIN_TAPS];
    int threads;
    char text[TY_CONVOLUTION_TEXT];
} ty_thin;

/* Whether a convolution of x by w to y is one: few channels, whole panels of filters, weights that lie channels-first.
 */
bool ty_thin_takes(const ty_attr *attr, const ty_type *x, const ty_type *w);
void ty_thin_init(ty_thin *t, const ty_attr *attr, const ty_type *x, const ty_type *w, const ty_type *y, int threads);
/* The rows of x below row `row` of y (of all images), one behind the other; zeros outside. */
void ty_thin_rows(const ty_thin *t, const float *x, int64_t row, float *to);
/* Floats in whole cache lines. */
int64_t ty_thin_lines(int64_t floats);

#endif
