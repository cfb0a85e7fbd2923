/* by_call.c - runs of a tape call by call: with a clock between them, or looked at after each. See cuda.h. */
#include "compiler/target/cuda/inside.h"

#include "compiler/ops/op.h"

#include <stdlib.h>

/* ---- timed ---- */

static int cuda_make_clock(ty_cuda *c, cuda_program *p, ty_error *err)
{
    unsigned status = TY_CU_SUCCESS;
    if (p->clock)
        return 0;
    p->clock = TY_NEW_ARRAY(&c->arena, CUevent, p->tape.n_calls + 1);
    for (int i = 0; i <= p->tape.n_calls && status == TY_CU_SUCCESS; i++)
        status = c->gpu.cu->cuEventCreate(&p->clock[i], 0);
    return ty_gpu_status(&c->gpu, status, "making a clock", err);
}

static int cuda_issue_timed(ty_cuda *c, const cuda_program *p, ty_error *err)
{
    unsigned status = c->gpu.cu->cuEventRecord(p->clock[0], c->gpu.stream);
    for (int i = 0; i < p->tape.n_calls; i++) {
        if (ty_cuda_issue(c, p, i, err) < 0)
            return ty_error_wrap(err, "%s", p->tape.call[i].origin);
        status = status ? status : c->gpu.cu->cuEventRecord(p->clock[i + 1], c->gpu.stream);
    }
    return ty_gpu_status(&c->gpu, status, "reading a clock", err);
}

int ty_cuda_run_timed(ty_cuda *c, int plan, const void *const *inputs, int64_t *call_ns, ty_error *err)
{
    cuda_program *p = &c->program[plan];
    unsigned status = TY_CU_SUCCESS;
    if (cuda_make_clock(c, p, err) < 0 || ty_cuda_drain(c, plan, err) < 0 || ty_cuda_send(c, p, inputs, err) < 0 ||
        cuda_issue_timed(c, p, err) < 0 || ty_cuda_fetch_outputs(c, p, err) < 0 || ty_cuda_drain(c, plan, err) < 0)
        return -1;
    for (int i = 0; i < p->tape.n_calls && status == TY_CU_SUCCESS; i++) {
        float ms = 0;
        status = c->gpu.cu->cuEventElapsedTime(&ms, p->clock[i], p->clock[i + 1]);
        call_ns[i] = (int64_t)(1e6 * (double)ms);
    }
    return ty_gpu_status(&c->gpu, status, "reading a clock", err);
}

/* ---- looked at ---- */

int ty_cuda_calls_begin(ty_cuda *c, int plan, const void *const *inputs, ty_error *err)
{
    if (!c->look && !(c->look = malloc(c->memory.block[TY_CUDA_SLAB].bytes + 1)))
        return ty_error_set(err, TY_E_LIMIT, "no memory of the host to look at %zu MB of the GPU's",
                            c->memory.block[TY_CUDA_SLAB].bytes / 1000000);
    return ty_cuda_drain(c, plan, err) < 0 || ty_cuda_send(c, &c->program[plan], inputs, err) < 0
               ? -1
               : ty_gpu_wait(&c->gpu, err);
}

int ty_cuda_calls_run(ty_cuda *c, int plan, int call, ty_error *err)
{
    const cuda_program *p = &c->program[plan];
    if (ty_cuda_issue(c, p, call, err) < 0 || ty_gpu_wait(&c->gpu, err) < 0)
        return ty_error_wrap(err, "%s", p->tape.call[call].origin);
    return 0;
}

int ty_cuda_calls_end(ty_cuda *c, int plan, ty_error *err)
{
    return ty_cuda_fetch_outputs(c, &c->program[plan], err) < 0 ? -1 : ty_cuda_drain(c, plan, err);
}

/* Values of the slab go to the same places of a copy of it. */
const void *ty_cuda_look(ty_cuda *c, int plan, ty_val v, const void *const *inputs)
{
    ty_place at = ty_plan_place(c->plan[plan], v);
    char *to = at.kind == TY_PLACE_SLAB ? c->look + at.offset : NULL;
    if (at.kind == TY_PLACE_CONST)
        return ty_graph_const_data(c->g, v);
    if (at.kind == TY_PLACE_INPUT)
        return (const char *)inputs[at.index] + at.offset;
    if (at.kind == TY_PLACE_STATE)
        to = (char *)c->opt.state[at.index] + at.offset;
    if (!to || c->gpu.cu->cuMemcpyDtoHAsync_v2(to, ty_cuda_memory_at(&c->memory, &at),
                                               ty_type_bytes(ty_graph_type(c->g, v)), c->gpu.stream) != TY_CU_SUCCESS)
        return NULL;
    return ty_gpu_wait(&c->gpu, NULL) < 0 ? NULL : to;
}

/* ---- what calls are ---- */

int ty_cuda_n_calls(const ty_cuda *c, int plan)
{
    return c->program[plan].tape.n_calls;
}

/* Of all operands and results, each once. */
static size_t cuda_node_bytes(const ty_graph *g, uint32_t node, bool results)
{
    const ty_node *n = ty_graph_node(g, node);
    size_t bytes = 0;
    for (uint32_t i = 0; i < (results ? n->n_res : n->n_in); i++)
        bytes += ty_type_bytes(ty_graph_type(g, results ? ty_val_make(node, i) : ty_graph_in(g, node, (int)i)));
    return bytes;
}

void ty_cuda_call_info(const ty_cuda *c, int plan, int number, ty_call_info *out)
{
    static const ty_call_kind kind[] = {[TY_CUDA_LAUNCH] = TY_CALL_KERNEL, [TY_CUDA_LIBRARY] = TY_CALL_LIBRARY};
    const cuda_program *p = &c->program[plan];
    const ty_cuda_call *call = &p->tape.call[number];
    bool computes = call->kind == TY_CUDA_LAUNCH || call->kind == TY_CUDA_LIBRARY;
    *out = (ty_call_info){.kind = computes ? kind[call->kind] : TY_CALL_COPY,
                          .name = "copy",
                          .how = "",
                          .origin = call->origin,
                          .threads = call->launch.threads,
                          .read_bytes = call->bytes,
                          .written_bytes = call->kind == TY_CUDA_COPY ? call->bytes : 0,
                          .unit = call->unit,
                          .also = call->also,
                          .n_also = call->n_also};
    if (call->kind == TY_CUDA_LAUNCH)
        out->name = "kernel", out->how = call->launch.form;
    if (call->kind == TY_CUDA_LIBRARY) {
        out->name = ty_op_row_of(ty_graph_op(c->g, call->node))->text;
        out->read_bytes = cuda_node_bytes(c->g, call->node, false);
        out->written_bytes = cuda_node_bytes(c->g, call->node, true);
    }
}
