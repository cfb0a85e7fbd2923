/* norm.c - normalization of each row: layer norm and RMS norm, with an optional scale and bias.
 *
 *     y = (x - mean) * rstd * scale + bias,   rstd = 1 / sqrt(mean((x - mean)^2) + eps)
 *
 * over the last n axes; RMS norm takes the mean as 0. Group and instance norm are this between two reshapes. Statistics
 * are taken in two passes, which keeps their digits where the mean is large against the spread.
 *
 * lower and grad build their statistics with the same function; the graph holds equal nodes once, so that the gradient
 * uses what the forward pass has computed.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#include <inttypes.h>
#include <math.h>

#define NORM_RMS 1u
enum { NORM_X, NORM_SCALE, NORM_BIAS, NORM_N_IN };

/* scale and bias: the dims of the last n axes; x's dtype, or the wider one of the statistics. */
static int norm_expect_affine(const char *what, const ty_type *t, const ty_type *x, int n, ty_error *err)
{
    ty_type expected = ty_type_make(ty_wide_dtype(x->dtype), n, x->dim + x->rank - n);
    if (t && t->dtype == x->dtype)
        expected.dtype = x->dtype;
    return t ? ty_expect_type(what, t, &expected, err) : 0;
}

int ty_op_infer_norm(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_type *x = in[NORM_X];
    if (ty_expect_float("x", x, err) < 0 || ty_expect_flags(attr, NORM_RMS, err) < 0)
        return -1;
    if (attr->n < 1 || attr->n > x->rank)
        return ty_error_set(err, TY_E_SHAPE, "n: expected 1 to %d axes, found %" PRIu32, x->rank, attr->n);
    if (!(attr->value >= 0) || isinf(attr->value))
        return ty_error_set(err, TY_E_ATTRIBUTE, "epsilon: expected a number of at least 0, found %g", attr->value);
    for (int k = NORM_SCALE; k < n_in; k++)
        if (norm_expect_affine(k == NORM_SCALE ? "scale" : "bias", in[k], x, (int)attr->n, err) < 0)
            return -1;
    *res = *x;
    return 0;
}

static void norm_row(const ty_attr *attr, const double *x, const double *scale, const double *bias, double *y,
                     int64_t n)
{
    double mean = 0, square = 0;
    for (int64_t k = 0; k < n && !(attr->flags & NORM_RMS); k++)
        mean += x[k];
    mean /= (double)n;
    for (int64_t k = 0; k < n; k++)
        square += (x[k] - mean) * (x[k] - mean);
    double rstd = 1 / sqrt(square / (double)n + attr->value);
    for (int64_t k = 0; k < n; k++)
        y[k] = (x[k] - mean) * rstd * (scale ? scale[k] : 1) + (bias ? bias[k] : 0);
}

int ty_op_ref_norm(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t n = 1, elems = ty_type_elems(&in[NORM_X].type);
    const double *scale = n_in > NORM_SCALE ? in[NORM_SCALE].f : NULL;
    const double *bias = n_in > NORM_BIAS ? in[NORM_BIAS].f : NULL;
    (void)err;
    for (int i = 0; i < (int)attr->n; i++)
        n *= in[NORM_X].type.dim[in[NORM_X].type.rank - 1 - i];
    for (int64_t at = 0; at < elems; at += n)
        norm_row(attr, in[NORM_X].f + at, scale, bias, res[0].f + at, n);
    return 0;
}

/* All but y itself, in the wide dtype. */
typedef struct norm_parts {
    uint32_t axes; /* the last n */
    ty_dtype wide;
    ty_val rstd;  /* 1 on the axes */
    ty_val hat;   /* (x - mean) * rstd */
    ty_val scale; /* TY_NONE if absent */
    ty_val bias;
} norm_parts;

static ty_val norm_optional(ty_graph *g, const ty_val *in, int n_in, int k, ty_dtype wide)
{
    return k < n_in && in[k] != TY_NONE ? ty_b_cast(g, in[k], wide) : TY_NONE;
}

static norm_parts norm_parts_of(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in)
{
    const ty_type *t = ty_graph_type(g, in[NORM_X]);
    norm_parts p = {.wide = ty_wide_dtype(t->dtype)};
    p.axes = ((1u << attr->n) - 1) << (t->rank - (int)attr->n);
    ty_val x = ty_b_cast(g, in[NORM_X], p.wide), centered = x;
    if (!(attr->flags & NORM_RMS))
        centered = ty_b_sub(g, x, ty_b_mean(g, x, p.axes, true));
    ty_val square = ty_b_mean(g, ty_b_square(g, centered), p.axes, true);
    p.rstd = ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, square, attr->value));
    p.hat = ty_b_mul(g, centered, p.rstd);
    p.scale = norm_optional(g, in, n_in, NORM_SCALE, p.wide);
    p.bias = norm_optional(g, in, n_in, NORM_BIAS, p.wide);
    return p;
}

void ty_op_lower_norm(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in, ty_val *res)
{
    norm_parts p = norm_parts_of(g, attr, in, n_in);
    ty_val y = p.hat;
    if (p.scale != TY_NONE)
        y = ty_b_mul(g, y, p.scale);
    if (p.bias != TY_NONE)
        y = ty_b_add(g, y, p.bias);
    res[0] = ty_b_cast(g, y, ty_b_dtype(g, in[NORM_X]));
}

/* With h = dy * scale: dx = rstd (h - mean(h) - hat mean(h hat)); RMS norm has no mean(h). */
static ty_val norm_grad_x(ty_graph *g, const ty_attr *attr, const norm_parts *p, ty_val dy)
{
    ty_val h = p->scale != TY_NONE ? ty_b_mul(g, dy, p->scale) : dy, rest = h;
    if (!(attr->flags & NORM_RMS))
        rest = ty_b_sub(g, h, ty_b_mean(g, h, p->axes, true));
    ty_val along = ty_b_mean(g, ty_b_mul(g, h, p->hat), p->axes, true);
    return ty_b_mul(g, p->rstd, ty_b_sub(g, rest, ty_b_mul(g, p->hat, along)));
}

void ty_op_grad_norm(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    int n_in = (int)ty_graph_node(g, node)->n_in;
    ty_val in[NORM_N_IN] = {TY_NONE, TY_NONE, TY_NONE};
    for (int k = 0; k < n_in; k++)
        in[k] = ty_graph_in(g, node, k);
    norm_parts p = norm_parts_of(g, attr, in, n_in);
    uint32_t rows = ty_b_all_axes(g, in[NORM_X]) & ~p.axes;
    ty_val dy = ty_b_cast(g, dres[0], p.wide);
    din[NORM_X] = ty_b_cast(g, norm_grad_x(g, attr, &p, dy), ty_b_dtype(g, in[NORM_X]));
    if (p.scale != TY_NONE)
        din[NORM_SCALE] = ty_b_cast(g, ty_b_sum(g, ty_b_mul(g, dy, p.hat), rows, false), ty_b_dtype(g, in[NORM_SCALE]));
    if (p.bias != TY_NONE)
        din[NORM_BIAS] = ty_b_cast(g, ty_b_sum(g, dy, rows, false), ty_b_dtype(g, in[NORM_BIAS]));
}
