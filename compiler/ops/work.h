/* work.h - what kind of work an op is, and how much arithmetic one of its nodes does.
 *
 * The field's convention: a multiply-add counts 2; any other arithmetic on one number 1, whatever it costs (an exp is
 * 1); what only moves, compares or selects counts 0. So that a product [M, K] x [K, N] is 2 M N K, and numbers can be
 * held against those of other tools (torch.utils.flop_counter counts products and convolutions the same way, and
 * nothing else).
 *
 * A composite counts 0 here: its arithmetic is that of what `lower` makes of it.
 */
#ifndef TY_COMPILER_OPS_WORK_H
#define TY_COMPILER_OPS_WORK_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

/* What a node of this op is, if it runs on its own. TY_N_WORKS: the op has no row yet. */
ty_work ty_op_work(ty_op op);
/* Arithmetic of one node. */
double ty_node_flop(const ty_graph *g, uint32_t node);
/* Arithmetic of one element of an ELEMENTWISE op: 0 or 1. */
int ty_op_element_flop(ty_op op);

#endif
