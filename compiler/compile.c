/* compile.c - the passes, in order.
 *
 *   import, train mode, loss, autodiff, step tail   ty_step_build: one graph for the whole step, tapes as masks
 *   attend                                          attention in tiles where that is faster
 *   epilogue                                        on a GPU, what follows a product becomes part of it
 *   lower                                           composites become loops and reductions
 *   mask                                            gradients of ReLUs read the result, not the operand
 *   layout                                          convolutions and what lies between them become channels-last
 *   attach                                          on a GPU, what follows a convolution becomes part of it
 *   chunk                                           large logits a few rows at a time, never all in memory
 *   align                                           on a GPU, odd rows of 16-bit products get zeros
 *   accumulate                                      scattered gradients are added into what they are added to
 *   bucket                                          large groups of weights are updated piece by piece
 *   split                                           large reductions to one number become two steps
 *   fit                                             with a limit: parts of forward are computed again
 *   for each tape: fuse, plan                       kernels, order and memory
 *   check                                           the plan is proven by other code than made it
 *   render, compile, prepare                        C kernels, library calls, one tape of calls
 */
#include "compiler/program.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/toolchain.h"
#include "compiler/dump.h"
#include "compiler/fit.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/load.h"
#include "compiler/model.h"
#include "compiler/passes/chunk.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/step.h"
#include "compiler/phases.h"
#include "compiler/target/cuda/build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMPILE_CPU_BUCKET_BYTES ((int64_t)4 << 20)

static double compile_ms(int64_t since_ns)
{
    return (double)(ty_clock_ns() - since_ns) * 1e-6;
}

/* ---- options ---- */

static int compile_cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : (int)n;
}

static ty_compile_options compile_defaults(const ty_compile_options *given)
{
    ty_compile_options opt = given ? *given : (ty_compile_options){0};
    opt.threads = opt.grid ? 1 : opt.threads > 0 ? opt.threads : compile_cores();
    if (!opt.cc || !opt.cc[0])
        opt.cc = ty_toolchain_cc();
    if (!opt.work_dir || !opt.work_dir[0])
        opt.work_dir = ty_toolchain_folder();
    return opt;
}

/* ---- inputs, outputs ---- */

static void compile_interface(ty_program *p, uint32_t tapes)
{
    const ty_graph *g = p->graph;
    p->n_inputs = ty_graph_n_inputs(g) - (p->replicas > 1); /* the last one is the replica's number */
    p->input = TY_NEW_ARRAY(&p->arena, ty_binding, p->n_inputs);
    p->given = TY_NEW_ARRAY(&p->arena, const void *, p->n_inputs + 1);
    for (int i = 0; i < p->n_inputs; i++)
        p->input[i] = (ty_binding){ty_graph_input(g, i)->name, ty_graph_input(g, i)->type};
    for (int run = 0; run < TY_N_RUNS; run++) {
        ty_tape tape = ty_program_tape_of((ty_run)run);
        p->has[run] = tapes & tape;
        p->output[run] = TY_NEW_ARRAY(&p->arena, int, ty_graph_n_outputs(g));
        p->result[run] = TY_NEW_ARRAY(&p->arena, ty_tensor, ty_graph_n_outputs(g));
        for (int i = 0; p->has[run] && i < ty_graph_n_outputs(g); i++) {
            const ty_output *o = ty_graph_output(g, i);
            if (!(o->tapes & tape))
                continue;
            p->output[run][p->n_outputs[run]] = i;
            p->result[run][p->n_outputs[run]++] = (ty_tensor){*ty_graph_type(g, o->val), NULL};
        }
    }
}

static void compile_constants(ty_program *p, bool is_mapped)
{
    for (uint32_t node = 0; node < ty_graph_n_nodes(p->graph); node++) {
        ty_val v = ty_val_make(node, 0);
        if (ty_graph_op(p->graph, node) != TY_OP_CONST)
            continue;
        size_t bytes = ty_type_bytes(ty_graph_type(p->graph, v));
        p->report.constant_bytes += bytes;
        p->report.mapped_constant_bytes += is_mapped && ty_graph_const_is_borrowed(p->graph, v) ? bytes : 0;
    }
}

/* Identity of what will run: the lowered graph with its constants, and the layout of states. */
static int compile_hash(ty_program *p, const ty_compile_options *opt, ty_error *err)
{
    ty_buf text;
    ty_buf_init(&text, 1u << 30);
    uint8_t digest[TY_SHA256_BYTES];
    int rc = ty_graph_print(p->graph, &text, true);
    ty_buf_addf(&text, "strict %d\n", (int)opt->deterministic_strict);
    if (rc < 0 || text.failed)
        rc = ty_error_set(err, TY_E_LIMIT, "the graph's text is larger than 1 GiB");
    if (rc == 0)
        rc = ty_sha256_bytes(text.data, text.len, digest, err);
    if (rc == 0)
        ty_sha256_hex(digest, p->hash);
    ty_buf_fini(&text);
    return rc;
}

/* ---- back ends ---- */

/* What is fused decides roundings: with strict determinism it may not depend on the threads at hand. */
static int compile_fuse_for(const ty_compile_options *opt)
{
    if (opt->backend == TY_BACKEND_CUDA || opt->grid)
        return TY_FUSE_GPU;
    return opt->deterministic_strict ? 2 : ty_program_threads_of(opt->compiled_dir, opt->threads);
}

static int compile_plan(ty_program *p, int run, int fuse_for, ty_error *err)
{
    ty_phases_start(&p->report.phases);
    if (ty_pass_fuse(p->graph, ty_program_tape_of((ty_run)run), fuse_for, &p->fusion[run], err) < 0)
        return -1;
    ty_phases_lap(&p->report.phases, "fuse");
    if (ty_pass_plan(p->fusion[run], &p->plan[run], err) < 0)
        return -1;
    ty_phases_lap(&p->report.phases, "plan");
    int rc = ty_plan_check(p->plan[run], err);
    ty_phases_lap(&p->report.phases, "check");
    return rc;
}

static int compile_plans(ty_program *p, const ty_compile_options *opt, const ty_plan **plans, int *n_plans,
                         ty_error *err)
{
    static const char *const names[TY_N_RUNS] = {"kernels.micro.txt", "kernels.last.txt", "kernels.eval.txt",
                                                 "kernels.rows.txt"};
    int fuse_for = compile_fuse_for(opt);
    for (int run = 0; run < TY_N_RUNS; run++) {
        if (!p->has[run])
            continue;
        if (compile_plan(p, run, fuse_for, err) < 0)
            return -1;
        ty_dump_kernels(opt, names[run], p->plan[run]);
        p->plan_of[run] = *n_plans;
        plans[(*n_plans)++] = p->plan[run];
        if ((size_t)p->plan[run]->bound_bytes > p->report.bound_bytes)
            p->report.bound_bytes = (size_t)p->plan[run]->bound_bytes;
    }
    ty_program_list_exchanges(p);
    return 0;
}

static int compile_run_cpu(ty_program *p, const ty_plan *const *plans, int n_plans, const ty_cpu_options *cpu,
                           ty_error *err)
{
    if (ty_cpu_begin(plans, n_plans, cpu, &p->cpu, err) < 0)
        return -1;
    ty_load_expect(p, cpu->beside ? NULL : ty_cpu_slab(p->cpu), ty_cpu_report_of(p->cpu)->slab_bytes);
    ty_load_weights(p); /* while the C compiler works */
    ty_phases_lap(&p->report.phases, "load weights");
    return ty_cpu_finish(p->cpu, err);
}

static int compile_cpu(ty_program *p, const ty_compile_options *opt, ty_error *err)
{
    const ty_plan *plans[TY_N_RUNS];
    int n_plans = 0;
    int64_t start = ty_clock_ns();
    if (compile_plans(p, opt, plans, &n_plans, err) < 0)
        return -1;
    p->report.plan_ms = compile_ms(start);
    ty_cache_field fact[TY_PROGRAM_FACTS];
    int n_facts = ty_program_facts(p, opt, compile_fuse_for(opt), fact);
    ty_cpu_options cpu = {.threads = opt->threads,
                          .strict = opt->deterministic_strict,
                          .grid = opt->grid,
                          .objects = {.cc = {opt->cc, opt->work_dir},
                                      .cache_dir = opt->cache_dir,
                                      .cache_max_bytes = opt->cache_max_bytes,
                                      .compiled_dir = opt->compiled_dir,
                                      .output_dir = opt->output_dir,
                                      .keep_dir = opt->dump_dir,
                                      .fact = fact,
                                      .n_facts = n_facts,
                                      .note = opt->cache_note},
                          .state = p->state,
                          .beside = p->home != p ? p->home->cpu : NULL,
                          .exchange = p->exchange.begin ? &p->exchange : NULL,
                          .begins = p->begins,
                          .phases = &p->report.phases};
    ty_cpu_report planned;
    if (opt->plan_only ? ty_cpu_measure(plans, n_plans, &cpu, &planned, err)
                       : compile_run_cpu(p, plans, n_plans, &cpu, err))
        return -1;
    const ty_cpu_report *r = opt->plan_only ? &planned : ty_cpu_report_of(p->cpu);
    p->report.n_kernels = r->n_kernels;
    p->report.n_distinct_kernels = r->n_distinct_kernels;
    p->report.n_library_calls = r->n_library_calls;
    p->report.slab_bytes = r->slab_bytes;
    p->report.scratch_bytes = r->scratch_bytes;
    p->report.text_bytes = r->text_bytes;
    p->report.cc_ms = r->cc_ms;
    p->report.cache_hit = r->cache_hit;
    return 0;
}

static void compile_report_cuda(ty_program *p, const ty_cuda_report *r)
{
    p->report.n_kernels = r->n_kernels;
    p->report.n_distinct_kernels = r->n_distinct_kernels;
    p->report.n_library_calls = r->n_library_calls;
    p->report.slab_bytes = r->slab_bytes;
    p->report.scratch_bytes = r->scratch_bytes;
    p->report.text_bytes = r->text_bytes;
    p->report.cache_hit = r->cache_hit;
    p->report.device_batch_bytes = r->batch_bytes;
    p->report.device_code_bytes = r->code_bytes;
    p->report.device_bytes = r->total_bytes;
    p->report.pinned_bytes = r->host_bytes;
}

static int compile_cuda(ty_program *p, const ty_compile_options *opt, ty_error *err)
{
    const ty_plan *plans[TY_N_RUNS];
    int n_plans = 0;
    int64_t start = ty_clock_ns();
    if (compile_plans(p, opt, plans, &n_plans, err) < 0 ||
        (opt->cuda_dir && ty_cuda_leave(plans, n_plans, opt->deterministic_strict, opt->cuda_dir, err) < 0))
        return -1;
    p->report.plan_ms = compile_ms(start);
    ty_cache_field fact[TY_PROGRAM_FACTS];
    ty_cuda_options cuda = {.device = opt->gpu,
                            .tune = !opt->deterministic_strict,
                            .tf32 = opt->tf32,
                            .in_order = opt->deterministic_strict,
                            .build = {.capability = opt->gpu_capability,
                                      .threads = opt->threads,
                                      .cache_dir = opt->cache_dir,
                                      .cache_max_bytes = opt->cache_max_bytes,
                                      .note = opt->cache_note,
                                      .fact = fact,
                                      .n_facts = ty_program_facts(p, opt, compile_fuse_for(opt), fact)},
                            .state = p->state,
                            .phases = &p->report.phases};
    const ty_nccl_others others = {.replica = (int)p->replica,
                                   .n = p->replicas,
                                   .inside = opt->cross_inside > 0 ? opt->cross_inside : p->replicas / 2,
                                   .ctx = p->given_exchange.ctx,
                                   .meet = p->given_exchange.meet};
    const ty_mirror_options mirror = {.each = cuda,
                                      .devices = opt->gpus ? opt->gpus : &opt->gpu,
                                      .n = opt->gpus ? opt->n_gpus : 1,
                                      .how = opt->cross_device,
                                      .beside = p->home != p ? p->home->cuda : NULL,
                                      .others = p->given_exchange.meet ? &others : NULL};
    ty_cuda_report planned;
    if (opt->plan_only && opt->cuda_dir) /* what nothing computes yet is left too */
        return 0;
    if (!opt->plan_only) {
        ty_load_weights(p);
        ty_phases_lap(&p->report.phases, "load weights");
    }
    start = ty_clock_ns();
    if (opt->plan_only ? ty_cuda_measure(plans, n_plans, &cuda, &planned, err)
                       : ty_mirror_new(plans, n_plans, &mirror, &p->cuda, err))
        return -1;
    p->report.cc_ms = opt->plan_only ? 0 : compile_ms(start);
    compile_report_cuda(p, opt->plan_only ? &planned : ty_mirror_report_of(p->cuda));
    return 0;
}

static int compile_interpreter(ty_program *p, ty_error *err)
{
    for (int run = 0; run < TY_N_RUNS; run++)
        for (int i = 0; i < p->n_outputs[run]; i++)
            p->result[run][i].data = ty_arena_alloc(&p->arena, ty_type_bytes(&p->result[run][i].type));
    ty_load_weights(p);
    return ty_interp_new(p->graph, &p->interp, err);
}

typedef int compile_pass_fn(const ty_graph *in, ty_graph **out, ty_error *err);
typedef int compile_option_fn(const ty_graph *in, const ty_compile_options *opt, ty_graph **out, ty_error *err);

static int compile_epilogue(const ty_graph *in, const ty_compile_options *opt, ty_graph **out, ty_error *err)
{
    return ty_pass_epilogue(in, opt->apart | ty_apart_slow(), out, err);
}

static int compile_layout_gpu(const ty_graph *in, const ty_compile_options *opt, ty_graph **out, ty_error *err)
{
    return opt->tf32 ? ty_pass_layout_gpu_tf32(in, out, err) : ty_pass_layout_gpu(in, out, err);
}

static int compile_attach(const ty_graph *in, const ty_compile_options *opt, ty_graph **out, ty_error *err)
{
    return ty_pass_attach(in, opt->apart, opt->tf32, out, err);
}

static int compile_stride(const ty_graph *in, const ty_compile_options *opt, ty_graph **out, ty_error *err)
{
    *out = NULL;
    return opt->tf32 ? 0 : ty_pass_stride(in, out, err); /* tensor cores have kernels for steps */
}

/* Passes from graph to graph, in order. */
static const struct {
    const char *name, *dump;
    compile_pass_fn *cpu, *cuda;    /* NULL: not for this target, whose calls take neither its ops nor its layouts */
    compile_option_fn *cuda_option; /* in place of `cuda`: what it does depends on the options */
} compile_passes[] = {
    {"straighten", "graph.0.straighten.txt", ty_pass_straighten, ty_pass_straighten, NULL},
    {"attend", "graph.1.attend.txt", ty_pass_attend, ty_pass_attend_gpu, NULL},
    {"pack", "graph.1.pack.txt", NULL, ty_pass_pack, NULL},
    {"epilogue", "graph.1.epilogue.txt", NULL, NULL, compile_epilogue},
    {"lower", "graph.2.lower.txt", ty_pass_lower, ty_pass_lower, NULL},
    {"mask", "graph.3.mask.txt", ty_pass_mask, ty_pass_mask, NULL},
    {"layout", "graph.4.layout.txt", ty_pass_layout, NULL, compile_layout_gpu},
    {"winograd", "graph.5.winograd.txt", ty_pass_winograd, NULL, NULL},
    {"narrow", "graph.5.narrow.txt", ty_pass_narrow, NULL, NULL},
    {"attach", "graph.5.attach.txt", NULL, NULL, compile_attach},
    {"stride", "graph.5.stride.txt", NULL, NULL, compile_stride},
    {"chunk", "graph.6.chunk.txt", ty_pass_chunk, ty_pass_chunk, NULL},
    {"align", "graph.6.align.txt", NULL, ty_pass_align, NULL},
    {"accumulate", "graph.7.accumulate.txt", ty_pass_accumulate, ty_pass_accumulate, NULL},
    {"bucket", "graph.8.bucket.txt", ty_pass_bucket, ty_pass_bucket_gpu, NULL},
    {"split", "graph.9.split.txt", ty_pass_split, ty_pass_split_gpu, NULL},
};

static bool compile_has_pass(const ty_compile_options *opt, size_t pass)
{
    if (opt->backend != TY_BACKEND_CUDA)
        return compile_passes[pass].cpu;
    return compile_passes[pass].cuda || compile_passes[pass].cuda_option;
}

/* On the grid library calls are a CPU's and kernels a GPU's, and with them the pass that decides nothing else. */
static bool compile_is_of_grid(const ty_compile_options *opt, size_t pass)
{
    return opt->grid && compile_passes[pass].cuda == ty_pass_split_gpu;
}

static int compile_run_pass(const ty_compile_options *opt, size_t pass, const ty_graph *in, ty_graph **out,
                            ty_error *err)
{
    if (opt->backend != TY_BACKEND_CUDA && !compile_is_of_grid(opt, pass))
        return compile_passes[pass].cpu(in, out, err);
    if (compile_passes[pass].cuda_option)
        return compile_passes[pass].cuda_option(in, opt, out, err);
    return compile_passes[pass].cuda(in, out, err);
}

/* A pass can be left out if the others do not need it; lowering they do. */
static bool compile_may_skip(const char *name)
{
    for (size_t i = 0; i < sizeof compile_passes / sizeof *compile_passes; i++)
        if (compile_passes[i].cpu != ty_pass_lower && strcmp(compile_passes[i].name, name) == 0)
            return true;
    return false;
}

static bool compile_skips(const ty_compile_options *opt, size_t pass)
{
    for (int i = 0; i < opt->n_skip_passes; i++)
        if (strcmp(opt->skip_passes[i], compile_passes[pass].name) == 0)
            return true;
    return false;
}

static int compile_no_pass(const char *what, const char *name, ty_error *err)
{
    char names[256] = "";
    for (size_t i = 0; i < sizeof compile_passes / sizeof *compile_passes; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", compile_passes[i].name);
    ty_error_set(err, TY_E_USAGE, "there is no pass \"%s\"%s", name, what);
    return ty_error_help(err, "passes: step, %s", names);
}

static int compile_check_skipped(const ty_compile_options *opt, ty_error *err)
{
    for (int i = 0; i < opt->n_skip_passes; i++)
        if (!compile_may_skip(opt->skip_passes[i]))
            return compile_no_pass(" that can be left out", opt->skip_passes[i], err);
    return 0;
}

static int compile_check_stop(const ty_compile_options *opt, ty_error *err)
{
    bool found = !opt->stop_after || strcmp(opt->stop_after, "step") == 0;
    for (size_t i = 0; i < sizeof compile_passes / sizeof *compile_passes && !found; i++)
        found = strcmp(opt->stop_after, compile_passes[i].name) == 0;
    return found ? 0 : compile_no_pass("", opt->stop_after, err);
}

static int compile_verify(const ty_graph *g, const char *after, ty_error *err)
{
#ifdef TY_DEBUG
    if (ty_graph_verify(g, err) < 0)
        return ty_error_wrap(err, "after %s", after);
#else
    (void)g, (void)after, (void)err;
#endif
    return 0;
}

static int compile_lower(ty_program *p, const ty_compile_options *opt, ty_error *err)
{
    int64_t start = ty_clock_ns();
    ty_phases_start(&p->report.phases);
    ty_dump_graph(opt, "graph.0.step.txt", p->graph);
    if (ty_graph_failed(p->graph, err) || compile_verify(p->graph, "import", err) < 0 ||
        compile_check_skipped(opt, err) < 0 || compile_check_stop(opt, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof compile_passes / sizeof *compile_passes; i++) {
        ty_graph *next;
        if (opt->stop_after && strcmp(opt->stop_after, i > 0 ? compile_passes[i - 1].name : "step") == 0)
            break;
        if (!compile_has_pass(opt, i) || compile_skips(opt, i) || !ty_pass_concerns(compile_passes[i].name, p->graph))
            continue;
        if (compile_run_pass(opt, i, p->graph, &next, err) < 0)
            return -1;
        if (!next) /* nothing to do */
            continue;
        ty_graph_free(p->graph);
        p->graph = next;
        ty_phases_lap(&p->report.phases, compile_passes[i].name);
        ty_dump_graph(opt, compile_passes[i].dump, next);
        if (compile_verify(next, compile_passes[i].dump, err) < 0)
            return -1;
    }
    p->report.n_graph_nodes = (int)ty_graph_n_nodes(p->graph);
    p->report.lower_ms = compile_ms(start);
    return 0;
}

static int compile_fit(ty_program *p, uint32_t tapes, const ty_compile_options *opt, ty_error *err)
{
    if (opt->temporary_bytes <= 0 || opt->stop_after || opt->backend == TY_BACKEND_INTERPRETER)
        return 0;
    if (ty_fit(&p->graph, tapes, opt->temporary_bytes, compile_fuse_for(opt), &p->arena, &p->report.remat, err) < 0)
        return -1;
    ty_phases_lap(&p->report.phases, "fit");
    ty_dump_graph(opt, "graph.10.fit.txt", p->graph);
    return compile_verify(p->graph, "fit", err);
}

/* model: whose weights the states of the graph begin with, or NULL. replicas: that share a step. */
static int compile_graph(ty_graph *g, const ty_model *model, int replicas, uint32_t tapes,
                         const ty_compile_options *given, ty_program **out, ty_error *err)
{
    ty_compile_options opt = compile_defaults(given);
    ty_arena arena;
    ty_arena_init(&arena);
    ty_program *p = TY_NEW(&arena, ty_program);
    p->arena = arena;
    p->graph = g;
    p->replicas = replicas > 1 ? replicas : 1;
    p->backend = opt.backend;
    p->threads = opt.threads;
    p->home = opt.beside ? opt.beside : p;
    p->first_exchange = opt.first_exchange;
    int64_t start = ty_clock_ns();
    int rc = ty_program_take_exchange(p, &opt, err);
    if (rc == 0)
        rc = compile_lower(p, &opt, err);
    if (rc == 0)
        rc = compile_fit(p, tapes, &opt, err);
    if (rc == 0) {
        p->report.chunk = ty_chunk_find(p->graph);
        compile_interface(p, tapes);
        compile_constants(p, model && ty_model_is_mapped(model));
        rc = ty_program_make_states(p, opt.plan_only, err);
    }
    if (rc == 0 && !opt.plan_only && !opt.stop_after && p->home == p)
        rc = ty_load_start(p, model, !opt.output_dir, err);
    ty_phases_lap(&p->report.phases, "states");
    if (rc == 0 && !opt.plan_only)
        rc = compile_hash(p, &opt, err);
    ty_phases_lap(&p->report.phases, "hash");
    if (rc == 0 && !opt.stop_after)
        rc = opt.backend == TY_BACKEND_CPU    ? compile_cpu(p, &opt, err)
             : opt.backend == TY_BACKEND_CUDA ? compile_cuda(p, &opt, err)
                                              : compile_interpreter(p, err);
    if (rc < 0) {
        ty_program_free(p);
        return -1;
    }
    p->report.total_ms = compile_ms(start);
    *out = p;
    return 0;
}

int ty_program_of_graph(ty_graph *g, uint32_t tapes, const ty_compile_options *opt, ty_program **out, ty_error *err)
{
    return compile_graph(g, NULL, 1, tapes, opt, out, err);
}

/* ---- from a model ---- */

static void compile_weights(ty_program *p, const ty_step *step)
{
    p->weight = TY_NEW_ARRAY(&p->arena, ty_weight_place, step->n_weights);
    for (int i = 0; i < step->n_weights; i++) {
        const ty_step_weight *w = &step->weights[i];
        if (w->state >= 0)
            p->weight[p->n_weights++] =
                (ty_weight_place){ty_arena_strdup(&p->arena, w->name), w->type, w->state, w->offset, w->trained};
    }
}

static void compile_ranges(ty_program *p, const ty_step *step)
{
    p->range = TY_NEW_ARRAY(&p->arena, ty_input_range, step->n_inputs);
    for (int i = 0; i < step->n_inputs; i++) {
        const ty_step_range *r = &step->ranges[i];
        if (r->what && r->lo <= r->hi)
            p->range[i] = (ty_input_range){r->lo, r->hi, r->also, r->has_also, ty_arena_strdup(&p->arena, r->what)};
    }
}

static void compile_parts(ty_program *p, const ty_step *step)
{
    ty_step_parts *parts = TY_NEW_ARRAY(&p->arena, ty_step_parts, step->n_parts + 1);
    for (int i = 0; i < step->n_parts; i++) {
        ty_shards *shards = ty_arena_copy(&p->arena, step->parts[i].shards, sizeof *shards);
        shards->piece = ty_arena_copy(&p->arena, shards->piece, sizeof *shards->piece * (size_t)shards->n);
        parts[i] = (ty_step_parts){step->parts[i].state, step->parts[i].elems, shards};
    }
    p->parts = parts;
    p->n_parts = step->n_parts;
}

/* Weights and ranges are copied out first: the graph they lie in is replaced by the lowered one. */
static int compile_step(ty_step *step, const ty_model *model, uint32_t tapes, const ty_compile_options *opt,
                        double import_ms, ty_program **out, ty_error *err)
{
    ty_graph *g = step->g;
    step->g = NULL;
    ty_program facts = {0};
    ty_arena_init(&facts.arena);
    compile_weights(&facts, step);
    compile_ranges(&facts, step);
    compile_parts(&facts, step);
    ty_program *p = NULL;
    int rc = compile_graph(g, model, step->replicas, tapes, opt, &p, err);
    if (rc == 0) {
        p->facts = facts.arena;
        p->weight = facts.weight;
        p->n_weights = facts.n_weights;
        p->range = facts.range;
        p->parts = facts.parts;
        p->n_parts = facts.n_parts;
        ty_program_list_exchanges(p);
        p->report.n_trained = step->n_trained;
        p->report.found = step->found;
        p->report.import_ms = import_ms;
        ty_compile_phases all = step->phases;
        ty_phases_add(&all, &p->report.phases);
        p->report.phases = all;
        ty_dump_phases(opt, &all);
        p->report.total_ms += import_ms;
        *out = p;
        rc = p->home == p ? ty_program_divide(p, err) : 0;
        if (rc < 0)
            ty_program_free(p);
    } else {
        ty_arena_fini(&facts.arena);
    }
    return rc;
}

static ty_compile_options compile_named(const ty_model *m, const ty_compile_options *given)
{
    ty_compile_options opt = given ? *given : (ty_compile_options){0};
    if (!opt.model_name)
        opt.model_name = ty_model_format(m);
    return opt;
}

/* Between hosts a bucket takes longer on its way than between GPUs, and is cut into pieces anyway. */
static ty_train_spec compile_with_buckets(const ty_train_spec *spec, const ty_compile_options *opt)
{
    ty_train_spec all = *spec;
    if (opt && opt->backend == TY_BACKEND_CUDA)
        return all;
    all.wire = TY_F32; /* who exchanges rounds, and adds up in float32 */
    if (all.bucket_bytes == 0)
        all.bucket_bytes = COMPILE_CPU_BUCKET_BYTES;
    return all;
}

/* What a program is made of: a training, or (spec NULL) a model with its inputs. */
typedef struct compile_source {
    const ty_model *model;
    const ty_train_spec *spec;
    const ty_binding *inputs;
    int n_inputs;
} compile_source;

static uint32_t compile_tapes(const ty_train_spec *spec)
{
    if (!spec)
        return TY_TAPE_EVAL;
    return TY_TAPE_LAST | (spec->no_eval ? 0 : TY_TAPE_EVAL) | (spec->accumulate > 1 ? TY_TAPE_MICRO : 0) |
           (spec->row_lists ? TY_TAPE_ROWS : 0);
}

static int compile_once(const compile_source *from, const ty_compile_options *opt, ty_program **out, ty_error *err)
{
    ty_step step = {0};
    int64_t start = ty_clock_ns();
    ty_load_ahead(opt);
    if (from->spec ? ty_step_build(from->model, from->spec, &step, err)
                   : ty_step_build_infer(from->model, from->inputs, from->n_inputs, &step, err)) {
        ty_load_give_up();
        return -1;
    }
    ty_compile_options named = compile_named(from->model, opt);
    int rc = compile_step(&step, from->model, compile_tapes(from->spec), &named, compile_ms(start), out, err);
    /* load.c does so as soon as the weights are copied; here for what was read since, and for plans, which copy none.
     */
    if (from->spec)
        ty_model_drop_pages(from->model);
    return rc;
}

/* Again as long as libraries refuse kinds of calls that are not apart yet. Among ranks with a GPU each they are those
 * that any of them was refused. */
static int compile_from(const compile_source *from, const ty_compile_options *opt, ty_program **out, ty_error *err)
{
    ty_compile_options tried = opt ? *opt : (ty_compile_options){.threads = 0};
    ty_error why = {0};
    int rc = compile_once(from, opt, out, &why);
    while (rc < 0 && (why.which & ~tried.apart)) {
        tried.apart |= why.which;
        why = (ty_error){0};
        rc = compile_once(from, &tried, out, &why);
    }
    if (rc < 0 && err)
        *err = why;
    return rc;
}

int ty_compile_train(const ty_model *m, const ty_train_spec *given, const ty_compile_options *opt, ty_program **out,
                     ty_error *err)
{
    const ty_train_spec spec = compile_with_buckets(given, opt);
    return compile_from(&(compile_source){.model = m, .spec = &spec}, opt, out, err);
}

int ty_compile_infer(const ty_model *m, const ty_binding *inputs, int n_inputs, const ty_compile_options *opt,
                     ty_program **out, ty_error *err)
{
    return compile_from(&(compile_source){.model = m, .inputs = inputs, .n_inputs = n_inputs}, opt, out, err);
}
