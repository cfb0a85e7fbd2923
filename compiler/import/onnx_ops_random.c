/* onnx_ops_random.c - numbers drawn anew in every step, from the counter-based generator of base/rng.h.
 *
 * Each node has its own stream, so that the numbers do not depend on what else the model holds.
 */
#include "compiler/import/onnx_import.h"

#include <math.h>

enum { STREAM_PARTS = 4 };

ty_val onnx_uniform(onnx_ctx *c, int64_t part, int rank, const int64_t *dim)
{
    ty_graph *g = c->g;
    const ty_onnx_binding *b = c->imp->binding;
    if (b->seed == TY_NONE || b->step == TY_NONE) {
        onnx_fail(c, TY_E_UNSUPPORTED, "%s: random numbers can be drawn in training only", c->node->op_type);
        return TY_NONE;
    }
    int64_t stream = b->stream + c->imp->serial * STREAM_PARTS + part;
    ty_val words = ty_b_rng(g, b->seed, b->step, stream & UINT32_MAX, rank, dim);
    ty_val shift = ty_b_full_like(g, words, 8);
    ty_val top = ty_b_cast(g, ty_b_binary(g, TY_OP_SHR, words, shift), TY_F32);
    return ty_b_mul_s(g, top, 0x1p-24);
}

typedef struct random_args {
    int rank;
    int64_t dim[TY_MAX_RANK];
    ty_dtype dtype;
} random_args;

/* arg bit 0: shape from an input; else from the attribute. */
static bool random_read(onnx_ctx *c, random_args *a)
{
    const int64_t *shape = NULL;
    int64_t n = 0;
    a->dtype = TY_F32;
    if (c->row->arg & 1) {
        const ty_type *t = onnx_type_of(c, onnx_in(c, 0));
        shape = t->dim;
        n = t->rank;
        a->dtype = (ty_dtype)t->dtype;
    } else
        onnx_attr_ints(c, "shape", &shape, &n);
    if (onnx_find_attr(c, "dtype"))
        a->dtype = onnx_dtype(onnx_attr_int(c, "dtype", 1));
    if (n > TY_MAX_RANK || !ty_dtype_is_float(a->dtype)) {
        onnx_fail(c, TY_E_UNSUPPORTED, "%s: needs a float type and at most %d dimensions", c->node->op_type,
                  TY_MAX_RANK);
        return false;
    }
    a->rank = (int)n;
    for (int i = 0; i < a->rank; i++)
        a->dim[i] = shape[i];
    return onnx_shape_ok(c, a->rank, a->dim);
}

void onnx_op_random_uniform(onnx_ctx *c)
{
    random_args a;
    double low = onnx_attr_float(c, "low", 0), high = onnx_attr_float(c, "high", 1);
    if (!random_read(c, &a))
        return;
    ty_val u = onnx_uniform(c, 0, a.rank, a.dim);
    if (u == TY_NONE)
        return;
    u = ty_b_add_s(c->g, ty_b_mul_s(c->g, u, high - low), low);
    onnx_set(c, 0, ty_b_cast(c->g, u, a.dtype));
}

/* Box and Muller: sqrt(-2 log(1 - u)) cos(2 pi v). */
void onnx_op_random_normal(onnx_ctx *c)
{
    ty_graph *g = c->g;
    random_args a;
    double mean = onnx_attr_float(c, "mean", 0), scale = onnx_attr_float(c, "scale", 1);
    if (!random_read(c, &a))
        return;
    ty_val u = onnx_uniform(c, 0, a.rank, a.dim), v = onnx_uniform(c, 1, a.rank, a.dim);
    if (u == TY_NONE || v == TY_NONE)
        return;
    ty_val radius = ty_b_unary(g, TY_OP_SQRT, ty_b_mul_s(g, ty_b_unary(g, TY_OP_LOG1P, ty_b_neg(g, u)), -2));
    ty_val z = ty_b_mul(g, radius, ty_b_unary(g, TY_OP_COS, ty_b_mul_s(g, v, 2 * M_PI)));
    onnx_set(c, 0, ty_b_cast(g, ty_b_add_s(g, ty_b_mul_s(g, z, scale), mean), a.dtype));
}

void onnx_op_bernoulli(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val p = onnx_in(c, 0);
    const ty_type t = *onnx_type_of(c, p);
    ty_dtype dtype = onnx_find_attr(c, "dtype") ? onnx_dtype(onnx_attr_int(c, "dtype", 1)) : (ty_dtype)t.dtype;
    ty_val u = onnx_uniform(c, 0, t.rank, t.dim);
    if (u != TY_NONE && dtype != TY_N_DTYPES)
        onnx_set(c, 0, ty_b_cast(g, ty_b_lt(g, u, ty_b_cast(g, p, TY_F32)), dtype));
}

/* ---- windows of signal processing ---------------------------------------------------------------------------------
 */

/* arg 0 Hann, 1 Hamming, 2 Blackman: a sum of cosines. */
void onnx_op_cosine_window(onnx_ctx *c)
{
    static const double terms[3][3] = {{0.5, -0.5, 0}, {25.0 / 46, -21.0 / 46, 0}, {0.42, -0.5, 0.08}};
    int64_t n;
    if (!onnx_const_int(c, 0, 0, &n))
        return;
    ty_dtype dtype = onnx_dtype(onnx_attr_int(c, "output_datatype", 1));
    if (n < 0 || n > 1 << 22 || dtype == TY_N_DTYPES) {
        onnx_fail(c, TY_E_SHAPE, "%s: a window of %lld", c->node->op_type, (long long)n);
        return;
    }
    double *v = onnx_alloc(c, (size_t)n + 1, sizeof *v),
           period = onnx_attr_int(c, "periodic", 1) ? (double)n : (double)n - 1;
    for (int64_t i = 0; i < n; i++) {
        double t = 2 * M_PI * (double)i / (period > 0 ? period : 1);
        v[i] = terms[c->row->arg][0] + terms[c->row->arg][1] * cos(t) + terms[c->row->arg][2] * cos(2 * t);
    }
    onnx_set(c, 0, onnx_const_from(c, dtype, 1, &n, v));
}
