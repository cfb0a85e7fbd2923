/* onnx_ops_act.c - activation functions.
 *
 * Kinks follow PyTorch: ReLU has slope 0 at 0, leaky forms their slope for x <= 0. Branches that are not taken are fed
 * with harmless values, because a gradient of 0 times infinity would be NaN.
 */
#include "compiler/import/onnx_import.h"

#include <math.h>
#include <string.h>

/* x <= 0 ? x : 0 */
static ty_val negative_part(ty_graph *g, ty_val x)
{
    ty_val zero = ty_b_full_like(g, x, 0);
    return ty_b_select(g, ty_b_lt(g, zero, x), zero, x);
}

/* x > 0 ? yes : no */
static ty_val if_positive(ty_graph *g, ty_val x, ty_val yes, ty_val no)
{
    return ty_b_select(g, ty_b_lt(g, ty_b_full_like(g, x, 0), x), yes, no);
}

static ty_val clamp(ty_graph *g, ty_val x, double lo, double hi)
{
    ty_val l = ty_b_full_like(g, x, lo), h = ty_b_full_like(g, x, hi);
    x = ty_b_select(g, ty_b_lt(g, x, l), l, x);
    return ty_b_select(g, ty_b_lt(g, h, x), h, x);
}

static ty_val elu(ty_graph *g, ty_val x, double alpha)
{
    ty_val low = ty_b_mul_s(g, ty_b_unary(g, TY_OP_EXPM1, negative_part(g, x)), alpha);
    return if_positive(g, x, x, low);
}

static ty_val hard_sigmoid(ty_graph *g, ty_val x, double alpha, double beta)
{
    return clamp(g, ty_b_add_s(g, ty_b_mul_s(g, x, alpha), beta), 0, 1);
}

void onnx_op_relu(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_relu(c->g, onnx_in(c, 0)));
}

void onnx_op_sigmoid(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_sigmoid(c->g, onnx_in(c, 0)));
}

void onnx_op_leaky_relu(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    onnx_set(c, 0, if_positive(c->g, x, x, ty_b_mul_s(c->g, x, onnx_attr_float(c, "alpha", 0.01))));
}

/* Up to opset 6 a slope list lies along axis 1; later it is broadcast to x. PyTorch's converter wrote [C] in opset 6.
 */
void onnx_op_prelu(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0), slope = onnx_in(c, 1);
    if (c->opset < 7 && onnx_rank(c, slope) == 1 && onnx_rank(c, x) > 2 && onnx_dim(c, slope, 0) > 1)
        slope = onnx_per_channel(c, slope, onnx_rank(c, x));
    onnx_set(c, 0, if_positive(c->g, x, x, ty_b_mul(c->g, slope, x)));
}

void onnx_op_elu(onnx_ctx *c)
{
    onnx_set(c, 0, elu(c->g, onnx_in(c, 0), onnx_attr_float(c, "alpha", 1)));
}

void onnx_op_selu(onnx_ctx *c)
{
    double alpha = onnx_attr_float(c, "alpha", c->opset < 6 ? 1.6732 : 1.67326319217681884765625);
    double gamma = onnx_attr_float(c, "gamma", c->opset < 6 ? 1.0507 : 1.05070102214813232421875);
    onnx_set(c, 0, ty_b_mul_s(c->g, elu(c->g, onnx_in(c, 0), alpha), gamma));
}

void onnx_op_celu(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    double alpha = onnx_attr_float(c, "alpha", 1);
    ty_val low = ty_b_unary(g, TY_OP_EXPM1, ty_b_mul_s(g, negative_part(g, x), 1 / alpha));
    onnx_set(c, 0, if_positive(g, x, x, ty_b_mul_s(g, low, alpha)));
}

void onnx_op_hard_sigmoid(onnx_ctx *c)
{
    double alpha = onnx_attr_float(c, "alpha", 0.2), beta = onnx_attr_float(c, "beta", 0.5);
    onnx_set(c, 0, hard_sigmoid(c->g, onnx_in(c, 0), alpha, beta));
}

void onnx_op_hard_swish(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    onnx_set(c, 0, ty_b_mul(c->g, x, hard_sigmoid(c->g, x, 1.0 / 6, 0.5)));
}

void onnx_op_softplus(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_softplus(c->g, onnx_in(c, 0)));
}

static ty_val softsign(ty_graph *g, ty_val x)
{
    return ty_b_div(g, x, ty_b_add_s(g, ty_b_unary(g, TY_OP_ABS, x), 1));
}

void onnx_op_softsign(onnx_ctx *c)
{
    onnx_set(c, 0, softsign(c->g, onnx_in(c, 0)));
}

void onnx_op_mish(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    onnx_set(c, 0, ty_b_mul(c->g, x, ty_b_unary(c->g, TY_OP_TANH, ty_b_softplus(c->g, x))));
}

static ty_val swish(onnx_ctx *c, ty_val x)
{
    return ty_b_mul(c->g, x, ty_b_sigmoid(c->g, ty_b_mul_s(c->g, x, onnx_attr_float(c, "alpha", 1))));
}

void onnx_op_swish(onnx_ctx *c)
{
    onnx_set(c, 0, swish(c, onnx_in(c, 0)));
}

void onnx_op_swiglu(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_mul(c->g, swish(c, onnx_in(c, 0)), onnx_in(c, 1)));
}

/* x Phi(x), or Hendrycks and Gimpel's tanh form. */
void onnx_op_gelu(onnx_ctx *c)
{
    static const char *const forms[] = {"none", "tanh", NULL};
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0), t;
    if (onnx_attr_choice(c, "approximate", "none", forms)) {
        ty_val cube = ty_b_mul(g, ty_b_square(g, x), x);
        t = ty_b_unary(g, TY_OP_TANH, ty_b_mul_s(g, ty_b_add(g, x, ty_b_mul_s(g, cube, 0.044715)), sqrt(2 / M_PI)));
    } else
        t = ty_b_unary(g, TY_OP_ERF, ty_b_mul_s(g, x, M_SQRT1_2));
    onnx_set(c, 0, ty_b_mul(g, ty_b_mul_s(g, x, 0.5), ty_b_add_s(g, t, 1)));
}

void onnx_op_thresholded_relu(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0), alpha = ty_b_full_like(g, x, onnx_attr_float(c, "alpha", 1));
    onnx_set(c, 0, ty_b_select(g, ty_b_lt(g, alpha, x), x, ty_b_full_like(g, x, 0)));
}

/* x < -lambd: x + bias; x > lambd: x - bias; else 0 */
void onnx_op_shrink(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    double bias = onnx_attr_float(c, "bias", 0), lambd = onnx_attr_float(c, "lambd", 0.5);
    ty_dtype dtype = onnx_dtype_of(c, x);
    ty_dtype wide = ty_dtype_is_float(dtype) ? dtype : TY_F64;
    x = ty_b_cast(g, x, wide);
    ty_val low = ty_b_lt(g, x, ty_b_full_like(g, x, -lambd)), high = ty_b_lt(g, ty_b_full_like(g, x, lambd), x);
    ty_val y = ty_b_select(g, high, ty_b_add_s(g, x, -bias), ty_b_full_like(g, x, 0));
    onnx_set(c, 0, ty_b_cast(g, ty_b_select(g, low, ty_b_add_s(g, x, bias), y), dtype));
}

/* ---- inside recurrent layers --------------------------------------------------------------------------------------
 */

static ty_val act_tanh(ty_graph *g, ty_val x, double a, double b)
{
    (void)a, (void)b;
    return ty_b_unary(g, TY_OP_TANH, x);
}

static ty_val act_sigmoid(ty_graph *g, ty_val x, double a, double b)
{
    (void)a, (void)b;
    return ty_b_sigmoid(g, x);
}

static ty_val act_relu(ty_graph *g, ty_val x, double a, double b)
{
    (void)a, (void)b;
    return ty_b_relu(g, x);
}

static ty_val act_affine(ty_graph *g, ty_val x, double a, double b)
{
    return ty_b_add_s(g, ty_b_mul_s(g, x, a), b);
}

static ty_val act_leaky(ty_graph *g, ty_val x, double a, double b)
{
    (void)b;
    return if_positive(g, x, x, ty_b_mul_s(g, x, a));
}

static ty_val act_thresholded(ty_graph *g, ty_val x, double a, double b)
{
    (void)b;
    return ty_b_select(g, ty_b_lt(g, ty_b_full_like(g, x, a), x), x, ty_b_full_like(g, x, 0));
}

static ty_val act_scaled_tanh(ty_graph *g, ty_val x, double a, double b)
{
    return ty_b_mul_s(g, ty_b_unary(g, TY_OP_TANH, ty_b_mul_s(g, x, b)), a);
}

static ty_val act_elu(ty_graph *g, ty_val x, double a, double b)
{
    (void)b;
    return elu(g, x, a);
}

static ty_val act_softsign(ty_graph *g, ty_val x, double a, double b)
{
    (void)a, (void)b;
    return softsign(g, x);
}

static ty_val act_softplus(ty_graph *g, ty_val x, double a, double b)
{
    (void)a, (void)b;
    return ty_b_softplus(g, x);
}

static const struct {
    const char *name;
    ty_val (*fn)(ty_graph *g, ty_val x, double alpha, double beta);
    double alpha, beta; /* where the node gives none */
} activations[] = {
    {"Tanh", act_tanh, 0, 0},
    {"Sigmoid", act_sigmoid, 0, 0},
    {"Relu", act_relu, 0, 0},
    {"Affine", act_affine, 1, 0},
    {"LeakyRelu", act_leaky, 0.01, 0},
    {"ThresholdedRelu", act_thresholded, 1, 0},
    {"ScaledTanh", act_scaled_tanh, 1, 1},
    {"HardSigmoid", hard_sigmoid, 0.2, 0.5},
    {"Elu", act_elu, 1, 0},
    {"Softsign", act_softsign, 0, 0},
    {"Softplus", act_softplus, 0, 0},
};

ty_val onnx_activation(onnx_ctx *c, const char *name, ty_val x, double alpha, double beta)
{
    for (size_t i = 0; i < sizeof activations / sizeof activations[0]; i++)
        if (strcmp(activations[i].name, name) == 0)
            return activations[i].fn(c->g, x, isnan(alpha) ? activations[i].alpha : alpha,
                                     isnan(beta) ? activations[i].beta : beta);
    onnx_fail_attr(c, "activations", "\"%.40s\" is not a known activation", name);
    return TY_NONE;
}
