/* in_order.h - sums over replicas on GPUs in the order of their numbers: ((x0 + x1) + x2) ..., which NCCL does not
 * promise.
 *
 *     if (ty_in_order_of(g, node, &o))                   an exchange whose bits depend on an order
 *         launch = ty_in_order_render(g, node, &o, &text)
 *
 * NCCL moves, a kernel adds up, all on the stream of exchanges. An operand of n elements is cut into a part for each
 * replica and a rest:
 *
 * - parts: each replica gets its own part of all operands side by side in `room` (ncclSend, ncclRecv), adds them up,
 *   and hands the sum to all (ncclAllGather); of an exchange in parts (ZeRO) it keeps the sum.
 * - rest: all get all rests (ncclAllGather) and add them up alike; what is left over, and short operands.
 *
 * This moves as many bytes as the best sum does. 16-bit floats are added up in float32 and rounded once. An element is
 * summed alone, so that its bits depend neither on where an operand is cut nor on hosts and processes.
 */
#ifndef TY_TARGET_CUDA_IN_ORDER_H
#define TY_TARGET_CUDA_IN_ORDER_H

#include "base/buf.h"
#include "compiler/ir/graph.h"
#include "compiler/target/cuda/render.h"

typedef struct ty_in_order {
    int64_t part, rest; /* elements */
    size_t room_bytes;  /* of all replicas' parts and rests */
} ty_in_order;

/* False where there is no order to keep: nothing is added up, or integers. */
bool ty_in_order_of(const ty_graph *g, uint32_t node, ty_in_order *out);
/* Parameters and body of the kernel: room, where the own part's sum goes, where the rest's goes. */
ty_cuda_launch ty_in_order_render(const ty_graph *g, uint32_t node, const ty_in_order *o, ty_buf *text);

#endif
