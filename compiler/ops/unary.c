/* unary.c - elementwise ops of one input, and casts. */
#include "compiler/ir/build.h"
#include "compiler/ops/activation.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/ref.h"
#include "compiler/ops/refiter.h"

#include <math.h>
#include <stdlib.h>

/* ---- types ---- */

int ty_op_infer_unary_num(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)attr;
    (void)n_in;
    ty_dtype d = (ty_dtype)in[0]->dtype;
    if (!ty_dtype_is_float(d) && !ty_dtype_is_signed(d))
        return ty_error_set(err, TY_E_SHAPE, "expected a float or signed integer, found %s", ty_dtype_text(d));
    res[0] = *in[0];
    return 0;
}

int ty_op_infer_unary_float(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)attr;
    (void)n_in;
    res[0] = *in[0];
    return ty_expect_float("x", in[0], err);
}

int ty_op_infer_unary_bits(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)attr;
    (void)n_in;
    if (ty_dtype_is_float((ty_dtype)in[0]->dtype))
        return ty_error_set(err, TY_E_SHAPE, "expected bool or an integer, found %s",
                            ty_dtype_text((ty_dtype)in[0]->dtype));
    res[0] = *in[0];
    return 0;
}

int ty_op_infer_cast(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    (void)err;
    res[0] = *in[0];
    res[0].dtype = attr->type.dtype;
    return 0;
}

int ty_op_infer_bitcast(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    ty_dtype from = (ty_dtype)in[0]->dtype, to = (ty_dtype)attr->type.dtype;
    if (ty_dtype_bytes(from) != ty_dtype_bytes(to) || (from == TY_BOOL) != (to == TY_BOOL))
        return ty_error_set(err, TY_E_SHAPE, "%s and %s have not the same bits", ty_dtype_text(from),
                            ty_dtype_text(to));
    return ty_op_infer_cast(attr, in, n_in, res, err);
}

/* ---- meaning ---- */

/* A reference function that applies an expression of x to every float, and another to every integer. */
#define REF_UNARY(NAME, FLOAT, INT)                                                                   \
    int ty_op_ref_##NAME(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err) \
    {                                                                                                 \
        (void)attr, (void)n_in, (void)err;                                                            \
        for (int64_t k = 0, n = ty_type_elems(&res->type); k < n; k++) {                              \
            if (res->f) {                                                                             \
                double x = in->f[k];                                                                  \
                res->f[k] = FLOAT;                                                                    \
            } else {                                                                                  \
                int64_t x = in->i[k];                                                                 \
                res->i[k] = ty_refiter_wrap((ty_dtype)res->type.dtype, INT);                          \
            }                                                                                         \
        }                                                                                             \
        return 0;                                                                                     \
    }

#define NEGATED(x) ((int64_t)(0 - (uint64_t)(x)))
REF_UNARY(neg, -x, NEGATED(x))
REF_UNARY(abs, fabs(x), x < 0 ? NEGATED(x) : x)
REF_UNARY(floor, floor(x), x)
REF_UNARY(rint, nearbyint(x), x)
REF_UNARY(sqrt, sqrt(x), x)
REF_UNARY(rsqrt, 1 / sqrt(x), x)
REF_UNARY(exp, exp(x), x)
REF_UNARY(expm1, expm1(x), x)
REF_UNARY(log, log(x), x)
REF_UNARY(log1p, log1p(x), x)
REF_UNARY(sin, sin(x), x)
REF_UNARY(cos, cos(x), x)
REF_UNARY(tanh, tanh(x), x)
REF_UNARY(erf, erf(x), x)
REF_UNARY(mills, ty_mills(x), x)
REF_UNARY(atan, atan(x), x)
REF_UNARY(not, x, res->type.dtype == TY_BOOL ? !x : ~x)

static int64_t cast_float_to_int(ty_dtype to, double x)
{
    if (to == TY_BOOL)
        return x != 0;
    if (isnan(x))
        return 0;
    int bits = (int)ty_dtype_bytes(to) * 8 - ty_dtype_is_signed(to);
    double high = ldexp(1, bits), low = ty_dtype_is_signed(to) ? -high : 0;
    if (x >= high) /* all ones in the value bits */
        return bits == 64 ? -1 : (int64_t)((UINT64_C(1) << bits) - 1);
    if (x <= low)
        return ty_dtype_is_signed(to) ? INT64_MIN >> (63 - bits) : 0;
    return bits == 64 ? (int64_t)(uint64_t)x : (int64_t)x;
}

static double cast_int_to_float(ty_dtype from, ty_dtype to, int64_t x)
{
    bool is_unsigned = from == TY_U64;
    if (to == TY_F32) /* at once: by way of double a large integer would be rounded twice */
        return is_unsigned ? (double)(float)(uint64_t)x : (double)(float)x;
    return ty_ref_round_one(to, is_unsigned ? (double)(uint64_t)x : (double)x);
}

int ty_op_ref_cast(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)attr, (void)n_in, (void)err;
    ty_dtype from = (ty_dtype)in->type.dtype, to = (ty_dtype)res->type.dtype;
    for (int64_t k = 0, n = ty_type_elems(&res->type); k < n; k++) {
        if (res->f)
            res->f[k] = in->f ? ty_ref_round_one(to, in->f[k]) : cast_int_to_float(from, to, in->i[k]);
        else
            res->i[k] = in->f ? cast_float_to_int(to, in->f[k]) : ty_refiter_wrap(to, in->i[k]);
    }
    return 0;
}

int ty_op_ref_bitcast(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)attr, (void)n_in;
    size_t n_bytes = ty_type_bytes(&in->type);
    void *bytes = malloc(n_bytes > 0 ? n_bytes : 1);
    if (!bytes)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %zu bytes", n_bytes);
    ty_ref_store(in, bytes);
    ty_ref_load(res, bytes);
    free(bytes);
    return 0;
}

/* ---- gradients: x is the input, y the result, dy the gradient of the result ---- */

#define GRAD_UNARY(NAME, EXPR)                                                          \
    void ty_op_grad_##NAME(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din) \
    {                                                                                   \
        ty_val x = ty_graph_in(g, node, 0), y = ty_val_make(node, 0), dy = dres[0];     \
        (void)x, (void)y, (void)dy;                                                     \
        din[0] = EXPR;                                                                  \
    }

static ty_val unary_one_minus(ty_graph *g, ty_val v)
{
    return ty_b_add_s(g, ty_b_neg(g, v), 1);
}

GRAD_UNARY(neg, ty_b_neg(g, dy))
GRAD_UNARY(abs, ty_b_mul(g, dy, ty_b_sign(g, x)))
GRAD_UNARY(zero, TY_NONE)
GRAD_UNARY(sqrt, ty_b_div(g, ty_b_mul_s(g, dy, 0.5), y))
GRAD_UNARY(rsqrt, ty_b_mul(g, ty_b_mul_s(g, dy, -0.5), ty_b_mul(g, y, ty_b_square(g, y))))
GRAD_UNARY(exp, ty_b_mul(g, dy, y))
GRAD_UNARY(expm1, ty_b_mul(g, dy, ty_b_add_s(g, y, 1)))
GRAD_UNARY(log, ty_b_div(g, dy, x))
GRAD_UNARY(log1p, ty_b_div(g, dy, ty_b_add_s(g, x, 1)))
GRAD_UNARY(sin, ty_b_mul(g, dy, ty_b_unary(g, TY_OP_COS, x)))
GRAD_UNARY(cos, ty_b_neg(g, ty_b_mul(g, dy, ty_b_unary(g, TY_OP_SIN, x))))
GRAD_UNARY(tanh, ty_b_mul(g, dy, unary_one_minus(g, ty_b_square(g, y))))
/* erf' = 2 / sqrt(pi) exp(-x^2) */
GRAD_UNARY(erf, ty_b_mul(g, dy, ty_b_mul_s(g, ty_b_exp(g, ty_b_neg(g, ty_b_square(g, x))), M_2_SQRTPI)))
/* m'(x) = x m(x) - 1 for x > 0, and m is even */
GRAD_UNARY(mills, ty_b_mul(g, dy, ty_b_sub(g, ty_b_mul(g, x, y), ty_b_sign(g, x))))
GRAD_UNARY(atan, ty_b_div(g, dy, ty_b_add_s(g, ty_b_square(g, x), 1)))
GRAD_UNARY(cast, ty_b_cast(g, dy, ty_b_dtype(g, x)))
