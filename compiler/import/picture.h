/* picture.h - operations on pictures that are no layers' own: colours, and reading at points between pixels. What the
 * importers of Keras and of TensorFlow share.
 *
 * Letters: B pictures, H rows, W columns, C channels; all pictures are floats [B, H, W, C]. Shapes are the caller's to
 * check.
 */
#ifndef TY_COMPILER_IMPORT_PICTURE_H
#define TY_COMPILER_IMPORT_PICTURE_H

#include "compiler/ir/graph.h"

/* ---- colours --------------------------------------------------------------------------------------------------- */

/* Of [.., 3]: red, green, blue from 0 to 1 as hue, saturation, value, and back. Of a gray pixel the hue is 0. Sources:
 * tensorflow/core/kernels/image/colorspace_op.h; A. R. Smith, Color gamut transform pairs, SIGGRAPH 1978. */
ty_val ty_picture_hsv(ty_graph *g, ty_val rgb);
ty_val ty_picture_rgb(ty_graph *g, ty_val hsv);
/* The three channels of [.., 3], each [.., 1], and together again. */
void ty_picture_apart(ty_graph *g, ty_val x, ty_val channel[3]);
ty_val ty_picture_together(ty_graph *g, const ty_val channel[3]);
/* [.., 1]: 0.2989 of red, 0.587 of green, 0.114 of blue (ITU-R BT.601). */
ty_val ty_picture_gray(ty_graph *g, ty_val rgb);
/* The hue is turned by `turns`, which broadcasts against [.., 1]. */
ty_val ty_picture_turn_hue(ty_graph *g, ty_val rgb, ty_val turns);
/* Contrast: (x - mean of its channel) by + mean. */
ty_val ty_picture_contrast(ty_graph *g, ty_val x, ty_val by);

/* ---- reading between pixels -------------------------------------------------------------------------------------- */

/* What is read outside. For abcd: dcba|abcd|dcba; abcd|abcd|abcd; a value; aaaa|abcd|dddd. */
typedef enum ty_picture_fill { TY_FILL_REFLECT, TY_FILL_WRAP, TY_FILL_CONSTANT, TY_FILL_NEAREST } ty_picture_fill;

typedef struct ty_picture_reader {
    ty_graph *g;
    ty_val x; /* [B, H, W, C] */
    ty_picture_fill fill;
    bool is_nearest; /* the nearest pixel; else between four, linearly */
    ty_val value;    /* TY_FILL_CONSTANT: a number; TY_NONE: 0 */
} ty_picture_reader;

/* The values [N, h, w, C] of pictures at points (x, y) [N, h, w], floats, in pixels from the middle of the first.
 * picture: which one each of the N reads, an integer [N]; TY_NONE: N = B, each its own. Source:
 * tensorflow/core/kernels/image/image_ops.h (ImageProjectiveTransformV3). */
ty_val ty_picture_read(const ty_picture_reader *r, ty_val picture, ty_val x, ty_val y);

/* The point (x, y) of the result is read at ((ax x + ay y + a1) / k, (bx x + by y + b1) / k), k = cx x + cy y + 1; each
 * [N, 1, 1]. cx, cy: TY_NONE where they are 0. */
typedef struct ty_picture_map {
    ty_val ax, ay, a1, bx, by, b1, cx, cy;
} ty_picture_map;

/* Pictures [B, height, width, C] that a map for each, or one for all, makes. */
ty_val ty_picture_project(const ty_picture_reader *r, const ty_picture_map *map, int64_t height, int64_t width);

#endif
