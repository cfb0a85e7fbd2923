/* lane.h - what the ways of all processors share. Private to lane.c, wide.c and four.c; the first two include lane.def
 * behind it. */
#ifndef TY_CONTAINER_INPUT_TABLE_LANE_H
#define TY_CONTAINER_INPUT_TABLE_LANE_H

#include "container/input/number.h"
#include "container/input/table/mask.h"
#include "container/input/table/walk.h"

#include <stddef.h>

/* ---- quotes ---- */

typedef struct lane_quotes {
    uint64_t inside;   /* all bits: the block begins inside a field */
    uint64_t may_open; /* 1: a separator stands before the block, or its first record begins with it */
    uint64_t must_end; /* 1: before the block a quote closed its field, or was the first of two */
} lane_quotes;

/* Whether each quote that opens begins a field and each that closes ends one, or is the first of two, where these bytes
 * are inside quotes. False: a reader has to look at each field. */
static inline bool lane_quotes_fit(lane_quotes *q, uint64_t quotes, uint64_t inside, uint64_t separators)
{
    uint64_t opening = quotes & inside, closing = quotes & ~inside, outside = separators & ~inside;
    uint64_t begins = outside << 1 | q->may_open | closing << 1 | q->must_end;
    uint64_t ends = outside | opening;
    if ((opening & ~begins) != 0 || ((closing << 1 | q->must_end) & ~ends) != 0)
        return false;
    q->inside = 0 - (inside >> 63);
    q->must_end = closing >> 63;
    return true;
}

/* A field in [p, end) of the record at csv.at that is no plain number. */
int lane_other(table_walk *w, const char *p, const char *end, const table_target *target, ty_error *err);

#if defined(__x86_64__)
#include <immintrin.h>

#define LANE_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt,pclmul")))

/* Row k: sixteen bytes of which byte k is taken out, those before it moving up; row 16: as they are. */
#define LANE_ROW(k)                                                                                                  \
    {                                                                                                                \
        -1, LANE_AT(1, k), LANE_AT(2, k), LANE_AT(3, k), LANE_AT(4, k), LANE_AT(5, k), LANE_AT(6, k), LANE_AT(7, k), \
            LANE_AT(8, k), LANE_AT(9, k), LANE_AT(10, k), LANE_AT(11, k), LANE_AT(12, k), LANE_AT(13, k),            \
            LANE_AT(14, k), LANE_AT(15, k)                                                                           \
    }
#define LANE_AT(i, k) ((i) <= (k) ? (i)-1 : (i))
static const int8_t lane_without[17][16] = {LANE_ROW(0),
                                            LANE_ROW(1),
                                            LANE_ROW(2),
                                            LANE_ROW(3),
                                            LANE_ROW(4),
                                            LANE_ROW(5),
                                            LANE_ROW(6),
                                            LANE_ROW(7),
                                            LANE_ROW(8),
                                            LANE_ROW(9),
                                            LANE_ROW(10),
                                            LANE_ROW(11),
                                            LANE_ROW(12),
                                            LANE_ROW(13),
                                            LANE_ROW(14),
                                            LANE_ROW(15),
                                            {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
/* The 16 from number n on: the last n are taken. */
static const int8_t lane_last[32] = {[16] = -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

/* ty_number_between, all 16 characters at once. */
LANE_AVX2 static inline bool lane_avx2_between(const char *p, const char *end, const char *begin, double *out)
{
    bool negative = *p == '-';
    size_t n = (size_t)(end - p) - negative;
    if (n - 1 >= 16 || end - begin < 16)
        return false;
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(end - 16));
    __m128i taken = _mm_loadu_si128((const __m128i *)(const void *)(lane_last + n));
    v = _mm_and_si128(_mm_xor_si128(v, _mm_set1_epi8('0')), taken);
    unsigned points = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('.' ^ '0')));
    unsigned at = (unsigned)__builtin_ctz(points | 0x10000);
    v = _mm_shuffle_epi8(v, _mm_loadu_si128((const __m128i *)(const void *)lane_without[at]));
    if (!_mm_testz_si128(_mm_subs_epu8(v, _mm_set1_epi8(9)), _mm_set1_epi8(-1)) || (points >> 15 & 1) != 0)
        return false;
    __m128i pairs = _mm_maddubs_epi16(v, _mm_set1_epi16(0x010a));
    __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(0x00010064));
    __m128i eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), _mm_set1_epi32(0x00012710));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(eights);
    uint64_t mantissa = (both & 0xffffffff) * 100000000 + (both >> 32);
    if (mantissa > UINT64_C(1) << 53)
        return false;
    unsigned fraction = points ? 15 - at : 0;
    *out = ty_number_sign((double)(int64_t)mantissa / ty_number_pow10[fraction], negative);
    return true;
}

/* four.c: walk_ways.real, single and whole. */
int walk_four_real(walk_numbers *t, double *out);
int walk_four_single(walk_numbers *t, float *out);
int walk_four_whole(walk_numbers *t, int64_t *out);

/* mask_parity: a product without carries by ones. */
LANE_AVX2 static inline uint64_t lane_avx2_parity(uint64_t x)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)x), _mm_set1_epi8(-1), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

#endif

#endif
