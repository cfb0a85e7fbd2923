/* adapt.c - see adapt.h. A matrix may be read as it lies or turned, by either side of a product. */
#include "compiler/passes/adapt.h"

#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"

#include <stdlib.h>
#include <string.h>

typedef struct adapt_pass {
    const ty_graph *in;
    ty_clone clone;
    uint8_t *needed;     /* by node */
    ty_adapter **of;     /* by node: the adapter of a matrix that is an input, or such an input turned; else NULL */
    bool *is_turned;     /* by node */
    ty_adapter *adapter; /* [n] */
    int n;
} adapt_pass;

static bool adapt_turns(const ty_graph *g, uint32_t id)
{
    const ty_attr *attr = ty_graph_attr(g, id);
    return ty_graph_op(g, id) == TY_OP_TRANSPOSE && ty_graph_type(g, ty_val_make(id, 0))->rank == 2 && attr->lo[0] == 1;
}

/* Which nodes are such matrices. */
static void adapt_find(adapt_pass *p, uint32_t id)
{
    if (ty_graph_op(p->in, id) == TY_OP_INPUT) {
        for (int i = 0; i < p->n; i++)
            if (ty_graph_attr(p->in, id)->index == p->adapter[i].weight)
                p->of[id] = &p->adapter[i];
    } else if (adapt_turns(p->in, id)) {
        uint32_t from = ty_val_node(ty_graph_in(p->in, id, 0));
        p->of[id] = p->of[from];
        p->is_turned[id] = !p->is_turned[from];
    }
}

/* The number of the operand that has an adapter, or -1. */
static int adapt_side(const adapt_pass *p, uint32_t id)
{
    if (ty_graph_op(p->in, id) != TY_OP_DOT || ty_graph_node(p->in, id)->n_in != 2)
        return -1;
    return p->of[ty_val_node(ty_graph_in(p->in, id, 1))] ? 1 : p->of[ty_val_node(ty_graph_in(p->in, id, 0))] ? 0 : -1;
}

static void adapt_note_readers(adapt_pass *p, uint32_t id)
{
    int side = adapt_side(p, id);
    for (uint32_t k = 0; k < ty_graph_node(p->in, id)->n_in; k++) {
        ty_val v = ty_graph_in(p->in, id, (int)k);
        ty_adapter *a = v == TY_NONE ? NULL : p->of[ty_val_node(v)];
        if (a && (int)k != side && !adapt_turns(p->in, id))
            a->is_read_by_others = true;
    }
}

/* x W, or x W' where columns are summed over: side 1. */
static ty_val adapt_behind(ty_graph *g, ty_val x, bool turned_x, ty_val left, ty_val right, bool sums_rows)
{
    ty_val narrow = ty_b_dot(g, x, sums_rows ? left : right, turned_x, !sums_rows);
    return ty_b_dot(g, narrow, sums_rows ? right : left, false, !sums_rows);
}

/* W x, or W' x: side 0. */
static ty_val adapt_in_front(ty_graph *g, ty_val x, bool turned_x, ty_val left, ty_val right, bool sums_rows)
{
    ty_val narrow = ty_b_dot(g, sums_rows ? left : right, x, sums_rows, turned_x);
    return ty_b_dot(g, sums_rows ? right : left, narrow, sums_rows, false);
}

static void adapt_product(adapt_pass *p, uint32_t id, int side, const ty_val *bound)
{
    ty_graph *to = p->clone.to;
    uint32_t matrix = ty_val_node(ty_graph_in(p->in, id, side)), flags = ty_graph_attr(p->in, id)->flags;
    ty_adapter *a = p->of[matrix];
    bool ta = flags & TY_DOT_TRANS_A, tb = flags & TY_DOT_TRANS_B;
    /* What is summed over are rows of the operand b as it lies, columns of a; of W, if that is how it lies. */
    bool sums_rows = (side == 1 ? !tb : ta) != p->is_turned[matrix];
    ty_val x = p->clone.map[ty_graph_in(p->in, id, 1 - side)];
    ty_val left = bound[a->left], right = bound[a->right];
    ty_clone_node(&p->clone, id);
    ty_val product = p->clone.map[ty_val_make(id, 0)];
    ty_val more =
        side == 1 ? adapt_behind(to, x, ta, left, right, sums_rows) : adapt_in_front(to, x, tb, left, right, sums_rows);
    p->clone.map[ty_val_make(id, 0)] = ty_b_add(to, product, ty_b_mul_s(to, more, a->scale));
    a->sums_rows = a->is_met ? a->sums_rows : sums_rows;
    a->is_met = true;
}

static void adapt_mark(adapt_pass *p, uint32_t n, const ty_val *held, int n_held)
{
    for (int i = 0; i < n_held; i++)
        if (held[i] != TY_NONE)
            p->needed[ty_val_node(held[i])] = 1;
    for (uint32_t id = n; id-- > 0;)
        for (uint32_t k = 0; p->needed[id] && k < ty_graph_node(p->in, id)->n_in; k++)
            if (ty_graph_in(p->in, id, (int)k) != TY_NONE)
                p->needed[ty_val_node(ty_graph_in(p->in, id, (int)k))] = 1;
}

static void adapt_carry_over(adapt_pass *p, uint32_t n, const ty_val *bound)
{
    for (uint32_t id = 0; id < n && !ty_graph_failed(p->clone.to, NULL); id++) {
        if (!p->needed[id])
            continue;
        adapt_find(p, id);
        adapt_note_readers(p, id);
        int side = adapt_side(p, id);
        bool is_matrix = side >= 0 && ty_graph_type(p->in, ty_val_make(id, 0))->rank == 2;
        if (ty_graph_op(p->in, id) == TY_OP_INPUT)
            p->clone.map[ty_val_make(id, 0)] = bound[ty_graph_attr(p->in, id)->index];
        else if (is_matrix)
            adapt_product(p, id, side, bound);
        else
            ty_clone_node(&p->clone, id);
    }
    ty_graph_origin(p->clone.to, "");
}

int ty_pass_adapt(const ty_graph *in, ty_graph *to, const ty_val *bound, ty_adapter *adapters, int n_adapters,
                  ty_val *held, int n_held, ty_error *err)
{
    if (ty_graph_failed(in, err) || ty_graph_failed(to, err))
        return -1;
    uint32_t n = ty_graph_n_nodes(in);
    ty_arena a;
    ty_arena_init(&a);
    adapt_pass p = {.in = in,
                    .clone = {.from = in, .to = to, .map = TY_NEW_ARRAY(&a, ty_val, 4 * (size_t)n + 1)},
                    .needed = TY_NEW_ARRAY(&a, uint8_t, n + 1),
                    .of = TY_NEW_ARRAY(&a, ty_adapter *, n + 1),
                    .is_turned = TY_NEW_ARRAY(&a, bool, n + 1),
                    .adapter = adapters,
                    .n = n_adapters};
    for (size_t i = 0; i < 4 * (size_t)n; i++)
        p.clone.map[i] = TY_NONE;
    adapt_mark(&p, n, held, n_held);
    adapt_carry_over(&p, n, bound);
    int rc = ty_graph_failed(to, err) ? -1 : 0;
    for (int i = 0; i < n_held && rc == 0; i++)
        held[i] = held[i] == TY_NONE ? TY_NONE : p.clone.map[held[i]];
    ty_arena_fini(&a);
    return rc;
}
