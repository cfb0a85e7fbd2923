/* capture.c - the calls of a tape as work of a stream, and caught as one graph. See inside.h. */
#include "compiler/target/cuda/inside.h"

#include "compiler/apart.h"
#include "compiler/target/pending.h"

/* ---- marks and waits ---- */

CUstream ty_cuda_stream_of(const ty_cuda *c, ty_cuda_stream stream)
{
    const CUstream all[TY_CUDA_N_STREAMS] = {[TY_CUDA_STREAM_MAIN] = c->gpu.stream,
                                             [TY_CUDA_STREAM_EXCHANGES] = c->exchanges.stream,
                                             [TY_CUDA_STREAM_BATCHES] = c->feed.stream};
    return all[stream];
}

/* NULL: there is none. */
static CUevent cuda_event_of(const ty_cuda *c, const cuda_program *p, const ty_cuda_sync *s)
{
    int slot = ty_feed_slot(&c->feed);
    switch (s->event) {
    case TY_CUDA_EVENT_READY:
        return c->exchanges.ready;
    case TY_CUDA_EVENT_OVER:
        return s->number < c->exchanges.n ? c->exchanges.over[s->number] : NULL;
    case TY_CUDA_EVENT_ARRIVED:
        return c->feed.arrived[slot];
    case TY_CUDA_EVENT_TAKEN:
        return c->feed.taken[slot];
    default:
        return p->done[p->started % TY_CUDA_IN_FLIGHT];
    }
}

static int cuda_ask_sync(ty_cuda *c, const cuda_program *p, const ty_cuda_sync *s, ty_error *err)
{
    CUevent event = cuda_event_of(c, p, s);
    CUstream stream = ty_cuda_stream_of(c, s->stream);
    if (!event || !stream)
        return ty_error_set(err, TY_E_INTERNAL, "an exchange with replicas where there are none");
    return s->awaits
               ? ty_gpu_status(&c->gpu, c->gpu.cu->cuStreamWaitEvent(stream, event, 0), "waiting on the GPU", err)
               : ty_gpu_status(&c->gpu, c->gpu.cu->cuEventRecord(event, stream), "marking what was asked for", err);
}

int ty_cuda_ask_syncs(ty_cuda *c, const cuda_program *p, const ty_cuda_sync *sync, int n, ty_error *err)
{
    for (int i = 0; i < n; i++)
        if (cuda_ask_sync(c, p, &sync[i], err) < 0)
            return -1;
    return 0;
}

/* ---- calls ---- */

static int cuda_launch(ty_cuda *c, const cuda_program *p, int number, ty_error *err)
{
    const ty_cuda_call *call = &p->tape.call[number];
    unsigned bytes = ty_cuda_groups(c->gpu.capability) ? (unsigned)call->launch.group_bytes : 0;
    unsigned status = c->gpu.cu->cuLaunchKernel(p->function[call->kernel], (unsigned)call->launch.blocks, 1, 1,
                                                (unsigned)call->launch.threads, 1, 1, bytes,
                                                ty_cuda_stream_of(c, call->stream), p->parameter[number], NULL);
    return ty_gpu_status(&c->gpu, status, "launching a kernel", err);
}

static int cuda_exchange(ty_cuda *c, const cuda_program *p, const ty_cuda_call *call, ty_error *err)
{
    const ty_type *type = ty_graph_type(c->g, ty_graph_in(c->g, call->node, 0));
    const ty_nccl_exchanged what = {.kind = ty_pending_kind(c->g, call->node),
                                    .dtype = (ty_dtype)type->dtype,
                                    .n = ty_type_elems(type),
                                    .from = ty_cuda_memory_at(&c->memory, &call->at[0]),
                                    .to = ty_cuda_memory_at(&c->memory, &call->at[1]),
                                    .number = call->exchange};
    if (!call->launch.threads)
        return ty_cuda_exchange_ask(&c->exchanges, &what, NULL, err);
    const ty_cuda_ordered ordered = {call->in_order, call->launch, p->function[call->kernel]};
    return ty_cuda_exchange_ask(&c->exchanges, &what, &ordered, err);
}

static int cuda_copy(ty_cuda *c, const ty_cuda_call *call, ty_error *err)
{
    unsigned status = c->gpu.cu->cuMemcpyDtoDAsync_v2(ty_cuda_memory_at(&c->memory, &call->at[0]),
                                                      ty_cuda_memory_at(&c->memory, &call->at[1]), call->bytes,
                                                      ty_cuda_stream_of(c, call->stream));
    return ty_gpu_status(&c->gpu, status, "copying on the GPU", err);
}

static int cuda_issue_alone(ty_cuda *c, const cuda_program *p, int number, ty_error *err)
{
    const ty_cuda_call *call = &p->tape.call[number];
    switch (call->kind) {
    case TY_CUDA_LAUNCH:
        return cuda_launch(c, p, number, err);
    case TY_CUDA_LIBRARY:
        return p->library[number].run(p->library[number].prepared, err);
    case TY_CUDA_EXCHANGE:
        return cuda_exchange(c, p, call, err);
    case TY_CUDA_COPY:
        return cuda_copy(c, call, err);
    default:
        return 0; /* it waits */
    }
}

int ty_cuda_issue(ty_cuda *c, const cuda_program *p, int number, ty_error *err)
{
    const ty_cuda_call *call = &p->tape.call[number];
    if (ty_cuda_ask_syncs(c, p, call->before, call->n_before, err) < 0 || cuda_issue_alone(c, p, number, err) < 0)
        return -1;
    return ty_cuda_ask_syncs(c, p, call->after, call->n_after, err);
}

/* Sets of kinds of calls. */
enum {
    CAPTURE_LIBRARY = 1 << TY_CUDA_LIBRARY,
    CAPTURE_EXCHANGES = 1 << TY_CUDA_EXCHANGE | 1 << TY_CUDA_WAIT,
    CAPTURE_ALL = ~0
};

static int cuda_issue_kinds(ty_cuda *c, const cuda_program *p, int kinds, ty_error *err)
{
    for (int i = 0; i < p->tape.n_calls; i++) {
        const ty_cuda_call *call = &p->tape.call[i];
        if (!(kinds & 1 << call->kind) || ty_cuda_issue(c, p, i, err) == 0)
            continue;
        if (call->kind == TY_CUDA_LIBRARY)
            ty_apart_refused(c->g, call->node, err);
        return ty_error_wrap(err, "%s", call->origin);
    }
    return 0;
}

/* Exchanges come when all code of libraries is there: to load some a driver may wait for what runs on the GPU, and what
 * runs then is NCCL, which waits for other replicas. */
int ty_cuda_warm(ty_cuda *c, const cuda_program *p, ty_error *err)
{
    if (cuda_issue_kinds(c, p, CAPTURE_LIBRARY, err) < 0 || ty_gpu_wait(&c->gpu, err) < 0)
        return -1;
    if (p->tape.n_exchanges == 0)
        return 0;
    return cuda_issue_kinds(c, p, CAPTURE_EXCHANGES, err) < 0 ? -1 : ty_gpu_wait(&c->gpu, err);
}

/* What is issued meanwhile does not run: it becomes the graph. */
int ty_cuda_capture(ty_cuda *c, cuda_program *p, ty_error *err)
{
    const ty_cu *cu = c->gpu.cu;
    CUgraph graph = NULL;
    unsigned status = cu->cuStreamBeginCapture_v2(c->gpu.stream, TY_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (ty_gpu_status(&c->gpu, status, "capturing a step", err) < 0)
        return -1;
    int rc = cuda_issue_kinds(c, p, CAPTURE_ALL, err);
    status = cu->cuStreamEndCapture(c->gpu.stream, &graph);
    if (rc == 0)
        rc = ty_gpu_status(&c->gpu, status, "capturing a step", err);
    if (rc == 0)
        rc = ty_gpu_status(&c->gpu, cu->cuGraphInstantiateWithFlags(&p->graph, graph, 0), "making a graph of a step",
                           err);
    if (graph)
        cu->cuGraphDestroy(graph);
    return rc;
}
