/* onnx_ops_loss.c - losses and optimizers that ONNX has as operators.
 *
 * Letters: N rows, C classes. Optimizer formulas: the ONNX text of ai.onnx.preview.training.
 */
#include "compiler/import/onnx_import.h"
#include "compiler/passes/passes.h"

#include <math.h>

/* ---- losses -------------------------------------------------------------------------------------------------------
 */

static ty_val reduce_loss(onnx_ctx *c, ty_val terms, ty_val weights)
{
    static const char *const reductions[] = {"mean", "sum", "none", NULL};
    ty_graph *g = c->g;
    int how = onnx_attr_choice(c, "reduction", "mean", reductions);
    if (how == 2)
        return terms;
    ty_val sum = ty_b_sum(g, terms, ty_b_all_axes(g, terms), false);
    return how == 1 ? sum : ty_b_div(g, sum, ty_b_sum(g, weights, ty_b_all_axes(g, weights), false));
}

/* -w[t] p[t] for log-probabilities p [N, C, ...] and targets t [N, ...]; rows of ignore_index weigh 0. */
static ty_val nll(onnx_ctx *c, ty_val logp, ty_val target, ty_val class_weights)
{
    ty_graph *g = c->g;
    const ty_type t = *onnx_type_of(c, target);
    ty_dtype dtype = onnx_dtype_of(c, logp);
    if (onnx_rank(c, logp) < 2 || t.rank != onnx_rank(c, logp) - 1) {
        onnx_fail(c, TY_E_SHAPE, "%s: scores need 2 or more dimensions, targets one less", c->node->op_type);
        return TY_NONE;
    }
    ty_val weights = ty_b_full(g, dtype, t.rank, t.dim, 1), index = ty_b_cast(g, target, TY_I64);
    ty_val ignored = TY_NONE, zero = ty_b_full_like(g, index, 0);
    if (onnx_find_attr(c, "ignore_index")) {
        ignored = ty_b_eq(g, index, ty_b_full_like(g, index, (double)onnx_attr_int(c, "ignore_index", 0)));
        index = ty_b_select(g, ignored, zero, index);
    }
    index = onnx_wrap_index(c, index, onnx_dim(c, logp, 1));
    if (class_weights != TY_NONE)
        weights = ty_b_gather(g, class_weights, index, 0);
    if (ignored != TY_NONE)
        weights = ty_b_select(g, ignored, ty_b_full_like(g, weights, 0), weights);
    ty_val picked = ty_b_squeeze(g, ty_b_take(g, logp, ty_b_unsqueeze(g, index, 1), 1), 1);
    return reduce_loss(c, ty_b_neg(g, ty_b_mul(g, picked, weights)), weights);
}

void onnx_op_nll_loss(onnx_ctx *c)
{
    onnx_set(c, 0, nll(c, onnx_in(c, 0), onnx_in(c, 1), onnx_in(c, 2)));
}

void onnx_op_softmax_cross_entropy_loss(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    if (onnx_rank(c, x) < 2) {
        onnx_fail_input(c, 0, TY_E_SHAPE, "must have at least 2 dimensions");
        return;
    }
    ty_val logp = ty_b_softmax(c->g, x, 1, true);
    onnx_set(c, 0, nll(c, logp, onnx_in(c, 1), onnx_in(c, 2)));
    if (onnx_wants(c, 1))
        onnx_set(c, 1, logp);
}

/* ---- optimizers: inputs R, T, then n each of X, G and states --------------------------------------------------------
 */

static bool optimizer_count(onnx_ctx *c, int lists, int *n)
{
    *n = (c->n_in - 2) / lists;
    if (*n >= 1 && *n * lists + 2 == c->n_in)
        return true;
    onnx_fail(c, TY_E_MODEL_FILE, "%s: %d inputs do not divide into %d lists", c->node->op_type, c->n_in - 2, lists);
    return false;
}

/* G + norm_coefficient X */
static ty_val regularized(onnx_ctx *c, ty_val x, ty_val grad)
{
    double norm = onnx_attr_float(c, "norm_coefficient", 0);
    return norm != 0 ? ty_b_add(c->g, grad, ty_b_mul_s(c->g, x, norm)) : grad;
}

static ty_val blend(ty_graph *g, ty_val old, ty_val fresh, double keep, double take)
{
    return ty_b_add(g, ty_b_mul_s(g, old, keep), ty_b_mul_s(g, fresh, take));
}

void onnx_op_adagrad(onnx_ctx *c)
{
    ty_graph *g = c->g;
    int n;
    if (!optimizer_count(c, 3, &n))
        return;
    double eps = onnx_attr_float(c, "epsilon", 1e-6), decay = onnx_attr_float(c, "decay_factor", 0);
    ty_val step = ty_b_cast(g, onnx_in(c, 1), onnx_dtype_of(c, onnx_in(c, 0)));
    ty_val rate = ty_b_div(g, onnx_in(c, 0), ty_b_add_s(g, ty_b_mul_s(g, step, decay), 1));
    for (int i = 0; i < n; i++) {
        ty_val x = onnx_in(c, 2 + i), grad = regularized(c, x, onnx_in(c, 2 + n + i));
        ty_val h = ty_b_add(g, onnx_in(c, 2 + 2 * n + i), ty_b_square(g, grad));
        ty_val root = ty_b_add_s(g, ty_b_unary(g, TY_OP_SQRT, h), eps);
        onnx_set(c, i, ty_b_sub(g, x, ty_b_div(g, ty_b_mul(g, rate, grad), root)));
        onnx_set(c, n + i, h);
    }
}

void onnx_op_momentum(onnx_ctx *c)
{
    static const char *const modes[] = {"standard", "nesterov", NULL};
    ty_graph *g = c->g;
    int n;
    if (!optimizer_count(c, 3, &n))
        return;
    double alpha = onnx_attr_float(c, "alpha", 0), beta = onnx_attr_float(c, "beta", 0);
    bool nesterov = onnx_attr_choice(c, "mode", "standard", modes);
    ty_val rate = onnx_in(c, 0), step = onnx_in(c, 1);
    ty_dtype dtype = onnx_dtype_of(c, rate);
    ty_val later = ty_b_lt(g, ty_b_full_like(g, step, 0), step);
    ty_val take = ty_b_select(g, later, ty_b_scalar(g, dtype, beta), ty_b_scalar(g, dtype, 1));
    for (int i = 0; i < n; i++) {
        ty_val x = onnx_in(c, 2 + i), grad = regularized(c, x, onnx_in(c, 2 + n + i));
        ty_val v = ty_b_add(g, ty_b_mul_s(g, onnx_in(c, 2 + 2 * n + i), alpha), ty_b_mul(g, take, grad));
        ty_val move = nesterov ? ty_b_add(g, grad, ty_b_mul_s(g, v, alpha)) : v;
        onnx_set(c, i, ty_b_sub(g, x, ty_b_mul(g, rate, move)));
        onnx_set(c, n + i, v);
    }
}

/* R sqrt(1 - beta^T) / (1 - alpha^T), or R in step 0. */
static ty_val adam_rate(onnx_ctx *c, double alpha, double beta)
{
    ty_graph *g = c->g;
    ty_val rate = onnx_in(c, 0), step = ty_b_cast(g, onnx_in(c, 1), onnx_dtype_of(c, rate));
    ty_val later = ty_b_lt(g, ty_b_full_like(g, step, 0), step), one = ty_b_full_like(g, step, 1);
    ty_val t = ty_b_select(g, later, step, one);
    ty_val a = ty_b_sub(g, one, ty_b_exp(g, ty_b_mul_s(g, t, log(alpha))));
    ty_val b = ty_b_sub(g, one, ty_b_exp(g, ty_b_mul_s(g, t, log(beta))));
    ty_val corrected = ty_b_mul(g, rate, ty_b_div(g, ty_b_unary(g, TY_OP_SQRT, b), a));
    return ty_b_select(g, later, corrected, rate);
}

void onnx_op_adam(onnx_ctx *c)
{
    ty_graph *g = c->g;
    int n;
    if (!optimizer_count(c, 4, &n))
        return;
    double alpha = onnx_attr_float(c, "alpha", 0.9), beta = onnx_attr_float(c, "beta", 0.999);
    double eps = onnx_attr_float(c, "epsilon", 1e-6), post = onnx_attr_float(c, "norm_coefficient_post", 0);
    ty_val rate = adam_rate(c, alpha, beta);
    for (int i = 0; i < n; i++) {
        ty_val x = onnx_in(c, 2 + i), grad = regularized(c, x, onnx_in(c, 2 + n + i));
        ty_val v = blend(g, onnx_in(c, 2 + 2 * n + i), grad, alpha, 1 - alpha);
        ty_val h = blend(g, onnx_in(c, 2 + 3 * n + i), ty_b_square(g, grad), beta, 1 - beta);
        ty_val root = ty_b_add_s(g, ty_b_unary(g, TY_OP_SQRT, h), eps);
        ty_val moved = ty_b_sub(g, x, ty_b_div(g, ty_b_mul(g, rate, v), root));
        onnx_set(c, i, ty_b_mul_s(g, moved, 1 - post));
        onnx_set(c, n + i, v);
        onnx_set(c, 2 * n + i, h);
    }
}

/* Gradient of the value named `y` by those named `xs`: our own reverse mode. */
void onnx_op_gradient(onnx_ctx *c)
{
    const onnx_attr *xs = onnx_find_attr(c, "xs");
    const onnx_item *y = onnx_lookup(c->imp, c->scope, onnx_attr_text(c, "y", ""));
    if (!xs || (int)xs->strings.n != c->n_in || !y || y->kind != ONNX_TENSOR) {
        onnx_fail(c, TY_E_MODEL_FILE, "Gradient: needs one name in xs for each input, and y, a value that exists");
        return;
    }
    ty_val *wrt = onnx_alloc(c, (size_t)c->n_in, sizeof *wrt), *grad = onnx_alloc(c, (size_t)c->n_in, sizeof *grad);
    for (int i = 0; i < c->n_in; i++)
        wrt[i] = onnx_in(c, i);
    ty_val loss = ty_b_sum(c->g, y->val, ty_b_all_axes(c->g, y->val), false);
    if (loss == TY_NONE || ty_pass_autodiff(c->g, loss, wrt, c->n_in, grad, &c->err) < 0) {
        c->failed = loss != TY_NONE;
        return;
    }
    for (int i = 0; i < c->n_in; i++)
        onnx_set(c, i, grad[i]);
}
