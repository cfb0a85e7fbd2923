/* turn.h - kernels that only turn: what lies side by side comes to lie one below the other.
 *
 * A loop that reads along a column takes an element at a time, from a cache line each. In tiles of 8 x 8 that are
 * turned in registers, memory is read and written along its rows alone.
 */
#ifndef TY_TARGET_CPU_TURN_H
#define TY_TARGET_CPU_TURN_H

#include "compiler/kernel/text.h"

/* Appends the loops of a kernel that copies 4-byte elements and turns two of its variables, and returns true; false:
 * it is another kernel, nothing was appended. */
bool ty_turn_render(ty_ktext *t);

#endif
