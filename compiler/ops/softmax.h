/* softmax.h - the parts of softmax that cross entropy is made of too. */
#ifndef TY_COMPILER_OPS_SOFTMAX_H
#define TY_COMPILER_OPS_SOFTMAX_H

#include "compiler/ir/graph.h"

#define TY_SOFTMAX_LOG 1u /* flag of the composite: its logarithm */

/* Softmax of n numbers `stride` apart, or its logarithm; the reference. */
void ty_softmax_row(const double *x, double *y, int64_t n, int64_t stride, bool log_of);
/* x minus its maximum along the axis, and the logarithm of the sum of its exponentials (1 along the axis): their
 * difference is the log softmax. */
ty_val ty_softmax_shifted(ty_graph *g, ty_val x, int axis);
ty_val ty_softmax_log_sum(ty_graph *g, ty_val shifted, int axis);
/* Log softmax along the axis, in primitives. */
ty_val ty_softmax_log(ty_graph *g, ty_val x, int axis);
/* y (dy - sum(dy y)): the gradient of softmax from its result, in primitives. */
ty_val ty_softmax_back(ty_graph *g, ty_val y, ty_val dy, int axis);

#endif
