/* dot.c - the matrix product, batched, with either side stored transposed. Products of 16-bit floats are added up in
 * wider numbers as all products are, and rounded once; with the flag `wide` the result is f32 and is not rounded. A
 * third operand is what the product is added to: a sum over many rows that is made piece by piece. */
#include "compiler/ir/build.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct dot_shape {
    int64_t batch, m, n, k;
} dot_shape;

static dot_shape dot_shape_of(const ty_attr *attr, const ty_type *a, const ty_type *b)
{
    int r = a->rank;
    bool ta = attr->flags & TY_DOT_TRANS_A, tb = attr->flags & TY_DOT_TRANS_B;
    dot_shape s = {1, a->dim[r - 2 + ta], b->dim[r - 1 - tb], a->dim[r - 1 - ta]};
    for (int i = 0; i < r - 2; i++)
        s.batch *= a->dim[i];
    return s;
}

int ty_op_infer_dot(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_type *a = in[0], *b = in[1];
    char text[2][160];
    if (ty_expect_flags(attr, TY_DOT_TRANS_A | TY_DOT_TRANS_B | TY_DOT_WIDE | TY_DOT_FULL, err) < 0 ||
        ty_expect_number("a", a, err) < 0 || ty_expect_dtype("b", b, a->dtype, err) < 0 ||
        ty_expect_rank("a", a, 2, TY_MAX_RANK, err) < 0 || ty_expect_rank("b", b, a->rank, a->rank, err) < 0)
        return -1;
    ty_type_text(a, text[0], sizeof text[0]);
    ty_type_text(b, text[1], sizeof text[1]);
    for (int i = 0; i < a->rank - 2; i++)
        if (a->dim[i] != b->dim[i])
            return ty_error_set(err, TY_E_SHAPE, "b: expected batch axis %d to be %" PRId64 " as in a %s, found %s", i,
                                a->dim[i], text[0], text[1]);
    dot_shape s = dot_shape_of(attr, a, b);
    int64_t b_k = b->dim[a->rank - (attr->flags & TY_DOT_TRANS_B ? 1 : 2)];
    if (b_k != s.k)
        return ty_error_set(err, TY_E_SHAPE, "b: expected %" PRId64 " rows to contract with a %s%s, found %s%s", s.k,
                            text[0], attr->flags & TY_DOT_TRANS_A ? " transposed" : "", text[1],
                            attr->flags & TY_DOT_TRANS_B ? " transposed" : "");
    int64_t dim[TY_MAX_RANK] = {0};
    for (int i = 0; i < a->rank - 2; i++)
        dim[i] = a->dim[i];
    dim[a->rank - 2] = s.m;
    dim[a->rank - 1] = s.n;
    if (ty_expect_result(attr->flags & TY_DOT_WIDE ? ty_wide_dtype(a->dtype) : a->dtype, a->rank, dim, res, err) < 0)
        return -1;
    return n_in > 2 && in[2] ? ty_expect_type("c", in[2], res, err) : 0;
}

/* One matrix of the batch; b is [k, n] row by row and a is read with strides. The innermost loop runs along rows of b
 * and of the result, so that memory is read in order. */
static void dot_one_f(const dot_shape *s, const double *a, int64_t a_m, int64_t a_k, const double *b, double *c)
{
    for (int64_t m = 0; m < s->m; m++) {
        double *row = c + m * s->n;
        for (int64_t k = 0; k < s->k; k++) {
            double v = a[m * a_m + k * a_k];
            const double *from = b + k * s->n;
#pragma omp simd
            for (int64_t n = 0; n < s->n; n++)
                row[n] += v * from[n];
        }
    }
}

static void dot_one_i(const dot_shape *s, ty_dtype dtype, const int64_t *a, int64_t a_m, int64_t a_k, const int64_t *b,
                      int64_t *c)
{
    for (int64_t m = 0; m < s->m; m++)
        for (int64_t n = 0; n < s->n; n++) {
            uint64_t sum = (uint64_t)c[m * s->n + n];
            for (int64_t k = 0; k < s->k; k++)
                sum += (uint64_t)a[m * a_m + k * a_k] * (uint64_t)b[k * s->n + n];
            c[m * s->n + n] = ty_refiter_wrap(dtype, (int64_t)sum);
        }
}

#define DOT_TILE 32

/* Row-major [k, n] of b's matrix number `batch`: where it lies, or turned into `turned`. */
static const void *dot_rows_of_b(const dot_shape *s, bool trans, const ty_ref *b, int64_t batch, ty_ref *turned)
{
    int64_t start = batch * s->k * s->n;
    if (!trans)
        return b->f ? (const void *)(b->f + start) : (const void *)(b->i + start);
    for (int64_t at = 0; at < s->n; at += DOT_TILE) /* tiles, so that neither side leaves the cache */
        for (int64_t k0 = 0; k0 < s->k; k0 += DOT_TILE)
            for (int64_t n = at; n < s->n && n < at + DOT_TILE; n++)
                for (int64_t k = k0; k < s->k && k < k0 + DOT_TILE; k++)
                    ty_refiter_copy(turned, k * s->n + n, b, start + n * s->k + k);
    return turned->f ? (const void *)turned->f : (const void *)turned->i;
}

/* What the product is added to, in the place of the zeros that a result begins with. */
static void dot_start_from(const ty_ref *c, ty_ref *res)
{
    size_t n = (size_t)ty_type_elems(&res->type);
    if (c->f)
        memcpy(res->f, c->f, n * sizeof *c->f);
    else
        memcpy(res->i, c->i, n * sizeof *c->i);
}

int ty_op_ref_dot(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    dot_shape s = dot_shape_of(attr, &in[0].type, &in[1].type);
    bool ta = attr->flags & TY_DOT_TRANS_A, tb = attr->flags & TY_DOT_TRANS_B;
    int64_t a_m = ta ? 1 : s.k, a_k = ta ? s.m : 1;
    void *turned = malloc((size_t)(s.k * s.n + 1) * 8);
    if (!turned)
        return ty_error_set(err, TY_E_LIMIT, "no memory to transpose %" PRId64 " x %" PRId64 " numbers", s.k, s.n);
    if (n_in > 2)
        dot_start_from(&in[2], res);
    ty_ref view = {.f = in[0].f ? turned : NULL, .i = in[0].f ? NULL : turned};
    for (int64_t batch = 0; batch < s.batch; batch++) {
        const void *b = dot_rows_of_b(&s, tb, &in[1], batch, &view);
        int64_t a_at = batch * s.m * s.k, c_at = batch * s.m * s.n;
        if (in[0].f)
            dot_one_f(&s, in[0].f + a_at, a_m, a_k, b, res[0].f + c_at);
        else
            dot_one_i(&s, res[0].type.dtype, in[0].i + a_at, a_m, a_k, b, res[0].i + c_at);
    }
    free(turned);
    return 0;
}

/* With C = A B and each of A, B stored plainly or transposed, dA and dB are products again: dA = dC B', dB = A' dC, or
 * their transposes, which only swap the operands and flags. */
void ty_op_grad_dot(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    uint32_t flags = ty_graph_attr(g, node)->flags;
    bool ta = flags & TY_DOT_TRANS_A, tb = flags & TY_DOT_TRANS_B;
    ty_val a = ty_graph_in(g, node, 0), b = ty_graph_in(g, node, 1), dc = ty_b_cast(g, dres[0], ty_b_dtype(g, a));
    din[0] = ta ? ty_b_dot(g, b, dc, tb, true) : ty_b_dot(g, dc, b, false, !tb);
    din[1] = tb ? ty_b_dot(g, dc, a, true, ta) : ty_b_dot(g, a, dc, !ta, false);
    if (ty_graph_node(g, node)->n_in > 2)
        din[2] = dres[0];
}
