/* crew.h - threads that work through a list of jobs beside their caller, who helps when it has nothing better to do.
 *
 *     ty_crew *crew = ty_crew_start(jobs, n, 1);   one thread begins with the first job
 *     ...                                          the caller goes on
 *     ty_crew_help(crew, 2, 9);                    does what nobody has begun; jobs 2 to 8 are done now
 *     ...
 *     ty_crew_end(crew);                           all are done, the threads are gone
 *
 * Jobs are begun in the order of the list. They may run at the same time, so that they share nothing but what is meant
 * to be shared. They cannot fail: what can goes without a crew. Threads of a crew block every signal.
 */
#ifndef TY_BASE_CREW_H
#define TY_BASE_CREW_H

#include <stddef.h>

/* What is done, and with what: the other fields mean what `run` takes them for. */
typedef struct ty_job {
    void (*run)(const struct ty_job *job);
    void *to;
    const void *from;
    size_t n_bytes;
    void *shared; /* by the jobs of a kind */
} ty_job;

typedef struct ty_crew ty_crew;

/* How many processors this process may use: as many threads work at once. */
int ty_crew_processors(void);

/* Copies the list. What the jobs point at must live until ty_crew_end. Where no thread can be started (n_threads 0, a
 * limit of the system) the caller does it all, when it helps. NULL: no memory; no job has been begun. */
ty_crew *ty_crew_start(const ty_job *jobs, int n_jobs, int n_threads);
/* Appends jobs. -1: no memory, and none of them will be done. Only the thread that started a crew adds to it. */
int ty_crew_add(ty_crew *crew, const ty_job *jobs, int n_jobs);
/* Takes part until jobs from ... to - 1 are done or none is left to begin, then waits until these are. */
void ty_crew_help(ty_crew *crew, int from, int to);
/* Takes part until all are done, and frees the crew. NULL is fine. */
void ty_crew_end(ty_crew *crew);
/* The same, but for jobs that nobody has begun: they are not done. */
void ty_crew_drop(ty_crew *crew);

#endif
