/* tfrecord.c - see tfrecord.h. The length is believed only after its own checksum, and capped after that. */
#include "container/output/tfrecord.h"

#include "base/hash.h"

#include <string.h>

enum { LENGTH_BYTES = 8, CRC_BYTES = 4, HEAD_BYTES = LENGTH_BYTES + CRC_BYTES };

static void put_le(unsigned char *at, uint64_t v, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        at[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get_le(const unsigned char *at, int n_bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < n_bytes; i++)
        v |= (uint64_t)at[i] << (8 * i);
    return v;
}

int ty_tfrecord_add(ty_buf *out, const void *payload, size_t n_bytes)
{
    unsigned char *at = NULL;
    if (n_bytes <= SIZE_MAX - TY_TFRECORD_FRAME_BYTES)
        at = (unsigned char *)ty_buf_reserve(out, n_bytes + TY_TFRECORD_FRAME_BYTES);
    if (!at) {
        out->failed = true;
        return -1;
    }
    put_le(at, n_bytes, LENGTH_BYTES);
    put_le(at + LENGTH_BYTES, ty_crc32c_mask(ty_crc32c(0, at, LENGTH_BYTES)), CRC_BYTES);
    if (n_bytes)
        memcpy(at + HEAD_BYTES, payload, n_bytes);
    put_le(at + HEAD_BYTES + n_bytes, ty_crc32c_mask(ty_crc32c(0, at + HEAD_BYTES, n_bytes)), CRC_BYTES);
    out->len += n_bytes + TY_TFRECORD_FRAME_BYTES;
    out->data[out->len] = 0;
    return 0;
}

ty_tfrecord_status ty_tfrecord_next(const void *bytes, size_t n_bytes, size_t max_bytes, size_t *at,
                                    const void **payload, size_t *payload_bytes)
{
    const unsigned char *start = (const unsigned char *)bytes + *at;
    size_t left_bytes = n_bytes - *at;
    if (left_bytes == 0)
        return TY_TFRECORD_END;
    if (left_bytes < HEAD_BYTES)
        return TY_TFRECORD_TORN;
    uint64_t length = get_le(start, LENGTH_BYTES);
    uint32_t length_crc = (uint32_t)get_le(start + LENGTH_BYTES, CRC_BYTES);
    if (length_crc != ty_crc32c_mask(ty_crc32c(0, start, LENGTH_BYTES)) || length > max_bytes)
        return TY_TFRECORD_BAD_LENGTH;
    if (left_bytes - HEAD_BYTES < CRC_BYTES || length > left_bytes - HEAD_BYTES - CRC_BYTES)
        return TY_TFRECORD_TORN;
    const unsigned char *body = start + HEAD_BYTES;
    uint32_t body_crc = (uint32_t)get_le(body + length, CRC_BYTES);
    *at += (size_t)length + TY_TFRECORD_FRAME_BYTES;
    if (body_crc != ty_crc32c_mask(ty_crc32c(0, body, (size_t)length)))
        return TY_TFRECORD_BAD_PAYLOAD;
    *payload = body;
    *payload_bytes = (size_t)length;
    return TY_TFRECORD_OK;
}
