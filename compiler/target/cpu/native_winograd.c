/* native_winograd.c - convolutions of float32 or bfloat16 by Winograd's algorithm (winograd.h), straight on
 * channels-last tensors and on weights as they lie; and the gradient of x, which is one of dy with the weights turned
 * by half a circle.
 *
 * Tiles are taken in blocks. The transformed tiles of a block, at a point, are the rows of a product on the loops of
 * panel.h, whose panels are the transformed weights; a block's products with a panel of 32 filters stay in the second
 * cache until they are transformed back. What is smaller in all, weights or tiles, is transformed first and kept; a
 * thread then goes through the other once: through blocks of tiles where images are large, through panels of filters
 * where there are many filters and few tiles.
 *
 * Every number is computed in one way, whoever computes it: the bits do not depend on the number of threads.
 */
#include "compiler/target/cpu/native.h"
#include "compiler/target/cpu/winograd_grid.h"

#include <omp.h>
#include <stdlib.h>

enum { GROUP = 16 }; /* channels whose weights are turned around at a time */
enum { POINTS = TY_WINOGRAD_POINTS, TAPS = TY_WINOGRAD_TAPS };
#define WINOGRAD_SERIAL_FLOPS 1e6
#define WINOGRAD_BLOCK_BYTES  (3 << 18) /* in the second cache: a block's tiles, its products with a panel */

typedef struct winograd_call {
    ty_winograd_grid g;
    bool turned;        /* the gradient of x */
    bool short_weights; /* bfloat16 */
    bool weights_first; /* all weights are transformed first, else all tiles */
    int threads;
    int64_t n_panels, n_blocks;
    int64_t tile_row, tile_step, tile_floats; /* a block: [points][tiles][channels] */
    int64_t panel_step, panel_floats;         /* [points][channels][32] */
    int64_t product_step, product_floats;     /* [points][tiles][32] */
    int64_t thread_floats;
    char text[TY_CONVOLUTION_TEXT];
} winograd_call;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t block_first(const winograd_call *c, int64_t block)
{
    return c->g.tiles * block / c->n_blocks;
}

static void transform_block(const winograd_call *c, const void *x, int64_t block, float *to)
{
    const ty_winograd_place place = {to, c->tile_step, c->g.panels->strip};
    int64_t first = block_first(c, block);
    ty_winograd_patches(&c->g, x, first, block_first(c, block + 1) - first, &place, c->tile_row);
}

/* `rows` rows of n weights from number `first` on, *step apart: where they lie, or as float32 in `to`, n apart. */
static const float *read_weights(const winograd_call *c, const void *w, int64_t first, int64_t rows, int64_t n,
                                 int64_t *step, float *to)
{
    if (!c->short_weights)
        return (const float *)w + first;
    for (int64_t r = 0; r < rows; r++)
        ty_native_load_short(TY_BF16, (const uint16_t *)w + first + r * *step, to + r * n, (int)n);
    *step = n;
    return to;
}

/* GROUP channels or fewer from `channel` on, of a strip of filters from `filter` on: its taps, [channels][9][strip]. w
 * is [filters, channels, 3, 3]. */
static void load_filters(const winograd_call *c, const void *w, int64_t channel, int64_t n, int64_t filter, float *to)
{
    float wide[TY_PANEL * GROUP * TAPS];
    const ty_winograd_grid *g = &c->g;
    int64_t filters = least(TY_PANEL, g->out_c - filter), step = g->in_c * TAPS;
    const float *from = read_weights(c, w, (filter * g->in_c + channel) * TAPS, filters, n * TAPS, &step, wide);
    g->panels->pack_turned(to, n * TAPS, from, step, n * TAPS, filters);
}

/* The same of w [channels, filters, 3, 3]. */
static void load_turned(const winograd_call *c, const void *w, int64_t channel, int64_t n, int64_t filter, float *to)
{
    float wide[GROUP * TY_PANEL * TAPS];
    const ty_winograd_grid *g = &c->g;
    int64_t filters = least(TY_PANEL, g->out_c - filter), step = g->out_c * TAPS;
    const float *from = read_weights(c, w, (channel * g->out_c + filter) * TAPS, n, filters * TAPS, &step, wide);
    for (int j = 0; j < TY_PANEL; j += g->panels->strip, to += n * TAPS * g->panels->strip)
        g->kernels->taps(from + j * TAPS, step, n, filters > j ? filters - j : 0, to);
}

static void transform_panel(const winograd_call *c, const void *w, int64_t panel, float *to)
{
    _Alignas(64) float taps[GROUP * TAPS * TY_PANEL];
    const ty_winograd_grid *g = &c->g;
    int64_t strip = g->panels->strip;
    for (int64_t channel = 0, n; channel < g->in_c; channel += n) {
        n = least(GROUP, g->in_c - channel);
        (c->turned ? load_turned : load_filters)(c, w, channel, n, panel * TY_PANEL, taps);
        for (int64_t j = 0; j < TY_PANEL; j += strip)
            g->kernels->weights(taps + n * TAPS * j, n, c->turned, to + j * g->in_c + channel * strip, c->panel_step);
    }
}

static void multiply(const winograd_call *c, const float *tiles, const float *panel, int64_t n, float *products)
{
    for (int64_t i = 0; i < POINTS; i++)
        c->g.panels->rows(tiles + i * c->tile_step, c->tile_row, n, c->g.in_c, panel + i * c->panel_step, c->g.in_c,
                          products + i * c->product_step, TY_PANEL, false);
}

/* A block of tiles by a panel of filters. */
static void convolve(const winograd_call *c, int64_t block, const float *tiles, int64_t panel, const float *weights,
                     float *products, void *y)
{
    int64_t first = block_first(c, block), n = block_first(c, block + 1) - first, filter = panel * TY_PANEL;
    multiply(c, tiles, weights, n, products);
    char *to = (char *)y + filter * (int64_t)ty_dtype_bytes(c->g.out_type);
    ty_winograd_results(&c->g, to, first, n, least(TY_PANEL, c->g.out_c - filter), products, c->product_step, TY_PANEL);
}

static float *thread_scratch(const winograd_call *c, float *scratch)
{
    return scratch + omp_get_thread_num() * c->thread_floats;
}

static void run_weights_first(const winograd_call *c, const void *x, const void *w, void *y, float *scratch)
{
    float *panels = scratch, *own = panels + c->n_panels * c->panel_floats;
#pragma omp parallel num_threads(c->threads)
    {
        float *tiles = thread_scratch(c, own), *products = tiles + c->tile_floats;
#pragma omp for schedule(static)
        for (int64_t panel = 0; panel < c->n_panels; panel++)
            transform_panel(c, w, panel, panels + panel * c->panel_floats);
#pragma omp for schedule(static)
        for (int64_t block = 0; block < c->n_blocks; block++) {
            transform_block(c, x, block, tiles);
            for (int64_t panel = 0; panel < c->n_panels; panel++)
                convolve(c, block, tiles, panel, panels + panel * c->panel_floats, products, y);
        }
    }
}

static void run_tiles_first(const winograd_call *c, const void *x, const void *w, void *y, float *scratch)
{
    float *tiles = scratch, *own = tiles + c->n_blocks * c->tile_floats;
#pragma omp parallel num_threads(c->threads)
    {
        float *weights = thread_scratch(c, own), *products = weights + c->panel_floats;
#pragma omp for schedule(static)
        for (int64_t block = 0; block < c->n_blocks; block++)
            transform_block(c, x, block, tiles + block * c->tile_floats);
#pragma omp for schedule(static)
        for (int64_t panel = 0; panel < c->n_panels; panel++) {
            transform_panel(c, w, panel, weights);
            for (int64_t block = 0; block < c->n_blocks; block++)
                convolve(c, block, tiles + block * c->tile_floats, panel, weights, products, y);
        }
    }
}

static void winograd_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const winograd_call *c = prepared;
    (c->weights_first ? run_weights_first : run_tiles_first)(c, in[0], in[1], out[0], scratch);
}

static void winograd_release(void *prepared)
{
    winograd_call *c = prepared;
    ty_winograd_grid_free(&c->g);
    free(c);
}

/* ---- preparing ---- */

/* Tiles of a block: whole tiles of the products' rows, as many as a cache holds. Where all tiles are transformed first
 * they come from afar anyway, and many of them share what is read of a panel. */
static int64_t block_tiles(const winograd_call *c)
{
    int64_t rows = c->g.panels->tile_rows, floats = TY_PANEL + (c->weights_first ? c->tile_row : 0);
    int64_t fit = WINOGRAD_BLOCK_BYTES / (POINTS * (int64_t)sizeof(float) * floats) / rows * rows;
    return fit < 2 * rows ? 2 * rows : fit;
}

static void winograd_measure(winograd_call *c, ty_library_call *out)
{
    const ty_winograd_grid *g = &c->g;
    c->n_panels = ty_panels_of(g->out_c);
    c->weights_first = c->n_panels * TY_PANEL <= g->tiles || c->n_panels < c->threads;
    c->tile_row = ty_winograd_odd(g->in_c);
    int64_t most = block_tiles(c);
    c->n_blocks = (g->tiles + most - 1) / most;
    int64_t tiles = (g->tiles + c->n_blocks - 1) / c->n_blocks;
    c->tile_step = ty_winograd_odd(tiles * c->tile_row);
    c->tile_floats = POINTS * c->tile_step;
    c->panel_step = ty_winograd_odd(g->in_c * TY_PANEL);
    c->panel_floats = POINTS * c->panel_step;
    c->product_step = ty_winograd_odd(tiles * TY_PANEL);
    c->product_floats = POINTS * c->product_step;
    c->thread_floats = c->product_floats + (c->weights_first ? c->tile_floats : c->panel_floats);
    int64_t first = c->weights_first ? c->n_panels * c->panel_floats : c->n_blocks * c->tile_floats;
    out->scratch_bytes = sizeof(float) * (size_t)(first + c->threads * c->thread_floats);
}

int ty_winograd_prepare(const ty_panel_kernels *panels, const ty_library_shape *s, bool turned, ty_library_call *out,
                        ty_error *err)
{
    const ty_type *x = turned ? &s->res[0] : &s->in[0], *w = &s->in[1], *y = turned ? &s->in[0] : &s->res[0];
    ty_winograd_grid g;
    if (ty_winograd_grid_init(&g, panels, s, x, w, y, turned, err) < 0)
        return -1;
    winograd_call *c = malloc(sizeof *c);
    if (!c) {
        ty_winograd_grid_free(&g);
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared convolution");
    }
    *c = (winograd_call){.g = g, .turned = turned, .short_weights = w->dtype == TY_BF16};
    c->threads = ty_winograd_flops(&g) < WINOGRAD_SERIAL_FLOPS ? 1 : s->threads;
    ty_winograd_text(&g, s->attr, x, w, c->text);
    *out = (ty_library_call){.run = winograd_run, .release = winograd_release, .prepared = c, .text = c->text};
    winograd_measure(c, out);
    return 0;
}

int ty_native_prepare_winograd(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return ty_winograd_expect_pays(s, err) < 0 ? -1 : ty_winograd_prepare(ty_panel_best(), s, false, out, err);
}

int ty_native_prepare_winograd_dx(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return ty_winograd_expect_pays(s, err) < 0 ? -1 : ty_winograd_prepare(ty_panel_best(), s, true, out, err);
}
