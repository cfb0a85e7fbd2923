/* onnx_ops_math.c - elementwise arithmetic, comparison, logic and casts. */
#include "compiler/import/onnx_import.h"

#include <math.h>

/* Up to opset 6, B is stretched to A's shape from `axis` on if `broadcast` is 1; later NumPy's rules hold. */
static ty_val legacy_align(onnx_ctx *c, ty_val a, ty_val b)
{
    if (c->opset >= 7 || !onnx_attr_int(c, "broadcast", 0) || onnx_rank(c, b) == 0)
        return b;
    int rank_a = onnx_rank(c, a), rank_b = onnx_rank(c, b), axis;
    if (!onnx_axis(c, onnx_attr_int(c, "axis", rank_a - rank_b), rank_a + 1, &axis))
        return TY_NONE;
    int64_t dim[TY_MAX_RANK];
    int rank = rank_a - axis;
    if (rank < rank_b) {
        onnx_fail_attr(c, "axis", "leaves %d dimensions for %d", rank, rank_b);
        return TY_NONE;
    }
    for (int i = 0; i < rank; i++)
        dim[i] = i < rank_b ? onnx_dim(c, b, i) : 1;
    return ty_b_reshape(c->g, b, rank, dim);
}

void onnx_op_unary(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_unary(c->g, (ty_op)c->row->arg, onnx_in(c, 0)));
}

/* PyTorch's exporters write log_sigmoid as Log(Sigmoid(x)), which PyTorch itself computes where the sigmoid is zero
 * too. */
void onnx_op_log(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val s = onnx_in(c, 0), x = ty_b_sigmoid_input(g, s);
    onnx_set(c, 0, x == TY_NONE ? ty_b_log(g, s) : ty_b_neg(g, ty_b_softplus(g, ty_b_neg(g, x))));
}

void onnx_op_binary(onnx_ctx *c)
{
    ty_val a = onnx_in(c, 0), b = legacy_align(c, a, onnx_in(c, 1));
    onnx_set(c, 0, ty_b_binary(c->g, (ty_op)c->row->arg, a, b));
}

/* Greater and GreaterOrEqual: the same with the sides changed. */
void onnx_op_binary_swapped(onnx_ctx *c)
{
    ty_val a = onnx_in(c, 0), b = legacy_align(c, a, onnx_in(c, 1));
    onnx_set(c, 0, ty_b_binary(c->g, (ty_op)c->row->arg, b, a));
}

/* Max, Min, Sum, Mean: any number of inputs. */
static ty_val variadic(onnx_ctx *c, ty_op op)
{
    ty_val v = onnx_in(c, 0);
    for (int i = 1; i < c->n_in; i++)
        v = ty_b_binary(c->g, op, v, onnx_in(c, i));
    return v;
}

void onnx_op_variadic(onnx_ctx *c)
{
    onnx_set(c, 0, variadic(c, (ty_op)c->row->arg));
}

void onnx_op_mean(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_mul_s(c->g, variadic(c, TY_OP_ADD), 1.0 / c->n_in));
}

void onnx_op_identity(onnx_ctx *c)
{
    const onnx_item *in = c->in[0];
    if (in->kind == ONNX_UNSET)
        return;
    const char *name = c->out[0].name;
    c->out[0] = *in;
    c->out[0].name = name;
}

void onnx_op_ceil(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_neg(c->g, ty_b_unary(c->g, TY_OP_FLOOR, ty_b_neg(c->g, onnx_in(c, 0)))));
}

void onnx_op_sign(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0), zero = ty_b_full_like(c->g, x, 0), one = ty_b_full_like(c->g, x, 1);
    ty_dtype dtype = onnx_dtype_of(c, x);
    if (ty_dtype_is_float(dtype) || ty_dtype_is_signed(dtype))
        onnx_set(c, 0, ty_b_sign(c->g, x));
    else
        onnx_set(c, 0, ty_b_select(c->g, ty_b_eq(c->g, x, zero), zero, one));
}

void onnx_op_reciprocal(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_reciprocal(c->g, onnx_in(c, 0)));
}

/* ---- powers and remainders ----------------------------------------------------------------------------------------
 */

/* Common constant exponents become products and roots: cheaper, and with plain gradients. */
static ty_val pow_const(onnx_ctx *c, ty_val x, double e)
{
    ty_graph *g = c->g;
    if (e == 1)
        return ty_b_add_s(g, x, 0);
    if (e == 2)
        return ty_b_square(g, x);
    if (e == 3)
        return ty_b_mul(g, ty_b_square(g, x), x);
    if (e == 0.5 && ty_dtype_is_float(onnx_dtype_of(c, x)))
        return ty_b_unary(g, TY_OP_SQRT, x);
    return TY_NONE;
}

/* Integers go through f64, exact up to 2^53. */
static ty_val pow_any(onnx_ctx *c, ty_val x, ty_val y)
{
    ty_graph *g = c->g;
    ty_dtype dtype = onnx_dtype_of(c, x);
    if (ty_dtype_is_float(dtype))
        return ty_b_binary(g, TY_OP_POW, x, ty_b_cast(g, y, dtype));
    ty_val r = ty_b_binary(g, TY_OP_POW, ty_b_cast(g, x, TY_F64), ty_b_cast(g, y, TY_F64));
    return ty_b_cast(g, r, dtype);
}

void onnx_op_pow(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0), y = legacy_align(c, x, onnx_in(c, 1)), r = TY_NONE;
    const double *e;
    int64_t n;
    if (ty_type_elems(onnx_type_of(c, y)) == 1 && onnx_rank(c, y) <= onnx_rank(c, x) && onnx_is_const(c, 1) &&
        onnx_const_floats(c, 1, &e, &n))
        r = pow_const(c, x, e[0]);
    onnx_set(c, 0, r != TY_NONE ? r : pow_any(c, x, y));
}

/* fmod 0: the sign of the divisor, as Python has it; 1: of the dividend, as C has it. */
void onnx_op_mod(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val a = onnx_in(c, 0), b = onnx_in(c, 1), r = ty_b_binary(g, TY_OP_REM, a, b);
    ty_dtype dtype = onnx_dtype_of(c, a);
    if (onnx_attr_int(c, "fmod", 0) || !(ty_dtype_is_float(dtype) || ty_dtype_is_signed(dtype))) {
        onnx_set(c, 0, r);
        return;
    }
    ty_val zero = ty_b_scalar(g, dtype, 0);
    ty_val differs = ty_b_ne(g, ty_b_lt(g, r, zero), ty_b_lt(g, b, zero));
    ty_val wrap = ty_b_binary(g, TY_OP_AND, ty_b_ne(g, r, zero), differs);
    onnx_set(c, 0, ty_b_select(g, wrap, ty_b_add(g, r, b), r));
}

void onnx_op_bit_shift(onnx_ctx *c)
{
    static const char *const directions[] = {"LEFT", "RIGHT", NULL};
    int right = onnx_attr_choice(c, "direction", "", directions);
    onnx_set(c, 0, ty_b_binary(c->g, right ? TY_OP_SHR : TY_OP_SHL, onnx_in(c, 0), onnx_in(c, 1)));
}

/* ---- trigonometry -------------------------------------------------------------------------------------------------
 */

void onnx_op_tan(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    onnx_set(c, 0, ty_b_div(c->g, ty_b_unary(c->g, TY_OP_SIN, x), ty_b_unary(c->g, TY_OP_COS, x)));
}

/* asin x = atan(x / sqrt((1 - x)(1 + x))) */
static ty_val asin_of(ty_graph *g, ty_val x)
{
    ty_val one = ty_b_full_like(g, x, 1);
    ty_val root = ty_b_unary(g, TY_OP_SQRT, ty_b_mul(g, ty_b_sub(g, one, x), ty_b_add(g, one, x)));
    return ty_b_unary(g, TY_OP_ATAN, ty_b_div(g, x, root));
}

void onnx_op_asin(onnx_ctx *c)
{
    onnx_set(c, 0, asin_of(c->g, onnx_in(c, 0)));
}

void onnx_op_acos(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_add_s(c->g, ty_b_neg(c->g, asin_of(c->g, onnx_in(c, 0))), M_PI_2));
}

/* (expm1 x - expm1 -x) / 2 keeps small results exact and overflows only where the result does. */
void onnx_op_sinh(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    ty_val d = ty_b_sub(g, ty_b_unary(g, TY_OP_EXPM1, x), ty_b_unary(g, TY_OP_EXPM1, ty_b_neg(g, x)));
    onnx_set(c, 0, ty_b_mul_s(g, d, 0.5));
}

void onnx_op_cosh(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    onnx_set(c, 0, ty_b_mul_s(g, ty_b_add(g, ty_b_exp(g, x), ty_b_exp(g, ty_b_neg(g, x))), 0.5));
}

/* sign(x) log1p(a + a^2 / (1 + sqrt(a^2 + 1))), a = |x| */
void onnx_op_asinh(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0), a = ty_b_unary(g, TY_OP_ABS, x), sq = ty_b_square(g, a);
    ty_val root = ty_b_add_s(g, ty_b_unary(g, TY_OP_SQRT, ty_b_add_s(g, sq, 1)), 1);
    ty_val y = ty_b_unary(g, TY_OP_LOG1P, ty_b_add(g, a, ty_b_div(g, sq, root)));
    onnx_set(c, 0, ty_b_mul(g, ty_b_sign(g, x), y));
}

/* log1p(t + sqrt(2 t + t^2)), t = x - 1 */
void onnx_op_acosh(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val t = ty_b_add_s(g, onnx_in(c, 0), -1);
    ty_val root = ty_b_unary(g, TY_OP_SQRT, ty_b_add(g, ty_b_mul_s(g, t, 2), ty_b_square(g, t)));
    onnx_set(c, 0, ty_b_unary(g, TY_OP_LOG1P, ty_b_add(g, t, root)));
}

void onnx_op_atanh(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    ty_val d = ty_b_sub(g, ty_b_unary(g, TY_OP_LOG1P, x), ty_b_unary(g, TY_OP_LOG1P, ty_b_neg(g, x)));
    onnx_set(c, 0, ty_b_mul_s(g, d, 0.5));
}

/* ---- tests and choices --------------------------------------------------------------------------------------------
 */

void onnx_op_is_nan(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_ne(c->g, onnx_in(c, 0), onnx_in(c, 0)));
}

void onnx_op_is_inf(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    bool up = onnx_attr_int(c, "detect_positive", 1), down = onnx_attr_int(c, "detect_negative", 1);
    ty_val is_up = ty_b_eq(g, x, ty_b_full_like(g, x, INFINITY)),
           is_down = ty_b_eq(g, x, ty_b_full_like(g, x, -INFINITY));
    if (up && down)
        onnx_set(c, 0, ty_b_binary(g, TY_OP_OR, is_up, is_down));
    else if (up || down)
        onnx_set(c, 0, up ? is_up : is_down);
    else
        onnx_set(c, 0, ty_b_full(g, TY_BOOL, onnx_rank(c, x), onnx_type_of(c, x)->dim, 0));
}

void onnx_op_where(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_select(c->g, onnx_in(c, 0), onnx_in(c, 1), onnx_in(c, 2)));
}

/* Written with select so that the gradient passes at the bounds and NaN passes through. */
static ty_val clip(ty_graph *g, ty_val x, ty_val lo, ty_val hi)
{
    if (lo != TY_NONE)
        x = ty_b_select(g, ty_b_lt(g, x, lo), lo, x);
    if (hi != TY_NONE)
        x = ty_b_select(g, ty_b_lt(g, hi, x), hi, x);
    return x;
}

void onnx_op_clip(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0), bound[2] = {onnx_in(c, 1), onnx_in(c, 2)};
    static const char *const name[] = {"min", "max"};
    for (int i = 0; i < 2; i++) {
        if (c->opset < 11 && onnx_find_attr(c, name[i]))
            bound[i] = ty_b_scalar(c->g, onnx_dtype_of(c, x), onnx_attr_float(c, name[i], 0));
        else if (bound[i] != TY_NONE && ty_type_elems(onnx_type_of(c, bound[i])) != 1)
            onnx_fail_input(c, i + 1, TY_E_SHAPE, "must be one number");
        else if (bound[i] != TY_NONE)
            bound[i] = ty_b_reshape(c->g, bound[i], 0, NULL);
    }
    onnx_set(c, 0, clip(c->g, x, bound[0], bound[1]));
}

/* ---- casts --------------------------------------------------------------------------------------------------------
 */

void onnx_op_cast(onnx_ctx *c)
{
    /* Opset 1 names the type; later ones number it. */
    int64_t to = c->opset < 6 ? 0 : onnx_attr_int(c, "to", 0);
    if (c->opset < 6) {
        static const char *const names[] = {"UNDEFINED", "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                            "INT16",     "INT32",  "INT64",  "STRING", "BOOL",
                                            "FLOAT16",   "DOUBLE", "UINT32", "UINT64", NULL};
        to = onnx_attr_choice(c, "to", "UNDEFINED", names);
    }
    ty_dtype dtype = onnx_dtype(to);
    if (dtype == TY_N_DTYPES) {
        onnx_fail_attr(c, "to", "%s is not supported", onnx_data_type_text(to));
        return;
    }
    onnx_set(c, 0, ty_b_cast(c->g, onnx_in(c, 0), dtype));
}

void onnx_op_cast_like(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_cast(c->g, onnx_in(c, 0), onnx_dtype_of(c, onnx_in(c, 1))));
}
