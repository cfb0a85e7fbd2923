/* convert.h - element types turned into one another, in blocks.
 *
 * Everything goes through double, or through int64 where both sides are integers and nothing is scaled, so that 64-bit
 * ids stay exact. Conversions cannot fail: whoever calls has checked ranges before (ty_integer_range).
 */
#ifndef TY_CONTAINER_INPUT_CONVERT_H
#define TY_CONTAINER_INPUT_CONVERT_H

#include "base/tensor.h"

/* Integer types and bool. */
bool ty_dtype_is_integer(ty_dtype d);
/* Smallest and largest value of an integer type, as far as int64 can say (u64: 0 .. INT64_MAX). */
void ty_integer_range(ty_dtype d, int64_t *min, int64_t *max);

/* n elements; pointers need no alignment on the side of the stored type. u64 above INT64_MAX saturates in i64. */
void ty_convert_to_f64(ty_dtype from, const void *src, double *dst, int64_t n);
void ty_convert_from_f64(ty_dtype to, const double *src, void *dst, int64_t n); /* integers: truncated, saturated */
void ty_convert_to_i64(ty_dtype from, const void *src, int64_t *dst, int64_t n);
void ty_convert_from_i64(ty_dtype to, const int64_t *src, void *dst, int64_t n);

/* Smallest and largest of n elements of an integer type. False: none, or not one of the plain types up to int64. */
bool ty_convert_range(ty_dtype from, const void *src, int64_t n, int64_t *min, int64_t *max);

/* dst = src * scale + offset. A plain copy where types are equal and nothing is scaled. */
void ty_convert_scaled(ty_dtype from, const void *src, ty_dtype to, void *dst, int64_t n, double scale, double offset);

#endif
