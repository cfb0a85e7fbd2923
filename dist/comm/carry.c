/* carry.c - a collective is cut into pieces, and pieces go through stages. Two pieces are under way where the engine
 * is polled; where the thread has a core to itself it is one, in calls that block, which MPI carries out fastest. */
#include "dist/comm/comm_state.h"

#include <time.h>

/* Looks before the first sleep, and the sleeps: short enough to feed the network, long enough to leave the core. */
enum { QUICK_LOOKS = 20, SLEEP_MIN_US = 20, SLEEP_MAX_US = 100 };

/* Between two looks at calls under way. */
static void pause_between_looks(int look)
{
    if (look < QUICK_LOOKS)
        return;
    int us = SLEEP_MIN_US + (look - QUICK_LOOKS);
    struct timespec t = {0, 1000L * (us < SLEEP_MAX_US ? us : SLEEP_MAX_US)};
    nanosleep(&t, NULL);
}

static bool may_block(const ty_comm *c)
{
    return c->own_core || !c->engine->spins;
}

int ty_comm_call(ty_comm *c, ty_engine_group *g, const ty_engine_call *call, ty_error *err)
{
    if (may_block(c))
        return c->engine->run(g, call, err);
    if (c->engine->start(g, call, err) < 0)
        return -1;
    bool done = false;
    for (int look = 0; !done; look++) {
        if (c->engine->test(g, &done, err) < 0)
            return -1;
        if (!done)
            pause_between_looks(look);
    }
    return 0;
}

/* Takes the piece on until a call is under way. In blocking mode calls are carried out here, so that the piece has
 * ended when this returns. */
static int advance(const comm_journey *j, comm_slot *slot, ty_error *err)
{
    while (j->stages[slot->stage].enter) {
        ty_engine_call call = {0};
        if (!j->stages[slot->stage++].enter(j, slot, &call))
            continue;
        if (!may_block(j->c))
            return j->c->engine->start(slot->group, &call, err);
        if (j->c->engine->run(slot->group, &call, err) < 0)
            return -1;
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

static int travel(const comm_journey *j, ty_error *err)
{
    ty_comm *c = j->c;
    int64_t next[COMM_SLOTS];
    int n_slots = may_block(c) ? 1 : COMM_SLOTS;
    bool open = j->n_pieces > 0;
    for (int s = 0; s < n_slots; s++)
        next[s] = s;
    for (int look = 0; open; look++) {
        bool moved = false;
        open = false;
        for (int s = 0; s < n_slots; s++) {
            if (tend(j, &c->slot[s], &next[s], n_slots, &moved, err) < 0)
                return -1;
            open = open || c->slot[s].busy || next[s] < j->n_pieces;
        }
        if (moved)
            look = 0;
        else
            pause_between_looks(look);
    }
    return 0;
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
