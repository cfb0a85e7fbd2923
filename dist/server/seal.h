/* seal.h - that a message comes from who has the job's key, and comes once.
 *
 * Each message carries a code over all its bytes, under the job's key, and over a number that only its receiver's
 * process has: a question is made for one process of a server, an answer for one process of a worker. So nothing that
 * was recorded can be said again to another process. Within one process a question's counter tells: each that is sent,
 * also one that is sent again, has the next number, and a server takes each number once.
 *
 *     code = first 16 bytes of HMAC-SHA256(key, message with the receiver's number in place of the code)
 *
 * A worker that does not know the server's number yet seals with 0. Such a question does nothing but to be answered
 * with the number. What is not sealed, or sealed with another key, is dropped without a word to its sender. Nothing is
 * encrypted.
 */
#ifndef TY_DIST_SERVER_SEAL_H
#define TY_DIST_SERVER_SEAL_H

#include "dist/server/parcel.h"

/* The key of a job's servers, out of its secret: HMAC-SHA256(secret, "trainyard servers " | name of the job). */
int ty_seal_key(const void *secret, size_t n_bytes, const char *job, uint8_t key[TY_SEAL_KEY_BYTES], ty_error *err);
/* Puts the code into a whole message. key NULL: leaves it as it is. */
int ty_seal(void *bytes, size_t n_bytes, const uint8_t *key, uint64_t receiver, ty_error *err);
/* Whether the code is right; the bytes are the same afterwards. key NULL: always. */
bool ty_seal_holds(void *bytes, size_t n_bytes, const uint8_t *key, uint64_t receiver);

/* Which counters of one worker's process have come: the last 64 are told apart, older ones count as come. */
typedef struct ty_seal_window {
    uint64_t incarnation, highest, bits; /* bit i: highest - i has come */
} ty_seal_window;

/* True the first time. */
bool ty_seal_is_new(ty_seal_window *w, uint64_t incarnation, uint64_t counter);

#endif
