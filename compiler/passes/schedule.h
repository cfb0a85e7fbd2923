/* schedule.h - the learning rate as a graph value, computed on the device from the step counter. */
#ifndef TY_COMPILER_PASSES_SCHEDULE_H
#define TY_COMPILER_PASSES_SCHEDULE_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

/* lr: the optimizer's rate. t: steps done before this one, f64[]. plateau: the factor that has been reached, f64[], for
 * TY_SCHED_PLATEAU; else TY_NONE. Returns f64[]. Formulas: schedule.c. */
ty_val ty_schedule_build(ty_graph *g, const ty_schedule *s, double lr, ty_val t, ty_val plateau);

/* "warmup_cosine" */
const char *ty_schedule_text(ty_schedule_kind kind);

#endif
