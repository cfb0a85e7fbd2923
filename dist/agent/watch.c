/* watch.c - failures are weighed by a table, stalls found by two numbers a rank. */
#define _GNU_SOURCE
#include "dist/agent/watch.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* ---- the first culprit ---- */

static int exit_weight(const ty_exit *e)
{
    static const int from_outside[] = {SIGKILL, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    if (e->aborted)
        return 1;
    if (!WIFSIGNALED(e->wait_status))
        return 0;
    for (size_t i = 0; i < sizeof from_outside / sizeof from_outside[0]; i++)
        if (WTERMSIG(e->wait_status) == from_outside[i])
            return 2;
    return 1;
}

static int weight(const ty_failure *f)
{
    return f->kind == TY_FAILURE_EXIT ? exit_weight(&f->exit) : 2;
}

bool ty_blame_rather(const ty_failure *first, const ty_failure *next)
{
    return weight(next) > weight(first);
}

static int exit_status_of(const ty_exit *e)
{
    return WIFSIGNALED(e->wait_status) ? 128 + WTERMSIG(e->wait_status) : WEXITSTATUS(e->wait_status);
}

/* " in step 812", or where the rank was if there is no step yet. */
static void add_where(ty_buf *b, const ty_exit *e)
{
    if (e->phase == TY_PHASE_SERVE)
        return;
    if (e->step >= 0)
        ty_buf_addf(b, " in step %lld", (long long)e->step);
    else if (e->phase != TY_PHASE_NONE)
        ty_buf_addf(b, " before its first step (phase \"%s\")", ty_phase_name(e->phase));
}

static void blame_exit(const ty_exit *e, const char *host, int n_ranks, ty_buf *b)
{
    ty_buf_addf(b, "rank %d%s (%s, pid %d) ", e->rank, e->phase == TY_PHASE_SERVE ? ", a parameter server" : "", host,
                (int)e->pid);
    if (e->aborted)
        ty_buf_addf(b, "called MPI_Abort with %d", WEXITSTATUS(e->wait_status));
    else if (WIFSIGNALED(e->wait_status))
        ty_buf_addf(b, "was killed by signal %d (%s)", WTERMSIG(e->wait_status),
                    sigabbrev_np(WTERMSIG(e->wait_status)) ? sigabbrev_np(WTERMSIG(e->wait_status)) : "?");
    else
        ty_buf_addf(b, "ended with status %d", WEXITSTATUS(e->wait_status));
    add_where(b, e);
    if (e->text[0])
        ty_buf_addf(b, ": %s", e->text);
    if (n_ranks > 1)
        ty_buf_addf(b, "; stopping %d ranks", n_ranks);
    if (!e->aborted && WIFSIGNALED(e->wait_status) && WTERMSIG(e->wait_status) == SIGKILL)
        ty_buf_addf(b, ". Often this is the OOM killer: host memory was %d %% used", e->memory_percent);
}

static void blame_host(const ty_failure *f, const char *host, const ty_rank_state *ranks, int n_ranks, ty_buf *b)
{
    char seen[256];
    if (f->kind == TY_FAILURE_STALL) {
        ty_buf_adds(b, f->text);
    } else if (f->kind == TY_FAILURE_FAULT) {
        ty_buf_addf(b, "%s cannot go on: %s", host, f->text);
    } else {
        ty_watch_last_seen(ranks, n_ranks, f->host, seen, sizeof seen);
        ty_buf_addf(b, "lost %s (%s)%s%s", host, f->text, seen[0] ? "; last seen: " : "", seen);
    }
}

void ty_blame(const ty_failure *f, const char *const *host_name, const ty_rank_state *ranks, int n_ranks,
              ty_culprit *out)
{
    ty_buf b;
    ty_buf_init(&b, sizeof out->text - 1);
    *out = (ty_culprit){.rank = -1, .host = f->host, .step = -1, .exit_status = f->status};
    const char *host = f->host >= 0 ? host_name[f->host] : "?";
    if (f->kind == TY_FAILURE_EXIT) {
        out->rank = f->exit.rank;
        out->pid = f->exit.pid;
        out->signal = WIFSIGNALED(f->exit.wait_status) ? WTERMSIG(f->exit.wait_status) : 0;
        out->exit_status = exit_status_of(&f->exit);
        out->step = f->exit.step;
        snprintf(out->phase, sizeof out->phase, "%s", ty_phase_name(f->exit.phase));
        blame_exit(&f->exit, host, n_ranks, &b);
    } else {
        out->rank = f->kind == TY_FAILURE_STALL ? f->exit.rank : -1;
        blame_host(f, host, ranks, n_ranks, &b);
    }
    snprintf(out->text, sizeof out->text, "%s", b.data);
    ty_buf_fini(&b);
}

/* ---- what was seen last ---- */

static void format_bytes(int64_t n_bytes, char out[32])
{
    if (n_bytes >= 1 << 20)
        snprintf(out, 32, "%.1f MB", (double)n_bytes / (1 << 20));
    else
        snprintf(out, 32, "%lld bytes", (long long)n_bytes);
}

static void add_operation(ty_buf *b, const ty_page_stream_view *s)
{
    ty_buf_addf(b, "%s #%llu", s->kind[0] ? s->kind : "operation", (unsigned long long)s->begun);
    if (s->bucket >= 0)
        ty_buf_addf(b, " (bucket %d)", s->bucket);
}

void ty_watch_last_seen(const ty_rank_state *ranks, int n_ranks, int host, char *out, size_t n)
{
    int count = 0;
    const ty_rank_state *one = NULL;
    for (int i = 0; i < n_ranks; i++) {
        if (ranks[i].host != host || !ranks[i].known || ranks[i].ended)
            continue;
        count++;
        if (!one || ranks[i].page.step < one->page.step)
            one = &ranks[i];
    }
    ty_buf b;
    ty_buf_init(&b, n - 1);
    if (one)
        ty_buf_addf(&b, "%d rank%s", count, count == 1 ? "" : "s");
    if (one && one->page.step >= 0)
        ty_buf_addf(&b, " in step %lld", (long long)one->page.step);
    else if (one && one->page.phase != TY_PHASE_NONE)
        ty_buf_addf(&b, " in phase \"%s\"", ty_phase_name(one->page.phase));
    for (int s = 0; one && s < TY_PAGE_STREAMS; s++)
        if (one->page.streams[s].begun > one->page.streams[s].ended) {
            ty_buf_adds(&b, ", ");
            add_operation(&b, &one->page.streams[s]);
            break;
        }
    snprintf(out, n, "%s", b.data);
    ty_buf_fini(&b);
}

/* ---- stalls ---- */

/* Ranks as "0 1 2 4-7". */
static void add_ranks(ty_buf *b, const bool *in, int n)
{
    bool first = true;
    for (int i = 0; i < n; i++) {
        if (!in[i])
            continue;
        int end = i;
        while (end + 1 < n && in[end + 1])
            end++;
        ty_buf_addf(b, first ? "%d" : " %d", i);
        if (end > i)
            ty_buf_addf(b, end - i > 1 ? "-%d" : " %d", end);
        first = false;
        i = end;
    }
}

/* Stopped by a signal, before the operation or within it: then it is to blame, though it may have begun it. */
static bool holds_up(const ty_rank_state *r, int stream, uint64_t number)
{
    return r->stopped && !r->ended && r->page.streams[stream].ended < number;
}

/* How things stand in one stream. */
typedef struct standing {
    uint64_t least, most; /* numbers begun, over all ranks */
    int slowest;          /* a rank that has begun the least */
    int longest;          /* the rank that waits longest inside its operation, -1: none waits */
    int64_t wait_ms;
} standing;

static int64_t waited_ms(const ty_rank_state *r, int stream, int64_t now_ms)
{
    const ty_page_stream_view *s = &r->page.streams[stream];
    return s->begun > s->ended && !r->ended ? s->begun_ms + (now_ms - r->heard_ms) : -1;
}

static standing look(const ty_rank_state *ranks, int n_ranks, int stream, int64_t now_ms)
{
    standing all = {.least = UINT64_MAX, .longest = -1};
    for (int i = 0; i < n_ranks; i++) {
        uint64_t begun = ranks[i].page.streams[stream].begun;
        int64_t wait_ms = waited_ms(&ranks[i], stream, now_ms);
        if (begun < all.least) {
            all.least = begun;
            all.slowest = i;
        }
        all.most = begun > all.most ? begun : all.most;
        if (wait_ms > all.wait_ms || (wait_ms >= 0 && all.longest < 0)) {
            all.wait_ms = wait_ms;
            all.longest = i;
        }
    }
    return all;
}

static void add_missing(ty_buf *b, const ty_rank_state *ranks, int rank, const char *const *host_name, int64_t now_ms)
{
    const ty_rank_state *r = &ranks[rank];
    ty_buf_addf(b, "%d (%s", rank, host_name[r->host]);
    if (r->ended)
        ty_buf_adds(b, ", has ended");
    else if (r->stopped)
        ty_buf_addf(b, ", stopped by a signal, phase \"%s\"", ty_phase_name(r->page.phase));
    else if (r->page.phase != TY_PHASE_NONE)
        ty_buf_addf(b, ", phase \"%s\", %lld s", ty_phase_name(r->page.phase),
                    (long long)((r->page.phase_ms + now_ms - r->heard_ms) / 1000));
    if (r->page.step >= 0)
        ty_buf_addf(b, ", step %lld", (long long)r->page.step);
    ty_buf_addc(b, ')');
}

static void tell_stall(const ty_rank_state *ranks, int n_ranks, const char *const *host_name, int64_t now_ms,
                       const standing *all, int stream, bool *arrived, ty_stall *out, ty_buf *b)
{
    const ty_rank_state *waiting = &ranks[all->longest];
    const ty_page_stream_view *s = &waiting->page.streams[stream];
    char size[32];
    format_bytes(s->n_bytes, size);
    ty_buf_addf(b, "stall: %s #%llu (", s->kind[0] ? s->kind : "operation", (unsigned long long)out->number);
    if (waiting->page.step >= 0)
        ty_buf_addf(b, "step %lld, ", (long long)waiting->page.step);
    if (s->bucket >= 0)
        ty_buf_addf(b, "bucket %d ", s->bucket);
    if (s->name[0])
        ty_buf_addf(b, "'%s' ", s->name);
    ty_buf_addf(b, "%s) waits %lld s. ", size, (long long)(all->wait_ms / 1000));
    for (int i = 0; i < n_ranks; i++)
        arrived[i] = ranks[i].page.streams[stream].begun >= out->number && !holds_up(&ranks[i], stream, out->number);
    ty_buf_adds(b, out->first_missing < 0 ? "All ranks have begun it; waiting: " : "Arrived: ");
    for (int i = 0; i < n_ranks && out->first_missing < 0; i++)
        arrived[i] = waited_ms(&ranks[i], stream, now_ms) >= 0;
    add_ranks(b, arrived, n_ranks);
    int told = 0;
    for (int i = 0; i < n_ranks && out->first_missing >= 0; i++) {
        if (arrived[i] || told++ > 2)
            continue;
        ty_buf_adds(b, told == 1 ? ". Missing: " : ", ");
        add_missing(b, ranks, i, host_name, now_ms);
    }
    if (told > 3)
        ty_buf_addf(b, " and %d more", told - 3);
    ty_buf_addc(b, '.');
}

static void tell_end_of_data(const ty_rank_state *ranks, const ty_stall *stall, ty_buf *b)
{
    const ty_rank_state *r = &ranks[stall->first_missing];
    if (!r->ended && r->page.phase != TY_PHASE_FINISHED)
        return;
    ty_buf_addf(b,
                " Rank %d finished its data after step %lld, the others continue: use drop_remainder, join, or equal "
                "shards.",
                stall->first_missing, (long long)r->page.step);
}

static int first_missing(const ty_rank_state *ranks, int n_ranks, const standing *all, int stream, uint64_t number)
{
    for (int i = 0; i < n_ranks; i++)
        if (holds_up(&ranks[i], stream, number))
            return i;
    return all->least < all->most ? all->slowest : -1;
}

bool ty_watch_stall(const ty_rank_state *ranks, int n_ranks, const char *const *host_name, int64_t now_ms,
                    int64_t min_ms, ty_stall *out)
{
    standing worst = {.longest = -1, .wait_ms = min_ms - 1};
    for (int s = 0; s < TY_PAGE_STREAMS && n_ranks > 0; s++) {
        standing all = look(ranks, n_ranks, s, now_ms);
        if (all.longest >= 0 && all.wait_ms > worst.wait_ms) {
            worst = all;
            out->stream = s;
        }
    }
    if (worst.longest < 0)
        return false;
    ty_arena arena;
    ty_arena_init(&arena);
    out->wait_ms = worst.wait_ms;
    out->number = worst.least < worst.most ? worst.least + 1 : worst.most;
    out->first_missing = first_missing(ranks, n_ranks, &worst, out->stream, out->number);
    ty_buf b;
    ty_buf_init(&b, sizeof out->text - 1);
    tell_stall(ranks, n_ranks, host_name, now_ms, &worst, out->stream, TY_NEW_ARRAY(&arena, bool, n_ranks), out, &b);
    if (out->first_missing >= 0)
        tell_end_of_data(ranks, out, &b);
    snprintf(out->text, sizeof out->text, "%s", b.data);
    ty_buf_fini(&b);
    ty_arena_fini(&arena);
    return true;
}
