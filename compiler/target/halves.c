/* halves.c - see halves.h. */
#include "compiler/target/halves.h"

#include "compiler/target/pending.h"

#define HALVES_LEAST ((int64_t)256 << 10) /* elements: less is gone before it is worth cutting */
#define HALVES_ALIGN 16                   /* elements: a cache line of float32 */

static bool halves_is_sum(const ty_plan *plan, int at)
{
    const ty_graph *g = plan->f->g;
    const ty_unit *u = &plan->f->unit[plan->order[at]];
    return u->kind == TY_UNIT_LIBRARY && ty_graph_op(g, u->node) == TY_OP_ALL_REDUCE &&
           (ty_graph_attr(g, u->node)->flags & TY_OF_GRADIENTS);
}

/* Does a unit behind this position touch the sum's memory before second halves begin? */
static bool halves_is_met(const ty_plan *plan, int at, int last)
{
    const ty_graph *g = plan->f->g;
    ty_exchanged what = ty_pending_of_node(plan, plan->f->unit[plan->order[at]].node);
    const ty_pending one = {.list = &what, .n = 1};
    for (int k = at + 1; k <= last; k++) {
        const ty_unit *u = &plan->f->unit[plan->order[k]];
        if (ty_pending_before_unit(&one, plan, u) >= 0)
            return true;
        for (int i = 0; i < u->n_roots; i++) { /* a table is copied to where its rows are written */
            ty_place to = ty_plan_place(plan, u->root[i]);
            if (ty_pending_meets(&one, &to, (int64_t)ty_type_bytes(ty_graph_type(g, u->root[i])), true) >= 0)
                return true;
        }
    }
    return false;
}

ty_halves ty_halves_of(const ty_plan *plan, ty_arena *a)
{
    const ty_graph *g = plan->f->g;
    ty_halves h = {-1, TY_NEW_ARRAY(a, int64_t, plan->n_order + 1)};
    if (plan->f->tape != TY_TAPE_LAST)
        return h;
    for (int at = 0; at < plan->n_order; at++)
        h.last = halves_is_sum(plan, at) ? at : h.last;
    for (int at = 0; at < h.last; at++) {
        if (!halves_is_sum(plan, at))
            continue;
        int64_t n = ty_type_elems(ty_graph_type(g, ty_val_make(plan->f->unit[plan->order[at]].node, 0)));
        if (n >= HALVES_LEAST && !halves_is_met(plan, at, h.last))
            h.head[at] = (int64_t)((double)n * TY_HALVES_NOW) / HALVES_ALIGN * HALVES_ALIGN;
    }
    return h;
}
