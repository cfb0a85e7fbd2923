/* local_run.c - one loop: signals, lines, ends, deadlines. */
#define _GNU_SOURCE
#include "entrypoint/local_run.h"

#include "base/child.h"
#include "dist/agent/ranks_stream.h"
#include "dist/mishap.h"
#include "entrypoint/orphans.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STOP_MS = 120000, TEARDOWN_MS = 10000, LOOK_MS = 100, READ_BYTES = 1 << 20, LINES_BYTES = 16 << 20 };

/* A host's streams: standard output, standard error. */
typedef struct mouth {
    ty_ranks_stream stream[2];
    int log_fd;
} mouth;

typedef struct runner {
    ty_local_run *run;
    mouth *mouths; /* [n_hosts] */
    ty_tag_writer *writer;
    ty_buf lines, labelled;
    int signal_fd;
    sigset_t before;
    int64_t start_ms, end_ms;     /* end_ms: of the job's time */
    int64_t teardown_ms, kill_ms; /* deadlines; 0: none */
    bool is_stopping;
} runner;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void say(const char *fmt, ...) TY_PRINTF(1, 2);
static void say(const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    dprintf(STDERR_FILENO, "local: %s\n", text);
}

/* ---- starting ---- */

typedef struct preparation {
    int out_fd, err_fd;
    bool has_cores;
    cpu_set_t cores;
} preparation;

/* In the child. */
static int prepare(void *ctx)
{
    const preparation *p = ctx;
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (p->has_cores)
        sched_setaffinity(0, sizeof p->cores, &p->cores);
    return nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(p->out_fd, STDOUT_FILENO) >= 0 &&
                   dup2(p->err_fd, STDERR_FILENO) >= 0
               ? 0
               : -1;
}

/* Its share, counted over the cores that this process may use. */
static bool choose_cores(const ty_local_host *h, cpu_set_t *out)
{
    cpu_set_t ours;
    int seen = 0;
    CPU_ZERO(out);
    if (h->n_cores == 0 || sched_getaffinity(0, sizeof ours, &ours) < 0)
        return false;
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &ours)) {
            if (seen >= h->first_core && seen < h->first_core + h->n_cores)
                CPU_SET(c, out);
            seen++;
        }
    return CPU_COUNT(out) > 0;
}

static int start(runner *r, int i, ty_error *err)
{
    ty_local_host *h = &r->run->hosts[i];
    mouth *m = &r->mouths[i];
    m->log_fd = open(h->log, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (m->log_fd < 0)
        return ty_error_errno(err, TY_E_CREATE, errno, "\"%s\"", h->log);
    for (int k = 0; k < 2; k++) {
        if (ty_ranks_stream_open(&m->stream[k], 0, k + 1, false, err) < 0)
            return -1;
        m->stream[k].tag.plain = true;
    }
    preparation p = {m->stream[0].theirs, m->stream[1].theirs, false, {{0}}};
    p.has_cores = choose_cores(h, &p.cores);
    ty_child_program program = {.argv = h->argv,
                                .envp = (char *const *)(uintptr_t)h->envp,
                                .mask = &r->before,
                                .own_group = true,
                                .death_signal = SIGTERM,
                                .prepare = prepare,
                                .ctx = &p};
    int rc = ty_child_start(&program, &h->pid, NULL, err);
    if (rc < 0)
        h->pid = 0;
    for (int k = 0; k < 2; k++)
        ty_ranks_stream_started(&m->stream[k]);
    return rc;
}

/* Its results interest nobody, what it complains of does. */
static int prepare_feeder(void *ctx)
{
    (void)ctx;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    return nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 ? 0 : -1;
}

static int start_feeder(runner *r, ty_local_feeder_of *f, ty_error *err)
{
    ty_child_program program = {
        .argv = f->argv, .mask = &r->before, .own_group = true, .death_signal = SIGTERM, .prepare = prepare_feeder};
    int rc = ty_child_start(&program, &f->pid, NULL, err);
    if (rc < 0)
        f->pid = 0;
    return rc;
}

static void end_feeders(const runner *r)
{
    for (int i = 0; i < r->run->n_feeders; i++)
        if (r->run->feeders[i].pid > 0)
            kill(r->run->feeders[i].pid, SIGTERM);
    for (int i = 0; i < r->run->n_feeders; i++)
        if (r->run->feeders[i].pid > 0)
            waitpid(r->run->feeders[i].pid, NULL, 0);
}

/* ---- lines ---- */

static void label(runner *r, const char *name)
{
    const char *at = r->lines.data, *end = at + r->lines.len;
    ty_buf_clear(&r->labelled);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t n = newline ? (size_t)(newline - at) + 1 : (size_t)(end - at);
        if (r->run->n_hosts > 1)
            ty_buf_addf(&r->labelled, "[%s] ", name);
        ty_buf_add(&r->labelled, at, n);
        at += n;
    }
}

static void read_lines(runner *r, int host, int k, bool last)
{
    mouth *m = &r->mouths[host];
    ty_buf_clear(&r->lines);
    ty_ranks_stream_read(&m->stream[k], READ_BYTES, last, &r->lines);
    if (r->lines.len == 0)
        return;
    if (memmem(r->lines.data, r->lines.len, TY_MISHAP_MARK, strlen(TY_MISHAP_MARK)))
        r->run->mishap_seen = true;
    label(r, r->run->hosts[host].name);
    ty_tag_writer_add(r->writer, k + 1, r->labelled.data, r->labelled.len);
    if (m->log_fd >= 0 && write(m->log_fd, r->lines.data, r->lines.len) < 0) {
        say("the log of %s cannot be written any more: %s", r->run->hosts[host].name, strerror(errno));
        close(m->log_fd);
        m->log_fd = -1;
    }
}

/* ---- stopping ---- */

static void signal_all(runner *r, int number)
{
    for (int i = 0; i < r->run->n_hosts; i++) {
        const ty_local_host *h = &r->run->hosts[i];
        if (h->pid <= 0)
            continue;
        if (number == SIGKILL && h->container)
            r->run->kill(h->container);
        else
            kill(h->pid, number);
    }
}

static void kill_all(runner *r)
{
    r->run->is_killed = true;
    r->kill_ms = now_ms() + STOP_MS; /* again, should an engine not have listened */
    signal_all(r, SIGKILL);
}

static void stop_all(runner *r)
{
    r->is_stopping = true;
    r->teardown_ms = 0;
    r->kill_ms = now_ms() + STOP_MS;
    signal_all(r, SIGTERM);
}

static void on_signal(runner *r, int number)
{
    if (r->run->stop_signal == 0 && r->run->first_failed < 0) {
        r->run->stop_signal = number;
        say("stopping the job: hosts have %d seconds; once more ends them at once", STOP_MS / 1000);
        stop_all(r);
    } else {
        say("killing what is left");
        kill_all(r);
    }
}

static void on_end(runner *r, int i, int wait_status)
{
    ty_local_run *run = r->run;
    ty_local_host *h = &run->hosts[i];
    h->pid = 0;
    h->status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
    for (int k = 0; k < 2; k++)
        read_lines(r, i, k, true);
    if (h->status != 0 && run->first_failed < 0 && !r->is_stopping) {
        run->first_failed = i;
        r->teardown_ms = now_ms() + TEARDOWN_MS;
    }
}

static void on_feeder_end(runner *r, ty_local_feeder_of *f, int wait_status)
{
    f->pid = 0;
    if ((WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) || r->is_stopping)
        return;
    say("what feeds channel \"%s\" has failed", f->channel);
    if (r->run->first_failed < 0) {
        r->run->first_failed = f->host;
        r->teardown_ms = now_ms() + TEARDOWN_MS;
    }
}

/* Whether a host still runs. */
static bool reap(runner *r)
{
    int wait_status, n = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
        for (int i = 0; i < r->run->n_hosts; i++)
            if (r->run->hosts[i].pid == pid)
                on_end(r, i, wait_status);
        for (int i = 0; i < r->run->n_feeders; i++)
            if (r->run->feeders[i].pid == pid)
                on_feeder_end(r, &r->run->feeders[i], wait_status);
    }
    for (int i = 0; i < r->run->n_hosts; i++)
        n += r->run->hosts[i].pid > 0;
    return n > 0;
}

/* ---- the loop ---- */

static void meet_deadlines(runner *r)
{
    int64_t now = now_ms();
    if (now >= r->end_ms && !r->is_stopping) {
        r->run->is_out_of_time = r->run->first_failed < 0;
        say("the job's time is over (stopping.max_run_seconds: %lld)", (long long)r->run->max_run_s);
        stop_all(r);
    }
    if (r->teardown_ms && now >= r->teardown_ms) {
        say("%s has failed: stopping the others", r->run->hosts[r->run->first_failed].name);
        stop_all(r);
    }
    if (r->kill_ms && now >= r->kill_ms) {
        say("not ended in time: killing what is left");
        kill_all(r);
    }
}

static int timeout_of(const runner *r)
{
    int64_t next = r->is_stopping ? r->kill_ms : r->end_ms, now = now_ms();
    if (r->teardown_ms && r->teardown_ms < next)
        next = r->teardown_ms;
    if (ty_tag_writer_is_full(r->writer))
        return LOOK_MS;
    return next <= now ? 0 : next - now > 3600000 ? 3600000 : (int)(next - now);
}

static void read_signals(runner *r)
{
    struct signalfd_siginfo info;
    while (read(r->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD)
            on_signal(r, (int)info.ssi_signo);
}

static void loop(runner *r)
{
    int n = r->run->n_hosts;
    struct pollfd *fds = calloc((size_t)n * 2 + 1, sizeof *fds);
    while (fds && reap(r)) {
        bool listens = !ty_tag_writer_is_full(r->writer);
        fds[0] = (struct pollfd){r->signal_fd, POLLIN, 0};
        for (int i = 0; i < 2 * n; i++)
            fds[i + 1] = (struct pollfd){listens ? r->mouths[i / 2].stream[i % 2].fd : -1, POLLIN, 0};
        if (poll(fds, (nfds_t)n * 2 + 1, timeout_of(r)) < 0 && errno != EINTR)
            break;
        if (fds[0].revents)
            read_signals(r);
        for (int i = 0; i < 2 * n; i++)
            if (fds[i + 1].fd >= 0 && fds[i + 1].revents)
                read_lines(r, i / 2, i % 2, false);
        meet_deadlines(r);
    }
    free(fds);
}

/* ---- before and after ---- */

static int open_all(runner *r, ty_error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &r->before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    ty_buf_init(&r->lines, LINES_BYTES);
    ty_buf_init(&r->labelled, LINES_BYTES);
    r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    r->mouths = calloc((size_t)r->run->n_hosts, sizeof *r->mouths);
    if (r->signal_fd < 0 || !r->mouths)
        return ty_error_errno(err, TY_E_LIMIT, errno, "cannot watch hosts");
    for (int i = 0; i < r->run->n_hosts; i++)
        r->mouths[i] = (mouth){.stream = {{.fd = -1, .theirs = -1}, {.fd = -1, .theirs = -1}}, .log_fd = -1};
    return ty_tag_writer_open(&r->writer, -1, err);
}

/* What hosts have started and left to us. */
static void end_leftovers(const runner *r)
{
    if (r->run->n_hosts > 0 && r->run->hosts[0].container)
        return;
    for (;;) {
        ty_orphans_signal(0, 0, SIGKILL);
        if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD)
            return;
    }
}

static void close_all(runner *r)
{
    end_feeders(r);
    end_leftovers(r);
    ty_tag_writer_close(r->writer);
    for (int i = 0; r->mouths && i < r->run->n_hosts; i++) {
        for (int k = 0; k < 2; k++)
            ty_ranks_stream_fini(&r->mouths[i].stream[k]);
        if (r->mouths[i].log_fd >= 0)
            close(r->mouths[i].log_fd);
    }
    free(r->mouths);
    if (r->signal_fd >= 0)
        close(r->signal_fd);
    ty_buf_fini(&r->lines);
    ty_buf_fini(&r->labelled);
    sigprocmask(SIG_SETMASK, &r->before, NULL);
}

int ty_local_run_all(ty_local_run *run, ty_error *err)
{
    runner r = {.run = run, .signal_fd = -1, .start_ms = now_ms()};
    run->first_failed = -1;
    for (int i = 0; i < run->n_hosts; i++)
        run->hosts[i].status = -1;
    r.end_ms = r.start_ms + run->max_run_s * 1000;
    int rc = open_all(&r, err);
    for (int i = 0; i < run->n_feeders && rc == 0; i++)
        rc = start_feeder(&r, &run->feeders[i], err);
    for (int i = 0; i < run->n_hosts && rc == 0; i++)
        rc = start(&r, i, err);
    if (rc == 0 && *run->interrupted)
        on_signal(&r, *run->interrupted);
    if (rc < 0)
        kill_all(&r);
    loop(&r);
    close_all(&r);
    run->seconds = (double)(now_ms() - r.start_ms) / 1000;
    return rc;
}
