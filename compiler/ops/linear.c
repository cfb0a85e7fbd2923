/* linear.c - see linear.h. The meaning is the product's (dot.c), then the epilogue's on each number. */
#include "compiler/ops/linear.h"
#include "compiler/ops/activation.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#include <math.h>

#define LINEAR_TRANS_A 1u
#define LINEAR_TRANS_B 2u

static const struct {
    ty_linear_part operand, result;
} linear_rows[TY_N_LINEAR_KINDS] = {
    [TY_LINEAR_BIAS] = {TY_LINEAR_COLUMNS, TY_LINEAR_NONE},
    [TY_LINEAR_RELU] = {TY_LINEAR_COLUMNS, TY_LINEAR_NONE},
    [TY_LINEAR_RELU_KEEP] = {TY_LINEAR_COLUMNS, TY_LINEAR_BITS},
    [TY_LINEAR_GELU] = {TY_LINEAR_COLUMNS, TY_LINEAR_NONE},
    [TY_LINEAR_GELU_KEEP] = {TY_LINEAR_COLUMNS, TY_LINEAR_ARGUMENTS},
    [TY_LINEAR_RELU_GRAD] = {TY_LINEAR_BITS, TY_LINEAR_NONE},
    [TY_LINEAR_RELU_GRAD_SUM] = {TY_LINEAR_BITS, TY_LINEAR_COLUMNS},
    [TY_LINEAR_GELU_GRAD] = {TY_LINEAR_ARGUMENTS, TY_LINEAR_NONE},
    [TY_LINEAR_GELU_GRAD_SUM] = {TY_LINEAR_ARGUMENTS, TY_LINEAR_COLUMNS},
    [TY_LINEAR_SUM_A] = {TY_LINEAR_NONE, TY_LINEAR_ROWS},
    [TY_LINEAR_SUM_B] = {TY_LINEAR_NONE, TY_LINEAR_COLUMNS},
};

ty_linear_part ty_linear_operand(ty_linear_kind kind)
{
    return linear_rows[kind].operand;
}

ty_linear_part ty_linear_result(ty_linear_kind kind)
{
    return linear_rows[kind].result;
}

/* The type of a part, of a product of type y. */
static int linear_part_type(ty_linear_part part, const ty_type *y, ty_type *out, ty_error *err)
{
    ty_dtype dtype = (ty_dtype)y->dtype;
    switch (part) {
    case TY_LINEAR_COLUMNS:
        return ty_expect_result(dtype, 1, &y->dim[1], out, err);
    case TY_LINEAR_ROWS:
        return ty_expect_result(dtype, 1, &y->dim[0], out, err);
    case TY_LINEAR_ARGUMENTS:
        *out = *y;
        return 0;
    case TY_LINEAR_BITS:
        return ty_expect_result(TY_U8, 2, (int64_t[TY_MAX_RANK]){y->dim[0], ty_linear_row_bytes(y->dim[1])}, out, err);
    default:
        return ty_expect_result(dtype, 0, (int64_t[TY_MAX_RANK]){0}, out, err);
    }
}

int ty_op_infer_linear(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_attr product = {.flags = attr->flags};
    ty_type x = {0};
    if (ty_expect_flags(attr, LINEAR_TRANS_A | LINEAR_TRANS_B, err) < 0 ||
        ty_op_infer_dot(&product, in, 2, res, err) < 0 || ty_expect_rank("a", in[0], 2, 2, err) < 0 ||
        ty_expect_float("a", in[0], err) < 0)
        return -1;
    if (attr->index < 0 || attr->index >= TY_N_LINEAR_KINDS)
        return ty_error_set(err, TY_E_RANGE, "index: expected 0 to %d", TY_N_LINEAR_KINDS - 1);
    ty_linear_kind kind = (ty_linear_kind)attr->index;
    bool given = n_in > 2 && in[2], wanted = ty_linear_operand(kind) != TY_LINEAR_NONE;
    if (given != wanted)
        return ty_error_set(err, TY_E_SHAPE, "x: expected %s, found %s", wanted ? "one" : "none",
                            given ? "one" : "none");
    if (wanted &&
        (linear_part_type(ty_linear_operand(kind), &res[0], &x, err) < 0 || ty_expect_type("x", in[2], &x, err) < 0))
        return -1;
    return linear_part_type(ty_linear_result(kind), &res[0], &res[1], err);
}

/* ---- meaning ---- */

typedef struct linear_walk {
    int64_t m, n, row_bytes;
    const ty_ref *x;
    ty_ref *y, *second;
} linear_walk;

static bool linear_bit(const ty_ref *bits, const linear_walk *w, int64_t row, int64_t column)
{
    return bits->i[row * w->row_bytes + column / 8] >> column % 8 & 1;
}

static void linear_keep_bit(const linear_walk *w, int64_t row, int64_t column)
{
    w->second->i[row * w->row_bytes + column / 8] |= (int64_t)1 << column % 8;
}

static void linear_forward(ty_linear_kind kind, const linear_walk *w, int64_t row, int64_t column)
{
    double *y = &w->y->f[row * w->n + column], argument = *y + w->x->f[column];
    bool gelu = kind == TY_LINEAR_GELU || kind == TY_LINEAR_GELU_KEEP;
    if (kind == TY_LINEAR_GELU_KEEP)
        w->second->f[row * w->n + column] = argument;
    if (kind == TY_LINEAR_RELU_KEEP && argument > 0)
        linear_keep_bit(w, row, column);
    *y = kind == TY_LINEAR_BIAS ? argument : gelu ? ty_gelu_tanh(argument) : argument <= 0 ? 0 : argument;
}

static void linear_backward(ty_linear_kind kind, const linear_walk *w, int64_t row, int64_t column)
{
    int64_t at = row * w->n + column;
    if (kind == TY_LINEAR_GELU_GRAD || kind == TY_LINEAR_GELU_GRAD_SUM)
        w->y->f[at] *= ty_gelu_tanh_slope(w->x->f[at]);
    else
        w->y->f[at] = linear_bit(w->x, w, row, column) ? w->y->f[at] : 0;
    if (ty_linear_result(kind) == TY_LINEAR_COLUMNS)
        w->second->f[column] += w->y->f[at];
}

/* Sums of an operand over the axis of K. */
static void linear_sum(const ty_ref *operand, int k_axis, ty_ref *to)
{
    int64_t n = operand->type.dim[1];
    for (int64_t i = 0; i < ty_type_elems(&operand->type); i++)
        to->f[k_axis == 0 ? i % n : i / n] += operand->f[i];
}

int ty_op_ref_linear(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    const ty_attr product = {.flags = attr->flags};
    ty_linear_kind kind = (ty_linear_kind)attr->index;
    if (ty_op_ref_dot(&product, in, 2, res, err) < 0)
        return -1;
    if (kind == TY_LINEAR_SUM_A)
        linear_sum(&in[0], attr->flags & LINEAR_TRANS_A ? 0 : 1, &res[1]);
    if (kind == TY_LINEAR_SUM_B)
        linear_sum(&in[1], attr->flags & LINEAR_TRANS_B ? 1 : 0, &res[1]);
    const ty_type *t = &res[0].type;
    const linear_walk w = {t->dim[0], t->dim[1], ty_linear_row_bytes(t->dim[1]), &in[n_in - 1], &res[0], &res[1]};
    for (int64_t row = 0; row < w.m && n_in > 2; row++)
        for (int64_t column = 0; column < w.n; column++)
            (ty_linear_operand(kind) == TY_LINEAR_COLUMNS ? linear_forward : linear_backward)(kind, &w, row, column);
    return 0;
}
