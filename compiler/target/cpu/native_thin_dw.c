/* native_thin_dw.c - the gradient of the weights of a convolution whose x has few channels, as a network's first one
 * has, channels-last, float32.
 *
 * A row of a window is contiguous in x, and the windows of a row of y are a fixed distance apart: they are the turned
 * left side of a product with that row of dy, on the loops of panel.h. Rows of x are copied once, with what lies
 * outside.
 *
 * The rows of y, of all images, are dealt out in PARTS, whose sums are added in order: the bits do not depend on the
 * number of threads.
 */
#include "compiler/ops/sliding.h"
#include "compiler/target/cpu/convolution.h"
#include "compiler/target/cpu/native.h"
#include "compiler/target/cpu/panel.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 16, LINE = 16 /* floats of a cache line */ };
/* Sums of a short row are not worth loading and storing: rows of 112 take 0.67 to 0.9 of oneDNN's time, of 55 0.9, of
 * 26 to 32 0.93 to 1.07; and 16 filters, which fill half a panel, more than three times as long. */
enum { MOST_CHANNELS = 4, LEAST_WIDTH = 48 };
#define THIN_SERIAL_FLOPS 1e6

typedef struct thin_call {
    const ty_panel_kernels *kernels;
    int64_t images, in_h, in_w, in_c, out_h, out_w, out_c;
    int64_t size[2], step[2], lo[2];
    int64_t row_floats;                            /* of a row of x with what lies outside */
    int64_t n_panels, taps;                        /* taps: of a window, in all channels */
    int64_t rows_floats, panel_floats, sum_floats; /* a thread's rows of x and panel of dy; a part's sums */
    int threads;
    char text[TY_CONVOLUTION_TEXT];
} thin_call;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The rows of x below row `row` of y, one behind the other; zeros outside. */
static void load_rows(const thin_call *c, const float *x, int64_t row, float *to)
{
    const float *image = x + row / c->out_h * c->in_h * c->in_w * c->in_c;
    int64_t first = row % c->out_h * c->step[0] - c->lo[0], before = c->lo[1] * c->in_c;
    int64_t inside = least(c->in_w * c->in_c, c->row_floats - before);
    for (int64_t y = first; y < first + c->size[0]; y++, to += c->row_floats) {
        bool is_inside = y >= 0 && y < c->in_h;
        memset(to, 0, (size_t)c->row_floats * sizeof *to);
        if (is_inside && inside > 0)
            memcpy(to + before, image + y * c->in_w * c->in_c, (size_t)inside * sizeof *to);
    }
}

/* Adds a row of y to the sums of a part: [panels][taps][32]. */
static void add_row(const thin_call *c, const float *rows, const float *dy, bool adds, float *panel, float *sums)
{
    int64_t line = c->size[1] * c->in_c;
    for (int64_t k = 0; k < c->n_panels; k++) {
        c->kernels->pack(panel, c->out_w, dy + k * TY_PANEL, c->out_c, c->out_w, TY_PANEL);
        for (int64_t y = 0; y < c->size[0]; y++, sums += line * TY_PANEL)
            c->kernels->columns(rows + y * c->row_floats, c->step[1] * c->in_c, line, c->out_w, panel, c->out_w, sums,
                                TY_PANEL, adds);
    }
}

static void run_part(const thin_call *c, int64_t part, const float *x, const float *dy, float *own, float *sums)
{
    int64_t all = c->images * c->out_h, first = all * part / PARTS, end = all * (part + 1) / PARTS;
    if (first == end)
        memset(sums, 0, (size_t)c->sum_floats * sizeof *sums);
    for (int64_t row = first; row < end; row++) {
        load_rows(c, x, row, own);
        add_row(c, own, dy + row * c->out_w * c->out_c, row > first, own + c->rows_floats, sums);
    }
}

/* dw [filters, channels, window]; sums of parts [panels][window, channels][32]. */
static void add_parts(const thin_call *c, const float *sums, float *dw)
{
    int64_t positions = c->size[0] * c->size[1];
    for (int64_t filter = 0; filter < c->out_c; filter++)
        for (int64_t tap = 0; tap < c->taps; tap++) {
            const float *at = sums + (filter / TY_PANEL * c->taps + tap) * TY_PANEL + filter % TY_PANEL;
            float sum = at[0];
            for (int64_t part = 1; part < PARTS; part++)
                sum += at[part * c->sum_floats];
            dw[(filter * c->in_c + tap % c->in_c) * positions + tap / c->in_c] = sum;
        }
}

static void thin_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const thin_call *c = prepared;
    float *sums = scratch, *own = sums + PARTS * c->sum_floats;
#pragma omp parallel for schedule(static) num_threads(c->threads)
    for (int64_t part = 0; part < PARTS; part++)
        run_part(c, part, in[0], in[1], own + omp_get_thread_num() * (c->rows_floats + c->panel_floats),
                 sums + part * c->sum_floats);
    add_parts(c, sums, out[0]);
}

/* ---- preparing ---- */

static bool thin_takes(const ty_library_shape *s)
{
    const ty_attr *a = s->attr;
    return a->n == 2 && a->groups == 1 && a->flags & TY_SLIDING_LAST && !(a->flags & TY_SLIDING_WEIGHTS_LAST) &&
           a->dil[0] == 1 && a->dil[1] == 1 && s->res[0].dim[1] <= MOST_CHANNELS && s->res[0].dim[0] % TY_PANEL == 0 &&
           s->in[1].dim[2] >= LEAST_WIDTH;
}

static int64_t whole_lines(int64_t floats)
{
    return (floats + LINE - 1) / LINE * LINE;
}

static thin_call thin_of(const ty_library_shape *s)
{
    const int64_t *x = s->in[0].dim, *y = s->in[1].dim, *w = s->res[0].dim;
    thin_call c = {.kernels = ty_panel_best(), .images = x[0], .in_h = x[1], .in_w = x[2], .in_c = x[3]};
    c.out_h = y[1], c.out_w = y[2], c.out_c = y[3];
    for (int i = 0; i < 2; i++) {
        c.size[i] = w[2 + i];
        c.step[i] = s->attr->step[i];
        c.lo[i] = s->attr->lo[i];
    }
    c.row_floats = ((c.out_w - 1) * c.step[1] + c.size[1]) * c.in_c;
    c.taps = c.size[0] * c.size[1] * c.in_c;
    c.n_panels = c.out_c / TY_PANEL;
    c.rows_floats = whole_lines(c.size[0] * c.row_floats);
    c.panel_floats = whole_lines(c.out_w * TY_PANEL);
    c.sum_floats = c.n_panels * c.taps * TY_PANEL;
    double flops = 2.0 * (double)(c.images * c.out_h * c.out_w * c.out_c) * (double)c.taps;
    c.threads = flops < THIN_SERIAL_FLOPS ? 1 : s->threads;
    return c;
}

int ty_native_prepare_thin_dw(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    if (!thin_takes(s))
        return ty_error_set(err, TY_E_UNSUPPORTED, "not a convolution of few channels");
    thin_call *c = malloc(sizeof *c);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared convolution");
    *c = thin_of(s);
    char how[32];
    snprintf(how, sizeof how, "native-thin:%s", c->kernels->name);
    ty_convolution_text(how, s->attr, &s->in[0], &s->res[0], c->text, sizeof c->text);
    *out = (ty_library_call){.run = thin_run, .release = free, .prepared = c, .text = c->text};
    out->scratch_bytes =
        sizeof(float) * (size_t)(PARTS * c->sum_floats + c->threads * (c->rows_floats + c->panel_floats));
    return 0;
}
