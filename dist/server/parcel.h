/* parcel.h - what workers and shards say to each other: one block of bytes, a head and parts.
 *
 * A question goes to one shard and gets one answer. Those that change something, and those whose order matters, have a
 * sequence number: a shard does what one worker asks in the order of its numbers, each once, however often it arrives
 * (roll.h). Others have 0 and may be repeated without harm.
 *
 *     HELLO   TEXT catalogue                  answer: whether values are there (READY)
 *     SET     DENSE or ROWS with values       first values of variables; nothing happens once READY was said
 *     READY   -                               values are there, those of version `step`; workers that waited may pull
 *     PULL    DENSE (version) | ROWS ids      answer: the same parts with values; `step` is how many steps must be in
 *     PUSH    DENSE gradient | ROWS ids, gradients      all parts together are one push of `step`
 *     CLOCK   -                               I am through with `step`; answered when I may go on
 *     SAVE    TEXT tag                        answer: TEXT a row of the manifest
 *     COMMIT  TEXT tag, TEXT manifest         shard 0 writes it
 *     LOAD    TEXT tag
 *     STAT    -                               answer: TEXT JSON
 *     LEAVE   -                               this worker will not come back (with `step` n > 0: worker n - 1 will not)
 *     BEAT    -                               I live; no answer
 *     ALONE   -                               answered when all other workers have left (with `step` 1: all that came)
 *     WORD    -                               my word on question `step` (1, 2 ...) is `status`; answered when all
 * workers that have not left gave theirs, with the least and 2^32 times the greatest in `step`
 *
 * Bytes come from the network: ty_parcel_read looks at every length before anything else looks at a part. All numbers
 * are little-endian, blocks start at multiples of 8.
 */
#ifndef TY_DIST_SERVER_PARCEL_H
#define TY_DIST_SERVER_PARCEL_H

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

#define TY_PARCEL_MAX_BYTES ((size_t)1 << 30)
#define TY_PARCEL_MAX_PARTS 8192
#define TY_SEAL_KEY_BYTES   32

typedef enum ty_parcel_kind {
    TY_PARCEL_HELLO = 1,
    TY_PARCEL_SET,
    TY_PARCEL_READY,
    TY_PARCEL_PULL,
    TY_PARCEL_PUSH,
    TY_PARCEL_CLOCK,
    TY_PARCEL_SAVE,
    TY_PARCEL_COMMIT,
    TY_PARCEL_LOAD,
    TY_PARCEL_STAT,
    TY_PARCEL_LEAVE,
    TY_PARCEL_BEAT,
    TY_PARCEL_ALONE,
    TY_PARCEL_ANSWER,
    TY_PARCEL_WORD,
    TY_N_PARCELS
} ty_parcel_kind;

/* Flags of answers. */
enum {
    TY_PARCEL_IS_READY = 1,      /* values are there */
    TY_PARCEL_IS_WAITING = 2,    /* understood, but the answer has to wait for others: ask again */
    TY_PARCEL_IS_LATE = 4,       /* this push came too late, or for the second time: it was not counted */
    TY_PARCEL_WANTS_HELLO = 8,   /* this shard knows no catalogue: it was started anew */
    TY_PARCEL_WANTS_VALUES = 16, /* nobody has said READY so far */
    TY_PARCEL_IS_NUMBER = 32,    /* the question was not made for this process: `incarnation` is its number (seal.h) */
};

/* As on the wire. */
typedef struct ty_parcel {
    uint32_t magic; /* TY_PARCEL_MAGIC */
    uint16_t format, kind;
    uint64_t job; /* tells jobs apart that share addresses: accidents, not attacks */
    uint32_t shard, worker;
    uint64_t incarnation; /* of the worker; in answers, of the server. Grows from start to start */
    uint64_t sequence;    /* from 1; 0: out of order. An answer has its question's */
    uint64_t oldest;      /* sequence number of the oldest question that this worker still has open here */
    uint64_t step;        /* see above */
    uint64_t seen;        /* PUSH: the version the gradient was computed from; answers: the version now */
    float scale;          /* PUSH: multiplies the rule's rate */
    uint32_t status; /* answers: a ty_code; then one TEXT part says why. PUSH, in sync mode: 0, or one more than the
                        rows that the gradients are the mean of */
    uint32_t flags;
    uint32_t n_parts;
    uint64_t body_bytes;
    uint64_t counter; /* of what this process has sent to the shard: seal.h */
    uint8_t code[16];
} ty_parcel;

#define TY_PARCEL_MAGIC  0x53505954u /* "TYPS" */
#define TY_PARCEL_FORMAT 2

typedef enum ty_part_kind { TY_PART_DENSE = 1, TY_PART_ROWS, TY_PART_TEXT, TY_N_PARTS } ty_part_kind;

typedef struct ty_part {
    uint32_t kind, variable;
    uint32_t part, slot; /* DENSE: which part of the variable; slot 0 is its values, k those of the rule's slot k - 1 */
    uint64_t version;    /* DENSE, PULL: have this one; answer: this is it, and without values if it is the same */
    uint64_t n_ids, n_values, n_bytes;
    const int64_t *ids;
    const float *values;
    const char *bytes; /* not terminated */
} ty_part;

/* Reads the head and walks all parts. The message points into bytes, which begin at a multiple of 8. */
int ty_parcel_read(const void *bytes, size_t n_bytes, ty_parcel *m, ty_error *err);
/* The next part; *at begins as 0. bytes are those that ty_parcel_read accepted. */
bool ty_parcel_next(const void *bytes, size_t *at, ty_part *part);

/* Writes: begin, parts, end. The buffer's limit counts; failures stick to it. */
void ty_parcel_begin(ty_buf *out, const ty_parcel *m);
/* NULL for ids, values or bytes reserves room of that size. Returns where the part's values lie in the buffer (valid
 * until the next call), or NULL if it is full. */
float *ty_parcel_add(ty_buf *out, const ty_part *part);
int ty_parcel_end(ty_buf *out, ty_error *err);
/* Changes the head of a finished message, whose size stays. */
ty_parcel *ty_parcel_head(ty_buf *out);

/* "PUSH" */
const char *ty_parcel_text(unsigned kind);

#endif
