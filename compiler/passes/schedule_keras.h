/* schedule_keras.h - Keras' schedules (keras.optimizers.schedules 3.15) where they differ from those of schedule.c,
 * whose table names them. a: the optimizer's rate (initial_learning_rate), t: steps done, n: decay_steps.
 *
 *     exponential      a decay_rate^(t / n), the exponent floored with staircase
 *     inverse_time     a / (1 + decay_rate t / n), the quotient floored with staircase
 *     polynomial       min_lr + (a - min_lr) (1 - s / n)^power, s = min(t, n); cycles: s = t, and n times
 *                      max(1, ceil(t / n)) in the place of n
 *     cosine           u = a, s = t; with a target u: in the first `warmup` steps a + (u - a) t / warmup, then s = t -
 *                      warmup: u ((1 - alpha) (1 + cos(pi min(s, n) / n)) / 2 + alpha)
 *     cosine_restarts  cycle i is `cycle` cycle_mult^i steps long; at the share f of it a ((1 - alpha) m_mul^i (1 +
 *                      cos(pi f)) / 2 + alpha)
 *
 * PiecewiseConstantDecay, which changes after its boundary, is schedule.c's piecewise with boundaries one later.
 */
#ifndef TY_COMPILER_PASSES_SCHEDULE_KERAS_H
#define TY_COMPILER_PASSES_SCHEDULE_KERAS_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

typedef ty_val ty_schedule_fn(ty_graph *g, const ty_schedule *s, double lr, ty_val t);
ty_schedule_fn ty_schedule_keras_exponential, ty_schedule_keras_inverse_time, ty_schedule_keras_polynomial,
    ty_schedule_keras_cosine, ty_schedule_keras_cosine_restarts;

#endif
