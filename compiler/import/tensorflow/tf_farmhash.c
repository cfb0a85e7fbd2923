/* tf_farmhash.c - FarmHash's 64-bit fingerprint (Google, MIT licence; farmhashna): what TensorFlow puts into
 * fingerprint.pb. Its value is part of the format. */
#include "compiler/import/tensorflow/tf_farmhash.h"

#include <string.h>

#define K0 UINT64_C(0xc3a5c85c97cb3127)
#define K1 UINT64_C(0xb492b66fbe98f273)
#define K2 UINT64_C(0x9ae16a3b2f90404f)

typedef struct pair {
    uint64_t a, b;
} pair;

static uint64_t u64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static uint32_t u32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static uint64_t turn(uint64_t v, int by)
{
    return v >> by | v << (64 - by);
}

static uint64_t mix(uint64_t v)
{
    return v ^ v >> 47;
}

static uint64_t join(uint64_t u, uint64_t v, uint64_t mul)
{
    uint64_t a = mix((u ^ v) * mul);
    return mix((v ^ a) * mul) * mul;
}

static uint64_t hash_16(const uint8_t *s, size_t n)
{
    uint64_t mul = K2 + n * 2;
    if (n >= 8) {
        uint64_t a = u64(s) + K2, b = u64(s + n - 8);
        return join(turn(b, 37) * mul + a, (turn(a, 25) + b) * mul, mul);
    }
    if (n >= 4)
        return join(n + ((uint64_t)u32(s) << 3), u32(s + n - 4), mul);
    if (n == 0)
        return K2;
    uint32_t y = s[0] + ((uint32_t)s[n >> 1] << 8), z = (uint32_t)n + ((uint32_t)s[n - 1] << 2);
    return mix(y * K2 ^ z * K0) * K2;
}

static uint64_t hash_32(const uint8_t *s, size_t n)
{
    uint64_t mul = K2 + n * 2, a = u64(s) * K1, b = u64(s + 8), c = u64(s + n - 8) * mul, d = u64(s + n - 16) * K2;
    return join(turn(a + b, 43) + turn(c, 30) + d, a + turn(b + K2, 18) + c, mul);
}

static uint64_t hash_64(const uint8_t *s, size_t n)
{
    uint64_t mul = K2 + n * 2, a = u64(s) * K2, b = u64(s + 8), c = u64(s + n - 8) * mul, d = u64(s + n - 16) * K2;
    uint64_t y = turn(a + b, 43) + turn(c, 30) + d, z = join(y, a + turn(b + K2, 18) + c, mul);
    uint64_t e = u64(s + 16) * mul, f = u64(s + 24), g = (y + u64(s + n - 32)) * mul, h = (z + u64(s + n - 24)) * mul;
    return join(turn(e + f, 43) + turn(g, 30) + h, e + turn(f + a, 18) + g, mul);
}

static pair weak_32(const uint8_t *s, uint64_t a, uint64_t b)
{
    uint64_t w = u64(s), x = u64(s + 8), y = u64(s + 16), z = u64(s + 24);
    a += w;
    b = turn(b + a + z, 21);
    uint64_t c = a;
    a += x + y;
    b += turn(a, 44);
    return (pair){a + z, b + c};
}

/* 64 bytes of a long text; `by` is 1 but at the end. */
static void step(const uint8_t *s, uint64_t *x, uint64_t *y, uint64_t *z, pair *v, pair *w, uint64_t mul, uint64_t by)
{
    uint64_t held;
    *x = turn(*x + *y + v->a + u64(s + 8), 37) * mul;
    *y = turn(*y + v->b + u64(s + 48), 42) * mul;
    *x ^= w->b * by;
    *y += v->a * by + u64(s + 40);
    *z = turn(*z + w->a, 33) * mul;
    *v = weak_32(s, v->b * mul, *x + w->a);
    *w = weak_32(s + 32, *z + w->b, *y + u64(s + 16));
    held = *z;
    *z = *x;
    *x = held;
}

uint64_t tf_farmhash(const void *bytes, size_t n)
{
    const uint8_t *s = bytes;
    if (n <= 16)
        return hash_16(s, n);
    if (n <= 64)
        return n <= 32 ? hash_32(s, n) : hash_64(s, n);
    const uint8_t *end = s + (n - 1) / 64 * 64, *last = s + n - 64;
    uint64_t seed = 81, x = seed * K2 + u64(s), y = seed * K1 + 113, z = mix(y * K2 + 113) * K2;
    pair v = {0, 0}, w = {0, 0};
    for (; s != end; s += 64)
        step(s, &x, &y, &z, &v, &w, K1, 1);
    uint64_t mul = K1 + ((z & 0xff) << 1);
    w.a += (n - 1) & 63;
    v.a += w.a;
    w.a += v.a;
    step(last, &x, &y, &z, &v, &w, mul, 9);
    return join(join(v.a, w.a, mul) + mix(y) * K0 + z, join(v.b, w.b, mul) + x, mul);
}
