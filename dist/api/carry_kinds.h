/* carry_kinds.h - the functions behind the rows of carry.c. As ty_carry, which checks and dispatches. */
#ifndef TY_DIST_API_CARRY_KINDS_H
#define TY_DIST_API_CARRY_KINDS_H

#include "dist/api/carry.h"

int ty_carry_allreduce(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err);
int ty_carry_reducescatter(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err);
int ty_carry_allgather(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err);
int ty_carry_alltoall(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err);
int ty_carry_broadcast(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err);
int ty_carry_write(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err);

/* TRAINYARD_E_MEMORY; the channel is lost, since the others are under way without this rank. */
int ty_carry_no_memory(ty_channel *c, int64_t n_bytes, ty_error *err);
/* Makes call->result ready for so many rows of the call's tensor: shape, and memory where there is none. */
int ty_carry_result(ty_channel *c, ty_call *call, int64_t rows, ty_error *err);
/* Fails on all ranks if one has no room for the rows that it gets. rows[size]. */
int ty_carry_room(const ty_channel *c, const int64_t *rows, ty_error *err);
/* The comm's words for ours. */
ty_reduce ty_carry_reduce(int op);
ty_wire ty_carry_wire(int compression);

#endif
