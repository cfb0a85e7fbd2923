/* schedule.h - the learning rate as a graph value, computed on the device from the step counter. */
#ifndef TY_COMPILER_PASSES_SCHEDULE_H
#define TY_COMPILER_PASSES_SCHEDULE_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

/* lr: the optimizer's rate. t: steps done before this one, f64[]. Returns f64[]. */
ty_val ty_schedule_build(ty_graph *g, const ty_schedule *s, double lr, ty_val t);

/* "warmup_cosine" */
const char *ty_schedule_text(ty_schedule_kind kind);

#endif
