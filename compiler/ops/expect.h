/* expect.h - what infer functions refuse, in one wording: what was expected, what was found.
 *
 * All return 0, or -1 with *err filled. The op's name is put in front by the caller of infer.
 */
#ifndef TY_COMPILER_OPS_EXPECT_H
#define TY_COMPILER_OPS_EXPECT_H

#include "compiler/ops/op.h"

/* `what` names the operand in messages: "x", "index", "weights". */
int ty_expect_float(const char *what, const ty_type *t, ty_error *err);
int ty_expect_number(const char *what, const ty_type *t, ty_error *err); /* all but bool */
int ty_expect_index(const char *what, const ty_type *t, ty_error *err);  /* i32 or i64 */
int ty_expect_dtype(const char *what, const ty_type *t, ty_dtype dtype, ty_error *err);
int ty_expect_rank(const char *what, const ty_type *t, int lo, int hi, ty_error *err);
/* The whole type, dtype and shape. */
int ty_expect_type(const char *what, const ty_type *t, const ty_type *expected, ty_error *err);
/* attr->axis is an axis of t. */
int ty_expect_axis(const ty_attr *attr, const ty_type *t, ty_error *err);
/* attr->flags has none but the `known` bits. */
int ty_expect_flags(const ty_attr *attr, uint32_t known, ty_error *err);
/* attr->mode is one of the bits 1 << ty_combine in `allowed`. */
int ty_expect_mode(const ty_attr *attr, uint32_t allowed, ty_error *err);
/* Makes the result type; refuses a rank over TY_MAX_RANK and sizes that do not fit 63 bits. */
int ty_expect_result(ty_dtype dtype, int rank, const int64_t *dim, ty_type *res, ty_error *err);

/* dtype in which statistics and sums over x are kept: f32 for the 16-bit floats, else x's own. */
static inline ty_dtype ty_wide_dtype(ty_dtype d)
{
    return d == TY_F16 || d == TY_BF16 ? TY_F32 : d;
}

#endif
