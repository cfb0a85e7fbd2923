/* agent_follow.c - what every host does on the leader's word: look, start, stop, abort, end.
 *
 * Without a leader there is no word: then its own ranks are stopped and the lost leader is the culprit, which is what
 * every other host concludes as well. */
#define _GNU_SOURCE
#include "dist/agent/agent_state.h"

#include "base/log.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- ends of ranks ---- */

static void tell_number(agent *a, ty_message kind, int generation)
{
    ty_buf b;
    ty_buf_init(&b, 16);
    ty_put_number(&b, (uint64_t)generation, 4);
    agent_tell_leader(a, kind, &b);
    ty_buf_fini(&b);
}

static bool leader_is_lost(const agent *a)
{
    return !a->leads && !a->to_leader && a->phase != PHASE_MEET;
}

/* All ranks of this host have ended. */
static void finish_ranks(agent *a)
{
    own_ranks_free(a);
    a->kill_ms = 0;
    a->phase = PHASE_READY;
    if (leader_is_lost(a))
        agent_over(a, 0);
    else
        tell_number(a, TY_MESSAGE_GONE, a->generation);
}

static void end_ranks(agent *a, int in_ms)
{
    if (!a->ranks)
        return;
    a->phase = PHASE_ENDING;
    ty_ranks_signal(a->ranks, SIGTERM);
    a->kill_ms = a->now_ms + in_ms;
}

static void abort_ranks(agent *a)
{
    own_ranks_abort(a);
    end_ranks(a, a->o->grace_ms);
}

static int on_stop(agent *a, ty_reader *r, ty_error *err)
{
    int host = (int)ty_get_number(r, 4);
    if (ty_get_end(r, "stop", err) < 0)
        return -1;
    if (!a->leads && host >= 0 && host < a->o->n_hosts)
        ty_log_info("dist", "%s was asked to stop: all hosts stop", a->host_name[host]);
    end_ranks(a, a->o->stop_ms);
    return 0;
}

/* Who waits in a sum for a rank that is gone would wait until the stop's time is over. What a rank writes it may still
 * write, so that time stays as it is. */
static int on_alone(agent *a, ty_reader *r, ty_error *err)
{
    int generation = (int)ty_get_number(r, 4);
    if (ty_get_end(r, "alone", err) < 0)
        return -1;
    if (generation != a->generation || !a->ranks)
        return 0;
    own_ranks_abort(a);
    ty_ranks_signal(a->ranks, SIGTERM);
    return 0;
}

void follow_tick(agent *a)
{
    if (a->ranks && a->kill_ms && a->now_ms >= a->kill_ms) {
        ty_ranks_signal(a->ranks, SIGKILL);
        a->kill_ms = a->now_ms + 1000;
    }
    if (a->ranks && ty_ranks_living(a->ranks) == 0)
        finish_ranks(a);
}

void follow_second(agent *a)
{
    a->memory_percent = host_memory_percent();
    if (a->phase != PHASE_MEET && a->phase != PHASE_OVER)
        own_ranks_tell_pages(a);
    if (a->leads || !a->to_leader || a->to_leader->link.state != TY_LINK_OPEN)
        return;
    int64_t silent_ms = a->now_ms - a->to_leader->heard_ms;
    if (silent_ms <= a->o->link_ms)
        return;
    char why[64];
    snprintf(why, sizeof why, "no answer for %.1f s", (double)silent_ms / 1000);
    connection_drop(a, a->to_leader);
    follow_lost_leader(a, why);
}

void follow_lost_leader(agent *a, const char *why)
{
    a->to_leader = NULL;
    if (a->has_end) {
        agent_over(a, a->rc);
        return;
    }
    if (a->phase == PHASE_MEET) {
        if (a->wrong_secret && strncmp(why, "authentication", 14) != 0)
            return; /* that the leader has given up meanwhile is not the reason */
        snprintf(a->waits_for, sizeof a->waits_for, "%s (%s)", a->host_name[0], why);
        return;
    }
    ty_failure f = {.kind = TY_FAILURE_LOST, .status = 70};
    snprintf(f.text, sizeof f.text, "%s on %s", why, a->map.hosts[0].address);
    *a->end = (ty_agent_end){.failed = true, .status = 70, .generation = a->generation};
    ty_blame(&f, a->host_name, NULL, 0, &a->end->first);
    ty_log_error("dist", "%s; stopping the ranks of this host", a->end->first.text);
    own_ranks_record(a);
    if (a->ranks)
        abort_ranks(a);
    else
        agent_over(a, 0);
}

/* ---- the leader's words ---- */

static int on_refuse(agent *a, ty_reader *r, ty_error *err)
{
    char text[1024];
    ty_get_text(r, text, sizeof text);
    if (ty_get_end(r, "refuse", err) < 0)
        return -1;
    ty_error_set(a->err, TY_E_CONFIG, "%s", text);
    agent_over(a, -1);
    return 0;
}

static void tell_look(agent *a, const ty_look *look)
{
    ty_buf b;
    ty_buf_init(&b, 65536);
    ty_put_look(&b, look);
    agent_tell_leader(a, TY_MESSAGE_LOOK, &b);
    ty_buf_fini(&b);
}

static void looked(agent *a, void *owner, uint32_t events)
{
    (void)owner;
    (void)events;
    ty_look look = {0};
    ty_preflight_take(a->preflight, &look);
    epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, ty_preflight_fd(a->preflight), NULL);
    a->phase = PHASE_READY;
    tell_look(a, &look);
}

static int on_map(agent *a, ty_reader *r, ty_error *err)
{
    if (ty_get_map(r, &a->map, err) < 0)
        return -1;
    a->phase = PHASE_LOOK;
    a->waits_for[0] = 0;
    if (a->resolver)
        ty_resolver_settle(a->resolver);
    if (a->map.preflight && a->preflight && ty_preflight_go(a->preflight, a->map.hosts, a->o->n_hosts, NULL) == 0) {
        a->preflight_source = (source){looked, NULL};
        return agent_watch(a, ty_preflight_fd(a->preflight), &a->preflight_source, EPOLLIN, true, err);
    }
    ty_look nothing = {.shm_bytes = -1, .ptrace_scope = -1};
    a->phase = PHASE_READY;
    tell_look(a, &nothing);
    return 0;
}

static void tell_fault(agent *a, const ty_error *fault)
{
    ty_buf b;
    ty_buf_init(&b, 4096);
    ty_put_number(&b, (uint64_t)a->generation, 4);
    ty_put_number(&b, (uint64_t)ty_error_exit_status(fault->code), 4);
    ty_put_text(&b, fault->message);
    agent_tell_leader(a, TY_MESSAGE_FAULT, &b);
    ty_buf_fini(&b);
}

static int on_start(agent *a, ty_reader *r, ty_error *err)
{
    int generation = (int)ty_get_number(r, 4);
    if (ty_get_end(r, "start", err) < 0)
        return -1;
    if (a->phase != PHASE_READY || a->ranks)
        return ty_error_set(err, TY_E_DATA, "the leader says start, but this host is not ready");
    ty_preflight_free(a->preflight);
    a->preflight = NULL;
    a->generation = generation;
    if (a->o->between)
        a->o->between(a->o->ctx, generation);
    ty_error fault = {0};
    a->phase = PHASE_RUN;
    if (own_ranks_start(a, &fault) < 0) {
        tell_fault(a, &fault);
        finish_ranks(a);
    } else if (!a->ranks) {
        finish_ranks(a); /* a host without ranks */
    }
    return 0;
}

static int on_fence_all(agent *a, ty_reader *r, ty_error *err)
{
    int generation = (int)ty_get_number(r, 4);
    uint64_t number = ty_get_number(r, 8);
    if (r->failed)
        return ty_error_set(err, TY_E_DATA, "message \"fence all\" is too short");
    if (a->ranks && generation == a->generation)
        ty_ranks_fence_done(a->ranks, number, r->at, (size_t)(r->end - r->at));
    return 0;
}

static int on_beat(agent *a, ty_reader *r, ty_error *err)
{
    char text[sizeof a->waits_for];
    ty_get_text(r, text, sizeof text);
    if (a->phase == PHASE_MEET && !r->failed)
        memcpy(a->waits_for, text, sizeof text);
    return ty_get_end(r, "beat", err);
}

static int on_ask(agent *a, ty_reader *r, ty_error *err)
{
    int generation = (int)ty_get_number(r, 4);
    if (ty_get_end(r, "ask", err) < 0)
        return -1;
    if (generation == a->generation)
        own_ranks_tell_ends(a);
    tell_number(a, TY_MESSAGE_KNOWN, generation);
    return 0;
}

static int on_abort(agent *a, ty_reader *r, ty_error *err)
{
    ty_culprit culprit;
    int generation = (int)ty_get_number(r, 4);
    ty_get_culprit(r, &culprit);
    if (ty_get_end(r, "abort", err) < 0)
        return -1;
    if (generation != a->generation)
        return 0;
    ty_log_error("dist", "%s", culprit.text);
    own_ranks_record(a);
    abort_ranks(a);
    return 0;
}

static int on_end(agent *a, ty_reader *r, ty_error *err)
{
    if (ty_get_end_of_job(r, a->end, err) < 0)
        return -1;
    a->has_end = true;
    own_ranks_free(a);
    own_remote_free(a);
    if (a->leads)
        return 0; /* the others hang up first */
    connection_drop(a, a->to_leader);
    a->to_leader = NULL;
    agent_over(a, 0);
    return 0;
}

int follow_on(agent *a, int kind, ty_reader *r, ty_error *err)
{
    switch (kind) {
    case TY_MESSAGE_REFUSE:
        return on_refuse(a, r, err);
    case TY_MESSAGE_MAP:
        return on_map(a, r, err);
    case TY_MESSAGE_START:
        return on_start(a, r, err);
    case TY_MESSAGE_FENCE_ALL:
        return on_fence_all(a, r, err);
    case TY_MESSAGE_BEAT:
        return on_beat(a, r, err);
    case TY_MESSAGE_ASK:
        return on_ask(a, r, err);
    case TY_MESSAGE_ABORT:
        return on_abort(a, r, err);
    case TY_MESSAGE_END:
        return on_end(a, r, err);
    case TY_MESSAGE_TAKEN:
        own_ranks_taken(a, ty_get_number(r, 8));
        return ty_get_end(r, "taken", err);
    case TY_MESSAGE_REMOTE:
        return own_remote_on(a, 0, r, err);
    case TY_MESSAGE_STOP:
        return on_stop(a, r, err);
    case TY_MESSAGE_ALONE:
        return on_alone(a, r, err);
    default:
        return ty_error_set(err, TY_E_DATA, "message %d from the leader is none that a host takes", kind);
    }
}
