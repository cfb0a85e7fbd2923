/* strict.c - what determinism promises, bit by bit, for each kind of network: the same training twice gives the same
 * states and losses; with `deterministic: strict` the number of threads does not show either.
 */
#include "tests/unit/workloads.h"

enum { BATCH = 96, STEPS = 4 };

static void same_states(const ty_program *a, const ty_program *b, const char *what)
{
    assert_true(ty_program_n_states(a) > 0);
    assert_int_equal(ty_program_n_states(a), ty_program_n_states(b));
    for (int i = 0; i < ty_program_n_states(a); i++) {
        const char *name;
        ty_tensor x = ty_program_state(a, i, &name), y = ty_program_state(b, i, NULL);
        if (memcmp(x.data, y.data, ty_type_bytes(&x.type)) != 0)
            fail_msg("%s: state \"%s\" differs", what, name);
    }
}

/* Both programs take the same steps; after each all states and the loss are equal. */
static void same_training(const workload_spec *s, ty_program *a, ty_program *b, const char *what)
{
    for (int step = 0; step < STEPS; step++) {
        workload_step(a, TY_RUN_LAST, s, step * BATCH);
        workload_step(b, TY_RUN_LAST, s, step * BATCH);
        same_states(a, b, what);
        double x = workload_loss(a, TY_RUN_LAST), y = workload_loss(b, TY_RUN_LAST);
        if (memcmp(&x, &y, sizeof x) != 0)
            fail_msg("%s: the loss of step %d is %.9g and %.9g", what, step, x, y);
    }
    ty_program_free(a);
    ty_program_free(b);
}

static void twice_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < N_WORKLOADS; i++) {
        workload_spec s;
        ty_model *m = workloads[i].open();
        workload_specify(&workloads[i], BATCH, 1, &s);
        same_training(&s, workload_compile(m, &s, 2, false), workload_compile(m, &s, 2, false), workloads[i].name);
        ty_model_free(m);
    }
}

static void threads_do_not_show(void **state)
{
    (void)state;
    for (int i = 0; i < N_WORKLOADS; i++)
        for (int threads = 2; threads <= 3; threads++) {
            char what[64];
            workload_spec s;
            ty_model *m = workloads[i].open();
            workload_specify(&workloads[i], BATCH, 1, &s);
            snprintf(what, sizeof what, "%s, 1 and %d threads", workloads[i].name, threads);
            same_training(&s, workload_compile(m, &s, 1, true), workload_compile(m, &s, threads, true), what);
            ty_model_free(m);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(twice_the_same), cmocka_unit_test(threads_do_not_show)};
    return cmocka_run_group_tests_name("strict", tests, workload_cache, workload_cache_remove);
}
