/* decode.h - the formats' decoders. Private to container/input/image/. */
#ifndef TY_CONTAINER_INPUT_IMAGE_DECODE_H
#define TY_CONTAINER_INPUT_IMAGE_DECODE_H

#include "container/input/image/image.h"

typedef struct image_header {
    int width, height, channels; /* as stored */
    int orientation;             /* EXIF's 1 to 8 */
    size_t decoder_bytes;        /* that the decoder keeps beside the pixels, about */
} image_header;

typedef struct image_format {
    const char *name;
    bool (*has_magic)(const uint8_t *p, size_t n);
    int (*probe)(const uint8_t *p, size_t n, image_header *out, ty_error *err);
    /* Channels are the file's, or fewer where the decoder saves work by it (want->channels says which). Sizes are
     * checked by the caller, before. */
    int (*decode)(const uint8_t *p, size_t n, const image_header *header, const ty_image_want *want, ty_image *out,
                  ty_error *err);
} image_format;

extern const image_format image_jpeg, image_png, image_pnm, image_bmp;

/* EXIF's orientation in the bytes of a TIFF header ("II*\0" ...), 1 where there is none or it makes no sense. */
int image_exif_orientation(const uint8_t *p, size_t n);
/* Turns the picture upright. */
int image_turn(ty_image *image, int orientation, ty_error *err);
/* Changes the number of channels in place, or refuses. */
int image_set_channels(ty_image *image, int channels, ty_error *err);

static inline uint32_t image_u16le(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t image_u32le(const uint8_t *p)
{
    return image_u16le(p) | image_u16le(p + 2) << 16;
}

static inline uint32_t image_u16be(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t image_u32be(const uint8_t *p)
{
    return image_u16be(p) << 16 | image_u16be(p + 2);
}

#endif
