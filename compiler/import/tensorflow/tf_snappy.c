/* tf_snappy.c - Snappy, in which some versions of TensorFlow compressed the index of a checkpoint.
 *
 * A varint (size of the result), then elements whose two low bits say what follows: bytes, or a copy of what was
 * written before (it may reach into itself).
 */
#include "compiler/import/tensorflow/tf_table.h"

#include <string.h>

/* No element makes more of a byte than this. */
enum { MAX_RATIO = 22 };

typedef struct element {
    size_t n, offset; /* offset 0: the next n bytes of the input */
} element;

static size_t read_little(ty_bytes *in, size_t n)
{
    size_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (size_t)in->data[i] << (8 * i);
    in->data += n;
    in->n -= n;
    return v;
}

static bool read_element(ty_bytes *in, element *e)
{
    static const uint8_t copy_bytes[] = {0, 1, 2, 4};
    uint8_t tag = (uint8_t)read_little(in, 1);
    size_t high = tag >> 2, kind = tag & 3, more = kind ? copy_bytes[kind] : high >= 60 ? high - 59 : 0;
    if (in->n < more)
        return false;
    size_t number = read_little(in, more);
    if (kind == 0) {
        *e = (element){(more ? number : high) + 1, 0};
        return e->n <= in->n;
    }
    e->n = kind == 1 ? 4 + (high & 7) : high + 1;
    e->offset = kind == 1 ? (size_t)(tag >> 5) << 8 | number : number;
    return e->offset > 0;
}

static bool fill(ty_bytes in, uint8_t *out, size_t n)
{
    size_t at = 0;
    while (in.n > 0) {
        element e;
        if (!read_element(&in, &e) || e.n > n - at || e.offset > at)
            return false;
        if (e.offset == 0) {
            memcpy(out + at, in.data, e.n);
            in.data += e.n;
            in.n -= e.n;
        }
        for (size_t i = 0; e.offset && i < e.n; i++)
            out[at + i] = out[at + i - e.offset];
        at += e.n;
    }
    return at == n;
}

bool tf_snappy_read(ty_bytes in, ty_arena *arena, ty_bytes *out)
{
    uint64_t n = 0;
    size_t k = 0;
    for (; k < in.n && k < 5; k++) {
        n |= (uint64_t)(in.data[k] & 0x7f) << (7 * k);
        if (!(in.data[k] & 0x80))
            break;
    }
    if (k >= in.n || k == 5 || n > (uint64_t)in.n * MAX_RATIO)
        return false;
    uint8_t *bytes = ty_arena_alloc(arena, (size_t)n + 1);
    *out = (ty_bytes){bytes, (size_t)n};
    return fill((ty_bytes){in.data + k + 1, in.n - k - 1}, bytes, (size_t)n);
}
