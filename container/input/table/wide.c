/* wide.c - the ways of processors with AVX-512 VBMI2 (Ice Lake, Zen 4 and later): eight numbers at once.
 *
 * A number of up to 16 characters stands at the end of a quarter of a register, four in each of two: those with even
 * numbers in one, with odd ones in the other, so that what the two become joins in the order of the numbers. Bytes
 * compared give masks of 64 bits, 16 a number, on which ordinary arithmetic finds what stands before the point. Digits
 * become pairs, fours and eights by multiply-and-add (Mula and Lemire, "Faster Base64 Encoding and Decoding Using AVX2
 * Instructions", 2018, do the like), then a quotient or product of doubles, which is exact where number.h says.
 */
#include "container/input/table/lane.h"

#if defined(__x86_64__)

#define LANE_WIDE                                                                                                     \
    __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt,pclmul,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi," \
                          "avx512vbmi2")))
#define WIDE_INLINE LANE_WIDE static inline __attribute__((always_inline))

/* ---- separators ---- */

WIDE_INLINE uint64_t lane_wide_mask(const char *p, char c)
{
    return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(p), _mm512_set1_epi8(c));
}

WIDE_INLINE __m512i wide_rising(void)
{
    const __m128i step = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_broadcast_i32x4(step);
}

#define WIDE_ROW(i) \
    i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7, i + 8, i + 9, i + 10, i + 11, i + 12, i + 13, i + 14, i + 15
static const uint8_t wide_numbers[64]
    __attribute__((aligned(64))) = {WIDE_ROW(0), WIDE_ROW(16), WIDE_ROW(32), WIDE_ROW(48)};

/* Sixteen places. */
WIDE_INLINE void wide_append_some(uint16_t *to, __m128i places, __m256i base)
{
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_add_epi16(_mm256_cvtepu8_epi16(places), base));
}

/* Up to 64 places are written, whatever their number. */
WIDE_INLINE int lane_wide_append(uint16_t *to, int n, uint64_t mask, int at)
{
    __m512i found = _mm512_maskz_compress_epi8(mask, _mm512_load_si512(wide_numbers));
    __m256i base = _mm256_set1_epi16((int16_t)at);
    int more = __builtin_popcountll(mask);
    wide_append_some(to + n, _mm512_castsi512_si128(found), base);
    if (__builtin_expect(more > 16, 0)) {
        wide_append_some(to + n + 16, _mm512_extracti32x4_epi32(found, 1), base);
        wide_append_some(to + n + 32, _mm512_extracti32x4_epi32(found, 2), base);
        wide_append_some(to + n + 48, _mm512_extracti32x4_epi32(found, 3), base);
    }
    return n + more;
}

#define LANE_NAME(x) lane_wide_##x
#define LANE_TARGET  LANE_WIDE
#define LANE_MASK    lane_wide_mask
#define LANE_PARITY  lane_avx2_parity
#define LANE_APPEND  lane_wide_append
#define LANE_FEW     lane_wide_append
#define LANE_NUMBER  lane_avx2_between
#define LANE_NO_NUMBERS
#include "container/input/table/lane.def"

/* ---- eight numbers ---- */

/* Of 16 bits, one number's, in each of four: the first, the last, all. */
#define WIDE_FIRST UINT64_C(0x0001000100010001)
#define WIDE_LAST  UINT64_C(0x8000800080008000)
#define WIDE_ALL   UINT64_C(0xffff)

/* Four numbers, one a quarter, right-aligned. */
typedef struct wide_four {
    __m512i text, cut; /* cut: bytes of the quarter before the number, in each of its bytes */
    __m512i digit;     /* their values without sign and point, zeros before them */
    uint64_t sign, point, odd;
    uint64_t power_sign, power_odd;
    __m512i power; /* in the upper half of each quarter */
} wide_four;

typedef struct wide_eight {
    __m512i mantissa;
    __m512i points; /* leading zeros of the mask of points: its low four bits are how many digits follow */
    __m512i power;  /* behind an 'e' */
    __mmask8 is_minus, is_odd, has_point;
} wide_eight;

WIDE_INLINE __m128i wide_16_before(const char *lane, uint32_t pair)
{
    return _mm_loadu_si128((const __m128i *)(const void *)(lane + (pair >> 16) - 16));
}

WIDE_INLINE __m512i wide_load(const char *lane, const uint32_t *pair)
{
    __m256i low = _mm256_castsi128_si256(wide_16_before(lane, pair[0]));
    __m256i high = _mm256_castsi128_si256(wide_16_before(lane, pair[4]));
    low = _mm256_inserti128_si256(low, wide_16_before(lane, pair[2]), 1);
    high = _mm256_inserti128_si256(high, wide_16_before(lane, pair[6]), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* Bits up to the lowest of each 16, of which the last is not set; none where none is. */
WIDE_INLINE uint64_t wide_through(uint64_t x)
{
    uint64_t any = (x + ~WIDE_LAST) >> 15 & WIDE_FIRST;
    return x ^ (x - any);
}

/* What follows an 'e', and the text before it moved to the end. */
WIDE_INLINE void wide_power(wide_four *f)
{
    __mmask64 there = _mm512_cmpge_epu8_mask(wide_rising(), f->cut);
    __m512i lower = _mm512_or_si512(f->text, _mm512_set1_epi8(0x20));
    uint64_t e = _mm512_mask_cmpeq_epi8_mask(there, lower, _mm512_set1_epi8('e')) & ~WIDE_LAST;
    uint64_t any = (e + ~WIDE_LAST) >> 15 & WIDE_FIRST, has = any * WIDE_ALL;
    uint64_t through = e ^ (e - any), behind = has & ~through, first = e & ~(e - any);
    uint64_t minus = _mm512_mask_cmpeq_epi8_mask(first << 1, f->text, _mm512_set1_epi8('-'));
    uint64_t plus = _mm512_mask_cmpeq_epi8_mask(first << 1, f->text, _mm512_set1_epi8('+'));
    uint64_t digits = behind & ~(minus | plus);
    __m512i v = _mm512_maskz_sub_epi8(digits, f->text, _mm512_set1_epi8('0'));
    f->power_odd = _mm512_cmpgt_epu8_mask(v, _mm512_set1_epi8(9)) | (digits & ~(3 * (WIDE_LAST >> 1))) |
                   (has & WIDE_LAST & ~digits);
    f->power_sign = minus;
    /* the last two digits: in the top 16 bits of the quarter */
    const __m512i weights =
        _mm512_set_epi64(0x010a000000000000, 0, 0x010a000000000000, 0, 0x010a000000000000, 0, 0x010a000000000000, 0);
    f->power = _mm512_srli_epi64(_mm512_maddubs_epi16(v, weights), 48);
    /* as many bytes as from the 'e' on; where they are more than 8, power_odd is set */
    __m512i ones = _mm512_maskz_set1_epi8(behind | first, 1);
    __m512i count = _mm512_shuffle_epi8(_mm512_sad_epu8(ones, _mm512_setzero_si512()), _mm512_set1_epi8(8));
    f->text = _mm512_shuffle_epi8(f->text, _mm512_sub_epi8(wide_rising(), count));
    f->cut = _mm512_add_epi8(f->cut, count);
}

WIDE_INLINE void wide_digits(wide_four *f)
{
    __m512i rising = wide_rising();
    uint64_t there = _mm512_cmpge_epu8_mask(rising, f->cut), first = _mm512_cmpeq_epi8_mask(rising, f->cut);
    f->sign = _mm512_mask_cmpeq_epi8_mask(first, f->text, _mm512_set1_epi8('-'));
    /* a point at the end is odd, for 16 bits must not run over in wide_through */
    f->point = _mm512_mask_cmpeq_epi8_mask(there, f->text, _mm512_set1_epi8('.')) & ~WIDE_LAST;
    __m512i v = _mm512_maskz_sub_epi8(there & ~f->sign, f->text, _mm512_set1_epi8('0'));
    f->digit = _mm512_mask_mov_epi8(v, wide_through(f->point), _mm512_bslli_epi128(v, 1));
    f->odd = _mm512_cmpgt_epu8_mask(f->digit, _mm512_set1_epi8(9)) | (WIDE_LAST & ~(there & ~f->sign));
}

/* Words of four in the order of eight. */
WIDE_INLINE __m128i wide_words(uint64_t even, uint64_t odd)
{
    return _mm_unpacklo_epi16(_mm_cvtsi64_si128((int64_t)even), _mm_cvtsi64_si128((int64_t)odd));
}

WIDE_INLINE __mmask8 wide_any(uint64_t even, uint64_t odd)
{
    __m128i words = wide_words(even, odd);
    return _mm_test_epi16_mask(words, words);
}

WIDE_INLINE __m512i wide_mantissa(__m512i even, __m512i odd)
{
    const __m512i pairs = _mm512_set1_epi16(0x010a), fours = _mm512_set1_epi32(0x00010064);
    even = _mm512_madd_epi16(_mm512_maddubs_epi16(even, pairs), fours);
    odd = _mm512_madd_epi16(_mm512_maddubs_epi16(odd, pairs), fours);
    __m512i eights = _mm512_madd_epi16(_mm512_packus_epi32(even, odd), _mm512_set1_epi32(0x00012710));
    return _mm512_add_epi64(_mm512_mul_epu32(eights, _mm512_set1_epi64(100000000)), _mm512_srli_epi64(eights, 32));
}

/* Bytes 0 of the numbers' lengths, each for a quarter. */
WIDE_INLINE __m512i wide_spread(__m256i v, int first)
{
    const __m512i quarter = _mm512_setr_epi64(0, 0, 0x0808080808080808, 0x0808080808080808, 0x1010101010101010,
                                              0x1010101010101010, 0x1818181818181818, 0x1818181818181818);
    return _mm512_permutexvar_epi8(_mm512_add_epi8(quarter, _mm512_set1_epi8((char)first)), _mm512_castsi256_si512(v));
}

WIDE_INLINE wide_eight wide_take(const walk_numbers *t, int i, bool powers)
{
    wide_eight e;
    wide_four even, odd;
    const uint32_t *pair = t->pair + i;
    const __m256i ones = _mm256_set1_epi32(1), sixteen = _mm256_set1_epi32(16);
    __m256i pairs = _mm256_loadu_si256((const __m256i *)(const void *)pair);
    __m256i length = _mm256_sub_epi32(_mm256_sub_epi32(_mm256_srli_epi32(pairs, 16), pairs), ones);
    length = _mm256_and_si256(length, _mm256_set1_epi32(0xffff));
    __m256i cut = _mm256_sub_epi32(sixteen, _mm256_min_epu32(length, sixteen));
    even.text = wide_load(t->lane, pair);
    odd.text = wide_load(t->lane, pair + 1);
    even.cut = wide_spread(cut, 0);
    odd.cut = wide_spread(cut, 4);
    e.is_odd = _mm256_cmpgt_epu32_mask(length, sixteen);
    if (powers) {
        wide_power(&even);
        wide_power(&odd);
        e.is_odd |= wide_any(even.power_odd, odd.power_odd);
        e.power = _mm512_unpackhi_epi64(even.power, odd.power);
        e.power =
            _mm512_mask_sub_epi64(e.power, wide_any(even.power_sign, odd.power_sign), _mm512_setzero_si512(), e.power);
    }
    wide_digits(&even);
    wide_digits(&odd);
    __m128i points = wide_words(even.point, odd.point);
    e.points = _mm512_lzcnt_epi64(_mm512_cvtepu16_epi64(points));
    e.has_point = _mm_test_epi16_mask(points, points);
    e.is_minus = wide_any(even.sign, odd.sign);
    e.mantissa = wide_mantissa(even.digit, odd.digit);
    e.is_odd |= wide_any(even.odd, odd.odd);
    return e;
}

/* Tens to the power of 0 to 15, by the low four bits. */
WIDE_INLINE __m512d wide_tens(__m512i power)
{
    return _mm512_permutex2var_pd(_mm512_loadu_pd(ty_number_pow10), power, _mm512_loadu_pd(ty_number_pow10 + 8));
}

WIDE_INLINE __m512d wide_scaled(wide_eight *e, bool powers)
{
    /* Of 16 characters only whole numbers go beyond 2^53: they are rounded here and nowhere else. */
    __m512d v = _mm512_cvtepi64_pd(e->mantissa);
    if (!powers)
        return e->has_point ? _mm512_div_pd(v, wide_tens(e->points)) : v;
    __m512i fraction = _mm512_and_si512(e->points, _mm512_set1_epi64(15));
    __m512i power = _mm512_sub_epi64(e->power, fraction), size = _mm512_abs_epi64(power);
    e->is_odd |= _mm512_cmpgt_epu64_mask(size, _mm512_set1_epi64(22));
    const __m512i one = _mm512_set1_epi64(1); /* 10^16 is the second of the last eight */
    __m512d high = _mm512_permutexvar_pd(_mm512_add_epi64(size, one), _mm512_loadu_pd(ty_number_pow10 + 15));
    __m512d tens = _mm512_mask_blend_pd(_mm512_cmpgt_epu64_mask(size, _mm512_set1_epi64(15)), wide_tens(size), high);
    __m512d less = _mm512_div_pd(v, tens);
    return _mm512_mask_mul_pd(less, _mm512_cmpge_epi64_mask(power, _mm512_setzero_si512()), v, tens);
}

/* The numbers from i on that there are. */
WIDE_INLINE __mmask8 wide_rest(const walk_numbers *t, int i)
{
    return t->n - i >= 8 ? 0xff : (__mmask8)((1 << (t->n - i)) - 1);
}

WIDE_INLINE int wide_reals(walk_numbers *t, double *real, float *single, bool powers)
{
    int n_odd = 0;
    for (int i = 0; i < t->n; i += 8) {
        wide_eight e = wide_take(t, i, powers);
        __m512d v = wide_scaled(&e, powers);
        __mmask8 rest = wide_rest(t, i);
        __m512i bits = _mm512_castpd_si512(v);
        v = _mm512_castsi512_pd(_mm512_mask_or_epi64(bits, e.is_minus, bits, _mm512_set1_epi64(INT64_MIN)));
        if (real)
            _mm512_mask_storeu_pd(real + i, rest, v);
        else
            _mm256_mask_storeu_ps(single + i, rest, _mm512_cvtpd_ps(v));
        t->odd[i / 8] = e.is_odd & rest;
        n_odd += __builtin_popcount(e.is_odd & rest);
    }
    return n_odd;
}

/* Numbers with exponents are odd until they are looked for. */
LANE_WIDE static int wide_real(walk_numbers *t, double *out)
{
    int n_odd = t->powers ? t->n : wide_reals(t, out, NULL, false);
    t->powers = n_odd > t->n / 4;
    return t->powers ? wide_reals(t, out, NULL, true) : n_odd;
}

LANE_WIDE static int wide_single(walk_numbers *t, float *out)
{
    int n_odd = t->powers ? t->n : wide_reals(t, NULL, out, false);
    t->powers = n_odd > t->n / 4;
    return t->powers ? wide_reals(t, NULL, out, true) : n_odd;
}

LANE_WIDE static int wide_whole(walk_numbers *t, int64_t *out)
{
    int n_odd = 0;
    __m512i min = _mm512_set1_epi64(INT64_MAX), max = _mm512_set1_epi64(INT64_MIN);
    for (int i = 0; i < t->n; i += 8) {
        wide_eight e = wide_take(t, i, false);
        __mmask8 rest = wide_rest(t, i), is_odd = (e.is_odd | e.has_point) & rest, good = rest & (__mmask8)~is_odd;
        __m512i v = _mm512_mask_sub_epi64(e.mantissa, e.is_minus, _mm512_setzero_si512(), e.mantissa);
        _mm512_mask_storeu_epi64(out + i, rest, v);
        min = _mm512_mask_min_epi64(min, good, min, v);
        max = _mm512_mask_max_epi64(max, good, max, v);
        t->odd[i / 8] = is_odd;
        n_odd += __builtin_popcount(is_odd);
    }
    t->min = _mm512_reduce_min_epi64(min);
    t->max = _mm512_reduce_max_epi64(max);
    return n_odd;
}

static const walk_ways wide_ways = {"avx512",  lane_wide_count, lane_wide_look, lane_wide_record,
                                    wide_real, wide_single,     wide_whole};

const walk_ways *walk_ways_wide(void)
{
    return __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vbmi") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd") &&
                   __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
                   __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("pclmul")
               ? &wide_ways
               : NULL;
}

#else

const walk_ways *walk_ways_wide(void)
{
    return NULL;
}

#endif
