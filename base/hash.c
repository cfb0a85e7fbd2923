/* hash.c - SHA-256 over libcrypto, CRC-32C by the processor's instruction where there is one.
 *
 * libcrypto is opened at the first SHA-256 and not before: it would cost every start a millisecond and every process
 * 0.4 MB of relocated pages, and the supervisor, which is a process for the whole job, never hashes.
 */
#define _GNU_SOURCE
#include "base/hash.h"

#include "base/dl.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

static struct crypto {
    EVP_MD_CTX *(*context_new)(void);
    void (*context_free)(EVP_MD_CTX *);
    const EVP_MD *(*sha256)(void);
    int (*init)(EVP_MD_CTX *, const EVP_MD *, ENGINE *);
    int (*update)(EVP_MD_CTX *, const void *, size_t);
    int (*final)(EVP_MD_CTX *, unsigned char *, unsigned *);
} crypto;
static ty_error crypto_error;
static pthread_once_t crypto_once = PTHREAD_ONCE_INIT;

static void open_crypto(void)
{
    static const char *const names[] = {"libcrypto.so.3", NULL};
    static const ty_dl_symbol symbols[] = {
        {"EVP_MD_CTX_new", offsetof(struct crypto, context_new), false},
        {"EVP_MD_CTX_free", offsetof(struct crypto, context_free), false},
        {"EVP_sha256", offsetof(struct crypto, sha256), false},
        {"EVP_DigestInit_ex", offsetof(struct crypto, init), false},
        {"EVP_DigestUpdate", offsetof(struct crypto, update), false},
        {"EVP_DigestFinal_ex", offsetof(struct crypto, final), false},
    };
    void *handle;
    (void)ty_dl_open(names, symbols, sizeof symbols / sizeof symbols[0], &crypto, &handle, &crypto_error);
}

int ty_sha256_init(ty_sha256 *h, ty_error *err)
{
    h->context = NULL;
    pthread_once(&crypto_once, open_crypto);
    if (crypto_error.code != TY_E_NONE) {
        if (err)
            *err = crypto_error;
        return -1;
    }
    h->context = crypto.context_new();
    if (h->context && crypto.init(h->context, crypto.sha256(), NULL) == 1)
        return 0;
    ty_sha256_drop(h);
    return ty_error_set(err, TY_E_LIBRARY, "libcrypto gives no SHA-256");
}

void ty_sha256_add(ty_sha256 *h, const void *bytes, size_t n_bytes)
{
    crypto.update(h->context, bytes, n_bytes); /* fails only on a context that init did not make */
}

void ty_sha256_final(ty_sha256 *h, uint8_t digest[TY_SHA256_BYTES])
{
    unsigned len = TY_SHA256_BYTES;
    crypto.final(h->context, digest, &len);
    ty_sha256_drop(h);
}

void ty_sha256_drop(ty_sha256 *h)
{
    if (h->context)
        crypto.context_free(h->context);
    h->context = NULL;
}

int ty_sha256_bytes(const void *bytes, size_t n_bytes, uint8_t digest[TY_SHA256_BYTES], ty_error *err)
{
    ty_sha256 h;
    if (ty_sha256_init(&h, err) < 0)
        return -1;
    ty_sha256_add(&h, bytes, n_bytes);
    ty_sha256_final(&h, digest);
    return 0;
}

enum { BLOCK_BYTES = 64 }; /* of SHA-256 */

/* SHA-256(the key's block with every byte xor `pad` | bytes). */
static int hash_padded(const uint8_t block[BLOCK_BYTES], uint8_t pad, const void *bytes, size_t n_bytes,
                       uint8_t digest[TY_SHA256_BYTES], ty_error *err)
{
    ty_sha256 h;
    uint8_t padded[BLOCK_BYTES];
    for (int i = 0; i < BLOCK_BYTES; i++)
        padded[i] = block[i] ^ pad;
    if (ty_sha256_init(&h, err) < 0)
        return -1;
    ty_sha256_add(&h, padded, sizeof padded);
    ty_sha256_add(&h, bytes, n_bytes);
    ty_sha256_final(&h, digest);
    return 0;
}

int ty_hmac_sha256(const void *key, size_t key_bytes, const void *bytes, size_t n_bytes, uint8_t code[TY_SHA256_BYTES],
                   ty_error *err)
{
    uint8_t block[BLOCK_BYTES] = {0}, inner[TY_SHA256_BYTES];
    if (key_bytes > sizeof block && ty_sha256_bytes(key, key_bytes, block, err) < 0)
        return -1;
    if (key_bytes <= sizeof block)
        memcpy(block, key, key_bytes);
    int rc = hash_padded(block, 0x36, bytes, n_bytes, inner, err);
    if (rc == 0)
        rc = hash_padded(block, 0x5c, inner, sizeof inner, code, err);
    explicit_bzero(block, sizeof block);
    return rc;
}

bool ty_same_code(const uint8_t a[TY_SHA256_BYTES], const uint8_t b[TY_SHA256_BYTES])
{
    volatile uint8_t difference = 0; /* volatile: no early end */
    for (int i = 0; i < TY_SHA256_BYTES; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

static int add_descriptor(ty_sha256 *h, int fd, const char *path, ty_error *err)
{
    enum { PIECE_BYTES = 256 << 10 };
    char *piece = malloc(PIECE_BYTES);
    if (!piece)
        return ty_error_set(err, TY_E_LIMIT, "no memory");
    ssize_t n;
    while ((n = read(fd, piece, PIECE_BYTES)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        ty_sha256_add(h, piece, (size_t)n);
    }
    int saved = errno;
    free(piece);
    return n == 0 ? 0 : ty_error_errno(err, TY_E_NONE, saved, "cannot read %s", path);
}

int ty_sha256_file(const char *path, uint8_t digest[TY_SHA256_BYTES], ty_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot open %s", path);
    ty_sha256 h;
    int rc = ty_sha256_init(&h, err);
    if (rc == 0) {
        rc = add_descriptor(&h, fd, path, err);
        if (rc == 0)
            ty_sha256_final(&h, digest);
        else
            ty_sha256_drop(&h);
    }
    close(fd);
    return rc;
}

const char *ty_sha256_hex(const uint8_t digest[TY_SHA256_BYTES], char out[TY_SHA256_HEX_BYTES])
{
    for (int i = 0; i < TY_SHA256_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return out;
}

/* Eight tables, eight bytes a round ("slicing by 8", Kounavis and Berry 2005). The polynomial is 0x1EDC6F41, reflected.
 */
static uint32_t crc_tables[8][256];
static pthread_once_t crc_tables_once = PTHREAD_ONCE_INIT;

static void make_crc_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
        crc_tables[0][i] = crc;
    }
    for (int t = 1; t < 8; t++)
        for (int i = 0; i < 256; i++)
            crc_tables[t][i] = crc_tables[t - 1][i] >> 8 ^ crc_tables[0][crc_tables[t - 1][i] & 0xff];
}

static uint32_t crc32c_by_table(uint32_t crc, const uint8_t *at, size_t n_bytes)
{
    pthread_once(&crc_tables_once, make_crc_tables);
    for (; n_bytes >= 8; n_bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        word ^= crc;
        crc = 0;
        for (int i = 0; i < 8; i++)
            crc ^= crc_tables[7 - i][word >> (8 * i) & 0xff];
    }
    for (; n_bytes > 0; n_bytes--)
        crc = crc >> 8 ^ crc_tables[0][(crc ^ *at++) & 0xff];
    return crc;
}

#if defined(__x86_64__)
/* The instruction takes three cycles and can begin one each: three lanes are summed side by side and then joined, which
 * is to let the first two go over as many zeros as stand behind them. Going over zeros is linear, so that four tables
 * of a byte each do it (Adler, crc32c.c, 2013). */
enum { CRC_LANE = 4096, CRC_SHORT_LANE = 256 };

static uint32_t crc_over_lane[4][256], crc_over_short[4][256];
static pthread_once_t crc_over_once = PTHREAD_ONCE_INIT;

__attribute__((target("sse4.2"))) static void make_crc_over(uint32_t table[4][256], size_t n_zeros)
{
    for (int bit = 0; bit < 32; bit++) {
        uint64_t wide = UINT64_C(1) << bit;
        for (size_t i = 0; i < n_zeros; i += 8)
            wide = _mm_crc32_u64(wide, 0);
        for (uint32_t i = 0; i < 256; i++)
            if (i >> (bit % 8) & 1)
                table[bit / 8][i] ^= (uint32_t)wide;
    }
}

static void make_crc_overs(void)
{
    make_crc_over(crc_over_lane, CRC_LANE);
    make_crc_over(crc_over_short, CRC_SHORT_LANE);
}

static uint32_t crc_over(const uint32_t table[4][256], uint32_t crc)
{
    return table[0][crc & 0xff] ^ table[1][crc >> 8 & 0xff] ^ table[2][crc >> 16 & 0xff] ^ table[3][crc >> 24];
}

/* Three lanes of n_bytes each. */
__attribute__((target("sse4.2"))) static uint32_t crc32c_of_lanes(uint32_t crc, const uint8_t *at, size_t n_bytes,
                                                                  const uint32_t over[4][256])
{
    uint64_t a = crc, b = 0, c = 0, word[3];
    for (const uint8_t *end = at + n_bytes; at < end; at += 8) {
        memcpy(&word[0], at, 8);
        memcpy(&word[1], at + n_bytes, 8);
        memcpy(&word[2], at + 2 * n_bytes, 8);
        a = _mm_crc32_u64(a, word[0]);
        b = _mm_crc32_u64(b, word[1]);
        c = _mm_crc32_u64(c, word[2]);
    }
    return crc_over(over, crc_over(over, (uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
}

__attribute__((target("sse4.2"))) static uint32_t crc32c_by_instruction(uint32_t crc, const uint8_t *at, size_t n_bytes)
{
    if (n_bytes >= 3 * CRC_SHORT_LANE)
        pthread_once(&crc_over_once, make_crc_overs);
    for (; n_bytes >= 3 * CRC_LANE; n_bytes -= 3 * CRC_LANE, at += 3 * CRC_LANE)
        crc = crc32c_of_lanes(crc, at, CRC_LANE, crc_over_lane);
    for (; n_bytes >= 3 * CRC_SHORT_LANE; n_bytes -= 3 * CRC_SHORT_LANE, at += 3 * CRC_SHORT_LANE)
        crc = crc32c_of_lanes(crc, at, CRC_SHORT_LANE, crc_over_short);
    uint64_t wide = crc;
    for (; n_bytes >= 8; n_bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    for (; n_bytes > 0; n_bytes--)
        crc = _mm_crc32_u8(crc, *at++);
    return crc;
}
#endif

uint32_t ty_crc32c(uint32_t crc, const void *bytes, size_t n_bytes)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc32c_by_instruction(~crc, bytes, n_bytes);
#endif
    return ~crc32c_by_table(~crc, bytes, n_bytes);
}

uint32_t ty_crc32c_by_table(uint32_t crc, const void *bytes, size_t n_bytes)
{
    return ~crc32c_by_table(~crc, bytes, n_bytes);
}

uint32_t ty_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

uint64_t ty_fnv1a(uint64_t hash, const void *bytes, size_t n_bytes)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < n_bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}
