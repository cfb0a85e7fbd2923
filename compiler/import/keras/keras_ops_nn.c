/* keras_ops_nn.c - operations of keras.ops.nn: activations, softmax, norms. */
#include "compiler/import/keras/keras_ops.h"

#include <math.h>
#include <string.h>

/* ---- activations
 * ----------------------------------------------------------------------------------------------------- */

/* Those without parameters, by the name that activations have. */
void keras_op_activation(keras_call *c)
{
    static const char *const names[][2] = {{"Relu", "relu"},
                                           {"Relu6", "relu6"},
                                           {"Sigmoid", "sigmoid"},
                                           {"Softplus", "softplus"},
                                           {"Softsign", "softsign"},
                                           {"Silu", "silu"},
                                           {"LogSigmoid", "log_sigmoid"},
                                           {"HardSigmoid", "hard_sigmoid"},
                                           {"HardSilu", "hard_silu"},
                                           {"Selu", "selu"},
                                           {"TanhShrink", "tanh_shrink"},
                                           {"HardTanh", "hard_tanh"},
                                           {"SparsePlus", "sparse_plus"},
                                           {"SparseSigmoid", "sparse_sigmoid"},
                                           {"Sparsemax", "sparsemax"}};
    ty_val x = keras_op_float(c);
    for (size_t i = 0; i < sizeof names / sizeof *names && x != TY_NONE; i++)
        if (strcmp(names[i][0], c->layer->class_name) == 0)
            keras_set(c, 0, keras_activation_named(c, names[i][1], x));
}

/* x > 0 ? yes : no */
static ty_val if_positive(ty_graph *g, ty_val x, ty_val yes, ty_val no)
{
    return ty_b_select(g, ty_b_lt(g, ty_b_full_like(g, x, 0), x), yes, no);
}

void keras_op_leaky_relu(keras_call *c)
{
    keras_set(c, 0, keras_leaky(c->g, keras_op_float(c), keras_number(c, "negative_slope", 0.2)));
}

void keras_op_elu(keras_call *c)
{
    keras_set(c, 0, keras_elu(c->g, keras_op_float(c), keras_number(c, "alpha", 1)));
}

/* alpha (exp(x / alpha) - 1) below 0: ELU of x / alpha, times alpha. */
void keras_op_celu(keras_call *c)
{
    double alpha = keras_number(c, "alpha", 1);
    ty_val x = ty_b_mul_s(c->g, keras_op_float(c), 1 / alpha);
    keras_set(c, 0, ty_b_mul_s(c->g, keras_elu(c->g, x, 1), alpha));
}

void keras_op_gelu(keras_call *c)
{
    ty_val x = keras_op_float(c);
    ty_attr attr = {.flags = keras_flag(c, "approximate", true)};
    keras_set(c, 0, ty_graph_emit(c->g, TY_OP_GELU, &attr, &x, 1));
}

void keras_op_glu(keras_call *c)
{
    ty_val x = keras_op_float(c);
    int axis;
    if (x == TY_NONE || !keras_axis(c, keras_int(c, "axis", -1), ty_b_rank(c->g, x), &axis))
        return;
    int64_t n = ty_b_dim(c->g, x, axis);
    ty_val gate = ty_b_sigmoid(c->g, ty_b_slice_axis(c->g, x, axis, n / 2, n));
    keras_set(c, 0, ty_b_mul(c->g, ty_b_slice_axis(c->g, x, axis, 0, n / 2), gate));
}

void keras_op_squareplus(keras_call *c)
{
    ty_val x = keras_op_float(c);
    ty_val root = ty_b_unary(c->g, TY_OP_SQRT, ty_b_add_s(c->g, ty_b_square(c->g, x), keras_number(c, "b", 4)));
    keras_set(c, 0, ty_b_mul_s(c->g, ty_b_add(c->g, x, root), 0.5));
}

/* arg 0: x where abs(x) > threshold, else 0; 1: moved towards 0 by it. */
void keras_op_shrink(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_float(c), zero = ty_b_full_like(g, x, 0);
    double by = keras_number(c, "threshold", 0.5);
    ty_val far = ty_b_lt(g, ty_b_full_like(g, x, by), ty_b_unary(g, TY_OP_ABS, x));
    ty_val moved = if_positive(g, x, ty_b_add_s(g, x, -by), ty_b_add_s(g, x, by));
    keras_set(c, 0, ty_b_select(g, far, c->layer->op->arg ? moved : x, zero));
}

void keras_op_threshold(keras_call *c)
{
    ty_val x = keras_op_float(c), other = ty_b_full_like(c->g, x, keras_number(c, "default_value", 0));
    ty_val above = ty_b_lt(c->g, ty_b_full_like(c->g, x, keras_number(c, "threshold", 0)), x);
    keras_set(c, 0, ty_b_select(c->g, above, x, other));
}

/* arg 1: the logarithm. */
void keras_op_softmax(keras_call *c)
{
    ty_val x = keras_op_float(c);
    int axis;
    if (x == TY_NONE || !keras_op_axis(c, "axis", -1, ty_b_rank(c->g, x), &axis))
        return;
    const ty_type t = *ty_graph_type(c->g, x);
    if (axis < 0)
        x = ty_b_flatten(c->g, x);
    ty_val y = ty_b_softmax(c->g, x, axis < 0 ? 0 : axis, c->layer->op->arg);
    keras_set(c, 0, ty_b_reshape(c->g, y, t.rank, t.dim));
}

/* ---- norms
 * ------------------------------------------------------------------------------------------------------------- */

/* A vector along `axis` against x. */
static ty_val along(ty_graph *g, ty_val v, int rank, int axis)
{
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dim[i] = i == axis ? ty_b_dim(g, v, 0) : 1;
    return v == TY_NONE || ty_b_rank(g, v) != 1 ? v : ty_b_reshape(g, v, rank, dim);
}

void keras_op_batch_norm(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_float(c), mean = keras_op_in(c, 1, "mean"), var = keras_op_in(c, 2, "variance");
    ty_val offset = keras_op_optional(c, 3, "offset"), scale = keras_op_optional(c, 4, "scale");
    int rank = ty_b_rank(g, x), axis;
    if (x == TY_NONE || mean == TY_NONE || var == TY_NONE || !keras_axis(c, keras_int(c, "axis", -1), rank, &axis))
        return;
    ty_val factor = ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, var, keras_number(c, "epsilon", 1e-3)));
    if (scale != TY_NONE)
        factor = ty_b_mul(g, factor, scale);
    ty_val y = ty_b_mul(g, ty_b_sub(g, x, along(g, mean, rank, axis)), along(g, factor, rank, axis));
    keras_set(c, 0, offset == TY_NONE ? y : ty_b_add(g, y, along(g, offset, rank, axis)));
}

/* Over the last axes; arg 1: RMS. */
void keras_op_layer_norm(keras_call *c)
{
    ty_graph *g = c->g;
    bool rms = c->layer->op->arg || keras_flag(c, "rms_scaling", false);
    ty_val x = keras_op_float(c), scale = keras_op_optional(c, 1, c->layer->op->arg ? "scale" : "gamma");
    ty_val bias = c->layer->op->arg ? TY_NONE : keras_op_optional(c, 2, "beta");
    int rank = ty_b_rank(g, x), n = 0;
    uint32_t axes;
    if (x == TY_NONE || !keras_op_axes(c, "axis", rank, &axes))
        return;
    while (n < rank && axes >> (rank - 1 - n) & 1)
        n++;
    if (n == 0 || __builtin_popcount(axes) != n) {
        keras_fail_key(c, "axis", "must be the last axes");
        return;
    }
    const ty_type t = *ty_graph_type(g, x);
    if (scale != TY_NONE)
        scale = ty_b_broadcast(g, ty_b_cast(g, scale, (ty_dtype)t.dtype), n, t.dim + rank - n);
    if (bias != TY_NONE)
        bias = ty_b_broadcast(g, ty_b_cast(g, bias, (ty_dtype)t.dtype), n, t.dim + rank - n);
    keras_set(c, 0, ty_b_norm(g, x, scale, bias, n, keras_number(c, "epsilon", 1e-7), rms));
}
