/* company.c - see company.h. */
#include "entrypoint/company.h"

#include "base/clock.h"
#include "entrypoint/doing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One that is under way, and its answer. */
typedef struct company_question {
    int32_t asked, answer;
    uint64_t ticket;
    bool is_asked;
} company_question;

struct ty_company {
    ty_comm *tapes, *session;
    ty_wire wire;
    ty_exchange exchange;
    const ty_exchange_call *calls; /* [n_calls] */
    uint64_t *tickets;             /* [n_calls] */
    int n_calls;
    int64_t waited_us;
    company_question stop, step;
    int ranks_a_host; /* 0: not the same everywhere */
    int host, hosts;
};

/* ---- what tapes exchange ---- */

static const ty_collective_kind company_kinds[TY_N_EXCHANGE_KINDS] = {
    [TY_EXCHANGE_SUM] = TY_ALL_REDUCE, [TY_EXCHANGE_GATHER] = TY_ALL_GATHER, [TY_EXCHANGE_PART] = TY_REDUCE_SCATTER};

enum { COMPANY_FEW_BYTES = 32 << 10 };

/* Counts, losses and statistics, which a step waits for, do not stand in line behind gradients, however few: those of
 * the step before may still be on their way when forward begins. Both comms see the same calls in the same order on all
 * ranks. */
static ty_comm *company_comm(const ty_company *c, int call)
{
    const ty_exchange_call *x = &c->calls[call];
    bool few = x->elems * (int64_t)ty_dtype_bytes(x->dtype) <= COMPANY_FEW_BYTES;
    return few && !x->gradients ? c->session : c->tapes;
}

static int company_begin(void *ctx, int call, const void *in, void *out, ty_error *err)
{
    ty_company *c = ctx;
    const ty_exchange_call *x = &c->calls[call];
    bool sums = x->kind != TY_EXCHANGE_GATHER;
    ty_collective what = {.kind = company_kinds[x->kind],
                          .name = x->name,
                          .dtype = x->dtype,
                          .reduce = TY_REDUCE_SUM,
                          .wire = x->gradients && x->dtype == TY_F32 && sums ? c->wire : TY_WIRE_AS_IS,
                          .in = in,
                          .out = out,
                          .n = x->elems};
    return ty_comm_begin(company_comm(c, call), &what, &c->tickets[call], err);
}

static int company_wait(void *ctx, int call, ty_error *err)
{
    ty_company *c = ctx;
    int64_t start = ty_clock_us();
    int rc = ty_comm_wait(company_comm(c, call), c->tickets[call], err);
    if (c->calls[call].run == TY_RUN_MICRO || c->calls[call].run == TY_RUN_LAST)
        c->waited_us += ty_clock_us() - start;
    return rc;
}

/* What is wrong is a code: the least of all codes is everybody's, so that all do the same about it. */
static int company_meet_gpus(void *ctx, bool ready, void *bytes, size_t n_bytes, ty_error *err)
{
    ty_company *c = ctx;
    int64_t code = ready ? INT64_MAX : (int64_t)err->code;
    if (ty_company_worst(c, "GPUs are ready", &code, err) < 0 || code < INT64_MAX)
        return -1;
    int rc = ty_company_share(c, "what GPUs find each other by", bytes, n_bytes, err);
    if (rc == 0)
        ty_doing_waits("connecting GPUs"); /* which NCCL does next; who asked for it tells the end */
    return rc;
}

const ty_exchange *ty_company_exchange(ty_company *c)
{
    return c ? &c->exchange : NULL;
}

void ty_company_expect(ty_company *c, const ty_exchange_call *calls, int n)
{
    if (!c)
        return;
    free(c->tickets);
    c->tickets = calloc((size_t)n + 1, sizeof *c->tickets);
    c->calls = calls;
    c->n_calls = c->tickets ? n : 0;
}

double ty_company_waited_s(const ty_company *c)
{
    return c ? (double)c->waited_us / 1e6 : 0;
}

/* ---- life ---- */

/* A host's first rank is its local rank 0. */
static int company_find_hosts(ty_company *c, ty_error *err)
{
    struct place {
        int32_t local, locals;
    } mine = {ty_comm_local_rank(c->tapes), ty_comm_local_size(c->tapes)}, *all;
    int n = ty_company_size(c), me = ty_company_rank(c);
    all = calloc((size_t)n, sizeof *all);
    if (!all)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the places of %d ranks", n);
    int rc = ty_company_gather(c, "ranks of a host", &mine, sizeof mine, all, err);
    c->ranks_a_host = mine.locals;
    for (int i = 0; i < n && rc == 0; i++) {
        if (all[i].locals != mine.locals)
            c->ranks_a_host = 0;
        c->hosts += all[i].local == 0;
        c->host += all[i].local == 0 && i <= me - mine.local && i > 0;
    }
    free(all);
    return rc;
}

int ty_company_of(ty_comm *comm, ty_wire wire, ty_company **out, ty_error *err)
{
    ty_company *c = calloc(1, sizeof *c);
    if (!c) {
        ty_comm_close(comm, false);
        return ty_error_set(err, TY_E_LIMIT, "out of memory");
    }
    *c = (ty_company){.tapes = comm, .wire = wire};
    c->exchange = (ty_exchange){.ctx = c,
                                .replica = ty_comm_rank(comm),
                                .begin = company_begin,
                                .wait = company_wait,
                                .meet = company_meet_gpus};
    if (ty_comm_dup(comm, &c->session, err) < 0 || company_find_hosts(c, err) < 0) {
        ty_company_free(c, false);
        return -1;
    }
    *out = c;
    return 0;
}

void ty_company_free(ty_company *c, bool cleanly)
{
    if (!c)
        return;
    ty_error ignored = {0};
    if (cleanly && c->stop.is_asked)
        ty_comm_wait(c->session, c->stop.ticket, &ignored);
    if (cleanly && c->step.is_asked)
        ty_comm_wait(c->session, c->step.ticket, &ignored);
    ty_comm_close(c->session, cleanly);
    ty_comm_close(c->tapes, cleanly);
    free(c->tickets);
    free(c);
}

/* ---- who we are ---- */

int ty_company_rank(const ty_company *c)
{
    return c ? ty_comm_rank(c->tapes) : 0;
}

int ty_company_size(const ty_company *c)
{
    return c ? ty_comm_size(c->tapes) : 1;
}

int ty_company_local_rank(const ty_company *c)
{
    return c ? ty_comm_local_rank(c->tapes) : 0;
}

int ty_company_local_size(const ty_company *c)
{
    return c ? ty_comm_local_size(c->tapes) : 1;
}

int ty_company_ranks_a_host(const ty_company *c)
{
    return c ? c->ranks_a_host : 1;
}

int ty_company_host(const ty_company *c)
{
    return c ? c->host : 0;
}

int ty_company_hosts(const ty_company *c)
{
    return c ? c->hosts : 1;
}

bool ty_company_leads(const ty_company *c)
{
    return ty_company_rank(c) == 0;
}

/* ---- questions ---- */

static int company_number(ty_company *c, const char *name, ty_reduce reduce, int64_t *v, ty_error *err)
{
    if (!c)
        return 0;
    ty_collective what = {
        .kind = TY_ALL_REDUCE, .name = name, .dtype = TY_I64, .reduce = reduce, .in = v, .out = v, .n = 1};
    return ty_comm_run(c->session, &what, err);
}

int ty_company_least(ty_company *c, const char *name, int64_t *v, ty_error *err)
{
    return company_number(c, name, TY_REDUCE_MIN, v, err);
}

int ty_company_most(ty_company *c, const char *name, int64_t *v, ty_error *err)
{
    return company_number(c, name, TY_REDUCE_MAX, v, err);
}

int ty_company_total(ty_company *c, const char *name, int64_t *v, ty_error *err)
{
    return company_number(c, name, TY_REDUCE_SUM, v, err);
}

typedef struct company_word {
    int64_t v;
    int32_t code;
    uint64_t which;
    char text[400];
} company_word;

int ty_company_worst(ty_company *c, const char *name, int64_t *v, ty_error *err)
{
    company_word mine = {.v = *v, .code = (int32_t)err->code, .which = err->which};
    ty_error lost = {0};
    int n = ty_company_size(c), worst = ty_company_rank(c);
    company_word *all = calloc((size_t)n, sizeof *all);
    if (!all)
        return ty_error_set(err, TY_E_LIMIT, "%s: no memory for the words of %d ranks", name, n);
    snprintf(mine.text, sizeof mine.text, "%.399s", err->message);
    int rc = ty_company_gather(c, name, &mine, sizeof mine, all, &lost);
    for (int i = 0; i < n && rc == 0; i++)
        worst = all[i].v < all[worst].v ? i : worst;
    if (rc < 0) {
        *err = lost;
    } else if (all[worst].v < *v) {
        *v = all[worst].v;
        *err = (ty_error){0};
        ty_error_set(err, (ty_code)all[worst].code, "rank %d: %s", worst, all[worst].text);
    }
    for (int i = 0; i < n && rc == 0; i++)
        err->which |= all[i].v == *v ? all[i].which : 0;
    free(all);
    return rc;
}

int ty_company_share(ty_company *c, const char *name, void *bytes, size_t n_bytes, ty_error *err)
{
    return ty_company_share_of(c, 0, name, bytes, n_bytes, err);
}

int ty_company_share_of(ty_company *c, int rank, const char *name, void *bytes, size_t n_bytes, ty_error *err)
{
    if (!c || n_bytes == 0)
        return 0;
    ty_collective what = {.kind = TY_BROADCAST,
                          .name = name,
                          .dtype = TY_U8,
                          .in = bytes,
                          .out = bytes,
                          .n = (int64_t)n_bytes,
                          .root = rank};
    return ty_comm_run(c->session, &what, err);
}

int ty_company_gather(ty_company *c, const char *name, const void *mine, size_t n_bytes, void *all, ty_error *err)
{
    ty_collective what = {
        .kind = TY_ALL_GATHER, .name = name, .dtype = TY_U8, .in = mine, .out = all, .n = (int64_t)n_bytes};
    if (c)
        return ty_comm_run(c->session, &what, err);
    memcpy(all, mine, n_bytes);
    return 0;
}

int ty_company_compare(ty_company *c, const char *what, const char *text, ty_error *err)
{
    return c ? ty_comm_compare(c->session, what, text, err) : 0;
}

int ty_company_meet(ty_company *c, const char *name, ty_error *err)
{
    ty_collective what = {.kind = TY_BARRIER, .name = name};
    return c ? ty_comm_run(c->session, &what, err) : 0;
}

static int company_ask(ty_company *c, company_question *q, const char *name, ty_reduce reduce, int mine, ty_error *err)
{
    q->asked = mine;
    ty_collective what = {.kind = TY_ALL_REDUCE,
                          .name = name,
                          .dtype = TY_I32,
                          .reduce = reduce,
                          .in = &q->asked,
                          .out = &q->answer,
                          .n = 1};
    if (ty_comm_begin(c->session, &what, &q->ticket, err) < 0)
        return -1;
    q->is_asked = true;
    return 0;
}

static int company_answer(ty_company *c, company_question *q, int *all, ty_error *err)
{
    if (!q->is_asked)
        return 0;
    q->is_asked = false;
    if (ty_comm_wait(c->session, q->ticket, err) < 0)
        return -1;
    *all = q->answer;
    return 0;
}

int ty_company_stopping(ty_company *c, int mine, int *all, ty_error *err)
{
    *all = mine;
    if (!c)
        return 0;
    *all = 0;
    return company_answer(c, &c->stop, all, err) < 0 ? -1 : company_ask(c, &c->stop, "stop", TY_REDUCE_MAX, mine, err);
}

int ty_company_ask(ty_company *c, const char *name, bool most, int mine, ty_error *err)
{
    return c ? company_ask(c, &c->step, name, most ? TY_REDUCE_MAX : TY_REDUCE_MIN, mine, err) : 0;
}

int ty_company_answer(ty_company *c, int *all, ty_error *err)
{
    return c ? company_answer(c, &c->step, all, err) : 0;
}
