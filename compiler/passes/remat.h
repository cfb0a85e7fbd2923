/* remat.h - memory for time: parts of forward are computed again in backward instead of being kept.
 *
 * The forward pass is cut into segments where little crosses from one to the next. What crosses is always kept. Inside
 * a segment, backward can have computed again, just before it needs them, first  all that is not a library call, from
 * the results of those: norms, activations, sums then   the whole segment: products, convolutions and attention too An
 * item is one such step for one segment; items are taken in that order, earliest segment first, since what comes first
 * is kept longest. The last segment is left out: backward begins with it.
 *
 *     ty_remat *r;
 *     ty_remat *r = ty_remat_new(g, 16);
 *     ty_remat_apply(r, n, &next, &err);       with the first n of ty_remat_n_items(r)
 *     ty_remat_free(r);
 *
 * The copies read their operands through `again` (ops.def), so that equal nodes do not become one, and fusion keeps the
 * copies of a segment apart from what ran before.
 */
#ifndef TY_COMPILER_PASSES_REMAT_H
#define TY_COMPILER_PASSES_REMAT_H

#include "compiler/ir/graph.h"

typedef struct ty_remat ty_remat;

/* What an item computes again. */
typedef struct ty_remat_item {
    const char *from, *to; /* layers of its first and last node; text of the graph */
    bool products;         /* the whole segment, not only what is between library calls */
    int64_t kept_bytes;    /* what the segment would keep for backward, roughly */
    double flop;           /* computed again; beyond what the same segment's earlier item does */
} ty_remat_item;

/* Reads a lowered graph, which must live as long. */
ty_remat *ty_remat_new(const ty_graph *g, int n_segments);
int ty_remat_n_items(const ty_remat *r);
const ty_remat_item *ty_remat_item_of(const ty_remat *r, int i);
/* A new graph that does the first n items. Keeps: everything, up to the rounding of fused multiplications. */
int ty_remat_apply(const ty_remat *r, int n, ty_graph **out, ty_error *err);
void ty_remat_free(ty_remat *r);

#endif
