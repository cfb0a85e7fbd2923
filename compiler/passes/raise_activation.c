/* raise_activation.c - GELU and SiLU, recognised by their values.
 *
 * There are dozens of orders in which exporters write 0.5 x (1 + tanh(c (x + 0.044715 x^3))). But whatever the order,
 * the nodes between x and the result are elementwise and read nothing but x and numbers: they are a function of one
 * variable. It is evaluated at a few points and compared with the functions that have a composite. Constants that are
 * rounded to the dtype pass, others (an 0.7978 for the root of 2/pi) do not.
 */
#include "compiler/ops/op.h"
#include "compiler/passes/raise.h"

#include <float.h>
#include <math.h>

#define ACTIVATION_MAX_NODES 24  /* of the expression */
#define ACTIVATION_MAX_STEPS 200 /* of one evaluation */

typedef struct activation_form {
    ty_op op;
    uint32_t flags;
    ty_op holds; /* an op that the expression has */
    double (*value)(double x);
} activation_form;

static double activation_gelu(double x)
{
    return 0.5 * x * (1 + erf(x * M_SQRT1_2));
}

static double activation_gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double activation_silu(double x)
{
    return x / (1 + exp(-x));
}

static const activation_form activation_forms[] = {
    {TY_OP_GELU, 0, TY_OP_ERF, activation_gelu},
    {TY_OP_GELU, 1, TY_OP_TANH, activation_gelu_tanh},
    {TY_OP_SILU, 0, TY_OP_EXP, activation_silu},
    {TY_OP_SILU, 0, TY_OP_TANH, activation_silu},
};

static const double activation_points[] = {-9,  -5.5, -3.25, -2,  -1.3, -0.7, -0.2, -0.01,
                                           0.0, 0.01, 0.3,   0.9, 1.5,  2.25, 4,    7};
#define ACTIVATION_N_POINTS (sizeof activation_points / sizeof *activation_points)

/* ---- the expression below a node ---- */

static bool activation_is_elementwise(const ty_raise *r, ty_val v)
{
    ty_op op = ty_graph_op(r->g, ty_val_node(v));
    bool converts = op == TY_OP_CAST || op == TY_OP_BITCAST || op == TY_OP_SELECT;
    return ty_op_is_elementwise(op) && !converts && ty_dtype_is_float((ty_dtype)ty_graph_type(r->g, v)->dtype);
}

/* Values below root that could be its variable, nearest first; also those of the expression itself. */
static int activation_values(const ty_raise *r, ty_val root, ty_val *v, uint32_t *ops)
{
    int n = 1;
    v[0] = root;
    *ops = 0;
    for (int at = 0; at < n; at++) {
        if (!activation_is_elementwise(r, v[at]))
            continue;
        for (uint32_t k = 0; k < ty_graph_node(r->g, ty_val_node(v[at]))->n_in; k++) {
            ty_val in = ty_raise_in(r, v[at], (int)k);
            double s;
            bool known = ty_graph_splat_value(r->g, in, &s);
            for (int i = 0; i < n && !known; i++)
                known = v[i] == in;
            if (!known && n < ACTIVATION_MAX_NODES)
                v[n++] = in;
        }
        for (size_t f = 0; f < sizeof activation_forms / sizeof *activation_forms; f++)
            *ops |= (uint32_t)ty_raise_is(r, v[at], activation_forms[f].holds) << f;
    }
    return n;
}

/* v where the variable is `at`. False if v reads something else too, or is too long an expression. */
static bool activation_eval(const ty_raise *r, ty_val v, ty_val variable, double at, int *steps, double *out)
{
    *out = at;
    if (v == variable || ty_graph_splat_value(r->g, v, out))
        return true;
    if (--*steps < 0 || !activation_is_elementwise(r, v))
        return false;
    double in[2] = {0, 0};
    int n_in = (int)ty_graph_node(r->g, ty_val_node(v))->n_in;
    ty_ref operand[2], res = {ty_type_scalar(TY_F64), out, NULL};
    for (int k = 0; k < n_in; k++) {
        if (!activation_eval(r, ty_raise_in(r, v, k), variable, at, steps, &in[k]))
            return false;
        operand[k] = (ty_ref){ty_type_scalar(TY_F64), &in[k], NULL};
    }
    ty_error err;
    *out = 0;
    ty_op op = ty_graph_op(r->g, ty_val_node(v));
    return ty_op_row_of(op)->ref(ty_graph_attr(r->g, ty_val_node(v)), operand, n_in, &res, &err) == 0;
}

static bool activation_equals(const ty_raise *r, ty_val root, ty_val x, const activation_form *form)
{
    double eps = ty_graph_type(r->g, root)->dtype == TY_F64 ? DBL_EPSILON : FLT_EPSILON;
    for (size_t i = 0; i < ACTIVATION_N_POINTS; i++) {
        double at = activation_points[i], found;
        int steps = ACTIVATION_MAX_STEPS;
        if (!activation_eval(r, root, x, at, &steps, &found))
            return false;
        if (!(fabs(found - form->value(at)) <= 8 * eps * (fabs(at) < 1 ? fabs(at) : 1 + fabs(at)) + DBL_MIN))
            return false;
    }
    return true;
}

/* 16-bit floats round their constants so much that the forms of GELU are one. */
static bool activation_may_end(const ty_raise *r, ty_val root)
{
    ty_dtype dtype = (ty_dtype)ty_graph_type(r->g, root)->dtype;
    return (dtype == TY_F32 || dtype == TY_F64) && (ty_raise_is(r, root, TY_OP_MUL) || ty_raise_is(r, root, TY_OP_DIV));
}

bool ty_raise_activation(const ty_raise *r, uint32_t node, ty_raise_match *m)
{
    ty_val root = ty_val_make(node, 0), v[ACTIVATION_MAX_NODES];
    uint32_t ops;
    if (!activation_may_end(r, root))
        return false;
    int n = activation_values(r, root, v, &ops);
    for (size_t f = 0; f < sizeof activation_forms / sizeof *activation_forms; f++)
        for (int i = 1; i < n && (ops >> f & 1); i++) {
            if (!activation_equals(r, root, v[i], &activation_forms[f]) || !ty_raise_closed(r, node, &v[i], 1))
                continue;
            *m = (ty_raise_match){.op = activation_forms[f].op, .in = {v[i]}, .n_in = 1};
            m->attr.flags = activation_forms[f].flags;
            return true;
        }
    return false;
}
