/* tf_ops_act.c - activations and their gradients, as formulas of what TensorFlow keeps: inputs or results. */
#include "compiler/import/tensorflow/tf_ops.h"

static const double selu_scale = 1.0507009873554804934193349852946,
                    selu_scale_alpha = 1.7580993408473768599402175208123;

static ty_val zero_like(tf_ctx *c, ty_val x)
{
    return ty_b_full_like(c->g, x, 0);
}

void tf_op_relu(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    tf_set(c, 0, tf_is_float(c, x) ? ty_b_relu(c->g, x) : ty_b_max(c->g, x, zero_like(c, x)));
}

/* No slope at either bound. */
void tf_op_relu6(tf_ctx *c)
{
    ty_val x = tf_in(c, 0), six = ty_b_full_like(c->g, x, 6);
    tf_set(c, 0, ty_b_select(c->g, ty_b_le(c->g, six, x), six, ty_b_relu(c->g, x)));
}

void tf_op_leaky_relu(tf_ctx *c)
{
    ty_val x = tf_in(c, 0), low = ty_b_mul_s(c->g, x, tf_attr_float(c->node, "alpha", 0.2));
    tf_set(c, 0, ty_b_select(c->g, ty_b_lt(c->g, zero_like(c, x), x), x, low));
}

/* exp(x) - 1 below 0, times `low`; above, x times `high`. */
static ty_val elu(tf_ctx *c, ty_val x, double low, double high)
{
    ty_graph *g = c->g;
    ty_val zero = zero_like(c, x), bent = ty_b_unary(g, TY_OP_EXPM1, ty_b_min(g, x, zero));
    return ty_b_select(g, ty_b_lt(g, x, zero), ty_b_mul_s(g, bent, low), ty_b_mul_s(g, x, high));
}

void tf_op_elu(tf_ctx *c)
{
    tf_set(c, 0, elu(c, tf_in(c, 0), 1, 1));
}

void tf_op_selu(tf_ctx *c)
{
    tf_set(c, 0, elu(c, tf_in(c, 0), selu_scale_alpha, selu_scale));
}

void tf_op_sigmoid(tf_ctx *c)
{
    tf_set(c, 0, ty_b_sigmoid(c->g, tf_in(c, 0)));
}

void tf_op_softplus(tf_ctx *c)
{
    tf_set(c, 0, ty_b_softplus(c->g, tf_in(c, 0)));
}

void tf_op_softsign(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    tf_set(c, 0, ty_b_div(c->g, x, ty_b_add_s(c->g, ty_b_unary(c->g, TY_OP_ABS, x), 1)));
}

/* arg 1: its logarithm. */
void tf_op_softmax(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    if (tf_rank(c, x) < 1)
        tf_fail_input(c, 0, TY_E_SHAPE, "must have a dimension");
    else
        tf_set(c, 0, ty_b_softmax(c->g, x, tf_rank(c, x) - 1, c->row->arg));
}

/* ---- gradients of what keeps its input: dy, x -------------------------------------------------------------------- */

void tf_op_relu_grad(tf_ctx *c)
{
    ty_val dy = tf_in(c, 0), x = tf_in(c, 1);
    tf_set(c, 0, ty_b_select(c->g, ty_b_lt(c->g, zero_like(c, x), x), dy, zero_like(c, dy)));
}

void tf_op_relu6_grad(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val dy = tf_in(c, 0), x = tf_in(c, 1);
    ty_val inside = ty_b_binary(g, TY_OP_AND, ty_b_lt(g, zero_like(c, x), x), ty_b_lt(g, x, ty_b_full_like(g, x, 6)));
    tf_set(c, 0, ty_b_select(g, inside, dy, zero_like(c, dy)));
}

void tf_op_leaky_relu_grad(tf_ctx *c)
{
    ty_val dy = tf_in(c, 0), x = tf_in(c, 1), low = ty_b_mul_s(c->g, dy, tf_attr_float(c->node, "alpha", 0.2));
    tf_set(c, 0, ty_b_select(c->g, ty_b_lt(c->g, zero_like(c, x), x), dy, low));
}

void tf_op_softplus_grad(tf_ctx *c)
{
    tf_set(c, 0, ty_b_mul(c->g, tf_in(c, 0), ty_b_sigmoid(c->g, tf_in(c, 1))));
}

void tf_op_softsign_grad(tf_ctx *c)
{
    ty_val x = tf_in(c, 1);
    tf_set(c, 0, ty_b_div(c->g, tf_in(c, 0), ty_b_square(c->g, ty_b_add_s(c->g, ty_b_unary(c->g, TY_OP_ABS, x), 1))));
}

/* dy, y: arg 1 selu. */
void tf_op_elu_grad(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val dy = tf_in(c, 0), y = tf_in(c, 1);
    ty_val low = ty_b_mul(g, dy, ty_b_add_s(g, y, c->row->arg ? selu_scale_alpha : 1));
    ty_val high = c->row->arg ? ty_b_mul_s(g, dy, selu_scale) : dy;
    tf_set(c, 0, ty_b_select(g, ty_b_lt(g, y, zero_like(c, y)), low, high));
}

/* ---- gradients of what keeps its result: y, dy ------------------------------------------------------------------- */

void tf_op_tanh_grad(tf_ctx *c)
{
    ty_val y = tf_in(c, 0), one = ty_b_full_like(c->g, y, 1);
    tf_set(c, 0, ty_b_mul(c->g, tf_in(c, 1), ty_b_sub(c->g, one, ty_b_square(c->g, y))));
}

void tf_op_sigmoid_grad(tf_ctx *c)
{
    ty_val y = tf_in(c, 0), one = ty_b_full_like(c->g, y, 1);
    tf_set(c, 0, ty_b_mul(c->g, tf_in(c, 1), ty_b_mul(c->g, y, ty_b_sub(c->g, one, y))));
}

void tf_op_reciprocal_grad(tf_ctx *c)
{
    ty_val y = tf_in(c, 0);
    tf_set(c, 0, ty_b_neg(c->g, ty_b_mul(c->g, tf_in(c, 1), ty_b_square(c->g, y))));
}

void tf_op_sqrt_grad(tf_ctx *c)
{
    tf_set(c, 0, ty_b_div(c->g, ty_b_mul_s(c->g, tf_in(c, 1), 0.5), tf_in(c, 0)));
}

void tf_op_rsqrt_grad(tf_ctx *c)
{
    ty_val y = tf_in(c, 0), cube = ty_b_mul(c->g, ty_b_square(c->g, y), y);
    tf_set(c, 0, ty_b_mul(c->g, ty_b_mul_s(c->g, tf_in(c, 1), -0.5), cube));
}
