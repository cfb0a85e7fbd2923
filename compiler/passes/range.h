/* range.h - which values integer inputs may take, found by following every lookup in the graph back to its index. */
#ifndef TY_COMPILER_PASSES_RANGE_H
#define TY_COMPILER_PASSES_RANGE_H

#include "compiler/passes/step.h"

/* Fills ranges[n_inputs of g]; texts go to the graph's arena. Looks at nodes live in any tape. */
void ty_range_find(ty_graph *g, ty_step_range *ranges);
/* The ranges of a step's inputs, into the step. */
void ty_range_list(ty_step *s);

#endif
