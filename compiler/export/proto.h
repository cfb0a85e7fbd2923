/* proto.h - protobuf fields appended to a buffer: the writing half of compiler/import/wire.h for small messages. */
#ifndef TY_COMPILER_EXPORT_PROTO_H
#define TY_COMPILER_EXPORT_PROTO_H

#include "base/buf.h"

#include <stdint.h>

void ty_proto_int(ty_buf *b, uint32_t number, int64_t v);
void ty_proto_float(ty_buf *b, uint32_t number, float v);
void ty_proto_bytes(ty_buf *b, uint32_t number, const void *bytes, size_t n);
void ty_proto_text(ty_buf *b, uint32_t number, const char *text);
void ty_proto_message(ty_buf *b, uint32_t number, const ty_buf *message);
/* Key and length of n bytes that the caller sends after it. */
void ty_proto_head(ty_buf *b, uint32_t number, uint64_t n_bytes);

#endif
