/* reduce.c - combining elements along axes: reduce, and argreduce that tells where the extremum is. */
#include "compiler/ir/build.h"
#include "compiler/ops/combine.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#include <inttypes.h>
#include <math.h>

#define REDUCE_MODES       (1u << TY_SUM | 1u << TY_MAX | 1u << TY_MIN | 1u << TY_PROD)
#define REDUCE_MODES_ORDER (1u << TY_MAX | 1u << TY_MIN)
#define ARGREDUCE_LAST     1u

int ty_op_infer_reduce(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    int64_t dim[TY_MAX_RANK];
    int rank = 0;
    (void)n_in;
    if (ty_expect_mode(attr, in[0]->dtype == TY_BOOL ? REDUCE_MODES_ORDER : REDUCE_MODES, err) < 0)
        return -1;
    if (attr->axes >> in[0]->rank)
        return ty_error_set(err, TY_E_SHAPE, "axes: expected a mask of %d axes, found %#" PRIx32, in[0]->rank,
                            attr->axes);
    for (int i = 0; i < in[0]->rank; i++)
        if (!(attr->axes >> i & 1))
            dim[rank++] = in[0]->dim[i];
    *res = ty_type_make(in[0]->dtype, rank, dim);
    return 0;
}

int ty_op_ref_reduce(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t full[TY_MAX_RANK] = {0}, kept[TY_MAX_RANK] = {0};
    ty_refiter it;
    (void)n_in;
    (void)err;
    ty_refiter_strides(&res[0].type, kept);
    for (int i = 0, k = 0; i < in[0].type.rank; i++)
        if (!(attr->axes >> i & 1))
            full[i] = kept[k++];
    ty_combine_clear(attr->mode, &res[0]);
    for (ty_refiter_start(&it, &in[0].type); it.more; ty_refiter_next(&it))
        ty_combine_into(attr->mode, &res[0], ty_refiter_dot(&it, full), &in[0], it.flat);
    return 0;
}

/* A value of the reduced shape with the reduced axes as 1 again. */
static ty_val reduce_keep(ty_graph *g, ty_val v, const ty_type *x, uint32_t axes)
{
    int64_t dim[TY_MAX_RANK] = {0};
    for (int i = 0; i < x->rank; i++)
        dim[i] = axes >> i & 1 ? 1 : x->dim[i];
    return ty_b_reshape(g, v, x->rank, dim);
}

/* The reduced axes laid out as one, the last: [rows, n]. */
typedef struct reduce_rows {
    int rank;
    int64_t perm[TY_MAX_RANK], back[TY_MAX_RANK]; /* to the layout, and from it */
    int64_t moved[TY_MAX_RANK];                   /* dims of x, permuted */
    int64_t flat[2];
} reduce_rows;

static reduce_rows reduce_layout(const ty_type *t, uint32_t axes)
{
    reduce_rows r = {.rank = t->rank, .flat = {1, 1}};
    int n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < t->rank; i++)
            if ((int)(axes >> i & 1) == pass) {
                r.flat[pass] *= t->dim[i];
                r.moved[n] = t->dim[i];
                r.back[i] = n;
                r.perm[n++] = i;
            }
    return r;
}

static ty_val reduce_to_rows(ty_graph *g, const reduce_rows *r, ty_val x)
{
    return ty_b_reshape(g, ty_b_transpose(g, x, r->perm), 2, r->flat);
}

static ty_val reduce_from_rows(ty_graph *g, const reduce_rows *r, ty_val rows)
{
    return ty_b_transpose(g, ty_b_reshape(g, rows, r->rank, r->moved), r->back);
}

/* dy divided equally among the elements that equal the extremum (as torch.amax does).
 *
 * What is compared lies in memory. Were it x with y, each kernel could compute x anew, with a product contracted into a
 * sum here and not there, and no element would equal the extremum. The place that argreduce, a call, finds keeps the
 * comparison out of the kernel that makes x, and its operand in memory. */
static ty_val reduce_grad_extremum(ty_graph *g, ty_val x, ty_combine how, ty_val dy, uint32_t axes)
{
    reduce_rows r = reduce_layout(ty_graph_type(g, x), axes);
    if (r.flat[1] == 0)
        return ty_b_full_like(g, x, 0);
    int64_t column[2] = {r.flat[0], 1};
    ty_val rows = reduce_to_rows(g, &r, x), place = ty_b_argreduce(g, rows, how, 1, false);
    ty_val best = ty_b_take(g, rows, ty_b_reshape(g, place, 2, column), 1);
    ty_val mask = ty_b_cast(g, ty_b_eq(g, rows, best), ty_b_dtype(g, x));
    ty_val share = ty_b_div(g, ty_b_reshape(g, dy, 2, column), ty_b_sum(g, mask, 2, true));
    return reduce_from_rows(g, &r, ty_b_mul(g, mask, share));
}

/* Each element's factor is the product of all others: those before it times those after it. Unlike y / x this is right
 * where elements are zero. */
static ty_val reduce_grad_prod(ty_graph *g, ty_val x, ty_val dy, uint32_t axes)
{
    reduce_rows r = reduce_layout(ty_graph_type(g, x), axes);
    ty_val rows = reduce_to_rows(g, &r, x);
    ty_val before = ty_b_scan(g, rows, TY_PROD, 1, true, false);
    ty_val after = ty_b_scan(g, rows, TY_PROD, 1, true, true);
    return ty_b_mul(g, reduce_from_rows(g, &r, ty_b_mul(g, before, after)), dy);
}

void ty_op_grad_reduce(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    ty_val x = ty_graph_in(g, node, 0);
    const ty_type *t = ty_graph_type(g, x);
    ty_val dy = reduce_keep(g, dres[0], t, attr->axes);
    switch ((ty_combine)attr->mode) {
    case TY_SUM:
        din[0] = ty_b_broadcast(g, dy, t->rank, t->dim);
        break;
    case TY_PROD:
        din[0] = reduce_grad_prod(g, x, dy, attr->axes);
        break;
    default:
        din[0] = reduce_grad_extremum(g, x, (ty_combine)attr->mode, dy, attr->axes);
    }
}

int ty_op_infer_argreduce(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    int64_t dim[TY_MAX_RANK];
    int rank = 0;
    (void)n_in;
    if (ty_expect_mode(attr, REDUCE_MODES_ORDER, err) < 0 || ty_expect_axis(attr, in[0], err) < 0 ||
        ty_expect_flags(attr, ARGREDUCE_LAST, err) < 0)
        return -1;
    if (in[0]->dim[attr->axis] < 1)
        return ty_error_set(err, TY_E_SHAPE, "axis %" PRId64 ": expected at least one element, found 0", attr->axis);
    for (int i = 0; i < in[0]->rank; i++)
        if (i != attr->axis)
            dim[rank++] = in[0]->dim[i];
    *res = ty_type_make(TY_I64, rank, dim);
    return 0;
}

/* The order of element a to element b: 1 if a is nearer to the extremum, 0 if equal, -1 if farther. NaN is nearest. */
static int argreduce_order(ty_combine how, const ty_ref *x, int64_t a, int64_t b)
{
    if (!x->f) {
        int less = ty_combine_less_i(x->type.dtype, x->i[a], x->i[b]);
        int more = ty_combine_less_i(x->type.dtype, x->i[b], x->i[a]);
        return how == TY_MAX ? more - less : less - more;
    }
    if (isnan(x->f[a]) || isnan(x->f[b]))
        return !!isnan(x->f[a]) - !!isnan(x->f[b]);
    int order = (x->f[a] > x->f[b]) - (x->f[a] < x->f[b]);
    return how == TY_MAX ? order : -order;
}

int ty_op_ref_argreduce(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t outer, n, inner;
    int enough = attr->flags & ARGREDUCE_LAST ? 0 : 1;
    (void)n_in;
    (void)err;
    ty_refiter_split(&in[0].type, attr->axis, &outer, &n, &inner);
    for (int64_t row = 0; row < outer * inner; row++) {
        int64_t start = row / inner * n * inner + row % inner, best = 0;
        for (int64_t k = 1; k < n; k++)
            if (argreduce_order(attr->mode, &in[0], start + k * inner, start + best * inner) >= enough)
                best = k;
        res[0].i[row] = best;
    }
    return 0;
}
