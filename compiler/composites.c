/* composites.c - see composites.h. */
#include "compiler/composites.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *text;
    ty_op op;
    uint32_t mask, flags;
} composite_rows[TY_N_COMPOSITES] = {
#define COMPOSITE(NAME, text, OP, mask, flags) [TY_COMPOSITE_##NAME] = {text, TY_OP_##OP, mask, flags},
#include "compiler/composites.def"
#undef COMPOSITE
};

const char *ty_composite_text(ty_composite kind)
{
    return composite_rows[kind].text;
}

const char *ty_composite_count_text(const ty_composite_count *c, char *out, size_t n)
{
    size_t len = 0;
    out[0] = 0;
    for (int i = 0; i < TY_N_COMPOSITES; i++)
        if (c->n[i] > 0 && len < n)
            len += (size_t)snprintf(out + len, n - len, "%s%d %s", len ? ", " : "", c->n[i], composite_rows[i].text);
    return out;
}

/* p c + reverse(p) s, reversed along an axis of 2. */
static bool composites_is_rotary(const ty_graph *g, uint32_t id)
{
    for (int i = 0; i < 4; i++) {
        uint32_t turned = ty_val_node(ty_graph_in(g, id, i & 1)), straight = ty_val_node(ty_graph_in(g, id, !(i & 1)));
        if (ty_graph_op(g, turned) != TY_OP_MUL || ty_graph_op(g, straight) != TY_OP_MUL)
            return false;
        uint32_t swap = ty_val_node(ty_graph_in(g, turned, i >> 1));
        if (ty_graph_op(g, swap) != TY_OP_REVERSE)
            continue;
        ty_val p = ty_graph_in(g, swap, 0);
        const ty_type *t = ty_graph_type(g, p);
        uint32_t axes = ty_graph_attr(g, swap)->axes;
        bool last = t->dim[t->rank - 1] == 2 && axes == 1u << (t->rank - 1);
        bool before = t->rank > 1 && t->dim[t->rank - 2] == 2 && axes == 1u << (t->rank - 2);
        if ((last || before) && (ty_graph_in(g, straight, 0) == p || ty_graph_in(g, straight, 1) == p))
            return true;
    }
    return false;
}

static void composites_count_node(const ty_graph *g, uint32_t id, ty_composite_count *c)
{
    uint32_t flags = ty_graph_attr(g, id)->flags;
    for (int i = 0; i < TY_N_COMPOSITES; i++)
        if (ty_graph_op(g, id) == composite_rows[i].op && (flags & composite_rows[i].mask) == composite_rows[i].flags &&
            (i != TY_COMPOSITE_ROTARY || composites_is_rotary(g, id)))
            c->n[i]++;
}

int ty_composites_count(const ty_graph *g, const ty_val *held, int n_held, ty_composite_count *out, ty_error *err)
{
    uint32_t n = ty_graph_n_nodes(g);
    uint8_t *needed = calloc((size_t)n + 1, 1);
    *out = (ty_composite_count){{0}};
    if (!needed)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", n);
    for (int i = 0; i < n_held; i++)
        if (held[i] != TY_NONE)
            needed[ty_val_node(held[i])] = 1;
    for (uint32_t id = n; id-- > 0;) {
        if (!needed[id])
            continue;
        composites_count_node(g, id, out);
        for (uint32_t k = 0; k < ty_graph_node(g, id)->n_in; k++)
            if (ty_graph_in(g, id, (int)k) != TY_NONE)
                needed[ty_val_node(ty_graph_in(g, id, (int)k))] = 1;
    }
    free(needed);
    return 0;
}
