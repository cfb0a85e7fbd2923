/* tag.c - see tag.h. */
#define _GNU_SOURCE
#include "dist/agent/tag.h"

#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void ty_tag_init(ty_tag *t, int rank, int fd)
{
    *t = (ty_tag){.rank = rank, .fd = fd};
    ty_buf_init(&t->partial, TY_TAG_LINE_BYTES);
}

void ty_tag_fini(ty_tag *t)
{
    ty_buf_fini(&t->partial);
}

/* What has begun, and the piece that completes it. */
static int put_line(ty_tag *t, const char *piece, size_t n, ty_buf *lines)
{
    int rc = t->plain ? 0 : ty_buf_addf(lines, "[1,%d]<%s>:", t->rank, t->fd == 2 ? "stderr" : "stdout");
    if (rc == 0)
        rc = ty_buf_add(lines, t->partial.data, t->partial.len);
    if (rc == 0)
        rc = ty_buf_add(lines, piece, n);
    if (rc == 0)
        rc = ty_buf_addc(lines, '\n');
    ty_buf_clear(&t->partial);
    return rc;
}

int ty_tag_feed(ty_tag *t, const char *bytes, size_t n_bytes, bool last, ty_buf *lines)
{
    const char *end = n_bytes ? bytes + n_bytes : bytes;
    while (bytes < end) {
        size_t left = (size_t)(end - bytes), room = TY_TAG_LINE_BYTES - t->partial.len;
        const char *newline = memchr(bytes, '\n', left < room + 1 ? left : room + 1);
        size_t n = newline ? (size_t)(newline - bytes) : left < room ? left : room;
        if (newline || n == room) {
            if (put_line(t, bytes, n, lines) < 0)
                return -1;
        } else if (ty_buf_add(&t->partial, bytes, n) < 0)
            return -1;
        bytes += newline ? n + 1 : n;
    }
    return last && t->partial.len ? put_line(t, "", 0, lines) : 0;
}

/* ---- the writer ---- */

typedef struct tag_chunk {
    struct tag_chunk *next;
    int fd;
    size_t n_bytes;
    char bytes[];
} tag_chunk;

struct ty_tag_writer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    tag_chunk *first, **last;
    size_t waiting_bytes;
    int room_fd;
    bool closing, was_full;
};

enum { CLOSING_WAIT_MS = 5000 };

/* Waits until the descriptor takes something. False: while we close, nobody has read for too long. */
static bool wait_writable(ty_tag_writer *w, int fd)
{
    for (int waited_ms = 0;; waited_ms += 100) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (poll(&p, 1, 100) != 0)
            return true;
        pthread_mutex_lock(&w->lock);
        bool closing = w->closing;
        pthread_mutex_unlock(&w->lock);
        if (!closing)
            waited_ms = 0;
        if (waited_ms >= CLOSING_WAIT_MS)
            return false;
    }
}

/* How much to write at once: what a pipe takes whole once it says that it is writable, and up to the end of a line,
 * since others may write to the same place in between. */
static size_t whole_lines(const char *bytes, size_t left)
{
    if (left <= PIPE_BUF)
        return left;
    const char *newline = memrchr(bytes, '\n', PIPE_BUF);
    return newline ? (size_t)(newline + 1 - bytes) : PIPE_BUF;
}

/* A reader that is gone loses the rest, which is all that can be done about it. */
static void write_chunk(ty_tag_writer *w, const tag_chunk *c)
{
    size_t done = 0;
    while (done < c->n_bytes && wait_writable(w, c->fd)) {
        ssize_t n = write(c->fd, c->bytes + done, whole_lines(c->bytes + done, c->n_bytes - done));
        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EINTR && errno != EAGAIN)
            return;
    }
}

static void tell_room(ty_tag_writer *w)
{
    uint64_t one = 1;
    if (w->room_fd >= 0 && write(w->room_fd, &one, sizeof one) < 0)
        ty_log_debug("launch", "eventfd: %d", errno);
}

static void *write_all(void *arg)
{
    ty_tag_writer *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->first && !w->closing)
            pthread_cond_wait(&w->changed, &w->lock);
        tag_chunk *c = w->first;
        if (!c)
            break;
        w->first = c->next;
        if (!w->first)
            w->last = &w->first;
        pthread_mutex_unlock(&w->lock);
        write_chunk(w, c);
        pthread_mutex_lock(&w->lock);
        w->waiting_bytes -= c->n_bytes;
        if (w->was_full && w->waiting_bytes <= TY_TAG_WRITER_BYTES / 2) {
            w->was_full = false;
            tell_room(w);
        }
        free(c);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int ty_tag_writer_open(ty_tag_writer **out, int room_fd, ty_error *err)
{
    ty_tag_writer *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the ranks' output");
    w->room_fd = room_fd;
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    sigset_t all, before; /* signals are the other threads' affair, and a closed pipe is an errno */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&w->thread, NULL, write_all, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        free(w);
        return ty_error_errno(err, TY_E_LIMIT, rc, "cannot start the thread that writes the ranks' output");
    }
    *out = w;
    return 0;
}

void ty_tag_writer_add(ty_tag_writer *w, int fd, const char *lines, size_t n_bytes)
{
    tag_chunk *c = n_bytes ? malloc(sizeof *c + n_bytes) : NULL;
    if (!c)
        return; /* without memory nothing better can be done with lines */
    *c = (tag_chunk){.fd = fd == 2 ? STDERR_FILENO : STDOUT_FILENO, .n_bytes = n_bytes};
    memcpy(c->bytes, lines, n_bytes);
    pthread_mutex_lock(&w->lock);
    *w->last = c;
    w->last = &c->next;
    w->waiting_bytes += n_bytes;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

bool ty_tag_writer_is_full(ty_tag_writer *w)
{
    pthread_mutex_lock(&w->lock);
    bool full = w->waiting_bytes > TY_TAG_WRITER_BYTES;
    w->was_full = w->was_full || full;
    pthread_mutex_unlock(&w->lock);
    return full;
}

void ty_tag_writer_close(ty_tag_writer *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
