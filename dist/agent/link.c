/* link.c - the protocol of link.h as a machine that eats bytes.
 *
 * It never keeps more than it needs: 40 and 32 bytes of a stranger, afterwards one frame. A length is believed up to
 * its limit only, and memory for it grows as its bytes arrive. */
#define _GNU_SOURCE
#include "dist/agent/link.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define LINK_MAGIC "TYLINK1\n"
enum { MAGIC_BYTES = 8, GREETING_BYTES = MAGIC_BYTES + TY_LINK_NONCE_BYTES };

/* ---- keys and codes ---- */

int ty_link_key(const void *secret, size_t n_bytes, const char *job, uint8_t key[TY_LINK_KEY_BYTES], ty_error *err)
{
    static const char words[] = "trainyard job ";
    ty_buf text;
    ty_buf_init(&text, 65536);
    ty_buf_adds(&text, words);
    ty_buf_adds(&text, job);
    int rc = text.failed || n_bytes == 0
                 ? ty_error_set(err, TY_E_RANGE, "the job's %s", text.failed ? "name is too long" : "secret is empty")
                 : ty_hmac_sha256(secret, n_bytes, text.data, text.len, key, err);
    ty_buf_fini(&text);
    return rc;
}

/* HMAC(key, word | connecting side's nonce | listening side's nonce). */
static int prove(const ty_link *l, const char *word, uint8_t out[TY_LINK_MAC_BYTES], ty_error *err)
{
    uint8_t text[16 + 2 * TY_LINK_NONCE_BYTES] = {0};
    memcpy(text, word, strlen(word));
    memcpy(text + 16, l->listening ? l->other_nonce : l->own_nonce, TY_LINK_NONCE_BYTES);
    memcpy(text + 16 + TY_LINK_NONCE_BYTES, l->listening ? l->own_nonce : l->other_nonce, TY_LINK_NONCE_BYTES);
    return ty_hmac_sha256(l->key, sizeof l->key, text, sizeof text, out, err);
}

static void put_number(uint8_t *at, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_number(const uint8_t *at, int n_bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < n_bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* ---- life ---- */

int ty_link_init(ty_link *l, const uint8_t key[TY_LINK_KEY_BYTES], bool listening, const uint8_t *nonce, ty_error *err)
{
    *l = (ty_link){.state = TY_LINK_GREETING, .listening = listening};
    ty_buf_init(&l->out, TY_LINK_QUEUE_BYTES);
    ty_buf_init(&l->in, TY_LINK_HEAD_BYTES + TY_LINK_PAYLOAD_BYTES + TY_LINK_MAC_BYTES);
    memcpy(l->key, key, sizeof l->key);
    if (nonce)
        memcpy(l->own_nonce, nonce, sizeof l->own_nonce);
    else if (getrandom(l->own_nonce, sizeof l->own_nonce, 0) != (ssize_t)sizeof l->own_nonce)
        return ty_error_errno(err, TY_E_LIMIT, errno, "no random numbers for a link");
    ty_buf_add(&l->out, LINK_MAGIC, MAGIC_BYTES);
    ty_buf_add(&l->out, l->own_nonce, sizeof l->own_nonce);
    return 0;
}

void ty_link_fini(ty_link *l)
{
    ty_buf_fini(&l->in);
    ty_buf_fini(&l->out);
    explicit_bzero(l->key, sizeof l->key);
    explicit_bzero(l->send_key, sizeof l->send_key);
    explicit_bzero(l->receive_key, sizeof l->receive_key);
}

void ty_link_sent(ty_link *l, size_t n_bytes)
{
    if (n_bytes >= l->out.len) {
        ty_buf_clear(&l->out);
        return;
    }
    memmove(l->out.data, l->out.data + n_bytes, l->out.len - n_bytes);
    l->out.len -= n_bytes;
    l->out.data[l->out.len] = 0;
}

/* ---- the handshake ---- */

static int open_link(ty_link *l, ty_error *err)
{
    uint8_t *to_listener = l->listening ? l->receive_key : l->send_key;
    uint8_t *from_listener = l->listening ? l->send_key : l->receive_key;
    if (prove(l, "frames there", to_listener, err) < 0 || prove(l, "frames back", from_listener, err) < 0)
        return -1;
    l->state = TY_LINK_OPEN;
    return 0;
}

static int send_proof(ty_link *l, ty_error *err)
{
    uint8_t proof[TY_LINK_MAC_BYTES];
    if (prove(l, l->listening ? "listen" : "connect", proof, err) < 0)
        return -1;
    ty_buf_add(&l->out, proof, sizeof proof);
    return 0;
}

static int take_greeting(ty_link *l, ty_error *err)
{
    if (memcmp(l->in.data, LINK_MAGIC, MAGIC_BYTES) != 0)
        return ty_error_set(err, TY_E_DATA, "the other side is no agent of this version");
    memcpy(l->other_nonce, l->in.data + MAGIC_BYTES, TY_LINK_NONCE_BYTES);
    l->state = TY_LINK_PROVING;
    return l->listening ? 0 : send_proof(l, err);
}

static int take_proof(ty_link *l, ty_error *err)
{
    uint8_t expected[TY_LINK_MAC_BYTES];
    if (prove(l, l->listening ? "connect" : "listen", expected, err) < 0)
        return -1;
    if (!ty_same_code(expected, (const uint8_t *)l->in.data))
        return ty_error_set(err, TY_E_PERMISSION, "authentication failed: the other side has another secret");
    if (l->listening && send_proof(l, err) < 0)
        return -1;
    return open_link(l, err);
}

/* ---- frames ---- */

typedef int frame_call(void *ctx, int kind, const uint8_t *payload, size_t n_bytes, ty_error *err);

/* One whole frame: head, payload, code. */
static int take_frame(ty_link *l, const uint8_t *bytes, size_t payload_bytes, frame_call *frame, void *ctx,
                      ty_error *err)
{
    uint8_t expected[TY_LINK_MAC_BYTES];
    size_t covered = TY_LINK_HEAD_BYTES + payload_bytes;
    if (ty_hmac_sha256(l->receive_key, sizeof l->receive_key, bytes, covered, expected, err) < 0)
        return -1;
    if (!ty_same_code(expected, bytes + covered))
        return ty_error_set(err, TY_E_DATA, "a frame fails its check: bytes were changed on the way");
    uint64_t counter = get_number(bytes + 8, 8);
    if (counter != l->received)
        return ty_error_set(err, TY_E_DATA, "frame %llu came where %llu was due: replayed or lost",
                            (unsigned long long)counter, (unsigned long long)l->received);
    if (get_number(bytes + 6, 2) != 0)
        return ty_error_set(err, TY_E_DATA, "a frame has flags that this version does not know");
    l->received++;
    return frame(ctx, (int)get_number(bytes + 4, 2), bytes + TY_LINK_HEAD_BYTES, payload_bytes, err);
}

/* How many bytes are needed before the next thing can be looked at; -1: the length is out of bounds. */
static int64_t wanted(const ty_link *l, const uint8_t *bytes, size_t n_bytes, ty_error *err)
{
    if (l->state == TY_LINK_GREETING)
        return GREETING_BYTES;
    if (l->state == TY_LINK_PROVING)
        return TY_LINK_MAC_BYTES;
    if (n_bytes < TY_LINK_HEAD_BYTES)
        return TY_LINK_HEAD_BYTES;
    uint64_t payload_bytes = get_number(bytes, 4);
    if (payload_bytes > TY_LINK_PAYLOAD_BYTES)
        return ty_error_set(err, TY_E_LIMIT, "a frame of %llu bytes is announced; %d is the most",
                            (unsigned long long)payload_bytes, TY_LINK_PAYLOAD_BYTES);
    return (int64_t)(TY_LINK_HEAD_BYTES + payload_bytes + TY_LINK_MAC_BYTES);
}

static int take_whole(ty_link *l, const uint8_t *bytes, size_t n_bytes, frame_call *frame, void *ctx, ty_error *err)
{
    if (l->state == TY_LINK_GREETING)
        return take_greeting(l, err);
    if (l->state == TY_LINK_PROVING)
        return take_proof(l, err);
    return take_frame(l, bytes, n_bytes - TY_LINK_HEAD_BYTES - TY_LINK_MAC_BYTES, frame, ctx, err);
}

/* Bytes are collected until what is wanted is there; what follows stays with the caller. Returns how many were used,
 * -1 on failure. */
static int64_t take_some(ty_link *l, const uint8_t *bytes, size_t n_bytes, frame_call *frame, void *ctx, ty_error *err)
{
    int64_t want = wanted(l, (const uint8_t *)l->in.data, l->in.len, err);
    if (want < 0)
        return -1;
    size_t missing = (size_t)want - l->in.len, used = missing < n_bytes ? missing : n_bytes;
    if (ty_buf_add(&l->in, bytes, used) < 0)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a frame of %lld bytes", (long long)want);
    if (l->in.len < (size_t)want)
        return (int64_t)used;
    want = wanted(l, (const uint8_t *)l->in.data, l->in.len, err); /* with the head, the whole frame is known */
    if (want < 0)
        return -1;
    if (l->in.len == (size_t)want) {
        if (take_whole(l, (const uint8_t *)l->in.data, l->in.len, frame, ctx, err) < 0)
            return -1;
        ty_buf_clear(&l->in);
    }
    return (int64_t)used;
}

int ty_link_take(ty_link *l, const void *bytes, size_t n_bytes, frame_call *frame, void *ctx, ty_error *err)
{
    if (l->state == TY_LINK_FAILED)
        return ty_error_set(err, TY_E_DATA, "the link has failed before");
    for (size_t done = 0; done < n_bytes;) {
        int64_t used = take_some(l, (const uint8_t *)bytes + done, n_bytes - done, frame, ctx, err);
        if (used < 0) {
            l->state = TY_LINK_FAILED;
            return -1;
        }
        done += (size_t)used;
    }
    return 0;
}

int ty_link_send(ty_link *l, int kind, const void *payload, size_t n_bytes, ty_error *err)
{
    if (l->state != TY_LINK_OPEN)
        return ty_error_set(err, TY_E_INTERNAL, "a frame for a link that is not open");
    if (n_bytes > TY_LINK_PAYLOAD_BYTES)
        return ty_error_set(err, TY_E_LIMIT, "a message of %zu bytes; %d is the most", n_bytes, TY_LINK_PAYLOAD_BYTES);
    size_t start = l->out.len;
    uint8_t head[TY_LINK_HEAD_BYTES] = {0}, mac[TY_LINK_MAC_BYTES];
    put_number(head, n_bytes, 4);
    put_number(head + 4, (uint64_t)kind, 2);
    put_number(head + 8, l->sent, 8);
    if (ty_buf_add(&l->out, head, sizeof head) < 0 || ty_buf_add(&l->out, payload, n_bytes) < 0 ||
        ty_hmac_sha256(l->send_key, sizeof l->send_key, l->out.data + start, sizeof head + n_bytes, mac, err) < 0 ||
        ty_buf_add(&l->out, mac, sizeof mac) < 0) {
        l->state = TY_LINK_FAILED;
        return ty_error_set(err, TY_E_LIMIT, "%zu bytes wait to be sent and the other side takes none", start);
    }
    l->sent++;
    return 0;
}
