/* clone.c - see clone.h. */
#include "compiler/ir/clone.h"

#include "compiler/ir/storage.h"
#include "compiler/ops/op.h"

#include <stdlib.h>

void ty_clone_begin(ty_clone *c, const ty_graph *from)
{
    size_t n = 4 * (size_t)ty_graph_n_nodes(from);
    *c = (ty_clone){.from = from, .to = ty_graph_new(), .map = malloc(sizeof *c->map * (n > 0 ? n : 1))};
    if (!c->map)
        ty_graph_fail(c->to, TY_E_LIMIT, "no memory to copy a graph of %zu values", n);
    for (size_t i = 0; c->map && i < n; i++)
        c->map[i] = TY_NONE;
    for (int i = 0; i < ty_graph_n_inputs(from); i++)
        ty_graph_add_input(c->to, ty_graph_input(from, i)->name, ty_graph_input(from, i)->type);
    for (int i = 0; i < ty_graph_n_states(from); i++)
        ty_graph_add_state(c->to, ty_graph_state(from, i));
}

void ty_clone_inputs(const ty_clone *c, uint32_t id, ty_val *in)
{
    for (uint32_t k = 0; k < ty_graph_node(c->from, id)->n_in; k++) {
        ty_val v = ty_graph_in(c->from, id, (int)k);
        in[k] = v == TY_NONE ? TY_NONE : c->map[v];
    }
}

/* A constant that the old graph owns gets a copy in the new one's memory. */
static ty_val clone_const(ty_clone *c, uint32_t id)
{
    const graph_const *k = &((const graph_const *)c->from->constant.data)[ty_graph_attr(c->from, id)->index];
    const void *data = k->data;
    if (k->owned)
        data = ty_arena_copy(ty_graph_arena(c->to), data, ty_type_bytes(&k->type));
    return ty_graph_const(c->to, &k->type, data, k->owned);
}

void ty_clone_node(ty_clone *c, uint32_t id)
{
    if (ty_graph_failed(c->to, NULL) || ty_graph_op(c->from, id) == TY_OP_ASSIGN)
        return;
    const ty_node *node = ty_graph_node(c->from, id);
    ty_graph_origin(c->to, ty_graph_origin_of(c->from, id));
    ty_val few[16], *in = node->n_in > 16 ? TY_NEW_ARRAY(ty_graph_arena(c->to), ty_val, node->n_in) : few, v;
    ty_clone_inputs(c, id, in);
    if (node->op == TY_OP_CONST)
        v = clone_const(c, id);
    else
        v = ty_graph_emit(c->to, (ty_op)node->op, ty_graph_attr(c->from, id), in, (int)node->n_in);
    c->map[ty_val_make(id, 0)] = v;
    for (uint32_t r = 1; r < node->n_res && v != TY_NONE; r++)
        c->map[ty_val_make(id, r)] = ty_val_make(ty_val_node(v), r);
}

int ty_clone_finish(ty_clone *c, ty_graph **out, ty_error *err)
{
    const ty_graph *from = c->from;
    for (int i = 0; i < ty_graph_n_outputs(from) && !ty_graph_failed(c->to, NULL); i++) {
        const ty_output *o = ty_graph_output(from, i);
        ty_graph_add_output(c->to, o->name, c->map[o->val], o->tapes);
    }
    for (int i = 0; i < ty_graph_n_effects(from) && !ty_graph_failed(c->to, NULL); i++) {
        const ty_effect *e = ty_graph_effect(from, i);
        ty_graph_origin(c->to, ty_graph_origin_of(from, e->node));
        ty_graph_add_assign(c->to, (int)ty_graph_attr(from, e->node)->index, c->map[ty_graph_in(from, e->node, 0)],
                            e->tapes);
    }
    ty_graph_origin(c->to, "");
    free(c->map);
    c->map = NULL;
    *out = c->to;
    if (!ty_graph_failed(c->to, err))
        return 0;
    ty_graph_free(c->to);
    *out = NULL;
    return -1;
}

int ty_clone_rewrite(const ty_graph *in, ty_clone_fn *fn, void *ctx, ty_graph **out, ty_error *err)
{
    uint32_t n = ty_graph_n_nodes(in);
    uint8_t *live = calloc((size_t)n + 1, 1);
    *out = NULL;
    if (!live)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", n);
    ty_graph_mark_live(in, TY_TAPE_ALL, live);
    ty_clone c;
    ty_clone_begin(&c, in);
    for (uint32_t id = 0; id < n && !ty_graph_failed(c.to, NULL); id++)
        if (live[id] && !fn(&c, id, ctx))
            ty_clone_node(&c, id);
    free(live);
    return ty_clone_finish(&c, out, err);
}
