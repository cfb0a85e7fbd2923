/* parts.h - a sum of parts that lie side by side, put together.
 *
 * A network that is unrolled reads its steps as slices of one value. The gradient of each is that slice's with zeros
 * around it, and all of them are added up: an element of the sum asks each step whether it is in there. Put together,
 * each step writes its own.
 */
#ifndef TY_COMPILER_PASSES_PARTS_H
#define TY_COMPILER_PASSES_PARTS_H

#include "compiler/ir/graph.h"

/* The concatenation that equals `sum`, where that is a sum of values padded by zeros along the slowest axis (of more
 * than one entry), which fill it without a gap and do not overlap; else `sum`. */
ty_val ty_parts_joined(ty_graph *g, ty_val sum);

#endif
