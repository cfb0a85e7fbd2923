/* native_taps_dw.c - the gradient of a convolution's weights, a tap of the window at a time (taps.h).
 *
 * dy is packed once. A task is some taps, or some channels of x for one, whose sums stay in the first cache; where
 * these are few tasks, the rows of dy are dealt out in parts too, whose sums are added in order. Neither depends on the
 * number of threads.
 */
#include "compiler/target/cpu/native.h"
#include "compiler/target/cpu/taps.h"

#include <stdlib.h>
#include <string.h>

enum { TAPS_BLOCK_FLOATS = 4 * 1024, TAPS_TASKS = 16, TAPS_PARTS = 8, TAPS_ROWS = 12 /* of a tile */ };

typedef struct taps_dw_call {
    ty_taps t;
    int64_t panels, wide;     /* of y, and channels with the last one filled up */
    int64_t groups, blocks;   /* of taps; of x's channels */
    int64_t parts;            /* of rows */
    int64_t sum_floats, rows; /* of a part; of dy, of all images */
    int64_t row_floats;       /* of a packed one */
} taps_dw_call;

static void taps_pack_row(const taps_dw_call *c, const float *dy, int64_t row, float *packed)
{
    int64_t out_w = c->t.s.out[2], channels = c->t.out_c;
    for (int64_t panel = 0; panel < c->panels; panel++) {
        int64_t left = channels - panel * TY_PANEL;
        c->t.kernels->pack(packed + row * c->row_floats + panel * out_w * TY_PANEL, out_w,
                           dy + row * out_w * channels + panel * TY_PANEL, channels, out_w,
                           left < TY_PANEL ? left : TY_PANEL);
    }
}

/* Adds a row of dy to the sums of some channels for a tap; x: the row below it, at the first of these channels. */
static void taps_add_row(const taps_dw_call *c, const float *x, const float *dy, int64_t k, int64_t channels,
                         float *sums)
{
    const ty_sliding *s = &c->t.s;
    const ty_panel_kernels *kernels = c->t.kernels;
    int64_t first, end, at, step = s->step[2] * c->t.in_c;
    ty_sliding_span(s, 2, k, &first, &end, &at);
    for (int64_t from = first, n; from < end; from += n) {
        n = end - from < TY_TAPS_CHUNK ? end - from : TY_TAPS_CHUNK;
        for (int64_t panel = 0; panel < c->panels; panel++)
            kernels->columns(x + at * c->t.in_c + (from - first) * step, step, channels, n,
                             dy + panel * s->out[2] * TY_PANEL + from * kernels->strip, s->out[2],
                             sums + panel * TY_PANEL, c->wide, true);
    }
}

/* Adds a row of dy to the sums of a tap, if this is inside there. */
static void taps_add_tap(const taps_dw_call *c, int64_t row, int64_t tap, const float *x, const float *dy,
                         int64_t channels, float *sums)
{
    const ty_taps *t = &c->t;
    const int64_t *in = t->s.in, *out = t->s.out, *size = t->s.size;
    int64_t in0 = ty_taps_in(t, 0, row / out[1] % out[0], tap / (size[1] * size[2]));
    int64_t in1 = ty_taps_in(t, 1, row % out[1], tap / size[2] % size[1]);
    int64_t of_x = (row / (out[0] * out[1]) * in[0] + in0) * in[1] + in1;
    if (in0 >= 0 && in1 >= 0)
        taps_add_row(c, x + of_x * in[2] * t->in_c, dy + row * c->row_floats, tap % size[2], channels, sums);
}

/* Its sums are [taps][in_c, wide] in each part. */
static void taps_task(const taps_dw_call *c, int64_t task, const float *x, const float *dy, float *sums)
{
    const ty_taps *t = &c->t;
    int64_t block = task % c->blocks, group = task / c->blocks % c->groups, part = task / c->blocks / c->groups;
    int64_t channel = block * t->in_c / c->blocks, channels = (block + 1) * t->in_c / c->blocks - channel;
    int64_t tap = group * t->s.size_elems / c->groups, end = (group + 1) * t->s.size_elems / c->groups;
    int64_t each = t->in_c * c->wide;
    sums += part * c->sum_floats + channel * c->wide;
    for (int64_t i = tap; i < end; i++)
        memset(sums + i * each, 0, (size_t)(channels * c->wide) * sizeof *sums);
    for (int64_t row = part * c->rows / c->parts; row < (part + 1) * c->rows / c->parts; row++)
        for (int64_t i = tap; i < end; i++)
            taps_add_tap(c, row, i, x + channel, dy, channels, sums + i * each);
}

/* Sums of all parts to dw. */
static void taps_add_parts(const taps_dw_call *c, int64_t out, const float *sums, float *dw)
{
    const ty_taps *t = &c->t;
    for (int64_t in = 0; in < t->in_c; in++)
        for (int64_t tap = 0; tap < t->s.size_elems; tap++) {
            const float *at = sums + (tap * t->in_c + in) * c->wide + out;
            float sum = at[0];
            for (int64_t part = 1; part < c->parts; part++)
                sum += at[part * c->sum_floats];
            dw[ty_taps_weight(t, out, in, tap)] = sum;
        }
}

static void taps_dw_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const taps_dw_call *c = prepared;
    float *dy = scratch, *sums = dy + c->rows * c->row_floats;
#pragma omp parallel num_threads(c->t.threads)
    {
#pragma omp for schedule(static)
        for (int64_t row = 0; row < c->rows; row++)
            taps_pack_row(c, in[1], row, dy);
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < c->parts * c->groups * c->blocks; task++)
            taps_task(c, task, in[0], dy, sums);
#pragma omp for schedule(static)
        for (int64_t filter = 0; filter < c->t.out_c; filter++)
            taps_add_parts(c, filter, sums, out[0]);
    }
}

static int64_t taps_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int ty_native_prepare_taps_dw(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    taps_dw_call *c = calloc(1, sizeof *c);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared convolution");
    if (ty_taps_make(&c->t, s, &s->in[0], &s->res[0], &s->in[1], err) < 0) {
        free(c);
        return -1;
    }
    const int64_t *extent = c->t.s.out;
    c->panels = ty_panels_of(c->t.out_c);
    c->wide = c->panels * TY_PANEL;
    c->rows = c->t.images * extent[0] * extent[1];
    c->row_floats = extent[2] * c->wide;
    c->sum_floats = c->t.s.size_elems * c->t.in_c * c->wide;
    c->blocks = taps_least((c->t.in_c * c->wide + TAPS_BLOCK_FLOATS - 1) / TAPS_BLOCK_FLOATS,
                           (c->t.in_c + TAPS_ROWS - 1) / TAPS_ROWS);
    int64_t together = TAPS_BLOCK_FLOATS / (c->t.in_c * c->wide);
    c->groups = together > 1 ? (c->t.s.size_elems + together - 1) / together : c->t.s.size_elems;
    int64_t tasks = c->groups * c->blocks;
    c->parts = taps_least(taps_least((TAPS_TASKS + tasks - 1) / tasks, TAPS_PARTS), c->rows);
    *out = (ty_library_call){.run = taps_dw_run, .release = free, .prepared = c, .text = c->t.text};
    out->scratch_bytes = sizeof(float) * (size_t)(c->rows * c->row_floats + c->parts * c->sum_floats);
    return 0;
}
