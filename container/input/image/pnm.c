/* pnm.c - the binary forms of PNM: P5 (grey) and P6 (RGB), samples of one or two bytes.
 *
 * Source: netpbm's pgm(5) and ppm(5). Samples are stretched from the file's greatest value to 255, rounded.
 */
#include "container/input/image/decode.h"

#include <string.h>

typedef struct pnm_header {
    int number[3]; /* width, height, greatest value */
    size_t pixels; /* where they begin */
} pnm_header;

static bool pnm_is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Numbers of decimal digits, parted by white space and comments; one white space behind the last. */
static int pnm_parse(const uint8_t *p, size_t n, pnm_header *out, ty_error *err)
{
    size_t at = 2;
    for (int i = 0; i < 3; i++) {
        while (at < n && (pnm_is_space(p[at]) || p[at] == '#'))
            if (p[at++] == '#')
                while (at < n && p[at] != '\n')
                    at++;
        int64_t v = 0;
        size_t start = at;
        for (; at < n && p[at] >= '0' && p[at] <= '9' && v < INT32_MAX / 10; at++)
            v = v * 10 + (p[at] - '0');
        if (at == start || at == n || !(pnm_is_space(p[at]) || (i < 2 && p[at] == '#')))
            return ty_error_set(err, TY_E_DATA_VALUE, "expected a number at byte %zu of its header", start);
        out->number[i] = (int)v;
    }
    out->pixels = at + 1;
    if (out->number[2] >= 1 && out->number[2] <= 65535)
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "its greatest value is %d, expected 1 to 65535", out->number[2]);
}

static bool pnm_has_magic(const uint8_t *p, size_t n)
{
    return n >= 3 && p[0] == 'P' && (p[1] == '5' || p[1] == '6') && (pnm_is_space(p[2]) || p[2] == '#');
}

static int pnm_probe(const uint8_t *p, size_t n, image_header *out, ty_error *err)
{
    pnm_header h;
    if (pnm_parse(p, n, &h, err) < 0)
        return -1;
    *out =
        (image_header){.width = h.number[0], .height = h.number[1], .channels = p[1] == '6' ? 3 : 1, .orientation = 1};
    return 0;
}

static int pnm_decode(const uint8_t *p, size_t n, const image_header *header, const ty_image_want *want, ty_image *out,
                      ty_error *err)
{
    pnm_header h;
    (void)want;
    if (pnm_parse(p, n, &h, err) < 0)
        return -1;
    unsigned top = (unsigned)h.number[2];
    size_t each = top > 255 ? 2 : 1;
    size_t samples = (size_t)header->width * (size_t)header->height * (size_t)header->channels;
    if ((n - h.pixels) / each < samples)
        return ty_error_set(err, TY_E_DATA_VALUE, "its pixels take %zu bytes, found %zu", samples * each, n - h.pixels);
    if (ty_image_make(out, header->width, header->height, header->channels, err) < 0)
        return -1;
    const uint8_t *from = p + h.pixels;
    if (top == 255) {
        memcpy(out->px, from, samples);
        return 0;
    }
    for (size_t i = 0; i < samples; i++) {
        unsigned v = each == 2 ? image_u16be(from + 2 * i) : from[i];
        if (v > top)
            return ty_error_set(err, TY_E_DATA_VALUE, "sample %zu is %u, its greatest value %u", i, v, top);
        out->px[i] = (uint8_t)((v * 255u + top / 2u) / top);
    }
    return 0;
}

const image_format image_pnm = {"PNM", pnm_has_magic, pnm_probe, pnm_decode};
