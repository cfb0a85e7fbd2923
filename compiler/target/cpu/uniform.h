/* uniform.h - conditions that are the same for all elements of a row: whether it lies in a pad's margin, which part of
 * a concatenation it is from.
 *
 * A compiler that finds one inside a vectorised loop takes what it decides for a branch, and gives up vectors where a
 * load or an exponential is behind it. So the loop is written twice, in each with the condition as a constant.
 */
#ifndef TY_TARGET_CPU_UNIFORM_H
#define TY_TARGET_CPU_UNIFORM_H

#include "compiler/target/cpu/ahead.h"

/* The instruction of such a condition that decides most in the innermost loop of a stage: of loads that it guards and
 * of choices. constant: by instruction, whether it is one already. TY_NONE: nothing depends on one. */
uint32_t ty_uniform_condition(const ty_ahead *a, int stage, const uint8_t *constant);

#endif
