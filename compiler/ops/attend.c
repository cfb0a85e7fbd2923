/* attend.c - attention as two library calls: softmax(value q k') v with the logarithm of each row's sum, and the
 * gradient that starts from it (arXiv:2205.14135). compiler/passes/attend.c says when they are used instead of products
 * and a softmax.
 *
 *     q [.., H, T, D], k [.., G, S, D], v [.., G, S, E] -> y [.., H, T, E], lse [.., H, T] (f32 where q has 16 bits)
 *
 * flags 1: causal, query t sees keys 0 to t + (S - T). flags 2: heads stand inside, q [.., T, H, D] and so on: what a
 * linear layer makes and takes, so that nothing is transposed. flags 4, with 2: q, k and v are one operand, given three
 * times, [.., T, 3 H, D], the heads of q first: what one linear layer makes for all three.
 *
 * A mask has the dims of the scores [.., H, T, S] or 1, also where heads stand inside: float32 that is added, none of
 * it below TY_ATTEND_UNSEEN, or bools; where these are false the score is TY_ATTEND_HIDDEN, with flags 8
 * TY_ATTEND_UNSEEN. Flags 16: bools stand for such numbers that are added: in a row in which all is hidden, the
 * gradient flows. attend.h says what becomes of these rows. The gradient of a mask that is added is P (dP - dy y'), of
 * which no more is ever in memory than the mask has numbers.
 *
 * Flags 32: dropout (attend.h) between softmax and v. Of the probabilities P the dropped ones are 0 and others factor P
 * where they meet v; dP = factor dy v' of these alone, and sum(P dP) = dy y' still, so that nothing but words is drawn
 * again for the gradient.
 */
#include "compiler/ops/attend.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/softmax.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { ATTEND_Q, ATTEND_K, ATTEND_V, ATTEND_PARTS, ATTEND_Y = ATTEND_PARTS, ATTEND_LSE, ATTEND_DY };
#define ATTEND_FLAGS \
    (TY_ATTEND_CAUSAL | TY_ATTEND_INSIDE | TY_ATTEND_PACKED | TY_ATTEND_NEVER | TY_ATTEND_FLOWS | TY_ATTEND_DROPS)

ty_attend_sizes ty_attend_sizes_of(uint32_t flags, const ty_type *q, const ty_type *k, const ty_type *v)
{
    int r = q->rank, head = flags & TY_ATTEND_INSIDE ? r - 2 : r - 3, row = flags & TY_ATTEND_INSIDE ? r - 3 : r - 2;
    int parts = flags & TY_ATTEND_PACKED ? ATTEND_PARTS : 1;
    ty_attend_sizes a = {1,
                         q->dim[head] / parts,
                         k->dim[head] / parts,
                         q->dim[row],
                         k->dim[row],
                         q->dim[r - 1],
                         v->dim[r - 1],
                         flags & TY_ATTEND_INSIDE,
                         flags & TY_ATTEND_CAUSAL,
                         flags & TY_ATTEND_PACKED};
    for (int i = 0; i < r - 3; i++)
        a.outer *= q->dim[i];
    return a;
}

bool ty_attend_mask_of(uint32_t flags, const ty_type *q, const ty_type *mask, ty_attend_mask *out)
{
    int r = q->rank;
    bool begun = false, ended = false;
    *out = (ty_attend_mask){.chooses = mask->dtype == TY_BOOL,
                            .blind = mask->dtype == TY_BOOL && !(flags & TY_ATTEND_FLOWS),
                            .hidden = flags & TY_ATTEND_NEVER ? TY_ATTEND_UNSEEN : TY_ATTEND_HIDDEN,
                            .div = 1,
                            .mod = 1};
    for (int i = 0; i < r - 3; i++) {
        bool has = mask->dim[i] != 1;
        if (has && ended)
            return false;
        begun = begun || has;
        ended = begun && !has && q->dim[i] != 1;
        *(has ? &out->mod : &out->div) *= begun ? q->dim[i] : 1;
    }
    int64_t row = mask->dim[r - 1], plane = mask->dim[r - 2] * row;
    out->key_step = row != 1;
    out->query_step = mask->dim[r - 2] == 1 ? 0 : row;
    out->head_step = mask->dim[r - 3] == 1 ? 0 : plane;
    out->outer_step = out->mod == 1 ? 0 : mask->dim[r - 3] * plane;
    return true;
}

bool ty_attend_is_turn(const ty_graph *g, uint32_t transpose)
{
    int r = ty_graph_type(g, ty_val_make(transpose, 0))->rank;
    for (int i = 0; i < r; i++)
        if (ty_graph_attr(g, transpose)->lo[i] != (i == r - 3 ? r - 2 : i == r - 2 ? r - 3 : i))
            return false;
    return r >= 3;
}

/* ---- types ---- */

static int attend_expect_keys(const char *what, const ty_type *t, const ty_type *q, int head, ty_error *err)
{
    int r = q->rank;
    char text[160];
    if (ty_expect_dtype(what, t, (ty_dtype)q->dtype, err) < 0 || ty_expect_rank(what, t, r, r, err) < 0)
        return -1;
    bool fits = t->dim[head] > 0 && q->dim[head] % t->dim[head] == 0;
    for (int i = 0; i < r - 3; i++)
        fits = fits && t->dim[i] == q->dim[i];
    return fits ? 0
                : ty_error_set(err, TY_E_SHAPE, "%s: expected q's leading dims and a divisor of its heads, found %s",
                               what, ty_type_text(t, text, sizeof text));
}

static int attend_expect_packed(const ty_attr *attr, const ty_type *const *in, ty_error *err)
{
    const ty_type *q = in[ATTEND_Q];
    if (!(attr->flags & TY_ATTEND_PACKED))
        return 0;
    if (!(attr->flags & TY_ATTEND_INSIDE) || q->dim[q->rank - 2] % ATTEND_PARTS != 0)
        return ty_error_set(err, TY_E_SHAPE, "q: expected three times as many heads, inside");
    return ty_expect_type("k", in[ATTEND_K], q, err) < 0 || ty_expect_type("v", in[ATTEND_V], q, err) < 0 ? -1 : 0;
}

static int attend_expect_mask(const ty_type *mask, const ty_type *q, const ty_attend_sizes *a, ty_error *err)
{
    int r = q->rank;
    ty_attend_mask m;
    char text[160];
    bool fits = mask->rank == r && (mask->dtype == TY_BOOL || mask->dtype == TY_F32);
    for (int i = 0; fits && i < r; i++) {
        int64_t dim = i < r - 3 ? q->dim[i] : i == r - 3 ? a->heads : i == r - 2 ? a->t : a->s;
        fits = mask->dim[i] == 1 || mask->dim[i] == dim;
    }
    if (fits && !a->causal && q->dtype != TY_F64 && ty_attend_mask_of(0, q, mask, &m))
        return 0;
    return ty_error_set(err, TY_E_SHAPE,
                        "mask: expected bool or f32 with the dims of the scores or 1, not causal, found %s",
                        ty_type_text(mask, text, sizeof text));
}

int ty_attend_expect_dropout(const ty_attr *attr, const ty_type *const *in, int n_in, ty_error *err)
{
    const ty_type scalar = ty_type_scalar(TY_I64);
    if (!(attr->flags & TY_ATTEND_DROPS))
        return attr->dropped == 0 && attr->index == 0
                   ? 0
                   : ty_error_set(err, TY_E_ATTRIBUTE,
                                  "dropped, index: expected 0 without dropout, found %" PRId64 " and %" PRId64,
                                  attr->dropped, attr->index);
    if (attr->dropped <= 0 || attr->dropped >> TY_ATTEND_DRAW_BITS || attr->index < 0 || attr->index > UINT32_MAX)
        return ty_error_set(err, TY_E_ATTRIBUTE,
                            "dropped, index: expected 0 < dropped < 2^%d and a stream, found %" PRId64 " and %" PRId64,
                            TY_ATTEND_DRAW_BITS, attr->dropped, attr->index);
    return ty_expect_type("seed", in[n_in - 2], &scalar, err) < 0 ||
                   ty_expect_type("step", in[n_in - 1], &scalar, err) < 0
               ? -1
               : 0;
}

int ty_op_infer_attend(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_type *q = in[ATTEND_Q], *k = in[ATTEND_K], *v = in[ATTEND_V];
    int r = q->rank, head = attr->flags & TY_ATTEND_INSIDE ? r - 2 : r - 3;
    const ty_type *mask = ty_attend_n_given(attr, n_in) > TY_ATTEND_MASK_AT ? in[TY_ATTEND_MASK_AT] : NULL;
    if (ty_expect_float("q", q, err) < 0 || ty_expect_rank("q", q, 3, TY_MAX_RANK, err) < 0 ||
        ty_expect_flags(attr, ATTEND_FLAGS, err) < 0 || ty_attend_expect_dropout(attr, in, n_in, err) < 0 ||
        attend_expect_packed(attr, in, err) < 0 || attend_expect_keys("k", k, q, head, err) < 0 ||
        attend_expect_keys("v", v, q, head, err) < 0)
        return -1;
    ty_attend_sizes a = ty_attend_sizes_of(attr->flags, q, k, v), b = ty_attend_sizes_of(attr->flags, v, v, v);
    if (k->dim[r - 1] != a.d || b.s != a.s || b.heads != a.groups)
        return ty_error_set(err, TY_E_SHAPE, "k: expected q's size of a head and v's number of keys and heads");
    if (mask && attend_expect_mask(mask, q, &a, err) < 0)
        return -1;
    res[0] = *q;
    res[0].dim[head] = a.heads;
    res[0].dim[r - 1] = a.e;
    int64_t dim[TY_MAX_RANK] = {0};
    for (int i = 0; i < r - 3; i++)
        dim[i] = q->dim[i];
    dim[r - 3] = a.heads;
    dim[r - 2] = a.t;
    return ty_expect_result(ty_wide_dtype((ty_dtype)q->dtype), r - 1, dim, &res[1], err);
}

int ty_op_infer_attend_grad(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    ty_type forward[2] = {{0}, {0}};
    const ty_type *of[TY_ATTEND_MASK_AT + 1 + TY_ATTEND_N_DRAWN] = {in[ATTEND_Q], in[ATTEND_K], in[ATTEND_V]};
    int n_of = TY_ATTEND_MASK_AT;
    for (int i = TY_ATTEND_GRAD_MASK_AT; i < n_in; i++)
        of[n_of++] = in[i];
    if (ty_op_infer_attend(attr, of, n_of, forward, err) < 0 ||
        ty_expect_type("y", in[ATTEND_Y], &forward[0], err) < 0 ||
        ty_expect_type("lse", in[ATTEND_LSE], &forward[1], err) < 0 ||
        ty_expect_type("dy", in[ATTEND_DY], &forward[0], err) < 0)
        return -1;
    for (int i = ATTEND_Q; i <= ATTEND_V; i++)
        if (i > ATTEND_Q && attr->flags & TY_ATTEND_PACKED) {
            if (ty_expect_result((ty_dtype)in[i]->dtype, 0, NULL, &res[i], err) < 0)
                return -1;
        } else {
            res[i] = *in[i];
        }
    return 0;
}

int ty_op_infer_attend_bias_grad(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_type *mask = in[TY_ATTEND_GRAD_MASK_AT];
    if (ty_attend_n_given(attr, n_in) <= TY_ATTEND_GRAD_MASK_AT)
        return ty_error_set(err, TY_E_SHAPE, "mask: expected one, found none");
    if (ty_expect_dtype("mask", mask, TY_F32, err) < 0 || ty_op_infer_attend_grad(attr, in, n_in, res, err) < 0)
        return -1;
    res[TY_ATTEND_DMASK] = *mask;
    return 0;
}

/* ---- meaning ---- */

/* Where row `row` of head `head` begins, of `rows` rows of `n` numbers in `heads` heads. */
static int64_t attend_at(const ty_attend_sizes *a, int64_t outer, int64_t heads, int64_t head, int64_t rows,
                         int64_t row, int64_t n)
{
    return (a->inside ? (outer * rows + row) * heads + head : (outer * heads + head) * rows + row) * n;
}

/* The same of an operand's: packed, behind the heads of the parts before it. */
static int64_t attend_part_at(const ty_attend_sizes *a, int part, int64_t outer, int64_t heads, int64_t head,
                              int64_t rows, int64_t row, int64_t n)
{
    return a->packed ? attend_at(a, outer, ATTEND_PARTS * heads, part * heads + head, rows, row, n)
                     : attend_at(a, outer, heads, head, rows, row, n);
}

/* Where an operand's gradient is. */
static double *attend_gradient(const ty_attend_sizes *a, ty_ref *res, int part)
{
    return res[a->packed ? ATTEND_Q : part].f;
}

typedef struct attend_row {
    int64_t q, y, lse, outer, group, n; /* n keys are seen */
    int64_t mask;                       /* where the mask has its first number for the row */
} attend_row;

/* What is computed from: mask is NULL without one. */
typedef struct attend_case {
    ty_attend_sizes a;
    double scale;
    const ty_ref *in, *mask;
    ty_attend_mask m;
    double *dmask; /* NULL: nobody learns it */
    bool drops;
    ty_attend_dropout dropout;
    uint64_t seed;
    uint32_t step;
} attend_case;

static attend_case attend_case_of(const ty_attr *attr, const ty_ref *in, int n_in, int mask_at)
{
    attend_case c = {.a = ty_attend_sizes_of(attr->flags, &in[0].type, &in[1].type, &in[2].type),
                     .scale = attr->value,
                     .in = in,
                     .mask = ty_attend_n_given(attr, n_in) > mask_at ? &in[mask_at] : NULL,
                     .drops = attr->flags & TY_ATTEND_DROPS};
    if (c.mask)
        ty_attend_mask_of(attr->flags, &in[0].type, &c.mask->type, &c.m);
    if (c.drops) {
        c.dropout = ty_attend_dropout_of(attr);
        c.seed = (uint64_t)in[n_in - 2].i[0];
        c.step = (uint32_t)in[n_in - 1].i[0];
    }
    return c;
}

static attend_row attend_row_of(const attend_case *c, int64_t at)
{
    const ty_attend_sizes *a = &c->a;
    int64_t t = at % a->t, head = at / a->t % a->heads, outer = at / a->t / a->heads;
    int64_t seen = a->causal ? t + a->s - a->t + 1 : a->s;
    attend_row row = {.q = attend_part_at(a, ATTEND_Q, outer, a->heads, head, a->t, t, a->d),
                      .y = attend_at(a, outer, a->heads, head, a->t, t, a->e),
                      .lse = at,
                      .outer = outer,
                      .group = head / (a->heads / a->groups),
                      .n = seen < 0      ? 0
                           : seen < a->s ? seen
                                         : a->s};
    if (c->mask)
        row.mask = ty_attend_mask_at(&c->m, outer, head, t);
    return row;
}

static int64_t attend_key_at(const ty_attend_sizes *a, int part, const attend_row *row, int64_t key)
{
    return attend_part_at(a, part, row->outer, a->groups, row->group, a->s, key, part == ATTEND_K ? a->d : a->e);
}

/* Bools say that the query does not see the key. */
static bool attend_hides(const attend_case *c, const attend_row *row, int64_t key)
{
    return c->mask && c->m.chooses && !c->mask->i[row->mask + key * c->m.key_step];
}

static double attend_score(const attend_case *c, const attend_row *row, int64_t key)
{
    const double *q = c->in[ATTEND_Q].f + row->q, *k = c->in[ATTEND_K].f + attend_key_at(&c->a, ATTEND_K, row, key);
    double sum = 0;
    for (int64_t i = 0; i < c->a.d; i++)
        sum += q[i] * k[i];
    sum *= c->scale;
    if (attend_hides(c, row, key))
        return c->m.hidden;
    return c->mask && !c->m.chooses ? sum + c->mask->f[row->mask + key * c->m.key_step] : sum;
}

/* Scores of a row; returns its lse. */
static double attend_scores(const attend_case *c, const attend_row *row, double *p)
{
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < row->n; j++) {
        p[j] = attend_score(c, row, j);
        most = isnan(p[j]) || p[j] > most ? p[j] : most;
    }
    for (int64_t j = 0; j < row->n; j++)
        sum += exp(p[j] - most);
    if (c->mask && most < TY_ATTEND_IS_HIDDEN)
        return most < TY_ATTEND_IS_UNSEEN ? NAN : TY_ATTEND_HIDDEN * sum;
    return most + log(sum);
}

static double attend_probability(const attend_case *c, double score, double lse)
{
    if (c->mask && lse < TY_ATTEND_IS_HIDDEN)
        return score < TY_ATTEND_IS_UNSEEN ? 0 : TY_ATTEND_HIDDEN / lse;
    return exp(score - lse);
}

/* What a probability is multiplied by where it meets v. */
static double attend_kept(const attend_case *c, const attend_row *row, int64_t key)
{
    if (!c->drops)
        return 1;
    uint64_t at = (uint64_t)(row->lse * c->a.s + key); /* rows are in the order of the scores */
    return ty_attend_keeps(&c->dropout, ty_rng_u32(c->seed, c->dropout.stream, c->step, at)) ? c->dropout.factor : 0;
}

int ty_op_ref_attend(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    const attend_case c = attend_case_of(attr, in, n_in, TY_ATTEND_MASK_AT);
    double *p = malloc(sizeof(double) * (size_t)(c.a.s + 1));
    if (!p)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %" PRId64 " scores", c.a.s);
    for (int64_t at = 0; at < c.a.outer * c.a.heads * c.a.t; at++) {
        attend_row row = attend_row_of(&c, at);
        double lse = res[1].f[at] = attend_scores(&c, &row, p);
        for (int64_t j = 0; j < row.n; j++) {
            double prob = attend_probability(&c, p[j], lse) * attend_kept(&c, &row, j);
            for (int64_t i = 0; i < c.a.e; i++)
                res[0].f[row.y + i] += prob * in[ATTEND_V].f[attend_key_at(&c.a, ATTEND_V, &row, j) + i];
        }
    }
    free(p);
    return 0;
}

/* P = exp(S - lse), dP = dy v', dS = value P (dP - dy y'): arXiv:2205.14135, appendix B.4. */
static void attend_row_back(const attend_case *c, const attend_row *row, double *p, ty_ref *res)
{
    const ty_attend_sizes *a = &c->a;
    const ty_ref *in = c->in;
    const double *dy = in[ATTEND_DY].f + row->y, *y = in[ATTEND_Y].f + row->y;
    double *dq = attend_gradient(a, res, ATTEND_Q), *dk = attend_gradient(a, res, ATTEND_K);
    double *dv = attend_gradient(a, res, ATTEND_V), delta = 0;
    attend_scores(c, row, p);
    for (int64_t i = 0; i < a->e; i++)
        delta += dy[i] * y[i];
    for (int64_t j = 0; j < row->n; j++) {
        int64_t key = attend_key_at(a, ATTEND_K, row, j), value = attend_key_at(a, ATTEND_V, row, j);
        double prob = attend_probability(c, p[j], in[ATTEND_LSE].f[row->lse]), kept = attend_kept(c, row, j), dp = 0;
        for (int64_t i = 0; i < a->e; i++) {
            dp += kept * dy[i] * in[ATTEND_V].f[value + i];
            dv[value + i] += kept * prob * dy[i];
        }
        double ds = c->m.blind && attend_hides(c, row, j) ? 0 : c->scale * prob * (dp - delta);
        if (c->dmask)
            c->dmask[row->mask + j * c->m.key_step] += prob * (dp - delta);
        for (int64_t i = 0; i < a->d; i++) {
            dq[row->q + i] += ds * in[ATTEND_K].f[key + i];
            dk[key + i] += ds * in[ATTEND_Q].f[row->q + i];
        }
    }
}

static int attend_back(const attend_case *c, ty_ref *res, ty_error *err)
{
    double *p = malloc(sizeof(double) * (size_t)(c->a.s + 1));
    if (!p)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %" PRId64 " scores", c->a.s);
    for (int64_t at = 0; at < c->a.outer * c->a.heads * c->a.t; at++) {
        attend_row row = attend_row_of(c, at);
        attend_row_back(c, &row, p, res);
    }
    free(p);
    return 0;
}

int ty_op_ref_attend_grad(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    const attend_case c = attend_case_of(attr, in, n_in, TY_ATTEND_GRAD_MASK_AT);
    return attend_back(&c, res, err);
}

int ty_op_ref_attend_bias_grad(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    attend_case c = attend_case_of(attr, in, n_in, TY_ATTEND_GRAD_MASK_AT);
    c.dmask = res[TY_ATTEND_DMASK].f;
    return attend_back(&c, res, err);
}
