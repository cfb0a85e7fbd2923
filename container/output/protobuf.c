/* protobuf.c - see protobuf.h. */
#include "container/output/protobuf.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

void ty_proto_put_varint(ty_buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        ty_buf_addc(out, (char)(v | 0x80));
    ty_buf_addc(out, (char)v);
}

static void put_key(ty_buf *out, int field, enum wire wire)
{
    ty_proto_put_varint(out, (uint64_t)field << 3 | wire);
}

void ty_proto_put_int(ty_buf *out, int field, int64_t v)
{
    put_key(out, field, WIRE_VARINT);
    ty_proto_put_varint(out, (uint64_t)v);
}

void ty_proto_put_bytes(ty_buf *out, int field, const void *bytes, size_t n)
{
    put_key(out, field, WIRE_BYTES);
    ty_proto_put_varint(out, n);
    if (n)
        ty_buf_add(out, bytes, n);
}

void ty_proto_put_double(ty_buf *out, int field, double v)
{
    put_key(out, field, WIRE_FIXED64);
    ty_buf_add(out, &v, sizeof v); /* all our targets are little-endian */
}
