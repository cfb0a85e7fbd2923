/* metric.h - measures of outputs against targets: small arrays each, which the caller adds up over batches
 * (entrypoint/tally.h), so that the value is exact over the whole evaluation set and not a mean of batches.
 *
 * Rows are those of the loss on the same output: classes along its axis, ignored labels left out, rows behind the valid
 * ones left out. "One number an element" means: as many numbers as the target and no class axis.
 *     accuracy   share of rows whose largest class is the label; of single numbers: (x > threshold) == (target >
 *                0.5)
 *     top_k      share of rows whose label is among the k largest (of equal ones the first count; NaN is never a hit)
 *     mae, mse   mean of |output - target|, of its square; rmse: the root of the latter
 *     mape       mean of |output - target| / max(|target|, 2.22e-16), as scikit-learn has it: 0.1 for a tenth
 *     r2         1 - sum (output - target)^2 / sum (target - mean target)^2, over all elements
 *     perplexity exp of the mean cross entropy of the rows, from logits or log-probabilities, without class weights and
 *                smoothing
 *     precision, recall, f1   of the positive class: single numbers above `threshold` against target > 0.5, or class 1
 *                of two; macro: plain mean over the classes that occur as label or as prediction (as scikit-learn).
 *                A quotient 0 / 0 is 0
 *     iou        intersection over union, hits / (said + true - hits), as precision: Jaccard's index, Keras' MeanIoU
 *     auc        area under the ROC curve: of single numbers, or of two classes by the difference of their logits. The
 *                rank statistic of Mann and Whitney over all rows, ties at one half. NaN scores rank highest
 *     average_precision  sum of (recall - recall before) times precision, over the scores from the highest down, of the
 *                same rows and scores (scikit-learn's: steps, not trapezoids)
 * With dense labels (ty_loss_term.dense_labels) a row's label is the most probable class.
 */
#ifndef TY_COMPILER_PASSES_METRIC_H
#define TY_COMPILER_PASSES_METRIC_H

#include "compiler/passes/loss.h"

/* How the loss reads the same output, so that accuracy counts the same rows along the same axis. */
typedef struct ty_metric_classes {
    int class_axis;       /* -1 if no term says otherwise */
    int64_t ignore_index; /* -100 */
    bool dense_labels;
} ty_metric_classes;

#define TY_METRIC_MAX_PARTS 2

/* The program outputs of a metric: "<name>.<suffix>" each. */
typedef struct ty_metric_parts {
    int n;
    const char *suffix[TY_METRIC_MAX_PARTS];
    ty_val value[TY_METRIC_MAX_PARTS];
} ty_metric_parts;

/* Parts are rows, of all of which the value is made; else sums. */
bool ty_metric_is_by_row(ty_metric_kind kind);
/* The kinds above, with the outputs that compiler.h lists. in->sample_weight is not read. */
int ty_metric_build(ty_graph *g, const ty_metric *metric, const ty_loss_operands *in, const ty_metric_classes *classes,
                    ty_metric_parts *out, ty_error *err);

#endif
