/* client.h - a worker's side of the parameter server.
 *
 *     ty_client *c;
 *     ty_client_open(&options, &c, err);              // hello to all shards
 *     if (chief && !ty_client_ready(c)) {             // first values: the model's, once
 *         ty_client_set(c, &all, err);
 *         ty_client_start(c, 0, err);
 *     }
 *     for (step = 1; ; step++) {
 *         ty_client_pull(c, &batch, step - 1, &next, err)  ...  ty_client_take(c, next, err)
 *         ... compute gradients ...
 *         ty_client_push(c, &gradients, step, scale, err); // under way; resent until it is answered
 *         ty_client_clock(c, step, err);                   // bounded staleness: returns when we may go on
 *     }
 *     ty_client_close(c, true);
 *
 * A pull of batch t + 1 can be begun before batch t is computed: that is one more step of staleness and no waiting.
 * Rows are asked for and sent without duplicates (gradients of equal ids are added up), sorted, one message a shard.
 *
 * A thread of its own sends, receives, and sends again what was not answered; calls are for one thread.
 */
#ifndef TY_DIST_SERVER_CLIENT_H
#define TY_DIST_SERVER_CLIENT_H

#include "dist/server/catalogue.h"
#include "dist/server/transport.h"

typedef struct ty_client ty_client;
typedef struct ty_client_ticket ty_client_ticket;

typedef struct ty_client_options {
    ty_transport_options transport; /* listen stays NULL */
    const char *const *servers;     /* addresses; shard k is at servers[k / (shards / n_servers)] */
    int n_servers;
    uint64_t job;
    const uint8_t *key; /* [TY_SEAL_KEY_BYTES] copied; NULL: none (seal.h) */
    int worker;
    uint64_t incarnation;          /* larger than that of any process that was this worker before; 0: the time now */
    const ty_catalogue *catalogue; /* placed; must outlive the client */
    int resend_ms;                 /* the first time; 0: 200. Then longer and longer, up to 2 s */
    bool (*stopping)(void); /* questions to a server that has no values yet fail with TY_E_STOPPED then; NULL: never */
    int64_t patience_ms;    /* a server that answers nothing for so long is lost; 0: 60 s */
} ty_client_options;

/* A dense variable, whole: values [rows][width]. */
typedef struct ty_client_dense {
    int variable;
    float *values;
    int slot;  /* pull, set: 0 its values, k those of the rule's slot k - 1 */
    bool keep; /* pull: values are still those of the last pull into them; what did not change is not sent */
} ty_client_dense;

/* Some rows of a table: rows [n][width] for ids [n], which may come up more than once. */
typedef struct ty_client_rows {
    int variable;
    const int64_t *ids;
    int64_t n;
    float *rows;
} ty_client_rows;

typedef struct ty_client_batch { /* what one step reads, or its gradients */
    const ty_client_dense *dense;
    int n_dense;
    const ty_client_rows *rows;
    int n_rows;
} ty_client_batch;

typedef struct ty_client_stat {                                       /* over all shards */
    int64_t version, rows, pushes, late, again, bad, repeated, early; /* version: of the shard that is furthest */
    int64_t strange, replayed;                                        /* dropped: seal.h */
    int active;                                                       /* workers */
    double staleness_mean;
    int64_t staleness_p99, staleness_max; /* of the shard where it is largest */
} ty_client_stat;

int ty_client_open(const ty_client_options *o, ty_client **out, ty_error *err);
/* `leave`: nobody needs to wait for this worker any more. Without it, it may be started again. NULL is fine. */
void ty_client_close(ty_client *c, bool leave);

/* Whether values are there (set by the chief, or from a save). */
bool ty_client_ready(ty_client *c);
int ty_client_set(ty_client *c, const ty_client_batch *values, ty_error *err);
/* They are those of `version`: how many pushes (sync: steps) they have seen. */
int ty_client_start(ty_client *c, uint64_t version, ty_error *err);
/* Waits until the chief has called ty_client_start. */
int ty_client_wait_ready(ty_client *c, int64_t timeout_ms, ty_error *err);

/* Begins to pull. Sync mode: when `step` steps are in. The batch's memory must stay until ty_client_take, which waits
 * and writes the values; it frees the ticket, also on failure. */
int ty_client_pull(ty_client *c, const ty_client_batch *b, uint64_t step, ty_client_ticket **out, ty_error *err);
int ty_client_take(ty_client *c, ty_client_ticket *t, ty_error *err);
/* Sends gradients of `step` (1, 2 ...; 0: of none, always counted) that were computed from what was taken last. Returns
 * when they are handed over; a refusal comes out of a later call. */
int ty_client_push(ty_client *c, const ty_client_batch *gradients, uint64_t step, float scale, ty_error *err);
/* The same of gradients that are the mean of so many rows: in sync mode the mean of a step is over the rows of all
 * workers. 0: of none, whose values do not count but for which nobody has to wait. */
int ty_client_push_rows(ty_client *c, const ty_client_batch *gradients, uint32_t rows, uint64_t step, float scale,
                        ty_error *err);
/* Each worker's word on a question, which all ask in the same order: number 1, 2 ... Returns when all that have not
 * left have said theirs, with the least and the greatest; TY_E_STOPPED when options.stopping says so. */
int ty_client_agree(ty_client *c, uint64_t question, uint32_t mine, uint32_t *least, uint32_t *most, ty_error *err);
/* Waits until all pushes are answered. */
int ty_client_flush(ty_client *c, ty_error *err);
/* Flushes, says that `step` is done, and waits until this worker may go on (bounded mode; else at once). */
int ty_client_clock(ty_client *c, uint64_t step, ty_error *err);

/* Every shard saves, then the manifest is written. A save is consistent if no worker pushes meanwhile. */
int ty_client_save(ty_client *c, const char *tag, ty_error *err);
int ty_client_load(ty_client *c, const char *tag, ty_error *err);
int ty_client_stats(ty_client *c, ty_client_stat *out, ty_error *err);
/* Worker `who` will not come back: nobody waits for it. */
int ty_client_leave_for(ty_client *c, int who, ty_error *err);
/* Pushes (sync: steps) that the values taken last had seen: of the shard that is furthest, or behind all others. */
uint64_t ty_client_version(ty_client *c, bool furthest);
/* Flushes, and waits until all other workers have left; `came`: all that ever came. timeout_ms 0: as long as it takes,
 * or until options.stopping says so (TY_E_STOPPED). Given up, it leaves nothing behind that a flush would wait for. */
int ty_client_alone(ty_client *c, bool came, int64_t timeout_ms, ty_error *err);
/* Flushes and leaves: nobody waits for this worker any more. */
int ty_client_leave(ty_client *c, int64_t timeout_ms, ty_error *err);
/* Bytes of all questions, and of answers that had values: each once, however often they were sent. */
int64_t ty_client_bytes(const ty_client *c);
/* How often a server was found to be another process than before: pushes since its last save are gone. */
int ty_client_restarts(ty_client *c);

#endif
