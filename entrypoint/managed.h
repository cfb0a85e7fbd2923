/* managed.h - what the commands for managed jobs share: a job file read in the world of this process. */
#ifndef TY_ENTRYPOINT_MANAGED_H
#define TY_ENTRYPOINT_MANAGED_H

#include "estimator_spec/job.h"

/* This process's clock and environment. */
ty_jobspec_world ty_managed_world(void);
/* A job file in a world, with what follows from the recipe that goes along (managed_recipe.h). */
int ty_managed_load_in(const ty_jobspec_world *world, const char *path, ty_arena *a, ty_jobspec *out, ty_error *err);
/* The same in this process's. */
int ty_managed_load(const char *path, ty_arena *a, ty_jobspec *out, ty_error *err);
/* Its warnings on stderr, a line each. */
void ty_managed_warn(const ty_jobspec *job);

#endif
