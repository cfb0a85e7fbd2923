/* verify.c - checks what the constructors promise, without trusting them: it reads the arrays themselves. */
#include "compiler/ir/verify.h"

#include "compiler/ir/attr.h"
#include "compiler/ir/storage.h"
#include "compiler/ops/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names the node in front of what is wrong with it. */
static int verify_wrap(const ty_graph *g, uint32_t id, ty_error *err)
{
    ty_error_wrap(err, "node %%%u = %s", id, ty_op_row_of(ty_graph_op(g, id))->text);
    if (ty_graph_node(g, id)->origin < g->origin_of.n && *ty_graph_origin_of(g, id))
        ty_error_at(err, "%s", ty_graph_origin_of(g, id));
    return -1;
}

static int verify_counts(const ty_graph *g, uint32_t id, ty_error *err)
{
    const ty_node *n = ty_graph_node(g, id);
    if (n->op >= TY_N_OPS)
        return ty_error_set(err, TY_E_GRAPH, "node %%%u: there is no op number %u", id, n->op);
    const ty_op_row *row = ty_op_row_of((ty_op)n->op);
    if (n->n_res != row->n_res)
        return ty_error_set(err, TY_E_GRAPH, "has %u results, expected %d", n->n_res, row->n_res);
    if ((int64_t)n->n_in < row->min_in || (row->max_in >= 0 && (int64_t)n->n_in > row->max_in))
        return ty_error_set(err, TY_E_GRAPH, "has %u inputs, expected %d to %d", n->n_in, row->min_in, row->max_in);
    if ((uint64_t)n->in_off + n->n_in > g->in.n)
        return ty_error_set(err, TY_E_GRAPH, "its inputs lie outside of the pool");
    if (n->attr >= g->attr.n || n->origin >= g->origin_of.n)
        return ty_error_set(err, TY_E_GRAPH, "its attributes or origin do not exist");
    for (uint32_t r = 0; r < n->n_res; r++)
        if (n->type[r] >= g->type.n)
            return ty_error_set(err, TY_E_GRAPH, "type of result %u does not exist", r);
    return 0;
}

static int verify_inputs(const ty_graph *g, uint32_t id, ty_error *err)
{
    const ty_node *n = ty_graph_node(g, id);
    const ty_op_row *row = ty_op_row_of((ty_op)n->op);
    for (uint32_t k = 0; k < n->n_in; k++) {
        ty_val v = ty_graph_in(g, id, (int)k);
        if (v == TY_NONE && (int)k >= row->min_in && row->max_in >= 0 && k + 1 < n->n_in)
            continue;
        if (v == TY_NONE)
            return ty_error_set(err, TY_E_GRAPH, "input %u is absent", k);
        if (ty_val_node(v) >= id)
            return ty_error_set(err, TY_E_GRAPH, "input %u is %%%u, which does not precede it", k, ty_val_node(v));
        if (ty_val_result(v) >= ty_graph_node(g, ty_val_node(v))->n_res)
            return ty_error_set(err, TY_E_GRAPH, "input %u is result %u of %%%u, which has %u", k, ty_val_result(v),
                                ty_val_node(v), ty_graph_node(g, ty_val_node(v))->n_res);
        if (ty_graph_op(g, ty_val_node(v)) == TY_OP_ASSIGN)
            return ty_error_set(err, TY_E_GRAPH, "input %u is an assign, expected the value assigned", k);
    }
    return 0;
}

static int verify_attr(const ty_graph *g, uint32_t id, ty_error *err)
{
    const ty_attr *attr = ty_graph_attr(g, id);
    ty_attr clean = *attr;
    ty_attr_clean(&clean, ty_attr_mask(ty_op_row_of(ty_graph_op(g, id))->attrs));
    if (attr->n > TY_MAX_RANK || attr->type.rank > TY_MAX_RANK || attr->type.dtype >= TY_N_DTYPES)
        return ty_error_set(err, TY_E_GRAPH, "an attribute is beyond its limit of %d entries", TY_MAX_RANK);
    if (memcmp(&clean, attr, sizeof clean) != 0)
        return ty_error_set(err, TY_E_GRAPH, "an attribute is set that the op does not have");
    return 0;
}

static int verify_infer(const ty_graph *g, uint32_t id, ty_error *err)
{
    const ty_node *n = ty_graph_node(g, id);
    const ty_op_row *row = ty_op_row_of((ty_op)n->op);
    const ty_type *few[16], **in = n->n_in > 16 ? calloc(n->n_in, sizeof *in) : few;
    ty_type res[TY_MAX_RESULTS] = {0};
    if (!in)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %u inputs", n->n_in);
    for (uint32_t k = 0; k < n->n_in; k++) {
        ty_val v = ty_graph_in(g, id, (int)k);
        in[k] = v == TY_NONE ? NULL : ty_graph_type(g, v);
    }
    int rc = row->infer(ty_graph_attr(g, id), in, (int)n->n_in, res, err);
    if (in != few)
        free(in);
    for (int r = 0; r < row->n_res && rc == 0; r++) {
        const ty_type *found = ty_graph_type(g, ty_val_make(id, (uint32_t)r));
        char a[160], b[160];
        if (!ty_type_same(&res[r], found))
            rc = ty_error_set(err, TY_E_GRAPH, "result %d is %s, expected %s", r, ty_type_text(found, a, sizeof a),
                              ty_type_text(&res[r], b, sizeof b));
    }
    return rc;
}

/* What a leaf or assign names exists and has its type. */
static int verify_leaf(const ty_graph *g, uint32_t id, ty_error *err)
{
    int64_t i = ty_graph_attr(g, id)->index;
    const ty_type *found = NULL;
    switch (ty_graph_op(g, id)) {
    case TY_OP_INPUT:
        found = i >= 0 && i < ty_graph_n_inputs(g) ? &ty_graph_input(g, (int)i)->type : NULL;
        break;
    case TY_OP_STATE:
    case TY_OP_ASSIGN:
        found = i >= 0 && i < ty_graph_n_states(g) ? &ty_graph_state(g, (int)i)->type : NULL;
        break;
    case TY_OP_CONST:
        if (i >= 0 && i < (int64_t)g->constant.n && ty_graph_const_data(g, ty_val_make(id, 0)))
            found = &((const graph_const *)g->constant.data)[i].type;
        break;
    default:
        return 0;
    }
    if (found && ty_type_same(found, ty_graph_type(g, ty_val_make(id, 0))))
        return 0;
    return ty_error_set(err, TY_E_GRAPH, "names number %lld, which does not exist or has another type", (long long)i);
}

static int verify_node(const ty_graph *g, uint32_t id, ty_error *err)
{
    if (ty_graph_node(g, id)->op >= TY_N_OPS)
        return verify_counts(g, id, err);
    if (verify_counts(g, id, err) < 0 || verify_inputs(g, id, err) < 0 || verify_attr(g, id, err) < 0 ||
        verify_infer(g, id, err) < 0 || verify_leaf(g, id, err) < 0)
        return verify_wrap(g, id, err);
    return 0;
}

static int verify_outputs(const ty_graph *g, ty_error *err)
{
    for (int i = 0; i < ty_graph_n_outputs(g); i++) {
        const ty_output *o = ty_graph_output(g, i);
        if (o->val == TY_NONE || ty_val_node(o->val) >= g->node.n ||
            ty_val_result(o->val) >= ty_graph_node(g, ty_val_node(o->val))->n_res)
            return ty_error_set(err, TY_E_GRAPH, "output \"%s\" is no value of the graph", o->name);
        if (o->tapes == 0 || (o->tapes & ~(uint32_t)TY_TAPE_ALL))
            return ty_error_set(err, TY_E_GRAPH, "output \"%s\" belongs to no known tape (0x%x)", o->name, o->tapes);
    }
    return 0;
}

static int verify_effects(const ty_graph *g, ty_error *err)
{
    for (int i = 0; i < ty_graph_n_effects(g); i++) {
        const ty_effect *e = ty_graph_effect(g, i);
        if (e->node >= g->node.n || ty_graph_op(g, e->node) != TY_OP_ASSIGN)
            return ty_error_set(err, TY_E_GRAPH, "effect %d is no assign", i);
        if (e->tapes == 0 || (e->tapes & ~(uint32_t)TY_TAPE_ALL))
            return ty_error_set(err, TY_E_GRAPH, "effect %d belongs to no known tape (0x%x)", i, e->tapes);
        int64_t state = ty_graph_attr(g, e->node)->index;
        for (int k = 0; k < i; k++)
            if (ty_graph_attr(g, ty_graph_effect(g, k)->node)->index == state &&
                (ty_graph_effect(g, k)->tapes & e->tapes))
                return ty_error_set(err, TY_E_GRAPH, "state \"%s\" is assigned twice in one tape",
                                    ty_graph_state(g, (int)state)->name);
    }
    return 0;
}

static int verify_states(const ty_graph *g, ty_error *err)
{
    for (int i = 0; i < ty_graph_n_states(g); i++) {
        const ty_state *s = ty_graph_state(g, i);
        int64_t end = 0;
        for (int k = 0; k < s->n_segments; k++) {
            const ty_segment *part = &s->segments[k];
            if (part->offset < end || part->type.dtype != s->type.dtype)
                return ty_error_set(err, TY_E_GRAPH, "state \"%s\": segment \"%s\" is out of order or of another dtype",
                                    s->name, part->name);
            end = part->offset + ty_type_elems(&part->type);
        }
        if (end > ty_type_elems(&s->type))
            return ty_error_set(err, TY_E_GRAPH, "state \"%s\": its segments reach beyond its end", s->name);
    }
    return 0;
}

int ty_graph_verify(const ty_graph *g, ty_error *err)
{
    if (ty_graph_failed(g, err))
        return -1;
    for (uint32_t id = 0; id < g->node.n; id++)
        if (verify_node(g, id, err) < 0)
            return -1;
    if (verify_states(g, err) < 0 || verify_outputs(g, err) < 0)
        return -1;
    return verify_effects(g, err);
}
