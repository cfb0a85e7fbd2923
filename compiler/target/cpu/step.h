/* step.h - one call of a CPU tape, and how it runs. Internal to cpu.c, which makes them. */
#ifndef TY_TARGET_CPU_STEP_H
#define TY_TARGET_CPU_STEP_H

#include "compiler/exchange.h"
#include "compiler/target/cpu/library.h"

typedef void ty_cpu_kernel_fn(char *const *b, long lo, long hi);

/* BEGIN: an exchange with other replicas; WAIT: until it is over. */
typedef enum ty_cpu_step_kind {
    TY_CPU_KERNEL,
    TY_CPU_LIBRARY,
    TY_CPU_COPY,
    TY_CPU_BEGIN,
    TY_CPU_WAIT
} ty_cpu_step_kind;

/* Memory that a call touches. */
typedef struct ty_cpu_reach {
    const char *at; /* NULL: of the run's inputs */
    int64_t bytes;
    bool written;
} ty_cpu_reach;

typedef struct ty_cpu_step {
    ty_cpu_step_kind kind;
    ty_cpu_kernel_fn *fn;
    ty_library_call call;
    char **ptr; /* KERNEL: buffers; LIBRARY: operands, then results; COPY: to, from; BEGIN: from, to */
    int n_ptr, n_in;
    int64_t n_units; /* KERNEL */
    bool dealt;      /* KERNEL: units go round the threads in small parts, since those at the end do nothing */
    int threads;
    size_t bytes;  /* COPY */
    uint64_t hash; /* KERNEL: of its text */
    uint32_t node; /* LIBRARY */
    int exchange;  /* BEGIN, WAIT: number */
    ty_cpu_reach *reach;
    int n_reach; /* WAIT: of the exchange's memory, since others touch it until then */
    ty_call_info info;
} ty_cpu_step;

/* scratch: of library calls; x: of exchanges. Only they can fail. */
int ty_cpu_step_run(const ty_cpu_step *step, char *scratch, const ty_exchange *x, ty_error *err);

#endif
