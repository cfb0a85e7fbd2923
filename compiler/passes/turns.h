/* turns.h - the transposes of a model that keeps channels last: in front of its convolutions, pools and batch norms,
 * which the graph has channels-first, and behind them.
 */
#ifndef TY_COMPILER_PASSES_TURNS_H
#define TY_COMPILER_PASSES_TURNS_H

#include "compiler/ir/graph.h"

/* Marks them, turn[node] = 1; turn[] is zeroed. Between a window and its turns may lie what works element by element or
 * along axes; a transpose that no such way leads to, of tokens and features or of heads, is not one of them. Returns
 * how many there are, -1 on failure. */
int ty_find_turns(const ty_graph *g, uint8_t *turn, ty_error *err);

#endif
