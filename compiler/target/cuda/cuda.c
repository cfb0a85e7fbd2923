/* cuda.c - see cuda.h. */
#include "compiler/target/cuda/cuda.h"

#include "compiler/ops/op.h"
#include "compiler/phases.h"
#include "compiler/target/cuda/build.h"
#include "compiler/target/cuda/cubin.h"
#include "compiler/target/cuda/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What libraries take for their own code when a call of theirs first runs: so much is left to them. An H100 with
 * CUDA 13, which loads kernels as they are called, has 6 to 26 MB with all of ours (26: ResNet-50); older ones load
 * more. */
#define CUDA_LIBRARY_BYTES ((size_t)64 << 20)
/* What NCCL takes for buffers between GPUs when they are connected. */
#define CUDA_NCCL_BYTES ((size_t)256 << 20)
/* Choosing among algorithms of products and convolutions takes no longer than this in all, once. */
#define CUDA_TUNE_MS 4000
/* Machine code of a kernel, before it is known. */
#define CUDA_KERNEL_BYTES ((size_t)16 << 10)

/* ---- what can be computed ---- */

/* All that is missing, each op once, with a layer that has it. */
static int cuda_check_ops(ty_cuda *c, ty_error *err)
{
    bool missing[TY_N_OPS] = {false};
    ty_buf text;
    ty_buf_init(&text, 4096);
    for (int p = 0; p < c->n_plans; p++)
        for (int i = 0; i < c->program[p].tape.n_calls; i++) {
            const ty_cuda_call *call = &c->program[p].tape.call[i];
            if (call->kind != TY_CUDA_LIBRARY || ty_cuda_library_has(c->g, call->node) ||
                missing[ty_graph_op(c->g, call->node)])
                continue;
            missing[ty_graph_op(c->g, call->node)] = true;
            ty_buf_addf(&text, "%s%s (%s)", text.len ? ", " : "", ty_op_row_of(ty_graph_op(c->g, call->node))->text,
                        call->origin);
        }
    int rc = text.len == 0
                 ? 0
                 : ty_error_set(err, TY_E_UNSUPPORTED, "nothing computes on a GPU yet: %.*s", (int)text.len, text.data);
    if (rc < 0)
        ty_error_help(err, "train on the CPU: device: cpu");
    ty_buf_fini(&text);
    return rc;
}

/* ---- outputs ---- */

static void cuda_find_outputs(ty_cuda *c, cuda_program *p)
{
    p->output = TY_NEW_ARRAY(&c->arena, cuda_output, p->frame.n_outputs);
    for (int i = 0; i < p->frame.n_outputs; i++) {
        ty_val v = ty_graph_output(c->g, p->frame.output[i])->val;
        p->output[i] = (cuda_output){.value = v, .bytes = ty_type_bytes(ty_graph_type(c->g, v))};
    }
}

/* Room on the host for the outputs of all tapes, for each of the runs that may be under way. */
static int cuda_pin(ty_cuda *c, ty_error *err)
{
    void *at = NULL;
    if (c->report.pinned_bytes == 0)
        return 0;
    unsigned status = c->gpu.cu->cuMemHostAlloc(&at, c->report.pinned_bytes, 0);
    if (ty_gpu_status(&c->gpu, status, "pinning memory for outputs", err) < 0)
        return -1;
    c->pinned = at;
    ty_cuda_block room = {.bytes = 0};
    for (int p = 0; p < c->n_plans; p++)
        for (int i = 0; i < c->program[p].frame.n_outputs; i++) {
            cuda_output *out = &c->program[p].output[i];
            ty_place place = ty_plan_place(c->plan[p], out->value);
            out->from = ty_cuda_memory_at(&c->memory, &place);
            for (int k = 0; k < TY_CUDA_IN_FLIGHT; k++)
                out->to[k] = c->pinned + ty_cuda_block_add(&room, out->bytes);
        }
    return 0;
}

/* ---- kernels ---- */

static int cuda_load_modules(ty_cuda *c, ty_error *err)
{
    ty_cuda_build_options build = c->opt.build;
    build.capability = c->gpu.capability;
    if (c->opt.like && c->opt.like->gpu.capability == c->gpu.capability)
        c->code = c->opt.like->code;
    else if (ty_cuda_build(&c->texts, &build, &c->arena, &c->code, err) < 0)
        return -1;
    c->report.cache_hit = c->code.cache_hit;
    for (; c->n_modules < c->code.n; c->n_modules++) {
        unsigned status = c->gpu.cu->cuModuleLoadData(&c->module[c->n_modules], c->code.object[c->n_modules].cubin);
        if (ty_gpu_status(&c->gpu, status, "loading kernels", err) < 0)
            return -1;
    }
    return 0;
}

static int cuda_find_function(const ty_cuda *c, uint64_t kernel, CUfunction *out, ty_error *err)
{
    char name[TY_KTEXTS_NAME_BYTES];
    snprintf(name, sizeof name, TY_KTEXTS_NAME, (unsigned long)kernel);
    for (int i = 0; i < c->n_modules; i++)
        if (!ty_cubin_lacks(c->code.object[i].cubin, c->code.object[i].bytes, name) &&
            c->gpu.cu->cuModuleGetFunction(out, c->module[i], name) == TY_CU_SUCCESS)
            return 0;
    return ty_error_set(err, TY_E_COMPILER, "compiled kernels lack %s", name);
}

/* More of a block's shared memory than a kernel may have unasked. */
static int cuda_allow_bytes(const ty_cuda *c, const cuda_program *p, ty_error *err)
{
    for (int i = 0; ty_cuda_groups(c->gpu.capability) && i < p->tape.n_calls; i++) {
        const ty_cuda_call *call = &p->tape.call[i];
        if (!call->launch.group_bytes)
            continue;
        unsigned status = c->gpu.cu->cuFuncSetAttribute(p->function[call->kernel], TY_CU_FUNC_ATTRIBUTE_SHARED_BYTES,
                                                        call->launch.group_bytes);
        if (ty_gpu_status(&c->gpu, status, "allowing a kernel more shared memory", err) < 0)
            return -1;
    }
    return 0;
}

static int cuda_find_functions(ty_cuda *c, cuda_program *p, ty_error *err)
{
    p->function = TY_NEW_ARRAY(&c->arena, CUfunction, p->tape.n_kernels);
    for (int i = 0; i < p->tape.n_kernels; i++)
        if (cuda_find_function(c, p->tape.kernel[i], &p->function[i], err) < 0)
            return -1;
    return cuda_allow_bytes(c, p, err);
}

/* Where a launch finds what it works on is the same in every run. */
static void cuda_find_parameters(ty_cuda *c, cuda_program *p)
{
    p->parameter = TY_NEW_ARRAY(&c->arena, void **, p->tape.n_calls);
    for (int k = 0; k < p->tape.n_calls; k++) {
        const ty_cuda_call *call = &p->tape.call[k];
        if (call->kind != TY_CUDA_LAUNCH)
            continue;
        CUdeviceptr *address = TY_NEW_ARRAY(&c->arena, CUdeviceptr, call->n_at);
        p->parameter[k] = TY_NEW_ARRAY(&c->arena, void *, call->n_at);
        for (int i = 0; i < call->n_at; i++) {
            address[i] = ty_cuda_memory_at(&c->memory, &call->at[i]);
            p->parameter[k][i] = &address[i];
        }
    }
}

/* ---- what library calls share ---- */

/* What calls are timed on. */
static const char *cuda_device(ty_cuda *c)
{
    char name[128] = "";
    c->gpu.cu->cuDeviceGetName(name, sizeof name, c->gpu.device);
    return ty_arena_printf(&c->arena, "%s sm_%d", name, c->gpu.capability);
}

/* Replicas on GPUs of a kind take the first one's choice: it was timed once, and all have the same bits. */
static const ty_cuda_tuned *cuda_known_choices(ty_cuda *c)
{
    const ty_cuda *like = c->opt.like;
    return like && strcmp(cuda_device(c), like->libraries.tuner.device) == 0 ? like->libraries.tuner.tuned : NULL;
}

static void cuda_share(ty_cuda *c)
{
    c->libraries = (ty_cuda_libraries){.gpu = &c->gpu,
                                       .workspace = c->memory.block[TY_CUDA_WORKSPACE].at,
                                       .tf32 = c->opt.tf32,
                                       .tuner = {.dirs = c->opt.tune ? c->opt.build.cache_dir : NULL,
                                                 .device = cuda_device(c),
                                                 .left_ms = CUDA_TUNE_MS,
                                                 .tuned = cuda_known_choices(c),
                                                 .arena = &c->arena},
                                       .arena = &c->arena};
}

/* ---- building ---- */

static int cuda_upload_constants(ty_cuda *c, ty_error *err)
{
    const ty_cuda_block *b = &c->memory.block[TY_CUDA_CONSTANTS];
    for (int i = 0; i < b->n; i++) {
        ty_val v = c->memory.constant[i];
        unsigned status = c->gpu.cu->cuMemcpyHtoDAsync_v2(b->at + b->offset[i], ty_graph_const_data(c->g, v),
                                                          ty_type_bytes(ty_graph_type(c->g, v)), c->gpu.stream);
        if (ty_gpu_status(&c->gpu, status, "copying constants to the GPU", err) < 0)
            return -1;
    }
    return ty_gpu_wait(&c->gpu, err);
}

static int cuda_tapes(ty_cuda *c, ty_error *err)
{
    for (int p = 0; p < c->n_plans; p++)
        if (ty_cuda_tape_of(c->plan[p], c->opt.in_order, &c->texts, &c->arena, &c->program[p].tape, err) < 0)
            return -1;
    return cuda_check_ops(c, err);
}

static void cuda_count(const ty_cuda_tape *tape, ty_cuda_report *r)
{
    for (int i = 0; i < tape->n_calls; i++) {
        r->n_kernels += tape->call[i].launch.threads > 0;
        r->n_library_calls += tape->call[i].kind == TY_CUDA_LIBRARY;
    }
}

/* Of the tape that has most. */
static int cuda_n_exchanges(const ty_cuda *c)
{
    int most = 0;
    for (int p = 0; p < c->n_plans; p++)
        most = c->program[p].tape.n_exchanges > most ? c->program[p].tape.n_exchanges : most;
    return most;
}

/* outputs: room of all on the host, which grows. */
static void cuda_frame(ty_cuda *c, int number, ty_cuda_block *outputs)
{
    cuda_program *p = &c->program[number];
    ty_cuda_frame_of(c->plan[number], &p->tape, &c->memory, &c->arena, &p->frame);
    cuda_find_outputs(c, p);
    for (int i = 0; i < TY_CUDA_IN_FLIGHT * p->frame.n_outputs; i++)
        ty_cuda_block_add(outputs, p->output[i / TY_CUDA_IN_FLIGHT].bytes);
}

/* All that is known without a GPU. */
static void cuda_measure(ty_cuda *c)
{
    const ty_cuda_block *b = c->memory.block;
    const ty_cuda_tape **tape = TY_NEW_ARRAY(&c->arena, const ty_cuda_tape *, c->n_plans);
    ty_cuda_block outputs = {.bytes = 0};
    ty_cuda_report *r = &c->report;
    for (int p = 0; p < c->n_plans; p++) {
        tape[p] = &c->program[p].tape;
        cuda_count(tape[p], r);
    }
    ty_cuda_memory_measure(&c->memory, c->plan, tape, c->n_plans, &c->arena);
    if (c->opt.beside)
        ty_cuda_memory_borrow(&c->memory, &c->opt.beside->memory);
    for (int p = 0; p < c->n_plans; p++)
        cuda_frame(c, p, &outputs);
    r->n_distinct_kernels = c->texts.n;
    for (int i = 0; i < c->texts.n; i++)
        r->text_bytes += c->texts.one[i].len;
    r->slab_bytes = b[TY_CUDA_SLAB].bytes;
    r->scratch_bytes =
        b[TY_CUDA_WORKSPACE].bytes + b[TY_CUDA_SPARE].bytes + b[TY_CUDA_SCRATCH].bytes + b[TY_CUDA_ROOM].bytes;
    r->batch_bytes = b[TY_CUDA_INPUTS].bytes + b[TY_CUDA_STAGED].bytes;
    r->pinned_bytes = outputs.bytes;
    r->host_bytes = outputs.bytes + b[TY_CUDA_STAGED].bytes;
    r->code_bytes = (size_t)c->texts.n * CUDA_KERNEL_BYTES + (r->n_library_calls ? CUDA_LIBRARY_BYTES : 0) +
                    (cuda_n_exchanges(c) ? CUDA_NCCL_BYTES : 0);
    r->total_bytes = ty_cuda_memory_bytes(&c->memory) + r->code_bytes;
}

/* Told before anything is compiled, let alone run. */
static int cuda_check_memory(ty_cuda *c, ty_error *err)
{
    size_t free = 0, total = 0;
    unsigned status = c->gpu.cu->cuMemGetInfo_v2(&free, &total);
    if (ty_gpu_status(&c->gpu, status, "asking for free memory", err) < 0)
        return -1;
    c->free_bytes = free;
    if (c->report.total_bytes <= free)
        return 0;
    ty_error_set(err, TY_E_LIMIT, "no memory on the GPU for this training: %zu MB are needed, %zu of %zu MB are free",
                 c->report.total_bytes / 1000000, free / 1000000, total / 1000000);
    return ty_error_help(err, "take a smaller batch_size (with accumulate for the same steps)");
}

static int cuda_program_new(ty_cuda *c, cuda_program *p, ty_error *err)
{
    for (int i = 0; i < TY_CUDA_IN_FLIGHT; i++) {
        unsigned status = c->gpu.cu->cuEventCreate(&p->done[i], TY_CU_EVENT_DISABLE_TIMING | TY_CU_EVENT_BLOCKING_SYNC);
        if (ty_gpu_status(&c->gpu, status, "making an event", err) < 0)
            return -1;
    }
    cuda_find_parameters(c, p);
    return cuda_find_functions(c, p, err);
}

/* Libraries are asked before kernels are compiled: what they refuse makes other kernels. */
static int cuda_build(ty_cuda *c, ty_error *err)
{
    const ty_cuda_block *b = c->memory.block;
    if (cuda_tapes(c, err) < 0)
        return -1;
    cuda_measure(c);
    ty_phases_lap(c->opt.phases, "render");
    if (ty_gpu_open(c->opt.device, &c->gpu, err) < 0 || cuda_check_memory(c, err) < 0 ||
        ty_cuda_memory_get(&c->memory, &c->gpu, err) < 0 || cuda_pin(c, err) < 0 ||
        ty_feed_open(&c->feed, &c->gpu, b[TY_CUDA_STAGED].at, b[TY_CUDA_INPUTS].bytes, err) < 0 ||
        cuda_upload_constants(c, err) < 0)
        return -1;
    ty_phases_lap(c->opt.phases, "memory");
    cuda_share(c);
    if (ty_cuda_prepare(c, err) < 0)
        return -1;
    ty_phases_lap(c->opt.phases, "prepare");
    if (cuda_load_modules(c, err) < 0)
        return -1;
    ty_phases_lap(c->opt.phases, "nvrtc");
    for (int p = 0; p < c->n_plans; p++)
        if (cuda_program_new(c, &c->program[p], err) < 0)
            return -1;
    return 0;
}

static ty_cuda *cuda_new(const ty_plan *const *plans, int n_plans, const ty_cuda_options *opt)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_cuda *c = TY_NEW(&arena, ty_cuda);
    c->arena = arena;
    c->texts.arena = &c->arena;
    c->opt = *opt;
    c->plan = ty_arena_copy(&c->arena, plans, sizeof *plans * (size_t)n_plans);
    c->n_plans = n_plans;
    c->g = plans[0]->f->g;
    c->program = TY_NEW_ARRAY(&c->arena, cuda_program, n_plans);
    return c;
}

int ty_cuda_new(const ty_plan *const *plans, int n_plans, const ty_cuda_options *opt, ty_cuda **out, ty_error *err)
{
    ty_cuda *c = cuda_new(plans, n_plans, opt);
    if (cuda_build(c, err) < 0) {
        ty_cuda_free(c);
        return -1;
    }
    *out = c;
    return 0;
}

/* ---- getting ready, which takes all replicas ---- */

static int cuda_meet(ty_cuda *c, ty_error *err)
{
    if (c->opt.join && c->opt.join(c->opt.join_ctx, &c->opt.group, err) < 0)
        return -1;
    const ty_cuda_company with = {.group = c->opt.group,
                                  .replica = c->opt.replica,
                                  .replicas = c->opt.replicas,
                                  .n = cuda_n_exchanges(c),
                                  .room = c->memory.block[TY_CUDA_ROOM].at};
    if (c->opt.group)
        ty_phases_lap(c->opt.phases, "replicas");
    return ty_cuda_exchanges_open(&c->exchanges, &c->gpu, &with, &c->arena, err);
}

static int cuda_program_ready(ty_cuda *c, cuda_program *p, ty_error *err)
{
    int rc = ty_cuda_warm(c, p, err);
    ty_phases_lap(c->opt.phases, "warm");
    if (rc == 0)
        rc = ty_cuda_capture(c, p, err);
    ty_phases_lap(c->opt.phases, "capture");
    return rc;
}

/* What kernels, libraries, connections and graphs hold is known once they are there, and takes the place of the
 * estimate. Of the memory that is gone, what was asked for is known; another process on the GPU counts here too. */
static int cuda_correct(ty_cuda *c, ty_error *err)
{
    size_t free = 0, total = 0, asked = ty_cuda_memory_bytes(&c->memory);
    unsigned status = c->gpu.cu->cuMemGetInfo_v2(&free, &total);
    if (ty_gpu_status(&c->gpu, status, "asking for free memory", err) < 0)
        return -1;
    size_t gone = c->free_bytes > free ? c->free_bytes - free : 0;
    c->report.code_bytes = gone > asked ? gone - asked : 0;
    c->report.total_bytes = asked + c->report.code_bytes;
    return 0;
}

int ty_cuda_ready(ty_cuda *c, ty_error *err)
{
    if (cuda_meet(c, err) < 0)
        return -1;
    for (int p = 0; p < c->n_plans; p++)
        if (cuda_program_ready(c, &c->program[p], err) < 0)
            return -1;
    return cuda_correct(c, err);
}

int ty_cuda_measure(const ty_plan *const *plans, int n_plans, const ty_cuda_options *opt, ty_cuda_report *out,
                    ty_error *err)
{
    ty_cuda *c = cuda_new(plans, n_plans, opt);
    int rc = cuda_tapes(c, err);
    if (rc == 0)
        cuda_measure(c);
    if (rc == 0 && opt->build.capability > 0)
        rc = ty_cuda_is_built(&c->texts, &opt->build, &c->arena, &c->report.cache_hit, err);
    *out = c->report;
    ty_cuda_free(c);
    return rc;
}

const ty_cuda_report *ty_cuda_report_of(const ty_cuda *c)
{
    return &c->report;
}

static void cuda_free_program(ty_cuda *c, cuda_program *p)
{
    if (p->graph)
        c->gpu.cu->cuGraphExecDestroy(p->graph);
    for (int i = 0; p->library && i < p->tape.n_calls; i++)
        ty_cuda_library_release(&p->library[i]);
    for (int i = 0; i < TY_CUDA_IN_FLIGHT; i++)
        if (p->done[i])
            c->gpu.cu->cuEventDestroy_v2(p->done[i]);
    for (int i = 0; p->clock && i <= p->tape.n_calls; i++)
        if (p->clock[i])
            c->gpu.cu->cuEventDestroy_v2(p->clock[i]);
}

static void cuda_close(ty_cuda *c)
{
    ty_gpu_wait(&c->gpu, NULL); /* for what was started and not finished */
    for (int p = 0; p < c->n_plans; p++)
        cuda_free_program(c, &c->program[p]);
    ty_cuda_exchanges_close(&c->exchanges);
    ty_cuda_libraries_close(&c->libraries);
    ty_feed_close(&c->feed);
    ty_cuda_memory_free(&c->memory, &c->gpu);
    if (c->pinned)
        c->gpu.cu->cuMemFreeHost(c->pinned);
    for (int i = 0; i < c->n_modules; i++)
        c->gpu.cu->cuModuleUnload(c->module[i]);
    free(c->look);
    ty_gpu_close(&c->gpu);
}

void ty_cuda_free(ty_cuda *c)
{
    if (!c)
        return;
    if (c->gpu.stream)
        cuda_close(c);
    ty_arena arena = c->arena;
    ty_arena_fini(&arena);
}
