/* connection.c - a link and its socket: what arrives is fed to the link, what the link wants to say is written as far
 * as the socket takes it.
 *
 * A dead peer shows itself in one of four ways: the socket ends (its agent died), keepalive fails (the cable is pulled
 * and nothing was being said), the user timeout passes (something was), nothing was heard for the time of the heartbeat
 * (its machine is frozen). The first three come as events here, the last one from the tick. */
#define _GNU_SOURCE
#include "dist/agent/agent_state.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { USER_TIMEOUT_MS = 5000, KEEP_IDLE_S = 2, KEEP_INTERVAL_S = 1, KEEP_PROBES = 3, CHUNK_BYTES = 65536 };

static void set_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEP_PROBES},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
}

static void lose(agent *a, connection *c, ty_code code, const char *why)
{
    if (c->dead)
        return;
    connection_drop(a, c);
    agent_on_lost(a, c, code, why);
}

static void lose_errno(agent *a, connection *c, int number)
{
    char why[96];
    if (c->connecting)
        snprintf(why, sizeof why, "%s", strerror(number));
    else if (number == ECONNRESET || number == EPIPE)
        snprintf(why, sizeof why, "its agent closed the link");
    else /* a timeout, or no route any more */
        snprintf(why, sizeof why, "no answer for %.1f s", (double)(ty_clock_ms() - c->heard_ms) / 1000);
    lose(a, c, TY_E_IO, why);
}

static void watch_for(agent *a, connection *c, uint32_t events)
{
    if (c->dead || c->watched == events)
        return;
    c->watched = events;
    agent_watch(a, c->fd, &c->source, events, false, NULL);
}

void connection_flush(agent *a, connection *c)
{
    while (!c->dead && !c->connecting && c->link.out.len > 0) {
        ssize_t n = send(c->fd, c->link.out.data, c->link.out.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n < 0) {
            lose_errno(a, c, errno);
            return;
        }
        ty_link_sent(&c->link, (size_t)n);
    }
    if (c->last_words && c->link.out.len == 0 && !c->connecting) {
        connection_drop(a, c);
        return;
    }
    watch_for(a, c, EPOLLIN | (c->link.out.len > 0 || c->connecting ? EPOLLOUT : 0));
}

typedef struct frame_context {
    agent *a;
    connection *c;
} frame_context;

static int on_frame(void *ctx, int kind, const uint8_t *payload, size_t n_bytes, ty_error *err)
{
    frame_context *f = ctx;
    if (f->c->dead) /* an earlier frame of the same bytes ended it */
        return 0;
    return agent_on_frame(f->a, f->c, kind, payload, n_bytes, err);
}

/* All that is there, but not for ever: others wait. */
static void take(agent *a, connection *c)
{
    static char chunk[CHUNK_BYTES]; /* one thread, and nothing below comes back here */
    for (int round = 0; round < 16 && !c->dead; round++) {
        ssize_t n = recv(c->fd, chunk, sizeof chunk, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n <= 0) {
            lose_errno(a, c, n == 0 ? ECONNRESET : errno);
            return;
        }
        ty_error err = {0};
        frame_context f = {a, c};
        bool was_open = c->link.state == TY_LINK_OPEN;
        c->heard_ms = a->now_ms;
        if (ty_link_take(&c->link, chunk, (size_t)n, on_frame, &f, &err) < 0) {
            lose(a, c, err.code, err.message);
            return;
        }
        if (!was_open && c->link.state == TY_LINK_OPEN && !c->dead)
            agent_on_open(a, c);
        if (!c->dead)
            connection_flush(a, c);
    }
}

static void ready(agent *a, void *owner, uint32_t events)
{
    connection *c = owner;
    if (c->dead)
        return;
    if (c->connecting && events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
        int number = 0;
        socklen_t n = sizeof number;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &number, &n);
        if (number != 0) {
            lose_errno(a, c, number);
            return;
        }
        c->connecting = false;
    }
    if (events & EPOLLOUT)
        connection_flush(a, c);
    if (!c->dead && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        take(a, c);
}

connection *connection_new(agent *a, int fd, bool listening, const char *from)
{
    connection *c = calloc(1, sizeof *c);
    if (!c || ty_link_init(&c->link, a->key, listening, NULL, NULL) < 0) {
        free(c);
        close(fd);
        return NULL;
    }
    set_options(fd);
    c->source = (source){ready, c};
    c->fd = fd;
    c->host = -1;
    c->connecting = !listening;
    c->born_ms = c->heard_ms = a->now_ms;
    c->watched = EPOLLIN | EPOLLOUT;
    snprintf(c->from, sizeof c->from, "%s", from);
    if (agent_watch(a, fd, &c->source, c->watched, true, NULL) < 0) {
        close(fd);
        ty_link_fini(&c->link);
        free(c);
        return NULL;
    }
    c->next = a->connections;
    a->connections = c;
    return c;
}

void connection_drop(agent *a, connection *c)
{
    (void)a;
    if (c->dead)
        return;
    c->dead = true;
    close(c->fd); /* which also takes it out of the epoll */
}

void connections_sweep(agent *a)
{
    for (connection **at = &a->connections; *at;) {
        connection *c = *at;
        if (!c->dead) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        ty_link_fini(&c->link);
        free(c);
    }
}
