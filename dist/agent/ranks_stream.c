/* ranks_stream.c - see ranks_stream.h. */
#define _GNU_SOURCE
#include "dist/agent/ranks_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

static bool is_blocking_off(int fd)
{
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0;
}

/* Bytes pass as they are: no echo, and no carriage return before a newline. */
static bool open_terminal(ty_ranks_stream *s)
{
    char name[64];
    struct termios t;
    int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), theirs = -1;
    if (ours >= 0 && grantpt(ours) == 0 && unlockpt(ours) == 0 && ptsname_r(ours, name, sizeof name) == 0)
        theirs = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (theirs >= 0 && tcgetattr(theirs, &t) == 0) {
        cfmakeraw(&t);
        if (tcsetattr(theirs, TCSANOW, &t) == 0 && is_blocking_off(ours)) {
            s->fd = ours;
            s->theirs = theirs;
            return true;
        }
    }
    if (theirs >= 0)
        close(theirs);
    if (ours >= 0)
        close(ours);
    return false;
}

int ty_ranks_stream_open(ty_ranks_stream *s, int rank, int fd, bool terminal, ty_error *err)
{
    int ends[2];
    ty_tag_init(&s->tag, rank, fd);
    s->fd = s->theirs = -1;
    if (terminal && open_terminal(s))
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return ty_error_errno(err, TY_E_LIMIT, errno, "no pipe for the output of rank %d", rank);
    s->fd = ends[0];
    s->theirs = ends[1];
    if (!is_blocking_off(s->fd))
        return ty_error_errno(err, TY_E_LIMIT, errno, "the pipe for the output of rank %d", rank);
    return 0;
}

static void end_stream(ty_ranks_stream *s, ty_buf *lines)
{
    ty_tag_feed(&s->tag, NULL, 0, true, lines);
    close(s->fd); /* leaves epoll sets by itself: nobody else has our end */
    s->fd = -1;
}

void ty_ranks_stream_read(ty_ranks_stream *s, size_t max_bytes, bool last, ty_buf *lines)
{
    char chunk[16384];
    ssize_t n = 1;
    for (size_t done = 0; s->fd >= 0 && done < max_bytes; done += (size_t)n) {
        n = read(s->fd, chunk, sizeof chunk);
        if (n <= 0)
            break;
        ty_tag_feed(&s->tag, chunk, (size_t)n, false, lines);
    }
    bool waits = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
    if (s->fd >= 0 && (last || !waits)) /* EIO: a terminal that nobody has open any more */
        end_stream(s, lines);
}

void ty_ranks_stream_started(ty_ranks_stream *s)
{
    if (s->theirs >= 0)
        close(s->theirs);
    s->theirs = -1;
}

void ty_ranks_stream_fini(ty_ranks_stream *s)
{
    ty_ranks_stream_started(s);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    ty_tag_fini(&s->tag);
}
