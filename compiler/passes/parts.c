/* parts.c - see parts.h. */
#include "compiler/passes/parts.h"

#include "compiler/ir/build.h"

#include <stdlib.h>

enum { PARTS_MOST = 1 << 16 };

typedef struct part {
    int64_t lo, hi; /* of the axis */
    ty_val of;
} part;

/* Whether v is a value with zeros around it along one axis, behind axes of one entry. */
static bool part_of(const ty_graph *g, ty_val v, int *axis, part *p)
{
    uint32_t node = ty_val_node(v);
    const ty_attr *attr = ty_graph_attr(g, node);
    const ty_type *t = ty_graph_type(g, v);
    int found = 0;
    if (ty_graph_op(g, node) != TY_OP_PAD || attr->value != 0)
        return false;
    while (found < t->rank - 1 && t->dim[found] == 1)
        found++;
    for (int i = 0; i < t->rank; i++)
        if (i != found && (attr->lo[i] != 0 || attr->hi[i] != 0))
            return false;
    *axis = found;
    *p = (part){attr->lo[found], t->dim[found] - attr->hi[found], ty_graph_in(g, node, 0)};
    return true;
}

/* The part among the two that are added, and what it is added to; false if there is none. */
static bool part_beside(const ty_graph *g, ty_val sum, int *axis, part *p, ty_val *rest)
{
    for (int i = 0; i < 2; i++) {
        *rest = ty_graph_in(g, ty_val_node(sum), 1 - i);
        if (part_of(g, ty_graph_in(g, ty_val_node(sum), i), axis, p))
            return true;
    }
    return false;
}

/* All parts of a sum, from the last added to the first; 0 if there is anything else in it. */
static int parts_of(const ty_graph *g, ty_val sum, int *axis, part *p, int room)
{
    int n = 0;
    for (; n < room - 1 && ty_graph_op(g, ty_val_node(sum)) == TY_OP_ADD; n++)
        if (!part_beside(g, sum, axis, &p[n], &sum))
            return 0;
    return n > 0 && part_of(g, sum, axis, &p[n]) ? n + 1 : 0;
}

static int parts_by_place(const void *a, const void *b)
{
    const part *x = a, *y = b;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

static bool parts_fill(const part *p, int n, int64_t end)
{
    int64_t at = 0;
    for (int i = 0; i < n; at = p[i++].hi)
        if (p[i].lo != at)
            return false;
    return at == end;
}

static int parts_count(const ty_graph *g, ty_val sum)
{
    int n = 1, axis;
    part p;
    for (; n < PARTS_MOST && ty_graph_op(g, ty_val_node(sum)) == TY_OP_ADD; n++)
        if (!part_beside(g, sum, &axis, &p, &sum))
            return 0;
    return n;
}

ty_val ty_parts_joined(ty_graph *g, ty_val sum)
{
    int axis, room = sum == TY_NONE ? 0 : parts_count(g, sum);
    if (room < 2)
        return sum;
    part *p = TY_NEW_ARRAY(ty_graph_arena(g), part, room);
    ty_val *of = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, room);
    int n = parts_of(g, sum, &axis, p, room);
    if (n < 2)
        return sum;
    qsort(p, (size_t)n, sizeof *p, parts_by_place);
    if (!parts_fill(p, n, ty_b_dim(g, sum, axis)))
        return sum;
    for (int i = 0; i < n; i++)
        of[i] = p[i].of;
    return ty_b_concat_many(g, of, n, axis);
}
