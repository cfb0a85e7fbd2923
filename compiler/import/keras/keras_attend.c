/* keras_attend.c - see keras_attend.h. */
#include "compiler/import/keras/keras_attend.h"

static const int64_t heads_first[] = {0, 2, 1, 3};

/* x [B, S, G, D] as [B, N, S, D]: each of G heads stands N / G times in a row. */
static ty_val attend_heads(ty_graph *g, ty_val x, int64_t heads)
{
    x = ty_b_transpose(g, x, heads_first);
    int64_t groups = ty_b_dim(g, x, 1), n = ty_b_dim(g, x, 2), d = ty_b_dim(g, x, 3), b = ty_b_dim(g, x, 0);
    if (groups == heads || groups < 1)
        return x;
    int64_t thin[] = {b, groups, 1, n, d}, wide[] = {b, groups, heads / groups, n, d}, out[] = {b, heads, n, d};
    return ty_b_reshape(g, ty_b_broadcast(g, ty_b_reshape(g, x, 5, thin), 5, wide), 4, out);
}

ty_val keras_dropped(keras_call *c, ty_val p, double rate)
{
    ty_graph *g = c->g;
    if (!c->training || !(rate > 0) || p == TY_NONE)
        return p;
    const ty_type t = *ty_graph_type(g, p);
    ty_val u = keras_uniform(c, t.rank, t.dim), zero = ty_b_full_like(g, p, 0);
    ty_val kept = ty_b_le(g, ty_b_full_like(g, u, rate), u);
    return ty_b_select(g, kept, rate < 1 ? ty_b_mul_s(g, p, 1 / (1 - rate)) : zero, zero);
}

void keras_attend_emit(keras_call *c, keras_attend *a)
{
    ty_graph *g = c->g;
    int64_t heads = ty_b_dim(g, a->q, 2);
    ty_val q = ty_b_transpose(g, a->q, heads_first);
    ty_val scores = ty_b_mul_s(g, ty_b_dot(g, q, attend_heads(g, a->k, heads), false, true), a->scale);
    if (a->bias != TY_NONE)
        scores = ty_b_add(g, scores, a->bias);
    if (a->cap > 0)
        scores = ty_b_mul_s(g, ty_b_unary(g, TY_OP_TANH, ty_b_mul_s(g, scores, 1 / a->cap)), a->cap);
    if (a->mask != TY_NONE)
        scores = ty_b_select(g, a->mask, scores, ty_b_full_like(g, scores, a->hidden));
    a->weights = ty_b_softmax(g, scores, 3, false);
    if (a->mask != TY_NONE && a->zero_masked)
        a->weights = ty_b_select(g, a->mask, a->weights, ty_b_full_like(g, a->weights, 0));
    ty_val p = keras_dropped(c, a->weights, a->dropout);
    a->y = ty_b_transpose(g, ty_b_dot(g, p, attend_heads(g, a->v, heads), false, false), heads_first);
}

ty_val keras_causal(ty_graph *g, int64_t t, int64_t s, bool causal, int64_t window)
{
    int64_t dim[] = {t, s};
    ty_type plane = ty_type_make(TY_I32, 2, dim);
    ty_val i = ty_b_iota(g, plane, 0), j = ty_b_iota(g, plane, 1), seen = causal ? ty_b_le(g, j, i) : TY_NONE;
    if (window > 0)
        seen = keras_and(g, seen,
                         ty_b_lt(g, ty_b_unary(g, TY_OP_ABS, ty_b_sub(g, i, j)), ty_b_full_like(g, i, (double)window)));
    return seen;
}

ty_val keras_and(ty_graph *g, ty_val a, ty_val b)
{
    return a == TY_NONE ? b : b == TY_NONE ? a : ty_b_binary(g, TY_OP_AND, a, b);
}

ty_val keras_mask_to_scores(ty_graph *g, ty_val mask)
{
    while (mask != TY_NONE && ty_b_rank(g, mask) >= 2 && ty_b_rank(g, mask) < 4)
        mask = ty_b_unsqueeze(g, mask, ty_b_rank(g, mask) - 2);
    return mask;
}
