/* perf.h - how fast collectives are, and whether they are right: sizes, times, bandwidths, as nccl-tests measure them.
 *
 *     algbw   bytes / time
 *     busbw   algbw x what a link carries of each byte: 2 (n-1) / n for all_reduce, (n-1) / n for reduce_scatter,
 *             all_gather and all_to_all, 1 for broadcast. It compares with the speed of the hardware for any number of
 *             ranks (NVIDIA/nccl-tests, doc/PERFORMANCE.md).
 */
#ifndef TY_DIST_COMM_PERF_H
#define TY_DIST_COMM_PERF_H

#include "dist/comm/comm.h"

typedef struct ty_perf_options {
    ty_collective_kind kind;      /* not barrier */
    int64_t min_bytes, max_bytes; /* of a rank's whole tensor: the longer one of in and out */
    int64_t step_bytes;           /* added from size to size; 0: multiplied by factor */
    int factor;                   /* 2 or more */
    ty_dtype dtype;
    ty_reduce reduce;
    ty_wire wire;
    int warmups, iterations;
    bool check; /* the results of one more run */
} ty_perf_options;

/* What carries, and where tensors lie, if that is not the comm and the host's memory: GPUs. Addresses are its own; all
 * calls come from the thread that measures. */
typedef struct ty_perf_carrier {
    void *ctx;
    int (*alloc)(void *ctx, size_t bytes, char **out, ty_error *err);
    void (*free)(void *ctx, char *at);                                              /* NULL: nothing */
    int (*put)(void *ctx, char *to, const void *from, size_t bytes, ty_error *err); /* from the host's memory */
    int (*get)(void *ctx, void *to, const char *from, size_t bytes, ty_error *err);
    int (*run)(void *ctx, const ty_collective *what, ty_error *err); /* may still be under way when it returns */
    int (*wait)(void *ctx, ty_error *err);                           /* until all that was run is done */
    bool exchanges_in_place;                                         /* an all_to_all's `in` may be its `out` */
    bool divides_first; /* averages of floats are sums of parts that were divided, each rounded */
} ty_perf_carrier;

/* The bandwidths are in 10^9 bytes a second; the time is of one call, a mean over iterations and ranks. */
typedef struct ty_perf_way {
    double us, algbw, busbw; /* us < 0: the carrier has no such way */
    int64_t wrong;           /* elements, of all ranks; -1: not checked */
} ty_perf_way;

typedef struct ty_perf_row {
    int64_t n_bytes, count; /* count: elements that a call was given, as `n` of ty_collective */
    ty_dtype dtype;
    ty_reduce reduce;
    int root; /* -1: there is none */
    ty_perf_way out_of_place, in_place;
} ty_perf_row;

/* All ranks run it with equal options; `tell` is called on all of them, size by size. carrier: NULL for the comm
 * itself, by which ranks meet and compare in any case. */
int ty_perf_run(ty_comm *comm, const ty_perf_carrier *carrier, const ty_perf_options *options,
                void (*tell)(void *ctx, const ty_perf_row *row), void *ctx, ty_error *err);

#endif
