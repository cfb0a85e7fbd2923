/* keras_ops_numbers.c - functions of numbers that are made of others, comparisons, bins. */
#include "compiler/import/keras/keras_ops.h"
#include "compiler/import/special.h"

#include <math.h>

static ty_val like(ty_graph *g, ty_val x, double v)
{
    return ty_b_full_like(g, x, v);
}

/* ---- of one number ---- */

void keras_op_erfinv(keras_call *c)
{
    keras_set(c, 0, ty_special_erfinv(c->g, keras_op_float(c)));
}

/* sign(x) exp(log |x| / 3) */
void keras_op_cbrt(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_float(c), size = ty_b_unary(g, TY_OP_ABS, x), is_none = ty_b_eq(g, x, like(g, x, 0));
    ty_val root = ty_b_exp(g, ty_b_mul_s(g, ty_b_log(g, ty_b_select(g, is_none, like(g, x, 1), size)), 1.0 / 3));
    keras_set(c, 0, ty_b_select(g, is_none, x, ty_b_mul(g, ty_b_sign(g, x), root)));
}

/* sin(pi x) / (pi x) */
void keras_op_sinc(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_float(c), is_none = ty_b_eq(g, x, like(g, x, 0));
    ty_val at = ty_b_mul_s(g, ty_b_select(g, is_none, like(g, x, 1), x), M_PI);
    keras_set(c, 0, ty_b_select(g, is_none, like(g, x, 1), ty_b_div(g, ty_b_unary(g, TY_OP_SIN, at), at)));
}

/* arg: what is infinite, -1 or 1. */
void keras_op_is_end(keras_call *c)
{
    ty_val x = keras_op_float(c);
    if (x != TY_NONE)
        keras_set(c, 0, ty_b_eq(c->g, x, like(c->g, x, c->layer->op->arg * (double)INFINITY)));
}

/* Of -0, too. */
void keras_op_signbit(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "x");
    if (x != TY_NONE && ty_dtype_is_float(ty_b_dtype(g, x)))
        x = ty_b_select(g, ty_b_eq(g, x, like(g, x, 0)), ty_b_reciprocal(g, x), x);
    if (x != TY_NONE)
        keras_set(c, 0, ty_b_lt(g, x, like(g, x, 0)));
}

void keras_op_bits_not(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    if (x != TY_NONE)
        keras_set(c, 0, ty_b_unary(c->g, TY_OP_NOT, x));
}

/* Of real numbers. */
void keras_op_imag(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    if (x != TY_NONE)
        keras_set(c, 0, like(c->g, x, 0));
}

/* ---- of two ---- */

static ty_val numbers_is_nan(ty_graph *g, ty_val x)
{
    return ty_b_ne(g, x, x);
}

/* What is no number does not count; arg 1: the larger. */
void keras_op_f_extremum(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val a, b;
    if (!keras_op_pair(c, false, &a, &b))
        return;
    ty_val y = c->layer->op->arg ? ty_b_max(g, a, b) : ty_b_min(g, a, b);
    if (ty_dtype_is_float(ty_b_dtype(g, a)))
        y = ty_b_select(g, numbers_is_nan(g, a), b, ty_b_select(g, numbers_is_nan(g, b), a, y));
    keras_set(c, 0, y);
}

/* With the sign of the dividend. */
void keras_op_fmod(keras_call *c)
{
    ty_val a, b;
    if (keras_op_pair(c, false, &a, &b))
        keras_set(c, 0, ty_b_binary(c->g, TY_OP_REM, a, b));
}

void keras_op_heaviside(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x, at_none;
    if (!keras_op_pair(c, true, &x, &at_none))
        return;
    ty_val zero = like(g, x, 0), above = ty_b_select(g, ty_b_lt(g, zero, x), like(g, x, 1), zero);
    keras_set(c, 0, ty_b_select(g, ty_b_eq(g, x, zero), at_none, above));
}

/* log2(2^a + 2^b) */
void keras_op_logaddexp2(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val a, b;
    if (!keras_op_pair(c, true, &a, &b))
        return;
    ty_val most = ty_b_max(g, a, b), apart = ty_b_unary(g, TY_OP_ABS, ty_b_sub(g, a, b));
    ty_val more = ty_b_unary(g, TY_OP_LOG1P, ty_b_exp(g, ty_b_mul_s(g, apart, -log(2))));
    keras_set(c, 0, ty_b_add(g, most, ty_b_mul_s(g, more, 1 / log(2))));
}

/* |a - b| <= atol + rtol |b|, or they are the same; b is finite. */
static ty_val numbers_close(keras_call *c, double rtol, double atol)
{
    ty_graph *g = c->g;
    ty_val a, b;
    if (!keras_op_pair(c, true, &a, &b))
        return TY_NONE;
    ty_val most = ty_b_add_s(g, ty_b_mul_s(g, ty_b_unary(g, TY_OP_ABS, b), rtol), atol);
    ty_val near = ty_b_le(g, ty_b_unary(g, TY_OP_ABS, ty_b_sub(g, a, b)), most);
    near = ty_b_binary(g, TY_OP_AND, near, ty_b_lt(g, ty_b_unary(g, TY_OP_ABS, b), like(g, b, INFINITY)));
    ty_val y = ty_b_binary(g, TY_OP_OR, ty_b_eq(g, a, b), near);
    if (keras_flag(c, "equal_nan", false))
        y = ty_b_binary(g, TY_OP_OR, y, ty_b_binary(g, TY_OP_AND, numbers_is_nan(g, a), numbers_is_nan(g, b)));
    return y;
}

static double numbers_argument(keras_call *c, int i, const char *name, double absent)
{
    const keras_arg *a = keras_argument(c, i, name);
    return !a ? absent : a->kind == KERAS_FLOAT ? a->number : a->kind == KERAS_INT ? (double)a->integer : absent;
}

void keras_op_is_close(keras_call *c)
{
    keras_set(c, 0, numbers_close(c, numbers_argument(c, 2, "rtol", 1e-5), numbers_argument(c, 3, "atol", 1e-8)));
}

void keras_op_all_close(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val y = numbers_close(c, keras_number(c, "rtol", 1e-5), keras_number(c, "atol", 1e-8));
    if (y != TY_NONE)
        keras_set(c, 0, ty_b_reduce(g, y, TY_MIN, ty_b_all_axes(g, y), false));
}

/* ---- among many ---- */

/* Whether each of a is among those of b. */
void keras_op_is_in(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val a, b;
    if (!keras_op_pair(c, false, &a, &b))
        return;
    int rank = ty_b_rank(g, a);
    ty_val is = ty_b_eq(g, ty_b_unsqueeze(g, a, rank), ty_b_flatten(g, b));
    is = ty_b_reduce(g, is, TY_MAX, 1u << rank, false);
    keras_set(c, 0, keras_flag(c, "invert", false) ? ty_b_unary(g, TY_OP_NOT, is) : is);
}

/* How many of sorted [n] are below each of x, or not above it. */
static ty_val numbers_count(ty_graph *g, ty_val sorted, ty_val x, bool or_same)
{
    int rank = ty_b_rank(g, x);
    ty_val each = ty_b_unsqueeze(g, x, rank), is = or_same ? ty_b_le(g, sorted, each) : ty_b_lt(g, sorted, each);
    return ty_b_sum(g, ty_b_cast(g, is, TY_I32), 1u << rank, false);
}

static bool numbers_sorted(keras_call *c, const ty_val sorted, const ty_val x)
{
    if (sorted == TY_NONE || x == TY_NONE)
        return false;
    if (ty_b_rank(c->g, sorted) != 1)
        keras_fail(c, TY_E_SHAPE, "%s: expected one row of sorted numbers", c->layer->class_name);
    return !c->failed;
}

void keras_op_digitize(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x"), bins = keras_op_in(c, 1, "bins");
    if (!numbers_sorted(c, bins, x))
        return;
    ty_dtype dtype = keras_promote(ty_b_dtype(c->g, x), false, ty_b_dtype(c->g, bins), false);
    keras_set(c, 0, numbers_count(c->g, ty_b_cast(c->g, bins, dtype), ty_b_cast(c->g, x, dtype), true));
}

void keras_op_search_sorted(keras_call *c)
{
    static const char *const sides[] = {"left", "right", NULL};
    ty_val sorted = keras_op_in(c, 0, "sorted_sequence"), x = keras_op_in(c, 1, "values");
    int side = keras_choice(c, "side", "left", sides);
    if (numbers_sorted(c, sorted, x))
        keras_set(c, 0, numbers_count(c->g, sorted, x, side == 1));
}

/* Conditions and choices, the first whose condition holds; else the default. */
void keras_op_choose(keras_call *c)
{
    ty_val *is, *what;
    int n = keras_op_list(c, keras_argument(c, 0, "condlist"), &is);
    int m = n < 0 ? -1 : keras_op_list(c, keras_argument(c, 1, "choicelist"), &what);
    keras_operand other = keras_op_read(c, keras_argument(c, 2, "default"));
    if (n < 0 || m != n) {
        if (!c->failed)
            keras_fail(c, TY_E_SHAPE, "Select: expected as many choices as conditions");
        return;
    }
    ty_dtype dtype = ty_b_dtype(c->g, what[0]);
    ty_val y = other.v == TY_NONE ? ty_b_scalar(c->g, dtype, 0) : keras_to(c->g, other, dtype);
    for (int i = n - 1; i >= 0; i--)
        y = ty_b_select(c->g, ty_b_cast(c->g, is[i], TY_BOOL), what[i], y);
    keras_set(c, 0, y);
}
