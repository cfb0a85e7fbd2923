/* native_thin_dw.c - the gradient of the weights of a convolution whose x has few channels (thin.h): the windows of a
 * row of y are the turned left side of a product with that row of dy.
 *
 * The rows of y, of all images, are dealt out in PARTS, whose sums are added in order: the bits do not depend on the
 * number of threads.
 */
#include "compiler/target/cpu/native.h"
#include "compiler/target/cpu/thin.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 16 };
/* All taps of a window with few are multiplied at once, else those of each of its rows. Sums of a short row are not
 * worth loading and storing: rows of 112 take 0.67 to 0.9 of oneDNN's time, of 55 0.9, of 26 to 32 0.93 to 1.07, or
 * 0.87 with few taps; and 16 filters, which fill half a panel, more than three times as long. */
enum { FEW_TAPS = 12, LEAST_WIDTH = 48, LEAST_WIDTH_OF_FEW = 24 };

typedef struct thin_dw_call {
    ty_thin t;
    bool in_place;                    /* a row of dy is a panel as it lies */
    int64_t panel_floats, sum_floats; /* a thread's panel of dy; a part's sums */
} thin_dw_call;

static void add_panel(const ty_thin *t, const float *rows, const float *dy, bool adds, float *sums)
{
    int64_t step = t->step[1] * t->in_c, line = t->size[1] * t->in_c;
    if (t->taps <= FEW_TAPS)
        t->kernels->columns_at(rows, step, t->at, t->taps, t->out_w, dy, t->out_w, sums, TY_PANEL, adds);
    else
        for (int64_t y = 0; y < t->size[0]; y++, rows += t->row_floats, sums += line * TY_PANEL)
            t->kernels->columns(rows, step, line, t->out_w, dy, t->out_w, sums, TY_PANEL, adds);
}

/* Adds a row of y to the sums of a part: [panels][taps][32]. */
static void add_row(const thin_dw_call *c, const float *rows, const float *dy, bool adds, float *own, float *sums)
{
    const ty_thin *t = &c->t;
    for (int64_t k = 0; k < t->n_panels; k++, sums += t->taps * TY_PANEL) {
        if (!c->in_place)
            t->kernels->pack(own, t->out_w, dy + k * TY_PANEL, t->out_c, t->out_w, TY_PANEL);
        add_panel(t, rows, c->in_place ? dy : own, adds, sums);
    }
}

static void run_part(const thin_dw_call *c, int64_t part, const float *x, const float *dy, float *own, float *sums)
{
    const ty_thin *t = &c->t;
    int64_t all = t->images * t->out_h, first = all * part / PARTS, end = all * (part + 1) / PARTS;
    if (first == end)
        memset(sums, 0, (size_t)c->sum_floats * sizeof *sums);
    for (int64_t row = first; row < end; row++) {
        ty_thin_rows(t, x, row, own);
        add_row(c, own, dy + row * t->out_w * t->out_c, row > first, own + t->rows_floats, sums);
    }
}

/* dw [filters, channels, window]; sums of parts [panels][window, channels][32]. */
static void add_parts(const thin_dw_call *c, const float *sums, float *dw)
{
    const ty_thin *t = &c->t;
    int64_t positions = t->size[0] * t->size[1];
    for (int64_t filter = 0; filter < t->out_c; filter++)
        for (int64_t tap = 0; tap < t->taps; tap++) {
            const float *at = sums + (filter / TY_PANEL * t->taps + tap) * TY_PANEL + filter % TY_PANEL;
            float sum = at[0];
            for (int64_t part = 1; part < PARTS; part++)
                sum += at[part * c->sum_floats];
            dw[(filter * t->in_c + tap % t->in_c) * positions + tap / t->in_c] = sum;
        }
}

static void thin_dw_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const thin_dw_call *c = prepared;
    float *sums = scratch, *own = sums + PARTS * c->sum_floats;
#pragma omp parallel for schedule(static) num_threads(c->t.threads)
    for (int64_t part = 0; part < PARTS; part++)
        run_part(c, part, in[0], in[1], own + omp_get_thread_num() * (c->t.rows_floats + c->panel_floats),
                 sums + part * c->sum_floats);
    add_parts(c, sums, out[0]);
}

static bool thin_dw_takes(const ty_library_shape *s)
{
    const int64_t *w = s->res[0].dim, width = s->in[1].dim[2];
    return ty_thin_takes(s->attr, &s->in[0], &s->res[0]) &&
           width >= (w[1] * w[2] * w[3] <= FEW_TAPS ? LEAST_WIDTH_OF_FEW : LEAST_WIDTH);
}

int ty_native_prepare_thin_dw(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    if (!thin_dw_takes(s))
        return ty_error_set(err, TY_E_UNSUPPORTED, "not a convolution of few channels");
    thin_dw_call *c = malloc(sizeof *c);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared convolution");
    ty_thin_init(&c->t, s->attr, &s->in[0], &s->res[0], &s->in[1], s->threads);
    c->in_place = c->t.out_c == TY_PANEL && c->t.kernels->strip == TY_PANEL;
    c->panel_floats = c->in_place ? 0 : ty_thin_lines(c->t.out_w * TY_PANEL);
    c->sum_floats = c->t.n_panels * c->t.taps * TY_PANEL;
    *out = (ty_library_call){.run = thin_dw_run, .release = free, .prepared = c, .text = c->t.text};
    out->scratch_bytes =
        sizeof(float) * (size_t)(PARTS * c->sum_floats + c->t.threads * (c->t.rows_floats + c->panel_floats));
    return 0;
}
