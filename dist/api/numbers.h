/* numbers.h - arithmetic on arrays of any element type: what a collective needs beside the sum itself. */
#ifndef TY_DIST_API_NUMBERS_H
#define TY_DIST_API_NUMBERS_H

#include "base/tensor.h"
#include "include/trainyard/trainyard.h"

#include <stdint.h>

/* n elements, each times the factor: floats rounded once, integers through double, cut towards zero and kept inside
 * their type. bool is left as it is. */
void ty_numbers_scale(ty_dtype dtype, void *data, int64_t n, double factor);
/* into += from, in the element's own arithmetic (16-bit floats in float32, rounded once). Floats only. */
void ty_numbers_add(ty_dtype dtype, void *into, const void *from, int64_t n);
/* n elements that change nothing in this reduction: 0 in a sum, 1 in a product, the largest in a minimum ... */
void ty_numbers_neutral(ty_dtype dtype, trainyard_op op, void *data, int64_t n);

#endif
