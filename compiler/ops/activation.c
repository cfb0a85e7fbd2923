/* activation.c - activations that are known as a whole: GELU and SiLU.
 *
 *     gelu(x) = x Phi(x) = x (1 + erf(x / sqrt 2)) / 2            Hendrycks and Gimpel, arXiv:1606.08415
 *     its tanh form: x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
 *     silu(x) = x sigmoid(x)
 *
 * The gradients keep nothing but x: what they share with the forward pass are equal nodes, which exist once.
 */
#include "compiler/ops/activation.h"
#include "compiler/ir/build.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"

#include <math.h>

#define GELU_TANH  1u
#define GELU_CUBIC 0.044715

int ty_op_infer_activation(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (ty_expect_float("x", in[0], err) < 0 || ty_expect_flags(attr, GELU_TANH, err) < 0)
        return -1;
    *res = *in[0];
    return 0;
}

static double gelu_tanh_argument(double x)
{
    return sqrt(2 / M_PI) * (x + GELU_CUBIC * x * x * x);
}

double ty_gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(gelu_tanh_argument(x)));
}

double ty_gelu_tanh_slope(double x)
{
    double t = tanh(gelu_tanh_argument(x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * GELU_CUBIC * x * x);
}

/* Where erfc leaves the numbers that there are, by the asymptotic series (Abramowitz and Stegun, 26.2.12). */
double ty_mills(double x)
{
    double a = fabs(x), r = 1 / (a * a);
    if (a > 35)
        return (1 - r * (1 - r * (3 - r * (15 - r * (105 - r * 945))))) / a;
    return sqrt(M_PI_2) * exp(a * a / 2) * erfc(a * M_SQRT1_2);
}

static double gelu_erf_slope(double x)
{
    return 0.5 * (1 + erf(x * M_SQRT1_2)) + x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
}

int ty_op_infer_gelu_grad(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    return ty_op_infer_activation(attr, in, n_in, res, err) < 0 ? -1 : ty_expect_type("dy", in[1], in[0], err);
}

int ty_op_ref_gelu(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t n = ty_type_elems(&in[0].type);
    (void)n_in, (void)err;
    for (int64_t k = 0; k < n; k++) {
        double x = in[0].f[k];
        res[0].f[k] = attr->flags & GELU_TANH ? ty_gelu_tanh(x) : 0.5 * x * (1 + erf(x * M_SQRT1_2));
    }
    return 0;
}

int ty_op_ref_gelu_grad(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)n_in, (void)err;
    for (int64_t k = 0; k < ty_type_elems(&in[0].type); k++) {
        double x = in[0].f[k];
        res[0].f[k] = in[1].f[k] * (attr->flags & GELU_TANH ? ty_gelu_tanh_slope(x) : gelu_erf_slope(x));
    }
    return 0;
}

int ty_op_ref_silu(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t n = ty_type_elems(&in[0].type);
    (void)attr, (void)n_in, (void)err;
    for (int64_t k = 0; k < n; k++)
        res[0].f[k] = in[0].f[k] * (1 / (1 + exp(-in[0].f[k])));
    return 0;
}

ty_val ty_gelu_by_erf(ty_graph *g, ty_val x)
{
    ty_dtype dtype = ty_b_dtype(g, x);
    x = ty_b_cast(g, x, ty_wide_dtype(dtype));
    ty_val erf = ty_b_unary(g, TY_OP_ERF, ty_b_mul_s(g, x, M_SQRT1_2));
    return ty_b_cast(g, ty_b_mul(g, ty_b_mul_s(g, x, 0.5), ty_b_add_s(g, erf, 1)), dtype);
}

/* exp(-x^2 / 2) / sqrt(2 pi) */
static ty_val gelu_density(ty_graph *g, ty_val x)
{
    return ty_b_mul_s(g, ty_b_exp(g, ty_b_mul_s(g, ty_b_square(g, x), -0.5)), 1 / sqrt(2 * M_PI));
}

/* The normal distribution: what it lacks to 0 or 1 is the density times the ratio of Mills. Beside the density, which
 * the gradient wants, that costs less than erf; and nothing cancels where the distribution is small. */
static ty_val gelu_distribution(ty_graph *g, ty_val x, ty_val density)
{
    ty_val tail = ty_b_mul(g, density, ty_b_unary(g, TY_OP_MILLS, x));
    ty_val rest = ty_b_sub(g, ty_b_full_like(g, tail, 1), tail);
    return ty_b_select(g, ty_b_lt(g, x, ty_b_full_like(g, x, 0)), tail, rest);
}

ty_val ty_gelu_by_tanh(ty_graph *g, ty_val x)
{
    ty_dtype dtype = ty_b_dtype(g, x);
    x = ty_b_cast(g, x, ty_wide_dtype(dtype));
    ty_val cube = ty_b_mul(g, ty_b_square(g, x), x);
    ty_val argument = ty_b_mul_s(g, ty_b_add(g, x, ty_b_mul_s(g, cube, GELU_CUBIC)), sqrt(2 / M_PI));
    ty_val tanh = ty_b_unary(g, TY_OP_TANH, argument);
    return ty_b_cast(g, ty_b_mul(g, ty_b_mul_s(g, x, 0.5), ty_b_add_s(g, tanh, 1)), dtype);
}

/* a + b x^2 */
static ty_val gelu_even(ty_graph *g, ty_val x, double a, double b)
{
    return ty_b_add_s(g, ty_b_mul_s(g, ty_b_square(g, x), b), a);
}

/* sigmoid(2 u): a tanh costs more than the exponential that it begins with, and 1 + tanh cancels below zero. */
static ty_val gelu_sigmoid(ty_graph *g, ty_val x)
{
    const double twice = 2 * sqrt(2 / M_PI);
    ty_val e = ty_b_exp(g, ty_b_mul(g, x, gelu_even(g, x, -twice, -twice * GELU_CUBIC)));
    return ty_b_reciprocal(g, ty_b_add_s(g, e, 1));
}

void ty_op_lower_gelu(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in, ty_val *res)
{
    ty_dtype dtype = ty_b_dtype(g, in[0]);
    ty_val x = ty_b_cast(g, in[0], ty_wide_dtype(dtype)), y;
    (void)n_in;
    if (attr->flags & GELU_TANH)
        y = ty_b_mul(g, x, gelu_sigmoid(g, x));
    else
        y = ty_b_mul(g, x, gelu_distribution(g, x, gelu_density(g, x)));
    res[0] = ty_b_cast(g, y, dtype);
}

static ty_val gelu_slope(ty_graph *g, ty_val x)
{
    ty_val density = gelu_density(g, x);
    return ty_b_add(g, gelu_distribution(g, x, density), ty_b_mul(g, x, density));
}

/* With s = sigmoid(2 u): s + x s (1 - s) 2 u'. */
static ty_val gelu_slope_tanh(ty_graph *g, ty_val x)
{
    const double twice = 2 * sqrt(2 / M_PI);
    ty_val s = gelu_sigmoid(g, x), rest = ty_b_mul(g, x, ty_b_sub(g, ty_b_full_like(g, s, 1), s));
    rest = ty_b_mul(g, rest, gelu_even(g, x, twice, 3 * twice * GELU_CUBIC));
    return ty_b_mul(g, s, ty_b_add_s(g, rest, 1));
}

void ty_op_lower_gelu_grad(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in, ty_val *res)
{
    ty_dtype dtype = ty_b_dtype(g, in[0]);
    ty_val x = ty_b_cast(g, in[0], ty_wide_dtype(dtype));
    ty_val slope = attr->flags & GELU_TANH ? gelu_slope_tanh(g, x) : gelu_slope(g, x);
    (void)n_in;
    res[0] = ty_b_cast(g, ty_b_mul(g, ty_b_cast(g, in[1], ty_wide_dtype(dtype)), slope), dtype);
}

void ty_op_grad_gelu(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr attr = *ty_graph_attr(g, node);
    din[0] = ty_graph_emit(g, TY_OP_GELU_GRAD, &attr, (ty_val[]){ty_graph_in(g, node, 0), dres[0]}, 2);
}

void ty_op_lower_silu(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in, ty_val *res)
{
    ty_dtype dtype = ty_b_dtype(g, in[0]);
    ty_val x = ty_b_cast(g, in[0], ty_wide_dtype(dtype));
    (void)attr, (void)n_in;
    res[0] = ty_b_cast(g, ty_b_mul(g, x, ty_b_sigmoid(g, x)), dtype);
}

/* With s = sigmoid(x): s + x s (1 - s). */
void ty_op_grad_silu(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    ty_dtype dtype = ty_b_dtype(g, dres[0]);
    ty_val x = ty_b_cast(g, ty_graph_in(g, node, 0), ty_wide_dtype(dtype)), s = ty_b_sigmoid(g, x);
    ty_val rest = ty_b_mul(g, x, ty_b_sub(g, ty_b_full_like(g, s, 1), s));
    ty_val slope = ty_b_mul(g, s, ty_b_add_s(g, rest, 1));
    din[0] = ty_b_cast(g, ty_b_mul(g, ty_b_cast(g, dres[0], ty_wide_dtype(dtype)), slope), dtype);
}
