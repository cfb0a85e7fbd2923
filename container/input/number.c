/* number.c - see number.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strtod_l */
#endif
#include "container/input/number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Longest text handed to strtod; digits past it cannot change which double is nearest unless the first 770 tie, and
 * they are then still counted by the sticky digit (see number_slow). */
#define NUMBER_TEXT_BYTES 832

const double ty_number_pow10[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static locale_t number_locale;
static pthread_once_t number_once = PTHREAD_ONCE_INIT;

static void number_make_locale(void)
{
    number_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static inline bool number_is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Length of the text from p that follows the grammar of a finite number, 0 if none. */
static size_t number_extent(const char *p, const char *end)
{
    const char *q = p;
    if (q < end && (*q == '+' || *q == '-'))
        q++;
    size_t n_digits = 0;
    for (; q < end && number_is_digit(*q); q++)
        n_digits++;
    if (q < end && *q == '.') {
        q++;
        for (; q < end && number_is_digit(*q); q++)
            n_digits++;
    }
    if (n_digits == 0)
        return 0;
    const char *e = q;
    if (e < end && (*e == 'e' || *e == 'E')) {
        e++;
        if (e < end && (*e == '+' || *e == '-'))
            e++;
        if (e < end && number_is_digit(*e)) {
            while (e < end && number_is_digit(*e))
                e++;
            q = e;
        }
    }
    return (size_t)(q - p);
}

/* Texts longer than any that matters: keeps 780 significant digits, replaces the rest by one digit that says whether
 * anything but zeros was cut, and moves the point into the exponent. 767 digits decide every double's rounding. */
static double number_long(const char *p, const char *end)
{
    char text[NUMBER_TEXT_BYTES];
    size_t n = 0;
    int64_t exponent = 0;
    bool point = false, sticky = false, started = false;
    if (*p == '+' || *p == '-')
        text[n++] = *p++;
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        started = started || *p != '0';
        if (started && n < 781) {
            text[n++] = *p;
            exponent -= point;
        } else {
            sticky = sticky || *p != '0';
            exponent += started && !point;
            exponent -= !started && point;
        }
    }
    text[n++] = sticky ? '1' : '0';
    exponent -= 1;
    if (p < end) {
        bool negative = p[1] == '-';
        int64_t e = 0;
        for (p += 1 + (p[1] == '-' || p[1] == '+'); p < end; p++)
            e = e > INT64_MAX / 100 ? e : e * 10 + (*p - '0');
        exponent += negative ? -e : e;
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "e%lld", (long long)exponent);
    return strtod_l(text, NULL, number_locale);
}

static const char *number_slow(const char *p, const char *end, double *out)
{
    char text[NUMBER_TEXT_BYTES];
    size_t n = number_extent(p, end);
    if (n == 0)
        return NULL;
    pthread_once(&number_once, number_make_locale);
    if (n >= sizeof text) {
        *out = number_long(p, p + n);
        return p + n;
    }
    memcpy(text, p, n);
    text[n] = 0;
    *out = strtod_l(text, NULL, number_locale);
    return p + n;
}

/* nan, inf, infinity behind an optional sign. */
static const char *number_special(const char *p, const char *end, double *out)
{
    static const struct {
        const char *text;
        size_t n;
        bool is_nan;
    } rows[] = {{"infinity", 8, false}, {"inf", 3, false}, {"nan", 3, true}};
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((size_t)(end - p) >= rows[i].n && strncasecmp(p, rows[i].text, rows[i].n) == 0) {
            double v = rows[i].is_nan ? (double)NAN : (double)INFINITY;
            *out = negative ? -v : v;
            return p + rows[i].n;
        }
    return NULL;
}

/* An exponent at p (just behind 'e'); false when no digit follows. */
static bool number_exponent(const char **at, const char *end, int *out)
{
    const char *p = *at;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (p >= end || !number_is_digit(*p))
        return false;
    int v = 0;
    for (; p < end && number_is_digit(*p); p++)
        v = v > 99999 ? v : v * 10 + (*p - '0');
    *out = negative ? -v : v;
    *at = p;
    return true;
}

/* Digits at p into *value. Wraps silently beyond 19 digits: the caller counts them. */
static inline const char *number_digits(const char *p, const char *end, uint64_t *value)
{
    uint64_t v = *value;
    for (; p < end && number_is_digit(*p); p++)
        v = v * 10 + (uint64_t)(*p - '0');
    *value = v;
    return p;
}

const char *ty_number_scan(const char *start, const char *end, double *out)
{
    const char *p = start;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    uint64_t mantissa = 0;
    int exponent = 0;
    const char *digits = p;
    p = number_digits(p, end, &mantissa);
    int64_t n_digits = p - digits;
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        p = number_digits(p, end, &mantissa);
        n_digits += p - fraction;
        exponent = p - fraction > 4096 ? 4096 : -(int)(p - fraction);
    }
    if (n_digits == 0)
        return number_special(start, end, out);
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        int e;
        if (number_exponent(&q, end, &e)) {
            exponent += e;
            p = q;
        }
    }
    if (n_digits > 19 || mantissa > ((uint64_t)1 << 53) || exponent < -22 || exponent > 22)
        return number_slow(start, end, out);
    double v = (double)mantissa;
    v = exponent < 0 ? v / ty_number_pow10[-exponent] : v * ty_number_pow10[exponent];
    *out = negative ? -v : v;
    return p;
}

const char *ty_integer_scan(const char *p, const char *end, int64_t *out)
{
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    uint64_t v = 0;
    const char *digits = p;
    while (p < end && *p == '0')
        p++;
    const char *significant = p;
    p = number_digits(p, end, &v);
    uint64_t limit = (uint64_t)INT64_MAX + negative;
    if (p == digits || p - significant > 19 || v > limit)
        return NULL;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return p;
}
