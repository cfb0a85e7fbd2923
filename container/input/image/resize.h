/* resize.h - pictures of another size, by the filters that trainers use, antialiased.
 *
 * The value at position x of the output, between 0 and `out`, is the weighted mean of input pixels around
 *
 *     centre = from + (x + 0.5) s,    s = (to - from) / out
 *     weight of pixel i = filter((i + 0.5 - centre) / max(s, 1)),  divided by the sum of all weights
 *
 * first along rows, rounded to 8 bits, then along columns. Weights are rounded to 22 bits behind the point. This is
 * Pillow's Image.resize(size, filter, box) (src/libImaging/Resample.c), to the last bit; with antialiasing, since a
 * picture made smaller has a filter as much wider. The filters:
 *
 *   bilinear   1 - |x|                                              for |x| < 1
 *   bicubic    (a + 2)|x|^3 - (a + 3)x^2 + 1,  a = -0.5             for |x| < 1
 *              a|x|^3 - 5a x^2 + 8a|x| - 4a                         for |x| < 2
 *   lanczos    sinc(x) sinc(x / 3)                                  for |x| < 3
 *   box        1                                                    for -0.5 < x <= 0.5
 *   nearest    no mean: the pixel at floor(centre)
 */
#ifndef TY_CONTAINER_INPUT_IMAGE_RESIZE_H
#define TY_CONTAINER_INPUT_IMAGE_RESIZE_H

#include "container/input/image/image.h"

typedef enum ty_image_filter {
    TY_IMAGE_BILINEAR,
    TY_IMAGE_BICUBIC,
    TY_IMAGE_LANCZOS,
    TY_IMAGE_BOX,
    TY_IMAGE_NEAREST
} ty_image_filter;

/* A part of a picture, in its pixels: [x0, x1) by [y0, y1), not empty and inside it. */
typedef struct ty_image_part {
    double x0, y0, x1, y1;
} ty_image_part;

/* What resizing keeps from call to call, so that it allocates only when something is bigger than before. Zeroed at
 * first; one thread's. */
typedef struct ty_image_scratch {
    void *memory;
    size_t bytes;
} ty_image_scratch;

/* `out` is made: width x height, channels of `in`. They are two pictures. */
int ty_image_resize(const ty_image *in, ty_image_part part, int width, int height, ty_image_filter filter,
                    ty_image_scratch *scratch, ty_image *out, ty_error *err);
/* Memory of the scratch for that, of a whole picture of in_width x in_height, at most. */
size_t ty_image_resize_bytes(int in_width, int in_height, int channels, int width, int height, ty_image_filter filter);
void ty_image_scratch_fini(ty_image_scratch *scratch); /* a zeroed one is fine */

#endif
