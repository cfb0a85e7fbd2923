/* remote.c - see remote.h. A session is one command for one host: on the leader a client's connection, on the host a
 * process. */
#define _GNU_SOURCE
#include "dist/agent/remote.h"

#include "base/log.h"
#include "dist/agent/ranks.h"
#include "dist/agent/ranks_folder.h"
#include "dist/agent/remote_frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

typedef struct session {
    struct session *next;
    ty_remote *owner;
    uint32_t number;
    int host;        /* who has the command (leader's side) */
    int client;      /* leader's side: the connection; -1 */
    ty_ranks *ranks; /* host's side: the process; NULL */
    bool asked;      /* the client has said what it wants */
    bool over;       /* freed at the end of the turn */
} session;

struct ty_remote {
    ty_remote_options o;
    ty_ranks_folder folder; /* of the socket, and of orted's session files */
    char path[TY_RANKS_FOLDER_BYTES + 8];
    int epoll_fd, listen_fd;
    uint32_t n_sessions;
    session *sessions;
};

/* ---- sessions ---- */

static session *new_session(ty_remote *r, uint32_t number)
{
    session *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    *s = (session){.next = r->sessions, .owner = r, .number = number, .client = -1};
    r->sessions = s;
    return s;
}

static session *find_session(ty_remote *r, uint32_t number)
{
    session *s = r->sessions;
    while (s && (s->number != number || s->over))
        s = s->next;
    return s;
}

static void free_session(session *s)
{
    ty_ranks_free(s->ranks);
    if (s->client >= 0)
        close(s->client);
    free(s);
}

static void sweep_sessions(ty_remote *r)
{
    for (session **at = &r->sessions; *at;) {
        session *s = *at;
        if (!s->over) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        free_session(s);
    }
}

static void send_frame(session *s, int host, remote_kind kind, int value, const void *bytes, size_t n)
{
    static const size_t most = TY_REMOTE_FRAME_BYTES - sizeof(remote_head);
    char frame[TY_REMOTE_FRAME_BYTES];
    remote_head head = {.kind = kind, .session = s->number, .value = value};
    do { /* output may take several */
        size_t part = n < most ? n : most;
        memcpy(frame, &head, sizeof head);
        if (part)
            memcpy(frame + sizeof head, bytes, part);
        s->owner->o.send(s->owner->o.ctx, host, frame, sizeof head + part);
        bytes = (const char *)bytes + part;
        n -= part;
    } while (n);
}

static int watch(ty_remote *r, int fd, void *what, ty_error *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = what};
    if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0)
        return ty_error_errno(err, TY_E_LIMIT, errno, "cannot listen for mpirun");
    return 0;
}

/* ---- the host's side ---- */

static void on_lines(void *ctx, int rank, int fd, const char *lines, size_t n_bytes)
{
    (void)rank;
    session *s = ctx;
    if (!s->over)
        send_frame(s, 0, REMOTE_OUTPUT, fd, lines, n_bytes);
}

static void on_ended(void *ctx, int rank, pid_t pid, int wait_status)
{
    (void)rank, (void)pid;
    session *s = ctx;
    send_frame(s, 0, REMOTE_END, wait_status, NULL, 0);
    s->over = true;
}

/* orted keeps its files where they are removed with the job. */
static char **orted_environment(const ty_remote *r, ty_arena *a)
{
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **list = TY_NEW_ARRAY(a, char *, n + 2);
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "PMIX_", 5) != 0 && strncmp(environ[i], "OMPI_MCA_orte_tmpdir_base=", 26) != 0)
            list[kept++] = environ[i];
    list[kept] = ty_arena_printf(a, "OMPI_MCA_orte_tmpdir_base=%s", r->folder.path);
    return list;
}

static int start_command(session *s, const char *text, ty_error *err)
{
    ty_arena a;
    char **words;
    ty_arena_init(&a);
    int rc = ty_remote_command(text, &a, &words, err);
    if (rc == 0) {
        const ty_ranks_host here = {.name = s->owner->o.hosts[s->owner->o.self], .ranks = 1};
        const ty_ranks_options o = {
            .job = "orted",
            .hosts = &here,
            .n_hosts = 1,
            .argv = (const char *const *)words,
            .envp = (const char *const *)orted_environment(s->owner, &a),
            .plain = true,
            .quiet = true,
            .ctx = s,
            .lines = on_lines,
            .ended = on_ended,
        };
        rc = ty_ranks_start(&o, &s->ranks, err);
    }
    ty_arena_fini(&a);
    return rc < 0 ? -1 : watch(s->owner, ty_ranks_fd(s->ranks), s, err);
}

static int on_start(ty_remote *r, uint32_t number, const char *text, ty_error *err)
{
    if (find_session(r, number))
        return ty_error_set(err, TY_E_DATA, "session %u of mpirun begins twice", number);
    session *s = new_session(r, number);
    if (!s)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a command of mpirun");
    ty_error fault = {0};
    if (start_command(s, text, &fault) == 0) {
        ty_log_info("launch", "started orted for mpirun on %s", r->o.hosts[0]);
        return 0;
    }
    char line[TY_ERROR_MESSAGE_BYTES + 64];
    int n = snprintf(line, sizeof line, "%s: %s\n", r->o.hosts[r->o.self], fault.message);
    ty_log_warning("launch", "%s", fault.message);
    send_frame(s, 0, REMOTE_REFUSED, 2, line, (size_t)n);
    s->over = true;
    return 0;
}

/* ---- the leader's side ---- */

static void pass_to_client(session *s, const void *frame, size_t n_bytes)
{
    if (send(s->client, frame, n_bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EPIPE)
        ty_log_warning("launch", "mpirun takes no output of orted: %s", strerror(errno));
}

static void refuse_client(session *s, const char *why, const char *host)
{
    char frame[sizeof(remote_head) + 512];
    remote_head head = {.kind = REMOTE_REFUSED, .session = s->number, .value = 2};
    memcpy(frame, &head, sizeof head);
    int n = snprintf(frame + sizeof head, 512, "trainyard: %s \"%.100s\"\n", why, host);
    pass_to_client(s, frame, sizeof head + (size_t)n);
    s->over = true;
}

static int find_host(const ty_remote *r, const char *name)
{
    int i = r->o.n_hosts - 1;
    while (i >= 0 && strcmp(r->o.hosts[i], name) != 0)
        i--;
    return i;
}

/* The request, or the client's end. */
static void hear_client(session *s)
{
    static char text[TY_REMOTE_FRAME_BYTES];
    ssize_t n = recv(s->client, text, sizeof text - 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        if (s->asked)
            send_frame(s, s->host, REMOTE_KILL, 0, NULL, 0);
        s->over = true;
        return;
    }
    text[n] = 0;
    size_t name = strlen(text);
    s->host = find_host(s->owner, text);
    if (s->asked || name + 1 >= (size_t)n || strlen(text + name + 1) + name + 1 != (size_t)n)
        refuse_client(s, "a request that is none, for", text);
    else if (s->host <= 0)
        refuse_client(s, s->host ? "no such host in this job:" : "mpirun itself runs on", text);
    else {
        s->asked = true;
        send_frame(s, s->host, REMOTE_START, 0, text + name + 1, (size_t)n - name - 1);
    }
}

static void accept_client(ty_remote *r)
{
    int fd = accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    session *s = fd >= 0 ? new_session(r, ++r->n_sessions) : NULL;
    ty_error err;
    if (s) {
        s->client = fd;
        s->over = watch(r, fd, s, &err) < 0;
    } else if (fd >= 0) {
        close(fd);
    }
}

/* ---- frames ---- */

static int wrong_frame(const ty_remote *r, int from, ty_error *err)
{
    return ty_error_set(err, TY_E_PERMISSION, "%s sent a command that it must not send", r->o.hosts[from]);
}

int ty_remote_received(ty_remote *r, int from, const void *frame, size_t n_bytes, ty_error *err)
{
    remote_head head;
    if (n_bytes < sizeof head || n_bytes > TY_REMOTE_FRAME_BYTES)
        return ty_error_set(err, TY_E_DATA, "a frame of %zu bytes for mpirun", n_bytes);
    memcpy(&head, frame, sizeof head);
    bool from_leader = head.kind == REMOTE_START || head.kind == REMOTE_KILL;
    if (head.kind < REMOTE_START || head.kind > REMOTE_REFUSED || from_leader != (from == 0) ||
        from_leader == (r->o.self == 0))
        return wrong_frame(r, from, err);
    session *s = find_session(r, head.session);
    if (head.kind == REMOTE_START) {
        char *text = strndup((const char *)frame + sizeof head, n_bytes - sizeof head);
        int rc = text ? on_start(r, head.session, text, err) : ty_error_set(err, TY_E_LIMIT, "no memory");
        free(text);
        return rc;
    }
    if (!s)
        return 0; /* it has ended meanwhile */
    if (!from_leader && s->host != from)
        return wrong_frame(r, from, err);
    if (!from_leader)
        pass_to_client(s, frame, n_bytes);
    s->over = head.kind != REMOTE_OUTPUT;
    sweep_sessions(r);
    return 0;
}

/* ---- life ---- */

int ty_remote_turn(ty_remote *r, ty_error *err)
{
    struct epoll_event events[32];
    sweep_sessions(r);
    int n = epoll_wait(r->epoll_fd, events, 32, 0), rc = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        session *s = events[i].data.ptr;
        if (!s)
            accept_client(r);
        else if (s->over)
            continue;
        else if (s->ranks)
            rc = ty_ranks_turn(s->ranks, err);
        else
            hear_client(s);
    }
    sweep_sessions(r);
    return rc;
}

static int listen_for_clients(ty_remote *r, ty_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(r->path, sizeof r->path, "%s/remote", r->folder.path);
    if (strlen(r->path) >= sizeof address.sun_path)
        return ty_error_set(err, TY_E_LIMIT, "\"%s\" is too long for the name of a socket; set TMPDIR", r->path);
    strcpy(address.sun_path, r->path);
    r->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (r->listen_fd < 0 || bind(r->listen_fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(r->listen_fd, 128) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot listen at \"%s\"", r->path);
    return watch(r, r->listen_fd, NULL, err);
}

int ty_remote_open(const ty_remote_options *o, ty_remote **out, ty_error *err)
{
    *out = NULL;
    ty_remote *r = calloc(1, sizeof *r);
    if (!r)
        return ty_error_set(err, TY_E_LIMIT, "no memory for mpirun's hosts");
    r->o = *o;
    r->listen_fd = -1;
    const char *folder = getenv("TMPDIR");
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int rc = r->epoll_fd < 0 ? ty_error_errno(err, TY_E_LIMIT, errno, "cannot listen for mpirun") : 0;
    if (rc == 0)
        rc = ty_ranks_folder_make(&r->folder, folder && *folder == '/' ? folder : "/tmp", err);
    if (rc == 0 && o->self == 0)
        rc = listen_for_clients(r, err);
    if (rc < 0) {
        ty_remote_free(r);
        return -1;
    }
    *out = r;
    return 0;
}

/* What mpirun is told outside of its command line, which stays as the user knows it. */
char **ty_remote_environment(const ty_remote *r, ty_arena *a, const char *const *inherited, const char *client)
{
    const struct {
        const char *name, *value;
    } rows[] = {
        {TY_REMOTE_VARIABLE, r->path},
        {"OMPI_MCA_plm_rsh_agent", client},
        {"OMPI_MCA_plm_rsh_num_concurrent", ty_arena_printf(a, "%d", r->o.n_hosts > 128 ? r->o.n_hosts : 128)},
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    };
    enum { N = sizeof rows / sizeof *rows };
    size_t n = 0, kept = 0;
    inherited = inherited ? inherited : (const char *const *)environ;
    while (inherited[n])
        n++;
    char **list = TY_NEW_ARRAY(a, char *, n + N + 1);
    for (size_t i = 0; i < n; i++) {
        bool replaced = false;
        for (int k = 0; k < N; k++) {
            size_t len = strlen(rows[k].name);
            replaced |= strncmp(inherited[i], rows[k].name, len) == 0 && inherited[i][len] == '=';
        }
        if (!replaced)
            list[kept++] = ty_arena_strdup(a, inherited[i]);
    }
    for (int k = 0; k < N; k++)
        list[kept++] = ty_arena_printf(a, "%s=%s", rows[k].name, rows[k].value);
    return list;
}

int ty_remote_fd(const ty_remote *r)
{
    return r->epoll_fd;
}

void ty_remote_free(ty_remote *r)
{
    if (!r)
        return;
    for (session *s = r->sessions; s; s = s->next)
        s->over = true;
    sweep_sessions(r);
    if (r->listen_fd >= 0)
        close(r->listen_fd);
    if (r->epoll_fd >= 0)
        close(r->epoll_fd);
    ty_ranks_folder_remove(&r->folder);
    free(r);
}
