/* inside.h - what the parts of an opened CPU program know of each other, and nobody else.
 *
 *     cpu.c        building it and giving it back       tape_run.c   running its tapes
 */
#ifndef TY_TARGET_CPU_INSIDE_H
#define TY_TARGET_CPU_INSIDE_H

#include "compiler/kernel/texts.h"
#include "compiler/target/cpu/cpu.h"
#include "compiler/target/cpu/step.h"
#include "compiler/target/pending.h"

/* A pointer that depends on the inputs of the run. */
typedef struct cpu_patch {
    char **at;
    int input;
    int64_t offset;
} cpu_patch;

typedef struct cpu_tape {
    ty_cpu_step *step;
    int n_steps;
    int n_main; /* steps that a run makes itself; those behind them may wait for the next one (late.h) */
    int *need;  /* [n_main] where there are late steps: how many of them must have run before step i */
    cpu_patch *patch;
    int n_patches, cap_patches;
    char **result;      /* by output of the graph: where it is kept until it was taken; of the tape with late steps */
    ty_pending pending; /* while it is made */
    int *begins;        /* the step that begins each exchange */
} cpu_tape;

/* What kernels are printed in. */
typedef struct cpu_dialect {
    ty_ktexts_words words;
    void (*render)(const ty_kernel *k, const uint32_t *alias, const int64_t *base, ty_buf *out);
    bool shares; /* kernels that differ in sizes alone may share their loops */
} cpu_dialect;

struct ty_cpu {
    ty_arena arena;
    const ty_plan *const *plan;
    int n_plans;
    ty_cpu_options opt;
    const cpu_dialect *dialect;
    cpu_tape *tape;
    char *slab, *scratch;
    bool has_lent_slab, has_lent_scratch; /* they are another program's */
    ty_ktexts texts;                      /* distinct kernels */
    ty_objects_job *job;                  /* between begin and finish */
    ty_objects objects;
    char kernels[TY_SHA256_HEX_BYTES];
    ty_cpu_report report;
    int64_t cc_start_ns;
    int n_exchanges; /* of all tapes so far */
    int late;        /* the tape with late steps, or -1 */
    int late_next;   /* the late step to run next, if a run has left some; else n_steps of that tape */
};

/* cpu.c: the address of a place; inputs NULL: of those there is none. */
char *ty_cpu_address(const ty_cpu *cpu, const ty_plan *plan, ty_place at, const void *const *inputs);

#endif
