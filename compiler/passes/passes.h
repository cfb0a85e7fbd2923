/* passes.h - the passes, in the order in which compile.c calls them. One file each.
 *
 * A pass either appends to the graph it is given (autodiff, loss, update) or makes a new graph by re-emitting the live
 * nodes of the old one through the constructors (lower, simplify). Each says what it needs, keeps and breaks.
 */
#ifndef TY_COMPILER_PASSES_H
#define TY_COMPILER_PASSES_H

#include "compiler/apart.h"
#include "compiler/ir/graph.h"

/* concerns.c - false if the pass of this name (compile.c's table) would give back the same graph, because g has none of
 * the ops that it is about. Such a pass is not run: re-emitting a large graph takes milliseconds. */
bool ty_pass_concerns(const char *pass, const ty_graph *g);

/* autodiff.c - reverse mode.
 * Appends the gradient of the scalar `loss` with respect to wrt[i] (any values of the graph); grad[i] receives a value
 * of wrt[i]'s type, zeros if the loss does not depend on it. Fails with NO_GRADIENT naming the node if the path leads
 * through an op without a gradient. Contributions are added in reverse id order. Nodes get the origin of the node whose
 * gradient they compute, behind TY_ORIGIN_GRADIENT. Needs: nothing. Keeps: everything. */
#define TY_ORIGIN_GRADIENT "gradient of "
/* True for nodes that backward has made. */
bool ty_origin_is_gradient(const char *origin);
int ty_pass_autodiff(ty_graph *g, ty_val loss, const ty_val *wrt, int n_wrt, ty_val *grad, ty_error *err);

/* layout.c - models that keep channels last turn data before each convolution and back behind it. Values between follow
 * those turns, so that the passes behind meet the same graph as of a model that keeps channels first. Makes a new
 * graph; *out is NULL where no convolution, pool or batch norm reads a turn: nothing to do. Needs: nothing. Keeps:
 * everything else, sums up to rounding. */
int ty_pass_straighten(const ty_graph *in, ty_graph **out, ty_error *err);

/* attend.c - attention and its gradient become library calls that work in tiles, where that is faster than products and
 * a softmax. Makes a new graph. Needs: attention whole, before lower. Keeps: names, states, outputs, effects, origins.
 * On a CPU that is float32 of a certain size, on a GPU 16-bit numbers with heads of 16, 32 ... 128. */
int ty_pass_attend(const ty_graph *in, ty_graph **out, ty_error *err);
int ty_pass_attend_gpu(const ty_graph *in, ty_graph **out, ty_error *err);

/* pack.c - attention whose q, k and v are slices of one tensor takes this as one operand. Makes a new graph. Needs:
 * attend. Keeps: everything else, bit for bit. */
int ty_pass_pack(const ty_graph *in, ty_graph **out, ty_error *err);

/* lower.c - takes composites apart. Makes a new graph with the nodes live in any tape, in which no COMPOSITE is left.
 * Keeps: names, states, outputs, effects, origins. */
int ty_pass_lower(const ty_graph *in, ty_graph **out, ty_error *err);

/* mask.c - gradients of ReLUs read their mask from the result, so that the operand need not be kept; where only a
 * maximum over windows reads the result, from that maximum, before its gradient is spread. Makes a new graph.
 * Needs: the ReLU in its select form, before its gradient in id order. Keeps: everything else, bit for bit. */
int ty_pass_mask(const ty_graph *in, ty_graph **out, ty_error *err);
/* The node of x <= 0 if `select` is the ReLU of x, else TY_NONE. */
uint32_t ty_mask_of_relu(const ty_graph *g, uint32_t select);

/* layout.c - convolutions and pools of f32, bf16 and f16 become channels-last, values between them follow, 1 x 1
 * convolutions become products. Makes a new graph. Needs: no composites. Keeps: states, inputs, outputs with their
 * shapes; sums may run in another order. */
int ty_pass_layout(const ty_graph *in, ty_graph **out, ty_error *err);
/* For a GPU: convolutions of 16 bits, weights too; with tf32 those of float32 as well, else they stay. Strided ones
 * stay convolutions but for their gradients for x. A weight's gradient is rounded to 16 bits. */
int ty_pass_layout_gpu(const ty_graph *in, ty_graph **out, ty_error *err);
int ty_pass_layout_gpu_tf32(const ty_graph *in, ty_graph **out, ty_error *err);

/* epilogue.c - biases, GELU, ReLU and their gradients become part of the products before them (compiler/ops/linear.h).
 * Makes a new graph. Needs: gelu and gelu_grad whole; before lower. Keeps: everything else, and what is to stay apart;
 * what is taken rounds differently in 16 bits. */
int ty_pass_epilogue(const ty_graph *in, ty_apart apart, ty_graph **out, ty_error *err);

/* attach.c - on a GPU, scales, biases, sums and ReLUs behind convolutions become part of them (conv_bias). Makes a new
 * graph. Needs: no composites; after mask, which lets gradients read a ReLU's result, and layout. Keeps: everything
 * else, and what is to stay apart; what is taken may round differently. tf32: float32 goes to tensor cores, so products
 * that were convolutions of one element are taken in float32 too. */
int ty_pass_attach(const ty_graph *in, ty_apart apart, bool tf32, ty_graph **out, ty_error *err);

/* winograd.c - marks the convolutions for which Winograd's algorithm is quicker. Makes a new graph. Needs: no
 * composites. Keeps: all else; what is marked may round differently. */
int ty_pass_winograd(const ty_graph *in, ty_graph **out, ty_error *err);

/* narrow.c - on a CPU, what is turned is turned in 16 bits where one side has no more. Makes a new graph; *out is NULL
 * where there is nothing to do. Needs: no composites; after layout, which adds turns. Keeps: everything else, bit for
 * bit. */
int ty_pass_narrow(const ty_graph *in, ty_graph **out, ty_error *err);

/* stride.c - on a GPU without TF32, gradients for x of strided float32 convolutions of channels-first data become those
 * of convolutions with a step of one over more channels. Makes a new graph. Needs: no composites; after layout, which
 * turns those that tensor cores take. Keeps: everything else, sums up to rounding. */
int ty_pass_stride(const ty_graph *in, ty_graph **out, ty_error *err);

/* chunk.c - large logits are computed, reduced and differentiated a few rows at a time (chunk.h). Makes a new graph;
 * *out is NULL where there are no such logits: nothing to do. Needs: no composites; before split. Keeps: everything
 * else; sums over rows may round differently. */
int ty_pass_chunk(const ty_graph *in, ty_graph **out, ty_error *err);

/* align.c - 16-bit products for a GPU get zeros at the end of rows of an odd length, convolutions behind an odd number
 * of channels. Makes a new graph. Needs: no
 * composites; after chunk, which looks for products of logits. Keeps: everything else, sums up to rounding. */
int ty_pass_align(const ty_graph *in, ty_graph **out, ty_error *err);

/* accumulate.c - x + scatter(0, i, u) becomes scatter(x, i, u). Makes a new graph. Needs: no composites. Keeps: names,
 * states, outputs, effects, origins; sums up to rounding. */
int ty_pass_accumulate(const ty_graph *in, ty_graph **out, ty_error *err);

/* bucket.c - large groups of weights are updated piece by piece as their gradients come, so that never all gradients
 * are in memory. Makes a new graph. Needs: gradients of a group as one concatenation; before split. Keeps: everything
 * else; the norm of the gradient up to rounding. */
int ty_pass_bucket(const ty_graph *in, ty_graph **out, ty_error *err);
int ty_pass_bucket_gpu(const ty_graph *in, ty_graph **out, ty_error *err); /* in larger pieces */

/* split.c - reductions of a large tensor to one number become two steps; for a GPU also those to a few hundred. Makes a
 * new graph. Keeps: everything else. */
int ty_pass_split(const ty_graph *in, ty_graph **out, ty_error *err);
int ty_pass_split_gpu(const ty_graph *in, ty_graph **out, ty_error *err);

#endif
