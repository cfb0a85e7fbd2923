/* verify.h - every rule of the graph language, checked. Run between passes in debug builds and in tests. */
#ifndef TY_COMPILER_IR_VERIFY_H
#define TY_COMPILER_IR_VERIFY_H

#include "compiler/ir/graph.h"

/* 0 if: inputs precede nodes; counts and attributes fit the rows; types are what infer gives; states, inputs, consts
 * and outputs exist; one assign a state and tape, of the state's type. Otherwise names the first node that breaks a
 * rule. */
int ty_graph_verify(const ty_graph *g, ty_error *err);

#endif
