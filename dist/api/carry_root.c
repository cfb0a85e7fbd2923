/* What one rank has for all. */
#include "dist/api/carry_kinds.h"
#include "dist/api/record.h"
#include "dist/api/view.h"

#include <stdio.h>
#include <string.h>

static int broadcast_bytes(ty_channel *c, const char *name, void *bytes, int64_t n, int root, ty_error *err)
{
    ty_collective what = {
        .kind = TY_BROADCAST, .name = name, .dtype = TY_U8, .in = bytes, .out = bytes, .n = n, .root = root};
    return ty_carry_collective(c, &what, err);
}

/* One tensor goes from where it lies to where it lies, several in one piece of memory. */
int ty_carry_broadcast(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err)
{
    const char *name = call && call->name[0] ? call->name : NULL;
    if (plan->n_bytes == 0)
        return TRAINYARD_OK;
    if (call && call->n == 1)
        return broadcast_bytes(c, name, call->in->data, plan->n_bytes, plan->root, err);
    char *memory = ty_channel_scratch(c, (size_t)plan->n_bytes), *at = memory;
    if (!memory)
        return ty_carry_no_memory(c, plan->n_bytes, err);
    for (int i = 0; call && c->rank == plan->root && i < call->n; at += ty_view_bytes(&call->in[i++]))
        if (ty_view_bytes(&call->in[i]))
            memcpy(at, call->in[i].data, ty_view_bytes(&call->in[i]));
    int code = broadcast_bytes(c, name, memory, plan->n_bytes, plan->root, err);
    at = memory;
    for (int i = 0; call && code == TRAINYARD_OK && i < call->n; at += ty_view_bytes(&call->in[i++]))
        if (ty_view_bytes(&call->in[i]))
            memcpy(call->in[i].data, at, ty_view_bytes(&call->in[i]));
    return code;
}

/* Rank 0 writes, and tells what came of it. */
int ty_carry_write(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err)
{
    struct {
        int32_t code;
        char message[TY_ERROR_MESSAGE_BYTES];
    } told = {0};
    (void)plan;
    if (c->joined[0])
        return ty_fault(err, TRAINYARD_E_MISMATCH, "write: rank 0, which writes, has joined");
    if (c->rank == 0 && call) {
        ty_error failed = {0};
        told.code = ty_record_write(call->with, &failed);
        snprintf(told.message, sizeof told.message, "%s", failed.message);
    }
    int code = broadcast_bytes(c, "written", &told, sizeof told, 0, err);
    if (code != TRAINYARD_OK || told.code == TRAINYARD_OK)
        return code;
    return ty_fault(err, told.code, "rank %d: %.*s", c->ranks[0], (int)sizeof told.message, told.message);
}
