/* text.h - the text form of a graph: prints and parses back exactly. Described in compiler/ir/IR.md.
 *
 *     graph
 *     input 0 "x" f32[4,8]
 *     state 0 "param.0" param f32[40] { "fc.weight" f32[8,4] 0 ; "fc.bias" f32[8] 32 }
 *     %0 = input() {type=f32[4,8] index=0} : f32[4,8]
 *     %1 = exp(%0) : f32[4,8] @"net/act (Exp #3)"
 *     %2 = sort(%1) {axis=1 flags=0} : f32[4,8], i64[4,8]
 *     output "y" %2:1 eval|last               results of a node with several are %ID:RESULT
 *     assign 0 %7 last
 *
 * Constants of up to 64 elements are lists (floats as C99 hex), larger ones base16; initial bytes of states likewise.
 */
#ifndef TY_COMPILER_IR_TEXT_H
#define TY_COMPILER_IR_TEXT_H

#include "base/buf.h"
#include "compiler/ir/graph.h"

/* Appends the graph. With elide_large, constants over 64 elements are shown as "..." and the text does not parse back.
 */
int ty_graph_print(const ty_graph *g, ty_buf *out, bool elide_large);
/* Appends one node as its line has it, but for origin and line end. */
void ty_graph_print_node(const ty_graph *g, uint32_t id, ty_buf *out);
/* Appends its attributes alone: " {axis=1 flags=0}", or nothing. */
void ty_graph_print_attr(const ty_graph *g, uint32_t id, ty_buf *out);
/* Parses the text (n bytes). Errors carry line and column. Initial bytes of states lie in the graph. */
int ty_graph_parse(const char *text, size_t n, ty_graph **out, ty_error *err);

#endif
