/* wire.c - see wire.h. bfloat16 is integer arithmetic that the compiler vectorises; float16 has instructions (F16C),
 * and where the processor lacks them the functions of base/tensor.h do it one by one. */
#include "dist/comm/wire.h"

#include <string.h>

static void widen_bf16(const uint16_t *in, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)in[i] << 16;
        memcpy(&out[i], &bits, sizeof bits);
    }
}

static void narrow_bf16(const float *in, float scale, uint16_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = in[i] * scale;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        uint32_t nan = bits >> 16 | 0x40; /* a NaN stays one even if its payload sat in the low bits */
        out[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
    }
}

static void widen_f16_plain(const uint16_t *in, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = ty_f16_to_f32(in[i]);
}

static void narrow_f16_plain(const float *in, float scale, uint16_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = ty_f32_to_f16(in[i] * scale);
}

#if defined(__x86_64__) && !defined(__clang__) /* clang 14 knows no such feature to ask for */
#include <immintrin.h>

__attribute__((target("avx,f16c"))) static void widen_f16_f16c(const uint16_t *in, float *out, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(in + i))));
    widen_f16_plain(in + i, out + i, n - i);
}

__attribute__((target("avx,f16c"))) static void narrow_f16_f16c(const float *in, float scale, uint16_t *out, int64_t n)
{
    const __m256 s = _mm256_set1_ps(scale);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(out + i),
                         _mm256_cvtps_ph(_mm256_mul_ps(_mm256_loadu_ps(in + i), s), _MM_FROUND_TO_NEAREST_INT));
    narrow_f16_plain(in + i, scale, out + i, n - i);
}

static bool has_f16c(void)
{
    return __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
}
#else
#define widen_f16_f16c  widen_f16_plain
#define narrow_f16_f16c narrow_f16_plain
static bool has_f16c(void)
{
    return false;
}
#endif

void ty_wire_widen(ty_dtype half, const uint16_t *in, float *out, int64_t n)
{
    if (half == TY_BF16)
        widen_bf16(in, out, n);
    else if (has_f16c())
        widen_f16_f16c(in, out, n);
    else
        widen_f16_plain(in, out, n);
}

void ty_wire_narrow(ty_dtype half, const float *in, float scale, uint16_t *out, int64_t n)
{
    if (half == TY_BF16)
        narrow_bf16(in, scale, out, n);
    else if (has_f16c())
        narrow_f16_f16c(in, scale, out, n);
    else
        narrow_f16_plain(in, scale, out, n);
}
