/* attend_case.h - graphs of attention and its gradient, for the units that compute them on the CPU and on a GPU.
 * Include after cmocka.h.
 */
#ifndef TY_TESTS_UNIT_ATTEND_CASE_H
#define TY_TESTS_UNIT_ATTEND_CASE_H

#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/ops/attend.h"
#include "compiler/passes/passes.h"

#include <float.h>
#include <math.h>

enum { MAX_INPUTS = 5, MAX_OUTPUTS = 5 };

/* What a query does not see, in the ways in which models say it. */
typedef enum attend_hidden {
    NO_MASK,
    KEYS,         /* [B, 1, 1, S] bool, -inf: keys behind the end of each entry */
    KEYS_ADDED,   /* the same, the lowest float added; of the last entry all keys */
    BAND,         /* [1, 1, T, S] bool, lowest: a window; some queries see nothing */
    BIAS,         /* [B, H, T, S] added: small numbers, -inf where nothing is seen; one query -inf and lowest */
    QUERIES,      /* [1, H, T, 1] bool, -1e9: queries that see nothing, others everything */
    HEADS_ADDED,  /* [1, H, 1, S] added: a slope a head */
    NAN_QUERIES,  /* [1, 1, T, 1] bool, -inf: rows that are NaN */
    BAND_ADDED,   /* BAND, as 0 or the lowest float that is added, by what is not seen */
    KEYS_GUARDED, /* KEYS_ADDED as 0 or -inf that is added, by a condition, or the lowest number if that is more */
    /* added, and an input, of which there is a gradient */
    LEARNED_PLANES, /* [1, H, T, S] */
    LEARNED_ALL,    /* [B, H, T, S] */
    LEARNED_PLANE,  /* [1, 1, T, S] */
    LEARNED_KEYS,   /* [B, 1, 1, S] */
    LEARNED_ROWS,   /* [1, H, T, 1] */
    LEARNED_PADDED  /* LEARNED_PLANES and KEYS_ADDED together */
} attend_hidden;

typedef struct attend_case {
    ty_dtype dtype;
    int64_t b, heads, groups, t, s, d, e;
    bool causal, inside; /* inside: heads lie within rows */
    bool tiled;          /* what the pass should say */
    bool packed;         /* q, k and v, of the same sizes, are slices of one input: qkv, dy -> y, dqkv */
    attend_hidden mask;
    bool drops; /* every tenth probability, or so */
} attend_case;

/* ---- masks ---- */

static inline double mask_fill(attend_hidden mask)
{
    return mask == KEYS || mask == NAN_QUERIES ? -INFINITY : mask == QUERIES ? -1e9 : -FLT_MAX;
}

static inline bool mask_shows(const attend_case *c, int64_t b, int64_t h, int64_t t, int64_t s)
{
    switch (c->mask) {
    case KEYS:
        return s < c->s - 5 * b - 3;
    case KEYS_ADDED:
    case KEYS_GUARDED:
        return b < c->b - 1 && s < c->s - 11 * b - 1;
    case BAND:
    case BAND_ADDED:
        return t % 7 != 3 && s > t - 20 && s < t + 9;
    case QUERIES:
        return t % 3 != h % 3;
    case NAN_QUERIES:
        return t != 5;
    default:
        return true;
    }
}

/* What is added to a score. */
static inline float mask_adds(const attend_case *c, int64_t b, int64_t h, int64_t t, int64_t s)
{
    if (c->mask == HEADS_ADDED)
        return -0.01f * (float)((h + 1) * s);
    if (c->mask == BIAS && t == 5)
        return s % 3 ? -INFINITY : -FLT_MAX;
    if (c->mask == BIAS)
        return s > t + 30 ? -INFINITY : 0.5f * sinf((float)(s + 3 * t + 5 * h + 7 * b));
    return mask_shows(c, b, h, t, s) ? 0 : (float)mask_fill(c->mask);
}

/* As a constant is, but known only when the first input is: nothing is chosen by it before. */
static inline ty_val known_late(ty_graph *g, ty_val constant)
{
    const int64_t lo[4] = {0}, one[] = {1, 1, 1, 1};
    ty_type t = *ty_graph_type(g, constant);
    ty_val first = ty_b_slice(g, ty_b_input(g, 0), lo, one, NULL);
    first = ty_b_cast(g, ty_b_reshape(g, first, 4, one), TY_F32);
    ty_val always = ty_b_lt(g, first, ty_b_full_like(g, first, 1e30));
    return ty_b_binary(g, TY_OP_AND, constant, ty_b_broadcast(g, always, t.rank, t.dim));
}

/* The case's mask as a constant, or by a condition; TY_NONE without one. */
static inline ty_val mask_of(ty_graph *g, const attend_case *c)
{
    static const bool has[][4] = {
        [KEYS] = {1, 0, 0, 1},        [KEYS_ADDED] = {1, 0, 0, 1}, [BAND] = {0, 0, 1, 1},
        [BIAS] = {1, 1, 1, 1},        [QUERIES] = {0, 1, 1, 0},    [HEADS_ADDED] = {0, 1, 0, 1},
        [NAN_QUERIES] = {0, 0, 1, 0}, [BAND_ADDED] = {0, 0, 1, 1}, [KEYS_GUARDED] = {1, 0, 0, 1},
    };
    const int64_t all[] = {c->b, c->heads, c->t, c->s};
    bool added = c->mask == KEYS_ADDED || c->mask == BIAS || c->mask == HEADS_ADDED;
    int64_t dim[4], n = 1, at[4];
    if (c->mask == NO_MASK)
        return TY_NONE;
    for (int i = 0; i < 4; i++)
        n *= dim[i] = has[c->mask][i] ? all[i] : 1;
    float *number = malloc(sizeof *number * (size_t)n);
    uint8_t *shows = malloc((size_t)n);
    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = 3, left = k; i >= 0; left /= dim[i--])
            at[i] = left % dim[i];
        number[k] = mask_adds(c, at[0], at[1], at[2], at[3]);
        shows[k] = mask_shows(c, at[0], at[1], at[2], at[3]) == (c->mask != BAND_ADDED);
    }
    ty_val v = ty_b_const_copy(g, ty_type_make(added ? TY_F32 : TY_BOOL, 4, dim), added ? (void *)number : shows);
    free(number);
    free(shows);
    if (c->mask != BAND_ADDED && c->mask != KEYS_GUARDED)
        return v;
    v = known_late(g, v);
    ty_val none = ty_b_full(g, TY_F32, 4, dim, 0), lowest = ty_b_full(g, TY_F32, 4, dim, -FLT_MAX);
    if (c->mask == BAND_ADDED)
        return ty_b_select(g, v, lowest, none);
    ty_val hidden = ty_b_full(g, TY_F32, 4, dim, -INFINITY);
    return ty_b_binary(g, TY_OP_MAX, ty_b_select(g, v, none, hidden), lowest);
}

static inline bool mask_is_learned(const attend_case *c)
{
    return c->mask >= LEARNED_PLANES;
}

/* The input "mask"; TY_NONE where nothing is learned. */
static inline ty_val learned_of(ty_graph *g, const attend_case *c)
{
    static const bool has[][4] = {
        [LEARNED_PLANES] = {0, 1, 1, 1}, [LEARNED_ALL] = {1, 1, 1, 1},  [LEARNED_PLANE] = {0, 0, 1, 1},
        [LEARNED_KEYS] = {1, 0, 0, 1},   [LEARNED_ROWS] = {0, 1, 1, 0}, [LEARNED_PADDED] = {0, 1, 1, 1},
    };
    const int64_t all[] = {c->b, c->heads, c->t, c->s};
    int64_t dim[4];
    if (!mask_is_learned(c))
        return TY_NONE;
    for (int i = 0; i < 4; i++)
        dim[i] = has[c->mask][i] ? all[i] : 1;
    return ty_b_input(g, ty_graph_add_input(g, "mask", ty_type_make(TY_F32, 4, dim)));
}

/* What is added: what is learned, and where keys are hidden too. */
static inline ty_val added_of(ty_graph *g, const attend_case *c, ty_val learned)
{
    attend_case padding = *c;
    padding.mask = KEYS_ADDED;
    return c->mask == LEARNED_PADDED ? ty_b_add(g, learned, mask_of(g, &padding)) : learned;
}

/* ---- graphs ---- */

static inline ty_val attention_of(ty_graph *g, const attend_case *c, ty_val q, ty_val k, ty_val v, ty_val learned)
{
    ty_attr attr = {.flags = c->causal, .value = 0.3};
    if (c->mask != NO_MASK && learned == TY_NONE)
        attr.value2 = mask_fill(c->mask);
    ty_val mask = learned == TY_NONE ? mask_of(g, c) : added_of(g, c, learned);
    ty_val in[4 + TY_ATTEND_N_DRAWN] = {q, k, v, mask};
    int n = mask == TY_NONE ? 3 : 4;
    if (c->drops) {
        attr.flags |= TY_ATTEND_DROPS;
        attr.dropped = 1677722; /* 0.1 */
        attr.index = 11;
        in[n++] = ty_b_scalar(g, TY_I64, 0x123456789);
        in[n++] = ty_b_scalar(g, TY_I64, 17);
    }
    return ty_graph_emit(g, TY_OP_ATTENTION, &attr, in, n);
}

static inline ty_val given(ty_graph *g, const attend_case *c, const char *name, int64_t heads, int64_t rows, int64_t n)
{
    int64_t inside[] = {c->b, rows, heads, n}, plain[] = {c->b, heads, rows, n};
    ty_val v = ty_b_input(g, ty_graph_add_input(g, name, ty_type_make(c->dtype, 4, c->inside ? inside : plain)));
    return c->inside ? ty_b_transpose(g, v, (int64_t[]){0, 2, 1, 3}) : v;
}

static inline void taken(ty_graph *g, const attend_case *c, const char *name, ty_val v)
{
    ty_graph_add_output(g, name, c->inside ? ty_b_transpose(g, v, (int64_t[]){0, 2, 1, 3}) : v, TY_TAPE_EVAL);
}

/* The first, second or third part of a row, in heads that are turned outside. */
static inline ty_val part(ty_graph *g, const attend_case *c, ty_val whole, int i)
{
    int64_t n = c->heads * c->d;
    ty_val v =
        ty_b_reshape(g, ty_b_slice_axis(g, whole, 2, i * n, (i + 1) * n), 4, (int64_t[]){c->b, c->t, c->heads, c->d});
    return ty_b_transpose(g, v, (int64_t[]){0, 2, 1, 3});
}

static inline ty_graph *make_packed(const attend_case *c)
{
    ty_graph *g = ty_graph_new();
    const int64_t dims[] = {c->b, c->t, 3 * c->heads * c->d};
    ty_val qkv = ty_b_input(g, ty_graph_add_input(g, "qkv", ty_type_make(c->dtype, 3, dims)));
    ty_val dy = given(g, c, "dy", c->heads, c->t, c->e), d;
    ty_val y = attention_of(g, c, part(g, c, qkv, 0), part(g, c, qkv, 1), part(g, c, qkv, 2), TY_NONE);
    ty_error err = {0};
    if (ty_pass_autodiff(g, ty_b_sum(g, ty_b_mul(g, y, dy), 15, false), &qkv, 1, &d, &err) < 0)
        fail_msg("%s", err.message);
    taken(g, c, "y", y);
    ty_graph_add_output(g, "dqkv", d, TY_TAPE_EVAL);
    return g;
}

/* Attention and the gradient of sum(y dy). */
static inline ty_graph *make(const attend_case *c)
{
    if (c->packed)
        return make_packed(c);
    ty_graph *g = ty_graph_new();
    ty_val q = given(g, c, "q", c->heads, c->t, c->d), k = given(g, c, "k", c->groups, c->s, c->d);
    ty_val v = given(g, c, "v", c->groups, c->s, c->e), dy = given(g, c, "dy", c->heads, c->t, c->e);
    ty_val learned = learned_of(g, c), y = attention_of(g, c, q, k, v, learned), d[4];
    ty_error err = {0};
    ty_val loss = ty_b_sum(g, ty_b_mul(g, y, dy), 15, false);
    if (ty_pass_autodiff(g, loss, (ty_val[]){q, k, v, learned}, learned == TY_NONE ? 3 : 4, d, &err) < 0)
        fail_msg("%s", err.message);
    taken(g, c, "y", y);
    taken(g, c, "dq", d[0]);
    taken(g, c, "dk", d[1]);
    taken(g, c, "dv", d[2]);
    if (learned != TY_NONE)
        ty_graph_add_output(g, "dmask", d[3], TY_TAPE_EVAL);
    return g;
}

/* Inputs of float32, between -1.5 and 1.5; they are the caller's. */
static inline void float_noise(const ty_graph *g, void **in)
{
    for (int i = 0; i < ty_graph_n_inputs(g); i++) {
        int64_t n = ty_type_elems(&ty_graph_input(g, i)->type);
        float *x = in[i] = malloc(sizeof(float) * (size_t)n);
        assert_non_null(x);
        for (int64_t k = 0; k < n; k++)
            x[k] = 3 * ty_rng_uniform(ty_rng_u32(5, (uint32_t)i, 0, (uint64_t)k)) - 1.5f;
    }
}

#endif
