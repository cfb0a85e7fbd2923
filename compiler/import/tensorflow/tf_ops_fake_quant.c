/* tf_ops_fake_quant.c - numbers rounded to what a few bits could hold, as in training that knows it will be quantized.
 *
 * Source: tensorflow/core/kernels/fake_quant_ops_functor.h; B. Jacob et al., Quantization and training of neural
 * networks for efficient integer-arithmetic-only inference, CVPR 2018. What is inside the range is differentiated as if
 * it were not rounded, what is outside goes to the end of the range.
 */
#include "compiler/import/special.h"
#include "compiler/import/tensorflow/tf_ops.h"

#include <math.h>

/* Ends and step of a range, moved so that 0 is one of its values. */
typedef struct quant_range {
    ty_val lo, hi, step; /* broadcast against the numbers */
    ty_val min, max;     /* as they came */
    ty_val is_none;      /* they are the same: all is 0, and differentiated as if nothing were done */
} quant_range;

static bool quant_bits(tf_ctx *c, double *least, double *most)
{
    int64_t bits = tf_attr_int(c->node, "num_bits", 8);
    if (bits < 2 || bits > 16) {
        tf_fail_attr(c, "num_bits", "must be 2 to 16");
        return false;
    }
    *least = tf_attr_bool(c->node, "narrow_range", false) ? 1 : 0;
    *most = (double)((1 << bits) - 1);
    return true;
}

/* Of input `at` and the next, or of attributes (at < 0). */
static bool quant_read(tf_ctx *c, int at, quant_range *r)
{
    ty_graph *g = c->g;
    double least, most;
    if (!quant_bits(c, &least, &most))
        return false;
    r->min = at < 0 ? ty_b_scalar(g, TY_F32, tf_attr_float(c->node, "min", -6)) : tf_in(c, at);
    r->max = at < 0 ? ty_b_scalar(g, TY_F32, tf_attr_float(c->node, "max", 6)) : tf_in(c, at + 1);
    ty_val width = ty_b_sub(g, r->max, r->min);
    r->is_none = ty_b_le(g, width, ty_b_full_like(g, width, 0));
    ty_val step = ty_b_div(g, width, ty_b_full_like(g, width, most - least));
    r->step = ty_special_held(g, ty_b_select(g, r->is_none, ty_b_full_like(g, step, 1), step));
    ty_val zero = ty_b_sub(g, ty_b_full_like(g, r->step, least), ty_b_div(g, r->min, r->step));
    zero = ty_b_unary(g, TY_OP_FLOOR, ty_b_add_s(g, zero, 0.5));
    zero = ty_b_min(g, ty_b_max(g, zero, ty_b_full_like(g, zero, least)), ty_b_full_like(g, zero, most));
    r->lo = ty_special_held(g, ty_b_mul(g, ty_b_sub(g, ty_b_full_like(g, zero, least), zero), r->step));
    r->hi = ty_special_held(g, ty_b_mul(g, ty_b_sub(g, ty_b_full_like(g, zero, most), zero), r->step));
    return true;
}

/* b in value, a in derivative. */
static ty_val quant_as(ty_graph *g, ty_val a, ty_val b)
{
    return ty_b_add(g, a, ty_special_held(g, ty_b_sub(g, b, a)));
}

/* numbers, and where they are no attributes least and largest: one each, or one for each entry of the last axis. */
void tf_op_fake_quant(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0);
    quant_range r;
    if (!quant_read(c, c->row->arg ? 1 : -1, &r))
        return;
    ty_val inside = ty_b_min(g, ty_b_max(g, x, r.lo), r.hi);
    ty_val at = ty_b_add_s(g, ty_b_div(g, ty_b_sub(g, inside, r.lo), r.step), 0.5);
    ty_val y = ty_b_add(g, ty_b_mul(g, ty_b_unary(g, TY_OP_FLOOR, at), r.step), r.lo);
    if (y == TY_NONE)
        return;
    ty_val rounded = quant_as(g, x, y),
           ends = ty_b_select(g, ty_b_lt(g, x, r.lo), quant_as(g, r.min, r.lo), quant_as(g, r.max, r.hi));
    ty_val is_in = ty_b_binary(g, TY_OP_AND, ty_b_le(g, r.lo, x), ty_b_le(g, x, r.hi));
    y = ty_b_select(g, is_in, rounded, ends);
    tf_set(c, 0, ty_b_select(g, r.is_none, quant_as(g, x, ty_b_full_like(g, x, 0)), y));
}

/* dy, numbers, least, largest; arg 0: attributes, 1: numbers, 2: by the last axis. */
void tf_op_fake_quant_grad(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val dy = tf_in(c, 0), x = tf_in(c, 1), zero = ty_b_full_like(g, dy, 0);
    quant_range r;
    if (!quant_read(c, c->row->arg ? 2 : -1, &r))
        return;
    ty_val is_one = ty_b_unary(g, TY_OP_NOT, r.is_none);
    ty_val is_low = ty_b_binary(g, TY_OP_AND, is_one, ty_b_lt(g, x, r.lo));
    ty_val is_high = ty_b_binary(g, TY_OP_AND, is_one, ty_b_lt(g, r.hi, x));
    tf_set(c, 0, ty_b_select(g, ty_b_binary(g, TY_OP_OR, is_low, is_high), zero, dy));
    uint32_t axes = ty_b_all_axes(g, x);
    if (c->row->arg == 2)
        axes &= ~(1u << (tf_rank(c, x) - 1));
    if (c->row->arg == 0)
        return;
    tf_set(c, 1, ty_b_sum(g, ty_b_select(g, is_low, dy, zero), axes, false));
    tf_set(c, 2, ty_b_sum(g, ty_b_select(g, is_high, dy, zero), axes, false));
}
