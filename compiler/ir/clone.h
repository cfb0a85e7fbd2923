/* clone.h - carries a graph over into a new one, node by node, for passes that change it on the way.
 *
 *     ty_clone c;
 *     ty_clone_begin(&c, from);                         new graph with the inputs and states of the old one
 *     for (id = 0; id < n_nodes; id++)
 *         if (live[id])
 *             ... ty_clone_node(&c, id);                or set c.map[...] to something better
 *     return ty_clone_finish(&c, &out, err);            outputs, effects
 *
 * A pass that looks at one node after the other is ty_clone_rewrite() and a function.
 *
 * The new graph outlives the old one: constants that the old graph owns are copied, those it borrows are borrowed
 * again.
 */
#ifndef TY_COMPILER_IR_CLONE_H
#define TY_COMPILER_IR_CLONE_H

#include "compiler/ir/graph.h"

typedef struct ty_clone {
    const ty_graph *from;
    ty_graph *to;
    ty_val *map; /* by value of `from`: the value of `to`, or TY_NONE */
} ty_clone;

void ty_clone_begin(ty_clone *c, const ty_graph *from);
/* The inputs of node `id`, mapped, into in[n_in] (absent ones stay TY_NONE). */
void ty_clone_inputs(const ty_clone *c, uint32_t id, ty_val *in);
/* Emits the same op with mapped inputs, keeps its origin, and maps its results. Nothing for assigns: finish makes them.
 */
void ty_clone_node(ty_clone *c, uint32_t id);
/* True if it has mapped the results of node `id` itself; else the node is carried over as it is. */
typedef bool ty_clone_fn(ty_clone *c, uint32_t id, void *ctx);
/* The whole of a pass: the nodes live in any tape, in order, each by `fn`. */
int ty_clone_rewrite(const ty_graph *in, ty_clone_fn *fn, void *ctx, ty_graph **out, ty_error *err);
/* Hands over the new graph and frees the map. On failure the new graph is freed and *out is NULL. */
int ty_clone_finish(ty_clone *c, ty_graph **out, ty_error *err);

#endif
