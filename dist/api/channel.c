#include "dist/api/channel.h"

#include "dist/api/agree.h"

#include <signal.h>
#include <stdlib.h>

int ty_channel_open(ty_comm *comm, const int *ranks, const atomic_int *told, ty_channel **channel, ty_error *err)
{
    int size = ty_comm_size(comm);
    ty_channel *c = calloc(1, sizeof *c);
    if (c) {
        c->ranks = calloc((size_t)size, sizeof *c->ranks);
        c->words = calloc((size_t)size, sizeof *c->words);
        c->counts = calloc((size_t)size * 4, sizeof *c->counts);
        c->joined = calloc((size_t)size, sizeof *c->joined);
    }
    if (!c || !c->ranks || !c->words || !c->counts || !c->joined) {
        ty_comm_close(comm, false);
        ty_channel_close(c);
        return ty_fault(err, TRAINYARD_E_MEMORY, "no memory for a channel of %d ranks", size);
    }
    c->comm = comm;
    c->rank = ty_comm_rank(comm);
    c->size = size;
    c->told = told;
    for (int i = 0; i < size; i++)
        c->ranks[i] = ranks ? ranks[i] : i;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    *channel = c;
    return TRAINYARD_OK;
}

static void end_thread(ty_channel *c)
{
    pthread_mutex_lock(&c->lock);
    c->ending = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (c->has_thread)
        pthread_join(c->thread, NULL);
}

void ty_channel_close(ty_channel *c)
{
    if (!c)
        return;
    if (c->comm) {
        end_thread(c);
        ty_comm_close(c->comm, c->lost.code == TY_E_NONE);
        pthread_mutex_destroy(&c->lock);
        pthread_cond_destroy(&c->changed);
    }
    free(c->scratch);
    free(c->joined);
    free(c->counts);
    free(c->words);
    free(c->ranks);
    free(c);
}

/* ---- the order ---- */

/* Carries a call out; the lock is held before and after, not meanwhile. */
static void carry_out(ty_channel *c, ty_call *call)
{
    c->busy = true;
    pthread_mutex_unlock(&c->lock);
    call->code = ty_agree_and_carry(c, call);
    pthread_mutex_lock(&c->lock);
    c->busy = false;
    call->done = true;
    pthread_cond_broadcast(&c->changed);
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
        while ((c->busy || !c->first) && !(c->ending && !c->first))
            pthread_cond_wait(&c->changed, &c->lock);
        if (!c->first)
            break;
        carry_out(c, take_first(c));
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Signals are the program's: its threads take them, ours do not. */
static void start_thread(ty_channel *c)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    c->has_thread = pthread_create(&c->thread, NULL, channel_thread, c) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void append(ty_channel *c, ty_call *call)
{
    call->next = NULL;
    call->done = false;
    if (c->last)
        c->last->next = call;
    else
        c->first = call;
    c->last = call;
}

/* Without a thread (a limit of the system) calls are carried out by who waits for one. */
void ty_channel_begin(ty_channel *c, ty_call *call)
{
    pthread_mutex_lock(&c->lock);
    append(c, call);
    if (!c->has_thread)
        start_thread(c);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void ty_channel_wait(ty_channel *c, ty_call *call)
{
    pthread_mutex_lock(&c->lock);
    while (!call->done)
        if (!c->has_thread && !c->busy && c->first)
            carry_out(c, take_first(c));
        else
            pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

bool ty_channel_is_done(ty_channel *c, const ty_call *call)
{
    pthread_mutex_lock(&c->lock);
    bool done = call->done;
    pthread_mutex_unlock(&c->lock);
    return done;
}

void ty_channel_do(ty_channel *c, ty_call *call)
{
    pthread_mutex_lock(&c->lock);
    bool idle = !c->busy && !c->first;
    if (idle)
        carry_out(c, call);
    else {
        append(c, call);
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    if (!idle)
        ty_channel_wait(c, call);
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
