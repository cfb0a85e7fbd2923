/* families.h - the functions that define the ops, declared for the table in op.c.
 *
 * A row of ops.def says `infer_binary`; the C function is ty_op_infer_binary (op.c pastes the prefix). Each family
 * lives in the file of its name, which includes this header. Others reach the functions through ty_op_row_of().
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

/* leaf.c */
ty_infer_fn ty_op_infer_typed, ty_op_infer_rng, ty_op_infer_assign;
ty_ref_fn ty_op_ref_iota, ty_op_ref_rng;

/* unary.c */
ty_infer_fn ty_op_infer_unary_num, ty_op_infer_unary_float, ty_op_infer_unary_bits, ty_op_infer_cast,
    ty_op_infer_bitcast;
ty_ref_fn ty_op_ref_neg, ty_op_ref_abs, ty_op_ref_floor, ty_op_ref_rint, ty_op_ref_sqrt, ty_op_ref_rsqrt, ty_op_ref_exp,
    ty_op_ref_expm1, ty_op_ref_log, ty_op_ref_log1p, ty_op_ref_sin, ty_op_ref_cos, ty_op_ref_tanh, ty_op_ref_erf,
    ty_op_ref_atan, ty_op_ref_not, ty_op_ref_cast, ty_op_ref_bitcast;
ty_grad_fn ty_op_grad_neg, ty_op_grad_abs, ty_op_grad_zero, ty_op_grad_sqrt, ty_op_grad_rsqrt, ty_op_grad_exp,
    ty_op_grad_expm1, ty_op_grad_log, ty_op_grad_log1p, ty_op_grad_sin, ty_op_grad_cos, ty_op_grad_tanh, ty_op_grad_erf,
    ty_op_grad_atan, ty_op_grad_cast;

/* binary.c */
ty_infer_fn ty_op_infer_binary, ty_op_infer_binary_bits, ty_op_infer_compare, ty_op_infer_select;
ty_ref_fn ty_op_ref_add, ty_op_ref_sub, ty_op_ref_mul, ty_op_ref_div, ty_op_ref_rem, ty_op_ref_pow, ty_op_ref_max,
    ty_op_ref_min, ty_op_ref_and, ty_op_ref_or, ty_op_ref_xor, ty_op_ref_shl, ty_op_ref_shr, ty_op_ref_eq, ty_op_ref_lt,
    ty_op_ref_le, ty_op_ref_select;
ty_grad_fn ty_op_grad_add, ty_op_grad_sub, ty_op_grad_mul, ty_op_grad_div, ty_op_grad_rem, ty_op_grad_pow,
    ty_op_grad_max, ty_op_grad_min, ty_op_grad_select;

/* movement.c */
ty_infer_fn ty_op_infer_reshape, ty_op_infer_transpose, ty_op_infer_broadcast, ty_op_infer_slice, ty_op_infer_pad,
    ty_op_infer_concat, ty_op_infer_reverse;
ty_ref_fn ty_op_ref_reshape, ty_op_ref_transpose, ty_op_ref_broadcast, ty_op_ref_slice, ty_op_ref_pad, ty_op_ref_concat,
    ty_op_ref_reverse;
ty_grad_fn ty_op_grad_reshape, ty_op_grad_transpose, ty_op_grad_broadcast, ty_op_grad_slice, ty_op_grad_pad,
    ty_op_grad_concat, ty_op_grad_reverse;

/* index.c, sort.c */
ty_infer_fn ty_op_infer_gather, ty_op_infer_take, ty_op_infer_scatter, ty_op_infer_put, ty_op_infer_sort;
ty_ref_fn ty_op_ref_gather, ty_op_ref_take, ty_op_ref_scatter, ty_op_ref_put, ty_op_ref_sort;
ty_grad_fn ty_op_grad_gather, ty_op_grad_take, ty_op_grad_scatter, ty_op_grad_put, ty_op_grad_sort;

/* reduce.c, scan.c */
ty_infer_fn ty_op_infer_reduce, ty_op_infer_argreduce, ty_op_infer_scan;
ty_ref_fn ty_op_ref_reduce, ty_op_ref_argreduce, ty_op_ref_scan;
ty_grad_fn ty_op_grad_reduce, ty_op_grad_scan;

/* dot.c, conv.c */
ty_infer_fn ty_op_infer_dot, ty_op_infer_conv, ty_op_infer_conv_dx, ty_op_infer_conv_dw;
ty_ref_fn ty_op_ref_dot, ty_op_ref_conv, ty_op_ref_conv_dx, ty_op_ref_conv_dw;
ty_grad_fn ty_op_grad_dot, ty_op_grad_conv, ty_op_grad_conv_dx, ty_op_grad_conv_dw;

/* pool.c */
ty_infer_fn ty_op_infer_pool_max, ty_op_infer_pool_max_grad, ty_op_infer_pool_sum, ty_op_infer_pool_sum_grad;
ty_ref_fn ty_op_ref_pool_max, ty_op_ref_pool_max_grad, ty_op_ref_pool_sum, ty_op_ref_pool_sum_grad;
ty_grad_fn ty_op_grad_pool_max, ty_op_grad_pool_sum, ty_op_grad_pool_sum_grad;

/* softmax.c, norm.c, batchnorm.c, xent.c */
ty_infer_fn ty_op_infer_softmax, ty_op_infer_norm, ty_op_infer_batchnorm, ty_op_infer_xent;
ty_ref_fn ty_op_ref_softmax, ty_op_ref_norm, ty_op_ref_batchnorm, ty_op_ref_xent;
ty_grad_fn ty_op_grad_softmax, ty_op_grad_norm, ty_op_grad_batchnorm, ty_op_grad_xent;
ty_lower_fn ty_op_lower_softmax, ty_op_lower_norm, ty_op_lower_batchnorm, ty_op_lower_xent;

/* activation.c, attention.c */
ty_infer_fn ty_op_infer_activation, ty_op_infer_attention;
ty_ref_fn ty_op_ref_gelu, ty_op_ref_silu, ty_op_ref_attention;
ty_grad_fn ty_op_grad_gelu, ty_op_grad_silu, ty_op_grad_attention;
ty_lower_fn ty_op_lower_gelu, ty_op_lower_silu, ty_op_lower_attention;

#endif
