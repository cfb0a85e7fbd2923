/* reduce.c - see reduce.h.
 *
 * A block of elements at a time, so that partial results stay in the first cache, and so that `out` may be an input:
 * a block is written when all inputs were read. One set of loops for each type of C, made by a macro; the compiler
 * vectorises them.
 */
#include "dist/comm/reduce.h"

#include "dist/comm/wire.h"

#include <string.h>

enum { REDUCE_BLOCK = 1024 };

typedef struct reducer {
    void (*take)(ty_reduce reduce, void *to, const void *x, int n); /* to = to op x */
    void (*divide)(void *to, int n, int divisor);
} reducer;

/* W: the type in which sums and products wrap without being undefined; D: the one in which they are divided. */
#define REDUCER(name, T, W, D)                                                   \
    static void take_##name(ty_reduce reduce, void *to, const void *from, int n) \
    {                                                                            \
        T *restrict a = to;                                                      \
        const T *restrict x = from;                                              \
        if (reduce == TY_REDUCE_MIN)                                             \
            for (int i = 0; i < n; i++)                                          \
                a[i] = x[i] < a[i] ? x[i] : a[i];                                \
        else if (reduce == TY_REDUCE_MAX)                                        \
            for (int i = 0; i < n; i++)                                          \
                a[i] = x[i] > a[i] ? x[i] : a[i];                                \
        else if (reduce == TY_REDUCE_PRODUCT)                                    \
            for (int i = 0; i < n; i++)                                          \
                a[i] = (T)((W)a[i] * (W)x[i]);                                   \
        else                                                                     \
            for (int i = 0; i < n; i++)                                          \
                a[i] = (T)((W)a[i] + (W)x[i]);                                   \
    }                                                                            \
    static void divide_##name(void *to, int n, int divisor)                      \
    {                                                                            \
        T *a = to;                                                               \
        for (int i = 0; i < n; i++)                                              \
            a[i] = (T)((D)a[i] / (D)divisor);                                    \
    }

REDUCER(i8, int8_t, uint32_t, int64_t)
REDUCER(u8, uint8_t, uint32_t, uint64_t)
REDUCER(i16, int16_t, uint32_t, int64_t)
REDUCER(u16, uint16_t, uint32_t, uint64_t)
REDUCER(i32, int32_t, uint32_t, int64_t)
REDUCER(u32, uint32_t, uint32_t, uint64_t)
REDUCER(i64, int64_t, uint64_t, int64_t)
REDUCER(u64, uint64_t, uint64_t, uint64_t)
REDUCER(f32, float, float, float)
REDUCER(f64, double, double, double)

/* By ty_dtype; 16-bit floats are float32 while they are reduced, bools are bytes. */
static const reducer reducers[TY_N_DTYPES] = {
    [TY_BOOL] = {take_u8, NULL},       [TY_I8] = {take_i8, divide_i8},     [TY_U8] = {take_u8, divide_u8},
    [TY_I16] = {take_i16, divide_i16}, [TY_U16] = {take_u16, divide_u16},  [TY_I32] = {take_i32, divide_i32},
    [TY_U32] = {take_u32, divide_u32}, [TY_I64] = {take_i64, divide_i64},  [TY_U64] = {take_u64, divide_u64},
    [TY_F16] = {take_f32, divide_f32}, [TY_BF16] = {take_f32, divide_f32}, [TY_F32] = {take_f32, divide_f32},
    [TY_F64] = {take_f64, divide_f64},
};

bool ty_reduce_allowed(ty_dtype dtype, ty_reduce reduce)
{
    return !(dtype == TY_BOOL && reduce == TY_REDUCE_AVERAGE);
}

ty_reduce ty_reduce_of_bools(ty_reduce reduce)
{
    return reduce == TY_REDUCE_SUM ? TY_REDUCE_MAX : reduce == TY_REDUCE_PRODUCT ? TY_REDUCE_MIN : reduce;
}

static bool is_half(ty_dtype dtype)
{
    return dtype == TY_F16 || dtype == TY_BF16;
}

void ty_reduce_ranks(ty_dtype dtype, ty_reduce reduce, const void *const *in, int n_in, int divisor, ty_dtype out_dtype,
                     void *out, int64_t n)
{
    const reducer *r = &reducers[dtype];
    size_t bytes = ty_dtype_bytes(dtype);
    _Alignas(64) char sum[REDUCE_BLOCK * sizeof(double)];
    float x[REDUCE_BLOCK];
    if (dtype == TY_BOOL)
        reduce = ty_reduce_of_bools(reduce);
    for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {
        int block = n - i < REDUCE_BLOCK ? (int)(n - i) : REDUCE_BLOCK;
        for (int k = 0; k < n_in; k++) {
            const void *from = (const char *)in[k] + (size_t)i * bytes;
            void *to = k ? (void *)x : (void *)sum;
            if (is_half(dtype))
                ty_wire_widen(dtype, from, to, block);
            else if (!k)
                memcpy(sum, from, (size_t)block * bytes);
            if (k)
                r->take(reduce, sum, is_half(dtype) ? x : from, block);
        }
        if (reduce == TY_REDUCE_AVERAGE && divisor > 1)
            r->divide(sum, block, divisor);
        if (is_half(out_dtype))
            ty_wire_narrow(dtype, (const float *)sum, 1, (uint16_t *)out + i, block);
        else
            memcpy((char *)out + (size_t)i * ty_dtype_bytes(out_dtype), sum, (size_t)block * ty_dtype_bytes(out_dtype));
    }
}

void ty_reduce_divide(ty_dtype dtype, void *x, int64_t n, int divisor)
{
    if (is_half(dtype)) {
        const void *in = x;
        ty_reduce_ranks(dtype, TY_REDUCE_AVERAGE, &in, 1, divisor, dtype, x, n);
        return;
    }
    for (int64_t i = 0; i < n && divisor > 1; i += REDUCE_BLOCK)
        reducers[dtype].divide((char *)x + (size_t)i * ty_dtype_bytes(dtype),
                               n - i < REDUCE_BLOCK ? (int)(n - i) : REDUCE_BLOCK, divisor);
}
