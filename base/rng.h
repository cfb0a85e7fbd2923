/* rng.h - counter-based random numbers: Philox4x32-10.
 *
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
 * There is no state to save: number i of a stream is a pure function of (seed, stream, step, i), so that any thread,
 * rank or restart gets the same numbers in any order. The generated kernels, the interpreter and the shuffle share it.
 */
#ifndef TY_BASE_RNG_H
#define TY_BASE_RNG_H

#include <stdint.h>

/* Ten rounds; counter and key as in the paper; out receives 4 words. */
void ty_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Word `i` of a stream: counter = {i / 4 (low, high), stream, step}, key = seed. */
uint32_t ty_rng_u32(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i);
/* Words i to i + n - 1, to 1 ns each: the blocks that they are in are made many at a time. */
void ty_rng_words(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i, int64_t n, uint32_t *out);
/* Uniform in [0, n), n > 0, without modulo bias (Lemire's multiply with rejection over further words). */
uint64_t ty_rng_below(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i, uint64_t n);
/* Uniform in [0, 1): the upper 24 bits times 2^-24. */
static inline float ty_rng_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}
/* A random permutation of 0..n-1 (Fisher-Yates driven by ty_rng_below), n <= 2^32: half the memory of 64-bit numbers is
 * half of what the exchanges wait for. */
void ty_rng_permutation(uint64_t seed, uint32_t stream, uint32_t step, int64_t n, uint32_t *out);
/* Number i of another random permutation of 0..n-1 that needs no memory: 0 <= i < n <= 2^62. Slower, an element. */
int64_t ty_rng_permuted(uint64_t seed, uint32_t stream, uint32_t step, int64_t n, int64_t i);

#endif
