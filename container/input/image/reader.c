/* reader.c - pictures to rows of a batch. */
#include "container/input/convert.h"
#include "container/input/image/colour.h"
#include "container/input/image/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How many times smaller a JPEG is decoded of which a part becomes that many times smaller. */
static int reader_reduce_of(const ty_image_plan *p, double x, double y)
{
    double spare = (x < y ? x : y) / (p->gap > 0.0 ? p->gap : 1e9);
    return spare >= 8.0 ? 8 : spare >= 4.0 ? 4 : spare >= 2.0 ? 2 : 1;
}

static int reader_reduce(const ty_image_plan *p, const image_move *m)
{
    return reader_reduce_of(p, (m->part.x1 - m->part.x0) / m->width, (m->part.y1 - m->part.y0) / m->height);
}

/* Of the smallest part that may be taken of the picture. */
static int reader_reduce_least(const ty_image_plan *p, const ty_image_info *info)
{
    double side = info->width < info->height ? info->width : info->height;
    if (strcmp(info->format, "JPEG") != 0)
        return 1;
    if (p->crop == TY_IMAGE_CROP_RANDOM_RESIZED)
        side *= sqrt(p->area[0] * (p->ratio[0] < 1.0 / p->ratio[1] ? p->ratio[0] : 1.0 / p->ratio[1]));
    double most = p->width > p->height ? p->width : p->height;
    most = p->fit == TY_IMAGE_SHORTER && p->shorter > most ? p->shorter : most;
    return reader_reduce_of(p, side / most, side / most);
}

/* The decoded picture, the part of it in its new size, what both are made with. */
static size_t reader_work(const ty_image_plan *p, const ty_image_info *info)
{
    int reduce = reader_reduce_least(p, info), width = info->width / reduce + 1, height = info->height / reduce + 1;
    int channels = info->channels > p->channels ? info->channels : p->channels;
    size_t whole = (size_t)width * (size_t)height * (size_t)channels;
    size_t part = (size_t)p->width * (size_t)p->height * (size_t)p->channels;
    bool has_canvas = p->fit == TY_IMAGE_CONTAIN || p->pad > 0;
    return info->decoder_bytes + whole + part * (has_canvas ? 2 : 1) +
           ty_image_resize_bytes(width, height, p->channels, p->width, p->height, p->filter);
}

static int reader_fits(const ty_image_plan *p, const ty_image_info *info, ty_error *err)
{
    if (!p->all_alike || (info->width == p->width && info->height == p->height))
        return 0;
    ty_error_set(err, TY_E_DATA_VALUE, "the picture is %d x %d pixels, expected %d x %d as the first one", info->width,
                 info->height, p->width, p->height);
    return ty_error_help(err, "say which size pictures become: image: {size: [%d, %d]}", p->height, p->width);
}

int ty_image_look(const ty_image_plan *p, const uint8_t *bytes, size_t n, size_t *work, ty_error *err)
{
    ty_image_info info;
    if (ty_image_probe(bytes, n, &info, err) < 0 || reader_fits(p, &info, err) < 0)
        return -1;
    int64_t most = p->max_pixels > 0 ? p->max_pixels : TY_IMAGE_MAX_PIXELS;
    if ((int64_t)info.width * info.height > most)
        return ty_error_set(err, TY_E_LIMIT, "the picture is %d x %d pixels, expected at most %lld in all", info.width,
                            info.height, (long long)most);
    size_t bytes_of_work = reader_work(p, &info);
    *work = bytes_of_work > *work ? bytes_of_work : *work;
    if (p->channels != 2 || info.channels < 3)
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "a picture in colours cannot become grey with alpha (channels: 2)");
}

/* The part in the pixels that were decoded. */
static ty_image_part reader_part(const ty_image *whole, ty_image_part p)
{
    double sx = (double)whole->width / whole->full_width, sy = (double)whole->height / whole->full_height;
    ty_image_part out = {p.x0 * sx, p.y0 * sy, p.x1 * sx, p.y1 * sy};
    out.x1 = out.x1 > whole->width ? whole->width : out.x1;
    out.y1 = out.y1 > whole->height ? whole->height : out.y1;
    return out;
}

/* What is seen of the picture, among zeros. */
static int reader_paint(ty_image_reader *r, const image_move *m, ty_error *err)
{
    const ty_image_plan *p = r->plan;
    if (ty_image_make(&r->canvas, p->width, p->height, p->channels, err) < 0)
        return -1;
    size_t n = (size_t)p->channels, row = (size_t)m->width * n;
    memset(r->canvas.px, 0, (size_t)p->width * (size_t)p->height * n);
    for (int y = 0; y < m->height; y++)
        memcpy(r->canvas.px + ((size_t)(m->y + y) * (size_t)p->width + (size_t)m->x) * n, r->part.px + (size_t)y * row,
               row);
    return 0;
}

/* Decoded, moved and resized: out of *px, height x width x channels, not yet flipped. */
static int reader_pixels(ty_image_reader *r, const uint8_t *bytes, size_t n, const ty_chance *draw, image_move *m,
                         uint8_t **px, ty_error *err)
{
    const ty_image_plan *p = r->plan;
    ty_image_info info;
    if (ty_image_probe(bytes, n, &info, err) < 0 || reader_fits(p, &info, err) < 0)
        return -1;
    if (info.width < 1 || info.height < 1)
        return ty_error_set(err, TY_E_DATA_VALUE, "the picture is empty");
    r->decoder_bytes = info.decoder_bytes > r->decoder_bytes ? info.decoder_bytes : r->decoder_bytes;
    image_draw_move(p, draw, info.width, info.height, m);
    ty_image_want want = {p->channels, p->max_pixels, reader_reduce(p, m)};
    if (ty_image_decode(bytes, n, &want, &r->whole, err) < 0)
        return -1;
    if (ty_image_resize(&r->whole, reader_part(&r->whole, m->part), m->width, m->height, p->filter, &r->scratch,
                        &r->part, err) < 0)
        return -1;
    bool full = m->width == p->width && m->height == p->height;
    if (!full && reader_paint(r, m, err) < 0)
        return -1;
    *px = full ? r->part.px : r->canvas.px;
    return 0;
}

/* What varies in the pixels, which are the reader's own. Out of *px, which may be others behind it. */
static int reader_change(ty_image_reader *r, const image_change *k, uint8_t **px, ty_error *err)
{
    const ty_image_plan *p = r->plan;
    size_t n = (size_t)p->width * (size_t)p->height;
    if (k->degrees != 0) {
        if (ty_image_make(&r->turned, p->width, p->height, p->channels, err) < 0)
            return -1;
        image_rotate(*px, p->width, p->height, p->channels, k->degrees, p->filter == TY_IMAGE_NEAREST, r->turned.px);
        *px = r->turned.px;
    }
    for (int i = 0; i < TY_N_JITTERS; i++) {
        static void (*const change[TY_N_JITTERS])(uint8_t * px, size_t n, int channels,
                                                  double factor) = {[TY_JITTER_BRIGHTNESS] = image_brightness,
                                                                    [TY_JITTER_CONTRAST] = image_contrast,
                                                                    [TY_JITTER_SATURATION] = image_saturation,
                                                                    [TY_JITTER_HUE] = image_hue};
        int which = k->order[i];
        if (k->jitter[which] != (which == TY_JITTER_HUE ? 0 : 1))
            change[which](*px, n, p->channels, k->jitter[which]);
    }
    if (k->is_grey)
        image_grey(*px, n, p->channels);
    return 0;
}

/* A rectangle of a row of `bytes` a value becomes 0. */
static void reader_erase(const ty_image_plan *p, const image_change *k, size_t bytes, char *out)
{
    size_t each = p->hwc ? (size_t)p->channels : 1, planes = p->hwc ? 1 : (size_t)p->channels;
    size_t row = (size_t)p->width * each * bytes;
    for (size_t plane = 0; plane < planes; plane++)
        for (int y = k->y; y < k->y + k->height; y++)
            memset(out + (plane * (size_t)p->height + (size_t)y) * row + (size_t)k->x * each * bytes, 0,
                   (size_t)k->width * each * bytes);
}

static void reader_make_table(ty_image_reader *r)
{
    const ty_image_plan *p = r->plan;
    for (int c = 0; c < p->channels && !r->has_table; c++)
        for (int v = 0; v < 256; v++)
            r->table[c][v] = (float)((v * p->scale - p->mean[c]) / p->std[c]);
    r->has_table = true;
}

/* Samples of channel c of one row of pixels, to every step-th place of out. */
static void reader_row_f32(const float table[256], const uint8_t *px, int width, int channels, bool flip, float *out,
                           int step)
{
    ptrdiff_t by = flip ? -channels : channels;
    const uint8_t *at = flip ? px + (ptrdiff_t)(width - 1) * channels : px;
    for (int x = 0; x < width; x++, at += by, out += step)
        *out = table[*at];
}

static void reader_row_u8(const uint8_t *px, int width, int channels, bool flip, uint8_t *out, int step)
{
    ptrdiff_t by = flip ? -channels : channels;
    const uint8_t *at = flip ? px + (ptrdiff_t)(width - 1) * channels : px;
    for (int x = 0; x < width; x++, at += by, out += step)
        *out = *at;
}

/* Flipped and in the layout that is wanted. */
static void reader_store(ty_image_reader *r, const uint8_t *px, const image_move *m, bool is_u8, void *out)
{
    const ty_image_plan *p = r->plan;
    size_t width = (size_t)p->width, n = (size_t)p->channels;
    for (int y = 0; y < p->height; y++) {
        const uint8_t *row = px + (size_t)(m->flip_down ? p->height - 1 - y : y) * width * n;
        for (int c = 0; c < p->channels; c++) {
            size_t at =
                p->hwc ? (size_t)y * width * n + (size_t)c : (size_t)c * width * (size_t)p->height + (size_t)y * width;
            int step = p->hwc ? p->channels : 1;
            if (is_u8)
                reader_row_u8(row + c, p->width, p->channels, m->flip_across, (uint8_t *)out + at, step);
            else
                reader_row_f32(r->table[c], row + c, p->width, p->channels, m->flip_across, (float *)out + at, step);
        }
    }
}

int ty_image_read(ty_image_reader *r, const uint8_t *bytes, size_t n, const ty_chance *draw, ty_dtype dtype, void *out,
                  ty_error *err)
{
    const ty_image_plan *p = r->plan;
    int64_t elems = (int64_t)p->width * p->height * p->channels;
    image_move move;
    image_change change;
    uint8_t *px;
    if (reader_pixels(r, bytes, n, draw, &move, &px, err) < 0)
        return -1;
    image_draw_change(p, draw, &change);
    if (reader_change(r, &change, &px, err) < 0)
        return -1;
    reader_make_table(r);
    bool direct = dtype == TY_U8 || dtype == TY_F32;
    if (!direct && r->row == NULL)
        r->row = malloc((size_t)elems * sizeof *r->row);
    if (!direct && r->row == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a picture of %d x %d pixels", p->width, p->height);
    reader_store(r, px, &move, dtype == TY_U8, direct ? out : r->row);
    reader_erase(p, &change, dtype == TY_U8 ? 1 : sizeof(float), direct ? out : (void *)r->row);
    if (!direct)
        ty_convert_scaled(TY_F32, r->row, dtype, out, elems, 1.0, 0.0);
    return 0;
}

int ty_image_see(ty_image_reader *r, const uint8_t *bytes, size_t n, ty_image_sums *sums, ty_error *err)
{
    image_move move;
    uint8_t *px;
    int channels = r->plan->channels;
    if (reader_pixels(r, bytes, n, &(ty_chance){0}, &move, &px, err) < 0)
        return -1;
    size_t pixels = (size_t)r->plan->width * (size_t)r->plan->height;
    for (int c = 0; c < channels; c++) {
        uint64_t sum = 0, squares = 0;
        for (size_t i = 0; i < pixels; i++) {
            unsigned v = px[i * (size_t)channels + (size_t)c];
            sum += v;
            squares += (uint64_t)v * v;
        }
        sums->sum[c] += sum;
        sums->squares[c] += squares;
    }
    sums->n += pixels;
    return 0;
}

size_t ty_image_reader_bytes(const ty_image_reader *r)
{
    size_t row = r->row ? (size_t)r->plan->width * (size_t)r->plan->height * (size_t)r->plan->channels * 4 : 0;
    return r->whole.room + r->part.room + r->canvas.room + r->turned.room + r->scratch.bytes + r->decoder_bytes + row;
}

void ty_image_reader_fini(ty_image_reader *r)
{
    ty_image_fini(&r->whole);
    ty_image_fini(&r->part);
    ty_image_fini(&r->canvas);
    ty_image_fini(&r->turned);
    ty_image_scratch_fini(&r->scratch);
    free(r->row);
    *r = (ty_image_reader){.plan = r->plan};
}
