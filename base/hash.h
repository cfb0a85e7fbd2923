/* hash.h - SHA-256 for files that must be what they say, CRC-32C for records and tensors. */
#ifndef TY_BASE_HASH_H
#define TY_BASE_HASH_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define TY_SHA256_BYTES     32
#define TY_SHA256_HEX_BYTES 65 /* with the NUL */

/* In pieces: init, add..., then exactly one of final and drop. libcrypto does the work. */
typedef struct ty_sha256 {
    void *context; /* private */
} ty_sha256;

int ty_sha256_init(ty_sha256 *h, ty_error *err);
void ty_sha256_add(ty_sha256 *h, const void *bytes, size_t n_bytes);
void ty_sha256_final(ty_sha256 *h, uint8_t digest[TY_SHA256_BYTES]);
void ty_sha256_drop(ty_sha256 *h);

/* At once. */
int ty_sha256_bytes(const void *bytes, size_t n_bytes, uint8_t digest[TY_SHA256_BYTES], ty_error *err);
int ty_sha256_file(const char *path, uint8_t digest[TY_SHA256_BYTES], ty_error *err);
/* Lower-case hex; returns out. */
const char *ty_sha256_hex(const uint8_t digest[TY_SHA256_BYTES], char out[TY_SHA256_HEX_BYTES]);

/* HMAC-SHA256 (RFC 2104): a code that only who has the key can make. */
int ty_hmac_sha256(const void *key, size_t key_bytes, const void *bytes, size_t n_bytes, uint8_t code[TY_SHA256_BYTES],
                   ty_error *err);
/* Compares codes without telling by its time where they differ. */
bool ty_same_code(const uint8_t a[TY_SHA256_BYTES], const uint8_t b[TY_SHA256_BYTES]);

/* CRC-32C (Castagnoli, as in iSCSI, RFC 3720). Start with 0; feed the result back in for more bytes. */
uint32_t ty_crc32c(uint32_t crc, const void *bytes, size_t n_bytes);
/* What ty_crc32c does on processors without the instruction; the two agree. */
uint32_t ty_crc32c_by_table(uint32_t crc, const void *bytes, size_t n_bytes);
/* The masked form of TFRecord files: rotated right by 15, plus a constant. */
uint32_t ty_crc32c_mask(uint32_t crc);

/* FNV-1a, 64 bit: for hash tables and fingerprints, never against malice. Start with TY_FNV_START. */
#define TY_FNV_START UINT64_C(0xcbf29ce484222325)
uint64_t ty_fnv1a(uint64_t hash, const void *bytes, size_t n_bytes);

#endif
