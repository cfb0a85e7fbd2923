/* Reductions. Tensors of one type become one message: a single one is reduced where it lies, several are packed. */
#include "dist/api/carry_kinds.h"
#include "dist/api/numbers.h"
#include "dist/api/view.h"

#include <string.h>

static double factor_of(double scale)
{
    return scale != 0 ? scale : 1;
}

/* The tensors of a type: where the only one is, or -1; how many there are. */
static int count_tensors(const ty_call *call, ty_dtype dtype, int *only)
{
    int n = 0;
    for (int i = 0; i < call->n; i++)
        if (call->in[i].dtype == (int32_t)dtype) {
            *only = i;
            n++;
        }
    return n;
}

static void pack(const ty_call *call, ty_dtype dtype, char *to)
{
    for (int i = 0; i < call->n; i++)
        if (call->in[i].dtype == (int32_t)dtype) {
            size_t bytes = ty_view_bytes(&call->in[i]);
            if (bytes)
                memcpy(to, call->in[i].data, bytes);
            to += bytes;
        }
}

static void unpack(const ty_call *call, ty_dtype dtype, const char *from)
{
    for (int i = 0; i < call->n; i++)
        if (call->in[i].dtype == (int32_t)dtype) {
            size_t bytes = ty_view_bytes(&call->in[i]);
            if (bytes)
                memcpy(call->out ? call->out[i].data : call->in[i].data, from, bytes);
            from += bytes;
        }
}

static int reduce_memory(ty_channel *c, const ty_word *plan, const ty_call *call, ty_dtype dtype, const void *in,
                         void *out, ty_error *err)
{
    int64_t n = plan->elems[dtype];
    double before = call ? factor_of(call->options.prescale) : 1;
    if (before != 1) {
        if (in != out)
            memcpy(out, in, (size_t)n * ty_dtype_bytes(dtype));
        ty_numbers_scale(dtype, out, n, before);
        in = out;
    }
    ty_collective sum = {.kind = TY_ALL_REDUCE,
                         .name = call && call->name[0] ? call->name : NULL,
                         .dtype = dtype,
                         .reduce = ty_carry_reduce(plan->op),
                         .wire = dtype == TY_F32 ? ty_carry_wire(plan->compression) : TY_WIRE_AS_IS,
                         .in = in,
                         .out = out,
                         .n = n};
    int code = ty_carry_collective(c, &sum, err);
    if (code == TRAINYARD_OK && call)
        ty_numbers_scale(dtype, out, n, factor_of(call->options.postscale));
    return code;
}

static int reduce_packed(ty_channel *c, const ty_word *plan, const ty_call *call, ty_dtype dtype, ty_error *err)
{
    size_t bytes = (size_t)plan->elems[dtype] * ty_dtype_bytes(dtype);
    char *memory = ty_channel_scratch(c, bytes);
    if (!memory)
        return ty_carry_no_memory(c, (int64_t)bytes, err);
    if (call)
        pack(call, dtype, memory);
    else
        ty_numbers_neutral(dtype, (trainyard_op)plan->op, memory, plan->elems[dtype]);
    int code = reduce_memory(c, plan, call, dtype, memory, memory, err);
    if (code == TRAINYARD_OK && call)
        unpack(call, dtype, memory);
    return code;
}

int ty_carry_allreduce(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err)
{
    int code = TRAINYARD_OK;
    for (int d = 0; d < TY_N_DTYPES && code == TRAINYARD_OK; d++) {
        int only = -1;
        if (plan->elems[d] <= 0)
            continue;
        if (call && count_tensors(call, (ty_dtype)d, &only) == 1)
            code = reduce_memory(c, plan, call, (ty_dtype)d, call->in[only].data,
                                 call->out ? call->out[only].data : call->in[only].data, err);
        else
            code = reduce_packed(c, plan, call, (ty_dtype)d, err);
    }
    return code;
}

/* What is reduced: the caller's own memory, or a copy of it that was scaled, or neutral elements. */
static const void *scatter_input(ty_channel *c, const ty_word *plan, const ty_call *call, int64_t n)
{
    ty_dtype dtype = (ty_dtype)plan->dtype;
    double before = call ? factor_of(call->options.prescale) : 1;
    if (call && before == 1)
        return call->in->data ? call->in->data : "";
    char *copy = ty_channel_scratch(c, 2 * (size_t)n * ty_dtype_bytes(dtype));
    if (copy && call && n > 0) {
        memcpy(copy, call->in->data, (size_t)n * ty_dtype_bytes(dtype));
        ty_numbers_scale(dtype, copy, n, before);
    } else if (copy)
        ty_numbers_neutral(dtype, (trainyard_op)plan->op, copy, n);
    return copy;
}

int ty_carry_reducescatter(ty_channel *c, const ty_word *plan, ty_call *call, ty_error *err)
{
    ty_dtype dtype = (ty_dtype)plan->dtype;
    int64_t n = plan->rows * plan->row_elems, *rows = c->counts, *counts = c->counts + c->size, ignored;
    for (int r = 0; r < c->size; r++) {
        rows[r] = ty_comm_part(plan->rows, c->size, r, &ignored);
        counts[r] = rows[r] * plan->row_elems;
    }
    int code = ty_carry_room(c, rows, err);
    if (code == TRAINYARD_OK && call)
        code = ty_carry_result(c, call, rows[c->rank], err);
    const void *in = code == TRAINYARD_OK ? scatter_input(c, plan, call, n) : NULL;
    if (code == TRAINYARD_OK && !in)
        code = ty_carry_no_memory(c, 2 * n * (int64_t)ty_dtype_bytes(dtype), err);
    if (code != TRAINYARD_OK)
        return code;
    void *out = call ? call->result->data : (char *)c->scratch + (size_t)n * ty_dtype_bytes(dtype);
    ty_collective scatter = {.kind = TY_REDUCE_SCATTER,
                             .name = call && call->name[0] ? call->name : NULL,
                             .dtype = dtype,
                             .reduce = ty_carry_reduce(plan->op),
                             .wire = dtype == TY_F32 ? ty_carry_wire(plan->compression) : TY_WIRE_AS_IS,
                             .in = in,
                             .out = out,
                             .n = n,
                             .counts = counts};
    code = ty_carry_collective(c, &scatter, err);
    if (code == TRAINYARD_OK && call)
        ty_numbers_scale(dtype, out, counts[c->rank], factor_of(call->options.postscale));
    return code;
}
