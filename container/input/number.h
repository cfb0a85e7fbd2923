/* number.h - decimal text to numbers: fast where exactness is cheap, the C library where it is not.
 *
 * Up to 19 digits fit an integer; when that is below 2^53 and the power of ten is at most 22, one division or
 * multiplication of doubles rounds correctly (Clinger, "How to read floating point numbers accurately", PLDI 1990).
 * Everything else goes through strtod in the C locale, so the result is always the nearest double.
 */
#ifndef TY_CONTAINER_INPUT_NUMBER_H
#define TY_CONTAINER_INPUT_NUMBER_H

#include <stdint.h>

/* Reads a number at the very start of [p, end): sign, digits with an optional point and exponent, or nan, inf,
 * infinity in any case. No white space, no hexadecimal. Returns where the number ends, or NULL if none starts there. */
const char *ty_number_scan(const char *p, const char *end, double *out);

/* As above for integers: sign and digits only. NULL also for values outside int64. */
const char *ty_integer_scan(const char *p, const char *end, int64_t *out);

#endif
