/* managed_recipe.h - the recipe that goes along with a managed job, as its container will read it: hyperparameters of
 * the job win over the file.
 *
 * Kept apart from managed.h, since hyperparameters of a request and those of a container are types of one name.
 */
#ifndef TY_ENTRYPOINT_MANAGED_RECIPE_H
#define TY_ENTRYPOINT_MANAGED_RECIPE_H

#include "entrypoint/override.h"
#include "entrypoint/recipe.h"
#include "estimator_spec/job.h"

typedef struct ty_managed_recipe {
    const char *path; /* NULL: none goes along */
    const ty_recipe_override *overrides;
    int n_overrides;
} ty_managed_recipe;

int ty_managed_recipe_find(const ty_jobspec *job, ty_arena *a, ty_managed_recipe *out, ty_error *err);
/* Reads the recipe, if there is one, so that it is refused here and not in the container; then metric definitions for
 * what it will print, where the job has none of its own. */
int ty_managed_recipe_check(ty_jobspec *job, ty_arena *a, ty_error *err);

#endif
