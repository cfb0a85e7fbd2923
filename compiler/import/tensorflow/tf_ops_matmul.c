/* tf_ops_matmul.c - products, einsum. */
#include "compiler/import/einsum.h"
#include "compiler/import/tensorflow/tf_ops.h"

static ty_val turned(tf_ctx *c, ty_val x, bool turn)
{
    int64_t perm[TY_MAX_RANK];
    int rank = tf_rank(c, x);
    if (!turn || rank < 2)
        return x;
    for (int i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return ty_b_transpose(c->g, x, perm);
}

/* arg 1: of batches. */
void tf_op_matmul(tf_ctx *c)
{
    bool batch = c->row->arg;
    ty_val a = tf_in(c, 0), b = tf_in(c, 1);
    if (tf_rank(c, a) < 2 || tf_rank(c, b) < 2) {
        tf_fail(c, TY_E_SHAPE, "both inputs must have 2 dimensions or more");
        return;
    }
    a = turned(c, a, tf_attr_bool(c->node, batch ? "adj_x" : "transpose_a", false));
    b = turned(c, b, tf_attr_bool(c->node, batch ? "adj_y" : "transpose_b", false));
    tf_set(c, 0, ty_b_matmul(c->g, a, b));
}

void tf_op_einsum(tf_ctx *c)
{
    ty_val *in = tf_alloc(c, (size_t)c->n_in, sizeof *in);
    const char *why = NULL;
    for (int i = 0; i < c->n_in; i++)
        in[i] = tf_in(c, i);
    if (c->n_in > TY_EINSUM_MAX_INPUTS) {
        tf_fail(c, TY_E_LIMIT, "at most %d inputs are possible", TY_EINSUM_MAX_INPUTS);
        return;
    }
    tf_set(c, 0, ty_einsum(c->g, tf_text(c, "equation", ""), in, c->n_in, &why));
    if (why)
        tf_fail_attr(c, "equation", "%s", why);
}
