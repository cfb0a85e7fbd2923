/* ahead.c - see ahead.h. */
#include "compiler/ahead.h"

#include "base/pages.h"
#include "compiler/target/cpu/cpu.h"

#include <sched.h>
#include <signal.h>
#include <string.h>

/* Most of the time goes into touching memory for the first time, and into the file's pages. */
static void ahead_copy_all(ty_ahead *a)
{
    for (int i; (i = atomic_fetch_add(&a->next, 1)) < a->n; atomic_fetch_add(&a->n_done, 1)) {
        ty_pages_expect_copy(a->part[i].to, a->part[i].from, a->part[i].n_bytes);
        memcpy(a->part[i].to, a->part[i].from, a->part[i].n_bytes);
    }
}

static void *ahead_run(void *arg)
{
    ty_ahead *a = arg;
    if (a->has_products)
        ty_cpu_expect_products();
    ahead_copy_all(a);
    return NULL;
}

/* The thread takes no signal: see ty_cpu_run. */
static bool ahead_create(ty_ahead *a)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&a->thread, NULL, ahead_run, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0;
}

void ty_ahead_start(ty_ahead *a, const ty_ahead_part *part, int n, int threads, bool has_products)
{
    a->part = part;
    a->n = n;
    a->threads = threads;
    a->has_products = has_products;
    atomic_init(&a->next, 0);
    atomic_init(&a->n_done, 0);
    a->started = threads > 1 && (n > 0 || has_products) && ahead_create(a);
}

void ty_ahead_fill(ty_ahead *a)
{
#pragma omp parallel num_threads(a->threads) if (a->n - atomic_load(&a->next) > 8)
    ahead_copy_all(a);
    while (atomic_load(&a->n_done) < a->n) /* what the thread is at; a part is small */
        sched_yield();
}

void ty_ahead_end(ty_ahead *a)
{
    if (a->started)
        pthread_join(a->thread, NULL);
    a->started = false;
}
