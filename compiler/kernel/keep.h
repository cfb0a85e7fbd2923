/* keep.h - what a row computes twice, kept in the memory that the row will become.
 *
 * A softmax sums exp(x - max) in one sweep over the row and needs each of these numbers again in the next; the gradient
 * of a cross-entropy likewise. The result's own memory is free until then: the first sweep writes the number where the
 * second will write its result, and the second reads it from there. On a core of an AMD EPYC (Zen 4) a sweep of
 * exponentials takes 15 cycles a vector, one that reads from the second-level cache, multiplies and writes there 4.
 *
 * A result of 16 bits has no room for the number. It is kept in a row of the thread's own then, one buffer more, if a
 * row of floats is no larger than what a stack has.
 *
 *     stage 2:  v4 = exp(v3); r1 += v4;             stage 2:  v4 = exp(v3); r1 += v4; b8[i] = v4;
 *     stage 4:  v23 = exp(v19); b8[i] = v23 * v21;  stage 4:  v23 = b8[i]; b8[i] = v23 * v21;
 */
#ifndef TY_COMPILER_KERNEL_KEEP_H
#define TY_COMPILER_KERNEL_KEEP_H

#include "compiler/kernel/kernel.h"

/* False: nothing to keep. Else *out is the kernel with one value kept. Instructions that only led to what is read now
 * have stage -1: they are not to be printed. Arrays of *out are k's or in the arena. alias[]: by buffer, the one whose
 * memory it shares, or itself; where the operand lies under the result, its elements are gone when the number is there,
 * so it must not be read again. A buffer that *out has more is its own row: it shares nothing. */
bool ty_kernel_keep(const ty_kernel *k, const uint32_t *alias, ty_arena *arena, ty_kernel *out);

/* By instruction: the first one that computes the same, in whatever stage. The arena's. */
const uint32_t *ty_kernel_firsts(const ty_kernel *k, ty_arena *arena);

#endif
