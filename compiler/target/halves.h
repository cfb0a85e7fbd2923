/* halves.h - the order in which the exchanges of a plan begin; sums of gradients begin in two halves, so that what the
 * next step needs first overtakes.
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

typedef struct ty_begin {
    int at;   /* position of the plan where it begins: its unit's, or of second halves that of the last sum */
    int unit; /* position of its unit */
    bool is_half;
    int64_t first, end; /* elements of its operand */
} ty_begin;

typedef struct ty_begins {
    ty_begin *list;
    int n;
} ty_begins;

/* All of a plan, in their order: the one order of the calls that replicas agree upon and of the tape that makes them.
 * The list lies in the arena. */
ty_begins ty_begins_of(const ty_plan *plan, ty_arena *a);

#endif
