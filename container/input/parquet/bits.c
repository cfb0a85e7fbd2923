/* bits.c - see bits.h. */
#include "container/input/parquet/bits.h"

#include <string.h>

int bits_width(uint32_t most)
{
    return most == 0 ? 0 : 32 - __builtin_clz(most);
}

static bool bits_varint(const uint8_t **p, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && *p < end; shift += 7) {
        uint8_t byte = *(*p)++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Number i of those packed from p on, least bits first; nothing is read from `end` on. */
static uint64_t bits_packed(const uint8_t *p, const uint8_t *end, int64_t i, int width)
{
    uint64_t bit = (uint64_t)i * (uint64_t)width, v = 0;
    const uint8_t *from = p + bit / 8;
    size_t there = (size_t)(end - from) < 8 ? (size_t)(end - from) : 8, shift = bit % 8;
    memcpy(&v, from, there);
    v >>= shift;
    if (shift + (size_t)width > 64 && from + 8 < end)
        v |= (uint64_t)from[8] << (64 - shift);
    return width == 64 ? v : v & ((UINT64_C(1) << width) - 1);
}

static bool bits_run(const uint8_t **p, const uint8_t *end, int width, int64_t n, uint32_t *out)
{
    uint32_t v = 0;
    size_t bytes = ((size_t)width + 7) / 8;
    if ((size_t)(end - *p) < bytes)
        return false;
    memcpy(&v, *p, bytes);
    *p += bytes;
    for (int64_t i = 0; i < n; i++)
        out[i] = v;
    return true;
}

/* Groups of eight; the last one may be cut where the numbers end. */
static bool bits_groups(const uint8_t **p, const uint8_t *end, int width, uint64_t groups, int64_t n, uint32_t *out)
{
    uint64_t bytes = groups * (uint64_t)width, needed = ((uint64_t)n * (uint64_t)width + 7) / 8;
    size_t left = (size_t)(end - *p);
    if (needed > left)
        return false;
    for (int64_t i = 0; i < n; i++)
        out[i] = (uint32_t)bits_packed(*p, end, i, width);
    *p += bytes < left ? bytes : left;
    return true;
}

bool bits_hybrid(const uint8_t **p, const uint8_t *end, int width, int64_t n, uint32_t *out)
{
    uint64_t head;
    if (width < 0 || width > 32)
        return false;
    for (int64_t at = 0; at < n;) {
        if (!bits_varint(p, end, &head) || head >> 1 == 0 || head >> 1 > (uint64_t)1 << 40)
            return false;
        uint64_t some = head & 1 ? (head >> 1) * 8 : head >> 1;
        int64_t taken = some < (uint64_t)(n - at) ? (int64_t)some : n - at;
        if (head & 1 ? !bits_groups(p, end, width, head >> 1, taken, out + at)
                     : !bits_run(p, end, width, taken, out + at))
            return false;
        at += taken;
    }
    return true;
}

static int64_t bits_zigzag(uint64_t v)
{
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

enum { DELTA_MOST = 1 << 16 };

/* Deltas of one block, of which `n` numbers are still to come; returns how many it made, -1: it makes no sense. */
static int64_t bits_delta_block(const uint8_t **p, const uint8_t *end, uint64_t block, uint64_t minis, int64_t n,
                                uint64_t last, int64_t *out)
{
    uint64_t head, each = block / minis;
    int64_t made = 0;
    if (!bits_varint(p, end, &head) || (uint64_t)(end - *p) < minis)
        return -1;
    const uint8_t *width = *p;
    uint64_t least = (uint64_t)bits_zigzag(head);
    *p += minis;
    for (uint64_t m = 0; m < minis && made < n; m++) {
        int64_t some = (int64_t)each < n - made ? (int64_t)each : n - made;
        uint64_t bytes = each * width[m] / 8, left = (uint64_t)(end - *p);
        if (width[m] > 64 || ((uint64_t)some * width[m] + 7) / 8 > left)
            return -1;
        for (int64_t i = 0; i < some; i++)
            out[made++] = (int64_t)(last += least + bits_packed(*p, end, i, width[m]));
        *p += bytes < left ? bytes : left;
    }
    return made;
}

bool bits_delta(const uint8_t **p, const uint8_t *end, int64_t n, int64_t *out)
{
    uint64_t block, minis, count, first;
    if (!bits_varint(p, end, &block) || !bits_varint(p, end, &minis) || !bits_varint(p, end, &count) ||
        !bits_varint(p, end, &first) || count != (uint64_t)n)
        return false;
    if (minis == 0 || block == 0 || block > DELTA_MOST || block % minis != 0 || block / minis % 8 != 0)
        return false;
    if (n == 0)
        return true;
    out[0] = bits_zigzag(first);
    for (int64_t at = 1; at < n;) {
        int64_t made = bits_delta_block(p, end, block, minis, n - at, (uint64_t)out[at - 1], out + at);
        if (made <= 0)
            return false;
        at += made;
    }
    return true;
}
