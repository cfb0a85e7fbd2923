/* again.c - what backward computes again because that is nearly free.
 *
 * A value that forward has computed for itself and backward asks for too would be kept in between. If it is a short
 * piece of arithmetic on what backward reads anyway, the kernel that asks computes it on the way: GELU keeps its
 * operand, not the operand's square nor its tanh. Writing a number and reading it back costs about as much as
 * AGAIN_MOST scalar operations on it, so no time is lost.
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
    uint8_t *at_hand;                    /* per node: all that it would be computed from is there in backward */
    int *cost;                           /* per node: scalar operations down to memory */
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

/* Is operand `in` of a value of n elements there in backward, or worth keeping for it? */
static bool again_has(const again *a, ty_val in, int64_t n)
{
    const ty_fusion *f = a->f;
    uint32_t node = ty_val_node(in);
    if (ty_op_row_of(ty_graph_op(f->g, node))->class_ == TY_CLASS_LEAF)
        return true;
    if (!again_is_inline(f, node))
        return a->backward_use[node] || ty_type_elems(ty_graph_type(f->g, in)) * AGAIN_SHARE <= n;
    return a->at_hand[node];
}

static void again_measure(again *a, uint32_t node)
{
    const ty_fusion *f = a->f;
    const ty_node *n = ty_graph_node(f->g, node);
    int64_t sum = ty_op_row_of((ty_op)n->op)->weight, elems = ty_type_elems(ty_graph_type(f->g, ty_val_make(node, 0)));
    a->at_hand[node] = 1;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ty_val in = ty_graph_in(f->g, node, (int)i);
        sum += again_is_inline(f, ty_val_node(in)) ? a->cost[ty_val_node(in)] : 1;
        a->at_hand[node] &= again_has(a, in, elems);
    }
    a->cost[node] = sum > 100000 ? 100000 : (int)sum;
}

static bool again_is_kept(const again *a, uint32_t node)
{
    ty_val v = ty_val_make(node, 0);
    return a->f->in_memory[v] && !a->f->pinned[v] && !a->backward[node] && a->forward_use[node] &&
           a->backward_use[node] && ty_type_elems(ty_graph_type(a->f->g, v)) >= AGAIN_MIN_ELEMS;
}

void ty_fuse_again(ty_fusion *f)
{
    size_t n = (size_t)ty_graph_n_nodes(f->g) + 1;
    again a = {.f = f,
               .backward = TY_NEW_ARRAY(&f->arena, uint8_t, n),
               .forward_use = TY_NEW_ARRAY(&f->arena, uint8_t, n),
               .backward_use = TY_NEW_ARRAY(&f->arena, uint8_t, n),
               .at_hand = TY_NEW_ARRAY(&f->arena, uint8_t, n),
               .cost = TY_NEW_ARRAY(&f->arena, int, n)};
    again_find_uses(&a);
    for (uint32_t node = 0; node + 1 < n; node++) {
        ty_op_class class_ = ty_op_row_of(ty_graph_op(f->g, node))->class_;
        if (!f->live[node] || (class_ != TY_CLASS_LOOP && class_ != TY_CLASS_ELEMENTWISE))
            continue;
        again_measure(&a, node);
        if (again_is_kept(&a, node) && a.at_hand[node] && a.cost[node] <= AGAIN_MOST)
            f->in_memory[ty_val_make(node, 0)] = 0;
    }
}
