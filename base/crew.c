/* crew.c - see crew.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "base/crew.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

enum { CREW_MAX_THREADS = 16 };

struct ty_crew {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a job is done, or there are more, or there will be none */
    pthread_t thread[CREW_MAX_THREADS];
    int n_threads, n_jobs;
    int n_begun; /* jobs that somebody has taken: the first ones of the list */
    bool ends;
    struct crew_job {
        ty_job job;
        bool done;
    } * list;
};

int ty_crew_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* The first job of from ... to - 1 that is not done, or `to`. */
static int crew_gap(const ty_crew *crew, int from, int to)
{
    while (from < to && crew->list[from].done)
        from++;
    return from;
}

/* Does jobs until from ... to - 1 are done or none is left to begin. Holds the lock but while a job runs. */
static void crew_work(ty_crew *crew, int from, int to)
{
    while (crew->n_begun < crew->n_jobs && (from = crew_gap(crew, from, to)) < to) {
        int i = crew->n_begun++;
        const ty_job job = crew->list[i].job; /* the list may move */
        pthread_mutex_unlock(&crew->lock);
        job.run(&job);
        pthread_mutex_lock(&crew->lock);
        crew->list[i].done = true;
        pthread_cond_broadcast(&crew->changed);
    }
}

static void *crew_thread(void *p)
{
    ty_crew *crew = p;
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        crew_work(crew, 0, INT_MAX); /* while there is one to begin, one is not done: it stops there */
        if (crew->ends)
            break;
        pthread_cond_wait(&crew->changed, &crew->lock);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static void crew_start_threads(ty_crew *crew, int n)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (crew->n_threads < n && crew->n_threads < CREW_MAX_THREADS &&
           pthread_create(&crew->thread[crew->n_threads], NULL, crew_thread, crew) == 0)
        crew->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int crew_append(ty_crew *crew, const ty_job *jobs, int n_jobs)
{
    struct crew_job *list = realloc(crew->list, sizeof *list * ((size_t)crew->n_jobs + (size_t)n_jobs + 1));
    if (!list)
        return -1;
    crew->list = list;
    for (int i = 0; i < n_jobs; i++)
        list[crew->n_jobs++] = (struct crew_job){jobs[i], false};
    return 0;
}

ty_crew *ty_crew_start(const ty_job *jobs, int n_jobs, int n_threads)
{
    ty_crew *crew = calloc(1, sizeof *crew);
    if (!crew || crew_append(crew, jobs, n_jobs) < 0) {
        free(crew);
        return NULL;
    }
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->changed, NULL);
    crew_start_threads(crew, n_threads < n_jobs ? n_threads : n_jobs);
    return crew;
}

int ty_crew_add(ty_crew *crew, const ty_job *jobs, int n_jobs)
{
    pthread_mutex_lock(&crew->lock);
    int rc = crew_append(crew, jobs, n_jobs);
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    return rc;
}

void ty_crew_help(ty_crew *crew, int from, int to)
{
    pthread_mutex_lock(&crew->lock);
    crew_work(crew, from, to);
    while ((from = crew_gap(crew, from, to)) < to)
        pthread_cond_wait(&crew->changed, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
}

void ty_crew_end(ty_crew *crew)
{
    if (!crew)
        return;
    ty_crew_help(crew, 0, crew->n_jobs);
    pthread_mutex_lock(&crew->lock);
    crew->ends = true;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    for (int i = 0; i < crew->n_threads; i++)
        pthread_join(crew->thread[i], NULL);
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->lock);
    free(crew->list);
    free(crew);
}

void ty_crew_drop(ty_crew *crew)
{
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->n_jobs = crew->n_begun;
    pthread_mutex_unlock(&crew->lock);
    ty_crew_end(crew);
}
