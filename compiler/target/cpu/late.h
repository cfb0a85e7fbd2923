/* late.h - what of a tape may run late: within the next run, where its first calls do not need it.
 *
 * Behind the last exchange that a tape begins there are waits and updates. Done at the end of the step, nothing is
 * computed beside what is still on its way. Done in front of the first call of the next run that touches their memory,
 * they leave forward beside it: the weights of the first layer are updated, the first layer runs, and so on.
 *
 *     n = ty_late_cut(step, n_steps)                      step[n] ... may run late; n_steps: nothing may
 *     need = ty_late_sort(step, n, n_steps, a)            those that the tape itself needs first come first; in front
 *                                                         of step[i], i < n, the first need[i] of them must have run
 *     need = ty_late_needs(step + n, n_late, other, ...)  likewise in front of the calls of another tape
 *
 * Who needs what is read from the addresses that calls touch, and from nothing else: two calls of which one writes what
 * the other touches stay in their order. So results are those of a tape without late calls, bit for bit.
 */
#ifndef TY_TARGET_CPU_LATE_H
#define TY_TARGET_CPU_LATE_H

#include "base/arena.h"
#include "compiler/target/cpu/step.h"

/* Late calls read no input, since the caller has its memory back by then, and wait for something. */
int ty_late_cut(const ty_cpu_step *step, int n);
/* What they return lies in the arena. */
int *ty_late_sort(ty_cpu_step *step, int first_late, int n, ty_arena *a);
int *ty_late_needs(const ty_cpu_step *late, int n_late, const ty_cpu_step *step, int n, ty_arena *a);

#endif
