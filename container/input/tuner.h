/* tuner.h - how many threads decode, and how many batches ahead, decided while they do.
 *
 * Every TY_TUNER_BATCHES batches, but not more often than every TY_TUNER_LEAST_MS, it looks at two numbers: the share
 * of the time in which the step waited for data, and the share in which workers waited for room. Above 2 % of the first
 * it adds a worker, where decoding is what is slow; above 50 % of the second it takes one away. Where both wait, by
 * turns, the rate suffices and is uneven: then it makes the ring deeper, as far as memory allows. What did not help is
 * undone and not tried again, so that it comes to rest. Only one thing changes at a time. What bounds the rate is named
 * in the log when it changes:
 *
 *     input: 1 -> 2 threads: the step waited 31 % of the time, for parsing
 *     input: 4 -> 8 batches ahead: the step waited 6 % of the time and the threads 21 %, by turns
 *     input: the step is what takes the time (it waited 0.4 %)
 *
 * The order of batches and their bits do not depend on any of it.
 */
#ifndef TY_CONTAINER_INPUT_TUNER_H
#define TY_CONTAINER_INPUT_TUNER_H

#include "container/input/prefetch.h"

enum { TY_TUNER_BATCHES = 100, TY_TUNER_LEAST_MS = 200 };

/* Zeroed: at the beginning. */
typedef struct ty_tuner {
    bool is_fixed;           /* only tells, never changes anything */
    double least_ms;         /* 0: TY_TUNER_LEAST_MS */
    int64_t n;               /* batches since the last look */
    ty_prefetch_waits since; /* as they were then */
    const char *cause;       /* that was told last */
    /* Private: what was tried. */
    int changed_from;    /* workers before the last change; 0: nothing was changed since the last look */
    double rate_before;  /* batches a millisecond then */
    int lowest, highest; /* between which it stays; 0: not known */
    int depth_from;      /* batches ahead before the last change; 0: they were not changed since the last look */
    int deepest;         /* that it stays at; 0: not known */
} ty_tuner;

/* What happened between two looks. */
typedef struct ty_tuner_look {
    double step_share, room_share; /* of the time; of the workers' time */
    double rate;                   /* batches a millisecond */
    const char *cause;             /* as in ty_prefetch_waits */
    int n_workers;
    int depth, max_depth; /* batches ahead, and how many there may be */
} ty_tuner_look;

/* The number of workers from now on. */
int ty_tuner_decide(ty_tuner *t, const ty_tuner_look *look, int max_workers);
/* The depth of the ring from now on. Called before it, in every look; where this changes something, workers stay. Where
 * a worker may help it is tried first. */
int ty_tuner_depth(ty_tuner *t, const ty_tuner_look *look, int max_workers);

/* After each batch that the step has taken. Changes workers and logs. */
void ty_tuner_batch(ty_tuner *t, ty_prefetch *p);

/* What lies between two measurements. */
ty_prefetch_waits ty_prefetch_waits_between(const ty_prefetch_waits *before, const ty_prefetch_waits *after);

#endif
