/* image.c - the table of formats, limits, and what is the same for all of them. */
#include "container/input/image/image.h"

#include "container/input/foreign.h"
#include "container/input/image/decode.h"

#include <stdlib.h>
#include <string.h>

static const image_format *const image_formats[] = {&image_jpeg, &image_png, &image_bmp, &image_pnm};
#define IMAGE_N_FORMATS (sizeof image_formats / sizeof image_formats[0])

static const image_format *image_find_format(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < IMAGE_N_FORMATS; i++)
        if (image_formats[i]->has_magic(p, n))
            return image_formats[i];
    return NULL;
}

bool ty_image_has_magic(const uint8_t *p, size_t n)
{
    return image_find_format(p, n) != NULL;
}

/* Header and its sizes; the format or NULL. */
static const image_format *image_open(const uint8_t *p, size_t n, int64_t max_pixels, image_header *h, ty_error *err)
{
    const image_format *f = image_find_format(p, n);
    if (f == NULL) {
        const ty_foreign *foreign = ty_foreign_find(p, n);
        ty_error_set(err, TY_E_DATA_VALUE, "the first bytes are not those of a JPEG, PNG, PNM or BMP picture%s%s",
                     foreign ? ", but of " : "", foreign ? foreign->what : "");
        if (foreign)
            ty_error_help(err, "%s", foreign->instead);
        return NULL;
    }
    *h = (image_header){.orientation = 1};
    if (f->probe(p, n, h, err) < 0) {
        ty_error_wrap(err, "%s", f->name);
        return NULL;
    }
    max_pixels = max_pixels > 0 ? max_pixels : TY_IMAGE_MAX_PIXELS;
    if (h->width < 1 || h->height < 1) {
        ty_error_set(err, TY_E_DATA_VALUE, "%s: the picture is %d x %d pixels", f->name, h->width, h->height);
        return NULL;
    }
    if (h->width > TY_IMAGE_MAX_SIDE || h->height > TY_IMAGE_MAX_SIDE || (int64_t)h->width * h->height > max_pixels) {
        ty_error_set(err, TY_E_LIMIT, "%s: the picture is %d x %d pixels, expected at most %lld in all and %d a side",
                     f->name, h->width, h->height, (long long)max_pixels, TY_IMAGE_MAX_SIDE);
        ty_error_help(err, "if it is meant to be that big raise the field's limit: image: {max_pixels: N}");
        return NULL;
    }
    return f;
}

int ty_image_probe(const uint8_t *p, size_t n, ty_image_info *out, ty_error *err)
{
    image_header h;
    const image_format *f = image_open(p, n, INT64_MAX, &h, err);
    if (f == NULL)
        return -1;
    bool lies = h.orientation >= 5;
    size_t turned = lies ? (size_t)h.width * (size_t)h.height * (size_t)h.channels : 0;
    *out = (ty_image_info){f->name, lies ? h.height : h.width, lies ? h.width : h.height, h.channels,
                           h.decoder_bytes + turned};
    return 0;
}

int ty_image_make(ty_image *image, int width, int height, int channels, ty_error *err)
{
    size_t bytes = (size_t)width * (size_t)height * (size_t)channels;
    if (bytes > image->room) {
        uint8_t *px = malloc(bytes);
        if (px == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for a picture of %d x %d pixels", width, height);
        free(image->px);
        image->px = px;
        image->room = bytes;
    }
    image->width = image->full_width = width;
    image->height = image->full_height = height;
    image->channels = channels;
    return 0;
}

void ty_image_fini(ty_image *image)
{
    free(image->px);
    *image = (ty_image){0};
}

int ty_image_decode(const uint8_t *p, size_t n, const ty_image_want *want, ty_image *out, ty_error *err)
{
    image_header h;
    const image_format *f = image_open(p, n, want->max_pixels, &h, err);
    if (f == NULL)
        return -1;
    if (want->channels == 2 && h.channels > 2)
        return ty_error_set(err, TY_E_DATA_VALUE,
                            "%s: a picture in colours cannot become grey with alpha (channels: 2)", f->name);
    if (f->decode(p, n, &h, want, out, err) < 0)
        return ty_error_wrap(err, "%s", f->name);
    if (want->channels > 0 && image_set_channels(out, want->channels, err) < 0)
        return -1;
    bool lies = h.orientation >= 5;
    if (image_turn(out, h.orientation, err) < 0)
        return -1;
    out->full_width = lies ? h.height : h.width;
    out->full_height = lies ? h.width : h.height;
    return 0;
}

/* ---- channels ---- */

static uint8_t image_luma(const uint8_t *rgb)
{
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

static void image_pixel(const uint8_t *from, int n_from, uint8_t *to, int n_to)
{
    uint8_t in[4] = {from[0], from[0], from[0], 255};
    if (n_from >= 3)
        memcpy(in, from, (size_t)n_from);
    else if (n_from == 2)
        in[3] = from[1];
    if (n_to >= 3) {
        memcpy(to, in, (size_t)n_to);
        return;
    }
    to[0] = n_from >= 3 ? image_luma(in) : in[0];
    if (n_to == 2)
        to[1] = in[3];
}

int image_set_channels(ty_image *image, int channels, ty_error *err)
{
    int from = image->channels;
    size_t n = (size_t)image->width * (size_t)image->height;
    if (from == channels)
        return 0;
    if (n * (size_t)channels > image->room) {
        uint8_t *px = realloc(image->px, n * (size_t)channels);
        if (px == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for a picture of %d x %d pixels", image->width,
                                image->height);
        image->px = px;
        image->room = n * (size_t)channels;
    }
    image->channels = channels;
    uint8_t *px = image->px;
    if (from > channels)
        for (size_t i = 0; i < n; i++)
            image_pixel(px + i * (size_t)from, from, px + i * (size_t)channels, channels);
    else
        for (size_t i = n; i-- > 0;) { /* from the end: it grows where it lies */
            uint8_t one[4];
            image_pixel(px + i * (size_t)from, from, one, channels);
            memcpy(px + i * (size_t)channels, one, (size_t)channels);
        }
    return 0;
}

/* ---- orientation ---- */

static void image_swap(uint8_t *a, uint8_t *b, int n)
{
    for (int c = 0; c < n; c++) {
        uint8_t v = a[c];
        a[c] = b[c];
        b[c] = v;
    }
}

static void image_mirror(ty_image *image)
{
    int n = image->channels;
    for (int y = 0; y < image->height; y++) {
        uint8_t *row = image->px + (size_t)y * (size_t)image->width * (size_t)n;
        for (int a = 0, b = image->width - 1; a < b; a++, b--)
            image_swap(row + a * n, row + b * n, n);
    }
}

/* By half a turn. */
static void image_reverse(ty_image *image)
{
    int n = image->channels;
    uint8_t *a = image->px, *b = a + ((size_t)image->width * (size_t)image->height - 1) * (size_t)n;
    for (; a < b; a += n, b -= n)
        image_swap(a, b, n);
}

/* Rows become columns. */
static int image_transpose(ty_image *image, ty_error *err)
{
    ty_image out = {0};
    int w = image->width, h = image->height, n = image->channels;
    if (ty_image_make(&out, h, w, n, err) < 0)
        return -1;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            memcpy(out.px + ((size_t)x * (size_t)h + (size_t)y) * (size_t)n,
                   image->px + ((size_t)y * (size_t)w + (size_t)x) * (size_t)n, (size_t)n);
    free(image->px);
    *image = out;
    return 0;
}

/* Each orientation is a transpose (5 to 8), then a mirror, then half a turn; EXIF 2.32, tag 0x0112. */
int image_turn(ty_image *image, int orientation, ty_error *err)
{
    static const struct {
        bool transpose, mirror, reverse;
    } ways[9] = {[2] = {0, 1, 0}, [3] = {0, 0, 1}, [4] = {0, 1, 1}, [5] = {1, 0, 0},
                 [6] = {1, 1, 0}, [7] = {1, 0, 1}, [8] = {1, 1, 1}};
    if (orientation < 2 || orientation > 8)
        return 0;
    if (ways[orientation].transpose && image_transpose(image, err) < 0)
        return -1;
    if (ways[orientation].mirror)
        image_mirror(image);
    if (ways[orientation].reverse)
        image_reverse(image);
    return 0;
}

/* A TIFF header, the offset of its first directory, there entries of 12 bytes: tag, type, count, value. */
int image_exif_orientation(const uint8_t *p, size_t n)
{
    if (n < 14 || (memcmp(p, "II*\0", 4) != 0 && memcmp(p, "MM\0*", 4) != 0))
        return 1;
    bool little = p[0] == 'I';
    uint32_t at = little ? image_u32le(p + 4) : image_u32be(p + 4);
    if (at > n - 2)
        return 1;
    uint32_t entries = little ? image_u16le(p + at) : image_u16be(p + at);
    for (uint32_t i = 0; i < entries && n - at - 2 >= (size_t)12 * (i + 1); i++) {
        const uint8_t *e = p + at + 2 + (size_t)12 * i;
        if ((little ? image_u16le(e) : image_u16be(e)) != 0x0112)
            continue;
        uint32_t v = little ? image_u16le(e + 8) : image_u16be(e + 8);
        return v >= 1 && v <= 8 ? (int)v : 1;
    }
    return 1;
}
