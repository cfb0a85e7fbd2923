/* onnx_ops_attention.c - Attention of opset 23 in products, a mask and a softmax.
 *
 * Letters: B batch, H query heads, G key heads (H / G queries share one), L queries, T keys, D size of a head.
 */
#include "compiler/import/onnx_import.h"

#include <math.h>

typedef struct attention {
    ty_val q, k, v; /* [B, H, L, D], [B, G, T, D], [B, G, T, Dv] */
    bool flat;      /* inputs came as [B, L, H * D] */
    int64_t batch, heads, groups, len, keys;
    int64_t past; /* keys that came before */
    ty_dtype dtype;
} attention;

static const int64_t heads_perm[] = {0, 2, 1, 3};

static ty_val split_heads(onnx_ctx *c, int i, int64_t heads, const char *attr)
{
    ty_val x = onnx_in(c, i);
    const ty_type t = *onnx_type_of(c, x);
    if (t.rank == 4)
        return x;
    if (t.rank != 3 || heads < 1 || t.dim[2] % heads) {
        onnx_fail(c, TY_E_SHAPE, "Attention: input %d needs 4 dimensions, or 3 and a fitting %s", i, attr);
        return TY_NONE;
    }
    int64_t dim[] = {t.dim[0], t.dim[1], heads, t.dim[2] / heads};
    return ty_b_transpose(c->g, ty_b_reshape(c->g, x, 4, dim), heads_perm);
}

/* Cached keys and values stand before the new ones and come out again. */
static void attention_cache(onnx_ctx *c, attention *a)
{
    if (onnx_has(c, 4) && onnx_has(c, 5)) {
        a->past = onnx_rank(c, onnx_in(c, 4)) == 4 ? onnx_dim(c, onnx_in(c, 4), 2) : 0;
        a->k = ty_b_concat(c->g, (ty_val[]){onnx_in(c, 4), a->k}, 2, 2);
        a->v = ty_b_concat(c->g, (ty_val[]){onnx_in(c, 5), a->v}, 2, 2);
    }
    if (onnx_wants(c, 1))
        onnx_set(c, 1, a->k);
    if (onnx_wants(c, 2))
        onnx_set(c, 2, a->v);
}

static bool attention_read(onnx_ctx *c, attention *a)
{
    *a = (attention){.flat = onnx_rank(c, onnx_in(c, 0)) == 3, .dtype = onnx_dtype_of(c, onnx_in(c, 0))};
    a->q = split_heads(c, 0, onnx_attr_int(c, "q_num_heads", 0), "q_num_heads");
    a->k = split_heads(c, 1, onnx_attr_int(c, "kv_num_heads", 0), "kv_num_heads");
    a->v = split_heads(c, 2, onnx_attr_int(c, "kv_num_heads", 0), "kv_num_heads");
    if (a->q == TY_NONE || a->k == TY_NONE || a->v == TY_NONE)
        return false;
    attention_cache(c, a);
    if (a->k == TY_NONE || a->v == TY_NONE)
        return false;
    a->batch = onnx_dim(c, a->q, 0);
    a->heads = onnx_dim(c, a->q, 1);
    a->groups = onnx_dim(c, a->k, 1);
    a->len = onnx_dim(c, a->q, 2);
    a->keys = onnx_dim(c, a->k, 2);
    if (a->groups < 1 || a->heads % a->groups || onnx_dim(c, a->v, 1) != a->groups) {
        onnx_fail(c, TY_E_SHAPE, "Attention: %lld query heads do not divide among %lld key heads", (long long)a->heads,
                  (long long)a->groups);
        return false;
    }
    return true;
}

/* Each key head stands H / G times in a row, as PyTorch and ONNX since 1.20 have it; older texts repeated the whole
 * list. */
static ty_val repeat_heads(onnx_ctx *c, const attention *a, ty_val x)
{
    int64_t times = a->heads / a->groups, n = onnx_dim(c, x, 2), d = onnx_dim(c, x, 3);
    if (times == 1)
        return x;
    int64_t thin[] = {a->batch, a->groups, 1, n, d}, wide[] = {a->batch, a->groups, times, n, d};
    int64_t out[] = {a->batch, a->heads, n, d};
    return ty_b_reshape(c->g, ty_b_broadcast(c->g, ty_b_reshape(c->g, x, 5, thin), 5, wide), 4, out);
}

/* Adds -inf where a query may not look. Queries stand behind the past keys. */
static ty_val causal_mask(onnx_ctx *c, const attention *a, ty_val scores)
{
    ty_graph *g = c->g;
    int64_t dim[] = {a->len, a->keys};
    ty_type plane = ty_type_make(TY_I64, 2, dim);
    ty_val row = ty_b_add_s(g, ty_b_iota(g, plane, 0), (double)a->past);
    ty_val ok = ty_b_le(g, ty_b_iota(g, plane, 1), row);
    return ty_b_select(g, ok, scores, ty_b_scalar(g, onnx_dtype_of(c, scores), -INFINITY));
}

/* A boolean mask says where to look, a float one is added. A mask of fewer keys is taken as not allowing the rest. */
static ty_val given_mask(onnx_ctx *c, const attention *a, ty_val scores)
{
    ty_graph *g = c->g;
    ty_val mask = onnx_in(c, 3);
    int rank = onnx_rank(c, mask);
    bool is_bool = onnx_dtype_of(c, mask) == TY_BOOL;
    int64_t have = rank ? onnx_dim(c, mask, rank - 1) : 1;
    if (rank && have < a->keys && have != 1) {
        int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0};
        hi[rank - 1] = a->keys - have;
        mask = ty_b_pad(g, mask, lo, hi, is_bool ? 0 : -INFINITY);
    }
    if (is_bool)
        return ty_b_select(g, mask, scores, ty_b_scalar(g, onnx_dtype_of(c, scores), -INFINITY));
    return ty_b_add(g, scores, ty_b_cast(g, mask, onnx_dtype_of(c, scores)));
}

/* Rows of keys that are padding, counted per batch entry (opset 24). */
static ty_val length_mask(onnx_ctx *c, const attention *a, ty_val scores)
{
    ty_graph *g = c->g;
    int64_t dim[] = {a->batch, 1, 1, a->keys}, thin[] = {a->batch, 1, 1, 1};
    ty_val len = ty_b_reshape(g, ty_b_cast(g, onnx_in(c, 6), TY_I64), 4, thin);
    ty_val ok = ty_b_lt(g, ty_b_iota(g, ty_type_make(TY_I64, 4, dim), 3), len);
    return ty_b_select(g, ok, scores, ty_b_scalar(g, onnx_dtype_of(c, scores), -INFINITY));
}

void onnx_op_attention(onnx_ctx *c)
{
    ty_graph *g = c->g;
    attention a;
    if (!attention_read(c, &a))
        return;
    double d = (double)onnx_dim(c, a.q, 3), scale = onnx_attr_float(c, "scale", d > 0 ? 1 / sqrt(d) : 1);
    double cap = onnx_attr_float(c, "softcap", 0);
    int64_t wanted = onnx_attr_int(c, "qk_matmul_output_mode", 0);
    ty_val k = repeat_heads(c, &a, a.k), v = repeat_heads(c, &a, a.v), stage[4];
    /* The square root on both sides keeps 16-bit products in range; that is also what the standard writes. */
    double root = sqrt(fabs(scale));
    ty_val q = ty_b_mul_s(g, a.q, scale < 0 ? -root : root);
    ty_val scores = stage[0] = ty_b_dot(g, q, ty_b_mul_s(g, k, root), false, true);
    if (onnx_has(c, 3))
        scores = given_mask(c, &a, scores);
    if (onnx_has(c, 6))
        scores = length_mask(c, &a, scores);
    if (onnx_attr_int(c, "is_causal", 0))
        scores = causal_mask(c, &a, scores);
    stage[1] = scores;
    if (cap > 0)
        scores = ty_b_mul_s(g, ty_b_unary(g, TY_OP_TANH, ty_b_mul_s(g, scores, 1 / cap)), cap);
    stage[2] = scores;
    stage[3] = ty_b_softmax(g, scores, 3, false);
    if (onnx_wants(c, 3) && wanted >= 0 && wanted < 4)
        onnx_set(c, 3, stage[wanted]);
    ty_val y = ty_b_dot(g, stage[3], v, false, false);
    if (a.flat && y != TY_NONE) {
        int64_t dim[] = {a.batch, a.len, a.heads * onnx_dim(c, y, 3)};
        y = ty_b_reshape(g, ty_b_transpose(g, y, heads_perm), 3, dim);
    }
    onnx_set(c, 0, y);
}
