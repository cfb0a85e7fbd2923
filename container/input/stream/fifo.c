/* fifo.c - see fifo.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#endif
#include "container/input/stream/fifo.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often a FIFO that is not there is looked for; how long a block that has bytes is held back for more; the pipe's
 * capacity, which a read then empties at once. */
enum { FIFO_LOOK_MS = 50, FIFO_MORE_MS = 2, FIFO_PIPE_BYTES = 1 << 20 };

static int fifo_too_long(const ty_fifo *f, const char *what, const char *help, ty_error *err)
{
    ty_error_set(err, TY_E_CHANNEL, "%s within %.3g s", what, (double)f->timeout_ms / 1000);
    ty_error_at(err, "%s", f->path);
    return ty_error_help(err, "%s; pipe_timeout: says how long to wait", help);
}

/* Waits for bytes, a writer's end, or to be told to stop: 1, 0 stop, -1; 2: time is over. fd -1: the time alone. */
static int fifo_wait(const ty_fifo *f, int64_t ms, ty_error *err)
{
    struct pollfd p[2] = {{.fd = f->stop_fd, .events = POLLIN}, {.fd = f->fd, .events = POLLIN}};
    int64_t until = ty_clock_ms() + ms;
    for (;;) {
        int64_t left = until - ty_clock_ms();
        int n = poll(p, 2, left < 0 ? 0 : left > 1000000 ? 1000000 : (int)left);
        if (n < 0 && errno != EINTR) {
            ty_error_errno(err, TY_E_NONE, errno, "cannot wait for a FIFO");
            return ty_error_at(err, "%s", f->path);
        }
        if (n > 0 && p[0].revents)
            return 0;
        if (n > 0 && p[1].revents)
            return 1;
        if (n == 0 && left <= 1000000)
            return 2;
    }
}

/* The same with half of the patience, a warning, and the rest of it. */
static int fifo_wait_long(const ty_fifo *f, const char *for_what, ty_error *err)
{
    int rc = fifo_wait(f, f->timeout_ms / 2, err);
    if (rc != 2)
        return rc;
    if (f->timeout_ms >= 2000)
        ty_log_warning("input", "%s: still waiting for %s after %.3g s, at most %.3g s", f->path, for_what,
                       (double)f->timeout_ms / 2000, (double)f->timeout_ms / 1000);
    return fifo_wait(f, f->timeout_ms - f->timeout_ms / 2, err);
}

/* Until the platform has made it. */
static int fifo_appear(ty_fifo *f, ty_error *err)
{
    int64_t start = ty_clock_ms();
    bool told = false;
    while ((f->fd = open(f->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
        int64_t waited = ty_clock_ms() - start;
        if (errno != ENOENT && errno != EINTR) {
            ty_error_errno(err, TY_E_NONE, errno, "cannot open the FIFO of an epoch");
            return ty_error_at(err, "%s", f->path);
        }
        if (waited >= f->timeout_ms)
            return fifo_too_long(f, "the FIFO of an epoch did not appear",
                                 "the platform makes one for each epoch: check the channel's name and its input mode",
                                 err);
        if (!told && waited > f->timeout_ms / 2 && f->timeout_ms >= 2000) {
            ty_log_warning("input", "%s: not there after %.3g s", f->path, (double)waited / 1000);
            told = true;
        }
        int rc = fifo_wait(f, waited < 1 ? 1 : waited < FIFO_LOOK_MS ? waited : FIFO_LOOK_MS, err);
        if (rc <= 0)
            return rc;
    }
    return 1;
}

int ty_fifo_open(ty_fifo *f, ty_error *err)
{
    struct stat st;
    f->has_writer = false;
    int rc = fifo_appear(f, err);
    if (rc <= 0)
        return rc;
    if (fstat(f->fd, &st) < 0 || !S_ISFIFO(st.st_mode)) {
        ty_fifo_close(f);
        ty_error_set(err, TY_E_CHANNEL, "expected a FIFO, found something else");
        ty_error_at(err, "%s", f->path);
        return ty_error_help(err, "the channel is not in Pipe mode: say so in inputdataconfig.json");
    }
    (void)fcntl(f->fd, F_SETPIPE_SZ, FIFO_PIPE_BYTES); /* more than the system allows: it stays as it is */
    return 1;
}

/* read() that has nothing yet: 1 when there is, 2 if what was got so far shall go first. */
static int fifo_pause(ty_fifo *f, bool has_bytes, ty_error *err)
{
    int rc = has_bytes       ? fifo_wait(f, FIFO_MORE_MS, err)
             : f->has_writer ? fifo_wait_long(f, "more bytes", err)
                             : fifo_wait_long(f, "a writer", err);
    if (rc != 2 || has_bytes)
        return rc;
    return f->has_writer ? fifo_too_long(f, "no more bytes came", "whoever feeds the channel has stalled", err)
                         : fifo_too_long(f, "nobody opened the FIFO for writing",
                                         "the platform feeds it when it is opened: is the channel's data there?", err);
}

int ty_fifo_read(ty_fifo *f, uint8_t *out, size_t n, size_t *got, ty_error *err)
{
    *got = 0;
    while (*got < n) {
        ssize_t some = f->has_writer ? read(f->fd, out + *got, n - *got) : -1;
        if (some > 0) {
            *got += (size_t)some;
            continue;
        }
        if (some == 0)
            return 1;
        if (f->has_writer && errno == EINTR)
            continue;
        if (f->has_writer && errno != EAGAIN) {
            ty_error_errno(err, TY_E_NONE, errno, "cannot read a FIFO");
            return ty_error_at(err, "%s", f->path);
        }
        int rc = fifo_pause(f, *got > 0, err);
        if (rc == 2)
            return 1;
        if (rc <= 0)
            return rc;
        f->has_writer = true;
    }
    return 1;
}

/* A writer counts from where it waits for a reader in open(), so that there is none that we would have woken and left.
 */
bool ty_fifo_close(ty_fifo *f)
{
    char byte;
    if (f->fd < 0)
        return f->has_writer;
    bool had_writer = f->has_writer || read(f->fd, &byte, 1) != 0;
    close(f->fd);
    f->fd = -1;
    return had_writer;
}
