#include "dist/api/carry.h"

#include "dist/api/carry_kinds.h"
#include "dist/api/view.h"

#include <stdlib.h>
#include <string.h>

/* Words that were exchanged are all of a barrier. */
static int carry_nothing(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err)
{
    (void)c, (void)plan, (void)call, (void)err;
    return TRAINYARD_OK;
}

static int carry_work(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err)
{
    (void)plan;
    return call->work(c, call, err);
}

/* Callers go on by themselves, bucket by bucket; a rank that has joined goes through all of them here. */
static int carry_step(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err)
{
    (void)plan;
    return call || !c->take_part ? TRAINYARD_OK : c->take_part(c, err);
}

static const struct carry_kind {
    const char *text;
    bool may_lack; /* ranks that have joined */
    int (*carry)(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err);
} kinds[TY_N_CALLS] = {
    [TY_CALL_ALLREDUCE] = {"allreduce", true, ty_carry_allreduce},
    [TY_CALL_ALLGATHER] = {"allgather", true, ty_carry_allgather},
    [TY_CALL_REDUCESCATTER] = {"reducescatter", true, ty_carry_reducescatter},
    [TY_CALL_ALLTOALL] = {"alltoall", false, ty_carry_alltoall},
    [TY_CALL_BROADCAST] = {"broadcast", true, ty_carry_broadcast},
    [TY_CALL_BARRIER] = {"barrier", true, carry_nothing},
    [TY_CALL_READ] = {"read", false, carry_work},
    [TY_CALL_WRITE] = {"write", true, ty_carry_write},
    [TY_CALL_SET] = {"process_set", false, carry_work},
    [TY_CALL_UNSET] = {"process_set_free", false, carry_work},
    [TY_CALL_GRADIENTS] = {"gradients_new", false, carry_work},
    [TY_CALL_FORGET] = {"gradients_free", false, carry_work},
    [TY_CALL_STEP] = {"gradients", true, carry_step},
    [TY_CALL_BUCKET] = {"gradients", false, carry_work},
    [TY_CALL_JOIN] = {"join", true, NULL},
    [TY_CALL_LEAVE] = {"shutdown", true, NULL},
};

int ty_carry(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err)
{
    int32_t kind = plan ? plan->kind : (int32_t)call->kind;
    if (kind < 0 || kind >= TY_N_CALLS || !kinds[kind].carry)
        return ty_fault(err, TRAINYARD_E_LOST, "another rank sent a word of kind %d, which is none", kind);
    return kinds[kind].carry(c, plan, call, err);
}

const char *ty_carry_text(ty_call_kind kind)
{
    return kind < TY_N_CALLS ? kinds[kind].text : "?";
}

bool ty_carry_may_lack(ty_call_kind kind)
{
    return kind < TY_N_CALLS && kinds[kind].may_lack;
}

int ty_carry_collective(ty_channel *c, const ty_collective *what, ty_error *err)
{
    if (ty_comm_run(c->comm, what, err) == 0)
        return TRAINYARD_OK;
    if (err)
        c->lost = *err;
    return TRAINYARD_E_LOST;
}

ty_reduce ty_carry_reduce(int op)
{
    static const ty_reduce reduces[] = {
        [TRAINYARD_AVERAGE] = TY_REDUCE_AVERAGE, [TRAINYARD_SUM] = TY_REDUCE_SUM,
        [TRAINYARD_MIN] = TY_REDUCE_MIN,         [TRAINYARD_MAX] = TY_REDUCE_MAX,
        [TRAINYARD_PRODUCT] = TY_REDUCE_PRODUCT,
    };
    return reduces[op];
}

ty_wire ty_carry_wire(int compression)
{
    static const ty_wire wires[] = {[TRAINYARD_COMPRESS_NONE] = TY_WIRE_AS_IS,
                                    [TRAINYARD_COMPRESS_FP16] = TY_WIRE_F16,
                                    [TRAINYARD_COMPRESS_BF16] = TY_WIRE_BF16};
    return wires[compression];
}

int ty_carry_no_memory(ty_channel *c, int64_t n_bytes, ty_error *err)
{
    ty_fault(err, TRAINYARD_E_MEMORY, "no memory: %lld bytes", (long long)n_bytes);
    c->lost = *err;
    return TRAINYARD_E_MEMORY;
}

int ty_carry_result(ty_channel *c, ty_call *call, int64_t rows, ty_error *err)
{
    trainyard_tensor *to = call->result;
    void *data = to->data;
    *to = *call->in;
    to->ndim = to->ndim ? to->ndim : 1;
    to->shape[0] = rows;
    to->data = data ? data : malloc(ty_view_bytes(to) + 1);
    return to->data ? TRAINYARD_OK : ty_carry_no_memory(c, (int64_t)ty_view_bytes(to), err);
}

int ty_carry_room(const ty_channel *c, const int64_t *rows, ty_error *err)
{
    for (int r = 0; r < c->size; r++)
        if (c->words[r].state == TY_WORD_CALLS && c->words[r].room >= 0 && c->words[r].room < rows[r])
            return ty_fault(err, TRAINYARD_E_ARGUMENT, "rank %d: out has room for %lld rows, %lld come", c->ranks[r],
                            (long long)c->words[r].room, (long long)rows[r]);
    return TRAINYARD_OK;
}
