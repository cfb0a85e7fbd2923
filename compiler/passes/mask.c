/* mask.c - gradients read the mask of a ReLU from its result.
 *
 * A ReLU is select(x <= 0, 0, x); autodiff asks x <= 0 again, so that x would have to stay in memory until backward.
 * Its result y answers the same question for every x, NaN too: y <= 0 just where x <= 0. Reading y instead lets x die
 * at the ReLU, which then runs in place; y is kept anyway, for the gradient of what reads it.
 *
 * Not so if only a maximum over windows reads y. Its gradient goes to elements of y that are some window's maximum, so
 * the maximum answers for them: the gradient is masked where it is small, before it is spread, and y need not be kept.
 */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/passes/passes.h"

#include <stdlib.h>

uint32_t ty_mask_of_relu(const ty_graph *g, uint32_t select)
{
    uint32_t cond = ty_val_node(ty_graph_in(g, select, 0));
    if (ty_graph_op(g, cond) != TY_OP_LE || !ty_graph_is_zero(g, ty_graph_in(g, cond, 1)))
        return TY_NONE;
    bool relu = ty_graph_is_zero(g, ty_graph_in(g, select, 1)) && ty_graph_in(g, select, 2) == ty_graph_in(g, cond, 0);
    return relu ? cond : TY_NONE;
}

/* If v, which `relu` masks, is the gradient of a maximum over windows of that ReLU: its node, else TY_NONE. */
static uint32_t mask_pooled(const ty_clone *c, ty_val v, ty_val relu)
{
    uint32_t grad = ty_val_node(v);
    if (ty_graph_op(c->from, grad) != TY_OP_POOL_MAX_GRAD)
        return TY_NONE;
    ty_val index = ty_graph_in(c->from, grad, 1);
    bool own = ty_graph_op(c->from, ty_val_node(index)) == TY_OP_POOL_MAX && ty_val_result(index) == 1;
    return own && c->map[ty_graph_in(c->from, ty_val_node(index), 0)] == relu ? grad : TY_NONE;
}

/* The gradient of the maximum, of a dy that is 0 where the maximum is. */
static ty_val mask_before_pool(ty_clone *c, uint32_t grad)
{
    ty_val dy = c->map[ty_graph_in(c->from, grad, 0)], index = c->map[ty_graph_in(c->from, grad, 1)];
    ty_val max = ty_val_make(ty_val_node(index), 0), none = ty_b_full_like(c->to, max, 0);
    ty_val masked = ty_b_select(c->to, ty_b_le(c->to, max, none), none, dy);
    return ty_graph_emit(c->to, TY_OP_POOL_MAX_GRAD, ty_graph_attr(c->from, grad), (ty_val[]){masked, index}, 2);
}

/* ctx: by node of the old graph, for x <= 0, the ReLU of x in the new graph, or TY_NONE. */
static bool mask_select(ty_clone *c, uint32_t id, void *ctx)
{
    ty_val *relu = ctx;
    if (ty_graph_op(c->from, id) != TY_OP_SELECT)
        return false;
    uint32_t cond = ty_val_node(ty_graph_in(c->from, id, 0));
    bool is_relu = ty_mask_of_relu(c->from, id) == cond;
    if (!is_relu && relu[cond] == TY_NONE)
        return false;
    if (is_relu) {
        ty_clone_node(c, id);
        relu[cond] = c->map[ty_val_make(id, 0)];
        return true;
    }
    ty_val in[3];
    ty_clone_inputs(c, id, in);
    ty_graph_origin(c->to, ty_graph_origin_of(c->from, id));
    uint32_t pooled = mask_pooled(c, ty_graph_in(c->from, id, 2), relu[cond]);
    if (pooled != TY_NONE && ty_graph_is_zero(c->from, ty_graph_in(c->from, id, 1))) {
        c->map[ty_val_make(id, 0)] = mask_before_pool(c, pooled);
        return true;
    }
    in[0] = ty_b_le(c->to, relu[cond], ty_b_full_like(c->to, relu[cond], 0));
    c->map[ty_val_make(id, 0)] = ty_graph_emit(c->to, TY_OP_SELECT, NULL, in, 3);
    return true;
}

int ty_pass_mask(const ty_graph *in, ty_graph **out, ty_error *err)
{
    uint32_t n = ty_graph_n_nodes(in);
    ty_val *relu = malloc(sizeof(ty_val) * ((size_t)n + 1));
    if (!relu)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", n);
    for (uint32_t id = 0; id < n; id++)
        relu[id] = TY_NONE;
    int rc = ty_clone_rewrite(in, mask_select, relu, out, err);
    free(relu);
    return rc;
}
