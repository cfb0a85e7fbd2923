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

/* For a picture of width x height, by a settled plan. */
void image_draw_move(const ty_image_plan *p, const ty_chance *draw, int width, int height, image_move *out);

#endif
