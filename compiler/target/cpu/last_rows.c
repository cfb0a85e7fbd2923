/* last_rows.c - see last_rows.h. */
#include "compiler/target/cpu/last_rows.h"

#include "compiler/target/cpu/native.h"

#include <string.h>

ty_last_rows ty_last_rows_make(const ty_attr *attr, const ty_type *x, const int64_t *size, int64_t out_w)
{
    int64_t wide = (x->dim[3] + TY_LAST_LANES - 1) / TY_LAST_LANES * TY_LAST_LANES;
    return (ty_last_rows){.is_half = x->dtype == TY_BF16,
                          .in_h = x->dim[1],
                          .in_w = x->dim[2],
                          .channels = x->dim[3],
                          .wide = wide,
                          .lo = attr->lo[1],
                          .row_floats = ((out_w - 1) * attr->step[1] + (size[1] - 1) * attr->dil[1] + 1) * wide,
                          .rows = (size[0] - 1) * attr->dil[0] + 1};
}

void ty_last_positions(const ty_last_rows *r, const void *x, int64_t first, int64_t n, float *to)
{
    bool together = r->wide == r->channels;
    int64_t times = together ? 1 : n, each = together ? n * r->channels : r->channels, at = first * r->channels;
    if (!together)
        memset(to, 0, (size_t)(n * r->wide) * sizeof *to);
    for (int64_t i = 0; i < times; i++, at += r->channels, to += r->wide)
        if (r->is_half)
            ty_native_load_short(TY_BF16, (const uint16_t *)x + at, to, (int)each);
        else
            memcpy(to, (const float *)x + at, (size_t)each * sizeof *to);
}

/* Row `row` of all images, from column -lo on. */
static void last_row(const ty_last_rows *r, const void *x, int64_t row, float *to)
{
    int64_t n = r->row_floats / r->wide, inside = n - r->lo < r->in_w ? n - r->lo : r->in_w;
    memset(to, 0, (size_t)r->row_floats * sizeof *to);
    if (inside > 0)
        ty_last_positions(r, x, row * r->in_w, inside, to + r->lo * r->wide);
}

void ty_last_forget(const ty_last_rows *r, ty_last_own *own)
{
    for (int64_t i = 0; i < r->rows; i++)
        own->has[i] = -1;
}

const float *ty_last_find_row(const ty_last_rows *r, const void *x, int64_t image, int64_t y, ty_last_own *own)
{
    int64_t number = image * r->in_h + y, slot = y % r->rows;
    float *row = own->rows + slot * r->row_floats;
    if (own->has[slot] != number)
        last_row(r, x, number, row);
    own->has[slot] = number;
    return row;
}
