/* parts.c - see parts.h. */
#include "compiler/passes/parts.h"

#include "compiler/ir/build.h"

#include <stdlib.h>

enum { PARTS_MOST = 1 << 16 };

typedef struct part {
    int64_t lo, hi; /* of the axis */
    ty_val of;
} part;

/* The slowest axis of more than one entry. */
static int part_axis(const ty_type *t)
{
    int axis = 0;
    while (axis < t->rank - 1 && t->dim[axis] == 1)
        axis++;
    return axis;
}

/* Whether v is a value with zeros around it along that axis alone. */
static bool part_of(const ty_graph *g, ty_val v, part *p)
{
    uint32_t node = ty_val_node(v);
    const ty_attr *attr = ty_graph_attr(g, node);
    const ty_type *t = ty_graph_type(g, v);
    int axis = part_axis(t);
    if (ty_graph_op(g, node) != TY_OP_PAD || attr->value != 0)
        return false;
    for (int i = 0; i < t->rank; i++)
        if (i != axis && (attr->lo[i] != 0 || attr->hi[i] != 0))
            return false;
    *p = (part){attr->lo[axis], t->dim[axis] - attr->hi[axis], ty_graph_in(g, node, 0)};
    return true;
}

/* The part among the two that are added, and what it is added to; false if there is none. */
static bool part_beside(const ty_graph *g, ty_val sum, part *p, ty_val *rest)
{
    for (int i = 0; i < 2; i++) {
        *rest = ty_graph_in(g, ty_val_node(sum), 1 - i);
        if (part_of(g, ty_graph_in(g, ty_val_node(sum), i), p))
            return true;
    }
    return false;
}

/* The number of parts, all of a sum; 0 if there is anything else in it. p: their places, or NULL. */
static int parts_of(const ty_graph *g, ty_val sum, part *p)
{
    int n = 0;
    part one;
    for (; n < PARTS_MOST && ty_graph_op(g, ty_val_node(sum)) == TY_OP_ADD; n++)
        if (!part_beside(g, sum, p ? &p[n] : &one, &sum))
            return 0;
    return n > 0 && part_of(g, sum, p ? &p[n] : &one) ? n + 1 : 0;
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

ty_val ty_parts_joined(ty_graph *g, ty_val sum)
{
    int n = sum == TY_NONE ? 0 : parts_of(g, sum, NULL);
    if (n == 0)
        return sum;
    int axis = part_axis(ty_graph_type(g, sum));
    part *p = TY_NEW_ARRAY(ty_graph_arena(g), part, n);
    ty_val *of = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, n);
    parts_of(g, sum, p);
    qsort(p, (size_t)n, sizeof *p, parts_by_place);
    if (!parts_fill(p, n, ty_b_dim(g, sum, axis)))
        return sum;
    for (int i = 0; i < n; i++)
        of[i] = p[i].of;
    return ty_b_concat_many(g, of, n, axis);
}
