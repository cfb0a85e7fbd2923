/* native.h - library calls written by hand: what no library does, and dtypes that oneDNN does not take.
 *
 * Each prepare function takes its op's shapes or refuses with TY_E_UNSUPPORTED, in which case the op's reference
 * function runs instead (slow, any dtype). None depends on the number of threads for its result.
 */
#ifndef TY_TARGET_CPU_NATIVE_H
#define TY_TARGET_CPU_NATIVE_H

#include "compiler/target/cpu/library.h"

/* native_dot.c: f32, where it pays, and wherever strict determinism is asked for. */
ty_library_prepare_fn ty_native_prepare_dot;
bool ty_native_dot_pays(const ty_attr *attr, const ty_type *result);
/* bf16 with a turned left side alone, an even sum and a f32 result, not strict: wherever the machine has the
 * instruction, and where it pays. */
ty_library_prepare_fn ty_native_prepare_dot_pairs, ty_native_prepare_dot_bf16;
/* native_winograd.c, native_winograd_dw.c: f32 or bf16, channels-last, marked by compiler/passes/winograd.c, not
 * strict. */
ty_library_prepare_fn ty_native_prepare_winograd, ty_native_prepare_winograd_dx, ty_native_prepare_winograd_dw;
/* native_thin.c, native_thin_dw.c: f32, channels-last, x of few channels. */
ty_library_prepare_fn ty_native_prepare_thin, ty_native_prepare_thin_dw;
/* native_slim.c: f32, channels-last, y of few channels. */
ty_library_prepare_fn ty_native_prepare_slim, ty_native_prepare_slim_dw;
/* native_taps.c, native_taps_dw.c: f32, channels-last, many channels on both sides: where oneDNN has nothing fast, and
 * wherever strict determinism is asked for. */
ty_library_prepare_fn ty_native_prepare_taps, ty_native_prepare_taps_dx, ty_native_prepare_taps_dw;
/* native_depth_dw.c: f32 or bf16, channels-last, a channel a group. */
ty_library_prepare_fn ty_native_prepare_depth_dw;
/* native_attend.c: f32, q, k and v not packed. */
ty_library_prepare_fn ty_native_prepare_attend, ty_native_prepare_attend_grad, ty_native_prepare_attend_bias_grad;
/* native_pool.c: f32, channels-first. */
ty_library_prepare_fn ty_native_prepare_pool_max, ty_native_prepare_pool_max_grad;
ty_library_prepare_fn ty_native_prepare_pool_sum, ty_native_prepare_pool_sum_grad;
/* native_pool_last.c: the same for channels-last tensors. */
ty_library_prepare_fn ty_native_prepare_last_max, ty_native_prepare_last_max_grad;
ty_library_prepare_fn ty_native_prepare_last_sum, ty_native_prepare_last_sum_grad;
/* native_scatter.c: f32 and i64 data, i32 or i64 indices. */
ty_library_prepare_fn ty_native_prepare_scatter, ty_native_prepare_put;
/* native_rows.c: f32 data, i32 or i64 indices. */
ty_library_prepare_fn ty_native_prepare_find_rows, ty_native_prepare_sum_rows;
/* native_order.c */
ty_library_prepare_fn ty_native_prepare_argreduce, ty_native_prepare_scan, ty_native_prepare_sort;

/* native_rnn.c: f32; r may have 16 bits. */
ty_library_prepare_fn ty_native_prepare_rnn_steps, ty_native_prepare_rnn_grad;
/* native_widen.c: an op with 16-bit floats among its types by `inner`, which takes float32. */
int ty_native_prepare_widened(ty_op op, const ty_library_shape *shape, ty_library_prepare_fn *inner,
                              ty_library_call *out, ty_error *err);
/* n numbers of TY_BF16 or TY_F16 as float32, and rounded back; the two do not overlap. */
void ty_native_load_short(ty_dtype dtype, const uint16_t *from, float *to, int n);
void ty_native_store_short(ty_dtype dtype, const float *from, uint16_t *to, int n);

/* native_reference.c: any op by its row's reference function. */
int ty_native_prepare_reference_of(ty_op op, const ty_library_shape *shape, ty_library_call *out, ty_error *err);

#endif
