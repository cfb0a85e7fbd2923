/* special.c - see special.h. */
#include "compiler/import/special.h"

#include "compiler/ir/build.h"

#include <math.h>

enum { SHIFT = 8, SHIFT_BELOW = 16 }; /* Stirling's series is exact enough from 8.5 on */

/* v[0] + v[1] x + ... */
static ty_val special_series(ty_graph *g, ty_val x, const double *v, int n)
{
    ty_val y = ty_b_full_like(g, x, v[n - 1]);
    for (int i = n - 2; i >= 0; i--)
        y = ty_b_add_s(g, ty_b_mul(g, y, x), v[i]);
    return y;
}

static ty_val special_from(ty_graph *g, double a, ty_val x)
{
    return ty_b_sub(g, ty_b_full_like(g, x, a), x);
}

ty_val ty_special_held(ty_graph *g, ty_val x)
{
    if (x == TY_NONE)
        return x;
    ty_attr bits = {.type = *ty_graph_type(g, x)}, back = bits;
    bits.type.dtype = bits.type.dtype == TY_F64 ? TY_I64 : TY_I32;
    ty_val seen = ty_graph_emit(g, TY_OP_BITCAST, &bits, &x, 1);
    return ty_graph_emit(g, TY_OP_BITCAST, &back, &seen, 1);
}

/* ---- gamma ---- */

/* x at or above 1/2, and what is above where the series holds. */
typedef struct special_gamma {
    ty_val x;        /* as it came, double */
    ty_val is_low;   /* reflected */
    ty_val is_small; /* shifted */
    ty_val least;    /* what is shifted, elsewhere a number that does no harm */
    ty_val far;      /* where the series is used */
} special_gamma;

static special_gamma special_prepare(ty_graph *g, ty_val x)
{
    special_gamma s = {.x = ty_b_cast(g, x, TY_F64)};
    s.is_low = ty_b_lt(g, s.x, ty_b_full_like(g, s.x, 0.5));
    ty_val z = ty_b_select(g, s.is_low, special_from(g, 1, s.x), s.x);
    s.is_small = ty_b_lt(g, z, ty_b_full_like(g, z, SHIFT_BELOW));
    s.least = ty_b_select(g, s.is_small, z, ty_b_full_like(g, z, SHIFT_BELOW));
    s.far = ty_b_select(g, s.is_small, ty_b_add_s(g, z, SHIFT), z);
    return s;
}

/* pi times how far x is above a whole number: exactly 0 at these. */
static ty_val special_angle(ty_graph *g, ty_val x)
{
    return ty_b_mul_s(g, ty_b_sub(g, x, ty_b_unary(g, TY_OP_FLOOR, x)), M_PI);
}

ty_val ty_special_lgamma(ty_graph *g, ty_val x)
{
    static const double terms[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188};
    if (x == TY_NONE)
        return x;
    special_gamma s = special_prepare(g, x);
    ty_val over = ty_b_reciprocal(g, s.far), product = s.least;
    ty_val y = ty_b_mul(g, ty_b_add_s(g, s.far, -0.5), ty_b_log(g, s.far));
    y = ty_b_add_s(g, ty_b_sub(g, y, s.far), 0.5 * log(2 * M_PI));
    y = ty_b_add(g, y, ty_b_mul(g, over, special_series(g, ty_b_square(g, over), terms, 5)));
    for (int k = 1; k < SHIFT; k++)
        product = ty_b_mul(g, product, ty_b_add_s(g, s.least, k));
    y = ty_b_sub(g, y, ty_b_select(g, s.is_small, ty_b_log(g, product), ty_b_full_like(g, y, 0)));
    ty_val angle = ty_b_select(g, s.is_low, special_angle(g, s.x), ty_b_full_like(g, s.x, M_PI / 2));
    ty_val sine = ty_b_log(g, ty_b_unary(g, TY_OP_SIN, angle)); /* the angle is from 0 to pi */
    ty_val low = ty_b_sub(g, special_from(g, log(M_PI), sine), y);
    return ty_b_cast(g, ty_b_select(g, s.is_low, low, y), ty_b_dtype(g, x));
}

ty_val ty_special_digamma(ty_graph *g, ty_val x)
{
    static const double terms[] = {-1.0 / 12, 1.0 / 120, -1.0 / 252, 1.0 / 240, -1.0 / 132};
    if (x == TY_NONE)
        return x;
    special_gamma s = special_prepare(g, x);
    ty_val over = ty_b_reciprocal(g, s.far), square = ty_b_square(g, over), sum = ty_b_reciprocal(g, s.least);
    ty_val y = ty_b_sub(g, ty_b_log(g, s.far), ty_b_mul_s(g, over, 0.5));
    y = ty_b_add(g, y, ty_b_mul(g, square, special_series(g, square, terms, 5)));
    for (int k = 1; k < SHIFT; k++)
        sum = ty_b_add(g, sum, ty_b_reciprocal(g, ty_b_add_s(g, s.least, k)));
    y = ty_b_sub(g, y, ty_b_select(g, s.is_small, sum, ty_b_full_like(g, y, 0)));
    ty_val angle = ty_b_select(g, s.is_low, special_angle(g, s.x), ty_b_full_like(g, s.x, M_PI / 2));
    ty_val tangent = ty_b_div(g, ty_b_unary(g, TY_OP_COS, angle), ty_b_unary(g, TY_OP_SIN, angle));
    ty_val low = ty_b_sub(g, y, ty_b_mul_s(g, tangent, M_PI));
    return ty_b_cast(g, ty_b_select(g, s.is_low, low, y), ty_b_dtype(g, x));
}

/* ---- the error function backwards ---- */

/* To some seven digits. */
static ty_val special_erfinv_guess(ty_graph *g, ty_val x)
{
    static const double near[] = {1.50140941,      0.246640727,    -0.00417768164, -0.00125372503, 0.00021858087,
                                  -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08};
    static const double far[] = {2.83297682,     1.00167406,    0.00943887047,  -0.0076224613,  0.00573950773,
                                 -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257};
    ty_val w = ty_b_neg(g, ty_b_log(g, ty_b_mul(g, special_from(g, 1, x), ty_b_add_s(g, x, 1))));
    ty_val is_near = ty_b_lt(g, w, ty_b_full_like(g, w, 5));
    ty_val root = ty_b_unary(g, TY_OP_SQRT, ty_b_select(g, is_near, ty_b_full_like(g, w, 5), w));
    ty_val y = ty_b_select(g, is_near, special_series(g, ty_b_add_s(g, w, -2.5), near, 9),
                           special_series(g, ty_b_add_s(g, root, -3), far, 9));
    return ty_b_mul(g, y, x);
}

/* One step of Newton's from a value that is not differentiated: so its derivative is the function's own. */
static ty_val special_erfinv_step(ty_graph *g, ty_val x, ty_val guess)
{
    guess = ty_special_held(g, guess);
    ty_val miss = ty_b_sub(g, ty_b_unary(g, TY_OP_ERF, guess), x);
    ty_val slope = ty_b_mul_s(g, ty_b_exp(g, ty_b_square(g, guess)), sqrt(M_PI) / 2);
    return ty_b_sub(g, guess, ty_b_mul(g, miss, slope));
}

/* x: double */
static ty_val special_erfinv_double(ty_graph *g, ty_val x)
{
    ty_val size = ty_b_unary(g, TY_OP_ABS, x), one = ty_b_full_like(g, x, 1);
    ty_val inside = ty_b_lt(g, size, one), within = ty_b_select(g, inside, x, ty_b_full_like(g, x, 0));
    ty_val y = special_erfinv_step(g, within, special_erfinv_guess(g, within));
    y = special_erfinv_step(g, within, y);
    ty_val is_low = ty_b_lt(g, x, ty_b_full_like(g, x, 0));
    ty_val end = ty_b_select(g, is_low, ty_b_full_like(g, x, -INFINITY), ty_b_full_like(g, x, INFINITY));
    end = ty_b_select(g, ty_b_eq(g, size, one), end, ty_b_full_like(g, x, (double)NAN));
    return ty_b_select(g, inside, y, end);
}

ty_val ty_special_erfinv(ty_graph *g, ty_val x)
{
    return x == TY_NONE ? x : ty_b_cast(g, special_erfinv_double(g, ty_b_cast(g, x, TY_F64)), ty_b_dtype(g, x));
}

ty_val ty_special_ndtri(ty_graph *g, ty_val x)
{
    if (x == TY_NONE)
        return x;
    ty_val both = ty_b_add_s(g, ty_b_mul_s(g, ty_b_cast(g, x, TY_F64), 2), -1);
    return ty_b_cast(g, ty_b_mul_s(g, special_erfinv_double(g, both), sqrt(2)), ty_b_dtype(g, x));
}
