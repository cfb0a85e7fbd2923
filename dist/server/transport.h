/* transport.h - how blocks of bytes travel between workers and servers: a table of functions.
 *
 * What a transport promises: a block arrives whole or not at all. Nothing else: it may be lost when a connection
 * breaks, and who sent it is not told. Order and repetition are the business of roll.h, resending of client.h.
 *
 *     local   between threads of one process: tests, and servers beside workers
 *     ucx     active messages over TCP (libtrainyard-ucx.so, dist/plugin/ucx.c). Endpoints have error mode PEER: a dead
 *             peer is an error of its endpoint and of nothing else. Not encrypted: listen on the interface of the job,
 * and rely on its network. Who may speak is told by seal.h.
 *
 * A transport belongs to one thread, but for wake.
 */
#ifndef TY_DIST_SERVER_TRANSPORT_H
#define TY_DIST_SERVER_TRANSPORT_H

#include "base/error.h"
#include "dist/server/queue.h"

#define TY_TRANSPORT_VERSION       1
#define TY_TRANSPORT_ADDRESS_BYTES 128

typedef struct ty_transport_table {
    const char *name;
    /* listen: "10.0.1.7:8891", port 0 takes a free one; NULL: only to call others. interface: "eth0", or NULL for any.
     * address becomes where others reach it, or "". */
    int (*open)(const char *listen, const char *interface, void **self, char address[TY_TRANSPORT_ADDRESS_BYTES],
                ty_error *err);
    /* A number for whoever listens there, now or later; nothing is sent. It is called (again) when there is something
     * to send. Fails if the address cannot be one. */
    int (*connect)(void *self, const char *address, int64_t *peer, ty_error *err);
    /* Takes the bytes over. A peer that is gone gets nothing. */
    void (*send)(void *self, int64_t peer, void *bytes, size_t n_bytes);
    /* Moves what is to be moved, and waits up to timeout_ms for a block: 1, or 0: none came, or it was woken. */
    int (*receive)(void *self, int timeout_ms, ty_delivery *d, ty_error *err);
    void (*wake)(void *self); /* from any thread: receive returns, now or the next */
    void (*close)(void *self);
} ty_transport_table;

typedef struct ty_transport_options {
    const char *name;      /* "local", "ucx" */
    const char *listen;    /* as above */
    const char *interface; /* as above */
    int drop_percent;      /* of what is sent is lost, by chance: tests */
    uint64_t drop_seed;
} ty_transport_options;

typedef struct ty_transport {
    const ty_transport_table *table;
    void *self;
    char address[TY_TRANSPORT_ADDRESS_BYTES];
    int drop_percent;
    uint64_t drop_seed, n_sent, n_dropped;
} ty_transport;

int ty_transport_open(const ty_transport_options *o, ty_transport *t, ty_error *err);
void ty_transport_send(ty_transport *t, int64_t peer, void *bytes, size_t n_bytes);
/* Finishes what is on its way as far as it can be, and closes. */
void ty_transport_close(ty_transport *t);

extern const ty_transport_table ty_transport_local; /* local.c */

#endif
