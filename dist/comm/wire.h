/* wire.h - float32 to 16-bit floats and back, for many elements at once.
 *
 * Results are those of base/tensor.h (round to nearest even, NaN stays NaN, what is too large becomes infinite).
 */
#ifndef TY_DIST_COMM_WIRE_H
#define TY_DIST_COMM_WIRE_H

#include "base/tensor.h"

/* half: TY_F16 or TY_BF16. */
void ty_wire_widen(ty_dtype half, const uint16_t *in, float *out, int64_t n);
/* out = in x scale, rounded once after the product was rounded to float32. */
void ty_wire_narrow(ty_dtype half, const float *in, float scale, uint16_t *out, int64_t n);

#endif
