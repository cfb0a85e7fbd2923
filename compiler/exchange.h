/* exchange.h - what the replicas of a program that are other processes, or other threads, exchange by.
 *
 * Each replica compiles the same step with ty_train_spec.replicas = how many they are, and runs it on rows of its own
 * (compiler/passes/across.h says what the step means then). Where the step needs all of them it calls functions that it
 * was given:
 *
 *     ty_exchange x = {.ctx = me, .replica = 3, .begin = my_begin, .wait = my_wait};
 *     options.exchange = &x;                                     ty_compile_train(model, &spec, &options, &p, err);
 *     ty_program_schedule(p, &text);                             the same text on all replicas, or they may not run
 *     const ty_exchange_call *call = ty_program_exchanges(p, &n);
 *
 *     begin(ctx, 7, in, out, err)       call[7] may begin: returns at once, the bytes of `in` are there
 *     wait(ctx, 7, err)                 returns when `out` is there
 *
 * All calls come from the thread that runs the program, begins in the order of the list within a run; waits come in any
 * order, one a begin, and any number of begins may lie in front of a wait: so gradients travel while others are
 * computed. Where runs are started and finished (ty_program_start), the wait for what a run has begun may come in the
 * next one, behind begins of its own, but before the same call begins again. Between begin and wait the program neither
 * writes `in` nor touches `out`. They may be the same memory, and do not overlap otherwise; memory of one call is the
 * same in every run.
 *
 * A program that is freed between a begin and its wait, or after a failure, leaves its memory to who carries exchanges
 * out: it is never given back.
 *
 * Each call must leave the same bits on all replicas, for then weights stay the same bits. A failure of either function
 * is the run's, and the program is of no further use.
 *
 * Programs on GPUs, one a replica, exchange by NCCL (compiler/target/cuda/nccl.h): begin and wait are not called then.
 * What NCCL needs is that the replicas find each other, once, while they are compiled:
 *
 *     meet(ctx, ready, bytes, n_bytes, err)       called by every replica whose plan stands, whatever became of it
 */
#ifndef TY_COMPILER_EXCHANGE_H
#define TY_COMPILER_EXCHANGE_H

#include "compiler/compiler.h"

typedef enum ty_exchange_kind {
    TY_EXCHANGE_SUM,    /* out[i]: the sum over replicas of in[i] */
    TY_EXCHANGE_GATHER, /* out: `in` of replica 0, then that of replica 1 ... */
    TY_EXCHANGE_PART,   /* out: of the sum the replica's own elems / replicas elements, replica 0's first */
    TY_N_EXCHANGE_KINDS
} ty_exchange_kind;
const char *ty_exchange_text(ty_exchange_kind kind); /* "sum" */

typedef struct ty_exchange_call {
    ty_exchange_kind kind;
    ty_dtype dtype;   /* of both */
    int64_t elems;    /* of `in` */
    int64_t first;    /* of a sum in two halves (compiler/target/halves.h), of the second one: elements before it */
    ty_run run;       /* the tape it belongs to; TY_N_RUNS: none, ty_program_gather_state */
    bool gradients;   /* numbers that may be rounded on their way. Others (counts, losses, metrics, statistics, numbers
                         of rows, weights) must arrive as they are */
    const char *name; /* for people: "gradients of fc2.bias .. fc1.weight", "update" */
} ty_exchange_call;

typedef struct ty_exchange {
    void *ctx;
    int replica; /* this one's number, from 0 */
    int (*begin)(void *ctx, int call, const void *in, void *out, ty_error *err);
    int (*wait)(void *ctx, int call, ty_error *err);
    /* Where all replicas are ready, all get the bytes of replica 0. Else -1, with the same code of error and the same
     * `which` for all, so that all do the same about it; who is not ready has given its own in *err. NULL: they cannot
     * be on GPUs. */
    int (*meet)(void *ctx, bool ready, void *bytes, size_t n_bytes, ty_error *err);
} ty_exchange;

/* All calls of all tapes, tape after tape, each in the order in which it begins; of a planned program too. They live as
 * long as the program. */
const ty_exchange_call *ty_program_exchanges(const ty_program *p, int *n);
/* One line a call, and under a bucket of gradients one line a tensor: all that replicas must agree in. */
int ty_program_schedule(const ty_program *p, ty_buf *out, ty_error *err);

/* After a failure on a GPU: the program waits for no other replica any more, and is only to be freed. Any thread. */
void ty_program_let_go(ty_program *p);

/* ---- states of which each replica has a part ----
 *
 * With ty_train_spec.optimizer_sharding the states of moments are parts: ty_program_state() has that of this replica,
 * of several that are GPUs of this process that of the first.
 * Their whole is laid out as the same state of one replica, so that what is saved whole can be resumed by any number:
 *
 *     for each state i with (elems = ty_program_whole_elems(p, i)) > 0
 *         ty_program_gather_state(p, i, whole, err)     all replicas, state by state: whole f32[elems] on each
 *         ty_program_take_part(p, i, whole)             this replica's part of it, between two runs; asks nobody
 *
 * On a GPU ty_program_states_changed() says so then.
 */
int64_t ty_program_whole_elems(const ty_program *p, int state); /* 0: the state is whole as it is */
int ty_program_gather_state(ty_program *p, int state, void *whole, ty_error *err);
void ty_program_take_part(ty_program *p, int state, const void *whole);

#endif
