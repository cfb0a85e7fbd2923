/* again.c - what backward computes again because that is nearly free.
 *
 * A value that forward has computed for itself and backward asks for too would be kept in between. If it is a short
 * piece of arithmetic on what backward reads anyway, the kernel that asks computes it on the way: GELU keeps its
 * operand, not the operand's square nor its tanh. Writing a number and reading it back costs about as much as
 * AGAIN_MOST scalar operations on it, so no time is lost.
 *
 * What backward does not read anyway may be kept in the value's place if it is no larger: of a batch norm the
 * convolution's result, in 16 bits perhaps, and not its float32 distance from the mean, which forward then need not
 * write.
 *
 * Forward itself need not write what it can compute from as many bytes that are kept for backward: the sum that a layer
 * norm is about is kept, and so the next residual sum reads that, and not the norm's result.
 */
#include "compiler/passes/fuse.h"

#include "compiler/ops/op.h"
#include "compiler/passes/passes.h"

#include <string.h>

#define AGAIN_MOST      40    /* scalar operations */
#define AGAIN_DEEPEST   200   /* with what they share counted each time: no longer ones are looked at */
#define AGAIN_GUARDS    2     /* more parts are more loops in each kernel that asks */
#define AGAIN_MIN_ELEMS 16384 /* of a value: smaller ones are not worth it */
#define AGAIN_SHARE     16    /* an operand of at most this share of the elements may be kept for it */

typedef struct again {
    ty_fusion *f;
    uint8_t *backward;                   /* per node: reads or is part of the gradient */
    uint8_t *forward_use, *backward_use; /* per node: some node of that kind reads its result */
    uint32_t *last;                      /* per node: the last one that reads its result, by way of inline ones */
    uint32_t begin;                      /* the first node of the gradient */
    int *cost;                           /* per node: scalar operations down to memory, with what is shared each time */
    int *guards;                         /* per node: ty_fuse_guards */
    uint32_t *seen;                      /* per node: the latest value whose operands were looked at, and one */
} again;

/* From the end: who reads in backward, itself or inside a kernel of backward. */
static void again_find_uses(again *a)
{
    const ty_fusion *f = a->f;
    for (uint32_t node = ty_graph_n_nodes(f->g); node-- > 0;) {
        if (!f->live[node])
            continue;
        const ty_node *n = ty_graph_node(f->g, node);
        bool own = ty_origin_is_gradient(ty_graph_origin_of(f->g, node));
        bool reads = own || (a->backward_use[node] && ty_fuse_is_inline(f, node));
        uint32_t last = ty_fuse_is_inline(f, node) && a->last[node] > node ? a->last[node] : node;
        a->backward[node] = own;
        a->begin = own ? node : a->begin;
        for (uint32_t i = 0; i < n->n_in; i++) {
            ty_val in = ty_graph_in(f->g, node, (int)i);
            if (in == TY_NONE)
                continue;
            a->backward_use[ty_val_node(in)] |= reads;
            a->forward_use[ty_val_node(in)] |= !own;
            a->last[ty_val_node(in)] = last > a->last[ty_val_node(in)] ? last : a->last[ty_val_node(in)];
        }
    }
}

static void again_measure(again *a, uint32_t node)
{
    const ty_fusion *f = a->f;
    const ty_node *n = ty_graph_node(f->g, node);
    int64_t sum = ty_op_row_of((ty_op)n->op)->weight;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ty_val in = ty_graph_in(f->g, node, (int)i);
        if (in != TY_NONE)
            sum += ty_fuse_is_inline(f, ty_val_node(in)) ? a->cost[ty_val_node(in)] : 1;
    }
    a->cost[node] = sum > 100000 ? 100000 : (int)sum;
    a->guards[node] = ty_fuse_guards(f, node, a->guards);
}

static bool again_is_kept(const again *a, uint32_t node)
{
    ty_val v = ty_val_make(node, 0);
    return a->f->in_memory[v] && !a->f->pinned[v] && !a->backward[node] && a->forward_use[node] &&
           a->backward_use[node] && ty_type_elems(ty_graph_type(a->f->g, v)) >= AGAIN_MIN_ELEMS;
}

/* Written by forward for itself alone, while it still has all that it keeps: what is computed again in the middle of
 * backward, to save memory, has not. */
static bool again_is_passed_on(const again *a, uint32_t node)
{
    ty_val v = ty_val_make(node, 0);
    return a->last[node] < a->begin && a->f->in_memory[v] && !a->f->pinned[v] && !a->backward[node] &&
           a->forward_use[node] && !a->backward_use[node] &&
           ty_type_elems(ty_graph_type(a->f->g, v)) >= AGAIN_MIN_ELEMS;
}

typedef struct again_reads {
    int64_t all, missing; /* bytes; of those, what backward does not read */
    int operations;       /* each once */
    bool by_number;       /* rows of a table are among it */
} again_reads;

/* A piece of a leaf: a weight in its arena. */
static bool again_is_part(const ty_graph *g, ty_val v)
{
    ty_val base = v == TY_NONE ? v : ty_view_of(g, v).base;
    return base != v && ty_op_row_of(ty_graph_op(g, ty_val_node(base)))->class_ == TY_CLASS_LEAF;
}

/* What `value`, of n elements, is computed from, as far as `node` is part of it. Small operands do not count. */
static void again_look(again *a, uint32_t value, uint32_t node, int64_t n, again_reads *reads)
{
    const ty_graph *g = a->f->g;
    for (uint32_t i = 0; i < ty_graph_node(g, node)->n_in; i++) {
        ty_val in = ty_graph_in(g, node, (int)i);
        uint32_t from = in == TY_NONE ? node : ty_val_node(in);
        bool there = ty_op_row_of(ty_graph_op(g, from))->class_ == TY_CLASS_LEAF || a->backward_use[from];
        bool part = again_is_part(g, in);
        if (in == TY_NONE || a->seen[from] == value + 1)
            continue;
        a->seen[from] = value + 1;
        reads->by_number |= ty_graph_op(g, from) == TY_OP_GATHER || ty_graph_op(g, from) == TY_OP_TAKE;
        reads->operations += ty_fuse_is_inline(a->f, from) && !part ? ty_op_row_of(ty_graph_op(g, from))->weight : 1;
        if (ty_fuse_is_inline(a->f, from) && !part) {
            again_look(a, value, from, n, reads);
        } else if (ty_type_elems(ty_graph_type(g, in)) * AGAIN_SHARE > n) {
            reads->all += (int64_t)ty_type_bytes(ty_graph_type(g, in));
            reads->missing += there || part ? 0 : (int64_t)ty_type_bytes(ty_graph_type(g, in));
        }
    }
}

static bool again_pays(again *a, uint32_t node)
{
    const ty_type *type = ty_graph_type(a->f->g, ty_val_make(node, 0));
    int64_t bytes = (int64_t)ty_type_bytes(type);
    again_reads reads = {.operations = ty_op_row_of(ty_graph_op(a->f->g, node))->weight};
    if ((!again_is_kept(a, node) && !again_is_passed_on(a, node)) || a->cost[node] > AGAIN_DEEPEST ||
        a->guards[node] > AGAIN_GUARDS || ty_fuse_is_repeated(a->cost[node], a->f->repeats[ty_val_make(node, 0)]))
        return false;
    again_look(a, node, node, ty_type_elems(type), &reads);
    if (reads.operations > AGAIN_MOST)
        return false;
    return again_is_kept(a, node) ? reads.missing <= bytes
                                  : reads.missing == 0 && reads.all <= bytes && !reads.by_number;
}

/* Backward reads what the value is computed from: others that are computed from it find it there. */
static void again_make_inline(again *a, uint32_t node)
{
    const ty_graph *g = a->f->g;
    a->f->in_memory[ty_val_make(node, 0)] = 0;
    for (uint32_t i = 0; i < ty_graph_node(g, node)->n_in; i++) {
        ty_val in = ty_graph_in(g, node, (int)i);
        if (in == TY_NONE || a->backward_use[ty_val_node(in)])
            continue;
        a->backward_use[ty_val_node(in)] = 1;
        if (ty_fuse_is_inline(a->f, ty_val_node(in)))
            again_make_inline(a, ty_val_node(in));
    }
}

void ty_fuse_again(ty_fusion *f)
{
    size_t n = (size_t)ty_graph_n_nodes(f->g) + 1;
    again a = {.f = f,
               .backward = TY_NEW_ARRAY(&f->arena, uint8_t, n),
               .forward_use = TY_NEW_ARRAY(&f->arena, uint8_t, n),
               .backward_use = TY_NEW_ARRAY(&f->arena, uint8_t, n),
               .last = TY_NEW_ARRAY(&f->arena, uint32_t, n),
               .begin = ty_graph_n_nodes(f->g),
               .cost = TY_NEW_ARRAY(&f->arena, int, n),
               .guards = TY_NEW_ARRAY(&f->arena, int, n),
               .seen = TY_NEW_ARRAY(&f->arena, uint32_t, n)};
    again_find_uses(&a);
    for (uint32_t node = 0; node + 1 < n; node++) {
        ty_op_class class_ = ty_op_row_of(ty_graph_op(f->g, node))->class_;
        if (!f->live[node] || (class_ != TY_CLASS_LOOP && class_ != TY_CLASS_ELEMENTWISE))
            continue;
        again_measure(&a, node);
        if (again_pays(&a, node))
            again_make_inline(&a, node);
    }
}
