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
 * comparison of floats and without a choice, either of which would keep the loops around it from being vectorised where
 * there are no masks (AVX2): the larger negative float has the larger bits, up to those of -inf, and adding and taking
 * away 1.5 x 2^23 rounds to an integer. */
TY_CPU_INLINE float attend_exp(float x)
{
    attend_bits d = {.value = x}, power;
    const uint32_t high =
        (uint32_t)(d.bits - 0xC2AE0001u < 0xFF800000u - 0xC2AE0000u) - 1; /* 0 below -87; a NaN stays */
    d.bits = (d.bits & high) | (0xC2AE0000u & ~high);
    float n = d.value * 0x1.715476p+0f + 0x1.8p23f - 0x1.8p23f;
    float r = d.value - n * 0x1.62e400p-1f - n * 0x1.7f7d1cp-20f, p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    power.bits = (uint32_t)((int32_t)n + 127) << 23 & high;
    return p * power.value;
}

/* The vectors of n scores. Those behind the last one are never the greatest, and nothing after exp. */
TY_CPU_INLINE int64_t attend_close(float *x, int64_t n)
{
    for (int64_t i = 0; i < TY_ATTEND_LANES; i++)
        x[n + i] = -INFINITY;
    return (n + TY_ATTEND_LANES - 1) / TY_ATTEND_LANES;
}

/* A compiler adds the lanes of a sum up one after the other; here pairs are, which is a quarter of the time. */
typedef float attend_vector __attribute__((vector_size(TY_ATTEND_LANES * sizeof(float)), aligned(4), may_alias));

/* The greatest number, as the greatest integer: what is below zero has its bits the other way round. */
TY_CPU_INLINE float attend_max(const float *x, int64_t vectors)
{
    int32_t most = INT32_MIN;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < vectors * TY_ATTEND_LANES; i++) {
        attend_bits b = {.value = x[i]};
        int32_t place = (int32_t)(b.bits ^ ((uint32_t)((int32_t)b.bits >> 31) >> 1));
        most = place > most ? place : most;
    }
    attend_bits b = {.bits = (uint32_t)most ^ ((uint32_t)(most >> 31) >> 1)};
    return b.value;
}

TY_CPU_INLINE float attend_lanes(const attend_vector *sums)
{
    float lane[TY_ATTEND_LANES];
    memcpy(lane, sums, sizeof lane);
#pragma GCC unroll 4
    for (int n = TY_ATTEND_LANES / 2; n > 0; n /= 2)
#pragma GCC unroll 8
        for (int k = 0; k < n; k++)
            lane[k] += lane[k + n];
    return lane[0];
}

TY_CPU_INLINE float attend_sum(const float *x, int64_t n)
{
    attend_vector sums = {0};
    float rest = 0;
    int64_t i = 0;
    for (; i + TY_ATTEND_LANES <= n; i += TY_ATTEND_LANES)
        sums += *(const attend_vector *)(x + i);
    for (; i < n; i++)
        rest += x[i];
    return attend_lanes(&sums) + rest;
}

TY_CPU_INLINE float attend_dot(const float *a, const float *b, int64_t n)
{
    attend_vector sums = {0};
    float rest = 0;
    int64_t i = 0;
    for (; i + TY_ATTEND_LANES <= n; i += TY_ATTEND_LANES)
        sums += *(const attend_vector *)(a + i) * *(const attend_vector *)(b + i);
    for (; i < n; i++)
        rest += a[i] * b[i];
    return attend_lanes(&sums) + rest;
}

/* x <- exp(x - most) */
TY_CPU_INLINE void attend_exps(float *x, int64_t vectors, float most)
{
#pragma omp simd
    for (int64_t i = 0; i < vectors * TY_ATTEND_LANES; i++)
        x[i] = attend_exp(x[i] - most);
}

/* Zeros behind the vectors, as far as another row of the block sees. */
TY_CPU_INLINE void attend_clear(const ty_attend_scores *s, float *x, int64_t vectors)
{
    int64_t width = s->seen + (s->rows - 1) * s->more, done = vectors * TY_ATTEND_LANES;
    if (done < width)
        memset(x + done, 0, (size_t)(width - done) * sizeof *x);
}

TY_CPU_CLONES void ty_attend_add_rows(const ty_attend_scores *s, const float *mask, int64_t query_step,
                                      int64_t key_step)
{
    for (int64_t row = 0; row < s->rows; row++, mask += query_step) {
        float *x = s->x + row * s->step;
        int64_t n = s->seen + row * s->more;
        if (key_step == 0)
            for (int64_t i = 0; i < n; i++)
                x[i] += mask[0];
        else
#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                x[i] += mask[i];
    }
}

TY_CPU_CLONES void ty_attend_choose_rows(const ty_attend_scores *s, const uint8_t *mask, int64_t query_step,
                                         int64_t key_step, float hidden)
{
    for (int64_t row = 0; row < s->rows; row++, mask += query_step) {
        float *x = s->x + row * s->step;
        int64_t n = s->seen + row * s->more;
        if (key_step == 0)
            for (int64_t i = 0; i < n; i++)
                x[i] = mask[0] ? x[i] : hidden;
        else
#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                x[i] = mask[i] ? x[i] : hidden;
    }
}

TY_CPU_CLONES void ty_attend_softmax_rows(const ty_attend_scores *s, float *lse, float *inverse)
{
    for (int64_t row = 0; row < s->rows; row++) {
        float *x = s->x + row * s->step;
        int64_t vectors = attend_close(x, s->seen + row * s->more);
        float most = attend_max(x, vectors);
        attend_exps(x, vectors, most);
        float sum = attend_sum(x, vectors * TY_ATTEND_LANES);
        attend_clear(s, x, vectors);
        lse[row] = most + logf(sum);
        if (most < (float)TY_ATTEND_IS_HIDDEN)
            lse[row] = most < (float)TY_ATTEND_IS_UNSEEN ? NAN : (float)TY_ATTEND_HIDDEN * sum;
        inverse[row] = 1 / sum + (lse[row] - lse[row]); /* NaN where that is */
    }
}

TY_CPU_CLONES void ty_attend_probs_rows(const ty_attend_scores *s, const float *lse)
{
    for (int64_t row = 0; row < s->rows; row++) {
        float *x = s->x + row * s->step;
        int64_t vectors = attend_close(x, s->seen + row * s->more);
        if (lse[row] < (float)TY_ATTEND_IS_HIDDEN)
            for (int64_t i = 0; i < vectors * TY_ATTEND_LANES; i++)
                x[i] = x[i] < (float)TY_ATTEND_IS_UNSEEN ? 0 : (float)TY_ATTEND_HIDDEN / lse[row];
        else
            attend_exps(x, vectors, lse[row]);
        attend_clear(s, x, vectors);
    }
}

/* Words of a row are drawn so many at a time. */
enum { ATTEND_DRAWN = 256 };

/* All ones where the word's key is kept, else zero. */
TY_CPU_INLINE uint32_t attend_kept(uint32_t word, uint32_t below)
{
    return (uint32_t)(word >> (32 - TY_ATTEND_DRAW_BITS) < below) - 1;
}

TY_CPU_INLINE float attend_masked(float x, uint32_t kept)
{
    attend_bits b = {.value = x};
    b.bits &= kept;
    return b.value;
}

static int64_t attend_draw(const ty_attend_words *w, int64_t row, int64_t at, int64_t n, uint32_t *words)
{
    int64_t count = n - at < ATTEND_DRAWN ? n - at : ATTEND_DRAWN;
    ty_rng_words(w->seed, w->dropout.stream, w->step, w->first + (uint64_t)(row * w->row_step + at), count, words);
    return count;
}

TY_CPU_CLONES void ty_attend_drop_rows(const ty_attend_scores *s, const ty_attend_words *w)
{
    const uint32_t below = w->dropout.below;
    uint32_t words[ATTEND_DRAWN];
    for (int64_t row = 0; row < s->rows; row++)
        for (int64_t at = 0, count, n = s->seen + row * s->more; at < n; at += count) {
            float *x = s->x + row * s->step + at;
            count = attend_draw(w, row, at, n, words);
#pragma omp simd
            for (int64_t i = 0; i < count; i++)
                x[i] = attend_masked(x[i], attend_kept(words[i], below));
        }
}

TY_CPU_CLONES void ty_attend_back_rows(const ty_attend_scores *p, float *dp, const ty_attend_numbers *dy,
                                       const ty_attend_numbers *y, const float *scale)
{
    int64_t width = p->seen + (p->rows - 1) * p->more, vectors = (width + TY_ATTEND_LANES - 1) / TY_ATTEND_LANES;
    for (int64_t row = 0; row < p->rows; row++, dp += p->step) {
        const float *x = p->x + row * p->step, by = scale[row];
        float delta = attend_dot(dy->at + row * dy->step, y->at + row * y->step, dy->n);
#pragma omp simd
        for (int64_t i = 0; i < vectors * TY_ATTEND_LANES; i++)
            dp[i] = by * x[i] * (dp[i] - delta);
    }
}

TY_CPU_CLONES void ty_attend_back_dropped_rows(const ty_attend_scores *p, float *dp, const ty_attend_numbers *dy,
                                               const ty_attend_numbers *y, const float *scale, const ty_attend_words *w)
{
    const uint32_t below = w->dropout.below;
    const float factor = (float)w->dropout.factor;
    const int64_t width = p->seen + (p->rows - 1) * p->more;
    uint32_t words[ATTEND_DRAWN];
    for (int64_t row = 0; row < p->rows; row++) {
        const float delta = attend_dot(dy->at + row * dy->step, y->at + row * y->step, dy->n), by = scale[row];
        for (int64_t at = 0, count; at < width; at += count) {
            float *x = p->x + row * p->step + at, *dx = dp + row * p->step + at;
            count = attend_draw(w, row, at, width, words);
#pragma omp simd
            for (int64_t i = 0; i < count; i++) {
                const uint32_t kept = attend_kept(words[i], below);
                dx[i] = by * x[i] * (attend_masked(factor * dx[i], kept) - delta);
                x[i] = attend_masked(factor * x[i], kept);
            }
        }
    }
}

TY_CPU_CLONES void ty_attend_learn_rows(const ty_attend_scores *ds, float *dmask, int64_t query_step, int64_t key_step,
                                        float by)
{
    for (int64_t row = 0; row < ds->rows; row++, dmask += query_step) {
        const float *x = ds->x + row * ds->step;
        if (key_step == 0)
            dmask[0] += by * attend_sum(x, ds->seen);
        else
#pragma omp simd
            for (int64_t i = 0; i < ds->seen; i++)
                dmask[i] += by * x[i];
    }
}

TY_CPU_CLONES void ty_attend_scale_rows(float *x, int64_t step, int64_t rows, int64_t n, const float *by)
{
    for (int64_t row = 0; row < rows; row++, x += step) {
        const float times = by[row];
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            x[i] *= times;
    }
}
