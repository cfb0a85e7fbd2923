/* cpu.h - a planned step on the CPU: compiled kernels, prepared library calls, one slab, one tape of calls.
 *
 * Building is slow and happens once; running allocates nothing. It has two halves, so that the caller can fill the
 * state arenas while the C compiler is at work:
 *
 *     ty_cpu_begin(plans, n, &options, &cpu, err)    kernels become text, the C compiler starts
 *     ty_cpu_finish(cpu, err)                        library calls are prepared, the C compiler is waited for
 *
 * Exchanges with other replicas (compiler/exchange.h) begin where their operands are there and are waited for in front
 * of the first call that touches their memory (compiler/target/pending.h); they are numbered through all plans.
 *
 * The end of the tape that updates weights may wait for the next run (late.h): a caller that starts runs, and takes
 * their results later, leaves forward beside the sums that are still on their way.
 *
 *     ty_cpu_start(cpu, i, inputs, err)       a run, but for its late calls; those that the last one has left are made
 *     ty_cpu_catch_up(cpu, err)               those that are left: results and states are those of whole runs
 *
 * All tapes of a program share the slab, the scratch memory and the state arenas. A run walks the tape: kernels are cut
 * into equal parts over the threads (results do not depend on how many), library calls use the same OpenMP threads.
 */
#ifndef TY_TARGET_CPU_CPU_H
#define TY_TARGET_CPU_CPU_H

#include "compiler/exchange.h"
#include "compiler/passes/plan.h"
#include "compiler/target/cpu/objects.h"
#include "compiler/target/halves.h"

typedef struct ty_cpu ty_cpu;

typedef struct ty_cpu_options {
    int threads; /* >= 1 */
    bool strict;
    bool grid; /* kernels in the CUDA dialect, on fibers of one thread (compiler/target/cuda/render.h): for tests */
    ty_objects_options objects; /* kernels is filled in here */
    void *const *state;         /* memory of each state of the graph, 64-byte aligned, kept by the caller */
    const ty_cpu *beside;       /* lends its slab and scratch memory where they are large enough, and outlives this one;
                                   never do both run at once, nor has one left late calls while the other runs. NULL:
                                   nobody does */
    const ty_exchange *exchange; /* by which replicas exchange; NULL: one replica speaks for all (ops/across.c) */
    const ty_begins *begins;     /* what they do, one list a plan; kept by the caller until ty_cpu_begin is over */
    ty_compile_phases *phases;
} ty_cpu_options;

typedef struct ty_cpu_report {
    int n_kernels, n_distinct_kernels, n_library_calls;
    size_t slab_bytes, scratch_bytes, constant_bytes;
    size_t text_bytes; /* generated C */
    double cc_ms;      /* from the start of the C compiler to the last function found */
    bool cache_hit;
} ty_cpu_report;

/* plans[i]: a checked plan; all of the same graph, which must outlive the result (constants are read from it). */
int ty_cpu_begin(const ty_plan *const *plans, int n_plans, const ty_cpu_options *opt, ty_cpu **out, ty_error *err);
/* After a failure too the caller frees `cpu`. */
int ty_cpu_finish(ty_cpu *cpu, ty_error *err);
/* Not while exchanges are under way, which read and write its memory. */
void ty_cpu_free(ty_cpu *cpu);
/* The report that ty_cpu_finish would leave, without its times: kernels are printed, library calls prepared and
 * released, nothing is compiled and no slab allocated. cache_hit: the compiled kernels are in the cache. opt->state is
 * not read.
 */
int ty_cpu_measure(const ty_plan *const *plans, int n_plans, const ty_cpu_options *opt, ty_cpu_report *out,
                   ty_error *err);
const ty_cpu_report *ty_cpu_report_of(const ty_cpu *cpu);
/* Memory of temporaries, which runs write: of the report's slab_bytes, from ty_cpu_begin on. */
char *ty_cpu_slab(const ty_cpu *cpu);
/* Runs plan i. inputs[k]: bytes of graph input k (NULL where the tape does not read it). call_ns: NULL, or to how many
 * nanoseconds each call of the tape took, ty_cpu_n_calls(cpu, i) numbers. Fails where an exchange does.
 *
 * No signal handler may run on the calling thread, nor on those it starts (they inherit its mask): oneDNN's sgemm keeps
 * its stack pointer in a workspace on the heap. Block signals before the first run, as entrypoint/stop.h does. */
int ty_cpu_run(ty_cpu *cpu, int plan, const void *const *inputs, int64_t *call_ns, ty_error *err);
/* See above. Whole runs catch up first. has_late: runs of this plan can leave something. */
int ty_cpu_start(ty_cpu *cpu, int plan, const void *const *inputs, ty_error *err);
int ty_cpu_catch_up(ty_cpu *cpu, ty_error *err);
bool ty_cpu_has_late(const ty_cpu *cpu, int plan);
/* The same call by call, for who looks at values in between: first the inputs, then every call in order. An exchange is
 * over when its call returns. */
void ty_cpu_point_inputs(ty_cpu *cpu, int plan, const void *const *inputs);
int ty_cpu_run_call(ty_cpu *cpu, int plan, int call, ty_error *err);
int ty_cpu_n_calls(const ty_cpu *cpu, int plan);
void ty_cpu_call(const ty_cpu *cpu, int plan, int call, ty_call_info *out);
/* Where a value of a plan lies after a run with these inputs. */
const void *ty_cpu_value(const ty_cpu *cpu, int plan, ty_val v, const void *const *inputs);
/* Where an output of the graph is to be read when the run is over; of a tape with late calls, until the next run of it
 * but one. */
const void *ty_cpu_output(const ty_cpu *cpu, int plan, int output, const void *const *inputs);

#endif
