/* cmodel_init.c - how parameters of a model.c start.
 *
 * Element i of a parameter is a function of (seed, name, i): the name's hash chooses the stream of the counter-based
 * generator, so that order and number of the other parameters do not matter.
 * Sources: He, Zhang, Ren, Sun, "Delving deep into rectifiers", 2015 (Kaiming); Glorot, Bengio, "Understanding the
 * difficulty of training deep feedforward neural networks", 2010 (Xavier).
 */
#include "base/rng.h"
#include "compiler/import/cmodel_net.h"

#include <math.h>

/* FNV-1a, 32 bits. */
static uint32_t init_stream(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

static void init_words(uint64_t seed, uint32_t stream, uint64_t block, uint32_t out[4])
{
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), stream, 0};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    ty_philox(counter, key, out);
}

static void init_uniform(uint64_t seed, uint32_t stream, double lo, double hi, int64_t n, float *out)
{
    uint32_t word[4];
    for (int64_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            init_words(seed, stream, (uint64_t)i / 4, word);
        out[i] = (float)(lo + (hi - lo) * ((word[i % 4] + 0.5) * 0x1p-32));
    }
}

/* Box and Muller: two words give two numbers. */
static void init_normal(uint64_t seed, uint32_t stream, double mean, double deviation, int64_t n, float *out)
{
    uint32_t word[4];
    for (int64_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            init_words(seed, stream, (uint64_t)i / 4, word);
        int pair = (int)(i % 4) & 2;
        double radius = sqrt(-2 * log((word[pair] + 0.5) * 0x1p-32)), angle = 2 * M_PI * word[pair + 1] * 0x1p-32;
        out[i] = (float)(mean + deviation * radius * (i % 2 ? sin(angle) : cos(angle)));
    }
}

void cmodel_initialize(const char *name, const ty_type *type, ty_init init, uint64_t seed, float *out)
{
    int64_t n = ty_type_elems(type), first = type->rank ? type->dim[0] : 1, second = type->rank > 1 ? type->dim[1] : 1;
    double in = first > 0 ? fmax(1, (double)n / (double)first) : 1;
    double both = in + (second > 0 ? (double)n / (double)second : 0);
    uint32_t stream = init_stream(name);
    double he = sqrt(2 / in), glorot = init.a * sqrt(2 / fmax(1, both));
    switch (init.kind) {
    case TY_INIT_UNIFORM:
        init_uniform(seed, stream, init.a, init.b, n, out);
        return;
    case TY_INIT_NORMAL:
        init_normal(seed, stream, init.a, init.b, n, out);
        return;
    case TY_INIT_KAIMING_UNIFORM:
        init_uniform(seed, stream, -he * sqrt(3), he * sqrt(3), n, out);
        return;
    case TY_INIT_KAIMING_NORMAL:
        init_normal(seed, stream, 0, he, n, out);
        return;
    case TY_INIT_XAVIER_UNIFORM:
        init_uniform(seed, stream, -glorot * sqrt(3), glorot * sqrt(3), n, out);
        return;
    case TY_INIT_XAVIER_NORMAL:
        init_normal(seed, stream, 0, glorot, n, out);
        return;
    default: /* constants; zeros without a word */
        for (int64_t i = 0; i < n; i++)
            out[i] = init.kind == TY_INIT_CONSTANT ? (float)init.a : 0;
    }
}
