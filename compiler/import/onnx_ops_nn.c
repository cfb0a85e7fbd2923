/* onnx_ops_nn.c - products, softmax, dropout. */
#include "compiler/import/onnx_import.h"

#include <math.h>

void onnx_op_matmul(onnx_ctx *c)
{
    onnx_set(c, 0, ty_b_matmul(c->g, onnx_in(c, 0), onnx_in(c, 1)));
}

/* alpha A' B' + beta C */
void onnx_op_gemm(onnx_ctx *c)
{
    ty_graph *g = c->g;
    double alpha = onnx_attr_float(c, "alpha", 1), beta = onnx_attr_float(c, "beta", 1);
    ty_val a = onnx_in(c, 0), b = onnx_in(c, 1);
    if (onnx_rank(c, a) != 2 || onnx_rank(c, b) != 2) {
        onnx_fail(c, TY_E_SHAPE, "Gemm: A and B must be matrices");
        return;
    }
    ty_val y = ty_b_dot(g, a, b, onnx_attr_int(c, "transA", 0), onnx_attr_int(c, "transB", 0));
    y = alpha == 1 ? y : ty_b_mul_s(g, y, alpha);
    if (onnx_has(c, 2) && beta != 0) {
        ty_val bias = onnx_in(c, 2);
        y = ty_b_add(g, y, beta == 1 ? bias : ty_b_mul_s(g, bias, beta));
    }
    onnx_set(c, 0, y);
}

/* Up to opset 12 all axes from `axis` on count as one. arg 1: logarithm. */
void onnx_op_softmax(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    const ty_type type = *onnx_type_of(c, x);
    int axis;
    if (type.rank == 0) {
        onnx_fail_input(c, 0, TY_E_SHAPE, "must have at least 1 dimension");
        return;
    }
    if (!onnx_axis(c, onnx_attr_int(c, "axis", c->opset < 13 ? (type.rank > 1 ? 1 : 0) : -1), type.rank, &axis))
        return;
    if (c->opset >= 13) {
        onnx_set(c, 0, ty_b_softmax(g, x, axis, c->row->arg));
        return;
    }
    int64_t dim[2] = {1, 1};
    for (int i = 0; i < type.rank; i++)
        dim[i >= axis] *= type.dim[i];
    ty_val y = ty_b_softmax(g, ty_b_reshape(g, x, 2, dim), 1, c->row->arg);
    onnx_set(c, 0, ty_b_reshape(g, y, type.rank, type.dim));
}

/* 1 at the first maximum, 0 elsewhere. */
void onnx_op_hardmax(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    const ty_type type = *onnx_type_of(c, x);
    int axis, rank = type.rank;
    int64_t dim[TY_MAX_RANK] = {1, 1};
    if (!onnx_axis(c, onnx_attr_int(c, "axis", c->opset < 13 ? 1 : -1), rank, &axis))
        return;
    for (int i = 0; i < rank && c->opset >= 13; i++)
        dim[i] = type.dim[i];
    for (int i = 0; i < rank && c->opset < 13; i++)
        dim[i >= axis] *= type.dim[i];
    if (c->opset < 13)
        rank = 2, axis = 1;
    ty_type wide = ty_type_make(TY_I64, rank, dim);
    ty_val best = ty_b_argreduce(g, ty_b_reshape(g, x, rank, dim), TY_MAX, axis, false);
    ty_val hit = ty_b_eq(g, ty_b_iota(g, wide, axis), ty_b_unsqueeze(g, best, axis));
    onnx_set(c, 0, ty_b_reshape(g, ty_b_cast(g, hit, (ty_dtype)type.dtype), type.rank, type.dim));
}

/* ---- dropout ------------------------------------------------------------------------------------------------------
 */

/* What the standard would do with the node itself. */
static bool dropout_as_written(onnx_ctx *c)
{
    int64_t training = 0;
    if (c->opset < 7)
        return !onnx_attr_int(c, "is_test", 0);
    return c->opset >= 12 && onnx_const_int(c, 2, 0, &training) && training;
}

static ty_val dropout_mask(onnx_ctx *c, ty_val x, double ratio)
{
    const ty_type type = *onnx_type_of(c, x);
    ty_val u = onnx_uniform(c, 0, type.rank, type.dim);
    return u == TY_NONE ? u : ty_b_le(c->g, ty_b_full(c->g, TY_F32, type.rank, type.dim, ratio), u);
}

void onnx_op_dropout(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    double ratio = 0.5;
    if (c->opset < 12)
        ratio = onnx_attr_float(c, "ratio", 0.5);
    else if (!onnx_const_float(c, 1, 0.5, &ratio))
        return;
    if (!(ratio >= 0 && ratio < 1)) {
        onnx_fail(c, TY_E_ATTRIBUTE, "Dropout: ratio %g is outside [0, 1)", ratio);
        return;
    }
    ty_onnx_mode mode = c->imp->binding->mode;
    bool active = mode == TY_ONNX_TRAIN || (mode == TY_ONNX_AS_WRITTEN && dropout_as_written(c));
    const ty_type type = *onnx_type_of(c, x);
    ty_val mask = TY_NONE;
    if (active && ratio > 0) {
        mask = dropout_mask(c, x, ratio);
        onnx_set(c, 0, ty_b_select(g, mask, ty_b_mul_s(g, x, 1 / (1 - ratio)), ty_b_full_like(g, x, 0)));
    } else
        onnx_set(c, 0, x);
    if (!onnx_wants(c, 1))
        return;
    if (mask == TY_NONE)
        mask = ty_b_full(g, TY_BOOL, type.rank, type.dim, 1);
    onnx_set(c, 1, c->opset < 10 ? ty_b_cast(g, mask, (ty_dtype)type.dtype) : mask);
}

/* ---- attention positions ------------------------------------------------------------------------------------------
 */

/* x [B, H, S, D]; cos, sin [B or 1, 1, S, R/2]. Pairs are halves, or neighbours if interleaved. */
static ty_val rotate(onnx_ctx *c, ty_val x, ty_val cos, ty_val sin, int64_t r, bool interleaved)
{
    ty_graph *g = c->g;
    const ty_type t = *onnx_type_of(c, x);
    int64_t half = r / 2, pair[] = {t.dim[0], t.dim[1], t.dim[2], half, 2}, whole[] = {t.dim[0], t.dim[1], t.dim[2], r};
    ty_val part = ty_b_slice_axis(g, x, 3, 0, r), a, b;
    if (interleaved) {
        ty_val pairs = ty_b_reshape(g, part, 5, pair);
        a = ty_b_squeeze(g, ty_b_slice_axis(g, pairs, 4, 0, 1), 4);
        b = ty_b_squeeze(g, ty_b_slice_axis(g, pairs, 4, 1, 2), 4);
    } else {
        a = ty_b_slice_axis(g, part, 3, 0, half);
        b = ty_b_slice_axis(g, part, 3, half, r);
    }
    ty_val real = ty_b_sub(g, ty_b_mul(g, cos, a), ty_b_mul(g, sin, b));
    ty_val imag = ty_b_add(g, ty_b_mul(g, sin, a), ty_b_mul(g, cos, b));
    ty_val y;
    if (interleaved) {
        ty_val both[] = {ty_b_unsqueeze(g, real, 4), ty_b_unsqueeze(g, imag, 4)};
        y = ty_b_reshape(g, ty_b_concat(g, both, 2, 4), 4, whole);
    } else
        y = ty_b_concat(g, (ty_val[]){real, imag}, 2, 3);
    ty_val rest[] = {y, ty_b_slice_axis(g, x, 3, r, t.dim[3])};
    return r < t.dim[3] ? ty_b_concat(g, rest, 2, 3) : y;
}

/* Rows of a cache [P, R/2] by position ids [B, S], or [B, S, R/2] as given; made [B, 1, S, R/2]. A cache for more
 * numbers than are rotated is cut. */
static ty_val rotary_cache(onnx_ctx *c, ty_val cache, int64_t half)
{
    ty_val v = onnx_has(c, 3) ? onnx_take_rows(c, cache, onnx_in(c, 3), 0) : cache;
    if (v != TY_NONE && onnx_rank(c, v) != 3) {
        onnx_fail(c, TY_E_SHAPE, "RotaryEmbedding: caches need position ids or 3 dimensions");
        return TY_NONE;
    }
    if (v != TY_NONE && onnx_dim(c, v, 2) > half)
        v = ty_b_slice_axis(c->g, v, 2, 0, half);
    return ty_b_unsqueeze(c->g, v, 1);
}

void onnx_op_rotary_embedding(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0);
    const ty_type t = *onnx_type_of(c, x);
    int64_t heads = onnx_attr_int(c, "num_heads", 0), r = onnx_attr_int(c, "rotary_embedding_dim", 0);
    bool flat = t.rank == 3;
    static const int64_t perm[] = {0, 2, 1, 3};
    if ((t.rank != 4 && !flat) || (flat && (heads < 1 || t.dim[2] % heads))) {
        onnx_fail(c, TY_E_SHAPE, "RotaryEmbedding: needs [batch, heads, length, size], or 3 dimensions and num_heads");
        return;
    }
    if (flat) {
        int64_t dim[] = {t.dim[0], t.dim[1], heads, t.dim[2] / heads};
        x = ty_b_transpose(g, ty_b_reshape(g, x, 4, dim), perm);
    }
    int64_t size = onnx_dim(c, x, 3);
    r = r > 0 ? r : size;
    if (r > size || r % 2) {
        onnx_fail_attr(c, "rotary_embedding_dim", "must be even and at most %lld", (long long)size);
        return;
    }
    ty_val cos = rotary_cache(c, onnx_in(c, 1), r / 2), sin = rotary_cache(c, onnx_in(c, 2), r / 2);
    if (cos == TY_NONE || sin == TY_NONE || x == TY_NONE)
        return;
    ty_val y = rotate(c, x, cos, sin, r, onnx_attr_int(c, "interleaved", 0));
    onnx_set(c, 0, flat ? ty_b_reshape(g, ty_b_transpose(g, y, perm), 3, t.dim) : y);
}
