/* resize.c - see resize.h. */
#include "container/input/image/resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESIZE_BITS = 22 }; /* of weights: 8 bits of a sample, one of sign and one of overshoot leave these of 32 */

static double resize_bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double resize_bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

static double resize_sinc(double x)
{
    return x == 0.0 ? 1.0 : sin(x * M_PI) / (x * M_PI);
}

static double resize_lanczos(double x)
{
    return x >= -3.0 && x < 3.0 ? resize_sinc(x) * resize_sinc(x / 3.0) : 0.0;
}

static double resize_box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static const struct {
    double (*weight)(double x);
    double support;
} resize_filters[] = {
    [TY_IMAGE_BILINEAR] = {resize_bilinear, 1.0},
    [TY_IMAGE_BICUBIC] = {resize_bicubic, 2.0},
    [TY_IMAGE_LANCZOS] = {resize_lanczos, 3.0},
    [TY_IMAGE_BOX] = {resize_box, 0.5},
};

/* For each position of the output: the first input pixel, how many, and their weights. */
typedef struct resize_axis {
    int *first, *n;
    int32_t *weight; /* [out][taps] */
    int taps, out;
    double *real; /* [taps], while weights are made */
} resize_axis;

static int resize_taps(double from, double to, int out, ty_image_filter filter)
{
    double s = (to - from) / out;
    return (int)ceil(resize_filters[filter].support * (s < 1.0 ? 1.0 : s)) * 2 + 1;
}

static size_t resize_axis_bytes(int taps, int out)
{
    return (size_t)taps * sizeof(double) + (size_t)out * (2 * sizeof(int) + (size_t)taps * sizeof(int32_t)) + 64;
}

static char *resize_axis_place(resize_axis *a, char *at, int taps, int out)
{
    *a = (resize_axis){.taps = taps, .out = out};
    a->real = (double *)at;
    a->first = (int *)(at + (size_t)taps * sizeof(double));
    a->n = a->first + out;
    a->weight = a->n + out;
    return at + resize_axis_bytes(taps, out) / 64 * 64;
}

static void resize_axis_fill(resize_axis *a, int in, double from, double to, ty_image_filter filter)
{
    double s = (to - from) / a->out, wide = s < 1.0 ? 1.0 : s, support = resize_filters[filter].support * wide;
    for (int x = 0; x < a->out; x++) {
        double centre = from + (x + 0.5) * s, sum = 0.0;
        int first = (int)(centre - support + 0.5), end = (int)(centre + support + 0.5);
        first = first < 0 ? 0 : first;
        end = end > in ? in : end;
        int n = end - first < 0 ? 0 : end - first;
        for (int i = 0; i < n; i++)
            sum += a->real[i] = resize_filters[filter].weight((i + first - centre + 0.5) * (1.0 / wide));
        for (int i = 0; i < n; i++) {
            double w = (sum != 0.0 ? a->real[i] / sum : a->real[i]) * (1 << RESIZE_BITS);
            a->weight[(size_t)x * (size_t)a->taps + (size_t)i] = (int32_t)(w < 0.0 ? w - 0.5 : w + 0.5);
        }
        a->first[x] = first;
        a->n[x] = n;
    }
}

static uint8_t resize_clip(int32_t v)
{
    v >>= RESIZE_BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* One row; the number of channels is a constant where this is called, so that the loop over them is none. */
static inline __attribute__((always_inline)) void resize_row_of(const resize_axis *a, const uint8_t *in, uint8_t *out,
                                                                int channels)
{
    for (int x = 0; x < a->out; x++) {
        const int32_t *w = a->weight + (size_t)x * (size_t)a->taps;
        const uint8_t *p = in + (size_t)a->first[x] * (size_t)channels;
        int32_t sum[4] = {1 << (RESIZE_BITS - 1), 1 << (RESIZE_BITS - 1), 1 << (RESIZE_BITS - 1),
                          1 << (RESIZE_BITS - 1)};
        for (int i = 0; i < a->n[x]; i++, p += channels)
            for (int c = 0; c < channels; c++)
                sum[c] += p[c] * w[i];
        for (int c = 0; c < channels; c++)
            *out++ = resize_clip(sum[c]);
    }
}

static void resize_row(const resize_axis *a, const uint8_t *in, uint8_t *out, int channels)
{
    switch (channels) {
    case 1:
        resize_row_of(a, in, out, 1);
        break;
    case 2:
        resize_row_of(a, in, out, 2);
        break;
    case 3:
        resize_row_of(a, in, out, 3);
        break;
    default:
        resize_row_of(a, in, out, 4);
    }
}

/* One row of the output from rows of the input, in sums of a whole row. */
static void resize_columns(const int32_t *w, int n, const uint8_t *in, size_t stride, int32_t *restrict sum,
                           uint8_t *restrict out)
{
    for (size_t x = 0; x < stride; x++)
        sum[x] = 1 << (RESIZE_BITS - 1);
    for (int i = 0; i < n; i++, in += stride) {
        int32_t k = w[i];
        for (size_t x = 0; x < stride; x++)
            sum[x] += in[x] * k;
    }
    for (size_t x = 0; x < stride; x++)
        out[x] = resize_clip(sum[x]);
}

static void *resize_room(ty_image_scratch *s, size_t bytes)
{
    if (bytes <= s->bytes)
        return s->memory;
    free(s->memory);
    s->memory = malloc(bytes);
    s->bytes = s->memory != NULL ? bytes : 0;
    return s->memory;
}

void ty_image_scratch_fini(ty_image_scratch *scratch)
{
    free(scratch->memory);
    *scratch = (ty_image_scratch){0};
}

static void resize_nearest(const ty_image *in, ty_image_part part, ty_image *out)
{
    double sx = (part.x1 - part.x0) / out->width, sy = (part.y1 - part.y0) / out->height;
    size_t n = (size_t)in->channels;
    uint8_t *to = out->px;
    for (int y = 0; y < out->height; y++) {
        int iy = (int)(part.y0 + (y + 0.5) * sy);
        const uint8_t *row = in->px + (size_t)(iy < in->height ? iy : in->height - 1) * (size_t)in->width * n;
        for (int x = 0; x < out->width; x++, to += n) {
            int ix = (int)(part.x0 + (x + 0.5) * sx);
            memcpy(to, row + (size_t)(ix < in->width ? ix : in->width - 1) * n, n);
        }
    }
}

/* Weights of both axes, a row of sums, and the rows of the input in their new width. */
static size_t resize_bytes(int taps_across, int taps_down, int in_height, int channels, int width, int height)
{
    size_t stride = (size_t)width * (size_t)channels;
    return resize_axis_bytes(taps_across, width) + resize_axis_bytes(taps_down, height) +
           stride * (sizeof(int32_t) + (size_t)in_height) + 128;
}

size_t ty_image_resize_bytes(int in_width, int in_height, int channels, int width, int height, ty_image_filter filter)
{
    if (filter == TY_IMAGE_NEAREST || (in_width == width && in_height == height))
        return 0;
    return resize_bytes(resize_taps(0, in_width, width, filter), resize_taps(0, in_height, height, filter), in_height,
                        channels, width, height);
}

/* Along rows, those that the columns will need, then along columns. */
static int resize_filtered(const ty_image *in, ty_image_part part, ty_image_filter filter, ty_image_scratch *scratch,
                           ty_image *out, ty_error *err)
{
    int tx = resize_taps(part.x0, part.x1, out->width, filter);
    int ty = resize_taps(part.y0, part.y1, out->height, filter);
    size_t stride = (size_t)out->width * (size_t)in->channels;
    char *at = resize_room(scratch, resize_bytes(tx, ty, in->height, in->channels, out->width, out->height));
    if (at == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory to bring a picture to %d x %d pixels", out->width, out->height);
    resize_axis across, down;
    at = resize_axis_place(&across, at, tx, out->width);
    at = resize_axis_place(&down, at, ty, out->height);
    int32_t *sum = (int32_t *)at;
    uint8_t *rows = (uint8_t *)(sum + stride);
    resize_axis_fill(&across, in->width, part.x0, part.x1, filter);
    resize_axis_fill(&down, in->height, part.y0, part.y1, filter);
    int first = down.first[0], end = down.first[out->height - 1] + down.n[out->height - 1];
    bool whole = part.x0 == 0.0 && part.x1 == in->width && out->width == in->width;
    for (int y = first; y < end; y++) {
        const uint8_t *from = in->px + (size_t)y * (size_t)in->width * (size_t)in->channels;
        if (whole)
            memcpy(rows + (size_t)(y - first) * stride, from, stride);
        else
            resize_row(&across, from, rows + (size_t)(y - first) * stride, in->channels);
    }
    for (int y = 0; y < out->height; y++)
        resize_columns(down.weight + (size_t)y * (size_t)ty, down.n[y], rows + (size_t)(down.first[y] - first) * stride,
                       stride, sum, out->px + (size_t)y * stride);
    return 0;
}

/* A part of whole pixels that keeps its size is copied. */
static bool resize_is_copy(ty_image_part p, int width, int height)
{
    return p.x1 - p.x0 == width && p.y1 - p.y0 == height && p.x0 == floor(p.x0) && p.y0 == floor(p.y0);
}

int ty_image_resize(const ty_image *in, ty_image_part part, int width, int height, ty_image_filter filter,
                    ty_image_scratch *scratch, ty_image *out, ty_error *err)
{
    if (!(part.x0 >= 0.0 && part.y0 >= 0.0 && part.x1 > part.x0 && part.y1 > part.y0 && part.x1 <= in->width &&
          part.y1 <= in->height))
        return ty_error_set(err, TY_E_INTERNAL, "no such part of a picture of %d x %d pixels", in->width, in->height);
    if (ty_image_make(out, width, height, in->channels, err) < 0)
        return -1;
    if (resize_is_copy(part, width, height)) {
        size_t n = (size_t)in->channels, row = (size_t)width * n;
        for (int y = 0; y < height; y++)
            memcpy(out->px + (size_t)y * row,
                   in->px + (((size_t)part.y0 + (size_t)y) * (size_t)in->width + (size_t)part.x0) * n, row);
        return 0;
    }
    if (filter != TY_IMAGE_NEAREST)
        return resize_filtered(in, part, filter, scratch, out, err);
    resize_nearest(in, part, out);
    return 0;
}
