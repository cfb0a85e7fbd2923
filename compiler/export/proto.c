/* proto.c - see proto.h. */
#include "compiler/export/proto.h"

#include "compiler/import/wire.h"

#include <string.h>

enum { PROTO_VARINT = 0, PROTO_FOUR_BYTES = 5 };

static void proto_varint(ty_buf *b, uint64_t v)
{
    uint8_t bytes[TY_WIRE_HEAD_BYTES];
    ty_buf_add(b, bytes, ty_wire_put_varint(bytes, v));
}

void ty_proto_int(ty_buf *b, uint32_t number, int64_t v)
{
    proto_varint(b, (uint64_t)number << 3 | PROTO_VARINT);
    proto_varint(b, (uint64_t)v);
}

void ty_proto_float(ty_buf *b, uint32_t number, float v)
{
    proto_varint(b, (uint64_t)number << 3 | PROTO_FOUR_BYTES);
    ty_buf_add(b, &v, sizeof v);
}

void ty_proto_head(ty_buf *b, uint32_t number, uint64_t n_bytes)
{
    uint8_t head[TY_WIRE_HEAD_BYTES];
    ty_buf_add(b, head, ty_wire_put_head(head, number, n_bytes));
}

void ty_proto_bytes(ty_buf *b, uint32_t number, const void *bytes, size_t n)
{
    ty_proto_head(b, number, n);
    ty_buf_add(b, bytes, n);
}

void ty_proto_text(ty_buf *b, uint32_t number, const char *text)
{
    ty_proto_bytes(b, number, text, strlen(text));
}

void ty_proto_message(ty_buf *b, uint32_t number, const ty_buf *message)
{
    ty_proto_bytes(b, number, message->data, message->len);
    b->failed |= message->failed;
}
