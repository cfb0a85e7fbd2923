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

static int64_t halves_elems(const ty_plan *plan, int at)
{
    const ty_graph *g = plan->f->g;
    return ty_type_elems(ty_graph_type(g, ty_graph_in(g, plan->f->unit[plan->order[at]].node, 0)));
}

/* Position of the last sum, behind which second halves begin; -1: there are none. */
static int halves_last(const ty_plan *plan)
{
    int last = plan->f->tape == TY_TAPE_LAST && !plan->f->on_gpu ? plan->n_order - 1 : -1;
    while (last >= 0 && !halves_is_sum(plan, last))
        last--;
    return last;
}

/* Elements of the first half of what a position exchanges, or all of it. */
static int64_t halves_head(const ty_plan *plan, int at, int last)
{
    int64_t n = halves_elems(plan, at);
    if (at >= last || n < HALVES_LEAST || !halves_is_sum(plan, at) || halves_is_met(plan, at, last))
        return n;
    return (int64_t)((double)n * TY_HALVES_NOW) / HALVES_ALIGN * HALVES_ALIGN;
}

ty_begins ty_begins_of(const ty_plan *plan, ty_arena *a)
{
    int n = 0, last = halves_last(plan);
    for (int at = 0; at < plan->n_order; at++)
        n += ty_unit_is_exchange(plan->f, &plan->f->unit[plan->order[at]]);
    ty_begins b = {TY_NEW_ARRAY(a, ty_begin, 2 * n + 1), 0};
    for (int at = 0; at < plan->n_order; at++) {
        if (!ty_unit_is_exchange(plan->f, &plan->f->unit[plan->order[at]]))
            continue;
        int64_t head = halves_head(plan, at, last);
        b.list[b.n++] = (ty_begin){at, at, head < halves_elems(plan, at), 0, head};
        for (int k = b.n - 2; at == last && k >= 0; k--)
            if (b.list[k].is_half)
                b.list[b.n++] = (ty_begin){at, b.list[k].at, true, b.list[k].end, halves_elems(plan, b.list[k].at)};
    }
    return b;
}
