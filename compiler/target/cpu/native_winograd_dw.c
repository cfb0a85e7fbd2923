/* native_winograd_dw.c - the gradient of a convolution's weights by Winograd's algorithm (winograd.h), of float32 or
 * bfloat16 x and dy: at each point a product of transformed x, turned, with transformed dy, summed over tiles.
 *
 * The sums of a point, [channels, filters], are dealt out in blocks of channels by panels of 32 filters, to all
 * threads. The tiles come in chunks, which are transformed first and stay in the far cache, and are added to the sums
 * of all blocks: each chunk takes the sums from there and back, so that few are better. Where one chunk is enough a
 * block is transformed back at once.
 *
 * Where the sums of all blocks stay near a thread, chunks are smaller, for the second cache, and are dealt out in
 * parts. A thread takes a part by itself, tiles and sums, and meets the others once, when the parts' sums are added:
 * two meetings a chunk cost a few dozen times as many, and each lasts a time slice where something else runs on a
 * processor.
 *
 * Chunks and parts depend on the shape alone, and each number is summed in their order: the bits do not depend on the
 * number of threads.
 */
#include "compiler/target/cpu/clones.h"
#include "compiler/target/cpu/native.h"
#include "compiler/target/cpu/winograd_grid.h"

#include <omp.h>
#include <stdlib.h>

enum { GROUP = 16 }; /* channels whose weights are turned around at a time */
enum { POINTS = TY_WINOGRAD_POINTS, TAPS = TY_WINOGRAD_TAPS };
/* Each part's sums are written and read once more: few parts, and several chunks in each. */
enum { MOST_PARTS = 8, LEAST_CHUNKS = 2 };
enum { EVEN_BLOCKS = 4 }; /* of a thread: with as many it does not matter who has one more */
#define WINOGRAD_SERIAL_FLOPS 1e6
#define WINOGRAD_CHUNK_BYTES  (12 << 20) /* of tiles, of x and dy, that all threads share */
#define WINOGRAD_OWN_BYTES    (3 << 18)  /* of tiles of a thread's own */
#define WINOGRAD_SUM_BYTES    (6 << 18)  /* of a block's sums, of a part's */

typedef struct winograd_dw_call {
    ty_winograd_grid g;
    int threads;
    int64_t n_chunks, chunk;           /* tiles of a chunk at most */
    int64_t n_panels, n_blocks, block; /* of filters; of channels, and their number in a block */
    int64_t x_step, dy_step;           /* a chunk: [points][strips][tiles][strip] */
    int64_t sum_step, sum_floats;      /* a block: [points][channels][32] */
    int64_t n_parts;                   /* 0: all threads share a chunk */
    int64_t n_sums;
    char text[TY_CONVOLUTION_TEXT];
} winograd_dw_call;

/* One run. */
typedef struct winograd_dw_job {
    const winograd_dw_call *call;
    const void *x, *dy;
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

static int64_t chunk_tiles(const winograd_dw_call *c, int64_t chunk)
{
    return chunk_first(c, chunk + 1) - chunk_first(c, chunk);
}

/* n tiles of a chunk from its tile t on. */
static void transform_tiles(const winograd_dw_job *job, int64_t chunk, int64_t t, int64_t n)
{
    const winograd_dw_call *c = job->call;
    int64_t strip = c->g.panels->strip, first = chunk_first(c, chunk) + t;
    const ty_winograd_place x = {job->x_tiles + t * strip, c->x_step, c->chunk * strip};
    const ty_winograd_place dy = {job->dy_tiles + t * strip, c->dy_step, c->chunk * strip};
    ty_winograd_patches(&c->g, job->x, first, n, &x, strip);
    ty_winograd_tiles(&c->g, job->dy, first, n, &dy, strip);
}

/* Adds a chunk to the sums of a block, or begins them. */
static void sum_chunk(const winograd_dw_job *job, int64_t chunk, int64_t panel, int64_t channel, int64_t channels,
                      float *sums, bool adds)
{
    const winograd_dw_call *c = job->call;
    int64_t n = chunk_tiles(c, chunk), strip = c->g.panels->strip;
    for (int64_t i = 0; i < POINTS; i++) {
        const float *x = job->x_tiles + i * c->x_step + channel * c->chunk;
        const float *dy = job->dy_tiles + i * c->dy_step + panel * TY_PANEL * c->chunk;
        for (int64_t j = 0; j < channels; j += strip)
            c->g.panels->columns(x + j * c->chunk, strip, least(strip, channels - j), n, dy, c->chunk,
                                 sums + i * c->sum_step + j * TY_PANEL, TY_PANEL, adds);
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
#pragma omp for schedule(static)
    for (int64_t t = 0; t < chunk_tiles(c, chunk); t++)
        transform_tiles(job, chunk, t, 1);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < c->n_panels * c->n_blocks; i++) {
        int64_t panel = i / c->n_blocks, channel = i % c->n_blocks * c->block;
        int64_t channels = least(c->block, c->g.in_c - channel);
        float *sums = job->sums + (c->n_chunks > 1 ? i : omp_get_thread_num()) * c->sum_floats;
        sum_chunk(job, chunk, panel, channel, channels, sums, chunk > 0);
        if (chunk == c->n_chunks - 1)
            write_block(job, panel, channel, channels, sums);
    }
}

/* ---- in parts ---- */

/* By one thread, on tiles of its own: the sums of a part, [panels] of a block each. */
static void run_part(const winograd_dw_job *job, int64_t part)
{
    const winograd_dw_call *c = job->call;
    winograd_dw_job own = *job;
    own.x_tiles += omp_get_thread_num() * POINTS * (c->x_step + c->dy_step);
    own.dy_tiles = own.x_tiles + POINTS * c->x_step;
    float *sums = job->sums + part * c->n_panels * c->sum_floats;
    int64_t first = c->n_chunks * part / c->n_parts, end = c->n_chunks * (part + 1) / c->n_parts;
    for (int64_t chunk = first; chunk < end; chunk++) {
        transform_tiles(&own, chunk, 0, chunk_tiles(c, chunk));
        for (int64_t panel = 0; panel < c->n_panels; panel++)
            sum_chunk(&own, chunk, panel, 0, c->g.in_c, sums + panel * c->sum_floats, chunk > first);
    }
}

TY_CPU_CLONES static void add_floats(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* Adds the other parts' sums of some channels to those of the first, and writes their weights. */
static void add_parts(const winograd_dw_job *job, int64_t panel, int64_t channel)
{
    const winograd_dw_call *c = job->call;
    int64_t channels = least(GROUP, c->g.in_c - channel), part_floats = c->n_panels * c->sum_floats;
    float *sums = job->sums + panel * c->sum_floats + channel * TY_PANEL;
    for (int64_t i = 0; i < POINTS; i++)
        for (int64_t part = 1; part < c->n_parts; part++)
            add_floats(sums + i * c->sum_step, sums + i * c->sum_step + part * part_floats, channels * TY_PANEL);
    write_block(job, panel, channel, channels, sums);
}

static void run_parts(const winograd_dw_job *job)
{
    const winograd_dw_call *c = job->call;
    int64_t groups = (c->g.in_c + GROUP - 1) / GROUP;
#pragma omp parallel num_threads(c->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t part = 0; part < c->n_parts; part++)
            run_part(job, part);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < c->n_panels * groups; i++)
            add_parts(job, i / groups, i % groups * GROUP);
    }
}

static void winograd_dw_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const winograd_dw_call *c = prepared;
    winograd_dw_job job = {.call = c, .x = in[0], .dy = in[1], .dw = out[0], .x_tiles = scratch};
    job.dy_tiles = job.x_tiles + POINTS * c->x_step;
    job.sums = job.x_tiles + (c->n_parts ? c->threads : 1) * POINTS * (c->x_step + c->dy_step);
    if (c->n_parts) {
        run_parts(&job);
        return;
    }
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

/* Chunks, and the parts that they are dealt out in. x_channels: of x, in whole panels. */
static void winograd_dw_chunks(winograd_dw_call *c, int64_t x_channels)
{
    int64_t point_bytes = POINTS * (int64_t)sizeof(float), y_channels = c->n_panels * TY_PANEL;
    int64_t tile_bytes = point_bytes * (x_channels + y_channels), all = tile_bytes * c->g.tiles;
    int64_t n = (all + WINOGRAD_OWN_BYTES - 1) / WINOGRAD_OWN_BYTES;
    if (all > WINOGRAD_CHUNK_BYTES && point_bytes * x_channels * y_channels <= WINOGRAD_SUM_BYTES) {
        c->n_parts = least(MOST_PARTS, n / LEAST_CHUNKS);
        c->n_chunks = (n + c->n_parts - 1) / c->n_parts * c->n_parts;
    } else {
        c->n_chunks = least((all + WINOGRAD_CHUNK_BYTES - 1) / WINOGRAD_CHUNK_BYTES, c->g.tiles);
    }
    c->chunk = (c->g.tiles + c->n_chunks - 1) / c->n_chunks;
}

/* Some threads would have one block more than others, of few. */
static bool winograd_dw_is_uneven(const winograd_dw_call *c)
{
    int64_t n = c->n_blocks * c->n_panels;
    return n % c->threads && n < EVEN_BLOCKS * c->threads && c->g.in_c / c->n_blocks > TY_PANEL;
}

/* Blocks of channels: all of them where there are parts; else as many to each thread, or several. */
static void winograd_dw_blocks(winograd_dw_call *c)
{
    const ty_winograd_grid *g = &c->g;
    int64_t rows = WINOGRAD_SUM_BYTES / (POINTS * TY_PANEL * (int64_t)sizeof(float)) / TY_PANEL * TY_PANEL;
    c->n_blocks = c->n_parts ? 1 : (g->in_c + rows - 1) / rows;
    while (!c->n_parts && winograd_dw_is_uneven(c))
        c->n_blocks *= 2;
    c->block = (g->in_c + c->n_blocks * TY_PANEL - 1) / (c->n_blocks * TY_PANEL) * TY_PANEL;
    c->n_blocks = (g->in_c + c->block - 1) / c->block;
    c->sum_step = ty_winograd_odd(c->block * TY_PANEL);
    c->sum_floats = POINTS * c->sum_step;
    if (c->n_parts)
        c->n_sums = c->n_parts * c->n_panels;
    else
        c->n_sums = c->n_chunks > 1 ? c->n_panels * c->n_blocks : c->threads;
}

static void winograd_dw_measure(winograd_dw_call *c, ty_library_call *out)
{
    int64_t x_channels = ty_panels_of(c->g.in_c) * TY_PANEL;
    c->n_panels = ty_panels_of(c->g.out_c);
    winograd_dw_chunks(c, x_channels);
    c->x_step = ty_winograd_odd(c->chunk * x_channels);
    c->dy_step = ty_winograd_odd(c->chunk * TY_PANEL * c->n_panels);
    winograd_dw_blocks(c);
    int64_t tiles = (c->n_parts ? c->threads : 1) * POINTS * (c->x_step + c->dy_step);
    out->scratch_bytes = sizeof(float) * (size_t)(tiles + c->n_sums * c->sum_floats);
}

int ty_winograd_prepare_dw(const ty_panel_kernels *panels, const ty_library_shape *s, ty_library_call *out,
                           ty_error *err)
{
    ty_winograd_grid g;
    if (s->res[0].dtype != TY_F32)
        return ty_error_set(err, TY_E_UNSUPPORTED, "weights' gradients are float32");
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
    return ty_winograd_expect_pays(s, err) < 0 ? -1 : ty_winograd_prepare_dw(ty_panel_best(), s, out, err);
}
