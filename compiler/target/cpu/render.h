/* render.h - prints kernels as C for the system compiler.
 *
 * A kernel becomes one function without includes and without a name of the user's in it:
 *     void ty_k_<hash>(char *const *b, long lo, long hi)
 * b[i] is the memory of buffer i; [lo, hi) are the units of parallel work to do (ty_kernel_n_units). Kernels whose text
 * is equal are one function: the hash is that of the text.
 */
#ifndef TY_TARGET_CPU_RENDER_H
#define TY_TARGET_CPU_RENDER_H

#include "base/buf.h"
#include "compiler/kernel/kernel.h"

/* What every translation unit begins with: the head, then mathematics and conversions, in which nothing is the CPU's.
 * Functions of f32 are inline and without branches, so that loops with them vectorise, and right to these units in the
 * last place (tests/unit/prelude.c): exp 0.9   log 1.0   erf 1.1   expm1, tanh 1.5   log1p 1.6   sin, cos 2.0 where
 * |x| <= 2^30   atan 2.5   mills 5. Those of f64, pow and rem are the C library's. */
extern const char ty_render_head[], ty_render_prelude[];

/* Appends parameters and body (all but the name). alias[i] is the buffer whose memory buffer i shares, or i. base[i] is
 * taken off every address of buffer i: the caller adds it to the pointer. Kernels that do the same to different parts
 * of an arena (the layers of a network, the steps of a recurrence) so become one text. */
void ty_render_kernel(const ty_kernel *k, const uint32_t *alias, const int64_t *base, ty_buf *out);

#endif
