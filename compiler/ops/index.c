/* index.c - reading and writing rows and elements by number: gather and scatter, take and put.
 *
 * Two pairs. gather(x, i) reads whole rows along an axis and scatter(x, i, u) writes them; take(x, i) reads single
 * elements along an axis (numpy.take_along_axis) and put(x, i, u) writes them. The gradient of reading is adding up
 * what is written, so each pair is closed under differentiation.
 *
 * Where several updates meet in one place with mode SET the last wins, so only the last has a gradient; with MAX and
 * MIN the gradient is divided equally among all that attain the extremum, as reduce does.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/combine.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#include <inttypes.h>

#define INDEX_MODES_ALL  (1u << TY_SUM | 1u << TY_MAX | 1u << TY_MIN | 1u << TY_PROD | 1u << TY_SET)
#define INDEX_MODES_BOOL (1u << TY_MAX | 1u << TY_MIN | 1u << TY_SET)

/* Reads index number k, refusing what is outside [0, limit). */
static int index_at(const ty_ref *index, int64_t k, int64_t limit, int64_t *out, ty_error *err)
{
    *out = index->i[k];
    if (*out >= 0 && *out < limit)
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "index: expected 0 to %" PRId64 ", found %" PRId64 " at element %" PRId64,
                        limit - 1, *out, k);
}

/* x.shape[:axis] + index.shape + x.shape[axis + 1:] */
static int index_rows_type(const ty_attr *attr, const ty_type *x, const ty_type *index, ty_type *res, ty_error *err)
{
    int64_t dim[2 * TY_MAX_RANK];
    int rank = 0;
    if (ty_expect_axis(attr, x, err) < 0 || ty_expect_index("index", index, err) < 0)
        return -1;
    for (int i = 0; i < (int)attr->axis; i++)
        dim[rank++] = x->dim[i];
    for (int i = 0; i < index->rank; i++)
        dim[rank++] = index->dim[i];
    for (int i = (int)attr->axis + 1; i < x->rank; i++)
        dim[rank++] = x->dim[i];
    return ty_expect_result(x->dtype, rank, dim, res, err);
}

/* index's shape with x's dtype, where index has x's dims but on the axis. */
static int index_elements_type(const ty_attr *attr, const ty_type *x, const ty_type *index, ty_type *res, ty_error *err)
{
    if (ty_expect_axis(attr, x, err) < 0 || ty_expect_index("index", index, err) < 0)
        return -1;
    ty_type expected = *x;
    expected.dtype = index->dtype;
    if (index->rank == x->rank)
        expected.dim[attr->axis] = index->dim[attr->axis];
    if (ty_expect_type("index", index, &expected, err) < 0)
        return -1;
    return ty_expect_result(x->dtype, index->rank, index->dim, res, err);
}

int ty_op_infer_gather(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    return index_rows_type(attr, in[0], in[1], res, err);
}

int ty_op_infer_take(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    return index_elements_type(attr, in[0], in[1], res, err);
}

/* scatter and put: the update has the type that reading with the same index would give. */
static int index_infer_write(const ty_attr *attr, const ty_type *const *in, const ty_type *update, ty_type *res,
                             ty_error *err)
{
    uint32_t modes = in[0]->dtype == TY_BOOL ? INDEX_MODES_BOOL : INDEX_MODES_ALL;
    if (ty_expect_mode(attr, modes, err) < 0 || ty_expect_type("update", in[2], update, err) < 0)
        return -1;
    *res = *in[0];
    return 0;
}

int ty_op_infer_scatter(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    ty_type update;
    (void)n_in;
    if (index_rows_type(attr, in[0], in[1], &update, err) < 0)
        return -1;
    return index_infer_write(attr, in, &update, res, err);
}

int ty_op_infer_put(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    ty_type update;
    (void)n_in;
    if (index_elements_type(attr, in[0], in[1], &update, err) < 0)
        return -1;
    return index_infer_write(attr, in, &update, res, err);
}

int ty_op_ref_gather(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t outer, n, inner, row, n_index = ty_type_elems(&in[1].type);
    (void)n_in;
    ty_refiter_split(&in[0].type, attr->axis, &outer, &n, &inner);
    for (int64_t k = 0; k < n_index; k++) {
        if (index_at(&in[1], k, n, &row, err) < 0)
            return -1;
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < inner; i++)
                ty_refiter_copy(&res[0], (o * n_index + k) * inner + i, &in[0], (o * n + row) * inner + i);
    }
    return 0;
}

int ty_op_ref_scatter(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t outer, n, inner, row, n_index = ty_type_elems(&in[1].type), elems = ty_type_elems(&in[0].type);
    (void)n_in;
    ty_refiter_split(&in[0].type, attr->axis, &outer, &n, &inner);
    for (int64_t k = 0; k < elems; k++)
        ty_refiter_copy(&res[0], k, &in[0], k);
    for (int64_t k = 0; k < n_index; k++) {
        if (index_at(&in[1], k, n, &row, err) < 0)
            return -1;
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < inner; i++)
                ty_combine_into(attr->mode, &res[0], (o * n + row) * inner + i, &in[2], (o * n_index + k) * inner + i);
    }
    return 0;
}

/* Calls for each element of the index: flat position in x of what it points to. */
static int index_element(const ty_attr *attr, const ty_ref *x, const ty_ref *index, int64_t k, int64_t *out,
                         ty_error *err)
{
    int64_t outer, n, inner, at, n_index = index->type.dim[attr->axis];
    ty_refiter_split(&x->type, attr->axis, &outer, &n, &inner);
    if (index_at(index, k, n, &at, err) < 0)
        return -1;
    *out = (k / (n_index * inner) * n + at) * inner + k % inner;
    return 0;
}

int ty_op_ref_take(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t at, n_index = ty_type_elems(&in[1].type);
    (void)n_in;
    for (int64_t k = 0; k < n_index; k++) {
        if (index_element(attr, &in[0], &in[1], k, &at, err) < 0)
            return -1;
        ty_refiter_copy(&res[0], k, &in[0], at);
    }
    return 0;
}

int ty_op_ref_put(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t at, n_index = ty_type_elems(&in[1].type), elems = ty_type_elems(&in[0].type);
    (void)n_in;
    for (int64_t k = 0; k < elems; k++)
        ty_refiter_copy(&res[0], k, &in[0], k);
    for (int64_t k = 0; k < n_index; k++) {
        if (index_element(attr, &in[0], &in[1], k, &at, err) < 0)
            return -1;
        ty_combine_into(attr->mode, &res[0], at, &in[2], k);
    }
    return 0;
}

void ty_op_grad_gather(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    int axis = (int)ty_graph_attr(g, node)->axis;
    ty_val zeros = ty_b_full_like(g, ty_graph_in(g, node, 0), 0);
    din[0] = ty_b_scatter(g, zeros, ty_graph_in(g, node, 1), dres[0], axis, TY_SUM);
}

void ty_op_grad_take(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    int axis = (int)ty_graph_attr(g, node)->axis;
    ty_val zeros = ty_b_full_like(g, ty_graph_in(g, node, 0), 0);
    din[0] = ty_b_put(g, zeros, ty_graph_in(g, node, 1), dres[0], axis, TY_SUM);
}

/* One of the two pairs, for gradients that read the same for both. */
typedef struct index_pair {
    ty_val (*read)(ty_graph *g, ty_val x, ty_val index, int axis);
    ty_val (*write)(ty_graph *g, ty_val x, ty_val index, ty_val update, int axis, ty_combine mode);
    /* bool, broadcastable to the update: this update is the last one written to its place */
    ty_val (*is_last)(ty_graph *g, ty_val x, ty_val index, int axis);
} index_pair;

/* Writes the number of each row of the index to a list of the rows of x and looks who is still there. */
static ty_val index_last_row(ty_graph *g, ty_val x, ty_val index, int axis)
{
    int64_t dim[TY_MAX_RANK] = {0};
    const ty_type *it = ty_graph_type(g, index), *xt = ty_graph_type(g, x);
    int64_t n_index = ty_type_elems(it), n = xt->dim[axis];
    ty_type numbers = ty_type_make(TY_I64, 1, &n_index);
    ty_val flat = ty_b_reshape(g, index, 1, &n_index), number = ty_b_iota(g, numbers, 0);
    ty_val list = ty_b_scatter(g, ty_b_full(g, TY_I64, 1, &n, -1), flat, number, 0, TY_SET);
    ty_val last = ty_b_eq(g, ty_b_gather(g, list, flat, 0), number);
    int rank = it->rank + xt->rank - 1 - axis; /* axes before the index are added by broadcasting */
    for (int i = 0; i < rank; i++)
        dim[i] = i < it->rank ? it->dim[i] : 1;
    return ty_b_reshape(g, last, rank, dim);
}

static ty_val index_last_element(ty_graph *g, ty_val x, ty_val index, int axis)
{
    ty_type numbers = *ty_graph_type(g, index);
    const ty_type *xt = ty_graph_type(g, x);
    numbers.dtype = TY_I64;
    ty_val number = ty_b_iota(g, numbers, axis);
    ty_val list = ty_b_put(g, ty_b_full(g, TY_I64, xt->rank, xt->dim, -1), index, number, axis, TY_SET);
    return ty_b_eq(g, ty_b_take(g, list, index, axis), number);
}

static const index_pair index_rows = {ty_b_gather, ty_b_scatter, index_last_row};
static const index_pair index_elements = {ty_b_take, ty_b_put, index_last_element};

/* y = x with places replaced: they keep no gradient of x, and only the last update in each has one. */
static void index_grad_set(ty_graph *g, uint32_t node, const index_pair *pair, ty_val dy, ty_val *din)
{
    int axis = (int)ty_graph_attr(g, node)->axis;
    ty_val x = ty_graph_in(g, node, 0), index = ty_graph_in(g, node, 1), update = ty_graph_in(g, node, 2);
    ty_val zeros = ty_b_full_like(g, update, 0);
    din[0] = pair->write(g, dy, index, zeros, axis, TY_SET);
    din[2] = ty_b_select(g, pair->is_last(g, x, index, axis), pair->read(g, dy, index, axis), zeros);
}

/* y = extremum of x and the updates: dy is shared equally by those equal to it. */
static void index_grad_extremum(ty_graph *g, uint32_t node, const index_pair *pair, ty_val dy, ty_val *din)
{
    int axis = (int)ty_graph_attr(g, node)->axis;
    ty_val x = ty_graph_in(g, node, 0), index = ty_graph_in(g, node, 1), update = ty_graph_in(g, node, 2);
    ty_val y = ty_val_make(node, 0);
    ty_dtype dtype = ty_b_dtype(g, x);
    ty_val of_x = ty_b_cast(g, ty_b_eq(g, x, y), dtype);
    ty_val of_update = ty_b_cast(g, ty_b_eq(g, update, pair->read(g, y, index, axis)), dtype);
    ty_val share = ty_b_div(g, dy, pair->write(g, of_x, index, of_update, axis, TY_SUM));
    din[0] = ty_b_mul(g, of_x, share);
    din[2] = ty_b_mul(g, of_update, pair->read(g, share, index, axis));
}

static void index_grad_write(ty_graph *g, uint32_t node, const index_pair *pair, ty_val dy, ty_val *din)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    switch ((ty_combine)attr->mode) {
    case TY_SUM:
        din[0] = dy;
        din[2] = pair->read(g, dy, ty_graph_in(g, node, 1), (int)attr->axis);
        break;
    case TY_SET:
        index_grad_set(g, node, pair, dy, din);
        break;
    case TY_MAX:
    case TY_MIN:
        index_grad_extremum(g, node, pair, dy, din);
        break;
    default:
        ty_graph_fail(g, TY_E_NO_GRADIENT, "mode: expected sum, set, max or min where a gradient is needed, found %s",
                      ty_combine_name((ty_combine)attr->mode));
    }
}

void ty_op_grad_scatter(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    index_grad_write(g, node, &index_rows, dres[0], din);
}

void ty_op_grad_put(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    index_grad_write(g, node, &index_elements, dres[0], din);
}
