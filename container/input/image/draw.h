/* draw.h - what is drawn of a picture, and where its pixels go. Private to container/input/image/. */
#ifndef TY_CONTAINER_INPUT_IMAGE_DRAW_H
#define TY_CONTAINER_INPUT_IMAGE_DRAW_H

#include "container/input/image/plan.h"

/* A part of the picture becomes the rectangle [x, x + width) by [y, y + height) of the row's pixels; the rest is zeros.
 */
typedef struct image_move {
    ty_image_part part; /* of the full-sized picture */
    int x, y, width, height;
    bool flip_across, flip_down;
} image_move;

/* What becomes of the pixels of a row. */
typedef struct image_change {
    double jitter[TY_N_JITTERS]; /* factors, and turns of the hue; 1 and 0: as they are */
    int order[TY_N_JITTERS];     /* in which they come */
    bool is_grey;
    double degrees;
    int x, y, width, height; /* of the rectangle that becomes 0; width 0: none does */
} image_change;

/* By a settled plan. */
void image_draw_change(const ty_image_plan *p, const ty_chance *draw, image_change *out);
/* For a picture of width x height, by a settled plan. */
void image_draw_move(const ty_image_plan *p, const ty_chance *draw, int width, int height, image_move *out);

#endif
