/* uniform.h - conditions that are the same for all elements of a row: whether it lies in a pad's margin, which part of
 * a concatenation it is from.
 *
 * A compiler that finds one inside a vectorised loop takes what it decides for a branch, and gives up vectors where a
 * load or an exponential is behind it. So the loop is written twice, once with each value of the condition as a
 * constant.
 */
#ifndef TY_TARGET_CPU_UNIFORM_H
#define TY_TARGET_CPU_UNIFORM_H

#include "compiler/target/cpu/ahead.h"

/* Where more of them decide, rows are taken apart and put together anew, and most of the time goes to that: a Swin's
 * merged patches on the way back. */
#define TY_UNIFORM_MAX 2

/* The instructions of the conditions that guard loads or choose in the innermost loop of a stage, of which
 * condition[TY_UNIFORM_MAX] becomes so many; 0 if there are none or more. constant: by instruction, whether it is one
 * already. */
int ty_uniform_conditions(const ty_ahead *a, int stage, const uint8_t *constant, uint32_t *condition);

#endif
