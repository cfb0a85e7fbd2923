/* perf_gpu.c - see perf_gpu.h. */
#include "entrypoint/perf_gpu.h"

#include "compiler/machine.h"
#include "compiler/team.h"
#include "entrypoint/company.h"
#include "entrypoint/device.h"

struct ty_perf_gpu {
    ty_arena arena;
    ty_team *team;
    ty_perf_carrier carrier;
    const char *text;
};

/* ---- the carrier ---- */

static int gpu_alloc(void *ctx, size_t bytes, char **out, ty_error *err)
{
    const ty_perf_gpu *gpu = ctx;
    if (ty_team_alloc(gpu->team, bytes, out, err) == 0)
        return 0;
    return err->code == TY_E_LIMIT ? ty_error_help(err, "measure smaller sizes: -e SIZE") : -1;
}

static void gpu_free(void *ctx, char *at)
{
    const ty_perf_gpu *gpu = ctx;
    ty_team_release(gpu->team, at);
}

static int gpu_put(void *ctx, char *to, const void *from, size_t bytes, ty_error *err)
{
    const ty_perf_gpu *gpu = ctx;
    return ty_team_put(gpu->team, to, from, bytes, err);
}

static int gpu_get(void *ctx, void *to, const char *from, size_t bytes, ty_error *err)
{
    const ty_perf_gpu *gpu = ctx;
    return ty_team_get(gpu->team, to, from, bytes, err);
}

static int gpu_run(void *ctx, const ty_collective *what, ty_error *err)
{
    static const ty_team_kind kinds[TY_N_COLLECTIVES] = {[TY_ALL_REDUCE] = TY_TEAM_ALL_REDUCE,
                                                         [TY_REDUCE_SCATTER] = TY_TEAM_REDUCE_SCATTER,
                                                         [TY_ALL_GATHER] = TY_TEAM_ALL_GATHER,
                                                         [TY_BROADCAST] = TY_TEAM_BROADCAST,
                                                         [TY_ALL_TO_ALL] = TY_TEAM_ALL_TO_ALL};
    static const ty_team_reduce reduces[TY_N_REDUCES] = {[TY_REDUCE_SUM] = TY_TEAM_SUM,
                                                         [TY_REDUCE_AVERAGE] = TY_TEAM_AVERAGE,
                                                         [TY_REDUCE_MIN] = TY_TEAM_MIN,
                                                         [TY_REDUCE_MAX] = TY_TEAM_MAX,
                                                         [TY_REDUCE_PRODUCT] = TY_TEAM_PRODUCT};
    const ty_perf_gpu *gpu = ctx;
    const ty_team_call call = {.kind = kinds[what->kind],
                               .reduce = reduces[what->reduce],
                               .dtype = what->dtype,
                               .from = what->in,
                               .to = what->out,
                               .n = what->n};
    return ty_team_begin(gpu->team, &call, err);
}

static int gpu_wait(void *ctx, ty_error *err)
{
    const ty_perf_gpu *gpu = ctx;
    return ty_team_wait(gpu->team, err);
}

const ty_perf_carrier *ty_perf_gpu_carrier(const ty_perf_gpu *gpu)
{
    return gpu ? &gpu->carrier : NULL;
}

const char *ty_perf_gpu_text(const ty_perf_gpu *gpu)
{
    return gpu->text;
}

bool ty_perf_gpu_reduces(ty_dtype dtype)
{
    return ty_team_reduces(dtype);
}

/* ---- opening ---- */

/* 1: all have a GPU; 0: not all have, and none must. */
static int gpu_agree(ty_perf_gpu *gpu, ty_company *company, bool must, ty_machine_gpu *device, ty_error *err)
{
    ty_error why = {0};
    int found = ty_device_of_rank(company, NULL, 0, &gpu->arena, device, &why, err);
    if (found != 0 || !must)
        return found;
    *err = why;
    return ty_error_wrap(err, "perf: --device gpu");
}

static int gpu_join(ty_perf_gpu *gpu, ty_company *company, bool must, ty_error *err)
{
    ty_machine_gpu device;
    int found = gpu_agree(gpu, company, must, &device, err);
    if (found <= 0)
        return found;
    if (ty_team_open(device.number, ty_company_exchange(company), ty_company_size(company), &gpu->team, err) < 0)
        return -1;
    gpu->text = ty_arena_printf(&gpu->arena, "NCCL %s, a GPU each (%s)", ty_team_version(gpu->team), device.name);
    return 1;
}

/* The company, by which ranks agree and find each other, is gone before anything is measured. */
static int gpu_open(ty_perf_gpu *gpu, ty_comm *comm, bool must, ty_error *err)
{
    ty_comm *own;
    ty_company *company;
    if (ty_comm_dup(comm, &own, err) < 0 || ty_company_of(own, TY_WIRE_AS_IS, &company, err) < 0)
        return -1;
    int found = gpu_join(gpu, company, must, err);
    ty_company_free(company, found >= 0);
    return found;
}

int ty_perf_gpu_open(ty_comm *comm, bool must, ty_perf_gpu **out, ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_perf_gpu *gpu = TY_NEW(&arena, ty_perf_gpu);
    gpu->arena = arena;
    gpu->carrier = (ty_perf_carrier){.ctx = gpu,
                                     .alloc = gpu_alloc,
                                     .free = gpu_free,
                                     .put = gpu_put,
                                     .get = gpu_get,
                                     .run = gpu_run,
                                     .wait = gpu_wait,
                                     .divides_first = true};
    int found = gpu_open(gpu, comm, must, err);
    *out = found > 0 ? gpu : NULL;
    if (found <= 0)
        ty_perf_gpu_close(gpu, found == 0);
    return found < 0 ? -1 : 0;
}

void ty_perf_gpu_close(ty_perf_gpu *gpu, bool cleanly)
{
    if (!gpu)
        return;
    ty_team_close(gpu->team, cleanly);
    ty_arena arena = gpu->arena;
    ty_arena_fini(&arena);
}
