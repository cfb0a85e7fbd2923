/* families.h - the functions that define the ops, declared for the table in op.c.
 *
 * A row of ops.def says `binary` where it names its infer; the C function is ty_op_infer_binary. Each family lives in
 * the file of its name, which includes this header. Others reach the functions through ty_op_row_of().
 *
 * What the callers (emit, fold, interpreter) promise, so that the functions need not check it:
 *   infer  n_in is within the row's limits; in[k] is NULL only for an absent optional input (k >= min_in); trailing
 *          absent inputs are not counted in n_in. res is zeroed. The error's message need not name the op: emit does.
 *   ref    infer has accepted the same attributes and types; res[k].type is set and its f or i is zeroed. An absent
 *          optional input has f == NULL and i == NULL. Integer results must be wrapped to the width of their dtype
 *          (ty_refiter_wrap); bool is 0 or 1. Return -1 (TY_E_DATA_VALUE) for what has no value, such as an integer
 *          division by zero or an index out of range: fold then leaves the node alone.
 *   grad   has n_in entries in din; only inputs of float dtype are asked for. dres[k] may be TY_NONE for some k but not
 *          for all.
 *   lower  absent optional inputs are TY_NONE in `in`, or beyond n_in; res has the row's n_res entries.
 */
#ifndef TY_COMPILER_OPS_FAMILIES_H
#define TY_COMPILER_OPS_FAMILIES_H

#include "compiler/ops/op.h"

/* Declared from the rows; a function that several rows share is declared by each of them. */
#define OP(NAME, text, min_in, max_in, n_res, CLASS, attrs, infer, ref, grad, lower, weight) \
    ty_infer_fn ty_op_infer_##infer;                                                         \
    ty_ref_fn ty_op_ref_##ref;                                                               \
    ty_grad_fn ty_op_grad_##grad;                                                            \
    ty_lower_fn ty_op_lower_##lower;
#include "compiler/ops/ops.def"
#undef OP

#endif
