/* pending.c - see pending.h. */
#include "compiler/target/cuda/pending.h"

int ty_cuda_pending_add(ty_cuda_pending *p, ty_cuda_exchanged what)
{
    p->list[p->n] = what;
    return p->n++;
}

static bool pending_overlap(const ty_place *a, int64_t a_bytes, const ty_place *b, int64_t b_bytes)
{
    return a->kind == b->kind && a->kind != TY_PLACE_NONE && a->index == b->index && a->offset < b->offset + b_bytes &&
           b->offset < a->offset + a_bytes;
}

int ty_cuda_pending_meets(const ty_cuda_pending *p, const ty_place *at, int64_t bytes, bool written)
{
    for (int i = p->n - 1; i >= p->n_over; i--) {
        const ty_cuda_exchanged *e = &p->list[i];
        if (pending_overlap(at, bytes, &e->to, e->to_bytes) ||
            (written && pending_overlap(at, bytes, &e->from, e->from_bytes)))
            return i;
    }
    return -1;
}

void ty_cuda_pending_over(ty_cuda_pending *p, int number)
{
    p->n_over = number + 1;
}
