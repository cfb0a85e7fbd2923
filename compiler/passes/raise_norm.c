/* raise_norm.c - layer norm, RMS norm, and batch norm with the statistics of the batch.
 *
 *     d = x - mean(x) or x;   hat = d / sqrt(mean(d d) + eps);   y = hat scale + bias
 *
 * The mean is a sum over the last axes divided by their count, or for batch norm over all axes but the channels; the
 * root may be taken first and divided by, or be multiplied with as a reciprocal. Scale and bias are values that are the
 * same for all rows (of all channels there is one each), and may be absent. TensorFlow's tf.nn.batch_normalization, and
 * so Keras' layer norm, has
 *
 *     f = scale / sqrt(mean(d d) + eps);   y = x f + (bias - mean(x) f)
 */
#include "compiler/ir/build.h"
#include "compiler/passes/raise.h"

#include <math.h>

#define NORM_RMS 1u

/* v = mean of *x over *axes, in whatever shape. */
static bool norm_is_mean(const ty_raise *r, ty_val v, ty_val *x, uint32_t *axes)
{
    double factor = 1;
    ty_val sum = ty_raise_unshaped(r, ty_raise_unscaled(r, ty_raise_unshaped(r, v), &factor));
    if (!ty_raise_is(r, sum, TY_OP_REDUCE) || ty_graph_attr(r->g, ty_val_node(sum))->mode != TY_SUM)
        return false;
    *x = ty_raise_in(r, sum, 0);
    *axes = ty_graph_attr(r->g, ty_val_node(sum))->axes;
    double count = (double)ty_type_elems(ty_graph_type(r->g, *x)) / (double)ty_type_elems(ty_graph_type(r->g, sum));
    return fabs(factor * count - 1) < 1e-6;
}

/* The dims of x with 1 on the axes. */
static ty_type norm_kept(const ty_type *x, uint32_t axes)
{
    ty_type t = *x;
    for (int i = 0; i < t.rank; i++)
        if (axes >> i & 1)
            t.dim[i] = 1;
    return t;
}

/* v holds one number a row of x, stretched along the axes: that number, else TY_NONE. */
static ty_val norm_of_row(const ty_raise *r, ty_val v, const ty_type *x, uint32_t axes)
{
    if (!ty_raise_is(r, v, TY_OP_BROADCAST))
        return TY_NONE;
    ty_val row = ty_raise_in(r, v, 0);
    ty_type kept = norm_kept(x, axes);
    return ty_type_same(ty_graph_type(r->g, row), &kept) ? row : TY_NONE;
}

/* v = sqrt(mean(d d) + eps) in whatever shape. */
static bool norm_is_root(const ty_raise *r, ty_val v, ty_op root, ty_val *d, uint32_t *axes, double *eps)
{
    v = ty_raise_unshaped(r, v);
    if (!ty_raise_is(r, v, root))
        return false;
    v = ty_raise_unshaped(r, ty_raise_in(r, v, 0));
    if (!ty_raise_is(r, v, TY_OP_ADD) || !ty_graph_splat_value(r->g, ty_raise_in(r, v, 1), eps) || !(*eps > 0))
        return false;
    ty_val square;
    if (!norm_is_mean(r, ty_raise_in(r, v, 0), &square, axes) || !ty_raise_is(r, square, TY_OP_MUL))
        return false;
    *d = ty_raise_in(r, square, 0);
    return *d == ty_raise_in(r, square, 1);
}

static bool norm_is_reciprocal_root(const ty_raise *r, ty_val v, ty_val *d, uint32_t *axes, double *eps)
{
    double one;
    v = ty_raise_unshaped(r, v);
    if (ty_raise_is(r, v, TY_OP_DIV) && ty_graph_splat_value(r->g, ty_raise_in(r, v, 0), &one) && one == 1)
        return norm_is_root(r, ty_raise_in(r, v, 1), TY_OP_SQRT, d, axes, eps);
    return norm_is_root(r, v, TY_OP_RSQRT, d, axes, eps);
}

/* d = x - mean of x over the axes: x, else TY_NONE. */
static ty_val norm_centered(const ty_raise *r, ty_val d, uint32_t axes)
{
    uint32_t mean_axes;
    ty_val x;
    if (!ty_raise_is(r, d, TY_OP_SUB))
        return TY_NONE;
    ty_val mean = norm_of_row(r, ty_raise_in(r, d, 1), ty_graph_type(r->g, d), axes);
    bool found = mean != TY_NONE && norm_is_mean(r, mean, &x, &mean_axes) && mean_axes == axes;
    return found && x == ty_raise_in(r, d, 0) ? x : TY_NONE;
}

/* hat = d times or over one number a row. */
static bool norm_is_scaled_row(const ty_raise *r, ty_val hat, ty_val d, ty_val factor, uint32_t *axes, double *eps)
{
    ty_val row = ty_raise_is(r, factor, TY_OP_BROADCAST) ? ty_raise_in(r, factor, 0) : TY_NONE, squared;
    bool over = ty_raise_is(r, hat, TY_OP_DIV);
    if (row == TY_NONE || !(over ? norm_is_root(r, row, TY_OP_SQRT, &squared, axes, eps)
                                 : norm_is_reciprocal_root(r, row, &squared, axes, eps)))
        return false;
    bool same = squared == d; /* the variance may have been worked out with a mean of its own */
    if (!same)
        same = norm_centered(r, d, *axes) != TY_NONE && norm_centered(r, d, *axes) == norm_centered(r, squared, *axes);
    return same && norm_of_row(r, factor, ty_graph_type(r->g, d), *axes) != TY_NONE;
}

static bool norm_is_hat(const ty_raise *r, ty_val hat, ty_val *d, uint32_t *axes, double *eps)
{
    bool times = ty_raise_is(r, hat, TY_OP_MUL);
    if (!times && !ty_raise_is(r, hat, TY_OP_DIV))
        return false;
    ty_val a = ty_raise_in(r, hat, 0), b = ty_raise_in(r, hat, 1);
    *d = a;
    if (norm_is_scaled_row(r, hat, a, b, axes, eps))
        return true;
    *d = b;
    return times && norm_is_scaled_row(r, hat, b, a, axes, eps);
}

/* The axes are the last ones: how many; else 0. */
static int norm_last_axes(int rank, uint32_t axes)
{
    int n = 0;
    while (n < rank && (axes >> (rank - 1 - n) & 1))
        n++;
    return n > 0 && axes == ((1u << n) - 1) << (rank - n) ? n : 0;
}

/* v differs along the axes `own` alone: a value with those elements, else TY_NONE. */
static ty_val norm_parameter(const ty_raise *r, ty_val v, const ty_type *x, uint32_t own)
{
    if (ty_raise_is(r, v, TY_OP_BROADCAST))
        v = ty_raise_in(r, v, 0);
    const ty_type *t = ty_graph_type(r->g, v);
    for (int i = 0; i < x->rank; i++)
        if (t->rank != x->rank || t->dim[i] != (own >> i & 1 ? x->dim[i] : 1))
            return TY_NONE;
    return ty_raise_unshaped(r, v);
}

static ty_val norm_build(ty_graph *to, const ty_raise_match *m, const ty_type *type, const ty_val *in)
{
    int n = (int)m->attr.n;
    ty_val row[2] = {TY_NONE, TY_NONE};
    for (int k = 0; k < 2; k++)
        if (in[1 + k] != TY_NONE)
            row[k] = ty_b_reshape(to, in[1 + k], n, type->dim + type->rank - n);
    return ty_graph_emit(to, TY_OP_NORM, &m->attr, (ty_val[]){in[0], row[0], row[1]}, 3);
}

static ty_val norm_build_batch(ty_graph *to, const ty_raise_match *m, const ty_type *type, const ty_val *in)
{
    ty_val channel[2];
    for (int k = 0; k < 2; k++)
        channel[k] = in[1 + k] != TY_NONE ? ty_b_reshape(to, in[1 + k], 1, &type->dim[1])
                                          : ty_b_full(to, (ty_dtype)type->dtype, 1, &type->dim[1], k == 0);
    return ty_graph_emit(to, TY_OP_BATCHNORM, &m->attr, (ty_val[]){in[0], channel[0], channel[1]}, 3);
}

/* hat is found below; what is left is its operand and whether the mean was taken away. */
static bool norm_finish(const ty_raise *r, ty_val hat, ty_raise_match *m, uint32_t *own)
{
    uint32_t axes;
    ty_val d;
    double eps;
    if (!norm_is_hat(r, hat, &d, &axes, &eps))
        return false;
    int rank = ty_graph_type(r->g, d)->rank, n = norm_last_axes(rank, axes);
    ty_val x = norm_centered(r, d, axes);
    if (n > 0) {
        *m = (ty_raise_match){.op = TY_OP_NORM, .n_in = 3, .build = norm_build};
        m->attr = (ty_attr){.n = (uint32_t)n, .flags = x == TY_NONE ? NORM_RMS : 0, .value = eps};
        *own = axes;
    } else if (x != TY_NONE && rank >= 2 && axes == (((1u << rank) - 1) & ~2u)) {
        *m = (ty_raise_match){.op = TY_OP_BATCHNORM, .n_in = 3, .build = norm_build_batch};
        m->attr = (ty_attr){.value = eps};
        *own = 2;
    } else {
        return false;
    }
    m->in[0] = x == TY_NONE ? d : x;
    m->in[1] = m->in[2] = TY_NONE;
    return true;
}

/* v = hat scale, or hat alone. */
static bool norm_is_scaled(const ty_raise *r, ty_val v, ty_raise_match *m, uint32_t *own)
{
    if (norm_finish(r, v, m, own))
        return true;
    for (int i = 0; i < 2 && ty_raise_is(r, v, TY_OP_MUL); i++) {
        if (!norm_finish(r, ty_raise_in(r, v, i), m, own))
            continue;
        m->in[1] = norm_parameter(r, ty_raise_in(r, v, 1 - i), ty_graph_type(r->g, v), *own);
        if (m->in[1] != TY_NONE)
            return true;
    }
    return false;
}

static bool norm_is_shifted(const ty_raise *r, ty_val v, ty_raise_match *m)
{
    uint32_t own;
    for (int i = 0; i < 2 && ty_raise_is(r, v, TY_OP_ADD); i++) {
        if (!norm_is_scaled(r, ty_raise_in(r, v, i), m, &own))
            continue;
        m->in[2] = norm_parameter(r, ty_raise_in(r, v, 1 - i), ty_graph_type(r->g, v), own);
        if (m->in[2] != TY_NONE)
            return true;
    }
    return false;
}

/* ---- TensorFlow's order ---- */

/* v without movement on top of it. */
static ty_val norm_unmoved(const ty_raise *r, ty_val v)
{
    while (ty_raise_is(r, v, TY_OP_BROADCAST) || ty_raise_is(r, v, TY_OP_RESHAPE))
        v = ty_raise_in(r, v, 0);
    return v;
}

/* v = a b or b a, where b stands for `factor`; a, else TY_NONE. */
static ty_val norm_times(const ty_raise *r, ty_val v, ty_val factor)
{
    for (int i = 0; i < 2 && ty_raise_is(r, v, TY_OP_MUL); i++)
        if (norm_unmoved(r, ty_raise_in(r, v, i)) == factor)
            return ty_raise_in(r, v, 1 - i);
    return TY_NONE;
}

/* f = 1 / sqrt(mean(d d) + eps), or that times a scale: *scale, else TY_NONE. */
static bool norm_is_folded_factor(const ty_raise *r, ty_val f, ty_val *d, ty_val *scale, uint32_t *axes, double *eps)
{
    *scale = TY_NONE;
    if (norm_is_reciprocal_root(r, f, d, axes, eps))
        return true;
    for (int i = 0; i < 2 && ty_raise_is(r, f, TY_OP_MUL); i++) {
        *scale = ty_raise_in(r, f, 1 - i);
        if (norm_is_reciprocal_root(r, norm_unmoved(r, ty_raise_in(r, f, i)), d, axes, eps))
            return true;
    }
    return false;
}

/* root = x f + (bias - mean f): the two terms are given. */
static bool norm_is_folded_sum(const ty_raise *r, ty_val product, ty_val rest, ty_raise_match *m)
{
    for (int i = 0; i < 2 && ty_raise_is(r, product, TY_OP_MUL); i++) {
        uint32_t axes, mean_axes;
        double eps;
        ty_val x = ty_raise_in(r, product, i), f = norm_unmoved(r, ty_raise_in(r, product, 1 - i)), d, scale, of;
        if (!norm_is_folded_factor(r, f, &d, &scale, &axes, &eps) || norm_centered(r, d, axes) != x)
            continue;
        const ty_type *t = ty_graph_type(r->g, x);
        int n = norm_last_axes(t->rank, axes);
        rest = norm_unmoved(r, rest);
        if (n == 0 || !ty_raise_is(r, rest, TY_OP_SUB))
            return false;
        ty_val mean = norm_times(r, norm_unmoved(r, ty_raise_in(r, rest, 1)), f);
        if (mean == TY_NONE || !norm_is_mean(r, norm_unmoved(r, mean), &of, &mean_axes) || of != x || mean_axes != axes)
            return false;
        *m = (ty_raise_match){.op = TY_OP_NORM, .n_in = 3, .build = norm_build};
        m->attr = (ty_attr){.n = (uint32_t)n, .value = eps};
        m->in[0] = x;
        m->in[1] = scale == TY_NONE ? TY_NONE : norm_parameter(r, scale, t, axes);
        m->in[2] = norm_parameter(r, ty_raise_in(r, rest, 0), t, axes);
        return m->in[2] != TY_NONE && (scale == TY_NONE) == (m->in[1] == TY_NONE);
    }
    return false;
}

static bool norm_is_folded(const ty_raise *r, ty_val root, ty_raise_match *m)
{
    if (!ty_raise_is(r, root, TY_OP_ADD))
        return false;
    ty_val a = ty_raise_in(r, root, 0), b = ty_raise_in(r, root, 1);
    return norm_is_folded_sum(r, a, b, m) || norm_is_folded_sum(r, b, a, m);
}

bool ty_raise_norm(const ty_raise *r, uint32_t node, ty_raise_match *m)
{
    ty_val root = ty_val_make(node, 0);
    uint32_t own;
    if (!norm_is_shifted(r, root, m) && !norm_is_folded(r, root, m) && !norm_is_scaled(r, root, m, &own))
        return false;
    return ty_raise_closed(r, node, m->in, m->n_in);
}
