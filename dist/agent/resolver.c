/* resolver.c - one thread, one lock, and a state that the last of the two that know it frees: getaddrinfo cannot be
 * interrupted, and nobody should wait for it when a job ends. */
#define _GNU_SOURCE
#include "dist/agent/resolver.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AGAIN_MS = 500, AFRESH_MS = 5000, KEPT = 8 };

typedef struct name_entry {
    char name[256];
    bool fixed;
    int n; /* addresses */
    char addresses[KEPT][TY_ADDRESS_TEXT_BYTES];
    char failure[64];
    int64_t due_ms;
} name_entry;

struct ty_resolver {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool stop;
    int owners; /* thread and caller */
    int n;
    name_entry *entries;
};

static void drop(ty_resolver *r)
{
    pthread_mutex_lock(&r->lock);
    int left = --r->owners;
    pthread_mutex_unlock(&r->lock);
    if (left > 0)
        return;
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->ended);
    free(r->entries);
    free(r);
}

static void look_up(ty_resolver *r, int i)
{
    ty_arena arena;
    ty_arena_init(&arena);
    const char *const *addresses, *failure;
    int n;
    ty_address_resolve(r->entries[i].name, &arena, &addresses, &n, &failure); /* names never change: no lock */
    pthread_mutex_lock(&r->lock);
    name_entry *e = &r->entries[i];
    if (n > 0) {
        e->n = n < KEPT ? n : KEPT;
        for (int k = 0; k < e->n; k++)
            snprintf(e->addresses[k], sizeof e->addresses[k], "%s", addresses[k]);
    }
    snprintf(e->failure, sizeof e->failure, "%s", failure ? failure : "");
    e->due_ms = ty_clock_ms() + (n > 0 ? AFRESH_MS : AGAIN_MS);
    pthread_mutex_unlock(&r->lock);
    ty_arena_fini(&arena);
}

/* Until something is due or all is over; the lock is held. */
static void wait_a_moment(ty_resolver *r, int64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = t.tv_nsec + ms * 1000000;
    t.tv_sec += ns / 1000000000;
    t.tv_nsec = ns % 1000000000;
    while (!r->stop && pthread_cond_timedwait(&r->ended, &r->lock, &t) == 0)
        continue;
}

static void *run(void *ctx)
{
    ty_resolver *r = ctx;
    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        for (int i = 0; i < r->n && !r->stop; i++) {
            if (r->entries[i].fixed || r->entries[i].due_ms > ty_clock_ms())
                continue;
            pthread_mutex_unlock(&r->lock);
            look_up(r, i);
            pthread_mutex_lock(&r->lock);
        }
        wait_a_moment(r, AGAIN_MS);
    }
    pthread_mutex_unlock(&r->lock);
    drop(r);
    return NULL;
}

static void fill(ty_resolver *r, const char *const *names, const char *const *fixed)
{
    for (int i = 0; i < r->n; i++) {
        name_entry *e = &r->entries[i];
        snprintf(e->name, sizeof e->name, "%s", names[i]);
        snprintf(e->failure, sizeof e->failure, "not looked up yet");
        e->fixed = fixed[i] != NULL;
        e->n = e->fixed;
        snprintf(e->addresses[0], sizeof e->addresses[0], "%s", fixed[i] ? fixed[i] : "");
    }
}

static int start_thread(ty_resolver *r)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, &attributes, run, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return rc;
}

int ty_resolver_start(const char *const *names, const char *const *fixed, int n, ty_resolver **out, ty_error *err)
{
    ty_resolver *r = calloc(1, sizeof *r);
    name_entry *entries = calloc((size_t)n, sizeof *entries);
    if (!r || !entries) {
        free(r);
        free(entries);
        return ty_error_set(err, TY_E_LIMIT, "no memory for %d host names", n);
    }
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->ended, &clock);
    pthread_condattr_destroy(&clock);
    r->owners = 2;
    r->n = n;
    r->entries = entries;
    fill(r, names, fixed);
    int rc = start_thread(r);
    if (rc != 0) {
        drop(r);
        drop(r);
        return ty_error_errno(err, TY_E_LIMIT, rc, "cannot start the thread that looks up host names");
    }
    *out = r;
    return 0;
}

bool ty_resolver_get(ty_resolver *r, int i, char address[TY_ADDRESS_TEXT_BYTES], char failure[64])
{
    pthread_mutex_lock(&r->lock);
    const name_entry *e = &r->entries[i];
    bool known = e->n > 0;
    if (known)
        memcpy(address, e->addresses[0], TY_ADDRESS_TEXT_BYTES);
    memcpy(failure, e->failure, sizeof e->failure);
    pthread_mutex_unlock(&r->lock);
    return known;
}

int ty_resolver_owner(ty_resolver *r, const char *address)
{
    int owner = -1;
    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < r->n && owner < 0; i++)
        for (int k = 0; k < r->entries[i].n && owner < 0; k++)
            if (strcmp(r->entries[i].addresses[k], address) == 0)
                owner = i;
    pthread_mutex_unlock(&r->lock);
    return owner;
}

bool ty_resolver_complete(ty_resolver *r)
{
    bool complete = true;
    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < r->n; i++)
        complete = complete && r->entries[i].n > 0;
    pthread_mutex_unlock(&r->lock);
    return complete;
}

void ty_resolver_settle(ty_resolver *r)
{
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->ended);
    pthread_mutex_unlock(&r->lock);
}

void ty_resolver_stop(ty_resolver *r)
{
    if (!r)
        return;
    ty_resolver_settle(r);
    drop(r);
}
