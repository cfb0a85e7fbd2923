/* tape_run.c - runs of a tape as a graph, and states between the caller's memory and the GPU's. See cuda.h. */
#include "base/pages.h"
#include "compiler/target/cuda/inside.h"

/* ---- states ---- */

/* Moments that nobody has touched yet are zeros, as many as there are weights or twice as many: the host need not read
 * them. */
int ty_cuda_upload(ty_cuda *c, ty_error *err)
{
    const ty_cuda_block *b = &c->memory.block[TY_CUDA_STATES];
    const ty_cu *cu = c->gpu.cu;
    for (int i = 0; i < b->n; i++) {
        CUdeviceptr to = b->at + b->offset[i];
        size_t bytes = ty_type_bytes(&ty_graph_state(c->g, i)->type);
        unsigned status = ty_pages_are_new(c->opt.state[i], bytes)
                              ? cu->cuMemsetD8Async(to, 0, bytes, c->gpu.stream)
                              : cu->cuMemcpyHtoDAsync_v2(to, c->opt.state[i], bytes, c->gpu.stream);
        if (ty_gpu_status(&c->gpu, status, "copying states to the GPU", err) < 0)
            return -1;
    }
    return ty_gpu_wait(&c->gpu, err);
}

int ty_cuda_download(ty_cuda *c, ty_error *err)
{
    const ty_cuda_block *b = &c->memory.block[TY_CUDA_STATES];
    for (int i = 0; i < b->n; i++) {
        unsigned status = c->gpu.cu->cuMemcpyDtoHAsync_v2(c->opt.state[i], b->at + b->offset[i],
                                                          ty_type_bytes(&ty_graph_state(c->g, i)->type), c->gpu.stream);
        if (ty_gpu_status(&c->gpu, status, "copying states from the GPU", err) < 0)
            return -1;
    }
    return ty_gpu_wait(&c->gpu, err);
}

int ty_cuda_fetch(ty_cuda *c, int state, void *to, ty_error *err)
{
    const ty_cuda_block *b = &c->memory.block[TY_CUDA_STATES];
    unsigned status = c->gpu.cu->cuMemcpyDtoHAsync_v2(to, b->at + b->offset[state],
                                                      ty_type_bytes(&ty_graph_state(c->g, state)->type), c->gpu.stream);
    return ty_gpu_status(&c->gpu, status, "copying a state from the GPU", err) < 0 ? -1 : ty_gpu_wait(&c->gpu, err);
}

/* ---- runs ---- */

static int cuda_down(ty_cuda *c, const cuda_program *p, const ty_cuda_ask *ask, ty_error *err)
{
    const cuda_output *o = &p->output[ask->output];
    unsigned status = c->gpu.cu->cuMemcpyDtoHAsync_v2(o->to[p->started % TY_CUDA_IN_FLIGHT], o->from, o->bytes,
                                                      ty_cuda_stream_of(c, ask->stream));
    return ty_gpu_status(&c->gpu, status, "fetching the outputs of a step", err);
}

static int cuda_ask_one(ty_cuda *c, const cuda_program *p, const ty_cuda_ask *ask, ty_error *err)
{
    CUstream stream = ty_cuda_stream_of(c, ask->stream);
    size_t first = p->frame.first, end = p->frame.end;
    switch (ask->kind) {
    case TY_CUDA_ASK_UP:
        return ty_feed_up(&c->feed, first, end, stream, err);
    case TY_CUDA_ASK_TAKE:
        return ty_feed_take(&c->feed, c->memory.block[TY_CUDA_INPUTS].at, first, end, stream, err);
    case TY_CUDA_ASK_GRAPH:
        return ty_gpu_status(&c->gpu, c->gpu.cu->cuGraphLaunch(p->graph, stream), "starting a step", err);
    case TY_CUDA_ASK_DOWN:
        return cuda_down(c, p, ask, err);
    default:
        return ty_cuda_ask_syncs(c, p, &ask->sync, 1, err);
    }
}

/* Those from one number of the frame to before another. */
static int cuda_ask(ty_cuda *c, const cuda_program *p, int from, int to, ty_error *err)
{
    for (int i = from; i < to; i++)
        if (cuda_ask_one(c, p, &p->frame.ask[i], err) < 0)
            return -1;
    return 0;
}

/* The inputs that the tape reads, to pinned memory. */
static int cuda_fill(ty_cuda *c, const cuda_program *p, const void *const *inputs, ty_error *err)
{
    const ty_cuda_block *b = &c->memory.block[TY_CUDA_INPUTS];
    char *room;
    if (ty_feed_room(&c->feed, &room, err) < 0)
        return -1;
    for (int i = 0; i < b->n; i++) {
        size_t bytes = ty_type_bytes(&ty_graph_input(c->g, i)->type);
        if (p->frame.reads[i] && bytes > 0)
            ty_feed_fill(room + b->offset[i], inputs[i], bytes, c->opt.build.threads);
    }
    return 0;
}

int ty_cuda_send(ty_cuda *c, cuda_program *p, const void *const *inputs, ty_error *err)
{
    if (p->frame.graph == 0) /* nothing goes up */
        return 0;
    if (cuda_fill(c, p, inputs, err) < 0 || cuda_ask(c, p, 0, p->frame.graph, err) < 0)
        return -1;
    ty_feed_next(&c->feed);
    return 0;
}

/* Outputs to the host, and the mark of the end. */
int ty_cuda_fetch_outputs(ty_cuda *c, cuda_program *p, ty_error *err)
{
    int rc = cuda_ask(c, p, p->frame.graph + 1, p->frame.n_asks, err);
    p->started++;
    return rc;
}

int ty_cuda_start(ty_cuda *c, int plan, const void *const *inputs, ty_error *err)
{
    cuda_program *p = &c->program[plan];
    int graph = p->frame.graph;
    if ((p->started - p->finished == TY_CUDA_IN_FLIGHT && ty_cuda_finish(c, plan, err) < 0) ||
        ty_cuda_send(c, p, inputs, err) < 0 || cuda_ask(c, p, graph, graph + 1, err) < 0)
        return -1;
    return ty_cuda_fetch_outputs(c, p, err);
}

int ty_cuda_finish(ty_cuda *c, int plan, ty_error *err)
{
    cuda_program *p = &c->program[plan];
    if (p->started == p->finished)
        return 0;
    unsigned status = c->gpu.cu->cuEventSynchronize(p->done[p->finished++ % TY_CUDA_IN_FLIGHT]);
    return ty_gpu_status(&c->gpu, status, "a step on the GPU", err);
}

int ty_cuda_drain(ty_cuda *c, int plan, ty_error *err)
{
    while (c->program[plan].finished < c->program[plan].started)
        if (ty_cuda_finish(c, plan, err) < 0)
            return -1;
    return 0;
}

const void *ty_cuda_value(const ty_cuda *c, int plan, ty_val v)
{
    const cuda_program *p = &c->program[plan];
    for (int i = 0; i < p->frame.n_outputs && p->finished > 0; i++)
        if (p->output[i].value == v)
            return p->output[i].to[(p->finished - 1) % TY_CUDA_IN_FLIGHT];
    return NULL;
}
