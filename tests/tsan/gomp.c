/* gomp.c - OpenMP's parallel regions on plain threads, for ThreadSanitizer.
 *
 * libgomp is not built for the tool, which therefore sees neither the start nor the end of a region and would call
 * every hand-over between the master and its team a race. This stand-in is linked before libgomp in the tsan variant: a
 * region is pthread_create and pthread_join, which the tool knows, so that what it reports between the threads of a
 * region is real. It has the calls that our own code and oneDNN make, and no more: one that is missing here does not
 * link.
 */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_THREADS = 64 };

typedef struct team {
    void (*run)(void *);
    void *data;
    int n_threads;
    pthread_barrier_t barrier;
    atomic_long tickets; /* taken for chunks of loops */
} team;

/* A loop whose iterations go, a chunk at a time, to whoever asks: all members are told the same. A ticket is a chunk's
 * number behind first_ticket; those at the end, one a member, have none. So whoever has been told that nothing is left
 * knows which ticket is the first one of the next loop. */
typedef struct loop {
    long start, end, step, chunk, n_chunks, first_ticket;
} loop;

typedef struct member {
    team *team;
    int id;
    pthread_t thread;
    loop loop;
} member;

/* By omp_set_num_threads, which is each thread's own affair; 0: two, as on the machines the tests are for. */
static _Thread_local int n_wanted;
static _Thread_local member *self;

static void *member_main(void *arg)
{
    member *before = self;
    self = arg;
    self->team->run(self->team->data);
    self = before;
    return NULL;
}

void GOMP_parallel(void (*run)(void *), void *data, unsigned n_threads, unsigned flags)
{
    member members[MAX_THREADS];
    int n = n_threads ? (int)n_threads : omp_get_max_threads();
    (void)flags;
    n = omp_in_parallel() ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
    team t = {.run = run, .data = data, .n_threads = n};
    pthread_barrier_init(&t.barrier, NULL, (unsigned)n);
    for (int i = 0; i < n; i++)
        members[i] = (member){.team = &t, .id = i};
    for (int i = 1; i < n; i++)
        if (pthread_create(&members[i].thread, NULL, member_main, &members[i]) != 0) {
            fputs("gomp.c: no more threads\n", stderr);
            abort();
        }
    member_main(&members[0]);
    for (int i = 1; i < n; i++)
        pthread_join(members[i].thread, NULL);
    pthread_barrier_destroy(&t.barrier);
}

void GOMP_barrier(void)
{
    if (self)
        pthread_barrier_wait(&self->team->barrier);
}

/* The first thread of the team is the one; a barrier follows. */
bool GOMP_single_start(void)
{
    return !self || self->id == 0;
}

/* Relaxed: OpenMP promises no order between the iterations of a loop, so the tool must see none. */
bool GOMP_loop_nonmonotonic_dynamic_next(long *start, long *end)
{
    if (!self)
        return false;
    const loop *l = &self->loop;
    long chunk = atomic_fetch_add_explicit(&self->team->tickets, 1, memory_order_relaxed) - l->first_ticket;
    if (chunk >= l->n_chunks)
        return false;
    *start = l->start + chunk * l->chunk * l->step;
    *end = chunk == l->n_chunks - 1 ? l->end : *start + l->chunk * l->step;
    return true;
}

bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long step, long chunk, long *first, long *last)
{
    long n = (end - start + step - (step > 0 ? 1 : -1)) / step; /* iterations */
    if (!self) {
        *first = start;
        *last = end;
        return n > 0;
    }
    loop *l = &self->loop;
    *l = (loop){start, end, step, chunk, n > 0 ? (n + chunk - 1) / chunk : 0, l->first_ticket};
    return GOMP_loop_nonmonotonic_dynamic_next(first, last);
}

void GOMP_loop_end(void)
{
    if (!self)
        return;
    self->loop.first_ticket += self->loop.n_chunks + self->team->n_threads;
    GOMP_barrier();
}

int omp_get_thread_num(void)
{
    return self ? self->id : 0;
}

int omp_get_num_threads(void)
{
    return self ? self->team->n_threads : 1;
}

int omp_in_parallel(void)
{
    return self && self->team->n_threads > 1;
}

int omp_get_max_threads(void)
{
    return n_wanted > 0 ? n_wanted : 2;
}

int omp_get_num_procs(void)
{
    return 2;
}

void omp_set_num_threads(int n)
{
    n_wanted = n;
}
