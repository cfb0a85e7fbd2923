/* beside.h - kernels of many short rows: as many rows as a few vectors hold are done side by side.
 *
 * A row of three numbers fills no vector, and each of its sums takes a vector apart. Side by side a vector has one
 * element each of neighbouring rows; sums are vectors too, and what lies row by row in memory is turned on its way in
 * and out, in the first-level cache. The loss of a U-Net with three classes takes a tenth of the time so.
 */
#ifndef TY_TARGET_CPU_BESIDE_H
#define TY_TARGET_CPU_BESIDE_H

#include "compiler/kernel/text.h"

/* Whether the kernel has short rows, many of them, and nothing in them that asks for more than its own place. */
bool ty_beside_suits(const ty_kernel *k);
/* Appends the loops over units from lo to hi of a kernel that suits. constant[]: by instruction, those that stand in
 * front of all loops already. */
void ty_beside_render(ty_ktext *t, const uint8_t *constant, ty_arena *arena);

#endif
