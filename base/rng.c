/* rng.c - Philox4x32-10 and what is drawn from it. Constants and rounds as in the SC'11 paper (and Random123). */
#include "base/rng.h"

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

void ty_rng_permutation(uint64_t seed, uint32_t stream, uint32_t step, int64_t n, int64_t *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)ty_rng_below(seed, stream, step, (uint64_t)i, (uint64_t)i + 1);
        int64_t kept = out[i];
        out[i] = out[j];
        out[j] = kept;
    }
}
