/* fit.h - temporaries within a limit: logits in chunks (passes/chunk.h), which costs next to nothing, and as much of
 * forward computed again in backward as is needed (passes/remat.h). */
#ifndef TY_COMPILER_FIT_H
#define TY_COMPILER_FIT_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

/* If the training tapes of *g need more than `limit` bytes of temporaries, *g becomes a graph that has its logits in
 * chunks and computes as little again as fits; or, if nothing fits, the smallest that was found. What was decided goes
 * into `out`, whose text lives in `a`. fuse_for: threads, for fusion. */
int ty_fit(ty_graph **g, uint32_t tapes, int64_t limit, int fuse_for, ty_arena *a, ty_remat_report *out, ty_error *err);

#endif
