/* lower.c - takes composites apart: each is replaced by what its row's `lower` builds.
 *
 * Until here a composite is known as a whole (its gradient, its kernel); from here on fusion sees its parts.
 */
#include "compiler/ir/clone.h"
#include "compiler/ops/op.h"
#include "compiler/passes/passes.h"

static bool lower_composite(ty_clone *c, uint32_t id, void *ctx)
{
    (void)ctx;
    const ty_node *node = ty_graph_node(c->from, id);
    const ty_op_row *row = ty_op_row_of((ty_op)node->op);
    if (row->class_ != TY_CLASS_COMPOSITE)
        return false;
    ty_val *in = TY_NEW_ARRAY(ty_graph_arena(c->to), ty_val, node->n_in);
    ty_val res[TY_MAX_RESULTS] = {TY_NONE, TY_NONE, TY_NONE, TY_NONE};
    ty_graph_origin(c->to, ty_graph_origin_of(c->from, id));
    ty_clone_inputs(c, id, in);
    row->lower(c->to, ty_graph_attr(c->from, id), in, (int)node->n_in, res);
    for (int r = 0; r < row->n_res; r++)
        c->map[ty_val_make(id, (uint32_t)r)] = res[r];
    return true;
}

int ty_pass_lower(const ty_graph *in, ty_graph **out, ty_error *err)
{
    return ty_clone_rewrite(in, lower_composite, NULL, out, err);
}
