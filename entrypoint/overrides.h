/* overrides.h - arguments of the form --key=value or --key value as overrides of a recipe. */
#ifndef TY_ENTRYPOINT_OVERRIDES_H
#define TY_ENTRYPOINT_OVERRIDES_H

#include "base/arena.h"
#include "base/error.h"
#include "entrypoint/command.h"
#include "entrypoint/job.h"
#include "entrypoint/override.h"

/* args is NULL-terminated. Fails with TY_E_USAGE on anything else than --key with a value. */
int ty_overrides_parse(const char *const *args, ty_arena *a, const ty_recipe_override **out, int *n_out, ty_error *err);

/* How every command begins that takes a recipe: its settings go into the job. */
int ty_overrides_take(const ty_arguments_given *given, ty_arena *a, ty_job *job, ty_error *err);

#endif
