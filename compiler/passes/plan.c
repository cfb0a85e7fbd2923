/* plan.c - a place for every value. See plan.h. */
#include "compiler/passes/plan.h"

#include "compiler/ops/recurrence.h"

#include <stdlib.h>
#include <string.h>

#define PLAN_SHARE 16 /* a part of at least one such share of its concatenation decides when that begins to live */

typedef struct plan_item {
    ty_val v; /* representative of a class of values that share memory */
    int64_t bytes;
    int first, last;
    int64_t offset;
} plan_item;

typedef struct planner {
    ty_plan *p;
    const ty_fusion *f;
    int *position;        /* per unit: in the order */
    ty_val *shares;       /* per value index: the value whose memory it takes in place, or itself */
    ty_val *whole;        /* per value index: the concatenation it is a part of, or TY_NONE */
    int64_t *part_offset; /* bytes inside it */
} planner;

static int64_t plan_bytes(const ty_graph *g, ty_val v)
{
    return (int64_t)ty_type_bytes(ty_graph_type(g, v));
}

static void plan_leaf(planner *pl, uint32_t node)
{
    ty_val v = ty_val_make(node, 0);
    const ty_attr *attr = ty_graph_attr(pl->f->g, node);
    switch (ty_graph_op(pl->f->g, node)) {
    case TY_OP_INPUT:
        pl->p->place[v] = (ty_place){TY_PLACE_INPUT, attr->index, 0};
        break;
    case TY_OP_STATE:
        pl->p->place[v] = (ty_place){TY_PLACE_STATE, attr->index, 0};
        break;
    case TY_OP_CONST:
        pl->p->place[v] = (ty_place){TY_PLACE_CONST, (int64_t)v, 0};
        break;
    default:
        break;
    }
}

/* ---- concatenations ---- */

/* The first unit that makes a good share of the concatenation. */
static int plan_first_share(const planner *pl, uint32_t node)
{
    const ty_graph *g = pl->f->g;
    int first = pl->p->n_order;
    for (uint32_t i = 0; i < ty_graph_node(g, node)->n_in; i++) {
        ty_val in = ty_graph_in(g, node, (int)i);
        uint32_t producer = pl->f->producer[ty_view_of(g, in).base];
        bool good = plan_bytes(g, in) * PLAN_SHARE >= plan_bytes(g, ty_val_make(node, 0));
        if (good && producer != TY_NONE && pl->position[producer] < first)
            first = pl->position[producer];
    }
    return first;
}

/* Not those that are made early and small: for their sake the whole would be kept from then on. */
static void plan_parts_of(planner *pl, const ty_unit *u)
{
    const ty_graph *g = pl->f->g;
    ty_val whole = ty_val_make(u->node, 0);
    int64_t offset = 0;
    int first = plan_first_share(pl, u->node);
    for (uint32_t i = 0; i < ty_graph_node(g, u->node)->n_in; i++) {
        ty_val in = ty_graph_in(g, u->node, (int)i);
        ty_view view = ty_view_of(g, in);
        uint32_t producer = pl->f->producer[view.base];
        bool same = plan_bytes(g, view.base) == plan_bytes(g, in);
        bool free_ = pl->p->place[view.base].kind == TY_PLACE_NONE && pl->whole[view.base] == TY_NONE;
        bool late = producer != TY_NONE && (pl->position[producer] >= first || first == pl->p->n_order);
        if (same && free_ && late && pl->f->unit[producer].kind != TY_UNIT_ASSEMBLY) {
            pl->whole[view.base] = whole;
            pl->part_offset[view.base] = offset;
        }
        offset += plan_bytes(g, in);
    }
}

/* ---- lifetimes ---- */

static void plan_touch(planner *pl, ty_val v, int at)
{
    ty_plan *p = pl->p;
    if (p->first[v] < 0 || at < p->first[v])
        p->first[v] = at;
    if (at > p->last[v])
        p->last[v] = at;
}

static void plan_lifetimes(planner *pl)
{
    ty_plan *p = pl->p;
    const ty_graph *g = pl->f->g;
    for (int at = 0; at < p->n_order; at++) {
        const ty_unit *u = &pl->f->unit[p->order[at]];
        for (int i = 0; i < u->n_roots; i++)
            plan_touch(pl, u->root[i], at);
        for (int i = 0; i < u->n_loads; i++)
            plan_touch(pl, u->load[i], at);
    }
    for (int i = 0; i < ty_graph_n_outputs(g); i++)
        if (ty_graph_output(g, i)->tapes & pl->f->tape)
            plan_touch(pl, ty_view_of(g, ty_graph_output(g, i)->val).base, p->n_order);
    for (int i = 0; i < p->n_copies; i++)
        plan_touch(pl, ty_view_of(g, p->copy[i].value).base, p->n_order);
}

/* A whole lives as long as any of its parts. */
static void plan_whole_lifetimes(planner *pl)
{
    size_t n = (size_t)ty_graph_n_nodes(pl->f->g) * TY_MAX_RESULTS;
    for (ty_val v = 0; v < n; v++)
        if (pl->whole[v] != TY_NONE) {
            plan_touch(pl, pl->whole[v], pl->p->first[v]);
            plan_touch(pl, pl->whole[v], pl->p->last[v]);
        }
}

/* ---- in-place results ---- */

static bool plan_in_slab(const planner *pl, ty_val v)
{
    return pl->p->place[v].kind == TY_PLACE_NONE && pl->whole[v] == TY_NONE && pl->f->producer[v] != TY_NONE &&
           pl->p->first[v] >= 0;
}

static bool plan_reads_in_step(const ty_kernel *k, ty_val loaded, const ty_kstore *store)
{
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *instr = &k->instr[i];
        if (instr->kop == TY_K_LOAD && k->buffer[instr->buffer].val == loaded &&
            (instr->addr != store->addr || instr->stage > store->stage))
            return false;
    }
    return true;
}

static bool plan_is_whole(const planner *pl, ty_val v)
{
    uint32_t producer = pl->f->producer[v];
    return producer != TY_NONE && pl->f->unit[producer].kind == TY_UNIT_ASSEMBLY;
}

/* Same number of elements of the same type: a kernel has one pointer for memory that it reads and writes. */
static bool plan_same_array(const ty_graph *g, ty_val a, ty_val b)
{
    return ty_graph_type(g, a)->dtype == ty_graph_type(g, b)->dtype && plan_bytes(g, a) == plan_bytes(g, b);
}

/* What lies where rows of a table will be written must be the table. */
static bool plan_may_take(const ty_graph *g, ty_val out, ty_val in)
{
    ty_val table = ty_fuse_rows_of(g, out);
    return table == TY_NONE || ty_view_of(g, table).base == in;
}

static void plan_in_place_of(planner *pl, const ty_kernel *k, const ty_kstore *store, int at)
{
    ty_val out = k->buffer[store->buffer].val;
    for (int i = 0; i < k->n_buffers; i++) {
        ty_val in = k->buffer[i].val;
        if (k->buffer[i].written || !plan_may_take(pl->f->g, out, in) || !plan_in_slab(pl, in) ||
            plan_is_whole(pl, in) || pl->p->last[in] != at || !plan_same_array(pl->f->g, in, out) ||
            !plan_reads_in_step(k, in, store))
            continue;
        bool taken = false;
        for (int s = 0; s < k->n_stores; s++)
            taken |= pl->shares[k->buffer[k->store[s].buffer].val] == pl->shares[in];
        if (taken)
            continue;
        pl->shares[out] = pl->shares[in];
        return;
    }
}

/* Library calls that write an element of a result after they have read that element of an operand, and do not read
 * it again. */
static const struct {
    ty_op op;
    uint32_t operand, result;
} plan_overwrites[] = {{TY_OP_RNN_STEPS, TY_STEPS_XW, TY_STEPS_GATES},
                       {TY_OP_RNN_GRAD, TY_RGRAD_GATES, TY_RGRAD_DPRE},
                       {TY_OP_SCATTER, 0, 0},
                       {TY_OP_PUT, 0, 0},
                       {TY_OP_DOT, 2, 0},
                       {TY_OP_ALL_REDUCE, 0, 0}};

/* The value whose memory the result may take: an operand that nobody needs later, or TY_NONE. */
static ty_val plan_overwritten(const planner *pl, uint32_t node, uint32_t operand, ty_val result, int at)
{
    const ty_graph *g = pl->f->g;
    uint32_t n_in = ty_graph_node(g, node)->n_in;
    if (operand >= n_in)
        return TY_NONE;
    ty_val base = ty_view_of(g, ty_graph_in(g, node, (int)operand)).base;
    for (uint32_t i = 0; i < n_in; i++)
        if (i != operand && ty_view_of(g, ty_graph_in(g, node, (int)i)).base == base)
            return TY_NONE;
    bool whole = plan_is_whole(pl, base) && ty_graph_op(g, node) != TY_OP_ALL_REDUCE; /* gradients side by side */
    bool free_ = plan_in_slab(pl, base) && !whole && pl->p->last[base] == at;
    return free_ && plan_bytes(g, base) == plan_bytes(g, result) ? base : TY_NONE;
}

/* The operand, and what has the same memory before it, is written to where the result will lie inside a concatenation.
 */
static void plan_become_part(planner *pl, ty_val operand, ty_val result)
{
    size_t n = (size_t)ty_graph_n_nodes(pl->f->g) * TY_MAX_RESULTS;
    ty_val head = pl->shares[operand];
    for (ty_val v = 0; v < n; v++) {
        if (pl->shares[v] != head || !plan_in_slab(pl, v))
            continue;
        pl->shares[v] = v;
        pl->whole[v] = pl->whole[result];
        pl->part_offset[v] = pl->part_offset[result];
        plan_touch(pl, pl->whole[v], pl->p->first[v]);
    }
}

static void plan_in_place_of_library(planner *pl, uint32_t node, int at)
{
    for (size_t i = 0; i < sizeof plan_overwrites / sizeof *plan_overwrites; i++) {
        if (plan_overwrites[i].op != ty_graph_op(pl->f->g, node))
            continue;
        ty_val result = ty_val_make(node, plan_overwrites[i].result);
        ty_val taken = plan_overwritten(pl, node, plan_overwrites[i].operand, result, at);
        if (taken != TY_NONE && pl->whole[result] != TY_NONE)
            plan_become_part(pl, taken, result);
        else if (taken != TY_NONE && plan_in_slab(pl, result))
            pl->shares[result] = pl->shares[taken];
    }
}

static void plan_in_place(planner *pl)
{
    for (int at = 0; at < pl->p->n_order; at++) {
        const ty_unit *u = &pl->f->unit[pl->p->order[at]];
        if (u->kind == TY_UNIT_LIBRARY)
            plan_in_place_of_library(pl, u->node, at);
        if (u->kind != TY_UNIT_KERNEL)
            continue;
        for (int s = 0; s < u->kernel->n_stores; s++)
            if (plan_in_slab(pl, u->kernel->buffer[u->kernel->store[s].buffer].val))
                plan_in_place_of(pl, u->kernel, &u->kernel->store[s], at);
    }
}

/* ---- exchanges ---- */

static bool plan_is_exchange(const planner *pl, int at)
{
    return ty_unit_is_exchange(pl->f, &pl->f->unit[pl->p->order[at]]);
}

/* What replicas exchange is on its way until somebody needs it: so long its memory is no one else's. */
static void plan_exchanges(planner *pl)
{
    const ty_graph *g = pl->f->g;
    for (int at = 0; at < pl->p->n_order; at++) {
        const ty_unit *u = &pl->f->unit[pl->p->order[at]];
        if (!plan_is_exchange(pl, at))
            continue;
        ty_val to = ty_val_make(u->node, 0), from = ty_view_of(g, ty_graph_in(g, u->node, 0)).base;
        int until = pl->p->last[pl->whole[to] == TY_NONE ? to : pl->whole[to]];
        if (pl->p->first[from] >= 0)
            plan_touch(pl, from, until);
        if (pl->whole[from] != TY_NONE)
            plan_touch(pl, pl->whole[from], until);
    }
}

/* Alive in all of the run, and in the next one. */
static void plan_keep(planner *pl, ty_val v)
{
    for (v = ty_view_of(pl->f->g, v).base; v != TY_NONE && pl->p->first[v] >= 0; v = pl->whole[v]) {
        plan_touch(pl, v, 0);
        plan_touch(pl, v, pl->p->n_order);
    }
}

/* What replicas on CPUs update behind their last exchange is left to the next run (compiler/target/cpu/late.h), which
 * writes over none of its memory before: else it would have to wait. */
static void plan_late(planner *pl)
{
    const ty_graph *g = pl->f->g;
    int last = pl->p->n_order - 1;
    while (last >= 0 && !plan_is_exchange(pl, last))
        last--;
    if (last < 0 || pl->f->on_gpu || pl->f->tape != TY_TAPE_LAST)
        return;
    for (int at = 0; at < pl->p->n_order; at++) {
        const ty_unit *u = &pl->f->unit[pl->p->order[at]];
        for (int i = 0; at > last && i < u->n_roots; i++)
            plan_keep(pl, u->root[i]);
        for (int i = 0; at > last && i < u->n_loads; i++)
            plan_keep(pl, u->load[i]);
        if (plan_is_exchange(pl, at) && pl->p->last[ty_val_make(u->node, 0)] > last)
            plan_keep(pl, ty_graph_in(g, u->node, 0));
    }
    for (int i = 0; i < ty_graph_n_outputs(g); i++)
        if (ty_graph_output(g, i)->tapes & pl->f->tape)
            plan_keep(pl, ty_graph_output(g, i)->val);
}

/* ---- packing ---- */

static plan_item *plan_items(planner *pl, int *n_items)
{
    size_t n = (size_t)ty_graph_n_nodes(pl->f->g) * TY_MAX_RESULTS;
    plan_item *items = TY_NEW_ARRAY(&pl->p->arena, plan_item, n + 1);
    int *item_of = TY_NEW_ARRAY(&pl->p->arena, int, n + 1);
    for (ty_val v = 0; v < n; v++) {
        if (!plan_in_slab(pl, v))
            continue;
        ty_val head = pl->shares[v];
        if (!item_of[head]) {
            int64_t bytes = (plan_bytes(pl->f->g, v) + TY_PLAN_ALIGN - 1) / TY_PLAN_ALIGN * TY_PLAN_ALIGN;
            items[*n_items] = (plan_item){head, bytes ? bytes : TY_PLAN_ALIGN, pl->p->first[v], pl->p->last[v], 0};
            item_of[head] = ++*n_items;
            continue;
        }
        plan_item *item = &items[item_of[head] - 1];
        item->first = pl->p->first[v] < item->first ? pl->p->first[v] : item->first;
        item->last = pl->p->last[v] > item->last ? pl->p->last[v] : item->last;
    }
    return items;
}

static int plan_by_bytes(const void *a, const void *b)
{
    const plan_item *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    int lx = x->last - x->first, ly = y->last - y->first;
    return lx != ly ? (lx < ly ? 1 : -1) : (x->v > y->v) - (x->v < y->v);
}

static int plan_by_area(const void *a, const void *b)
{
    const plan_item *x = a, *y = b;
    double ax = (double)x->bytes * (x->last - x->first + 1), ay = (double)y->bytes * (y->last - y->first + 1);
    return ax != ay ? (ax < ay ? 1 : -1) : (x->v > y->v) - (x->v < y->v);
}

static int plan_by_start(const void *a, const void *b)
{
    const plan_item *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return plan_by_bytes(a, b);
}

/* The smallest gap that fits between placed items alive at the same time. placed[] is ordered by offset. */
static int64_t plan_fit(const plan_item *item, plan_item *const *placed, int n_placed)
{
    int64_t end = 0, best = -1, best_gap = INT64_MAX;
    for (int i = 0; i < n_placed; i++) {
        const plan_item *other = placed[i];
        if (other->last < item->first || other->first > item->last)
            continue;
        int64_t gap = other->offset - end;
        if (gap >= item->bytes && gap < best_gap)
            best = end, best_gap = gap;
        if (other->offset + other->bytes > end)
            end = other->offset + other->bytes;
    }
    return best >= 0 ? best : end;
}

static int64_t plan_pack(plan_item *items, int n, plan_item **placed)
{
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
        items[i].offset = plan_fit(&items[i], placed, i);
        int at = i;
        for (; at > 0 && placed[at - 1]->offset > items[i].offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = &items[i];
        if (items[i].offset + items[i].bytes > total)
            total = items[i].offset + items[i].bytes;
    }
    return total;
}

static int64_t plan_bound(const planner *pl, const plan_item *items, int n)
{
    int64_t *change = TY_NEW_ARRAY(&pl->p->arena, int64_t, pl->p->n_order + 3), live = 0, most = 0;
    for (int i = 0; i < n; i++) {
        change[items[i].first] += items[i].bytes;
        change[items[i].last + 1] -= items[i].bytes;
    }
    for (int at = 0; at < pl->p->n_order + 2; at++) {
        live += change[at];
        most = live > most ? live : most;
    }
    return most;
}

static void plan_slab(planner *pl)
{
    static int (*const orders[])(const void *, const void *) = {plan_by_bytes, plan_by_area, plan_by_start};
    int n = 0;
    plan_item *items = plan_items(pl, &n);
    plan_item **placed = TY_NEW_ARRAY(&pl->p->arena, plan_item *, n + 1);
    pl->p->slab_bytes = INT64_MAX;
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        qsort(items, (size_t)n, sizeof *items, orders[o]);
        int64_t bytes = plan_pack(items, n, placed);
        if (bytes >= pl->p->slab_bytes)
            continue;
        pl->p->slab_bytes = bytes;
        for (int i = 0; i < n; i++)
            pl->p->place[items[i].v] = (ty_place){TY_PLACE_SLAB, 0, items[i].offset};
    }
    pl->p->bound_bytes = plan_bound(pl, items, n);
}

/* Inside the whole, which may be a part itself. */
static ty_place plan_inside(const planner *pl, ty_val v)
{
    ty_place at = pl->p->place[v];
    if (pl->whole[v] != TY_NONE) {
        at = plan_inside(pl, pl->whole[v]);
        at.offset += pl->part_offset[v];
    }
    return at;
}

/* Values that share memory or are parts follow the one that was placed. */
static void plan_followers(planner *pl)
{
    size_t n = (size_t)ty_graph_n_nodes(pl->f->g) * TY_MAX_RESULTS;
    for (ty_val v = 0; v < n; v++)
        if (pl->shares[v] != v)
            pl->p->place[v] = pl->p->place[pl->shares[v]];
    for (ty_val v = 0; v < n; v++)
        if (pl->whole[v] != TY_NONE)
            pl->p->place[v] = plan_inside(pl, v);
}

static void plan_init(planner *pl, ty_plan *p, const ty_fusion *f)
{
    size_t n = (size_t)ty_graph_n_nodes(f->g) * TY_MAX_RESULTS + 1;
    *pl = (planner){.p = p, .f = f};
    p->place = TY_NEW_ARRAY(&p->arena, ty_place, n);
    p->first = TY_NEW_ARRAY(&p->arena, int, n);
    p->last = TY_NEW_ARRAY(&p->arena, int, n);
    pl->shares = TY_NEW_ARRAY(&p->arena, ty_val, n);
    pl->whole = TY_NEW_ARRAY(&p->arena, ty_val, n);
    pl->part_offset = TY_NEW_ARRAY(&p->arena, int64_t, n);
    for (size_t v = 0; v < n; v++) {
        p->first[v] = p->last[v] = -1;
        pl->shares[v] = (ty_val)v;
        pl->whole[v] = TY_NONE;
    }
}

static int plan_make(const ty_fusion *f, bool delays, ty_plan **out, ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_plan *p = TY_NEW(&arena, ty_plan);
    p->arena = arena;
    p->f = f;
    planner pl;
    plan_init(&pl, p, f);
    for (uint32_t node = 0; node < ty_graph_n_nodes(f->g); node++)
        plan_leaf(&pl, node);
    if (ty_plan_schedule(p, delays, err) < 0) {
        ty_plan_free(p);
        return -1;
    }
    pl.position = TY_NEW_ARRAY(&p->arena, int, f->n_units + 1);
    for (int at = 0; at < p->n_order; at++)
        pl.position[p->order[at]] = at;
    for (int at = 0; at < p->n_order; at++)
        if (f->unit[p->order[at]].kind == TY_UNIT_ASSEMBLY)
            plan_parts_of(&pl, &f->unit[p->order[at]]);
    plan_lifetimes(&pl);
    plan_whole_lifetimes(&pl);
    plan_in_place(&pl);
    plan_exchanges(&pl);
    plan_late(&pl);
    plan_slab(&pl);
    plan_followers(&pl);
    *out = p;
    return 0;
}

/* Where units can be delayed it is tried: results in place and parts of concatenations decide whether it pays. */
int ty_pass_plan(const ty_fusion *f, ty_plan **out, ty_error *err)
{
    ty_plan *late;
    if (plan_make(f, true, &late, err) < 0)
        return -1;
    *out = late;
    if (late->n_delayed == 0)
        return 0;
    if (plan_make(f, false, out, err) < 0) {
        ty_plan_free(late);
        return -1;
    }
    bool pays = late->slab_bytes < (*out)->slab_bytes;
    ty_plan_free(pays ? *out : late);
    *out = pays ? late : *out;
    return 0;
}

void ty_plan_free(ty_plan *p)
{
    if (!p)
        return;
    ty_arena arena = p->arena;
    ty_arena_fini(&arena);
}

ty_place ty_plan_place(const ty_plan *p, ty_val v)
{
    ty_view view = ty_view_of(p->f->g, v);
    ty_place place = p->place[view.base];
    place.offset += view.offset * (int64_t)ty_dtype_bytes((ty_dtype)ty_graph_type(p->f->g, v)->dtype);
    return place;
}

static bool plan_same_place(const ty_plan *p, ty_val a, ty_val b)
{
    ty_place x = ty_plan_place(p, a), y = ty_plan_place(p, b);
    return x.kind == y.kind && x.index == y.index && x.offset == y.offset && x.kind != TY_PLACE_INPUT;
}

void ty_plan_aliases(const ty_plan *p, const ty_kernel *k, uint32_t *alias)
{
    for (int i = 0; i < k->n_buffers; i++) {
        alias[i] = (uint32_t)i;
        for (int j = 0; j < k->n_buffers && !k->buffer[i].written; j++)
            if (k->buffer[j].written && plan_same_place(p, k->buffer[i].val, k->buffer[j].val))
                alias[i] = (uint32_t)j;
    }
}

bool ty_plan_rows_in_place(const ty_plan *p, ty_val v)
{
    ty_place to = ty_plan_place(p, v), from = ty_plan_place(p, ty_fuse_rows_of(p->f->g, v));
    return to.kind == from.kind && to.index == from.index && to.offset == from.offset;
}

bool ty_plan_part_in_place(const ty_plan *p, uint32_t node, int i)
{
    const ty_graph *g = p->f->g;
    ty_place whole = ty_plan_place(p, ty_val_make(node, 0)), part = ty_plan_place(p, ty_graph_in(g, node, i));
    int64_t offset = whole.offset;
    for (int k = 0; k < i; k++)
        offset += plan_bytes(g, ty_graph_in(g, node, k));
    return part.kind == whole.kind && part.index == whole.index && part.offset == offset;
}
