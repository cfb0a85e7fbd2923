/* graph_maker.h - random graphs: a seed decides one. What stands in it and why values stay near 1: graphs.c. */
#ifndef TY_TESTS_TOOLS_GRAPH_MAKER_H
#define TY_TESTS_TOOLS_GRAPH_MAKER_H

#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/passes/passes.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MAX_VALUES = 64, N_INPUTS = 5, MOVES = 26, MAX_ELEMS = 30000 };

typedef struct value {
    ty_val v;
    bool exact;  /* multiples of 1/8, or integers */
    bool coarse; /* 16 bits on the way */
    bool grows;  /* of a gradient: not near 1 */
} value;

typedef struct maker {
    ty_graph *g;
    uint64_t seed;
    uint32_t n_drawn;
    value pool[MAX_VALUES];
    int n;
    ty_val wrt[2];
} maker;

/* ---- drawing ---- */

static int64_t draw(maker *m, int64_t below)
{
    return (int64_t)(ty_rng_u32(m->seed, 1, 0, m->n_drawn++) % (uint64_t)below);
}

static bool odds(maker *m, int64_t one_in)
{
    return draw(m, one_in) == 0;
}

static ty_dtype dtype_of(const maker *m, const value *x)
{
    return ty_b_dtype(m->g, x->v);
}

/* A value for which `fits` holds, preferring late ones; the first input always fits where floats do. */
typedef bool fits_fn(const maker *m, const value *x);

static bool fits_float(const maker *m, const value *x)
{
    return ty_dtype_is_float(dtype_of(m, x)) && ty_b_rank(m->g, x->v) > 0;
}

static bool fits_f32(const maker *m, const value *x)
{
    return dtype_of(m, x) == TY_F32 && ty_b_rank(m->g, x->v) > 0;
}

static bool fits_exact(const maker *m, const value *x)
{
    return x->exact && dtype_of(m, x) != TY_BOOL && ty_b_rank(m->g, x->v) > 0;
}

static bool fits_any(const maker *m, const value *x)
{
    return dtype_of(m, x) != TY_BOOL && ty_b_rank(m->g, x->v) > 0;
}

static const value *pick(maker *m, fits_fn *fits)
{
    for (int tries = 0; tries < 40; tries++) {
        const value *x = &m->pool[odds(m, 2) ? draw(m, m->n) : m->n - 1 - draw(m, m->n < 6 ? m->n : 6)];
        if (fits(m, x) && ty_type_elems(ty_graph_type(m->g, x->v)) <= MAX_ELEMS)
            return x;
    }
    return &m->pool[0];
}

static uint32_t some_axes(maker *m, ty_val x)
{
    uint32_t all = (1u << ty_b_rank(m->g, x)) - 1, axes = (uint32_t)draw(m, 1 << ty_b_rank(m->g, x)) & all;
    return axes ? axes : all;
}

/* ---- leaves ---- */

static void keep(maker *m, ty_val v, bool exact, bool coarse)
{
    if (v != TY_NONE && m->n < MAX_VALUES)
        m->pool[m->n++] = (value){v, exact, coarse || ty_dtype_bytes(ty_b_dtype(m->g, v)) == 2, false};
}

static void make_inputs(maker *m)
{
    static const char *const names[N_INPUTS] = {"x", "y", "z", "i", "d"};
    static const ty_dtype dtypes[N_INPUTS] = {TY_F32, TY_F32, TY_F32, TY_I64, TY_F64};
    for (int i = 0; i < N_INPUTS; i++) {
        ty_type type = {.dtype = (uint8_t)dtypes[i], .rank = (uint8_t)(i == 2 ? 1 : 1 + draw(m, i ? 3 : 4))};
        for (int k = 0; k < type.rank; k++)
            type.dim[k] = i == 2 ? 1 + draw(m, 3000) : 1 + draw(m, odds(m, 3) ? 40 : 9);
        keep(m, ty_b_input(m->g, ty_graph_add_input(m->g, names[i], type)), true, false);
    }
    m->wrt[0] = m->pool[0].v;
    m->wrt[1] = m->pool[1].v;
}

/* A number between 0 and n - 1 for each element, from nothing or from the integer input. */
static ty_val make_index(maker *m, int rank, const int64_t *dim, int64_t n, int axis)
{
    ty_graph *g = m->g;
    ty_dtype dtype = odds(m, 2) ? TY_I64 : TY_I32;
    ty_val at = ty_b_iota(g, ty_type_make(dtype, rank, dim), rank ? axis % rank : 0);
    for (int i = 0; i < rank; i++)
        at = ty_b_add(g, at, ty_b_mul_s(g, ty_b_iota(g, ty_type_make(dtype, rank, dim), i), (double)(1 + draw(m, 5))));
    return ty_b_binary(g, TY_OP_REM, at, ty_b_scalar(g, dtype, (double)n));
}

/* ---- moves: each adds a value ---- */

static ty_val tame(maker *m, ty_val v)
{
    return ty_b_unary(m->g, TY_OP_TANH, v);
}

/* v without its sign. The slope of |v| jumps where v is next to nothing, so that what was computed is squared. */
static ty_val unsigned_of(maker *m, ty_val v, bool exact)
{
    return exact ? ty_b_unary(m->g, TY_OP_ABS, v) : ty_b_square(m->g, v);
}

static void move_unary(maker *m)
{
    static const ty_op ops[] = {TY_OP_TANH, TY_OP_SIN, TY_OP_COS, TY_OP_ERF, TY_OP_ATAN, TY_OP_EXP, TY_OP_EXPM1};
    static const ty_op positive[] = {TY_OP_SQRT, TY_OP_RSQRT, TY_OP_LOG, TY_OP_LOG1P};
    const value *x = pick(m, fits_float);
    ty_graph *g = m->g;
    switch (draw(m, 6)) {
    case 0:
        keep(m, odds(m, 2) || !x->exact ? ty_b_neg(g, x->v) : ty_b_unary(g, TY_OP_ABS, x->v), x->exact, x->coarse);
        break;
    case 1:
        keep(m, tame(m, ty_b_unary(g, positive[draw(m, 4)], ty_b_add_s(g, unsigned_of(m, x->v, x->exact), 0.4))), false,
             x->coarse);
        break;
    case 2:
        keep(m, odds(m, 2) && x->exact ? ty_b_relu(g, x->v) : ty_b_sigmoid(g, x->v), false, x->coarse);
        break;
    case 3:
        keep(m, tame(m, ty_b_softplus(g, x->v)), false, x->coarse);
        break;
    default:
        keep(m, tame(m, ty_b_unary(g, ops[draw(m, 7)], x->v)), false, x->coarse);
    }
}

/* y in x's shape: another value of that shape, x reduced and stretched, or x moved. */
static ty_val partner(maker *m, const value *x, bool *exact, bool *coarse)
{
    ty_graph *g = m->g;
    for (int i = 0; i < m->n; i++) {
        const value *y = &m->pool[(i + (int)draw(m, m->n)) % m->n];
        if (y->v != x->v && !y->grows && ty_type_same(ty_graph_type(g, y->v), ty_graph_type(g, x->v)) && odds(m, 2)) {
            *exact &= y->exact;
            *coarse |= y->coarse;
            return y->v;
        }
    }
    if (odds(m, 2))
        return ty_b_reverse(g, x->v, some_axes(m, x->v));
    uint32_t axes = some_axes(m, x->v);
    return x->exact ? ty_b_reduce(g, x->v, odds(m, 2) ? TY_MAX : TY_MIN, axes, true) : ty_b_mean(g, x->v, axes, true);
}

static void move_binary(maker *m)
{
    const value x = *pick(m, fits_float);
    bool exact = x.exact, coarse = x.coarse;
    ty_graph *g = m->g;
    ty_val y = partner(m, &x, &exact, &coarse);
    switch (draw(m, 7)) {
    case 0:
        keep(m, ty_b_mul_s(g, ty_b_add(g, x.v, y), 0.5), false, coarse);
        break;
    case 1:
        keep(m, ty_b_mul_s(g, ty_b_sub(g, x.v, y), 0.5), false, coarse);
        break;
    case 2:
        keep(m, tame(m, ty_b_mul(g, x.v, y)), false, coarse);
        break;
    case 3:
        keep(m,
             !exact       ? ty_b_mul_s(g, ty_b_add(g, x.v, y), 0.25)
             : odds(m, 2) ? ty_b_max(g, x.v, y)
                          : ty_b_min(g, x.v, y),
             exact, coarse);
        break;
    case 4:
        keep(m, tame(m, ty_b_div(g, x.v, ty_b_add_s(g, unsigned_of(m, y, exact), 0.5))), false, coarse);
        break;
    case 5:
        keep(m,
             tame(m, ty_b_binary(g, TY_OP_POW, ty_b_add_s(g, unsigned_of(m, x.v, exact), 0.5),
                                 ty_b_scalar(g, dtype_of(m, &x), odds(m, 2) ? 3 : 1.5))),
             false, coarse);
        break;
    default:
        keep(m, ty_b_binary(g, TY_OP_ADD, ty_b_mul_s(g, x.v, 0.5), ty_b_mul_s(g, y, 0.25)), false, coarse);
    }
}

/* A condition from exact values chooses between two floats. */
static void move_select(maker *m)
{
    const value x = *pick(m, fits_exact);
    bool exact = true, coarse = false;
    ty_graph *g = m->g;
    ty_val y = partner(m, &x, &exact, &coarse);
    if (!exact)
        y = ty_b_full_like(g, x.v, 0.25);
    ty_val c = draw(m, 3) == 0 ? ty_b_eq(g, x.v, y) : odds(m, 2) ? ty_b_lt(g, x.v, y) : ty_b_le(g, x.v, y);
    ty_val yes = ty_b_mul_s(g, ty_b_cast(g, c, TY_F32), 0.75);
    for (int i = 0; i < m->n; i++)
        if (fits_f32(m, &m->pool[i]) && ty_type_same_shape(ty_graph_type(g, m->pool[i].v), ty_graph_type(g, c))) {
            yes = m->pool[i].v;
            coarse |= m->pool[i].coarse;
        }
    keep(m, ty_b_select(g, c, yes, ty_b_full_like(g, yes, -0.5)), false, coarse);
}

static void move_exact(maker *m)
{
    static const ty_dtype to[] = {TY_F32, TY_F64, TY_BF16, TY_I64, TY_I32, TY_F16};
    const value x = *pick(m, fits_exact);
    ty_graph *g = m->g;
    bool is_float = ty_dtype_is_float(dtype_of(m, &x));
    switch (draw(m, is_float ? 3 : 2)) {
    case 0:
        keep(m, ty_b_cast(g, x.v, to[draw(m, 6)]), true, x.coarse);
        break;
    case 1:
        keep(m, ty_b_binary(g, TY_OP_REM, x.v, ty_b_scalar(g, dtype_of(m, &x), 2)), true, x.coarse);
        break;
    default:
        keep(m, ty_b_unary(g, odds(m, 2) ? TY_OP_FLOOR : TY_OP_RINT, x.v), true, x.coarse);
    }
}

static ty_val reshaped(maker *m, ty_val x)
{
    int64_t n = ty_type_elems(ty_graph_type(m->g, x)), dim[3] = {1, 1, n};
    for (int i = 0; i < 2; i++)
        for (int64_t d = 2 + draw(m, 6); d > 1; d--)
            if (dim[2] % d == 0) {
                dim[i] = d;
                dim[2] /= d;
                break;
            }
    return odds(m, 4) ? ty_b_flatten(m->g, x) : ty_b_reshape(m->g, x, 3, dim);
}

static ty_val padded(maker *m, ty_val x)
{
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0};
    for (int i = 0; i < ty_b_rank(m->g, x); i++)
        lo[i] = draw(m, 3), hi[i] = draw(m, 3);
    bool half = odds(m, 3) && ty_dtype_is_float((ty_dtype)ty_graph_type(m->g, x)->dtype);
    return ty_b_pad(m->g, x, lo, hi, half ? 0.5 : 0);
}

static ty_val sliced(maker *m, ty_val x)
{
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0}, step[TY_MAX_RANK];
    for (int i = 0; i < ty_b_rank(m->g, x); i++) {
        int64_t n = ty_b_dim(m->g, x, i);
        lo[i] = odds(m, 2) ? 0 : draw(m, n);
        hi[i] = n - draw(m, n - lo[i]);
        step[i] = odds(m, 4) ? 2 : 1;
    }
    return ty_b_slice(m->g, x, lo, hi, step);
}

static ty_val transposed(maker *m, ty_val x)
{
    int64_t perm[TY_MAX_RANK];
    int rank = ty_b_rank(m->g, x);
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int64_t k = draw(m, i + 1), t = perm[i];
        perm[i] = perm[k];
        perm[k] = t;
    }
    return ty_b_transpose(m->g, x, perm);
}

static ty_val stretched(maker *m, ty_val x)
{
    ty_val wide = ty_b_unsqueeze(m->g, x, (int)draw(m, ty_b_rank(m->g, x) + 1));
    int64_t dim[TY_MAX_RANK];
    int rank = ty_b_rank(m->g, wide);
    for (int i = 0; i < rank; i++)
        dim[i] = ty_b_dim(m->g, wide, i) == 1 ? 1 + draw(m, 5) : ty_b_dim(m->g, wide, i);
    return ty_b_broadcast(m->g, wide, rank, dim);
}

static void move_movement(maker *m)
{
    const value x = *pick(m, fits_any);
    ty_graph *g = m->g;
    int rank = ty_b_rank(g, x.v), axis = (int)draw(m, rank);
    ty_val v;
    switch (draw(m, 7)) {
    case 0:
        v = transposed(m, x.v);
        break;
    case 1:
        v = reshaped(m, x.v);
        break;
    case 2:
        v = padded(m, x.v);
        break;
    case 3:
        v = sliced(m, x.v);
        break;
    case 4:
        v = ty_b_reverse(g, x.v, some_axes(m, x.v));
        break;
    case 5:
        v = rank < 5 ? stretched(m, x.v) : x.v;
        break;
    default:
        v = ty_b_concat(g, (ty_val[]){x.v, ty_b_slice_axis(g, x.v, axis, 0, 1 + draw(m, ty_b_dim(g, x.v, axis))), x.v},
                        2 + (int)draw(m, 2), axis);
    }
    keep(m, v, x.exact, x.coarse);
}

static void move_lookup(maker *m)
{
    const value x = *pick(m, fits_any);
    ty_graph *g = m->g;
    int axis = (int)draw(m, ty_b_rank(g, x.v));
    int64_t dim[2] = {1 + draw(m, 12), 1 + draw(m, 4)}, n = ty_b_dim(g, x.v, axis);
    if (ty_b_rank(g, x.v) > 3)
        return;
    keep(m, ty_b_gather(g, x.v, make_index(m, 1 + (int)draw(m, 2), dim, n, 0), axis), x.exact, x.coarse);
}

/* Rows written into zeros or into another part of the same value. */
static void move_write(maker *m)
{
    static const ty_combine modes[] = {TY_SUM, TY_MAX, TY_MIN, TY_SET};
    const value x = *pick(m, fits_float);
    ty_graph *g = m->g;
    int axis = (int)draw(m, ty_b_rank(g, x.v));
    int64_t n_index = ty_b_dim(g, x.v, axis), n = 1 + draw(m, 2 * n_index), dim[TY_MAX_RANK];
    for (int i = 0; i < ty_b_rank(g, x.v); i++)
        dim[i] = i == axis ? n : ty_b_dim(g, x.v, i);
    ty_val to = ty_b_full(g, dtype_of(m, &x), ty_b_rank(g, x.v), dim, odds(m, 3) ? 0.5 : 0);
    ty_combine mode = modes[draw(m, 4)];
    if (!x.exact && (mode == TY_MAX || mode == TY_MIN))
        mode = TY_SET;
    ty_val v = ty_b_scatter(g, to, make_index(m, 1, &n_index, n, 0), x.v, axis, mode);
    keep(m, mode == TY_SUM ? tame(m, v) : v, x.exact && mode != TY_SUM, x.coarse);
}

static void move_reduce(maker *m)
{
    const value x = *pick(m, fits_float);
    ty_graph *g = m->g;
    uint32_t axes = some_axes(m, x.v);
    bool keep_dims = odds(m, 2) || axes == (1u << ty_b_rank(g, x.v)) - 1;
    if (odds(m, 4))
        keep(m, tame(m, ty_b_reduce(g, tame(m, x.v), TY_PROD, axes, keep_dims)), false, x.coarse);
    else if (!x.exact || odds(m, 3))
        keep(m, ty_b_mean(g, x.v, axes, keep_dims), false, x.coarse);
    else
        keep(m, ty_b_reduce(g, x.v, odds(m, 2) ? TY_MAX : TY_MIN, axes, keep_dims), x.exact, x.coarse);
}

static void move_order(maker *m)
{
    const value x = *pick(m, fits_exact);
    ty_graph *g = m->g;
    int axis = (int)draw(m, ty_b_rank(g, x.v));
    if (dtype_of(m, &x) == TY_F16 || dtype_of(m, &x) == TY_BF16)
        return;
    if (odds(m, 2))
        keep(m, ty_b_sort(g, x.v, axis, odds(m, 2), NULL), true, x.coarse);
    else
        keep(m, ty_b_argreduce(g, x.v, odds(m, 2) ? TY_MAX : TY_MIN, axis, odds(m, 2)), true, false);
}

static void move_scan(maker *m)
{
    const value x = *pick(m, fits_f32);
    ty_graph *g = m->g;
    int axis = (int)draw(m, ty_b_rank(g, x.v));
    ty_val v = ty_b_scan(g, x.v, TY_SUM, axis, odds(m, 2), odds(m, 2));
    keep(m, tame(m, ty_b_mul_s(g, v, fmin(0.25, 8.0 / (double)ty_b_dim(g, x.v, axis)))), false, x.coarse);
}

/* x x' or x' x, or with something cut from x, in batches if there are leading axes. */
static void move_dot(maker *m)
{
    const value x = *pick(m, fits_f32);
    ty_graph *g = m->g;
    int rank = ty_b_rank(g, x.v);
    if (rank < 2 || ty_b_dim(g, x.v, rank - 1) > 300 || ty_b_dim(g, x.v, rank - 2) > 300)
        return;
    int axis = rank - 1 - (int)draw(m, 2);
    bool trans = axis == rank - 1; /* the axis summed over is the last of both, or the one before */
    ty_val y = ty_b_slice_axis(g, x.v, trans ? rank - 2 : rank - 1, 0,
                               1 + draw(m, ty_b_dim(g, x.v, trans ? rank - 2 : rank - 1)));
    double n = (double)ty_b_dim(g, x.v, axis);
    ty_val v = ty_b_dot(g, x.v, y, !trans, trans);
    if (odds(m, 4)) /* added to itself, and that in its place */
        v = ty_b_dot_add(g, x.v, y, v, !trans, trans);
    v = odds(m, 2) ? ty_b_add_s(g, v, 0.5) : v;
    keep(m, tame(m, ty_b_mul_s(g, v, 1 / n)), false, x.coarse);
}

/* As a picture of one to three channels. */
static void move_window(maker *m)
{
    const value x = *pick(m, fits_f32);
    ty_graph *g = m->g;
    int64_t n = ty_type_elems(ty_graph_type(g, x.v)), channels = 1 + draw(m, 3), side = 8;
    if (n < channels * side * side)
        return;
    ty_val flat = ty_b_slice_axis(g, ty_b_flatten(g, x.v), 0, 0, channels * side * side);
    ty_val image = ty_b_reshape(g, flat, 4, (const int64_t[]){1, channels, side, side});
    ty_attr a = {.n = 2, .groups = 1};
    for (int i = 0; i < 2; i++) {
        a.size[i] = 2 + draw(m, 2);
        a.step[i] = 1 + draw(m, 2);
        a.dil[i] = 1;
    }
    if (odds(m, 2)) {
        a.groups = 0;
        bool max = odds(m, 2) && x.exact; /* of equal computed numbers a rounding may decide */
        ty_val v = ty_graph_emit(g, max ? TY_OP_POOL_MAX : TY_OP_POOL_SUM, &a, &image, 1);
        keep(m, v, max, x.coarse);
        return;
    }
    ty_val tail = ty_b_slice_axis(g, ty_b_flatten(g, x.v), 0, 0, 4 * channels * 4);
    memset(a.size, 0, sizeof a.size);
    a.lo[0] = draw(m, 2);
    a.hi[1] = draw(m, 2);
    ty_val kernel = ty_b_reshape(g, tail, 4, (const int64_t[]){4, channels, 2, 2});
    keep(m, tame(m, ty_b_mul_s(g, ty_graph_emit(g, TY_OP_CONV, &a, (ty_val[]){image, kernel}, 2), 0.25)), false,
         x.coarse);
}

/* A value of these sizes, made of another one's elements. */
static ty_val wide_of(maker *m, ty_val x, int rank, const int64_t *dim)
{
    int64_t n = ty_type_elems(ty_graph_type(m->g, x));
    return ty_b_gather(m->g, ty_b_flatten(m->g, x), make_index(m, rank, dim, n, rank - 1), 0);
}

/* A convolution that Winograd's algorithm takes, with enough channels and tiles. */
static ty_val wide_convolution(maker *m, ty_val x)
{
    ty_attr a = {.n = 2, .groups = 1};
    int64_t out = 24 + 8 * draw(m, 2);
    for (int i = 0; i < 2; i++) {
        a.step[i] = a.dil[i] = 1;
        a.lo[i] = draw(m, 2);
        a.hi[i] = draw(m, 2);
    }
    ty_val in[2]; /* one after the other: what is drawn must not depend on the compiler */
    in[0] = wide_of(m, x, 4, (const int64_t[]){1, 24, 8, 8});
    in[1] = wide_of(m, x, 4, (const int64_t[]){out, 24, 3, 3});
    return tame(m, ty_b_mul_s(m->g, ty_graph_emit(m->g, TY_OP_CONV, &a, in, 2), 1.0 / 32));
}

/* Attention over enough positions to be computed in tiles, the last of them not whole. */
static ty_val wide_attention(maker *m, ty_val x)
{
    int64_t dim[] = {2, 64 + draw(m, 9), 16};
    ty_attr a = {.value = 0.25, .flags = (uint32_t)draw(m, 2)}; /* 1: causal */
    ty_val in[3];
    for (int i = 0; i < 3; i++)
        in[i] = wide_of(m, x, 3, dim);
    return ty_graph_emit(m->g, TY_OP_ATTENTION, &a, in, 3);
}

static void move_wide(maker *m)
{
    const value x = *pick(m, fits_f32);
    keep(m, odds(m, 2) ? wide_convolution(m, x.v) : wide_attention(m, x.v), false, x.coarse);
}

static void move_composite(maker *m)
{
    const value x = *pick(m, fits_f32);
    ty_graph *g = m->g;
    int last = ty_b_rank(g, x.v) - 1;
    switch (draw(m, 3)) {
    case 0:
        keep(m, ty_b_softmax(g, x.v, (int)draw(m, last + 1), false), false, x.coarse);
        break;
    case 1:
        keep(m, ty_b_mul_s(g, ty_b_softmax(g, x.v, (int)draw(m, last + 1), true), 0.125), false, x.coarse);
        break;
    default:
        keep(m, tame(m, ty_b_norm(g, x.v, TY_NONE, TY_NONE, 1 + (int)draw(m, last + 1), 0.1, odds(m, 2))), false,
             x.coarse);
    }
}

/* A state of the value's shape becomes a mixture of both. */
static void move_state(maker *m)
{
    const value x = *pick(m, fits_f32);
    ty_graph *g = m->g;
    if (ty_graph_n_states(g) > 2)
        return;
    ty_state state = {.name = ty_arena_printf(ty_graph_arena(g), "s%d", ty_graph_n_states(g)),
                      .type = *ty_graph_type(g, x.v),
                      .role = TY_STATE_PARAM};
    int number = ty_graph_add_state(g, &state);
    ty_val old = ty_b_state(g, number);
    ty_val next = ty_b_add(g, ty_b_mul_s(g, odds(m, 3) ? ty_b_reverse(g, old, some_axes(m, old)) : old, 0.5),
                           ty_b_mul_s(g, x.v, 0.5));
    ty_graph_add_assign(g, number, next, TY_TAPE_LAST);
    keep(m, ty_b_mul_s(g, old, 0.75), false, x.coarse); /* the old number itself is gone when the step is done */
}

/* Some rows of a table, which is a state or another value, become a mixture of theirs and sums of a value's rows. They
 * have no gradient: only behind one. */
static void make_rows(maker *m)
{
    const value x = *pick(m, fits_f32);
    ty_graph *g = m->g;
    int64_t dim[TY_MAX_RANK], n = ty_b_dim(g, x.v, 0), rows_of_table = 1 + draw(m, 2 * n + 3);
    for (int i = 0; i < ty_b_rank(g, x.v); i++)
        dim[i] = i ? ty_b_dim(g, x.v, i) : rows_of_table;
    ty_type type = ty_type_make(TY_F32, ty_b_rank(g, x.v), dim);
    ty_state state = {.name = "table", .type = type, .role = TY_STATE_PARAM};
    int number = odds(m, 2) ? -1 : ty_graph_add_state(g, &state);
    ty_val table = number >= 0 ? ty_b_state(g, number) : ty_b_full(g, TY_F32, type.rank, dim, 0.5), order, start;
    if (number < 0 && odds(m, 2))
        table = ty_b_cast(g, ty_b_iota(g, type, 0), TY_F32);
    ty_val rows = ty_b_find_rows(g, make_index(m, 1, &n, rows_of_table, 0), rows_of_table, &order, &start);
    ty_val sums = ty_b_mul_s(g, ty_b_sum_rows(g, x.v, order, start), 0.25);
    ty_val old = ty_b_mul_s(g, ty_b_get_rows(g, table, rows), 0.5);
    ty_val next = ty_b_set_rows(g, table, rows, odds(m, 2) ? ty_b_add(g, old, sums) : sums);
    if (number >= 0)
        ty_graph_add_assign(g, number, next, TY_TAPE_LAST);
    if (number < 0 || odds(m, 2))
        keep(m, odds(m, 2) ? next : ty_b_mul_s(g, next, 0.5), false, x.coarse);
    if (odds(m, 2))
        keep(m, ty_b_mul_s(g, table, 0.75), false, x.coarse); /* what it was, which may have to stay until then */
    for (int i = m->n - 2; i < m->n; i++)
        m->pool[i].grows |= x.grows;
}

/* The gradient of a weighted sum of some values. */
static void make_gradient(maker *m)
{
    ty_graph *g = m->g;
    ty_val loss = ty_b_scalar(g, TY_F32, 0), grad[2];
    bool coarse = false;
    ty_error err = {0};
    for (int i = N_INPUTS; i < m->n; i++)
        if (dtype_of(m, &m->pool[i]) == TY_F32 && odds(m, 3)) {
            loss = ty_b_add(g, loss, ty_b_mean(g, ty_b_square(g, m->pool[i].v), ty_b_all_axes(g, m->pool[i].v), false));
            coarse |= m->pool[i].coarse;
        }
    if (ty_graph_failed(g, NULL) || ty_pass_autodiff(g, loss, m->wrt, 2, grad, &err) < 0)
        return; /* not all has a gradient */
    for (int i = 0; i < 2; i++) {
        keep(m, grad[i], false, coarse);
        m->pool[m->n - 1].grows = true;
    }
}

static const struct {
    void (*make)(maker *m);
    int weight;
} moves[] = {
    {move_unary, 4},  {move_binary, 6}, {move_select, 2},    {move_exact, 2}, {move_movement, 7},
    {move_lookup, 2}, {move_write, 2},  {move_reduce, 4},    {move_order, 1}, {move_scan, 1},
    {move_dot, 2},    {move_window, 1}, {move_composite, 3}, {move_state, 1}, {move_wide, 1},
};

static void make_graph(maker *m, uint64_t seed)
{
    *m = (maker){.g = ty_graph_new(), .seed = seed};
    int total = 0;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        total += moves[i].weight;
    make_inputs(m);
    for (int n = 0; n < MOVES && !ty_graph_failed(m->g, NULL); n++) {
        int64_t at = draw(m, total);
        size_t i = 0;
        for (; at >= moves[i].weight; i++)
            at -= moves[i].weight;
        moves[i].make(m);
    }
    if (odds(m, 2) && !ty_graph_failed(m->g, NULL))
        make_gradient(m);
    for (int n = (int)draw(m, 3); n > 0 && !ty_graph_failed(m->g, NULL) && ty_graph_n_states(m->g) < 4; n -= 2)
        make_rows(m);
}

#endif
