/* pending.c - see pending.h. */
#include "compiler/target/pending.h"

static int64_t pending_bytes(const ty_plan *plan, ty_val v)
{
    return (int64_t)ty_type_bytes(ty_graph_type(plan->f->g, v));
}

ty_exchange_kind ty_pending_kind(const ty_graph *g, uint32_t node)
{
    ty_op op = ty_graph_op(g, node);
    return op == TY_OP_ALL_GATHER       ? TY_EXCHANGE_GATHER
           : op == TY_OP_REDUCE_SCATTER ? TY_EXCHANGE_PART
                                        : TY_EXCHANGE_SUM;
}

ty_exchanged ty_pending_of_node(const ty_plan *plan, uint32_t node)
{
    ty_val from = ty_graph_in(plan->f->g, node, 0), to = ty_val_make(node, 0);
    return (ty_exchanged){ty_plan_place(plan, from), ty_plan_place(plan, to), pending_bytes(plan, from),
                          pending_bytes(plan, to)};
}

int ty_pending_add(ty_pending *p, ty_exchanged what)
{
    p->list[p->n] = what;
    return p->n++;
}

static bool pending_overlap(const ty_place *a, int64_t a_bytes, const ty_place *b, int64_t b_bytes)
{
    return a->kind == b->kind && a->kind != TY_PLACE_NONE && a->index == b->index && a->offset < b->offset + b_bytes &&
           b->offset < a->offset + a_bytes;
}

int ty_pending_meets(const ty_pending *p, const ty_place *at, int64_t bytes, bool written)
{
    for (int i = p->n - 1; i >= p->n_over; i--) {
        const ty_exchanged *e = &p->list[i];
        if (pending_overlap(at, bytes, &e->to, e->to_bytes) ||
            (written && pending_overlap(at, bytes, &e->from, e->from_bytes)))
            return i;
    }
    return -1;
}

/* The later one of `last` and what v meets. */
static int pending_later(const ty_pending *p, const ty_plan *plan, ty_val v, bool written, int last)
{
    ty_place at = ty_plan_place(plan, v);
    int met = ty_pending_meets(p, &at, pending_bytes(plan, v), written);
    return met > last ? met : last;
}

int ty_pending_before_unit(const ty_pending *p, const ty_plan *plan, const ty_unit *u)
{
    const ty_graph *g = plan->f->g;
    const ty_node *n = ty_graph_node(g, u->node);
    int last = -1;
    if (u->kind == TY_UNIT_KERNEL) {
        for (int i = 0; i < u->kernel->n_buffers; i++)
            last = pending_later(p, plan, u->kernel->buffer[i].val, u->kernel->buffer[i].written, last);
        return last;
    }
    for (uint32_t i = 0; i < n->n_in; i++)
        if (ty_graph_in(g, u->node, (int)i) != TY_NONE && !ty_fuse_is_implied(g, u->node, (int)i))
            last = pending_later(p, plan, ty_graph_in(g, u->node, (int)i), false, last);
    for (uint32_t i = 0; i < n->n_res; i++)
        last = pending_later(p, plan, ty_val_make(u->node, i), true, last);
    return last;
}

int ty_pending_before_copy(const ty_pending *p, const ty_plan *plan, ty_place to, ty_val from)
{
    int written = ty_pending_meets(p, &to, pending_bytes(plan, from), true);
    return pending_later(p, plan, from, false, written);
}

void ty_pending_over(ty_pending *p, int number)
{
    p->n_over = number + 1;
}
