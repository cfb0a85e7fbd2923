/* softmax.c - softmax(x) = exp(x) / sum(exp(x)) along an axis, and its logarithm.
 *
 * The maximum is taken away first, so that exp cannot overflow; the result does not change by it.
 */
#include "compiler/ops/softmax.h"
#include "compiler/ir/build.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#include <math.h>

int ty_op_infer_softmax(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (ty_expect_float("x", in[0], err) < 0 || ty_expect_axis(attr, in[0], err) < 0 ||
        ty_expect_flags(attr, TY_SOFTMAX_LOG, err) < 0)
        return -1;
    *res = *in[0];
    return 0;
}

void ty_softmax_row(const double *x, double *y, int64_t n, int64_t stride, bool log_of)
{
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++)
        most = isnan(x[k * stride]) || x[k * stride] > most ? x[k * stride] : most;
    for (int64_t k = 0; k < n; k++)
        sum += exp(x[k * stride] - most);
    for (int64_t k = 0; k < n; k++) {
        double shifted = x[k * stride] - most;
        y[k * stride] = log_of ? shifted - log(sum) : exp(shifted) / sum;
    }
}

int ty_op_ref_softmax(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t outer, n, inner;
    (void)n_in;
    (void)err;
    ty_refiter_split(&in[0].type, attr->axis, &outer, &n, &inner);
    for (int64_t row = 0; row < outer * inner; row++) {
        int64_t start = row / inner * n * inner + row % inner;
        ty_softmax_row(in[0].f + start, res[0].f + start, n, inner, attr->flags & TY_SOFTMAX_LOG);
    }
    return 0;
}

ty_val ty_softmax_shifted(ty_graph *g, ty_val x, int axis)
{
    return ty_b_sub(g, x, ty_b_reduce(g, x, TY_MAX, 1u << axis, true));
}

ty_val ty_softmax_log_sum(ty_graph *g, ty_val shifted, int axis)
{
    return ty_b_log(g, ty_b_sum(g, ty_b_exp(g, shifted), 1u << axis, true));
}

ty_val ty_softmax_log(ty_graph *g, ty_val x, int axis)
{
    ty_val shifted = ty_softmax_shifted(g, x, axis);
    return ty_b_sub(g, shifted, ty_softmax_log_sum(g, shifted, axis));
}

void ty_op_lower_softmax(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in, ty_val *res)
{
    int axis = (int)attr->axis;
    ty_dtype dtype = ty_b_dtype(g, in[0]);
    ty_val x = ty_b_cast(g, in[0], ty_wide_dtype(dtype)), y;
    (void)n_in;
    if (attr->flags & TY_SOFTMAX_LOG) {
        y = ty_softmax_log(g, x, axis);
    } else {
        ty_val e = ty_b_exp(g, ty_softmax_shifted(g, x, axis));
        y = ty_b_mul(g, e, ty_b_reciprocal(g, ty_b_sum(g, e, 1u << axis, true))); /* one division a row */
    }
    res[0] = ty_b_cast(g, y, dtype);
}

ty_val ty_softmax_back(ty_graph *g, ty_val y, ty_val dy, int axis)
{
    ty_dtype dtype = ty_b_dtype(g, y), wide = ty_wide_dtype(dtype);
    y = ty_b_cast(g, y, wide);
    dy = ty_b_cast(g, dy, wide);
    ty_val dx = ty_b_mul(g, y, ty_b_sub(g, dy, ty_b_sum(g, ty_b_mul(g, dy, y), 1u << axis, true)));
    return ty_b_cast(g, dx, dtype);
}

/* softmax: dx = y (dy - sum(dy y)). Its logarithm: dx = dy - exp(y) sum(dy). */
void ty_op_grad_softmax(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    int axis = (int)attr->axis;
    if (!(attr->flags & TY_SOFTMAX_LOG)) {
        din[0] = ty_softmax_back(g, ty_val_make(node, 0), dres[0], axis);
        return;
    }
    ty_dtype dtype = ty_b_dtype(g, dres[0]), wide = ty_wide_dtype(dtype);
    ty_val y = ty_b_cast(g, ty_val_make(node, 0), wide), dy = ty_b_cast(g, dres[0], wide);
    ty_val dx = ty_b_sub(g, dy, ty_b_mul(g, ty_b_exp(g, y), ty_b_sum(g, dy, 1u << axis, true)));
    din[0] = ty_b_cast(g, dx, dtype);
}
