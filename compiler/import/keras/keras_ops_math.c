/* keras_ops_math.c - elementwise operations: arithmetic, functions, comparison, logic, casts.
 *
 * Gradients at kinks are TensorFlow's: of equal sides in Maximum and Minimum the first one gets it; clipping passes it
 * at its bounds.
 */
#include "compiler/import/keras/keras_ops.h"

#include <math.h>

#define PI 3.14159265358979323846

/* One operation a line: of floats (integers become float32), and of numbers of any type. */
#define OF_FLOATS(name, result)         \
    void keras_op_##name(keras_call *c) \
    {                                   \
        ty_graph *g = c->g;             \
        ty_val x = keras_op_float(c);   \
        keras_set(c, 0, result);        \
    }
#define OF_PAIR(name, floats, result)         \
    void keras_op_##name(keras_call *c)       \
    {                                         \
        ty_graph *g = c->g;                   \
        ty_val a, b;                          \
        if (keras_op_pair(c, floats, &a, &b)) \
            keras_set(c, 0, result);          \
    }

static ty_val un(ty_graph *g, ty_op op, ty_val x)
{
    return ty_b_unary(g, op, x);
}

static ty_val plus(ty_graph *g, ty_val x, double s)
{
    return ty_b_add_s(g, x, s);
}

static ty_val times(ty_graph *g, ty_val x, double s)
{
    return ty_b_mul_s(g, x, s);
}

static ty_val minus_from(ty_graph *g, double s, ty_val x)
{
    return ty_b_sub(g, ty_b_full_like(g, x, s), x);
}

/* ---- functions of one value ---------------------------------------------------------------------------------------
 */

void keras_op_unary(keras_call *c)
{
    keras_set(c, 0, un(c->g, (ty_op)c->layer->op->arg, keras_op_float(c)));
}

/* Integers stay integers. */
void keras_op_unary_any(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    if (x != TY_NONE && ty_b_dtype(c->g, x) == TY_BOOL)
        x = ty_b_cast(c->g, x, TY_I32);
    keras_set(c, 0, un(c->g, (ty_op)c->layer->op->arg, x));
}

static ty_val ceiling(ty_graph *g, ty_val x)
{
    return ty_b_neg(g, un(g, TY_OP_FLOOR, ty_b_neg(g, x)));
}

static ty_val exp_half(ty_graph *g, ty_val x, bool minus)
{
    ty_val e = ty_b_exp(g, x), other = ty_b_exp(g, ty_b_neg(g, x));
    return times(g, minus ? ty_b_sub(g, e, other) : ty_b_add(g, e, other), 0.5);
}

/* atan(x / sqrt(1 - x^2)), which is pi / 2 at 1. */
static ty_val arc_sine(ty_graph *g, ty_val x)
{
    ty_val other = un(g, TY_OP_SQRT, ty_b_mul(g, minus_from(g, 1, x), plus(g, x, 1)));
    return un(g, TY_OP_ATAN, ty_b_div(g, x, other));
}

/* Odd: of the absolute value, with the sign put back. */
static ty_val arc_sinh(ty_graph *g, ty_val x)
{
    ty_val a = un(g, TY_OP_ABS, x), root = un(g, TY_OP_SQRT, plus(g, ty_b_square(g, a), 1));
    ty_val y = un(g, TY_OP_LOG1P, ty_b_add(g, a, ty_b_div(g, ty_b_square(g, a), plus(g, root, 1))));
    return ty_b_select(g, ty_b_lt(g, x, ty_b_full_like(g, x, 0)), ty_b_neg(g, y), y);
}

static ty_val arc_cosh(ty_graph *g, ty_val x)
{
    ty_val root = un(g, TY_OP_SQRT, ty_b_mul(g, plus(g, x, -1), plus(g, x, 1)));
    return ty_b_log(g, ty_b_add(g, x, root));
}

static ty_val arc_tanh(ty_graph *g, ty_val x)
{
    return times(g, ty_b_sub(g, un(g, TY_OP_LOG1P, x), un(g, TY_OP_LOG1P, ty_b_neg(g, x))), 0.5);
}

static ty_val truncated(ty_graph *g, ty_val x)
{
    return ty_b_select(g, ty_b_lt(g, x, ty_b_full_like(g, x, 0)), ceiling(g, x), un(g, TY_OP_FLOOR, x));
}

OF_FLOATS(ceil, ceiling(g, x))
OF_FLOATS(exp2, ty_b_exp(g, times(g, x, 0.69314718055994530942)))
OF_FLOATS(log2, times(g, ty_b_log(g, x), 1.44269504088896340736))
OF_FLOATS(log10, times(g, ty_b_log(g, x), 0.43429448190325182765))
OF_FLOATS(sinh, exp_half(g, x, true))
OF_FLOATS(cosh, exp_half(g, x, false))
OF_FLOATS(tan, ty_b_div(g, un(g, TY_OP_SIN, x), un(g, TY_OP_COS, x)))
OF_FLOATS(arcsin, arc_sine(g, x))
OF_FLOATS(arccos, minus_from(g, PI / 2, arc_sine(g, x)))
OF_FLOATS(arcsinh, arc_sinh(g, x))
OF_FLOATS(arccosh, arc_cosh(g, x))
OF_FLOATS(arctanh, arc_tanh(g, x))
OF_FLOATS(trunc, truncated(g, x))
OF_FLOATS(erfc, minus_from(g, 1, un(g, TY_OP_ERF, x)))
OF_FLOATS(reciprocal, ty_b_reciprocal(g, x))
OF_FLOATS(deg2rad, times(g, x, PI / 180))
OF_FLOATS(rad2deg, times(g, x, 180 / PI))
OF_FLOATS(isnan, ty_b_ne(g, x, x))
OF_FLOATS(isinf, ty_b_eq(g, un(g, TY_OP_ABS, x), ty_b_full_like(g, x, INFINITY)))
OF_FLOATS(isfinite, ty_b_lt(g, un(g, TY_OP_ABS, x), ty_b_full_like(g, x, INFINITY)))

void keras_op_square(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    if (x != TY_NONE && ty_b_dtype(c->g, x) == TY_BOOL)
        x = ty_b_cast(c->g, x, TY_I32);
    keras_set(c, 0, ty_b_square(c->g, x));
}

void keras_op_sign(keras_call *c)
{
    keras_set(c, 0, ty_b_sign(c->g, keras_op_in(c, 0, "x")));
}

void keras_op_identity(keras_call *c)
{
    keras_set(c, 0, keras_op_in(c, 0, "x"));
}

/* Through integers of the same bits, which have no gradient. */
void keras_op_stop_gradient(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "variable");
    if (x != TY_NONE && ty_dtype_is_float(ty_b_dtype(g, x))) {
        ty_type there = *ty_graph_type(g, x), back = there;
        size_t bytes = ty_dtype_bytes((ty_dtype)there.dtype);
        there.dtype = bytes == 8 ? TY_I64 : bytes == 4 ? TY_I32 : TY_I16;
        ty_val bits = ty_graph_emit(g, TY_OP_BITCAST, &(ty_attr){.type = there}, &x, 1);
        x = ty_graph_emit(g, TY_OP_BITCAST, &(ty_attr){.type = back}, &bits, 1);
    }
    keras_set(c, 0, x);
}

void keras_op_round(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int64_t decimals = keras_int(c, "decimals", 0);
    if (x == TY_NONE || (!ty_dtype_is_float(ty_b_dtype(c->g, x)) && decimals >= 0)) {
        keras_set(c, 0, x);
        return;
    }
    double factor = pow(10, (double)decimals);
    ty_dtype dtype = ty_b_dtype(c->g, x);
    ty_val y = un(c->g, TY_OP_RINT, times(c->g, keras_op_float(c), factor));
    keras_set(c, 0, ty_b_cast(c->g, times(c->g, y, 1 / factor), dtype));
}

/* Bounds belong to the configuration, or (one tensor) to the arguments. */
void keras_op_clip(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "x");
    if (x == TY_NONE)
        return;
    if (ty_b_dtype(g, x) == TY_BOOL)
        x = ty_b_cast(g, x, TY_I32);
    ty_val lo = ty_b_full_like(g, x, keras_number(c, "x_min", -INFINITY));
    ty_val hi = ty_b_full_like(g, x, keras_number(c, "x_max", INFINITY));
    if (keras_config(c, "x_min"))
        x = ty_b_select(g, ty_b_lt(g, x, lo), lo, x);
    if (keras_config(c, "x_max"))
        x = ty_b_select(g, ty_b_lt(g, hi, x), hi, x);
    keras_set(c, 0, x);
}

void keras_op_nan_to_num(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_float(c);
    double top = x != TY_NONE && ty_b_dtype(g, x) == TY_F64 ? 1.7976931348623157e308 : 3.4028234663852886e38;
    ty_val above = ty_b_full_like(g, x, keras_number(c, "posinf", top));
    ty_val below = ty_b_full_like(g, x, keras_number(c, "neginf", -top));
    ty_val nan = ty_b_full_like(g, x, keras_number(c, "nan", 0)), far = ty_b_full_like(g, x, INFINITY);
    ty_val y = ty_b_select(g, ty_b_eq(g, x, far), above, x);
    y = ty_b_select(g, ty_b_eq(g, x, ty_b_neg(g, far)), below, y);
    keras_set(c, 0, ty_b_select(g, ty_b_eq(g, x, x), y, nan));
}

void keras_op_cast(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    if (x != TY_NONE)
        keras_set(c, 0, ty_b_cast(c->g, x, keras_op_dtype(c, "dtype", ty_b_dtype(c->g, x))));
}

/* ---- two values ---------------------------------------------------------------------------------------------------
 */

/* Bools count as int32. */
static ty_val counted(ty_graph *g, ty_val x)
{
    return ty_b_dtype(g, x) == TY_BOOL ? ty_b_cast(g, x, TY_I32) : x;
}

/* Add of bools is `or`, Multiply `and`: as NumPy has it. */
static ty_val sum_of(ty_graph *g, ty_val a, ty_val b)
{
    return ty_b_binary(g, ty_b_dtype(g, a) == TY_BOOL ? TY_OP_OR : TY_OP_ADD, a, b);
}

static ty_val product_of(ty_graph *g, ty_val a, ty_val b)
{
    return ty_b_binary(g, ty_b_dtype(g, a) == TY_BOOL ? TY_OP_AND : TY_OP_MUL, a, b);
}

/* The remainder with the divisor's sign. */
static ty_val modulo(ty_graph *g, ty_val a, ty_val b)
{
    ty_val r = ty_b_binary(g, TY_OP_REM, a, b), zero = ty_b_full_like(g, r, 0);
    if (!ty_dtype_is_float(ty_b_dtype(g, a)) && !ty_dtype_is_signed(ty_b_dtype(g, a)))
        return r;
    ty_val odd = ty_b_binary(g, TY_OP_XOR, ty_b_lt(g, r, zero), ty_b_lt(g, ty_b_add(g, zero, b), zero));
    odd = ty_b_binary(g, TY_OP_AND, odd, ty_b_ne(g, r, zero));
    return ty_b_select(g, odd, ty_b_add(g, r, b), r);
}

static ty_val floor_divided(ty_graph *g, ty_val a, ty_val b)
{
    if (ty_dtype_is_float(ty_b_dtype(g, a)))
        return un(g, TY_OP_FLOOR, ty_b_div(g, a, b));
    return ty_b_div(g, ty_b_sub(g, a, modulo(g, a, b)), b);
}

/* Integers go through f64, exact up to 2^53. */
static ty_val power(ty_graph *g, ty_val a, ty_val b)
{
    ty_dtype dtype = ty_b_dtype(g, a);
    if (ty_dtype_is_float(dtype))
        return ty_b_binary(g, TY_OP_POW, a, b);
    return ty_b_cast(g, ty_b_binary(g, TY_OP_POW, ty_b_cast(g, a, TY_F64), ty_b_cast(g, b, TY_F64)), dtype);
}

static ty_val arc_tangent(ty_graph *g, ty_val y, ty_val x)
{
    ty_val zero = ty_b_full_like(g, x, 0), on_axis = ty_b_eq(g, x, zero);
    ty_val safe = ty_b_select(g, on_axis, ty_b_full_like(g, x, 1), x), angle = un(g, TY_OP_ATAN, ty_b_div(g, y, safe));
    zero = ty_b_full_like(g, angle, 0);
    ty_val is_below = ty_b_lt(g, y, ty_b_full_like(g, y, 0)), is_left = ty_b_lt(g, x, ty_b_full_like(g, x, 0));
    ty_val turn = ty_b_select(g, is_below, plus(g, angle, -PI), plus(g, angle, PI));
    ty_val upright = times(g, ty_b_sign(g, ty_b_add(g, y, zero)), PI / 2);
    return ty_b_select(g, on_axis, upright, ty_b_select(g, is_left, turn, angle));
}

static ty_val log_add_exp(ty_graph *g, ty_val a, ty_val b)
{
    ty_val d = ty_b_sub(g, a, b);
    return ty_b_add(g, a, ty_b_softplus(g, ty_b_neg(g, d)));
}

static ty_val hypotenuse(ty_graph *g, ty_val a, ty_val b)
{
    return un(g, TY_OP_SQRT, ty_b_add(g, ty_b_square(g, a), ty_b_square(g, b)));
}

static ty_val divided_no_nan(ty_graph *g, ty_val a, ty_val b)
{
    ty_val zero = ty_b_full_like(g, b, 0), none = ty_b_eq(g, b, zero);
    ty_val q = ty_b_div(g, a, ty_b_select(g, none, ty_b_full_like(g, b, 1), b));
    return ty_b_select(g, none, ty_b_full_like(g, q, 0), q);
}

static ty_val first_if(ty_graph *g, ty_val is_second, ty_val a, ty_val b)
{
    return ty_b_select(g, is_second, b, a);
}

OF_PAIR(add, false, sum_of(g, a, b))
OF_PAIR(subtract, false, ty_b_sub(g, counted(g, a), counted(g, b)))
OF_PAIR(multiply, false, product_of(g, a, b))
OF_PAIR(divide, true, ty_b_div(g, a, b))
OF_PAIR(divide_no_nan, true, divided_no_nan(g, a, b))
OF_PAIR(floor_divide, false, floor_divided(g, counted(g, a), counted(g, b)))
OF_PAIR(mod, false, modulo(g, counted(g, a), counted(g, b)))
OF_PAIR(power, false, power(g, counted(g, a), counted(g, b)))
OF_PAIR(arctan2, true, arc_tangent(g, a, b))
OF_PAIR(logaddexp, true, log_add_exp(g, a, b))
OF_PAIR(hypot, true, hypotenuse(g, a, b))
OF_PAIR(maximum, false, first_if(g, ty_b_lt(g, a, b), a, b))
OF_PAIR(minimum, false, first_if(g, ty_b_lt(g, b, a), a, b))
OF_PAIR(equal, false, ty_b_eq(g, a, b))
OF_PAIR(not_equal, false, ty_b_ne(g, a, b))
OF_PAIR(less, false, ty_b_lt(g, counted(g, a), counted(g, b)))
OF_PAIR(less_equal, false, ty_b_le(g, counted(g, a), counted(g, b)))
OF_PAIR(greater, false, ty_b_lt(g, counted(g, b), counted(g, a)))
OF_PAIR(greater_equal, false, ty_b_le(g, counted(g, b), counted(g, a)))

/* arg: of integers and bools. */
void keras_op_bits(keras_call *c)
{
    ty_val a, b;
    if (keras_op_pair(c, false, &a, &b))
        keras_set(c, 0, ty_b_binary(c->g, (ty_op)c->layer->op->arg, a, b));
}

/* arg: of anything as bools. */
void keras_op_logical(keras_call *c)
{
    ty_val a, b;
    if (keras_op_pair(c, false, &a, &b))
        keras_set(
            c, 0,
            ty_b_binary(c->g, (ty_op)c->layer->op->arg, ty_b_cast(c->g, a, TY_BOOL), ty_b_cast(c->g, b, TY_BOOL)));
}

void keras_op_logical_not(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    keras_set(c, 0, un(c->g, TY_OP_NOT, x == TY_NONE ? x : ty_b_cast(c->g, x, TY_BOOL)));
}

void keras_op_where(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val cond = keras_op_in(c, 0, "condition");
    keras_operand a = keras_op_read(c, keras_argument(c, 1, "x1")), b = keras_op_read(c, keras_argument(c, 2, "x2"));
    if (cond == TY_NONE || c->failed)
        return;
    if (a.v == TY_NONE || b.v == TY_NONE) {
        keras_fail(c, TY_E_UNSUPPORTED,
                   "Where: without values it yields as many indices as the data have it, which"
                   " cannot be compiled");
        return;
    }
    ty_dtype dtype = keras_promote(ty_b_dtype(g, a.v), a.is_weak, ty_b_dtype(g, b.v), b.is_weak);
    keras_set(c, 0, ty_b_select(g, ty_b_cast(g, cond, TY_BOOL), keras_to(g, a, dtype), keras_to(g, b, dtype)));
}
