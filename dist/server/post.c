/* post.c - see post.h. */
#include "dist/server/post.h"

#include "base/clock.h"
#include "base/log.h"
#include "dist/server/roll.h"
#include "dist/server/seal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    POST_RESEND_MS = 200,
    POST_SLOWEST_MS = 2000,
    POST_PATIENCE_MS = 60000,
    POST_TURN_MS = 100,
    POST_BEAT_MS = 1000
};

typedef struct post_shard {
    int64_t peer;
    const char *address;
    uint64_t sequence; /* of the last question */
    uint64_t counter;  /* of the last message */
    uint64_t server;   /* incarnation that answered last */
    bool ready;
} post_shard;

struct ty_post {
    ty_client_options options;
    uint8_t key[TY_SEAL_KEY_BYTES];
    uint64_t incarnation, token;
    ty_transport transport;
    pthread_t thread;
    bool started, closing;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    post_shard *shard;
    int n_shards;
    ty_question **open;
    int n_open, room;
    ty_buf hello;
    ty_error failure; /* of a forgotten question */
    int restarts;
    int64_t beat_ms;
};

/* ---- sending, under the lock ---- */

static uint64_t post_oldest(const ty_post *p, int shard)
{
    uint64_t oldest = p->shard[shard].sequence + 1;
    for (int i = 0; i < p->n_open; i++)
        if (p->open[i]->shard == shard && p->open[i]->sequence && p->open[i]->sequence < oldest)
            oldest = p->open[i]->sequence;
    return oldest;
}

static ty_parcel *post_address(const ty_post *p, ty_buf *b, int shard, uint64_t sequence, uint64_t oldest)
{
    ty_parcel *head = ty_parcel_head(b);
    head->job = p->options.job;
    head->shard = (uint32_t)shard;
    head->worker = (uint32_t)p->options.worker;
    head->incarnation = p->incarnation;
    head->sequence = sequence;
    head->oldest = oldest;
    return head;
}

/* For the server's process of this number (seal.h). */
static void post_copy(ty_post *p, int shard, const ty_buf *b, uint64_t server)
{
    ty_error ignored;
    ty_parcel *copy = malloc(b->len);
    if (copy == NULL)
        return; /* as if it had been lost */
    memcpy(copy, b->data, b->len);
    copy->counter = ++p->shard[shard].counter;
    if (ty_seal(copy, b->len, p->options.key, server, &ignored) < 0)
        free(copy);
    else
        ty_transport_send(&p->transport, p->shard[shard].peer, copy, b->len);
}

/* Says nothing but: who are you? */
static void post_probe(ty_post *p, int shard)
{
    ty_buf b;
    ty_buf_init(&b, sizeof(ty_parcel) + 1);
    ty_parcel_begin(&b, &(ty_parcel){.kind = TY_PARCEL_BEAT});
    if (!b.failed) {
        post_address(p, &b, shard, 0, 0);
        post_copy(p, shard, &b, 0);
    }
    ty_buf_fini(&b);
}

static void post_send(ty_post *p, ty_question *q, int64_t now)
{
    post_address(p, &q->bytes, q->shard, q->sequence, q->sequence ? post_oldest(p, q->shard) : q->token);
    uint64_t server = p->shard[q->shard].server;
    /* A server that is another process by now cannot know the number that we have: it is asked for its own. */
    if (p->options.key && (server == 0 || q->sent > 1))
        post_probe(p, q->shard);
    if (p->options.key == NULL || server)
        post_copy(p, q->shard, &q->bytes, server);
    q->sent++;
    q->due_ms = now + q->interval_ms;
    q->interval_ms += q->interval_ms / 2;
    if (q->interval_ms > POST_SLOWEST_MS)
        q->interval_ms = POST_SLOWEST_MS;
}

static void post_hello(ty_post *p, int shard)
{
    post_address(p, &p->hello, shard, 0, 0);
    post_copy(p, shard, &p->hello, p->shard[shard].server);
}

static void post_beat(ty_post *p, int64_t now)
{
    ty_buf b;
    if (now - p->beat_ms < POST_BEAT_MS)
        return;
    p->beat_ms = now;
    ty_buf_init(&b, sizeof(ty_parcel) + 1);
    ty_parcel_begin(&b, &(ty_parcel){.kind = TY_PARCEL_BEAT});
    for (int k = 0; k < p->n_shards && !b.failed; k++)
        if (p->shard[k].server) {
            post_address(p, &b, k, 0, 0);
            post_copy(p, k, &b, p->shard[k].server);
        }
    ty_buf_fini(&b);
}

/* ---- answers, under the lock ---- */

static void question_free(ty_question *q)
{
    free(q->answer);
    free(q);
}

static void question_end(ty_post *p, int at)
{
    ty_question *q = p->open[at];
    q->done = true;
    p->open[at] = p->open[--p->n_open];
    ty_buf_fini(&q->bytes);
    if (q->forgotten) {
        if (q->err.code != TY_E_NONE && p->failure.code == TY_E_NONE)
            p->failure = q->err;
        question_free(q);
    }
    pthread_cond_broadcast(&p->answered);
}

static void post_lost(ty_post *p, int64_t now)
{
    bool stopping = p->options.stopping && p->options.stopping();
    for (int i = 0; i < p->n_open;) {
        ty_question *q = p->open[i];
        if (stopping && !p->shard[q->shard].ready && ty_parcel_head(&q->bytes)->kind != TY_PARCEL_LEAVE) {
            ty_error_set(&q->err, TY_E_STOPPED, "stopped before there were values");
            question_end(p, i);
            continue;
        }
        if (now - q->heard_ms <= p->options.patience_ms) {
            i++;
            continue;
        }
        ty_error_set(&q->err, TY_E_IO, "parameter server %s (shard %d) has not answered for %.0f s",
                     p->shard[q->shard].address, q->shard, (double)p->options.patience_ms / 1000);
        ty_error_help(&q->err, "see what that host says, or start its server again: it goes on from its last save");
        question_end(p, i);
    }
}

static void post_know(ty_post *p, const ty_parcel *a, int64_t now)
{
    post_shard *k = &p->shard[a->shard];
    for (int i = 0; a->incarnation != k->server && i < p->n_open; i++)
        if (p->open[i]->shard == (int)a->shard && (a->flags & TY_PARCEL_IS_NUMBER))
            p->open[i]->due_ms = now; /* it could not take what was sent so far */
    if (k->server && a->incarnation != k->server) {
        p->restarts++;
        ty_log_warning("server",
                       "parameter server %s (shard %u) was started again; pushes since its last save are lost",
                       k->address, a->shard);
    }
    k->server = a->incarnation;
    k->ready = a->flags & TY_PARCEL_IS_READY;
}

static void post_error(const ty_post *p, const ty_parcel *a, const void *bytes, ty_error *err)
{
    size_t at = 0;
    ty_part text = {0};
    bool has = ty_parcel_next(bytes, &at, &text) && text.kind == TY_PART_TEXT;
    int n = has && text.n_bytes < 1024 ? (int)text.n_bytes : 0;
    ty_error_set(err, (ty_code)a->status, "parameter server %s (shard %u): %.*s", p->shard[a->shard].address, a->shard,
                 n, has ? text.bytes : "");
}

/* True if the bytes are kept. */
static bool post_answer(ty_post *p, ty_delivery d, int64_t now)
{
    ty_parcel a;
    ty_error err;
    if (!ty_seal_holds(d.bytes, d.n_bytes, p->options.key, p->incarnation) ||
        ty_parcel_read(d.bytes, d.n_bytes, &a, &err) < 0 || a.kind != TY_PARCEL_ANSWER || a.job != p->options.job ||
        a.shard >= (uint32_t)p->n_shards)
        return false;
    post_know(p, &a, now);
    if (a.flags & TY_PARCEL_IS_NUMBER)
        return false;
    if (a.flags & TY_PARCEL_WANTS_HELLO)
        post_hello(p, (int)a.shard);
    for (int i = 0; i < p->n_open; i++) {
        ty_question *q = p->open[i];
        if (q->shard != (int)a.shard || (q->sequence ? q->sequence != a.sequence : a.sequence || q->token != a.oldest))
            continue;
        q->heard_ms = now;
        if (a.flags & TY_PARCEL_WANTS_HELLO)
            q->due_ms = now + POST_RESEND_MS / 10;
        if (a.flags & (TY_PARCEL_IS_WAITING | TY_PARCEL_WANTS_HELLO))
            return false;
        if (a.status)
            post_error(p, &a, d.bytes, &q->err);
        q->answer = d.bytes;
        q->n_bytes = d.n_bytes;
        question_end(p, i);
        return true;
    }
    return false;
}

/* ---- the thread ---- */

/* Sends what is due; returns how long there is nothing to do, in ms. */
static int post_turn(ty_post *p)
{
    int64_t now = ty_clock_ms(), due = now + POST_TURN_MS;
    post_lost(p, now);
    for (int i = 0; i < p->n_open; i++) {
        if (p->open[i]->due_ms <= now)
            post_send(p, p->open[i], now);
        if (p->open[i]->due_ms < due)
            due = p->open[i]->due_ms;
    }
    post_beat(p, now);
    return due > now ? (int)(due - now) : 0;
}

static void post_fail(ty_post *p, const ty_error *err)
{
    p->failure = *err;
    p->closing = true;
    while (p->n_open) {
        p->open[0]->err = *err;
        question_end(p, 0);
    }
}

static void *post_run(void *arg)
{
    ty_post *p = arg;
    ty_error err = {0};
    pthread_mutex_lock(&p->lock);
    while (!p->closing) {
        ty_delivery d;
        int wait = post_turn(p);
        pthread_mutex_unlock(&p->lock);
        int came = p->transport.table->receive(p->transport.self, wait, &d, &err);
        pthread_mutex_lock(&p->lock);
        if (came < 0)
            post_fail(p, &err);
        else if (came && !post_answer(p, d, ty_clock_ms()))
            free(d.bytes);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- asking ---- */

static int post_add(ty_post *p, ty_question *q, ty_error *err)
{
    if (p->n_open == p->room) {
        int room = p->room ? 2 * p->room : 64;
        ty_question **grown = realloc(p->open, (size_t)room * sizeof(ty_question *));
        if (grown == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for a question");
        p->open = grown;
        p->room = room;
    }
    p->open[p->n_open++] = q;
    return 0;
}

ty_question *ty_post_ask(ty_post *p, int shard, ty_buf *message, bool sequenced, ty_error *err)
{
    ty_question *q = ty_parcel_end(message, err) < 0 ? NULL : calloc(1, sizeof *q);
    if (q == NULL) {
        ty_buf_fini(message);
        return NULL;
    }
    pthread_mutex_lock(&p->lock);
    post_shard *k = &p->shard[shard];
    while (sequenced && !p->closing && k->sequence + 1 - post_oldest(p, shard) >= TY_ROLL_WINDOW - 1)
        pthread_cond_wait(&p->answered, &p->lock);
    int64_t now = ty_clock_ms();
    *q = (ty_question){.shard = shard,
                       .sequence = sequenced ? k->sequence + 1 : 0,
                       .token = ++p->token,
                       .bytes = *message,
                       .due_ms = now,
                       .heard_ms = now,
                       .interval_ms = p->options.resend_ms};
    if (p->closing)
        ty_error_set(err, TY_E_IO, "the link to parameter servers is closed");
    if (p->closing || post_add(p, q, err) < 0) {
        ty_buf_fini(&q->bytes);
        free(q);
        q = NULL;
    } else if (sequenced) {
        k->sequence++;
    }
    pthread_mutex_unlock(&p->lock);
    if (q)
        p->transport.table->wake(p->transport.self);
    return q;
}

static void post_until(int64_t timeout_ms, struct timespec *until)
{
    clock_gettime(CLOCK_MONOTONIC, until);
    until->tv_sec += timeout_ms / 1000;
    until->tv_nsec += timeout_ms % 1000 * 1000000;
    until->tv_sec += until->tv_nsec / 1000000000;
    until->tv_nsec %= 1000000000;
}

int ty_post_wait(ty_post *p, ty_question *q, int64_t timeout_ms, ty_error *err)
{
    struct timespec until;
    post_until(timeout_ms, &until);
    pthread_mutex_lock(&p->lock);
    while (!q->done)
        if (timeout_ms == 0)
            pthread_cond_wait(&p->answered, &p->lock);
        else if (pthread_cond_timedwait(&p->answered, &p->lock, &until) != 0)
            break;
    bool done = q->done;
    q->told = done;
    pthread_mutex_unlock(&p->lock);
    if (!done)
        return ty_error_set(err, TY_E_IO, "parameter server %s (shard %d) did not answer in %.1f s",
                            p->shard[q->shard].address, q->shard, (double)timeout_ms / 1000);
    if (q->err.code != TY_E_NONE) {
        *err = q->err;
        return -1;
    }
    return 0;
}

void ty_post_free(ty_post *p, ty_question *q)
{
    if (q == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    bool done = q->done;
    q->forgotten = true;
    if (done && !q->told && q->err.code != TY_E_NONE && p->failure.code == TY_E_NONE)
        p->failure = q->err;
    pthread_mutex_unlock(&p->lock);
    if (done)
        question_free(q);
}

void ty_post_drop(ty_post *p, ty_question *q)
{
    if (q == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->n_open && !q->done; i++)
        if (p->open[i] == q)
            question_end(p, i);
    pthread_mutex_unlock(&p->lock);
    question_free(q);
}

int ty_post_settle(ty_post *p, bool wait, ty_error *err)
{
    pthread_mutex_lock(&p->lock);
    for (bool open = wait; open;) {
        open = false;
        for (int i = 0; i < p->n_open; i++)
            open |= p->open[i]->forgotten;
        if (open)
            pthread_cond_wait(&p->answered, &p->lock);
    }
    int rc = p->failure.code != TY_E_NONE ? -1 : 0;
    if (rc < 0)
        *err = p->failure;
    p->failure = (ty_error){0};
    pthread_mutex_unlock(&p->lock);
    return rc;
}

bool ty_post_ready(ty_post *p)
{
    bool ready = true;
    pthread_mutex_lock(&p->lock);
    for (int k = 0; k < p->n_shards; k++)
        ready &= p->shard[k].ready;
    pthread_mutex_unlock(&p->lock);
    return ready;
}

int ty_post_restarts(ty_post *p)
{
    pthread_mutex_lock(&p->lock);
    int n = p->restarts;
    pthread_mutex_unlock(&p->lock);
    return n;
}

/* ---- opening and closing ---- */

static int post_prepare(ty_post *p, ty_error *err)
{
    const ty_client_options *o = &p->options;
    ty_buf text;
    p->n_shards = o->catalogue->shards;
    p->shard = calloc((size_t)p->n_shards, sizeof *p->shard);
    if (o->n_servers < 1 || p->n_shards % o->n_servers || p->shard == NULL)
        return ty_error_set(err, TY_E_CONFIG, "%d shards cannot be spread evenly over %d servers", p->n_shards,
                            o->n_servers);
    if (o->worker < 0 || o->worker >= o->catalogue->workers)
        return ty_error_set(err, TY_E_RANGE, "worker %d of %d", o->worker, o->catalogue->workers);
    ty_buf_init(&text, TY_CATALOGUE_MAX_BYTES);
    ty_catalogue_write(o->catalogue, &text);
    ty_parcel_begin(&p->hello, &(ty_parcel){.kind = TY_PARCEL_HELLO});
    ty_parcel_add(&p->hello, &(ty_part){.kind = TY_PART_TEXT, .n_bytes = text.len, .bytes = text.data});
    p->hello.failed |= text.failed;
    ty_buf_fini(&text);
    return ty_parcel_end(&p->hello, err);
}

static int post_start(ty_post *p, ty_error *err)
{
    const ty_client_options *o = &p->options;
    if (ty_transport_open(&o->transport, &p->transport, err) < 0)
        return -1;
    for (int k = 0; k < p->n_shards; k++) {
        p->shard[k].address = o->servers[k / (p->n_shards / o->n_servers)];
        if (p->transport.table->connect(p->transport.self, p->shard[k].address, &p->shard[k].peer, err) < 0)
            return -1;
    }
    p->started = pthread_create(&p->thread, NULL, post_run, p) == 0;
    return p->started ? 0 : ty_error_set(err, TY_E_LIMIT, "cannot start a thread");
}

int ty_post_open(const ty_client_options *o, ty_post **out, ty_error *err)
{
    ty_post *p = calloc(1, sizeof *p);
    pthread_condattr_t attr;
    if (p == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a worker's questions");
    p->options = *o;
    if (o->key)
        p->options.key = memcpy(p->key, o->key, sizeof p->key);
    p->options.resend_ms = o->resend_ms ? o->resend_ms : POST_RESEND_MS;
    p->options.patience_ms = o->patience_ms ? o->patience_ms : POST_PATIENCE_MS;
    p->incarnation = o->incarnation ? o->incarnation : (uint64_t)ty_clock_utc_ms();
    ty_buf_init(&p->hello, TY_PARCEL_MAX_BYTES);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->answered, &attr);
    pthread_condattr_destroy(&attr);
    if (post_prepare(p, err) < 0 || post_start(p, err) < 0) {
        ty_post_close(p);
        return -1;
    }
    *out = p;
    return 0;
}

void ty_post_close(ty_post *p)
{
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_mutex_unlock(&p->lock);
    if (p->started) {
        p->transport.table->wake(p->transport.self);
        pthread_join(p->thread, NULL);
    }
    ty_error closed;
    ty_error_set(&closed, TY_E_IO, "the link to parameter servers was closed");
    post_fail(p, &closed);
    ty_transport_close(&p->transport);
    ty_buf_fini(&p->hello);
    free(p->open);
    free(p->shard);
    pthread_cond_destroy(&p->answered);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
