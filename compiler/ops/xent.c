/* xent.c - cross entropy of logits and class numbers, with label smoothing, class weights and an ignored label.
 *
 * For row r with label y and p = log softmax(logits[r]), C classes, smoothing e:
 *     term[r] = -(1 - e) p[y] - e / C sum(p),   weight[r] = weights[y] or 1
 * and both are 0 where y is the ignored label. The mean is the caller's: sum(term * weight) / sum(weight).
 * This is torch.nn.functional.cross_entropy, but that with both class weights and smoothing torch weighs each class's
 * share of sum(p) on its own, where here weights[y] weighs the row as a whole: compiler/passes/loss.c adds that share.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/softmax.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { XENT_LOGITS, XENT_LABELS, XENT_WEIGHTS };
enum { XENT_TERM, XENT_WEIGHT };

int ty_op_infer_xent(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_type *x = in[XENT_LOGITS];
    if (ty_expect_float("logits", x, err) < 0 || ty_expect_rank("logits", x, 2, 2, err) < 0)
        return -1;
    if (x->dim[1] < 1)
        return ty_error_set(err, TY_E_SHAPE, "logits: expected at least one class, found 0");
    if (!(attr->value >= 0 && attr->value <= 1))
        return ty_error_set(err, TY_E_ATTRIBUTE, "label smoothing: expected 0 to 1, found %g", attr->value);
    ty_type labels = ty_type_make(TY_I64, 1, &x->dim[0]), terms = labels;
    terms.dtype = (uint8_t)ty_wide_dtype(x->dtype);
    ty_type weights = ty_type_make(terms.dtype, 1, &x->dim[1]);
    if (ty_expect_type("labels", in[XENT_LABELS], &labels, err) < 0)
        return -1;
    if (n_in > XENT_WEIGHTS && in[XENT_WEIGHTS] && ty_expect_type("weights", in[XENT_WEIGHTS], &weights, err) < 0)
        return -1;
    res[XENT_TERM] = res[XENT_WEIGHT] = terms;
    return 0;
}

static double xent_term(const double *p, int64_t n, int64_t label, double smoothing)
{
    double sum = 0;
    if (smoothing == 0)
        return -p[label]; /* an impossible other class (-inf) has no say then */
    for (int64_t k = 0; k < n; k++)
        sum += p[k];
    return -(1 - smoothing) * p[label] - smoothing / (double)n * sum;
}

int ty_op_ref_xent(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t rows = in[XENT_LOGITS].type.dim[0], n = in[XENT_LOGITS].type.dim[1];
    const double *weights = n_in > XENT_WEIGHTS ? in[XENT_WEIGHTS].f : NULL;
    int rc = 0;
    double *p = malloc((size_t)n * sizeof *p);
    if (!p)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %" PRId64 " classes", n);
    for (int64_t r = 0; r < rows && rc == 0; r++) {
        int64_t label = in[XENT_LABELS].i[r];
        if (label == attr->index)
            continue;
        if (label < 0 || label >= n) {
            rc = ty_error_set(err, TY_E_DATA_VALUE,
                              "labels: expected 0 to %" PRId64 " (or %" PRId64 " to ignore), found %" PRId64
                              " in row %" PRId64,
                              n - 1, attr->index, label, r);
            continue;
        }
        ty_softmax_row(in[XENT_LOGITS].f + r * n, p, n, 1, true);
        res[XENT_TERM].f[r] = xent_term(p, n, label, attr->value);
        res[XENT_WEIGHT].f[r] = weights ? weights[label] : 1;
    }
    free(p);
    return rc;
}

/* What lower and grad share. */
typedef struct xent_parts {
    ty_dtype wide;
    int64_t rows, n;
    ty_val p; /* [R, C] log softmax: shifted - log_sum [R, 1] */
    ty_val shifted, log_sum;
    ty_val power; /* exp(shifted), of whose sum log_sum is the logarithm */
    ty_val valid; /* [R] bool: not ignored */
    ty_val label; /* [R] i64; 0 in ignored rows, so that nothing is read outside */
    ty_val hit;   /* [R, C] bool: the label's class */
} xent_parts;

static xent_parts xent_parts_of(ty_graph *g, const ty_attr *attr, ty_val logits, ty_val labels)
{
    const ty_type *t = ty_graph_type(g, logits);
    xent_parts x = {.wide = ty_wide_dtype(t->dtype), .rows = t->dim[0], .n = t->dim[1]};
    int64_t ignored = attr->index;
    x.shifted = ty_softmax_shifted(g, ty_b_cast(g, logits, x.wide), 1);
    x.power = ty_b_exp(g, x.shifted);
    x.log_sum = ty_softmax_log_sum(g, x.shifted, 1);
    x.p = ty_b_sub(g, x.shifted, x.log_sum);
    x.valid = ty_b_ne(g, labels, ty_b_const(g, ty_type_scalar(TY_I64), &ignored));
    x.label = ty_b_select(g, x.valid, labels, ty_b_scalar(g, TY_I64, 0));
    int64_t column[2] = {x.rows, 1}, shape[2] = {x.rows, x.n};
    ty_val number = ty_b_iota(g, ty_type_make(TY_I64, 2, shape), 1);
    x.hit = ty_b_eq(g, number, ty_b_reshape(g, x.label, 2, column));
    return x;
}

/* v where the row counts, else 0. */
static ty_val xent_valid(ty_graph *g, const xent_parts *x, ty_val v)
{
    return ty_b_select(g, x->valid, v, ty_b_scalar(g, x->wide, 0));
}

/* [R]: p[y]. As a sum with one term that is not 0, in the same sweep as the exponentials: reading it at its place would
 * keep all of the log softmax, or the logits, while their gradient is made; so it can be made in their place. */
static ty_val xent_picked(ty_graph *g, const xent_parts *x)
{
    ty_val picked = ty_b_sum(g, ty_b_select(g, x->hit, x->shifted, ty_b_scalar(g, x->wide, 0)), 2, false);
    return ty_b_sub(g, picked, ty_b_reshape(g, x->log_sum, 1, &x->rows));
}

void ty_op_lower_xent(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in, ty_val *res)
{
    xent_parts x = xent_parts_of(g, attr, in[XENT_LOGITS], in[XENT_LABELS]);
    double smoothing = attr->value;
    ty_val term = ty_b_mul_s(g, xent_picked(g, &x), -(1 - smoothing));
    if (smoothing > 0)
        term = ty_b_sub(g, term, ty_b_mul_s(g, ty_b_sum(g, x.p, 2, false), smoothing / (double)x.n));
    ty_val weight = n_in > XENT_WEIGHTS && in[XENT_WEIGHTS] != TY_NONE ? ty_b_gather(g, in[XENT_WEIGHTS], x.label, 0)
                                                                       : ty_b_full(g, x.wide, 1, &x.rows, 1);
    res[XENT_TERM] = xent_valid(g, &x, term);
    res[XENT_WEIGHT] = xent_valid(g, &x, weight);
}

/* dterm[r] / dlogits[r, k] = softmax[k] - (1 - e) [k == y] - e / C, where the row counts. The softmax is exp(shifted)
 * by its sum, not exp of its logarithm: the sum has these exponentials already. */
static ty_val xent_grad_logits(ty_graph *g, const xent_parts *x, double smoothing, ty_val dterm)
{
    int64_t column[2] = {x->rows, 1};
    ty_val low = ty_b_scalar(g, x->wide, smoothing / (double)x->n);
    ty_val high = ty_b_scalar(g, x->wide, 1 - smoothing + smoothing / (double)x->n);
    ty_val softmax = ty_b_mul(g, x->power, ty_b_reciprocal(g, ty_b_sum(g, x->power, 2, true)));
    ty_val slope = ty_b_sub(g, softmax, ty_b_select(g, x->hit, high, low));
    return ty_b_mul(g, slope, ty_b_reshape(g, xent_valid(g, x, dterm), 2, column));
}

void ty_op_grad_xent(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    int n_in = (int)ty_graph_node(g, node)->n_in;
    ty_val logits = ty_graph_in(g, node, XENT_LOGITS);
    xent_parts x = xent_parts_of(g, attr, logits, ty_graph_in(g, node, XENT_LABELS));
    if (dres[XENT_TERM] != TY_NONE)
        din[XENT_LOGITS] = ty_b_cast(g, xent_grad_logits(g, &x, attr->value, dres[XENT_TERM]), ty_b_dtype(g, logits));
    if (dres[XENT_WEIGHT] != TY_NONE && n_in > XENT_WEIGHTS) {
        ty_val zeros = ty_b_full_like(g, ty_graph_in(g, node, XENT_WEIGHTS), 0);
        din[XENT_WEIGHTS] = ty_b_scatter(g, zeros, x.label, xent_valid(g, &x, dres[XENT_WEIGHT]), 0, TY_SUM);
    }
}
