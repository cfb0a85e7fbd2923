/* protobuf.h - protobuf's wire form, as readers of millions of small records need it: bounded, inlined where it counts,
 * and without a word of what was wrong, which the reader of the record says.
 *
 * Source: protobuf's encoding guide. Whatever is longer than what is there fails, and so do groups.
 */
#ifndef TY_CONTAINER_INPUT_PROTOBUF_H
#define TY_CONTAINER_INPUT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes on their way; p == end: all read. */
typedef struct ty_proto_bytes {
    const uint8_t *p, *end;
} ty_proto_bytes;

typedef struct ty_proto_field {
    uint32_t field, type; /* type: 0 a number, 1 eight bytes, 2 bytes, 5 four bytes */
    uint64_t number;      /* type 0 */
    const uint8_t *bytes; /* the others */
    size_t n;
} ty_proto_field;

enum { TY_PROTO_NUMBER, TY_PROTO_EIGHT, TY_PROTO_BYTES, TY_PROTO_FOUR = 5 };

/* Numbers of any length. */
bool ty_proto_long_varint(ty_proto_bytes *in, uint64_t *out);

static inline bool ty_proto_varint(ty_proto_bytes *in, uint64_t *out)
{
    if (in->p < in->end && in->p[0] < 0x80) {
        *out = *in->p++;
        return true;
    }
    if (in->end - in->p > 1 && in->p[1] < 0x80) {
        *out = (in->p[0] & 0x7fU) | (uint64_t)in->p[1] << 7;
        in->p += 2;
        return true;
    }
    return ty_proto_long_varint(in, out);
}

/* The next field. False: malformed. Ask while in->p < in->end. */
static inline bool ty_proto_next(ty_proto_bytes *in, ty_proto_field *out)
{
    uint64_t key, n = 0;
    if (!ty_proto_varint(in, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff)
        return false;
    out->field = (uint32_t)(key >> 3);
    out->type = key & 7;
    if (out->type == TY_PROTO_NUMBER)
        return ty_proto_varint(in, &out->number);
    if (out->type == TY_PROTO_BYTES) {
        if (!ty_proto_varint(in, &n))
            return false;
    } else if (out->type == TY_PROTO_EIGHT || out->type == TY_PROTO_FOUR)
        n = out->type == TY_PROTO_EIGHT ? 8 : 4;
    else
        return false;
    if (n > (uint64_t)(in->end - in->p))
        return false;
    out->bytes = in->p;
    out->n = n;
    in->p += n;
    return true;
}

/* Numbers one behind the other, up to three bytes of each without a loop. Up to max go to out; returns how many there
 * are, or -1. */
int64_t ty_proto_packed(const uint8_t *p, size_t n, int64_t *out, int64_t max);

/* All numbers of one field of a message, packed, one a field, or both. As ty_proto_packed. */
int64_t ty_proto_integers(const uint8_t *p, size_t n, uint32_t field, int64_t *out, int64_t max);

#endif
