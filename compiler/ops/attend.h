/* attend.h - sizes of tiled attention, for its reference and its implementations. */
#ifndef TY_COMPILER_OPS_ATTEND_H
#define TY_COMPILER_OPS_ATTEND_H

#include "compiler/ir/graph.h"

/* Flags of attend and attend_grad. */
#define TY_ATTEND_CAUSAL 1u
#define TY_ATTEND_INSIDE 2u
#define TY_ATTEND_PACKED 4u

/* q [outer, heads, t, d], k [outer, groups, s, d], v [outer, groups, s, e]; inside: [outer, t, heads, d] and so on.
 * packed: all three are parts of one operand [outer, t, 3 heads, d], inside. */
typedef struct ty_attend_sizes {
    int64_t outer, heads, groups, t, s, d, e;
    bool inside, causal, packed;
} ty_attend_sizes;

/* A transpose in which rows and heads change places. */
bool ty_attend_is_turn(const ty_graph *g, uint32_t transpose);

ty_attend_sizes ty_attend_sizes_of(uint32_t flags, const ty_type *q, const ty_type *k, const ty_type *v);

#endif
