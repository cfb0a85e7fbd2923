/* protobuf.h - protobuf's wire form, written piece by piece into a buffer whose limit is its owner's.
 *
 * Source: protobuf's encoding guide. Where something does not fit, the buffer's `failed` says so.
 */
#ifndef TY_CONTAINER_OUTPUT_PROTOBUF_H
#define TY_CONTAINER_OUTPUT_PROTOBUF_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

/* A number without its field, as in packed lists. */
void ty_proto_put_varint(ty_buf *out, uint64_t v);
void ty_proto_put_int(ty_buf *out, int field, int64_t v);
void ty_proto_put_double(ty_buf *out, int field, double v);
/* Text, a packed list or a message. */
void ty_proto_put_bytes(ty_buf *out, int field, const void *bytes, size_t n);

#endif
