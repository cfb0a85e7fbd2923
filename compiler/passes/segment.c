/* segment.c - slices, reductions and broadcasts: correct for any layout, and free of kernels of its own. */
#include "compiler/passes/segment.h"

#include "compiler/ir/build.h"

void ty_segment_norms(ty_graph *g, ty_val vector, const ty_segments *s, ty_val *norm)
{
    int64_t at = 0;
    for (int i = 0; i < s->n; at += s->elems[i++]) {
        if (s->squares && s->squares[i] != TY_NONE) {
            norm[i] = ty_b_unary(g, TY_OP_SQRT, s->squares[i]);
            continue;
        }
        ty_val part = s->n == 1 ? vector : ty_b_slice_axis(g, vector, 0, at, at + s->elems[i]);
        norm[i] = ty_b_unary(g, TY_OP_SQRT, ty_b_sum(g, ty_b_square(g, part), 1, false));
    }
}

ty_val ty_segment_spread(ty_graph *g, const ty_val *scalar, const ty_segments *s)
{
    if (s->n == 1)
        return scalar[0];
    ty_val *part = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, s->n);
    for (int i = 0; i < s->n; i++)
        part[i] = ty_b_broadcast(g, scalar[i], 1, &s->elems[i]);
    return ty_b_concat(g, part, s->n, 0);
}
