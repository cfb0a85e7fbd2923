/* composites.h - counting what raise found. The public half is in compiler.h. */
#ifndef TY_COMPILER_COMPOSITES_H
#define TY_COMPILER_COMPOSITES_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

/* Counts what held[n_held] are computed from; TY_NONE among them is passed over. */
int ty_composites_count(const ty_graph *g, const ty_val *held, int n_held, ty_composite_count *out, ty_error *err);

#endif
