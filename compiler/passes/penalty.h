/* penalty.h - which weights an l1 or l2 term of the loss reads. Internal to step.c. */
#ifndef TY_COMPILER_PASSES_PENALTY_H
#define TY_COMPILER_PASSES_PENALTY_H

#include "compiler/passes/loss.h"
#include "compiler/passes/parameters.h"

/* Leaves of the weights that term->tensors names (names or shell patterns; none: all), of those that may be trained;
 * tied ones count once. eval: the same weights as evaluation reads them (perhaps their averages). Refuses a pattern
 * that names none. The lists lie in the arena. */
int ty_penalty_operands(const ty_param_set *set, const ty_loss_term *term, ty_arena *arena, ty_loss_operands *train,
                        ty_loss_operands *eval, ty_error *err);

#endif
