/* cuda.c - see cuda.h. */
#include "compiler/target/cuda/cuda.h"

#include "compiler/ops/op.h"
#include "compiler/phases.h"
#include "compiler/target/cuda/build.h"
#include "compiler/target/cuda/library.h"
#include "compiler/target/cuda/tape.h"

#include <stdio.h>
#include <string.h>

/* What cuBLASLt may use beside its operands: what NVIDIA advises for Hopper. */
#define CUDA_WORKSPACE_BYTES ((size_t)32 << 20)
#define CUDA_ALIGN           256

/* Memory of several things in one piece. */
typedef struct cuda_block {
    CUdeviceptr at;
    size_t bytes;
    size_t *offset; /* of each thing */
    int n;
} cuda_block;

/* An output of a tape: on the GPU, and the host's copy. */
typedef struct cuda_output {
    ty_val value;
    CUdeviceptr from;
    char *to;
    size_t bytes;
} cuda_output;

typedef struct cuda_program {
    ty_cuda_tape tape;
    ty_cuda_library_call *library; /* by call */
    CUfunction *function;          /* by kernel */
    cuda_output *output;
    int n_outputs;
    bool *reads; /* by input */
    CUgraphExec graph;
} cuda_program;

struct ty_cuda {
    ty_arena arena;
    ty_cuda_options opt;
    const ty_plan *const *plan;
    int n_plans;
    const ty_graph *g;
    ty_gpu gpu;
    ty_cuda_libraries libraries;
    cuda_program *program; /* by plan */
    ty_ktexts texts;
    ty_cuda_code code;
    CUmodule module[TY_CUDA_MAX_UNITS];
    int n_modules;
    cuda_block slab, states, constants, inputs, workspace;
    cuda_block spare;   /* results that nobody reads go here */
    cuda_block scratch; /* of calls, one after the other */
    ty_val *constant;   /* of all tapes */
    char *pinned;       /* host memory that the GPU reads and writes: inputs, then outputs */
};

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
        ty_error_help(err, "train on the CPU");
    ty_buf_fini(&text);
    return rc;
}

/* ---- memory ---- */

static size_t cuda_add_bytes(cuda_block *b, size_t bytes)
{
    size_t at = b->bytes;
    b->bytes += (bytes + CUDA_ALIGN - 1) / CUDA_ALIGN * CUDA_ALIGN;
    return at;
}

static void cuda_add_thing(ty_cuda *c, cuda_block *b, int max, size_t bytes)
{
    if (!b->offset)
        b->offset = TY_NEW_ARRAY(&c->arena, size_t, max);
    b->offset[b->n++] = cuda_add_bytes(b, bytes);
}

/* The number of a constant, over all tapes, or how many there are. */
static int cuda_constant_number(const ty_cuda *c, ty_val v)
{
    int n = 0;
    while (n < c->constants.n && c->constant[n] != v)
        n++;
    return n;
}

static void cuda_add_constant(ty_cuda *c, ty_val v, int max)
{
    int n = cuda_constant_number(c, v);
    if (n < c->constants.n)
        return;
    c->constant[n] = v;
    cuda_add_thing(c, &c->constants, max, ty_type_bytes(ty_graph_type(c->g, v)));
}

/* Those that calls read, and those that are outputs. */
static void cuda_number_constants(ty_cuda *c)
{
    int max = 0;
    for (int p = 0; p < c->n_plans; p++)
        max += c->program[p].tape.n_constants + c->program[p].n_outputs;
    c->constant = TY_NEW_ARRAY(&c->arena, ty_val, max);
    for (int p = 0; p < c->n_plans; p++) {
        for (int i = 0; i < c->program[p].tape.n_constants; i++)
            cuda_add_constant(c, c->program[p].tape.constant[i], max);
        for (int i = 0; i < c->program[p].n_outputs; i++) {
            ty_place at = ty_plan_place(c->plan[p], c->program[p].output[i].value);
            if (at.kind == TY_PLACE_CONST)
                cuda_add_constant(c, (ty_val)at.index, max);
        }
    }
}

/* Calls write results that have no place in the plan too. */
static void cuda_measure_unread(ty_cuda *c, const ty_plan *plan)
{
    for (int i = 0; i < plan->n_order; i++) {
        const ty_unit *u = &plan->f->unit[plan->order[i]];
        for (uint32_t r = 0; u->kind == TY_UNIT_LIBRARY && r < ty_graph_node(c->g, u->node)->n_res; r++) {
            ty_val v = ty_val_make(u->node, r);
            size_t bytes = ty_type_bytes(ty_graph_type(c->g, v));
            if (ty_plan_place(plan, v).kind == TY_PLACE_NONE && bytes > c->spare.bytes)
                c->spare.bytes = bytes;
        }
    }
}

static void cuda_measure(ty_cuda *c)
{
    for (int i = 0; i < ty_graph_n_states(c->g); i++)
        cuda_add_thing(c, &c->states, ty_graph_n_states(c->g), ty_type_bytes(&ty_graph_state(c->g, i)->type));
    for (int i = 0; i < ty_graph_n_inputs(c->g); i++)
        cuda_add_thing(c, &c->inputs, ty_graph_n_inputs(c->g), ty_type_bytes(&ty_graph_input(c->g, i)->type));
    for (int p = 0; p < c->n_plans; p++)
        if ((size_t)c->plan[p]->slab_bytes > c->slab.bytes)
            c->slab.bytes = (size_t)c->plan[p]->slab_bytes;
    for (int p = 0; p < c->n_plans; p++)
        cuda_measure_unread(c, c->plan[p]);
    for (int p = 0; p < c->n_plans; p++)
        if ((size_t)c->program[p].tape.scratch_bytes > c->scratch.bytes)
            c->scratch.bytes = (size_t)c->program[p].tape.scratch_bytes;
    c->workspace.bytes = CUDA_WORKSPACE_BYTES;
    cuda_number_constants(c);
}

static int cuda_get_memory(ty_cuda *c, ty_error *err)
{
    struct {
        cuda_block *block;
        const char *what;
    } const all[] = {{&c->states, "weights and the optimizer's state"},
                     {&c->slab, "temporaries"},
                     {&c->constants, "constants"},
                     {&c->inputs, "a batch"},
                     {&c->spare, "results that nobody reads"},
                     {&c->scratch, "what calls need besides"},
                     {&c->workspace, "the workspace of products"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (ty_gpu_alloc(&c->gpu, all[i].block->bytes, all[i].what, &all[i].block->at, err) < 0)
            return -1;
    return 0;
}

/* ---- places ---- */

/* What has no place is a result that nobody reads, or an operand that the call does not look at. */
static CUdeviceptr cuda_address(const ty_cuda *c, const ty_place *at)
{
    switch (at->kind) {
    case TY_PLACE_SLAB:
        return c->slab.at + (CUdeviceptr)at->offset;
    case TY_PLACE_STATE:
        return c->states.at + c->states.offset[at->index] + (CUdeviceptr)at->offset;
    case TY_PLACE_INPUT:
        return c->inputs.at + c->inputs.offset[at->index] + (CUdeviceptr)at->offset;
    case TY_PLACE_CONST:
        return c->constants.at + c->constants.offset[cuda_constant_number(c, (ty_val)at->index)] +
               (CUdeviceptr)at->offset;
    case TY_PLACE_SCRATCH:
        return c->scratch.at;
    default:
        return c->spare.at;
    }
}

/* ---- outputs and inputs ---- */

static void cuda_find_outputs(ty_cuda *c, int number)
{
    cuda_program *p = &c->program[number];
    p->output = TY_NEW_ARRAY(&c->arena, cuda_output, ty_graph_n_outputs(c->g));
    for (int i = 0; i < ty_graph_n_outputs(c->g); i++) {
        const ty_output *out = ty_graph_output(c->g, i);
        if (out->tapes & c->plan[number]->f->tape)
            p->output[p->n_outputs++] =
                (cuda_output){.value = out->val, .bytes = ty_type_bytes(ty_graph_type(c->g, out->val))};
    }
}

static void cuda_note_input(cuda_program *p, const ty_place *at)
{
    if (at->kind == TY_PLACE_INPUT)
        p->reads[at->index] = true;
}

static void cuda_find_inputs(ty_cuda *c, int number)
{
    cuda_program *p = &c->program[number];
    p->reads = TY_NEW_ARRAY(&c->arena, bool, ty_graph_n_inputs(c->g));
    for (int i = 0; i < p->tape.n_calls; i++)
        for (int k = 0; k < p->tape.call[i].n_at; k++)
            cuda_note_input(p, &p->tape.call[i].at[k]);
    for (int i = 0; i < p->n_outputs; i++) {
        ty_place at = ty_plan_place(c->plan[number], p->output[i].value);
        cuda_note_input(p, &at);
    }
}

/* The host's side of inputs lies as the GPU's does; outputs follow. */
static int cuda_pin(ty_cuda *c, ty_error *err)
{
    cuda_block room = {.bytes = c->inputs.bytes};
    for (int p = 0; p < c->n_plans; p++)
        for (int i = 0; i < c->program[p].n_outputs; i++)
            cuda_add_bytes(&room, c->program[p].output[i].bytes);
    void *at = NULL;
    unsigned status = c->gpu.cu->cuMemHostAlloc(&at, room.bytes ? room.bytes : CUDA_ALIGN, 0);
    if (ty_gpu_status(&c->gpu, status, "pinning memory for batches", err) < 0)
        return -1;
    c->pinned = at;
    room.bytes = c->inputs.bytes;
    for (int p = 0; p < c->n_plans; p++)
        for (int i = 0; i < c->program[p].n_outputs; i++) {
            cuda_output *out = &c->program[p].output[i];
            ty_place place = ty_plan_place(c->plan[p], out->value);
            out->from = cuda_address(c, &place);
            out->to = c->pinned + cuda_add_bytes(&room, out->bytes);
        }
    return 0;
}

/* ---- kernels ---- */

static int cuda_load_modules(ty_cuda *c, ty_error *err)
{
    const ty_cuda_build_options build = {.capability = c->gpu.capability, .threads = c->opt.threads};
    if (ty_cuda_build(&c->texts, &build, &c->arena, &c->code, err) < 0)
        return -1;
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
        if (c->gpu.cu->cuModuleGetFunction(out, c->module[i], name) == TY_CU_SUCCESS)
            return 0;
    return ty_error_set(err, TY_E_COMPILER, "compiled kernels lack %s", name);
}

static int cuda_find_functions(ty_cuda *c, cuda_program *p, ty_error *err)
{
    p->function = TY_NEW_ARRAY(&c->arena, CUfunction, p->tape.n_kernels);
    for (int i = 0; i < p->tape.n_kernels; i++)
        if (cuda_find_function(c, p->tape.kernel[i], &p->function[i], err) < 0)
            return -1;
    return 0;
}

/* ---- library calls ---- */

static int cuda_prepare_call(ty_cuda *c, cuda_program *p, int number, ty_error *err)
{
    const ty_cuda_call *call = &p->tape.call[number];
    CUdeviceptr *at = TY_NEW_ARRAY(&c->arena, CUdeviceptr, call->n_at);
    for (int i = 0; i < call->n_at; i++)
        at[i] = cuda_address(c, &call->at[i]);
    if (ty_cuda_library_prepare(&c->libraries, c->g, call->node, at, &p->library[number], err) < 0)
        return ty_error_wrap(err, "%s", call->origin);
    return 0;
}

static int cuda_prepare(ty_cuda *c, cuda_program *p, ty_error *err)
{
    p->library = TY_NEW_ARRAY(&c->arena, ty_cuda_library_call, p->tape.n_calls);
    for (int i = 0; i < p->tape.n_calls; i++)
        if (p->tape.call[i].kind == TY_CUDA_LIBRARY && cuda_prepare_call(c, p, i, err) < 0)
            return -1;
    return 0;
}

static void cuda_share(ty_cuda *c)
{
    c->libraries = (ty_cuda_libraries){.stream = c->gpu.stream,
                                       .workspace = c->workspace.at,
                                       .workspace_bytes = c->workspace.bytes,
                                       .tf32 = c->opt.tf32,
                                       .arena = &c->arena};
}

/* ---- the graph of a tape ---- */

static int cuda_launch(ty_cuda *c, const cuda_program *p, const ty_cuda_call *call, ty_error *err)
{
    CUdeviceptr *address = TY_NEW_ARRAY(&c->arena, CUdeviceptr, call->n_at);
    void **parameter = TY_NEW_ARRAY(&c->arena, void *, call->n_at);
    for (int i = 0; i < call->n_at; i++) {
        address[i] = cuda_address(c, &call->at[i]);
        parameter[i] = &address[i];
    }
    unsigned status =
        c->gpu.cu->cuLaunchKernel(p->function[call->kernel], (unsigned)call->launch.blocks, 1, 1,
                                  (unsigned)call->launch.threads, 1, 1, 0, c->gpu.stream, parameter, NULL);
    return ty_gpu_status(&c->gpu, status, "launching a kernel", err);
}

static int cuda_issue(ty_cuda *c, const cuda_program *p, int number, ty_error *err)
{
    const ty_cuda_call *call = &p->tape.call[number];
    if (call->kind == TY_CUDA_LAUNCH)
        return cuda_launch(c, p, call, err);
    if (call->kind == TY_CUDA_LIBRARY)
        return p->library[number].run(p->library[number].prepared, err);
    unsigned status = c->gpu.cu->cuMemcpyDtoDAsync_v2(cuda_address(c, &call->at[0]), cuda_address(c, &call->at[1]),
                                                      call->bytes, c->gpu.stream);
    return ty_gpu_status(&c->gpu, status, "copying on the GPU", err);
}

static int cuda_issue_all(ty_cuda *c, const cuda_program *p, ty_error *err)
{
    for (int i = 0; i < p->tape.n_calls; i++)
        if (cuda_issue(c, p, i, err) < 0)
            return ty_error_wrap(err, "%s", p->tape.call[i].origin);
    for (int i = 0; i < p->n_outputs; i++) {
        const cuda_output *out = &p->output[i];
        unsigned status = c->gpu.cu->cuMemcpyDtoHAsync_v2(out->to, out->from, out->bytes, c->gpu.stream);
        if (ty_gpu_status(&c->gpu, status, "copying an output", err) < 0)
            return -1;
    }
    return 0;
}

/* What is issued meanwhile does not run: it becomes the graph. */
static int cuda_capture(ty_cuda *c, cuda_program *p, ty_error *err)
{
    const ty_cu *cu = c->gpu.cu;
    CUgraph graph = NULL;
    unsigned status = cu->cuStreamBeginCapture_v2(c->gpu.stream, TY_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (ty_gpu_status(&c->gpu, status, "capturing a step", err) < 0)
        return -1;
    int rc = cuda_issue_all(c, p, err);
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

/* ---- building ---- */

static int cuda_upload_constants(ty_cuda *c, ty_error *err)
{
    for (int i = 0; i < c->constants.n; i++) {
        unsigned status = c->gpu.cu->cuMemcpyHtoDAsync_v2(
            c->constants.at + c->constants.offset[i], ty_graph_const_data(c->g, c->constant[i]),
            ty_type_bytes(ty_graph_type(c->g, c->constant[i])), c->gpu.stream);
        if (ty_gpu_status(&c->gpu, status, "copying constants to the GPU", err) < 0)
            return -1;
    }
    return ty_gpu_wait(&c->gpu, err);
}

static int cuda_tapes(ty_cuda *c, ty_error *err)
{
    for (int p = 0; p < c->n_plans; p++) {
        if (ty_cuda_tape_of(c->plan[p], &c->texts, &c->arena, &c->program[p].tape, err) < 0)
            return -1;
        cuda_find_outputs(c, p);
        cuda_find_inputs(c, p);
    }
    return cuda_check_ops(c, err);
}

static int cuda_program_new(ty_cuda *c, cuda_program *p, ty_error *err)
{
    if (cuda_find_functions(c, p, err) < 0 || cuda_prepare(c, p, err) < 0)
        return -1;
    ty_phases_lap(c->opt.phases, "prepare");
    int rc = cuda_capture(c, p, err);
    ty_phases_lap(c->opt.phases, "capture");
    return rc;
}

static int cuda_build(ty_cuda *c, ty_error *err)
{
    if (cuda_tapes(c, err) < 0 || ty_gpu_open(c->opt.device, &c->gpu, err) < 0)
        return -1;
    ty_phases_lap(c->opt.phases, "render");
    cuda_measure(c);
    if (cuda_get_memory(c, err) < 0 || cuda_pin(c, err) < 0 || cuda_upload_constants(c, err) < 0)
        return -1;
    ty_phases_lap(c->opt.phases, "memory");
    if (cuda_load_modules(c, err) < 0)
        return -1;
    ty_phases_lap(c->opt.phases, "nvrtc");
    cuda_share(c);
    for (int p = 0; p < c->n_plans; p++)
        if (cuda_program_new(c, &c->program[p], err) < 0)
            return -1;
    return 0;
}

int ty_cuda_new(const ty_plan *const *plans, int n_plans, const ty_cuda_options *opt, ty_cuda **out, ty_error *err)
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
    if (cuda_build(c, err) < 0) {
        ty_cuda_free(c);
        return -1;
    }
    *out = c;
    return 0;
}

static void cuda_free_program(ty_cuda *c, cuda_program *p)
{
    if (p->graph)
        c->gpu.cu->cuGraphExecDestroy(p->graph);
    for (int i = 0; p->library && i < p->tape.n_calls; i++)
        ty_cuda_library_release(&p->library[i]);
}

void ty_cuda_free(ty_cuda *c)
{
    if (!c)
        return;
    for (int p = 0; p < c->n_plans; p++)
        cuda_free_program(c, &c->program[p]);
    ty_cuda_libraries_close(&c->libraries);
    const CUdeviceptr memory[] = {c->slab.at,  c->states.at,  c->constants.at, c->inputs.at,
                                  c->spare.at, c->scratch.at, c->workspace.at};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        ty_gpu_free(&c->gpu, memory[i]);
    if (c->pinned)
        c->gpu.cu->cuMemFreeHost(c->pinned);
    for (int i = 0; i < c->n_modules; i++)
        c->gpu.cu->cuModuleUnload(c->module[i]);
    ty_gpu_close(&c->gpu);
    ty_arena arena = c->arena;
    ty_arena_fini(&arena);
}

/* ---- running ---- */

int ty_cuda_upload(ty_cuda *c, ty_error *err)
{
    for (int i = 0; i < c->states.n; i++) {
        unsigned status = c->gpu.cu->cuMemcpyHtoDAsync_v2(c->states.at + c->states.offset[i], c->opt.state[i],
                                                          ty_type_bytes(&ty_graph_state(c->g, i)->type), c->gpu.stream);
        if (ty_gpu_status(&c->gpu, status, "copying states to the GPU", err) < 0)
            return -1;
    }
    return ty_gpu_wait(&c->gpu, err);
}

int ty_cuda_download(ty_cuda *c, ty_error *err)
{
    for (int i = 0; i < c->states.n; i++) {
        unsigned status = c->gpu.cu->cuMemcpyDtoHAsync_v2(c->opt.state[i], c->states.at + c->states.offset[i],
                                                          ty_type_bytes(&ty_graph_state(c->g, i)->type), c->gpu.stream);
        if (ty_gpu_status(&c->gpu, status, "copying states from the GPU", err) < 0)
            return -1;
    }
    return ty_gpu_wait(&c->gpu, err);
}

int ty_cuda_run(ty_cuda *c, int plan, const void *const *inputs, ty_error *err)
{
    cuda_program *p = &c->program[plan];
    for (int i = 0; i < c->inputs.n; i++) {
        size_t bytes = ty_type_bytes(&ty_graph_input(c->g, i)->type);
        if (!p->reads[i])
            continue;
        memcpy(c->pinned + c->inputs.offset[i], inputs[i], bytes);
        unsigned status = c->gpu.cu->cuMemcpyHtoDAsync_v2(c->inputs.at + c->inputs.offset[i],
                                                          c->pinned + c->inputs.offset[i], bytes, c->gpu.stream);
        if (ty_gpu_status(&c->gpu, status, "copying a batch to the GPU", err) < 0)
            return -1;
    }
    if (ty_gpu_status(&c->gpu, c->gpu.cu->cuGraphLaunch(p->graph, c->gpu.stream), "starting a step", err) < 0)
        return -1;
    return ty_gpu_wait(&c->gpu, err);
}

const void *ty_cuda_value(const ty_cuda *c, int plan, ty_val v)
{
    const cuda_program *p = &c->program[plan];
    for (int i = 0; i < p->n_outputs; i++)
        if (p->output[i].value == v)
            return p->output[i].to;
    return NULL;
}
