/* onnx_ops_quant.c - linear quantization: real = (stored - zero point) * scale.
 *
 * For evaluating quantized models. Rounding and saturation have no useful gradient; train the float model.
 */
#include "compiler/import/onnx_import.h"

#include <math.h>

/* Scale or zero point as x's shape sees it: one number, one an entry of `axis`, or one a block along it. */
static ty_val spread(onnx_ctx *c, ty_val v, ty_val x, int64_t axis_attr)
{
    int rank = onnx_rank(c, x), axis;
    int64_t dim[TY_MAX_RANK], block = onnx_attr_int(c, "block_size", 0);
    if (v == TY_NONE || ty_type_elems(onnx_type_of(c, v)) == 1)
        return v == TY_NONE ? v : ty_b_reshape(c->g, v, 0, NULL);
    if (!onnx_axis(c, axis_attr, rank, &axis))
        return TY_NONE;
    if (onnx_rank(c, v) == 1) {
        for (int i = 0; i < rank; i++)
            dim[i] = i == axis ? onnx_dim(c, v, 0) : 1;
        return ty_b_reshape(c->g, v, rank, dim);
    }
    if (block < 1 || onnx_rank(c, v) != rank) {
        onnx_fail(c, TY_E_SHAPE, "%s: the scale has %d dimensions", c->node->op_type, onnx_rank(c, v));
        return TY_NONE;
    }
    /* Entry k of the axis belongs to block k / block_size. */
    int64_t n = onnx_dim(c, x, axis), *index = onnx_alloc(c, (size_t)n + 1, sizeof *index);
    for (int64_t k = 0; k < n; k++)
        index[k] = k / block;
    return onnx_take_rows(c, v, onnx_ints_const(c, index, n), axis);
}

/* cast saturates, so that a rounded quotient needs no clipping of its own. */
static ty_val quantize(onnx_ctx *c, ty_val x, ty_val scale, ty_val zero, ty_dtype dtype)
{
    ty_graph *g = c->g;
    ty_val q = ty_b_unary(g, TY_OP_RINT, ty_b_div(g, ty_b_cast(g, x, TY_F32), ty_b_cast(g, scale, TY_F32)));
    q = zero == TY_NONE ? q : ty_b_add(g, q, ty_b_cast(g, zero, TY_F32));
    return ty_b_cast(g, q, dtype);
}

static ty_val dequantize(onnx_ctx *c, ty_val x, ty_val scale, ty_val zero)
{
    ty_graph *g = c->g;
    ty_val real = ty_b_cast(g, x, TY_F32);
    real = zero == TY_NONE ? real : ty_b_sub(g, real, ty_b_cast(g, zero, TY_F32));
    return ty_b_mul(g, real, ty_b_cast(g, scale, TY_F32));
}

void onnx_op_quantize_linear(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    int64_t axis = onnx_attr_int(c, "axis", 1), wanted = onnx_attr_int(c, "output_dtype", 0);
    ty_dtype dtype = onnx_has(c, 2) ? onnx_dtype_of(c, onnx_in(c, 2)) : wanted ? onnx_dtype(wanted) : TY_U8;
    ty_val scale = spread(c, onnx_in(c, 1), x, axis), zero = spread(c, onnx_in(c, 2), x, axis);
    if (dtype == TY_N_DTYPES) {
        onnx_fail_attr(c, "output_dtype", "%s is not supported", onnx_data_type_text(wanted));
        return;
    }
    onnx_set(c, 0, quantize(c, x, scale, zero, dtype));
}

void onnx_op_dequantize_linear(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    int64_t axis = onnx_attr_int(c, "axis", 1);
    ty_val y = dequantize(c, x, spread(c, onnx_in(c, 1), x, axis), spread(c, onnx_in(c, 2), x, axis));
    onnx_set(c, 0, ty_b_cast(c->g, y, onnx_dtype_of(c, onnx_in(c, 1))));
}

/* The range of x stretched to hold 0, on 256 steps. */
void onnx_op_dynamic_quantize_linear(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0), zero = ty_b_scalar(g, onnx_dtype_of(c, x), 0);
    uint32_t all = ty_b_all_axes(g, x);
    ty_val low = ty_b_min(g, ty_b_reduce(g, x, TY_MIN, all, false), zero);
    ty_val high = ty_b_max(g, ty_b_reduce(g, x, TY_MAX, all, false), zero);
    ty_val scale = ty_b_mul_s(g, ty_b_sub(g, high, low), 1.0 / 255);
    ty_val point = quantize(c, ty_b_neg(g, low), scale, TY_NONE, TY_U8);
    onnx_set(c, 0, quantize(c, x, scale, point, TY_U8));
    onnx_set(c, 1, scale);
    onnx_set(c, 2, point);
}

/* x - zero point in i32; a list of points lies along `axis` of x. */
static ty_val centred(onnx_ctx *c, ty_val x, ty_val zero, int axis)
{
    x = ty_b_cast(c->g, x, TY_I32);
    zero = spread(c, zero, x, axis);
    return zero == TY_NONE ? x : ty_b_sub(c->g, x, ty_b_cast(c->g, zero, TY_I32));
}

void onnx_op_matmul_integer(onnx_ctx *c)
{
    ty_val a = onnx_in(c, 0), b = onnx_in(c, 1);
    a = centred(c, a, onnx_in(c, 2), -2);
    b = centred(c, b, onnx_in(c, 3), -1);
    onnx_set(c, 0, ty_b_matmul(c->g, a, b));
}

/* a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero */
void onnx_op_qlinear_matmul(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val a = onnx_in(c, 0), b = onnx_in(c, 3);
    ty_val real = ty_b_matmul(g, dequantize(c, a, spread(c, onnx_in(c, 1), a, -2), spread(c, onnx_in(c, 2), a, -2)),
                              dequantize(c, b, spread(c, onnx_in(c, 4), b, -1), spread(c, onnx_in(c, 5), b, -1)));
    ty_val zero = onnx_in(c, 7);
    if (real != TY_NONE)
        onnx_set(
            c, 0,
            quantize(c, real, spread(c, onnx_in(c, 6), real, -2), spread(c, zero, real, -2), onnx_dtype_of(c, zero)));
}
