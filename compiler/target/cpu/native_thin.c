/* native_thin.c - a convolution whose x has few channels (thin.h), forward: the windows of a row of y by a panel of
 * filters. Every number is one sum in the order of taps: the bits do not depend on the number of threads.
 */
#include "compiler/target/cpu/native.h"
#include "compiler/target/cpu/thin.h"

#include <omp.h>
#include <stdlib.h>

/* 3 x 3 windows of one channel take 0.75 of oneDNN's time channels-last; of 27 taps on nothing is gained. */
enum { MOST_TAPS = 9 };

/* w [filters, channels, window] to [panels][window, channels][32], in the strips of panel.h. */
static void load_panels(const ty_thin *t, const float *w, float *to)
{
    int64_t positions = t->size[0] * t->size[1], strip = t->kernels->strip;
    for (int64_t filter = 0; filter < t->out_c; filter++)
        for (int64_t tap = 0; tap < t->taps; tap++) {
            int64_t j = filter % TY_PANEL, panel = filter / TY_PANEL * t->taps * TY_PANEL;
            to[panel + (j / strip * t->taps + tap) * strip + j % strip] =
                w[(filter * t->in_c + tap % t->in_c) * positions + tap / t->in_c];
        }
}

static void run_row(const ty_thin *t, const float *rows, const float *panels, float *y)
{
    for (int64_t k = 0; k < t->n_panels; k++)
        t->kernels->rows_at(rows, t->step[1] * t->in_c, t->at, t->out_w, t->taps, panels + k * t->taps * TY_PANEL,
                            t->taps, y + k * TY_PANEL, t->out_c, false);
}

static void thin_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const ty_thin *t = prepared;
    float *panels = scratch, *own = panels + t->n_panels * t->taps * TY_PANEL, *y = out[0];
    load_panels(t, in[1], panels);
#pragma omp parallel for schedule(static) num_threads(t->threads)
    for (int64_t row = 0; row < t->images * t->out_h; row++) {
        float *rows = own + omp_get_thread_num() * t->rows_floats;
        ty_thin_rows(t, in[0], row, rows);
        run_row(t, rows, panels, y + row * t->out_w * t->out_c);
    }
}

int ty_native_prepare_thin(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    const ty_type *x = &s->in[0], *w = &s->in[1];
    if (!ty_thin_takes(s->attr, x, w) || w->dim[1] * w->dim[2] * w->dim[3] > MOST_TAPS)
        return ty_error_set(err, TY_E_UNSUPPORTED, "not a convolution of few taps");
    ty_thin *t = malloc(sizeof *t);
    if (!t)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared convolution");
    ty_thin_init(t, s->attr, x, w, &s->res[0], s->threads);
    *out = (ty_library_call){.run = thin_run, .release = free, .prepared = t, .text = t->text};
    out->scratch_bytes = sizeof(float) * (size_t)(t->n_panels * t->taps * TY_PANEL + t->threads * t->rows_floats);
    return 0;
}
