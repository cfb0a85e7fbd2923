/* scan.c - running sums, products and extrema along an axis. */
#include "compiler/ir/build.h"
#include "compiler/ops/combine.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#define SCAN_MODES     (1u << TY_SUM | 1u << TY_MAX | 1u << TY_MIN | 1u << TY_PROD)
#define SCAN_EXCLUSIVE 1u
#define SCAN_FROM_END  2u

int ty_op_infer_scan(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (ty_expect_mode(attr, SCAN_MODES, err) < 0 || ty_expect_number("x", in[0], err) < 0 ||
        ty_expect_axis(attr, in[0], err) < 0 || ty_expect_flags(attr, SCAN_EXCLUSIVE | SCAN_FROM_END, err) < 0)
        return -1;
    *res = *in[0];
    return 0;
}

int ty_op_ref_scan(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t outer, n, inner;
    (void)n_in;
    (void)err;
    ty_refiter_split(&in[0].type, attr->axis, &outer, &n, &inner);
    ty_combine_clear(attr->mode, &res[0]);
    for (int64_t row = 0; row < outer * inner; row++) {
        int64_t start = row / inner * n * inner + row % inner, step = inner;
        if (attr->flags & SCAN_FROM_END) {
            start += (n - 1) * inner;
            step = -inner;
        }
        for (int64_t k = 0; k < n; k++) {
            int64_t at = start + k * step;
            if (k > 0)
                ty_refiter_copy(&res[0], at, &res[0], at - step);
            if (!(attr->flags & SCAN_EXCLUSIVE))
                ty_combine_into(attr->mode, &res[0], at, &in[0], at);
            else if (k > 0)
                ty_combine_into(attr->mode, &res[0], at, &in[0], at - step);
        }
    }
    return 0;
}

/* v, of n elements along the axis, shifted by one: the first dropped and zeros at the end. Element k of an exclusive
 * scan is element k - 1 of the inclusive one. */
static ty_val scan_shift(ty_graph *g, ty_val v, int axis, int64_t n)
{
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0};
    if (n < 1)
        return v;
    hi[axis] = 1;
    return ty_b_pad(g, ty_b_slice_axis(g, v, axis, 1, n), lo, hi, 0);
}

/* Gradient of the inclusive running product from the start. y[i] depends on x[j], j <= i, with the factor that the scan
 * gives at i when x[j] is replaced by 1. With one row of the matrix [j, i] for each replaced element, this is right for
 * zeros too, unlike y / x; it costs n times the elements, and rows are short where such models train. */
static ty_val scan_grad_prod(ty_graph *g, const ty_type *t, ty_val x, ty_val dy, int axis)
{
    if (t->rank == TY_MAX_RANK)
        return ty_graph_fail(g, TY_E_NO_GRADIENT,
                             "mode: a running product of rank %d has no gradient here, expected "
                             "rank 0 to %d",
                             TY_MAX_RANK, TY_MAX_RANK - 1);
    int64_t n = t->dim[axis];
    int64_t dim[TY_MAX_RANK] = {n, n, 1, 1, 1, 1, 1, 1}; /* [j, i] on axis and axis + 1; axes before broadcast */
    ty_type numbers = ty_type_make(TY_I64, t->rank - axis + 1, dim);
    ty_val j = ty_b_iota(g, numbers, 0), i = ty_b_iota(g, numbers, 1);
    ty_val one = ty_b_scalar(g, t->dtype, 1), zero = ty_b_scalar(g, t->dtype, 0);
    ty_val replaced = ty_b_select(g, ty_b_eq(g, j, i), one, ty_b_unsqueeze(g, x, axis));
    ty_val factor = ty_b_scan(g, replaced, TY_PROD, axis + 1, false, false);
    ty_val terms = ty_b_select(g, ty_b_le(g, j, i), ty_b_mul(g, factor, ty_b_unsqueeze(g, dy, axis)), zero);
    return ty_b_sum(g, terms, 1u << (axis + 1), false);
}

/* Gradient of the inclusive running extremum from the start: dy[i] goes to the first element that attained y[i]. Those
 * that do stand where x passes what came before; the running maximum of their numbers names the one in force at i. */
static ty_val scan_grad_extremum(ty_graph *g, const ty_type *t, ty_val x, ty_combine how, ty_val dy, int axis)
{
    ty_type numbers = *t;
    numbers.dtype = TY_I64;
    ty_val before = ty_b_scan(g, x, how, axis, true, false);
    ty_val passes = how == TY_MAX ? ty_b_lt(g, before, x) : ty_b_lt(g, x, before);
    ty_val zero = ty_b_scalar(g, TY_I64, 0); /* element 0 attains y[0] whatever it is */
    ty_val number = ty_b_select(g, passes, ty_b_iota(g, numbers, axis), zero);
    ty_val from = ty_b_scan(g, number, TY_MAX, axis, false, false);
    return ty_b_put(g, ty_b_full_like(g, x, 0), from, dy, axis, TY_SUM);
}

void ty_op_grad_scan(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    ty_val x = ty_graph_in(g, node, 0), dy = dres[0];
    const ty_type *t = ty_graph_type(g, x);
    int axis = (int)attr->axis;
    bool exclusive = attr->flags & SCAN_EXCLUSIVE, from_end = attr->flags & SCAN_FROM_END;
    if (attr->mode == TY_SUM) {
        din[0] = ty_b_scan(g, dy, TY_SUM, axis, exclusive, !from_end);
        return;
    }
    if (from_end) {
        x = ty_b_reverse(g, x, 1u << axis);
        dy = ty_b_reverse(g, dy, 1u << axis);
    }
    if (exclusive)
        dy = scan_shift(g, dy, axis, t->dim[axis]);
    ty_val dx = attr->mode == TY_PROD ? scan_grad_prod(g, t, x, dy, axis)
                                      : scan_grad_extremum(g, t, x, (ty_combine)attr->mode, dy, axis);
    din[0] = from_end ? ty_b_reverse(g, dx, 1u << axis) : dx;
}
