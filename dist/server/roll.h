/* roll.h - who the workers are to one shard: incarnations, the order of their questions, clocks, silence.
 *
 * The rule that makes sums exact where messages are lost, repeated and overtaken: what a worker asks is done in the
 * order of its sequence numbers, each once. One that comes too early is held until those before it are in (they are
 * under way again, since nobody answered them); one that was done gets the same status again. So a shard keeps one
 * number a worker and the last TY_ROLL_WINDOW statuses.
 *
 * A worker that was started again has a higher incarnation and counts from 1; what its predecessor still sends is
 * refused. `oldest` in each message (the oldest question that is still open) lets a shard that was started again from a
 * save find the place in a stream that it has not seen the beginning of.
 *
 * A push also has a step. A step of a worker counts once, whichever of its incarnations sends it, so that one that goes
 * back to its last checkpoint may send again what the one before it had sent, and a shard that fell back to a save gets
 * again what it lost, in whatever order.
 */
#ifndef TY_DIST_SERVER_ROLL_H
#define TY_DIST_SERVER_ROLL_H

#include "dist/server/seal.h"

#define TY_ROLL_WINDOW 64   /* questions of one worker that may be open at one shard */
#define TY_ROLL_STEPS  1024 /* of a worker that are told apart; older ones count as counted */

typedef struct ty_held { /* a message that waits for its turn; owned */
    void *bytes;
    size_t n_bytes;
    int64_t peer;
} ty_held;

typedef struct ty_worker {
    uint64_t incarnation;                 /* 0: never heard of */
    uint64_t next;                        /* sequence number that is done next */
    uint64_t step;                        /* the largest of a push that counted */
    uint64_t counted[TY_ROLL_STEPS / 64]; /* bit s % TY_ROLL_STEPS: step s counted, for the last so many up to `step` */
    uint64_t clock;                       /* steps it says it is through with */
    uint64_t asked;                       /* the last question that it gave its word on */
    uint32_t word[2];                     /* on question n: word[n % 2]. Of the one before others may still ask */
    bool left;
    ty_seal_window window;
    int64_t heard_ms;
    uint32_t status[TY_ROLL_WINDOW]; /* of question s: status[s % window] */
    ty_held held[TY_ROLL_WINDOW];
} ty_worker;

typedef struct ty_roll {
    ty_worker *worker;
    int n;
    uint64_t repeated, early, refused; /* questions, since the start */
} ty_roll;

typedef enum ty_turn {
    TY_TURN_NOW,      /* do it, then ty_roll_done */
    TY_TURN_AGAIN,    /* was done: answer with its status */
    TY_TURN_HELD,     /* kept until its turn: bytes are owned by the roll now */
    TY_TURN_DROP,     /* beyond the window: as if lost */
    TY_TURN_REPLACED, /* of an incarnation that is gone */
} ty_turn;

int ty_roll_init(ty_roll *r, int n_workers, ty_error *err);
void ty_roll_fini(ty_roll *r);

/* Whose turn it is. m->worker < r->n was checked. m->sequence 0 is always NOW (or REPLACED). */
ty_turn ty_roll_take(ty_roll *r, const ty_parcel *m, void *bytes, size_t n_bytes, int64_t peer, int64_t now_ms);
/* Question `sequence` of the worker, whose turn it was, ended with this status. */
void ty_roll_done(ty_roll *r, uint32_t worker, uint64_t sequence, uint32_t status);
/* What was held and is next now: bytes are the caller's (free). False: nothing. */
bool ty_roll_next(ty_roll *r, uint32_t worker, ty_held *out);
uint32_t ty_roll_status(const ty_roll *r, uint32_t worker, uint64_t sequence);

/* Whether a push of this step (from 1) had counted; from then on it has. */
bool ty_roll_counted(const ty_worker *w, uint64_t step);
void ty_roll_count(ty_worker *w, uint64_t step);

/* Workers who have not left and of whom no push of this step has counted. */
int ty_roll_awaited(const ty_roll *r, uint64_t step);
/* Workers of whom something was heard and who have not left. */
int ty_roll_active(const ty_roll *r);
int ty_roll_left(const ty_roll *r);
/* Whether all workers but this one have left; `came`: all of whom something was heard. */
bool ty_roll_alone(const ty_roll *r, uint32_t worker, bool came);
/* Notes a worker's word on a question; the same again changes nothing. True: it is new. */
bool ty_roll_word(ty_worker *w, uint64_t question, uint32_t word);
/* The least and the greatest word on it. False: of workers that have not left not all have said theirs. */
bool ty_roll_words(const ty_roll *r, uint64_t question, uint32_t *least, uint32_t *most);
/* Smallest clock of the workers that have not left; UINT64_MAX if all have. One never heard of counts as 0. */
uint64_t ty_roll_slowest(const ty_roll *r);
/* Those that were silent for longer than limit_ms count as left, until they say something again. Returns how many. */
int ty_roll_silence(ty_roll *r, int64_t now_ms, int64_t limit_ms);

#endif
