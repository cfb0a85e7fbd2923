/* binary.c - elementwise ops of two inputs, and select. Integers wrap; u64 is kept by bit pattern. */
#include "compiler/ir/build.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#include <math.h>

/* ---- types ---- */

int ty_op_infer_binary(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)attr, (void)n_in;
    if (ty_expect_number("a", in[0], err) < 0 || ty_expect_type("b", in[1], in[0], err) < 0)
        return -1;
    res[0] = *in[0];
    return 0;
}

int ty_op_infer_binary_bits(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    if (ty_op_infer_unary_bits(attr, in, n_in, res, err) < 0)
        return -1;
    return ty_expect_type("b", in[1], in[0], err);
}

int ty_op_infer_compare(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)attr, (void)n_in;
    res[0] = *in[0];
    res[0].dtype = TY_BOOL;
    return ty_expect_type("b", in[1], in[0], err);
}

int ty_op_infer_select(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)attr, (void)n_in;
    ty_type cond = *in[1];
    cond.dtype = TY_BOOL;
    res[0] = *in[1];
    if (ty_expect_type("condition", in[0], &cond, err) < 0)
        return -1;
    return ty_expect_type("b", in[2], in[1], err);
}

/* ---- integer arithmetic without undefined behaviour ---- */

#define U(x) ((uint64_t)(x))

static bool binary_less(ty_dtype d, int64_t a, int64_t b)
{
    return d == TY_U64 ? U(a) < U(b) : a < b;
}

static int64_t binary_div(ty_dtype d, int64_t a, int64_t b)
{
    if (d == TY_U64)
        return (int64_t)(U(a) / U(b));
    return b == -1 ? (int64_t)(0 - U(a)) : a / b;
}

static int64_t binary_rem(ty_dtype d, int64_t a, int64_t b)
{
    if (d == TY_U64)
        return (int64_t)(U(a) % U(b));
    return b == -1 ? 0 : a % b;
}

/* Repeated squaring; a negative power is the truncated fraction: 0 unless a is 1 or -1. */
static int64_t binary_pow(ty_dtype d, int64_t a, int64_t b)
{
    if (b < 0 && d != TY_U64)
        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    uint64_t y = 1, x = U(a);
    for (uint64_t n = U(b); n > 0; n >>= 1, x *= x)
        if (n & 1)
            y *= x;
    return (int64_t)y;
}

/* A shift by the width or more leaves nothing (of a negative number, to the right: its sign). */
static int64_t binary_shl(ty_dtype d, int64_t a, int64_t b)
{
    return U(b) >= 8 * ty_dtype_bytes(d) ? 0 : (int64_t)(U(a) << b);
}

static int64_t binary_shr(ty_dtype d, int64_t a, int64_t b)
{
    if (U(b) >= 8 * ty_dtype_bytes(d))
        return ty_dtype_is_signed(d) && a < 0 ? -1 : 0;
    return d == TY_U64 ? (int64_t)(U(a) >> b) : a >> b;
}

/* ---- meaning ---- */

#define REF_LOOP(NAME, ...)                                                                           \
    int ty_op_ref_##NAME(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err) \
    {                                                                                                 \
        (void)attr, (void)n_in, (void)err;                                                            \
        ty_dtype d = (ty_dtype)in[0].type.dtype;                                                      \
        (void)d;                                                                                      \
        for (int64_t k = 0, n = ty_type_elems(&res->type); k < n; k++)                                \
            __VA_ARGS__                                                                               \
        return 0;                                                                                     \
    }

/* a and b are the operands, d their dtype. */
#define REF_BINARY(NAME, FLOAT, INT)                \
    REF_LOOP(NAME, {                                \
        if (res->f) {                               \
            double a = in[0].f[k], b = in[1].f[k];  \
            res->f[k] = FLOAT;                      \
        } else {                                    \
            int64_t a = in[0].i[k], b = in[1].i[k]; \
            res->i[k] = ty_refiter_wrap(d, INT);    \
        }                                           \
    })

#define REF_BITS(NAME, INT)                     \
    REF_LOOP(NAME, {                            \
        int64_t a = in[0].i[k], b = in[1].i[k]; \
        res->i[k] = ty_refiter_wrap(d, INT);    \
    })

#define REF_COMPARE(NAME, FLOAT, INT)               \
    REF_LOOP(NAME, {                                \
        if (in[0].f) {                              \
            double a = in[0].f[k], b = in[1].f[k];  \
            res->i[k] = FLOAT;                      \
        } else {                                    \
            int64_t a = in[0].i[k], b = in[1].i[k]; \
            res->i[k] = INT;                        \
        }                                           \
    })

/* An integer divided by zero has no value. */
#define REFUSE_ZERO_DIVISOR \
    if (!res->f && b == 0)  \
        return ty_error_set(err, TY_E_DATA_VALUE, "integer division by zero at element %lld", (long long)k);

REF_BINARY(add, a + b, (int64_t)(U(a) + U(b)))
REF_BINARY(sub, a - b, (int64_t)(U(a) - U(b)))
REF_BINARY(mul, a *b, (int64_t)(U(a) * U(b)))
REF_BINARY(pow, pow(a, b), binary_pow(d, a, b))
REF_BINARY(max, isnan(a) || a > b ? a : b, binary_less(d, b, a) ? a : b)
REF_BINARY(min, isnan(a) || a < b ? a : b, binary_less(d, a, b) ? a : b)

#define REF_DIVISION(NAME, FLOAT, INT)              \
    REF_LOOP(NAME, {                                \
        if (res->f) {                               \
            double a = in[0].f[k], b = in[1].f[k];  \
            res->f[k] = FLOAT;                      \
        } else {                                    \
            int64_t a = in[0].i[k], b = in[1].i[k]; \
            REFUSE_ZERO_DIVISOR                     \
            res->i[k] = ty_refiter_wrap(d, INT);    \
        }                                           \
    })
REF_DIVISION(div, a / b, binary_div(d, a, b))
REF_DIVISION(rem, fmod(a, b), binary_rem(d, a, b))

REF_BITS(and, a &b)
REF_BITS(or, a | b)
REF_BITS(xor, a ^ b)
REF_BITS(shl, binary_shl(d, a, b))
REF_BITS(shr, binary_shr(d, a, b))

REF_COMPARE(eq, a == b, a == b)
REF_COMPARE(lt, a < b, binary_less(d, a, b))
REF_COMPARE(le, a <= b, !binary_less(d, b, a))

int ty_op_ref_select(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)attr, (void)n_in, (void)err;
    for (int64_t k = 0, n = ty_type_elems(&res->type); k < n; k++)
        ty_refiter_copy(res, k, in[0].i[k] ? &in[1] : &in[2], k);
    return 0;
}

/* ---- gradients: a and b are the inputs, y the result, dy its gradient ---- */

#define GRAD_BINARY(NAME, DA, DB)                                                                                \
    void ty_op_grad_##NAME(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)                          \
    {                                                                                                            \
        ty_val a = ty_graph_in(g, node, 0), b = ty_graph_in(g, node, 1), y = ty_val_make(node, 0), dy = dres[0]; \
        (void)a, (void)b, (void)y;                                                                               \
        din[0] = DA;                                                                                             \
        din[1] = DB;                                                                                             \
    }

/* dy where `more` wins over `less`, half of it where both are equal, as PyTorch's maximum and minimum share. */
static ty_val binary_grad_winner(ty_graph *g, ty_val less, ty_val more, ty_val dy)
{
    ty_val zero = ty_b_full_like(g, dy, 0);
    ty_val tie = ty_b_select(g, ty_b_eq(g, less, more), ty_b_mul_s(g, dy, 0.5), zero);
    return ty_b_select(g, ty_b_lt(g, less, more), dy, tie);
}

/* a - trunc(a / b) b: the slope in b is the whole quotient, negated. */
static ty_val binary_grad_divisor(ty_graph *g, ty_val a, ty_val b, ty_val y, ty_val dy)
{
    ty_val quotient = ty_b_unary(g, TY_OP_RINT, ty_b_div(g, ty_b_sub(g, a, y), b));
    return ty_b_neg(g, ty_b_mul(g, dy, quotient));
}

/* b a^(b-1), and 0 where b is 0 even at a = 0. */
static ty_val binary_grad_base(ty_graph *g, ty_val a, ty_val b, ty_val dy)
{
    ty_val slope = ty_b_mul(g, b, ty_b_binary(g, TY_OP_POW, a, ty_b_add_s(g, b, -1)));
    double s;
    if (!ty_graph_splat_value(g, b, &s))
        slope = ty_b_select(g, ty_b_eq(g, b, ty_b_full_like(g, b, 0)), ty_b_full_like(g, b, 0), slope);
    return ty_b_mul(g, dy, slope);
}

/* a^b log a; 0 where a <= 0, for there the power is no function of real exponents. */
static ty_val binary_grad_exponent(ty_graph *g, ty_val a, ty_val b, ty_val y, ty_val dy)
{
    double s;
    if (ty_graph_splat_value(g, b, &s))
        return TY_NONE; /* a number: nobody asks */
    ty_val positive = ty_b_lt(g, ty_b_full_like(g, a, 0), a);
    ty_val safe = ty_b_select(g, positive, a, ty_b_full_like(g, a, 1));
    ty_val slope = ty_b_mul(g, y, ty_b_log(g, safe));
    return ty_b_mul(g, dy, ty_b_select(g, positive, slope, ty_b_full_like(g, a, 0)));
}

GRAD_BINARY(add, dy, dy)
GRAD_BINARY(sub, dy, ty_b_neg(g, dy))
GRAD_BINARY(mul, ty_b_mul(g, dy, b), ty_b_mul(g, dy, a))
GRAD_BINARY(div, ty_b_div(g, dy, b), ty_b_neg(g, ty_b_div(g, ty_b_mul(g, dy, y), b)))
GRAD_BINARY(rem, dy, binary_grad_divisor(g, a, b, y, dy))
GRAD_BINARY(pow, binary_grad_base(g, a, b, dy), binary_grad_exponent(g, a, b, y, dy))
GRAD_BINARY(max, binary_grad_winner(g, b, a, dy), binary_grad_winner(g, a, b, dy))
GRAD_BINARY(min, binary_grad_winner(g, a, b, dy), binary_grad_winner(g, b, a, dy))

void ty_op_grad_select(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    ty_val cond = ty_graph_in(g, node, 0), zero = ty_b_full_like(g, dres[0], 0);
    din[1] = ty_b_select(g, cond, dres[0], zero);
    din[2] = ty_b_select(g, cond, zero, dres[0]);
}
