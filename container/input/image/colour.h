/* colour.h - what varies in the samples of a picture, as torchvision's transforms do it with tensors of uint8: results
 * are cut off below the point. Private to container/input/image/.
 *
 * px: n pixels of `channels` samples each, changed in place. Colours are the first three channels; pictures with fewer
 * have neither saturation nor hue. grey = 0.2989 r + 0.587 g + 0.114 b.
 */
#ifndef TY_CONTAINER_INPUT_IMAGE_COLOUR_H
#define TY_CONTAINER_INPUT_IMAGE_COLOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void image_brightness(uint8_t *px, size_t n, int channels, double factor); /* v f */
void image_contrast(uint8_t *px, size_t n, int channels, double factor);   /* v f + (1 - f) mean of grey */
void image_saturation(uint8_t *px, size_t n, int channels, double factor); /* v f + (1 - f) grey */
/* turns: of the circle of hues (HSV), -0.5 to 0.5. */
void image_hue(uint8_t *px, size_t n, int channels, double turns);
void image_grey(uint8_t *px, size_t n, int channels); /* all three channels become grey */

/* to = from [height, width, channels], turned about its centre by `degrees`, zeros where there was no picture. By the
 * nearest pixel, or bilinear as grid_sample without align_corners. */
void image_rotate(const uint8_t *from, int width, int height, int channels, double degrees, bool nearest, uint8_t *to);

#endif
