/* ahead.h - what the first step needs and no pass decides, by a second thread beside the passes. Internal to compiler/.
 *
 *     ty_ahead_start(&a, part, n, threads, has_products);   once the arenas have memory
 *     ... hash, fuse, plan, render, start the C compiler ...
 *     ty_ahead_fill(&a);                                     all parts are in place; all threads help with the rest
 *     ... library calls are prepared, the C compiler is waited for ...
 *     ty_ahead_end(&a);
 *
 * The thread first lets oneDNN write its code for products, which the first of them would wait for otherwise (some 25
 * ms), then copies weights. With one thread there is no other: ty_ahead_fill copies all, and oneDNN writes its code
 * when it is first called. Nothing depends on which thread does what.
 */
#ifndef TY_COMPILER_AHEAD_H
#define TY_COMPILER_AHEAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* A piece of a weight on its way from the model file to its arena. */
typedef struct ty_ahead_part {
    char *to;
    const char *from;
    size_t n_bytes;
} ty_ahead_part;

typedef struct ty_ahead {
    const ty_ahead_part *part;
    int n, threads;
    bool has_products, started;
    atomic_int next, n_done; /* of parts: the first that nobody has taken; how many are in place */
    pthread_t thread;
} ty_ahead;

/* part[] must live until ty_ahead_fill has returned, the memory it names until ty_ahead_end. */
void ty_ahead_start(ty_ahead *a, const ty_ahead_part *part, int n, int threads, bool has_products);
void ty_ahead_fill(ty_ahead *a);
/* Also for one that was never started, all zeros, and a second time. */
void ty_ahead_end(ty_ahead *a);

#endif
