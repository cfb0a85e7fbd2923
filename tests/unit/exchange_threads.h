/* exchange_threads.h - what replicas that are threads of one process exchange by, for tests.
 *
 *     exchange_group_init(&group, n);
 *     ty_exchange x = exchange_of(&group, replica);       of each; then all compile with it
 *     exchange_group_start(&group, program);              any of the programs
 *     ... each runs on a thread of its own
 *
 * A sum is taken in the order of replicas. Of two exchanges, one is carried out as soon as all have begun it, the next
 * one not before all wait for it: an operand that is written too soon, or a result that is touched too soon, shows as a
 * wrong number either way.
 */
#ifndef TY_TESTS_UNIT_EXCHANGE_THREADS_H
#define TY_TESTS_UNIT_EXCHANGE_THREADS_H

#include "compiler/exchange.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { EXCHANGE_MAX_REPLICAS = 8 };

typedef struct exchange_slot {
    const void *in[EXCHANGE_MAX_REPLICAS];
    void *out[EXCHANGE_MAX_REPLICAS];
    int64_t n_begun, n_waiting, n_over; /* by all replicas; how often it was carried out */
    int64_t waited[EXCHANGE_MAX_REPLICAS];
} exchange_slot;

typedef struct exchange_group {
    int n;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const ty_exchange_call *call;
    int n_calls;
    exchange_slot *slot;
    int fail_at; /* replica 0 fails to begin this call; -1: none */
    bool failed;
    int64_t most_open; /* exchanges that one replica had begun and not waited for */
    int64_t open[EXCHANGE_MAX_REPLICAS];
} exchange_group;

typedef struct exchange_member {
    exchange_group *group;
    int replica;
} exchange_member;

#define EXCHANGE_ADD(T)                 \
    for (int r = 0; r < g->n; r++)      \
        for (int64_t i = 0; i < n; i++) \
    ((T *)sum)[i] += ((const T *)s->in[r])[i]

/* Returns -1 for a type that no step exchanges. */
static inline int exchange_sum(const exchange_group *g, const exchange_slot *s, ty_dtype dtype, int64_t n, void *sum)
{
    switch (dtype) {
    case TY_F32:
        EXCHANGE_ADD(float);
        return 0;
    case TY_F64:
        EXCHANGE_ADD(double);
        return 0;
    case TY_I64:
        EXCHANGE_ADD(int64_t);
        return 0;
    case TY_I32:
        EXCHANGE_ADD(int32_t);
        return 0;
    default:
        return -1;
    }
}

static inline int exchange_carry_out(exchange_group *g, int call)
{
    const ty_exchange_call *c = &g->call[call];
    exchange_slot *s = &g->slot[call];
    bool gathers = c->kind == TY_EXCHANGE_GATHER;
    size_t bytes = (size_t)c->elems * ty_dtype_bytes(c->dtype);
    char *all = calloc((size_t)g->n + 1, bytes + 1);
    int rc = all ? 0 : -1;
    for (int r = 0; gathers && rc == 0 && r < g->n; r++)
        memcpy(all + (size_t)r * bytes, s->in[r], bytes);
    if (!gathers && rc == 0)
        rc = exchange_sum(g, s, c->dtype, c->elems, all);
    for (int r = 0; rc == 0 && r < g->n; r++)
        if (c->kind == TY_EXCHANGE_PART)
            memcpy(s->out[r], all + (size_t)r * (bytes / (size_t)g->n), bytes / (size_t)g->n);
        else
            memcpy(s->out[r], all, gathers ? (size_t)g->n * bytes : bytes);
    free(all);
    s->n_over++;
    g->failed |= rc < 0;
    return rc;
}

static inline int exchange_begin(void *ctx, int call, const void *in, void *out, ty_error *err)
{
    exchange_member *me = ctx;
    exchange_group *g = me->group;
    exchange_slot *s = &g->slot[call];
    pthread_mutex_lock(&g->lock);
    s->in[me->replica] = in;
    s->out[me->replica] = out;
    s->n_begun++;
    g->open[me->replica]++;
    g->most_open = g->open[me->replica] > g->most_open ? g->open[me->replica] : g->most_open;
    if (me->replica == 0 && call == g->fail_at)
        g->failed = true;
    if (!g->failed && call % 2 == 0 && s->n_begun % g->n == 0)
        exchange_carry_out(g, call);
    pthread_cond_broadcast(&g->changed);
    bool failed = g->failed;
    pthread_mutex_unlock(&g->lock);
    return failed ? ty_error_set(err, TY_E_INTERNAL, "exchange %d failed", call) : 0;
}

static inline int exchange_wait(void *ctx, int call, ty_error *err)
{
    exchange_member *me = ctx;
    exchange_group *g = me->group;
    exchange_slot *s = &g->slot[call];
    pthread_mutex_lock(&g->lock);
    s->n_waiting++;
    if (!g->failed && call % 2 == 1 && s->n_waiting % g->n == 0)
        exchange_carry_out(g, call);
    pthread_cond_broadcast(&g->changed);
    int64_t mine = ++s->waited[me->replica];
    g->open[me->replica]--;
    while (!g->failed && s->n_over < mine)
        pthread_cond_wait(&g->changed, &g->lock);
    bool failed = g->failed;
    pthread_mutex_unlock(&g->lock);
    return failed ? ty_error_set(err, TY_E_INTERNAL, "exchange %d failed", call) : 0;
}

static inline void exchange_group_init(exchange_group *g, int n)
{
    *g = (exchange_group){.n = n, .fail_at = -1};
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
}

static inline ty_exchange exchange_of(exchange_member *me)
{
    return (ty_exchange){.ctx = me, .replica = me->replica, .begin = exchange_begin, .wait = exchange_wait};
}

static inline void exchange_group_start(exchange_group *g, const ty_program *p)
{
    g->call = ty_program_exchanges(p, &g->n_calls);
    g->slot = calloc((size_t)g->n_calls + 1, sizeof *g->slot);
}

static inline void exchange_group_fini(exchange_group *g)
{
    free(g->slot);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->changed);
}

/* ---- programs side by side ---- */

typedef struct exchange_run {
    ty_program *program;
    ty_run run;
    const void *const *inputs;
    ty_error err;
    int rc;
} exchange_run;

static inline void *exchange_run_one(void *arg)
{
    exchange_run *r = arg;
    r->rc = ty_program_run(r->program, r->run, r->inputs, &r->err);
    return NULL;
}

/* Runs all of them at once. Returns the first that failed, or NULL. */
static inline const exchange_run *exchange_run_all(exchange_run *runs, int n)
{
    pthread_t thread[EXCHANGE_MAX_REPLICAS];
    const exchange_run *bad = NULL;
    for (int r = 0; r < n; r++)
        if (pthread_create(&thread[r], NULL, exchange_run_one, &runs[r]))
            abort();
    for (int r = 0; r < n; r++)
        pthread_join(thread[r], NULL);
    for (int r = n - 1; r >= 0; r--)
        bad = runs[r].rc < 0 ? &runs[r] : bad;
    return bad;
}

/* The first state whose bytes differ between two programs, or NULL. Not those of which each has a part. */
static inline const char *exchange_differing_state(const ty_program *a, const ty_program *b)
{
    for (int i = 0; i < ty_program_n_states(a); i++) {
        const char *name;
        ty_tensor x = ty_program_state(a, i, &name), y = ty_program_state(b, i, NULL);
        if (ty_program_whole_elems(a, i) == 0 && memcmp(x.data, y.data, ty_type_bytes(&x.type)))
            return name;
    }
    return NULL;
}

#endif
