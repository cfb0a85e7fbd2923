/* nccl.h - what replicas on GPUs exchange, by NCCL.
 *
 *     ty_nccl_open(devices, n, how, &group, err)            the GPUs of this host, a thread each: before those begin
 *     ty_nccl_join(&others, how, &group, err)               a GPU a process: this one's, which is the current context's
 *     ty_nccl_exchange(group, replica, &what, stream, err)  by each replica, all of them in the same order
 *     ty_nccl_stands(group, err)                            before it: whether NCCL may still be asked
 *     ty_nccl_failed(group, err)                            after a wait: whether what was waited for is of any use
 *     ty_nccl_abort(group)                                  any thread: who waits for a replica waits no more
 *     ty_nccl_close(group)                                  when all their work is done
 *
 * An exchange is given to a stream and can be captured, but not the first of its kind and size: there NCCL connects
 * replicas, which takes memory, and the host waits until all ask for the same.
 *
 * Three ways to add up, whose names are those of TensorFlow's MirroredStrategy:
 *
 * - nccl: ncclAllReduce; rings or trees, as NCCL knows the wires.
 *
 * - hierarchical copy: groups of as many GPUs, the hosts, or the first half of a host's GPUs and the second. Each GPU
 *   of a group gets the group's sum of a part of its own (ncclReduceScatter), adds it to that of its counterparts in
 *   the other groups, and hands it to its group (ncclAllGather). For wires that are quicker inside the groups than
 *   between them.
 *
 * - reduction to one device: one GPU gets the sum (ncclReduce) and hands it to all (ncclBroadcast), the next GPU with
 *   each exchange.
 *
 * Each gives all replicas the same bits, and the same bits in every run of the same layout; in which order NCCL adds up
 * is its own affair. Where it is not to be, NCCL only deals and gathers, and a kernel adds up (in_order.h). A sum of
 * which each replica gets its part is ncclReduceScatter, whichever way whole ones are taken.
 *
 * What waits for a replica that is gone waits for ever, on the GPU. So a thread asks NCCL ten times a second what
 * became of the communicators (ncclCommGetAsyncError) and aborts all of them where something has: streams and graphs
 * then come to their ends, with numbers that mean nothing, and ty_nccl_failed says what NCCL said. A GPU of this host
 * that is gone NCCL does not notice; who learns of it otherwise aborts.
 */
#ifndef TY_TARGET_CUDA_NCCL_H
#define TY_TARGET_CUDA_NCCL_H

#include "base/tensor.h"
#include "compiler/compiler.h"
#include "compiler/target/cuda/api.h"
#include "compiler/team.h"

#include <stdbool.h>

typedef struct ty_nccl_group ty_nccl_group;

/* from and to are the same memory, if that is a sum, or do not overlap. */
typedef struct ty_nccl_exchanged {
    ty_exchange_kind kind;
    ty_dtype dtype;
    int64_t n; /* elements of `from`; of a PART a multiple of the replicas */
    CUdeviceptr from, to;
    int number; /* of the exchange in its tape, from 0 */
} ty_nccl_exchanged;

/* Replicas of which this process has one. */
typedef struct ty_nccl_others {
    int replica, n; /* this one's number, of how many */
    int inside;     /* hierarchical copy: replicas 0 to inside - 1 are a group, and so on; divides n */
    void *ctx;
    /* By all replicas, once: where each is ready they all get replica 0's bytes, else -1 for all. Who is not ready has
     * the reason in *err already. */
    int (*meet)(void *ctx, bool ready, void *bytes, size_t n_bytes, ty_error *err);
} ty_nccl_others;

/* Whether n >= 2 GPUs of this host can: TY_E_CONFIG where `how` is not for so many, TY_E_LIBRARY where there is no
 * NCCL. */
int ty_nccl_check(int n, ty_cross_device how, ty_error *err);
/* devices: numbers, n of them. Errors as above; TY_E_LIBRARY: NCCL says no. */
int ty_nccl_open(const int *devices, int n, ty_cross_device how, ty_nccl_group **out, ty_error *err);
/* The current context of the calling thread is the GPU's. Waits for all replicas. */
int ty_nccl_join(const ty_nccl_others *others, ty_cross_device how, ty_nccl_group **out, ty_error *err);
int ty_nccl_exchange(ty_nccl_group *group, int replica, const ty_nccl_exchanged *what, CUstream stream, ty_error *err);
/* Bytes as they are. Deal: a part of `from` to each replica, and one from each to `to`, both in their order. Gather:
 * `from` of all replicas side by side; may be in its own place of `to`. */
int ty_nccl_deal(ty_nccl_group *group, int replica, CUdeviceptr from, CUdeviceptr to, size_t part_bytes,
                 CUstream stream, ty_error *err);
int ty_nccl_gather(ty_nccl_group *group, int replica, CUdeviceptr from, CUdeviceptr to, size_t bytes, CUstream stream,
                   ty_error *err);
/* What a member of a team asks for, outside of any tape. */
int ty_nccl_call(ty_nccl_group *group, const ty_team_call *what, CUstream stream, ty_error *err);
bool ty_nccl_reduces(ty_dtype dtype);
void ty_nccl_version(char *out); /* TY_LIBRARY_VERSION_BYTES: "2.28.9"; "" where there is none */
/* TY_E_LIBRARY where the group was aborted: NCCL may have given back by then what it would be asked of. */
int ty_nccl_stands(ty_nccl_group *group, ty_error *err);
/* TY_E_LIBRARY with NCCL's words where it has noticed that something is wrong. */
int ty_nccl_failed(ty_nccl_group *group, ty_error *err);
/* The group is of no use then, but to be closed. */
void ty_nccl_abort(ty_nccl_group *group);
void ty_nccl_close(ty_nccl_group *group); /* NULL is fine */

#endif
