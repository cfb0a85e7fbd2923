/* pipe.c - see pipe.h. */
#include "container/input/stream/pipe.h"

#include "container/input/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int pipe_failed(const char *path, const char *what, ty_error *err)
{
    ty_error_errno(err, TY_E_NONE, errno, "cannot %s the state of a channel in Pipe mode", what);
    return ty_error_at(err, "%s", path);
}

/* Opens a file of the channel's state; its path goes to `path`. */
static int pipe_open_file(const ty_pipe *p, const char *what, char path[TY_PIPE_PATH_BYTES], ty_error *err)
{
    snprintf(path, TY_PIPE_PATH_BYTES, "%s/.%s-pipe_mode-%s", p->state_folder, p->channel, what);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        pipe_failed(path, "open", err);
    return fd;
}

/* The process that holds the channel wrote its number there. */
static int pipe_is_taken(const ty_pipe *p, int fd, const char *path, ty_error *err)
{
    char who[32] = "";
    ssize_t n = pread(fd, who, sizeof who - 1, 0);
    who[n > 0 ? n : 0] = 0;
    ty_error_set(err, TY_E_CHANNEL, "the channel \"%s\" is being read already, by process %d", p->channel, atoi(who));
    ty_error_at(err, "%s", path);
    return ty_error_help(err,
                         "two readers of one FIFO would each get some of its bytes: give each process a channel of "
                         "its own (%s, %s-1, ...)",
                         p->channel, p->channel);
}

static int pipe_take(ty_pipe *p, ty_error *err)
{
    char path[TY_PIPE_PATH_BYTES], who[32];
    p->reader_fd = pipe_open_file(p, "reader", path, err);
    if (p->reader_fd < 0)
        return -1;
    if (flock(p->reader_fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? pipe_is_taken(p, p->reader_fd, path, err) : pipe_failed(path, "lock", err);
    int n = snprintf(who, sizeof who, "%d\n", (int)getpid());
    if (ftruncate(p->reader_fd, 0) < 0 || pwrite(p->reader_fd, who, (size_t)n, 0) != n)
        return pipe_failed(path, "write", err);
    return 0;
}

int ty_pipe_open(ty_pipe *p, const char *channel, const char *input_folder, const char *state_folder, ty_error *err)
{
    input_folder = input_folder ? input_folder : TY_PIPE_INPUT_FOLDER;
    state_folder = state_folder ? state_folder : TY_PIPE_STATE_FOLDER;
    *p = (ty_pipe){.reader_fd = -1};
    if (strlen(channel) >= sizeof p->channel || strchr(channel, '/') ||
        strlen(input_folder) >= sizeof p->input_folder || strlen(state_folder) >= sizeof p->state_folder)
        return ty_error_set(err, TY_E_RANGE, "no name of a channel or its folder: \"%s\"", channel);
    strcpy(p->channel, channel);
    strcpy(p->input_folder, input_folder);
    strcpy(p->state_folder, state_folder);
    if (mkdir(state_folder, 0777) < 0 && errno != EEXIST)
        return pipe_failed(state_folder, "make the folder for", err);
    if (pipe_take(p, err) == 0)
        return 0;
    ty_pipe_close(p);
    return -1;
}

#define PIPE_MOST INT64_C(1000000000) /* no job opens so many */

static int pipe_read(int fd, const char *path, int64_t *number, ty_error *err)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n < 0)
        return pipe_failed(path, "read", err);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    *number = 0;
    if (n == 0 || (ty_integer_scan(text, text + n, number) == text + n && *number >= 0 && *number < PIPE_MOST))
        return 0;
    ty_error_set(err, TY_E_DATA, "expected the number of the next FIFO, found \"%.*s\"", (int)n, text);
    ty_error_at(err, "%s", path);
    return ty_error_help(err, "remove the file to begin with number 0");
}

static int pipe_write(int fd, const char *path, int64_t number, ty_error *err)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%lld", (long long)number);
    return ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n ? pipe_failed(path, "write", err) : 0;
}

/* Under the lock: *number is what stands there; if it is `expected`, or that is -1, `add` is added to it. */
static int pipe_change(ty_pipe *p, int64_t expected, int64_t add, int64_t *number, ty_error *err)
{
    char lock_path[TY_PIPE_PATH_BYTES], path[TY_PIPE_PATH_BYTES];
    int lock = pipe_open_file(p, "lock", lock_path, err), fd = -1, rc = -1;
    if (lock < 0)
        return -1;
    if (flock(lock, LOCK_EX) < 0)
        pipe_failed(lock_path, "lock", err);
    else if ((fd = pipe_open_file(p, "state", path, err)) >= 0)
        rc = pipe_read(fd, path, number, err);
    if (rc == 0 && (expected < 0 || *number == expected))
        rc = pipe_write(fd, path, *number + add, err);
    if (fd >= 0)
        close(fd);
    close(lock);
    return rc;
}

int ty_pipe_next(ty_pipe *p, int64_t *number, ty_error *err)
{
    return pipe_change(p, -1, 1, number, err);
}

int ty_pipe_give_back(ty_pipe *p, int64_t number, ty_error *err)
{
    int64_t found;
    return pipe_change(p, number + 1, -1, &found, err);
}

const char *ty_pipe_path(const ty_pipe *p, int64_t number, char out[TY_PIPE_PATH_BYTES])
{
    snprintf(out, TY_PIPE_PATH_BYTES, "%s/%s_%lld", p->input_folder, p->channel, (long long)number);
    return out;
}

void ty_pipe_close(ty_pipe *p)
{
    if (p->reader_fd >= 0)
        close(p->reader_fd);
    p->reader_fd = -1;
}
