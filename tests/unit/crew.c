/* base/crew.h: every job once, whoever does it; waiting for some of them only. */
#include "base/crew.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { N_JOBS = 300 };

static void count(const ty_job *job)
{
    atomic_fetch_add((atomic_int *)job->to, 1);
    atomic_fetch_add((atomic_int *)job->shared, (int)job->n_bytes);
}

static void each_once(void **state)
{
    (void)state;
    static const int threads[] = {0, 1, 2, 7, 100};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
        for (int n = 0; n <= N_JOBS; n += n < 3 ? 1 : 99) {
            atomic_int done[N_JOBS] = {0}, sum = 0;
            ty_job job[N_JOBS];
            for (int i = 0; i < n; i++)
                job[i] = (ty_job){count, &done[i], NULL, (size_t)i, &sum};
            ty_crew *crew = ty_crew_start(job, n, threads[t]);
            assert_non_null(crew);
            ty_crew_help(crew, n / 3, n / 2);
            for (int i = n / 3; i < n / 2; i++)
                assert_int_equal(atomic_load(&done[i]), 1);
            ty_crew_end(crew);
            for (int i = 0; i < n; i++)
                assert_int_equal(atomic_load(&done[i]), 1);
            assert_int_equal(atomic_load(&sum), n * (n - 1) / 2);
        }
    ty_crew_end(NULL);
}

typedef struct gate {
    sem_t begun, open;
    bool blocks_term;
} gate;

static void wait_at_gate(const ty_job *job)
{
    gate *g = job->shared;
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    g->blocks_term = sigismember(&mask, SIGTERM) == 1;
    sem_post(&g->begun);
    sem_wait(&g->open);
}

/* While the thread is held up in the first job the caller does the others, and need not wait for it. */
static void some_are_waited_for(void **state)
{
    (void)state;
    atomic_int done[3] = {0}, sum = 0;
    gate g = {.blocks_term = false};
    sem_init(&g.begun, 0, 0);
    sem_init(&g.open, 0, 0);
    ty_job job[4] = {{.run = wait_at_gate, .shared = &g}};
    for (int i = 0; i < 3; i++)
        job[1 + i] = (ty_job){count, &done[i], NULL, 1, &sum};
    ty_crew *crew = ty_crew_start(job, 4, 1);
    assert_non_null(crew);
    sem_wait(&g.begun);
    ty_crew_help(crew, 1, 3);
    assert_int_equal(atomic_load(&done[0]) + atomic_load(&done[1]), 2);
    assert_int_equal(atomic_load(&done[2]), 0); /* not asked for */
    ty_crew_help(crew, 1, 4);
    assert_int_equal(atomic_load(&sum), 3);
    sem_post(&g.open);
    ty_crew_end(crew);
    assert_true(g.blocks_term);
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGTERM), 0); /* the caller's own mask is as it was */
    sem_destroy(&g.begun);
    sem_destroy(&g.open);
}

/* Jobs that come later are done too, by a thread that has run out of work, or by the caller where there is none. */
static void more_are_added(void **state)
{
    (void)state;
    for (int threads = 0; threads < 3; threads++) {
        atomic_int done[N_JOBS] = {0}, sum = 0;
        ty_job job[N_JOBS];
        for (int i = 0; i < N_JOBS; i++)
            job[i] = (ty_job){count, &done[i], NULL, 1, &sum};
        ty_crew *crew = ty_crew_start(job, 3, threads);
        assert_non_null(crew);
        ty_crew_help(crew, 0, 3);
        for (int at = 3, n; at < N_JOBS; at += n) {
            n = at < 100 ? 1 : N_JOBS - at;
            assert_int_equal(ty_crew_add(crew, job + at, n), 0);
            if (at % 2)
                ty_crew_help(crew, at, at + n);
        }
        ty_crew_end(crew);
        assert_int_equal(atomic_load(&sum), N_JOBS);
        for (int i = 0; i < N_JOBS; i++)
            assert_int_equal(atomic_load(&done[i]), 1);
    }
}

/* The caller does nothing until a thread, which had nothing left to do, has begun what was added. */
static void a_thread_waits_for_more(void **state)
{
    (void)state;
    atomic_int done = 0, sum = 0;
    gate g = {.blocks_term = false};
    sem_init(&g.begun, 0, 0);
    sem_init(&g.open, 0, 1);
    ty_job first = {count, &done, NULL, 1, &sum}, later = {.run = wait_at_gate, .shared = &g};
    ty_crew *crew = ty_crew_start(&first, 1, 1);
    assert_non_null(crew);
    ty_crew_help(crew, 0, 1);
    assert_int_equal(ty_crew_add(crew, &later, 1), 0);
    sem_wait(&g.begun);
    ty_crew_end(crew);
    sem_destroy(&g.begun);
    sem_destroy(&g.open);
}

/* What nobody has begun is not done; what somebody has is. */
static void dropped(void **state)
{
    (void)state;
    atomic_int done[N_JOBS] = {0}, sum = 0;
    ty_job job[N_JOBS];
    for (int i = 0; i < N_JOBS; i++)
        job[i] = (ty_job){count, &done[i], NULL, 1, &sum};
    ty_crew *crew = ty_crew_start(job, N_JOBS, 0);
    assert_non_null(crew);
    ty_crew_help(crew, 0, 3);
    ty_crew_drop(crew);
    assert_int_equal(atomic_load(&sum), 3);
    gate g = {.blocks_term = false};
    sem_init(&g.begun, 0, 0);
    sem_init(&g.open, 0, 1);
    job[0] = (ty_job){.run = wait_at_gate, .shared = &g};
    job[1] = (ty_job){count, &done[N_JOBS - 1], NULL, 1, &sum};
    crew = ty_crew_start(job, 2, 1);
    assert_non_null(crew);
    sem_wait(&g.begun); /* the thread has it */
    ty_crew_drop(crew);
    assert_true(g.blocks_term);
    sem_destroy(&g.begun);
    sem_destroy(&g.open);
    ty_crew_drop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_once), cmocka_unit_test(some_are_waited_for),
                                       cmocka_unit_test(more_are_added), cmocka_unit_test(a_thread_waits_for_more),
                                       cmocka_unit_test(dropped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
