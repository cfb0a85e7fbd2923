/* four.c - plain numbers on processors with AVX2: four at once, as wide.c has eight.
 *
 * A number of up to 16 characters stands at the end of a half of a register, two in each of two: numbers 0 and 2 in
 * one, 1 and 3 in the other, so that what the two become joins in the order of the numbers. There are no masks of bits
 * here: a byte is all ones where something holds, and places are added up by sums of differences (psadbw).
 */
#include "container/input/table/lane.h"

#include <string.h>

#if defined(__x86_64__)

#define FOUR_INLINE LANE_AVX2 static inline __attribute__((always_inline))

/* By how far the point is from the end of the 16 characters; of a number that has none the last. */
static const double four_tens[17] = {1e0, 1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7, 1e8,
                                     1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1.0};

/* The first n of four doubles are from row 4 - n on. */
static const int64_t four_rest[8] = {-1, -1, -1, -1};

typedef struct four_two {
    __m256i digit;       /* values without sign and point, zeros before them */
    __m256i point, sign; /* in each eight bytes: where its point is, from 1 on, in the half; whether it has the sign */
    int good;            /* a bit for each byte where nothing is wrong */
    __m256i power, power_sign; /* what is behind an 'e', and whether it has a sign, in the upper eight bytes */
} four_two;

typedef struct four {
    __m256i eights; /* of each number the upper eight digits and the lower eight, as i32 */
    __m256i point;  /* u64: where it is in the last 16 characters, from 1 on; 0: there is none */
    __m256i sign;   /* u64: only its top bit matters */
    __m256i power;  /* i64: behind an 'e' */
    unsigned odd;   /* bits */
} four;

FOUR_INLINE __m256i four_rising(void)
{
    return _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

FOUR_INLINE __m256i four_load(const char *lane, const uint32_t *pair)
{
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(lane + (pair[0] >> 16) - 16));
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(lane + (pair[2] >> 16) - 16));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* Sums of both eights of a half, which are less than 256, in all of its bytes. */
FOUR_INLINE __m256i four_place(__m256i sums)
{
    __m256i both = _mm256_add_epi64(sums, _mm256_shuffle_epi32(sums, 0x4e));
    return _mm256_shuffle_epi8(both, _mm256_setzero_si256());
}

/* Takes what follows an 'e' off the text, which moves to the end. Returns where nothing is wrong with it. */
FOUR_INLINE __m256i four_power(__m256i *text, __m256i *cut, four_two *f)
{
    const __m256i rising = four_rising(), from_one = _mm256_add_epi8(rising, _mm256_set1_epi8(1));
    const __m256i zero = _mm256_setzero_si256(), nine = _mm256_set1_epi8(9);
    const __m256i before_two = _mm256_cmpgt_epi8(_mm256_set1_epi8(14), rising);
    const __m256i last = _mm256_cmpeq_epi8(rising, _mm256_set1_epi8(15));
    __m256i there = _mm256_cmpeq_epi8(_mm256_max_epu8(rising, *cut), rising);
    __m256i lower = _mm256_or_si256(*text, _mm256_set1_epi8(0x20));
    __m256i e = _mm256_and_si256(_mm256_cmpeq_epi8(lower, _mm256_set1_epi8('e')), there);
    /* of two some place behind both: they stay, and are no digits */
    __m256i at = four_place(_mm256_sad_epu8(_mm256_and_si256(e, from_one), zero));
    __m256i has = _mm256_cmpgt_epi8(at, zero), behind = _mm256_and_si256(has, _mm256_cmpgt_epi8(from_one, at));
    __m256i first = _mm256_and_si256(behind, _mm256_cmpeq_epi8(rising, at));
    __m256i minus = _mm256_and_si256(first, _mm256_cmpeq_epi8(*text, _mm256_set1_epi8('-')));
    __m256i plus = _mm256_and_si256(first, _mm256_cmpeq_epi8(*text, _mm256_set1_epi8('+')));
    __m256i digits = _mm256_andnot_si256(_mm256_or_si256(minus, plus), behind);
    __m256i v = _mm256_and_si256(_mm256_sub_epi8(*text, _mm256_set1_epi8('0')), digits);
    /* the last two digits: the weights stand in the top 16 bits of the half */
    const __m256i weights = _mm256_set_epi64x(0x010a000000000000, 0, 0x010a000000000000, 0);
    f->power = _mm256_srli_epi64(_mm256_maddubs_epi16(v, weights), 48);
    f->power_sign = _mm256_sad_epu8(minus, zero);
    /* digits alone, no more than two, one in the last place */
    __m256i good = _mm256_cmpeq_epi8(_mm256_max_epu8(v, nine), nine);
    good = _mm256_andnot_si256(_mm256_and_si256(digits, before_two), good);
    good = _mm256_andnot_si256(_mm256_andnot_si256(digits, _mm256_and_si256(has, last)), good);
    __m256i count = _mm256_and_si256(has, _mm256_sub_epi8(_mm256_set1_epi8(17), at));
    *text = _mm256_shuffle_epi8(*text, _mm256_sub_epi8(rising, count));
    *cut = _mm256_add_epi8(*cut, count);
    return good;
}

/* cut: in each byte how many of the half are before the number. */
FOUR_INLINE four_two four_digits(__m256i text, __m256i cut, bool powers)
{
    four_two f;
    __m256i power_good = _mm256_set1_epi8(-1);
    if (powers)
        power_good = four_power(&text, &cut, &f);
    const __m256i rising = four_rising(), from_one = _mm256_add_epi8(rising, _mm256_set1_epi8(1));
    const __m256i zero = _mm256_setzero_si256(), nine = _mm256_set1_epi8(9);
    const __m256i before_last = _mm256_cmpgt_epi8(_mm256_set1_epi8(15), rising);
    __m256i there = _mm256_cmpeq_epi8(_mm256_max_epu8(rising, cut), rising);
    __m256i minus = _mm256_and_si256(_mm256_cmpeq_epi8(text, _mm256_set1_epi8('-')), _mm256_cmpeq_epi8(rising, cut));
    __m256i taken = _mm256_andnot_si256(minus, there);
    /* a point at the end is odd, for there is no digit behind it */
    __m256i point = _mm256_and_si256(_mm256_cmpeq_epi8(text, _mm256_set1_epi8('.')),
                                     _mm256_and_si256(there, _mm256_and_si256(before_last, from_one)));
    f.point = _mm256_sad_epu8(point, zero);
    f.sign = _mm256_sad_epu8(minus, zero);
    __m256i at = four_place(f.point); /* of two points some other place: one of them stays, and is no digit */
    __m256i through = _mm256_cmpeq_epi8(_mm256_max_epu8(from_one, at), at);
    __m256i v = _mm256_and_si256(_mm256_sub_epi8(text, _mm256_set1_epi8('0')), taken);
    f.digit = _mm256_blendv_epi8(v, _mm256_bslli_epi128(v, 1), through);
    __m256i good = _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_max_epu8(f.digit, nine), nine), power_good);
    f.good = _mm256_movemask_epi8(_mm256_and_si256(good, _mm256_or_si256(taken, before_last)));
    return f;
}

FOUR_INLINE __m256i four_fours(__m256i digit)
{
    return _mm256_madd_epi16(_mm256_maddubs_epi16(digit, _mm256_set1_epi16(0x010a)), _mm256_set1_epi32(0x00010064));
}

/* Sums of both halves' eights, number by number. */
FOUR_INLINE __m256i four_join(__m256i even, __m256i odd)
{
    return _mm256_add_epi64(_mm256_unpacklo_epi64(even, odd), _mm256_unpackhi_epi64(even, odd));
}

FOUR_INLINE four four_take(const char *lane, const uint32_t *pair, bool powers)
{
    const __m128i sixteen = _mm_set1_epi32(16);
    const __m256i of_even = _mm256_setr_epi64x(0, 0, 0x0808080808080808, 0x0808080808080808);
    const __m256i of_odd =
        _mm256_setr_epi64x(0x0404040404040404, 0x0404040404040404, 0x0c0c0c0c0c0c0c0c, 0x0c0c0c0c0c0c0c0c);
    __m128i pairs = _mm_loadu_si128((const __m128i *)(const void *)pair);
    __m128i length = _mm_sub_epi32(_mm_sub_epi32(_mm_srli_epi32(pairs, 16), pairs), _mm_set1_epi32(1));
    length = _mm_and_si128(length, _mm_set1_epi32(0xffff));
    __m256i cut = _mm256_broadcastsi128_si256(_mm_sub_epi32(sixteen, _mm_min_epu32(length, sixteen)));
    four_two even = four_digits(four_load(lane, pair), _mm256_shuffle_epi8(cut, of_even), powers);
    four_two odd = four_digits(four_load(lane, pair + 1), _mm256_shuffle_epi8(cut, of_odd), powers);
    unsigned long_ones = (unsigned)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpgt_epi32(length, sixteen)));
    four f = {.point = four_join(even.point, odd.point), .sign = four_join(even.sign, odd.sign)};
    f.eights = _mm256_madd_epi16(_mm256_packus_epi32(four_fours(even.digit), four_fours(odd.digit)),
                                 _mm256_set1_epi32(0x00012710));
    if (powers) {
        __m256i power = _mm256_unpackhi_epi64(even.power, odd.power);
        __m256i sign = _mm256_cmpgt_epi64(four_join(even.power_sign, odd.power_sign), _mm256_setzero_si256());
        f.power = _mm256_sub_epi64(_mm256_xor_si256(power, sign), sign);
    }
    f.odd = long_ones | (unsigned)((even.good & 0xffff) != 0xffff) | (unsigned)((odd.good & 0xffff) != 0xffff) << 1 |
            (unsigned)((uint32_t)even.good >> 16 != 0xffff) << 2 | (unsigned)((uint32_t)odd.good >> 16 != 0xffff) << 3;
    return f;
}

/* Upper eights times 10^8 are exact, so that the sum rounds once, as the mantissa itself would. */
FOUR_INLINE __m256d four_mantissa(const four *f)
{
    const __m256i halves = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    __m256i eights = _mm256_permutevar8x32_epi32(f->eights, halves);
    __m256d upper = _mm256_cvtepi32_pd(_mm256_castsi256_si128(eights));
    __m256d lower = _mm256_cvtepi32_pd(_mm256_extracti128_si256(eights, 1));
    return _mm256_add_pd(_mm256_mul_pd(upper, _mm256_set1_pd(1e8)), lower);
}

/* A quotient or product that is exact where number.h says. An odd number may have its point anywhere. */
FOUR_INLINE __m256d four_double(four *f, bool powers)
{
    const __m256i sixteen = _mm256_set1_epi64x(16), zero = _mm256_setzero_si256();
    __m256i places = _mm256_and_si256(_mm256_sub_epi64(sixteen, f->point), _mm256_set1_epi64x(31));
    __m256d v = four_mantissa(f);
    places = _mm256_min_epi32(places, sixteen);
    if (powers) {
        __m256i fraction = _mm256_andnot_si256(_mm256_cmpeq_epi64(places, sixteen), places);
        __m256i power = _mm256_sub_epi64(f->power, fraction), below = _mm256_cmpgt_epi64(zero, power);
        __m256i size = _mm256_sub_epi64(_mm256_xor_si256(power, below), below), most = _mm256_set1_epi64x(22);
        __m256i large = _mm256_cmpgt_epi64(size, most);
        f->odd |= (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(large));
        __m256d tens = _mm256_i64gather_pd(ty_number_pow10, _mm256_blendv_epi8(size, most, large), 8);
        v = _mm256_blendv_pd(_mm256_mul_pd(v, tens), _mm256_div_pd(v, tens), _mm256_castsi256_pd(below));
    } else {
        v = _mm256_div_pd(v, _mm256_i64gather_pd(four_tens, places, 8));
    }
    return _mm256_xor_pd(v, _mm256_castsi256_pd(_mm256_slli_epi64(f->sign, 63)));
}

/* Numbers i to i + 3 of those that there are. */
FOUR_INLINE __m256i four_mask(const walk_numbers *t, int i)
{
    int n = t->n - i;
    return _mm256_loadu_si256((const __m256i *)(const void *)(four_rest + (n >= 4 ? 0 : n <= 0 ? 4 : 4 - n)));
}

FOUR_INLINE unsigned four_bits(const walk_numbers *t, int i, unsigned odd)
{
    int n = t->n - i;
    return n >= 8 ? odd : odd & ((1u << n) - 1);
}

FOUR_INLINE int four_reals(walk_numbers *t, double *real, float *single, bool powers)
{
    int n_odd = 0;
    for (int i = 0; i < t->n; i += 8) {
        four a = four_take(t->lane, t->pair + i, powers), b = four_take(t->lane, t->pair + i + 4, powers);
        __m256d low = four_double(&a, powers), high = four_double(&b, powers);
        if (real) {
            _mm256_maskstore_pd(real + i, four_mask(t, i), low);
            _mm256_maskstore_pd(real + i + 4, four_mask(t, i + 4), high);
        } else {
            float all[8];
            int left = t->n - i;
            _mm256_storeu_ps(left >= 8 ? single + i : all,
                             _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low)));
            if (left < 8)
                memcpy(single + i, all, (size_t)left * sizeof *all);
        }
        unsigned odd = four_bits(t, i, a.odd | b.odd << 4);
        t->odd[i / 8] = (uint8_t)odd;
        n_odd += __builtin_popcount(odd);
    }
    return n_odd;
}

/* Numbers with exponents are odd until they are looked for. */
LANE_AVX2 int walk_four_real(walk_numbers *t, double *out)
{
    int n_odd = t->powers ? t->n : four_reals(t, out, NULL, false);
    t->powers = n_odd > t->n / 4;
    return t->powers ? four_reals(t, out, NULL, true) : n_odd;
}

LANE_AVX2 int walk_four_single(walk_numbers *t, float *out)
{
    int n_odd = t->powers ? t->n : four_reals(t, NULL, out, false);
    t->powers = n_odd > t->n / 4;
    return t->powers ? four_reals(t, NULL, out, true) : n_odd;
}

/* Of four whole numbers that are as they should be the least and the most. */
typedef struct four_range {
    __m256i min, max;
} four_range;

FOUR_INLINE unsigned four_whole(const walk_numbers *t, int i, int64_t *out, four_range *r)
{
    four f = four_take(t->lane, t->pair + i, false);
    __m256i zero = _mm256_setzero_si256();
    __m256i v =
        _mm256_add_epi64(_mm256_mul_epu32(f.eights, _mm256_set1_epi64x(100000000)), _mm256_srli_epi64(f.eights, 32));
    __m256i sign = _mm256_cmpgt_epi64(f.sign, zero), there = four_mask(t, i);
    __m256i points = _mm256_cmpgt_epi64(f.point, zero);
    v = _mm256_sub_epi64(_mm256_xor_si256(v, sign), sign);
    _mm256_maskstore_epi64((long long *)out + i, there, v);
    unsigned odd = f.odd | (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(points));
    const __m256i bits = _mm256_setr_epi64x(1, 2, 4, 8);
    __m256i is_odd = _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(odd), bits), bits);
    __m256i good = _mm256_andnot_si256(is_odd, there);
    __m256i less = _mm256_and_si256(good, _mm256_cmpgt_epi64(r->min, v));
    __m256i more = _mm256_and_si256(good, _mm256_cmpgt_epi64(v, r->max));
    r->min = _mm256_blendv_epi8(r->min, v, less);
    r->max = _mm256_blendv_epi8(r->max, v, more);
    return odd;
}

LANE_AVX2 int walk_four_whole(walk_numbers *t, int64_t *out)
{
    int n_odd = 0;
    int64_t min[4], max[4];
    four_range r = {_mm256_set1_epi64x(INT64_MAX), _mm256_set1_epi64x(INT64_MIN)};
    for (int i = 0; i < t->n; i += 8) {
        unsigned odd = four_whole(t, i, out, &r);
        odd = four_bits(t, i, odd | four_whole(t, i + 4, out, &r) << 4);
        t->odd[i / 8] = (uint8_t)odd;
        n_odd += __builtin_popcount(odd);
    }
    _mm256_storeu_si256((__m256i *)(void *)min, r.min);
    _mm256_storeu_si256((__m256i *)(void *)max, r.max);
    for (int k = 1; k < 4; k++) {
        min[0] = min[k] < min[0] ? min[k] : min[0];
        max[0] = max[k] > max[0] ? max[k] : max[0];
    }
    t->min = min[0];
    t->max = max[0];
    return n_odd;
}

#endif
