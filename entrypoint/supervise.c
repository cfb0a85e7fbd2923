/* supervise.c - the event loop of PID 1.
 *
 * Signals arrive as reads from a signalfd, so that the loop has one place where it sleeps (poll) and nothing runs
 * asynchronously. State moves one way only:
 *
 *     RUNNING --stop signal--> STOPPING --+--> KILLING --> done
 *        \--child ended--> LEFTOVERS -----/
 *
 * Every state but RUNNING has a deadline; it is what poll's timeout is made of.
 */
#define _GNU_SOURCE
#include "entrypoint/supervise.h"

#include "container/config/exit_status.h"
#include "entrypoint/orphans.h"
#include "entrypoint/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECOND_STOP_MS = 5000, KILL_AGAIN_MS = 100, KILL_ROUNDS = 50 };

typedef enum state { RUNNING, STOPPING, LEFTOVERS, KILLING } state;

typedef struct supervisor {
    const ty_supervise_options *options;
    ty_supervise_result *result;
    pid_t child;
    bool child_ended;
    int signal_fd, stderr_fd, note_fd; /* stderr_fd: -1 after its end */
    state state;
    int64_t deadline_ms; /* -1: none */
    int stops, kill_rounds;
} supervisor;

static const struct {
    int number;
    bool stops;
} forwarded[] = {
    {SIGTERM, true},  {SIGINT, true},   {SIGQUIT, true},   {SIGHUP, true},
    {SIGUSR1, false}, {SIGUSR2, false}, {SIGWINCH, false}, {SIGCONT, false},
};
#define N_FORWARDED ((int)(sizeof forwarded / sizeof forwarded[0]))

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void handled_signals(sigset_t *set)
{
    sigemptyset(set);
    for (int i = 0; i < N_FORWARDED; i++)
        sigaddset(set, forwarded[i].number);
    sigaddset(set, SIGCHLD);
}

void ty_supervise_block(sigset_t *before)
{
    sigset_t set;
    handled_signals(&set);
    /* Not ours to act on, but their default would stop or kill us: terminal access from the background, a closed
     * stderr. */
    sigaddset(&set, SIGTTIN);
    sigaddset(&set, SIGTTOU);
    sigaddset(&set, SIGPIPE);
    sigprocmask(SIG_BLOCK, &set, before);
    signal(SIGCHLD, SIG_DFL); /* an inherited SIG_IGN would reap behind our back */
}

static void say(const char *fmt, ...) TY_PRINTF(1, 2);
static void say(const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    dprintf(STDERR_FILENO, "train: %s\n", text);
}

static void kill_everything(supervisor *s)
{
    if (s->state != KILLING && (!s->child_ended || s->stops > 0)) {
        s->result->killed = true;
        say("not ended in time: killing what is left");
    }
    s->state = KILLING;
    s->kill_rounds++;
    s->deadline_ms = now_ms() + KILL_AGAIN_MS;
    ty_orphans_signal(s->child, 0, SIGKILL);
}

/* A stop: the first begins the grace time, the second cuts it short, the third ends it. */
static void stop(supervisor *s, int number)
{
    int64_t now = now_ms();
    s->stops++;
    if (s->stops == 1) {
        s->result->stop_signal = number;
        say("%s: passed on; up to %d s to end", ty_signal_name(number), s->options->grace_ms / 1000);
        s->deadline_ms = now + s->options->grace_ms;
    } else if (s->stops == 2 && s->deadline_ms > now + SECOND_STOP_MS) {
        say("%s again: %d s left", ty_signal_name(number), SECOND_STOP_MS / 1000);
        s->deadline_ms = now + SECOND_STOP_MS;
    }
    if (s->state == RUNNING)
        s->state = STOPPING;
    if (s->stops > 2)
        kill_everything(s);
}

static void on_signal(supervisor *s, const struct signalfd_siginfo *info)
{
    int number = (int)info->ssi_signo;
    for (int i = 0; i < N_FORWARDED; i++) {
        if (forwarded[i].number != number)
            continue;
        kill(-s->child, number);
        if (forwarded[i].stops)
            stop(s, number);
    }
}

static void read_signals(supervisor *s)
{
    struct signalfd_siginfo info;
    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        on_signal(s, &info);
}

/* Passes on what is there now; at its end, forgets the pipe. A closed stderr of ours must not stop the child. */
static void pass_stderr(supervisor *s)
{
    char chunk[4096];
    ssize_t n = 0;
    while (s->stderr_fd >= 0 && (n = read(s->stderr_fd, chunk, sizeof chunk)) > 0) {
        ty_stderr_tail_add(&s->result->tail, chunk, (size_t)n);
        for (ssize_t done = 0, step; done < n; done += step)
            if ((step = write(STDERR_FILENO, chunk + done, (size_t)(n - done))) <= 0)
                break;
        if (n < (ssize_t)sizeof chunk)
            return;
    }
    if (n == 0 && s->stderr_fd >= 0) {
        close(s->stderr_fd);
        s->stderr_fd = -1;
    }
}

/* The child is gone. Others of its family may not be: in a stop they have been told already, all but those that left
 * the group. */
static void on_child_ended(supervisor *s, int wait_status)
{
    s->child_ended = true;
    s->result->wait_status = wait_status;
    if (s->state == KILLING)
        return;
    int told = ty_orphans_signal(s->child, s->state == STOPPING ? s->child : 0, SIGTERM);
    s->result->leftovers = told;
    if (s->state == RUNNING) {
        s->state = LEFTOVERS;
        s->deadline_ms = now_ms() + s->options->leftover_ms;
    }
}

/* Returns false when nothing below us is left. */
static bool reap(supervisor *s)
{
    for (;;) {
        int wait_status;
        pid_t pid = waitpid(-1, &wait_status, WNOHANG);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return pid == 0;
        if (pid == s->child)
            on_child_ended(s, wait_status);
    }
}

static int poll_timeout(const supervisor *s)
{
    if (s->deadline_ms < 0)
        return -1;
    int64_t left = s->deadline_ms - now_ms();
    return left < 0 ? 0 : (int)left;
}

static void run_loop(supervisor *s)
{
    while (reap(s)) {
        struct pollfd fds[2] = {{s->signal_fd, POLLIN, 0}, {s->stderr_fd, POLLIN, 0}};
        int timeout = poll_timeout(s);
        int n = poll(fds, 2, timeout);
        if (n < 0 && errno != EINTR)
            break;
        if (fds[0].revents)
            read_signals(s);
        if (fds[1].revents)
            pass_stderr(s);
        if (s->deadline_ms >= 0 && now_ms() >= s->deadline_ms) {
            if (s->kill_rounds >= KILL_ROUNDS)
                break; /* something hangs inside the kernel; our own end takes it along */
            kill_everything(s);
        }
    }
    pass_stderr(s);
}

/* Number of processes that the kernel killed for memory in our control group (version 2, then 1), -1 if not told. */
static long oom_kills(void)
{
    static const char *const files[] = {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char text[512];
        int fd = open(files[i], O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        if (n <= 0)
            continue;
        text[n] = 0;
        const char *row = strstr(text, "oom_kill ");
        long count;
        if (row && sscanf(row, "oom_kill %ld", &count) == 1)
            return count;
    }
    return -1;
}

static int open_channels(supervisor *s, int stderr_pipe[2], int note_pipe[2], ty_error *err)
{
    sigset_t set;
    handled_signals(&set);
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signal_fd < 0 || pipe2(stderr_pipe, O_CLOEXEC) < 0 ||
        (s->options->note_fd_name && pipe2(note_pipe, O_CLOEXEC | O_NONBLOCK) < 0))
        return ty_error_errno(err, TY_E_LIMIT, errno, "cannot supervise");
    s->stderr_fd = stderr_pipe[0];
    s->note_fd = note_pipe[0];
    /* Only our end must not block; the child's end is an ordinary pipe for it. */
    fcntl(s->stderr_fd, F_SETFL, O_NONBLOCK);
    return 0;
}

static int start_child(supervisor *s, const sigset_t *mask, int *exec_status, ty_error *err)
{
    int stderr_pipe[2] = {-1, -1}, note_pipe[2] = {-1, -1};
    *exec_status = 71;
    if (open_channels(s, stderr_pipe, note_pipe, err) < 0)
        return -1;
    ty_spawn_options o = TY_SPAWN_DEFAULTS;
    o.argv = s->options->argv;
    o.mask = mask;
    o.stderr_fd = stderr_pipe[1];
    o.passed_fd = note_pipe[1];
    o.passed_fd_name = s->options->note_fd_name;
    o.own_group = o.dies_with_us = true;
    int rc = ty_spawn(&o, &s->child, exec_status, err);
    close(stderr_pipe[1]);
    if (note_pipe[1] >= 0)
        close(note_pipe[1]);
    return rc;
}

static void finish(supervisor *s)
{
    ssize_t n = s->note_fd >= 0 ? read(s->note_fd, s->result->note, TY_NOTE_BYTES - 1) : 0;
    s->result->note[n > 0 ? n : 0] = 0;
    if (s->note_fd >= 0)
        close(s->note_fd);
    if (s->stderr_fd >= 0)
        close(s->stderr_fd);
    if (s->signal_fd >= 0)
        close(s->signal_fd);
}

int ty_supervise(const ty_supervise_options *o, const sigset_t *child_mask, ty_supervise_result *result,
                 int *exec_status, ty_error *err)
{
    supervisor s = {.options = o, .result = result, .signal_fd = -1, .stderr_fd = -1, .note_fd = -1, .deadline_ms = -1};
    *result = (ty_supervise_result){0};
    if (getpid() != 1)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    long oom_before = oom_kills();
    int64_t start_ms = now_ms();
    int rc = start_child(&s, child_mask, exec_status, err);
    if (rc == 0)
        run_loop(&s);
    finish(&s);
    result->run_s = (double)(now_ms() - start_ms) / 1000;
    result->memory_exhausted = oom_before >= 0 && oom_kills() > oom_before;
    return rc;
}
