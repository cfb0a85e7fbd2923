/* image.h - pictures out of encoded bytes: JPEG, PNG, PNM and BMP, told by their first bytes.
 *
 * Bytes are foreign: sizes are held against a limit before anything is allocated, a picture that ends early or does not
 * decode cleanly is refused (a decoder's grey filling is no data), and the advice of the libraries' authors on hostile
 * files is followed: libjpeg-turbo's on JPEGs of a thousand scans ("Two issues with the JPEG standard", 2013), libpng's
 * on limits of sizes and chunks (libpng-manual.txt, "Limits").
 *
 *     ty_image image = {0};
 *     ty_image_want want = {.channels = 3};
 *     if (ty_image_decode(bytes, n, &want, &image, err) < 0) ...
 *     image.px[(y * image.width + x) * image.channels + c]
 *     ty_image_fini(&image);
 */
#ifndef TY_CONTAINER_INPUT_IMAGE_IMAGE_H
#define TY_CONTAINER_INPUT_IMAGE_IMAGE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Width times height that is taken without being asked for more: 100 megapixels. */
#define TY_IMAGE_MAX_PIXELS ((int64_t)100000000)
/* Of a side, whatever the limit on pixels is. */
#define TY_IMAGE_MAX_SIDE 65535

/* 8 bits a sample, rows from the top, samples of a pixel side by side. Kept from picture to picture, it allocates only
 * when one is bigger than all before. */
typedef struct ty_image {
    uint8_t *px;
    int width, height, channels; /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha; alpha is not premultiplied */
    size_t room;                 /* bytes at px */
    int full_width, full_height; /* before a JPEG was decoded smaller; else as width and height */
} ty_image;

/* What the header says. */
typedef struct ty_image_info {
    const char *format;          /* "JPEG" */
    int width, height, channels; /* as ty_image_decode would give them: upright */
    size_t decoder_bytes;        /* that decoding takes beside the pixels, about */
} ty_image_info;

/* Zeroed: everything as it is in the file. */
typedef struct ty_image_want {
    int channels;       /* 1 to 4; 0: as in the file */
    int64_t max_pixels; /* 0: TY_IMAGE_MAX_PIXELS */
    int reduce;         /* JPEG: 1, 2, 4, 8: decoded that many times smaller in width and height (rounded up), which
                         * averages blocks of pixels and costs less; 0: 1 */
} ty_image_want;

/* Whether these are the first bytes (16 are enough) of a picture in a format that is known here. */
bool ty_image_has_magic(const uint8_t *p, size_t n);

/* Reads the header only. `n` may end before the picture does, as long as the header is there. */
int ty_image_probe(const uint8_t *p, size_t n, ty_image_info *out, ty_error *err);

/* Decodes into `out`, upright (EXIF's orientation is applied to JPEGs). Channels become those that are wanted:
 *   grey to RGB          the value three times
 *   RGB to grey          (19595 R + 38470 G + 7471 B + 32768) / 65536, as ITU-R BT.601 and Pillow have it; a JPEG's
 *                        own plane of luma
 *   alpha that is not wanted is left out; one that is wanted and not there is 255
 *   CMYK                 to RGB as Pillow: (255 - C) (255 - K) / 255
 *   colours to grey and alpha (2)   refused: would lose colour to keep alpha
 *   1, 2 and 4 bits are stretched to 8, 16 bits are divided by 257 and rounded
 * TY_E_DATA_VALUE: the bytes are no such picture. TY_E_LIMIT: too big. The caller names the file. */
int ty_image_decode(const uint8_t *p, size_t n, const ty_image_want *want, ty_image *out, ty_error *err);

/* Room for a picture, whose pixels are undefined then. */
int ty_image_make(ty_image *image, int width, int height, int channels, ty_error *err);
void ty_image_fini(ty_image *image); /* a zeroed one is fine */

#endif
