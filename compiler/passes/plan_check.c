/* plan_check.c - proves a memory plan by walking it, knowing nothing of how it was made.
 *
 * The slab and the states are sets of byte ranges, each holding the value that was written there last. Writing a value
 * removes all others from its bytes; reading one demands that it is still there. A state is overwritten piece by piece,
 * and what is read of it is often a piece too: of states the bytes that were not overwritten stay.
 */
#include "compiler/passes/plan.h"

#include <string.h>

typedef struct held {
    ty_val v;
    ty_place at; /* of this piece */
    int64_t bytes;
} held;

typedef struct check {
    const ty_plan *p;
    ty_arena *scratch;
    held *held;
    int n, cap;
} check;

static bool check_overlap(const ty_place *a, int64_t a_bytes, const ty_place *b, int64_t b_bytes)
{
    return a->kind == b->kind && a->index == b->index && a->offset < b->offset + b_bytes &&
           b->offset < a->offset + a_bytes;
}

static void check_hold(check *c, ty_val v, ty_place at, int64_t bytes)
{
    if (bytes <= 0)
        return;
    if (c->n == c->cap) {
        int cap = 2 * c->cap + 64;
        held *grown = TY_NEW_ARRAY(c->scratch, held, cap);
        if (c->n)
            memcpy(grown, c->held, sizeof *grown * (size_t)c->n);
        c->held = grown;
        c->cap = cap;
    }
    c->held[c->n++] = (held){v, at, bytes};
}

/* Whatever is held in these bytes is gone; of a state, what lies before and behind them stays. */
static void check_drop(check *c, const ty_place *at, int64_t bytes)
{
    int n = 0, before = c->n;
    for (int i = 0; i < before; i++) {
        held h = c->held[i];
        if (!check_overlap(at, bytes, &h.at, h.bytes)) {
            c->held[n++] = h;
            continue;
        }
        if (h.at.kind != TY_PLACE_STATE)
            continue;
        ty_place behind = h.at;
        behind.offset = at->offset + bytes;
        check_hold(c, h.v, behind, h.at.offset + h.bytes - behind.offset);
        if (h.at.offset < at->offset)
            c->held[n++] = (held){h.v, h.at, at->offset - h.at.offset};
    }
    if (c->n > before)
        memmove(c->held + n, c->held + before, sizeof *c->held * (size_t)(c->n - before));
    c->n -= before - n;
}

/* Parts of a concatenation stay when the whole "is written" over them in place. */
static void check_write(check *c, ty_val v)
{
    int64_t bytes = (int64_t)ty_type_bytes(ty_graph_type(c->p->f->g, v));
    ty_place at = ty_plan_place(c->p, v);
    check_drop(c, &at, bytes);
    check_hold(c, v, at, bytes);
}

/* Are these bytes of v still there? Pieces of one value do not overlap. */
static bool check_holds(const check *c, ty_val v, const ty_place *at, int64_t bytes)
{
    int64_t found = 0;
    for (int i = 0; i < c->n; i++) {
        const held *h = &c->held[i];
        if (h->v != v || !check_overlap(at, bytes, &h->at, h->bytes))
            continue;
        int64_t lo = at->offset > h->at.offset ? at->offset : h->at.offset;
        int64_t hi = at->offset + bytes < h->at.offset + h->bytes ? at->offset + bytes : h->at.offset + h->bytes;
        found += hi - lo;
    }
    return found >= bytes;
}

static int check_read(const check *c, ty_val v, const char *who, ty_error *err)
{
    ty_place at = ty_plan_place(c->p, v);
    const ty_graph *g = c->p->f->g;
    if (at.kind == TY_PLACE_INPUT || at.kind == TY_PLACE_CONST ||
        check_holds(c, ty_view_of(g, v).base, &at, (int64_t)ty_type_bytes(ty_graph_type(g, v))))
        return 0;
    return ty_error_set(err, TY_E_INTERNAL, "memory plan: %%%u (%s) is gone or not there yet when %s reads it",
                        ty_val_node(v), ty_graph_origin_of(g, ty_val_node(v)), who);
}

static int check_bounds(const check *c, ty_val v, ty_error *err)
{
    ty_place at = ty_plan_place(c->p, v);
    int64_t bytes = (int64_t)ty_type_bytes(ty_graph_type(c->p->f->g, v)), limit = c->p->slab_bytes;
    if (at.kind == TY_PLACE_STATE)
        limit = (int64_t)ty_type_bytes(&ty_graph_state(c->p->f->g, (int)at.index)->type);
    if ((at.kind == TY_PLACE_SLAB || at.kind == TY_PLACE_STATE) && at.offset >= 0 && at.offset + bytes <= limit)
        return 0;
    return ty_error_set(err, TY_E_INTERNAL, "memory plan: %%%u lies outside its memory", ty_val_node(v));
}

/* An assembly keeps parts that are in place and copies the others. */
static int check_assembly(check *c, const ty_unit *u, ty_error *err)
{
    const ty_graph *g = c->p->f->g;
    for (uint32_t i = 0; i < ty_graph_node(g, u->node)->n_in; i++)
        if (check_read(c, ty_graph_in(g, u->node, (int)i), "a concatenation", err) < 0)
            return -1;
    ty_val whole = ty_val_make(u->node, 0);
    check_hold(c, whole, ty_plan_place(c->p, whole), (int64_t)ty_type_bytes(ty_graph_type(g, whole)));
    return 0;
}

/* A table of which rows are written elsewhere is copied there before the kernel reads anything. */
static int check_tables(check *c, const ty_unit *u, ty_error *err)
{
    for (int i = 0; i < u->n_roots; i++) {
        ty_val old = ty_fuse_rows_of(c->p->f->g, u->root[i]);
        if (old == TY_NONE || ty_plan_rows_in_place(c->p, u->root[i]))
            continue;
        if (check_read(c, old, "rows of a table", err) < 0)
            return -1;
        check_write(c, u->root[i]);
    }
    return 0;
}

static int check_unit(check *c, const ty_unit *u, ty_error *err)
{
    const ty_graph *g = c->p->f->g;
    if (check_tables(c, u, err) < 0)
        return -1;
    for (int i = 0; i < u->n_loads; i++)
        if (check_read(c, u->load[i], ty_graph_origin_of(g, u->node), err) < 0)
            return -1;
    for (int i = 0; i < u->n_roots; i++)
        if (check_bounds(c, u->root[i], err) < 0)
            return -1;
    if (u->kind == TY_UNIT_ASSEMBLY)
        return check_assembly(c, u, err);
    for (int i = 0; i < u->n_roots; i++)
        check_write(c, u->root[i]);
    for (int i = 0; i < u->n_roots; i++)
        if (check_read(c, u->root[i], "", NULL) < 0)
            return ty_error_set(err, TY_E_INTERNAL, "memory plan: two results of %s share bytes",
                                ty_graph_origin_of(g, u->node));
    return 0;
}

/* What is assigned without being written in place is copied into its state when all units are done. */
static int check_copies(check *c, ty_error *err)
{
    for (int i = 0; i < c->p->n_copies; i++) {
        ty_place to = {TY_PLACE_STATE, c->p->copy[i].state, 0};
        int64_t bytes = (int64_t)ty_type_bytes(ty_graph_type(c->p->f->g, c->p->copy[i].value));
        if (check_read(c, c->p->copy[i].value, "an assign", err) < 0)
            return -1;
        check_drop(c, &to, bytes);
    }
    return 0;
}

/* The caller reads outputs then. */
static int check_end(check *c, ty_error *err)
{
    const ty_graph *g = c->p->f->g;
    if (check_copies(c, err) < 0)
        return -1;
    for (int i = 0; i < ty_graph_n_outputs(g); i++)
        if ((ty_graph_output(g, i)->tapes & c->p->f->tape) &&
            check_read(c, ty_graph_output(g, i)->val, "the caller", err) < 0)
            return -1;
    return 0;
}

int ty_plan_check(const ty_plan *p, ty_error *err)
{
    const ty_graph *g = p->f->g;
    ty_arena scratch;
    ty_arena_init(&scratch);
    check c = {.p = p, .scratch = &scratch};
    for (uint32_t node = 0; node < ty_graph_n_nodes(g); node++) {
        ty_val v = ty_val_make(node, 0);
        if (ty_graph_op(g, node) == TY_OP_STATE)
            check_hold(&c, v, p->place[v], (int64_t)ty_type_bytes(ty_graph_type(g, v)));
    }
    int rc = 0;
    for (int at = 0; at < p->n_order && rc == 0; at++)
        rc = check_unit(&c, &p->f->unit[p->order[at]], err);
    if (rc == 0)
        rc = check_end(&c, err);
    ty_arena_fini(&scratch);
    return rc;
}
