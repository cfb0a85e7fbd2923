/* ref.c - bytes of a dtype to and from reference arithmetic. One pair of loops a dtype, made by macros. */
#include "compiler/ops/ref.h"

#include "compiler/ops/refiter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int ty_ref_init(ty_ref *r, const ty_type *type, ty_error *err)
{
    size_t n = (size_t)ty_type_elems(type);
    *r = (ty_ref){.type = *type};
    void *p = calloc(n > 0 ? n : 1, 8);
    if (!p)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %zu numbers", n);
    if (ty_dtype_is_float((ty_dtype)type->dtype))
        r->f = p;
    else
        r->i = p;
    return 0;
}

void ty_ref_fini(ty_ref *r)
{
    free(r->f);
    free(r->i);
    r->f = NULL;
    r->i = NULL;
}

/* Unaligned data are fine: constants may lie anywhere in a mapped model file. */
#define LOAD(TYPE, EXPR, DST)                                            \
    for (int64_t k = 0; k < n; k++) {                                    \
        TYPE v;                                                          \
        memcpy(&v, (const char *)data + (size_t)k * sizeof v, sizeof v); \
        DST[k] = EXPR;                                                   \
    }                                                                    \
    return

void ty_ref_load(ty_ref *r, const void *data)
{
    int64_t n = ty_type_elems(&r->type);
    switch ((ty_dtype)r->type.dtype) {
    case TY_BOOL:
        LOAD(uint8_t, v != 0, r->i);
    case TY_I8:
        LOAD(int8_t, v, r->i);
    case TY_U8:
        LOAD(uint8_t, v, r->i);
    case TY_I16:
        LOAD(int16_t, v, r->i);
    case TY_U16:
        LOAD(uint16_t, v, r->i);
    case TY_I32:
        LOAD(int32_t, v, r->i);
    case TY_U32:
        LOAD(uint32_t, v, r->i);
    case TY_I64:
        LOAD(int64_t, v, r->i);
    case TY_U64:
        LOAD(uint64_t, (int64_t)v, r->i);
    case TY_F16:
        LOAD(uint16_t, (double)ty_f16_to_f32(v), r->f);
    case TY_BF16:
        LOAD(uint16_t, (double)ty_bf16_to_f32(v), r->f);
    case TY_F32:
        LOAD(float, (double)v, r->f);
    case TY_F64:
        LOAD(double, v, r->f);
    case TY_N_DTYPES:
        return;
    }
}

/* double to bfloat16 without rounding twice: to float toward odd first (any inexact float keeps its last bit set),
 * which leaves the second rounding the information it needs. */
static uint16_t ref_f64_to_bf16(double v)
{
    float f = (float)v;
    if (isfinite(f) && (double)f != v) {
        uint32_t bits;
        if (fabs((double)f) > fabs(v))
            f = nextafterf(f, 0.0f);
        memcpy(&bits, &f, sizeof bits);
        bits |= 1;
        memcpy(&f, &bits, sizeof f);
    }
    return ty_f32_to_bf16(f);
}

#define STORE(TYPE, EXPR)                                          \
    for (int64_t k = 0; k < n; k++) {                              \
        TYPE v = EXPR;                                             \
        memcpy((char *)data + (size_t)k * sizeof v, &v, sizeof v); \
    }                                                              \
    return

void ty_ref_store(const ty_ref *r, void *data)
{
    int64_t n = ty_type_elems(&r->type);
    switch ((ty_dtype)r->type.dtype) {
    case TY_BOOL:
        STORE(uint8_t, r->i[k] != 0);
    case TY_I8:
        STORE(int8_t, (int8_t)r->i[k]);
    case TY_U8:
        STORE(uint8_t, (uint8_t)r->i[k]);
    case TY_I16:
        STORE(int16_t, (int16_t)r->i[k]);
    case TY_U16:
        STORE(uint16_t, (uint16_t)r->i[k]);
    case TY_I32:
        STORE(int32_t, (int32_t)r->i[k]);
    case TY_U32:
        STORE(uint32_t, (uint32_t)r->i[k]);
    case TY_I64:
        STORE(int64_t, r->i[k]);
    case TY_U64:
        STORE(uint64_t, (uint64_t)r->i[k]);
    case TY_F16:
        STORE(uint16_t, ty_f64_to_f16(r->f[k]));
    case TY_BF16:
        STORE(uint16_t, ref_f64_to_bf16(r->f[k]));
    case TY_F32:
        STORE(float, (float)r->f[k]);
    case TY_F64:
        STORE(double, r->f[k]);
    case TY_N_DTYPES:
        return;
    }
}

double ty_ref_round_one(ty_dtype dtype, double v)
{
    switch (dtype) {
    case TY_F16:
        return (double)ty_f16_to_f32(ty_f64_to_f16(v));
    case TY_BF16:
        return (double)ty_bf16_to_f32(ref_f64_to_bf16(v));
    case TY_F32:
        return (double)(float)v;
    default:
        return v;
    }
}

void ty_ref_round(ty_ref *r)
{
    if (!r->f || r->type.dtype == TY_F64)
        return;
    for (int64_t k = 0, n = ty_type_elems(&r->type); k < n; k++)
        r->f[k] = ty_ref_round_one((ty_dtype)r->type.dtype, r->f[k]);
}
