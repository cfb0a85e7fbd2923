/* readers.c - see readers.h. */
#include "compiler/passes/readers.h"

#include <stdlib.h>

/* Counts, or fills what was counted. */
static void readers_walk(ty_readers *r, const ty_graph *g, const uint8_t *live, bool fill)
{
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        for (uint32_t k = 0; live[id] && k < ty_graph_node(g, id)->n_in; k++) {
            ty_val v = ty_graph_in(g, id, (int)k);
            if (v == TY_NONE)
                continue;
            if (fill)
                r->node[r->first[v]++] = id;
            else
                r->first[v + 1]++;
        }
    for (int i = 0; i < ty_graph_n_outputs(g); i++) {
        ty_val v = ty_graph_output(g, i)->val;
        if (fill)
            r->node[r->first[v]++] = TY_NONE;
        else
            r->first[v + 1]++;
    }
}

static bool readers_make(ty_readers *r, const ty_graph *g, uint8_t *live, size_t n)
{
    if (!live || !r->first)
        return false;
    ty_graph_mark_live(g, TY_TAPE_ALL, live);
    readers_walk(r, g, live, false);
    for (size_t v = 0; v < n; v++)
        r->first[v + 1] += r->first[v];
    r->node = malloc(((size_t)r->first[n] + 1) * sizeof *r->node);
    if (!r->node)
        return false;
    readers_walk(r, g, live, true);
    for (size_t v = n; v > 0; v--) /* filling has moved each to where the next one begins */
        r->first[v] = r->first[v - 1];
    r->first[0] = 0;
    return true;
}

int ty_readers_find(ty_readers *r, const ty_graph *g, ty_error *err)
{
    uint32_t n_nodes = ty_graph_n_nodes(g);
    size_t n = (size_t)n_nodes * TY_MAX_RESULTS;
    uint8_t *live = calloc((size_t)n_nodes + 1, 1);
    *r = (ty_readers){.first = calloc(n + 2, sizeof *r->first)};
    bool made = readers_make(r, g, live, n);
    free(live);
    if (made)
        return 0;
    ty_readers_free(r);
    return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", n_nodes);
}

void ty_readers_free(ty_readers *r)
{
    free(r->first);
    free(r->node);
    *r = (ty_readers){.first = NULL};
}
