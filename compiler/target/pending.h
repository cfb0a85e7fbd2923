/* pending.h - exchanges between replicas that were begun beside a tape's calls, and may not be over.
 *
 *     number = ty_pending_add(&p, exchanged)               one begins
 *     number = ty_pending_before_unit(&p, plan, unit)      must one be over before this unit runs?
 *     if (number >= 0)  wait for it, then  ty_pending_over(&p, number)
 *
 * Memory is planned for calls that come one after the other. An exchange goes on while others run: what it writes may
 * not be touched before it is over, and what it reads not be written. They are over in the order in which they began.
 */
#ifndef TY_TARGET_PENDING_H
#define TY_TARGET_PENDING_H

#include "base/arena.h"
#include "compiler/exchange.h"
#include "compiler/passes/plan.h"

typedef struct ty_exchanged {
    ty_place from, to;
    int64_t from_bytes, to_bytes;
} ty_exchanged;

typedef struct ty_pending {
    ty_exchanged *list; /* all of a tape */
    int n, n_over;      /* begun; of these over */
} ty_pending;

/* Of which kind an exchange is. */
ty_exchange_kind ty_pending_kind(const ty_graph *g, uint32_t node);
/* Where a node of the plan reads and writes. */
ty_exchanged ty_pending_of_node(const ty_plan *plan, uint32_t node);
/* Returns its number, from 0. The caller has given `list` room. */
int ty_pending_add(ty_pending *p, ty_exchanged what);
/* The last one that meets these bytes, or -1. */
int ty_pending_meets(const ty_pending *p, const ty_place *at, int64_t bytes, bool written);
/* The last one that a kernel or library call of the plan must wait for, or -1. */
int ty_pending_before_unit(const ty_pending *p, const ty_plan *plan, const ty_unit *u);
/* Likewise a copy of `from` to a place. */
int ty_pending_before_copy(const ty_pending *p, const ty_plan *plan, ty_place to, ty_val from);
/* It and all before it. */
void ty_pending_over(ty_pending *p, int number);

#endif
