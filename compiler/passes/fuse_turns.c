/* fuse_turns.c - transposes that are a copy of their own.
 *
 * A kernel that reads a matrix across its rows meets a new line of the cache with each element, and where rows are a
 * power of two long, lines that push each other out; the next row asks for all of them again. A copy in tiles
 * (compiler/target/cpu/turn.h) reads and writes each line once. So, on a host, what is turned is stored, turned by such
 * a copy, and read as it lies then. In a gMLP, which mixes tokens on one side of a gate, the kernels of a block with
 * its gradient take 3.7 in place of 24 ms (Zen 4).
 */
#include "compiler/passes/fuse.h"

#include "compiler/target/cpu/turn.h"

/* The last axis that is longer than 1; -1: there is none. */
static int turns_last(const ty_type *t)
{
    int i = t->rank - 1;
    while (i >= 0 && t->dim[i] == 1)
        i--;
    return i;
}

/* What lies in memory below movements that a copy does on its way. */
static ty_val turns_source(const ty_graph *g, ty_val v)
{
    for (;;) {
        ty_op op = ty_graph_op(g, ty_val_node(v));
        if (op != TY_OP_RESHAPE && op != TY_OP_SLICE && op != TY_OP_AGAIN)
            return v;
        v = ty_graph_in(g, ty_val_node(v), 0);
    }
}

/* Elements that lie side by side in a tensor of these extents and, in their order, somewhere in the other one: down to
 * axis `last` of it. from[]: the other one's axis for each. */
static int64_t turns_run(const ty_type *t, const int64_t *from, int last)
{
    int64_t run = t->dim[last];
    for (int i = last; i > 0 && from[i - 1] == from[i] - 1; i--)
        run *= t->dim[i - 1];
    return run;
}

static bool turns_is_turn(const ty_fusion *f, uint32_t node)
{
    const ty_graph *g = f->g;
    if (ty_graph_op(g, node) != TY_OP_TRANSPOSE)
        return false;
    const ty_type *y = ty_graph_type(g, ty_val_make(node, 0)), *x = ty_graph_type(g, ty_graph_in(g, node, 0));
    const int64_t *perm = ty_graph_attr(g, node)->lo;
    int64_t back[TY_MAX_RANK];
    int to = turns_last(y), from = turns_last(x);
    for (int i = 0; i < y->rank; i++)
        back[perm[i]] = i;
    ty_op source = ty_graph_op(g, ty_val_node(turns_source(g, ty_graph_in(g, node, 0))));
    return to >= 0 && perm[to] != from && turns_run(y, perm, to) >= TY_TURN_TILE &&
           turns_run(x, back, from) >= TY_TURN_TILE && ty_turn_has((ty_dtype)y->dtype) &&
           ty_type_elems(y) >= f->limits.large && source != TY_OP_BROADCAST && source != TY_OP_TRANSPOSE &&
           source != TY_OP_CONST && source != TY_OP_IOTA &&
           (source != TY_OP_CAST || ty_dtype_bytes((ty_dtype)y->dtype) == 2);
}

void ty_fuse_find_turns(ty_fusion *f)
{
    uint32_t n = ty_graph_n_nodes(f->g);
    f->turned = TY_NEW_ARRAY(&f->arena, uint8_t, n + 1);
    for (uint32_t node = 0; node < n && !f->on_gpu; node++) {
        if (!f->live[node] || !turns_is_turn(f, node))
            continue;
        ty_val v[2] = {ty_val_make(node, 0), turns_source(f->g, ty_graph_in(f->g, node, 0))};
        for (int i = 0; i < 2; i++)
            f->in_memory[v[i]] = f->pinned[v[i]] = 1;
        f->turned[node] = 1;
    }
}

bool ty_fuse_is_turned(const ty_fusion *f, const ty_unit *u)
{
    return u->n_roots == 1 && u->n_reduces == 0 && f->turned[ty_val_node(u->root[0])];
}
