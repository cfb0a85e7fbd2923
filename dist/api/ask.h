/* ask.h - the public collectives as calls: which argument is what. Each initialises *call, with its fault if it has
 * one. */
#ifndef TY_DIST_API_ASK_H
#define TY_DIST_API_ASK_H

#include "dist/api/call.h"

void ty_ask_allreduce(ty_call *call, const trainyard_tensor *in, const trainyard_tensor *out, int n,
                      const trainyard_options *options);
/* An allgather or a reducescatter. */
void ty_ask_rows(ty_call *call, ty_call_kind kind, const trainyard_tensor *in, trainyard_tensor *out,
                 const trainyard_options *options);
void ty_ask_alltoall(ty_call *call, const trainyard_tensor *in, const int64_t *splits, trainyard_tensor *out,
                     int64_t *received, const trainyard_options *options);
void ty_ask_broadcast(ty_call *call, const trainyard_tensor *tensors, int n, int root,
                      const trainyard_options *options);
void ty_ask_barrier(ty_call *call, const trainyard_options *options);

#endif
