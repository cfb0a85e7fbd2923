/* taps.c - see taps.h. */
#include "compiler/target/cpu/taps.h"

#include <stdio.h>

#define TAPS_LEAST_CHANNELS 16
#define TAPS_SERIAL_FLOPS   1e6

static bool taps_suits(const ty_attr *a, const ty_type *x, const ty_type *w)
{
    return a->groups == 1 && a->flags & TY_SLIDING_LAST && x->dtype == TY_F32 && w->dim[0] >= TAPS_LEAST_CHANNELS &&
           x->dim[x->rank - 1] >= TAPS_LEAST_CHANNELS;
}

int ty_taps_make(ty_taps *t, const ty_library_shape *shape, const ty_type *x, const ty_type *w, const ty_type *y,
                 ty_error *err)
{
    const ty_attr *a = shape->attr;
    bool last = a->flags & TY_SLIDING_WEIGHTS_LAST;
    if (!taps_suits(a, x, w))
        return ty_error_set(err, TY_E_UNSUPPORTED, "not a convolution by taps");
    *t = (ty_taps){.kernels = ty_panel_best(),
                   .images = x->dim[0],
                   .in_c = x->dim[x->rank - 1],
                   .out_c = y->dim[y->rank - 1],
                   .weights_last = last};
    if (ty_sliding_make(&t->s, a, x, w->dim + (last ? 1 : 2), err) < 0)
        return -1;
    double flops = 2.0 * (double)ty_type_elems(y) * (double)(t->in_c * t->s.size_elems);
    t->threads = flops < TAPS_SERIAL_FLOPS ? 1 : shape->threads;
    char how[32];
    snprintf(how, sizeof how, "native-taps:%s", t->kernels->name);
    ty_convolution_text(how, a, x, w, t->text, sizeof t->text);
    return 0;
}
