/* accumulate.c - where a gradient is a sum, the scattered part is added into the other one.
 *
 * The gradient of a table that is also a matrix (tied embeddings) is a product plus a scatter into zeros. The scatter
 * can start from the product instead: no zeros, no second table, no addition, and since the product is read by nobody
 * else, no copy (compiler/passes/plan.c). Rows that come up several times are then added in another order than before,
 * which is why this is a pass and no rule of the constructors.
 */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/passes/passes.h"

#include <stdlib.h>

/* Readers of each value, outputs included; freed by the caller. */
static uint32_t *accumulate_uses(const ty_graph *g, const uint8_t *live)
{
    uint32_t n = ty_graph_n_nodes(g), *uses = calloc((size_t)n * TY_MAX_RESULTS + 1, sizeof *uses);
    for (uint32_t id = 0; id < n && uses; id++)
        for (uint32_t k = 0; live[id] && k < ty_graph_node(g, id)->n_in; k++)
            if (ty_graph_in(g, id, (int)k) != TY_NONE)
                uses[ty_graph_in(g, id, (int)k)]++;
    for (int i = 0; i < ty_graph_n_outputs(g) && uses; i++)
        uses[ty_graph_output(g, i)->val]++;
    return uses;
}

/* v is a sum scattered into zeros that only one node reads. */
static bool accumulate_is_scattered(const ty_graph *g, ty_val v, const uint32_t *uses)
{
    uint32_t id = ty_val_node(v);
    ty_op op = ty_graph_op(g, id);
    return (op == TY_OP_SCATTER || op == TY_OP_PUT) && ty_graph_attr(g, id)->mode == TY_SUM && uses[v] == 1 &&
           ty_graph_is_zero(g, ty_graph_in(g, id, 0));
}

/* x + scatter(0, i, u) -> scatter(x, i, u); false if the node is no such sum. */
static bool accumulate_add(ty_clone *c, uint32_t id, const uint32_t *uses)
{
    const ty_graph *g = c->from;
    for (int k = 0; k < 2; k++) {
        ty_val part = ty_graph_in(g, id, k), other = ty_graph_in(g, id, 1 - k);
        if (other == part || !accumulate_is_scattered(g, part, uses))
            continue;
        uint32_t from = ty_val_node(part);
        ty_val in[3];
        ty_clone_inputs(c, from, in);
        in[0] = c->map[other];
        ty_graph_origin(c->to, ty_graph_origin_of(g, id));
        c->map[ty_val_make(id, 0)] = ty_graph_emit(c->to, ty_graph_op(g, from), ty_graph_attr(g, from), in, 3);
        return true;
    }
    return false;
}

int ty_pass_accumulate(const ty_graph *in, ty_graph **out, ty_error *err)
{
    *out = NULL;
    uint32_t n_nodes = ty_graph_n_nodes(in);
    uint8_t *live = calloc((size_t)n_nodes + 1, 1);
    if (live)
        ty_graph_mark_live(in, TY_TAPE_ALL, live);
    uint32_t *uses = live ? accumulate_uses(in, live) : NULL;
    if (!uses) {
        free(live);
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", n_nodes);
    }
    ty_clone c;
    ty_clone_begin(&c, in);
    for (uint32_t id = 0; id < n_nodes && !ty_graph_failed(c.to, NULL); id++)
        if (live[id] && !(ty_graph_op(in, id) == TY_OP_ADD && accumulate_add(&c, id, uses)))
            ty_clone_node(&c, id);
    free(live);
    free(uses);
    return ty_clone_finish(&c, out, err);
}
