/* protobuf.c - see protobuf.h. */
#include "container/input/protobuf.h"

#include <endian.h>
#include <string.h>

enum { VARINT_MAX_BYTES = 10 };

bool ty_proto_long_varint(ty_proto_bytes *in, uint64_t *out)
{
    uint64_t v = 0;
    for (int i = 0; i < VARINT_MAX_BYTES && in->p < in->end; i++) {
        uint8_t byte = *in->p++;
        if (i == VARINT_MAX_BYTES - 1 && byte > 1)
            return false;
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

/* Of the eight bytes at p, the number in the first ones: its bytes, or 0 if there are more than three. */
static inline size_t varint_short(const uint8_t *p, int64_t *out)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    w = le64toh(w);
    if (!(w & 0x80)) {
        *out = (int64_t)(w & 0x7f);
        return 1;
    }
    if (!(w & 0x8000)) {
        *out = (int64_t)((w & 0x7f) | (w >> 1 & 0x3f80));
        return 2;
    }
    *out = (int64_t)((w & 0x7f) | (w >> 1 & 0x3f80) | (w >> 2 & 0x1fc000));
    return w & 0x800000 ? 0 : 3;
}

int64_t ty_proto_packed(const uint8_t *p, size_t n, int64_t *out, int64_t max)
{
    ty_proto_bytes in = {p, p + n};
    int64_t count = 0;
    for (; in.p < in.end && count < max; count++) {
        size_t used = in.end - in.p >= 8 ? varint_short(in.p, &out[count]) : 0;
        in.p += used;
        if (used == 0 && !ty_proto_varint(&in, (uint64_t *)&out[count]))
            return -1;
    }
    if (in.p < in.end && in.end[-1] >= 0x80)
        return -1;
    for (; in.p < in.end; in.p++)
        count += *in.p < 0x80;
    return count;
}

int64_t ty_proto_integers(const uint8_t *p, size_t n, uint32_t field, int64_t *out, int64_t max)
{
    ty_proto_bytes in = {p, p + n};
    ty_proto_field f;
    int64_t count = 0;
    while (in.p < in.end) {
        if (!ty_proto_next(&in, &f))
            return -1;
        if (f.field != field)
            continue;
        if (f.type == TY_PROTO_NUMBER) {
            if (count++ < max)
                out[count - 1] = (int64_t)f.number;
            continue;
        }
        int64_t room = max > count ? max - count : 0;
        int64_t more =
            f.type == TY_PROTO_BYTES ? ty_proto_packed(f.bytes, f.n, room > 0 ? out + count : out, room) : -1;
        if (more < 0)
            return -1;
        count += more;
    }
    return count;
}
