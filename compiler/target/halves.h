/* halves.h - sums of gradients that begin in two halves, so that what the next step needs first overtakes.
 *
 * Backward makes the gradients of the last layers first and the next forward needs the weights of the first layers
 * first. Sums are carried out in the order in which they begin: if all begin when they are ready, forward waits for the
 * last of them, and nothing is left to travel beside it. So of each sum but the last the first TY_HALVES_NOW of its
 * elements begin when they are ready, and the others behind the last sum, those of the last bucket first:
 *
 *     ready    e             d             c             b             a
 *     begins   e1            d1            c1            b1            a  b2 c2 d2 e2
 *
 * A network that is slower than backward is busy with first halves until backward is over, and then carries what
 * forward needs, in its order; a network that is quicker has carried the first halves when the next one is ready, and
 * has little left. Elements are summed one by one: where a sum is cut changes no bit.
 *
 * Only on the tape that updates weights, and on a CPU: on a GPU the update is a part of the step's graph.
 */
#ifndef TY_TARGET_HALVES_H
#define TY_TARGET_HALVES_H

#include "compiler/passes/plan.h"

#define TY_HALVES_NOW (2.0 / 3)

typedef struct ty_halves {
    int last;      /* position behind which second halves begin, those of the latest unit first; -1: there are none */
    int64_t *head; /* by position: elements of the first half; 0: no sum, or one that begins whole */
} ty_halves;

/* Of a plan for a CPU; head lies in the arena. */
ty_halves ty_halves_of(const ty_plan *plan, ty_arena *a);

#endif
