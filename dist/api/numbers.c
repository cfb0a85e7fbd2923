#include "dist/api/numbers.h"

#include <math.h>
#include <string.h>

/* ---- scale ---- */

/* The nearest double below 2^63 and 2^64: what a cast still takes. */
static double clamp(double v, double low, double high)
{
    return v != v ? 0 : v < low ? low : v > high ? high : v;
}

#define SCALE_INTEGER(name, type, low, high)                       \
    static void scale_##name(void *data, int64_t n, double factor) \
    {                                                              \
        type *x = data;                                            \
        for (int64_t i = 0; i < n; i++)                            \
            x[i] = (type)clamp((double)x[i] * factor, low, high);  \
    }
#define SCALE_FLOAT(name, type, to_double, from_double)            \
    static void scale_##name(void *data, int64_t n, double factor) \
    {                                                              \
        type *x = data;                                            \
        for (int64_t i = 0; i < n; i++)                            \
            x[i] = from_double(to_double(x[i]) * factor);          \
    }
static uint16_t bf16_of(double v)
{
    return ty_f32_to_bf16((float)v);
}

SCALE_INTEGER(i8, int8_t, INT8_MIN, INT8_MAX)
SCALE_INTEGER(u8, uint8_t, 0, UINT8_MAX)
SCALE_INTEGER(i16, int16_t, INT16_MIN, INT16_MAX)
SCALE_INTEGER(u16, uint16_t, 0, UINT16_MAX)
SCALE_INTEGER(i32, int32_t, INT32_MIN, INT32_MAX)
SCALE_INTEGER(u32, uint32_t, 0, UINT32_MAX)
SCALE_INTEGER(i64, int64_t, -0x1p63, 0x1.fffffffffffffp62)
SCALE_INTEGER(u64, uint64_t, 0, 0x1.fffffffffffffp63)
SCALE_FLOAT(f16, uint16_t, ty_f16_to_f32, ty_f64_to_f16)
SCALE_FLOAT(bf16, uint16_t, ty_bf16_to_f32, bf16_of)
SCALE_FLOAT(f32, float, (double), (float))
SCALE_FLOAT(f64, double, (double), (double))

void ty_numbers_scale(ty_dtype dtype, void *data, int64_t n, double factor)
{
    static void (*const scale[TY_N_DTYPES])(void *, int64_t, double) = {
        [TY_I8] = scale_i8,   [TY_U8] = scale_u8,     [TY_I16] = scale_i16, [TY_U16] = scale_u16,
        [TY_I32] = scale_i32, [TY_U32] = scale_u32,   [TY_I64] = scale_i64, [TY_U64] = scale_u64,
        [TY_F16] = scale_f16, [TY_BF16] = scale_bf16, [TY_F32] = scale_f32, [TY_F64] = scale_f64,
    };
    if (scale[dtype] && factor != 1)
        scale[dtype](data, n, factor);
}

/* ---- add ---- */

static void add_f32(void *into, const void *from, int64_t n)
{
    float *restrict x = into;
    const float *restrict y = from;
    for (int64_t i = 0; i < n; i++)
        x[i] += y[i];
}

static void add_f64(void *into, const void *from, int64_t n)
{
    double *restrict x = into;
    const double *restrict y = from;
    for (int64_t i = 0; i < n; i++)
        x[i] += y[i];
}

static void add_f16(void *into, const void *from, int64_t n)
{
    uint16_t *x = into;
    const uint16_t *y = from;
    for (int64_t i = 0; i < n; i++)
        x[i] = ty_f32_to_f16(ty_f16_to_f32(x[i]) + ty_f16_to_f32(y[i]));
}

static void add_bf16(void *into, const void *from, int64_t n)
{
    uint16_t *x = into;
    const uint16_t *y = from;
    for (int64_t i = 0; i < n; i++)
        x[i] = ty_f32_to_bf16(ty_bf16_to_f32(x[i]) + ty_bf16_to_f32(y[i]));
}

void ty_numbers_add(ty_dtype dtype, void *into, const void *from, int64_t n)
{
    static void (*const add[TY_N_DTYPES])(void *, const void *, int64_t) = {
        [TY_F16] = add_f16, [TY_BF16] = add_bf16, [TY_F32] = add_f32, [TY_F64] = add_f64};
    if (add[dtype])
        add[dtype](into, from, n);
}

/* ---- neutral ---- */

/* One and infinity of the floats, as bits. */
static const struct {
    uint64_t one, infinity, minus_infinity;
} float_bits[TY_N_DTYPES] = {
    [TY_F16] = {0x3c00, 0x7c00, 0xfc00},
    [TY_BF16] = {0x3f80, 0x7f80, 0xff80},
    [TY_F32] = {0x3f800000, 0x7f800000, 0xff800000},
    [TY_F64] = {0x3ff0000000000000, 0x7ff0000000000000, 0xfff0000000000000},
};

static uint64_t neutral_bits(ty_dtype dtype, trainyard_op op)
{
    uint64_t high = UINT64_C(1) << (8 * ty_dtype_bytes(dtype) - 1); /* the sign of a signed integer */
    bool is_float = ty_dtype_is_float(dtype), is_signed = ty_dtype_is_signed(dtype);
    switch (op) {
    case TRAINYARD_PRODUCT:
        return is_float ? float_bits[dtype].one : 1;
    case TRAINYARD_MIN:
        return dtype == TY_BOOL ? 1 : is_float ? float_bits[dtype].infinity : is_signed ? high - 1 : UINT64_MAX;
    case TRAINYARD_MAX:
        return is_float ? float_bits[dtype].minus_infinity : is_signed ? high : 0;
    case TRAINYARD_SUM:
    case TRAINYARD_AVERAGE:
        break;
    }
    return 0;
}

void ty_numbers_neutral(ty_dtype dtype, trainyard_op op, void *data, int64_t n)
{
    uint64_t bits = neutral_bits(dtype, op);
    size_t bytes = ty_dtype_bytes(dtype);
    if (bits == 0) {
        memset(data, 0, (size_t)n * bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++) /* little-endian: the low bytes come first */
        memcpy((char *)data + (size_t)i * bytes, &bits, bytes);
}
