/* attend.c - attention as two library calls: softmax(value q k') v with the logarithm of each row's sum, and the
 * gradient that starts from it (arXiv:2205.14135). compiler/passes/attend.c says when they are used instead of products
 * and a softmax.
 *
 *     q [.., H, T, D], k [.., G, S, D], v [.., G, S, E] -> y [.., H, T, E], lse [.., H, T] (f32 where q has 16 bits)
 *
 * flags 1: causal, query t sees keys 0 to t + (S - T). flags 2: heads stand inside, q [.., T, H, D] and so on: what a
 * linear layer makes and takes, so that nothing is transposed. flags 4, with 2: q, k and v are one operand, given three
 * times, [.., T, 3 H, D], the heads of q first: what one linear layer makes for all three.
 */
#include "compiler/ops/attend.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/softmax.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { ATTEND_Q, ATTEND_K, ATTEND_V, ATTEND_PARTS, ATTEND_Y = ATTEND_PARTS, ATTEND_LSE, ATTEND_DY };

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

int ty_op_infer_attend(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_type *q = in[ATTEND_Q], *k = in[ATTEND_K], *v = in[ATTEND_V];
    int r = q->rank, head = attr->flags & TY_ATTEND_INSIDE ? r - 2 : r - 3;
    (void)n_in;
    if (ty_expect_float("q", q, err) < 0 || ty_expect_rank("q", q, 3, TY_MAX_RANK, err) < 0 ||
        ty_expect_flags(attr, TY_ATTEND_CAUSAL | TY_ATTEND_INSIDE | TY_ATTEND_PACKED, err) < 0 ||
        attend_expect_packed(attr, in, err) < 0 || attend_expect_keys("k", k, q, head, err) < 0 ||
        attend_expect_keys("v", v, q, head, err) < 0)
        return -1;
    ty_attend_sizes a = ty_attend_sizes_of(attr->flags, q, k, v), b = ty_attend_sizes_of(attr->flags, v, v, v);
    if (k->dim[r - 1] != a.d || b.s != a.s || b.heads != a.groups)
        return ty_error_set(err, TY_E_SHAPE, "k: expected q's size of a head and v's number of keys and heads");
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
    (void)n_in;
    if (ty_op_infer_attend(attr, in, 3, forward, err) < 0 || ty_expect_type("y", in[ATTEND_Y], &forward[0], err) < 0 ||
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
} attend_row;

static attend_row attend_row_of(const ty_attend_sizes *a, int64_t at)
{
    int64_t t = at % a->t, head = at / a->t % a->heads, outer = at / a->t / a->heads;
    int64_t seen = a->causal ? t + a->s - a->t + 1 : a->s;
    return (attend_row){.q = attend_part_at(a, ATTEND_Q, outer, a->heads, head, a->t, t, a->d),
                        .y = attend_at(a, outer, a->heads, head, a->t, t, a->e),
                        .lse = at,
                        .outer = outer,
                        .group = head / (a->heads / a->groups),
                        .n = seen < 0      ? 0
                             : seen < a->s ? seen
                                           : a->s};
}

static int64_t attend_key_at(const ty_attend_sizes *a, int part, const attend_row *row, int64_t key)
{
    return attend_part_at(a, part, row->outer, a->groups, row->group, a->s, key, part == ATTEND_K ? a->d : a->e);
}

static double attend_scores(const ty_attr *attr, const ty_ref *in, const ty_attend_sizes *a, const attend_row *row,
                            double *p)
{
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < row->n; j++) {
        const double *q = in[ATTEND_Q].f + row->q, *k = in[ATTEND_K].f + attend_key_at(a, ATTEND_K, row, j);
        p[j] = 0;
        for (int64_t i = 0; i < a->d; i++)
            p[j] += q[i] * k[i];
        p[j] *= attr->value;
        most = isnan(p[j]) || p[j] > most ? p[j] : most;
    }
    for (int64_t j = 0; j < row->n; j++)
        sum += exp(p[j] - most);
    return most + log(sum);
}

int ty_op_ref_attend(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    ty_attend_sizes a = ty_attend_sizes_of(attr->flags, &in[0].type, &in[1].type, &in[2].type);
    double *p = malloc(sizeof(double) * (size_t)(a.s + 1));
    (void)n_in;
    if (!p)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %" PRId64 " scores", a.s);
    for (int64_t at = 0; at < a.outer * a.heads * a.t; at++) {
        attend_row row = attend_row_of(&a, at);
        double lse = res[1].f[at] = attend_scores(attr, in, &a, &row, p);
        for (int64_t j = 0; j < row.n; j++)
            for (int64_t i = 0; i < a.e; i++)
                res[0].f[row.y + i] += exp(p[j] - lse) * in[ATTEND_V].f[attend_key_at(&a, ATTEND_V, &row, j) + i];
    }
    free(p);
    return 0;
}

/* P = exp(S - lse), dP = dy v', dS = value P (dP - dy y'): arXiv:2205.14135, appendix B.4. */
static void attend_row_back(const ty_attr *attr, const ty_ref *in, const ty_attend_sizes *a, const attend_row *row,
                            double *p, ty_ref *res)
{
    const double *dy = in[ATTEND_DY].f + row->y, *y = in[ATTEND_Y].f + row->y;
    double *dq = attend_gradient(a, res, ATTEND_Q), *dk = attend_gradient(a, res, ATTEND_K);
    double *dv = attend_gradient(a, res, ATTEND_V), delta = 0;
    attend_scores(attr, in, a, row, p);
    for (int64_t i = 0; i < a->e; i++)
        delta += dy[i] * y[i];
    for (int64_t j = 0; j < row->n; j++) {
        int64_t key = attend_key_at(a, ATTEND_K, row, j), value = attend_key_at(a, ATTEND_V, row, j);
        double prob = exp(p[j] - in[ATTEND_LSE].f[row->lse]), dp = 0;
        for (int64_t i = 0; i < a->e; i++) {
            dp += dy[i] * in[ATTEND_V].f[value + i];
            dv[value + i] += prob * dy[i];
        }
        double ds = attr->value * prob * (dp - delta);
        for (int64_t i = 0; i < a->d; i++) {
            dq[row->q + i] += ds * in[ATTEND_K].f[key + i];
            dk[key + i] += ds * in[ATTEND_Q].f[row->q + i];
        }
    }
}

int ty_op_ref_attend_grad(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    ty_attend_sizes a = ty_attend_sizes_of(attr->flags, &in[0].type, &in[1].type, &in[2].type);
    double *p = malloc(sizeof(double) * (size_t)(a.s + 1));
    (void)n_in;
    if (!p)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %" PRId64 " scores", a.s);
    for (int64_t at = 0; at < a.outer * a.heads * a.t; at++) {
        attend_row row = attend_row_of(&a, at);
        attend_row_back(attr, in, &a, &row, p, res);
    }
    free(p);
    return 0;
}
