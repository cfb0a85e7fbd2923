/* call.h - one call of a program, and what ranks tell each other about it.
 *
 * A call is made on a channel (channel.h). Before anything is done all ranks exchange a word: 200 bytes that say what
 * this rank is at (calling, unable to call, joined, leaving), and a fingerprint of what it asks for. Where fingerprints
 * differ or a rank has a fault, texts follow, so that every rank can say who asked for what. Where they are equal, the
 * word of any calling rank says all that a joined rank must know to take part.
 */
#ifndef TY_DIST_API_CALL_H
#define TY_DIST_API_CALL_H

#include "base/buf.h"
#include "base/tensor.h"
#include "dist/api/fault.h"

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

/* Rows of the table in carry.c. */
typedef enum ty_call_kind {
    TY_CALL_ALLREDUCE,
    TY_CALL_ALLGATHER,
    TY_CALL_REDUCESCATTER,
    TY_CALL_ALLTOALL,
    TY_CALL_BROADCAST,
    TY_CALL_BARRIER,
    TY_CALL_READ,      /* bytes of rank 0, as many as it has */
    TY_CALL_WRITE,     /* what came of rank 0's writing */
    TY_CALL_SET,       /* a process set begins */
    TY_CALL_UNSET,     /* and ends */
    TY_CALL_GRADIENTS, /* parameters are registered */
    TY_CALL_FORGET,    /* and forgotten */
    TY_CALL_STEP,      /* buckets of gradients follow */
    TY_CALL_BUCKET,    /* one of them; no words are exchanged */
    TY_CALL_JOIN,
    TY_CALL_LEAVE,
    TY_N_CALLS
} ty_call_kind;

#define TY_CALL_NAME_BYTES 96
#define TY_CALL_TEXT_BYTES (4u << 20) /* of lists of tensors */

struct ty_channel;

typedef struct ty_call {
    /* What is asked for. */
    ty_call_kind kind;
    trainyard_options options; /* its name is `name` */
    char name[TY_CALL_NAME_BYTES];
    int root;                    /* index within the channel */
    const trainyard_tensor *in;  /* [n], the call's own copies */
    const trainyard_tensor *out; /* [n] or NULL: in place */
    int n;
    trainyard_tensor *result; /* where gathers leave what came out: the caller's */
    const int64_t *splits;
    int64_t *received;
    const char *details; /* further lines of its text; or NULL */
    void *with;          /* what its kind works on */
    int (*work)(struct ty_channel *channel, struct ty_call *call, ty_error *err); /* of kinds that others define */
    int64_t n_bytes; /* of reads, at rank 0; -1: there is no such file */
    int fault;       /* a code: this rank cannot carry it out, because of `err`, and the others must know */

    /* What came of it. */
    int code;
    ty_error err;
    int answer; /* of join: who was last; of sets: their number */
    bool stop;  /* a rank was told to stop */

    /* The channel's, and the table of handles'. */
    sem_t done;
    struct ty_call *next;
    int64_t handle;
    trainyard_tensor *tensors; /* owned */
    trainyard_tensor one[2];
} ty_call;

/* Copies options, tensors (not what they point at) and checks them; what is wrong becomes its fault. `in` and `out` may
 * be NULL where the kind has none. */
void ty_call_init(ty_call *call, ty_call_kind kind, const trainyard_options *options, const trainyard_tensor *in,
                  const trainyard_tensor *out, int n);
void ty_call_fini(ty_call *call);

/* What a rank is at. */
typedef enum ty_word_state { TY_WORD_CALLS, TY_WORD_FAULT, TY_WORD_JOINED, TY_WORD_LEAVES } ty_word_state;

/* As it travels: between the same programs on the same kind of machine. */
typedef struct ty_word {
    uint64_t form; /* FNV-1a of its text */
    int32_t state, stop;
    int32_t kind, op, compression, root;
    int64_t text_bytes;
    int64_t dtype, row_elems;   /* of gathers */
    int64_t rows;               /* of gathers: this rank's own */
    int64_t room;               /* rows that its `out` holds; -1: as many as there are */
    int64_t elems[TY_N_DTYPES]; /* of allreduces, by type */
    int64_t n_bytes;            /* of broadcasts and reads */
} ty_word;

/* The call's text, lines apart: `allreduce "loss" average f32[3,4]`, or its fault's; and its word. `text` was
 * initialised. */
void ty_call_word(const ty_call *call, bool stop, ty_buf *text, ty_word *word);

#endif
