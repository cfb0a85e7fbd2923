/* emit.c - the one way into a graph: check, infer, fold, simplify, hash-cons.
 *
 * Because every constructor passes here, common subexpressions, computable constants and identities such as x + 0 never
 * exist in a graph, and passes need not look for them.
 */
#include "compiler/ir/attr.h"
#include "compiler/ir/storage.h"
#include "compiler/ops/op.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* "(f32[2,3], i64[])" for error messages. */
static void emit_signature(const ty_graph *g, const ty_val *in, int n_in, char *out, size_t n)
{
    size_t len = (size_t)snprintf(out, n, "(");
    for (int i = 0; i < n_in && len < n; i++) {
        char type[160] = "none";
        if (in[i] != TY_NONE)
            ty_type_text(ty_graph_type(g, in[i]), type, sizeof type);
        len += (size_t)snprintf(out + len, n - len, "%s%s", i ? ", " : "", type);
    }
    if (len < n)
        snprintf(out + len, n - len, ")");
}

/* True if all inputs are values of the graph or absent optional ones. *n_in loses trailing absent ones. */
static bool emit_check_inputs(ty_graph *g, const ty_op_row *row, const ty_val *in, int *n_in)
{
    while (*n_in > row->min_in && in[*n_in - 1] == TY_NONE && row->max_in > row->min_in)
        (*n_in)--;
    if (*n_in < row->min_in || (row->max_in >= 0 && *n_in > row->max_in)) {
        char limit[32] = "";
        if (row->max_in != row->min_in)
            snprintf(limit, sizeof limit, row->max_in < 0 ? " or more" : " to %d", row->max_in);
        ty_graph_fail(g, TY_E_GRAPH, "%s: takes %d%s inputs, found %d", row->text, row->min_in, limit, *n_in);
        return false;
    }
    for (int i = 0; i < *n_in; i++) {
        if (in[i] == TY_NONE) {
            if (i < row->min_in || row->max_in < 0)
                return false;
            continue;
        }
        if (ty_val_node(in[i]) >= g->node.n || ty_val_result(in[i]) >= ty_graph_node(g, ty_val_node(in[i]))->n_res) {
            ty_graph_fail(g, TY_E_GRAPH, "%s: input %d is no value of this graph", row->text, i);
            return false;
        }
        if (ty_graph_op(g, ty_val_node(in[i])) == TY_OP_ASSIGN) {
            ty_graph_fail(g, TY_E_GRAPH, "%s: input %d is an assign, expected the value assigned", row->text, i);
            return false;
        }
    }
    return true;
}

/* Fields that an op reads only in part are brought to one form, so that equal meaning is equal bytes. */
static void emit_canonical_attr(const ty_graph *g, graph_draft *d)
{
    if (d->op == TY_OP_CAST || d->op == TY_OP_BITCAST)
        d->attr.type = ty_type_scalar((ty_dtype)d->attr.type.dtype);
    else if (d->op == TY_OP_RESHAPE || d->op == TY_OP_BROADCAST)
        d->attr.type.dtype = ty_graph_type(g, d->in[0])->dtype;
    else if (d->op == TY_OP_REDUCE || d->op == TY_OP_REVERSE)
        d->attr.axes &= (1u << TY_MAX_RANK) - 1;
}

/* A slice's limit right after its last element, and step 1 where there is but one. */
static void emit_canonical_slice(graph_draft *d)
{
    for (uint32_t i = 0; i < d->attr.n; i++) {
        int64_t n = d->res[0].dim[i];
        if (n <= 1)
            d->attr.step[i] = 1;
        if (n > 0)
            d->attr.hi[i] = d->attr.lo[i] + (n - 1) * d->attr.step[i] + 1;
    }
}

/* What a leaf names must exist and have its type. */
static bool emit_check_leaf(ty_graph *g, const graph_draft *d)
{
    const ty_type *found = NULL;
    int64_t i = d->attr.index;
    const char *text = ty_op_row_of(d->op)->text;
    if (d->op == TY_OP_INPUT && i >= 0 && i < ty_graph_n_inputs(g))
        found = &ty_graph_input(g, (int)i)->type;
    else if ((d->op == TY_OP_STATE || d->op == TY_OP_ASSIGN) && i >= 0 && i < ty_graph_n_states(g))
        found = &ty_graph_state(g, (int)i)->type;
    else if (d->op == TY_OP_CONST && i >= 0 && i < (int64_t)g->constant.n)
        found = &((const graph_const *)g->constant.data)[i].type;
    else if (d->op != TY_OP_INPUT && d->op != TY_OP_STATE && d->op != TY_OP_ASSIGN && d->op != TY_OP_CONST)
        return true;
    if (found && ty_type_same(found, &d->res[0]))
        return true;
    char a[160], b[160] = "nothing";
    ty_graph_fail(g, TY_E_GRAPH, "%s: number %lld of the graph is %s, not %s", text, (long long)i,
                  found ? ty_type_text(found, b, sizeof b) : b, ty_type_text(&d->res[0], a, sizeof a));
    return false;
}

static bool emit_infer(ty_graph *g, graph_draft *d)
{
    const ty_op_row *row = ty_op_row_of(d->op);
    const ty_type *few[16] = {0};
    const ty_type **types = few;
    if (d->n_in > 16)
        types = TY_NEW_ARRAY(&g->arena, const ty_type *, d->n_in);
    for (int i = 0; i < d->n_in; i++)
        types[i] = d->in[i] == TY_NONE ? NULL : ty_graph_type(g, d->in[i]);
    memset(d->res, 0, sizeof d->res);
    ty_error err = {0};
    if (row->infer(&d->attr, types, d->n_in, d->res, &err) < 0) {
        char signature[640];
        emit_signature(g, d->in, d->n_in, signature, sizeof signature);
        ty_graph_fail(g, err.code, "%s%s: %s", row->text, signature, err.message);
        if (err.help[0])
            ty_error_help(&g->err, "%s", err.help);
        return false;
    }
    for (int i = 0; i < row->n_res; i++)
        if (d->res[i].rank > TY_MAX_RANK ||
            ty_dims_elems_checked(d->res[i].rank, d->res[i].dim, ty_dtype_bytes((ty_dtype)d->res[i].dtype)) < 0) {
            ty_graph_fail(g, TY_E_SHAPE, "%s: the result is too large to address", row->text);
            return false;
        }
    if (d->op == TY_OP_SLICE)
        emit_canonical_slice(d);
    return emit_check_leaf(g, d);
}

/* Of an op that has attributes; read from its row once. Two threads that do so at the same time find the same. */
static uint32_t emit_attr_mask(const ty_op_row *row, ty_op op)
{
    static _Atomic uint32_t masks[TY_N_OPS]; /* 0: not read yet */
    uint32_t mask = atomic_load_explicit(&masks[op], memory_order_relaxed);
    if (mask == 0) {
        mask = ty_attr_mask(row->attrs);
        atomic_store_explicit(&masks[op], mask, memory_order_relaxed);
    }
    return mask;
}

bool ty_graph_draft(ty_graph *g, ty_op op, const ty_attr *attr, const ty_val *in, int n_in, graph_draft *d)
{
    if (g->failed)
        return false;
    if ((unsigned)op >= TY_N_OPS) {
        ty_graph_fail(g, TY_E_GRAPH, "there is no op number %d", (int)op);
        return false;
    }
    const ty_op_row *row = ty_op_row_of(op);
    if (!emit_check_inputs(g, row, in, &n_in))
        return false;
    d->op = op;
    d->in = in;
    d->n_in = n_in;
    if (attr && *row->attrs) {
        d->attr = *attr;
        if (d->attr.n > TY_MAX_RANK || d->attr.type.rank > TY_MAX_RANK || d->attr.type.dtype >= TY_N_DTYPES) {
            ty_graph_fail(g, TY_E_GRAPH, "%s: an attribute has more than %d entries", row->text, TY_MAX_RANK);
            return false;
        }
        ty_attr_clean(&d->attr, emit_attr_mask(row, op));
        emit_canonical_attr(g, d);
    } else {
        memset(&d->attr, 0, sizeof d->attr);
    }
    return emit_infer(g, d);
}

#define EMIT_FEW_INPUTS 16

ty_val ty_graph_emit(ty_graph *g, ty_op op, const ty_attr *attr, const ty_val *in, int n_in)
{
    graph_draft d;
    if (!ty_graph_draft(g, op, attr, in, n_in, &d))
        return TY_NONE;
    ty_val v = ty_graph_fold(g, &d);
    if (v != TY_NONE || g->failed)
        return v;
    ty_val few[EMIT_FEW_INPUTS], *own = few;
    if (d.n_in > EMIT_FEW_INPUTS)
        own = TY_NEW_ARRAY(&g->arena, ty_val, d.n_in);
    if (d.n_in > 0)
        memcpy(own, d.in, sizeof(ty_val) * (size_t)d.n_in);
    d.in = own;
    v = ty_graph_peephole(g, &d, own);
    if (v != TY_NONE || g->failed)
        return v;
    return ty_graph_append(g, &d);
}
