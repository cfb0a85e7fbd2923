/* locate.h - where a job's recipe lies.
 *
 * Order: what the job names (`recipe`, or a program that ends in .yaml), relative to the code folder, then to the
 * channels config, model and train; without a name: train.yaml in the same places.
 */
#ifndef TY_ENTRYPOINT_LOCATE_H
#define TY_ENTRYPOINT_LOCATE_H

#include "base/arena.h"
#include "base/error.h"
#include "entrypoint/job.h"

#include <stdbool.h>

/* True for a name that ends in .yaml or .yml. */
bool ty_recipe_is_name(const char *name);
/* named: or NULL. *out lies in the arena. The error lists where it looked. */
int ty_recipe_locate(const char *named, const char *code_folder, const ty_job_channel *channels, int n_channels,
                     ty_arena *a, const char **out, ty_error *err);

#endif
