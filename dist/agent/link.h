/* link.h - one authenticated connection between two agents: what is said, not the socket it is said on.
 *
 * Both ends have the job's secret. Before anything else is looked at, each proves it:
 *
 *     both         magic "TYLINK1\n", a nonce of 32 random bytes                                       40 bytes
 *     connecting   HMAC-SHA256(key, "connect" | its nonce | the other's)                               32 bytes
 *     listening    checks that; then  HMAC-SHA256(key, "listen" | the other's nonce | its own)         32 bytes
 *     connecting   checks that; both are through
 *
 * The connecting side proves first, so that a stranger learns nothing that he could try secrets against, and the words
 * keep one side's proof from being the other's. 72 bytes are all that is ever read from a stranger. Then frames, in
 * each direction under a key of its own, HMAC(key, "frames" | direction | nonces):
 *
 *     length of the payload u32 | kind u16 | 0 u16 | counter u64 | payload | HMAC of all before        48 bytes more
 *
 * little-endian. The counter goes 0, 1, 2 ...: a frame that was changed, replayed, left out, reordered or sent back
 * fails, and a failed link stays failed. Nothing is encrypted: agents tell each other nothing that is secret, above all
 * not the secret.
 *
 * Where the secret comes from is the caller's business. One that only derives from what everybody knows (the job's name
 * and its hosts) keeps apart two jobs and a stale process; it does not stop an attacker.
 *
 * A link has no socket: bytes that arrived are given to ty_link_take, bytes to send are in `out`. That is what tests
 * and fuzzers drive, and what the loop joins to a descriptor (connection.h).
 */
#ifndef TY_DIST_AGENT_LINK_H
#define TY_DIST_AGENT_LINK_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TY_LINK_KEY_BYTES     32
#define TY_LINK_NONCE_BYTES   32
#define TY_LINK_MAC_BYTES     32
#define TY_LINK_HEAD_BYTES    16
#define TY_LINK_PAYLOAD_BYTES (16 << 20) /* at most, in one frame */
#define TY_LINK_QUEUE_BYTES   (64 << 20) /* at most, waiting to be sent */
#define TY_LINK_STRANGER_MS   5000       /* how long a stranger may take: kept by whoever owns the socket */

/* The key of a job: HMAC-SHA256(secret, "trainyard job " | name). */
int ty_link_key(const void *secret, size_t n_bytes, const char *job, uint8_t key[TY_LINK_KEY_BYTES], ty_error *err);

typedef enum ty_link_state {
    TY_LINK_GREETING, /* waits for the other's nonce */
    TY_LINK_PROVING,  /* waits for the other's proof */
    TY_LINK_OPEN,
    TY_LINK_FAILED,
} ty_link_state;

typedef struct ty_link {
    ty_link_state state;
    bool listening;
    ty_buf out;              /* to be sent; the owner takes from the front */
    ty_buf in;               /* private: the beginning of a frame */
    uint64_t sent, received; /* frames */
    uint8_t key[TY_LINK_KEY_BYTES], send_key[TY_LINK_KEY_BYTES], receive_key[TY_LINK_KEY_BYTES]; /* private */
    uint8_t own_nonce[TY_LINK_NONCE_BYTES], other_nonce[TY_LINK_NONCE_BYTES];                    /* private */
} ty_link;

/* nonce: NULL for a random one; tests give theirs. The greeting is in `out` afterwards. */
int ty_link_init(ty_link *l, const uint8_t key[TY_LINK_KEY_BYTES], bool listening, const uint8_t *nonce, ty_error *err);
void ty_link_fini(ty_link *l);

/* Bytes that arrived. frame is called for each complete, verified one; its payload is the link's, until it returns. A
 * frame of which `frame` returns -1 fails the link. TY_E_PERMISSION: the other side has another secret. TY_E_DATA: it
 * is no agent, or somebody changed or replayed bytes. */
int ty_link_take(ty_link *l, const void *bytes, size_t n_bytes,
                 int (*frame)(void *ctx, int kind, const uint8_t *payload, size_t n_bytes, ty_error *err), void *ctx,
                 ty_error *err);

/* Puts a frame into `out`. Only when open. TY_E_LIMIT: too large, or the other side takes nothing any more. */
int ty_link_send(ty_link *l, int kind, const void *payload, size_t n_bytes, ty_error *err);

/* Forgets n bytes of `out` that have been sent. */
void ty_link_sent(ty_link *l, size_t n_bytes);

#endif
