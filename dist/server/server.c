/* server.c - see server.h. */
#include "dist/server/server.h"

#include "base/clock.h"
#include "dist/server/shard.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SERVER_TURN_MS = 100, SERVER_MAX_SHARDS = 64 };

typedef struct server_shard {
    struct ty_server *server;
    ty_shard shard;
    ty_queue asked;
    pthread_t thread;
    bool started, finished;
} server_shard;

struct ty_server {
    ty_server_options options;
    char *folder;
    uint8_t key[TY_SEAL_KEY_BYTES];
    ty_transport transport;
    server_shard shard[SERVER_MAX_SHARDS];
    ty_queue answers;
    pthread_t postman;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t over;
    int n_finished;
    bool failed, no_more; /* no_more: read by shards without the lock */
    ty_error err;
};

/* ---- a shard's thread ---- */

static void server_answer(void *ctx, int64_t peer, void *bytes, size_t n_bytes)
{
    ty_server *s = ctx;
    if (ty_queue_put(&s->answers, (ty_delivery){bytes, n_bytes, peer}))
        s->transport.table->wake(s->transport.self);
}

static void server_look(server_shard *k)
{
    bool no_more = __atomic_load_n(&k->server->no_more, __ATOMIC_RELAXED);
    if (k->finished || !(ty_shard_finished(&k->shard) || (no_more && ty_shard_deserted(&k->shard))))
        return;
    k->finished = true;
    pthread_mutex_lock(&k->server->lock);
    k->server->n_finished++;
    pthread_cond_broadcast(&k->server->over);
    pthread_mutex_unlock(&k->server->lock);
}

static void *server_own(void *arg)
{
    server_shard *k = arg;
    ty_delivery d;
    while (!ty_queue_closed(&k->asked)) {
        if (ty_queue_get(&k->asked, SERVER_TURN_MS, &d))
            ty_shard_take(&k->shard, d.bytes, d.n_bytes, d.peer, ty_clock_ms());
        ty_shard_tick(&k->shard, ty_clock_ms());
        server_look(k);
    }
    return NULL;
}

/* ---- the thread for messages ---- */

/* By the shard's number in the head; the rest of a message is looked at by its shard. */
static void server_sort(ty_server *s, ty_delivery d)
{
    ty_parcel head;
    int64_t at = -1;
    if (d.n_bytes >= sizeof head) {
        memcpy(&head, d.bytes, sizeof head);
        at = (int64_t)head.shard - s->options.first_shard;
    }
    if (at < 0 || at >= s->options.n_shards)
        free(d.bytes);
    else
        ty_queue_put(&s->shard[at].asked, d);
}

static void server_fail(ty_server *s, const ty_error *err)
{
    pthread_mutex_lock(&s->lock);
    s->failed = true;
    s->err = *err;
    pthread_cond_broadcast(&s->over);
    pthread_mutex_unlock(&s->lock);
}

static void *server_post(void *arg)
{
    ty_server *s = arg;
    ty_error err = {0};
    while (!ty_queue_closed(&s->answers)) {
        ty_delivery d;
        int came = s->transport.table->receive(s->transport.self, SERVER_TURN_MS, &d, &err);
        if (came < 0) {
            server_fail(s, &err);
            break;
        }
        if (came)
            server_sort(s, d);
        while (ty_queue_get(&s->answers, 0, &d))
            ty_transport_send(&s->transport, d.peer, d.bytes, d.n_bytes);
    }
    return NULL;
}

/* ---- starting and ending ---- */

static void server_init(ty_server *s)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->over, &attr);
    pthread_condattr_destroy(&attr);
    ty_queue_init(&s->answers);
    for (int i = 0; i < s->options.n_shards; i++)
        ty_queue_init(&s->shard[i].asked);
}

static int server_run(ty_server *s, ty_error *err)
{
    uint64_t incarnation = (uint64_t)ty_clock_utc_ms();
    for (int i = 0; i < s->options.n_shards; i++) {
        server_shard *k = &s->shard[i];
        ty_shard_options o = {.number = s->options.first_shard + i,
                              .job = s->options.job,
                              .incarnation = incarnation,
                              .folder = s->folder,
                              .key = s->options.key,
                              .resume = s->options.resume,
                              .silence_ms = s->options.silence_ms,
                              .answer = server_answer,
                              .ctx = s};
        k->server = s;
        if (ty_shard_init(&k->shard, &o, err) < 0)
            return -1;
    }
    if (ty_transport_open(&s->options.transport, &s->transport, err) < 0)
        return -1;
    for (int i = 0; i < s->options.n_shards; i++) {
        s->shard[i].started = pthread_create(&s->shard[i].thread, NULL, server_own, &s->shard[i]) == 0;
        if (!s->shard[i].started)
            return ty_error_set(err, TY_E_LIMIT, "cannot start a thread");
    }
    s->started = pthread_create(&s->postman, NULL, server_post, s) == 0;
    return s->started ? 0 : ty_error_set(err, TY_E_LIMIT, "cannot start a thread");
}

int ty_server_start(const ty_server_options *o, ty_server **out, ty_error *err)
{
    if (o->n_shards < 1 || o->n_shards > SERVER_MAX_SHARDS || o->first_shard < 0)
        return ty_error_set(err, TY_E_RANGE, "a server has 1 to %d shards, found %d from number %d", SERVER_MAX_SHARDS,
                            o->n_shards, o->first_shard);
    ty_server *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a server");
    s->options = *o;
    s->folder = o->folder ? strdup(o->folder) : NULL;
    if (o->key)
        s->options.key = memcpy(s->key, o->key, sizeof s->key);
    server_init(s);
    if (server_run(s, err) < 0) {
        ty_error second = {0};
        ty_server_stop(s, &second);
        return ty_error_wrap(err, "parameter server");
    }
    *out = s;
    return 0;
}

const char *ty_server_address(const ty_server *s)
{
    return s->transport.address;
}

bool ty_server_wait(ty_server *s, int timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&s->lock);
    while (s->n_finished < s->options.n_shards && !s->failed)
        if (pthread_cond_timedwait(&s->over, &s->lock, &until) != 0)
            break;
    bool over = s->n_finished == s->options.n_shards || s->failed;
    pthread_mutex_unlock(&s->lock);
    return over;
}

void ty_server_expect_no_more(ty_server *s)
{
    __atomic_store_n(&s->no_more, true, __ATOMIC_RELAXED);
}

/* Shards first, so that what they still answer is sent before the transport closes. */
int ty_server_stop(ty_server *s, ty_error *err)
{
    for (int i = 0; i < s->options.n_shards; i++) {
        ty_queue_close(&s->shard[i].asked);
        if (s->shard[i].started)
            pthread_join(s->shard[i].thread, NULL);
    }
    ty_queue_close(&s->answers);
    if (s->started) {
        s->transport.table->wake(s->transport.self);
        pthread_join(s->postman, NULL);
    }
    ty_delivery d;
    while (ty_queue_get(&s->answers, 0, &d))
        ty_transport_send(&s->transport, d.peer, d.bytes, d.n_bytes);
    ty_transport_close(&s->transport);
    for (int i = 0; i < s->options.n_shards; i++) {
        ty_shard_fini(&s->shard[i].shard);
        ty_queue_fini(&s->shard[i].asked);
    }
    ty_queue_fini(&s->answers);
    pthread_cond_destroy(&s->over);
    pthread_mutex_destroy(&s->lock);
    int rc = s->failed ? -1 : 0;
    if (s->failed)
        *err = s->err;
    free(s->folder);
    free(s);
    return rc;
}
