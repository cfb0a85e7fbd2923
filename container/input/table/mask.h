/* mask.h - 64 bytes of text as 64 bits. Private to this folder. */
#ifndef TY_CONTAINER_INPUT_TABLE_MASK_H
#define TY_CONTAINER_INPUT_TABLE_MASK_H

#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { MASK_BYTES = 64 };

/* Bit i: byte i of the 64 at p is c. */
static inline uint64_t mask_of(const char *p, char c)
{
    uint64_t mask = 0;
#if defined(__SSE2__)
    __m128i all = _mm_set1_epi8(c);
    for (int i = 0; i < 4; i++) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, all)) << (16 * i);
    }
#else
    for (int i = 0; i < MASK_BYTES; i++)
        mask |= (uint64_t)(p[i] == c) << i;
#endif
    return mask;
}

/* Bit i: the exclusive or of bits 0 to i. Of quotes: what they open is inside. */
static inline uint64_t mask_parity(uint64_t x)
{
    for (int i = 1; i < MASK_BYTES; i *= 2)
        x ^= x << i;
    return x;
}

#endif
