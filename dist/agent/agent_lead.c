/* agent_lead.c - the leader: counts who is through with what, decides who failed first, says what happens next.
 *
 * It keeps no list of steps. After each message it looks at what is so now: all have looked, so start; all are gone, so
 * end or start again; a failure has been waited with long enough, so tell everybody. */
#define _GNU_SOURCE
#include "dist/agent/agent_state.h"

#include "base/file.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GOODBYE_MS = 5000, TOLD_BYTES = 1 << 20, AWAKE_MS = 2000 };

static const char *host_of(const agent *a, int host)
{
    return a->host_name[host];
}

/* ---- the beginning ---- */

static void tell_shared(agent *a)
{
    char text[512];
    ty_meeting_shared(a->lead.arrivals, a->host_name, a->o->n_hosts, text, sizeof text);
    if (text[0])
        ty_log_info("dist", "addresses of several hosts, of which none is used: %s", text);
}

void lead_all_here(agent *a)
{
    ty_buf b;
    ty_buf_init(&b, TY_LINK_PAYLOAD_BYTES);
    if (getrandom(&a->map.nonce, sizeof a->map.nonce, 0) < 0)
        a->map.nonce = (uint64_t)a->now_ms << 20 ^ (uint64_t)getpid();
    a->map.preflight = a->o->preflight && a->o->n_hosts > 1;
    for (int i = 0; i < a->o->n_hosts; i++) {
        snprintf(a->map.hosts[i].address, TY_ADDRESS_TEXT_BYTES, "%s", a->lead.arrivals[i].hello->address);
        a->map.hosts[i].look_port = a->lead.arrivals[i].hello->look_port;
    }
    if (a->o->n_hosts > 1) {
        ty_log_info("dist", "all %d hosts are here after %.1f s: %d ranks", a->o->n_hosts,
                    (double)(a->now_ms - a->began_ms) / 1000, a->n_ranks);
        tell_shared(a);
    }
    ty_put_map(&b, &a->map);
    agent_tell_all(a, TY_MESSAGE_MAP, &b);
    ty_buf_fini(&b);
}

void lead_refuse(agent *a, const char *text)
{
    ty_buf b;
    ty_buf_init(&b, 4096);
    ty_put_text(&b, text);
    for (int i = 1; i < a->o->n_hosts; i++)
        if (a->lead.member[i])
            agent_tell_host(a, i, TY_MESSAGE_REFUSE, &b);
    ty_buf_fini(&b);
}

static void tell_looks(agent *a)
{
    ty_buf table, warnings;
    ty_buf_init(&table, 1 << 20);
    ty_buf_init(&warnings, 1 << 20);
    const ty_hello **hellos = TY_NEW_ARRAY(&a->arena, const ty_hello *, a->o->n_hosts);
    int *ranks = TY_NEW_ARRAY(&a->arena, int, a->o->n_hosts);
    for (int i = 0; i < a->o->n_hosts; i++) {
        hellos[i] = a->lead.arrivals[i].hello;
        ranks[i] = a->o->hosts[i].ranks;
    }
    ty_look_table(a->lead.looks, hellos, ranks, a->o->n_hosts, &table, &warnings);
    char *rest = table.data;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (line[0])
            ty_log_info("dist", "%s", line);
    rest = warnings.data;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (line[0])
            ty_log_warning("dist", "%s", line);
    ty_buf_fini(&table);
    ty_buf_fini(&warnings);
}

static void start_ranks(agent *a, int generation)
{
    ty_buf b;
    ty_buf_init(&b, 64);
    a->lead.has_failure = a->lead.decided = false;
    a->lead.running = true;
    a->lead.generation = generation;
    a->lead.decide_ms = a->lead.restart_ms = a->lead.stall_told_ms = 0;
    a->lead.fence = 0;
    for (int i = 0; i < a->o->n_hosts; i++) {
        a->lead.gone[i] = a->lead.in_fence[i] = false;
        ty_buf_clear(&a->lead.blobs[i]);
    }
    for (int i = 0; i < a->n_ranks; i++)
        a->lead.ranks[i] = (ty_rank_state){.host = a->lead.ranks[i].host, .page.step = -1};
    ty_put_number(&b, (uint64_t)generation, 4);
    agent_tell_all(a, TY_MESSAGE_START, &b);
    ty_buf_fini(&b);
}

static int on_look(agent *a, int host, ty_reader *r, ty_error *err)
{
    if (ty_get_look(r, &a->lead.looks[host], err) < 0)
        return -1;
    if (a->lead.looks[host].done)
        return ty_error_set(err, TY_E_DATA, "%s looked twice", host_of(a, host));
    a->lead.looks[host].done = true;
    if (++a->lead.n_looked < a->o->n_hosts)
        return 0;
    if (a->map.preflight)
        tell_looks(a);
    if (!a->lead.has_failure && !a->lead.stopping)
        start_ranks(a, 0);
    return 0;
}

/* ---- fences ---- */

static bool has_ranks(const agent *a, int host)
{
    return a->o->hosts[host].ranks > 0;
}

static void answer_fence(agent *a)
{
    ty_buf b;
    ty_buf_init(&b, TY_LINK_PAYLOAD_BYTES);
    ty_put_number(&b, (uint64_t)a->lead.generation, 4);
    ty_put_number(&b, a->lead.fence, 8);
    for (int i = 0; i < a->o->n_hosts; i++) {
        ty_buf_add(&b, a->lead.blobs[i].data, a->lead.blobs[i].len);
        ty_buf_clear(&a->lead.blobs[i]);
        a->lead.in_fence[i] = false;
    }
    a->lead.fence++;
    agent_tell_all(a, TY_MESSAGE_FENCE_ALL, &b);
    ty_buf_fini(&b);
}

static int on_fence(agent *a, int host, ty_reader *r, ty_error *err)
{
    int generation = (int)ty_get_number(r, 4);
    uint64_t number = ty_get_number(r, 8);
    if (r->failed)
        return ty_error_set(err, TY_E_DATA, "message \"fence\" is too short");
    if (generation != a->lead.generation)
        return 0; /* of ranks that are gone */
    if (number != a->lead.fence || a->lead.in_fence[host])
        return ty_error_set(err, TY_E_DATA, "%s is in fence %llu, the others in %llu", host_of(a, host),
                            (unsigned long long)number, (unsigned long long)a->lead.fence);
    a->lead.in_fence[host] = true;
    if (r->end > r->at)
        ty_buf_add(&a->lead.blobs[host], r->at, (size_t)(r->end - r->at));
    for (int i = 0; i < a->o->n_hosts; i++)
        if (has_ranks(a, i) && !a->lead.in_fence[i])
            return 0;
    answer_fence(a);
    return 0;
}

/* ---- failures ---- */

static void ask_all(agent *a)
{
    ty_buf b;
    ty_buf_init(&b, 16);
    a->lead.asked = a->lead.generation;
    ty_put_number(&b, (uint64_t)a->lead.asked, 4);
    memset(a->lead.known, 0, (size_t)a->o->n_hosts * sizeof *a->lead.known);
    agent_tell_all(a, TY_MESSAGE_ASK, &b);
    ty_buf_fini(&b);
}

/* Nobody can tell of anything that came before the first failure; who is lost has been told of as such. */
static bool all_known(const agent *a)
{
    for (int i = 0; i < a->o->n_hosts; i++)
        if (!a->lead.known[i] && !a->lead.gone[i] && (i == a->o->self || a->lead.member[i]))
            return false;
    return true;
}

static int on_known(agent *a, int host, ty_reader *r, ty_error *err)
{
    int generation = (int)ty_get_number(r, 4);
    if (ty_get_end(r, "known", err) < 0)
        return -1;
    if (generation == a->lead.asked)
        a->lead.known[host] = true;
    return 0;
}

static void note_failure(agent *a, const ty_failure *f)
{
    if (a->lead.decided || a->lead.told_end)
        return;
    bool is_first = !a->lead.has_failure;
    if (is_first || ty_blame_rather(&a->lead.failure, f))
        a->lead.failure = *f;
    a->lead.has_failure = true;
    if (!is_first)
        return;
    a->lead.decide_ms = a->now_ms + TY_BLAME_MS;
    ask_all(a); /* last: who cannot be asked is lost, which is noted in here */
}

static void decide(agent *a)
{
    ty_buf b;
    a->lead.decided = true;
    ty_blame(&a->lead.failure, a->host_name, a->lead.ranks, a->n_ranks, &a->lead.culprit);
    ty_buf_init(&b, 4096);
    ty_put_number(&b, (uint64_t)a->lead.generation, 4);
    ty_put_culprit(&b, &a->lead.culprit);
    agent_tell_all(a, TY_MESSAGE_ABORT, &b);
    ty_buf_fini(&b);
}

/* In a stop ranks end together, when all have finished. One that did not leaves the others in a sum that never ends.
 * Workers of parameter servers wait for nobody, and of programs that keep no page nothing is known. */
static bool leaves_others(const agent *a, const ty_exit *e)
{
    for (int i = 0; i < a->o->n_hosts; i++)
        if (a->o->hosts[i].servers > 0)
            return false;
    return a->n_ranks > 1 && e->phase != TY_PHASE_NONE &&
           (e->phase != TY_PHASE_FINISHED || WIFSIGNALED(e->wait_status));
}

static void tell_alone(agent *a)
{
    ty_buf b;
    ty_buf_init(&b, 16);
    a->lead.told_alone = true;
    ty_put_number(&b, (uint64_t)a->lead.generation, 4);
    agent_tell_all(a, TY_MESSAGE_ALONE, &b);
    ty_buf_fini(&b);
}

static int on_exit_of_rank(agent *a, int host, ty_reader *r, ty_error *err)
{
    ty_exit e;
    if (ty_get_exit(r, &e, err) < 0)
        return -1;
    if (e.rank < 0 || e.rank >= a->n_ranks || a->lead.ranks[e.rank].host != host)
        return ty_error_set(err, TY_E_DATA, "rank %d is none of %s", e.rank, host_of(a, host));
    if (e.generation != a->lead.generation)
        return 0;
    a->lead.ranks[e.rank].ended |= !e.aborted;
    int status = WIFSIGNALED(e.wait_status) ? 128 + WTERMSIG(e.wait_status) : WEXITSTATUS(e.wait_status);
    if (a->lead.stopping && status > a->lead.status)
        a->lead.status = status;
    if (a->lead.stopping && !a->lead.told_alone && leaves_others(a, &e))
        tell_alone(a);
    if (status == 0 || a->lead.stopping)
        return 0;
    ty_failure f = {.kind = TY_FAILURE_EXIT, .host = host, .exit = e};
    note_failure(a, &f);
    return 0;
}

static int on_fault(agent *a, int host, ty_reader *r, ty_error *err)
{
    ty_failure f = {.kind = TY_FAILURE_FAULT, .host = host};
    int generation = (int)ty_get_number(r, 4);
    f.status = (int)ty_get_number(r, 4) & 255;
    ty_get_text(r, f.text, sizeof f.text);
    if (ty_get_end(r, "fault", err) < 0)
        return -1;
    if (generation == a->lead.generation)
        note_failure(a, &f);
    return 0;
}

static void look_at_ends(agent *a);

void lead_lost(agent *a, int host, const char *why)
{
    a->lead.member[host] = NULL;
    if (a->lead.told_end)
        return;
    if (a->phase == PHASE_MEET) {
        a->lead.arrivals[host].here = false;
        snprintf(a->lead.arrivals[host].reason, sizeof a->lead.arrivals[host].reason, "was here, then %s", why);
        return;
    }
    ty_failure f = {.kind = TY_FAILURE_LOST, .host = host, .status = 70};
    snprintf(f.text, sizeof f.text, "%s on %s %s", why, a->lead.arrivals[host].hello->interface,
             a->lead.arrivals[host].hello->address);
    a->lead.gone[host] = true;
    a->lead.n_lost++;
    if (a->lead.restart_ms) { /* nobody runs: the restart is off, and this is why */
        a->lead.restart_ms = 0;
        a->lead.has_failure = a->lead.decided = false;
    }
    note_failure(a, &f);
    for (int i = 0; i < a->o->n_hosts && !a->lead.running; i++)
        a->lead.gone[i] = true;
    if (a->lead.decided)
        look_at_ends(a);
}

/* ---- ends ---- */

static void put_end(const agent *a, ty_buf *b)
{
    ty_agent_end end = {
        .generation = a->lead.generation, .stopped = a->lead.stopping, .first = {.rank = -1, .host = -1}};
    end.failed = a->lead.has_failure;
    if (end.failed) {
        end.first = a->lead.culprit;
        end.status = end.first.exit_status ? end.first.exit_status : 1;
    } else {
        end.status = a->lead.status;
    }
    ty_buf_init(b, 4096);
    ty_put_end(b, &end);
}

static void tell_end(agent *a)
{
    ty_buf b;
    put_end(a, &b);
    a->lead.told_end = true;
    a->lead.end_by_ms = a->now_ms + (a->phase == PHASE_MEET ? a->o->leave_ms : GOODBYE_MS);
    agent_tell_all(a, TY_MESSAGE_END, &b);
    ty_buf_fini(&b);
}

static bool may_restart(const agent *a)
{
    return a->lead.has_failure && !a->lead.stopping && a->lead.n_lost == 0 && a->lead.restarts < a->o->max_restarts;
}

static void look_at_ends(agent *a)
{
    if (a->lead.told_end || a->lead.restart_ms)
        return;
    for (int i = 0; i < a->o->n_hosts; i++)
        if (!a->lead.gone[i])
            return;
    a->lead.running = false;
    if (a->lead.has_failure && !a->lead.decided)
        decide(a);
    if (!may_restart(a)) {
        tell_end(a);
        return;
    }
    int64_t pause_ms = (int64_t)a->o->restart_ms << (a->lead.restarts < 6 ? a->lead.restarts : 6);
    a->lead.restarts++;
    a->lead.restart_ms = a->now_ms + pause_ms;
    ty_log_warning("dist", "restart %d of %d in %.1f s: all ranks of all hosts start again", a->lead.restarts,
                   a->o->max_restarts, (double)pause_ms / 1000);
}

static int on_gone(agent *a, int host, ty_reader *r, ty_error *err)
{
    int generation = (int)ty_get_number(r, 4);
    if (ty_get_end(r, "gone", err) < 0)
        return -1;
    if (generation != a->lead.generation || !a->lead.running)
        return 0;
    a->lead.gone[host] = true;
    look_at_ends(a);
    return 0;
}

static void put_stop(const agent *a, ty_buf *b)
{
    ty_buf_init(b, 16);
    ty_put_number(b, (uint64_t)a->lead.stopped_by, 4);
}

static int on_stop(agent *a, int host)
{
    if (a->lead.stopping || a->lead.told_end)
        return 0;
    a->lead.stopping = true;
    a->lead.stopped_by = host;
    if (a->phase == PHASE_MEET)
        meet_tell_missing(a);
    if (a->phase == PHASE_MEET && a->waits_for[0])
        ty_log_info("dist", "%s was asked to stop while waiting for %s: nobody waits any longer", host_of(a, host),
                    a->waits_for);
    else if (a->o->n_hosts > 1)
        ty_log_info("dist", "%s was asked to stop: all hosts stop", host_of(a, host));
    ty_buf b;
    put_stop(a, &b);
    agent_tell_all(a, TY_MESSAGE_STOP, &b);
    ty_buf_fini(&b);
    if (!a->lead.running)
        tell_end(a);
    return 0;
}

void lead_say_goodbye(agent *a, int host)
{
    ty_buf b;
    if (a->lead.stopping) {
        put_stop(a, &b);
        agent_tell_host(a, host, TY_MESSAGE_STOP, &b);
        ty_buf_fini(&b);
    }
    put_end(a, &b);
    agent_tell_host(a, host, TY_MESSAGE_END, &b);
    ty_buf_fini(&b);
}

/* ---- pages ---- */

static int on_pages(agent *a, int host, ty_reader *r, ty_error *err)
{
    int generation = (int)ty_get_number(r, 4), n = (int)ty_get_number(r, 4);
    for (int i = 0; i < n && !r->failed; i++) {
        ty_page_view view;
        int rank = (int)ty_get_number(r, 4);
        bool stopped = ty_get_number(r, 1) != 0;
        ty_get_page(r, &view);
        if (r->failed || rank < 0 || rank >= a->n_ranks || a->lead.ranks[rank].host != host)
            return ty_error_set(err, TY_E_DATA, "message \"pages\" of %s is wrong", host_of(a, host));
        if (generation != a->lead.generation)
            continue;
        ty_rank_state *state = &a->lead.ranks[rank];
        state->page = view;
        state->known = true;
        state->stopped = stopped;
        state->heard_ms = a->now_ms;
    }
    return ty_get_end(r, "pages", err);
}

static void look_for_stalls(agent *a)
{
    ty_stall stall;
    int warn_ms = a->o->stall_warn_ms, end_ms = a->o->stall_end_ms;
    int min_ms = warn_ms > 0 && (end_ms <= 0 || warn_ms < end_ms) ? warn_ms : end_ms;
    if (min_ms <= 0 || a->lead.has_failure || a->lead.stopping || !a->lead.running ||
        (a->woke_ms && a->now_ms - a->woke_ms < AWAKE_MS) || /* ranks that slept as well need a moment to go on */
        !ty_watch_stall(a->lead.ranks, a->n_ranks, a->host_name, a->now_ms, min_ms, &stall))
        return;
    if (end_ms > 0 && stall.wait_ms >= end_ms) {
        int rank = stall.first_missing;
        ty_failure f = {.kind = TY_FAILURE_STALL, .host = rank >= 0 ? a->lead.ranks[rank].host : -1, .status = 75};
        f.exit.rank = rank;
        snprintf(f.text, sizeof f.text, "%s", stall.text);
        note_failure(a, &f);
    } else if (a->lead.stall_told_ms == 0 || a->now_ms - a->lead.stall_told_ms >= warn_ms) {
        a->lead.stall_told_ms = a->now_ms;
        ty_log_warning("dist", "%s", stall.text);
    }
}

/* Output of another host's rank. When our own ranks have ended there is no thread that writes any more; what comes then
 * is the end of a job. */
static int on_lines(agent *a, int host, ty_reader *r, ty_error *err)
{
    int fd = ty_get_number(r, 1) == 2 ? 2 : 1;
    if (r->failed)
        return ty_error_set(err, TY_E_DATA, "message \"lines\" of %s is empty", host_of(a, host));
    size_t n = (size_t)(r->end - r->at);
    a->lead.lines_got[host] += n;
    if (a->ranks)
        ty_ranks_show(a->ranks, fd, (const char *)r->at, n);
    else if (!a->o->quiet)
        ty_file_write_all(fd, r->at, n, "output", NULL);
    return 0;
}

/* Hosts are told how much of their output is taken, unless whoever reads ours is slow: then they pause, in time. */
static void tell_taken(agent *a)
{
    if (a->ranks && ty_ranks_is_full(a->ranks))
        return;
    for (int i = 1; i < a->o->n_hosts; i++) {
        if (!a->lead.member[i] || a->lead.lines_got[i] - a->lead.lines_told[i] < TOLD_BYTES)
            continue;
        ty_buf b;
        ty_buf_init(&b, 16);
        ty_put_number(&b, a->lead.lines_got[i], 8);
        agent_tell_host(a, i, TY_MESSAGE_TAKEN, &b);
        a->lead.lines_told[i] = a->lead.lines_got[i];
        ty_buf_fini(&b);
    }
}

/* ---- time ---- */

void lead_second(agent *a)
{
    if (a->phase == PHASE_MEET || a->phase == PHASE_OVER)
        return;
    ty_buf nothing;
    ty_buf_init(&nothing, 16);
    ty_put_text(&nothing, "");
    for (int i = 1; i < a->o->n_hosts; i++) {
        connection *c = a->lead.member[i];
        if (!c)
            continue;
        int64_t silent_ms = a->now_ms - c->heard_ms;
        if (silent_ms > a->o->link_ms) {
            char why[64];
            snprintf(why, sizeof why, "no answer for %.1f s", (double)silent_ms / 1000);
            connection_drop(a, c);
            lead_lost(a, i, why);
        } else {
            agent_tell_host(a, i, TY_MESSAGE_BEAT, &nothing);
        }
    }
    ty_buf_fini(&nothing);
    look_for_stalls(a);
}

void lead_tick(agent *a)
{
    tell_taken(a);
    if (a->lead.has_failure && !a->lead.decided && a->now_ms >= a->lead.decide_ms && all_known(a)) {
        decide(a);
        look_at_ends(a);
    }
    if (a->lead.restart_ms && a->now_ms >= a->lead.restart_ms && !a->lead.told_end)
        start_ranks(a, a->lead.generation + 1);
    if (!a->lead.told_end || !a->has_end)
        return;
    bool all_hung_up = true; /* and in a stop before all were there: have come, and were told */
    for (int i = 1; i < a->o->n_hosts; i++)
        all_hung_up = all_hung_up && !a->lead.member[i] && (a->phase != PHASE_MEET || a->lead.arrivals[i].here);
    if (all_hung_up || a->now_ms >= a->lead.end_by_ms)
        agent_over(a, 0);
}

/* ---- messages ---- */

int lead_on(agent *a, int host, int kind, ty_reader *r, ty_error *err)
{
    switch (kind) {
    case TY_MESSAGE_LOOK:
        return on_look(a, host, r, err);
    case TY_MESSAGE_FENCE:
        return on_fence(a, host, r, err);
    case TY_MESSAGE_PAGES:
        return on_pages(a, host, r, err);
    case TY_MESSAGE_EXIT:
        return on_exit_of_rank(a, host, r, err);
    case TY_MESSAGE_FAULT:
        return on_fault(a, host, r, err);
    case TY_MESSAGE_GONE:
        return on_gone(a, host, r, err);
    case TY_MESSAGE_KNOWN:
        return on_known(a, host, r, err);
    case TY_MESSAGE_STOP:
        return on_stop(a, host);
    case TY_MESSAGE_LINES:
        return on_lines(a, host, r, err);
    case TY_MESSAGE_REMOTE:
        return own_remote_on(a, host, r, err);
    default:
        return ty_error_set(err, TY_E_DATA, "message %d from %s is none that a leader takes", kind, host_of(a, host));
    }
}
