/* rng.c - Philox4x32-10 and what is drawn from it. Constants and rounds as in the SC'11 paper (and Random123). */
#include "base/rng.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { ROUNDS = 10 };
static const uint32_t MULTIPLIER_0 = 0xD2511F53, MULTIPLIER_1 = 0xCD9E8D57;
static const uint32_t WEYL_0 = 0x9E3779B9, WEYL_1 = 0xBB67AE85; /* golden ratio; sqrt(3) - 1 */

void ty_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = (uint64_t)MULTIPLIER_0 * c0;
        uint64_t p1 = (uint64_t)MULTIPLIER_1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static void rng_block(uint64_t seed, uint32_t stream, uint32_t step, uint64_t block, uint32_t out[4])
{
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), stream, step};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    ty_philox(counter, key, out);
}

uint32_t ty_rng_u32(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i)
{
    uint32_t words[4];
    rng_block(seed, stream, step, i / 4, words);
    return words[i % 4];
}

/* Lemire, "Fast random integer generation in an interval", ACM TOMACS 2019. Draw i reads block i; each further block
 * that a rejection asks for lies 2^48 further on, where no other draw comes. */
uint64_t ty_rng_below(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i, uint64_t n)
{
    uint64_t threshold = (0 - n) % n; /* 2^64 mod n: that many of the low products are one too many */
    for (uint64_t block = i;; block += UINT64_C(1) << 48) {
        uint32_t words[4];
        rng_block(seed, stream, step, block, words);
        for (int half = 0; half < 4; half += 2) {
            uint64_t word = words[half] | (uint64_t)words[half + 1] << 32;
            unsigned __int128 product = (unsigned __int128)word * n;
            if ((uint64_t)product >= threshold)
                return (uint64_t)(product >> 64);
        }
    }
}

static inline void rng_exchange(uint32_t *out, int64_t i, int64_t j)
{
    uint32_t kept = out[i];
    out[i] = out[j];
    out[j] = kept;
}

/* ---- many blocks at once ---- */

enum { RNG_DRAWS = 256, RNG_GROUP = 16 };

/* How a processor does it best (rng_lanes.def). */
typedef struct rng_way {
    void (*down)(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i, uint64_t *out);
    void (*up)(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i, int64_t n, uint32_t *out);
} rng_way;

#define RNG_NAME(x) x##_any
#define RNG_TARGET
#define RNG_EACH        2
#define RNG_TIMES(a, b) (((a)&UINT32_MAX) * (b))
#define RNG_COUNT \
    {             \
        0, 1      \
    }
#define RNG_LOW  0, 2
#define RNG_HIGH 1, 3
#include "base/rng_lanes.def"

#if defined(__x86_64__)
#define RNG_NAME(x)     x##_avx2
#define RNG_TARGET      __attribute__((target("avx2")))
#define RNG_EACH        4
#define RNG_TIMES(a, b) ((RNG_NAME(rng_lanes))_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#define RNG_COUNT  \
    {              \
        0, 1, 2, 3 \
    }
#define RNG_LOW  0, 4, 1, 5
#define RNG_HIGH 2, 6, 3, 7
#include "base/rng_lanes.def"

#define RNG_NAME(x)     x##_avx512
#define RNG_TARGET      __attribute__((target("avx512f")))
#define RNG_EACH        8
#define RNG_TIMES(a, b) ((RNG_NAME(rng_lanes))_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#define RNG_COUNT              \
    {                          \
        0, 1, 2, 3, 4, 5, 6, 7 \
    }
#define RNG_LOW  0, 8, 1, 9, 2, 10, 3, 11
#define RNG_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#include "base/rng_lanes.def"
#endif

static const rng_way *rng_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return &rng_way_avx512;
    if (__builtin_cpu_supports("avx2"))
        return &rng_way_avx2;
#endif
    return &rng_way_any;
}

void ty_rng_words(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i, int64_t n, uint32_t *out)
{
    const rng_way *way = rng_best();
    int64_t before = (4 - (int64_t)(i % 4)) % 4, done = before < n ? before : n;
    for (int64_t k = 0; k < done; k++)
        out[k] = ty_rng_u32(seed, stream, step, i + (uint64_t)k);
    int64_t blocks = (n - done) / (4 * RNG_GROUP) * RNG_GROUP;
    way->up(seed, stream, step, (i + (uint64_t)done) / 4, blocks, out + done);
    for (done += 4 * blocks; done < n; done += 4) {
        uint32_t words[4];
        rng_block(seed, stream, step, (i + (uint64_t)done) / 4, words);
        memcpy(out + done, words, sizeof *words * (size_t)(n - done < 4 ? n - done : 4));
    }
}

/* ---- a permutation: draws in blocks, so that memory is asked for what they will exchange before its turn ---- */

/* ty_rng_below(..., i, i + 1) for i, i - 1 ..., their first words being known. */
static void rng_places_down(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i, const uint64_t *words,
                            int64_t *place)
{
    for (int k = 0; k < RNG_DRAWS; k++, i--) {
        uint64_t n = i + 1;
        unsigned __int128 product = (unsigned __int128)words[k] * n;
        /* The threshold is below n: only a low product below n needs the division that finds it. */
        place[k] = (uint64_t)product >= n ? (int64_t)(product >> 64) : (int64_t)ty_rng_below(seed, stream, step, i, n);
    }
}

void ty_rng_permutation(uint64_t seed, uint32_t stream, uint32_t step, int64_t n, uint32_t *out)
{
    uint64_t words[RNG_DRAWS];
    int64_t place[2][RNG_DRAWS], i = n - 1;
    const rng_way *way = rng_best();
    for (int64_t k = 0; k < n; k++)
        out[k] = (uint32_t)k;
    if (i >= RNG_DRAWS) {
        way->down(seed, stream, step, (uint64_t)i, words);
        rng_places_down(seed, stream, step, (uint64_t)i, words, place[0]);
    }
    for (int turn = 0; i >= RNG_DRAWS; turn ^= 1) {
        if (i - RNG_DRAWS >= RNG_DRAWS) {
            way->down(seed, stream, step, (uint64_t)(i - RNG_DRAWS), words);
            rng_places_down(seed, stream, step, (uint64_t)(i - RNG_DRAWS), words, place[turn ^ 1]);
            for (int k = 0; k < RNG_DRAWS; k++)
                __builtin_prefetch(&out[place[turn ^ 1][k]], 1);
        }
        for (int k = 0; k < RNG_DRAWS; k++, i--)
            rng_exchange(out, i, place[turn][k]);
    }
    for (; i > 0; i--)
        rng_exchange(out, i, (int64_t)ty_rng_below(seed, stream, step, (uint64_t)i, (uint64_t)i + 1));
}

/* A Feistel network of four rounds (Luby and Rackoff, SIAM J. Comput. 1988) on the smallest even number of bits that
 * holds n; what it sends beyond n is sent again until it is not, which keeps it a permutation. */
int64_t ty_rng_permuted(uint64_t seed, uint32_t stream, uint32_t step, int64_t n, int64_t i)
{
    int half = 1;
    while (half < 31 && (uint64_t)n > UINT64_C(1) << (2 * half))
        half++;
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t v = (uint64_t)i;
    do {
        uint64_t left = v >> half, right = v & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint32_t words[4];
            rng_block(seed, stream, step, right << 2 | round, words);
            uint64_t mixed = left ^ (words[0] & mask);
            left = right;
            right = mixed;
        }
        v = left << half | right;
    } while (v >= (uint64_t)n);
    return (int64_t)v;
}
