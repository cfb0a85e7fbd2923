/* even.h - stretches of a loop in which addresses are even: they go up by the same number from point to point, though
 * quotients and remainders of the loop's variable are in them.
 *
 *     i % 64 + 4096 * (i / 64)        heads of 64 that lie apart, read side by side into one row
 *
 * In stretches of 64 from a multiple of 64 on that is an address of the first point and 1 more for each other; a
 * compiler, which does not know where a stretch begins, would divide for each point and load them one by one.
 */
#ifndef TY_TARGET_CPU_EVEN_H
#define TY_TARGET_CPU_EVEN_H

#include "compiler/kernel/lanes.h"

/* The longest such stretch of the stage's loop over `var`, one that divides its extent and every place where it is cut
 * (ty_kernel_cuts): *lanes are its points. 0: there is none, or no address needs it. arena: of the lanes. */
int ty_even_length(const ty_kernel *k, int stage, int var, ty_arena *arena, ty_lanes *lanes);

#endif
