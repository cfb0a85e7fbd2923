/* convert.c - one loop for each pair of type and direction, made by macro so that each is vectorised alone. */
#pragma GCC optimize("O3") /* loops as vectors */
#include "container/input/convert.h"

#include <math.h>
#include <string.h>

#define CONVERT_BLOCK 512

/* Plain C types of the stored types; the 16-bit floats and bool have loops of their own. */
#define CONVERT_PLAIN(ROW) \
    ROW(I8, int8_t)        \
    ROW(U8, uint8_t)       \
    ROW(I16, int16_t)      \
    ROW(U16, uint16_t)     \
    ROW(I32, int32_t)      \
    ROW(U32, uint32_t)     \
    ROW(I64, int64_t)      \
    ROW(U64, uint64_t)     \
    ROW(F32, float)        \
    ROW(F64, double)

bool ty_dtype_is_integer(ty_dtype d)
{
    return !ty_dtype_is_float(d);
}

void ty_integer_range(ty_dtype d, int64_t *min, int64_t *max)
{
    if (d == TY_BOOL) {
        *min = 0;
        *max = 1;
        return;
    }
    int bits = (int)ty_dtype_bytes(d) * 8;
    bool is_signed = ty_dtype_is_signed(d);
    int value_bits = is_signed || bits == 64 ? bits - 1 : bits;
    *max = (int64_t)(((uint64_t)1 << value_bits) - 1);
    *min = is_signed ? -*max - 1 : 0;
}

/* Casting a double that an integer type cannot hold is undefined in C. */
static int64_t convert_saturate(double v, int64_t min, int64_t max)
{
    if (!(v > (double)min))
        return v != v ? 0 : min;
    return v >= (double)max ? max : (int64_t)v;
}

#define TO_F64(NAME, type)                                                          \
    static void convert_##NAME##_to_f64(const uint8_t *src, double *dst, int64_t n) \
    {                                                                               \
        for (int64_t i = 0; i < n; i++) {                                           \
            type v;                                                                 \
            memcpy(&v, src + (size_t)i * sizeof v, sizeof v);                       \
            dst[i] = (double)v;                                                     \
        }                                                                           \
    }
CONVERT_PLAIN(TO_F64)

static void convert_BOOL_to_f64(const uint8_t *src, double *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[i] != 0;
}

static void convert_F16_to_f64(const uint8_t *src, double *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, src + 2 * i, 2);
        dst[i] = (double)ty_f16_to_f32(h);
    }
}

static void convert_BF16_to_f64(const uint8_t *src, double *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, src + 2 * i, 2);
        dst[i] = (double)ty_bf16_to_f32(h);
    }
}

static void (*const convert_to_f64[TY_N_DTYPES])(const uint8_t *, double *, int64_t) = {
#define DTYPE(NAME, text, descr, bytes, is_float, is_signed) [TY_##NAME] = convert_##NAME##_to_f64,
#include "base/dtypes.def"
#undef DTYPE
};

void ty_convert_to_f64(ty_dtype from, const void *src, double *dst, int64_t n)
{
    convert_to_f64[from](src, dst, n);
}

static void convert_f64_to_integers(ty_dtype to, const double *src, uint8_t *dst, int64_t n)
{
    int64_t min, max, block[CONVERT_BLOCK];
    ty_integer_range(to, &min, &max);
    size_t size = ty_dtype_bytes(to);
    while (n > 0) {
        int64_t take = n < CONVERT_BLOCK ? n : CONVERT_BLOCK;
        for (int64_t i = 0; i < take; i++)
            block[i] = convert_saturate(src[i], min, max);
        ty_convert_from_i64(to, block, dst, take);
        src += take;
        dst += (size_t)take * size;
        n -= take;
    }
}

void ty_convert_from_f64(ty_dtype to, const double *src, void *out, int64_t n)
{
    uint8_t *dst = out;
    if (ty_dtype_is_integer(to)) {
        convert_f64_to_integers(to, src, dst, n);
    } else if (to == TY_F32) {
        for (int64_t i = 0; i < n; i++) {
            float v = (float)src[i];
            memcpy(dst + 4 * i, &v, 4);
        }
    } else if (to == TY_F64) {
        memcpy(dst, src, (size_t)n * 8);
    } else {
        for (int64_t i = 0; i < n; i++) {
            uint16_t h = to == TY_F16 ? ty_f64_to_f16(src[i]) : ty_f32_to_bf16((float)src[i]);
            memcpy(dst + 2 * i, &h, 2);
        }
    }
}

#define TO_I64(NAME, type)                                                           \
    static void convert_##NAME##_to_i64(const uint8_t *src, int64_t *dst, int64_t n) \
    {                                                                                \
        for (int64_t i = 0; i < n; i++) {                                            \
            type v;                                                                  \
            memcpy(&v, src + (size_t)i * sizeof v, sizeof v);                        \
            dst[i] = (int64_t)v;                                                     \
        }                                                                            \
    }
TO_I64(I8, int8_t)
TO_I64(U8, uint8_t)
TO_I64(I16, int16_t)
TO_I64(U16, uint16_t)
TO_I64(I32, int32_t)
TO_I64(U32, uint32_t)
TO_I64(I64, int64_t)

static void convert_U64_to_i64(const uint8_t *src, int64_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t v;
        memcpy(&v, src + 8 * i, 8);
        dst[i] = v > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)v;
    }
}

static void convert_BOOL_to_i64(const uint8_t *src, int64_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[i] != 0;
}

static void (*const convert_to_i64[TY_N_DTYPES])(const uint8_t *, int64_t *, int64_t) = {
    [TY_BOOL] = convert_BOOL_to_i64, [TY_I8] = convert_I8_to_i64,   [TY_U8] = convert_U8_to_i64,
    [TY_I16] = convert_I16_to_i64,   [TY_U16] = convert_U16_to_i64, [TY_I32] = convert_I32_to_i64,
    [TY_U32] = convert_U32_to_i64,   [TY_I64] = convert_I64_to_i64, [TY_U64] = convert_U64_to_i64,
};

void ty_convert_to_i64(ty_dtype from, const void *src, int64_t *dst, int64_t n)
{
    if (convert_to_i64[from] != NULL) {
        convert_to_i64[from](src, dst, n);
        return;
    }
    double block[CONVERT_BLOCK];
    const uint8_t *p = src;
    size_t size = ty_dtype_bytes(from);
    while (n > 0) {
        int64_t take = n < CONVERT_BLOCK ? n : CONVERT_BLOCK;
        convert_to_f64[from](p, block, take);
        for (int64_t i = 0; i < take; i++)
            dst[i] = convert_saturate(block[i], INT64_MIN, INT64_MAX);
        p += (size_t)take * size;
        dst += take;
        n -= take;
    }
}

#define FROM_I64(NAME, type)                                                           \
    static void convert_##NAME##_from_i64(const int64_t *src, uint8_t *dst, int64_t n) \
    {                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                              \
            type v = (type)src[i];                                                     \
            memcpy(dst + (size_t)i * sizeof v, &v, sizeof v);                          \
        }                                                                              \
    }
CONVERT_PLAIN(FROM_I64)

static void convert_BOOL_from_i64(const int64_t *src, uint8_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[i] != 0;
}

static void convert_F16_from_i64(const int64_t *src, uint8_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t h = ty_f64_to_f16((double)src[i]);
        memcpy(dst + 2 * i, &h, 2);
    }
}

static void convert_BF16_from_i64(const int64_t *src, uint8_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t h = ty_f32_to_bf16((float)src[i]);
        memcpy(dst + 2 * i, &h, 2);
    }
}

static void (*const convert_from_i64[TY_N_DTYPES])(const int64_t *, uint8_t *, int64_t) = {
#define DTYPE(NAME, text, descr, bytes, is_float, is_signed) [TY_##NAME] = convert_##NAME##_from_i64,
#include "base/dtypes.def"
#undef DTYPE
};

void ty_convert_from_i64(ty_dtype to, const int64_t *src, void *dst, int64_t n)
{
    convert_from_i64[to](src, dst, n);
}

/* ---- the common ways without a step between ---- */

/* Floats hold all numbers of these exactly. */
#define SMALL(ROW) ROW(I8, int8_t) ROW(U8, uint8_t) ROW(I16, int16_t) ROW(U16, uint16_t)

#define TO_F32(NAME, type)                                                                           \
    static void convert_##NAME##_to_f32(const void *from, float *dst, int64_t n, double a, double b) \
    {                                                                                                \
        const type *src = from;                                                                      \
        if (a == 1.0 && b == 0.0)                                                                    \
            for (int64_t i = 0; i < n; i++)                                                          \
                dst[i] = (float)src[i];                                                              \
        else                                                                                         \
            for (int64_t i = 0; i < n; i++)                                                          \
                dst[i] = (float)((double)src[i] * a + b);                                            \
    }
SMALL(TO_F32)

/* False: not one of them. */
static bool convert_direct(ty_dtype from, const void *src, ty_dtype to, void *dst, int64_t n, double scale,
                           double offset)
{
    if (to != TY_F32 || (uintptr_t)dst % sizeof(float) != 0 || (uintptr_t)src % ty_dtype_bytes(from) != 0)
        return false;
    switch (from) {
#define ROW(NAME, type)                                      \
    case TY_##NAME:                                          \
        convert_##NAME##_to_f32(src, dst, n, scale, offset); \
        return true;
        SMALL(ROW)
#undef ROW
    default:
        return false;
    }
}

#define RANGE(NAME, type)                                                                         \
    static void convert_##NAME##_range(const uint8_t *src, int64_t n, int64_t *min, int64_t *max) \
    {                                                                                             \
        type low, high, v;                                                                        \
        memcpy(&low, src, sizeof low);                                                            \
        high = low;                                                                               \
        for (int64_t i = 1; i < n; i++) {                                                         \
            memcpy(&v, src + (size_t)i * sizeof v, sizeof v);                                     \
            low = v < low ? v : low;                                                              \
            high = v > high ? v : high;                                                           \
        }                                                                                         \
        *min = (int64_t)low;                                                                      \
        *max = (int64_t)high;                                                                     \
    }
#define WHOLE(ROW) SMALL(ROW) ROW(I32, int32_t) ROW(U32, uint32_t) ROW(I64, int64_t)
WHOLE(RANGE)

bool ty_convert_range(ty_dtype from, const void *src, int64_t n, int64_t *min, int64_t *max)
{
    switch (n > 0 ? from : TY_F32) {
#define ROW(NAME, type)                           \
    case TY_##NAME:                               \
        convert_##NAME##_range(src, n, min, max); \
        return true;
        WHOLE(ROW)
#undef ROW
    default:
        return false;
    }
}

static void convert_block(ty_dtype from, const void *src, ty_dtype to, void *dst, int64_t n, double scale,
                          double offset)
{
    bool scaled = scale != 1.0 || offset != 0.0;
    if (!scaled && ty_dtype_is_integer(from) && ty_dtype_is_integer(to)) {
        int64_t block[CONVERT_BLOCK];
        ty_convert_to_i64(from, src, block, n);
        ty_convert_from_i64(to, block, dst, n);
        return;
    }
    double block[CONVERT_BLOCK];
    ty_convert_to_f64(from, src, block, n);
    if (scaled)
        for (int64_t i = 0; i < n; i++)
            block[i] = block[i] * scale + offset;
    ty_convert_from_f64(to, block, dst, n);
}

void ty_convert_scaled(ty_dtype from, const void *src, ty_dtype to, void *dst, int64_t n, double scale, double offset)
{
    size_t from_bytes = ty_dtype_bytes(from), to_bytes = ty_dtype_bytes(to);
    /* A stored bool may be any byte; it still has to become 0 or 1. */
    if (from == to && scale == 1.0 && offset == 0.0 && from != TY_BOOL) {
        memcpy(dst, src, (size_t)n * to_bytes);
        return;
    }
    if (convert_direct(from, src, to, dst, n, scale, offset))
        return;
    const uint8_t *p = src;
    uint8_t *q = dst;
    while (n > 0) {
        int64_t take = n < CONVERT_BLOCK ? n : CONVERT_BLOCK;
        convert_block(from, p, to, q, take, scale, offset);
        p += (size_t)take * from_bytes;
        q += (size_t)take * to_bytes;
        n -= take;
    }
}
