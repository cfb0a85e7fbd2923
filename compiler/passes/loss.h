/* loss.h - terms of the loss as graph values. Formulas: PyTorch's, as train-cases/README.md writes them down.
 *
 * Every term is a quotient of two sums over its elements, so that batches of different size can be added up and rows
 * that do not count can be left out. All arithmetic is f32.
 */
#ifndef TY_COMPILER_PASSES_LOSS_H
#define TY_COMPILER_PASSES_LOSS_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

/* value = sum / count, both f32[]. The term's factor (ty_loss_term.weight) is not in it. */
typedef struct ty_loss_sums {
    ty_val sum, count;
} ty_loss_sums;

/* What a term reads. */
typedef struct ty_loss_operands {
    ty_val output;
    ty_val target;        /* TY_NONE for terms without */
    ty_val sample_weight; /* TY_NONE: all weigh the same */
    ty_val rows;          /* bool[batch]: rows that count; TY_NONE: all do */
} ty_loss_operands;

/* Appends one term. Refuses shapes that do not fit, naming output and target. On failure the error is in the graph,
 * too. */
int ty_loss_term_build(ty_graph *g, const ty_loss_term *term, const ty_loss_operands *in, ty_loss_sums *out,
                       ty_error *err);

/* "softmax_cross_entropy" */
const char *ty_loss_text(ty_loss_kind kind);

/* Shared with metrics. */

/* bool[batch] stretched to the shape of x, whose axis 0 is the batch or a multiple of it (rows in order).
 * TY_NONE with an error if it is neither. */
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
