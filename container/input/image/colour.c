/* colour.c - see colour.h. Arithmetic in single precision, as torchvision's is. */
#include "container/input/image/colour.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static uint8_t colour_cut(float v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static int colour_channels(int channels)
{
    return channels >= 3 ? 3 : 1;
}

static uint8_t colour_grey(const uint8_t *p)
{
    return (uint8_t)(0.2989f * (float)p[0] + 0.587f * (float)p[1] + 0.114f * (float)p[2]);
}

/* Every sample by a table. */
static void colour_look_up(uint8_t *px, size_t n, int channels, const uint8_t table[256])
{
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < colour_channels(channels); c++)
            px[i * (size_t)channels + (size_t)c] = table[px[i * (size_t)channels + (size_t)c]];
}

void image_brightness(uint8_t *px, size_t n, int channels, double factor)
{
    uint8_t table[256];
    for (int v = 0; v < 256; v++)
        table[v] = colour_cut((float)factor * (float)v);
    colour_look_up(px, n, channels, table);
}

void image_contrast(uint8_t *px, size_t n, int channels, double factor)
{
    uint8_t table[256];
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += channels >= 3 ? colour_grey(px + i * (size_t)channels) : px[i * (size_t)channels];
    float mean = n ? (float)((double)sum / (double)n) : 0;
    for (int v = 0; v < 256; v++)
        table[v] = colour_cut((float)factor * (float)v + (float)(1 - factor) * mean);
    colour_look_up(px, n, channels, table);
}

void image_saturation(uint8_t *px, size_t n, int channels, double factor)
{
    for (size_t i = 0; i < n && channels >= 3; i++) {
        uint8_t *p = px + i * (size_t)channels;
        float grey = (float)(1 - factor) * (float)colour_grey(p);
        for (int c = 0; c < 3; c++)
            p[c] = colour_cut((float)factor * (float)p[c] + grey);
    }
}

/* Smith, "Color gamut transform pairs", SIGGRAPH 1978. */
static void colour_to_hsv(const float rgb[3], float hsv[3])
{
    float r = rgb[0], g = rgb[1], b = rgb[2];
    float most = fmaxf(r, fmaxf(g, b)), least = fminf(r, fminf(g, b)), range = most - least;
    float by = range > 0 ? range : 1;
    float rc = (most - r) / by, gc = (most - g) / by, bc = (most - b) / by;
    float h = most == r ? bc - gc : most == g ? 2 + rc - bc : 4 + gc - rc;
    hsv[0] = fmodf(h / 6 + 1, 1);
    hsv[1] = range / (range > 0 ? most : 1);
    hsv[2] = most;
}

static void colour_from_hsv(const float hsv[3], float rgb[3])
{
    float h = hsv[0] * 6, s = hsv[1], v = hsv[2], sixth = floorf(h), f = h - sixth;
    float p = v * (1 - s), q = v * (1 - s * f), t = v * (1 - s * (1 - f));
    const float colours[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
    memcpy(rgb, colours[(int)sixth % 6], 3 * sizeof *rgb);
}

void image_hue(uint8_t *px, size_t n, int channels, double turns)
{
    for (size_t i = 0; i < n && channels >= 3; i++) {
        uint8_t *p = px + i * (size_t)channels;
        float rgb[3], hsv[3];
        for (int c = 0; c < 3; c++)
            rgb[c] = (float)p[c] / 255;
        colour_to_hsv(rgb, hsv);
        hsv[0] = hsv[0] + (float)turns - floorf(hsv[0] + (float)turns);
        colour_from_hsv(hsv, rgb);
        for (int c = 0; c < 3; c++)
            p[c] = colour_cut(fmaxf(rgb[c], 0) * 255.999f);
    }
}

void image_grey(uint8_t *px, size_t n, int channels)
{
    for (size_t i = 0; i < n && channels >= 3; i++)
        memset(px + i * (size_t)channels, colour_grey(px + i * (size_t)channels), 3);
}

/* ---- turning ---- */

typedef struct colour_source {
    const uint8_t *px;
    int width, height, channels;
} colour_source;

static float colour_sample(const colour_source *s, int x, int y, int c)
{
    bool is_there = x >= 0 && y >= 0 && x < s->width && y < s->height;
    return is_there ? (float)s->px[((size_t)y * (size_t)s->width + (size_t)x) * (size_t)s->channels + (size_t)c] : 0;
}

static float colour_between(const colour_source *s, double x, double y, int c)
{
    int x0 = (int)floor(x), y0 = (int)floor(y);
    float fx = (float)(x - x0), fy = (float)(y - y0);
    float above = colour_sample(s, x0, y0, c) * (1 - fx) + colour_sample(s, x0 + 1, y0, c) * fx;
    float below = colour_sample(s, x0, y0 + 1, c) * (1 - fx) + colour_sample(s, x0 + 1, y0 + 1, c) * fx;
    return above * (1 - fy) + below * fy;
}

void image_rotate(const uint8_t *from, int width, int height, int channels, double degrees, bool nearest, uint8_t *to)
{
    const colour_source s = {from, width, height, channels};
    double a = cos(degrees * M_PI / 180), b = sin(degrees * M_PI / 180);
    double cx = (width - 1) / 2.0, cy = (height - 1) / 2.0;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            double u = a * (x - cx) - b * (y - cy) + cx, v = b * (x - cx) + a * (y - cy) + cy;
            for (int c = 0; c < channels; c++)
                *to++ = nearest ? (uint8_t)colour_sample(&s, (int)lrint(u), (int)lrint(v), c)
                                : (uint8_t)lrintf(colour_between(&s, u, v, c));
        }
}
