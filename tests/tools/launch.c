/* launch.c - several hosts on one: a process for each, which starts the ranks of its host and exchanges fences with the
 * first over a socket pair.
 *
 *     launch [--hosts 2,2] [--cycles N] [--interface lo] [--without-mpi] [--quiet] [--terminal] [--forward] PROGRAM
 * [ARGUMENT...]
 *
 * Ends with the status of the first rank that failed, after saying which it was; the other ranks are killed then.
 * --cycles starts and ends the job so often in the same processes. --forward: the first host also shows the others'
 * lines.
 */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/log.h"
#include "dist/agent/ranks.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_HOSTS = 16, MAX_MESSAGE = 200 << 10 };

typedef enum kind { FENCE, ANSWER, FAILED, LINES, DONE } kind;

typedef struct message {
    kind kind;
    int fd, status;
    uint64_t fence;
    char text[256];
    size_t n_bytes;
    char bytes[MAX_MESSAGE];
} message;

static ty_ranks_host hosts[MAX_HOSTS];
static char names[MAX_HOSTS][16];
static int n_hosts, n_cycles = 1;
static ty_ranks_options options;
static bool forwards;

/* One host's own state. */
static struct {
    int self, links[MAX_HOSTS]; /* the first host has one to each, the others only links[0] */
    ty_ranks *ranks;
    message blobs[MAX_HOSTS]; /* the first host's: this fence's */
    int n_blobs, n_done;
    bool is_over;
    int status;
    char text[256];
} host;

static void send_to(int to, message *m)
{
    if (send(host.links[to], m, offsetof(message, bytes) + m->n_bytes, MSG_NOSIGNAL) < 0 && errno != EPIPE)
        perror("send");
}

static void take(int from, message *m);

/* To the first host, which may be ourselves. */
static void tell_first(message *m)
{
    if (host.self == 0)
        take(0, m);
    else
        send_to(0, m);
}

static void broadcast(message *m)
{
    for (int i = 1; i < n_hosts; i++)
        send_to(i, m);
}

static void end_job(int status, const char *text)
{
    if (host.is_over)
        return;
    host.is_over = true;
    host.status = status;
    snprintf(host.text, sizeof host.text, "%.255s", text);
}

static void gather(int from, message *m)
{
    static message all;
    memcpy(&host.blobs[from], m, offsetof(message, bytes) + m->n_bytes);
    if (++host.n_blobs < n_hosts)
        return;
    host.n_blobs = 0;
    all = (message){.kind = ANSWER, .fence = m->fence};
    for (int i = 0; i < n_hosts; i++) {
        memcpy(all.bytes + all.n_bytes, host.blobs[i].bytes, host.blobs[i].n_bytes);
        all.n_bytes += host.blobs[i].n_bytes;
    }
    broadcast(&all);
    ty_ranks_fence_done(host.ranks, all.fence, all.bytes, all.n_bytes);
}

static void take(int from, message *m)
{
    switch (m->kind) {
    case FENCE:
        gather(from, m);
        break;
    case ANSWER:
        ty_ranks_fence_done(host.ranks, m->fence, m->bytes, m->n_bytes);
        break;
    case LINES:
        ty_ranks_show(host.ranks, m->fd, m->bytes, m->n_bytes);
        break;
    case FAILED:
        if (host.self == 0 && !host.is_over)
            broadcast(m);
        end_job(m->status, m->text);
        break;
    case DONE: /* every host says it once; the first host's answer ends the job */
        if (host.self != 0)
            end_job(0, "");
        else if (++host.n_done == n_hosts) {
            broadcast(m);
            end_job(0, "");
        }
        break;
    }
}

static void on_fence(void *ctx, uint64_t fence, const void *blob, size_t n_bytes)
{
    static message m;
    (void)ctx;
    m = (message){.kind = FENCE, .fence = fence, .n_bytes = n_bytes};
    memcpy(m.bytes, blob, n_bytes);
    tell_first(&m);
}

static void on_lines(void *ctx, int rank, int fd, const char *lines, size_t n_bytes)
{
    static message m;
    (void)ctx, (void)rank;
    for (; host.self && forwards && n_bytes; lines += m.n_bytes, n_bytes -= m.n_bytes) {
        m = (message){.kind = LINES, .fd = fd, .n_bytes = n_bytes < MAX_MESSAGE ? n_bytes : MAX_MESSAGE};
        memcpy(m.bytes, lines, m.n_bytes);
        tell_first(&m);
    }
}

static void on_aborted(void *ctx, int rank, int status, const char *text)
{
    static message m;
    (void)ctx;
    m = (message){.kind = FAILED, .status = status ? status : 1};
    snprintf(m.text, sizeof m.text, "rank %d called MPI_Abort with %d%s%.160s", rank, status, *text ? ": " : "", text);
    tell_first(&m);
}

static void on_ended(void *ctx, int rank, pid_t pid, int wait_status)
{
    static message m;
    (void)ctx, (void)pid;
    m = (message){.kind = DONE};
    if (wait_status == 0 && ty_ranks_living(host.ranks))
        return;
    if (wait_status != 0) {
        m.kind = FAILED;
        m.status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
        snprintf(m.text, sizeof m.text, "rank %d %s %d", rank, WIFEXITED(wait_status) ? "ended with" : "was killed by",
                 WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : WTERMSIG(wait_status));
    }
    tell_first(&m);
}

static void turn(void)
{
    static message m;
    ty_error err;
    struct pollfd p[MAX_HOSTS + 1] = {{.fd = ty_ranks_fd(host.ranks), .events = POLLIN}};
    for (int i = 0; i < n_hosts; i++)
        p[i + 1] = (struct pollfd){.fd = host.links[i], .events = POLLIN};
    if (poll(p, (nfds_t)n_hosts + 1, -1) < 0 && errno != EINTR)
        end_job(70, "poll");
    if (p[0].revents && ty_ranks_turn(host.ranks, &err) < 0)
        end_job(70, err.message);
    for (int i = 0; i < n_hosts && !host.is_over; i++)
        if (p[i + 1].revents) {
            if (recv(host.links[i], &m, sizeof m, MSG_DONTWAIT) > 0)
                take(i, &m);
            else
                end_job(71, "a host is lost");
        }
}

/* Entries of a folder in /proc/self: open descriptors, threads. */
static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

/* Whether each job leaves as much behind as the one before: nothing. The first two may open what stays. */
static bool grows(int cycle)
{
    static int descriptors, threads;
    int d = count_entries("/proc/self/fd"), t = count_entries("/proc/self/task");
    for (int i = 0; cycle >= 2 && t > threads && i < 10000;
         i++) { /* the kernel lists a joined thread a moment longer */
        usleep(1000);
        t = count_entries("/proc/self/task");
    }
    if (cycle < 2) {
        descriptors = d;
        threads = t;
    }
    if (d > descriptors || t > threads)
        fprintf(stderr, "host %d, job %d: %d descriptors and %d threads, in the first: %d and %d\n", host.self, cycle,
                d, t, descriptors, threads);
    return d > descriptors || t > threads;
}

static int run_cycles(void)
{
    ty_error err = {0};
    for (int cycle = 0; cycle < n_cycles; cycle++) {
        char text[2048];
        host.is_over = false;
        host.n_blobs = host.n_done = 0;
        options.generation = cycle;
        if (ty_ranks_start(&options, &host.ranks, &err) < 0) {
            ty_error_format(&err, text, sizeof text);
            fprintf(stderr, "host %d: %s\n", host.self, text);
            return ty_error_exit_status(err.code);
        }
        while (!host.is_over)
            turn();
        ty_ranks_free(host.ranks);
        if (host.status) {
            if (host.self == 0)
                fprintf(stderr, "first culprit: %s\n", host.text);
            break;
        }
        if (grows(cycle))
            return 70;
        /* Hosts go on together: what one sends for the next job must not reach another's last. */
        static message m;
        m = (message){.kind = DONE};
        for (int i = 1; i < n_hosts; i++) {
            int other = host.self ? 0 : i;
            send_to(other, &m);
            if (recv(host.links[other], &m, sizeof m, 0) <= 0)
                return 71;
            if (host.self)
                break;
        }
    }
    return host.status;
}

static int run_host(void)
{
    int status = run_cycles();
    ty_ranks_shutdown();
    return status;
}

static void parse_hosts(const char *text)
{
    for (n_hosts = 0; *text && n_hosts < MAX_HOSTS; n_hosts++) {
        char *end;
        snprintf(names[n_hosts], sizeof names[n_hosts], "algo-%d", (n_hosts + 1) % 100);
        hosts[n_hosts] = (ty_ranks_host){names[n_hosts], "127.0.0.1", (int)strtol(text, &end, 10), 0};
        text = *end == ',' ? end + 1 : end;
    }
}

static char **parse(char **argv)
{
    parse_hosts("2,2");
    for (; *argv && strncmp(*argv, "--", 2) == 0; argv++) {
        if (strcmp(*argv, "--hosts") == 0)
            parse_hosts(*++argv);
        else if (strcmp(*argv, "--cycles") == 0)
            n_cycles = atoi(*++argv);
        else if (strcmp(*argv, "--interface") == 0)
            options.interface = *++argv;
        else if (strcmp(*argv, "--without-mpi") == 0)
            options.without_mpi = true;
        else if (strcmp(*argv, "--quiet") == 0)
            options.quiet = true;
        else if (strcmp(*argv, "--terminal") == 0)
            options.terminal = true;
        else if (strcmp(*argv, "--forward") == 0)
            forwards = true;
        else
            fprintf(stderr, "launch: unknown option %s\n", *argv), exit(64);
    }
    return argv;
}

/* Never returns in the child. */
static void fork_host(int i, int pairs[MAX_HOSTS][2])
{
    pid_t parent = getpid();
    if (i > 0 && fork() != 0)
        return;
    host.self = options.self = i;
    for (int k = 0; k < n_hosts; k++)
        host.links[k] = -1;
    for (int k = 1; k < n_hosts; k++) {
        if (i == 0)
            host.links[k] = pairs[k][0];
        else if (k == i)
            host.links[0] = pairs[k][1];
        close(i == 0 ? pairs[k][1] : pairs[k][0]);
        if (i != 0 && k != i)
            close(pairs[k][1]);
    }
    if (i > 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            exit(run_host());
        exit(71);
    }
}

int main(int argc, char **argv)
{
    int pairs[MAX_HOSTS][2];
    (void)argc;
    options.interface = "lo";
    options.argv = (const char *const *)parse(argv + 1);
    options.job = "test";
    options.nonce = (uint64_t)getpid();
    options.hosts = hosts;
    options.n_hosts = n_hosts;
    options.fence = on_fence;
    options.lines = on_lines;
    options.ended = on_ended;
    options.aborted = on_aborted;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what ranks leave behind comes to us, and is seen by whoever tests */
    for (int i = 1; i < n_hosts; i++)
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs[i]) < 0)
            return 71;
    for (int i = 1; i < n_hosts; i++)
        fork_host(i, pairs);
    fork_host(0, pairs);
    int status = run_host();
    for (int i = 1; i < n_hosts; i++)
        close(host.links[i]);
    while (wait(NULL) > 0 || errno == EINTR)
        continue;
    return status;
}
