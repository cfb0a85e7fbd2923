/* exchange.h - exchanges with other replicas, on a stream of their own beside a GPU's work.
 *
 *     ty_cuda_exchanges_open(&x, &gpu, &with, &arena, err)
 *     ty_cuda_exchange_ask(&x, &what, NULL, err)
 *     ty_cuda_exchanges_close(&x)
 *
 * It only asks, and can be captured with what it stands between. When it begins and who waits for its end is said by
 * marks and waits of the tape (streams.h), for which the events are here.
 */
#ifndef TY_TARGET_CUDA_EXCHANGE_H
#define TY_TARGET_CUDA_EXCHANGE_H

#include "base/arena.h"
#include "compiler/target/cuda/gpu.h"
#include "compiler/target/cuda/in_order.h"
#include "compiler/target/cuda/nccl.h"

/* Whom with. */
typedef struct ty_cuda_company {
    ty_nccl_group *group; /* NULL: nobody */
    int replica, replicas;
    int n;            /* the most exchanges that a tape has */
    CUdeviceptr room; /* for sums in order */
} ty_cuda_company;

typedef struct ty_cuda_exchanges {
    const ty_gpu *gpu;
    ty_cuda_company with;
    CUstream stream;
    CUevent ready; /* TY_CUDA_EVENT_READY */
    CUevent *over; /* TY_CUDA_EVENT_OVER, by number */
    int n;
} ty_cuda_exchanges;

/* A sum in order: the kernel that adds up what was dealt. */
typedef struct ty_cuda_ordered {
    ty_in_order in_order;
    ty_cuda_launch launch;
    CUfunction function;
} ty_cuda_ordered;

/* Without a group, or with n = 0, nothing is made. After a failure too it is to be closed. */
int ty_cuda_exchanges_open(ty_cuda_exchanges *x, const ty_gpu *gpu, const ty_cuda_company *with, ty_arena *a,
                           ty_error *err);
void ty_cuda_exchanges_close(ty_cuda_exchanges *x);
/* ordered: NULL where NCCL adds up. */
int ty_cuda_exchange_ask(ty_cuda_exchanges *x, const ty_nccl_exchanged *what, const ty_cuda_ordered *ordered,
                         ty_error *err);

#endif
