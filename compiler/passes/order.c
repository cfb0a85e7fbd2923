/* order.c - donation of states and the order of units. See plan.h. */
#include "compiler/passes/plan.h"

#include <string.h>

#define SCHED_DELAY_BYTES ((int64_t)1 << 20) /* a result that may be worth delaying, ... */
#define SCHED_DELAY_UNITS 8                  /* by at least so many units */
#define SCHED_URGENT      3                  /* units: a gradient, rounded or added up, put beside others, exchanged */

typedef struct edge_list {
    uint32_t *to;
    int n, cap;
} edge_list;

/* What a unit reads of a state, in elements. */
typedef struct state_read {
    uint32_t unit;
    int64_t lo, hi;
} state_read;

typedef struct read_list {
    state_read *read;
    int n, cap;
} read_list;

typedef struct sched {
    ty_plan *p;
    const ty_fusion *f;
    ty_arena scratch;   /* of all that is not the plan's */
    edge_list *next;    /* per unit: units that must come later: who reads its results, who overwrites what it reads */
    int *waits;         /* per unit: in how many of those lists it is */
    read_list *readers; /* per state */
    uint8_t *in_parts;  /* per value: parts of concatenations that lie in it, at most 2 counted */
    uint8_t *urgent;    /* per unit: nothing but exchanges between replicas waits for it */
    uint32_t *seen, mark, *stack;
} sched;

/* A stretch of a state, in elements. */
typedef struct stretch {
    int state;
    int64_t lo, hi;
} stretch;

static void edge_add(edge_list *e, uint32_t to, ty_arena *scratch)
{
    if (e->n == e->cap) {
        int cap = e->cap ? 2 * e->cap : 8;
        uint32_t *grown = TY_NEW_ARRAY(scratch, uint32_t, cap);
        if (e->n)
            memcpy(grown, e->to, sizeof *grown * (size_t)e->n);
        e->to = grown;
        e->cap = cap;
    }
    e->to[e->n++] = to;
}

static void sched_edge(sched *s, uint32_t earlier, uint32_t later)
{
    edge_add(&s->next[earlier], later, &s->scratch);
    s->waits[later]++;
}

/* The stretch that a view of a state covers; state -1 if v is none. */
static stretch sched_stretch(const ty_graph *g, ty_val v)
{
    ty_view view = ty_view_of(g, v);
    uint32_t node = ty_val_node(view.base);
    if (ty_graph_op(g, node) != TY_OP_STATE)
        return (stretch){-1, 0, 0};
    return (stretch){(int)ty_graph_attr(g, node)->index, view.offset, view.offset + ty_type_elems(ty_graph_type(g, v))};
}

static void sched_add_reader(sched *s, uint32_t unit, stretch what)
{
    read_list *l = &s->readers[what.state];
    if (l->n == l->cap) {
        int cap = l->cap ? 2 * l->cap : 8;
        state_read *grown = TY_NEW_ARRAY(&s->scratch, state_read, cap);
        if (l->n)
            memcpy(grown, l->read, sizeof *grown * (size_t)l->n);
        l->read = grown;
        l->cap = cap;
    }
    l->read[l->n++] = (state_read){unit, what.lo, what.hi};
}

static void sched_read(sched *s)
{
    const ty_fusion *f = s->f;
    for (uint32_t u = 0; u < f->n_units; u++)
        for (int i = 0; i < f->unit[u].n_loads; i++) {
            ty_val v = f->unit[u].load[i];
            stretch what = sched_stretch(f->g, v);
            if (what.state >= 0)
                sched_add_reader(s, u, what);
            else if (f->producer[v] != TY_NONE && f->producer[v] != u)
                sched_edge(s, f->producer[v], u);
            if (f->unit[u].kind == TY_UNIT_ASSEMBLY && s->in_parts[v] < 2)
                s->in_parts[v]++;
        }
}

/* Marks all units that must come after this one. */
static void sched_mark_later(sched *s, uint32_t unit)
{
    int n = 0;
    s->mark++;
    s->stack[n++] = unit;
    while (n) {
        const edge_list *e = &s->next[s->stack[--n]];
        for (int i = 0; i < e->n; i++) {
            if (s->seen[e->to[i]] == s->mark)
                continue;
            s->seen[e->to[i]] = s->mark;
            s->stack[n++] = e->to[i];
        }
    }
}

static bool sched_meets(const state_read *r, stretch what)
{
    return r->lo < what.hi && what.lo < r->hi;
}

/* A kernel may overwrite what it reads if it reads each element just where it writes it, and not after that. */
static bool sched_in_step(const ty_fusion *f, const ty_kernel *k, ty_val stored, stretch what)
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
        stretch read = sched_stretch(f->g, k->buffer[instr->buffer].val);
        if (read.state != what.state || read.hi <= what.lo || what.hi <= read.lo)
            continue;
        if (read.lo != what.lo || read.hi != what.hi || instr->addr != addr || instr->stage > stage)
            return false;
    }
    return true;
}

/* Rows of a table are written over that table and over nothing else: what they leave must be there. */
static bool sched_is_own_table(const ty_graph *g, stretch what, ty_val base)
{
    ty_val table = ty_fuse_rows_of(g, base);
    if (table == TY_NONE)
        return true;
    stretch old = sched_stretch(g, table);
    return old.state == what.state && old.lo == what.lo && old.hi == what.hi;
}

/* May the value be written over this stretch? Not if a reader of the old numbers needs the new ones first. */
static bool sched_may_donate(sched *s, stretch what, ty_val base)
{
    const ty_fusion *f = s->f;
    uint32_t producer = f->producer[base];
    if (producer == TY_NONE || s->p->place[base].kind != TY_PLACE_NONE)
        return false;
    const ty_unit *u = &f->unit[producer];
    if (u->kind == TY_UNIT_ASSEMBLY || !sched_is_own_table(f->g, what, base))
        return false;
    sched_mark_later(s, producer);
    const read_list *l = &s->readers[what.state];
    for (int i = 0; i < l->n; i++) {
        if (!sched_meets(&l->read[i], what))
            continue;
        if (l->read[i].unit == producer && (u->kind != TY_UNIT_KERNEL || !sched_in_step(f, u->kernel, base, what)))
            return false;
        if (l->read[i].unit != producer && s->seen[l->read[i].unit] == s->mark)
            return false;
    }
    return true;
}

static void sched_donate(sched *s, stretch what, ty_val base)
{
    uint32_t producer = s->f->producer[base];
    const read_list *l = &s->readers[what.state];
    size_t element = ty_dtype_bytes((ty_dtype)ty_graph_type(s->f->g, base)->dtype);
    s->p->place[base] = (ty_place){TY_PLACE_STATE, what.state, what.lo * (int64_t)element};
    for (int i = 0; i < l->n; i++)
        if (l->read[i].unit != producer && sched_meets(&l->read[i], what))
            sched_edge(s, l->read[i].unit, producer);
}

/* The parts of a concatenation that is a state's new value, each written over its stretch: an optimizer that updates a
 * large group of weights piece by piece (bucket.c). All or none; what was ordered for a failed attempt stays ordered.
 */
static bool sched_donate_parts(sched *s, int state, ty_val whole)
{
    const ty_graph *g = s->f->g;
    const ty_node *n = ty_graph_node(g, ty_val_node(whole));
    int64_t at = 0;
    uint32_t i = 0;
    for (; i < n->n_in; i++) {
        ty_val part = ty_graph_in(g, ty_val_node(whole), (int)i), base = ty_view_of(g, part).base;
        int64_t elems = ty_type_elems(ty_graph_type(g, part));
        stretch what = {state, at, at + elems};
        if (ty_type_elems(ty_graph_type(g, base)) != elems || s->in_parts[base] != 1 ||
            !sched_may_donate(s, what, base))
            break;
        sched_donate(s, what, base);
        at += elems;
    }
    if (i == n->n_in) {
        s->p->place[whole] = (ty_place){TY_PLACE_STATE, state, 0};
        return true;
    }
    while (i-- > 0)
        s->p->place[ty_view_of(g, ty_graph_in(g, ty_val_node(whole), (int)i)).base] = (ty_place){0};
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

/* Parts of other concatenations get their place inside the whole and cannot be donated. */
static bool sched_donate_value(sched *s, int state, ty_val value)
{
    const ty_graph *g = s->f->g;
    ty_val base = ty_view_of(g, value).base;
    stretch all = {state, 0, ty_type_elems(ty_graph_type(g, value))};
    uint32_t producer = s->f->producer[base];
    if (ty_type_elems(ty_graph_type(g, base)) != all.hi || s->in_parts[base] || producer == TY_NONE)
        return false;
    if (s->f->unit[producer].kind == TY_UNIT_ASSEMBLY)
        return s->p->place[base].kind == TY_PLACE_NONE && sched_donate_parts(s, state, base);
    if (!sched_may_donate(s, all, base))
        return false;
    sched_donate(s, all, base);
    return true;
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
        if (!sched_donate_value(s, state, value))
            s->p->copy[s->p->n_copies++] = (ty_plan_copy){state, value};
    }
    return 0;
}

/* Units waiting for nothing more, urgent ones and then the smallest number of the main node first: a binary heap. */
typedef struct ready_heap {
    uint32_t *unit;
    int n;
} ready_heap;

static bool ready_less(const sched *s, uint32_t a, uint32_t b)
{
    const ty_unit *x = &s->f->unit[a], *y = &s->f->unit[b];
    if (s->urgent[a] != s->urgent[b])
        return s->urgent[a];
    return x->node != y->node ? x->node < y->node : a < b;
}

static void ready_push(const sched *s, ready_heap *h, uint32_t unit)
{
    int at = h->n++;
    for (; at > 0 && ready_less(s, unit, h->unit[(at - 1) / 2]); at = (at - 1) / 2)
        h->unit[at] = h->unit[(at - 1) / 2];
    h->unit[at] = unit;
}

static uint32_t ready_pop(const sched *s, ready_heap *h)
{
    uint32_t top = h->unit[0], last = h->unit[--h->n];
    int at = 0;
    for (int child; (child = 2 * at + 1) < h->n; at = child) {
        if (child + 1 < h->n && ready_less(s, h->unit[child + 1], h->unit[child]))
            child++;
        if (!ready_less(s, h->unit[child], last))
            break;
        h->unit[at] = h->unit[child];
    }
    h->unit[at] = last;
    return top;
}

static int sched_order_once(sched *s, ty_error *err)
{
    const ty_fusion *f = s->f;
    ty_plan *p = s->p;
    int n_alive = 0;
    int *waits = ty_arena_copy(&s->scratch, s->waits, sizeof *waits * (f->n_units + 1));
    ready_heap ready = {TY_NEW_ARRAY(&s->scratch, uint32_t, f->n_units + 1), 0};
    for (uint32_t u = 0; u < f->n_units; u++) {
        if (f->unit[u].kind == TY_UNIT_DEAD)
            continue;
        n_alive++;
        if (waits[u] == 0)
            ready_push(s, &ready, u);
    }
    p->n_order = 0;
    while (ready.n) {
        uint32_t u = ready_pop(s, &ready);
        p->order[p->n_order++] = u;
        for (int i = 0; i < s->next[u].n; i++)
            if (--waits[s->next[u].to[i]] == 0)
                ready_push(s, &ready, s->next[u].to[i]);
    }
    if (p->n_order != n_alive)
        return ty_error_set(err, TY_E_INTERNAL, "schedule: %d of %d units wait for each other", n_alive - p->n_order,
                            n_alive);
    return 0;
}

/* What another exchange must be waited for is not urgent, least of all the update that hands on its part of weights. */
static bool sched_reads_exchange(const ty_fusion *f, const ty_unit *u)
{
    for (int i = 0; i < u->n_loads; i++) {
        uint32_t producer = f->producer[u->load[i]];
        if (producer != TY_NONE && ty_unit_is_exchange(f, &f->unit[producer]))
            return true;
    }
    return false;
}

/* Exchanges, and what is computed for them alone and not far from them: a weight's gradient, which travels while the
 * gradient of the layer before is computed. (All of backward is computed for exchanges in the end.) True if there are
 * any. Takes an order in which readers come behind what they read. */
static bool sched_find_urgent(sched *s)
{
    int *far = TY_NEW_ARRAY(&s->scratch, int, s->f->n_units + 1); /* units up to the exchange */
    bool any = false;
    for (int at = s->p->n_order - 1; at >= 0; at--) {
        uint32_t u = s->p->order[at];
        const edge_list *e = &s->next[u];
        far[u] = e->n > 0 ? 0 : SCHED_URGENT + 1;
        for (int i = 0; i < e->n; i++)
            far[u] = far[e->to[i]] >= far[u] ? far[e->to[i]] + 1 : far[u];
        if (ty_unit_is_exchange(s->f, &s->f->unit[u])) {
            far[u] = 0;
            any = true;
        }
        s->urgent[u] = far[u] <= SCHED_URGENT && !sched_reads_exchange(s->f, &s->f->unit[u]);
    }
    return any;
}

static int sched_order(sched *s, ty_error *err)
{
    if (sched_order_once(s, err) < 0)
        return -1;
    return sched_find_urgent(s) ? sched_order_once(s, err) : 0;
}

/* ---- delays ---- */

/* Position of the last reader of every value. */
static int *sched_last_reads(sched *s)
{
    const ty_graph *g = s->f->g;
    const ty_plan *p = s->p;
    int *last = TY_NEW_ARRAY(&s->scratch, int, (size_t)ty_graph_n_nodes(g) * TY_MAX_RESULTS + 1);
    for (int at = 0; at < p->n_order; at++) {
        const ty_unit *u = &s->f->unit[p->order[at]];
        for (int i = 0; i < u->n_loads; i++)
            last[u->load[i]] = at;
    }
    for (int i = 0; i < ty_graph_n_outputs(g); i++)
        last[ty_view_of(g, ty_graph_output(g, i)->val).base] = p->n_order;
    return last;
}

/* Bytes that the unit at this position makes, less those that would have to wait for it if it came later. */
static int64_t sched_gain(const sched *s, const int *last, int at)
{
    const ty_graph *g = s->f->g;
    const ty_unit *u = &s->f->unit[s->p->order[at]];
    int64_t made = 0, kept = 0;
    for (int i = 0; i < u->n_roots; i++)
        made +=
            s->p->place[u->root[i]].kind == TY_PLACE_NONE ? (int64_t)ty_type_bytes(ty_graph_type(g, u->root[i])) : 0;
    for (int i = 0; i < u->n_loads; i++)
        if (s->f->producer[u->load[i]] != TY_NONE && last[u->load[i]] == at)
            kept += (int64_t)ty_type_bytes(ty_graph_type(g, u->load[i]));
    return made >= SCHED_DELAY_BYTES ? made - 2 * kept : 0;
}

/* A large result that is not read for long, of small operands: the gradient of a tied table as the head sees it, which
 * waits for what the embedding adds to it. Such a unit runs just before whoever needs it. */
static void sched_delay(sched *s)
{
    ty_plan *p = s->p;
    int *last = sched_last_reads(s), *position = TY_NEW_ARRAY(&s->scratch, int, s->f->n_units + 1), n = 0;
    edge_list *late = TY_NEW_ARRAY(&s->scratch, edge_list, p->n_order + 1); /* by position: who runs just before it */
    for (int at = 0; at < p->n_order; at++)
        position[p->order[at]] = at;
    for (int at = 0; at < p->n_order; at++) { /* in place: no more units are put down than were taken up */
        uint32_t unit = p->order[at];
        const edge_list *e = &s->next[unit];
        int to = p->n_order;
        for (int i = 0; i < e->n; i++)
            to = position[e->to[i]] < to ? position[e->to[i]] : to;
        for (int i = 0; i < late[at].n; i++)
            p->order[n++] = late[at].to[i];
        if (to < p->n_order && to - at >= SCHED_DELAY_UNITS && sched_gain(s, last, at) > 0) {
            edge_add(&late[to], unit, &s->scratch);
            p->n_delayed++;
        } else {
            p->order[n++] = unit;
        }
    }
}

static void sched_init(sched *s, ty_plan *p)
{
    size_t n = p->f->n_units + 1, n_vals = (size_t)ty_graph_n_nodes(p->f->g) * TY_MAX_RESULTS + 1;
    *s = (sched){.p = p, .f = p->f};
    ty_arena_init(&s->scratch);
    s->next = TY_NEW_ARRAY(&s->scratch, edge_list, n);
    s->waits = TY_NEW_ARRAY(&s->scratch, int, n);
    s->readers = TY_NEW_ARRAY(&s->scratch, read_list, ty_graph_n_states(p->f->g) + 1);
    s->in_parts = TY_NEW_ARRAY(&s->scratch, uint8_t, n_vals);
    s->urgent = TY_NEW_ARRAY(&s->scratch, uint8_t, n);
    s->seen = TY_NEW_ARRAY(&s->scratch, uint32_t, n);
    s->stack = TY_NEW_ARRAY(&s->scratch, uint32_t, n);
    p->order = TY_NEW_ARRAY(&p->arena, uint32_t, n);
}

int ty_plan_schedule(ty_plan *p, bool delays, ty_error *err)
{
    sched s;
    sched_init(&s, p);
    sched_read(&s);
    int rc = sched_assigns(&s, err);
    if (rc == 0)
        rc = sched_order(&s, err);
    if (rc == 0 && delays)
        sched_delay(&s);
    ty_arena_fini(&s.scratch);
    return rc;
}
