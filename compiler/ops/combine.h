/* combine.h - the arithmetic of ty_combine in reference numbers: how reductions, scans and scatters put values
 * together.
 *
 * Floats: NaN wins in MAX and MIN (as the max and min ops). Integers wrap to their dtype; u64 compares unsigned.
 */
#ifndef TY_COMPILER_OPS_COMBINE_H
#define TY_COMPILER_OPS_COMBINE_H

#include "compiler/ops/op.h"

/* "sum", "max", "min", "prod", "set"; "?" for other numbers. */
const char *ty_combine_name(ty_combine how);
double ty_combine_f(ty_combine how, double a, double b);
int64_t ty_combine_i(ty_combine how, ty_dtype dtype, int64_t a, int64_t b);
/* What leaves every value as it is: 0, -inf or the least integer, +inf or the greatest, 1. SET: 0. */
double ty_combine_identity_f(ty_combine how);
int64_t ty_combine_identity_i(ty_combine how, ty_dtype dtype);
/* a < b as numbers of an integer dtype. */
bool ty_combine_less_i(ty_dtype dtype, int64_t a, int64_t b);
/* r[at] = combine(r[at], v[v_at]); both of r's dtype. */
void ty_combine_into(ty_combine how, ty_ref *r, int64_t at, const ty_ref *v, int64_t v_at);
/* Sets all elements of r to the identity. */
void ty_combine_clear(ty_combine how, ty_ref *r);

#endif
