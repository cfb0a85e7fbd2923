/* ctc.h - connectionist temporal classification: the loss of a sequence of labels whose places in time are unknown.
 *
 * Graves, Fernandez, Gomez, Schmidhuber: Connectionist Temporal Classification, ICML 2006. The term of a sample is
 * -log of the summed probability of all ways to write its labels into T steps, each label on one or more steps, blanks
 * between them where wanted and, between equal labels, where needed. With the labels l of length L extended to
 * e = (blank, l_1, blank, ... l_L, blank) and p = log softmax of the output:
 *     a_0(s) = p_0[e_s] for s < 2, else -inf
 *     a_t(s) = p_t[e_s] + log(exp a_{t-1}(s) + exp a_{t-1}(s - 1) + exp a_{t-1}(s - 2))
 * the last of the three only where e_s is a label other than e_{s-2}; the term is -log(exp a(2L) + exp a(2L - 1)) at
 * the sample's last step.
 *
 * T is a static shape, so that the recursion is unrolled: a handful of primitives a step, differentiated like
 * everything else. Log softmax leaves log-probabilities as they are: the output may be either.
 */
#ifndef TY_COMPILER_PASSES_CTC_H
#define TY_COMPILER_PASSES_CTC_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

/* f32[N]: the term of each sample divided by max(1, its label length). x: [N, T, C], or [T, N, C] if term->time_axis is
 * 0. labels: integers [N, S], those beyond a sample's length are not read but must be classes. Lengths: integers of N
 * elements, inputs 1 to T, labels 0 to S; TY_NONE: full. A sample whose labels do not fit into its steps: infinity, or
 * 0 with term->zero_infinity, without slope. */
ty_val ty_ctc_terms(ty_graph *g, const ty_loss_term *term, ty_val x, ty_val labels, ty_val input_lengths,
                    ty_val target_lengths);

#endif
