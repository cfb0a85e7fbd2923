/* spawn.c - see spawn.h. */
#define _GNU_SOURCE
#include "entrypoint/spawn.h"

#include "base/child.h"
#include "base/clock.h"
#include "entrypoint/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int ty_exec_status(int errno_value)
{
    return errno_value == ENOENT || errno_value == ENOTDIR ? TY_EXIT_NOT_FOUND : TY_EXIT_CANNOT_EXECUTE;
}

/* Hands the terminal to the child's group, so that it may read and Ctrl-C reaches it. SIGTTOU is blocked at this point
 * only in the supervisor; here it is ignored for the one call. */
static void take_terminal(void)
{
    signal(SIGTTOU, SIG_IGN);
    tcsetpgrp(STDIN_FILENO, getpgrp());
}

static int place_fd(int fd, int at)
{
    if (fd < 0 || fd == at)
        return 0;
    return dup2(fd, at);
}

static int keep_fd(int fd)
{
    return fd < 0 ? 0 : fcntl(fd, F_SETFD, 0);
}

static bool is_among(const char *variable, const char *const *names)
{
    size_t n = strcspn(variable, "=");
    for (; *names; names++)
        if (strlen(*names) == n && memcmp(*names, variable, n) == 0)
            return true;
    return false;
}

const char **ty_spawn_environment(const char *const *from, const char *const *without, const char *with)
{
    size_t n = 0, kept = 0;
    while (from[n])
        n++;
    const char **all = malloc((n + 2) * sizeof *all);
    if (!all)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (!is_among(from[i], without))
            all[kept++] = from[i];
    all[kept++] = with;
    all[kept] = NULL;
    return all;
}

typedef struct spawned {
    const ty_spawn_options *o;
    bool foreground; /* we have the terminal */
} spawned;

static int prepare(void *ctx)
{
    const spawned *s = ctx;
    const ty_spawn_options *o = s->o;
    if (o->own_group && s->foreground)
        take_terminal();
    bool done = place_fd(o->stdout_fd, STDOUT_FILENO) >= 0 && place_fd(o->stderr_fd, STDERR_FILENO) >= 0 &&
                keep_fd(o->passed_fd) >= 0;
    return done ? 0 : -1;
}

int ty_spawn(const ty_spawn_options *o, pid_t *pid, int *exec_status, ty_error *err)
{
    spawned s = {o, isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp()};
    const char *const passed[] = {o->passed_fd_name, NULL}, **envp = NULL;
    char variable[64];
    if (o->passed_fd >= 0) { /* made here and not in the child, which may not take memory */
        snprintf(variable, sizeof variable, "%s=%d", o->passed_fd_name, o->passed_fd);
        envp = ty_spawn_environment((const char *const *)environ, passed, variable);
    }
    if (o->passed_fd >= 0 && !envp) {
        if (exec_status)
            *exec_status = 71;
        return ty_error_set(err, TY_E_LIMIT, "cannot start \"%s\": no memory for its environment", o->argv[0]);
    }
    ty_child_program p = {.argv = o->argv,
                          .envp = (char *const *)envp,
                          .cwd = o->cwd,
                          .mask = o->mask,
                          .own_group = o->own_group,
                          .death_signal = o->dies_with_us ? SIGTERM : 0,
                          .prepare = prepare,
                          .ctx = &s};
    int exec_errno, rc = ty_child_start(&p, pid, &exec_errno, err);
    free(envp);
    if (rc < 0 && exec_status)
        *exec_status = exec_errno ? ty_exec_status(exec_errno) : 71;
    return rc;
}

/* ---- a helper ---- */

enum { LOOK_MS = 50, DEAF_MS = 1000 };

/* A stop reaches the helper with our group, but one that is being started just then is born too late for it: it is told
 * again, and killed if it does not listen. False from then on: whoever it has started may hold its output open. */
static bool tell_of_stop(pid_t pid, int64_t *told_ms)
{
    int64_t now = ty_clock_ms();
    if (ty_stop_count() == 0)
        return true;
    if (*told_ms == 0) {
        *told_ms = now;
        kill(pid, SIGTERM);
    }
    if (now < *told_ms + DEAF_MS)
        return true;
    kill(pid, SIGKILL);
    return false;
}

/* What does not fit is read and dropped: a full pipe would stop the child. False: nothing more will come. */
static bool take_output(int fd, bool *echo, ty_buf *output)
{
    char chunk[4096];
    ssize_t n = read(fd, chunk, sizeof chunk);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    size_t room = output->max_bytes - output->len;
    ty_buf_add(output, chunk, (size_t)n < room ? (size_t)n : room);
    if (*echo && write(STDERR_FILENO, chunk, (size_t)n) < 0)
        *echo = false;
    return true;
}

/* Until the other side is closed, and then until the helper has ended. */
static void attend(pid_t pid, int fd, bool echo, ty_buf *output, int *wait_status)
{
    int64_t told_ms = 0;
    pid_t ended = 0;
    for (bool open = true; open && tell_of_stop(pid, &told_ms);)
        if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, LOOK_MS) > 0)
            open = take_output(fd, &echo, output);
    while ((ended = waitpid(pid, wait_status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        tell_of_stop(pid, &told_ms);
        poll(NULL, 0, 1);
    }
}

int ty_spawn_capture(const char *const *argv, const char *cwd, bool echo, ty_buf *output, int *wait_status,
                     ty_error *err)
{
    int out_pipe[2];
    if (pipe2(out_pipe, O_CLOEXEC) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot start \"%s\": pipe", argv[0]);
    ty_spawn_options o = TY_SPAWN_DEFAULTS;
    o.argv = argv;
    o.cwd = cwd;
    o.stdout_fd = o.stderr_fd = out_pipe[1];
    o.dies_with_us = true;
    pid_t pid;
    int rc = ty_spawn(&o, &pid, NULL, err);
    close(out_pipe[1]);
    if (rc == 0)
        attend(pid, out_pipe[0], echo, output, wait_status);
    close(out_pipe[0]);
    return rc;
}
