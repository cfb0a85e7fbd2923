/* fingerprint.c - see fingerprint.h. Little-endian, as all that we run on. */
#include "container/input/map/fingerprint.h"

#include <string.h>

/* Primes of the source, k0, k1, k2. */
#define FINGERPRINT_0 UINT64_C(0xc3a5c85c97cb3127)
#define FINGERPRINT_1 UINT64_C(0xb492b66fbe98f273)
#define FINGERPRINT_2 UINT64_C(0x9ae16a3b2f90404f)

typedef struct pair {
    uint64_t a, b;
} pair;

static uint64_t fetch64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint64_t fetch32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static uint64_t rotate(uint64_t v, int by)
{
    return (v >> by) | (v << (64 - by));
}

static uint64_t shift_mix(uint64_t v)
{
    return v ^ (v >> 47);
}

static uint64_t hash_pair(uint64_t u, uint64_t v, uint64_t mul)
{
    uint64_t a = (u ^ v) * mul;
    a ^= a >> 47;
    uint64_t b = (v ^ a) * mul;
    b ^= b >> 47;
    return b * mul;
}

static uint64_t hash_to_16(const char *s, size_t n)
{
    if (n >= 8) {
        uint64_t mul = FINGERPRINT_2 + n * 2, a = fetch64(s) + FINGERPRINT_2, b = fetch64(s + n - 8);
        return hash_pair(rotate(b, 37) * mul + a, (rotate(a, 25) + b) * mul, mul);
    }
    if (n >= 4) {
        uint64_t mul = FINGERPRINT_2 + n * 2;
        return hash_pair(n + (fetch32(s) << 3), fetch32(s + n - 4), mul);
    }
    if (n > 0) {
        uint32_t y = (uint32_t)(uint8_t)s[0] + ((uint32_t)(uint8_t)s[n >> 1] << 8);
        uint32_t z = (uint32_t)n + ((uint32_t)(uint8_t)s[n - 1] << 2);
        return shift_mix(y * FINGERPRINT_2 ^ z * FINGERPRINT_0) * FINGERPRINT_2;
    }
    return FINGERPRINT_2;
}

static uint64_t hash_to_32(const char *s, size_t n)
{
    uint64_t mul = FINGERPRINT_2 + n * 2, a = fetch64(s) * FINGERPRINT_1, b = fetch64(s + 8);
    uint64_t c = fetch64(s + n - 8) * mul, d = fetch64(s + n - 16) * FINGERPRINT_2;
    return hash_pair(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + FINGERPRINT_2, 18) + c, mul);
}

static uint64_t hash_to_64(const char *s, size_t n)
{
    uint64_t mul = FINGERPRINT_2 + n * 2, a = fetch64(s) * FINGERPRINT_2, b = fetch64(s + 8);
    uint64_t c = fetch64(s + n - 8) * mul, d = fetch64(s + n - 16) * FINGERPRINT_2;
    uint64_t y = rotate(a + b, 43) + rotate(c, 30) + d;
    uint64_t z = hash_pair(y, a + rotate(b + FINGERPRINT_2, 18) + c, mul);
    uint64_t e = fetch64(s + 16) * mul, f = fetch64(s + 24);
    uint64_t g = (y + fetch64(s + n - 32)) * mul, h = (z + fetch64(s + n - 24)) * mul;
    return hash_pair(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, mul);
}

static pair weak_hash(const char *s, uint64_t a, uint64_t b)
{
    uint64_t w = fetch64(s), x = fetch64(s + 8), y = fetch64(s + 16), z = fetch64(s + 24);
    a += w;
    b = rotate(b + a + z, 21);
    uint64_t c = a;
    a += x + y;
    b += rotate(a, 44);
    return (pair){a + z, b + c};
}

typedef struct state {
    uint64_t x, y, z;
    pair v, w;
} state;

static void hash_block(state *h, const char *s)
{
    h->x = rotate(h->x + h->y + h->v.a + fetch64(s + 8), 37) * FINGERPRINT_1;
    h->y = rotate(h->y + h->v.b + fetch64(s + 48), 42) * FINGERPRINT_1;
    h->x ^= h->w.b;
    h->y += h->v.a + fetch64(s + 40);
    h->z = rotate(h->z + h->w.a, 33) * FINGERPRINT_1;
    h->v = weak_hash(s, h->v.b * FINGERPRINT_1, h->x + h->w.a);
    h->w = weak_hash(s + 32, h->z + h->w.b, h->y + fetch64(s + 16));
    uint64_t z = h->z;
    h->z = h->x;
    h->x = z;
}

/* The last 64 bytes, with another factor. */
static uint64_t hash_last(state *h, const char *s, size_t n)
{
    uint64_t mul = FINGERPRINT_1 + ((h->z & 0xff) << 1);
    h->w.a += (n - 1) & 63;
    h->v.a += h->w.a;
    h->w.a += h->v.a;
    h->x = rotate(h->x + h->y + h->v.a + fetch64(s + 8), 37) * mul;
    h->y = rotate(h->y + h->v.b + fetch64(s + 48), 42) * mul;
    h->x ^= h->w.b * 9;
    h->y += h->v.a * 9 + fetch64(s + 40);
    h->z = rotate(h->z + h->w.a, 33) * mul;
    h->v = weak_hash(s, h->v.b * mul, h->x + h->w.a);
    h->w = weak_hash(s + 32, h->z + h->w.b, h->y + fetch64(s + 16));
    uint64_t z = h->z;
    h->z = h->x;
    h->x = z;
    return hash_pair(hash_pair(h->v.a, h->w.a, mul) + shift_mix(h->y) * FINGERPRINT_0 + h->z,
                     hash_pair(h->v.b, h->w.b, mul) + h->x, mul);
}

uint64_t ty_fingerprint64(const void *text, size_t n)
{
    const char *s = text;
    if (n <= 32)
        return n <= 16 ? hash_to_16(s, n) : hash_to_32(s, n);
    if (n <= 64)
        return hash_to_64(s, n);
    const uint64_t seed = 81;
    state h = {.x = seed, .y = seed * FINGERPRINT_1 + 113};
    h.z = shift_mix(h.y * FINGERPRINT_2 + 113) * FINGERPRINT_2;
    h.x = h.x * FINGERPRINT_2 + fetch64(s);
    const char *end = s + ((n - 1) / 64) * 64;
    for (const char *p = s; p < end; p += 64)
        hash_block(&h, p);
    return hash_last(&h, s + n - 64, n);
}

uint64_t ty_fingerprint_join(uint64_t a, uint64_t b)
{
    static const uint64_t mul = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t r = a ^ mul;
    r ^= shift_mix(b * mul) * mul;
    r *= mul;
    r = shift_mix(r) * mul;
    return shift_mix(r);
}
