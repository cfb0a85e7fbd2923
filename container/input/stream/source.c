/* source.c - a ring of blocks between the thread that reads and the consumer.
 *
 * released <= taken <= filled <= released + n_blocks; slot number is counter modulo n_blocks. The consumer holds the
 * block that it took last and the one before, so that a record that begins in one can be moved in front of the next.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_setname_np */
#endif
#include "container/input/stream/source.h"

#include "base/clock.h"
#include "base/log.h"
#include "container/input/inflate.h"
#include "container/input/parquet/flow.h"
#include "container/input/stream/fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SOURCE_BLOCKS = 5, SOURCE_MAGIC = 4 }; /* first bytes that tell a compression */

struct ty_source {
    ty_source_config config;
    char *fifo_path;
    /* The thread's. */
    ty_fifo fifo;
    int fd, next_fd;    /* of the file that is read; of the one behind it, -1: none */
    parquet_flow *flow; /* rows are read, not bytes */
    uint8_t *packed;    /* bytes that wait to be inflated */
    ty_inflate inflate;
    int64_t n_read;   /* from the file, as it lies there */
    bool was_written; /* the FIFO: somebody had it open */

    uint8_t *memory[SOURCE_BLOCKS];
    int stop_fd;
    pthread_t thread;
    bool is_running;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t filled_one, freed_one;
    ty_block block[SOURCE_BLOCKS];
    int64_t filled, taken, released;
    bool stopping, ended, failed;
    ty_error error;
    int64_t waited_ns;
};

/* ---- the thread: bytes of one file ---- */

static const ty_data_file *source_file(const ty_source *s, int i)
{
    return &s->config.files[s->config.which[i]];
}

static int source_open_file(const ty_source *s, int i)
{
    int fd = open(source_file(s, i)->path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return fd;
}

/* Opens file i, which may be open already, and the one behind it. 1, 0 to stop, -1. */
static int source_begin(ty_source *s, int i, ty_error *err)
{
    s->n_read = 0;
    if (s->fifo_path)
        return ty_fifo_open(&s->fifo, err);
    if (s->flow)
        return parquet_flow_begin(s->flow, i, err) < 0 ? -1 : 1;
    s->fd = s->next_fd >= 0 ? s->next_fd : source_open_file(s, i);
    s->next_fd = -1;
    if (s->fd < 0) {
        ty_error_errno(err, TY_E_NONE, errno, "cannot open a data file");
        return ty_error_at(err, "%s", source_file(s, i)->path);
    }
    if (i + 1 < s->config.n_files && (s->next_fd = source_open_file(s, i + 1)) >= 0)
        (void)posix_fadvise(s->next_fd, 0, (off_t)s->config.block_bytes, POSIX_FADV_WILLNEED);
    return 1;
}

static void source_end(ty_source *s)
{
    s->was_written = s->fifo_path && ty_fifo_close(&s->fifo);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

/* Bytes as they lie there, n unless the end comes first. 1, 0 to stop, -1. */
static int source_read_raw(ty_source *s, int i, uint8_t *out, size_t n, size_t *got, ty_error *err)
{
    if (s->fifo_path)
        return ty_fifo_read(&s->fifo, out, n, got, err);
    *got = 0;
    while (*got < n) {
        ssize_t some = read(s->fd, out + *got, n - *got);
        if (some < 0 && errno == EINTR)
            continue;
        if (some < 0) {
            ty_error_errno(err, TY_E_NONE, errno, "cannot read a data file");
            return ty_error_at(err, "%s", source_file(s, i)->path);
        }
        if (some == 0)
            break;
        *got += (size_t)some;
    }
    s->n_read += (int64_t)*got;
    if (*got == n || s->n_read == source_file(s, i)->n_bytes)
        return 1;
    ty_error_set(err, TY_E_DATA, "the file had %lld bytes when the channel was listed, and has %lld now",
                 (long long)source_file(s, i)->n_bytes, (long long)s->n_read);
    ty_error_at(err, "%s", source_file(s, i)->path);
    return ty_error_help(err, "files of a channel must not change while a run reads them");
}

/* The same, inflated. Fewer than n bytes and *ends: nothing follows. */
static int source_read_packed(ty_source *s, int i, uint8_t *out, size_t n, size_t *got, bool *ends, ty_error *err)
{
    const char *path = s->fifo_path ? s->fifo_path : source_file(s, i)->path;
    *got = 0;
    for (;;) {
        size_t some;
        if (ty_inflate_take(&s->inflate, out + *got, n - *got, &some, err) < 0)
            return ty_error_at(err, "%s", path);
        *got += some;
        if (*got == n)
            return 1;
        int rc = source_read_raw(s, i, s->packed, s->config.block_bytes, &some, err);
        if (rc <= 0)
            return rc;
        if (some == 0) {
            *ends = true;
            return ty_inflate_end(&s->inflate, err) < 0 ? ty_error_at(err, "%s", path) : 1;
        }
        ty_inflate_feed(&s->inflate, s->packed, some);
    }
}

/* The file's first bytes say whether it is compressed. They are in `out`, got of them. */
static int source_unpack(ty_source *s, int i, ty_packing packing, uint8_t *out, size_t *got, bool *ends, ty_error *err)
{
    if (!s->packed && !(s->packed = malloc(s->config.block_bytes)))
        return ty_error_set(err, TY_E_LIMIT, "no memory for a block of %zu bytes", s->config.block_bytes);
    if (ty_inflate_init(&s->inflate, packing, 0, err) < 0)
        return ty_error_at(err, "%s", s->fifo_path ? s->fifo_path : source_file(s, i)->path);
    memcpy(s->packed, out, *got);
    ty_inflate_feed(&s->inflate, s->packed, *got);
    return source_read_packed(s, i, out, s->config.block_bytes, got, ends, err);
}

/* ---- the thread: blocks ---- */

/* With the lock. A channel that is not read blocks its writer, for about an hour: then the platform fails the job. */
static void source_wait_for_room(ty_source *s, int64_t *since)
{
    int64_t until = *since + s->config.idle_ms;
    struct timespec at = {.tv_sec = (time_t)(until / 1000), .tv_nsec = (long)(until % 1000) * 1000000};
    if (!s->fifo_path) {
        pthread_cond_wait(&s->freed_one, &s->lock);
        return;
    }
    if (pthread_cond_timedwait(&s->freed_one, &s->lock, &at) != ETIMEDOUT)
        return;
    ty_log_warning("input",
                   "%s: nothing was taken of it for %.3g min, and its buffers are full: the platform fails a job that "
                   "does not read a channel for about an hour",
                   s->fifo_path, (double)s->config.idle_ms / 60000);
    *since = ty_clock_ms();
}

/* Memory of the next block; NULL to stop. */
static uint8_t *source_room(ty_source *s)
{
    pthread_mutex_lock(&s->lock);
    for (int64_t since = ty_clock_ms(); !s->stopping && s->filled - s->released == SOURCE_BLOCKS;)
        source_wait_for_room(s, &since);
    uint8_t *memory = s->stopping ? NULL : s->memory[s->filled % SOURCE_BLOCKS] + TY_BLOCK_HEAD;
    pthread_mutex_unlock(&s->lock);
    return memory;
}

static void source_give(ty_source *s, const ty_block *block)
{
    pthread_mutex_lock(&s->lock);
    s->block[s->filled++ % SOURCE_BLOCKS] = *block;
    pthread_cond_signal(&s->filled_one);
    pthread_mutex_unlock(&s->lock);
}

/* Bytes of file i, of which `at` have gone before, inflated if need be. 1, 0 to stop, -1. */
static int source_fill_bytes(ty_source *s, int i, int64_t at, uint8_t *data, size_t *got, bool *ends, ty_error *err)
{
    size_t n = s->config.block_bytes;
    int rc = s->inflate.packing ? source_read_packed(s, i, data, n, got, ends, err)
                                : source_read_raw(s, i, data, n, got, err);
    for (size_t some = 1; rc > 0 && at == 0 && s->fifo_path && *got < s->config.head_bytes && some > 0; *got += some)
        rc = source_read_raw(s, i, data + *got, n - *got, &some, err);
    if (rc <= 0)
        return rc;
    ty_packing packing = at == 0 ? ty_packing_of(data, *got) : TY_PACKING_NONE;
    if (at == 0 && packing == TY_PACKING_ZLIB)
        packing = TY_PACKING_NONE; /* weak evidence, and nothing to go back to */
    if (!s->inflate.packing && packing && (rc = source_unpack(s, i, packing, data, got, ends, err)) <= 0)
        return rc;
    if (!s->inflate.packing)
        *ends = s->fifo_path ? *got == 0 : s->n_read == source_file(s, i)->n_bytes;
    return 1;
}

/* Fills one block. The same. */
static int source_fill(ty_source *s, int i, int64_t at, ty_block *out, ty_error *err)
{
    size_t got = 0;
    bool ends = false;
    uint8_t *data = source_room(s);
    if (!data)
        return 0;
    int rc = s->flow ? parquet_flow_fill(s->flow, data, s->config.block_bytes, &got, &ends, err) < 0 ? -1 : 1
                     : source_fill_bytes(s, i, at, data, &got, &ends, err);
    if (rc <= 0)
        return rc;
    *out = (ty_block){.data = data,
                      .n = got,
                      .file = s->fifo_path ? 0 : s->config.which[i],
                      .at = at,
                      .ends_file = ends,
                      .ends_files = ends && i + 1 >= s->config.n_files};
    return 1;
}

static int source_copy(ty_source *s, ty_error *err)
{
    int rc = 1;
    for (int i = 0; rc > 0 && i < s->config.n_files; i++) {
        ty_block block = {0};
        rc = source_begin(s, i, err);
        for (int64_t at = 0; rc > 0 && !block.ends_file; at += (int64_t)block.n)
            if ((rc = source_fill(s, i, at, &block, err)) > 0)
                source_give(s, &block);
        ty_inflate_fini(&s->inflate);
        s->inflate = (ty_inflate){0};
        source_end(s);
    }
    return rc;
}

static void *source_main(void *arg)
{
    ty_source *s = arg;
    ty_error error = {0};
    int rc = source_copy(s, &error);
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    s->failed = rc < 0;
    s->error = error;
    pthread_cond_signal(&s->filled_one);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- the consumer ---- */

static int source_launch(ty_source *s, ty_error *err)
{
    sigset_t all, before;
    for (int i = 0; i < SOURCE_BLOCKS; i++)
        if (!(s->memory[i] = malloc(TY_BLOCK_HEAD + s->config.block_bytes)))
            return ty_error_set(err, TY_E_LIMIT, "no memory for a block of %zu bytes", s->config.block_bytes);
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (s->stop_fd < 0)
        return ty_error_errno(err, TY_E_LIMIT, errno, "cannot make a descriptor");
    s->fifo = (ty_fifo){.path = s->fifo_path, .stop_fd = s->stop_fd, .timeout_ms = s->config.timeout_ms, .fd = -1};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&s->thread, NULL, source_main, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return ty_error_errno(err, TY_E_LIMIT, rc, "cannot start the thread that reads data");
    s->is_running = true;
    pthread_setname_np(s->thread, "ty-read");
    return 0;
}

size_t ty_source_bytes(size_t block_bytes)
{
    return SOURCE_BLOCKS * (TY_BLOCK_HEAD + block_bytes) + block_bytes;
}

int ty_source_open(const ty_source_config *config, ty_source **out, ty_error *err)
{
    ty_source *s = calloc(1, sizeof *s);
    char *fifo = config->fifo ? strdup(config->fifo) : NULL;
    if (!s || (config->fifo && !fifo)) {
        free(s);
        free(fifo);
        return ty_error_set(err, TY_E_LIMIT, "no memory to read data");
    }
    s->config = *config;
    s->config.idle_ms = config->idle_ms > 0 ? config->idle_ms : TY_SOURCE_IDLE_MS;
    s->config.head_bytes = config->head_bytes > SOURCE_MAGIC ? config->head_bytes : SOURCE_MAGIC;
    s->config.head_bytes = s->config.head_bytes < s->config.block_bytes ? s->config.head_bytes : s->config.block_bytes;
    s->fifo_path = fifo;
    if (fifo)
        s->config.n_files = 1;
    s->fd = s->next_fd = s->stop_fd = s->fifo.fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->filled_one, NULL);
    pthread_condattr_t steady; /* as ty_clock_ms() */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&s->freed_one, &steady);
    pthread_condattr_destroy(&steady);
    parquet_flow_config flow = {
        .packing = config->packing, .files = config->files, .which = config->which, .n_files = config->n_files};
    if ((config->packing && parquet_flow_open(&flow, &s->flow, err) < 0) || source_launch(s, err) < 0) {
        ty_source_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

void ty_source_stop(ty_source *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->freed_one);
    pthread_cond_signal(&s->filled_one);
    pthread_mutex_unlock(&s->lock);
    uint64_t one = 1;
    if (s->stop_fd >= 0 && write(s->stop_fd, &one, sizeof one) < 0)
        return; /* it is full, that is, readable */
}

bool ty_source_close(ty_source *s)
{
    if (!s)
        return true;
    ty_source_stop(s);
    if (s->is_running)
        pthread_join(s->thread, NULL);
    if (s->next_fd >= 0)
        close(s->next_fd);
    if (s->stop_fd >= 0)
        close(s->stop_fd);
    for (int i = 0; i < SOURCE_BLOCKS; i++)
        free(s->memory[i]);
    bool was_used = !s->fifo_path || s->was_written;
    parquet_flow_close(s->flow);
    free(s->packed);
    free(s->fifo_path);
    pthread_cond_destroy(&s->filled_one);
    pthread_cond_destroy(&s->freed_one);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return was_used;
}

int ty_source_peek(ty_source *s, ty_block *out, ty_error *err)
{
    pthread_mutex_lock(&s->lock);
    while (s->filled == 0 && !s->ended && !s->stopping)
        pthread_cond_wait(&s->filled_one, &s->lock);
    bool has_one = s->filled > 0 && !s->stopping;
    int rc = has_one ? 1 : s->failed && !s->stopping ? -1 : 0;
    if (has_one)
        *out = s->block[0];
    if (rc < 0 && err)
        *err = s->error;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int ty_source_next(ty_source *s, ty_block *out, ty_error *err)
{
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    if (s->taken - s->released == 2) {
        s->released++;
        pthread_cond_signal(&s->freed_one);
    }
    if (s->taken == s->filled && !s->ended && !s->stopping) {
        int64_t start = ty_clock_ns();
        while (s->taken == s->filled && !s->ended && !s->stopping)
            pthread_cond_wait(&s->filled_one, &s->lock);
        s->waited_ns += ty_clock_ns() - start;
    }
    if (s->stopping) {
        rc = 0;
    } else if (s->taken < s->filled) {
        *out = s->block[s->taken++ % SOURCE_BLOCKS];
        rc = 1;
    } else if (s->failed) {
        if (err)
            *err = s->error;
        rc = -1;
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int64_t ty_source_waited_ns(const ty_source *s)
{
    return s->waited_ns;
}
