/* thin.c - see thin.h. */
#include "compiler/target/cpu/thin.h"

#include "compiler/ops/sliding.h"

#include <stdio.h>
#include <string.h>

enum { LINE = 16 /* floats of a cache line */ };
#define THIN_SERIAL_FLOPS 1e6

int64_t ty_thin_lines(int64_t floats)
{
    return (floats + LINE - 1) / LINE * LINE;
}

bool ty_thin_takes(const ty_attr *a, const ty_type *x, const ty_type *w)
{
    return a->n == 2 && a->groups == 1 && a->flags & TY_SLIDING_LAST && !(a->flags & TY_SLIDING_WEIGHTS_LAST) &&
           a->dil[0] == 1 && a->dil[1] == 1 && x->dtype == TY_F32 && w->dim[1] <= TY_THIN_CHANNELS &&
           w->dim[0] % TY_PANEL == 0 && w->dim[1] * w->dim[2] * w->dim[3] <= TY_THIN_TAPS;
}

/* Taps in the order in which they lie in x: rows, columns, channels. */
static void thin_taps(ty_thin *t)
{
    int64_t line = t->size[1] * t->in_c;
    t->taps = t->size[0] * line;
    for (int64_t tap = 0; tap < t->taps; tap++)
        t->at[tap] = tap / line * t->row_floats + tap % line;
}

void ty_thin_init(ty_thin *t, const ty_attr *attr, const ty_type *x, const ty_type *w, const ty_type *y, int threads)
{
    char how[32];
    *t = (ty_thin){.kernels = ty_panel_best(), .images = x->dim[0], .threads = threads};
    t->in_h = x->dim[1], t->in_w = x->dim[2], t->in_c = x->dim[3];
    t->out_h = y->dim[1], t->out_w = y->dim[2], t->out_c = y->dim[3];
    for (int i = 0; i < 2; i++) {
        t->size[i] = w->dim[2 + i];
        t->step[i] = attr->step[i];
        t->lo[i] = attr->lo[i];
    }
    t->row_floats = ((t->out_w - 1) * t->step[1] + t->size[1]) * t->in_c;
    t->rows_floats = ty_thin_lines(t->size[0] * t->row_floats);
    t->n_panels = t->out_c / TY_PANEL;
    thin_taps(t);
    if (2.0 * (double)ty_type_elems(y) * (double)t->taps < THIN_SERIAL_FLOPS)
        t->threads = 1;
    snprintf(how, sizeof how, "native-thin:%s", t->kernels->name);
    ty_convolution_text(how, attr, x, w, t->text, sizeof t->text);
}

void ty_thin_rows(const ty_thin *t, const float *x, int64_t row, float *to)
{
    const float *image = x + row / t->out_h * t->in_h * t->in_w * t->in_c;
    int64_t first = row % t->out_h * t->step[0] - t->lo[0], before = t->lo[1] * t->in_c;
    int64_t inside = t->row_floats - before;
    if (inside > t->in_w * t->in_c)
        inside = t->in_w * t->in_c;
    for (int64_t y = first; y < first + t->size[0]; y++, to += t->row_floats) {
        bool is_inside = y >= 0 && y < t->in_h;
        memset(to, 0, (size_t)t->row_floats * sizeof *to);
        if (is_inside && inside > 0)
            memcpy(to + before, image + y * t->in_w * t->in_c, (size_t)inside * sizeof *to);
    }
}
