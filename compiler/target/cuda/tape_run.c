/* tape_run.c - runs of a tape as a graph, and states between the caller's memory and the GPU's. See cuda.h. */
#include "compiler/target/cuda/inside.h"

#include <string.h>

/* ---- states ---- */

int ty_cuda_upload(ty_cuda *c, ty_error *err)
{
    const ty_cuda_block *b = &c->memory.block[TY_CUDA_STATES];
    for (int i = 0; i < b->n; i++) {
        unsigned status = c->gpu.cu->cuMemcpyHtoDAsync_v2(b->at + b->offset[i], c->opt.state[i],
                                                          ty_type_bytes(&ty_graph_state(c->g, i)->type), c->gpu.stream);
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

/* The inputs that the tape reads, in one copy with what lies between them. */
int ty_cuda_send(ty_cuda *c, const cuda_program *p, const void *const *inputs, ty_error *err)
{
    const ty_cuda_block *b = &c->memory.block[TY_CUDA_INPUTS];
    size_t first = b->bytes, end = 0;
    char *room;
    if (b->bytes == 0)
        return 0;
    if (ty_feed_room(&c->feed, &room, err) < 0)
        return -1;
    for (int i = 0; i < b->n; i++) {
        size_t bytes = ty_type_bytes(&ty_graph_input(c->g, i)->type);
        if (!p->reads[i] || bytes == 0)
            continue;
        memcpy(room + b->offset[i], inputs[i], bytes);
        first = b->offset[i] < first ? b->offset[i] : first;
        end = b->offset[i] + bytes;
    }
    return first < end ? ty_feed_send(&c->feed, b->at, first, end, err) : 0;
}

/* Outputs to the host, and the mark of the end. */
int ty_cuda_fetch_outputs(ty_cuda *c, cuda_program *p, ty_error *err)
{
    const ty_cu *cu = c->gpu.cu;
    int slot = (int)(p->started % TY_CUDA_IN_FLIGHT);
    unsigned status = TY_CU_SUCCESS;
    for (int i = 0; i < p->n_outputs && status == TY_CU_SUCCESS; i++)
        status = cu->cuMemcpyDtoHAsync_v2(p->output[i].to[slot], p->output[i].from, p->output[i].bytes, c->gpu.stream);
    status = status ? status : cu->cuEventRecord(p->done[slot], c->gpu.stream);
    p->started++;
    return ty_gpu_status(&c->gpu, status, "fetching the outputs of a step", err);
}

int ty_cuda_start(ty_cuda *c, int plan, const void *const *inputs, ty_error *err)
{
    cuda_program *p = &c->program[plan];
    if ((p->started - p->finished == TY_CUDA_IN_FLIGHT && ty_cuda_finish(c, plan, err) < 0) ||
        ty_cuda_send(c, p, inputs, err) < 0)
        return -1;
    unsigned status = c->gpu.cu->cuGraphLaunch(p->graph, c->gpu.stream);
    return ty_gpu_status(&c->gpu, status, "starting a step", err) < 0 ? -1 : ty_cuda_fetch_outputs(c, p, err);
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
    for (int i = 0; i < p->n_outputs && p->finished > 0; i++)
        if (p->output[i].value == v)
            return p->output[i].to[(p->finished - 1) % TY_CUDA_IN_FLIGHT];
    return NULL;
}
