/* attention.c - softmax(scale q k' + mask) v, the attention of transformers.
 *
 *     q [.., H, T, D], k [.., G, S, D], v [.., G, S, E] -> [.., H, T, E]
 *
 * H / G query heads in a row share one head of keys and values (arXiv:2305.13245); with H == G each has its own. The
 * scale is put on q, which is smaller than the scores. What a query may see is limited by
 *   flags 1  causal: query t sees keys 0 to t + (S - T), so that the last query sees all
 *   mask     floats are added to the scores; bools say which scores count, all others become value2 (-inf or a very
 *            negative number: a row without any key is then NaN or a plain mean). Its dims are those of the scores
 *            [.., H, T, S], or 1.
 *
 * flags 32: dropout of the probabilities, whose seed and step are the last operands (attend.h).
 *
 * lower and grad build the probabilities with the same functions; equal nodes exist once, so that the gradient uses
 * what the forward pass has computed. Of 16-bit floats the scores and the softmax are f32, and so may be the mask; what
 * is kept for the gradient are the rounded probabilities.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/attend.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/softmax.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_MASK, ATTENTION_N_IN = 6 };
/* attention_grad(q, k, v, dy, mask?) */
enum { ATTENTION_GRAD_DY = 3, ATTENTION_GRAD_MASK };

/* ---- types ---- */

static int attention_expect_mask(const ty_type *mask, const ty_type *scores, ty_error *err)
{
    char found[160], expected[160];
    bool same = ty_wide_dtype((ty_dtype)mask->dtype) == ty_wide_dtype((ty_dtype)scores->dtype);
    bool fits = mask->rank == scores->rank && (mask->dtype == TY_BOOL || same);
    for (int i = 0; fits && i < mask->rank; i++)
        fits = mask->dim[i] == 1 || mask->dim[i] == scores->dim[i];
    if (fits)
        return 0;
    return ty_error_set(err, TY_E_SHAPE, "mask: expected bool or the type of the scores %s with dims or 1, found %s",
                        ty_type_text(scores, expected, sizeof expected), ty_type_text(mask, found, sizeof found));
}

/* k or v: q's dtype and rank, q's leading dims, heads that divide q's. */
static int attention_expect_keys(const char *what, const ty_type *t, const ty_type *q, ty_error *err)
{
    int r = q->rank;
    char text[160];
    if (ty_expect_dtype(what, t, (ty_dtype)q->dtype, err) < 0 || ty_expect_rank(what, t, r, r, err) < 0)
        return -1;
    for (int i = 0; i < r - 2; i++) {
        bool heads = i == r - 3 && t->dim[i] > 0 && q->dim[i] % t->dim[i] == 0;
        if (t->dim[i] != q->dim[i] && !heads)
            return ty_error_set(err, TY_E_SHAPE, "%s: expected axis %d to fit q's %" PRId64 ", found %s", what, i,
                                q->dim[i], ty_type_text(t, text, sizeof text));
    }
    return 0;
}

int ty_op_infer_attention(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_type *q = in[ATTENTION_Q], *k = in[ATTENTION_K], *v = in[ATTENTION_V];
    if (ty_expect_float("q", q, err) < 0 || ty_expect_rank("q", q, 2, TY_MAX_RANK - 1, err) < 0 ||
        ty_expect_flags(attr, TY_ATTEND_CAUSAL | TY_ATTEND_DROPS, err) < 0 ||
        ty_attend_expect_dropout(attr, in, n_in, err) < 0 || attention_expect_keys("k", k, q, err) < 0 ||
        attention_expect_keys("v", v, q, err) < 0)
        return -1;
    int r = q->rank;
    if (k->dim[r - 1] != q->dim[r - 1] || k->dim[r - 2] != v->dim[r - 2] || (r > 2 && k->dim[r - 3] != v->dim[r - 3]))
        return ty_error_set(err, TY_E_SHAPE, "k: expected q's size of a head and v's number of keys and heads");
    if (isnan(attr->value) || isinf(attr->value))
        return ty_error_set(err, TY_E_ATTRIBUTE, "scale: expected a number, found %g", attr->value);
    ty_type scores = *q;
    scores.dim[r - 1] = k->dim[r - 2];
    if (ty_attend_n_given(attr, n_in) > ATTENTION_MASK && in[ATTENTION_MASK] &&
        attention_expect_mask(in[ATTENTION_MASK], &scores, err) < 0)
        return -1;
    *res = *q;
    res->dim[r - 1] = v->dim[r - 1];
    return 0;
}

/* ---- meaning ---- */

typedef struct attention_sizes {
    int64_t outer, heads, groups, t, s, d, e;
} attention_sizes;

static attention_sizes attention_sizes_of(const ty_type *q, const ty_type *k, const ty_type *v)
{
    int r = q->rank;
    attention_sizes a = {1, 1, 1, q->dim[r - 2], k->dim[r - 2], q->dim[r - 1], v->dim[r - 1]};
    for (int i = 0; i < r - 3; i++)
        a.outer *= q->dim[i];
    if (r > 2) {
        a.heads = q->dim[r - 3];
        a.groups = k->dim[r - 3];
    }
    return a;
}

/* Where the mask has its entry for element `at` of the scores. */
static int64_t attention_mask_at(const ty_type *mask, const ty_type *scores, int64_t at)
{
    int64_t place = 0, stride = 1;
    for (int i = scores->rank - 1; i >= 0; i--) {
        if (mask->dim[i] != 1)
            place += at % scores->dim[i] * stride;
        stride *= mask->dim[i];
        at /= scores->dim[i];
    }
    return place;
}

static double attention_masked(const ty_attr *attr, const ty_ref *mask, const ty_type *scores, int64_t at, double score)
{
    if (!mask)
        return score;
    int64_t place = attention_mask_at(&mask->type, scores, at);
    if (mask->f)
        return score + mask->f[place];
    return mask->i[place] ? score : attr->value2;
}

/* The head of k and v that query number `row` reads. */
static int64_t attention_head_of(const attention_sizes *a, int64_t row)
{
    int64_t head = row / a->t;
    return head / a->heads * a->groups + head % a->heads / (a->heads / a->groups);
}

/* Probabilities of one query, row number `row` of all. p has room for its scores. */
static void attention_probs(const ty_attr *attr, const ty_ref *in, const ty_ref *mask, const attention_sizes *a,
                            int64_t row, double *p)
{
    const double *q = in[ATTENTION_Q].f + row * a->d;
    const double *k = in[ATTENTION_K].f + attention_head_of(a, row) * a->s * a->d;
    ty_type scores = in[ATTENTION_Q].type;
    scores.dim[scores.rank - 1] = a->s;
    for (int64_t j = 0; j < a->s; j++) {
        double dot = 0;
        for (int64_t i = 0; i < a->d; i++)
            dot += q[i] * k[j * a->d + i];
        p[j] = attention_masked(attr, mask, &scores, row * a->s + j, dot * attr->value);
        if ((attr->flags & TY_ATTEND_CAUSAL) && j > row % a->t + a->s - a->t)
            p[j] = -INFINITY;
    }
    ty_softmax_row(p, p, a->s, 1, false);
}

/* What each probability of a query is multiplied by where it meets v. in: of n_in operands, seed and step at last. */
static void attention_kept(const ty_attr *attr, const ty_ref *in, int n_in, const attention_sizes *a, int64_t row,
                           double *kept)
{
    const ty_attend_dropout d = ty_attend_dropout_of(attr);
    for (int64_t j = 0; j < a->s; j++) {
        kept[j] = 1;
        if (attr->flags & TY_ATTEND_DROPS) {
            uint32_t word = ty_rng_u32((uint64_t)in[n_in - 2].i[0], d.stream, (uint32_t)in[n_in - 1].i[0],
                                       (uint64_t)(row * a->s + j));
            kept[j] = ty_attend_keeps(&d, word) ? d.factor : 0;
        }
    }
}

static void attention_row(const ty_attr *attr, const ty_ref *in, int n_in, const attention_sizes *a, int64_t row,
                          double *p, double *y)
{
    const ty_ref *mask = ty_attend_n_given(attr, n_in) > ATTENTION_MASK ? &in[ATTENTION_MASK] : NULL;
    const double *v = in[ATTENTION_V].f + attention_head_of(a, row) * a->s * a->e;
    double *kept = p + a->s;
    attention_probs(attr, in, mask, a, row, p);
    attention_kept(attr, in, n_in, a, row, kept);
    for (int64_t j = 0; j < a->s; j++)
        p[j] *= kept[j];
    for (int64_t j = 0; j < a->s; j++)
        for (int64_t i = 0; i < a->e; i++)
            y[row * a->e + i] += p[j] * v[j * a->e + i];
}

int ty_op_ref_attention(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    attention_sizes a = attention_sizes_of(&in[ATTENTION_Q].type, &in[ATTENTION_K].type, &in[ATTENTION_V].type);
    double *p = malloc(2 * sizeof(double) * (size_t)(a.s > 0 ? a.s : 1));
    if (!p)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %" PRId64 " scores", a.s);
    for (int64_t row = 0; row < a.outer * a.heads * a.t; row++)
        attention_row(attr, in, n_in, &a, row, p, res[0].f);
    free(p);
    return 0;
}

/* ---- what lower and grad share ---- */

typedef struct attention_parts {
    attention_sizes size;
    int rank;
    ty_val q;      /* times the scale */
    ty_val k, v;   /* with as many heads as q */
    ty_val scores; /* masked */
    ty_val mask;   /* stretched to the scores; TY_NONE without one */
    ty_val kept;   /* bool, of the scores: which probabilities are; TY_NONE: all */
    double factor; /* of those, then */
} attention_parts;

/* Each head stands H / G times in a row. */
static ty_val attention_spread(ty_graph *g, const attention_sizes *a, ty_val x)
{
    ty_type t = *ty_graph_type(g, x);
    int r = t.rank;
    if (a->heads == a->groups)
        return x;
    int64_t thin[TY_MAX_RANK], wide[TY_MAX_RANK];
    memcpy(thin, t.dim, sizeof(int64_t) * (size_t)(r - 2));
    thin[r - 2] = 1;
    thin[r - 1] = t.dim[r - 2];
    thin[r] = t.dim[r - 1];
    memcpy(wide, thin, sizeof wide);
    wide[r - 2] = a->heads / a->groups;
    t.dim[r - 3] = a->heads;
    return ty_b_reshape(g, ty_b_broadcast(g, ty_b_reshape(g, x, r + 1, thin), r + 1, wide), r, t.dim);
}

/* The gradient of attention_spread. */
static ty_val attention_gather(ty_graph *g, const attention_sizes *a, ty_val dx)
{
    ty_type t = *ty_graph_type(g, dx);
    int r = t.rank;
    if (a->heads == a->groups)
        return dx;
    int64_t wide[TY_MAX_RANK];
    memcpy(wide, t.dim, sizeof(int64_t) * (size_t)(r - 3));
    wide[r - 3] = a->groups;
    wide[r - 2] = a->heads / a->groups;
    wide[r - 1] = t.dim[r - 2];
    wide[r] = t.dim[r - 1];
    return ty_b_sum(g, ty_b_reshape(g, dx, r + 1, wide), 1u << (r - 2), false);
}

static ty_val attention_hide_future(ty_graph *g, const attention_sizes *a, ty_val scores)
{
    ty_type plane = ty_type_make(TY_I64, 2, (int64_t[]){a->t, a->s});
    ty_val last = ty_b_iota(g, plane, 0);
    if (a->s != a->t)
        last = ty_b_add_s(g, last, (double)(a->s - a->t));
    ty_val seen = ty_b_le(g, ty_b_iota(g, plane, 1), last);
    return ty_b_select(g, seen, scores, ty_b_scalar(g, ty_b_dtype(g, scores), -INFINITY));
}

/* Which keys dropout keeps. A word's upper bits are compared with a number as the word is with the number and zeros. */
static ty_val attention_draw(ty_graph *g, const ty_attr *attr, ty_val seed, ty_val step, const ty_type *scores)
{
    const ty_attend_dropout d = ty_attend_dropout_of(attr);
    ty_val word = ty_b_rng(g, seed, step, d.stream, scores->rank, scores->dim);
    return ty_b_le(g, ty_b_full_like(g, word, ldexp(d.below, 32 - TY_ATTEND_DRAW_BITS)), word);
}

/* x of the scores, where it is not dropped, times the factor. */
static ty_val attention_drop(ty_graph *g, const attention_parts *p, ty_val x)
{
    if (p->kept == TY_NONE || x == TY_NONE)
        return x;
    ty_dtype dtype = ty_b_dtype(g, x);
    ty_val wide = ty_b_mul_s(g, ty_b_cast(g, x, ty_wide_dtype(dtype)), p->factor);
    return ty_b_cast(g, ty_b_select(g, p->kept, wide, ty_b_full_like(g, wide, 0)), dtype);
}

static attention_parts attention_parts_of(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in)
{
    const int n_given = ty_attend_n_given(attr, n_in);
    attention_parts p = {.mask = TY_NONE, .kept = TY_NONE, .rank = ty_b_rank(g, in[ATTENTION_Q])};
    p.size = attention_sizes_of(ty_graph_type(g, in[ATTENTION_Q]), ty_graph_type(g, in[ATTENTION_K]),
                                ty_graph_type(g, in[ATTENTION_V]));
    p.q = ty_b_mul_s(g, in[ATTENTION_Q], attr->value);
    p.k = attention_spread(g, &p.size, in[ATTENTION_K]);
    p.v = attention_spread(g, &p.size, in[ATTENTION_V]);
    p.scores = ty_b_dot_wide(g, p.q, p.k, false, true);
    if (attr->flags & TY_ATTEND_DROPS && p.scores != TY_NONE) {
        const ty_type t = *ty_graph_type(g, p.scores);
        p.kept = attention_draw(g, attr, in[n_given], in[n_given + 1], &t);
        p.factor = ty_attend_dropout_of(attr).factor;
    }
    if (n_given > ATTENTION_MASK && p.scores != TY_NONE) {
        const ty_type t = *ty_graph_type(g, p.scores);
        p.mask = ty_b_broadcast(g, in[ATTENTION_MASK], t.rank, t.dim);
        if (ty_b_dtype(g, p.mask) != TY_BOOL)
            p.mask = ty_b_cast(g, p.mask, (ty_dtype)t.dtype);
        p.scores = ty_b_dtype(g, in[ATTENTION_MASK]) == TY_BOOL
                       ? ty_b_select(g, p.mask, p.scores, ty_b_full_like(g, p.scores, attr->value2))
                       : ty_b_add(g, p.scores, p.mask);
    }
    if (attr->flags & TY_ATTEND_CAUSAL)
        p.scores = attention_hide_future(g, &p.size, p.scores);
    return p;
}

void ty_op_lower_attention(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in, ty_val *res)
{
    attention_parts p = attention_parts_of(g, attr, in, n_in);
    const ty_attr along = {.axis = p.rank - 1};
    ty_val probs = TY_NONE;
    if (p.scores != TY_NONE)
        ty_op_lower_softmax(g, &along, &p.scores, 1, &probs);
    probs = attention_drop(g, &p, ty_b_cast(g, probs, ty_b_dtype(g, p.v)));
    res[0] = ty_b_dot(g, probs, p.v, false, false);
}

/* ---- gradient ---- */

/* Where a bool mask hides a score the gradient ends. With -inf the probability there is 0, and so is the gradient. */
static ty_val attention_grad_unmasked(ty_graph *g, const ty_attr *attr, const attention_parts *p, ty_val dscores)
{
    if (p->mask == TY_NONE || ty_b_dtype(g, p->mask) != TY_BOOL || isinf(attr->value2))
        return dscores;
    return ty_b_select(g, p->mask, dscores, ty_b_full_like(g, dscores, 0));
}

/* dS of one query from dP, in place. */
static void attention_softmax_back(const double *p, double *dp, int64_t n)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += p[j] * dp[j];
    for (int64_t j = 0; j < n; j++)
        dp[j] = p[j] * (dp[j] - sum);
}

/* dv = P' dy, dP = dy v', dS from softmax, dq = scale dS k, dk = scale dS' q, the mask's is dS: one query's part. */
static void attention_row_back(const ty_attr *attr, const ty_ref *in, int n_in, const attention_sizes *a, int64_t row,
                               double *p, ty_ref *res)
{
    const ty_ref *mask = ty_attend_n_given(attr, n_in) > ATTENTION_GRAD_MASK ? &in[ATTENTION_GRAD_MASK] : NULL;
    double *dp = p + a->s, *kept = dp + a->s;
    int64_t kv = attention_head_of(a, row);
    const double *q = in[ATTENTION_Q].f + row * a->d, *dy = in[ATTENTION_GRAD_DY].f + row * a->e;
    const double *k = in[ATTENTION_K].f + kv * a->s * a->d, *v = in[ATTENTION_V].f + kv * a->s * a->e;
    double *dq = res[ATTENTION_Q].f + row * a->d;
    double *dk = res[ATTENTION_K].f + kv * a->s * a->d, *dv = res[ATTENTION_V].f + kv * a->s * a->e;
    ty_type scores = in[ATTENTION_Q].type;
    scores.dim[scores.rank - 1] = a->s;
    attention_probs(attr, in, mask, a, row, p);
    attention_kept(attr, in, n_in, a, row, kept);
    for (int64_t j = 0; j < a->s; j++) {
        dp[j] = 0;
        for (int64_t i = 0; i < a->e; i++) {
            dv[j * a->e + i] += kept[j] * p[j] * dy[i];
            dp[j] += kept[j] * dy[i] * v[j * a->e + i];
        }
    }
    attention_softmax_back(p, dp, a->s);
    for (int64_t j = 0; j < a->s; j++) {
        int64_t place = mask ? attention_mask_at(&mask->type, &scores, row * a->s + j) : 0;
        if (mask && mask->f)
            res[ATTENTION_MASK].f[place] += dp[j];
        double ds = mask && mask->i && !mask->i[place] ? 0 : dp[j] * attr->value;
        for (int64_t i = 0; i < a->d; i++) {
            dq[i] += ds * k[j * a->d + i];
            dk[j * a->d + i] += ds * q[i];
        }
    }
}

int ty_op_infer_attention_grad(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_type *mask = ty_attend_n_given(attr, n_in) > ATTENTION_GRAD_MASK ? in[ATTENTION_GRAD_MASK] : NULL;
    const ty_type *forward[ATTENTION_N_IN] = {in[ATTENTION_Q], in[ATTENTION_K], in[ATTENTION_V]};
    ty_type y = {0};
    for (int i = ATTENTION_GRAD_MASK; i < n_in; i++)
        forward[i - 1] = in[i];
    if (ty_op_infer_attention(attr, forward, n_in - 1, &y, err) < 0 ||
        ty_expect_type("dy", in[ATTENTION_GRAD_DY], &y, err) < 0)
        return -1;
    for (int i = ATTENTION_Q; i <= ATTENTION_V; i++)
        res[i] = *in[i];
    res[ATTENTION_MASK] = mask && mask->dtype != TY_BOOL ? *mask : ty_type_scalar((ty_dtype)y.dtype);
    return 0;
}

int ty_op_ref_attention_grad(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    attention_sizes a = attention_sizes_of(&in[ATTENTION_Q].type, &in[ATTENTION_K].type, &in[ATTENTION_V].type);
    double *p = malloc(3 * sizeof(double) * (size_t)(a.s > 0 ? a.s : 1));
    if (!p)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %" PRId64 " scores", a.s);
    for (int64_t row = 0; row < a.outer * a.heads * a.t; row++)
        attention_row_back(attr, in, n_in, &a, row, p, res);
    free(p);
    return 0;
}

/* In primitives, from the probabilities that lower has built too. */
void ty_op_lower_attention_grad(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in, ty_val *res)
{
    ty_val dy = in[ATTENTION_GRAD_DY], forward[ATTENTION_N_IN] = {in[ATTENTION_Q], in[ATTENTION_K], in[ATTENTION_V]};
    for (int i = ATTENTION_GRAD_MASK; i < n_in; i++)
        forward[i - 1] = in[i];
    attention_parts p = attention_parts_of(g, attr, forward, n_in - 1);
    const ty_attr along = {.axis = p.rank - 1};
    ty_val probs = TY_NONE;
    if (p.scores == TY_NONE)
        return;
    ty_op_lower_softmax(g, &along, &p.scores, 1, &probs);
    ty_dtype dtype = ty_b_dtype(g, p.v), wide = ty_wide_dtype(dtype);
    probs = ty_b_cast(g, probs, dtype);
    res[ATTENTION_V] = attention_gather(g, &p.size, ty_b_dot(g, attention_drop(g, &p, probs), dy, true, false));
    ty_val dprobs = attention_drop(g, &p, ty_b_dot_wide(g, dy, p.v, false, true));
    ty_val dscores = ty_softmax_back(g, ty_b_cast(g, probs, wide), dprobs, p.rank - 1);
    res[ATTENTION_MASK] = ty_b_scalar(g, dtype, 0);
    if (p.mask != TY_NONE && ty_b_dtype(g, p.mask) != TY_BOOL) {
        const ty_type like = *ty_graph_type(g, in[ATTENTION_GRAD_MASK]);
        res[ATTENTION_MASK] = ty_b_unbroadcast(g, ty_b_cast(g, dscores, (ty_dtype)like.dtype), &like);
    }
    dscores = ty_b_cast(g, attention_grad_unmasked(g, attr, &p, dscores), dtype);
    res[ATTENTION_Q] = ty_b_mul_s(g, ty_b_dot(g, dscores, p.k, false, false), attr->value);
    res[ATTENTION_K] = attention_gather(g, &p.size, ty_b_dot(g, dscores, p.q, true, false));
}

/* Known as a whole, as attention itself is: both are taken apart, or neither (compiler/passes/attend.c). */
void ty_op_grad_attention(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr attr = *ty_graph_attr(g, node);
    int n_in = (int)ty_graph_node(g, node)->n_in;
    ty_val in[ATTENTION_N_IN + 1] = {ty_graph_in(g, node, ATTENTION_Q), ty_graph_in(g, node, ATTENTION_K),
                                     ty_graph_in(g, node, ATTENTION_V), dres[0]};
    for (int k = ATTENTION_MASK; k < n_in; k++)
        in[k + 1] = ty_graph_in(g, node, k);
    ty_val d = ty_graph_emit(g, TY_OP_ATTENTION_GRAD, &attr, in, n_in + 1);
    for (int k = 0; k < ty_attend_n_given(&attr, n_in) && d != TY_NONE; k++)
        if (k < ATTENTION_MASK || ty_b_dtype(g, in[ATTENTION_GRAD_MASK]) != TY_BOOL)
            din[k] = ty_val_make(ty_val_node(d), (uint32_t)k);
}
