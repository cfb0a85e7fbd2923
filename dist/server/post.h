/* post.h - the questions of one worker: numbered, sent, sent again until answered. The thread behind client.h.
 *
 * A question that was not answered is sent again after resend_ms, then after half as long again each time, up to
 * POST_SLOWEST_MS. That costs nothing but time, since shards do each sequence number once (roll.h). A server from which
 * nothing comes for patience_ms is lost: its questions fail. "Wait" is an answer.
 */
#ifndef TY_DIST_SERVER_POST_H
#define TY_DIST_SERVER_POST_H

#include "dist/server/client.h"
#include "dist/server/parcel.h"

typedef struct ty_post ty_post;

typedef struct ty_question {
    int shard;
    bool done;
    void *answer; /* of a done one that did not fail */
    size_t n_bytes;
    ty_error err; /* code TY_E_NONE: it went well */
    /* private */
    uint64_t sequence, token;
    ty_buf bytes;
    int64_t due_ms, heard_ms;
    int interval_ms, sent; /* sent: how often */
    bool told, forgotten;  /* told: how it went */
} ty_question;

int ty_post_open(const ty_client_options *o, ty_post **out, ty_error *err);
void ty_post_close(ty_post *p);

/* Takes the message over: its head is filled but for what identifies it. In order with others of its shard if
 * `sequenced`. Blocks while too many are open. NULL: failed. */
ty_question *ty_post_ask(ty_post *p, int shard, ty_buf *message, bool sequenced, ty_error *err);
/* Waits until it is done, and returns how it went; the answer is readable then. timeout_ms 0: as long as it takes. */
int ty_post_wait(ty_post *p, ty_question *q, int64_t timeout_ms, ty_error *err);
/* Gives it back; one that is not done goes on. If it failed and nobody waited for it, ty_post_settle tells. NULL is
 * fine. */
void ty_post_free(ty_post *p, ty_question *q);
/* Gives up what may never be answered: it is not sent again, and nobody waits for it. NULL is fine. */
void ty_post_drop(ty_post *p, ty_question *q);
/* Waits for the forgotten ones; the first failure since the last call. */
int ty_post_settle(ty_post *p, bool wait, ty_error *err);

bool ty_post_ready(ty_post *p);   /* what all shards said last of their values */
int ty_post_restarts(ty_post *p); /* servers that are other processes than before */

#endif
