/* tf_ops_signal.c - complex numbers, as two tensors, and the spectra that they come from.
 *
 * What moves numbers or adds them does the same to each part (TF_EACH in tf_ops.def). Nothing complex reaches the step:
 * models take real parts, absolute values or angles of it.
 */
#include "compiler/import/fourier.h"
#include "compiler/import/tensorflow/tf_ops.h"

#include <stdlib.h>

enum { SIGNAL_MAX = 1 << 20 };

/* Of a + ib; false (and failed) if input i holds no numbers. */
static bool parts_in(tf_ctx *c, int i, ty_val *real, ty_val *imag)
{
    *real = tf_in_parts(c, i, imag);
    return tf_needs_numbers(c, i);
}

static ty_val or_zeros(tf_ctx *c, ty_val imag, ty_val real)
{
    return imag != TY_NONE ? imag : ty_b_full_like(c->g, real, 0);
}

void tf_op_complex(tf_ctx *c)
{
    ty_val zero = ty_b_mul_s(c->g, ty_b_add(c->g, tf_in(c, 0), tf_in(c, 1)), 0); /* both are broadcast */
    tf_set_parts(c, 0, ty_b_add(c->g, tf_in(c, 0), zero), ty_b_add(c->g, tf_in(c, 1), zero));
}

/* arg: 0 the real part, 1 the imaginary one. */
void tf_op_part(tf_ctx *c)
{
    ty_val real, imag;
    if (parts_in(c, 0, &real, &imag))
        tf_set(c, 0, c->row->arg == 0 ? real : or_zeros(c, imag, real));
}

void tf_op_conj(tf_ctx *c)
{
    ty_val real, imag;
    if (!parts_in(c, 0, &real, &imag))
        return;
    if (c->in[0].kind != TF_COMPLEX)
        tf_set(c, 0, real);
    else
        tf_set_parts(c, 0, real, imag == TY_NONE ? TY_NONE : ty_b_neg(c->g, imag));
}

/* |a + ib|, whose gradient at 0 is 0. */
static ty_val absolute(tf_ctx *c, ty_val real, ty_val imag)
{
    ty_graph *g = c->g;
    if (imag == TY_NONE)
        return ty_b_unary(g, TY_OP_ABS, real);
    ty_val sum = ty_b_add(g, ty_b_square(g, real), ty_b_square(g, imag)), zero = ty_b_full_like(g, sum, 0);
    ty_val is_there = ty_b_lt(g, zero, sum), safe = ty_b_select(g, is_there, sum, ty_b_full_like(g, sum, 1));
    return ty_b_select(g, is_there, ty_b_unary(g, TY_OP_SQRT, safe), zero);
}

void tf_op_complex_abs(tf_ctx *c)
{
    ty_val real, imag;
    if (parts_in(c, 0, &real, &imag))
        tf_set(c, 0, absolute(c, real, imag));
}

void tf_op_angle(tf_ctx *c)
{
    ty_val real, imag;
    if (parts_in(c, 0, &real, &imag))
        tf_set(c, 0, tf_angle(c, or_zeros(c, imag, real), real));
}

/* ---- products ---- */

static void multiply(tf_ctx *c, ty_val a, ty_val b, ty_val x, ty_val y)
{
    ty_graph *g = c->g;
    ty_val real = ty_b_mul(g, a, x), imag = TY_NONE;
    if (b != TY_NONE && y != TY_NONE)
        real = ty_b_sub(g, real, ty_b_mul(g, b, y));
    if (y != TY_NONE)
        imag = ty_b_mul(g, a, y);
    if (b != TY_NONE)
        imag = imag == TY_NONE ? ty_b_mul(g, b, x) : ty_b_add(g, imag, ty_b_mul(g, b, x));
    tf_set_parts(c, 0, real, imag);
}

/* (a + ib) / (x + iy), times the conjugate over its square. */
static void divide(tf_ctx *c, ty_val a, ty_val b, ty_val x, ty_val y)
{
    ty_graph *g = c->g;
    ty_val square = ty_b_square(g, x);
    if (y != TY_NONE)
        square = ty_b_add(g, square, ty_b_square(g, y));
    multiply(c, a, b, ty_b_div(g, x, square), y == TY_NONE ? TY_NONE : ty_b_neg(g, ty_b_div(g, y, square)));
}

/* arg: the op of the graph, which does it for real numbers. */
void tf_op_product(tf_ctx *c)
{
    ty_val a, b, x, y;
    if (!parts_in(c, 0, &a, &b) || !parts_in(c, 1, &x, &y))
        return;
    if (c->in[0].kind != TF_COMPLEX && c->in[1].kind != TF_COMPLEX)
        tf_set(c, 0, ty_b_binary(c->g, (ty_op)c->row->arg, a, x));
    else if (c->row->arg == TY_OP_MUL)
        multiply(c, a, b, x, y);
    else
        divide(c, a, b, x, y);
}

void tf_op_exp(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val real, imag;
    if (!parts_in(c, 0, &real, &imag))
        return;
    ty_val exp = ty_b_unary(g, TY_OP_EXP, real);
    if (c->in[0].kind != TF_COMPLEX)
        tf_set(c, 0, exp);
    else if (imag == TY_NONE)
        tf_set_parts(c, 0, exp, TY_NONE);
    else
        tf_set_parts(c, 0, ty_b_mul(g, exp, ty_b_unary(g, TY_OP_COS, imag)),
                     ty_b_mul(g, exp, ty_b_unary(g, TY_OP_SIN, imag)));
}

/* ---- transforms ---- */

typedef struct spectrum {
    ty_val real, imag;
    int rank;
} spectrum;

/* Refuses what has no result, or a matrix beyond all measure. */
static bool length_ok(tf_ctx *c, const spectrum *s, int axis, ty_fourier f)
{
    int64_t entries = tf_dim(c, s->real, axis);
    if (f.n < 1 || f.n > SIGNAL_MAX || entries < 1) {
        tf_fail(c, TY_E_SHAPE, "a transform of %lld numbers, found %lld", (long long)f.n, (long long)entries);
        return false;
    }
    if (ty_fourier_fits(f, entries, 1))
        return true;
    tf_fail(c, TY_E_UNSUPPORTED, "a transform of %lld numbers is too long: its matrix would have over %d numbers",
            (long long)f.n, TY_FOURIER_MAX);
    tf_help(c, "compute such spectra when the data are prepared");
    return false;
}

static bool turn(tf_ctx *c, spectrum *s, int axis, ty_fourier f)
{
    bool is_real = f.is_half && f.is_inverse;
    if (!length_ok(c, s, axis, f))
        return false;
    ty_val real, imag = TY_NONE;
    ty_fourier_parts(c->g, s->real, s->imag, axis, f, &real, is_real ? NULL : &imag);
    s->real = real;
    s->imag = imag;
    return real != TY_NONE;
}

static bool spectrum_in(tf_ctx *c, int axes, spectrum *s)
{
    if (!parts_in(c, 0, &s->real, &s->imag))
        return false;
    s->rank = tf_rank(c, s->real);
    if (s->rank >= axes && tf_is_float(c, s->real))
        return true;
    tf_fail_input(c, 0, TY_E_SHAPE, "must have at least %d ax%s", axes, axes == 1 ? "is" : "es");
    return false;
}

/* fft_length, one number an axis. */
static bool lengths_in(tf_ctx *c, int axes, const int64_t **length)
{
    int64_t n;
    if (!tf_const_ints(c, 1, length, &n))
        return false;
    if (n != axes)
        tf_fail_input(c, 1, TY_E_SHAPE, "must hold %d lengths, found %lld", axes, (long long)n);
    return n == axes;
}

/* arg: number of axes, negative: backwards. */
void tf_op_fft(tf_ctx *c)
{
    spectrum s;
    int axes = abs(c->row->arg);
    if (!spectrum_in(c, axes, &s))
        return;
    for (int axis = s.rank - 1; axis >= s.rank - axes; axis--)
        if (!turn(c, &s, axis, (ty_fourier){.n = tf_dim(c, s.real, axis), .is_inverse = c->row->arg < 0}))
            return;
    tf_set_parts(c, 0, s.real, s.imag);
}

/* arg: number of axes, of which the last has half its bins. */
void tf_op_rfft(tf_ctx *c)
{
    spectrum s;
    const int64_t *length;
    int axes = c->row->arg;
    if (!spectrum_in(c, axes, &s) || !lengths_in(c, axes, &length))
        return;
    for (int k = axes - 1; k >= 0; k--)
        if (!turn(c, &s, s.rank - axes + k, (ty_fourier){.n = length[k], .is_half = k == axes - 1}))
            return;
    tf_set_parts(c, 0, s.real, s.imag);
}

void tf_op_irfft(tf_ctx *c)
{
    spectrum s;
    const int64_t *length;
    int axes = c->row->arg;
    if (!spectrum_in(c, axes, &s) || !lengths_in(c, axes, &length))
        return;
    for (int k = 0; k < axes; k++)
        if (!turn(c, &s, s.rank - axes + k, (ty_fourier){length[k], .is_inverse = true, .is_half = k == axes - 1}))
            return;
    tf_set(c, 0, s.real);
}
