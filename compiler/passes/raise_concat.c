/* raise_concat.c - concatenations that begin as another one does.
 *
 * In a dense block each layer reads all that the layers before it gave, and exporters put all of it together anew for
 * each: 24 concatenations of 2 to 25 parts. A kernel that reads one asks for each element which part it is from, or has
 * a loop for each. Written as the one before and what is new there are two parts, as Keras writes them.
 */
#include "compiler/passes/raise.h"

/* How many inputs of `node` are all the inputs of `first`, another concatenation along the same axis; 0: it does not
 * begin so. */
static uint32_t concat_begins_as(const ty_graph *g, uint32_t node, uint32_t first)
{
    uint32_t n = ty_graph_node(g, first)->n_in;
    if (ty_graph_op(g, first) != TY_OP_CONCAT || n < 2 || n >= ty_graph_node(g, node)->n_in ||
        ty_graph_attr(g, first)->axis != ty_graph_attr(g, node)->axis)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        if (ty_graph_in(g, first, (int)i) != ty_graph_in(g, node, (int)i))
            return 0;
    return n;
}

bool ty_raise_concat(const ty_raise *r, uint32_t node, ty_raise_match *m)
{
    uint32_t n_in = ty_graph_node(r->g, node)->n_in, best = TY_NONE, longest = 0;
    if (ty_graph_op(r->g, node) != TY_OP_CONCAT || n_in < 3)
        return false;
    for (uint32_t first = 0; first < node; first++) {
        uint32_t n = r->uses[first] ? concat_begins_as(r->g, node, first) : 0;
        best = n > longest ? first : best;
        longest = n > longest ? n : longest;
    }
    if (longest == 0 || n_in - longest >= TY_RAISE_MAX_IN)
        return false;
    m->op = TY_OP_CONCAT;
    m->attr = *ty_graph_attr(r->g, node);
    m->in[m->n_in++] = ty_val_make(best, 0);
    for (uint32_t i = longest; i < n_in; i++)
        m->in[m->n_in++] = ty_graph_in(r->g, node, (int)i);
    return true;
}
