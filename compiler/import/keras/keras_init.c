/* keras_init.c - how weights start that no file has: Keras' initializers.
 *
 * Source: keras/src/initializers. The distributions are Keras', the numbers are not: element i of a weight is a
 * function of (seed, name of the weight, i), by the counter-based generator (base/rng.h), so that order and number of
 * the other weights do not matter. An initializer with a seed of its own gives the same numbers to all weights, as in
 * Keras.
 */
#include "base/rng.h"
#include "compiler/import/keras/keras_walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INIT_MAX_WORK 1e12 /* products that an orthogonal matrix may take: minutes */

typedef struct init_draw {
    uint64_t seed;
    uint32_t stream;
    int64_t n;
    float *out;
} init_draw;

typedef struct init_ctx {
    const keras_weight *weight;
    const ty_doc *config;
    init_draw draw;
    int arg; /* of the row */
    ty_error *err;
} init_ctx;

/* ---- numbers ------------------------------------------------------------------------------------------------------
 */

/* FNV-1a, 32 bits. */
static uint32_t init_stream(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

static void init_words(const init_draw *d, uint64_t block, uint32_t out[4])
{
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), d->stream, 0};
    uint32_t key[2] = {(uint32_t)d->seed, (uint32_t)(d->seed >> 32)};
    ty_philox(counter, key, out);
}

static void init_uniform(const init_draw *d, double lo, double hi)
{
    uint32_t word[4];
    for (int64_t i = 0; i < d->n; i++) {
        if (i % 4 == 0)
            init_words(d, (uint64_t)i / 4, word);
        d->out[i] = (float)(lo + (hi - lo) * ((word[i % 4] + 0.5) * 0x1p-32));
    }
}

/* Box and Muller: two words give two numbers. */
static double init_pair(const uint32_t word[2], bool second)
{
    double radius = sqrt(-2 * log((word[0] + 0.5) * 0x1p-32)), angle = 2 * M_PI * word[1] * 0x1p-32;
    return radius * (second ? sin(angle) : cos(angle));
}

static void init_normal(const init_draw *d, double mean, double deviation)
{
    uint32_t word[4];
    for (int64_t i = 0; i < d->n; i++) {
        if (i % 4 == 0)
            init_words(d, (uint64_t)i / 4, word);
        d->out[i] = (float)(mean + deviation * init_pair(&word[i % 4 & 2], i % 2));
    }
}

/* Drawn again until it lies within two deviations; each element has a block of its own, and further ones far behind. */
static void init_truncated(const init_draw *d, double mean, double deviation)
{
    uint32_t word[4];
    for (int64_t i = 0; i < d->n; i++) {
        double z = 3;
        for (uint64_t again = 0; fabs(z) > 2 && again < 64; again++) {
            init_words(d, (uint64_t)i + (again << 48), word);
            for (int k = 0; k < 4 && fabs(z) > 2; k++)
                z = init_pair(&word[k & 2], k % 2);
        }
        d->out[i] = (float)(mean + deviation * (fabs(z) > 2 ? 0 : z));
    }
}

/* ---- settings -----------------------------------------------------------------------------------------------------
 */

static double init_number(const init_ctx *c, const char *key, double absent)
{
    const ty_doc *d = ty_doc_find(c->config, key), *value = ty_doc_find(ty_doc_find(d, "config"), "value");
    if (d)
        ty_doc_float(value ? value : d, &absent, NULL);
    return absent;
}

/* The product of the dims that a list of axes names; false if the key has none. */
static bool init_axes(const init_ctx *c, const char *key, double *out)
{
    const ty_doc *d = ty_doc_find(c->config, key);
    const ty_type *t = &c->weight->type;
    if (!d || d->kind != TY_DOC_LIST)
        return false;
    *out = 1;
    for (uint32_t i = 0; i < d->n_items; i++) {
        const ty_doc *axis = ty_doc_at(d, i);
        int64_t at = axis->kind == TY_DOC_INT ? axis->integer + (axis->integer < 0 ? t->rank : 0) : -1;
        if (at >= 0 && at < t->rank)
            *out *= (double)t->dim[at];
    }
    return true;
}

static double init_mask(const ty_type *t, uint32_t axes)
{
    double n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= axes >> i & 1 ? (double)t->dim[i] : 1;
    return n;
}

static void init_fans(const init_ctx *c, double *in, double *out)
{
    const ty_type *t = &c->weight->type;
    if (init_axes(c, "input_axes", in) && init_axes(c, "output_axes", out))
        return;
    if (c->weight->in_axes || c->weight->out_axes) {
        *in = init_mask(t, c->weight->in_axes);
        *out = init_mask(t, c->weight->out_axes);
        return;
    }
    double window = 1;
    for (int i = 0; i + 2 < t->rank; i++)
        window *= (double)t->dim[i];
    *in = t->rank == 0 ? 1 : t->rank == 1 ? (double)t->dim[0] : window * (double)t->dim[t->rank - 2];
    *out = t->rank == 0 ? 1 : t->rank == 1 ? (double)t->dim[0] : window * (double)t->dim[t->rank - 1];
}

/* ---- rows ---------------------------------------------------------------------------------------------------------
 */

enum { INIT_IN, INIT_OUT, INIT_AVERAGE };
enum { INIT_TRUNCATED, INIT_UNTRUNCATED, INIT_UNIFORM };

static int init_scaled(const init_ctx *c, double scale, int mode, int distribution)
{
    double in, out;
    init_fans(c, &in, &out);
    double fan = mode == INIT_IN ? in : mode == INIT_OUT ? out : (in + out) / 2;
    scale /= fmax(1, fan);
    if (distribution == INIT_UNIFORM)
        init_uniform(&c->draw, -sqrt(3 * scale), sqrt(3 * scale));
    else if (distribution == INIT_UNTRUNCATED)
        init_normal(&c->draw, 0, sqrt(scale));
    else
        init_truncated(&c->draw, 0, sqrt(scale) / 0.87962566103423978);
    return 0;
}

static int init_choice(const init_ctx *c, const char *key, const char *const *choices, int absent)
{
    const char *text = keras_string(ty_doc_find(c->config, key));
    for (int i = 0; text && choices[i]; i++)
        if (strcmp(text, choices[i]) == 0)
            return i;
    if (!text)
        return absent;
    return ty_error_set(c->err, TY_E_ATTRIBUTE, "initializer VarianceScaling: %s is \"%.60s\"", key, text);
}

static int init_variance_scaling(const init_ctx *c)
{
    static const char *const modes[] = {"fan_in", "fan_out", "fan_avg", NULL};
    static const char *const kinds[] = {"truncated_normal", "untruncated_normal", "uniform", "normal", NULL};
    int mode = init_choice(c, "mode", modes, INIT_IN), kind = init_choice(c, "distribution", kinds, INIT_TRUNCATED);
    if (mode < 0 || kind < 0)
        return -1;
    return init_scaled(c, init_number(c, "scale", 1), mode, kind == 3 ? INIT_TRUNCATED : kind);
}

static int init_glorot(const init_ctx *c)
{
    return init_scaled(c, 1, INIT_AVERAGE, c->arg);
}

static int init_he(const init_ctx *c)
{
    return init_scaled(c, 2, INIT_IN, c->arg);
}

static int init_lecun(const init_ctx *c)
{
    return init_scaled(c, 1, INIT_IN, c->arg);
}

static int init_random_uniform(const init_ctx *c)
{
    init_uniform(&c->draw, init_number(c, "minval", -0.05), init_number(c, "maxval", 0.05));
    return 0;
}

static int init_random_normal(const init_ctx *c)
{
    double mean = init_number(c, "mean", 0), deviation = init_number(c, "stddev", 0.05);
    if (c->arg == INIT_TRUNCATED)
        init_truncated(&c->draw, mean, deviation);
    else
        init_normal(&c->draw, mean, deviation);
    return 0;
}

static bool init_is_number(const ty_doc *d)
{
    return d && (d->kind == TY_DOC_INT || d->kind == TY_DOC_FLOAT);
}

/* An initializer may be a number too (LayerScale's init_values). */
static int init_constant(const init_ctx *c)
{
    double value = c->arg < 0 ? init_number(c, "value", 0) : c->arg;
    if (init_is_number(c->weight->initializer))
        ty_doc_float(c->weight->initializer, &value, NULL);
    for (int64_t i = 0; i < c->draw.n; i++)
        c->draw.out[i] = (float)value;
    return 0;
}

static int init_identity(const init_ctx *c)
{
    const ty_type *t = &c->weight->type;
    if (t->rank != 2)
        return ty_error_set(c->err, TY_E_SHAPE, "initializer Identity: takes weights of two axes, found %d", t->rank);
    memset(c->draw.out, 0, sizeof *c->draw.out * (size_t)c->draw.n);
    for (int64_t i = 0; i < t->dim[0] && i < t->dim[1]; i++)
        c->draw.out[i * t->dim[1] + i] = (float)init_number(c, "gain", 1);
    return 0;
}

/* Gram and Schmidt: rows [n, len] of q become orthonormal. Random rows are far enough from each other for doubles. */
static void init_orthonormalize(double *q, int64_t n, int64_t len)
{
    for (int64_t i = 0; i < n; i++) {
        double *row = q + i * len, norm = 0;
        for (int64_t k = 0; k < i; k++) {
            const double *other = q + k * len;
            double dot = 0;
            for (int64_t j = 0; j < len; j++)
                dot += row[j] * other[j];
            for (int64_t j = 0; j < len; j++)
                row[j] -= dot * other[j];
        }
        for (int64_t j = 0; j < len; j++)
            norm += row[j] * row[j];
        norm = norm > 0 ? 1 / sqrt(norm) : 0;
        for (int64_t j = 0; j < len; j++)
            row[j] *= norm;
    }
}

static int init_orthogonal(const init_ctx *c)
{
    const ty_type *t = &c->weight->type;
    if (t->rank < 2)
        return ty_error_set(c->err, TY_E_SHAPE, "initializer Orthogonal: takes weights of two axes or more, found %d",
                            t->rank);
    int64_t cols = t->dim[t->rank - 1], rows = cols ? c->draw.n / cols : 0;
    int64_t n = rows < cols ? rows : cols, len = rows < cols ? cols : rows;
    if ((double)n * (double)n * (double)len > INIT_MAX_WORK)
        return ty_error_set(c->err, TY_E_LIMIT, "initializer Orthogonal: would take too long for weight \"%.100s\"",
                            c->weight->name);
    double *q = malloc(sizeof *q * (size_t)(c->draw.n + 1)), gain = init_number(c, "gain", 1);
    if (!q)
        return ty_error_set(c->err, TY_E_LIMIT, "no memory for initializer Orthogonal");
    init_normal(&c->draw, 0, 1);
    for (int64_t i = 0; i < c->draw.n; i++)
        q[i] = c->draw.out[i];
    init_orthonormalize(q, n, len);
    for (int64_t i = 0; i < c->draw.n; i++)
        c->draw.out[i] = (float)(gain * (rows < cols ? q[i] : q[i % cols * len + i / cols]));
    free(q);
    return 0;
}

typedef struct init_frame {
    double mean, whole; /* of the window: mean - (1 - mean) cos(2 pi t / whole) */
    int scaling;        /* 0: none, 1: by the root of the sum of squares, 2: by the sum */
} init_frame;

/* Source: keras/src/initializers/constant_initializers.py, STFT; windows: scipy.signal.get_window. */
static int init_frame_of(const init_ctx *c, init_frame *f)
{
    const ty_doc *config = c->weight->layer->config, *periodic = ty_doc_find(config, "periodic");
    const ty_doc *window = ty_doc_find(config, "window"), *scaling = ty_doc_find(config, "scaling");
    const char *name = window ? keras_string(window) : "hann", *by = scaling ? keras_string(scaling) : "density";
    bool plain = window && window->kind == TY_DOC_NULL,
         closed = !periodic || periodic->kind != TY_DOC_BOOL || !periodic->boolean;
    *f = (init_frame){.mean = plain ? 1 : 0.5, .whole = (double)(c->weight->type.dim[0] - closed)};
    f->scaling = plain || !by ? 0 : strcmp(by, "spectrum") == 0 ? 2 : 1;
    if (name && strcmp(name, "hamming") == 0)
        f->mean = 0.54;
    if (plain || (name && (f->mean > 0.5 || strcmp(name, "hann") == 0)))
        return 0;
    ty_error_set(c->err, TY_E_UNSUPPORTED, "weight \"%.120s\" starts with a window other than hann and hamming",
                 c->weight->name);
    return ty_error_help(c->err, "save the model with its weights");
}

static double init_window(const init_frame *f, int64_t t)
{
    return f->whole > 0 ? f->mean - (1 - f->mean) * cos(2 * M_PI * (double)t / f->whole) : 1;
}

/* A kernel [frame, 1, bins]: the window times cosines, arg 1: times sines. */
static int init_stft(const init_ctx *c)
{
    const int64_t *dim = c->weight->type.dim;
    int64_t whole = dim[2] > 1 ? 2 * (dim[2] - 1) : 1;
    double sum = 0, squares = 0;
    init_frame f;
    if (init_frame_of(c, &f) < 0)
        return -1;
    for (int64_t t = 0; t < dim[0]; t++) {
        sum += fabs(init_window(&f, t));
        squares += init_window(&f, t) * init_window(&f, t);
    }
    double by = f.scaling == 0 ? 1 : f.scaling == 1 ? sqrt(squares) : sum;
    for (int64_t i = 0; i < c->draw.n; i++) {
        int64_t t = i / dim[2], k = i % dim[2];
        double angle = -2 * M_PI * (double)(t * k % whole) / (double)whole;
        c->draw.out[i] = (float)((c->arg ? sin(angle) : cos(angle)) * init_window(&f, t) / by);
    }
    return 0;
}

typedef struct init_row {
    const char *name; /* in small letters */
    int (*fill)(const init_ctx *c);
    int arg;
} init_row;

static const init_row init_rows[] = {
    {"glorot_uniform", init_glorot, INIT_UNIFORM},
    {"glorot_normal", init_glorot, INIT_TRUNCATED},
    {"he_uniform", init_he, INIT_UNIFORM},
    {"he_normal", init_he, INIT_TRUNCATED},
    {"lecun_uniform", init_lecun, INIT_UNIFORM},
    {"lecun_normal", init_lecun, INIT_TRUNCATED},
    {"variance_scaling", init_variance_scaling, 0},
    {"random_uniform", init_random_uniform, 0},
    {"uniform", init_random_uniform, 0},
    {"random_normal", init_random_normal, INIT_UNTRUNCATED},
    {"normal", init_random_normal, INIT_UNTRUNCATED},
    {"truncated_normal", init_random_normal, INIT_TRUNCATED},
    {"orthogonal", init_orthogonal, 0},
    {"orthogonal_initializer", init_orthogonal, 0},
    {"identity", init_identity, 0},
    {"identity_initializer", init_identity, 0},
    {"constant", init_constant, -1},
    {"zeros", init_constant, 0},
    {"zero", init_constant, 0},
    {"ones", init_constant, 1},
    {"one", init_constant, 1},
    {"stft_real", init_stft, 0},
    {"stft_imag", init_stft, 1},
};

/* ---- a weight -----------------------------------------------------------------------------------------------------
 */

static void init_ones(const keras_weight *w, float *out, int64_t n)
{
    int64_t last = w->type.rank ? w->type.dim[w->type.rank - 1] : 0;
    for (int64_t i = 0; last && i < n; i++)
        if (i % last >= w->ones_lo && i % last < w->ones_hi)
            out[i] = 1;
}

const void *keras_initialize(ty_arena *a, const keras_weight *weight, uint64_t seed, ty_error *err)
{
    const char *name = keras_string(weight->initializer);
    if (weight->start)
        return keras_initialize_custom(a, weight, seed);
    if (!name)
        name = keras_string(ty_doc_find(weight->initializer, "class_name"));
    if (init_is_number(weight->initializer))
        name = "constant";
    else if (!name && !weight->initializer)
        name = weight->initializer_absent ? weight->initializer_absent : "glorot_uniform";
    init_ctx c = {.weight = weight, .config = ty_doc_find(weight->initializer, "config"), .err = err};
    const ty_doc *own = ty_doc_find(c.config, "seed");
    c.draw = (init_draw){seed, init_stream(weight->name), ty_type_elems(&weight->type), NULL};
    if (own && own->kind == TY_DOC_INT)
        c.draw.seed = (uint64_t)own->integer, c.draw.stream = 0;
    for (size_t i = 0; name && i < sizeof init_rows / sizeof *init_rows; i++) {
        if (strcmp(init_rows[i].name, keras_snake_case(a, name)) != 0)
            continue;
        c.draw.out = TY_NEW_ARRAY(a, float, c.draw.n + 1);
        c.arg = init_rows[i].arg;
        if (init_rows[i].fill(&c) < 0)
            return NULL;
        init_ones(weight, c.draw.out, c.draw.n);
        return c.draw.out;
    }
    ty_error_set(err, TY_E_UNSUPPORTED, "unknown initializer %.100s of weight \"%.120s\"", name ? name : "?",
                 weight->name);
    ty_error_help(err, "save the model with its weights, or use one of Keras' initializers");
    return NULL;
}
