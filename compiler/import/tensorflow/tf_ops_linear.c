/* tf_ops_linear.c - matrices that are inverted, solved for and taken apart. */
#include "compiler/import/linear.h"
#include "compiler/import/tensorflow/tf_ops.h"

static bool linear_ok(tf_ctx *c)
{
    if (!ty_linear_fits(c->g, tf_in(c, 0)))
        tf_fail_input(c, 0, TY_E_UNSUPPORTED, "must hold square matrices of up to %d x %d", TY_LINEAR_MOST,
                      TY_LINEAR_MOST);
    return !c->failed;
}

/* Of real numbers the adjoint is the transpose. */
static ty_val linear_adjoint(tf_ctx *c, ty_val a)
{
    return tf_attr_bool(c->node, "adjoint", false) ? ty_linear_turned(c->g, a) : a;
}

void tf_op_matrix_inverse(tf_ctx *c)
{
    if (linear_ok(c))
        tf_set(c, 0, ty_linear_inverse(c->g, linear_adjoint(c, tf_in(c, 0))));
}

void tf_op_matrix_determinant(tf_ctx *c)
{
    if (linear_ok(c))
        tf_set(c, 0, ty_linear_determinant(c->g, tf_in(c, 0)));
}

/* sign, log |det| */
void tf_op_log_matrix_determinant(tf_ctx *c)
{
    ty_val size, sign;
    if (!linear_ok(c))
        return;
    ty_linear_log_determinant(c->g, tf_in(c, 0), &size, &sign);
    tf_set(c, 0, sign);
    tf_set(c, 1, size);
}

/* matrix, right-hand sides [.., n, k]; arg 1: of a triangle, what is beside it counts as 0. */
void tf_op_matrix_solve(tf_ctx *c)
{
    if (!linear_ok(c))
        return;
    ty_val a = tf_in(c, 0);
    if (c->row->arg)
        a = ty_linear_triangle(c->g, a, tf_attr_bool(c->node, "lower", true));
    tf_set(c, 0, ty_b_matmul(c->g, ty_linear_inverse(c->g, linear_adjoint(c, a)), tf_in(c, 1)));
}

void tf_op_cholesky(tf_ctx *c)
{
    if (linear_ok(c))
        tf_set(c, 0, ty_linear_cholesky(c->g, tf_in(c, 0)));
}
