/* tf_variable.c - variables while a graph is imported: handles, references, reads and assignments.
 *
 * A variable has a present value, in the beginning what the binding says. A read gives it, an assignment renews it; in
 * the end what was assigned is an update. Nodes come in the order in which they take effect, so nothing else is needed.
 */
#include "compiler/import/tensorflow/tf_ops.h"

static ty_val first_value(tf_importer *imp, int variable)
{
    const tf_variable *v = tf_variable_at(imp->file, variable);
    if (imp->binding->weights && imp->binding->weights[variable] != TY_NONE)
        return imp->binding->weights[variable];
    if (v->type.dtype >= TY_N_DTYPES || !v->data)
        return ty_graph_fail(imp->g, TY_E_UNSUPPORTED,
                             "variable \"%s\" has no value in the file, or one of a type that "
                             "no step computes in",
                             v->name);
    size_t bytes = ty_dtype_bytes((ty_dtype)v->type.dtype);
    return (uintptr_t)v->data % bytes ? ty_b_const_copy(imp->g, v->type, v->data)
                                      : ty_b_const(imp->g, v->type, v->data);
}

ty_val tf_present(tf_importer *imp, int variable)
{
    if (imp->now[variable] == TY_NONE)
        imp->now[variable] = first_value(imp, variable);
    return imp->now[variable];
}

int tf_variable_of(const tf_ctx *c, ty_val v)
{
    for (int i = 0; i < tf_n_variables(c->imp->file); i++)
        if (c->imp->now[i] == v && v != TY_NONE)
            return i;
    return -1;
}

int tf_in_variable(tf_ctx *c, int i)
{
    if (i < c->n_in && c->in[i].kind == TF_VARIABLE)
        return c->in[i].variable;
    tf_fail_input(c, i, TY_E_UNSUPPORTED, "must be a variable");
    return -1;
}

void tf_assign(tf_ctx *c, int variable, ty_val v)
{
    const tf_variable *var = tf_variable_at(c->imp->file, variable);
    if (v == TY_NONE)
        return;
    if (!ty_type_same(tf_type(c, v), &var->type)) {
        char a[160], b[160];
        tf_fail(c, TY_E_SHAPE, "variable \"%.100s\" is %s, assigned a value %s", var->name,
                ty_type_text(&var->type, a, sizeof a), ty_type_text(tf_type(c, v), b, sizeof b));
        return;
    }
    c->imp->now[variable] = v;
    c->imp->assigned[variable] = true;
}

/* ---- operations ---------------------------------------------------------------------------------------------------
 */

/* VarHandleOp, and TensorFlow 1's VariableV2, whose output is the variable itself. */
void tf_op_variable(tf_ctx *c)
{
    if (c->node->variable < 0) {
        tf_fail(c, TY_E_UNSUPPORTED, "the file has no such variable");
        return;
    }
    tf_set_item(c, 0,
                &(tf_item){.kind = TF_VARIABLE, .val = TY_NONE, .variable = c->node->variable, .is_ref = c->row->arg});
}

void tf_op_read(tf_ctx *c)
{
    int v = tf_in_variable(c, 0);
    if (v >= 0)
        tf_set_item(c, 0, &(tf_item){.kind = TF_TENSOR, .val = tf_present(c->imp, v), .variable = v});
}

typedef enum assigning { ASSIGN_SET, ASSIGN_ADD, ASSIGN_SUB } assigning;

/* arg: an assigning. Of references the result is the variable again. */
void tf_op_assign(tf_ctx *c)
{
    int v = tf_in_variable(c, 0);
    ty_val x = tf_in(c, 1);
    if (v < 0 || x == TY_NONE)
        return;
    if (c->row->arg == ASSIGN_ADD)
        x = ty_b_add(c->g, tf_present(c->imp, v), x);
    else if (c->row->arg == ASSIGN_SUB)
        x = ty_b_sub(c->g, tf_present(c->imp, v), x);
    tf_assign(c, v, x);
    tf_set_item(c, 0, &c->in[0]);
}

void tf_op_yes(tf_ctx *c)
{
    tf_set(c, 0, ty_b_scalar(c->g, TY_BOOL, 1));
}

/* The shape of a variable. */
void tf_op_variable_shape(tf_ctx *c)
{
    int v = tf_in_variable(c, 0);
    if (v < 0)
        return;
    const ty_type *t = &tf_variable_at(c->imp->file, v)->type;
    tf_set(c, 0, tf_ints(c, tf_attr_dtype(c, "out_type", TY_I32), t->dim, t->rank));
}

/* arg: the ty_combine; -1: rows are subtracted. Inputs: variable, indices, updates. */
static void variable_scatter(tf_ctx *c, bool by_tuples)
{
    int v = tf_in_variable(c, 0);
    ty_val update = tf_in(c, 2);
    if (v < 0 || update == TY_NONE)
        return;
    bool subtracts = c->row->arg < 0;
    if (subtracts)
        update = ty_b_neg(c->g, update);
    ty_combine how = subtracts ? TY_SUM : (ty_combine)c->row->arg;
    ty_val now = tf_present(c->imp, v);
    tf_assign(c, v,
              by_tuples ? tf_scatter_tuples(c, now, tf_in(c, 1), update, how)
                        : tf_scatter_rows(c, now, 1, update, how));
    tf_set_item(c, 0, &c->in[0]);
}

void tf_op_variable_scatter(tf_ctx *c)
{
    variable_scatter(c, false);
}

/* The same of tuples of indices. */
void tf_op_variable_scatter_nd(tf_ctx *c)
{
    variable_scatter(c, true);
}
