/* loss_keras.h - Keras' losses (keras.losses 3.15). Part of loss.c, whose table names them.
 *
 * The output x has C numbers in each of its rows, along class_axis; every row has a number r. The loss is
 * sum(w r) / n: w weighs the row (sample weights, one a row or one a row of the batch, times, in training, the class
 * weight of its target), and n is the number of rows, whatever they weigh; with reduction sum it is 1, with
 * weighted_mean the sum of w. Rows that a mask leaves out are in neither sum. y target, e label smoothing:
 *
 *     sparse_crossentropy        -log p[y]; rows of the label ignore_index are left out
 *     categorical_crossentropy   -sum y' log p, y' = y (1 - e) + e / C
 *     categorical_focal          -sum alpha (1 - p)^gamma y' log p
 *     binary_crossentropy        mean of b = -(y' log p + (1 - y') log(1 - p)), y' = y (1 - e) + e / 2
 *     binary_focal               mean of (1 - q)^gamma b, q = y' p + (1 - y') (1 - p); balanced: times y' alpha +
 *                                (1 - y') (1 - alpha)
 *     mse, mae                   mean of (x - y)^2, of |x - y|
 *     mape                       100 times the mean of |y - x| / max(|y|, 1e-7)
 *     msle                       mean of (log(1 + max(x, 1e-7)) - log(1 + max(y, 1e-7)))^2
 *     huber                      mean of d^2 / 2 where |d| <= delta, else delta |d| - delta^2 / 2; d = x - y
 *     log_cosh                   mean of log(cosh(x - y))
 *     kl_divergence              sum of y log(y / x), both clipped to [1e-7, 1]
 *     poisson                    mean of x - y log(x + 1e-7)
 *     cosine_similarity          -sum(x y) / (|x| |y|), lengths at least 1e-7
 *     hinge, squared_hinge       mean of max(0, 1 - y' x), of its square; y' = 2 y - 1 if every y of the batch is 0 or
 * 1 categorical_hinge          max(0, max of (1 - y) x, minus sum of y x, plus 1)
 *
 * p is the softmax of x (binary: its sigmoid) with from_logits. Without, p is x; but where x is itself the result of a
 * softmax (a sigmoid), crossentropies are computed from what went into it, and nothing is clipped. Other x are clipped
 * to [1e-7, 1 - 1e-7], after rows of categorical_crossentropy were divided by their sum.
 */
#ifndef TY_COMPILER_PASSES_LOSS_KERAS_H
#define TY_COMPILER_PASSES_LOSS_KERAS_H

#include "compiler/passes/loss.h"

ty_loss_sums ty_loss_keras(ty_graph *g, const ty_loss_term *t, const ty_loss_operands *in);

bool ty_loss_is_keras(ty_loss_kind kind);
/* Keras' kinds that read class numbers; a number for each class. */
bool ty_loss_keras_has_labels(ty_loss_kind kind);
bool ty_loss_keras_has_shares(ty_loss_kind kind);

#endif
