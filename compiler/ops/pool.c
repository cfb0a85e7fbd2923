/* pool.c - maximum and sum over sliding windows, and their gradients.
 *
 * The maximum remembers where it was found, so its gradient is a scatter that never looks at x again.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/combine.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/sliding.h"

#include <inttypes.h>
#include <math.h>

/* Geometry and the type of y for the type of x. */
static int pool_shape_of(ty_sliding *s, const ty_attr *attr, const ty_type *x, ty_type *y, ty_error *err)
{
    if (ty_expect_number("x", x, err) < 0 || ty_sliding_make(s, attr, x, attr->size, err) < 0)
        return -1;
    ty_type first = ty_sliding_first(attr, x);
    return ty_sliding_result(s, attr, x->dtype, first.dim[0], first.dim[1], y, err);
}

/* As above for a maximum: windows of padding alone have none, and positions must fit the index. */
static int pool_max_shape_of(ty_sliding *s, const ty_attr *attr, const ty_type *x, ty_type *y, ty_error *err)
{
    if (pool_shape_of(s, attr, x, y, err) < 0 || ty_sliding_expect_inside(s, err) < 0)
        return -1;
    if (s->in_elems > INT32_MAX)
        return ty_error_set(err, TY_E_SHAPE, "x: expected a spatial plane of at most %d elements, found %" PRId64,
                            INT32_MAX, s->in_elems);
    return 0;
}

int ty_op_infer_pool_max(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    ty_sliding s;
    (void)n_in;
    if (pool_max_shape_of(&s, attr, in[0], &res[0], err) < 0)
        return -1;
    res[1] = res[0];
    res[1].dtype = TY_I32;
    return 0;
}

int ty_op_infer_pool_max_grad(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    ty_sliding s;
    ty_type y;
    (void)n_in;
    if (pool_max_shape_of(&s, attr, &attr->type, &y, err) < 0 || ty_expect_type("dy", in[0], &y, err) < 0)
        return -1;
    y.dtype = TY_I32;
    if (ty_expect_type("index", in[1], &y, err) < 0)
        return -1;
    *res = attr->type;
    return 0;
}

int ty_op_infer_pool_sum(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    ty_sliding s;
    (void)n_in;
    return pool_shape_of(&s, attr, in[0], res, err);
}

int ty_op_infer_pool_sum_grad(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    ty_sliding s;
    ty_type y;
    (void)n_in;
    if (pool_shape_of(&s, attr, &attr->type, &y, err) < 0 || ty_expect_type("dy", in[0], &y, err) < 0)
        return -1;
    *res = attr->type;
    return 0;
}

/* Number of the input element in its plane that tap `tap` of window `out` covers, or -1 for padding. */
static int64_t pool_covered(const ty_sliding *s, int64_t out, int64_t tap)
{
    int64_t o[3] = {out / (s->out[1] * s->out[2]), out / s->out[2] % s->out[1], out % s->out[2]};
    int64_t k[3] = {tap / (s->size[1] * s->size[2]), tap / s->size[2] % s->size[1], tap % s->size[2]}, flat = 0;
    for (int a = 0; a < 3; a++) {
        int64_t at = o[a] * s->step[a] - s->lo[a] + k[a] * s->dil[a];
        if (at < 0 || at >= s->in[a])
            return -1;
        flat = flat * s->in[a] + at;
    }
    return flat;
}

static bool pool_exceeds(const ty_ref *x, int64_t a, int64_t b)
{
    if (!x->f)
        return ty_combine_less_i(x->type.dtype, x->i[b], x->i[a]);
    return x->f[a] > x->f[b] || (isnan(x->f[a]) && !isnan(x->f[b]));
}

/* The functions below see channels-first tensors; pool_laid brings the operands there and the results back. */
typedef int pool_fn(const ty_sliding *s, const ty_ref *in, ty_ref *res, ty_error *err);

/* At most two operands and two results. */
static int pool_laid(const ty_attr *attr, const ty_sliding *s, pool_fn *fn, const ty_ref *in, int n_in, ty_ref *res,
                     int n_res, ty_error *err)
{
    ty_ref from[2], to[2];
    int n_from = 0, n_to = 0, rc = 0;
    for (; n_from < n_in && rc == 0; n_from += rc == 0)
        rc = ty_sliding_enter(attr, &in[n_from], &from[n_from], err);
    for (; n_to < n_res && rc == 0; n_to += rc == 0)
        rc = ty_sliding_enter(attr, &res[n_to], &to[n_to], err);
    if (rc == 0)
        rc = fn(s, from, to, err);
    while (n_from > 0)
        ty_sliding_leave(attr, &from[--n_from], NULL);
    for (int k = 0; k < n_to; k++)
        ty_sliding_leave(attr, &to[k], rc == 0 ? &res[k] : NULL);
    return rc;
}

static int pool_max(const ty_sliding *s, const ty_ref *in, ty_ref *res, ty_error *err)
{
    (void)err;
    int64_t n = ty_type_elems(&res[0].type);
    for (int64_t k = 0; k < n; k++) {
        int64_t plane = k / s->out_elems * s->in_elems, best = -1;
        for (int64_t tap = 0; tap < s->size_elems; tap++) {
            int64_t at = pool_covered(s, k % s->out_elems, tap);
            if (at >= 0 && (best < 0 || pool_exceeds(&in[0], plane + at, plane + best)))
                best = at;
        }
        res[1].i[k] = best;
        if (res[0].f)
            res[0].f[k] = in[0].f[plane + best];
        else
            res[0].i[k] = in[0].i[plane + best];
    }
    return 0;
}

int ty_op_ref_pool_max(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    ty_sliding s;
    ty_type y;
    if (pool_max_shape_of(&s, attr, &in[0].type, &y, err) < 0)
        return -1;
    return pool_laid(attr, &s, pool_max, in, n_in, res, 2, err);
}

static int pool_max_grad(const ty_sliding *s, const ty_ref *in, ty_ref *res, ty_error *err)
{
    int64_t n = ty_type_elems(&in[0].type);
    for (int64_t k = 0; k < n; k++) {
        int64_t at = in[1].i[k];
        if (at < 0 || at >= s->in_elems)
            return ty_error_set(err, TY_E_DATA_VALUE,
                                "index: expected 0 to %" PRId64 ", found %" PRId64 " at element %" PRId64,
                                s->in_elems - 1, at, k);
        ty_combine_into(TY_SUM, &res[0], k / s->out_elems * s->in_elems + at, &in[0], k);
    }
    return 0;
}

int ty_op_ref_pool_max_grad(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    ty_sliding s;
    ty_type y;
    if (pool_max_shape_of(&s, attr, &res[0].type, &y, err) < 0)
        return -1;
    return pool_laid(attr, &s, pool_max_grad, in, n_in, res, 1, err);
}

/* The sum and its gradient move values between the same pairs of elements, in opposite directions. */
static void pool_sum_move(const ty_sliding *s, int64_t n, const ty_ref *from, ty_ref *to, bool to_x)
{
    for (int64_t k = 0; k < n; k++)
        for (int64_t tap = 0; tap < s->size_elems; tap++) {
            int64_t covered = pool_covered(s, k % s->out_elems, tap), at = k / s->out_elems * s->in_elems + covered;
            if (covered >= 0)
                ty_combine_into(TY_SUM, to, to_x ? at : k, from, to_x ? k : at);
        }
}

static int pool_sum(const ty_sliding *s, const ty_ref *in, ty_ref *res, ty_error *err)
{
    (void)err;
    pool_sum_move(s, ty_type_elems(&res->type), in, res, false);
    return 0;
}

static int pool_sum_grad(const ty_sliding *s, const ty_ref *in, ty_ref *res, ty_error *err)
{
    (void)err;
    pool_sum_move(s, ty_type_elems(&in->type), in, res, true);
    return 0;
}

int ty_op_ref_pool_sum(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    ty_sliding s;
    ty_type y;
    if (pool_shape_of(&s, attr, &in[0].type, &y, err) < 0)
        return -1;
    return pool_laid(attr, &s, pool_sum, in, n_in, res, 1, err);
}

int ty_op_ref_pool_sum_grad(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    ty_sliding s;
    ty_type y;
    if (pool_shape_of(&s, attr, &res[0].type, &y, err) < 0)
        return -1;
    return pool_laid(attr, &s, pool_sum_grad, in, n_in, res, 1, err);
}

void ty_op_grad_pool_max(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    if (dres[0] == TY_NONE)
        return;
    ty_attr attr = *ty_graph_attr(g, node);
    attr.type = *ty_graph_type(g, ty_graph_in(g, node, 0));
    din[0] = ty_graph_emit(g, TY_OP_POOL_MAX_GRAD, &attr, (ty_val[]){dres[0], ty_val_make(node, 1)}, 2);
}

void ty_op_grad_pool_sum(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    ty_attr attr = *ty_graph_attr(g, node);
    attr.type = *ty_graph_type(g, ty_graph_in(g, node, 0));
    din[0] = ty_graph_emit(g, TY_OP_POOL_SUM_GRAD, &attr, &dres[0], 1);
}

void ty_op_grad_pool_sum_grad(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    ty_attr attr = *ty_graph_attr(g, node);
    attr.type = (ty_type){0};
    din[0] = ty_graph_emit(g, TY_OP_POOL_SUM, &attr, &dres[0], 1);
}
