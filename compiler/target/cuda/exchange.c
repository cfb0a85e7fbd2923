/* exchange.c - see exchange.h. */
#include "compiler/target/cuda/exchange.h"

/* What other replicas wait for goes before this one's own work. */
static int exchange_make_stream(ty_cuda_exchanges *x, ty_error *err)
{
    int least, greatest;
    unsigned status = x->gpu->cu->cuCtxGetStreamPriorityRange(&least, &greatest);
    if (status == TY_CU_SUCCESS)
        status = x->gpu->cu->cuStreamCreateWithPriority(&x->stream, TY_CU_STREAM_NON_BLOCKING, greatest);
    return ty_gpu_status(x->gpu, status, "making a stream for exchanges", err);
}

static int exchange_make_event(const ty_cuda_exchanges *x, CUevent *out, ty_error *err)
{
    return ty_gpu_status(x->gpu, x->gpu->cu->cuEventCreate(out, TY_CU_EVENT_DISABLE_TIMING), "making an event", err);
}

int ty_cuda_exchanges_open(ty_cuda_exchanges *x, const ty_gpu *gpu, ty_nccl_group *group, int replica, int n,
                           ty_arena *a, ty_error *err)
{
    *x = (ty_cuda_exchanges){.gpu = gpu, .group = group, .replica = replica};
    if (!group || n == 0)
        return 0;
    x->over = TY_NEW_ARRAY(a, CUevent, n);
    if (exchange_make_stream(x, err) < 0 || exchange_make_event(x, &x->ready, err) < 0)
        return -1;
    for (; x->n < n; x->n++)
        if (exchange_make_event(x, &x->over[x->n], err) < 0)
            return -1;
    return 0;
}

void ty_cuda_exchanges_close(ty_cuda_exchanges *x)
{
    for (int i = 0; i < x->n; i++)
        x->gpu->cu->cuEventDestroy_v2(x->over[i]);
    if (x->ready)
        x->gpu->cu->cuEventDestroy_v2(x->ready);
    if (x->stream)
        x->gpu->cu->cuStreamDestroy_v2(x->stream);
    *x = (ty_cuda_exchanges){0};
}

int ty_cuda_exchange_begin(ty_cuda_exchanges *x, const ty_nccl_exchanged *what, ty_error *err)
{
    const ty_cu *cu = x->gpu->cu;
    if (what->number >= x->n)
        return ty_error_set(err, TY_E_INTERNAL, "an exchange with replicas where there are none");
    unsigned status = cu->cuEventRecord(x->ready, x->gpu->stream);
    status = status ? status : cu->cuStreamWaitEvent(x->stream, x->ready, 0);
    if (ty_gpu_status(x->gpu, status, "beginning an exchange", err) < 0 ||
        ty_nccl_exchange(x->group, x->replica, what, x->stream, err) < 0)
        return -1;
    status = cu->cuEventRecord(x->over[what->number], x->stream);
    return ty_gpu_status(x->gpu, status, "ending an exchange", err);
}

int ty_cuda_exchange_wait(ty_cuda_exchanges *x, int number, ty_error *err)
{
    unsigned status = x->gpu->cu->cuStreamWaitEvent(x->gpu->stream, x->over[number], 0);
    return ty_gpu_status(x->gpu, status, "waiting for an exchange", err);
}
