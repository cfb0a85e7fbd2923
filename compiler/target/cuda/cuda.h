/* cuda.h - a planned step on a GPU: kernels compiled for it, library calls prepared, memory laid out, each tape
 * captured into one CUDA graph.
 *
 *     ty_cuda_new(plans, n, &options, &cuda, err)     slow; gets all memory that will ever be used
 *     ty_cuda_ready(cuda, err)                        by all replicas at the same time
 *     ty_cuda_upload(cuda, err)                       states, from the caller's memory to the GPU
 *     for (each step) {
 *         ty_cuda_start(cuda, plan, inputs, err)      batch up, one graph, outputs down: asked for, not waited for
 *         ty_cuda_finish(cuda, plan, err)             the oldest run that was started is done, its outputs are there
 *     }
 *     ty_cuda_download(cuda, err)                     states, back to the caller's memory
 *
 * Two runs of a plan may be started before the first is finished: while one computes, the next one's batch is copied.
 * Between upload and download the states live on the GPU, and the caller's copies are old. All functions are called
 * from the thread that opened it.
 */
#ifndef TY_TARGET_CUDA_CUDA_H
#define TY_TARGET_CUDA_CUDA_H

#include "compiler/compiler.h"
#include "compiler/passes/plan.h"
#include "compiler/target/cuda/build.h"
#include "compiler/target/cuda/nccl.h"

typedef struct ty_cuda ty_cuda;

/* Runs of a plan that may be under way. */
enum { TY_CUDA_IN_FLIGHT = 2 };

typedef struct ty_cuda_options {
    int device; /* number, from 0 */
    bool tf32;  /* float32 products with ten bits of mantissa */
    bool tune;  /* algorithms of products are timed, if there is a cache that keeps the choice (tune.h) */
    /* How kernels are compiled and kept. capability is the device's; to measure, not 0 if the cache is to be asked. */
    ty_cuda_build_options build;
    void *const *state;        /* the caller's memory of each state of the graph */
    ty_compile_phases *phases; /* gets laps; not NULL */
    ty_nccl_group *group;      /* of a step that replicas share, with */
    int replica, replicas;     /* the number of this one, of how many; NULL: it is alone */
    bool in_order;             /* sums are taken in the order of the replicas (in_order.h) */
    /* Or: gets the group, when all else is ready and the GPU's context is the current one; NULL: there is none to get
     */
    int (*join)(void *ctx, ty_nccl_group **group, ty_error *err);
    void *join_ctx;
    const ty_cuda *beside; /* on this GPU, outlives this one: lends its states, and temporaries where it has enough;
                              never have both runs under way. NULL: nobody does */
    const ty_cuda *like;   /* of the same plans, outlives this one: its kernels are taken if they fit; or NULL */
} ty_cuda_options;

typedef struct ty_cuda_report {
    int n_kernels, n_distinct_kernels, n_library_calls;
    size_t slab_bytes, scratch_bytes; /* of the GPU, as are these: */
    size_t batch_bytes;               /* inputs, and batches on their way */
    size_t code_bytes;                /* of kernels and libraries: an estimate until they are loaded */
    size_t total_bytes;               /* all of them, with states and constants */
    size_t host_bytes;                /* pinned memory of the host: batches and outputs */
    size_t pinned_bytes;              /* of these: outputs */
    size_t text_bytes;                /* CUDA C */
    bool cache_hit;
} ty_cuda_report;

/* plans[i]: a checked plan; all of the same graph, which must outlive the result. TY_E_UNSUPPORTED names all ops that
 * nothing computes on a GPU; TY_E_LIMIT: the GPU's memory is too small, before anything is compiled or has run. */
int ty_cuda_new(const ty_plan *const *plans, int n_plans, const ty_cuda_options *opt, ty_cuda **out, ty_error *err);
/* What it would take, on any machine. cache_hit: the compiled kernels are in the cache. opt->state is not read. */
int ty_cuda_measure(const ty_plan *const *plans, int n_plans, const ty_cuda_options *opt, ty_cuda_report *out,
                    ty_error *err);
/* Once, before states are uploaded: runs each library call and each exchange on whatever memory holds, so that no code
 * is loaded and nobody connected later, and captures the tapes. Replicas wait for each other in it, each on a thread of
 * its own. After a failure it is only to be freed. */
int ty_cuda_ready(ty_cuda *cuda, ty_error *err);
void ty_cuda_free(ty_cuda *cuda);
const ty_cuda_report *ty_cuda_report_of(const ty_cuda *cuda);
/* Both wait until all that was started is done. */
int ty_cuda_upload(ty_cuda *cuda, ty_error *err);
int ty_cuda_download(ty_cuda *cuda, ty_error *err);
/* One state, by number, to any memory. */
int ty_cuda_fetch(ty_cuda *cuda, int state, void *to, ty_error *err);
/* inputs[k]: bytes of graph input k (NULL where the tape does not read it), which are no longer needed when it returns.
 * Where two runs of the plan are under way it finishes the older one, whose outputs are lost. */
int ty_cuda_start(ty_cuda *cuda, int plan, const void *const *inputs, ty_error *err);
/* Waits for the oldest run of the plan that was started and not finished; there may be none. */
int ty_cuda_finish(ty_cuda *cuda, int plan, ty_error *err);
/* Finishes all runs of the plan that are under way. */
int ty_cuda_drain(ty_cuda *cuda, int plan, ty_error *err);
/* A run that is finished when it returns, its calls asked for one by one and not as a graph, with a clock of the GPU
 * between them: nanoseconds of each call of the tape, for a short one those that the host takes to ask for the next. */
int ty_cuda_run_timed(ty_cuda *cuda, int plan, const void *const *inputs, int64_t *call_ns, ty_error *err);
/* A run whose values are looked at: begin, each call in order, end; a call is done when it returns. The outputs are
 * there after the end. In between, look gives the bytes of a value that the tape keeps in memory, as they are now, in
 * memory of the host: a state in the caller's own, another until the next look at it. NULL: it is in no memory. */
int ty_cuda_calls_begin(ty_cuda *cuda, int plan, const void *const *inputs, ty_error *err);
int ty_cuda_calls_run(ty_cuda *cuda, int plan, int call, ty_error *err);
int ty_cuda_calls_end(ty_cuda *cuda, int plan, ty_error *err);
const void *ty_cuda_look(ty_cuda *cuda, int plan, ty_val v, const void *const *inputs);
int ty_cuda_n_calls(const ty_cuda *cuda, int plan);
void ty_cuda_call_info(const ty_cuda *cuda, int plan, int call, ty_call_info *out);
/* Bytes of the plan's output `v` in the host's memory, of the run that was finished last; valid until the next one
  is started. NULL: it has no such output. */
const void *ty_cuda_value(const ty_cuda *cuda, int plan, ty_val v);

#endif
