/* tfrecord.h - the framing that TensorBoard and TensorFlow put around records.
 *
 * A file is records back to back: u64 length, u32 masked CRC-32C of those 8 bytes, payload, u32 masked CRC-32C of the
 * payload; all little-endian. "Masked" means rotated right by 15 and 0xA282EAD8 added, so that a CRC stored inside data
 * that is itself checksummed does no harm (TensorFlow, lib/hash/crc32c.h).
 */
#ifndef TY_CONTAINER_OUTPUT_TFRECORD_H
#define TY_CONTAINER_OUTPUT_TFRECORD_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

#define TY_TFRECORD_FRAME_BYTES 16 /* what framing adds to a payload */

typedef enum ty_tfrecord_status {
    TY_TFRECORD_OK,          /* *payload, *n are set and *at stands behind the record */
    TY_TFRECORD_END,         /* *at is exactly the end */
    TY_TFRECORD_TORN,        /* the record ends early: not yet written, or truncated; *at unchanged */
    TY_TFRECORD_BAD_LENGTH,  /* the length's checksum is wrong or it passes max_bytes: nothing behind it can be trusted
                              */
    TY_TFRECORD_BAD_PAYLOAD, /* the payload's checksum is wrong; *at stands behind the record, which is to be dropped */
} ty_tfrecord_status;

/* Appends one framed record. Returns 0, or -1 when it does not fit out->max_bytes (then out->failed is set). */
int ty_tfrecord_add(ty_buf *out, const void *payload, size_t n_bytes);

/* Reads the record that starts at bytes[*at]. The payload points into `bytes`; nothing is copied. */
ty_tfrecord_status ty_tfrecord_next(const void *bytes, size_t n_bytes, size_t max_bytes, size_t *at,
                                    const void **payload, size_t *payload_bytes);

#endif
