/* metric.h - measures of outputs against targets: a sum and a count each, which the caller adds up over batches. */
#ifndef TY_COMPILER_PASSES_METRIC_H
#define TY_COMPILER_PASSES_METRIC_H

#include "compiler/passes/loss.h"

/* How the loss reads the same output, so that accuracy counts the same rows along the same axis. */
typedef struct ty_metric_classes {
    int class_axis;       /* -1 if no term says otherwise */
    int64_t ignore_index; /* -100 */
} ty_metric_classes;

/* accuracy: share of rows whose largest class is the label, ignored rows left out; for outputs with one logit an
 * element (float target, or one class) share of elements where (logit > 0) == (target > 0.5). mae: mean of |output -
 * target|. in->sample_weight is not read. */
int ty_metric_build(ty_graph *g, const ty_metric *metric, const ty_loss_operands *in, const ty_metric_classes *classes,
                    ty_loss_sums *out, ty_error *err);

#endif
