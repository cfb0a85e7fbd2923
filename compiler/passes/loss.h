/* loss.h - terms of the loss as graph values. Formulas: PyTorch's, as train-cases/README.md writes them down.
 *
 * Every term is a quotient of two sums over its elements, so that batches of different size can be added up and rows
 * that do not count can be left out. All arithmetic is f32.
 *
 * Beyond that file; x output, y target, m margin, mean over elements (rows, samples) weighed by the sample weights
 *     softmax_cross_entropy with smoothing e and class weights u: as torch.nn.functional.cross_entropy, sum over rows
 *         of -(1 - e) u_y p_y - e / C sum_c u_c p_c, divided by the sum of u_y
 *     softmax_cross_entropy with dense labels: y' = (1 - e) y + e / C; mean over rows of -sum_c u_c y'_c p_c, divided
 *         by the number of rows even with class weights u (as torch.nn.functional.cross_entropy of probabilities)
 *     hinge: mean of max(0, m - s x), s = 1 where y > 0, else -1: targets are 1 and -1, or 1 and 0 (Keras' hinge)
 *     multi_margin: rows of C classes, mean of u[y] / C * sum over c != y of max(0, m - x[y] + x[c])
 *         (torch.nn.functional.multi_margin_loss, p = 1)
 *     cosine: mean over rows of 1 - cos(x, y), y a vector as x. The cosine with a vector of zeros is 0, without slope
 *     cosine_embedding: x and z two outputs: 1 - cos(x, z) where y > 0, else max(0, cos(x, z) - m)
 *         (torch.nn.functional.cosine_embedding_loss)
 *     contrastive: d = |x - z|; y d^2 / 2 + (1 - y) max(0, m - d)^2 / 2, y = 1: a pair that belongs together. The
 *         margin form: Hadsell, Chopra, LeCun, Dimensionality Reduction by Learning an Invariant Mapping, 2006, eq. 4,
 *         whose Y is 1 - y
 *     ctc: ctc.h; mean over samples of the term divided by the label length (at least 1), as
 *         torch.nn.functional.ctc_loss with reduction="mean"
 *     keras_...: loss_keras.h
 *     l1, l2: sum of |w|, of w^2, over all elements of the tensors; not divided by anything
 */
#ifndef TY_COMPILER_PASSES_LOSS_H
#define TY_COMPILER_PASSES_LOSS_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

/* value = sum / count, both f32[]. The term's factor (ty_loss_term.weight) is not in it. */
typedef struct ty_loss_sums {
    ty_val sum, count;
} ty_loss_sums;

/* What a term reads. The nll of an output that is a log-softmax is the cross-entropy of its logits: the composite, with
 * one pass over the logits and nothing kept but them. */
typedef struct ty_loss_operands {
    ty_val output;
    bool is_kept;                         /* the output is computed anyway: nll reads it in place of its logits */
    bool evaluates;                       /* class weights of Keras' losses count in training alone */
    ty_val target;                        /* TY_NONE for terms without */
    ty_val sample_weight;                 /* TY_NONE: all weigh the same */
    ty_val rows;                          /* bool[batch], or of more leading axes: what counts; TY_NONE: all */
    ty_val other;                         /* the second output; read by pair losses alone */
    ty_val input_lengths, target_lengths; /* read by ctc alone; TY_NONE: full length */
    const ty_val *tensors;                /* weights; read by l1 and l2 alone */
    int n_tensors;
} ty_loss_operands;

/* Appends one term. Refuses shapes that do not fit, naming output and target. On failure the error is in the graph,
 * too. */
int ty_loss_term_build(ty_graph *g, const ty_loss_term *term, const ty_loss_operands *in, ty_loss_sums *out,
                       ty_error *err);

/* "softmax_cross_entropy" */
const char *ty_loss_text(ty_loss_kind kind);
/* What a kind reads: a target; a second output; weights of the model in place of an output. */
bool ty_loss_needs_target(ty_loss_kind kind);
bool ty_loss_is_pair(ty_loss_kind kind);
bool ty_loss_is_penalty(ty_loss_kind kind);

/* Shared with metrics. */

/* bool[batch] stretched to the shape of x, whose axis 0 is the batch or a multiple of it (rows in order); bool of more
 * axes, which are x's first ones, likewise. TY_NONE with an error if it is neither. */
ty_val ty_loss_stretch_rows(ty_graph *g, ty_val rows, ty_val x);
/* The target in the shape of x if the two differ in dims of 1 only; TY_NONE with an error otherwise. */
ty_val ty_loss_match(ty_graph *g, ty_val target, ty_val x, const char *what);
/* Classes last, everything else flattened: [R, C], and the labels as i64[R]. TY_NONE with an error if they do not fit.
 */
ty_val ty_loss_class_rows(ty_graph *g, ty_val x, int class_axis);
ty_val ty_loss_labels(ty_graph *g, ty_val target, ty_val x, int class_axis);
/* bool[batch] as bool[R] of ty_loss_class_rows(x). */
ty_val ty_loss_class_mask(ty_graph *g, ty_val rows, ty_val x, int class_axis);
/* Sum over everything of x, or of x where keep is true (bool, x's shape; TY_NONE: all). */
ty_val ty_loss_sum(ty_graph *g, ty_val x, ty_val keep);

#endif
