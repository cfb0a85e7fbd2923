/* agent.c - options in, one loop, the end out.
 *
 * A turn of the loop: what the descriptors have, what this host has told itself, what time brings. Nothing below waits.
 * What a connection or a rank causes in the middle of a turn only changes the state; the end of the turn acts on it. */
#define _GNU_SOURCE
#include "dist/agent/agent_state.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TURN_MS = 100, EVENTS = 64, SECOND_MS = 1000, ASLEEP_MS = 1000 };

/* ---- telling ---- */

/* Who this host tells itself, in the queue: u8 to the leader in it or to the host in it, u16 kind, u32 length. */
static void tell_self(agent *a, bool leader, int kind, const ty_buf *payload)
{
    size_t n = payload ? payload->len : 0;
    ty_put_number(&a->queue, leader, 1);
    ty_put_number(&a->queue, (uint64_t)kind, 2);
    ty_put_number(&a->queue, n, 4);
    if (n > 0)
        ty_buf_add(&a->queue, payload->data, n);
}

static void tell(agent *a, connection *c, int kind, const ty_buf *payload)
{
    ty_error err = {0};
    if (!c || c->dead || c->link.state != TY_LINK_OPEN)
        return;
    if (ty_link_send(&c->link, kind, payload ? payload->data : "", payload ? payload->len : 0, &err) < 0) {
        connection_drop(a, c);
        agent_on_lost(a, c, err.code, err.message);
        return;
    }
    connection_flush(a, c);
}

void agent_tell_leader(agent *a, ty_message kind, const ty_buf *payload)
{
    if (a->leads)
        tell_self(a, true, kind, payload);
    else
        tell(a, a->to_leader, kind, payload);
}

void agent_tell_host(agent *a, int host, ty_message kind, const ty_buf *payload)
{
    if (host == a->o->self)
        tell_self(a, false, kind, payload);
    else
        tell(a, a->lead.member[host], kind, payload);
}

void agent_tell_all(agent *a, ty_message kind, const ty_buf *payload)
{
    for (int i = 0; i < a->o->n_hosts; i++)
        agent_tell_host(a, i, kind, payload);
}

void agent_over(agent *a, int rc)
{
    if (a->phase == PHASE_OVER)
        return;
    a->phase = PHASE_OVER;
    a->rc = rc;
}

int agent_watch(agent *a, int fd, source *s, uint32_t events, bool fresh, ty_error *err)
{
    struct epoll_event event = {.events = events, .data.ptr = s};
    if (epoll_ctl(a->epoll_fd, fresh ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) < 0)
        return ty_error_errno(err, TY_E_LIMIT, errno, "cannot watch a descriptor");
    return 0;
}

/* ---- what connections say ---- */

void agent_on_open(agent *a, connection *c)
{
    if (a->leads)
        return; /* the other says hello */
    ty_buf b;
    ty_buf_init(&b, 65536);
    ty_put_hello(&b, &a->hello);
    tell(a, c, TY_MESSAGE_HELLO, &b);
    if (a->asked_to_stop)
        tell(a, c, TY_MESSAGE_STOP, NULL);
    ty_buf_fini(&b);
}

int agent_on_frame(agent *a, connection *c, int kind, const uint8_t *payload, size_t n_bytes, ty_error *err)
{
    ty_reader r = {.at = payload, .end = payload + n_bytes};
    if (a->phase == PHASE_OVER)
        return 0;
    if (!a->leads)
        return follow_on(a, kind, &r, err);
    if (c->host >= 0)
        return lead_on(a, c->host, kind, &r, err);
    ty_hello hello;
    if (kind != TY_MESSAGE_HELLO)
        return ty_error_set(err, TY_E_DATA, "the first message is not hello");
    if (ty_get_hello(&r, &hello, err) < 0)
        return -1;
    if (!c->last_words)
        meet_hello(a, c, &hello);
    return 0;
}

/* Somebody at the address of a missing host, perhaps that host, but without its secret. */
static void note_reason(agent *a, const connection *c, const char *why)
{
    char from[sizeof c->from], address[TY_ADDRESS_TEXT_BYTES], failure[64];
    snprintf(from, sizeof from, "%s", c->from);
    char *colon = strrchr(from, ':');
    if (colon)
        *colon = 0;
    for (int i = 1; i < a->o->n_hosts && a->resolver; i++) {
        ty_arrival *at = &a->lead.arrivals[i];
        if (!at->here && ty_resolver_get(a->resolver, i, address, failure) && strcmp(address, from) == 0)
            snprintf(at->reason, sizeof at->reason, "%s: %s", address, why);
    }
}

void agent_on_lost(agent *a, connection *c, ty_code code, const char *why)
{
    if (a->phase == PHASE_OVER)
        return;
    if (!a->leads) {
        if (c->link.state == TY_LINK_PROVING && code == TY_E_IO) {
            why = "authentication failed: it hung up on our proof";
            a->wrong_secret = true;
        }
        if (c == a->to_leader)
            follow_lost_leader(a, why);
    } else if (c->host >= 0) {
        lead_lost(a, c->host, why);
    } else if (!c->last_words) {
        meet_stranger(a, c, why);
        if (code == TY_E_PERMISSION && a->phase == PHASE_MEET)
            note_reason(a, c, "authentication failed");
    }
}

/* ---- turns ---- */

static void hear_self(agent *a)
{
    while (a->queue.len > 0 && a->phase != PHASE_OVER) {
        ty_buf now = a->queue; /* what is told meanwhile waits for the next round */
        ty_buf_init(&a->queue, now.max_bytes);
        ty_reader r = {.at = (const uint8_t *)now.data, .end = (const uint8_t *)now.data + now.len};
        while (r.at < r.end && a->phase != PHASE_OVER) {
            ty_error err = {0};
            bool leader = ty_get_number(&r, 1) != 0;
            int kind = (int)ty_get_number(&r, 2);
            size_t n = ty_get_number(&r, 4);
            ty_reader one = {.at = r.at, .end = r.at + n};
            r.at += n;
            if ((leader ? lead_on(a, a->o->self, kind, &one, &err) : follow_on(a, kind, &one, &err)) < 0)
                ty_log_error("dist", "%s", err.message);
        }
        ty_buf_fini(&now);
    }
}

static void look_for_stop(agent *a)
{
    if (a->asked_to_stop || !a->o->stopping || !a->o->stopping(a->o->ctx))
        return;
    a->asked_to_stop = true;
    a->leave_ms = a->now_ms + a->o->leave_ms;
    agent_tell_leader(a, TY_MESSAGE_STOP, NULL); /* without a link yet: as soon as there is one */
}

/* What time it is. A turn that took far longer than it waits was none: the machine was moved or overcommitted, and so
 * long nobody could be heard. That is no silence of theirs. */
static void tell_time(agent *a)
{
    int64_t before_ms = a->now_ms;
    a->now_ms = ty_clock_ms();
    if (a->now_ms - before_ms < ASLEEP_MS)
        return;
    int64_t asleep_ms = a->now_ms - before_ms;
    a->woke_ms = a->now_ms;
    a->kill_ms += a->kill_ms ? asleep_ms : 0; /* nor did those use it who were given time to end */
    a->lead.end_by_ms += a->lead.end_by_ms ? asleep_ms : 0;
    a->leave_ms += a->leave_ms ? asleep_ms : 0;
    for (connection *c = a->connections; c; c = c->next) {
        c->heard_ms += asleep_ms;
        c->born_ms += asleep_ms;
    }
}

static void pass_time(agent *a)
{
    tell_time(a);
    look_for_stop(a);
    if (a->phase == PHASE_MEET || (a->leads && a->phase != PHASE_OVER))
        meet_tick(a);
    if (a->now_ms >= a->second_ms && a->phase != PHASE_OVER) {
        a->second_ms = a->now_ms + SECOND_MS;
        follow_second(a);
        if (a->phase == PHASE_MEET)
            meet_second(a);
        else if (a->leads)
            lead_second(a);
    }
    if (a->phase != PHASE_OVER)
        follow_tick(a);
    if (a->leads && a->phase != PHASE_OVER)
        lead_tick(a);
}

static int turn(agent *a)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(a->epoll_fd, events, EVENTS, a->queue.len > 0 ? 0 : TURN_MS);
    if (n < 0 && errno != EINTR)
        return ty_error_errno(a->err, TY_E_INTERNAL, errno, "epoll");
    tell_time(a);
    for (int i = 0; i < n && a->phase != PHASE_OVER; i++) {
        source *s = events[i].data.ptr;
        s->ready(a, s->owner, events[i].events);
    }
    hear_self(a);
    pass_time(a);
    connections_sweep(a);
    return 0;
}

/* ---- life ---- */

static int check_options(const ty_agent_options *o, ty_error *err)
{
    int64_t ranks = 0;
    for (int i = 0; i < o->n_hosts; i++) {
        bool twice = false;
        for (int k = 0; k < i && !twice; k++)
            twice = strcmp(o->hosts[k].name, o->hosts[i].name) == 0;
        if (o->hosts[i].ranks < 0 || twice)
            return ty_error_set(err, TY_E_CONFIG, "host \"%s\" has %d ranks, or is named twice", o->hosts[i].name,
                                o->hosts[i].ranks);
        ranks += o->hosts[i].ranks;
    }
    if (o->n_hosts < 1 || o->self < 0 || o->self >= o->n_hosts || o->n_facts > 16)
        return ty_error_set(err, TY_E_CONFIG, "host %d of %d with %d facts cannot be", o->self, o->n_hosts, o->n_facts);
    if (ranks < 1 || ranks > INT_MAX)
        return ty_error_set(err, TY_E_CONFIG, "a job has at least one rank, not %lld", (long long)ranks);
    return 0;
}

static void prepare_leader(agent *a)
{
    int n = a->o->n_hosts, rank = 0;
    leader_state *l = &a->lead;
    l->arrivals = TY_NEW_ARRAY(&a->arena, ty_arrival, n);
    l->member = TY_NEW_ARRAY(&a->arena, connection *, n);
    l->gone = TY_NEW_ARRAY(&a->arena, bool, n);
    l->looks = TY_NEW_ARRAY(&a->arena, ty_look, n);
    l->ranks = TY_NEW_ARRAY(&a->arena, ty_rank_state, a->n_ranks);
    l->blobs = TY_NEW_ARRAY(&a->arena, ty_buf, n);
    l->in_fence = TY_NEW_ARRAY(&a->arena, bool, n);
    l->known = TY_NEW_ARRAY(&a->arena, bool, n);
    l->lines_got = TY_NEW_ARRAY(&a->arena, uint64_t, n);
    l->lines_told = TY_NEW_ARRAY(&a->arena, uint64_t, n);
    for (int i = 0; i < n; i++) {
        ty_buf_init(&l->blobs[i], TY_LINK_PAYLOAD_BYTES);
        for (int k = 0; k < a->o->hosts[i].ranks; k++)
            l->ranks[rank++].host = i;
    }
}

static int prepare(agent *a)
{
    const ty_agent_options *o = a->o;
    a->host_name = TY_NEW_ARRAY(&a->arena, const char *, o->n_hosts);
    a->map.hosts = TY_NEW_ARRAY(&a->arena, ty_map_host, o->n_hosts);
    a->map.n_hosts = o->n_hosts;
    for (int i = 0; i < o->n_hosts; i++) {
        a->host_name[i] = o->hosts[i].name;
        a->first_rank += i < o->self ? o->hosts[i].ranks : 0;
        a->n_ranks += o->hosts[i].ranks;
    }
    a->n_own = o->hosts[o->self].ranks;
    a->pages = TY_NEW_ARRAY(&a->arena, ty_page *, a->n_own);
    a->page_fds = TY_NEW_ARRAY(&a->arena, int, a->n_own);
    for (int i = 0; i < a->n_own; i++)
        a->page_fds[i] = -1;
    a->leads = o->self == 0;
    a->generation = a->lead.generation = -1;
    if (a->leads)
        prepare_leader(a);
    a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (a->epoll_fd < 0)
        return ty_error_errno(a->err, TY_E_LIMIT, errno, "cannot watch descriptors");
    a->began_ms = a->now_ms = ty_clock_ms();
    a->second_ms = a->now_ms + SECOND_MS;
    if (ty_link_key(o->secret, o->secret_bytes, o->job, a->key, a->err) < 0)
        return -1;
    return meet_prepare(a);
}

static void finish(agent *a)
{
    own_ranks_free(a);
    own_remote_free(a);
    for (connection *c = a->connections; c; c = c->next)
        connection_drop(a, c);
    connections_sweep(a);
    if (a->lead.listen_fd >= 0)
        close(a->lead.listen_fd);
    ty_preflight_free(a->preflight);
    ty_resolver_stop(a->resolver);
    for (int i = 0; a->leads && i < a->o->n_hosts; i++)
        ty_buf_fini(&a->lead.blobs[i]);
    ty_buf_fini(&a->queue);
    if (a->epoll_fd >= 0)
        close(a->epoll_fd);
    ty_ranks_shutdown();
    ty_arena_fini(&a->arena);
}

int ty_agent_run(const ty_agent_options *o, ty_agent_end *end, ty_error *err)
{
    ty_error own = {0};
    agent a = {.o = o, .end = end, .err = err ? err : &own, .epoll_fd = -1, .lead.listen_fd = -1};
    *end = (ty_agent_end){.first = {.rank = -1, .host = -1, .step = -1}};
    if (check_options(o, a.err) < 0)
        return -1;
    ty_arena_init(&a.arena);
    ty_buf_init(&a.queue, 2 * TY_LINK_PAYLOAD_BYTES);
    int rc = prepare(&a);
    while (rc == 0 && a.phase != PHASE_OVER)
        rc = turn(&a);
    if (rc == 0)
        rc = a.rc;
    finish(&a);
    return rc < 0 ? ty_error_wrap(a.err, "dist") : 0;
}
