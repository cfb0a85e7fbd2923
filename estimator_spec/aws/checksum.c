/* checksum.c - see checksum.h. */
#include "estimator_spec/aws/checksum.h"

#include <pthread.h>
#include <string.h>
#include <zlib.h>

static const struct {
    const char *title, *header;
} kinds[TY_CHECKSUM_KINDS] = {
    [TY_CHECKSUM_NONE] = {"none", ""},
    [TY_CHECKSUM_SHA256] = {"SHA-256", "x-amz-checksum-sha256"},
    [TY_CHECKSUM_CRC64NVME] = {"CRC-64/NVME", "x-amz-checksum-crc64nvme"},
    [TY_CHECKSUM_CRC32C] = {"CRC-32C", "x-amz-checksum-crc32c"},
    [TY_CHECKSUM_CRC32] = {"CRC-32", "x-amz-checksum-crc32"},
};

const char *ty_checksum_title(ty_checksum_kind kind)
{
    return kinds[kind].title;
}

const char *ty_checksum_header(ty_checksum_kind kind)
{
    return kinds[kind].header;
}

/* ---- CRC-64/NVME: eight bytes at once ("slicing-by-8", Kounavis and Berry 2005) ---- */

static uint64_t slices[8][256]; /* slices[k][b]: byte b with k zero bytes behind it */
static pthread_once_t slices_once = PTHREAD_ONCE_INIT;

static void make_slices(void)
{
    for (int b = 0; b < 256; b++) {
        uint64_t crc = (uint64_t)b;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ UINT64_C(0x9a6c9329ac4bc9b5) : crc >> 1;
        slices[0][b] = crc;
    }
    for (int b = 0; b < 256; b++)
        for (int k = 1; k < 8; k++)
            slices[k][b] = slices[k - 1][b] >> 8 ^ slices[0][slices[k - 1][b] & 0xff];
}

uint64_t ty_crc64nvme(uint64_t crc, const void *bytes, size_t n_bytes)
{
    const uint8_t *at = bytes;
    pthread_once(&slices_once, make_slices);
    crc = ~crc;
    for (; n_bytes >= 8; n_bytes -= 8, at += 8) {
        uint64_t next = 0, mixed = 0;
        for (int k = 0; k < 8; k++)
            next |= (uint64_t)at[k] << 8 * k;
        next ^= crc;
        for (int k = 0; k < 8; k++)
            mixed ^= slices[7 - k][next >> 8 * k & 0xff];
        crc = mixed;
    }
    for (; n_bytes > 0; n_bytes--)
        crc = crc >> 8 ^ slices[0][(crc ^ *at++) & 0xff];
    return ~crc;
}

/* ---- text ---- */

/* RFC 4648, section 4. */
static const char *base64(const uint8_t *bytes, size_t n, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = text;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (i + 2 < n ? (uint32_t)bytes[i + 2] : 0);
        *out++ = digits[three >> 18];
        *out++ = digits[three >> 12 & 63];
        *out++ = i + 1 < n ? digits[three >> 6 & 63] : '=';
        *out++ = i + 2 < n ? digits[three & 63] : '=';
    }
    *out = 0;
    return text;
}

static const char *text_of(uint64_t value, int n_bytes, char *text)
{
    uint8_t bytes[8];
    for (int i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)(value >> 8 * (n_bytes - 1 - i));
    return base64(bytes, (size_t)n_bytes, text);
}

const char *ty_checksum_text32(uint32_t crc, char text[TY_CHECKSUM_TEXT_BYTES])
{
    return text_of(crc, 4, text);
}

const char *ty_checksum_text256(const uint8_t digest[TY_SHA256_BYTES], char text[TY_CHECKSUM_TEXT_BYTES])
{
    return base64(digest, TY_SHA256_BYTES, text);
}

/* ---- any of them ---- */

int ty_checksum_init(ty_checksum *c, ty_checksum_kind kind, ty_error *err)
{
    *c = (ty_checksum){.kind = kind};
    return kind == TY_CHECKSUM_SHA256 ? ty_sha256_init(&c->sha256, err) : 0;
}

void ty_checksum_add(ty_checksum *c, const void *bytes, size_t n_bytes)
{
    if (c->kind == TY_CHECKSUM_SHA256)
        ty_sha256_add(&c->sha256, bytes, n_bytes);
    else if (c->kind == TY_CHECKSUM_CRC64NVME)
        c->crc = ty_crc64nvme(c->crc, bytes, n_bytes);
    else if (c->kind == TY_CHECKSUM_CRC32C)
        c->crc = ty_crc32c((uint32_t)c->crc, bytes, n_bytes);
    else if (c->kind == TY_CHECKSUM_CRC32)
        c->crc = crc32_z((uLong)c->crc, bytes, n_bytes);
}

const char *ty_checksum_final(ty_checksum *c, char text[TY_CHECKSUM_TEXT_BYTES])
{
    uint8_t digest[TY_SHA256_BYTES];
    if (c->kind == TY_CHECKSUM_SHA256) {
        ty_sha256_final(&c->sha256, digest);
        return ty_checksum_text256(digest, text);
    }
    if (c->kind == TY_CHECKSUM_NONE)
        return strcpy(text, "");
    return text_of(c->crc, c->kind == TY_CHECKSUM_CRC64NVME ? 8 : 4, text);
}

void ty_checksum_drop(ty_checksum *c)
{
    if (c->kind == TY_CHECKSUM_SHA256)
        ty_sha256_drop(&c->sha256);
}
