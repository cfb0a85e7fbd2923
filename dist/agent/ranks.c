/* ranks.c - processes, their output and their end.
 *
 * How a process ends is told by a thread that waits for it, one for each rank: pidfd would need Linux 5.3, and SIGCHLD
 * belongs to whoever runs the program. The thread leaves the process a zombie, so that its id, which is also its
 * group's, stays taken until ty_ranks_free() has killed what is left of the group.
 */
#define _GNU_SOURCE
#include "dist/agent/ranks.h"

#include "base/arena.h"
#include "dist/agent/ranks_child.h"
#include "dist/agent/ranks_environment.h"
#include "dist/agent/ranks_folder.h"
#include "dist/agent/ranks_probe.h"
#include "dist/agent/ranks_server.h"
#include "dist/agent/ranks_stream.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    MAX_LINES_BYTES = 32 << 20, /* of one stream in one turn; a turn reads far less */
    TURN_BYTES = 256 << 10,     /* read from one stream before others have their turn */
    LAST_BYTES = 2 << 20,       /* read when a rank has ended: more than a pipe holds */
};

/* One process. */
typedef struct rank_process {
    ty_ranks *owner;
    int rank;
    pid_t pid; /* 0: was not started */
    bool has_watcher;
    pthread_t watcher;
    bool has_ended; /* guarded by the owner's lock; wait_status is there */
    bool is_told;   /* ended() was called */
    int wait_status;
    ty_ranks_stream streams[2];
} rank_process;

struct ty_ranks {
    ty_arena arena;
    ty_ranks_options o; /* with only what is used after the start: hooks and numbers */
    int first, n;
    rank_process *processes; /* [n] */
    ty_ranks_server *server; /* NULL: without MPI */
    ty_tag_writer *writer;
    ty_ranks_folder session, shared;
    int epoll_fd, wake_fd;
    bool is_held;   /* by ty_ranks_hold */
    bool is_paused; /* whoever reads our output is slow: the ranks wait, too */
    pthread_mutex_t lock;
};

/* ---- start ---- */

static int count_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Waits for its end, or with WNOHANG only looks. */
static void note_end(rank_process *p, int options)
{
    siginfo_t info = {0};
    while (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT | options) < 0 && errno == EINTR)
        continue;
    if (options & WNOHANG && info.si_pid == 0)
        return; /* it lives */
    pthread_mutex_lock(&p->owner->lock);
    p->has_ended = true;
    p->wait_status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8
                                                : info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
    pthread_mutex_unlock(&p->owner->lock);
}

static void *watch_process(void *arg)
{
    rank_process *p = arg;
    note_end(p, 0);
    uint64_t one = 1;
    ssize_t written = write(p->owner->wake_fd, &one, sizeof one);
    (void)written; /* fails only when it is already as awake as it gets */
    return NULL;
}

static int start_watcher(rank_process *p, ty_error *err)
{
    pthread_attr_t small;
    sigset_t all, before;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&p->watcher, &small, watch_process, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&small);
    if (rc != 0)
        return ty_error_errno(err, TY_E_LIMIT, rc, "cannot start the thread that waits for rank %d", p->rank);
    p->has_watcher = true;
    return 0;
}

/* A descriptor that the rank has ended is no longer listened to: closing it took it out of the set. */
static int listen_to(ty_ranks *r, ty_ranks_stream *s, bool on, ty_error *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
    if (s->fd < 0 || s->listened == on)
        return 0;
    s->listened = on;
    if (epoll_ctl(r->epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->fd, &e) < 0)
        return ty_error_errno(err, TY_E_LIMIT, errno, "cannot listen to a rank's output");
    return 0;
}

static int start_process(ty_ranks *r, const ty_ranks_options *o, rank_process *p, char *const *envp, ty_error *err)
{
    const ty_ranks_child child = {
        .argv = o->argv,
        .envp = envp,
        .cwd = o->cwd,
        .stdout_fd = p->streams[0].theirs,
        .stderr_fd = p->streams[1].theirs,
    };
    pid_t pid;
    if (ty_ranks_child_start(&child, &pid, err) < 0)
        return ty_error_wrap(err, "rank %d", p->rank);
    p->pid = pid;
    for (int i = 0; i < 2; i++) {
        ty_ranks_stream_started(&p->streams[i]);
        if (listen_to(r, &p->streams[i], true, err) < 0)
            return -1;
    }
    return start_watcher(p, err);
}

static int start_processes(ty_ranks *r, const ty_ranks_options *o, const ty_ranks_place *place, ty_error *err)
{
    const char *const *inherited = o->envp ? o->envp : (const char *const *)environ;
    for (int i = 0; i < r->n; i++) {
        rank_process *p = &r->processes[i];
        char **more = NULL;
        if (ty_ranks_stream_open(&p->streams[0], p->rank, 1, o->terminal, err) < 0 ||
            ty_ranks_stream_open(&p->streams[1], p->rank, 2, false, err) < 0 ||
            (r->server && ty_ranks_server_environment(r->server, p->rank, &more, err) < 0))
            return -1;
        p->streams[0].tag.plain = p->streams[1].tag.plain = o->plain;
        char **envp = o->plain ? (char **)inherited : ty_ranks_environment(&r->arena, o, place, inherited, more, i);
        if (r->server)
            ty_ranks_server_free_environment(r->server, more);
        if (start_process(r, o, p, envp, err) < 0)
            return -1;
    }
    return 0;
}

static const char *session_parent(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder == '/' ? folder : "/tmp";
}

static int make_folders(ty_ranks *r, ty_error *err)
{
    if (ty_ranks_folder_make(&r->session, session_parent(), err) < 0)
        return -1;
    if (access("/dev/shm", W_OK) == 0)
        return ty_ranks_folder_make(&r->shared, "/dev/shm", err);
    return ty_ranks_folder_make(&r->shared, session_parent(), err);
}

static int open_events(ty_ranks *r, ty_error *err)
{
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    if (r->epoll_fd < 0 || r->wake_fd < 0 || epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->wake_fd, &e) < 0)
        return ty_error_errno(err, TY_E_LIMIT, errno, "cannot listen to ranks");
    return ty_tag_writer_open(&r->writer, r->wake_fd, err);
}

static ty_ranks *new_ranks(const ty_ranks_options *o)
{
    ty_ranks *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    ty_arena_init(&r->arena);
    pthread_mutex_init(&r->lock, NULL);
    r->epoll_fd = r->wake_fd = -1;
    r->o = *o;
    r->first = ty_ranks_first(o->hosts, o->self);
    r->n = o->hosts[o->self].ranks;
    r->processes = TY_NEW_ARRAY(&r->arena, rank_process, r->n);
    for (int i = 0; i < r->n; i++) {
        r->processes[i] = (rank_process){.owner = r, .rank = r->first + i};
        for (int k = 0; k < 2; k++)
            r->processes[i].streams[k].fd = r->processes[i].streams[k].theirs = -1;
    }
    return r;
}

static int check_options(const ty_ranks_options *o, ty_error *err)
{
    if (o->n_hosts < 1 || o->self < 0 || o->self >= o->n_hosts || !o->argv || !o->argv[0])
        return ty_error_set(err, TY_E_INTERNAL, "starting ranks: host %d of %d, program %s", o->self, o->n_hosts,
                            o->argv && o->argv[0] ? o->argv[0] : "(none)");
    for (int i = 0; i < o->n_hosts; i++)
        if (o->hosts[i].ranks < 1)
            return ty_error_set(err, TY_E_RANGE, "host \"%s\" has %d ranks, at least 1 is needed", o->hosts[i].name,
                                o->hosts[i].ranks);
    return 0;
}

int ty_ranks_start(const ty_ranks_options *o, ty_ranks **out, ty_error *err)
{
    *out = NULL;
    if (check_options(o, err) < 0)
        return -1;
    ty_ranks *r = new_ranks(o);
    if (!r)
        return ty_error_set(err, TY_E_LIMIT, "no memory for ranks");
    int rc = open_events(r, err);
    if (rc == 0)
        rc = make_folders(r, err);
    if (rc == 0 && !o->without_mpi && !o->plain)
        rc = ty_ranks_server_open(&r->server, o, r->session.path, r->wake_fd, err);
    if (rc == 0) {
        const ty_ranks_place place = {
            .session_folder = r->session.path,
            .shared_folder = r->shared.path,
            .cores = o->cores > 0 ? o->cores : count_cores(),
            .copies_allowed = r->n == 1 || o->without_mpi || o->plain || ty_ranks_copies_allowed(),
        };
        rc = start_processes(r, o, &place, err);
    }
    r->o.argv = r->o.envp = r->o.page = NULL; /* the caller's: not used from here on */
    r->o.hosts = NULL;
    if (rc < 0) {
        ty_ranks_free(r);
        return -1;
    }
    *out = r;
    return 0;
}

/* ---- turn ---- */

static void hand_on(ty_ranks *r, int rank, int fd, const ty_buf *lines)
{
    if (lines->len == 0)
        return;
    if (!r->o.quiet)
        ty_tag_writer_add(r->writer, fd, lines->data, lines->len);
    if (r->o.lines)
        r->o.lines(r->o.ctx, rank, fd, lines->data, lines->len);
}

static void read_stream(ty_ranks *r, ty_ranks_stream *s, size_t max_bytes, bool last)
{
    ty_buf lines;
    ty_buf_init(&lines, MAX_LINES_BYTES);
    ty_ranks_stream_read(s, max_bytes, last, &lines);
    hand_on(r, s->tag.rank, s->tag.fd, &lines);
    ty_buf_fini(&lines);
}

/* While the writer has more than enough, or whoever is sent the lines, output stays in the ranks' pipes. */
static int pause_if_full(ty_ranks *r, ty_error *err)
{
    bool full = ty_tag_writer_is_full(r->writer) || r->is_held;
    if (full == r->is_paused)
        return 0;
    r->is_paused = full;
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < 2; k++)
            if (listen_to(r, &r->processes[i].streams[k], !full, err) < 0)
                return -1;
    return 0;
}

static void tell_ends(ty_ranks *r)
{
    for (int i = 0; i < r->n; i++) {
        rank_process *p = &r->processes[i];
        pthread_mutex_lock(&r->lock);
        bool is_news = p->has_ended && !p->is_told;
        pthread_mutex_unlock(&r->lock);
        if (!is_news)
            continue;
        for (int k = 0; k < 2; k++)
            read_stream(r, &p->streams[k], LAST_BYTES, false);
        p->is_told = true;
        if (r->o.ended)
            r->o.ended(r->o.ctx, p->rank, p->pid, p->wait_status);
    }
}

static void tell_server_news(ty_ranks *r)
{
    ty_ranks_abort abort;
    while (ty_ranks_server_take_abort(r->server, &abort))
        if (r->o.aborted)
            r->o.aborted(r->o.ctx, abort.rank, abort.status, abort.text);
    uint64_t fence;
    ty_buf blob;
    ty_buf_init(&blob, MAX_LINES_BYTES);
    if (ty_ranks_server_take_fence(r->server, &fence, &blob)) {
        if (r->o.fence)
            r->o.fence(r->o.ctx, fence, blob.data, blob.len);
        else
            ty_ranks_server_answer(r->server, fence, blob.data, blob.len);
    }
    ty_buf_fini(&blob);
}

void ty_ranks_look(ty_ranks *r)
{
    for (int i = 0; i < r->n; i++)
        if (r->processes[i].pid > 0 && !r->processes[i].is_told)
            note_end(&r->processes[i], WNOHANG);
}

int ty_ranks_turn(ty_ranks *r, ty_error *err)
{
    struct epoll_event events[64];
    int n = epoll_wait(r->epoll_fd, events, 64, 0);
    if (n < 0 && errno != EINTR)
        return ty_error_errno(err, TY_E_INTERNAL, errno, "waiting for ranks");
    for (int i = 0; i < n; i++) {
        uint64_t count;
        ty_ranks_stream *s = events[i].data.ptr;
        if (s)
            read_stream(r, s, TURN_BYTES, false);
        else if (read(r->wake_fd, &count, sizeof count) < 0 && errno != EAGAIN)
            return ty_error_errno(err, TY_E_INTERNAL, errno, "waiting for ranks");
    }
    if (r->server)
        tell_server_news(r);
    tell_ends(r);
    return pause_if_full(r, err);
}

int ty_ranks_fd(const ty_ranks *r)
{
    return r->epoll_fd;
}

void ty_ranks_fence_done(ty_ranks *r, uint64_t fence, const void *all, size_t n_bytes)
{
    if (r->server)
        ty_ranks_server_answer(r->server, fence, all, n_bytes);
}

void ty_ranks_signal(ty_ranks *r, int number)
{
    for (int i = 0; i < r->n; i++)
        if (r->processes[i].pid > 0 && !r->processes[i].is_told)
            kill(-r->processes[i].pid, number);
}

int ty_ranks_living(const ty_ranks *r)
{
    int living = 0;
    for (int i = 0; i < r->n; i++)
        living += r->processes[i].pid > 0 && !r->processes[i].is_told;
    return living;
}

pid_t ty_ranks_pid(const ty_ranks *r, int rank)
{
    int local = rank - r->first;
    return local >= 0 && local < r->n ? r->processes[local].pid : -1;
}

void ty_ranks_show(ty_ranks *r, int fd, const char *lines, size_t n_bytes)
{
    ty_tag_writer_add(r->writer, fd, lines, n_bytes);
}

bool ty_ranks_is_full(ty_ranks *r)
{
    return ty_tag_writer_is_full(r->writer);
}

void ty_ranks_hold(ty_ranks *r, bool on)
{
    uint64_t one = 1;
    if (r->is_held == on)
        return;
    r->is_held = on;
    ssize_t written = write(r->wake_fd, &one, sizeof one); /* the next turn does it */
    (void)written;
}

/* ---- end ---- */

static void end_process(ty_ranks *r, rank_process *p)
{
    if (p->has_watcher)
        pthread_join(p->watcher, NULL);
    while (p->pid > 0 && waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    for (int k = 0; k < 2; k++) {
        if (p->pid > 0)
            read_stream(r, &p->streams[k], LAST_BYTES, true);
        ty_ranks_stream_fini(&p->streams[k]);
    }
}

void ty_ranks_free(ty_ranks *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->n; i++)
        if (r->processes[i].pid > 0)
            kill(-r->processes[i].pid, SIGKILL); /* also what an ended rank has left in its group */
    for (int i = 0; i < r->n; i++)
        end_process(r, &r->processes[i]);
    ty_ranks_server_close(r->server);
    ty_tag_writer_close(r->writer);
    ty_ranks_folder_remove(&r->session);
    ty_ranks_folder_remove(&r->shared);
    if (r->epoll_fd >= 0)
        close(r->epoll_fd);
    if (r->wake_fd >= 0)
        close(r->wake_fd);
    pthread_mutex_destroy(&r->lock);
    ty_arena_fini(&r->arena);
    free(r);
}
