/* attend_rows.c - see attend_rows.h. */
#include "compiler/target/cpu/attend_rows.h"

#include "compiler/ops/attend.h"
#include "compiler/target/cpu/clones.h"

#include <math.h>
#include <string.h>

/* A float as the bits that hold it. */
typedef union attend_bits {
    uint32_t bits;
    float value;
} attend_bits;

/* exp of x <= 0, to 1e-7 of the result: the polynomial of generated kernels (prelude.c). Below e^-87 it is 0. Without a
 * comparison of floats, which would keep the loops around it from being vectorised: the larger negative float has the
 * larger bits, up to those of -inf, and adding and taking away 1.5 x 2^23 rounds to an integer. */
TY_CPU_INLINE float attend_exp(float x)
{
    attend_bits d = {.value = x}, power;
    const uint32_t low = d.bits - 0xC2AE0001u < 0xFF800000u - 0xC2AE0000u; /* below -87; a NaN stays */
    d.bits = low ? 0xC2AE0000u : d.bits;
    float n = d.value * 0x1.715476p+0f + 0x1.8p23f - 0x1.8p23f;
    float r = d.value - n * 0x1.62e400p-1f - n * 0x1.7f7d1cp-20f, p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    power.bits = low ? 0 : (uint32_t)((int32_t)n + 127) << 23;
    return p * power.value;
}

TY_CPU_INLINE float attend_max(const float *x, int64_t n)
{
    float most = -INFINITY;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

TY_CPU_INLINE float attend_sum(const float *x, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* x <- exp(x - most) */
TY_CPU_INLINE void attend_exps(float *x, int64_t n, float most)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] = attend_exp(x[i] - most);
}

TY_CPU_CLONES void ty_attend_add_row(float *x, const float *mask, int64_t step, int64_t n)
{
    if (step == 0)
        for (int64_t i = 0; i < n; i++)
            x[i] += mask[0];
    else
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            x[i] += mask[i];
}

TY_CPU_CLONES void ty_attend_choose_row(float *x, const uint8_t *mask, int64_t step, int64_t n, float hidden)
{
    if (step == 0)
        for (int64_t i = 0; i < n; i++)
            x[i] = mask[0] ? x[i] : hidden;
    else
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            x[i] = mask[i] ? x[i] : hidden;
}

TY_CPU_CLONES float ty_attend_softmax_row(float *x, int64_t n, int64_t width, float *lse)
{
    float most = attend_max(x, n);
    attend_exps(x, n, most);
    float sum = attend_sum(x, n);
    memset(x + n, 0, (size_t)(width - n) * sizeof *x);
    *lse = most + logf(sum);
    if (most < (float)TY_ATTEND_IS_HIDDEN)
        *lse = most < (float)TY_ATTEND_IS_UNSEEN ? NAN : (float)TY_ATTEND_HIDDEN * sum;
    return 1 / sum + (*lse - *lse); /* NaN where that is */
}

TY_CPU_CLONES void ty_attend_scale_row(float *x, int64_t n, float by)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] *= by;
}

TY_CPU_CLONES void ty_attend_probs_row(float *x, int64_t n, int64_t width, float lse)
{
    if (lse < (float)TY_ATTEND_IS_HIDDEN)
        for (int64_t i = 0; i < n; i++)
            x[i] = x[i] < (float)TY_ATTEND_IS_UNSEEN ? 0 : (float)TY_ATTEND_HIDDEN / lse;
    else
        attend_exps(x, n, lse);
    memset(x + n, 0, (size_t)(width - n) * sizeof *x);
}

TY_CPU_CLONES void ty_attend_back_row(float *p, const float *dp, int64_t n, const float *dy, const float *y, int64_t e,
                                      float scale)
{
    float delta = 0;
#pragma omp simd reduction(+ : delta)
    for (int64_t i = 0; i < e; i++)
        delta += dy[i] * y[i];
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        p[i] = scale * p[i] * (dp[i] - delta);
}

TY_CPU_CLONES void ty_attend_learn_row(float *dmask, const float *ds, int64_t step, int64_t n, float by)
{
    if (step == 0)
        dmask[0] += by * attend_sum(ds, n);
    else
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dmask[i] += by * ds[i];
}
