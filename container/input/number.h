/* number.h - decimal text to numbers: fast where exactness is cheap, the C library where it is not.
 *
 * Up to 19 digits fit an integer; when that is below 2^53 and the power of ten is at most 22, one division or
 * multiplication of doubles rounds correctly (Clinger, "How to read floating point numbers accurately", PLDI 1990).
 * Everything else goes through strtod in the C locale, so the result is always the nearest double.
 */
#ifndef TY_CONTAINER_INPUT_NUMBER_H
#define TY_CONTAINER_INPUT_NUMBER_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Reads a number at the very start of [p, end): sign, digits with an optional point and exponent, or nan, inf,
 * infinity in any case. No white space, no hexadecimal. Returns where the number ends, or NULL if none starts there. */
const char *ty_number_scan(const char *p, const char *end, double *out);

/* As above for integers: sign and digits only. NULL also for values outside int64. */
const char *ty_integer_scan(const char *p, const char *end, int64_t *out);

/* ---- the same for the common forms, inlined: eight digits at a time ---- */

/* Up to so many bytes behind the start of a number are looked at. */
enum { TY_NUMBER_AHEAD = 64 };

/* 10^0 to 10^22, which doubles hold exactly. */
extern const double ty_number_pow10[23];

/* Eight characters less '0' each, the first in the lowest byte. */
static inline uint64_t ty_number_load(const char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return le64toh(w) ^ UINT64_C(0x3030303030303030);
}

/* How many of them are digits before the first that is none. A byte that is none may disturb those behind it only. */
static inline unsigned ty_number_count(uint64_t w)
{
    uint64_t other = ((w + UINT64_C(0x7676767676767676)) | w) & UINT64_C(0x8080808080808080);
    return other ? (unsigned)__builtin_ctzll(other) >> 3 : 8;
}

/* The number that the first n (1 to 8) make: zeros are put before them, then pairs, fours and eights are joined. */
static inline uint64_t ty_number_join(uint64_t w, unsigned n)
{
    w <<= 64 - 8 * n;
    w = (w * 10 + (w >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    w = (w * 100 + (w >> 16)) & UINT64_C(0x0000ffff0000ffff);
    return (w * 10000 + (w >> 32)) & UINT64_C(0xffffffff);
}

/* Without a branch: signs are what nobody can foresee. */
static inline double ty_number_sign(double v, bool negative)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits |= (uint64_t)negative << 63;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline uint64_t ty_number_tens(unsigned n)
{
    static const uint32_t tens[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    return tens[n];
}

/* Up to 16 digits at *p behind those of *value; moves behind them. Returns how many; 32: there are 16 or more. */
static inline unsigned ty_number_digits(const char **p, uint64_t *value)
{
    uint64_t w = ty_number_load(*p);
    unsigned n = ty_number_count(w), all = n;
    if (n == 0)
        return 0;
    *value = *value * ty_number_tens(n) + ty_number_join(w, n);
    *p += n;
    if (n < 8)
        return n;
    w = ty_number_load(*p);
    n = ty_number_count(w);
    if (n == 0)
        return all;
    *value = *value * ty_number_tens(n) + ty_number_join(w, n);
    *p += n;
    return n < 8 ? all + n : 32;
}

/* An exponent at *p, behind 'e', of at most two digits. False: another, or none. */
static inline bool ty_number_power(const char **p, int *out)
{
    bool negative = **p == '-';
    const char *at = *p + (negative || **p == '+');
    uint64_t w = ty_number_load(at);
    unsigned n = ty_number_count(w);
    if (n == 0 || n > 2)
        return false;
    int v = (int)ty_number_join(w, n);
    *out += negative ? -v : v;
    *p = at + n;
    return true;
}

/* What ty_number_scan gives, where that is cheap; NULL: ask ty_number_scan. */
static inline const char *ty_number_plain(const char *p, const char *end, double *out)
{
    if (end - p < TY_NUMBER_AHEAD)
        return NULL;
    bool negative = *p == '-';
    p += negative;
    uint64_t mantissa = 0;
    int power = 0;
    unsigned n = ty_number_digits(&p, &mantissa);
    if (*p == '.') {
        p++;
        unsigned fraction = ty_number_digits(&p, &mantissa);
        n += fraction;
        power = -(int)fraction;
    }
    if (n - 1 >= 19) /* none, or too many */
        return NULL;
    if ((*p | 0x20) == 'e' && (p++, !ty_number_power(&p, &power)))
        return NULL;
    if (mantissa > UINT64_C(1) << 53 || power < -22 || power > 22)
        return NULL;
    double v = (double)mantissa;
    v = power < 0 ? v / ty_number_pow10[-power] : v * ty_number_pow10[power];
    *out = ty_number_sign(v, negative);
    return p;
}

/* The 16 characters before `end`, less '0' each, those before p being zeros: the number's right half and its left one.
 * False where p is further away, or `begin`, before which nothing may be read, too near. */
static inline bool ty_number_halves(const char *p, const char *end, const char *begin, uint64_t *left, uint64_t *right)
{
    size_t n = (size_t)(end - p), cut = 16 - n;
    if (n - 1 >= 16 || end - begin < 16)
        return false;
    *right = ty_number_load(end - 8);
    *left = ty_number_load(end - 16);
    if (cut >= 8) {
        *left = 0;
        *right = cut == 8 ? *right : *right >> (8 * (cut - 8)) << (8 * (cut - 8));
    } else
        *left = *left >> (8 * cut) << (8 * cut);
    return true;
}

/* Whether all 16 are digits. */
static inline bool ty_number_is_all(uint64_t left, uint64_t right)
{
    const uint64_t more = UINT64_C(0x7676767676767676);
    return ((((left + more) | left) | ((right + more) | right)) & UINT64_C(0x8080808080808080)) == 0;
}

/* Where the lowest zero byte is, as the bit at its top; 0: none. */
static inline uint64_t ty_number_zero(uint64_t w)
{
    return (w - UINT64_C(0x0101010101010101)) & ~w & UINT64_C(0x8080808080808080);
}

/* A decimal number that fills [p, end), of at most 16 characters behind its sign, without an exponent: what
 * ty_number_scan gives. False: ask that. Up to 16 characters before `end`, but not before `begin`, are looked at. */
static inline bool ty_number_between(const char *p, const char *end, const char *begin, double *out)
{
    const uint64_t point = UINT64_C(0x1e1e1e1e1e1e1e1e); /* '.' less '0', by xor */
    uint64_t left, right;
    bool negative = *p == '-';
    if (!ty_number_halves(p + negative, end, begin, &left, &right))
        return false;
    uint64_t in_left = ty_number_zero(left ^ point), in_right = ty_number_zero(right ^ point);
    unsigned fraction = 0;
    if (in_left) { /* what is left of the point moves over it */
        unsigned at = (unsigned)__builtin_ctzll(in_left) >> 3;
        uint64_t behind = ~UINT64_C(0xff) << (8 * at);
        left = (left & behind) | (left << 8 & ~behind);
        fraction = 15 - at;
    } else if (in_right) {
        unsigned at = (unsigned)__builtin_ctzll(in_right) >> 3;
        uint64_t behind = ~UINT64_C(0xff) << (8 * at);
        right = (right & behind) | ((right << 8 | left >> 56) & ~behind);
        left <<= 8;
        fraction = 7 - at;
    }
    if (!ty_number_is_all(left, right) || (fraction == 0 && end[-1] == '.'))
        return false;
    uint64_t mantissa = ty_number_join(left, 8) * 100000000 + ty_number_join(right, 8);
    if (mantissa > UINT64_C(1) << 53)
        return false;
    *out = ty_number_sign((double)mantissa / ty_number_pow10[fraction], negative);
    return true;
}

/* The same for whole numbers. */
static inline bool ty_integer_between(const char *p, const char *end, const char *begin, int64_t *out)
{
    uint64_t left, right;
    bool negative = *p == '-';
    if (!ty_number_halves(p + negative, end, begin, &left, &right) || !ty_number_is_all(left, right))
        return false;
    int64_t v = (int64_t)(ty_number_join(left, 8) * 100000000 + ty_number_join(right, 8));
    *out = (v ^ -(int64_t)negative) + negative;
    return true;
}

/* What ty_integer_scan gives for up to 15 digits; NULL: ask ty_integer_scan. */
static inline const char *ty_integer_plain(const char *p, const char *end, int64_t *out)
{
    if (end - p < TY_NUMBER_AHEAD)
        return NULL;
    bool negative = *p == '-';
    uint64_t v = 0;
    p += negative;
    unsigned n = ty_number_digits(&p, &v);
    *out = ((int64_t)v ^ -(int64_t)negative) + negative;
    return n - 1 < 15 ? p : NULL;
}

#endif
