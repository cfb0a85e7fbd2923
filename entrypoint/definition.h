/* definition.h - a metric line's names as metric definitions of a managed job: {"train:loss": " loss=([-+0-9.eE]+)"}.
 *
 * Apart from managed_recipe.h, since metrics of the compiler and those of the output are types of one name.
 */
#ifndef TY_ENTRYPOINT_DEFINITION_H
#define TY_ENTRYPOINT_DEFINITION_H

#include "base/arena.h"
#include "base/doc.h"

/* Adds one to the map (estimator_spec/tree.h). *n_left_out counts those that the service takes no more. */
int ty_definition_add(ty_doc *map, bool validation, const char *name, int *n_left_out, ty_arena *a, ty_error *err);

#endif
