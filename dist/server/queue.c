/* queue.c - see queue.h. */
#include "dist/server/queue.h"

#include <stdlib.h>
#include <time.h>

struct queue_item {
    ty_delivery d;
    struct queue_item *next;
};

void ty_queue_init(ty_queue *q)
{
    pthread_condattr_t attr;
    *q = (ty_queue){0};
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->filled, &attr);
    pthread_condattr_destroy(&attr);
}

void ty_queue_fini(ty_queue *q)
{
    while (q->first) {
        struct queue_item *item = q->first;
        q->first = item->next;
        free(item->d.bytes);
        free(item);
    }
    pthread_cond_destroy(&q->filled);
    pthread_mutex_destroy(&q->lock);
}

bool ty_queue_put(ty_queue *q, ty_delivery d)
{
    struct queue_item *item = malloc(sizeof *item);
    pthread_mutex_lock(&q->lock);
    bool taken = item && !q->closed;
    if (taken) {
        *item = (struct queue_item){d, NULL};
        if (q->last)
            q->last->next = item;
        else
            q->first = item;
        q->last = item;
        pthread_cond_signal(&q->filled);
    }
    pthread_mutex_unlock(&q->lock);
    if (!taken) {
        free(item);
        free(d.bytes);
    }
    return taken;
}

bool ty_queue_get(ty_queue *q, int timeout_ms, ty_delivery *d)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + (int64_t)timeout_ms * 1000000;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    pthread_mutex_lock(&q->lock);
    while (!q->first && !q->woken && !q->closed && timeout_ms > 0)
        if (pthread_cond_timedwait(&q->filled, &q->lock, &until) != 0)
            break;
    struct queue_item *item = q->first;
    if (item) {
        q->first = item->next;
        if (q->first == NULL)
            q->last = NULL;
        *d = item->d;
    } else {
        q->woken = false;
    }
    pthread_mutex_unlock(&q->lock);
    free(item);
    return item != NULL;
}

void ty_queue_wake(ty_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->woken = true;
    pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->lock);
}

void ty_queue_close(ty_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->filled);
    pthread_mutex_unlock(&q->lock);
}

bool ty_queue_closed(ty_queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool closed = q->closed;
    pthread_mutex_unlock(&q->lock);
    return closed;
}
