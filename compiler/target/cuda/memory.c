/* memory.c - see memory.h. */
#include "compiler/target/cuda/memory.h"

#include "compiler/target/cuda/feed.h"
#include "compiler/target/cuda/library.h"

#define MEMORY_ALIGN 256

/* ---- measuring ---- */

size_t ty_cuda_block_add(ty_cuda_block *b, size_t bytes)
{
    size_t at = b->bytes;
    b->bytes += (bytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
    return at;
}

static void memory_add_thing(ty_cuda_block *b, size_t bytes)
{
    b->offset[b->n++] = ty_cuda_block_add(b, bytes);
}

/* The number of a constant, or how many there are. */
static int memory_constant_number(const ty_cuda_memory *m, ty_val v)
{
    int n = 0;
    while (n < m->block[TY_CUDA_CONSTANTS].n && m->constant[n] != v)
        n++;
    return n;
}

static void memory_add_constant(ty_cuda_memory *m, ty_val *list, const ty_graph *g, ty_val v)
{
    ty_cuda_block *b = &m->block[TY_CUDA_CONSTANTS];
    if (memory_constant_number(m, v) < b->n)
        return;
    list[b->n] = v;
    memory_add_thing(b, ty_type_bytes(ty_graph_type(g, v)));
}

static void memory_constants(ty_cuda_memory *m, const ty_plan *const *plans, const ty_cuda_tape *const *tapes, int n,
                             ty_arena *a)
{
    const ty_graph *g = plans[0]->f->g;
    int max = ty_graph_n_outputs(g);
    for (int p = 0; p < n; p++)
        max += tapes[p]->n_constants;
    ty_val *list = TY_NEW_ARRAY(a, ty_val, max);
    m->constant = list;
    m->block[TY_CUDA_CONSTANTS].offset = TY_NEW_ARRAY(a, size_t, max);
    for (int p = 0; p < n; p++) {
        for (int i = 0; i < tapes[p]->n_constants; i++)
            memory_add_constant(m, list, g, tapes[p]->constant[i]);
        for (int i = 0; i < ty_graph_n_outputs(g); i++) {
            const ty_output *out = ty_graph_output(g, i);
            ty_place at = ty_plan_place(plans[p], out->val);
            if ((out->tapes & plans[p]->f->tape) && at.kind == TY_PLACE_CONST)
                memory_add_constant(m, list, g, (ty_val)at.index);
        }
    }
}

/* Calls write results that have no place in the plan too. */
static void memory_spare(ty_cuda_block *spare, const ty_plan *plan)
{
    const ty_graph *g = plan->f->g;
    for (int i = 0; i < plan->n_order; i++) {
        const ty_unit *u = &plan->f->unit[plan->order[i]];
        for (uint32_t r = 0; u->kind == TY_UNIT_LIBRARY && r < ty_graph_node(g, u->node)->n_res; r++) {
            ty_val v = ty_val_make(u->node, r);
            size_t bytes = ty_type_bytes(ty_graph_type(g, v));
            if (ty_plan_place(plan, v).kind == TY_PLACE_NONE && bytes > spare->bytes)
                spare->bytes = bytes;
        }
    }
}

/* Of the call that may use most: one runs after the other. */
static void memory_workspace(ty_cuda_block *workspace, const ty_plan *plan, const ty_cuda_tape *tape)
{
    for (int i = 0; i < tape->n_calls; i++) {
        const ty_cuda_call *call = &tape->call[i];
        size_t bytes = call->kind == TY_CUDA_LIBRARY ? ty_cuda_library_workspace(plan->f->g, call->node) : 0;
        if (bytes > workspace->bytes)
            workspace->bytes = bytes;
    }
}

void ty_cuda_memory_measure(ty_cuda_memory *m, const ty_plan *const *plans, const ty_cuda_tape *const *tapes, int n,
                            ty_arena *a)
{
    const ty_graph *g = plans[0]->f->g;
    ty_cuda_block *b = m->block;
    *m = (ty_cuda_memory){.constant = NULL};
    b[TY_CUDA_STATES].offset = TY_NEW_ARRAY(a, size_t, ty_graph_n_states(g));
    for (int i = 0; i < ty_graph_n_states(g); i++)
        memory_add_thing(&b[TY_CUDA_STATES], ty_type_bytes(&ty_graph_state(g, i)->type));
    b[TY_CUDA_INPUTS].offset = TY_NEW_ARRAY(a, size_t, ty_graph_n_inputs(g));
    for (int i = 0; i < ty_graph_n_inputs(g); i++)
        memory_add_thing(&b[TY_CUDA_INPUTS], ty_type_bytes(&ty_graph_input(g, i)->type));
    b[TY_CUDA_STAGED].bytes = TY_FEED_SLOTS * b[TY_CUDA_INPUTS].bytes;
    for (int p = 0; p < n; p++) {
        if ((size_t)plans[p]->slab_bytes > b[TY_CUDA_SLAB].bytes)
            b[TY_CUDA_SLAB].bytes = (size_t)plans[p]->slab_bytes;
        if ((size_t)tapes[p]->scratch_bytes > b[TY_CUDA_SCRATCH].bytes)
            b[TY_CUDA_SCRATCH].bytes = (size_t)tapes[p]->scratch_bytes;
        if (tapes[p]->room_bytes > b[TY_CUDA_ROOM].bytes)
            b[TY_CUDA_ROOM].bytes = tapes[p]->room_bytes;
        memory_spare(&b[TY_CUDA_SPARE], plans[p]);
        memory_workspace(&b[TY_CUDA_WORKSPACE], plans[p], tapes[p]);
    }
    memory_constants(m, plans, tapes, n, a);
}

void ty_cuda_memory_borrow(ty_cuda_memory *m, const ty_cuda_memory *from)
{
    static const ty_cuda_block_kind lent[] = {TY_CUDA_STATES,  TY_CUDA_SLAB, TY_CUDA_SPARE,
                                              TY_CUDA_SCRATCH, TY_CUDA_ROOM, TY_CUDA_WORKSPACE};
    for (size_t i = 0; i < sizeof lent / sizeof lent[0]; i++) {
        ty_cuda_block *mine = &m->block[lent[i]];
        const ty_cuda_block *theirs = &from->block[lent[i]];
        mine->is_lent = theirs->bytes >= mine->bytes;
        mine->at = mine->is_lent ? theirs->at : 0;
    }
}

size_t ty_cuda_memory_bytes(const ty_cuda_memory *m)
{
    size_t bytes = 0;
    for (int i = 0; i < TY_CUDA_N_BLOCKS; i++)
        bytes += m->block[i].is_lent ? 0 : m->block[i].bytes;
    return bytes;
}

/* ---- getting ---- */

int ty_cuda_memory_get(ty_cuda_memory *m, const ty_gpu *gpu, ty_error *err)
{
    static const char *const what[TY_CUDA_N_BLOCKS] = {[TY_CUDA_STATES] = "weights and the optimizer's state",
                                                       [TY_CUDA_SLAB] = "temporaries",
                                                       [TY_CUDA_CONSTANTS] = "constants",
                                                       [TY_CUDA_INPUTS] = "a batch",
                                                       [TY_CUDA_STAGED] = "batches on their way",
                                                       [TY_CUDA_SPARE] = "results that nobody reads",
                                                       [TY_CUDA_SCRATCH] = "what calls need besides",
                                                       [TY_CUDA_ROOM] = "gradients of all replicas",
                                                       [TY_CUDA_WORKSPACE] = "the workspace of libraries"};
    for (int i = 0; i < TY_CUDA_N_BLOCKS; i++)
        if (!m->block[i].is_lent && ty_gpu_alloc(gpu, m->block[i].bytes, what[i], &m->block[i].at, err) < 0)
            return err && err->code == TY_E_LIMIT
                       ? ty_error_help(err, "use a smaller batch_size, or remat: auto with a memory budget")
                       : -1;
    return 0;
}

void ty_cuda_memory_free(ty_cuda_memory *m, const ty_gpu *gpu)
{
    for (int i = 0; i < TY_CUDA_N_BLOCKS; i++) {
        if (!m->block[i].is_lent)
            ty_gpu_free(gpu, m->block[i].at);
        m->block[i].at = 0;
    }
}

CUdeviceptr ty_cuda_memory_at(const ty_cuda_memory *m, const ty_place *at)
{
    static const struct {
        ty_cuda_block_kind block;
        bool has_things;
    } kind[] = {[TY_PLACE_NONE] = {TY_CUDA_SPARE, false},     [TY_PLACE_SLAB] = {TY_CUDA_SLAB, false},
                [TY_PLACE_INPUT] = {TY_CUDA_INPUTS, true},    [TY_PLACE_STATE] = {TY_CUDA_STATES, true},
                [TY_PLACE_CONST] = {TY_CUDA_CONSTANTS, true}, [TY_PLACE_SCRATCH] = {TY_CUDA_SCRATCH, false}};
    const ty_cuda_block *b = &m->block[kind[at->kind].block];
    int64_t thing = at->kind == TY_PLACE_CONST ? memory_constant_number(m, (ty_val)at->index) : at->index;
    return b->at + (kind[at->kind].has_things ? b->offset[thing] : 0) + (CUdeviceptr)at->offset;
}
