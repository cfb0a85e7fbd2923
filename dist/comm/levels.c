/* levels.c - groups for sums by levels: the ranks of a host, and across hosts those with one local rank. */
#include "dist/comm/comm_state.h"

bool ty_comm_has_levels(const ty_comm *c)
{
    return c->options.hierarchical && !c->options.rank_order && c->even && c->local_size > 1 && c->local_size < c->size;
}

int ty_comm_make_levels(ty_comm *c, ty_error *err)
{
    for (int s = 0; s < COMM_SLOTS; s++) {
        comm_slot *slot = &c->slot[s];
        if (!slot->local && c->engine->split(slot->all, c->host, c->rank, &slot->local, err) < 0)
            return -1;
        if (!slot->cross && c->engine->split(slot->all, c->local_rank, c->rank, &slot->cross, err) < 0)
            return -1;
    }
    return 0;
}
