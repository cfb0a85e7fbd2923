#include "dist/api/world.h"

#include "dist/api/carry.h"
#include "dist/api/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct process_set {
    bool used;
    int n;               /* ranks */
    ty_channel *channel; /* NULL: this rank is not in it */
} process_set;

struct ty_world {
    pthread_mutex_t lock;
    process_set sets[TY_WORLD_SETS + 1]; /* 0: all ranks */
    ty_gradients *gradients[TY_WORLD_GRADIENTS];
    struct handle *first;
    int64_t last_handle;
    const atomic_int *told;
    atomic_bool stops;
};

typedef struct handle {
    ty_call *call;
    ty_channel *channel;
    struct handle *next;
} handle;

/* ---- open, close ---- */

int ty_world_open(ty_comm *comm, const atomic_int *told, ty_world **world, ty_error *err)
{
    ty_world *w = calloc(1, sizeof *w);
    if (!w) {
        ty_comm_close(comm, false);
        return ty_fault(err, TRAINYARD_E_MEMORY, "no memory for the job's state");
    }
    int code = ty_channel_open(comm, NULL, told, &w->sets[0].channel, err);
    if (code != TRAINYARD_OK) {
        free(w);
        return code;
    }
    pthread_mutex_init(&w->lock, NULL);
    w->sets[0].used = true;
    w->sets[0].n = w->sets[0].channel->size;
    w->told = told;
    *world = w;
    return TRAINYARD_OK;
}

/* Calls of one kind on several channels at once: ranks may wait for each other on any of them. */
typedef struct wave {
    int n;
    ty_channel *channels[TY_WORLD_SETS + 1 + TY_WORLD_GRADIENTS];
    ty_call *calls; /* [n] */
} wave;

static int run_wave(wave *v, ty_call_kind kind, int *answer, ty_error *err)
{
    int code = TRAINYARD_OK;
    v->calls = calloc((size_t)v->n, sizeof *v->calls);
    if (!v->calls)
        return ty_fault(err, TRAINYARD_E_MEMORY, "no memory for %d calls", v->n);
    for (int i = 0; i < v->n; i++) {
        ty_call_init(&v->calls[i], kind, NULL, NULL, NULL, 0);
        ty_channel_begin(v->channels[i], &v->calls[i]);
    }
    for (int i = 0; i < v->n; i++) {
        ty_channel_wait(&v->calls[i]);
        if (code == TRAINYARD_OK && v->calls[i].code != TRAINYARD_OK) {
            code = v->calls[i].code;
            *err = v->calls[i].err;
        }
    }
    *answer = v->calls[0].answer;
    free(v->calls);
    return code;
}

static void drop_handles(ty_world *w)
{
    while (w->first) {
        handle *h = w->first;
        w->first = h->next;
        ty_channel_wait(h->call);
        ty_call_fini(h->call);
        free(h->call);
        free(h);
    }
}

int ty_world_close(ty_world *w, ty_error *err)
{
    wave leave = {0};
    int ignored;
    for (int s = 0; s <= TY_WORLD_SETS; s++)
        if (w->sets[s].channel)
            leave.channels[leave.n++] = w->sets[s].channel;
    for (int i = 0; i < TY_WORLD_GRADIENTS; i++)
        if (w->gradients[i])
            leave.channels[leave.n++] = ty_gradients_channel(w->gradients[i]);
    int code = run_wave(&leave, TY_CALL_LEAVE, &ignored, err);
    drop_handles(w);
    for (int i = 0; i < TY_WORLD_GRADIENTS; i++)
        ty_gradients_drop(w->gradients[i]);
    for (int s = TY_WORLD_SETS; s >= 0; s--)
        ty_channel_close(w->sets[s].channel);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return code;
}

ty_comm *ty_world_comm(const ty_world *w)
{
    return w->sets[0].channel->comm;
}

bool ty_world_stops(ty_world *w)
{
    return atomic_load(&w->stops);
}

static void note_stop(ty_world *w, int set, bool stop)
{
    if (set == 0 && stop)
        atomic_store(&w->stops, true);
}

/* ---- calls ---- */

static int find_set(ty_world *w, int set, process_set *found, ty_error *err)
{
    pthread_mutex_lock(&w->lock);
    bool is_there = set >= 0 && set <= TY_WORLD_SETS && w->sets[set].used;
    *found = w->sets[is_there ? set : 0];
    pthread_mutex_unlock(&w->lock);
    return is_there ? TRAINYARD_OK : ty_fault(err, TRAINYARD_E_ARGUMENT, "there is no process set %d", set);
}

static int find_channel(ty_world *w, int set, ty_channel **channel, ty_error *err)
{
    process_set found;
    int code = find_set(w, set, &found, err);
    if (code != TRAINYARD_OK)
        return code;
    if (!found.channel)
        return ty_fault(err, TRAINYARD_E_NOT_MEMBER, "rank %d is not in process set %d", w->sets[0].channel->rank, set);
    *channel = found.channel;
    return TRAINYARD_OK;
}

/* From a rank of the world to one of the channel. */
static int fit_root(const ty_channel *c, ty_call *call)
{
    for (int i = 0; i < c->size; i++)
        if (c->ranks[i] == call->root) {
            call->root = i;
            return TRAINYARD_OK;
        }
    return ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "root %d is not one of the %d ranks", call->root, c->size);
}

static int fit_splits(const ty_channel *c, ty_call *call)
{
    int64_t rows = ty_view_rows(call->in), sum = 0;
    if (call->in->ndim == 0)
        return ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "in is a single number: there are no rows to send");
    if (!call->splits && rows % c->size != 0)
        return ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "%lld rows in equal parts for %d ranks: give splits",
                        (long long)rows, c->size);
    for (int r = 0; call->splits && r < c->size; r++) {
        if (call->splits[r] < 0 || call->splits[r] > rows)
            return ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "splits[%d] is %lld: expected 0 to %lld", r,
                            (long long)call->splits[r], (long long)rows);
        sum += call->splits[r];
    }
    if (call->splits && sum != rows)
        return ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "splits add up to %lld, in has %lld rows", (long long)sum,
                        (long long)rows);
    return TRAINYARD_OK;
}

/* What only the set's size can tell. */
static void fit(const ty_channel *c, ty_call *call)
{
    if (call->fault)
        return;
    if (call->kind == TY_CALL_BROADCAST)
        call->fault = fit_root(c, call);
    else if (call->kind == TY_CALL_ALLTOALL)
        call->fault = fit_splits(c, call);
    else if (call->kind == TY_CALL_REDUCESCATTER && call->in->ndim == 0)
        call->fault = ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "in is a single number: there are no rows to share");
}

int ty_world_now(ty_world *w, ty_call *call)
{
    ty_channel *c;
    int code = find_channel(w, call->options.set, &c, &call->err);
    if (code == TRAINYARD_OK) {
        fit(c, call);
        ty_channel_do(c, call);
        code = call->code;
        note_stop(w, call->options.set, call->stop);
    }
    ty_call_fini(call);
    return code;
}

int64_t ty_world_later(ty_world *w, ty_call *call, ty_error *err)
{
    handle *h = malloc(sizeof *h);
    int code = h ? find_channel(w, call->options.set, &h->channel, err)
                 : ty_fault(err, TRAINYARD_E_MEMORY, "no memory for a handle");
    if (code != TRAINYARD_OK) {
        ty_call_fini(call);
        free(call);
        free(h);
        return code;
    }
    fit(h->channel, call);
    h->call = call;
    pthread_mutex_lock(&w->lock);
    int64_t number = call->handle = ++w->last_handle;
    h->next = w->first;
    w->first = h;
    ty_channel_begin(h->channel, call); /* under the lock: handles grow as calls are begun */
    pthread_mutex_unlock(&w->lock);
    return number;
}

/* The place that points at the handle; locked. */
static handle **find_handle(ty_world *w, int64_t number)
{
    handle **at = &w->first;
    while (*at && (*at)->call->handle != number)
        at = &(*at)->next;
    return at;
}

static int no_handle(int64_t number, ty_error *err)
{
    return ty_fault(err, TRAINYARD_E_STATE, "handle %lld is not under way: each is waited for once", (long long)number);
}

int ty_world_poll(ty_world *w, int64_t number, ty_error *err)
{
    pthread_mutex_lock(&w->lock);
    handle *h = *find_handle(w, number);
    int done = h ? ty_channel_is_done(h->call) : -1;
    pthread_mutex_unlock(&w->lock);
    return done >= 0 ? done : no_handle(number, err);
}

int ty_world_wait(ty_world *w, int64_t number, ty_error *err)
{
    pthread_mutex_lock(&w->lock);
    handle **at = find_handle(w, number), *h = *at;
    if (h)
        *at = h->next;
    pthread_mutex_unlock(&w->lock);
    if (!h)
        return no_handle(number, err);
    ty_channel_wait(h->call);
    int code = h->call->code;
    if (code != TRAINYARD_OK)
        *err = h->call->err;
    note_stop(w, h->call->options.set, h->call->stop);
    ty_call_fini(h->call);
    free(h->call);
    free(h);
    return code;
}

/* ---- join ---- */

int ty_world_join(ty_world *w, ty_error *err)
{
    wave join = {.n = 1, .channels = {w->sets[0].channel}};
    int answer = 0;
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < TY_WORLD_GRADIENTS; i++)
        if (w->gradients[i] && ty_gradients_set(w->gradients[i]) == 0)
            join.channels[join.n++] = ty_gradients_channel(w->gradients[i]);
    pthread_mutex_unlock(&w->lock);
    int code = run_wave(&join, TY_CALL_JOIN, &answer, err);
    return code == TRAINYARD_OK ? answer : code;
}

/* ---- process sets ---- */

typedef struct set_work {
    ty_world *world;
    const int *ranks;
    int n;
    int set;
} set_work;

/* In the world's order, so that numbers are equal on all ranks. */
static int work_set_new(ty_channel *c, ty_call *call, ty_error *err)
{
    set_work *work = call->with;
    ty_world *w = work->world;
    ty_channel *channel = NULL;
    ty_comm *comm = NULL;
    int set = 1, code = TRAINYARD_OK;
    while (set <= TY_WORLD_SETS && w->sets[set].used)
        set++;
    if (set > TY_WORLD_SETS)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "there are %d process sets already", TY_WORLD_SETS);
    if (ty_comm_subset(c->comm, work->ranks, work->n, &comm, err) < 0) {
        c->lost = *err;
        return TRAINYARD_E_LOST;
    }
    if (comm)
        code = ty_channel_open(comm, work->ranks, c->told, &channel, err);
    pthread_mutex_lock(&w->lock);
    w->sets[set] = (process_set){true, work->n, channel};
    pthread_mutex_unlock(&w->lock);
    call->answer = set;
    return code;
}

static int check_ranks(const ty_world *w, const int *ranks, int n, ty_error *err)
{
    int size = w->sets[0].n;
    if (n < 1 || n > size || !ranks)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "%d ranks: expected 1 to %d", n, size);
    for (int i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= size)
            return ty_fault(err, TRAINYARD_E_ARGUMENT, "rank %d: expected 0 to %d", ranks[i], size - 1);
        for (int k = 0; k < i; k++)
            if (ranks[k] == ranks[i])
                return ty_fault(err, TRAINYARD_E_ARGUMENT, "rank %d stands twice in the list", ranks[i]);
    }
    return TRAINYARD_OK;
}

int ty_world_set_new(ty_world *w, const int *ranks, int n, ty_error *err)
{
    set_work work = {.world = w, .ranks = ranks, .n = n};
    ty_call call;
    ty_buf text;
    ty_buf_init(&text, TY_CALL_TEXT_BYTES);
    ty_call_init(&call, TY_CALL_SET, NULL, NULL, NULL, 0);
    call.fault = check_ranks(w, ranks, n, &call.err);
    ty_buf_adds(&text, "ranks");
    for (int i = 0; i < n && !call.fault; i++)
        ty_buf_addf(&text, " %d", ranks[i]);
    call.details = text.data;
    call.with = &work;
    call.work = work_set_new;
    int code = ty_world_now(w, &call);
    ty_buf_fini(&text);
    if (code != TRAINYARD_OK)
        *err = call.err;
    return code == TRAINYARD_OK ? call.answer : code;
}

static int work_set_free(ty_channel *c, ty_call *call, ty_error *err)
{
    set_work *work = call->with;
    (void)c, (void)err;
    pthread_mutex_lock(&work->world->lock);
    ty_channel *channel = work->world->sets[work->set].channel;
    work->world->sets[work->set] = (process_set){0};
    pthread_mutex_unlock(&work->world->lock);
    ty_channel_close(channel);
    return TRAINYARD_OK;
}

static int check_free(ty_world *w, int set, ty_error *err)
{
    process_set found;
    if (set == 0)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "process set 0 is all ranks: it ends with trainyard_shutdown");
    int code = find_set(w, set, &found, err);
    for (int i = 0; i < TY_WORLD_GRADIENTS && code == TRAINYARD_OK; i++)
        if (w->gradients[i] && ty_gradients_set(w->gradients[i]) == set)
            return ty_fault(err, TRAINYARD_E_ARGUMENT, "process set %d still has gradients", set);
    return code;
}

int ty_world_set_free(ty_world *w, int set, ty_error *err)
{
    set_work work = {.world = w, .set = set};
    ty_call call;
    char which[32];
    snprintf(which, sizeof which, "set %d", set);
    ty_call_init(&call, TY_CALL_UNSET, NULL, NULL, NULL, 0);
    call.fault = check_free(w, set, &call.err);
    call.details = which;
    call.with = &work;
    call.work = work_set_free;
    int code = ty_world_now(w, &call);
    if (code != TRAINYARD_OK)
        *err = call.err;
    return code;
}

int ty_world_set_rank(ty_world *w, int set, ty_error *err)
{
    ty_channel *c = NULL;
    int code = find_channel(w, set, &c, err);
    return code == TRAINYARD_OK ? c->rank : code;
}

int ty_world_set_size(ty_world *w, int set, ty_error *err)
{
    process_set found;
    int code = find_set(w, set, &found, err);
    return code == TRAINYARD_OK ? found.n : code;
}

/* ---- gradients ---- */

/* A free place that nobody else takes meanwhile; -1: none. */
static int find_place(ty_world *w, const ty_gradients *g)
{
    for (int i = 0; i < TY_WORLD_GRADIENTS; i++)
        if (w->gradients[i] == g)
            return i;
    return -1;
}

int ty_world_gradients_new(ty_world *w, const trainyard_parameter *parameters, int n,
                           const trainyard_gradients_options *options, ty_gradients **g, ty_error *err)
{
    ty_channel *c;
    int code = find_channel(w, options ? options->set : 0, &c, err);
    if (code != TRAINYARD_OK)
        return code;
    if (find_place(w, NULL) < 0)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "there are %d sets of gradients already", TY_WORLD_GRADIENTS);
    code = ty_gradients_new(c, parameters, n, options, g, err);
    if (code != TRAINYARD_OK)
        return code;
    pthread_mutex_lock(&w->lock);
    w->gradients[find_place(w, NULL)] = *g;
    pthread_mutex_unlock(&w->lock);
    return TRAINYARD_OK;
}

int ty_world_gradients_free(ty_world *w, ty_gradients *g, ty_error *err)
{
    ty_channel *c;
    int code = find_channel(w, ty_gradients_set(g), &c, err);
    if (code == TRAINYARD_OK)
        code = ty_gradients_free(c, g, err);
    if (code == TRAINYARD_OK) {
        pthread_mutex_lock(&w->lock);
        w->gradients[find_place(w, g)] = NULL;
        pthread_mutex_unlock(&w->lock);
    }
    return code;
}

int ty_world_gradients_wait(ty_world *w, ty_gradients *g, ty_error *err)
{
    bool stop = false;
    int code = ty_gradients_wait(g, &stop, err);
    note_stop(w, ty_gradients_set(g), stop);
    return code;
}
