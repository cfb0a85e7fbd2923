/* carry.h - calls that all ranks agree on, carried out by the comm. */
#ifndef TY_DIST_API_CARRY_H
#define TY_DIST_API_CARRY_H

#include "dist/api/channel.h"

/* plan: the word of a rank that calls; channel->words are those of all. call NULL: this rank has joined and takes part
 * with nothing. Returns a code and fills *err; a failure of the comm is noted in channel->lost too. */
int ty_carry(ty_channel *channel, const ty_word *plan, ty_call *call, ty_error *err);

/* One collective of the comm. */
int ty_carry_collective(ty_channel *channel, const ty_collective *what, ty_error *err);

const char *ty_carry_text(ty_call_kind kind); /* "allreduce" */
bool ty_carry_may_lack(ty_call_kind kind);    /* goes on without ranks that have joined */

#endif
