/* step.c - see step.h. */
#include "compiler/target/cpu/step.h"

#include <omp.h>
#include <string.h>

/* Units that do something come first and nobody knows how many they are. */
static void step_dealt(const ty_cpu_step *step)
{
    int64_t n = step->n_units, part = 64;
#pragma omp parallel for schedule(static, 1) num_threads(step->threads)
    for (int64_t lo = 0; lo < n; lo += part)
        step->fn(step->ptr, lo, lo + part < n ? lo + part : n);
}

/* Equal parts, cut at multiples of 64 units where there are many, so that vector loops start at whole cache lines. */
static void step_kernel(const ty_cpu_step *step)
{
    if (step->threads == 1) {
        step->fn(step->ptr, 0, step->n_units);
        return;
    }
    int64_t n = step->n_units, grain = n >= 128 * step->threads ? 64 : 1;
    if (step->dealt) {
        step_dealt(step);
        return;
    }
#pragma omp parallel num_threads(step->threads)
    {
        int64_t threads = omp_get_num_threads(); /* the system may give fewer than asked for */
        int64_t part = ((n + threads - 1) / threads + grain - 1) / grain * grain;
        int64_t lo = omp_get_thread_num() * part, hi = lo + part < n ? lo + part : n;
        if (lo < hi)
            step->fn(step->ptr, lo, hi);
    }
}

int ty_cpu_step_run(const ty_cpu_step *step, char *scratch, const ty_exchange *x, ty_error *err)
{
    switch (step->kind) {
    case TY_CPU_KERNEL:
        step_kernel(step);
        return 0;
    case TY_CPU_LIBRARY:
        step->call.run(step->call.prepared, (const void *const *)step->ptr, (void *const *)(step->ptr + step->n_in),
                       scratch);
        return 0;
    case TY_CPU_COPY:
        memmove(step->ptr[0], step->ptr[1], step->bytes);
        return 0;
    case TY_CPU_BEGIN:
        return x->begin(x->ctx, step->exchange, step->ptr[0], step->ptr[1], err);
    default:
        return x->wait(x->ctx, step->exchange, err);
    }
}
