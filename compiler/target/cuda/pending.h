/* pending.h - exchanges between replicas that were begun on a stream of their own, and may not be over.
 *
 *     number = ty_cuda_pending_add(&p, from, from_bytes, to, to_bytes)       one begins
 *     number = ty_cuda_pending_meets(&p, at, bytes, written)                 must one be over before this is touched?
 *     if (number >= 0)  wait for it, then  ty_cuda_pending_over(&p, number)
 *
 * Memory is planned for calls that come one after the other. An exchange goes on while others run: what it writes may
 * not be touched before it is over, and what it reads not be written. They are over in the order in which they began.
 */
#ifndef TY_TARGET_CUDA_PENDING_H
#define TY_TARGET_CUDA_PENDING_H

#include "base/arena.h"
#include "compiler/passes/plan.h"

typedef struct ty_cuda_exchanged {
    ty_place from, to;
    int64_t from_bytes, to_bytes;
} ty_cuda_exchanged;

typedef struct ty_cuda_pending {
    ty_cuda_exchanged *list; /* all of a tape */
    int n, n_over;           /* begun; of these over */
} ty_cuda_pending;

/* Returns its number, from 0. The caller has given `list` room. */
int ty_cuda_pending_add(ty_cuda_pending *p, ty_cuda_exchanged what);
/* The last one that meets these bytes, or -1. */
int ty_cuda_pending_meets(const ty_cuda_pending *p, const ty_place *at, int64_t bytes, bool written);
/* It and all before it. */
void ty_cuda_pending_over(ty_cuda_pending *p, int number);

#endif
