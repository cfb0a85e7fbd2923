/* managed.h - what the commands for managed jobs share: a job file read in the world of this process. */
#ifndef TY_ENTRYPOINT_MANAGED_H
#define TY_ENTRYPOINT_MANAGED_H

#include "estimator_spec/job.h"

/* With this process's clock and environment. */
int ty_managed_load(const char *path, ty_arena *a, ty_jobspec *out, ty_error *err);
/* Its warnings on stderr, a line each. */
void ty_managed_warn(const ty_jobspec *job);

#endif
