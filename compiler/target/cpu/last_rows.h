/* last_rows.h - rows of channels-last images as a thread keeps them: float32, zeros in front and behind, and channels
 * filled up to whole vectors with zeros, so that a loop along a row has no edges. Shared by native_depth_dw.c and
 * native_slim.c.
 */
#ifndef TY_TARGET_CPU_LAST_ROWS_H
#define TY_TARGET_CPU_LAST_ROWS_H

#include "compiler/ir/graph.h"

enum { TY_LAST_LANES = 16 /* channels are filled up to a multiple */, TY_LAST_MOST_ROWS = 64 };

typedef struct ty_last_rows {
    bool is_half; /* the images are bfloat16 */
    int64_t in_h, in_w, channels;
    int64_t wide;       /* channels, filled up */
    int64_t lo;         /* positions in front of a row */
    int64_t row_floats; /* of a row with what lies outside */
    int64_t rows;       /* kept at a time: those below a window, and in between; TY_LAST_MOST_ROWS at most */
} ty_last_rows;

/* What a thread keeps: floats of rows * row_floats, and which rows they are. */
typedef struct ty_last_own {
    float *rows;
    int64_t has[TY_LAST_MOST_ROWS];
} ty_last_own;

/* Of images x under a convolution of two axes to rows of out_w, with windows of this size. */
ty_last_rows ty_last_rows_make(const ty_attr *attr, const ty_type *x, const int64_t *size, int64_t out_w);
/* n positions of number `first` of images with so many channels, filled up. */
void ty_last_positions(const ty_last_rows *r, const void *x, int64_t first, int64_t n, float *to);
/* Nothing is kept yet. */
void ty_last_forget(const ty_last_rows *r, ty_last_own *own);
/* Row y, which there is, of an image. */
const float *ty_last_find_row(const ty_last_rows *r, const void *x, int64_t image, int64_t y, ty_last_own *own);

#endif
