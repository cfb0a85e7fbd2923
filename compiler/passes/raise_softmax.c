/* raise_softmax.c - softmax and its logarithm written apart, and cross-entropy.
 *
 *     softmax       e / sum(e),  e = exp(x - max(x))
 *     log-softmax   d - log(sum(exp(d))),  d = x - max(x);   x - (m + log(sum(exp(x - m)))),  m = max(x), or 0 for inf
 *     cross-entropy take(log-softmax(x), label),  sum(log-softmax(x) * one-hot(label)): minus the term of the row
 *
 * A quotient of exponentials from which no maximum was taken is left alone: where it overflows the model means that.
 * So is the logarithm of a softmax, which is -inf where a log-softmax is not.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/softmax.h"
#include "compiler/passes/raise.h"

#include <string.h>

/* ---- parts ---- */

/* v has one number for each row of x along axis, stretched: that number, whatever its shape; else TY_NONE. */
static ty_val softmax_row(const ty_raise *r, ty_val v, const ty_type *x, int axis)
{
    if (!ty_raise_is(r, v, TY_OP_BROADCAST))
        return TY_NONE;
    ty_val row = ty_raise_in(r, v, 0);
    ty_type kept = *x;
    kept.dim[axis] = 1;
    return ty_type_same_shape(ty_graph_type(r->g, row), &kept) ? ty_raise_unshaped(r, row) : TY_NONE;
}

/* v reduces *x along one axis. */
static bool softmax_reduces(const ty_raise *r, ty_val v, ty_combine how, ty_val *x, int *axis)
{
    if (!ty_raise_is(r, v, TY_OP_REDUCE))
        return false;
    const ty_attr *attr = ty_graph_attr(r->g, ty_val_node(v));
    *x = ty_raise_in(r, v, 0);
    *axis = 0;
    while (*axis < TY_MAX_RANK && attr->axes != 1u << *axis)
        ++*axis;
    return attr->mode == (uint32_t)how && *axis < TY_MAX_RANK;
}

/* m = max(x) along axis, or 0 where that is infinite. */
static bool softmax_is_max(const ty_raise *r, ty_val m, ty_val x, int axis)
{
    double zero;
    ty_val of;
    int along;
    if (ty_raise_is(r, m, TY_OP_SELECT) && ty_graph_splat_value(r->g, ty_raise_in(r, m, 2), &zero) && zero == 0)
        m = ty_raise_unshaped(r, ty_raise_in(r, m, 1));
    return softmax_reduces(r, m, TY_MAX, &of, &along) && of == x && along == axis;
}

/* d = x - max(x); *max is the maximum. */
static bool softmax_is_lowered(const ty_raise *r, ty_val d, int axis, ty_val *x, ty_val *max)
{
    if (!ty_raise_is(r, d, TY_OP_SUB))
        return false;
    *x = ty_raise_in(r, d, 0);
    *max = softmax_row(r, ty_raise_in(r, d, 1), ty_graph_type(r->g, d), axis);
    return *max != TY_NONE && softmax_is_max(r, *max, *x, axis);
}

/* v = log(sum(exp(d))) along *axis. */
static bool softmax_is_log_sum(const ty_raise *r, ty_val v, ty_val *d, int *axis)
{
    ty_val e;
    v = ty_raise_unshaped(r, v);
    if (!ty_raise_is(r, v, TY_OP_LOG) ||
        !softmax_reduces(r, ty_raise_unshaped(r, ty_raise_in(r, v, 0)), TY_SUM, &e, axis) ||
        !ty_raise_is(r, e, TY_OP_EXP))
        return false;
    *d = ty_raise_in(r, e, 0);
    return true;
}

/* ---- softmax ---- */

static bool softmax_apart(const ty_raise *r, ty_val v, ty_val *x, int *axis)
{
    ty_val e, max, row = ty_raise_is(r, v, TY_OP_DIV) ? ty_raise_in(r, v, 1) : TY_NONE;
    if (!ty_raise_is(r, row, TY_OP_BROADCAST) ||
        !softmax_reduces(r, ty_raise_unshaped(r, ty_raise_in(r, row, 0)), TY_SUM, &e, axis))
        return false;
    return e == ty_raise_in(r, v, 0) && ty_raise_is(r, e, TY_OP_EXP) &&
           softmax_row(r, row, ty_graph_type(r->g, v), *axis) != TY_NONE &&
           softmax_is_lowered(r, ty_raise_in(r, e, 0), *axis, x, &max);
}

/* row = m + log(sum(exp(x - m))) */
static bool softmax_is_whole_log_sum(const ty_raise *r, ty_val row, ty_val x, int *axis)
{
    for (int i = 0; i < 2 && ty_raise_is(r, row, TY_OP_ADD); i++) {
        ty_val d, of, max;
        if (softmax_is_log_sum(r, ty_raise_in(r, row, i), &d, axis) && softmax_is_lowered(r, d, *axis, &of, &max) &&
            of == x && ty_raise_unshaped(r, ty_raise_in(r, row, 1 - i)) == max)
            return true;
    }
    return false;
}

static bool softmax_log_apart(const ty_raise *r, ty_val v, ty_val *x, int *axis)
{
    if (!ty_raise_is(r, v, TY_OP_SUB) || !ty_raise_is(r, ty_raise_in(r, v, 1), TY_OP_BROADCAST))
        return false;
    ty_val from = ty_raise_in(r, v, 0), d, max, row = ty_raise_unshaped(r, ty_raise_in(r, ty_raise_in(r, v, 1), 0));
    bool found = false;
    if (softmax_is_log_sum(r, row, &d, axis))
        found = d == from && softmax_is_lowered(r, d, *axis, x, &max);
    else if (softmax_is_whole_log_sum(r, row, from, axis))
        found = (*x = from, true);
    return found && softmax_row(r, ty_raise_in(r, v, 1), ty_graph_type(r->g, v), *axis) != TY_NONE;
}

bool ty_raise_is_softmax(const ty_raise *r, ty_val v, bool log, ty_val *x, int *axis)
{
    if (!ty_raise_is(r, v, TY_OP_SOFTMAX))
        return log ? softmax_log_apart(r, v, x, axis) : softmax_apart(r, v, x, axis);
    const ty_attr *attr = ty_graph_attr(r->g, ty_val_node(v));
    *x = ty_raise_in(r, v, 0);
    *axis = (int)attr->axis;
    return (attr->flags & TY_SOFTMAX_LOG) == (log ? TY_SOFTMAX_LOG : 0);
}

bool ty_raise_softmax(const ty_raise *r, uint32_t node, ty_raise_match *m)
{
    ty_val root = ty_val_make(node, 0), x;
    for (int log = 0; log < 2 && !ty_raise_is(r, root, TY_OP_SOFTMAX); log++) {
        int axis;
        if (!ty_raise_is_softmax(r, root, log, &x, &axis) || !ty_raise_closed(r, node, &x, 1))
            continue;
        *m = (ty_raise_match){.op = TY_OP_SOFTMAX, .in = {x}, .n_in = 1};
        m->attr = (ty_attr){.axis = axis, .flags = log ? TY_SOFTMAX_LOG : 0};
        return true;
    }
    return false;
}

/* ---- cross-entropy ---- */

/* v counts the classes along the last axis: an iota, or a table of one. */
static bool xent_is_count(const ty_raise *r, ty_val v)
{
    if (ty_raise_is(r, v, TY_OP_BROADCAST))
        v = ty_raise_in(r, v, 0);
    ty_val from = ty_raise_unshaped(r, v);
    const ty_type *t = ty_graph_type(r->g, v), *of = ty_graph_type(r->g, from);
    int64_t n = t->dim[t->rank - 1], elems = ty_type_elems(t);
    if (of->rank < 1 || of->dim[of->rank - 1] != n)
        return false;
    if (ty_raise_is(r, from, TY_OP_IOTA))
        return ty_graph_attr(r->g, ty_val_node(from))->axis == of->rank - 1;
    const char *data = ty_graph_const_data(r->g, from);
    size_t bytes = ty_dtype_bytes((ty_dtype)t->dtype);
    if (!data || (t->dtype != TY_I64 && t->dtype != TY_I32))
        return false;
    for (int64_t i = 0; i < elems; i++) {
        int64_t label = i % n; /* little endian: the low half comes first */
        if (memcmp(data + (size_t)i * bytes, &label, bytes) != 0)
            return false;
    }
    return true;
}

/* v [.., C] is 1 where the class is *label, one a row, else 0. */
static bool xent_is_one_hot(const ty_raise *r, ty_val v, ty_val *label)
{
    double one, zero;
    int last = ty_graph_type(r->g, v)->rank - 1;
    while (ty_raise_is(r, v, TY_OP_CAST))
        v = ty_raise_in(r, v, 0);
    if (ty_raise_is(r, v, TY_OP_SELECT) && ty_graph_splat_value(r->g, ty_raise_in(r, v, 1), &one) && one == 1 &&
        ty_graph_splat_value(r->g, ty_raise_in(r, v, 2), &zero) && zero == 0)
        v = ty_raise_in(r, v, 0);
    for (int i = 0; i < 2 && ty_raise_is(r, v, TY_OP_EQ); i++) {
        *label = softmax_row(r, ty_raise_in(r, v, 1 - i), ty_graph_type(r->g, v), last);
        if (*label != TY_NONE && xent_is_count(r, ty_raise_in(r, v, i)))
            return true;
    }
    return false;
}

/* attr.type: of the logits. attr.index 1: a label may be of no class, and the row then has no term. */
static ty_val xent_build(ty_graph *to, const ty_raise_match *m, const ty_type *type, const ty_val *in)
{
    const ty_type *x = &m->attr.type;
    int64_t n = x->dim[x->rank - 1], rows[2] = {ty_type_elems(x) / n, n};
    ty_attr attr = {.index = TY_XENT_IGNORES_NONE};
    ty_val label = ty_b_reshape(to, ty_b_cast(to, in[1], TY_I64), 1, rows);
    if (m->attr.index) {
        ty_val none = ty_b_full_like(to, label, -1);
        ty_val is_class = ty_b_binary(to, TY_OP_AND, ty_b_lt(to, none, label),
                                      ty_b_lt(to, label, ty_b_full_like(to, label, (double)n)));
        label = ty_b_select(to, is_class, label, none);
        attr.index = -1;
    }
    ty_val logits[2] = {ty_b_reshape(to, in[0], 2, rows), label};
    ty_val term = ty_graph_emit(to, TY_OP_XENT, &attr, logits, 2);
    return ty_b_reshape(to, ty_b_cast(to, ty_b_neg(to, term), (ty_dtype)type->dtype), type->rank, type->dim);
}

/* v = take(logp, label [.., 1]) along the last axis. */
static bool xent_is_taken(const ty_raise *r, ty_val v, ty_val *logp, ty_val *label)
{
    if (!ty_raise_is(r, v, TY_OP_TAKE))
        return false;
    int last = ty_graph_type(r->g, v)->rank - 1;
    *logp = ty_raise_in(r, v, 0);
    *label = ty_raise_in(r, v, 1);
    return ty_graph_attr(r->g, ty_val_node(v))->axis == last && ty_graph_type(r->g, v)->dim[last] == 1;
}

/* v = sum(logp * one-hot(label)) along the last axis. */
static bool xent_is_summed(const ty_raise *r, ty_val v, ty_val *logp, ty_val *label)
{
    ty_val product;
    int axis;
    if (!softmax_reduces(r, v, TY_SUM, &product, &axis) || !ty_raise_is(r, product, TY_OP_MUL) ||
        axis != ty_graph_type(r->g, product)->rank - 1)
        return false;
    for (int i = 0; i < 2; i++) {
        *logp = ty_raise_in(r, product, i);
        if (xent_is_one_hot(r, ty_raise_in(r, product, 1 - i), label))
            return true;
    }
    return false;
}

bool ty_raise_cross_entropy(const ty_raise *r, uint32_t node, ty_raise_match *m)
{
    ty_val root = ty_val_make(node, 0), logp, label, x;
    int axis;
    bool taken = xent_is_taken(r, root, &logp, &label);
    if ((!taken && !xent_is_summed(r, root, &logp, &label)) || !ty_raise_is_softmax(r, logp, true, &x, &axis) ||
        axis != ty_graph_type(r->g, x)->rank - 1 || !ty_raise_closed(r, node, (ty_val[]){x, label}, 2))
        return false;
    *m = (ty_raise_match){.op = TY_OP_XENT, .in = {x, label}, .n_in = 2, .build = xent_build};
    m->attr.type = *ty_graph_type(r->g, x);
    m->attr.index = !taken;
    return true;
}
