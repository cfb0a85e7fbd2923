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

int ty_cuda_exchanges_open(ty_cuda_exchanges *x, const ty_gpu *gpu, const ty_cuda_company *with, ty_arena *a,
                           ty_error *err)
{
    *x = (ty_cuda_exchanges){.gpu = gpu, .with = *with};
    if (!with->group || with->n == 0)
        return 0;
    x->over = TY_NEW_ARRAY(a, CUevent, with->n);
    if (exchange_make_stream(x, err) < 0 || exchange_make_event(x, &x->ready, err) < 0)
        return -1;
    for (; x->n < with->n; x->n++)
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

static int exchange_add_up(ty_cuda_exchanges *x, const ty_cuda_ordered *o, CUdeviceptr own, CUdeviceptr rest,
                           ty_error *err)
{
    void *parameter[] = {&x->with.room, &own, &rest};
    unsigned status = x->gpu->cu->cuLaunchKernel(o->function, (unsigned)o->launch.blocks, 1, 1,
                                                 (unsigned)o->launch.threads, 1, 1, 0, x->stream, parameter, NULL);
    return ty_gpu_status(x->gpu, status, "adding up in order", err);
}

/* See in_order.h: parts are dealt, rests gathered, both added up, and the sums of parts handed on. */
static int exchange_in_order(ty_cuda_exchanges *x, const ty_nccl_exchanged *what, const ty_cuda_ordered *o,
                             ty_error *err)
{
    const ty_cuda_company *w = &x->with;
    size_t element = ty_dtype_bytes(what->dtype), part = (size_t)o->in_order.part * element;
    size_t rest = (size_t)o->in_order.rest * element, parts = part * (size_t)w->replicas;
    bool hands_on = what->kind == TY_EXCHANGE_SUM && part > 0;
    CUdeviceptr own = what->to + (hands_on ? part * (size_t)w->replica : 0);
    if (part > 0 && ty_nccl_deal(w->group, w->replica, what->from, w->room, part, x->stream, err) < 0)
        return -1;
    if (rest > 0 && ty_nccl_gather(w->group, w->replica, what->from + parts, w->room + parts, rest, x->stream, err) < 0)
        return -1;
    if (exchange_add_up(x, o, own, rest > 0 ? what->to + parts : own, err) < 0)
        return -1;
    return hands_on ? ty_nccl_gather(w->group, w->replica, own, what->to, part, x->stream, err) : 0;
}

int ty_cuda_exchange_ask(ty_cuda_exchanges *x, const ty_nccl_exchanged *what, const ty_cuda_ordered *ordered,
                         ty_error *err)
{
    if (ty_nccl_stands(x->with.group, err) < 0)
        return -1;
    return ordered ? exchange_in_order(x, what, ordered, err)
                   : ty_nccl_exchange(x->with.group, x->with.replica, what, x->stream, err);
}
