/* match.c - forms of several nodes that ONNX has an operator for, and operands that it stretches by itself.
 *
 * The graph language writes a sigmoid as 1 / (1 + exp(-x)) and a batch norm that is applied as arithmetic. As ONNX's
 * own operators they are what other runtimes have kernels for, and what an importer can train again. Plans are made
 * from the last node to the first, so that the end of a form is seen before its parts.
 */
#include "compiler/export/writer.h"
#include "compiler/ops/op.h"
#include "compiler/ops/recurrence.h"
#include "compiler/ops/sliding.h"

#include <math.h>
#include <string.h>

/* ---- looking around ---------------------------------------------------------------------------------------------- */

static bool match_is(const export_ctx *c, ty_val v, ty_op op)
{
    return v != TY_NONE && ty_graph_op(c->g, ty_val_node(v)) == op;
}

static ty_val match_in(const export_ctx *c, ty_val v, int i)
{
    return ty_graph_in(c->g, ty_val_node(v), i);
}

static bool match_number(const export_ctx *c, ty_val v, double number)
{
    double found;
    return ty_graph_splat_value(c->g, v, &found) && found == number;
}

static void match_plan(export_ctx *c, export_plan *p, export_write_fn *write, const char *op, int n_in,
                       const ty_val *in)
{
    p->write = write;
    p->source = p->id;
    p->op = op;
    p->n_in = n_in;
    p->in = ty_arena_copy(c->a, in, sizeof *in * (size_t)(n_in + 1));
}

static void match_plan_one(export_ctx *c, export_plan *p, export_write_fn *write, const char *op, ty_val x)
{
    ty_val in[2] = {x, TY_NONE};
    match_plan(c, p, write, op, 1, in);
}

/* ---- activations ------------------------------------------------------------------------------------------------- */

/* 1 / (exp(-x) + 1) */
static bool match_sigmoid(export_ctx *c, ty_val v, export_plan *p)
{
    if (!match_is(c, v, TY_OP_DIV) || !match_number(c, match_in(c, v, 0), 1))
        return false;
    ty_val sum = match_in(c, v, 1);
    if (!match_is(c, sum, TY_OP_ADD) || !match_number(c, match_in(c, sum, 1), 1))
        return false;
    ty_val power = match_in(c, sum, 0);
    if (!match_is(c, power, TY_OP_EXP) || !match_is(c, match_in(c, power, 0), TY_OP_NEG))
        return false;
    match_plan_one(c, p, export_write_plain, "Sigmoid", match_in(c, match_in(c, power, 0), 0));
    return true;
}

/* x <= 0 ? 0 : x */
static bool match_relu(export_ctx *c, ty_val v, export_plan *p)
{
    if (!match_is(c, v, TY_OP_SELECT) || !match_number(c, match_in(c, v, 1), 0))
        return false;
    ty_val below = match_in(c, v, 0), x = match_in(c, v, 2);
    if (!match_is(c, below, TY_OP_LE) || match_in(c, below, 0) != x || !match_number(c, match_in(c, below, 1), 0))
        return false;
    match_plan_one(c, p, export_write_plain, "Relu", x);
    return true;
}

/* max(x, 0) + log1p(exp(-|x|)), in either order */
static bool match_softplus(export_ctx *c, ty_val v, export_plan *p)
{
    if (!match_is(c, v, TY_OP_ADD))
        return false;
    for (int k = 0; k < 2; k++) {
        ty_val high = match_in(c, v, k), tail = match_in(c, v, 1 - k);
        if (!match_is(c, high, TY_OP_MAX) || !match_number(c, match_in(c, high, 1), 0) ||
            !match_is(c, tail, TY_OP_LOG1P) || !match_is(c, match_in(c, tail, 0), TY_OP_EXP))
            continue;
        ty_val minus = match_in(c, match_in(c, tail, 0), 0), x = match_in(c, high, 0);
        if (!match_is(c, minus, TY_OP_NEG) || !match_is(c, match_in(c, minus, 0), TY_OP_ABS) ||
            match_in(c, match_in(c, minus, 0), 0) != x)
            continue;
        match_plan_one(c, p, export_write_plain, "Softplus", x);
        return true;
    }
    return false;
}

/* To other bits and back: how a gradient is stopped. */
static bool match_identity(export_ctx *c, ty_val v, export_plan *p)
{
    if (!match_is(c, v, TY_OP_BITCAST) || !match_is(c, match_in(c, v, 0), TY_OP_BITCAST))
        return false;
    ty_val x = match_in(c, match_in(c, v, 0), 0);
    if (!ty_type_same(export_type(c, x), export_type(c, v)))
        return false;
    match_plan_one(c, p, export_write_plain, "Identity", x);
    return true;
}

/* ---- means ------------------------------------------------------------------------------------------------------- */

/* y times a number that is the same for all elements, at both batches: y and the numbers. */
static bool match_scaled(const export_ctx *c, ty_val v, ty_val *y, double *factor, double *twin_factor)
{
    uint32_t other = export_twin(c, ty_val_node(v));
    bool divides = match_is(c, v, TY_OP_DIV);
    if ((!divides && !match_is(c, v, TY_OP_MUL)) || !ty_graph_splat_value(c->g, match_in(c, v, 1), factor) ||
        !ty_graph_splat_value(export_twin_graph(c), ty_graph_in(export_twin_graph(c), other, 1), twin_factor))
        return false;
    *y = match_in(c, v, 0);
    if (divides) {
        *factor = 1 / *factor;
        *twin_factor = 1 / *twin_factor;
    }
    return true;
}

static bool match_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

static double match_count(const ty_type *t, uint32_t axes)
{
    double n = 1;
    for (int i = 0; i < t->rank; i++)
        if (axes >> i & 1)
            n *= (double)t->dim[i];
    return n;
}

/* True if `kept` is what a reduction of x leaves where axes stay as 1. */
static bool match_keeps(const ty_type *x, uint32_t axes, const ty_type *kept)
{
    bool same = x->rank == kept->rank;
    for (int i = 0; i < x->rank && same; i++)
        same = kept->dim[i] == (axes >> i & 1 ? 1 : x->dim[i]);
    return same;
}

static bool match_mean(export_ctx *c, ty_val v, export_plan *p)
{
    ty_val y;
    double factor, twin_factor;
    if (!match_scaled(c, v, &y, &factor, &twin_factor))
        return false;
    ty_val kept = y;
    if (match_is(c, y, TY_OP_RESHAPE))
        y = match_in(c, y, 0);
    if (!match_is(c, y, TY_OP_REDUCE) || ty_graph_attr(c->g, ty_val_node(y))->mode != TY_SUM)
        return false;
    ty_val x = match_in(c, y, 0);
    uint32_t axes = ty_graph_attr(c->g, ty_val_node(y))->axes;
    ty_val twin = ty_val_make(export_twin(c, ty_val_node(x)), ty_val_result(x));
    const ty_type *t = export_type(c, x), *u = ty_graph_type(export_twin_graph(c), twin);
    if (!ty_dtype_is_float((ty_dtype)t->dtype) || !match_near(factor, 1 / match_count(t, axes)) ||
        !match_near(twin_factor, 1 / match_count(u, axes)) ||
        (kept != y && !match_keeps(t, axes, export_type(c, kept))))
        return false;
    match_plan_one(c, p, export_write_mean, "ReduceMean", x);
    p->dim[0] = axes;
    p->keep_dims = kept != y;
    return true;
}

static bool match_average_pool(export_ctx *c, ty_val v, export_plan *p)
{
    ty_val y;
    double factor, twin_factor, n = 1;
    if (!match_scaled(c, v, &y, &factor, &twin_factor) || !match_is(c, y, TY_OP_POOL_SUM))
        return false;
    const ty_attr *attr = ty_graph_attr(c->g, ty_val_node(y));
    for (uint32_t i = 0; i < attr->n; i++)
        n *= (double)attr->size[i];
    if (!match_near(factor, 1 / n))
        return false;
    match_plan_one(c, p, export_write_average_pool, "AveragePool", match_in(c, y, 0));
    p->source = ty_val_node(y);
    return true;
}

/* ---- batch norm by running statistics -----------------------------------------------------------------------------
 */

/* v is a vector stretched to x's shape along one axis: the vector, and the axis. */
static ty_val match_channel(const export_ctx *c, ty_val v, const ty_type *x, int *axis)
{
    if (match_is(c, v, TY_OP_BROADCAST))
        v = match_in(c, v, 0);
    const ty_type *t = export_type(c, v);
    int found = -1;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] != 1) {
            if (found >= 0)
                return TY_NONE;
            found = i + x->rank - t->rank;
        }
    if (found < 0 || x->dim[found] != ty_type_elems(t))
        return TY_NONE;
    while (match_is(c, v, TY_OP_RESHAPE) && export_type(c, v)->rank != 1)
        v = match_in(c, v, 0);
    if (export_type(c, v)->rank != 1 || (*axis >= 0 && *axis != found))
        return TY_NONE;
    *axis = found;
    return v;
}

/* 1 / sqrt(variance + epsilon) */
static bool match_deviation(const export_ctx *c, ty_val v, ty_val *variance, double *epsilon)
{
    if (!match_is(c, v, TY_OP_RSQRT) || !match_is(c, match_in(c, v, 0), TY_OP_ADD))
        return false;
    ty_val sum = match_in(c, v, 0);
    *variance = match_in(c, sum, 0);
    return ty_graph_splat_value(c->g, match_in(c, sum, 1), epsilon) && *epsilon >= 0;
}

typedef struct match_norm {
    ty_val x, scale, bias, mean, variance; /* scale TY_NONE: ones */
    double epsilon;
    int axis;
} match_norm;

/* scale / sqrt(variance + epsilon), or without scale */
static bool match_factor(const export_ctx *c, ty_val v, match_norm *n)
{
    n->scale = TY_NONE;
    if (match_deviation(c, v, &n->variance, &n->epsilon))
        return true;
    for (int k = 0; k < 2 && match_is(c, v, TY_OP_MUL); k++)
        if (match_deviation(c, match_in(c, v, k), &n->variance, &n->epsilon)) {
            n->scale = match_in(c, v, 1 - k);
            return true;
        }
    return false;
}

/* (x - mean) * factor, the factor a vector over one axis; v is that, x of its shape. */
static bool match_centred(const export_ctx *c, ty_val v, match_norm *n)
{
    const ty_type *t = export_type(c, v);
    for (int k = 0; k < 2 && match_is(c, v, TY_OP_MUL); k++) {
        ty_val difference = match_in(c, v, k);
        n->axis = -1;
        if (!match_is(c, difference, TY_OP_SUB))
            continue;
        ty_val factor = match_channel(c, match_in(c, v, 1 - k), t, &n->axis);
        n->mean = factor == TY_NONE ? TY_NONE : match_channel(c, match_in(c, difference, 1), t, &n->axis);
        n->x = match_in(c, difference, 0);
        if (n->mean != TY_NONE && ty_type_same(export_type(c, n->x), t) && match_factor(c, factor, n))
            return true;
    }
    return false;
}

static bool match_batch_norm(export_ctx *c, ty_val v, export_plan *p)
{
    match_norm n = {.bias = TY_NONE};
    bool found = false;
    for (int k = 0; k < 2 && match_is(c, v, TY_OP_ADD) && !found; k++) {
        found = match_centred(c, match_in(c, v, k), &n);
        n.bias = found ? match_channel(c, match_in(c, v, 1 - k), export_type(c, v), &n.axis) : TY_NONE;
        found = found && n.bias != TY_NONE;
    }
    if (!found || n.axis < 1 || export_type(c, n.variance)->rank != 1)
        return false;
    ty_val in[6] = {n.x, n.bias, n.mean, n.variance, n.scale, TY_NONE};
    match_plan(c, p, export_write_batch_norm, "BatchNormalization", n.scale == TY_NONE ? 4 : 5, in);
    p->number = n.epsilon;
    p->dim[0] = n.axis;
    return true;
}

/* ---- numbers of rows ----------------------------------------------------------------------------------------------
 */

/* Importers of ONNX wrap numbers below 0, which ONNX's operators do too: i < 0 ? i + n : i. */
static ty_val match_unwrapped(const export_ctx *c, ty_val index, int64_t n)
{
    if (!match_is(c, index, TY_OP_SELECT))
        return index;
    ty_val below = match_in(c, index, 0), wrapped = match_in(c, index, 1), i = match_in(c, index, 2);
    bool wraps = match_is(c, below, TY_OP_LT) && match_in(c, below, 0) == i &&
                 match_number(c, match_in(c, below, 1), 0) && match_is(c, wrapped, TY_OP_ADD) &&
                 match_in(c, wrapped, 0) == i && match_number(c, match_in(c, wrapped, 1), (double)n);
    return wraps ? i : index;
}

static bool match_gather(export_ctx *c, ty_val v, export_plan *p)
{
    bool rows = match_is(c, v, TY_OP_GATHER);
    if (!rows && !match_is(c, v, TY_OP_TAKE))
        return false;
    ty_val x = match_in(c, v, 0), index = match_in(c, v, 1);
    int64_t n = export_type(c, x)->dim[ty_graph_attr(c->g, ty_val_node(v))->axis];
    ty_val in[3] = {x, match_unwrapped(c, index, n), TY_NONE};
    match_plan(c, p, export_write_gather, rows ? "Gather" : "GatherElements", 2, in);
    return in[1] != index;
}

/* A layer that starts from zeros says nothing of its state. */
static bool match_rnn(export_ctx *c, ty_val v, export_plan *p)
{
    if (!match_is(c, v, TY_OP_RNN))
        return false;
    ty_val in[TY_RNN_C0 + 2];
    int n = (int)ty_graph_node(c->g, ty_val_node(v))->n_in;
    for (int k = 0; k < n; k++) {
        in[k] = match_in(c, v, k);
        if (k >= TY_RNN_H0 && ty_graph_is_zero(c->g, in[k]))
            in[k] = TY_NONE;
    }
    in[n] = TY_NONE;
    match_plan(c, p, export_write_rnn, "", n, in);
    return true;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* A product or convolution that nothing but a sum with a vector along its channels reads takes it as its bias. */
static bool match_biased(export_ctx *c, ty_val v, export_plan *p)
{
    for (int k = 0; k < 2 && match_is(c, v, TY_OP_ADD); k++) {
        ty_val y = match_in(c, v, k);
        bool dot = match_is(c, y, TY_OP_DOT), conv = match_is(c, y, TY_OP_CONV);
        if ((!dot && !conv) || c->uses[ty_val_node(y)] != 1 || ty_graph_node(c->g, ty_val_node(y))->n_in != 2)
            continue;
        const ty_attr *attr = ty_graph_attr(c->g, ty_val_node(y));
        int axis = -1;
        ty_val bias = match_channel(c, match_in(c, v, 1 - k), export_type(c, y), &axis);
        bool fits = conv ? !(attr->flags & TY_SLIDING_LAST)
                         : export_type(c, y)->rank == 2 && !(attr->flags & TY_DOT_WIDE) &&
                               ty_dtype_is_float((ty_dtype)export_type(c, y)->dtype);
        if (bias == TY_NONE || axis != 1 || !fits)
            continue;
        ty_val in[4] = {match_in(c, y, 0), match_in(c, y, 1), bias, TY_NONE};
        match_plan(c, p, conv ? export_write_conv : export_write_gemm, conv ? "Conv" : "Gemm", 3, in);
        p->source = ty_val_node(y);
        return true;
    }
    return false;
}

/* reshape(dot(reshape(x), b)): x [.., K] by b [K, N] as the importers write it. */
static bool match_matmul(export_ctx *c, ty_val v, export_plan *p)
{
    if (!match_is(c, v, TY_OP_RESHAPE) || !match_is(c, match_in(c, v, 0), TY_OP_DOT))
        return false;
    ty_val dot = match_in(c, v, 0), flat = match_in(c, dot, 0), b = match_in(c, dot, 1);
    uint32_t flags = ty_graph_attr(c->g, ty_val_node(dot))->flags;
    if (ty_graph_node(c->g, ty_val_node(dot))->n_in != 2 || (flags & ~(uint32_t)TY_DOT_TRANS_B) ||
        !match_is(c, flat, TY_OP_RESHAPE))
        return false;
    int turned = flags & TY_DOT_TRANS_B ? 1 : 0;
    const ty_type *y = export_type(c, v), *x = export_type(c, match_in(c, flat, 0)), *w = export_type(c, b);
    if (w->rank != 2 || x->rank != y->rank || x->rank < 3 || x->dim[x->rank - 1] != w->dim[turned] ||
        y->dim[y->rank - 1] != w->dim[1 - turned])
        return false;
    for (int i = 0; i < x->rank - 1; i++)
        if (x->dim[i] != y->dim[i])
            return false;
    ty_val in[3] = {match_in(c, flat, 0), b, TY_NONE};
    match_plan(c, p, export_write_matmul, "MatMul", 2, in);
    p->dim[0] = turned;
    return true;
}

bool export_match(export_ctx *c, uint32_t id, export_plan *p)
{
    static bool (*const forms[])(export_ctx *, ty_val, export_plan *) = {
        match_sigmoid, match_relu,   match_softplus, match_mean, match_average_pool, match_batch_norm,
        match_biased,  match_matmul, match_gather,   match_rnn,  match_identity};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i](c, ty_val_make(id, 0), p))
            return true;
    return false;
}

/* ---- stretching -------------------------------------------------------------------------------------------------- */

/* Leading dims of 1 are added by the operator as well. */
static bool match_adds_leading(const ty_type *from, const ty_type *to)
{
    int more = to->rank - from->rank;
    if (more <= 0)
        return false;
    for (int i = 0; i < to->rank; i++)
        if (to->dim[i] != (i < more ? 1 : from->dim[i - more]))
            return false;
    return true;
}

static ty_val match_stripped(const export_ctx *c, ty_val v)
{
    if (match_is(c, v, TY_OP_BROADCAST))
        v = match_in(c, v, 0);
    if (match_is(c, v, TY_OP_RESHAPE) && match_adds_leading(export_type(c, match_in(c, v, 0)), export_type(c, v)))
        v = match_in(c, v, 0);
    return v;
}

/* One number everywhere, and the same for each batch. */
static bool match_is_splat(const export_ctx *c, ty_val v)
{
    double a, b;
    ty_val twin = ty_val_make(export_twin(c, ty_val_node(v)), ty_val_result(v));
    return ty_graph_splat_value(c->g, v, &a) && ty_graph_splat_value(export_twin_graph(c), twin, &b) && a == b;
}

/* True if operands of these shapes give the result's shape, in one of the two graphs. */
static bool match_covers(const export_ctx *c, const ty_graph *g, bool is_twin, const export_plan *p, const ty_val *in)
{
    ty_val y = ty_val_make(is_twin ? export_twin(c, p->id) : p->id, 0);
    const ty_type *want = ty_graph_type(g, y);
    for (int i = 0; i < want->rank; i++) {
        bool covered = want->dim[i] == 1;
        for (int k = 0; k < p->n_in && !covered; k++) {
            ty_val v = in[k];
            if (p->splat >> k & 1)
                continue;
            if (is_twin)
                v = ty_val_make(export_twin(c, ty_val_node(v)), ty_val_result(v));
            const ty_type *t = ty_graph_type(g, v);
            int own = i - (want->rank - t->rank);
            covered = own >= 0 && t->dim[own] == want->dim[i];
        }
        if (!covered)
            return false;
    }
    return true;
}

void export_strip_operands(export_ctx *c, export_plan *p)
{
    ty_val *in = TY_NEW_ARRAY(c->a, ty_val, p->n_in + 1);
    for (int k = 0; k < p->n_in; k++) {
        in[k] = match_stripped(c, p->in[k]);
        p->splat |= (uint32_t)match_is_splat(c, p->in[k]) << k;
    }
    for (int k = 0; k < p->n_in; k++) {
        if (match_covers(c, c->g, false, p, in) && (!c->other || match_covers(c, c->other, true, p, in)))
            break;
        in[k] = p->in[k];
        p->splat &= ~(1u << k);
    }
    p->in = in;
}
