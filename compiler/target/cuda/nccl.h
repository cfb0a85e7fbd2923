/* nccl.h - what replicas on the GPUs of one host exchange, by NCCL.
 *
 *     ty_nccl_open(devices, n, how, &group, err)            one thread, before the replicas' threads begin
 *     ty_nccl_exchange(group, replica, &what, stream, err)  by each replica, all of them in the same order
 *     ty_nccl_abort(group)                                  any thread: who waits for a replica waits no more
 *     ty_nccl_close(group)                                  when all their work is done
 *
 * An exchange is given to a stream and can be captured. Three ways to add up, whose names are those of TensorFlow's
 * MirroredStrategy:
 *
 * - nccl: ncclAllReduce; rings or trees, as NCCL knows the wires.
 *
 * - hierarchical copy: two groups, the first half of the GPUs and the second. Each GPU of a group gets the group's sum
 *   of a part of its own (ncclReduceScatter), adds it to that of its counterpart in the other group, and hands it to
 *   its group (ncclAllGather). For wires that are quicker inside the groups than between them.
 *
 * - reduction to one device: one GPU gets the sum (ncclReduce) and hands it to all (ncclBroadcast), the next GPU with
 *   each exchange.
 *
 * Each gives all replicas the same bits, and the same bits in every run.
 */
#ifndef TY_TARGET_CUDA_NCCL_H
#define TY_TARGET_CUDA_NCCL_H

#include "base/tensor.h"
#include "compiler/compiler.h"
#include "compiler/target/cuda/api.h"

typedef struct ty_nccl_group ty_nccl_group;

typedef struct ty_nccl_exchanged {
    bool gather; /* side by side; else the sum */
    ty_dtype dtype;
    int64_t n; /* elements of `from` */
    CUdeviceptr from, to;
    int number; /* of the exchange in its tape, from 0 */
} ty_nccl_exchanged;

/* Whether n >= 2 GPUs can: TY_E_CONFIG where `how` is not for so many, TY_E_LIBRARY where there is no NCCL. */
int ty_nccl_check(int n, ty_cross_device how, ty_error *err);
/* devices: numbers, n of them. Errors as above; TY_E_LIBRARY: NCCL says no. */
int ty_nccl_open(const int *devices, int n, ty_cross_device how, ty_nccl_group **out, ty_error *err);
int ty_nccl_exchange(ty_nccl_group *group, int replica, const ty_nccl_exchanged *what, CUstream stream, ty_error *err);
/* The group is of no use then, but to be closed. */
void ty_nccl_abort(ty_nccl_group *group);
void ty_nccl_close(ty_nccl_group *group); /* NULL is fine */

#endif
