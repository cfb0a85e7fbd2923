/* lower.c - takes composites apart: each is replaced by what its row's `lower` builds.
 *
 * Until here a composite is known as a whole (its gradient, its kernel); from here on fusion sees its parts.
 */
#include "compiler/ir/clone.h"
#include "compiler/ops/op.h"
#include "compiler/passes/passes.h"

#include <stdlib.h>

static void lower_composite(ty_clone *c, uint32_t id)
{
    const ty_node *node = ty_graph_node(c->from, id);
    const ty_op_row *row = ty_op_row_of((ty_op)node->op);
    ty_val *in = TY_NEW_ARRAY(ty_graph_arena(c->to), ty_val, node->n_in);
    ty_val res[TY_MAX_RESULTS] = {TY_NONE, TY_NONE, TY_NONE, TY_NONE};
    ty_graph_origin(c->to, ty_graph_origin_of(c->from, id));
    ty_clone_inputs(c, id, in);
    row->lower(c->to, ty_graph_attr(c->from, id), in, (int)node->n_in, res);
    for (int r = 0; r < row->n_res; r++)
        c->map[ty_val_make(id, (uint32_t)r)] = res[r];
}

int ty_pass_lower(const ty_graph *in, ty_graph **out, ty_error *err)
{
    *out = NULL;
    uint32_t n_nodes = ty_graph_n_nodes(in);
    uint8_t *live = calloc(n_nodes > 0 ? n_nodes : 1, 1);
    if (!live)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %u nodes", n_nodes);
    ty_graph_mark_live(in, TY_TAPE_ALL, live);
    ty_clone c;
    ty_clone_begin(&c, in);
    for (uint32_t id = 0; id < n_nodes && !ty_graph_failed(c.to, NULL); id++) {
        if (!live[id])
            continue;
        if (ty_op_row_of(ty_graph_op(in, id))->class_ == TY_CLASS_COMPOSITE)
            lower_composite(&c, id);
        else
            ty_clone_node(&c, id);
    }
    free(live);
    return ty_clone_finish(&c, out, err);
}
