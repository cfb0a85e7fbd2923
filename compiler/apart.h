/* apart.h - calls that a library refuses together with what follows them are compiled apart.
 *
 * Whether there is an algorithm or an engine for both shows when the library is asked, on the GPU. What it refuses of
 * one call is taken as refused of all of a kind: those that do the same beside their product or convolution, in the
 * same type. All others stay together with what follows them. The error says which kinds, and the program is compiled
 * again with these apart:
 *
 *     ty_apart_refused(g, node, err);                               the library said no
 *     if (apart & ty_apart_linear(TY_LINEAR_GELU, TY_BF16)) ...     a pass that would put them together
 *
 * A kind that is kept apart is not asked for again, so each time there is at least one more, of a few dozen.
 */
#ifndef TY_COMPILER_APART_H
#define TY_COMPILER_APART_H

#include "compiler/ir/graph.h"
#include "compiler/ops/linear.h"

/* A set of kinds, a bit each. Empty for types in which nothing is put together: all but f32, bf16 and f16. */
typedef uint64_t ty_apart;

ty_apart ty_apart_linear(ty_linear_kind kind, ty_dtype dtype);
/* What conv_bias does beside its bias; grouped: channels are convolved in groups, for which engines are fewer. */
ty_apart ty_apart_conv(bool adds, bool relu, bool grouped, ty_dtype dtype);
/* Kinds that libraries have and that are quicker apart: in 16 bits what turns a gradient into an activation's, and sums
 * for a bias. On an H100 with cuBLASLt 13.1 the product of GPT-2's widest layer takes .11 ms, with DGELU_BGRAD behind
 * it .48, and a kernel that reads both and writes the gradient .10 (16,384 x 3,072 bfloat16 numbers); the smaller
 * network's .03, .26 and .05; DRELU_BGRAD of 65,536 x 128 numbers .05 where the product with a ReLU takes .015. Sums
 * alone, BGRADA and BGRADB, cost what they save, one reading of a gradient: on an H200 a step of BERT takes 40.0 ms and
 * one of GPT-2 31.9 either way. A bias alone is quicker with its product: 40.0 ms in place of 40.9, 31.8 of 32.2. */
ty_apart ty_apart_slow(void);
/* The kind that a node is; none if it is only a product or a convolution. */
ty_apart ty_apart_of(const ty_graph *g, uint32_t node);

/* Of an error about the node: TY_E_NO_EPILOGUE and TY_E_NO_FUSION get the kind as err->which. */
void ty_apart_refused(const ty_graph *g, uint32_t node, ty_error *err);

#endif
