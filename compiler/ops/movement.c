/* movement.c - ops that move elements and compute nothing: shapes, permutations, cuts and joins. */
#include "compiler/ir/build.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#include <math.h>
#include <string.h>

/* ---- types ---- */

static int movement_expect_n(const ty_attr *attr, const ty_type *x, ty_error *err)
{
    if (attr->n != x->rank)
        return ty_error_set(err, TY_E_SHAPE, "lists of %u entries for rank %d", attr->n, x->rank);
    return 0;
}

int ty_op_infer_again(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)attr, (void)n_in, (void)err;
    *res = *in[0];
    return 0;
}

int ty_op_infer_reshape(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (ty_expect_result((ty_dtype)in[0]->dtype, attr->type.rank, attr->type.dim, res, err) < 0)
        return -1;
    char to[160];
    if (ty_type_elems(in[0]) != ty_type_elems(res))
        return ty_error_set(err, TY_E_SHAPE, "%lld elements cannot take the shape of %s with %lld",
                            (long long)ty_type_elems(in[0]), ty_type_text(res, to, sizeof to),
                            (long long)ty_type_elems(res));
    return 0;
}

int ty_op_infer_transpose(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (movement_expect_n(attr, in[0], err) < 0)
        return -1;
    uint32_t seen = 0;
    res[0] = *in[0];
    for (int i = 0; i < in[0]->rank; i++) {
        int64_t axis = attr->lo[i];
        if (axis < 0 || axis >= in[0]->rank || (seen >> axis & 1))
            return ty_error_set(err, TY_E_SHAPE, "entry %d of the permutation is %lld: each axis from 0 to %d once", i,
                                (long long)axis, in[0]->rank - 1);
        seen |= 1u << axis;
        res->dim[i] = in[0]->dim[axis];
    }
    return 0;
}

int ty_op_infer_broadcast(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    const ty_type *x = in[0];
    if (ty_expect_result((ty_dtype)x->dtype, attr->type.rank, attr->type.dim, res, err) < 0)
        return -1;
    bool fits = x->rank == res->rank;
    for (int i = 0; i < x->rank && fits; i++)
        fits = x->dim[i] == res->dim[i] || x->dim[i] == 1;
    char to[160];
    if (!fits)
        return ty_error_set(err, TY_E_SHAPE, "does not stretch to %s: dims must be equal or 1",
                            ty_type_text(res, to, sizeof to));
    return 0;
}

int ty_op_infer_slice(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (movement_expect_n(attr, in[0], err) < 0)
        return -1;
    res[0] = *in[0];
    for (int i = 0; i < in[0]->rank; i++) {
        int64_t lo = attr->lo[i], hi = attr->hi[i], step = attr->step[i];
        if (lo < 0 || hi < lo || hi > in[0]->dim[i] || step < 1)
            return ty_error_set(err, TY_E_SHAPE, "axis %d has %lld elements; [%lld:%lld:%lld] is not a part of it", i,
                                (long long)in[0]->dim[i], (long long)lo, (long long)hi, (long long)step);
        res->dim[i] = hi > lo ? (hi - lo - 1) / step + 1 : 0;
    }
    return 0;
}

int ty_op_infer_pad(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (movement_expect_n(attr, in[0], err) < 0)
        return -1;
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i < in[0]->rank; i++) {
        int64_t lo = attr->lo[i], hi = attr->hi[i];
        bool overflow = __builtin_add_overflow(in[0]->dim[i], lo, &dim[i]);
        overflow = __builtin_add_overflow(dim[i], hi, &dim[i]) || overflow;
        if (lo < 0 || hi < 0 || overflow)
            return ty_error_set(err, TY_E_SHAPE, "padding of axis %d is %lld and %lld; expected 0 or more", i,
                                (long long)lo, (long long)hi);
    }
    bool is_float = ty_dtype_is_float((ty_dtype)in[0]->dtype);
    if (!is_float && !(fabs(attr->value) < 0x1p63 && attr->value == trunc(attr->value)))
        return ty_error_set(err, TY_E_ATTRIBUTE, "padding is filled with %g; expected a value of %s", attr->value,
                            ty_dtype_text((ty_dtype)in[0]->dtype));
    return ty_expect_result((ty_dtype)in[0]->dtype, in[0]->rank, dim, res, err);
}

int ty_op_infer_concat(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    if (ty_expect_axis(attr, in[0], err) < 0)
        return -1;
    ty_type t = *in[0];
    int64_t *along = &t.dim[attr->axis];
    for (int i = 1; i < n_in; i++) {
        ty_type like = t;
        like.dim[attr->axis] = in[i]->rank == t.rank ? in[i]->dim[attr->axis] : *along;
        if (ty_expect_type("a further input", in[i], &like, err) < 0)
            return -1;
        if (__builtin_add_overflow(*along, in[i]->dim[attr->axis], along))
            return ty_error_set(err, TY_E_SHAPE, "the result is too large to address");
    }
    return ty_expect_result((ty_dtype)t.dtype, t.rank, t.dim, res, err);
}

int ty_op_infer_reverse(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (attr->axes >> in[0]->rank)
        return ty_error_set(err, TY_E_SHAPE, "axes 0x%x are not all in rank %d", attr->axes, in[0]->rank);
    res[0] = *in[0];
    return 0;
}

/* ---- meaning ---- */

/* res[at] = x[base + sum of at[i] * stride[i]] */
static void movement_copy_strided(ty_ref *res, const ty_ref *x, int64_t base, const int64_t *stride)
{
    ty_refiter it;
    for (ty_refiter_start(&it, &res->type); it.more; ty_refiter_next(&it))
        ty_refiter_copy(res, it.flat, x, base + ty_refiter_dot(&it, stride));
}

/* res[base + sum of at[i] * stride[i]] = x[at] */
static void movement_place_strided(ty_ref *res, const ty_ref *x, int64_t base, const int64_t *stride)
{
    ty_refiter it;
    for (ty_refiter_start(&it, &x->type); it.more; ty_refiter_next(&it))
        ty_refiter_copy(res, base + ty_refiter_dot(&it, stride), x, it.flat);
}

int ty_op_ref_reshape(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)attr, (void)n_in, (void)err;
    size_t n_bytes = 8 * (size_t)ty_type_elems(&res->type);
    if (res->f)
        memcpy(res->f, in->f, n_bytes);
    else
        memcpy(res->i, in->i, n_bytes);
    return 0;
}

int ty_op_ref_again(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)attr, (void)n_in, (void)err;
    size_t n_bytes = 8 * (size_t)ty_type_elems(&res->type);
    if (res->f)
        memcpy(res->f, in->f, n_bytes);
    else
        memcpy(res->i, in->i, n_bytes);
    return 0;
}

int ty_op_ref_transpose(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)n_in, (void)err;
    int64_t of_x[TY_MAX_RANK], stride[TY_MAX_RANK];
    ty_refiter_strides(&in->type, of_x);
    for (int i = 0; i < res->type.rank; i++)
        stride[i] = of_x[attr->lo[i]];
    movement_copy_strided(res, in, 0, stride);
    return 0;
}

int ty_op_ref_broadcast(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)attr, (void)n_in, (void)err;
    int64_t stride[TY_MAX_RANK];
    ty_refiter_strides(&in->type, stride);
    for (int i = 0; i < res->type.rank; i++)
        if (in->type.dim[i] == 1)
            stride[i] = 0;
    movement_copy_strided(res, in, 0, stride);
    return 0;
}

int ty_op_ref_slice(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)n_in, (void)err;
    int64_t stride[TY_MAX_RANK], base = 0;
    ty_refiter_strides(&in->type, stride);
    for (int i = 0; i < res->type.rank; i++) {
        base += attr->lo[i] * stride[i];
        stride[i] *= attr->step[i];
    }
    movement_copy_strided(res, in, base, stride);
    return 0;
}

int ty_op_ref_pad(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)n_in, (void)err;
    int64_t stride[TY_MAX_RANK], base = 0;
    for (int64_t k = 0, n = ty_type_elems(&res->type); k < n; k++) {
        if (res->f)
            res->f[k] = attr->value;
        else
            res->i[k] = ty_refiter_wrap((ty_dtype)res->type.dtype, (int64_t)attr->value);
    }
    ty_refiter_strides(&res->type, stride);
    for (int i = 0; i < res->type.rank; i++)
        base += attr->lo[i] * stride[i];
    movement_place_strided(res, in, base, stride);
    return 0;
}

int ty_op_ref_concat(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)err;
    int64_t stride[TY_MAX_RANK], at = 0;
    ty_refiter_strides(&res->type, stride);
    for (int i = 0; i < n_in; i++) {
        movement_place_strided(res, &in[i], at * stride[attr->axis], stride);
        at += in[i].type.dim[attr->axis];
    }
    return 0;
}

int ty_op_ref_reverse(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)n_in, (void)err;
    int64_t stride[TY_MAX_RANK], base = 0;
    ty_refiter_strides(&in->type, stride);
    for (int i = 0; i < res->type.rank; i++) {
        if (!(attr->axes >> i & 1))
            continue;
        base += (res->type.dim[i] - 1) * stride[i];
        stride[i] = -stride[i];
    }
    movement_copy_strided(res, in, base, stride);
    return 0;
}

/* ---- gradients: each op's inverse, or what sums or fills where it repeats or drops ---- */

void ty_op_grad_again(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    (void)g, (void)node;
    din[0] = dres[0];
}

void ty_op_grad_reshape(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_type *x = ty_graph_type(g, ty_graph_in(g, node, 0));
    din[0] = ty_b_reshape(g, dres[0], x->rank, x->dim);
}

/* The gradient of a turned matrix, where it is a product, is the product turned: no kernel turns a weight's. */
static ty_val grad_turned_product(ty_graph *g, const ty_attr *attr, ty_val dres)
{
    uint32_t node = ty_val_node(dres);
    if (ty_graph_op(g, node) != TY_OP_DOT || ty_graph_node(g, node)->n_in != 2 || attr->n != 2 || attr->lo[0] != 1)
        return TY_NONE;
    uint32_t flags = ty_graph_attr(g, node)->flags;
    ty_attr turned = *ty_graph_attr(g, node);
    turned.flags = flags & ~(uint32_t)(TY_DOT_TRANS_A | TY_DOT_TRANS_B);
    turned.flags |= flags & TY_DOT_TRANS_A ? 0 : TY_DOT_TRANS_B;
    turned.flags |= flags & TY_DOT_TRANS_B ? 0 : TY_DOT_TRANS_A;
    return ty_graph_emit(g, TY_OP_DOT, &turned, (ty_val[]){ty_graph_in(g, node, 1), ty_graph_in(g, node, 0)}, 2);
}

void ty_op_grad_transpose(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    int64_t back[TY_MAX_RANK] = {0};
    for (uint32_t i = 0; i < attr->n; i++)
        back[attr->lo[i]] = i;
    din[0] = grad_turned_product(g, attr, dres[0]);
    if (din[0] == TY_NONE)
        din[0] = ty_b_transpose(g, dres[0], back);
}

void ty_op_grad_broadcast(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    din[0] = ty_b_unbroadcast(g, dres[0], ty_graph_type(g, ty_graph_in(g, node, 0)));
}

/* Puts step - 1 zeros after every element along one axis. */
static ty_val movement_spread(ty_graph *g, ty_val v, int axis, int64_t step)
{
    if (v == TY_NONE || step == 1)
        return v;
    ty_type t = *ty_graph_type(g, v);
    int64_t outer, n, inner, none[4] = {0}, after[4] = {0, 0, step - 1, 0};
    ty_refiter_split(&t, axis, &outer, &n, &inner);
    v = ty_b_pad(g, ty_b_reshape(g, v, 4, (int64_t[]){outer, n, 1, inner}), none, after, 0);
    t.dim[axis] = n * step;
    return ty_b_reshape(g, v, t.rank, t.dim);
}

void ty_op_grad_slice(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    const ty_type *x = ty_graph_type(g, ty_graph_in(g, node, 0));
    ty_val v = dres[0];
    int64_t after[TY_MAX_RANK], none[TY_MAX_RANK] = {0}, end[TY_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        v = movement_spread(g, v, i, attr->step[i]);
    /* The zeros after the last element may reach beyond x: cut them off. */
    for (int i = 0; i < x->rank; i++) {
        int64_t have = ty_b_dim(g, v, i), room = x->dim[i] - attr->lo[i];
        end[i] = have < room ? have : room;
        after[i] = room - end[i];
    }
    din[0] = ty_b_pad(g, ty_b_slice(g, v, none, end, NULL), attr->lo, after, 0);
}

void ty_op_grad_pad(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    const ty_type *x = ty_graph_type(g, ty_graph_in(g, node, 0));
    int64_t hi[TY_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        hi[i] = attr->lo[i] + x->dim[i];
    din[0] = ty_b_slice(g, dres[0], attr->lo, hi, NULL);
}

void ty_op_grad_concat(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    int axis = (int)ty_graph_attr(g, node)->axis, n = (int)ty_graph_node(g, node)->n_in;
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        int64_t here = ty_b_dim(g, ty_graph_in(g, node, i), axis);
        din[i] = ty_b_slice_axis(g, dres[0], axis, at, at + here);
        at += here;
    }
}

void ty_op_grad_reverse(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    din[0] = ty_b_reverse(g, dres[0], ty_graph_attr(g, node)->axes);
}
