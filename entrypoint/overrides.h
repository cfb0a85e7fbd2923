/* overrides.h - arguments of the form --key=value or --key value, and hyperparameters, as overrides of a recipe. */
#ifndef TY_ENTRYPOINT_OVERRIDES_H
#define TY_ENTRYPOINT_OVERRIDES_H

#include "base/arena.h"
#include "base/error.h"
#include "container/config/hyperparameters.h"
#include "entrypoint/command.h"
#include "entrypoint/job.h"
#include "entrypoint/override.h"

/* args is NULL-terminated. Fails with TY_E_USAGE on anything else than --key with a value. */
int ty_overrides_parse(const char *const *args, ty_arena *a, const ty_recipe_override **out, int *n_out, ty_error *err);

/* The user's hyperparameters of a job, into out[h->n_items]; returns how many there are. */
int ty_overrides_of_hyperparameters(const ty_hyperparameters *h, ty_arena *a, ty_recipe_override *out);

/* How every command begins that takes a recipe: its settings go into the job. */
int ty_overrides_take(const ty_arguments_given *given, ty_arena *a, ty_job *job, ty_error *err);

#endif
