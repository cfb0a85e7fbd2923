/* queue.h - blocks of bytes on their way from thread to thread. First in, first out; any number of threads at both
 * ends. */
#ifndef TY_DIST_SERVER_QUEUE_H
#define TY_DIST_SERVER_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ty_delivery {
    void *bytes; /* malloc; whoever takes it frees it */
    size_t n_bytes;
    int64_t peer; /* who sent it, or is to get it */
} ty_delivery;

typedef struct ty_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct queue_item *first, *last;
    bool woken, closed;
} ty_queue;

void ty_queue_init(ty_queue *q);
/* Frees what nobody took. No thread may be waiting any more. */
void ty_queue_fini(ty_queue *q);
/* Takes the bytes over. False: closed, or no memory; they are freed. */
bool ty_queue_put(ty_queue *q, ty_delivery d);
/* Waits up to timeout_ms for one. False: none came, the queue was woken, or it is closed and empty. */
bool ty_queue_get(ty_queue *q, int timeout_ms, ty_delivery *d);
/* Lets one ty_queue_get return, now or the next. */
void ty_queue_wake(ty_queue *q);
/* Nothing more goes in. */
void ty_queue_close(ty_queue *q);
bool ty_queue_closed(ty_queue *q);

#endif
