#include "dist/api/ask.h"

void ty_ask_allreduce(ty_call *call, const trainyard_tensor *in, const trainyard_tensor *out, int n,
                      const trainyard_options *options)
{
    ty_call_init(call, TY_CALL_ALLREDUCE, options, in, out, n);
}

void ty_ask_rows(ty_call *call, ty_call_kind kind, const trainyard_tensor *in, trainyard_tensor *out,
                 const trainyard_options *options)
{
    ty_call_init(call, kind, options, in, NULL, 1);
    call->result = out;
    if (call->fault)
        return;
    if (!out)
        call->fault = ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "out is NULL");
    else if (out->data && (out->ndim < 0 || out->ndim > TRAINYARD_MAX_DIMS || (out->ndim > 0 && out->shape[0] < 0)))
        call->fault =
            ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "out has memory, but its shape does not say for how many rows");
}

void ty_ask_alltoall(ty_call *call, const trainyard_tensor *in, const int64_t *splits, trainyard_tensor *out,
                     int64_t *received, const trainyard_options *options)
{
    ty_ask_rows(call, TY_CALL_ALLTOALL, in, out, options);
    call->splits = splits;
    call->received = received;
}

void ty_ask_broadcast(ty_call *call, const trainyard_tensor *tensors, int n, int root, const trainyard_options *options)
{
    ty_call_init(call, TY_CALL_BROADCAST, options, tensors, NULL, n);
    call->root = root;
}

void ty_ask_barrier(ty_call *call, const trainyard_options *options)
{
    ty_call_init(call, TY_CALL_BARRIER, options, NULL, NULL, 0);
}
