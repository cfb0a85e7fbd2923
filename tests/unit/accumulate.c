/* accumulate.c - four batches of 8 make the step that one batch of 32 makes.
 *
 * For each kind of network, after six steps: every weight within 2e-5 of the largest change of its tensor's kind (the
 * sums are taken in another order, in float32), losses within 1e-5. A batch norm sees 8 rows in the place of 32: its
 * network trains, but to other numbers, and its running statistics move four times a step.
 */
#include "tests/unit/workloads.h"

#include <math.h>

enum { ROWS = 32, PARTS = 4, STEPS = 6 };

static const float *tensor_named(const ty_program *p, const char *name)
{
    for (int i = 0; i < ty_program_n_tensors(p); i++) {
        const char *found;
        ty_tensor t = ty_program_tensor(p, i, &found, NULL);
        if (strcmp(found, name) == 0)
            return t.data;
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

/* Largest |a - b|, and largest |b|, over all trained tensors. */
static void compare(const ty_program *a, const ty_program *b, double *apart, double *size)
{
    *apart = *size = 0;
    for (int i = 0; i < ty_program_n_tensors(a); i++) {
        const char *name;
        bool trained;
        ty_tensor t = ty_program_tensor(a, i, &name, &trained);
        const float *x = t.data, *y = tensor_named(b, name);
        for (int64_t e = 0; trained && e < ty_type_elems(&t.type); e++) {
            *apart = fmax(*apart, fabs((double)x[e] - (double)y[e]));
            *size = fmax(*size, fabs((double)y[e]));
        }
    }
}

/* The mean of the parts' losses. */
static double step_in_parts(ty_program *p, const workload_spec *s, int64_t first)
{
    double loss = 0;
    for (int part = 0; part < PARTS; part++) {
        ty_run run = part + 1 == PARTS ? TY_RUN_LAST : TY_RUN_MICRO;
        workload_step(p, run, s, first + part * ROWS / PARTS);
        loss += workload_loss(p, run) / PARTS;
    }
    return loss;
}

static void parts_make_a_whole(void **state)
{
    (void)state;
    for (int i = 0; i < N_WORKLOADS; i++) {
        const workload *w = &workloads[i];
        workload_spec whole, parts;
        ty_model *m = w->open();
        double apart = 0, size = 0, losses_apart = 0;
        workload_specify(w, ROWS, 1, &whole);
        workload_specify(w, ROWS / PARTS, PARTS, &parts);
        ty_program *a = workload_compile(m, &whole, 2, false), *b = workload_compile(m, &parts, 2, false);
        for (int step = 0; step < STEPS; step++) {
            workload_step(a, TY_RUN_LAST, &whole, step * ROWS);
            double loss = step_in_parts(b, &parts, step * ROWS), want = workload_loss(a, TY_RUN_LAST);
            losses_apart = fmax(losses_apart, fabs(loss - want) / fabs(want));
        }
        compare(b, a, &apart, &size);
        printf("%s: losses %.1e apart, weights %.1e of %.2g\n", w->name, losses_apart, apart, size);
        if (!w->has_batch_norm && (losses_apart > 1e-5 || apart > 2e-5 * size))
            fail_msg("%s: losses are %.3g apart, weights %.3g of %.3g", w->name, losses_apart, apart, size);
        if (w->has_batch_norm && (losses_apart > 0.2 || losses_apart < 1e-4))
            fail_msg("%s: losses are %.3g apart", w->name, losses_apart);
        ty_program_free(a);
        ty_program_free(b);
        ty_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_make_a_whole)};
    return cmocka_run_group_tests_name("accumulate", tests, workload_cache, workload_cache_remove);
}
