/* conv_case.h - convolutions of images with channels last, as rows of a table: their types and attributes. */
#ifndef TY_TESTS_UNIT_CONV_CASE_H
#define TY_TESTS_UNIT_CONV_CASE_H

#include "tests/unit/native_case.h"

typedef struct conv_case {
    int64_t images, h, w, channels, filters, size_h, size_w, step_h, step_w, lo, hi;
} conv_case;

static inline ty_type case_weights(const conv_case *c)
{
    return ty_type_make(TY_F32, DIMS(c->filters, c->channels, c->size_h, c->size_w));
}

static inline ty_attr case_attr(const conv_case *c)
{
    return (ty_attr){.n = 2,
                     .groups = 1,
                     .flags = TY_SLIDING_LAST,
                     .step = {c->step_h, c->step_w},
                     .dil = {1, 1},
                     .lo = {c->lo, c->lo},
                     .hi = {c->hi, c->hi},
                     .type = case_weights(c)};
}

/* x and y */
static inline void case_types(const conv_case *c, ty_type types[2])
{
    int64_t h = (c->h + c->lo + c->hi - c->size_h) / c->step_h + 1;
    int64_t w = (c->w + c->lo + c->hi - c->size_w) / c->step_w + 1;
    types[0] = ty_type_make(TY_F32, DIMS(c->images, c->h, c->w, c->channels));
    types[1] = ty_type_make(TY_F32, DIMS(c->images, h, w, c->filters));
}

#endif
