/* onnx_ops_reduce.c - reductions along axes and running sums. */
#include "compiler/import/linear.h"
#include "compiler/import/onnx_import.h"

#include <math.h>

typedef struct reduce_args {
    ty_val x;
    uint32_t axes;
    bool keep;
    bool nothing; /* no axes and noop_with_empty_axes */
} reduce_args;

/* Axes are an attribute up to opset 17 (12 for ReduceSum), an input later. */
static bool reduce_read(onnx_ctx *c, reduce_args *a)
{
    const int64_t *axes;
    int64_t n;
    a->x = onnx_in(c, 0);
    a->keep = onnx_attr_int(c, "keepdims", 1);
    if (!onnx_ints_either(c, "axes", 1, &axes, &n))
        return false;
    a->nothing = n <= 0 && onnx_attr_int(c, "noop_with_empty_axes", 0);
    a->axes = ty_b_all_axes(c->g, a->x);
    return n <= 0 || onnx_axes(c, axes, n, onnx_rank(c, a->x), &a->axes);
}

static ty_val reduce_as(onnx_ctx *c, const reduce_args *a, ty_val v, ty_combine how)
{
    return a->nothing ? v : ty_b_reduce(c->g, v, how, a->axes, a->keep);
}

/* arg: the ty_combine. bool has an order too: false < true. */
void onnx_op_reduce(onnx_ctx *c)
{
    reduce_args a;
    if (!reduce_read(c, &a))
        return;
    bool is_bool = onnx_dtype_of(c, a.x) == TY_BOOL;
    ty_val v = is_bool ? ty_b_cast(c->g, a.x, TY_I32) : a.x;
    v = reduce_as(c, &a, v, (ty_combine)c->row->arg);
    onnx_set(c, 0, is_bool ? ty_b_cast(c->g, v, TY_BOOL) : v);
}

void onnx_op_reduce_mean(onnx_ctx *c)
{
    reduce_args a;
    if (!reduce_read(c, &a))
        return;
    if (a.nothing) {
        onnx_set(c, 0, a.x);
        return;
    }
    if (ty_dtype_is_float(onnx_dtype_of(c, a.x))) {
        onnx_set(c, 0, ty_b_mean(c->g, a.x, a.axes, a.keep));
        return;
    }
    double n = 1;
    for (int i = 0; i < onnx_rank(c, a.x); i++)
        n *= a.axes >> i & 1 ? (double)onnx_dim(c, a.x, i) : 1;
    ty_val sum = ty_b_sum(c->g, a.x, a.axes, a.keep);
    onnx_set(c, 0, ty_b_div(c->g, sum, ty_b_full_like(c->g, sum, n)));
}

void onnx_op_reduce_l1(onnx_ctx *c)
{
    reduce_args a;
    if (reduce_read(c, &a))
        onnx_set(c, 0, reduce_as(c, &a, ty_b_unary(c->g, TY_OP_ABS, a.x), TY_SUM));
}

/* The root of a sum of squares. Its slope is 0 where all of them are 0, as PyTorch has it of its norms, and not 0 / 0:
 * what is padded is zeros, and is normalised like everything else. */
static ty_val reduce_root(ty_graph *g, ty_val sum)
{
    ty_val none = ty_b_full_like(g, sum, 0), is_none = ty_b_eq(g, sum, none);
    ty_val some = ty_b_select(g, is_none, ty_b_full_like(g, sum, 1), sum);
    return ty_b_select(g, is_none, none, ty_b_unary(g, TY_OP_SQRT, some));
}

/* arg 1: the root of it. */
void onnx_op_reduce_square(onnx_ctx *c)
{
    reduce_args a;
    if (!reduce_read(c, &a))
        return;
    ty_val sum = reduce_as(c, &a, ty_b_square(c->g, a.x), TY_SUM);
    onnx_set(c, 0, c->row->arg ? reduce_root(c->g, sum) : sum);
}

void onnx_op_reduce_log_sum(onnx_ctx *c)
{
    reduce_args a;
    if (reduce_read(c, &a))
        onnx_set(c, 0, ty_b_log(c->g, reduce_as(c, &a, a.x, TY_SUM)));
}

/* max + log(sum(exp(x - max))); a row of -inf gives -inf, so its shift is 0. */
void onnx_op_reduce_log_sum_exp(onnx_ctx *c)
{
    ty_graph *g = c->g;
    reduce_args a;
    if (!reduce_read(c, &a))
        return;
    if (a.nothing || ty_type_elems(onnx_type_of(c, a.x)) == 0) {
        onnx_set(c, 0, ty_b_log(g, reduce_as(c, &a, ty_b_exp(g, a.x), TY_SUM)));
        return;
    }
    ty_val top = ty_b_reduce(g, a.x, TY_MAX, a.axes, true);
    ty_val finite = ty_b_lt(g, ty_b_unary(g, TY_OP_ABS, top), ty_b_full_like(g, top, INFINITY));
    top = ty_b_select(g, finite, top, ty_b_full_like(g, top, 0));
    ty_val sum = ty_b_sum(g, ty_b_exp(g, ty_b_sub(g, a.x, top)), a.axes, true);
    ty_val y = ty_b_add(g, ty_b_log(g, sum), top);
    onnx_set(c, 0, a.keep ? y : ty_b_sum(g, y, a.axes, false));
}

/* arg: TY_SUM or TY_PROD. */
void onnx_op_cumulate(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    int64_t want;
    int axis;
    if (!onnx_const_int(c, 1, 0, &want) || !onnx_axis(c, want, onnx_rank(c, x), &axis))
        return;
    onnx_set(c, 0,
             ty_b_scan(c->g, x, (ty_combine)c->row->arg, axis, onnx_attr_int(c, "exclusive", 0),
                       onnx_attr_int(c, "reverse", 0)));
}

/* ---- determinant --------------------------------------------------------------------------------------------------
 */

static ty_val entry(ty_graph *g, ty_val x, int rank, int64_t row, int64_t col)
{
    ty_val v = ty_b_slice_axis(g, ty_b_slice_axis(g, x, rank - 2, row, row + 1), rank - 1, col, col + 1);
    return ty_b_squeeze(g, ty_b_squeeze(g, v, rank - 1), rank - 2);
}

/* Laplace expansion along row `row` over the columns left in `cols`. */
static ty_val minor_of(ty_graph *g, ty_val x, int rank, int64_t n, int64_t row, uint32_t cols)
{
    ty_val sum = TY_NONE;
    double sign = 1;
    for (int64_t j = 0; j < n; j++) {
        if (!(cols >> j & 1))
            continue;
        ty_val term = entry(g, x, rank, row, j);
        if (row + 1 < n)
            term = ty_b_mul(g, term, minor_of(g, x, rank, n, row + 1, cols & ~(1u << j)));
        term = sign < 0 ? ty_b_neg(g, term) : term;
        sum = sum == TY_NONE ? term : ty_b_add(g, sum, term);
        sign = -sign;
    }
    return sum;
}

void onnx_op_det(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    int rank = onnx_rank(c, x);
    if (!ty_linear_fits(c->g, x)) {
        onnx_fail_input(c, 0, TY_E_UNSUPPORTED, "must hold square matrices of up to %d x %d", TY_LINEAR_MOST,
                        TY_LINEAR_MOST);
        return;
    }
    int64_t n = onnx_dim(c, x, rank - 1);
    onnx_set(c, 0, n <= 4 ? minor_of(c->g, x, rank, n, 0, (1u << n) - 1) : ty_linear_determinant(c->g, x));
}
