/* bmp.c - BMP as it is met: 1, 4, 8 bits with a palette, 24 bits, 32 bits with or without masks; not compressed.
 *
 * Source: Windows' BITMAPFILEHEADER and BITMAPINFOHEADER (wingdi.h). Rows are padded to four bytes and begin at the
 * bottom, unless the height is negative. The fourth byte of a pixel is alpha only where a mask says so.
 */
#include "container/input/image/decode.h"

#include <string.h>

enum { BMP_FILE_HEADER = 14, BMP_INFO_HEADER = 40, BMP_RGB = 0, BMP_BITFIELDS = 3, BMP_ALPHA_BITFIELDS = 6 };

typedef struct bmp_header {
    int width, height, bits;
    bool top_down, has_alpha;
    size_t pixels; /* where they begin */
    const uint8_t *palette;
    unsigned colours;
    uint8_t shift[4]; /* 32 bits: of red, green, blue, alpha */
} bmp_header;

/* A mask of eight whole bits. */
static bool bmp_shift_of(uint32_t mask, uint8_t *out)
{
    for (uint8_t s = 0; s < 32; s = (uint8_t)(s + 8))
        if (mask == 0xffu << s) {
            *out = s;
            return true;
        }
    return false;
}

static int bmp_masks(const uint8_t *p, size_t n, uint32_t info, uint32_t method, bmp_header *out, ty_error *err)
{
    static const uint8_t usual[4] = {16, 8, 0, 24};
    memcpy(out->shift, usual, sizeof usual);
    if (method == BMP_RGB)
        return 0;
    bool four = info >= 56 || method == BMP_ALPHA_BITFIELDS;
    if (n < BMP_FILE_HEADER + BMP_INFO_HEADER + (four ? 16u : 12u))
        return ty_error_set(err, TY_E_DATA_VALUE, "its header ends early");
    const uint8_t *mask = p + BMP_FILE_HEADER + BMP_INFO_HEADER;
    bool known = out->bits == 32;
    for (int i = 0; i < 3; i++)
        known = known && bmp_shift_of(image_u32le(mask + 4 * i), &out->shift[i]);
    if (!known)
        return ty_error_set(err, TY_E_DATA_VALUE, "masks that are not of eight bits each are not known");
    out->has_alpha = four && bmp_shift_of(image_u32le(mask + 12), &out->shift[3]);
    return 0;
}

static int bmp_parse(const uint8_t *p, size_t n, bmp_header *out, ty_error *err)
{
    *out = (bmp_header){0};
    if (n < BMP_FILE_HEADER + BMP_INFO_HEADER)
        return ty_error_set(err, TY_E_DATA_VALUE, "its header ends early");
    uint32_t info = image_u32le(p + 14), method = image_u32le(p + 30), used = image_u32le(p + 46);
    int32_t width = (int32_t)image_u32le(p + 18), height = (int32_t)image_u32le(p + 22);
    out->bits = (int)image_u16le(p + 28);
    out->pixels = image_u32le(p + 10);
    if (info < BMP_INFO_HEADER || info > 1024 || height == INT32_MIN)
        return ty_error_set(err, TY_E_DATA_VALUE, "its header is malformed or older than Windows 3");
    if (method != BMP_RGB && method != BMP_BITFIELDS && method != BMP_ALPHA_BITFIELDS)
        return ty_error_set(err, TY_E_DATA_VALUE, "compressed pictures (method %u) are not known", method);
    out->width = width;
    out->height = height < 0 ? -height : height;
    out->top_down = height < 0;
    if (out->bits == 24 || out->bits == 32)
        return bmp_masks(p, n, info, method, out, err);
    if (out->bits != 1 && out->bits != 4 && out->bits != 8)
        return ty_error_set(err, TY_E_DATA_VALUE, "%d bits a pixel are not known, expected 1, 4, 8, 24 or 32",
                            out->bits);
    out->colours = used > 0 && used <= 256 ? used : 1u << out->bits;
    if (n - BMP_FILE_HEADER < info || (n - BMP_FILE_HEADER - info) / 4 < out->colours)
        return ty_error_set(err, TY_E_DATA_VALUE, "its palette ends early");
    out->palette = p + BMP_FILE_HEADER + info;
    return 0;
}

static bool bmp_has_magic(const uint8_t *p, size_t n)
{
    if (n < BMP_FILE_HEADER + 4 || p[0] != 'B' || p[1] != 'M')
        return false;
    uint32_t info = image_u32le(p + BMP_FILE_HEADER); /* two letters alone are many a text's */
    return info >= 12 && info <= 1024;
}

static int bmp_probe(const uint8_t *p, size_t n, image_header *out, ty_error *err)
{
    bmp_header h;
    if (bmp_parse(p, n, &h, err) < 0)
        return -1;
    *out = (image_header){.width = h.width, .height = h.height, .channels = h.has_alpha ? 4 : 3, .orientation = 1};
    return 0;
}

static int bmp_row(const bmp_header *h, const uint8_t *from, uint8_t *to, ty_error *err)
{
    for (int x = 0; x < h->width; x++) {
        if (h->bits == 24) {
            for (int c = 0; c < 3; c++)
                *to++ = from[3 * x + 2 - c];
        } else if (h->bits == 32) {
            uint32_t v = image_u32le(from + 4 * (size_t)x);
            for (int c = 0; c < (h->has_alpha ? 4 : 3); c++)
                *to++ = (uint8_t)(v >> h->shift[c]);
        } else {
            int each = 8 / h->bits;
            unsigned i = (unsigned)(from[x / each] >> (8 - h->bits * (x % each + 1))) & ((1u << h->bits) - 1u);
            if (i >= h->colours)
                return ty_error_set(err, TY_E_DATA_VALUE, "colour %u, the palette has %u", i, h->colours);
            for (int c = 0; c < 3; c++)
                *to++ = h->palette[4 * i + 2 - (unsigned)c];
        }
    }
    return 0;
}

static int bmp_decode(const uint8_t *p, size_t n, const image_header *header, const ty_image_want *want, ty_image *out,
                      ty_error *err)
{
    bmp_header h;
    (void)want;
    if (bmp_parse(p, n, &h, err) < 0)
        return -1;
    size_t stride = ((size_t)h.width * (size_t)h.bits + 31) / 32 * 4;
    if (h.pixels > n || (n - h.pixels) / stride < (size_t)h.height)
        return ty_error_set(err, TY_E_DATA_VALUE, "its pixels take %zu bytes, found %zu", stride * (size_t)h.height,
                            h.pixels > n ? 0 : n - h.pixels);
    if (ty_image_make(out, h.width, h.height, header->channels, err) < 0)
        return -1;
    size_t row = (size_t)h.width * (size_t)header->channels;
    for (int y = 0; y < h.height; y++) {
        int from = h.top_down ? y : h.height - 1 - y;
        if (bmp_row(&h, p + h.pixels + (size_t)from * stride, out->px + (size_t)y * row, err) < 0)
            return -1;
    }
    return 0;
}

const image_format image_bmp = {"BMP", bmp_has_magic, bmp_probe, bmp_decode};
