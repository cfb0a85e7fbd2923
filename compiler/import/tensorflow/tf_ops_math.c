/* tf_ops_math.c - elementwise arithmetic, comparison, logic and casts.
 *
 * Where the loss is differentiated by us, ties go where TensorFlow's gradients have them: to the first operand of
 * Maximum and Minimum, and to x at the bounds of ClipByValue.
 */
#include "compiler/import/special.h"
#include "compiler/import/tensorflow/tf_ops.h"

#include <math.h>
#include <string.h>

/* arg: the op of the graph. */
void tf_op_unary(tf_ctx *c)
{
    tf_set(c, 0, ty_b_unary(c->g, (ty_op)c->row->arg, tf_in(c, 0)));
}

/* Likewise of floats; integers are whole already. */
void tf_op_rounding(tf_ctx *c)
{
    tf_set(c, 0, tf_is_float(c, tf_in(c, 0)) ? ty_b_unary(c->g, (ty_op)c->row->arg, tf_in(c, 0)) : tf_in(c, 0));
}

void tf_op_binary(tf_ctx *c)
{
    tf_set(c, 0, ty_b_binary(c->g, (ty_op)c->row->arg, tf_in(c, 0), tf_in(c, 1)));
}

/* Greater and GreaterEqual: the same with the sides changed. */
void tf_op_binary_swapped(tf_ctx *c)
{
    tf_set(c, 0, ty_b_binary(c->g, (ty_op)c->row->arg, tf_in(c, 1), tf_in(c, 0)));
}

void tf_op_identity(tf_ctx *c)
{
    for (int i = 0; i < c->n_in; i++) {
        tf_item item = c->in[i];
        if (item.kind == TF_VARIABLE && item.is_ref)
            item = (tf_item){.kind = TF_TENSOR, .val = tf_in(c, i), .variable = item.variable};
        tf_set_item(c, i, &item);
    }
}

void tf_op_ceil(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    tf_set(c, 0, tf_is_float(c, x) ? ty_b_neg(c->g, ty_b_unary(c->g, TY_OP_FLOOR, ty_b_neg(c->g, x))) : x);
}

void tf_op_sign(tf_ctx *c)
{
    tf_set(c, 0, ty_b_sign(c->g, tf_in(c, 0)));
}

void tf_op_reciprocal(tf_ctx *c)
{
    tf_set(c, 0, ty_b_reciprocal(c->g, tf_in(c, 0)));
}

void tf_op_square(tf_ctx *c)
{
    tf_set(c, 0, ty_b_square(c->g, tf_in(c, 0)));
}

void tf_op_squared_difference(tf_ctx *c)
{
    tf_set(c, 0, ty_b_square(c->g, ty_b_sub(c->g, tf_in(c, 0), tf_in(c, 1))));
}

/* A sum of any number of inputs, or of lists; of one: itself. */
void tf_op_add_n(tf_ctx *c)
{
    ty_val v = tf_in(c, 0);
    if (c->in[0].kind == TF_LIST) {
        tf_add_lists(c);
        return;
    }
    for (int i = 0; i < c->n_in; i++)
        if (tf_in(c, i) == TY_NONE) {
            tf_fail_input(c, i, TY_E_UNSUPPORTED, "must be a tensor of numbers");
            return;
        }
    for (int i = 1; i < c->n_in; i++)
        v = ty_b_add(c->g, v, tf_in(c, i));
    tf_set(c, 0, v);
}

/* ---- extrema ------------------------------------------------------------------------------------------------------
 */

bool tf_is_differentiated(const tf_ctx *c)
{
    return !c->imp->own_step;
}

static bool is_zero(tf_ctx *c, ty_val v)
{
    double s;
    return ty_graph_splat_value(c->g, v, &s) && s == 0;
}

/* Of a and b: b where it comes first in `less`, or is NaN; else a. */
static ty_val extremum(tf_ctx *c, ty_val a, ty_val b, bool largest)
{
    ty_graph *g = c->g;
    ty_op op = largest ? TY_OP_MAX : TY_OP_MIN;
    double s;
    if (a == TY_NONE || b == TY_NONE)
        return TY_NONE;
    if (!tf_is_float(c, a) || !tf_is_differentiated(c) || is_zero(c, b))
        return ty_b_binary(g, op, a, b);
    ty_val better = largest ? ty_b_lt(g, a, b) : ty_b_lt(g, b, a);
    if (!ty_graph_splat_value(g, b, &s))
        better = ty_b_binary(g, TY_OP_OR, better, ty_b_binary(g, TY_OP_OR, ty_b_ne(g, b, b), ty_b_lt(g, a, a)));
    return ty_b_select(g, better, b, a);
}

ty_val tf_maximum(tf_ctx *c, ty_val a, ty_val b)
{
    return extremum(c, a, b, true);
}

ty_val tf_minimum(tf_ctx *c, ty_val a, ty_val b)
{
    return extremum(c, a, b, false);
}

/* arg 1: the maximum. */
void tf_op_extremum(tf_ctx *c)
{
    tf_set(c, 0, extremum(c, tf_in(c, 0), tf_in(c, 1), c->row->arg));
}

void tf_op_clip(tf_ctx *c)
{
    ty_val x = tf_minimum(c, tf_in(c, 0), tf_in(c, 2));
    tf_set(c, 0, tf_maximum(c, x, tf_in(c, 1)));
}

/* ---- powers and quotients -----------------------------------------------------------------------------------------
 */

/* Integers go through f64, exact up to 2^53. */
void tf_op_pow(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0), y = tf_in(c, 1);
    if (tf_is_float(c, x)) {
        tf_set(c, 0, ty_b_binary(g, TY_OP_POW, x, y));
        return;
    }
    ty_val r = ty_b_binary(g, TY_OP_POW, ty_b_cast(g, x, TY_F64), ty_b_cast(g, y, TY_F64));
    tf_set(c, 0, ty_b_cast(g, r, tf_dtype_of(c, x)));
}

/* r has another sign than b and is not 0. */
static ty_val falls_short(ty_graph *g, ty_val r, ty_val b)
{
    ty_val zero = ty_b_full_like(g, r, 0);
    ty_val other = ty_b_binary(g, TY_OP_XOR, ty_b_lt(g, r, zero), ty_b_lt(g, b, zero));
    return ty_b_binary(g, TY_OP_AND, ty_b_ne(g, r, zero), other);
}

static void align(tf_ctx *c, ty_val *a, ty_val *b)
{
    ty_val zero = ty_b_mul(c->g, ty_b_full_like(c->g, *a, 0), ty_b_full_like(c->g, *b, 0));
    if (zero == TY_NONE)
        return;
    const ty_type t = *tf_type(c, zero);
    *a = ty_b_broadcast(c->g, *a, t.rank, t.dim);
    *b = ty_b_broadcast(c->g, *b, t.rank, t.dim);
}

/* Toward minus infinity. */
void tf_op_floor_div(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val a = tf_in(c, 0), b = tf_in(c, 1);
    align(c, &a, &b);
    ty_val q = ty_b_div(g, a, b);
    if (q == TY_NONE)
        return;
    if (tf_is_float(c, a))
        q = ty_b_unary(g, TY_OP_FLOOR, q);
    else if (ty_dtype_is_signed(tf_dtype_of(c, a)))
        q = ty_b_select(g, falls_short(g, ty_b_binary(g, TY_OP_REM, a, b), b), ty_b_add_s(g, q, -1), q);
    tf_set(c, 0, q);
}

/* With the sign of the divisor. */
void tf_op_floor_mod(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val a = tf_in(c, 0), b = tf_in(c, 1);
    align(c, &a, &b);
    ty_val r = ty_b_binary(g, TY_OP_REM, a, b);
    if (r == TY_NONE)
        return;
    bool is_signed = tf_is_float(c, a) || ty_dtype_is_signed(tf_dtype_of(c, a));
    tf_set(c, 0, is_signed ? ty_b_select(g, falls_short(g, r, b), ty_b_add(g, r, b), r) : r);
}

/* Where a number is 0 the result is: arg 0 the divisor, a / b; 1 x of x * log(y) and the like. */
void tf_op_div_no_nan(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val a = tf_in(c, 0), b = tf_in(c, 1);
    align(c, &a, &b);
    ty_val zero = ty_b_full_like(g, b, 0), none = ty_b_eq(g, b, zero);
    ty_val safe = ty_b_select(g, none, ty_b_full_like(g, b, 1), b);
    tf_set(c, 0, ty_b_select(g, none, zero, ty_b_div(g, a, safe)));
}

typedef enum guarded { GUARDED_LOG, GUARDED_LOG1P, GUARDED_DIV, GUARDED_MUL } guarded;

/* arg: which. x f(y), 0 where x is 0 (MulNoNan: x y, 0 where y is). */
void tf_op_guarded(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0), y = tf_in(c, 1);
    guarded kind = (guarded)c->row->arg;
    align(c, &x, &y);
    ty_val gate = kind == GUARDED_MUL ? y : x, other = kind == GUARDED_MUL ? x : y;
    ty_val none = ty_b_eq(g, gate, ty_b_full_like(g, gate, 0)), one = ty_b_full_like(g, other, 1);
    ty_val safe = ty_b_select(g, none, one, other);
    ty_val f = kind == GUARDED_LOG     ? ty_b_unary(g, TY_OP_LOG, safe)
               : kind == GUARDED_LOG1P ? ty_b_unary(g, TY_OP_LOG1P, safe)
               : kind == GUARDED_DIV   ? ty_b_reciprocal(g, safe)
                                       : safe;
    tf_set(c, 0, ty_b_select(g, none, ty_b_full_like(g, gate, 0), ty_b_mul(g, gate, f)));
}

/* ---- trigonometry --------------------------------------------------------------------------------------------------
 */

static ty_val root_of_rest(ty_graph *g, ty_val x)
{
    return ty_b_unary(g, TY_OP_SQRT, ty_b_sub(g, ty_b_full_like(g, x, 1), ty_b_square(g, x)));
}

void tf_op_tan(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    tf_set(c, 0, ty_b_div(c->g, ty_b_unary(c->g, TY_OP_SIN, x), ty_b_unary(c->g, TY_OP_COS, x)));
}

/* arg 1: the cosine's inverse, pi/2 - asin. */
void tf_op_arc(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0), y = ty_b_unary(g, TY_OP_ATAN, ty_b_div(g, x, root_of_rest(g, x)));
    tf_set(c, 0, c->row->arg ? ty_b_add_s(g, ty_b_neg(g, y), M_PI / 2) : y);
}

/* arg: sign between exp(x) and exp(-x). */
void tf_op_hyperbolic(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0), e = ty_b_exp(g, x), f = ty_b_exp(g, ty_b_neg(g, x));
    tf_set(c, 0, ty_b_mul_s(g, c->row->arg > 0 ? ty_b_add(g, e, f) : ty_b_sub(g, e, f), 0.5));
}

/* arg: asinh 1, acosh -1: log(x + sqrt(x^2 + arg)), for asinh of |x| with x's sign; atanh 0. */
void tf_op_area(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0);
    if (c->row->arg == 0) {
        ty_val log = ty_b_sub(g, ty_b_unary(g, TY_OP_LOG1P, x), ty_b_unary(g, TY_OP_LOG1P, ty_b_neg(g, x)));
        tf_set(c, 0, ty_b_mul_s(g, log, 0.5));
        return;
    }
    ty_val a = c->row->arg > 0 ? ty_b_unary(g, TY_OP_ABS, x) : x;
    ty_val root = ty_b_unary(g, TY_OP_SQRT, ty_b_add_s(g, ty_b_square(g, a), c->row->arg));
    ty_val y = ty_b_log(g, ty_b_add(g, a, root));
    tf_set(c, 0, c->row->arg > 0 ? ty_b_mul(g, ty_b_sign(g, x), y) : y);
}

/* The angle of (x, y): atan(y / x), half a turn further where x < 0, a quarter where x is 0. */
ty_val tf_angle(tf_ctx *c, ty_val y, ty_val x)
{
    ty_graph *g = c->g;
    align(c, &y, &x);
    ty_val zero = ty_b_full_like(g, x, 0),
           sign = ty_b_select(g, ty_b_lt(g, y, zero), ty_b_full_like(g, y, -1), ty_b_full_like(g, y, 1));
    ty_val on_axis = ty_b_eq(g, x, zero), safe = ty_b_select(g, on_axis, ty_b_full_like(g, x, 1), x);
    ty_val angle = ty_b_unary(g, TY_OP_ATAN, ty_b_div(g, y, safe));
    ty_val half = ty_b_add(g, angle, ty_b_mul_s(g, sign, M_PI));
    ty_val quarter = ty_b_select(g, ty_b_eq(g, y, zero), zero, ty_b_mul_s(g, sign, M_PI / 2));
    ty_val turned = ty_b_select(g, ty_b_lt(g, x, zero), half, angle);
    return ty_b_select(g, on_axis, quarter, turned);
}

void tf_op_atan2(tf_ctx *c)
{
    tf_set(c, 0, tf_angle(c, tf_in(c, 0), tf_in(c, 1)));
}

void tf_op_erfc(tf_ctx *c)
{
    tf_set(c, 0, ty_b_add_s(c->g, ty_b_neg(c->g, ty_b_unary(c->g, TY_OP_ERF, tf_in(c, 0))), 1));
}

/* ---- tests ---------------------------------------------------------------------------------------------------------
 */

typedef enum float_test { IS_NAN, IS_INF, IS_FINITE } float_test;

void tf_op_float_test(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0), most = ty_b_full_like(g, x, INFINITY), a = ty_b_unary(g, TY_OP_ABS, x);
    tf_set(c, 0,
           c->row->arg == IS_NAN   ? ty_b_ne(g, x, x)
           : c->row->arg == IS_INF ? ty_b_eq(g, a, most)
                                   : ty_b_lt(g, a, most));
}

void tf_op_not_equal(tf_ctx *c)
{
    tf_set(c, 0, ty_b_ne(c->g, tf_in(c, 0), tf_in(c, 1)));
}

void tf_op_approximate_equal(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val d = ty_b_unary(g, TY_OP_ABS, ty_b_sub(g, tf_in(c, 0), tf_in(c, 1)));
    tf_set(c, 0, ty_b_lt(g, d, ty_b_full_like(g, d, tf_attr_float(c->node, "tolerance", 1e-5))));
}

/* ---- choice and types ----------------------------------------------------------------------------------------------
 */

/* Select's condition may be one for each row: [n] against [n, ..]. */
void tf_op_select(tf_ctx *c)
{
    ty_val cond = tf_in(c, 0), a = tf_in(c, 1);
    int rank = tf_rank(c, a);
    if (c->row->arg == 1 && tf_rank(c, cond) == 1 && rank > 1) {
        int64_t dim[TY_MAX_RANK] = {tf_dim(c, cond, 0), 1, 1, 1, 1, 1, 1, 1};
        cond = ty_b_reshape(c->g, cond, rank, dim);
    }
    tf_set(c, 0, ty_b_select(c->g, cond, a, tf_in(c, 2)));
}

/* To complex numbers. */
static void cast_to_complex(tf_ctx *c, ty_dtype to)
{
    ty_val imag, x = tf_in_parts(c, 0, &imag);
    tf_set_parts(c, 0, ty_b_cast(c->g, x, to), imag == TY_NONE ? TY_NONE : ty_b_cast(c->g, imag, to));
}

/* Of complex numbers what is imaginary is lost. */
void tf_op_cast(tf_ctx *c)
{
    ty_val imag, x = tf_in_parts(c, 0, &imag);
    ty_dtype complex = tf_complex_dtype(tf_attr_type(c->node, "DstT", 0));
    if (!tf_needs_numbers(c, 0))
        return;
    ty_dtype to = tf_attr_dtype(c, "DstT", TY_N_DTYPES);
    if (complex != TY_N_DTYPES)
        cast_to_complex(c, complex);
    else if (to == TY_N_DTYPES)
        tf_fail_attr(c, "DstT", "is no type that a step computes in");
    else if (to == tf_dtype_of(c, x))
        tf_set_item(c, 0, &(tf_item){.kind = TF_TENSOR, .val = x, .variable = c->in[0].variable});
    else
        tf_set(c, 0, ty_b_cast(c->g, x, to));
}

void tf_op_bitcast(tf_ctx *c)
{
    ty_dtype to = tf_attr_dtype(c, "type", TY_N_DTYPES);
    ty_val x = tf_in(c, 0);
    if (to == TY_N_DTYPES || ty_dtype_bytes(to) != ty_dtype_bytes(tf_dtype_of(c, x))) {
        tf_fail_attr(c, "type", "must be as wide as the input's");
        return;
    }
    ty_attr a = {.type = ty_type_make(to, tf_rank(c, x), tf_type(c, x)->dim)};
    tf_set(c, 0, ty_graph_emit(c->g, TY_OP_BITCAST, &a, &x, 1));
}

/* A value through which no gradient flows. What tf.nn.moments stops needs no stop, since the
 * gradient that it cuts is zero, and a normalization is recognised without it. */
void tf_op_stop_gradient(tf_ctx *c)
{
    static const char moments[] = "moments/StopGradient";
    ty_val x = tf_in(c, 0);
    size_t n = strlen(c->node->name), m = sizeof moments - 1;
    bool plain = !tf_is_differentiated(c) || tf_dtype_of(c, x) != TY_F32 || c->imp->binding->mode == TY_MODEL_EVAL ||
                 (n >= m && strcmp(c->node->name + n - m, moments) == 0);
    if (plain || ty_graph_const_data(c->g, x)) {
        tf_set_item(c, 0, &c->in[0]);
        return;
    }
    tf_set(c, 0, ty_special_held(c->g, x));
}

/* arg: which. */
void tf_op_special(tf_ctx *c)
{
    static ty_val (*const functions[])(ty_graph *, ty_val) = {ty_special_lgamma, ty_special_digamma, ty_special_erfinv,
                                                              ty_special_ndtri};
    tf_set(c, 0, functions[c->row->arg](c->g, tf_in(c, 0)));
}

/* Of vectors of three. */
void tf_op_cross(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val part[2][3], out[3];
    for (int i = 0; i < 2; i++) {
        ty_val x = tf_in(c, i);
        int last = tf_rank(c, x) - 1;
        if (last < 0 || tf_dim(c, x, last) != 3) {
            tf_fail_input(c, i, TY_E_SHAPE, "must have 3 entries in its last axis");
            return;
        }
        for (int k = 0; k < 3; k++)
            part[i][k] = ty_b_slice_axis(g, x, last, k, k + 1);
    }
    for (int k = 0; k < 3; k++) {
        int next = (k + 1) % 3, other = (k + 2) % 3;
        out[k] = ty_b_sub(g, ty_b_mul(g, part[0][next], part[1][other]), ty_b_mul(g, part[0][other], part[1][next]));
    }
    tf_set(c, 0, ty_b_concat(g, out, 3, tf_rank(c, tf_in(c, 0)) - 1));
}
