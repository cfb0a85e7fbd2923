/* order.c - donation of states and the order of units. See plan.h. */
#include "compiler/passes/plan.h"

#include <string.h>

typedef struct edge_list {
    uint32_t *to;
    int n, cap;
} edge_list;

typedef struct sched {
    ty_plan *p;
    const ty_fusion *f;
    edge_list *before; /* per unit: units that must come earlier, beside the producers of its loads */
    uint32_t *seen, mark;
} sched;

static void sched_edge(sched *s, uint32_t unit, uint32_t earlier)
{
    edge_list *e = &s->before[unit];
    if (e->n == e->cap) {
        int cap = e->cap ? 2 * e->cap : 8;
        uint32_t *grown = TY_NEW_ARRAY(&s->p->arena, uint32_t, cap);
        if (e->n)
            memcpy(grown, e->to, sizeof *grown * (size_t)e->n);
        e->to = grown;
        e->cap = cap;
    }
    e->to[e->n++] = earlier;
}

/* Is `target` an ancestor of `unit`? */
static bool sched_reaches(sched *s, uint32_t unit, uint32_t target)
{
    if (unit == target)
        return true;
    s->seen[unit] = s->mark;
    const ty_unit *u = &s->f->unit[unit];
    for (int i = 0; i < u->n_loads; i++) {
        uint32_t p = s->f->producer[u->load[i]];
        if (p != TY_NONE && s->seen[p] != s->mark && sched_reaches(s, p, target))
            return true;
    }
    for (int i = 0; i < s->before[unit].n; i++) {
        uint32_t p = s->before[unit].to[i];
        if (s->seen[p] != s->mark && sched_reaches(s, p, target))
            return true;
    }
    return false;
}

static bool sched_loads_state(const ty_fusion *f, const ty_unit *u, int state)
{
    for (int i = 0; i < u->n_loads; i++) {
        uint32_t node = ty_val_node(u->load[i]);
        if (ty_graph_op(f->g, node) == TY_OP_STATE && ty_graph_attr(f->g, node)->index == state)
            return true;
    }
    return false;
}

/* A kernel may overwrite what it reads if it reads each element just where it writes it, and not after that. */
static bool sched_in_step(const ty_fusion *f, const ty_kernel *k, ty_val stored, int state)
{
    ty_ix addr = 0;
    int stage = 0;
    for (int i = 0; i < k->n_stores; i++)
        if (k->buffer[k->store[i].buffer].val == stored)
            addr = k->store[i].addr, stage = k->store[i].stage;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *instr = &k->instr[i];
        if (instr->kop != TY_K_LOAD)
            continue;
        uint32_t node = ty_val_node(k->buffer[instr->buffer].val);
        if (ty_graph_op(f->g, node) == TY_OP_STATE && ty_graph_attr(f->g, node)->index == state &&
            (instr->addr != addr || instr->stage > stage))
            return false;
    }
    return true;
}

static bool sched_may_donate(sched *s, int state, ty_val base)
{
    const ty_fusion *f = s->f;
    uint32_t producer = f->producer[base];
    if (producer == TY_NONE || s->p->place[base].kind != TY_PLACE_NONE)
        return false;
    const ty_unit *u = &f->unit[producer];
    if (u->kind == TY_UNIT_ASSEMBLY)
        return false;
    if (sched_loads_state(f, u, state) && (u->kind != TY_UNIT_KERNEL || !sched_in_step(f, u->kernel, base, state)))
        return false;
    s->mark++; /* one for all readers: what the search of one has passed does not lead to the producer */
    for (uint32_t r = 0; r < f->n_units; r++) {
        if (r == producer || f->unit[r].kind == TY_UNIT_DEAD || !sched_loads_state(f, &f->unit[r], state))
            continue;
        if (sched_reaches(s, r, producer))
            return false; /* a reader needs the new value's unit first */
    }
    return true;
}

static void sched_donate(sched *s, int state, ty_val base)
{
    uint32_t producer = s->f->producer[base];
    s->p->place[base] = (ty_place){TY_PLACE_STATE, state, 0};
    for (uint32_t r = 0; r < s->f->n_units; r++)
        if (r != producer && s->f->unit[r].kind != TY_UNIT_DEAD && sched_loads_state(s->f, &s->f->unit[r], state))
            sched_edge(s, producer, r);
}

/* Parts of concatenations get their place inside the whole and cannot be donated. */
static bool sched_is_part(const ty_fusion *f, ty_val base)
{
    for (uint32_t u = 0; u < f->n_units; u++)
        if (f->unit[u].kind == TY_UNIT_ASSEMBLY)
            for (int i = 0; i < f->unit[u].n_loads; i++)
                if (f->unit[u].load[i] == base)
                    return true;
    return false;
}

/* The caller reads outputs when all is done: an old state that the tape writes is gone by then. */
static int sched_check_outputs(const ty_fusion *f, int state, ty_error *err)
{
    const ty_graph *g = f->g;
    for (int i = 0; i < ty_graph_n_outputs(g); i++) {
        const ty_output *o = ty_graph_output(g, i);
        uint32_t base = ty_val_node(ty_view_of(g, o->val).base);
        if ((o->tapes & f->tape) && ty_graph_op(g, base) == TY_OP_STATE && ty_graph_attr(g, base)->index == state)
            return ty_error_set(err, TY_E_UNSUPPORTED,
                                "output \"%s\" is the old value of state \"%s\" itself, which the same run overwrites; "
                                "expected something computed from it",
                                o->name, ty_graph_state(g, state)->name);
    }
    return 0;
}

static int sched_assigns(sched *s, ty_error *err)
{
    const ty_graph *g = s->f->g;
    s->p->copy = TY_NEW_ARRAY(&s->p->arena, ty_plan_copy, ty_graph_n_effects(g));
    for (int i = 0; i < ty_graph_n_effects(g); i++) {
        const ty_effect *e = ty_graph_effect(g, i);
        if (!(e->tapes & s->f->tape))
            continue;
        int state = (int)ty_graph_attr(g, e->node)->index;
        if (sched_check_outputs(s->f, state, err) < 0)
            return -1;
        ty_val value = ty_graph_in(g, e->node, 0);
        ty_view view = ty_view_of(g, value);
        bool whole = ty_type_elems(ty_graph_type(g, view.base)) == ty_type_elems(ty_graph_type(g, value));
        if (whole && !sched_is_part(s->f, view.base) && sched_may_donate(s, state, view.base))
            sched_donate(s, state, view.base);
        else
            s->p->copy[s->p->n_copies++] = (ty_plan_copy){state, value};
    }
    return 0;
}

/* Units waiting for nothing more, smallest number of the main node first: a binary heap. */
typedef struct ready_heap {
    uint32_t *unit;
    int n;
} ready_heap;

static bool ready_less(const ty_fusion *f, uint32_t a, uint32_t b)
{
    return f->unit[a].node != f->unit[b].node ? f->unit[a].node < f->unit[b].node : a < b;
}

static void ready_push(const ty_fusion *f, ready_heap *h, uint32_t unit)
{
    int at = h->n++;
    for (; at > 0 && ready_less(f, unit, h->unit[(at - 1) / 2]); at = (at - 1) / 2)
        h->unit[at] = h->unit[(at - 1) / 2];
    h->unit[at] = unit;
}

static uint32_t ready_pop(const ty_fusion *f, ready_heap *h)
{
    uint32_t top = h->unit[0], last = h->unit[--h->n];
    int at = 0;
    for (int child; (child = 2 * at + 1) < h->n; at = child) {
        if (child + 1 < h->n && ready_less(f, h->unit[child + 1], h->unit[child]))
            child++;
        if (!ready_less(f, h->unit[child], last))
            break;
        h->unit[at] = h->unit[child];
    }
    h->unit[at] = last;
    return top;
}

static void sched_count(sched *s, edge_list *next, int *waits)
{
    const ty_fusion *f = s->f;
    edge_list *before = s->before;
    sched forward = {.p = s->p, .f = f, .before = next};
    for (uint32_t u = 0; u < f->n_units; u++) {
        for (int i = 0; i < f->unit[u].n_loads; i++) {
            uint32_t p = f->producer[f->unit[u].load[i]];
            if (p != TY_NONE && p != u)
                sched_edge(&forward, p, u), waits[u]++;
        }
        for (int i = 0; i < before[u].n; i++)
            sched_edge(&forward, before[u].to[i], u), waits[u]++;
    }
}

static int sched_order(sched *s, ty_error *err)
{
    const ty_fusion *f = s->f;
    ty_plan *p = s->p;
    int *waits = TY_NEW_ARRAY(&p->arena, int, f->n_units + 1), n_alive = 0;
    edge_list *next = TY_NEW_ARRAY(&p->arena, edge_list, f->n_units + 1);
    ready_heap ready = {TY_NEW_ARRAY(&p->arena, uint32_t, f->n_units + 1), 0};
    sched_count(s, next, waits);
    for (uint32_t u = 0; u < f->n_units; u++) {
        if (f->unit[u].kind == TY_UNIT_DEAD)
            continue;
        n_alive++;
        if (waits[u] == 0)
            ready_push(f, &ready, u);
    }
    p->order = TY_NEW_ARRAY(&p->arena, uint32_t, n_alive + 1);
    while (ready.n) {
        uint32_t u = ready_pop(f, &ready);
        p->order[p->n_order++] = u;
        for (int i = 0; i < next[u].n; i++)
            if (--waits[next[u].to[i]] == 0)
                ready_push(f, &ready, next[u].to[i]);
    }
    if (p->n_order != n_alive)
        return ty_error_set(err, TY_E_INTERNAL, "schedule: %d of %d units wait for each other", n_alive - p->n_order,
                            n_alive);
    return 0;
}

int ty_plan_schedule(ty_plan *p, ty_error *err)
{
    sched s = {.p = p,
               .f = p->f,
               .before = TY_NEW_ARRAY(&p->arena, edge_list, p->f->n_units + 1),
               .seen = TY_NEW_ARRAY(&p->arena, uint32_t, p->f->n_units + 1)};
    return sched_assigns(&s, err) < 0 ? -1 : sched_order(&s, err);
}
