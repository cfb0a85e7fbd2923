/* segment.h - tensors inside a flat vector, for rules that treat each of them on its own. */
#ifndef TY_COMPILER_PASSES_SEGMENT_H
#define TY_COMPILER_PASSES_SEGMENT_H

#include "compiler/ir/graph.h"

/* A vector is the segments in order, without gaps. */
typedef struct ty_segments {
    int n;
    const int64_t *elems;  /* [n] */
    const ty_val *squares; /* [n]: what counts as the sum of a segment's squares, []; TY_NONE: that sum. NULL: always */
} ty_segments;

/* norm[i]: square root of the sum of squares of segment i, []. */
void ty_segment_norms(ty_graph *g, ty_val vector, const ty_segments *s, ty_val *norm);
/* A vector that holds scalar[i] in all elements of segment i; with a single segment that scalar itself. */
ty_val ty_segment_spread(ty_graph *g, const ty_val *scalar, const ty_segments *s);

#endif
