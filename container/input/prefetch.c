/* prefetch.c - a ring of batches between one thread and one consumer.
 *
 * Three counters that only grow describe everything: released <= taken <= produced <= released + depth. Slot number is
 * counter modulo depth. The thread writes to slots in [produced, released + depth), the consumer reads those in
 * [released, taken); the mutex orders the hand-over.
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

#define PREFETCH_DEFAULT_DEPTH 3
#define PREFETCH_MAX_DEPTH     16

typedef struct prefetch_slot {
    ty_batch batch;
    ty_tensor *field;
    int64_t *samples;
    void *data; /* of all fields */
} prefetch_slot;

struct ty_prefetch {
    const ty_dataset *dataset;
    ty_sampler sampler; /* the thread's, once it runs; config and n_batches do not change */
    ty_position next;   /* the thread's */
    int64_t until_epoch;
    int depth;
    prefetch_slot slot[PREFETCH_MAX_DEPTH];
    size_t slot_bytes;

    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t ready; /* produced, ended or failed */
    pthread_cond_t space; /* released or stopping */
    int64_t produced, taken, released;
    bool stopping, ended, failed;
    ty_error error;
    int64_t waited_ns;
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

/* Sizes of all fields are known: one piece of memory, each field at an aligned offset. */
static int prefetch_make_slot(ty_prefetch *p, prefetch_slot *slot, ty_error *err)
{
    int n_fields = p->dataset->n_fields;
    int64_t rows = p->sampler.config.batch_size;
    slot->field = calloc((size_t)n_fields, sizeof *slot->field);
    slot->samples = calloc((size_t)rows, sizeof *slot->samples);
    if (slot->field == NULL || slot->samples == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a batch of %lld samples", (long long)rows);
    size_t bytes = 0;
    for (int i = 0; i < n_fields; i++) {
        if (prefetch_batch_type(&p->dataset->field[i], rows, &slot->field[i].type, err) < 0)
            return -1;
        size_t add = prefetch_align(ty_type_bytes(&slot->field[i].type));
        if (bytes + add < bytes)
            return ty_error_set(err, TY_E_LIMIT, "a batch is too big for memory");
        bytes += add;
    }
    slot->data = aligned_alloc(TY_BATCH_ALIGN, bytes > 0 ? bytes : TY_BATCH_ALIGN);
    if (slot->data == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a batch of %zu bytes", bytes);
    memset(slot->data, 0, bytes);
    size_t at = 0;
    for (int i = 0; i < n_fields; i++) {
        slot->field[i].data = (char *)slot->data + at;
        at += prefetch_align(ty_type_bytes(&slot->field[i].type));
    }
    slot->batch = (ty_batch){.n_rows = rows, .n_fields = n_fields, .field = slot->field, .samples = slot->samples};
    p->slot_bytes = bytes + (size_t)rows * sizeof *slot->samples;
    return 0;
}

static int prefetch_fill(ty_prefetch *p, prefetch_slot *slot, ty_error *err)
{
    slot->batch.at = p->next;
    slot->batch.n_valid = ty_sampler_batch(&p->sampler, p->next, slot->samples);
    for (int i = 0; i < p->dataset->n_fields; i++)
        if (ty_dataset_read(p->dataset, i, slot->samples, slot->batch.n_rows, slot->field[i].data, err) < 0)
            return ty_error_wrap(err, "epoch %lld, batch %lld", (long long)p->next.epoch, (long long)p->next.batch);
    return 0;
}

/* Waits for a free slot; false when the work is over. */
static bool prefetch_wait_space(ty_prefetch *p)
{
    pthread_mutex_lock(&p->lock);
    while (!p->stopping && p->produced - p->released == p->depth)
        pthread_cond_wait(&p->space, &p->lock);
    bool go = !p->stopping;
    if (go && p->until_epoch > 0 && p->next.epoch >= p->until_epoch) {
        p->ended = true;
        pthread_cond_signal(&p->ready);
        go = false;
    }
    pthread_mutex_unlock(&p->lock);
    return go;
}

static void *prefetch_main(void *arg)
{
    ty_prefetch *p = arg;
    ty_error error = {0};
    int64_t produced = 0;
    bool ok = true;
    while (ok && prefetch_wait_space(p)) {
        ok = prefetch_fill(p, &p->slot[produced % p->depth], &error) == 0;
        p->next = ty_sampler_after(&p->sampler, p->next);
        pthread_mutex_lock(&p->lock);
        if (ok) {
            p->produced = ++produced;
        } else {
            p->failed = true;
            p->error = error;
        }
        pthread_cond_signal(&p->ready);
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

/* Signals are the main thread's business: the worker is born with all of them blocked. */
static int prefetch_launch(ty_prefetch *p, ty_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&p->thread, NULL, prefetch_main, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return ty_error_errno(err, TY_E_LIMIT, rc, "cannot start the thread that reads data");
    p->running = true;
    pthread_setname_np(p->thread, "ty-input");
    return 0;
}

static int prefetch_init(ty_prefetch *p, const ty_prefetch_config *config, ty_error *err)
{
    ty_sampler_config sampler = config->sampler;
    sampler.n_samples = config->dataset->n_samples;
    p->depth = config->depth == 0 ? PREFETCH_DEFAULT_DEPTH : config->depth;
    if (p->depth < 2 || p->depth > PREFETCH_MAX_DEPTH)
        return ty_error_set(err, TY_E_RANGE, "prefetch depth %d, expected 2 to %d", p->depth, PREFETCH_MAX_DEPTH);
    if (ty_sampler_init(&p->sampler, &sampler, err) < 0)
        return -1;
    if (config->start.epoch < 0 || config->start.batch < 0 || config->start.batch >= p->sampler.n_batches)
        return ty_error_set(err, TY_E_RANGE, "no batch %lld in epoch %lld: an epoch has %lld batches",
                            (long long)config->start.batch, (long long)config->start.epoch,
                            (long long)p->sampler.n_batches);
    for (int i = 0; i < p->depth; i++)
        if (prefetch_make_slot(p, &p->slot[i], err) < 0)
            return -1;
    return prefetch_launch(p, err);
}

int ty_prefetch_start(const ty_prefetch_config *config, ty_prefetch **out, ty_error *err)
{
    ty_prefetch *p = calloc(1, sizeof *p);
    if (p == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the input ring");
    p->dataset = config->dataset;
    p->next = config->start;
    p->until_epoch = config->until_epoch;
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
    if (p->running) {
        pthread_mutex_lock(&p->lock);
        p->stopping = true;
        pthread_cond_signal(&p->space);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
    }
    for (int i = 0; i < PREFETCH_MAX_DEPTH; i++) {
        free(p->slot[i].field);
        free(p->slot[i].samples);
        free(p->slot[i].data);
    }
    ty_sampler_fini(&p->sampler);
    pthread_cond_destroy(&p->space);
    pthread_cond_destroy(&p->ready);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void prefetch_wait_ready(ty_prefetch *p)
{
    if (p->taken < p->produced || p->ended || p->failed)
        return;
    int64_t start = ty_clock_ns();
    while (p->taken == p->produced && !p->ended && !p->failed)
        pthread_cond_wait(&p->ready, &p->lock);
    p->waited_ns += ty_clock_ns() - start;
}

int ty_prefetch_next(ty_prefetch *p, const ty_batch **out, ty_error *err)
{
    int rc = 0;
    *out = NULL;
    pthread_mutex_lock(&p->lock);
    if (p->taken - p->released == p->depth) {
        rc = ty_error_set(err, TY_E_INTERNAL, "all %d batches of the input ring are held", p->depth);
    } else {
        prefetch_wait_ready(p);
        if (p->taken < p->produced) {
            *out = &p->slot[p->taken++ % p->depth].batch;
        } else if (p->failed) {
            if (err != NULL)
                *err = p->error;
            rc = -1;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}

void ty_prefetch_release(ty_prefetch *p, const ty_batch *batch)
{
    (void)batch; /* always the oldest; named so that a call reads as what it does */
    pthread_mutex_lock(&p->lock);
    if (p->released < p->taken)
        p->released++;
    pthread_cond_signal(&p->space);
    pthread_mutex_unlock(&p->lock);
}

int64_t ty_prefetch_batches_per_epoch(const ty_prefetch *p)
{
    return p->sampler.n_batches;
}

double ty_prefetch_waited_ms(const ty_prefetch *p)
{
    return (double)p->waited_ns / 1e6;
}

size_t ty_prefetch_bytes(const ty_prefetch *p)
{
    return p->slot_bytes * (size_t)p->depth;
}
