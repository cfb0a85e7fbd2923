/* managed.c - clock, environment and stderr for job files. */
#define _GNU_SOURCE
#include "entrypoint/managed.h"

#include "entrypoint/managed_recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *variable(const char *name)
{
    return getenv(name);
}

ty_jobspec_world ty_managed_world(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (ty_jobspec_world){.now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, .variable = variable};
}

int ty_managed_load_in(const ty_jobspec_world *world, const char *path, ty_arena *a, ty_jobspec *out, ty_error *err)
{
    return ty_jobspec_load(path, world, a, out, err) < 0 ? -1 : ty_managed_recipe_check(out, a, err);
}

int ty_managed_load(const char *path, ty_arena *a, ty_jobspec *out, ty_error *err)
{
    ty_jobspec_world world = ty_managed_world();
    return ty_managed_load_in(&world, path, a, out, err);
}

void ty_managed_warn(const ty_jobspec *job)
{
    for (int i = 0; i < job->n_warnings; i++)
        fprintf(stderr, "warning: %s\n", job->warnings[i]);
}
