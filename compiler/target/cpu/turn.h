/* turn.h - kernels that only turn: what lies side by side comes to lie one below the other.
 *
 * A loop that reads along a column takes an element at a time, from a cache line each. In tiles of 8 x 8 that are
 * turned in registers, memory is read and written along its rows alone.
 */
#ifndef TY_TARGET_CPU_TURN_H
#define TY_TARGET_CPU_TURN_H

#include "compiler/kernel/text.h"

#define TY_TURN_TILE 8 /* what is shorter is no tile */

/* Appends the loops of a kernel that copies elements and turns two of its variables, and returns true; false:
 * it is another kernel, nothing was appended. */
bool ty_turn_render(ty_ktext *t);

/* Whether the prelude has ty_turn_<bytes>, which turns a matrix of such elements. */
bool ty_turn_has(ty_dtype dtype);

#endif
