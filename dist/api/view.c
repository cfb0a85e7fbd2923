#include "dist/api/view.h"

#include <stdio.h>

/* The public numbers are those of tensor.h, for ever. */
#define SAME(NAME) _Static_assert((int)TRAINYARD_##NAME == (int)TY_##NAME, #NAME)
SAME(BOOL);
SAME(I8);
SAME(U8);
SAME(I16);
SAME(U16);
SAME(I32);
SAME(U32);
SAME(I64);
SAME(U64);
SAME(F16);
SAME(BF16);
SAME(F32);
SAME(F64);
_Static_assert(TY_N_DTYPES == TRAINYARD_F64 + 1, "a type without a public number");
_Static_assert(TY_MAX_RANK == TRAINYARD_MAX_DIMS, "dimensions");

int ty_view_check(const trainyard_tensor *t, const char *what, ty_error *err)
{
    if (!t)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "%s is NULL", what);
    if (t->dtype < 0 || t->dtype >= TY_N_DTYPES)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "%s has dtype %d: expected 0 (bool) to %d (f64)", what, t->dtype,
                        TY_N_DTYPES - 1);
    if (t->ndim < 0 || t->ndim > TRAINYARD_MAX_DIMS)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "%s has %d dimensions: expected 0 to %d", what, t->ndim,
                        TRAINYARD_MAX_DIMS);
    int64_t elems = ty_dims_elems_checked(t->ndim, t->shape, ty_dtype_bytes((ty_dtype)t->dtype));
    if (elems < 0)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "%s has a shape with a negative or too large dimension", what);
    if (elems > 0 && !t->data)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "%s has %lld elements, but data is NULL", what, (long long)elems);
    return TRAINYARD_OK;
}

int64_t ty_view_elems(const trainyard_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++)
        n *= t->shape[i];
    return n;
}

size_t ty_view_bytes(const trainyard_tensor *t)
{
    return (size_t)ty_view_elems(t) * ty_dtype_bytes((ty_dtype)t->dtype);
}

int64_t ty_view_rows(const trainyard_tensor *t)
{
    return t->ndim ? t->shape[0] : 1;
}

int64_t ty_view_row_elems(const trainyard_tensor *t)
{
    int64_t n = 1;
    for (int i = 1; i < t->ndim; i++)
        n *= t->shape[i];
    return n;
}

bool ty_view_same(const trainyard_tensor *a, const trainyard_tensor *b)
{
    if (a->dtype != b->dtype || a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

const char *ty_view_text(const trainyard_tensor *t, bool free_rows, char out[TY_VIEW_TEXT_BYTES])
{
    size_t at = (size_t)snprintf(out, TY_VIEW_TEXT_BYTES, "%s[", ty_dtype_text((ty_dtype)t->dtype));
    if (free_rows && t->ndim == 0)
        at += (size_t)snprintf(out + at, TY_VIEW_TEXT_BYTES - at, "*");
    for (int i = 0; i < t->ndim && at < TY_VIEW_TEXT_BYTES; i++)
        if (i == 0 && free_rows)
            at += (size_t)snprintf(out + at, TY_VIEW_TEXT_BYTES - at, "*");
        else
            at += (size_t)snprintf(out + at, TY_VIEW_TEXT_BYTES - at, "%s%lld", i ? "," : "", (long long)t->shape[i]);
    if (at < TY_VIEW_TEXT_BYTES)
        snprintf(out + at, TY_VIEW_TEXT_BYTES - at, "]");
    return out;
}
