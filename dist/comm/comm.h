/* comm.h - what ranks do together: sums, gathers, broadcasts, exchanges.
 *
 * Layer: dist/comm. Includes base. Knows nothing of launching: an engine finds the other ranks (engine.h).
 *
 * A comm is one rank's end of a group of ranks. Collectives are begun in the same order by all ranks of a comm, are
 * carried out one after the other by a thread of the comm, and are waited for by their tickets:
 *
 *     ty_comm *c;
 *     ty_comm_open(&(ty_comm_options){0}, &c, err);                       engine and ranks by the environment
 *     ty_collective sum = {.kind = TY_ALL_REDUCE, .name = "gradients dense_2/kernel .. head/bias",
 *                          .dtype = TY_F32, .reduce = TY_REDUCE_AVERAGE, .in = g, .out = g, .n = 1 << 20};
 *     ty_comm_begin(c, &sum, &ticket, err);
 *     ... compute ...
 *     ty_comm_wait(c, ticket, err);
 *     ty_comm_close(c, true);
 *
 * Long tensors travel in pieces, of which at most two are on their way: large calls are slower in every MPI, and
 * conversion and sum of one piece overlap with the travel of the other. A thread that carries out sleeps between its
 * looks at them, unless it has a core to itself (options: cores, threads) or those who compute wait for it.
 *
 * Order of sums. rank_order: each element is ((x0 + x1) + x2) ..., in float32 for 16-bit floats, so that bits depend on
 * the ranks' numbers alone. Without it an engine may have an order of its own, the same on all ranks and in each run of
 * the same shape. Reduce-scatters, all sums of 16-bit floats and, over MPI, all sums but hierarchical ones are of rank
 * order always. All ranks have the same bits in all modes. hierarchical: the ranks of a host first, then the hosts.
 *
 * Errors. A call that cannot be right is refused where it is made. That all ranks make the same calls is the caller's
 * care: a schedule that is known before is compared once (ty_comm_compare). What the engine says is final: the comm
 * fails every later call with the same words. A call whose peers died does not return with every engine: that is what
 * the agent watches for.
 *
 * Threads. Any thread may begin and wait; for one comm it is the caller's care that all ranks begin in one order.
 * A second comm (ty_comm_dup) has an order of its own.
 */
#ifndef TY_DIST_COMM_COMM_H
#define TY_DIST_COMM_COMM_H

#include "base/error.h"
#include "base/tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ty_comm ty_comm;
typedef struct ty_page ty_page; /* dist/page.h */

/* Bool: sum and max are "or", product and min are "and", there is no average. Sums of integers wrap; their average is
 * the sum divided, cut towards zero. */
typedef enum ty_reduce {
    TY_REDUCE_SUM,
    TY_REDUCE_AVERAGE, /* sum / size */
    TY_REDUCE_MIN,
    TY_REDUCE_MAX,
    TY_REDUCE_PRODUCT,
    TY_N_REDUCES
} ty_reduce;

/*                 in                                          out
 * all_reduce      n elements                                  n elements
 * reduce_scatter  n elements: part 0, part 1 ...              own part; `counts` elements each, NULL: n in even parts
 * all_gather      own part, n elements                        all parts; `counts` elements each, NULL: n each
 * broadcast       n elements (read on `root` only)            n elements
 * all_to_all      part for 0, part for 1 ...; n elements      part from 0, from 1 ...; `counts` to and `from_counts`
 *                                                             from each, both NULL: n / size each
 * barrier
 *
 * Even parts of n: n / size elements each, the first n % size one more (ty_comm_part). `in` and `out` may be equal;
 * reduce_scatter and all_gather also work where the own part lies in the whole (in + offset of the own part = out, or
 * the other way round), without a copy. They may not overlap otherwise. */
typedef enum ty_collective_kind {
    TY_ALL_REDUCE,
    TY_REDUCE_SCATTER,
    TY_ALL_GATHER,
    TY_BROADCAST,
    TY_ALL_TO_ALL,
    TY_BARRIER,
    TY_N_COLLECTIVES
} ty_collective_kind;

/* What float32 travels as in an all_reduce or reduce_scatter: a 16-bit wire halves the bytes. An element is rounded
 * when it leaves (for an average after it was divided by the number of ranks, so that no sum overflows) and when the
 * sum, taken in float32 in rank order, goes back; all ranks get the rounded sum. Other types travel as they are. */
typedef enum ty_wire { TY_WIRE_AS_IS, TY_WIRE_F16, TY_WIRE_BF16, TY_N_WIRES } ty_wire;

/* One call. The struct is copied when it is begun, all that it points at but the name is the caller's and must live
 * until it was waited for. */
typedef struct ty_collective {
    ty_collective_kind kind;
    const char *name; /* for messages; NULL: the kind's */
    ty_dtype dtype;
    ty_reduce reduce;
    ty_wire wire;
    const void *in;
    void *out;
    int64_t n;                  /* elements of `in` */
    const int64_t *counts;      /* [size] or NULL */
    const int64_t *from_counts; /* [size] or NULL; all_to_all only */
    int root;                   /* broadcast only */
    int bucket;                 /* for messages: its number, from 1; 0: none */
} ty_collective;

/* Zeros are good defaults. */
typedef struct ty_comm_options {
    const char *engine;  /* "self", "mpi"; NULL: TRAINYARD_ENGINE, else mpi if WORLD_SIZE or OMPI_COMM_WORLD_SIZE > 1 */
    int64_t piece_bytes; /* 0: 512 KB. A piece has at least 4 KB */
    bool rank_order;     /* bits that depend on the ranks' numbers alone */
    bool hierarchical;   /* sums of several hosts with several ranks each by levels; not with rank_order */
    int ranks_per_host;  /* 0: those that the engine finds; else rank r is taken to be on host r / ranks_per_host */
    ty_page *page;       /* where operations are written for whoever watches (dist/page.h); NULL: nowhere */
    int stream;          /* of the page; each comm has its own, a dup the next one */
    const char
        *timeline; /* folder for a picture of what was done when (timeline.h); NULL: TRAINYARD_TIMELINE, or none */
    int cores;     /* that this rank may use; 0: those it may run on, divided by the ranks of this host */
    int threads;   /* that compute on them; 0: OMP_NUM_THREADS, else all cores */
} ty_comm_options;

/* Opens this rank's end; all ranks of the job do so. */
int ty_comm_open(const ty_comm_options *options, ty_comm **comm, ty_error *err);
/* Ranks that are threads of this process: tests, replicas on one CPU. comm[size] are ends 0 to size - 1, each for one
 * thread. Options may be NULL; the engine they name is not looked at. */
int ty_comm_open_threads(const ty_comm_options *options, int size, ty_comm **comm, ty_error *err);

int ty_comm_rank(const ty_comm *comm);
int ty_comm_size(const ty_comm *comm);
int ty_comm_local_rank(const ty_comm *comm); /* among the ranks of this host */
int ty_comm_local_size(const ty_comm *comm);

/* Begins a collective. A call that cannot be right on any rank (a type that does not exist, a root beyond the ranks)
 * is refused here. */
int ty_comm_begin(ty_comm *comm, const ty_collective *what, uint64_t *ticket, ty_error *err);
/* Waits until it is done, once for each ticket. */
int ty_comm_wait(ty_comm *comm, uint64_t ticket, ty_error *err);
bool ty_comm_test(ty_comm *comm, uint64_t ticket); /* is it done? Then waiting does not block */
/* Begins and waits; by the calling thread itself where nothing else is under way, which saves a change of threads. */
int ty_comm_run(ty_comm *comm, const ty_collective *what, ty_error *err);

/* What has been done since the comm was opened. waited_ns is what communication has cost those who compute. */
typedef struct ty_comm_stats {
    int64_t n_calls, n_bytes; /* carried out; of elements given, whatever they travelled as */
    int64_t busy_ns;          /* while a call was carried out */
    int64_t waited_ns;        /* in ty_comm_wait and ty_comm_run, of all threads together */
} ty_comm_stats;
void ty_comm_get_stats(ty_comm *comm, ty_comm_stats *stats);

/* A second comm of the same ranks with an order and a thread of its own: one for gradients, one for all else. All
 * ranks call it, when nothing is under way. */
int ty_comm_dup(ty_comm *comm, ty_comm **dup, ty_error *err);

/* A comm of some of the ranks: number i of it is rank ranks[i] of this one. All ranks of `comm` call it with the same
 * list, when nothing is under way; *part is NULL on those that are not in it. */
int ty_comm_subset(ty_comm *comm, const int *ranks, int n, ty_comm **part, ty_error *err);

/* Texts that must be equal on all ranks, such as a schedule of collectives. Where they are not, the first line that
 * differs is told on all ranks. What stands before the first ": " of a line names it:
 *     "schedules differ: bucket 2 entry 5: rank 0 'conv1/w' [3,3,64,64] f32, rank 6 'conv1/w' [3,3,64,32] f32"
 * for what = "schedules". Blocks. */
int ty_comm_compare(ty_comm *comm, const char *what, const char *text, ty_error *err);

/* Frees the comm; NULL is fine. Cleanly: all that was begun is carried out first, and an engine takes leave of the
 * others, within ten seconds. Otherwise at once; ranks that wait for this one then fail, as far as the engine can
 * tell them. Neither may be called while a thread waits. */
void ty_comm_close(ty_comm *comm, bool cleanly);

/* Even parts: elements of part `index` of n elements for `size` ranks, and where it begins. */
int64_t ty_comm_part(int64_t n, int size, int index, int64_t *offset);

const char *ty_collective_text(ty_collective_kind kind); /* "all_reduce" */
const char *ty_reduce_text(ty_reduce reduce);            /* "average" */

#endif
