/* program.c - memory and runs of a compiled graph. See compiler.h. */
#include "compiler/program.h"

#include "base/pages.h"
#include "compiler/load.h"
#include "compiler/ops/ref.h"
#include "compiler/target/cpu/library.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

ty_tape ty_program_tape_of(ty_run run)
{
    static const ty_tape tape[TY_N_RUNS] = {[TY_RUN_MICRO] = TY_TAPE_MICRO,
                                            [TY_RUN_LAST] = TY_TAPE_LAST,
                                            [TY_RUN_EVAL] = TY_TAPE_EVAL,
                                            [TY_RUN_ROWS] = TY_TAPE_ROWS};
    return tape[run];
}

/* Programs that went before their exchanges were over, where a run has failed or nobody asked for a step's updates. Who
 * carries exchanges out may still read and write their memory: it goes with the process. */
static _Atomic(ty_program *) program_left;

void ty_program_free(ty_program *p)
{
    if (!p)
        return;
    ty_load_drop(p);
    ty_library_await();
    if (p->n_in_flight > 0) {
        p->left_before = atomic_exchange(&program_left, p);
        return;
    }
    ty_cpu_free(p->cpu);
    ty_interp_free(p->interp);
    ty_mirror_free(p->cuda);
    for (int i = 0; i < TY_N_RUNS; i++) {
        ty_plan_free(p->plan[i]);
        ty_fusion_free(p->fusion[i]);
    }
    for (int i = 0; p->state && p->home == p && i < ty_graph_n_states(p->graph); i++)
        ty_pages_free(p->state[i], ty_type_bytes(&ty_graph_state(p->graph, i)->type) + 64);
    ty_graph_free(p->graph);
    ty_arena_fini(&p->facts);
    ty_arena arena = p->arena; /* the program lies in its own arena */
    ty_arena_fini(&arena);
}

const ty_compile_report *ty_program_report(const ty_program *p)
{
    return &p->report;
}

const char *ty_program_hash(const ty_program *p)
{
    return p->hash;
}

/* ---- states ---- */

/* Those of the program beside: the same ones, with the same weights at the same places. */
static int program_share_states(ty_program *p, const ty_program *home, ty_error *err)
{
    int n = ty_graph_n_states(p->graph);
    bool same = n == ty_graph_n_states(home->graph);
    for (int i = 0; i < n && same; i++) {
        const ty_state *mine = ty_graph_state(p->graph, i), *theirs = ty_graph_state(home->graph, i);
        same = strcmp(mine->name, theirs->name) == 0 && ty_type_same(&mine->type, &theirs->type) &&
               mine->n_segments == theirs->n_segments;
        for (int k = 0; same && k < mine->n_segments; k++)
            same = strcmp(mine->segments[k].name, theirs->segments[k].name) == 0 &&
                   mine->segments[k].offset == theirs->segments[k].offset;
        p->state[i] = same ? home->state[i] : NULL;
    }
    return same ? 0 : ty_error_set(err, TY_E_INTERNAL, "programs for inputs of two sizes keep different states");
}

int ty_program_make_states(ty_program *p, bool plan_only, ty_error *err)
{
    int n = ty_graph_n_states(p->graph);
    p->state = TY_NEW_ARRAY(&p->arena, void *, n + 1);
    if (p->home != p)
        return plan_only ? 0 : program_share_states(p, p->home, err);
    for (int i = 0; i < n; i++) {
        const ty_state *state = ty_graph_state(p->graph, i);
        size_t bytes = ty_type_bytes(&state->type);
        p->report.state_bytes += bytes;
        if (plan_only)
            continue;
        p->state[i] = ty_pages_new(bytes + 64);
        if (!p->state[i])
            return ty_error_set(err, TY_E_LIMIT, "no memory for %zu bytes of \"%s\"", bytes, state->name);
    }
    return 0;
}

/* ---- the interpreter as a back end: states and results are carried between bytes and doubles ---- */

static void program_load_states(ty_program *p)
{
    for (int i = 0; i < ty_graph_n_states(p->graph); i++)
        ty_ref_load(ty_interp_state(p->interp, i), p->state[i]);
}

static void program_store_results(ty_program *p, ty_run run)
{
    for (int i = 0; i < ty_graph_n_states(p->graph); i++)
        ty_ref_store(ty_interp_state(p->interp, i), p->state[i]);
    for (int i = 0; i < p->n_outputs[run]; i++)
        ty_ref_store(ty_interp_output(p->interp, p->output[run][i]), p->result[run][i].data);
}

int ty_program_interpret(ty_program *p, ty_run run, const void *const *inputs, ty_error *err)
{
    program_load_states(p);
    if (ty_interp_run(p->interp, ty_program_tape_of(run), inputs, true, err) < 0)
        return -1;
    program_store_results(p, run);
    return 0;
}

/* ---- running ---- */

/* Behind the caller's inputs stands the number of the replica. */
const void *const *ty_program_inputs(ty_program *p, const void *const *inputs)
{
    if (p->replicas == 1)
        return inputs;
    memcpy(p->given, inputs, sizeof *inputs * (size_t)p->n_inputs);
    p->given[p->n_inputs] = &p->replica;
    return p->given;
}

int ty_program_can_run(ty_program *p, ty_run run, ty_error *err)
{
    if (!p->has[run])
        return ty_error_set(err, TY_E_INTERNAL, "this program has no tape number %d", (int)run);
    if (!p->cpu && !p->interp && !p->cuda)
        return ty_error_set(err, TY_E_INTERNAL, "this program was planned, not compiled: it cannot run");
    ty_load_end(p->home);
    return 0;
}

static void program_point_results(ty_program *p, ty_run run, const void *const *inputs)
{
    for (int i = 0; i < p->n_outputs[run]; i++)
        p->result[run][i].data = (void *)(uintptr_t)ty_cpu_output(p->cpu, p->plan_of[run], p->output[run][i], inputs);
}

void ty_program_ran_whole(ty_program *p, ty_run run, const void *const *inputs)
{
    if (run == TY_RUN_LAST)
        p->n_open = 0;
    program_point_results(p, run, inputs);
}

/* ---- a GPU ---- */

int ty_program_settle_on_gpu(ty_program *p, ty_error *err)
{
    if (!p->home->on_gpu && ty_mirror_upload(p->home->cuda, err) < 0)
        return -1;
    p->home->on_gpu = true;
    return 0;
}

static int program_start_on_gpu(ty_program *p, ty_run run, const void *const *inputs, ty_error *err)
{
    return ty_program_settle_on_gpu(p, err) < 0 ? -1 : ty_mirror_start(p->cuda, p->plan_of[run], inputs, err);
}

static int program_finish_on_gpu(ty_program *p, ty_run run, ty_error *err)
{
    if (ty_mirror_finish(p->cuda, p->plan_of[run], err) < 0)
        return -1;
    for (int i = 0; i < p->n_outputs[run]; i++)
        p->result[run][i].data = (void *)(uintptr_t)ty_mirror_value(p->cuda, p->plan_of[run],
                                                                    ty_graph_output(p->graph, p->output[run][i])->val);
    return 0;
}

/* ---- runs in halves ---- */

/* On a CPU the last run that was started may have left updates for the next one (compiler/target/cpu/late.h). */
static bool program_may_be_late(const ty_program *p, ty_run run)
{
    return p->cpu && p->has[run] && ty_cpu_has_late(p->cpu, p->plan_of[run]);
}

int ty_program_in_flight(const ty_program *p, ty_run run)
{
    return p->cuda ? TY_CUDA_IN_FLIGHT : program_may_be_late(p, run) ? 2 : 1;
}

static int program_start_on_cpu(ty_program *p, ty_run run, const void *const *inputs, ty_error *err)
{
    if (ty_cpu_start(p->cpu, p->plan_of[run], inputs, err) < 0)
        return -1;
    program_point_results(p, run, inputs);
    if (program_may_be_late(p, run))
        p->n_open = p->n_open < 2 ? p->n_open + 1 : 2;
    return 0;
}

int ty_program_start(ty_program *p, ty_run run, const void *const *inputs, ty_error *err)
{
    if (p->backend == TY_BACKEND_INTERPRETER)
        return ty_program_run(p, run, inputs, err);
    if (ty_program_can_run(p, run, err) < 0)
        return -1;
    inputs = ty_program_inputs(p, inputs);
    return p->cpu ? program_start_on_cpu(p, run, inputs, err) : program_start_on_gpu(p, run, inputs, err);
}

/* Of two open runs the second has made what the first one had left. */
static int program_finish_on_cpu(ty_program *p, ty_run run, ty_error *err)
{
    if (!program_may_be_late(p, run) || p->n_open == 0)
        return 0;
    return --p->n_open == 0 ? ty_cpu_catch_up(p->cpu, err) : 0;
}

int ty_program_finish(ty_program *p, ty_run run, ty_error *err)
{
    return p->backend == TY_BACKEND_CUDA ? program_finish_on_gpu(p, run, err)
           : p->cpu                      ? program_finish_on_cpu(p, run, err)
                                         : 0;
}

int ty_program_fetch_states(ty_program *p, ty_error *err)
{
    if (p->cpu)
        return ty_cpu_catch_up(p->cpu, err);
    return p->home->on_gpu ? ty_mirror_download(p->home->cuda, err) : 0;
}

void ty_program_let_go(ty_program *p)
{
    if (p)
        ty_mirror_let_go(p->cuda);
}

int ty_program_check_replicas(ty_program *p, ty_error *err)
{
    return ty_program_fetch_states(p, err) < 0 ? -1 : p->home->on_gpu ? ty_mirror_check(p->home->cuda, err) : 0;
}

void ty_program_states_changed(ty_program *p)
{
    p->home->on_gpu = false;
}

static int program_run_timed_on_gpu(ty_program *p, ty_run run, const void *const *inputs, int64_t *call_ns,
                                    ty_error *err)
{
    return ty_program_settle_on_gpu(p, err) < 0 ||
                   ty_mirror_run_timed(p->cuda, p->plan_of[run], inputs, call_ns, err) < 0
               ? -1
               : program_finish_on_gpu(p, run, err);
}

int ty_program_run_timed(ty_program *p, ty_run run, const void *const *inputs, int64_t *call_ns, ty_error *err)
{
    if (ty_program_can_run(p, run, err) < 0)
        return -1;
    inputs = ty_program_inputs(p, inputs);
    if (p->backend == TY_BACKEND_INTERPRETER)
        return ty_program_interpret(p, run, inputs, err);
    if (p->backend == TY_BACKEND_CUDA && call_ns)
        return program_run_timed_on_gpu(p, run, inputs, call_ns, err);
    if (p->backend == TY_BACKEND_CUDA)
        return program_start_on_gpu(p, run, inputs, err) < 0 || ty_mirror_drain(p->cuda, p->plan_of[run], err) < 0
                   ? -1
                   : program_finish_on_gpu(p, run, err);
    if (ty_cpu_run(p->cpu, p->plan_of[run], inputs, call_ns, err) < 0)
        return -1;
    ty_program_ran_whole(p, run, inputs);
    return 0;
}

int ty_program_run(ty_program *p, ty_run run, const void *const *inputs, ty_error *err)
{
    return ty_program_run_timed(p, run, inputs, NULL, err);
}

int ty_program_n_calls(const ty_program *p, ty_run run)
{
    if (p->cuda && p->has[run])
        return ty_cuda_n_calls(ty_mirror_first(p->cuda), p->plan_of[run]);
    return p->cpu && p->has[run] ? ty_cpu_n_calls(p->cpu, p->plan_of[run]) : 0;
}

void ty_program_call(const ty_program *p, ty_run run, int i, ty_call_info *out)
{
    if (p->cuda)
        ty_cuda_call_info(ty_mirror_first(p->cuda), p->plan_of[run], i, out);
    else
        ty_cpu_call(p->cpu, p->plan_of[run], i, out);
}

int ty_program_n_inputs(const ty_program *p)
{
    return p->n_inputs;
}

const ty_binding *ty_program_input(const ty_program *p, int i)
{
    return &p->input[i];
}

int ty_program_n_outputs(const ty_program *p, ty_run run)
{
    return p->n_outputs[run];
}

const char *ty_program_output_name(const ty_program *p, ty_run run, int i)
{
    return ty_graph_output(p->graph, p->output[run][i])->name;
}

const ty_tensor *ty_program_output(const ty_program *p, ty_run run, const char *name)
{
    for (int i = 0; i < p->n_outputs[run]; i++)
        if (strcmp(ty_program_output_name(p, run, i), name) == 0)
            return &p->result[run][i];
    return NULL;
}

/* ---- states and weights ---- */

int ty_program_n_states(const ty_program *p)
{
    return ty_graph_n_states(p->graph);
}

ty_tensor ty_program_state(const ty_program *p, int i, const char **name)
{
    const ty_state *state = ty_graph_state(p->graph, i);
    if (name)
        *name = state->name;
    return (ty_tensor){state->type, p->state[i]};
}

const void *ty_program_slab(const ty_program *p)
{
    return p->cpu ? ty_cpu_slab(p->cpu) : NULL;
}

int ty_program_n_tensors(const ty_program *p)
{
    return p->n_weights;
}

ty_tensor ty_program_tensor(const ty_program *p, int i, const char **name, bool *trained)
{
    const ty_weight_place *w = &p->weight[i];
    if (name)
        *name = w->name;
    if (trained)
        *trained = w->trained;
    char *base = p->state[w->state];
    return (ty_tensor){w->type, base + w->offset * (int64_t)ty_dtype_bytes((ty_dtype)w->type.dtype)};
}

const ty_input_range *ty_program_input_range(const ty_program *p, int input)
{
    return p->range && p->range[input].what ? &p->range[input] : NULL;
}
