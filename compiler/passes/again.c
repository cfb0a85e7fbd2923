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
 */
#include "compiler/passes/fuse.h"

#include "compiler/ops/op.h"
#include "compiler/passes/passes.h"

#include <string.h>

#define AGAIN_MOST      40    /* scalar operations, what they share counted each time */
#define AGAIN_MIN_ELEMS 16384 /* of a value: smaller ones are not worth it */
#define AGAIN_SHARE     16    /* an operand of at most this share of the elements may be kept for it */

typedef struct again {
    ty_fusion *f;
    uint8_t *backward;                   /* per node: reads or is part of the gradient */
    uint8_t *forward_use, *backward_use; /* per node: some node of that kind reads its result */
    int *cost;                           /* per node: scalar operations down to memory */
    uint32_t *seen;                      /* per node: the latest value whose operands were looked at, and one */
} again;

static bool again_is_inline(const ty_fusion *f, uint32_t node)
{
    ty_op_class class_ = ty_op_row_of(ty_graph_op(f->g, node))->class_;
    return (class_ == TY_CLASS_LOOP || class_ == TY_CLASS_ELEMENTWISE) && !f->in_memory[ty_val_make(node, 0)];
}

/* From the end: who reads in backward, itself or inside a kernel of backward. */
static void again_find_uses(again *a)
{
    const ty_fusion *f = a->f;
    for (uint32_t node = ty_graph_n_nodes(f->g); node-- > 0;) {
        if (!f->live[node])
            continue;
        const ty_node *n = ty_graph_node(f->g, node);
        bool own = ty_origin_is_gradient(ty_graph_origin_of(f->g, node));
        bool reads = own || (a->backward_use[node] && again_is_inline(f, node));
        a->backward[node] = own;
        for (uint32_t i = 0; i < n->n_in; i++) {
            ty_val in = ty_graph_in(f->g, node, (int)i);
            if (in == TY_NONE)
                continue;
            a->backward_use[ty_val_node(in)] |= reads;
            a->forward_use[ty_val_node(in)] |= !own;
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
            sum += again_is_inline(f, ty_val_node(in)) ? a->cost[ty_val_node(in)] : 1;
    }
    a->cost[node] = sum > 100000 ? 100000 : (int)sum;
}

static bool again_is_kept(const again *a, uint32_t node)
{
    ty_val v = ty_val_make(node, 0);
    return a->f->in_memory[v] && !a->f->pinned[v] && !a->backward[node] && a->forward_use[node] &&
           a->backward_use[node] && ty_type_elems(ty_graph_type(a->f->g, v)) >= AGAIN_MIN_ELEMS;
}

/* Bytes that have to be kept for backward to compute `value`, of n elements: what `node` is computed from and backward
 * does not read. Small ones do not count. As deep as AGAIN_MOST operations go. */
static int64_t again_missing(again *a, uint32_t value, uint32_t node, int64_t n)
{
    const ty_graph *g = a->f->g;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < ty_graph_node(g, node)->n_in; i++) {
        ty_val in = ty_graph_in(g, node, (int)i);
        uint32_t from = in == TY_NONE ? node : ty_val_node(in);
        bool there = ty_op_row_of(ty_graph_op(g, from))->class_ == TY_CLASS_LEAF || a->backward_use[from];
        if (in == TY_NONE || a->seen[from] == value + 1)
            continue;
        a->seen[from] = value + 1;
        if (again_is_inline(a->f, from))
            bytes += again_missing(a, value, from, n);
        else if (!there && ty_type_elems(ty_graph_type(g, in)) * AGAIN_SHARE > n)
            bytes += (int64_t)ty_type_bytes(ty_graph_type(g, in));
    }
    return bytes;
}

static bool again_pays(again *a, uint32_t node)
{
    const ty_type *type = ty_graph_type(a->f->g, ty_val_make(node, 0));
    return a->cost[node] <= AGAIN_MOST &&
           again_missing(a, node, node, ty_type_elems(type)) <= (int64_t)ty_type_bytes(type);
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
        if (again_is_inline(a->f, ty_val_node(in)))
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
               .cost = TY_NEW_ARRAY(&f->arena, int, n),
               .seen = TY_NEW_ARRAY(&f->arena, uint32_t, n)};
    again_find_uses(&a);
    for (uint32_t node = 0; node + 1 < n; node++) {
        ty_op_class class_ = ty_op_row_of(ty_graph_op(f->g, node))->class_;
        if (!f->live[node] || (class_ != TY_CLASS_LOOP && class_ != TY_CLASS_ELEMENTWISE))
            continue;
        again_measure(&a, node);
        if (again_is_kept(&a, node) && again_pays(&a, node))
            again_make_inline(&a, node);
    }
}
