/* comm_state.h - what the files of dist/comm share of a comm. */
#ifndef TY_DIST_COMM_COMM_STATE_H
#define TY_DIST_COMM_COMM_STATE_H

#include "dist/comm/comm.h"
#include "dist/comm/engine.h"
#include "dist/comm/event.h"
#include "dist/comm/timeline.h"

#include <pthread.h>

enum { COMM_SLOTS = 2, COMM_NAME_BYTES = 96, COMM_MAX_RANKS = 4096 };

/* A begun collective, until it was waited for. */
typedef struct comm_op {
    struct comm_op *next;
    uint64_t ticket;
    bool done;
    int64_t begun_ns;   /* by ty_clock_ns */
    int64_t took_ns;    /* to carry it out */
    ty_collective what; /* its name is `name` */
    char name[COMM_NAME_BYTES];
    ty_error err; /* of code TY_E_NONE if all went well */
} comm_op;

/* A place for a piece under way. Each has groups of its own, because the stages of two pieces come in any order. */
typedef struct comm_slot {
    ty_engine_group *all;
    ty_engine_group *local, *cross; /* of this host; of all hosts, those with this local rank; NULL before first use */
    int64_t *counts[4];             /* [size] each, for one call */
    void *sent, *got;               /* a piece each, and room for one element a rank more */
    /* of the piece under way: */
    bool busy;
    int stage;
    ty_engine_group *group; /* which the stages work in */
    const char *in;         /* what they work on */
    char *out;
    int64_t index, n; /* number of the piece; elements */
    char *whole;      /* by levels: the piece, while out and n are this rank's part of it */
    int64_t whole_n;
} comm_slot;

struct ty_comm {
    const ty_engine *engine;
    ty_comm_options options;
    int rank, size, local_rank, local_size;
    int host;      /* a number that the ranks of this host share */
    bool even;     /* all hosts have as many ranks */
    bool own_core; /* the comm's thread has a core that nobody computes on */
    comm_slot slot[COMM_SLOTS];
    int64_t *start; /* [size + 1] of the call under way: start[0] is 0 */

    pthread_mutex_t lock;
    comm_event changed; /* something was begun or is done, or nobody carries out */
    pthread_t thread;
    bool has_thread, closing, carrying; /* carrying: a thread is in comm_carry */
    atomic_int n_waiting;               /* threads that wait for an operation, or carry one out for themselves */
    uint64_t last_ticket;
    comm_op *ops, **end; /* in order of begin: done ones and not done ones until they are waited for */
    comm_op *spare;
    ty_error failed; /* the engine's last words */
    ty_comm_stats stats;
    ty_timeline *timeline; /* shared with dups; NULL: none */
};

/* Carries out a collective; what is wrong with the engine fails the comm, too (carry.c). */
int ty_comm_carry(ty_comm *c, const ty_collective *what, ty_error *err);
/* One call of the engine, waited for as the comm waits. */
int ty_comm_call(ty_comm *c, ty_engine_group *g, const ty_engine_call *call, ty_error *err);
/* Is this a call that some rank could make? (plan.c) */
int ty_comm_check(const ty_comm *c, const ty_collective *what, ty_error *err);

/* Carries out what is left (cleanly) or leaves it, ends the thread, frees the queue (queue.c). */
void ty_comm_queue_end(ty_comm *c, bool cleanly);

/* A collective on its way: pieces and the stages that each goes through. */
typedef struct comm_journey {
    ty_comm *c;
    const ty_collective *what;
    const char *in; /* that of `what`, or a copy where it may not be written over */
    char *out;
    void *copy;
    int64_t n_pieces, piece; /* elements of each; of parts: of each part */
    int64_t *start;          /* [size + 1] where parts begin, in reduce_scatter and all_gather */
    ty_dtype travels;        /* the type on the wire */
    const struct comm_stage *stages;
} comm_journey;

/* A stage takes up where the last one's call has ended. It fills `call`, to be carried out in slot->group, and returns
 * true; or there is nothing to call, and the next stage follows. */
typedef struct comm_stage {
    bool (*enter)(const comm_journey *j, comm_slot *slot, ty_engine_call *call);
} comm_stage;

const comm_stage *ty_comm_stages(const comm_journey *j);
bool ty_comm_has_levels(const ty_comm *c);          /* are sums made by levels? */
int ty_comm_make_levels(ty_comm *c, ty_error *err); /* the groups that it takes; all ranks, once (levels.c) */
int ty_comm_plan(ty_comm *c, const ty_collective *what, comm_journey *j, ty_error *err); /* checked before */
void ty_comm_journey_end(comm_journey *j);
/* Sets the slot for piece i. */
void ty_comm_take_piece(const comm_journey *j, comm_slot *slot, int64_t i);

#endif
