#include "dist/api/channel.h"

#include "dist/api/agree.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void *channel_thread(void *ctx);

/* Signals are the program's: its threads take them, ours do not. */
static int start_thread(ty_channel *c, ty_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&c->thread, NULL, channel_thread, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    c->has_thread = rc == 0;
    return rc == 0 ? TRAINYARD_OK : ty_fault(err, TRAINYARD_E_MEMORY, "cannot start a thread: %s", strerror(rc));
}

int ty_channel_open(ty_comm *comm, const int *ranks, const atomic_int *told, ty_channel **channel, ty_error *err)
{
    int size = ty_comm_size(comm);
    ty_channel *c = calloc(1, sizeof *c);
    if (!c) {
        ty_comm_close(comm, false);
        return ty_fault(err, TRAINYARD_E_MEMORY, "no memory for a channel");
    }
    c->comm = comm;
    c->rank = ty_comm_rank(comm);
    c->size = size;
    c->told = told;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->work, NULL);
    c->ranks = calloc((size_t)size, sizeof *c->ranks);
    c->words = calloc((size_t)size, sizeof *c->words);
    c->counts = calloc((size_t)size * 4, sizeof *c->counts);
    c->joined = calloc((size_t)size, sizeof *c->joined);
    int code = TRAINYARD_OK;
    if (!c->ranks || !c->words || !c->counts || !c->joined)
        code = ty_fault(err, TRAINYARD_E_MEMORY, "no memory for a channel of %d ranks", size);
    for (int i = 0; i < size && code == TRAINYARD_OK; i++)
        c->ranks[i] = ranks ? ranks[i] : i;
    if (code == TRAINYARD_OK)
        code = start_thread(c, err);
    if (code != TRAINYARD_OK) {
        c->lost = *err;
        ty_channel_close(c);
        return code;
    }
    *channel = c;
    return TRAINYARD_OK;
}

static void end_thread(ty_channel *c)
{
    pthread_mutex_lock(&c->lock);
    c->ending = true;
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
    if (c->has_thread)
        pthread_join(c->thread, NULL);
}

void ty_channel_close(ty_channel *c)
{
    if (!c)
        return;
    end_thread(c);
    ty_comm_close(c->comm, c->lost.code == TY_E_NONE);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->work);
    free(c->scratch);
    free(c->joined);
    free(c->counts);
    free(c->words);
    free(c->ranks);
    free(c);
}

/* ---- the order ---- */

/* Carries a call out; the lock is held before and after, not meanwhile. What is done may be gone at once. */
static void carry_out(ty_channel *c, ty_call *call)
{
    c->busy = true;
    pthread_mutex_unlock(&c->lock);
    call->code = ty_agree_and_carry(c, call);
    pthread_mutex_lock(&c->lock);
    c->busy = false;
    if (c->first)
        pthread_cond_signal(&c->work);
}

static ty_call *take_first(ty_channel *c)
{
    ty_call *call = c->first;
    c->first = call->next;
    if (!c->first)
        c->last = NULL;
    return call;
}

static void *channel_thread(void *ctx)
{
    ty_channel *c = ctx;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->first ? c->busy : !c->ending)
            pthread_cond_wait(&c->work, &c->lock);
        if (!c->first)
            break;
        ty_call *call = take_first(c);
        carry_out(c, call);
        sem_post(&call->done);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void append(ty_channel *c, ty_call *call)
{
    sem_init(&call->done, 0, 0);
    call->next = NULL;
    if (c->last)
        c->last->next = call;
    else
        c->first = call;
    c->last = call;
    pthread_cond_signal(&c->work);
}

void ty_channel_begin(ty_channel *c, ty_call *call)
{
    pthread_mutex_lock(&c->lock);
    append(c, call);
    pthread_mutex_unlock(&c->lock);
}

void ty_channel_wait(ty_call *call)
{
    while (sem_wait(&call->done) < 0)
        ;                  /* a signal */
    sem_post(&call->done); /* for who waits too, or again */
}

bool ty_channel_is_done(ty_call *call)
{
    int done = 0;
    return sem_getvalue(&call->done, &done) == 0 && done > 0;
}

void ty_channel_do(ty_channel *c, ty_call *call)
{
    pthread_mutex_lock(&c->lock);
    bool idle = !c->busy && !c->first;
    if (idle)
        carry_out(c, call);
    else
        append(c, call);
    pthread_mutex_unlock(&c->lock);
    if (!idle)
        ty_channel_wait(call);
}

void *ty_channel_scratch(ty_channel *c, size_t n_bytes)
{
    n_bytes = (n_bytes + 63) / 64 * 64 + 64;
    if (n_bytes > c->scratch_bytes) {
        free(c->scratch);
        c->scratch = aligned_alloc(64, n_bytes);
        c->scratch_bytes = c->scratch ? n_bytes : 0;
    }
    return c->scratch;
}
