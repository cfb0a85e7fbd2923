/* seal.c - see seal.h. */
#include "dist/server/seal.h"

#include "base/hash.h"

#include <string.h>

int ty_seal_key(const void *secret, size_t n_bytes, const char *job, uint8_t key[TY_SEAL_KEY_BYTES], ty_error *err)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 16);
    ty_buf_addf(&text, "trainyard servers %s", job);
    int rc = text.failed ? ty_error_set(err, TY_E_LIMIT, "a job's name of %zu bytes", strlen(job))
                         : ty_hmac_sha256(secret, n_bytes, text.data, text.len, key, err);
    ty_buf_fini(&text);
    return rc;
}

/* The number stands where the code will, so that a message is hashed where it lies. */
static int seal_code(ty_parcel *head, size_t n_bytes, const uint8_t *key, uint64_t receiver,
                     uint8_t code[TY_SHA256_BYTES], ty_error *err)
{
    memset(head->code, 0, sizeof head->code);
    memcpy(head->code, &receiver, sizeof receiver);
    return ty_hmac_sha256(key, TY_SEAL_KEY_BYTES, head, n_bytes, code, err);
}

int ty_seal(void *bytes, size_t n_bytes, const uint8_t *key, uint64_t receiver, ty_error *err)
{
    uint8_t code[TY_SHA256_BYTES];
    ty_parcel *head = bytes;
    if (key == NULL)
        return 0;
    if (seal_code(head, n_bytes, key, receiver, code, err) < 0)
        return -1;
    memcpy(head->code, code, sizeof head->code);
    return 0;
}

bool ty_seal_holds(void *bytes, size_t n_bytes, const uint8_t *key, uint64_t receiver)
{
    uint8_t given[TY_SHA256_BYTES], code[TY_SHA256_BYTES];
    ty_parcel *head = bytes;
    ty_error ignored;
    if (key == NULL)
        return true;
    if (n_bytes < sizeof *head)
        return false;
    memcpy(given, head->code, sizeof head->code);
    if (seal_code(head, n_bytes, key, receiver, code, &ignored) < 0)
        return false;
    memcpy(head->code, given, sizeof head->code);
    memcpy(given + sizeof head->code, code + sizeof head->code, sizeof code - sizeof head->code);
    return ty_same_code(given, code);
}

bool ty_seal_is_new(ty_seal_window *w, uint64_t incarnation, uint64_t counter)
{
    if (incarnation < w->incarnation || counter == 0)
        return false;
    if (incarnation > w->incarnation)
        *w = (ty_seal_window){.incarnation = incarnation};
    if (counter > w->highest) {
        uint64_t by = counter - w->highest;
        w->bits = (by < 64 ? w->bits << by : 0) | 1;
        w->highest = counter;
        return true;
    }
    uint64_t behind = w->highest - counter;
    if (behind >= 64 || (w->bits >> behind & 1))
        return false;
    w->bits |= UINT64_C(1) << behind;
    return true;
}
