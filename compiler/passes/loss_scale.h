/* loss_scale.h - keeps float16 gradients in the range of float16 (arXiv:1710.03740, section 3.2).
 *
 * The loss is multiplied by a scale, the gradients are divided by it. A step whose gradients are not all finite changes
 * no weight and halves the scale; 2,000 finite steps in a row double it. The rule and the numbers are those of
 * PyTorch's GradScaler, with an upper limit, since a gradient of zeros would let the scale grow without end. All of it
 * lives in the graph: states "loss_scale" f32[], "loss_scale.good" i64[] (finite steps since the last change) and
 * "loss_scale.updates" i64[] (steps that changed the weights, which is what an optimizer counts).
 */
#ifndef TY_COMPILER_PASSES_LOSS_SCALE_H
#define TY_COMPILER_PASSES_LOSS_SCALE_H

#include "compiler/ir/graph.h"

#define TY_LOSS_SCALE_START    65536.0
#define TY_LOSS_SCALE_MOST     16777216.0
#define TY_LOSS_SCALE_INTERVAL 2000

typedef struct ty_loss_scale {
    bool on;
    ty_val scale;   /* f32[], before the step */
    ty_val updates; /* i64[], before the step */
    ty_val finite;  /* bool[]: the step counts; after ty_loss_scale_unscale */
    int scale_state, good_state, updates_state;
} ty_loss_scale;

/* Adds the states. */
void ty_loss_scale_begin(ty_graph *g, ty_loss_scale *s);
/* The loss to differentiate. As all functions below: what is given, if the scale is not on. */
ty_val ty_loss_scale_loss(ty_graph *g, const ty_loss_scale *s, ty_val loss);
/* Divides each grad[i] (flat, f32) and finds out whether all are finite. Of the first n_own each of so many replicas
 * has a part of its own. */
void ty_loss_scale_unscale(ty_graph *g, ty_loss_scale *s, ty_val *grad, int n, int n_own, int replicas);
/* The new value of a state, or the old one if the step does not count. */
ty_val ty_loss_scale_guard(ty_graph *g, const ty_loss_scale *s, ty_val old, ty_val new_value);
/* Assigns the scale and its counters under the tape LAST; outputs "loss_scale", that of the next step. */
void ty_loss_scale_end(ty_graph *g, const ty_loss_scale *s);

#endif
