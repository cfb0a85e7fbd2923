/* hold.h - what a thread holds in registers of its part of a row, from the stage that first computes it to those that
 * need it again.
 *
 * A normalisation reads its row three times: for the mean, for the deviation, for the result. Where a row lies in the
 * registers of a warp or a block, the first stage's numbers are there still. Only what is dear is held: what can be
 * computed from that, from scalars of the row and from vectors that all rows share, by a few operations, is.
 *
 *     stage 0:  v5 = a[i] + b[i]; r0 += v5;                    held: v5
 *     stage 2:  v15 = v5 - mean; r1 += v15 * v15;              not v15: one operation away from v5
 *     stage 4:  y[i] = (v5 - mean) * deviation * gamma[i];
 */
#ifndef TY_COMPILER_KERNEL_HOLD_H
#define TY_COMPILER_KERNEL_HOLD_H

#include "compiler/kernel/kernel.h"

typedef struct ty_khold {
    int n;           /* numbers held for each element */
    uint8_t *held;   /* by instruction: it is held from here on */
    uint32_t *from;  /* by instruction: the held one that it is, or TY_NONE */
    uint8_t *needed; /* by instruction: it is still to be computed, or taken from what is held */
} ty_khold;

/* All memory is the arena's. Of a kernel with one stage over the row nothing is held and all is needed. */
ty_khold ty_kernel_hold(const ty_kernel *k, ty_arena *arena);

#endif
