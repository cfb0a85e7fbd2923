/* ref.h - between bytes of a dtype and reference arithmetic (ty_ref: double and int64).
 *
 * Used by constant folding, the interpreter and tests that compare against it.
 */
#ifndef TY_COMPILER_OPS_REF_H
#define TY_COMPILER_OPS_REF_H

#include "compiler/ops/op.h"

/* Gives *r the type and zeroed memory (malloc; free with ty_ref_fini). Fails when memory is out. */
int ty_ref_init(ty_ref *r, const ty_type *type, ty_error *err);
void ty_ref_fini(ty_ref *r);
/* Widens type_bytes of row-major data into r, which was given its type by ty_ref_init. */
void ty_ref_load(ty_ref *r, const void *data);
/* Rounds (to nearest even) or truncates (integers) into data. Exact for values that came from ty_ref_load. */
void ty_ref_store(const ty_ref *r, void *data);
/* Rounds floats of 16 and 32 bits to what their dtype holds; leaves others. */
void ty_ref_round(ty_ref *r);
/* One number as the dtype holds it. */
double ty_ref_round_one(ty_dtype dtype, double v);

#endif
