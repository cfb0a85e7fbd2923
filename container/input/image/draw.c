/* draw.c - see draw.h. Each kind of number has words of its own, so that adding one changes no other. */
#include "container/input/image/draw.h"

#include "base/rng.h"

#include <math.h>

/* Places among the 256 words of a sample. */
enum {
    WORD_FLIP_ACROSS = 0,
    WORD_FLIP_DOWN = 1,
    WORD_X = 2,
    WORD_Y = 3,
    WORD_PART = 8, /* two words a try, then two for the place */
    WORD_OTHER = 32,
    WORD_CUT = 48,
    WORD_SHARE = 64,   /* two gamma numbers of GAMMA_TRIES times three words, and one */
    WORD_JITTER = 176, /* one each, then their order */
    WORD_GREY = 184,
    WORD_ROTATE = 185,
    WORD_ERASE = 192, /* whether, then as WORD_PART */
    WORDS = 256,
    PART_TRIES = 10,
    GAMMA_TRIES = 16
};

static uint32_t draw_word(const ty_chance *d, int word)
{
    return ty_rng_u32(d->seed, TY_STREAM_IMAGE, (uint32_t)d->epoch, (uint64_t)d->sample * WORDS + (uint64_t)word);
}

/* Uniform in (0, 1), all of 32 bits. */
static double draw_unit(const ty_chance *d, int word)
{
    return ((double)draw_word(d, word) + 0.5) * 0x1p-32;
}

/* One of 0 .. n - 1; for n of the size of pictures 32 bits are even to one in 10^5. */
static int draw_below(const ty_chance *d, int word, int n)
{
    return (int)((uint64_t)draw_word(d, word) * (uint64_t)n >> 32);
}

/* Uniform in [from, to). */
static double draw_between(const ty_chance *d, int word, double from, double to)
{
    return from + (to - from) * draw_unit(d, word);
}

/* ---- where ---- */

/* The sides of a rectangle, in whole pixels: a share of `area` by the word, the logarithm of its shape by the next. */
static void draw_shape(const ty_chance *d, int word, double area, const double share[2], const double ratio[2],
                       double *more, double *less)
{
    double part = draw_between(d, word, share[0], share[1]);
    double shape = exp(draw_between(d, word + 1, log(ratio[0]), log(ratio[1])));
    *more = nearbyint(sqrt(area * part * shape));
    *less = nearbyint(sqrt(area * part / shape));
}

/* A part of the picture whose shape and share of the area are drawn; after ten that do not fit, the biggest of a shape
 * that is allowed. As torchvision's RandomResizedCrop.get_params. */
static void draw_part(const ty_image_plan *p, const ty_chance *d, int width, int height, ty_image_part *out)
{
    double area = (double)width * height;
    for (int i = 0; i < PART_TRIES; i++) {
        double w, h;
        draw_shape(d, WORD_PART + 2 * i, area, p->area, p->ratio, &w, &h);
        if (w < 1.0 || h < 1.0 || w > width || h > height)
            continue;
        int x = draw_below(d, WORD_PART + 2 * PART_TRIES, width - (int)w + 1);
        int y = draw_below(d, WORD_PART + 2 * PART_TRIES + 1, height - (int)h + 1);
        *out = (ty_image_part){x, y, x + w, y + h};
        return;
    }
    double shape = (double)width / height, w = width, h = height;
    if (shape < p->ratio[0])
        h = fmax(1.0, fmin(height, nearbyint(w / p->ratio[0])));
    else if (shape > p->ratio[1])
        w = fmax(1.0, fmin(width, nearbyint(h * p->ratio[1])));
    double x = floor((width - w) / 2.0), y = floor((height - h) / 2.0);
    *out = (ty_image_part){x, y, x + w, y + h};
}

/* The picture's size before the crop. */
static void draw_size(const ty_image_plan *p, int width, int height, double *w, double *h)
{
    double sx = (double)p->width / width, sy = (double)p->height / height;
    double s = p->fit == TY_IMAGE_COVER ? fmax(sx, sy) : fmin(sx, sy);
    *w = p->width;
    *h = p->height;
    if (p->fit == TY_IMAGE_AS_IS) {
        *w = width;
        *h = height;
    } else if (p->fit == TY_IMAGE_SHORTER) {
        int64_t low = width < height ? width : height, high = width < height ? height : width;
        double longer = (double)(high * p->shorter / low);
        *w = width < height ? p->shorter : longer;
        *h = width < height ? longer : p->shorter;
    } else if (p->fit != TY_IMAGE_STRETCH) {
        *w = fmax(1.0, nearbyint(width * s));
        *h = fmax(1.0, nearbyint(height * s));
    }
}

/* Where the row's pixels begin in a side of `have` pixels, of which `want` are taken; below 0: before it begins. */
static int draw_start(const ty_image_plan *p, const ty_chance *d, int word, int have, int want)
{
    int low = -p->pad, high = have - want + p->pad;
    if (d->augment && p->crop == TY_IMAGE_CROP_RANDOM && high >= low)
        return low + draw_below(d, word, high - low + 1);
    return (int)nearbyint((have - want) / 2.0);
}

/* One side: the part of `full` pixels, brought to `have`, that `want` pixels from `start` on see, and where. */
static void draw_side(int full, double have, int want, int start, double *from, double *to, int *at, int *n)
{
    int low = start < 0 ? -start : 0, high = (int)have - start < want ? (int)have - start : want;
    double s = full / have;
    *at = low;
    *n = high - low;
    *from = (start + low) * s;
    *to = (start + high) * s < full ? (start + high) * s : full;
}

void image_draw_move(const ty_image_plan *p, const ty_chance *d, int width, int height, image_move *out)
{
    *out = (image_move){.width = p->width, .height = p->height};
    if (d->augment && p->crop == TY_IMAGE_CROP_RANDOM_RESIZED) {
        draw_part(p, d, width, height, &out->part);
    } else {
        double w, h;
        draw_size(p, width, height, &w, &h);
        draw_side(width, w, p->width, draw_start(p, d, WORD_X, (int)w, p->width), &out->part.x0, &out->part.x1, &out->x,
                  &out->width);
        draw_side(height, h, p->height, draw_start(p, d, WORD_Y, (int)h, p->height), &out->part.y0, &out->part.y1,
                  &out->y, &out->height);
    }
    out->flip_across = d->augment && p->flip_across && draw_word(d, WORD_FLIP_ACROSS) >> 31;
    out->flip_down = d->augment && p->flip_down && draw_word(d, WORD_FLIP_DOWN) >> 31;
}

/* ---- colours ---- */

/* Erased are 0.02 to 0.33 of the area, in a shape between 0.3 and 3.3: torchvision's RandomErasing.get_params. */
static void draw_hole(const ty_image_plan *p, const ty_chance *d, image_change *out)
{
    static const double share[2] = {0.02, 0.33}, ratio[2] = {0.3, 3.3};
    for (int i = 0; i < PART_TRIES; i++) {
        double w, h;
        draw_shape(d, WORD_ERASE + 1 + 2 * i, (double)p->width * p->height, share, ratio, &h, &w);
        if (w < 1.0 || h < 1.0 || w >= p->width || h >= p->height)
            continue;
        out->width = (int)w;
        out->height = (int)h;
        out->x = draw_below(d, WORD_ERASE + 1 + 2 * PART_TRIES, p->width - (int)w + 1);
        out->y = draw_below(d, WORD_ERASE + 2 + 2 * PART_TRIES, p->height - (int)h + 1);
        return;
    }
}

static void draw_jitter(const ty_image_plan *p, const ty_chance *d, image_change *out)
{
    for (int i = 0; i < TY_N_JITTERS; i++) {
        double j = p->jitter[i], around = i == TY_JITTER_HUE ? 0 : 1;
        double from = i == TY_JITTER_HUE || j <= 1 ? around - j : 0;
        out->jitter[i] = j > 0 ? draw_between(d, WORD_JITTER + i, from, around + j) : around;
    }
    for (int i = TY_N_JITTERS - 1; i > 0; i--) {
        int k = draw_below(d, WORD_JITTER + TY_N_JITTERS + i, i + 1), other = out->order[k];
        out->order[k] = out->order[i];
        out->order[i] = other;
    }
}

void image_draw_change(const ty_image_plan *p, const ty_chance *d, image_change *out)
{
    *out = (image_change){.jitter = {1, 1, 1, 0}, .order = {0, 1, 2, 3}};
    if (!d->augment)
        return;
    draw_jitter(p, d, out);
    out->is_grey = draw_unit(d, WORD_GREY) < p->grey;
    out->degrees = p->rotate > 0 ? draw_between(d, WORD_ROTATE, -p->rotate, p->rotate) : 0;
    if (draw_unit(d, WORD_ERASE) < p->erase)
        draw_hole(p, d, out);
}

/* ---- mixing ---- */

/* Gamma(alpha, 1) by Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; for alpha below 1 by
 * their note: of alpha + 1, times u^(1/alpha). Its logarithm, since small alphas make numbers below double's. */
static double draw_log_gamma(double alpha, const ty_chance *d, int word)
{
    double boost = alpha < 1.0 ? log(draw_unit(d, word)) / alpha : 0.0, a = alpha < 1.0 ? alpha + 1.0 : alpha;
    double k = a - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * k);
    for (int i = 0; i < GAMMA_TRIES; i++) {
        const int at = word + 1 + 3 * i;
        double z = sqrt(-2.0 * log(draw_unit(d, at))) * cos(2.0 * M_PI * draw_unit(d, at + 1));
        double v = (1.0 + c * z) * (1.0 + c * z) * (1.0 + c * z);
        if (v > 0.0 && log(draw_unit(d, at + 2)) < 0.5 * z * z + k - k * v + k * log(v))
            return log(k * v) + boost;
    }
    return log(k) + boost; /* one in 10^20 */
}

/* Beta(alpha, alpha). */
static double draw_beta(double alpha, const ty_chance *d)
{
    double x = draw_log_gamma(alpha, d, WORD_SHARE);
    double y = draw_log_gamma(alpha, d, WORD_SHARE + 1 + 3 * GAMMA_TRIES);
    return 1.0 / (1.0 + exp(y - x));
}

static int draw_clip(double v, int most)
{
    return v < 0.0 ? 0 : v > most ? most : (int)v;
}

void ty_image_plan_mixing(const ty_image_plan *p, const ty_chance *d, int64_t n, ty_image_mixing *out)
{
    *out = (ty_image_mixing){.other = d->sample, .share = 1.0};
    if (!d->augment || p->mix == TY_IMAGE_MIX_NONE || n < 1)
        return;
    out->other =
        (int64_t)((unsigned __int128)((uint64_t)draw_word(d, WORD_OTHER) << 32 | draw_word(d, WORD_OTHER + 1)) *
                      (uint64_t)n >>
                  64);
    out->share = draw_beta(p->alpha, d);
    if (p->mix != TY_IMAGE_CUTMIX)
        return;
    double side = sqrt(1.0 - out->share), w = p->width * side, h = p->height * side;
    double x = draw_below(d, WORD_CUT, p->width), y = draw_below(d, WORD_CUT + 1, p->height);
    out->x0 = draw_clip(floor(x - w / 2.0), p->width);
    out->x1 = draw_clip(floor(x + w / 2.0), p->width);
    out->y0 = draw_clip(floor(y - h / 2.0), p->height);
    out->y1 = draw_clip(floor(y + h / 2.0), p->height);
    out->share = 1.0 - (double)(out->x1 - out->x0) * (out->y1 - out->y0) / ((double)p->width * p->height);
}

void ty_image_plan_mix(const ty_image_plan *p, const ty_image_mixing *m, float *row, const float *other)
{
    size_t width = (size_t)p->width, n = (size_t)p->channels, pixels = (size_t)p->height * width;
    if (p->mix == TY_IMAGE_MIXUP) {
        float a = (float)m->share, b = (float)(1.0 - m->share);
        for (size_t i = 0; i < pixels * n; i++)
            row[i] = a * row[i] + b * other[i];
        return;
    }
    size_t each = p->hwc ? n : 1, planes = p->hwc ? 1 : n;
    for (size_t plane = 0; plane < planes; plane++)
        for (int y = m->y0; y < m->y1; y++)
            for (size_t i = (size_t)m->x0 * each; i < (size_t)m->x1 * each; i++) {
                size_t at = plane * pixels + (size_t)y * width * each + i;
                row[at] = other[at];
            }
}
