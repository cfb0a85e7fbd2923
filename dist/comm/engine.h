/* engine.h - what carries bytes between ranks: the table of functions behind a comm.
 *
 * An engine offers groups of ranks with five calls, each of which all ranks of the group start in the same order. A
 * started call goes on until test() says that it is done, or is over when start() returns, if the engine says so. At
 * most one call of a group is under way.
 * Everything else (pieces, types on the wire, the order of sums, checks) is the comm's.
 *
 *     threads    ranks are threads of this process; one is "self"      threads.c
 *     mpi        Open MPI, behind a plug-in                            dist/plugin/mpi.c
 */
#ifndef TY_DIST_COMM_ENGINE_H
#define TY_DIST_COMM_ENGINE_H

#include "base/error.h"
#include "base/tensor.h"
#include "dist/comm/comm.h"

typedef enum ty_engine_kind {
    TY_ENGINE_ALL_REDUCE, /* n elements of dtype, in may equal out; bool and 16-bit floats never come */
    TY_ENGINE_ALL_TO_ALL, /* parts of `in` to each, parts of `out` from each; no overlap */
    TY_ENGINE_ALL_GATHER, /* own part from `in` (NULL: it lies in `out` already), all parts to `out` */
    TY_ENGINE_BROADCAST,  /* n elements of `out`, from root */
    TY_ENGINE_BARRIER
} ty_engine_kind;

/* Counts and offsets are in elements of elem_bytes (1, 2, 4 or 8), at most INT32_MAX. They are read when a call is
 * started, never later. */
typedef struct ty_engine_call {
    ty_engine_kind kind;
    int elem_bytes;
    ty_dtype dtype;   /* all_reduce only */
    ty_reduce reduce; /* all_reduce only: sum, min, max or product */
    const void *in;
    void *out;
    int64_t n;
    const int64_t *in_counts, *in_offsets;   /* [size], all_to_all */
    const int64_t *out_counts, *out_offsets; /* [size], all_to_all and all_gather */
    int root;
} ty_engine_call;

typedef struct ty_engine_group ty_engine_group;

#define TY_ENGINE_VERSION 2 /* of this table */

typedef struct ty_engine {
    const char *name;
    int (*open)(ty_engine_group **world, ty_error *err); /* the group of all ranks; NULL where it is opened otherwise */
    int (*rank)(const ty_engine_group *g);
    int (*size)(const ty_engine_group *g);
    /* Groups of the ranks that give the same color, in the order of (key, rank). color < 0: none, *out = NULL. */
    int (*split)(ty_engine_group *g, int color, int key, ty_engine_group **out, ty_error *err);
    int (*host)(ty_engine_group *g, int *host, ty_error *err); /* a number that ranks of one host share */
    int (*start)(ty_engine_group *g, const ty_engine_call *call, ty_error *err);
    int (*test)(ty_engine_group *g, bool *done, ty_error *err); /* never blocks */
    bool goes_on; /* after start(), until test() finds the end; false: start() waits, without keeping a core busy */
    void (*close)(ty_engine_group *g, bool cleanly);
} ty_engine;

/* Ranks that are threads. start() carries the call out, since all ranks' threads come to it anyway. */
extern const ty_engine ty_engine_threads;

/* The ends of a new group of threads. */
int ty_engine_threads_open(int size, ty_engine_group **group /* [size] */, ty_error *err);

#endif
