/* batchnorm.c - normalization of each channel by statistics over the batch, as in training.
 *
 *     y = (x - mean) * rstd * scale + bias,   rstd = 1 / sqrt(var + eps)
 *
 * x [N, C, ..]; mean and (biased) var are taken over all axes but C. They are results too, for running averages. With
 * running statistics, as in inference, batch norm is elementwise and needs no op.
 *
 * Over several replicas each has statistics of its own, mean_r and var_r over as many elements, and those of all are
 *     mean = sum(mean_r) / R,   var = sum(var_r + (mean_r - mean)^2) / R,
 * two sums over the replicas forward, and one back for what a replica's x does to the others through them.
 *
 * lower and grad build their statistics with the same function, so that equal nodes exist once.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#include <inttypes.h>
#include <math.h>

enum { BATCHNORM_X, BATCHNORM_SCALE, BATCHNORM_BIAS };
enum { BATCHNORM_Y, BATCHNORM_MEAN, BATCHNORM_VAR };

int ty_op_infer_batchnorm(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_type *x = in[BATCHNORM_X];
    (void)n_in;
    if (ty_expect_float("x", x, err) < 0 || ty_expect_rank("x", x, 2, TY_MAX_RANK, err) < 0)
        return -1;
    if (!(attr->value >= 0) || isinf(attr->value))
        return ty_error_set(err, TY_E_ATTRIBUTE, "epsilon: expected a number of at least 0, found %g", attr->value);
    if (attr->replicas < 0 || attr->replicas > TY_MAX_REPLICAS)
        return ty_error_set(err, TY_E_ATTRIBUTE, "replicas: expected 0 to %d, found %" PRId64, TY_MAX_REPLICAS,
                            attr->replicas);
    if (ty_type_elems(x) == 0)
        return ty_error_set(err, TY_E_SHAPE, "x: expected at least one element a channel, found none");
    ty_type channel = ty_type_make(ty_wide_dtype(x->dtype), 1, &x->dim[1]);
    for (int k = BATCHNORM_SCALE; k <= BATCHNORM_BIAS; k++) {
        ty_type expected = channel;
        if (in[k]->dtype == x->dtype)
            expected.dtype = x->dtype;
        if (ty_expect_type(k == BATCHNORM_SCALE ? "scale" : "bias", in[k], &expected, err) < 0)
            return -1;
    }
    res[BATCHNORM_Y] = *x;
    res[BATCHNORM_MEAN] = res[BATCHNORM_VAR] = channel;
    return 0;
}

/* Channel c of [outer, C, inner]. */
static void batchnorm_channel(const ty_attr *attr, const ty_ref *in, ty_ref *res, int64_t c, int64_t outer, int64_t n_c,
                              int64_t inner)
{
    double mean = 0, var = 0, count = (double)(outer * inner);
    const double *x = in[BATCHNORM_X].f;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++)
            mean += x[(o * n_c + c) * inner + i];
    mean /= count;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            double d = x[(o * n_c + c) * inner + i] - mean;
            var += d * d;
        }
    var /= count;
    double factor = in[BATCHNORM_SCALE].f[c] / sqrt(var + attr->value), shift = in[BATCHNORM_BIAS].f[c];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            int64_t at = (o * n_c + c) * inner + i;
            res[BATCHNORM_Y].f[at] = (x[at] - mean) * factor + shift;
        }
    res[BATCHNORM_MEAN].f[c] = mean;
    res[BATCHNORM_VAR].f[c] = var;
}

int ty_op_ref_batchnorm(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t outer, n, inner;
    (void)n_in;
    (void)err;
    ty_refiter_split(&in[BATCHNORM_X].type, 1, &outer, &n, &inner);
    for (int64_t c = 0; c < n; c++)
        batchnorm_channel(attr, in, res, c, outer, n, inner);
    return 0;
}

/* What lower and grad share, in the wide dtype; per channel values have x's rank, [1, C, 1 ..]. */
typedef struct batchnorm_parts {
    uint32_t axes; /* all but C */
    ty_dtype wide;
    int64_t count; /* elements a channel, of all replicas */
    int64_t replicas;
    int rank;
    int64_t channel[TY_MAX_RANK]; /* 1, C, 1 .. */
    ty_val mean, var, rstd;
    ty_val centered; /* x - mean */
    ty_val scale;
} batchnorm_parts;

static ty_val batchnorm_per_channel(ty_graph *g, const batchnorm_parts *p, ty_val v)
{
    return ty_b_reshape(g, ty_b_cast(g, v, p->wide), p->rank, p->channel);
}

/* Statistics are gathered in blocks: the images of the batch, each cut along its first spatial axis into `parts`. */
#define BATCHNORM_BLOCKS     16   /* at least, so that threads have work */
#define BATCHNORM_BLOCK_ROWS 4096 /* at most, positions of a block, so that sums stay exact */
#define BATCHNORM_LEAST_ROWS 8    /* below, positions of an image are too few for blocks */

static int64_t batchnorm_cut(const ty_type *t, int64_t positions)
{
    int64_t cut = 1;
    for (int64_t parts = 1; parts <= t->dim[2]; parts++) {
        if (t->dim[2] % parts || positions / parts < BATCHNORM_LEAST_ROWS)
            continue;
        cut = parts;
        if (t->dim[0] * parts >= BATCHNORM_BLOCKS && positions / parts <= BATCHNORM_BLOCK_ROWS)
            break;
    }
    return cut;
}

/* Mean, and sum of squared distances to it, over `axes` of n elements each, in one pass over v; the axes are removed.
 * What is summed are distances to the first element, which lies near the mean where it matters: Chan, Golub and
 * LeVeque, "Algorithms for computing the sample variance" (1983). */
static void batchnorm_moments(ty_graph *g, ty_val v, uint32_t axes, int64_t n, ty_val *mean, ty_val *squares)
{
    ty_val first = v;
    for (int i = 0; i < ty_b_rank(g, v); i++)
        if (axes >> i & 1)
            first = ty_b_slice_axis(g, first, i, 0, 1);
    ty_val d = ty_b_sub(g, v, first), sum = ty_b_sum(g, d, axes, false);
    ty_val off = ty_b_mul_s(g, ty_b_square(g, sum), 1 / (double)n);
    ty_val rest = ty_b_sub(g, ty_b_sum(g, ty_b_square(g, d), axes, false), off);
    const ty_type *t = ty_graph_type(g, sum);
    if (ty_graph_failed(g, NULL))
        return;
    *mean = ty_b_add(g, ty_b_reshape(g, first, t->rank, t->dim), ty_b_mul_s(g, sum, 1 / (double)n));
    *squares = ty_b_max(g, rest, ty_b_full_like(g, rest, 0));
}

/* Mean and variance of x [N, C, spatial..]: of each block, then of the blocks together. */
static void batchnorm_in_blocks(ty_graph *g, batchnorm_parts *p, ty_val x, int64_t positions)
{
    const ty_type t = *ty_graph_type(g, x);
    int64_t parts = batchnorm_cut(&t, positions), blocks = t.dim[0] * parts, rows = positions / parts;
    int64_t dim[TY_MAX_RANK] = {t.dim[0], t.dim[1], parts, t.dim[2] / parts};
    uint32_t inside = p->axes & ~1u, between = 1u;
    for (int i = 3; i < t.rank; i++)
        dim[i + 1] = t.dim[i];
    if (parts > 1) { /* [N, C, parts, ..] */
        x = ty_b_reshape(g, x, t.rank + 1, dim);
        inside = inside << 1 & ~4u;
        between |= 4u;
    }
    ty_val mean = TY_NONE, squares = TY_NONE, spread = TY_NONE;
    batchnorm_moments(g, x, inside, rows, &mean, &squares);
    ty_val all = ty_b_sum(g, squares, between, false);
    batchnorm_moments(g, mean, between, blocks, &mean, &spread);
    all = ty_b_add(g, all, ty_b_mul_s(g, spread, (double)rows));
    p->mean = ty_b_reshape(g, mean, p->rank, p->channel);
    p->var = ty_b_reshape(g, ty_b_mul_s(g, all, 1 / (double)p->count), p->rank, p->channel);
}

/* What stands in the place of the replica's own statistics. */
static void batchnorm_across(ty_graph *g, batchnorm_parts *p)
{
    double share = 1 / (double)p->replicas;
    ty_val own = p->mean;
    p->mean = ty_b_mul_s(g, ty_b_all_reduce(g, own, p->replicas), share);
    ty_val off = ty_b_square(g, ty_b_sub(g, own, p->mean));
    p->var = ty_b_mul_s(g, ty_b_all_reduce(g, ty_b_add(g, p->var, off), p->replicas), share);
    p->count *= p->replicas;
}

static void batchnorm_own_statistics(ty_graph *g, batchnorm_parts *p, ty_val x);

/* Of a concatenation of channels those of each part: where layer after layer normalises all that there is so far, as in
 * a dense block, a part's statistics then exist once. */
static void batchnorm_by_parts(ty_graph *g, batchnorm_parts *p, uint32_t concat)
{
    int n = (int)ty_graph_node(g, concat)->n_in;
    ty_val *mean = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, n), *var = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, n);
    for (int i = 0; i < n; i++) {
        ty_val part = ty_graph_in(g, concat, i);
        batchnorm_parts own = *p;
        own.channel[1] = ty_b_dim(g, part, 1);
        batchnorm_own_statistics(g, &own, part);
        mean[i] = own.mean;
        var[i] = own.var;
    }
    p->mean = ty_b_concat(g, mean, n, 1);
    p->var = ty_b_concat(g, var, n, 1);
}

/* The replica's, of x [N, C, spatial..] in any float dtype. */
static void batchnorm_own_statistics(ty_graph *g, batchnorm_parts *p, ty_val x)
{
    if (x == TY_NONE || ty_graph_failed(g, NULL))
        return;
    uint32_t node = ty_val_node(x);
    if (ty_graph_op(g, node) == TY_OP_CONCAT && ty_graph_attr(g, node)->axis == 1) {
        batchnorm_by_parts(g, p, node);
        return;
    }
    int64_t positions = p->count / ty_b_dim(g, x, 0);
    ty_val wide = ty_b_cast(g, x, p->wide);
    if (positions >= BATCHNORM_LEAST_ROWS && p->rank < TY_MAX_RANK) {
        batchnorm_in_blocks(g, p, wide, positions);
    } else {
        p->mean = ty_b_mean(g, wide, p->axes, true);
        p->var = ty_b_mean(g, ty_b_square(g, ty_b_sub(g, wide, p->mean)), p->axes, true);
    }
}

static batchnorm_parts batchnorm_parts_of(ty_graph *g, const ty_attr *attr, ty_val x, ty_val scale)
{
    const ty_type *t = ty_graph_type(g, x);
    batchnorm_parts p = {.axes = ((1u << t->rank) - 1) & ~2u, .wide = ty_wide_dtype(t->dtype), .rank = t->rank};
    p.replicas = attr->replicas > 1 ? attr->replicas : 1;
    p.count = ty_type_elems(t) / t->dim[1];
    for (int i = 0; i < t->rank; i++)
        p.channel[i] = i == 1 ? t->dim[1] : 1;
    batchnorm_own_statistics(g, &p, x);
    if (p.replicas > 1)
        batchnorm_across(g, &p);
    p.centered = ty_b_sub(g, ty_b_cast(g, x, p.wide), p.mean);
    p.rstd = ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, p.var, attr->value));
    p.scale = batchnorm_per_channel(g, &p, scale);
    return p;
}

void ty_op_lower_batchnorm(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in, ty_val *res)
{
    const ty_type *t = ty_graph_type(g, in[BATCHNORM_X]);
    batchnorm_parts p = batchnorm_parts_of(g, attr, in[BATCHNORM_X], in[BATCHNORM_SCALE]);
    (void)n_in;
    ty_val y = ty_b_mul(g, p.centered, ty_b_mul(g, p.rstd, p.scale)); /* the factor once a channel */
    y = ty_b_add(g, y, batchnorm_per_channel(g, &p, in[BATCHNORM_BIAS]));
    res[BATCHNORM_Y] = ty_b_cast(g, y, t->dtype);
    res[BATCHNORM_MEAN] = ty_b_reshape(g, p.mean, 1, &t->dim[1]);
    res[BATCHNORM_VAR] = ty_b_reshape(g, p.var, 1, &t->dim[1]);
}

/* Values of one shape over all replicas, at once. */
static void batchnorm_reduce(ty_graph *g, const batchnorm_parts *p, ty_val *v, int n)
{
    if (p->replicas == 1)
        return;
    ty_val sum = ty_b_all_reduce(g, ty_b_concat(g, v, n, 0), p->replicas);
    for (int i = 0; i < n; i++)
        v[i] = ty_b_slice_axis(g, sum, 0, i, i + 1);
}

/* Through y: with hat = (x - mean) rstd,
 *     dbias = sum(dy), dscale = sum(dy hat), dx = scale rstd (dy - dbias / M - hat dscale / M),
 * where the gradients of scale and bias are those of the replica's loss and dx has to do with all.
 * din[0] is left in the wide dtype for batchnorm_grad_statistics to add to. */
static void batchnorm_grad_y(ty_graph *g, const batchnorm_parts *p, ty_val dy, ty_val *din)
{
    ty_val dbias = ty_b_sum(g, dy, p->axes, true);
    ty_val dscale = ty_b_mul(g, ty_b_sum(g, ty_b_mul(g, dy, p->centered), p->axes, true), p->rstd);
    ty_val all[2] = {dscale, dbias};
    batchnorm_reduce(g, p, all, 2);
    ty_val slope = ty_b_mul_s(g, ty_b_mul(g, all[0], p->rstd), 1 / (double)p->count);
    ty_val dx = ty_b_sub(g, dy, ty_b_mul_s(g, all[1], 1 / (double)p->count));
    dx = ty_b_sub(g, dx, ty_b_mul(g, p->centered, slope));
    din[BATCHNORM_X] = ty_b_mul(g, dx, ty_b_mul(g, p->rstd, p->scale));
    din[BATCHNORM_SCALE] = dscale;
    din[BATCHNORM_BIAS] = dbias;
}

/* Through mean: dx += dmean / M. Through var: dx += dvar 2 (x - mean) / M. */
static void batchnorm_grad_statistics(ty_graph *g, const batchnorm_parts *p, ty_val dmean, ty_val dvar, ty_val *dx)
{
    ty_val part[2] = {TY_NONE, TY_NONE};
    if (dmean != TY_NONE) {
        ty_val each = ty_b_mul_s(g, batchnorm_per_channel(g, p, dmean), 1 / (double)p->count);
        each = ty_b_all_reduce(g, each, p->replicas);
        const ty_type *t = ty_graph_type(g, p->centered);
        part[0] = ty_b_broadcast(g, each, t->rank, t->dim);
    }
    if (dvar != TY_NONE)
        part[1] = ty_b_mul(
            g, p->centered,
            ty_b_all_reduce(g, ty_b_mul_s(g, batchnorm_per_channel(g, p, dvar), 2 / (double)p->count), p->replicas));
    for (int i = 0; i < 2; i++)
        if (part[i] != TY_NONE)
            *dx = *dx == TY_NONE ? part[i] : ty_b_add(g, *dx, part[i]);
}

void ty_op_grad_batchnorm(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    ty_val in[3] = {ty_graph_in(g, node, 0), ty_graph_in(g, node, 1), ty_graph_in(g, node, 2)};
    batchnorm_parts p = batchnorm_parts_of(g, ty_graph_attr(g, node), in[BATCHNORM_X], in[BATCHNORM_SCALE]);
    if (ty_graph_failed(g, NULL))
        return;
    if (dres[BATCHNORM_Y] != TY_NONE)
        batchnorm_grad_y(g, &p, ty_b_cast(g, dres[BATCHNORM_Y], p.wide), din);
    batchnorm_grad_statistics(g, &p, dres[BATCHNORM_MEAN], dres[BATCHNORM_VAR], &din[BATCHNORM_X]);
    for (int k = 0; k < 3; k++) {
        const ty_type *t = ty_graph_type(g, in[k]);
        if (din[k] != TY_NONE)
            din[k] = ty_b_cast(g, ty_b_reshape(g, din[k], t->rank, t->dim), t->dtype);
    }
}
