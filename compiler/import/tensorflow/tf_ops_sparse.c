/* tf_ops_sparse.c - sparse tensors where they meet dense ones: as a list of places and one of values. */
#include "compiler/import/tensorflow/tf_ops.h"

/* Column `axis` of places [n, 2], as [n]. */
static ty_val sparse_places(tf_ctx *c, ty_val places, int axis)
{
    int64_t n = tf_dim(c, places, 0);
    return ty_b_reshape(c->g, ty_b_slice_axis(c->g, places, 1, axis, axis + 1), 1, &n);
}

/* places [n, 2], values [n], the shape of the sparse matrix, a dense one: their product. */
void tf_op_sparse_matmul(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val places = tf_in(c, 0), values = tf_in(c, 1), b = tf_in(c, 3);
    const int64_t *shape;
    int64_t n;
    if (!tf_const_ints(c, 2, &shape, &n))
        return;
    if (n != 2 || tf_rank(c, places) != 2 || tf_dim(c, places, 1) != 2 || tf_rank(c, values) != 1 ||
        tf_rank(c, b) != 2 || tf_dim(c, values, 0) != tf_dim(c, places, 0)) {
        tf_fail(c, TY_E_SHAPE, "expected places [n, 2], values [n], a shape of two and a matrix");
        return;
    }
    bool turned = tf_attr_bool(c->node, "adjoint_a", false);
    if (tf_attr_bool(c->node, "adjoint_b", false))
        b = ty_b_transpose(g, b, (int64_t[]){1, 0});
    int64_t dim[] = {shape[turned], tf_dim(c, b, 1)};
    if (shape[!turned] != tf_dim(c, b, 0)) {
        tf_fail_input(c, 3, TY_E_SHAPE, "has %lld rows, the sparse matrix %lld columns", (long long)tf_dim(c, b, 0),
                      (long long)shape[!turned]);
        return;
    }
    ty_val row = tf_index(c, sparse_places(c, places, turned), dim[0]);
    ty_val column = tf_index(c, sparse_places(c, places, !turned), shape[!turned]);
    if (row == TY_NONE || column == TY_NONE || !tf_shape_ok(c, 2, dim))
        return;
    ty_val part = ty_b_mul(g, ty_b_gather(g, b, column, 0), ty_b_unsqueeze(g, values, 1));
    tf_set(c, 0, ty_b_scatter(g, ty_b_full(g, tf_dtype_of(c, b), 2, dim, 0), row, part, 0, TY_SUM));
}

/* places [n, rank] or [n] (of one axis), the shape, values, what is elsewhere. */
void tf_op_sparse_to_dense(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val places = tf_in(c, 0), values = tf_in(c, 2);
    const int64_t *dim;
    int64_t n;
    if (!tf_const_ints(c, 1, &dim, &n) || !tf_shape_ok(c, n, dim))
        return;
    while (tf_rank(c, places) < 2)
        places = ty_b_unsqueeze(g, places, tf_rank(c, places));
    ty_val whole = ty_b_broadcast(g, tf_in(c, 3), (int)n, dim);
    values = ty_b_broadcast(g, values, 1, tf_type(c, places)->dim);
    tf_set(c, 0, tf_scatter_tuples(c, whole, places, values, TY_SET));
}
