/* tf_ops_apply.c - optimizers as operations: the user's own training step has them in it.
 *
 * Each takes variables (the weight first, then what is kept beside it), numbers, and a gradient; of sparse ones the
 * indices of its rows follow the gradient. Formulas: TensorFlow's training_ops.h. Sparse ones work on the rows that are
 * named, a row that is named twice on the sum of both.
 */
#include "compiler/import/tensorflow/tf_ops.h"

#include <string.h>

enum { MAX_VARS = 4, MAX_NUMBERS = 10 };

typedef struct apply {
    tf_ctx *c;
    ty_graph *g;
    int n_vars, n_numbers;
    ty_val v[MAX_VARS];         /* present values; then the new ones */
    ty_val number[MAX_NUMBERS]; /* in the order of the inputs */
    ty_val grad;
} apply;

typedef void apply_fn(apply *a);

static ty_val sum3(apply *a, ty_val x, ty_val f, ty_val y) /* x + f y */
{
    return ty_b_add(a->g, x, ty_b_mul(a->g, f, y));
}

static ty_val less(apply *a, ty_val x, ty_val f, ty_val y) /* x - f y */
{
    return ty_b_sub(a->g, x, ty_b_mul(a->g, f, y));
}

static ty_val rest(apply *a, ty_val beta) /* 1 - beta */
{
    return ty_b_sub(a->g, ty_b_full_like(a->g, beta, 1), beta);
}

/* x moved toward y by 1 - beta. */
static ty_val toward(apply *a, ty_val x, ty_val y, ty_val beta)
{
    return sum3(a, x, rest(a, beta), ty_b_sub(a->g, y, x));
}

static ty_val root(apply *a, ty_val x)
{
    return ty_b_unary(a->g, TY_OP_SQRT, x);
}

static bool nesterov(const apply *a)
{
    return tf_attr_bool(a->c->node, "use_nesterov", false);
}

/* alpha */
static void gradient_descent(apply *a)
{
    a->v[0] = less(a, a->v[0], a->number[0], a->grad);
}

/* accum; lr, momentum */
static void momentum(apply *a)
{
    ty_val lr = a->number[0], m = a->number[1];
    a->v[1] = sum3(a, a->grad, m, a->v[1]);
    ty_val step = nesterov(a) ? sum3(a, a->grad, m, a->v[1]) : a->v[1];
    a->v[0] = less(a, a->v[0], lr, step);
}

/* accum; lr, momentum: the rate is inside */
static void keras_momentum(apply *a)
{
    ty_val lr = a->number[0], m = a->number[1];
    a->v[1] = less(a, ty_b_mul(a->g, m, a->v[1]), lr, a->grad);
    ty_val step = nesterov(a) ? less(a, ty_b_mul(a->g, m, a->v[1]), lr, a->grad) : a->v[1];
    a->v[0] = ty_b_add(a->g, a->v[0], step);
}

/* m, v (, vhat); beta1^k, beta2^k, lr, beta1, beta2, epsilon */
static void adam(apply *a)
{
    ty_graph *g = a->g;
    const ty_val *n = a->number;
    ty_val alpha = ty_b_div(g, ty_b_mul(g, n[2], root(a, rest(a, n[1]))), rest(a, n[0]));
    a->v[1] = toward(a, a->v[1], a->grad, n[3]);
    a->v[2] = toward(a, a->v[2], ty_b_square(g, a->grad), n[4]);
    if (a->n_vars == 4)
        a->v[3] = ty_b_max(g, a->v[3], a->v[2]);
    ty_val m = nesterov(a) ? sum3(a, ty_b_mul(g, n[3], a->v[1]), rest(a, n[3]), a->grad) : a->v[1];
    ty_val below = ty_b_add(g, root(a, a->v[a->n_vars - 1]), n[5]);
    a->v[0] = ty_b_sub(g, a->v[0], ty_b_div(g, ty_b_mul(g, alpha, m), below));
}

/* m, v; beta1^k, lr, beta1, beta2, epsilon */
static void adamax(apply *a)
{
    ty_graph *g = a->g;
    const ty_val *n = a->number;
    a->v[1] = toward(a, a->v[1], a->grad, n[2]);
    a->v[2] = ty_b_max(g, ty_b_mul(g, n[3], a->v[2]), ty_b_unary(g, TY_OP_ABS, a->grad));
    ty_val rate = ty_b_div(g, n[1], rest(a, n[0]));
    a->v[0] = less(a, a->v[0], rate, ty_b_div(g, a->v[1], ty_b_add(g, a->v[2], n[4])));
}

/* ms, mom; lr, rho, momentum, epsilon */
static void rmsprop(apply *a)
{
    ty_graph *g = a->g;
    const ty_val *n = a->number;
    a->v[1] = toward(a, a->v[1], ty_b_square(g, a->grad), n[1]);
    ty_val step = ty_b_div(g, ty_b_mul(g, n[0], a->grad), root(a, ty_b_add(g, a->v[1], n[3])));
    a->v[2] = sum3(a, step, n[2], a->v[2]);
    a->v[0] = ty_b_sub(g, a->v[0], a->v[2]);
}

/* mg, ms, mom; lr, rho, momentum, epsilon */
static void centered_rmsprop(apply *a)
{
    ty_graph *g = a->g;
    const ty_val *n = a->number;
    a->v[2] = toward(a, a->v[2], ty_b_square(g, a->grad), n[1]);
    a->v[1] = toward(a, a->v[1], a->grad, n[1]);
    ty_val below = ty_b_add(g, ty_b_sub(g, a->v[2], ty_b_square(g, a->v[1])), n[3]);
    ty_val step = ty_b_div(g, ty_b_mul(g, n[0], a->grad), root(a, below));
    a->v[3] = sum3(a, step, n[2], a->v[3]);
    a->v[0] = ty_b_sub(g, a->v[0], a->v[3]);
}

static void add_square(apply *a)
{
    if (tf_attr_bool(a->c->node, "update_slots", true))
        a->v[1] = ty_b_add(a->g, a->v[1], ty_b_square(a->g, a->grad));
}

/* accum; lr */
static void adagrad(apply *a)
{
    add_square(a);
    ty_val step = ty_b_mul(a->g, a->grad, ty_b_unary(a->g, TY_OP_RSQRT, a->v[1]));
    a->v[0] = less(a, a->v[0], a->number[0], step);
}

/* accum; lr, epsilon */
static void adagrad_v2(apply *a)
{
    add_square(a);
    ty_val step = ty_b_div(a->g, a->grad, ty_b_add(a->g, root(a, a->v[1]), a->number[1]));
    a->v[0] = less(a, a->v[0], a->number[0], step);
}

/* accum, accum_update; lr, rho, epsilon */
static void adadelta(apply *a)
{
    ty_graph *g = a->g;
    const ty_val *n = a->number;
    a->v[1] = toward(a, a->v[1], ty_b_square(g, a->grad), n[1]);
    ty_val step = ty_b_div(g, root(a, ty_b_add(g, a->v[2], n[2])), root(a, ty_b_add(g, a->v[1], n[2])));
    step = ty_b_mul(g, step, a->grad);
    a->v[0] = less(a, a->v[0], n[0], step);
    a->v[2] = toward(a, a->v[2], ty_b_square(g, step), n[1]);
}

/* accum, linear; lr, l1, l2, (l2_shrinkage,) lr_power */
static void ftrl(apply *a)
{
    ty_graph *g = a->g;
    const ty_val *n = a->number;
    bool shrinks = a->n_numbers == 5, scaled = tf_attr_bool(a->c->node, "multiply_linear_by_lr", false);
    ty_val power = ty_b_neg(g, n[a->n_numbers - 1]), grad = a->grad, lr = n[0];
    if (shrinks)
        grad = sum3(a, grad, ty_b_mul_s(g, n[3], 2), a->v[0]);
    ty_val accum = ty_b_add(g, a->v[1], ty_b_square(g, a->grad));
    ty_val now = ty_b_binary(g, TY_OP_POW, accum, power), before = ty_b_binary(g, TY_OP_POW, a->v[1], power);
    ty_val pull = ty_b_mul(g, ty_b_sub(g, now, before), a->v[0]);
    a->v[2] = scaled ? ty_b_sub(g, sum3(a, a->v[2], lr, grad), pull)
                     : ty_b_sub(g, ty_b_add(g, a->v[2], grad), ty_b_div(g, pull, lr));
    ty_val l1 = scaled ? ty_b_mul(g, n[1], lr) : n[1], l2 = ty_b_mul_s(g, scaled ? ty_b_mul(g, n[2], lr) : n[2], 2);
    ty_val below = ty_b_add(g, scaled ? now : ty_b_div(g, now, lr), l2);
    ty_val kept = ty_b_min(g, ty_b_max(g, a->v[2], ty_b_neg(g, l1)), l1); /* clip(linear, -l1, l1) */
    a->v[0] = ty_b_div(g, ty_b_sub(g, kept, a->v[2]), below);
    a->v[1] = accum;
}

/* m; lr, logbase, sign_decay, beta: exp(logbase * sign_decay * agreement) */
static void power_sign(apply *a)
{
    ty_graph *g = a->g;
    const ty_val *n = a->number;
    a->v[1] = toward(a, a->v[1], a->grad, n[3]);
    ty_val agree = ty_b_mul(g, ty_b_sign(g, a->grad), ty_b_sign(g, a->v[1]));
    ty_val scale = ty_b_exp(g, ty_b_mul(g, ty_b_mul(g, n[1], n[2]), agree));
    a->v[0] = less(a, a->v[0], n[0], ty_b_mul(g, scale, a->grad));
}

/* m; lr, alpha, sign_decay, beta: alpha + sign_decay * agreement */
static void add_sign(apply *a)
{
    ty_graph *g = a->g;
    const ty_val *n = a->number;
    a->v[1] = toward(a, a->v[1], a->grad, n[3]);
    ty_val agree = ty_b_mul(g, ty_b_sign(g, a->grad), ty_b_sign(g, a->v[1]));
    a->v[0] = less(a, a->v[0], n[0], ty_b_mul(g, sum3(a, n[1], n[2], agree), a->grad));
}

/* By the arg of a row: variables, number of the input that is the gradient, numbers beside it. */
static const struct {
    apply_fn *fn;
    int n_vars, grad, n_numbers;
} apply_kinds[] = {
    {gradient_descent, 1, 2, 1},
    {momentum, 2, 3, 2},
    {keras_momentum, 2, 3, 2},
    {adam, 3, 9, 6},
    {adam, 4, 10, 6},
    {adamax, 3, 8, 5},
    {rmsprop, 3, 7, 4},
    {centered_rmsprop, 4, 8, 4},
    {adagrad, 2, 3, 1},
    {adagrad_v2, 2, 4, 2},
    {adadelta, 3, 6, 3},
    {ftrl, 3, 3, 4},
    {ftrl, 3, 3, 5},
    {power_sign, 2, 6, 4},
    {add_sign, 2, 6, 4},
};

/* Which rows a sparse gradient is of; its rows summed. TY_NONE in *rows: none can be told. */
static ty_val sparse_rows(apply *a, int index, const ty_type *table, ty_val *rows)
{
    ty_val order, start, given = tf_in_rows(a->c, index);
    *rows = given;
    if (given != TY_NONE)
        return a->grad;
    ty_val at = tf_index(a->c, tf_in(a->c, index), table->dim[0]);
    *rows = ty_b_find_rows(a->g, at, table->dim[0], &order, &start);
    return ty_b_sum_rows(a->g, a->grad, order, start);
}

static bool apply_read(apply *a, int kind, bool sparse, int *variable)
{
    tf_ctx *c = a->c;
    int grad = apply_kinds[kind].grad;
    a->n_vars = apply_kinds[kind].n_vars;
    a->n_numbers = 0;
    if (c->n_in < a->n_vars + apply_kinds[kind].n_numbers + 1 + sparse) {
        tf_fail(c, TY_E_MODEL_FILE, "%d inputs are too few", c->n_in);
        return false;
    }
    for (int i = 0; i < a->n_vars; i++) {
        variable[i] = tf_in_variable(c, i);
        if (variable[i] < 0)
            return false;
        a->v[i] = tf_present(c->imp, variable[i]);
    }
    for (int i = a->n_vars; i < c->n_in && a->n_numbers < MAX_NUMBERS; i++)
        if (i != grad && !(sparse && i == grad + 1))
            a->number[a->n_numbers++] = tf_in(c, i);
    a->grad = tf_in(c, grad);
    return true;
}

/* arg: the kind. */
void tf_op_apply(tf_ctx *c)
{
    int kind = c->row->arg, variable[MAX_VARS];
    bool sparse = strstr(c->node->op, "Sparse") != NULL;
    apply a = {.c = c, .g = c->g};
    ty_val rows = TY_NONE, whole[MAX_VARS];
    if (!apply_read(&a, kind, sparse, variable))
        return;
    const ty_type table = *tf_type(c, a.v[0]);
    if (sparse) {
        a.grad = sparse_rows(&a, apply_kinds[kind].grad + 1, &table, &rows);
        for (int i = 0; i < a.n_vars; i++) {
            whole[i] = a.v[i];
            a.v[i] = ty_b_get_rows(c->g, whole[i], rows);
        }
    }
    apply_kinds[kind].fn(&a);
    for (int i = 0; i < a.n_vars; i++)
        tf_assign(c, variable[i], sparse ? ty_b_set_rows(c->g, whole[i], rows, a.v[i]) : a.v[i]);
    tf_set_item(c, 0, &c->in[0]);
}
