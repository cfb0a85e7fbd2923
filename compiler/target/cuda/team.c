/* team.c - see compiler/team.h. */
#include "compiler/team.h"

#include "compiler/target/cuda/gpu.h"
#include "compiler/target/cuda/libraries.h"
#include "compiler/target/cuda/nccl.h"

#include <stdlib.h>

struct ty_team {
    ty_gpu gpu;
    ty_nccl_group *group;
    char version[TY_LIBRARY_VERSION_BYTES];
};

/* Replicas that this process's one stands among; whoever has no GPU says so. */
static int team_join(ty_team *team, int gpu, const ty_nccl_others *others, ty_error *err)
{
    if (ty_gpu_open(gpu, &team->gpu, err) == 0)
        return ty_nccl_join(others, TY_CROSS_NCCL, &team->group, err);
    others->meet(others->ctx, false, NULL, 0, err);
    return -1;
}

int ty_team_open(int gpu, const ty_exchange *exchange, int n, ty_team **out, ty_error *err)
{
    const ty_nccl_others others = {
        .replica = exchange->replica, .n = n, .inside = n, .ctx = exchange->ctx, .meet = exchange->meet};
    ty_team *team = calloc(1, sizeof *team);
    if (!team) {
        ty_error_set(err, TY_E_LIMIT, "no memory for a team of GPUs");
        others.meet(others.ctx, false, NULL, 0, err);
        return -1;
    }
    if (team_join(team, gpu, &others, err) < 0) {
        ty_team_close(team, false);
        return -1;
    }
    ty_nccl_version(team->version);
    *out = team;
    return 0;
}

void ty_team_close(ty_team *team, bool cleanly)
{
    if (!team)
        return;
    if (!cleanly && team->group)
        ty_nccl_abort(team->group);
    ty_nccl_close(team->group);
    ty_gpu_close(&team->gpu);
    free(team);
}

const char *ty_team_version(const ty_team *team)
{
    return team->version;
}

bool ty_team_reduces(ty_dtype dtype)
{
    return ty_nccl_reduces(dtype);
}

int ty_team_alloc(ty_team *team, size_t bytes, char **out, ty_error *err)
{
    CUdeviceptr at;
    int rc = ty_gpu_alloc(&team->gpu, bytes, "numbers to exchange", &at, err);
    *out = (char *)(uintptr_t)at;
    return rc;
}

void ty_team_release(ty_team *team, char *at)
{
    ty_gpu_free(&team->gpu, (CUdeviceptr)(uintptr_t)at);
}

int ty_team_put(ty_team *team, char *to, const void *from, size_t bytes, ty_error *err)
{
    const ty_gpu *g = &team->gpu;
    unsigned status = g->cu->cuMemcpyHtoDAsync_v2((CUdeviceptr)(uintptr_t)to, from, bytes, g->stream);
    return ty_gpu_status(g, status, "copying to the GPU", err) < 0 ? -1 : ty_gpu_wait(g, err);
}

int ty_team_get(ty_team *team, void *to, const char *from, size_t bytes, ty_error *err)
{
    const ty_gpu *g = &team->gpu;
    unsigned status = g->cu->cuMemcpyDtoHAsync_v2(to, (CUdeviceptr)(uintptr_t)from, bytes, g->stream);
    return ty_gpu_status(g, status, "copying from the GPU", err) < 0 ? -1 : ty_gpu_wait(g, err);
}

int ty_team_begin(ty_team *team, const ty_team_call *call, ty_error *err)
{
    return ty_nccl_call(team->group, call, team->gpu.stream, err);
}

int ty_team_wait(ty_team *team, ty_error *err)
{
    ty_error nccl = {0};
    int rc = ty_gpu_wait(&team->gpu, err);
    if (ty_nccl_failed(team->group, &nccl) == 0)
        return rc;
    *err = nccl;
    return -1;
}
