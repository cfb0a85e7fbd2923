/* shard.h - one shard: its rows, its workers, its answers. Knows no thread, no socket and no clock.
 *
 * Messages go in, answers come out through a function. One thread owns a shard; requests of all workers are done one
 * after the other, so that there is no lock on the way of an update and a push is all there or not at all. In what
 * order workers come is the network's business: that is what asynchronous means.
 *
 * Modes (catalogue.h): async and bounded apply a push at once. Sync adds up the gradients of a step, of the first
 * workers - backup that push it, and applies their mean; a PULL says by its `step` how many steps must be in, and waits
 * for them; pushes of steps that are over are dropped and counted as late. Workers that left, or were silent for too
 * long, are waited for no more. Bounded lets CLOCK wait at shard 0 until no worker is more than `staleness` steps
 * behind.
 *
 * Staleness of a push is the number of pushes that changed this shard between the pull that it was computed from and
 * itself.
 */
#ifndef TY_DIST_SERVER_SHARD_H
#define TY_DIST_SERVER_SHARD_H

#include "dist/server/roll.h"
#include "dist/server/rows.h"

#define TY_SHARD_STALENESS_STEPS 1024 /* larger ones are counted together; the maximum is exact */

typedef struct ty_shard_options {
    int number;           /* of this shard among the catalogue's */
    uint64_t job;         /* messages of another are refused */
    uint64_t incarnation; /* of the server */
    const char *folder;   /* of saves; NULL: SAVE and LOAD are refused */
    bool resume;          /* begin with the newest complete save in the folder, if there is one */
    int64_t silence_ms;   /* a worker that says nothing for so long counts as gone; 0: never */
    const uint8_t *key;   /* [TY_SEAL_KEY_BYTES] messages must prove; NULL: they need not (threads of one process) */
    int64_t max_rows;     /* of all hashed tables of this shard; 0: 2^31 */
    /* bytes are the callee's (free). */
    void (*answer)(void *ctx, int64_t peer, void *bytes, size_t n_bytes);
    void *ctx;
} ty_shard_options;

typedef struct ty_shard_counts {
    uint64_t pushes, late, bad, again; /* applied; too late for their step; not understood; steps that counted before */
    uint64_t strange, replayed;        /* without the job's key; with a counter that had come */
    uint64_t staleness[TY_SHARD_STALENESS_STEPS + 1];
    uint64_t staleness_sum, staleness_max;
} ty_shard_counts;

typedef struct ty_shard_waiting { /* a question whose answer has to wait */
    uint32_t worker;
    uint64_t incarnation, sequence;
    int64_t peer;
    void *bytes;
    size_t n_bytes;
} ty_shard_waiting;

typedef struct ty_shard_pending { /* sync mode: gradients of rows of the step that is being added up */
    ty_rows *rows;
    int64_t n, room;
    int64_t *id;
    float *gradient;
} ty_shard_pending;

typedef struct ty_shard {
    ty_shard_options options;
    ty_arena arena; /* catalogue */
    ty_catalogue catalogue;
    bool known, ready;
    ty_rows *rows; /* the parts that are ours */
    int n_rows;
    ty_rows **at; /* [first[v] + part]: ours, or NULL */
    int *first;
    ty_roll roll;
    uint64_t version; /* pushes (sync: steps) that changed it */
    ty_shard_counts counts;
    ty_shard_waiting *waiting;
    int n_waiting, waiting_room;
    ty_shard_pending *pending; /* [n_rows] */
    int n_added;               /* pushes of this step so far */
    double added;              /* what they weigh together: rows, in units of those of the first that has any */
    uint32_t added_unit;
    float added_scale;
    int64_t now_ms;
} ty_shard;

int ty_shard_init(ty_shard *s, const ty_shard_options *options, ty_error *err);
void ty_shard_fini(ty_shard *s);
/* A message of a peer; bytes are the shard's (malloc). now_ms is any clock that only grows. */
void ty_shard_take(ty_shard *s, void *bytes, size_t n_bytes, int64_t peer, int64_t now_ms);
/* To be called now and then: who is silent, who need not wait any more. */
void ty_shard_tick(ty_shard *s, int64_t now_ms);
/* Whether nobody is here: all workers that came have left. */
bool ty_shard_deserted(const ty_shard *s);
/* Whether all workers of the catalogue came and left: there is nothing more to do. */
bool ty_shard_finished(const ty_shard *s);

/* ---- shared by the files of a shard ---- */

/* The part of the variable if it is ours, else NULL. */
ty_rows *ty_shard_part(const ty_shard *s, uint32_t variable, uint32_t part);
/* values.c: what SET, PULL and PUSH do. Nothing is changed on failure. */
int ty_shard_set(ty_shard *s, const void *bytes, ty_error *err);
int ty_shard_pull(ty_shard *s, const void *bytes, ty_buf *answer, ty_error *err);
/* Adds answer flags. */
int ty_shard_push(ty_shard *s, const ty_parcel *m, const void *bytes, uint32_t *flags, ty_error *err);
/* Sync: applies the step if enough pushes are in. */
void ty_shard_close_step(ty_shard *s);
/* Takes a catalogue: the first, or the same again. */
int ty_shard_define(ty_shard *s, const char *text, size_t n_bytes, ty_error *err);

#endif
