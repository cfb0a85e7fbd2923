/* tf_ops_loss.c - losses with their gradients as a second result, and what counts right answers. */
#include "compiler/import/tensorflow/tf_ops.h"

/* logits [R, C], labels [R] -> loss [R], gradient of its sum [R, C] */
void tf_op_sparse_cross_entropy(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0), labels = ty_b_cast(g, tf_in(c, 1), TY_I64), in[] = {x, labels};
    ty_attr a = {.index = TY_XENT_IGNORES_NONE};
    if (tf_rank(c, x) != 2 || tf_rank(c, labels) != 1) {
        tf_fail(c, TY_E_SHAPE, "logits must have 2 dimensions and labels one");
        return;
    }
    tf_set(c, 0, ty_graph_emit(g, TY_OP_XENT, &a, in, 2));
    ty_type classes = ty_type_make(TY_I64, 2, tf_type(c, x)->dim);
    ty_val hit = ty_b_eq(g, ty_b_iota(g, classes, 1), ty_b_unsqueeze(g, labels, 1));
    tf_set(c, 1, ty_b_sub(g, ty_b_softmax(g, x, 1, false), ty_b_cast(g, hit, tf_dtype_of(c, x))));
}

/* logits, labels [R, C] (either may have one row for all) -> loss [R], gradient [R, C] */
void tf_op_cross_entropy(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0), y = tf_in(c, 1);
    if (tf_rank(c, x) != 2 || tf_rank(c, y) != 2) {
        tf_fail(c, TY_E_SHAPE, "logits and labels must have 2 dimensions");
        return;
    }
    ty_val term = ty_b_mul(g, y, ty_b_softmax(g, x, 1, true));
    tf_set(c, 0, ty_b_neg(g, ty_b_sum(g, term, 2, false)));
    tf_set(c, 1, ty_b_sub(g, ty_b_softmax(g, x, 1, false), y));
}

void tf_op_l2_loss(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    tf_set(c, 0, ty_b_mul_s(c->g, ty_b_sum(c->g, ty_b_square(c->g, x), ty_b_all_axes(c->g, x), false), 0.5));
}

/* predictions [R, C], targets [R] -> bool [R]: fewer than k predictions are above the target's. arg 1: k is an input.
 */
void tf_op_in_top_k(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0), target = ty_b_cast(g, tf_in(c, 1), TY_I64);
    int64_t k = tf_attr_int(c->node, "k", 1);
    if (c->row->arg && !tf_const_int(c, 2, &k))
        return;
    ty_val own = ty_b_take(g, x, ty_b_unsqueeze(g, target, 1), 1);
    ty_val above = ty_b_sum(g, ty_b_cast(g, ty_b_lt(g, own, x), TY_I32), 2, false);
    tf_set(c, 0, ty_b_lt(g, above, ty_b_full_like(g, above, (double)k)));
}
