/* server.h - a parameter server: some shards of a job, a thread each, and one more for the messages.
 *
 * It needs to know nothing of the model: the first worker that says hello brings the catalogue. It is over when all
 * workers have left. Started again with `resume` it goes on from the newest complete save in its folder.
 *
 *     ty_server *server;
 *     if (ty_server_start(&(ty_server_options){.transport = {.name = "ucx", .listen = "10.0.1.7:8891"},
 *                                              .n_shards = 1, .first_shard = 0, .job = job}, &server, err) < 0) ...
 *     while (!ty_server_wait(server, 1000) && !stop) {}
 *     ty_server_stop(server);
 */
#ifndef TY_DIST_SERVER_SERVER_H
#define TY_DIST_SERVER_SERVER_H

#include "base/error.h"
#include "dist/server/transport.h"

typedef struct ty_server_options {
    ty_transport_options transport; /* listen is needed */
    int first_shard, n_shards;      /* ours: first_shard .. first_shard + n_shards - 1 */
    uint64_t job;                   /* the same number on all hosts of a job, another for other jobs */
    const char *folder;             /* of saves; NULL: none */
    bool resume;
    const uint8_t *key; /* [TY_SEAL_KEY_BYTES] copied; NULL: none (seal.h) */
    int64_t silence_ms; /* a worker that says nothing for so long is waited for no more; 0: never */
} ty_server_options;

typedef struct ty_server ty_server;

int ty_server_start(const ty_server_options *o, ty_server **out, ty_error *err);
/* Where workers reach it. */
const char *ty_server_address(const ty_server *s);
/* Whether all workers have left; waits up to timeout_ms for that. Also true when the transport failed, which
 * ty_server_stop tells. */
bool ty_server_wait(ty_server *s, int timeout_ms);
/* Nobody new will come: from now on it is over when all workers that came have left. */
void ty_server_expect_no_more(ty_server *s);
/* Ends its threads and frees it. -1 if it had failed. */
int ty_server_stop(ty_server *s, ty_error *err);

#endif
