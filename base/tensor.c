/* tensor.c - facts on element types (one table, from dtypes.def), shapes, and the 16-bit floats. */
#include "base/tensor.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *text, *descr;
    size_t bytes;
    bool is_float, is_signed;
} dtypes[TY_N_DTYPES] = {
#define DTYPE(NAME, text, descr, bytes, is_float, is_signed) [TY_##NAME] = {text, descr, bytes, is_float, is_signed},
#include "dtypes.def"
#undef DTYPE
};

/* Names that other systems use for ours. */
static const struct {
    const char *text;
    ty_dtype dtype;
} synonyms[] = {
    {"float32", TY_F32}, {"float", TY_F32},  {"float64", TY_F64}, {"double", TY_F64},    {"float16", TY_F16},
    {"half", TY_F16},    {"fp16", TY_F16},   {"fp32", TY_F32},    {"bfloat16", TY_BF16}, {"int8", TY_I8},
    {"int16", TY_I16},   {"int32", TY_I32},  {"int64", TY_I64},   {"int", TY_I32},       {"long", TY_I64},
    {"uint8", TY_U8},    {"uint16", TY_U16}, {"uint32", TY_U32},  {"uint64", TY_U64},    {"byte", TY_U8},
};

ty_type ty_type_make(ty_dtype dtype, int rank, const int64_t *dim)
{
    ty_type t = ty_type_scalar(dtype);
    t.rank = (uint8_t)(rank < 0 ? 0 : rank > TY_MAX_RANK ? TY_MAX_RANK : rank);
    for (int i = 0; i < t.rank; i++)
        t.dim[i] = dim[i];
    return t;
}

bool ty_type_same_shape(const ty_type *a, const ty_type *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

bool ty_type_same(const ty_type *a, const ty_type *b)
{
    return a->dtype == b->dtype && ty_type_same_shape(a, b);
}

int64_t ty_type_elems(const ty_type *t)
{
    int64_t n_elems = 1;
    for (int i = 0; i < t->rank; i++)
        n_elems *= t->dim[i];
    return n_elems;
}

size_t ty_type_bytes(const ty_type *t)
{
    return (size_t)ty_type_elems(t) * ty_dtype_bytes((ty_dtype)t->dtype);
}

/* A zero among the dims does not excuse an absurd rest: the product of the others must fit as well, because programs
 * multiply dims in parts. */
int64_t ty_dims_elems_checked(int rank, const int64_t *dim, size_t elem_bytes)
{
    int64_t n_bytes = (int64_t)elem_bytes;
    int64_t n_elems = 1;
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0)
            return -1;
        n_elems *= dim[i] ? 1 : 0;
        if (dim[i] > 0 && __builtin_mul_overflow(n_bytes, dim[i], &n_bytes))
            return -1;
    }
    return n_elems == 0 ? 0 : elem_bytes ? n_bytes / (int64_t)elem_bytes : 0;
}

const char *ty_type_text(const ty_type *t, char *out, size_t n)
{
    size_t len = 0;
    out[0] = 0;
    for (int i = -1; i < (int)t->rank && len < n; i++) {
        if (i < 0)
            len += (size_t)snprintf(out, n, "%s[", ty_dtype_text((ty_dtype)t->dtype));
        else
            len += (size_t)snprintf(out + len, n - len, "%s%lld", i ? "," : "", (long long)t->dim[i]);
    }
    if (len < n)
        snprintf(out + len, n - len, "]");
    return out;
}

size_t ty_dtype_bytes(ty_dtype d)
{
    return d < TY_N_DTYPES ? dtypes[d].bytes : 0;
}

bool ty_dtype_is_float(ty_dtype d)
{
    return d < TY_N_DTYPES && dtypes[d].is_float;
}

bool ty_dtype_is_signed(ty_dtype d)
{
    return d < TY_N_DTYPES && dtypes[d].is_signed;
}

const char *ty_dtype_text(ty_dtype d)
{
    return d < TY_N_DTYPES ? dtypes[d].text : "?";
}

const char *ty_dtype_descr(ty_dtype d)
{
    return d < TY_N_DTYPES ? dtypes[d].descr : "";
}

bool ty_dtype_parse(const char *text, ty_dtype *out)
{
    for (int i = 0; i < TY_N_DTYPES; i++)
        if (strcmp(text, dtypes[i].text) == 0) {
            *out = (ty_dtype)i;
            return true;
        }
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++)
        if (strcmp(text, synonyms[i].text) == 0) {
            *out = synonyms[i].dtype;
            return true;
        }
    return false;
}

static uint32_t bits_of_f32(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float f32_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits. */
float ty_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = (h >> 10) & 0x1f;
    uint32_t fraction = h & 0x3ff;
    if (exponent == 0x1f)
        return f32_of_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) /* zero or subnormal: fraction * 2^-24, exact in f32 */
        return f32_of_bits(sign | bits_of_f32((float)fraction * 0x1p-24f));
    return f32_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

/* One rounding only: f32 passes through double exactly, double never passes through f32. */
uint16_t ty_f64_to_f16(double f)
{
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (exponent == 1024)
        return (uint16_t)(sign | 0x7c00 | (fraction ? 0x200 | fraction >> 42 : 0));
    if (exponent < -25) /* below half of the smallest subnormal */
        return sign;
    if (exponent > 15)
        return sign | 0x7c00;
    uint64_t significand = fraction | UINT64_C(1) << 52;
    int shift = exponent >= -14 ? 42 : 42 + (-14 - exponent); /* 42 = 52 - 10 */
    uint64_t kept = significand >> shift;
    uint64_t rest = significand & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
    /* The hidden bit of kept adds one to the exponent field; a carry out of the fraction does so too, up to infinity.
     */
    uint64_t field = exponent >= -14 ? (uint64_t)(exponent + 14) << 10 : 0;
    return (uint16_t)(sign | (field + kept));
}

uint16_t ty_f32_to_f16(float f)
{
    return ty_f64_to_f16((double)f);
}

float ty_bf16_to_f32(uint16_t h)
{
    return f32_of_bits((uint32_t)h << 16);
}

uint16_t ty_f32_to_bf16(float f)
{
    uint32_t bits = bits_of_f32(f);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40); /* a NaN stays one even if its payload sat in the low bits */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
