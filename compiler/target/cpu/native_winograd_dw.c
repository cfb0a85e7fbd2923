/* native_winograd_dw.c - the gradient of a convolution's weights by Winograd's algorithm (winograd.h): at each point a
 * product of transformed x, turned, with transformed dy, summed over tiles.
 *
 * The sums of a point, [channels, filters], are dealt out in blocks of channels by panels of 32 filters. Where all
 * tiles fit into the far cache they are transformed first, and a block is summed in one go and transformed back. Else
 * the tiles come in chunks, whose transforms stay in the second cache, and are added to the sums of all blocks.
 *
 * The chunks depend on the shape alone, and each number is summed in their order by one thread: the bits do not depend
 * on the number of threads.
 */
#include "compiler/target/cpu/native.h"
#include "compiler/target/cpu/winograd_grid.h"

#include <omp.h>
#include <stdlib.h>

enum { GROUP = 16 }; /* channels whose weights are turned around at a time */
enum { POINTS = TY_WINOGRAD_POINTS, TAPS = TY_WINOGRAD_TAPS };
#define WINOGRAD_SERIAL_FLOPS 1e6
#define WINOGRAD_WHOLE_BYTES  (12 << 20) /* of all tiles, of x and dy, that need no chunks */
#define WINOGRAD_CHUNK_BYTES  (3 << 18)
#define WINOGRAD_SUM_BYTES    (3 << 18) /* of a block's sums */

typedef struct winograd_dw_call {
    ty_winograd_grid g;
    int threads;
    int64_t n_chunks, chunk;           /* tiles of a chunk at most */
    int64_t n_panels, n_blocks, block; /* of filters; of channels, and their number in a block */
    int64_t x_step, dy_step;           /* a chunk: [points][strips][tiles][strip] */
    int64_t sum_step, sum_floats;      /* a block: [points][channels][32] */
    int64_t n_sums;
    char text[TY_CONVOLUTION_TEXT];
} winograd_dw_call;

/* One run. */
typedef struct winograd_dw_job {
    const winograd_dw_call *call;
    const float *x, *dy;
    float *dw;
    float *x_tiles, *dy_tiles, *sums;
} winograd_dw_job;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t chunk_first(const winograd_dw_call *c, int64_t chunk)
{
    return c->g.tiles * chunk / c->n_chunks;
}

static void transform_chunk(const winograd_dw_job *job, int64_t chunk)
{
    const winograd_dw_call *c = job->call;
    int64_t strip = c->g.panels->strip, first = chunk_first(c, chunk), n = chunk_first(c, chunk + 1) - first;
#pragma omp for schedule(static)
    for (int64_t t = 0; t < n; t++) {
        const ty_winograd_place x = {job->x_tiles + t * strip, c->x_step, c->chunk * strip};
        const ty_winograd_place dy = {job->dy_tiles + t * strip, c->dy_step, c->chunk * strip};
        ty_winograd_patches(&c->g, job->x, first + t, 1, &x, 0);
        ty_winograd_tiles(&c->g, job->dy, first + t, 1, &dy, 0);
    }
}

/* Adds a chunk to the sums of a block. */
static void sum_chunk(const winograd_dw_job *job, int64_t chunk, int64_t panel, int64_t channel, int64_t channels,
                      float *sums)
{
    const winograd_dw_call *c = job->call;
    int64_t n = chunk_first(c, chunk + 1) - chunk_first(c, chunk), strip = c->g.panels->strip;
    for (int64_t i = 0; i < POINTS; i++) {
        const float *x = job->x_tiles + i * c->x_step + channel * c->chunk;
        const float *dy = job->dy_tiles + i * c->dy_step + panel * TY_PANEL * c->chunk;
        for (int64_t j = 0; j < channels; j += strip)
            c->g.panels->columns(x + j * c->chunk, strip, least(strip, channels - j), n, dy, c->chunk,
                                 sums + i * c->sum_step + j * TY_PANEL, TY_PANEL, chunk > 0);
    }
}

/* The weights of a block: dw is [filters, channels, 3, 3]. */
static void write_block(const winograd_dw_job *job, int64_t panel, int64_t channel, int64_t channels, const float *sums)
{
    _Alignas(64) float taps[GROUP * TAPS * TY_PANEL];
    const winograd_dw_call *c = job->call;
    const ty_winograd_grid *g = &c->g;
    int64_t filter = panel * TY_PANEL;
    for (int64_t done = 0, n; done < channels; done += n) {
        n = least(GROUP, channels - done);
        for (int64_t j = 0; j < TY_PANEL; j += g->panels->strip)
            g->kernels->filter(sums + done * TY_PANEL + j, c->sum_step, TY_PANEL, n, taps + n * TAPS * j);
        g->panels->unpack_turned(job->dw + (filter * g->in_c + channel + done) * TAPS, g->in_c * TAPS, taps, n * TAPS,
                                 n * TAPS, least(TY_PANEL, g->out_c - filter));
    }
}

static void run_chunk(const winograd_dw_job *job, int64_t chunk)
{
    const winograd_dw_call *c = job->call;
    transform_chunk(job, chunk);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < c->n_panels * c->n_blocks; i++) {
        int64_t panel = i / c->n_blocks, channel = i % c->n_blocks * c->block;
        int64_t channels = least(c->block, c->g.in_c - channel);
        float *sums = job->sums + (c->n_chunks > 1 ? i : omp_get_thread_num()) * c->sum_floats;
        sum_chunk(job, chunk, panel, channel, channels, sums);
        if (chunk == c->n_chunks - 1)
            write_block(job, panel, channel, channels, sums);
    }
}

static void winograd_dw_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const winograd_dw_call *c = prepared;
    winograd_dw_job job = {.call = c, .x = in[0], .dy = in[1], .dw = out[0], .x_tiles = scratch};
    job.dy_tiles = job.x_tiles + POINTS * c->x_step;
    job.sums = job.dy_tiles + POINTS * c->dy_step;
#pragma omp parallel num_threads(c->threads)
    for (int64_t chunk = 0; chunk < c->n_chunks; chunk++)
        run_chunk(&job, chunk);
}

static void winograd_dw_release(void *prepared)
{
    winograd_dw_call *c = prepared;
    ty_winograd_grid_free(&c->g);
    free(c);
}

/* ---- preparing ---- */

static void winograd_dw_measure(winograd_dw_call *c, ty_library_call *out)
{
    const ty_winograd_grid *g = &c->g;
    c->n_panels = (g->out_c + TY_PANEL - 1) / TY_PANEL;
    int64_t x_channels = (g->in_c + TY_PANEL - 1) / TY_PANEL * TY_PANEL;
    int64_t tile_bytes = POINTS * (int64_t)sizeof(float) * (x_channels + c->n_panels * TY_PANEL);
    int64_t most = WINOGRAD_CHUNK_BYTES / tile_bytes;
    c->n_chunks = tile_bytes * g->tiles <= WINOGRAD_WHOLE_BYTES ? 1 : (g->tiles + most - 1) / most;
    c->chunk = (g->tiles + c->n_chunks - 1) / c->n_chunks;
    c->x_step = ty_winograd_odd(c->chunk * x_channels);
    c->dy_step = ty_winograd_odd(c->chunk * TY_PANEL * c->n_panels);
    int64_t rows = WINOGRAD_SUM_BYTES / (POINTS * TY_PANEL * (int64_t)sizeof(float)) / TY_PANEL * TY_PANEL;
    c->n_blocks = (g->in_c + rows - 1) / rows;
    while (c->n_blocks * c->n_panels < c->threads && g->in_c / c->n_blocks > TY_PANEL)
        c->n_blocks *= 2;
    c->block = (g->in_c + c->n_blocks * TY_PANEL - 1) / (c->n_blocks * TY_PANEL) * TY_PANEL;
    c->n_blocks = (g->in_c + c->block - 1) / c->block;
    c->sum_step = ty_winograd_odd(c->block * TY_PANEL);
    c->sum_floats = POINTS * c->sum_step;
    c->n_sums = c->n_chunks > 1 ? c->n_panels * c->n_blocks : c->threads;
    out->scratch_bytes = sizeof(float) * (size_t)(POINTS * (c->x_step + c->dy_step) + c->n_sums * c->sum_floats);
}

int ty_winograd_prepare_dw(const ty_panel_kernels *panels, const ty_library_shape *s, ty_library_call *out,
                           ty_error *err)
{
    ty_winograd_grid g;
    if (ty_winograd_grid_init(&g, panels, s, &s->in[0], &s->res[0], &s->in[1], false, err) < 0)
        return -1;
    winograd_dw_call *c = malloc(sizeof *c);
    if (!c) {
        ty_winograd_grid_free(&g);
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared convolution");
    }
    *c = (winograd_dw_call){.g = g};
    c->threads = ty_winograd_flops(&g) < WINOGRAD_SERIAL_FLOPS ? 1 : s->threads;
    ty_winograd_text(&g, s->attr, &s->in[0], &s->res[0], c->text);
    *out = (ty_library_call){.run = winograd_dw_run, .release = winograd_dw_release, .prepared = c, .text = c->text};
    winograd_dw_measure(c, out);
    return 0;
}

int ty_native_prepare_winograd_dw(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return ty_winograd_prepare_dw(ty_panel_best(), s, out, err);
}
