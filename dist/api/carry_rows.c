/* Gathers and exchanges of rows: how many there are is known when ranks have told each other. */
#include "dist/api/carry_kinds.h"
#include "dist/api/view.h"

int ty_carry_allgather(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err)
{
    int64_t *counts = c->counts, *totals = c->counts + c->size, total = 0;
    for (int r = 0; r < c->size; r++) {
        int64_t rows = c->words[r].state == TY_WORD_CALLS ? c->words[r].rows : 0;
        counts[r] = rows * plan->row_elems;
        total += rows;
    }
    for (int r = 0; r < c->size; r++)
        totals[r] = total;
    int code = ty_carry_room(c, totals, err);
    if (code == TRAINYARD_OK && call)
        code = ty_carry_result(c, call, total, err);
    if (code != TRAINYARD_OK)
        return code;
    ty_dtype dtype = (ty_dtype)plan->dtype;
    void *out =
        call ? call->result->data : ty_channel_scratch(c, (size_t)(total * plan->row_elems) * ty_dtype_bytes(dtype));
    if (!out)
        return ty_carry_no_memory(c, total * plan->row_elems, err);
    ty_collective gather = {.kind = TY_ALL_GATHER,
                            .name = call && call->name[0] ? call->name : NULL,
                            .dtype = dtype,
                            .in = call && call->in->data ? call->in->data : out,
                            .out = out,
                            .n = counts[c->rank],
                            .counts = counts};
    return ty_carry_collective(c, &gather, err);
}

/* Rows to each rank, as told or even; and from each. */
static int exchange_splits(ty_channel *c, const ty_call *call, int64_t *to, int64_t *from, ty_error *err)
{
    for (int r = 0; r < c->size; r++)
        to[r] = call->splits ? call->splits[r] : ty_view_rows(call->in) / c->size;
    ty_collective swap = {
        .kind = TY_ALL_TO_ALL, .name = "splits", .dtype = TY_I64, .in = to, .out = from, .n = c->size};
    return ty_carry_collective(c, &swap, err);
}

/* Some ranks brought memory of their own: all learn whether it suffices. */
static int check_room(ty_channel *c, int64_t mine, int64_t *totals, ty_error *err)
{
    bool some = false;
    for (int r = 0; r < c->size; r++)
        some |= c->words[r].room >= 0;
    if (!some)
        return TRAINYARD_OK;
    ty_collective gather = {.kind = TY_ALL_GATHER, .name = "rows", .dtype = TY_I64, .in = &mine, .out = totals, .n = 1};
    int code = ty_carry_collective(c, &gather, err);
    return code == TRAINYARD_OK ? ty_carry_room(c, totals, err) : code;
}

int ty_carry_alltoall(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err)
{
    int64_t *to = c->counts, *from = to + c->size, *totals = from + c->size, total = 0;
    int code = exchange_splits(c, call, to, from, err);
    if (code != TRAINYARD_OK)
        return code;
    for (int r = 0; r < c->size; r++) {
        if (call->received)
            call->received[r] = from[r];
        total += from[r];
        from[r] *= plan->row_elems;
        to[r] *= plan->row_elems;
    }
    code = check_room(c, total, totals, err);
    if (code == TRAINYARD_OK)
        code = ty_carry_result(c, call, total, err);
    if (code != TRAINYARD_OK)
        return code;
    ty_collective swap = {.kind = TY_ALL_TO_ALL,
                          .name = call->name[0] ? call->name : NULL,
                          .dtype = (ty_dtype)plan->dtype,
                          .in = call->in->data ? call->in->data : "",
                          .out = call->result->data,
                          .n = ty_view_elems(call->in),
                          .counts = to,
                          .from_counts = from};
    return ty_carry_collective(c, &swap, err);
}
