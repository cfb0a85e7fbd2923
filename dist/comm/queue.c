/* queue.c - what was begun, in order, until it was waited for. A thread of the comm carries it out; it starts with the
 * first ty_comm_begin. ty_comm_run does without it where nothing is ahead: `carrying` says that one of the two is in
 * the engine. Ranks may differ in who carries a collective out; the order is the same. */
#include "dist/comm/comm_state.h"

#include "base/clock.h"
#include "dist/page.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* --- the list; the lock is held --- */

static comm_op *op_new(ty_comm *c)
{
    comm_op *op = c->spare;
    if (op)
        c->spare = op->next;
    else
        op = malloc(sizeof *op);
    return op;
}

static comm_op *op_append(ty_comm *c, const ty_collective *what)
{
    comm_op *op = op_new(c);
    if (!op)
        return NULL;
    op->next = NULL;
    op->ticket = ++c->last_ticket;
    op->done = false;
    op->err.code = TY_E_NONE;
    op->begun_ns = ty_clock_ns();
    op->what = *what;
    snprintf(op->name, sizeof op->name, "%s", what->name ? what->name : ty_collective_text(what->kind));
    op->what.name = op->name;
    *c->end = op;
    c->end = &op->next;
    return op;
}

static void op_remove(ty_comm *c, comm_op *op)
{
    comm_op **p = &c->ops;
    while (*p != op)
        p = &(*p)->next;
    *p = op->next;
    if (!*p)
        c->end = p;
    op->next = c->spare;
    c->spare = op;
}

static comm_op *op_find(const ty_comm *c, uint64_t ticket)
{
    comm_op *op = c->ops;
    while (op && op->ticket != ticket)
        op = op->next;
    return op;
}

static comm_op *op_first_open(const ty_comm *c)
{
    comm_op *op = c->ops;
    while (op && op->done)
        op = op->next;
    return op;
}

/* --- carrying out --- */

/* The lock is held on entry and on return, not in between. */
static void sleep_until_changed(ty_comm *c)
{
    unsigned seen = comm_event_now(&c->changed);
    pthread_mutex_unlock(&c->lock);
    comm_event_wait(&c->changed, seen);
    pthread_mutex_lock(&c->lock);
}

static int64_t bytes_of(const ty_collective *w)
{
    return w->kind == TY_BARRIER ? 0 : w->n * (int64_t)ty_dtype_bytes(w->dtype);
}

/* The lock is not held. Says on the page what is being done, for whoever looks while it hangs. */
static int carry_watched(ty_comm *c, comm_op *op)
{
    const ty_collective *w = &op->what;
    int64_t start = ty_clock_ns();
    ty_page_begin(c->options.page, c->options.stream, op->ticket, ty_collective_text(w->kind), op->name, w->bucket - 1,
                  bytes_of(w));
    int rc = ty_comm_carry(c, w, &op->err);
    if (rc < 0)
        ty_page_error(c->options.page, op->err.message);
    ty_page_end(c->options.page, c->options.stream);
    op->took_ns = ty_clock_ns() - start;
    ty_timeline_carried(c->timeline, c->options.stream,
                        &(ty_timeline_call){.what = w,
                                            .bytes = bytes_of(w),
                                            .begun_ns = op->begun_ns,
                                            .start_ns = start,
                                            .end_ns = start + op->took_ns});
    return rc;
}

/* The lock is held on entry and on return, not in between. */
static void carry_op(ty_comm *c, comm_op *op)
{
    c->carrying = true;
    if (c->failed.code != TY_E_NONE) {
        op->err = c->failed;
    } else {
        pthread_mutex_unlock(&c->lock);
        int rc = carry_watched(c, op);
        pthread_mutex_lock(&c->lock);
        c->stats.n_calls++;
        c->stats.n_bytes += bytes_of(&op->what);
        c->stats.busy_ns += op->took_ns;
        if (rc < 0 && c->failed.code == TY_E_NONE)
            c->failed = op->err;
    }
    c->carrying = false;
    op->done = true;
    comm_event_raise(&c->changed);
}

static void *comm_thread(void *p)
{
    ty_comm *c = p;
    prctl(PR_SET_NAME, "ty-comm");
    pthread_mutex_lock(&c->lock);
    for (;;) {
        comm_op *op = c->carrying ? NULL : op_first_open(c);
        if (op)
            carry_op(c, op);
        else if (c->closing)
            break;
        else
            sleep_until_changed(c);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static int start_thread(ty_comm *c, ty_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&c->thread, NULL, comm_thread, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    c->has_thread = rc == 0;
    return rc == 0 ? 0 : ty_error_errno(err, TY_E_LIMIT, rc, "no thread for communication");
}

/* The lock is held. */
static int begin(ty_comm *c, const ty_collective *what, comm_op **op, ty_error *err)
{
    *op = NULL;
    if (c->failed.code != TY_E_NONE) {
        if (err)
            *err = c->failed;
        return -1;
    }
    return (*op = op_append(c, what)) ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for a collective");
}

int ty_comm_begin(ty_comm *c, const ty_collective *what, uint64_t *ticket, ty_error *err)
{
    comm_op *op;
    if (ty_comm_check(c, what, err) < 0)
        return ty_error_wrap(err, "dist");
    pthread_mutex_lock(&c->lock);
    int rc = c->has_thread || c->size == 1 ? 0 : start_thread(c, err);
    if (rc == 0)
        rc = begin(c, what, &op, err);
    if (rc == 0) {
        *ticket = op->ticket;
        if (c->has_thread)
            comm_event_raise(&c->changed);
        else
            carry_op(c, op); /* alone: there is nothing to wait for */
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

/* The lock is held. Hands the result over and forgets the operation. */
static int take_result(ty_comm *c, comm_op *op, ty_error *err)
{
    int rc = op->err.code == TY_E_NONE ? 0 : -1;
    if (rc < 0 && err)
        *err = op->err;
    op_remove(c, op);
    return rc;
}

int ty_comm_wait(ty_comm *c, uint64_t ticket, ty_error *err)
{
    char name[sizeof((comm_op *)NULL)->name] = "";
    pthread_mutex_lock(&c->lock);
    comm_op *op = op_find(c, ticket);
    int64_t end = 0, start = op && !op->done ? ty_clock_ns() : 0;
    atomic_fetch_add(&c->n_waiting, 1);
    while (op && !op->done)
        sleep_until_changed(c);
    atomic_fetch_sub(&c->n_waiting, 1);
    if (start) {
        end = ty_clock_ns();
        c->stats.waited_ns += end - start;
        memcpy(name, op->name, sizeof name);
    }
    int rc = op ? take_result(c, op, err)
                : ty_error_set(err, TY_E_INTERNAL, "dist: ticket %llu was waited for before, or never given",
                               (unsigned long long)ticket);
    pthread_mutex_unlock(&c->lock);
    if (start)
        ty_timeline_waited(c->timeline, c->options.stream, name, start, end);
    return rc;
}

bool ty_comm_test(ty_comm *c, uint64_t ticket)
{
    pthread_mutex_lock(&c->lock);
    comm_op *op = op_find(c, ticket);
    bool done = !op || op->done;
    pthread_mutex_unlock(&c->lock);
    return done;
}

int ty_comm_run(ty_comm *c, const ty_collective *what, ty_error *err)
{
    comm_op *op;
    if (ty_comm_check(c, what, err) < 0)
        return ty_error_wrap(err, "dist");
    pthread_mutex_lock(&c->lock);
    int64_t start = ty_clock_ns();
    int rc = begin(c, what, &op, err);
    atomic_fetch_add(&c->n_waiting, 1);
    while (rc == 0 && !op->done)
        if (!c->carrying && op_first_open(c) == op)
            carry_op(c, op);
        else
            sleep_until_changed(c);
    atomic_fetch_sub(&c->n_waiting, 1);
    if (rc == 0)
        rc = take_result(c, op, err);
    c->stats.waited_ns += ty_clock_ns() - start;
    pthread_mutex_unlock(&c->lock);
    return rc;
}

void ty_comm_get_stats(ty_comm *c, ty_comm_stats *stats)
{
    pthread_mutex_lock(&c->lock);
    *stats = c->stats;
    pthread_mutex_unlock(&c->lock);
}

static void free_list(comm_op *op)
{
    while (op) {
        comm_op *next = op->next;
        free(op);
        op = next;
    }
}

void ty_comm_queue_end(ty_comm *c, bool cleanly)
{
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    for (comm_op *op = c->ops; op && !cleanly; op = op->next)
        op->done = op->done || op != op_first_open(c) || !c->carrying;
    comm_event_raise(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (c->has_thread)
        pthread_join(c->thread, NULL);
    free_list(c->ops);
    free_list(c->spare);
}
