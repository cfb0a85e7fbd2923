/* tf_ops_flow.c - control flow. A step is a fixed list of kernels, so what is decided here is decided while importing:
 * loops whose condition is known are unrolled, branches with a known condition are taken, and of others all branches
 * are computed and one is chosen, also of what they assign.
 */
#include "compiler/import/tensorflow/tf_recurrence.h"

#include <string.h>

enum { MAX_TRIPS = 16384, MAX_BRANCHES = 16 };

/* ---- branches -----------------------------------------------------------------------------------------------------
 */

typedef struct branches {
    const char *name[MAX_BRANCHES];
    int n;
    tf_item *out[MAX_BRANCHES]; /* what each gives */
    ty_val *now[MAX_BRANCHES];  /* variables behind each */
} branches;

/* Names of branches: two attributes, or a Case's list. */
static bool branches_read(tf_ctx *c, branches *b, bool is_case)
{
    const tf_attr_value *list = is_case ? tf_find_attr(c->node, "branches") : NULL;
    size_t n = 2;
    b->name[0] = tf_attr_function(c->node, "else_branch");
    b->name[1] = tf_attr_function(c->node, "then_branch");
    if (is_case)
        n = list && list->list ? list->list->func.n : 0;
    for (size_t i = 0; is_case && i < n && i < MAX_BRANCHES; i++)
        b->name[i] = TF_AT(list->list->func, tf_func, i)->name;
    b->n = (int)n;
    if (n < 1 || n > MAX_BRANCHES)
        tf_fail(c, TY_E_UNSUPPORTED, "1 to %d branches are possible", MAX_BRANCHES);
    return !c->failed;
}

static bool branch_run(tf_ctx *c, branches *b, int i)
{
    b->out[i] = tf_alloc(c, (size_t)c->n_out, sizeof *b->out[i]);
    return tf_call(c, b->name[i], c->in + 1, c->n_in - 1, b->out[i], c->n_out);
}

/* The branch that a constant names, -1: not known. Of a Case, numbers outside name the last one. */
static int branch_known(tf_ctx *c, const branches *b, bool is_case)
{
    const int64_t *v;
    int64_t n;
    if (!tf_val_ints(c, tf_in(c, 0), &v, &n) || n != 1)
        return -1;
    if (!is_case)
        return v[0] != 0;
    return v[0] < 0 || v[0] >= b->n ? b->n - 1 : (int)v[0];
}

/* One of the values by the condition, as a bool for two and a number for more. */
static ty_val choose(tf_ctx *c, const branches *b, ty_val which, const ty_val *v, bool is_case)
{
    ty_val y = v[b->n - 1];
    if (!is_case)
        return v[0] == v[1] ? v[0] : ty_b_select(c->g, which, v[1], v[0]);
    for (int i = b->n - 2; i >= 0; i--)
        if (v[i] != y)
            y = ty_b_select(c->g, ty_b_eq(c->g, which, ty_b_full_like(c->g, which, i)), v[i], y);
    return y;
}

static void choose_outputs(tf_ctx *c, const branches *b, ty_val which, bool is_case)
{
    for (int k = 0; k < c->n_out; k++) {
        ty_val v[MAX_BRANCHES];
        bool tensors = true;
        for (int i = 0; i < b->n; i++) {
            v[i] = b->out[i][k].val;
            tensors = tensors && b->out[i][k].kind == TF_TENSOR && ty_type_same(tf_type(c, v[i]), tf_type(c, v[0]));
        }
        if (tensors)
            tf_set(c, k, choose(c, b, which, v, is_case));
        else
            tf_set_other(c, k);
    }
}

static void choose_variables(tf_ctx *c, const branches *b, ty_val which, const ty_val *before, bool is_case)
{
    tf_importer *imp = c->imp;
    for (int k = 0; k < tf_n_variables(imp->file); k++) {
        ty_val v[MAX_BRANCHES];
        bool same = true;
        for (int i = 0; i < b->n; i++) {
            v[i] = b->now[i][k] == TY_NONE ? before[k] : b->now[i][k];
            same = same && v[i] == v[0];
        }
        for (int i = 0; i < b->n && !same; i++)
            if (v[i] == TY_NONE)
                v[i] = tf_present(imp, k);
        imp->now[k] = same ? v[0] : choose(c, b, which, v, is_case);
    }
}

/* All branches from the same beginning; what differs behind them is chosen. */
static void run_all(tf_ctx *c, branches *b, bool is_case)
{
    tf_importer *imp = c->imp;
    size_t bytes = (size_t)tf_n_variables(imp->file) * sizeof(ty_val);
    ty_val *before = tf_alloc(c, bytes, 1), which = tf_in(c, 0);
    memcpy(before, imp->now, bytes);
    if (!is_case)
        which = ty_b_cast(c->g, which, TY_BOOL);
    for (int i = 0; i < b->n; i++) {
        memcpy(imp->now, before, bytes);
        if (!branch_run(c, b, i))
            return;
        b->now[i] = tf_alloc(c, bytes, 1);
        memcpy(b->now[i], imp->now, bytes);
    }
    memcpy(imp->now, before, bytes);
    choose_outputs(c, b, which, is_case);
    choose_variables(c, b, which, before, is_case);
}

/* condition, inputs..; arg 1: Case. */
void tf_op_if(tf_ctx *c)
{
    branches b = {0};
    if (!branches_read(c, &b, c->row->arg))
        return;
    int known = branch_known(c, &b, c->row->arg);
    if (known < 0) {
        if (tf_rank(c, tf_in(c, 0)) != 0)
            tf_fail_input(c, 0, TY_E_UNSUPPORTED, "must be one number");
        else
            run_all(c, &b, c->row->arg);
        return;
    }
    if (branch_run(c, &b, known))
        for (int k = 0; k < c->n_out; k++)
            tf_set_item(c, k, &b.out[known][k]);
}

/* ---- loops --------------------------------------------------------------------------------------------------------
 */

int tf_loop_goes_on(tf_ctx *c, const char *cond, const tf_item *state, int n)
{
    tf_item out;
    const int64_t *v;
    int64_t count;
    if (!tf_call(c, cond, state, n, &out, 1))
        return -1;
    if (out.kind == TF_TENSOR && tf_val_ints(c, out.val, &v, &count) && count == 1)
        return v[0] != 0;
    tf_fail(c, TY_E_UNSUPPORTED, "how often the loop runs depends on the data");
    tf_help(c, "a step runs the same operations every time: loop over a fixed number (shapes are known), and mask");
    return -1;
}

void tf_op_while(tf_ctx *c)
{
    const char *cond = tf_attr_function(c->node, "cond"), *body = tf_attr_function(c->node, "body");
    int n = c->n_in;
    tf_item *state = tf_alloc(c, (size_t)n, sizeof *state), *next = tf_alloc(c, (size_t)n, sizeof *next);
    memcpy(state, c->in, (size_t)n * sizeof *state);
    if (tf_loop_is_layer(c, cond, body, state))
        return;
    for (int trip = 0;; trip++) {
        int goes_on = tf_loop_goes_on(c, cond, state, n);
        if (goes_on < 0)
            return;
        if (!goes_on)
            break;
        if (trip == MAX_TRIPS) {
            tf_fail(c, TY_E_LIMIT, "the loop runs more than %d times", MAX_TRIPS);
            return;
        }
        if (!tf_call(c, body, state, n, next, n))
            return;
        memcpy(state, next, (size_t)n * sizeof *state);
    }
    for (int i = 0; i < n; i++)
        tf_set_item(c, i, &state[i]);
}

/* ---- TensorFlow 1: Switch and Merge -------------------------------------------------------------------------------
 */

/* data, predicate -> if false, if true */
void tf_op_switch(tf_ctx *c)
{
    const int64_t *v;
    int64_t n;
    if (!tf_val_ints(c, tf_in(c, 1), &v, &n) || n != 1) {
        tf_fail_input(c, 1, TY_E_UNSUPPORTED, "depends on the data");
        tf_help(c, "write tf.where in place of tf.cond, or export with TensorFlow 2's control flow");
        return;
    }
    for (int i = 0; i < 2; i++)
        tf_set_item(c, i, i == (v[0] != 0) ? &c->in[0] : &(tf_item){.kind = TF_DEAD, .val = TY_NONE, .variable = -1});
}

/* The input that is there, and which one it is. */
void tf_op_merge(tf_ctx *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].kind != TF_DEAD) {
            tf_set_item(c, 0, &c->in[i]);
            tf_set(c, 1, ty_b_scalar(c->g, TY_I32, i));
            return;
        }
    for (int i = 0; i < 2; i++)
        tf_set_item(c, i, &(tf_item){.kind = TF_DEAD, .val = TY_NONE, .variable = -1});
}

/* ---- what leaves no trace ------------------------------------------------------------------------------------------
 */

void tf_op_nothing(tf_ctx *c)
{
    for (int i = 0; i < c->n_out; i++)
        tf_set_other(c, i);
}

/* Print: what it is given; the rest was for the eye. */
void tf_op_identity_first(tf_ctx *c)
{
    tf_set_item(c, 0, &c->in[0]);
}

void tf_op_placeholder(tf_ctx *c)
{
    tf_fail(c, TY_E_MODEL_FILE, "nothing is fed here");
    tf_help(c, "choose a signature that has it among its inputs");
}
