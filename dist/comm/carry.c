/* carry.c - a collective is cut into pieces, and pieces go through stages. Two pieces are under way where the engine
 * goes on by itself: while the parts of one are added up, the other one travels, and a link is used in both directions.
 *
 * Waiting is looking (engine test): first without a break, then with sleeps in between, which leave the core to those
 * who compute. Where a core has nothing else to do it looks on: the comm's thread has one to itself, or who computes
 * waits for us. */
#include "dist/comm/comm_state.h"

#include "base/clock.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

/* Looks without a break, which small sums end within; how long it looks on where a core is free; and the sleeps: short
 * enough to feed the network. A core that is gone for longer than SHARED_NS when it is offered to others is not free.
 */
enum {
    QUICK_NS = 50000,
    LOOK_ON_NS = 2000000,
    SHARED_NS = 200000,
    SLEEP_MIN_US = 20,
    SLEEP_MAX_US = 100,
    SLACK_NS = 1000
};

/* Looks of one thread at calls under way. */
typedef struct looks {
    ty_comm *c;
    int64_t since_ns; /* the first one after something moved; 0: there was none */
    int sleeps;
    int slack;   /* of the thread's timers before the first sleep, in ns; -1: it has not slept */
    bool shared; /* others want this core */
} looks;

static bool has_free_core(const looks *l)
{
    return !l->shared && (l->c->own_core || atomic_load_explicit(&l->c->n_waiting, memory_order_relaxed) > 0);
}

/* The kernel adds 50 us to a sleep of 20 unless it is told that we mean it. */
static void sleep_between_looks(looks *l)
{
    if (l->slack < 0 && (l->slack = prctl(PR_GET_TIMERSLACK)) > SLACK_NS)
        prctl(PR_SET_TIMERSLACK, (unsigned long)SLACK_NS);
    int us = SLEEP_MIN_US + l->sleeps++;
    struct timespec t = {0, 1000L * (us < SLEEP_MAX_US ? us : SLEEP_MAX_US)};
    nanosleep(&t, NULL);
}

static void pause_between_looks(looks *l)
{
    int64_t now = ty_clock_ns();
    if (!l->since_ns)
        l->since_ns = now;
    if (now - l->since_ns < QUICK_NS)
        return;
    if (now - l->since_ns > LOOK_ON_NS || !has_free_core(l)) {
        sleep_between_looks(l);
        return;
    }
    sched_yield();
    l->shared = ty_clock_ns() - now > SHARED_NS;
}

static void something_moved(looks *l)
{
    l->since_ns = 0;
    l->sleeps = 0;
}

static void end_of_looks(const looks *l)
{
    if (l->slack > SLACK_NS)
        prctl(PR_SET_TIMERSLACK, (unsigned long)l->slack);
}

int ty_comm_call(ty_comm *c, ty_engine_group *g, const ty_engine_call *call, ty_error *err)
{
    looks l = {.c = c, .slack = -1};
    int rc = c->engine->start(g, call, err);
    bool done = !c->engine->goes_on;
    while (rc == 0 && !done) {
        rc = c->engine->test(g, &done, err);
        if (!done)
            pause_between_looks(&l);
    }
    end_of_looks(&l);
    return rc;
}

/* Takes the piece on until a call is under way. Where calls do not go on, the piece has ended when this returns. */
static int advance(const comm_journey *j, comm_slot *slot, ty_error *err)
{
    while (j->stages[slot->stage].enter) {
        ty_engine_call call = {0};
        if (!j->stages[slot->stage++].enter(j, slot, &call))
            continue;
        int rc = j->c->engine->start(slot->group, &call, err);
        if (rc < 0 || j->c->engine->goes_on)
            return rc;
    }
    slot->busy = false;
    return 0;
}

/* Looks at one slot: a new piece, or the next stage of the one under way. Which piece goes where is the same on all
 * ranks, whichever slot is free first: a group carries out its calls in order. */
static int tend(const comm_journey *j, comm_slot *slot, int64_t *next, int n_slots, bool *moved, ty_error *err)
{
    bool done = false;
    if (!slot->busy) {
        if (*next >= j->n_pieces)
            return 0;
        ty_comm_take_piece(j, slot, *next);
        *next += n_slots;
        slot->busy = done = true;
    } else if (j->c->engine->test(slot->group, &done, err) < 0) {
        return -1;
    }
    *moved = *moved || done;
    return done ? advance(j, slot, err) : 0;
}

/* Looks at all slots once; *open: there is something left to do. */
static int tend_all(const comm_journey *j, int64_t *next, int n_slots, bool *moved, bool *open, ty_error *err)
{
    *moved = *open = false;
    for (int s = 0; s < n_slots; s++) {
        if (tend(j, &j->c->slot[s], &next[s], n_slots, moved, err) < 0)
            return -1;
        *open = *open || j->c->slot[s].busy || next[s] < j->n_pieces;
    }
    return 0;
}

static int travel(const comm_journey *j, ty_error *err)
{
    int64_t next[COMM_SLOTS];
    int rc = 0, n_slots = j->c->engine->goes_on ? COMM_SLOTS : 1;
    bool open = j->n_pieces > 0, moved;
    looks l = {.c = j->c, .slack = -1};
    for (int s = 0; s < n_slots; s++)
        next[s] = s;
    while (rc == 0 && open) {
        rc = tend_all(j, next, n_slots, &moved, &open, err);
        if (moved)
            something_moved(&l);
        else if (rc == 0 && open)
            pause_between_looks(&l);
    }
    end_of_looks(&l);
    return rc;
}

int ty_comm_carry(ty_comm *c, const ty_collective *what, ty_error *err)
{
    comm_journey j = {0};
    int rc = ty_comm_has_levels(c) ? ty_comm_make_levels(c, err) : 0;
    if (rc == 0)
        rc = ty_comm_plan(c, what, &j, err);
    if (rc == 0)
        rc = travel(&j, err);
    ty_comm_journey_end(&j);
    return rc;
}
