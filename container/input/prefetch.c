/* prefetch.c - a ring of batches between workers and one consumer.
 *
 * Three counters that only grow describe the ring: released <= taken <= drawn <= released + depth. Slot number is
 * counter modulo depth. A worker that finds a free slot and nobody drawing draws the next batch into it; its number is
 * its ticket, and with it its place in the sequence. The consumer waits for slot `taken` to be ready, which alone makes
 * the order independent of who finishes first. What is in a slot belongs to the worker that drew it until it is ready,
 * then to the consumer until it is released; the mutex orders the hand-over.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_setname_np */
#endif
#include "container/input/prefetch.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PREFETCH_DEFAULT_DEPTH = 3, PREFETCH_MAX_DEPTH = 16, PREFETCH_MAX_WORKERS = 64 };

typedef enum slot_state { SLOT_DRAWN, SLOT_READY, SLOT_ENDED, SLOT_FAILED } slot_state;

typedef struct prefetch_slot {
    ty_batch batch;
    ty_draft draft;
    ty_tensor *field;
    void **to;  /* where each field goes */
    void *data; /* of all fields */
    slot_state state;
    ty_error error;
} prefetch_slot;

typedef struct prefetch_worker {
    ty_prefetch *p;
    pthread_t thread;
    int number;
} prefetch_worker;

struct ty_prefetch {
    ty_data_feed *feed, *own_feed;  /* own: made here */
    int depth, max_workers;         /* places of the ring, of which in_use are in use at once */
    size_t memory_bytes;            /* for batches and drafts; 0: no limit */
    prefetch_slot *made;            /* [depth] */
    prefetch_slot **slot;           /* [depth] the ring: places change hands where an epoch is skipped */
    size_t batch_bytes, slot_bytes; /* of tensors; with numbers of samples */
    int64_t started_ns;

    prefetch_worker worker[PREFETCH_MAX_WORKERS];
    int n_running;        /* threads; of the consumer's thread alone */
    pthread_mutex_t lock; /* guards everything below */
    int n_workers;        /* of the threads the first so many work, the others sleep */
    pthread_cond_t ready; /* a slot is */
    pthread_cond_t space; /* a slot is free, nobody draws, or all is over */
    int64_t drawn, taken, released;
    int in_use;
    size_t draft_bytes; /* the most that a draft has come to */
    bool is_drawing, stopping;
    bool is_over;          /* nothing more is drawn: the end, or an error */
    int64_t skip_epoch;    /* that the next draw leaves; -1: none */
    int64_t skipped_epoch; /* whose batches are dropped; -1: none */
    int64_t last_epoch;    /* of the batch taken last; -1: none */
    int64_t waited_ns, room_ns, draw_ns, asleep_ns, parse_ns;
};

static size_t prefetch_align(size_t n)
{
    return (n + TY_BATCH_ALIGN - 1) / TY_BATCH_ALIGN * TY_BATCH_ALIGN;
}

static int prefetch_batch_type(const ty_field_info *f, int64_t batch_size, ty_type *out, ty_error *err)
{
    int64_t dim[TY_MAX_RANK] = {batch_size};
    if (f->type.rank >= TY_MAX_RANK)
        return ty_error_set(err, TY_E_SHAPE, "field \"%s\" has too many dimensions for a batch", f->name);
    for (int k = 0; k < f->type.rank; k++)
        dim[k + 1] = f->type.dim[k];
    if (ty_dims_elems_checked(f->type.rank + 1, dim, ty_dtype_bytes((ty_dtype)f->type.dtype)) < 0)
        return ty_error_set(err, TY_E_LIMIT, "a batch of %lld samples of field \"%s\" is too big",
                            (long long)batch_size, f->name);
    *out = ty_type_make((ty_dtype)f->type.dtype, f->type.rank + 1, dim);
    return 0;
}

/* Sizes of all fields are known: one piece of memory, each field at an aligned offset, made when it is needed first. */
static int prefetch_make_slot(ty_prefetch *p, prefetch_slot *slot, ty_error *err)
{
    int n_fields = p->feed->n_fields;
    int64_t rows = p->feed->n_rows;
    slot->field = calloc((size_t)n_fields, sizeof *slot->field);
    slot->to = calloc((size_t)n_fields, sizeof *slot->to);
    slot->draft.samples = calloc((size_t)rows, sizeof *slot->draft.samples);
    if (slot->field == NULL || slot->to == NULL || slot->draft.samples == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a batch of %lld samples", (long long)rows);
    size_t bytes = 0;
    for (int i = 0; i < n_fields; i++) {
        if (prefetch_batch_type(&p->feed->field[i], rows, &slot->field[i].type, err) < 0)
            return -1;
        size_t add = prefetch_align(ty_type_bytes(&slot->field[i].type));
        if (bytes + add < bytes)
            return ty_error_set(err, TY_E_LIMIT, "a batch is too big for memory");
        bytes += add;
    }
    p->batch_bytes = bytes;
    slot->batch =
        (ty_batch){.n_rows = rows, .n_fields = n_fields, .field = slot->field, .samples = slot->draft.samples};
    p->slot_bytes = bytes + (size_t)rows * sizeof *slot->draft.samples;
    return p->feed->ops->open_draft ? p->feed->ops->open_draft(p->feed, &slot->draft, err) : 0;
}

static int prefetch_give_room(const ty_prefetch *p, prefetch_slot *slot, ty_error *err)
{
    size_t bytes = p->batch_bytes > 0 ? p->batch_bytes : TY_BATCH_ALIGN, at = 0;
    slot->data = aligned_alloc(TY_BATCH_ALIGN, bytes);
    if (slot->data == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a batch of %zu bytes", bytes);
    memset(slot->data, 0, bytes);
    for (int i = 0; i < p->feed->n_fields; i++) {
        slot->to[i] = slot->field[i].data = (char *)slot->data + at;
        at += prefetch_align(ty_type_bytes(&slot->field[i].type));
    }
    return 0;
}

static void prefetch_free_slot(ty_prefetch *p, prefetch_slot *slot)
{
    if (p->feed->ops->close_draft)
        p->feed->ops->close_draft(p->feed, &slot->draft);
    free(slot->field);
    free(slot->to);
    free(slot->draft.samples);
    free(slot->data);
}

/* ---- workers ---- */

static size_t prefetch_work(const ty_prefetch *p)
{
    return p->feed->ops->work_bytes ? p->feed->ops->work_bytes(p->feed) : 0;
}

/* How many threads fit beside two batches, of n. */
static int prefetch_fitting_workers(const ty_prefetch *p, int n)
{
    size_t two = 2 * p->slot_bytes, work = prefetch_work(p), left = p->memory_bytes > two ? p->memory_bytes - two : 0;
    if (p->memory_bytes == 0 || work == 0 || left / work >= (size_t)n)
        return n;
    return left < 2 * work ? 1 : (int)(left / work);
}

/* How many batches fit, as far as it is known what they take; a feed may have two drafts of its own. */
static int prefetch_fitting(const ty_prefetch *p)
{
    size_t own = 2 * p->draft_bytes + (size_t)prefetch_fitting_workers(p, p->n_workers) * prefetch_work(p);
    size_t left = p->memory_bytes > own ? p->memory_bytes - own : 0;
    size_t fit = left / (p->slot_bytes + p->draft_bytes + 1);
    if (p->memory_bytes == 0 || fit > (size_t)p->depth)
        return p->depth;
    return fit < 2 ? 2 : (int)fit;
}

static int prefetch_limit(const ty_prefetch *p)
{
    int fit = prefetch_fitting(p);
    return p->in_use < fit ? p->in_use : fit;
}

/* The slot for the next batch. One that has memory is taken before one that was never used: the one behind whose batch
 * came back last, at a place that is free too. */
static prefetch_slot *prefetch_free_one(ty_prefetch *p)
{
    prefetch_slot **next = &p->slot[p->drawn % p->depth], **last;
    if (!(*next)->data && p->released > 0) {
        last = &p->slot[(p->released - 1) % p->depth];
        prefetch_slot *used = *last;
        *last = *next;
        *next = used;
    }
    return *next;
}

/* Waits until this worker may draw, with the lock held; NULL when the work is over. */
static prefetch_slot *prefetch_wait_turn(ty_prefetch *p, int number)
{
    int64_t start = 0;
    while (!p->stopping && !p->is_over &&
           (number >= prefetch_fitting_workers(p, p->n_workers) || p->is_drawing ||
            p->drawn - p->released >= prefetch_limit(p))) {
        if (number >= prefetch_fitting_workers(p, p->n_workers))
            start = 0;
        else if (start == 0 && !p->is_drawing)
            start = ty_clock_ns();
        pthread_cond_wait(&p->space, &p->lock);
    }
    if (start != 0)
        p->room_ns += ty_clock_ns() - start;
    return p->stopping || p->is_over ? NULL : prefetch_free_one(p);
}

/* Draws the next batch into the slot, whose turn it is: 1, 0 at the end, -1. Without the lock. */
static int prefetch_draw(ty_prefetch *p, prefetch_slot *slot, int64_t skip_epoch)
{
    slot->error = (ty_error){0};
    if (!slot->data && prefetch_give_room(p, slot, &slot->error) < 0)
        return -1;
    if (skip_epoch >= 0 && p->feed->ops->skip_epoch(p->feed, skip_epoch, &slot->error) < 0)
        return -1;
    return p->feed->ops->take(p->feed, &slot->draft, &slot->error);
}

static int prefetch_parse(ty_prefetch *p, prefetch_slot *slot)
{
    const ty_position at = slot->draft.at;
    if (p->feed->ops->fill(p->feed, &slot->draft, slot->to, &slot->error) < 0)
        return ty_error_wrap(&slot->error, "epoch %lld, batch %lld", (long long)at.epoch, (long long)at.batch);
    slot->batch.at = at;
    slot->batch.n_valid = slot->draft.n_valid;
    slot->batch.ends_epoch = slot->draft.ends_epoch;
    slot->batch.longest = slot->draft.longest;
    slot->batch.epoch_records = slot->draft.epoch_records;
    return 0;
}

/* One batch, from drawing to ready. False when the work is over. The lock is held outside. */
static bool prefetch_make_one(ty_prefetch *p, int number)
{
    prefetch_slot *slot = prefetch_wait_turn(p, number);
    if (!slot)
        return false;
    int64_t skip = p->skip_epoch, asleep = p->feed->asleep_ns;
    p->skip_epoch = -1;
    p->is_drawing = true;
    pthread_mutex_unlock(&p->lock);

    int64_t start = ty_clock_ns();
    int more = prefetch_draw(p, slot, skip);
    int64_t drawn_ns = ty_clock_ns();

    pthread_mutex_lock(&p->lock);
    asleep = p->feed->asleep_ns - asleep;
    p->asleep_ns += asleep;
    p->draw_ns += drawn_ns - start - asleep;
    p->drawn++;
    p->is_drawing = false;
    slot->state = more > 0 ? SLOT_DRAWN : more == 0 ? SLOT_ENDED : SLOT_FAILED;
    p->is_over |= more <= 0;
    pthread_cond_broadcast(&p->space);
    if (more <= 0) {
        pthread_cond_signal(&p->ready);
        return false;
    }
    pthread_mutex_unlock(&p->lock);

    bool ok = prefetch_parse(p, slot) == 0;
    int64_t end = ty_clock_ns();

    pthread_mutex_lock(&p->lock);
    p->parse_ns += end - drawn_ns;
    size_t draft = p->feed->ops->draft_bytes ? p->feed->ops->draft_bytes(&slot->draft) : 0;
    p->draft_bytes = draft > p->draft_bytes ? draft : p->draft_bytes;
    slot->state = ok ? SLOT_READY : SLOT_FAILED;
    p->is_over |= !ok;
    pthread_cond_signal(&p->ready);
    if (!ok)
        pthread_cond_broadcast(&p->space);
    return true;
}

static void *prefetch_main(void *arg)
{
    const prefetch_worker *me = arg;
    ty_prefetch *p = me->p;
    pthread_mutex_lock(&p->lock);
    while (prefetch_make_one(p, me->number))
        continue;
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals are the main thread's business: workers are born with all of them blocked. One is needed; that others cannot
 * be started only makes it slower. */
static int prefetch_launch(ty_prefetch *p, int n_workers, ty_error *err)
{
    sigset_t all, before;
    int rc = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (rc == 0 && p->n_running < n_workers) {
        prefetch_worker *w = &p->worker[p->n_running];
        *w = (prefetch_worker){.p = p, .number = p->n_running};
        rc = pthread_create(&w->thread, NULL, prefetch_main, w);
        if (rc == 0) {
            pthread_setname_np(w->thread, "ty-input");
            p->n_running++;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (p->n_running == 0)
        return ty_error_errno(err, TY_E_LIMIT, rc, "cannot start the thread that reads data");
    return 0;
}

/* ---- from start to stop ---- */

/* How many threads, now and later, and how many batches for them to work on. */
static int prefetch_count(ty_prefetch *p, const ty_prefetch_config *config, int *depth, ty_error *err)
{
    p->n_workers = config->n_workers == 0 ? 1 : config->n_workers;
    p->max_workers = config->max_workers > p->n_workers ? config->max_workers : p->n_workers;
    if (p->n_workers < 1 || p->max_workers > PREFETCH_MAX_WORKERS)
        return ty_error_set(err, TY_E_RANGE, "%d threads that decode data, expected 1 to %d", p->max_workers,
                            PREFETCH_MAX_WORKERS);
    *depth = p->max_workers + 2 > PREFETCH_DEFAULT_DEPTH ? p->max_workers + 2 : PREFETCH_DEFAULT_DEPTH;
    *depth = *depth > PREFETCH_MAX_DEPTH && config->max_workers > 0 ? PREFETCH_MAX_DEPTH : *depth;
    *depth = config->depth != 0 ? config->depth : *depth;
    return 0;
}

/* What is left for batches. */
static int prefetch_fit(ty_prefetch *p, size_t memory_bytes, ty_error *err)
{
    size_t kept = p->feed->kept_bytes, work = prefetch_work(p);
    if (memory_bytes == 0 || p->slot_bytes == 0)
        return 0;
    p->memory_bytes = memory_bytes > kept ? memory_bytes - kept : 1;
    if (p->memory_bytes >= work && (p->memory_bytes - work) / p->slot_bytes >= 2)
        return 0;
    ty_error_set(err, TY_E_LIMIT, "two batches of %zu bytes do not fit the input's memory of %zu bytes", p->slot_bytes,
                 memory_bytes);
    if (kept > 0 && p->feed->epoch_batches > 0)
        ty_error_detail(err, "of it %zu are for the order of all samples", kept);
    else if (kept > 0)
        ty_error_detail(err, "of it %zu are for what is read and for the shuffle buffer", kept);
    if (work > 0)
        ty_error_detail(err, "of it %zu are for what one thread decodes in", work);
    return ty_error_help(err, "give it more (data_memory), or make batches smaller");
}

static int prefetch_init(ty_prefetch *p, const ty_prefetch_config *config, ty_error *err)
{
    int depth = 0;
    if (prefetch_count(p, config, &p->in_use, err) < 0)
        return -1;
    depth = config->max_depth > p->in_use ? config->max_depth : p->in_use;
    if ((config->depth != 0 && config->depth < 2) || depth > PREFETCH_MAX_DEPTH)
        return ty_error_set(err, TY_E_RANGE, "prefetch depth %d, expected 2 to %d", config->depth, PREFETCH_MAX_DEPTH);
    if (!config->feed && ty_dataset_feed(config->dataset, &config->sampler, config->augment, &p->own_feed, err) < 0)
        return -1;
    p->feed = config->feed ? config->feed : p->own_feed;
    if (p->feed->ops->start(p->feed, config->start, config->until_epoch, err) < 0)
        return -1;
    p->made = calloc((size_t)depth, sizeof *p->made);
    p->slot = calloc((size_t)depth, sizeof(prefetch_slot *));
    if (!p->made || !p->slot)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the input ring");
    while (p->depth < depth) {
        prefetch_slot *slot = p->slot[p->depth] = &p->made[p->depth];
        p->depth++;
        if (prefetch_make_slot(p, slot, err) < 0)
            return -1;
    }
    if (prefetch_fit(p, config->memory_bytes, err) < 0)
        return -1;
    return prefetch_launch(p, p->n_workers, err);
}

int ty_prefetch_start(const ty_prefetch_config *config, ty_prefetch **out, ty_error *err)
{
    ty_prefetch *p = calloc(1, sizeof *p);
    if (p == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the input ring");
    p->skip_epoch = p->skipped_epoch = p->last_epoch = -1;
    p->started_ns = ty_clock_ns();
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->ready, NULL);
    pthread_cond_init(&p->space, NULL);
    if (prefetch_init(p, config, err) < 0) {
        ty_prefetch_stop(p);
        return -1;
    }
    *out = p;
    return 0;
}

void ty_prefetch_stop(ty_prefetch *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->space);
    pthread_mutex_unlock(&p->lock);
    if (p->feed && p->feed->ops->stop)
        p->feed->ops->stop(p->feed);
    for (int i = 0; i < p->n_running; i++)
        pthread_join(p->worker[i].thread, NULL);
    for (int i = 0; i < p->depth; i++)
        prefetch_free_slot(p, &p->made[i]);
    free(p->made);
    free(p->slot);
    ty_data_feed_close(p->own_feed);
    pthread_cond_destroy(&p->space);
    pthread_cond_destroy(&p->ready);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* ---- the consumer ---- */

static prefetch_slot *prefetch_wait_ready(ty_prefetch *p)
{
    int64_t start = 0;
    while (p->taken == p->drawn || p->slot[p->taken % p->depth]->state == SLOT_DRAWN) {
        if (start == 0)
            start = ty_clock_ns();
        pthread_cond_wait(&p->ready, &p->lock);
    }
    if (start != 0)
        p->waited_ns += ty_clock_ns() - start;
    return p->slot[p->taken % p->depth];
}

bool ty_prefetch_wait(ty_prefetch *p, int64_t ms)
{
    struct timespec until;
    int64_t start = ty_clock_ns();
    int rc = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t ns = until.tv_nsec + ms % 1000 * 1000000;
    until.tv_sec += ms / 1000 + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    pthread_mutex_lock(&p->lock);
    while (rc == 0 && (p->taken == p->drawn || p->slot[p->taken % p->depth]->state == SLOT_DRAWN))
        rc = pthread_cond_timedwait(&p->ready, &p->lock, &until);
    p->waited_ns += ty_clock_ns() - start;
    pthread_mutex_unlock(&p->lock);
    return rc == 0;
}

/* Frees the place of the slot that was taken last; batches held before it move up by one. */
static void prefetch_drop(ty_prefetch *p)
{
    prefetch_slot *dropped = p->slot[(p->taken - 1) % p->depth];
    for (int64_t i = p->taken - 1; i > p->released; i--)
        p->slot[i % p->depth] = p->slot[(i - 1) % p->depth];
    p->slot[p->released++ % p->depth] = dropped;
    pthread_cond_broadcast(&p->space);
}

/* The next batch that is not of an epoch that was skipped, in *out; NULL at the end. */
static int prefetch_take(ty_prefetch *p, int64_t skipped, const ty_batch **out, ty_error *err)
{
    while (p->taken - p->released < prefetch_limit(p)) {
        prefetch_slot *slot = prefetch_wait_ready(p);
        if (slot->state == SLOT_FAILED) {
            if (err != NULL)
                *err = slot->error;
            return -1;
        }
        if (slot->state == SLOT_ENDED)
            return 0;
        p->taken++;
        if (slot->batch.at.epoch != skipped) {
            p->last_epoch = slot->batch.at.epoch;
            *out = &slot->batch;
            return 0;
        }
        prefetch_drop(p);
    }
    return ty_error_set(err, TY_E_INTERNAL, "all %d batches of the input ring are held", prefetch_limit(p));
}

int ty_prefetch_next(ty_prefetch *p, const ty_batch **out, ty_error *err)
{
    *out = NULL;
    pthread_mutex_lock(&p->lock);
    int rc = prefetch_take(p, p->skipped_epoch, out, err);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

void ty_prefetch_release(ty_prefetch *p, const ty_batch *batch)
{
    (void)batch; /* always the oldest; named so that a call reads as what it does */
    pthread_mutex_lock(&p->lock);
    if (p->released < p->taken)
        p->released++;
    pthread_cond_broadcast(&p->space);
    pthread_mutex_unlock(&p->lock);
}

void ty_prefetch_skip_epoch(ty_prefetch *p)
{
    pthread_mutex_lock(&p->lock);
    p->skip_epoch = p->skipped_epoch = p->last_epoch;
    pthread_mutex_unlock(&p->lock);
}

const char *ty_prefetch_place(const ty_prefetch *p, const ty_batch *batch, int field, int64_t row, char *out, size_t n)
{
    if (n > 0)
        out[0] = 0;
    for (int i = 0; i < p->depth; i++)
        if (&p->made[i].batch == batch && row >= 0 && row < batch->n_valid)
            p->feed->ops->place(p->feed, &p->made[i].draft, field, row, out, n);
    return out;
}

int64_t ty_prefetch_batches_per_epoch(const ty_prefetch *p)
{
    return p->feed->epoch_batches;
}

double ty_prefetch_waited_ms(const ty_prefetch *p)
{
    return (double)p->waited_ns / 1e6;
}

/* Under 2 % of waiting there is nothing to gain from faster input. Otherwise batches come at the rate of the slower of
 * drawing, which one thread does at a time, and decoding, which all do. */
const char *ty_prefetch_cause(const ty_prefetch_waits *w)
{
    double parse_ms = w->parse_ms / w->n_workers;
    if (w->step_ms <= 0.02 * w->elapsed_ms)
        return "the step";
    if (w->source_ms >= w->draw_ms && w->source_ms >= parse_ms)
        return "reading";
    return w->draw_ms > parse_ms ? "framing" : "parsing";
}

void ty_prefetch_measure(ty_prefetch *p, ty_prefetch_waits *out)
{
    pthread_mutex_lock(&p->lock);
    *out = (ty_prefetch_waits){.elapsed_ms = (double)(ty_clock_ns() - p->started_ns) / 1e6,
                               .step_ms = (double)p->waited_ns / 1e6,
                               .source_ms = (double)p->asleep_ns / 1e6,
                               .draw_ms = (double)p->draw_ns / 1e6,
                               .parse_ms = (double)p->parse_ns / 1e6,
                               .room_ms = (double)p->room_ns / 1e6,
                               .n_workers = p->n_workers < p->n_running ? p->n_workers : p->n_running};
    pthread_mutex_unlock(&p->lock);
    out->cause = ty_prefetch_cause(out);
}

void ty_prefetch_set_workers(ty_prefetch *p, int n)
{
    n = n < 1 ? 1 : n > p->max_workers ? p->max_workers : n;
    pthread_mutex_lock(&p->lock);
    p->n_workers = n;
    bool is_over = p->is_over;
    pthread_cond_broadcast(&p->space);
    pthread_mutex_unlock(&p->lock);
    if (!is_over)
        prefetch_launch(p, n, NULL);
}

int ty_prefetch_max_workers(const ty_prefetch *p)
{
    return p->max_workers;
}

int ty_prefetch_depth(ty_prefetch *p)
{
    pthread_mutex_lock(&p->lock);
    int n = prefetch_limit(p);
    pthread_mutex_unlock(&p->lock);
    return n;
}

int ty_prefetch_max_depth(ty_prefetch *p)
{
    pthread_mutex_lock(&p->lock);
    int n = prefetch_fitting(p);
    pthread_mutex_unlock(&p->lock);
    return n;
}

void ty_prefetch_set_depth(ty_prefetch *p, int n)
{
    pthread_mutex_lock(&p->lock);
    p->in_use = n < 2 ? 2 : n > p->depth ? p->depth : n;
    pthread_cond_broadcast(&p->space);
    pthread_mutex_unlock(&p->lock);
}

size_t ty_prefetch_work_bytes(ty_prefetch *p)
{
    pthread_mutex_lock(&p->lock);
    size_t bytes = (size_t)prefetch_fitting_workers(p, p->n_workers) * prefetch_work(p);
    pthread_mutex_unlock(&p->lock);
    return bytes;
}

size_t ty_prefetch_bytes(ty_prefetch *p)
{
    pthread_mutex_lock(&p->lock);
    size_t bytes = (p->slot_bytes + p->draft_bytes) * (size_t)prefetch_limit(p);
    pthread_mutex_unlock(&p->lock);
    return bytes;
}
