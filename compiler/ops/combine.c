/* combine.c - see combine.h. */
#include "compiler/ops/combine.h"

#include "compiler/ir/attr.h"
#include "compiler/ops/refiter.h"

#include <math.h>

const char *ty_combine_name(ty_combine how)
{
    return (unsigned)how <= TY_SET ? ty_combine_text[how] : "?";
}

double ty_combine_f(ty_combine how, double a, double b)
{
    switch (how) {
    case TY_SUM:
        return a + b;
    case TY_PROD:
        return a * b;
    case TY_MAX:
        return isnan(a) || a >= b ? a : b; /* a NaN b fails the comparison and is taken */
    case TY_MIN:
        return isnan(a) || a <= b ? a : b;
    default:
        return b;
    }
}

bool ty_combine_less_i(ty_dtype dtype, int64_t a, int64_t b)
{
    return dtype == TY_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}

int64_t ty_combine_i(ty_combine how, ty_dtype dtype, int64_t a, int64_t b)
{
    switch (how) {
    case TY_SUM:
        return ty_refiter_wrap(dtype, (int64_t)((uint64_t)a + (uint64_t)b));
    case TY_PROD:
        return ty_refiter_wrap(dtype, (int64_t)((uint64_t)a * (uint64_t)b));
    case TY_MAX:
        return ty_combine_less_i(dtype, a, b) ? b : a;
    case TY_MIN:
        return ty_combine_less_i(dtype, b, a) ? b : a;
    default:
        return b;
    }
}

double ty_combine_identity_f(ty_combine how)
{
    switch (how) {
    case TY_MAX:
        return -INFINITY;
    case TY_MIN:
        return INFINITY;
    case TY_PROD:
        return 1;
    default:
        return 0;
    }
}

/* Least and greatest number of an integer dtype; bool is a number of one bit. */
static int64_t combine_least(ty_dtype dtype)
{
    int bits = 8 * (int)ty_dtype_bytes(dtype);
    return ty_dtype_is_signed(dtype) ? INT64_MIN >> (64 - bits) : 0;
}

static int64_t combine_greatest(ty_dtype dtype)
{
    int bits = dtype == TY_BOOL ? 1 : 8 * (int)ty_dtype_bytes(dtype);
    if (ty_dtype_is_signed(dtype))
        return INT64_MAX >> (64 - bits);
    return (int64_t)(UINT64_MAX >> (64 - bits));
}

int64_t ty_combine_identity_i(ty_combine how, ty_dtype dtype)
{
    switch (how) {
    case TY_MAX:
        return combine_least(dtype);
    case TY_MIN:
        return combine_greatest(dtype);
    case TY_PROD:
        return 1;
    default:
        return 0;
    }
}

void ty_combine_into(ty_combine how, ty_ref *r, int64_t at, const ty_ref *v, int64_t v_at)
{
    if (r->f)
        r->f[at] = ty_combine_f(how, r->f[at], v->f[v_at]);
    else
        r->i[at] = ty_combine_i(how, r->type.dtype, r->i[at], v->i[v_at]);
}

void ty_combine_clear(ty_combine how, ty_ref *r)
{
    int64_t n = ty_type_elems(&r->type);
    for (int64_t k = 0; k < n; k++) {
        if (r->f)
            r->f[k] = ty_combine_identity_f(how);
        else
            r->i[k] = ty_combine_identity_i(how, r->type.dtype);
    }
}
