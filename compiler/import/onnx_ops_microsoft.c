/* onnx_ops_microsoft.c - operators of com.microsoft that ONNX Runtime's transformer optimizer writes.
 *
 * Definitions: ONNX Runtime 1.17, docs/ContribOperators.md. Letters: B batch, L length, H hidden size, N heads, D size
 * of a head, P keys that came before, T = P + L.
 */
#include "compiler/import/onnx_import.h"

#include <math.h>

/* ---- embedding, normalisation, activation -------------------------------------------------------------------------
 */

/* True if v is a list as long as x's last axis is wide. */
static bool is_row_of(onnx_ctx *c, ty_val v, ty_val x)
{
    return onnx_rank(c, v) == 1 && onnx_dim(c, v, 0) == onnx_dim(c, x, onnx_rank(c, x) - 1);
}

static bool check_row(onnx_ctx *c, int i, ty_val x)
{
    if (!onnx_has(c, i) || is_row_of(c, onnx_in(c, i), x))
        return true;
    onnx_fail_input(c, i, TY_E_SHAPE, "must be a list of %lld numbers", (long long)onnx_dim(c, x, onnx_rank(c, x) - 1));
    return false;
}

/* Normalises rows with inputs `scale` and `bias`; outputs 1 and 2, where wanted, are mean and 1 / deviation. */
static void norm_rows(onnx_ctx *c, ty_val x, int scale, int bias)
{
    double eps = onnx_attr_float(c, "epsilon", 1e-12);
    ty_val shift = bias >= 0 ? onnx_in(c, bias) : TY_NONE;
    if (check_row(c, scale, x) && (bias < 0 || check_row(c, bias, x)))
        onnx_set(c, 0, ty_b_norm(c->g, x, onnx_in(c, scale), shift, 1, eps, false));
}

static void skip_statistics(onnx_ctx *c, ty_val x)
{
    ty_graph *g = c->g;
    uint32_t last = 1u << (onnx_rank(c, x) - 1);
    ty_val mean = ty_b_mean(g, x, last, true);
    ty_val var = ty_b_mean(g, ty_b_square(g, ty_b_sub(g, x, mean)), last, true);
    if (onnx_wants(c, 1))
        onnx_set(c, 1, mean);
    if (onnx_wants(c, 2)) {
        ty_val wide = ty_b_add_s(g, var, onnx_attr_float(c, "epsilon", 1e-12));
        onnx_set(c, 2, ty_b_unary(g, TY_OP_RSQRT, wide));
    }
}

/* norm(input + skip + bias); output 3 is that sum. */
void onnx_op_ms_skip_layer_normalization(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    if (onnx_rank(c, x) < 2 || onnx_rank(c, onnx_in(c, 1)) > onnx_rank(c, x)) {
        onnx_fail(c, TY_E_SHAPE, "SkipLayerNormalization: input must have 2 or 3 dimensions, skip no more than it");
        return;
    }
    if (!check_row(c, 4, x))
        return;
    ty_val sum = ty_b_add(c->g, x, onnx_in(c, 1));
    if (onnx_has(c, 4))
        sum = ty_b_add(c->g, sum, onnx_in(c, 4));
    if (sum == TY_NONE)
        return;
    norm_rows(c, sum, 2, onnx_has(c, 3) ? 3 : -1);
    if (!c->failed && (onnx_wants(c, 1) || onnx_wants(c, 2)))
        skip_statistics(c, sum);
    if (onnx_wants(c, 3))
        onnx_set(c, 3, sum);
}

/* Rows of the position table: the given positions, or the first L. */
static ty_val embed_positions(onnx_ctx *c, const ty_type *ids)
{
    ty_val table = onnx_in(c, 3);
    if (onnx_has(c, 8))
        return onnx_take_rows(c, table, onnx_in(c, 8), 0);
    if (ids->dim[1] > onnx_dim(c, table, 0)) {
        onnx_fail_input(c, 3, TY_E_SHAPE, "has fewer than %lld rows", (long long)ids->dim[1]);
        return TY_NONE;
    }
    return ty_b_slice_axis(c->g, table, 0, 0, ids->dim[1]);
}

/* How many tokens of each row count: ones of the mask, 0 without one. */
static ty_val embed_counts(onnx_ctx *c, int64_t batch)
{
    ty_graph *g = c->g;
    if (!onnx_has(c, 7))
        return ty_b_full(g, TY_I32, 1, &batch, 0);
    ty_val mask = onnx_in(c, 7);
    ty_val one = ty_b_full_like(g, mask, 1);
    return ty_b_sum(g, ty_b_cast(g, ty_b_eq(g, mask, one), TY_I32), 2, false);
}

/* norm(word[ids] + position[...] + segment[segment_ids]); output 2 is that sum. */
void onnx_op_ms_embed_layer_normalization(onnx_ctx *c)
{
    static const int needed[] = {2, 3, 5, 6}; /* the segments between them are optional */
    for (int i = 0; i < 4; i++)
        if (!onnx_has(c, needed[i])) {
            onnx_fail(c, TY_E_SHAPE, "EmbedLayerNormalization: input %d is missing", needed[i]);
            return;
        }
    const ty_type ids = *onnx_type_of(c, onnx_in(c, 0));
    if (ids.rank != 2 || onnx_rank(c, onnx_in(c, 2)) != 2 || onnx_rank(c, onnx_in(c, 3)) != 2) {
        onnx_fail(c, TY_E_SHAPE, "EmbedLayerNormalization: ids and tables must have 2 dimensions");
        return;
    }
    if (onnx_has(c, 7) && onnx_rank(c, onnx_in(c, 7)) != 2) {
        onnx_fail_input(c, 7, TY_E_SHAPE, "must have 2 dimensions");
        return;
    }
    if (onnx_has(c, 1) != onnx_has(c, 4)) {
        onnx_fail(c, TY_E_SHAPE, "EmbedLayerNormalization: segment ids and their table come together");
        return;
    }
    ty_val sum = ty_b_add(c->g, onnx_take_rows(c, onnx_in(c, 2), onnx_in(c, 0), 0), embed_positions(c, &ids));
    if (onnx_has(c, 1) && sum != TY_NONE)
        sum = ty_b_add(c->g, sum, onnx_take_rows(c, onnx_in(c, 4), onnx_in(c, 1), 0));
    if (sum == TY_NONE)
        return;
    if (!check_row(c, 5, sum) || !check_row(c, 6, sum))
        return;
    onnx_set(c, 0, ty_b_norm(c->g, sum, onnx_in(c, 5), onnx_in(c, 6), 1, onnx_attr_float(c, "epsilon", 1e-12), false));
    if (onnx_wants(c, 1))
        onnx_set(c, 1, embed_counts(c, ids.dim[0]));
    if (onnx_wants(c, 2))
        onnx_set(c, 2, sum);
}

/* x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), behind a bias. */
void onnx_op_ms_fast_gelu(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_has(c, 1) ? ty_b_add(g, onnx_in(c, 0), onnx_in(c, 1)) : onnx_in(c, 0);
    ty_val cube = ty_b_mul(g, ty_b_square(g, x), x);
    ty_val t = ty_b_mul_s(g, ty_b_add(g, x, ty_b_mul_s(g, cube, 0.044715)), sqrt(2 / M_PI));
    ty_val y = ty_b_add_s(g, ty_b_unary(g, TY_OP_TANH, t), 1);
    onnx_set(c, 0, ty_b_mul(g, ty_b_mul_s(g, x, 0.5), y));
}

/* ---- attention ----------------------------------------------------------------------------------------------------
 */

typedef struct ms_attention {
    ty_val q, k, v; /* [B, N, L, D], [B, N, T, D], [B, N, T, Dv] */
    int64_t batch, heads, len, past, keys;
    int64_t width[3]; /* of q, k, v over all heads */
} ms_attention;

static const int64_t ms_heads_perm[] = {0, 2, 1, 3};

/* Columns [from, from + width) of the product, as heads. */
static ty_val ms_heads(onnx_ctx *c, const ms_attention *a, ty_val all, int64_t from, int64_t width)
{
    ty_val part = ty_b_slice_axis(c->g, all, 2, from, from + width);
    int64_t dim[] = {a->batch, a->len, a->heads, width / a->heads};
    return ty_b_transpose(c->g, ty_b_reshape(c->g, part, 4, dim), ms_heads_perm);
}

/* Widths of q, k and v: thirds of the columns, or the list that the node gives. */
static bool ms_widths(onnx_ctx *c, ms_attention *a, int64_t columns)
{
    const int64_t *sizes;
    int64_t n;
    bool listed = onnx_attr_ints(c, "qkv_hidden_sizes", &sizes, &n);
    if (listed && n != 3) {
        onnx_fail_attr(c, "qkv_hidden_sizes", "must have 3 entries");
        return false;
    }
    for (int i = 0; i < 3; i++) {
        a->width[i] = listed ? sizes[i] : columns / 3;
        if (a->width[i] < 1 || a->width[i] > columns || a->width[i] % a->heads) {
            onnx_fail_attr(c, listed ? "qkv_hidden_sizes" : "num_heads", "does not divide %lld columns",
                           (long long)columns);
            return false;
        }
    }
    if (a->width[0] == a->width[1] && a->width[0] + a->width[1] + a->width[2] == columns)
        return true;
    onnx_fail(c, TY_E_SHAPE, "Attention: q, k and v of %lld, %lld and %lld do not fill %lld columns",
              (long long)a->width[0], (long long)a->width[1], (long long)a->width[2], (long long)columns);
    return false;
}

/* past and present are [2, B, N, P or T, D]: keys, then values. */
static bool ms_cache(onnx_ctx *c, ms_attention *a)
{
    ty_graph *g = c->g;
    int64_t head = a->width[1] / a->heads;
    if (onnx_has(c, 4)) {
        const ty_type t = *onnx_type_of(c, onnx_in(c, 4));
        if (t.rank != 5 || t.dim[0] != 2 || t.dim[1] != a->batch || t.dim[2] != a->heads || t.dim[4] != head ||
            a->width[2] != a->width[1]) {
            onnx_fail_input(c, 4, TY_E_SHAPE, "must be [2, %lld, %lld, keys, %lld]", (long long)a->batch,
                            (long long)a->heads, (long long)head);
            return false;
        }
        a->past = t.dim[3];
        ty_val k = ty_b_squeeze(g, ty_b_slice_axis(g, onnx_in(c, 4), 0, 0, 1), 0);
        ty_val v = ty_b_squeeze(g, ty_b_slice_axis(g, onnx_in(c, 4), 0, 1, 2), 0);
        a->k = a->past ? ty_b_concat(g, (ty_val[]){k, a->k}, 2, 2) : a->k;
        a->v = a->past ? ty_b_concat(g, (ty_val[]){v, a->v}, 2, 2) : a->v;
    }
    a->keys = a->past + a->len;
    if (onnx_wants(c, 1) && a->width[1] == a->width[2])
        onnx_set(c, 1, ty_b_concat(g, (ty_val[]){ty_b_unsqueeze(g, a->k, 0), ty_b_unsqueeze(g, a->v, 0)}, 2, 0));
    return true;
}

static bool ms_read(onnx_ctx *c, ms_attention *a)
{
    ty_val x = onnx_in(c, 0), w = onnx_in(c, 1);
    *a = (ms_attention){.heads = onnx_attr_int(c, "num_heads", 0)};
    if (onnx_rank(c, x) != 3 || onnx_rank(c, w) != 2) {
        onnx_fail(c, TY_E_SHAPE, "Attention: input must be [batch, length, hidden], weights a matrix");
        return false;
    }
    if (a->heads < 1) {
        onnx_fail_attr(c, "num_heads", "must be positive");
        return false;
    }
    a->batch = onnx_dim(c, x, 0);
    a->len = onnx_dim(c, x, 1);
    if (!ms_widths(c, a, onnx_dim(c, w, 1)))
        return false;
    ty_val all = ty_b_matmul(c->g, x, w);
    if (onnx_has(c, 2))
        all = ty_b_add(c->g, all, onnx_in(c, 2));
    if (all == TY_NONE)
        return false;
    a->q = ms_heads(c, a, all, 0, a->width[0]);
    a->k = ms_heads(c, a, all, a->width[0], a->width[1]);
    a->v = ms_heads(c, a, all, a->width[0] + a->width[1], a->width[2]);
    return ms_cache(c, a);
}

/* Where keys are padding: `allowed` 0 or false costs mask_filter_value. */
static ty_val ms_filter(onnx_ctx *c, ty_val scores, ty_val allowed)
{
    ty_graph *g = c->g;
    ty_dtype dtype = onnx_dtype_of(c, scores);
    ty_val zero = ty_b_scalar(g, dtype, 0);
    ty_val cost = ty_b_scalar(g, dtype, onnx_attr_float(c, "mask_filter_value", -10000));
    return ty_b_add(g, scores, ty_b_select(g, allowed, zero, cost));
}

/* Keys from a row's start to its end, one number a row each; ends lie first, starts behind them. */
static ty_val ms_span(onnx_ctx *c, const ms_attention *a, ty_val scores)
{
    ty_graph *g = c->g;
    ty_val list = ty_b_cast(g, onnx_in(c, 3), TY_I64);
    int64_t n = onnx_dim(c, list, 0), column[] = {a->batch, 1, 1, 1}, dim[] = {1, 1, 1, a->keys};
    ty_val key = ty_b_iota(g, ty_type_make(TY_I64, 4, dim), 3);
    ty_val end = ty_b_reshape(g, ty_b_slice_axis(g, list, 0, 0, a->batch), 4, column);
    ty_val ok = ty_b_lt(g, key, end);
    if (n == 2 * a->batch) {
        ty_val start = ty_b_reshape(g, ty_b_slice_axis(g, list, 0, a->batch, n), 4, column);
        ok = ty_b_binary(g, TY_OP_AND, ok, ty_b_le(g, start, key));
    }
    return ms_filter(c, scores, ok);
}

/* mask_index: [B, T] or [B, L, T] of zeros and ones, or [B] or [2 B] positions. */
static ty_val ms_mask(onnx_ctx *c, const ms_attention *a, ty_val scores)
{
    ty_graph *g = c->g;
    ty_val mask = onnx_in(c, 3);
    const ty_type t = *onnx_type_of(c, mask);
    if (t.rank == 1 && (t.dim[0] == a->batch || t.dim[0] == 2 * a->batch))
        return ms_span(c, a, scores);
    bool wide = t.rank == 3 && t.dim[0] == a->batch && t.dim[1] == a->len && t.dim[2] == a->keys;
    if (!wide && (t.rank != 2 || t.dim[0] != a->batch || t.dim[1] != a->keys)) {
        onnx_fail_input(c, 3, TY_E_SHAPE, "must be [batch], [2 batch], [batch, %lld] or [batch, %lld, %lld]",
                        (long long)a->keys, (long long)a->len, (long long)a->keys);
        return TY_NONE;
    }
    int64_t dim[] = {a->batch, 1, wide ? a->len : 1, a->keys};
    ty_val ok = ty_b_ne(g, ty_b_reshape(g, mask, 4, dim), ty_b_scalar(g, (ty_dtype)t.dtype, 0));
    return ms_filter(c, scores, ok);
}

static ty_val ms_causal(onnx_ctx *c, const ms_attention *a, ty_val scores)
{
    ty_graph *g = c->g;
    int64_t dim[] = {a->len, a->keys};
    ty_type plane = ty_type_make(TY_I64, 2, dim);
    ty_val row = ty_b_add_s(g, ty_b_iota(g, plane, 0), (double)a->past);
    ty_val ok = ty_b_le(g, ty_b_iota(g, plane, 1), row);
    return ty_b_select(g, ok, scores, ty_b_scalar(g, onnx_dtype_of(c, scores), -INFINITY));
}

/* softmax(q k' scale + bias + masks) v, with q, k and v from one product. */
void onnx_op_ms_attention(onnx_ctx *c)
{
    static const char *const refused[] = {"do_rotary", "past_present_share_buffer"};
    ty_graph *g = c->g;
    ms_attention a;
    for (int i = 0; i < 2; i++)
        if (onnx_attr_int(c, refused[i], 0)) {
            onnx_fail_attr(c, refused[i], "must be 0");
            return;
        }
    if (!ms_read(c, &a))
        return;
    double scale = onnx_attr_float(c, "scale", 0), head = (double)(a.width[0] / a.heads);
    ty_val scores = ty_b_dot(g, ty_b_mul_s(g, a.q, scale > 0 ? scale : 1 / sqrt(head)), a.k, false, true);
    if (onnx_has(c, 5))
        scores = ty_b_add(g, scores, onnx_in(c, 5));
    if (onnx_has(c, 3) && scores != TY_NONE)
        scores = ms_mask(c, &a, scores);
    if (scores != TY_NONE && onnx_attr_int(c, "unidirectional", 0))
        scores = ms_causal(c, &a, scores);
    if (scores == TY_NONE)
        return;
    ty_val y = ty_b_dot(g, ty_b_softmax(g, scores, 3, false), a.v, false, false);
    int64_t dim[] = {a.batch, a.len, a.width[2]};
    onnx_set(c, 0, ty_b_reshape(g, ty_b_transpose(g, y, ms_heads_perm), 3, dim));
}
