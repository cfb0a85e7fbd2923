/* constrain.h - weights held to what the model asks of them (ty_constraint, train_spec.h). Internal to step.c. */
#ifndef TY_COMPILER_PASSES_CONSTRAIN_H
#define TY_COMPILER_PASSES_CONSTRAIN_H

#include "compiler/passes/parameters.h"

/* w, of the weight's own shape, as the constraint wants it. */
ty_val ty_constrain(ty_graph *g, const ty_constraint *c, ty_val w);
/* The flat weights of a group with all their constraints; `flat` itself if there are none. */
ty_val ty_constrain_group(const ty_param_set *set, const ty_param_group *group, ty_graph *g, ty_val flat);
bool ty_constrain_has_some(const ty_param_set *set, const ty_param_group *group);

#endif
