/* channel.h - an order of calls that all its ranks share: the world's, a process set's, one of a set of gradients.
 *
 * Calls are carried out one after the other, by a thread of the channel or, where nothing waits, by the caller of
 * ty_channel_do itself.
 */
#ifndef TY_DIST_API_CHANNEL_H
#define TY_DIST_API_CHANNEL_H

#include "dist/api/call.h"
#include "dist/comm/comm.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct ty_channel {
    ty_comm *comm; /* owned */
    int rank, size;
    int *ranks;                                                  /* [size] owned: numbers in the world, for texts */
    const atomic_int *told;                                      /* this process was told to stop */
    void *gradients;                                             /* whose channel it is, or NULL */
    int (*take_part)(struct ty_channel *channel, ty_error *err); /* in a step of them, with zeros */
    ty_word *words;                                              /* [size] of the call that is carried out */
    int64_t *counts;                                             /* [4 * size] room for numbers a rank */
    bool *joined;                                                /* [size] as of the last words */
    int last_joined;                                             /* who joined last, while some have */
    void *scratch;                                               /* memory of the calls, see ty_channel_scratch */
    size_t scratch_bytes;
    ty_error lost; /* why nothing can be called any more */

    pthread_mutex_t lock;
    pthread_cond_t work;   /* only the thread waits for it */
    ty_call *first, *last; /* that wait */
    bool busy, ending, has_thread;
    pthread_t thread;
} ty_channel;

/* Takes the comm, also where it fails. ranks may be NULL: as they are numbered. */
int ty_channel_open(ty_comm *comm, const int *ranks, const atomic_int *told, ty_channel **channel, ty_error *err);
/* Carries out what waits, then frees it. NULL is fine. */
void ty_channel_close(ty_channel *channel);

/* The call belongs to the channel until it is done. */
void ty_channel_begin(ty_channel *channel, ty_call *call);
/* Of a call that was begun: until it is done; as often as one likes. */
void ty_channel_wait(ty_call *call);
bool ty_channel_is_done(ty_call *call);
/* Begins and waits. */
void ty_channel_do(ty_channel *channel, ty_call *call);

/* Memory until the next call of it, aligned to 64 bytes; NULL if there is none. */
void *ty_channel_scratch(ty_channel *channel, size_t n_bytes);

#endif
