/* compiled.c - compiled code against the interpreter: chosen graphs for every form of kernel, then random ones. */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MAX_INPUTS 5

static float *noise(int64_t n, uint32_t stream, double scale)
{
    float *x = malloc(sizeof *x * (size_t)(n ? n : 1));
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(scale * (2.0 * ty_rng_u32(7, stream, 0, (uint64_t)i) * 0x1p-32 - 1.0));
    return x;
}

static ty_program *compile(ty_graph *g, uint32_t tapes, ty_backend backend, int threads)
{
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.backend = backend, .threads = threads};
    if (ty_program_of_graph(g, tapes, &opt, &p, &err) < 0)
        fail_msg("compiling: %s", err.message);
    return p;
}

static double element(const ty_tensor *t, int64_t i)
{
    switch (t->type.dtype) {
    case TY_F32:
        return ((const float *)t->data)[i];
    case TY_F64:
        return ((const double *)t->data)[i];
    case TY_F16:
        return ty_f16_to_f32(((const uint16_t *)t->data)[i]);
    case TY_BF16:
        return ty_bf16_to_f32(((const uint16_t *)t->data)[i]);
    case TY_I64:
        return (double)((const int64_t *)t->data)[i];
    case TY_I32:
        return ((const int32_t *)t->data)[i];
    case TY_BOOL:
        return ((const uint8_t *)t->data)[i];
    default:
        fail_msg("no comparison for dtype %d", t->type.dtype);
        return 0;
    }
}

static void same_tensors(const char *name, const ty_tensor *found, const ty_tensor *expected, double tolerance)
{
    assert_true(ty_type_same(&found->type, &expected->type));
    for (int64_t i = 0; i < ty_type_elems(&found->type); i++) {
        double f = element(found, i), e = element(expected, i);
        if (!(f == e || (isnan(f) && isnan(e)) || fabs(f - e) <= tolerance * (1 + fabs(e))))
            fail_msg("output \"%s\", element %lld: expected %.9g, found %.9g", name, (long long)i, e, f);
    }
}

/* Runs both `times` times with the same inputs and compares every output after each run. */
static void judge(ty_graph *(*make)(uint64_t seed), uint64_t seed, ty_run run, int times, double tolerance)
{
    ty_program *p = compile(make(seed), ty_program_tape_of(run), TY_BACKEND_CPU, 2);
    ty_program *q = compile(make(seed), ty_program_tape_of(run), TY_BACKEND_INTERPRETER, 1);
    const void *inputs[MAX_INPUTS] = {NULL};
    for (int i = 0; i < ty_program_n_inputs(p); i++)
        inputs[i] = noise(ty_type_elems(&ty_program_input(p, i)->type), (uint32_t)(100 + i), 1.5);
    for (int t = 0; t < times; t++) {
        ty_error err = {0};
        assert_int_equal(ty_program_run(p, run, inputs, &err), 0);
        assert_int_equal(ty_program_run(q, run, inputs, &err), 0);
        assert_true(ty_program_n_outputs(p, run) > 0);
        for (int i = 0; i < ty_program_n_outputs(p, run); i++) {
            const char *name = ty_program_output_name(p, run, i);
            same_tensors(name, ty_program_output(p, run, name), ty_program_output(q, run, name), tolerance);
        }
    }
    for (int i = 0; i < ty_program_n_inputs(p); i++)
        free((void *)(uintptr_t)inputs[i]);
    ty_program_free(p);
    ty_program_free(q);
}

static ty_val input(ty_graph *g, const char *name, int rank, const int64_t *dim)
{
    return ty_b_input(g, ty_graph_add_input(g, name, ty_type_make(TY_F32, rank, dim)));
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static void out(ty_graph *g, const char *name, ty_val v)
{
    ty_graph_add_output(g, name, v, TY_TAPE_EVAL);
}

/* ---- chosen graphs ---- */

static ty_graph *make_elementwise(uint64_t seed)
{
    (void)seed;
    static const ty_op unary[] = {TY_OP_NEG, TY_OP_ABS, TY_OP_FLOOR, TY_OP_RINT, TY_OP_EXP, TY_OP_EXPM1,
                                  TY_OP_SIN, TY_OP_COS, TY_OP_TANH,  TY_OP_ERF,  TY_OP_ATAN};
    static const ty_op positive[] = {TY_OP_SQRT, TY_OP_RSQRT, TY_OP_LOG, TY_OP_LOG1P};
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", 2, DIMS(37, 53)), y = input(g, "y", 1, DIMS(53)),
           p = ty_b_add_s(g, ty_b_square(g, x), 0.01);
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
        out(g, ty_arena_printf(ty_graph_arena(g), "unary %d", (int)unary[i]), ty_b_unary(g, unary[i], x));
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++)
        out(g, ty_arena_printf(ty_graph_arena(g), "positive %d", (int)positive[i]), ty_b_unary(g, positive[i], p));
    out(g, "pow", ty_b_binary(g, TY_OP_POW, p, y));
    out(g, "rem", ty_b_binary(g, TY_OP_REM, x, ty_b_add_s(g, p, 0.5)));
    out(g, "max", ty_b_max(g, x, y));
    out(g, "min", ty_b_min(g, x, y));
    out(g, "less", ty_b_lt(g, x, y));
    out(g, "where", ty_b_select(g, ty_b_le(g, x, y), ty_b_div(g, x, p), ty_b_sigmoid(g, y)));
    out(g, "integer", ty_b_cast(g, ty_b_mul_s(g, x, 1e10), TY_I32));
    out(g, "half", ty_b_mul_s(g, ty_b_cast(g, x, TY_F16), 3.0));
    out(g, "brain", ty_b_exp(g, ty_b_cast(g, x, TY_BF16)));
    out(g, "double", ty_b_exp(g, ty_b_cast(g, x, TY_F64)));
    return g;
}

/* 16-bit numbers: compared, ordered, widened; infinite and subnormal ones too. */
static ty_graph *make_narrow(uint64_t type)
{
    static const double scale[] = {1, 1e5, 1e-7};
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", 2, DIMS(13, 37));
    for (size_t i = 0; i < sizeof scale / sizeof *scale; i++) {
        ty_val h = ty_b_cast(g, ty_b_mul_s(g, x, scale[i]), (ty_dtype)type), back = ty_b_reverse(g, h, 2);
        ty_arena *a = ty_graph_arena(g);
        out(g, ty_arena_printf(a, "rounded %g", scale[i]), h);
        out(g, ty_arena_printf(a, "min %g", scale[i]), ty_b_min(g, h, back));
        out(g, ty_arena_printf(a, "eq %g", scale[i]), ty_b_eq(g, h, back));
        out(g, ty_arena_printf(a, "less %g", scale[i]), ty_b_lt(g, h, back));
        out(g, ty_arena_printf(a, "greatest %g", scale[i]), ty_b_reduce(g, h, TY_MAX, 2, false));
        out(g, ty_arena_printf(a, "wide %g", scale[i]), ty_b_cast(g, back, TY_F64));
    }
    return g;
}

static ty_graph *make_integers(uint64_t seed)
{
    (void)seed;
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", 2, DIMS(11, 7)), i = ty_b_cast(g, ty_b_mul_s(g, x, 40), TY_I64),
           j = ty_b_cast(g, ty_b_mul_s(g, x, 3), TY_I64);
    ty_val k = ty_b_iota(g, ty_type_make(TY_I64, 2, DIMS(11, 7)), 0);
    out(g, "div", ty_b_div(g, i, ty_b_add_s(g, j, 5)));
    out(g, "rem", ty_b_binary(g, TY_OP_REM, i, ty_b_add_s(g, j, 5)));
    out(g, "xor", ty_b_binary(g, TY_OP_XOR, i, k));
    out(g, "shl", ty_b_binary(g, TY_OP_SHL, i, k));
    out(g, "pow", ty_b_binary(g, TY_OP_POW, j, ty_b_full_like(g, j, 3)));
    out(g, "sum", ty_b_sum(g, i, 2, false));
    out(g, "max", ty_b_reduce(g, i, TY_MAX, 3, false));
    out(g, "mask", ty_b_unary(g, TY_OP_NOT, ty_b_lt(g, i, k)));
    ty_val seed_val = ty_b_scalar(g, TY_I64, 5), step = ty_b_scalar(g, TY_I64, 9);
    ty_val noisy = ty_b_rng(g, seed_val, step, 3, 2, DIMS(11, 7));
    out(g, "rng", ty_b_cast(g, ty_b_binary(g, TY_OP_SHR, noisy, ty_b_full_like(g, noisy, 8)), TY_I64));
    return g;
}

static ty_graph *make_movement(uint64_t seed)
{
    (void)seed;
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", 3, DIMS(6, 10, 14)), e = ty_b_exp(g, x);
    out(g, "transpose", ty_b_transpose(g, e, DIMS(2, 0, 1)));
    out(g, "reshape", ty_b_reshape(g, ty_b_transpose(g, e, DIMS(1, 0, 2)), 2, DIMS(20, 42)));
    out(g, "split", ty_b_reshape(g, e, 4, DIMS(3, 4, 5, 14)));
    out(g, "slice", ty_b_slice(g, e, DIMS(1, 2, 3), DIMS(6, 9, 14), DIMS(2, 3, 4)));
    out(g, "pad", ty_b_pad(g, e, DIMS(1, 0, 2), DIMS(0, 3, 1), -2.5));
    out(g, "padded sum", ty_b_sum(g, ty_b_pad(g, e, DIMS(0, 1, 1), DIMS(0, 1, 1), 0), 6, false));
    out(g, "reverse", ty_b_reverse(g, e, 5));
    ty_val parts[3] = {e, ty_b_neg(g, x), ty_b_slice_axis(g, e, 1, 2, 5)};
    out(g, "concat", ty_b_concat(g, parts, 3, 1));
    ty_val rows[3] = {e, x, e};
    out(g, "assembly", ty_b_concat(g, rows, 3, 0));
    static const int64_t index[] = {3, 0, 5, 5, 1};
    ty_val i = ty_b_const(g, ty_type_make(TY_I64, 1, DIMS(5)), index);
    out(g, "gather", ty_b_gather(g, e, i, 0));
    out(g, "gather inside", ty_b_gather(g, e, i, 1));
    ty_val picked = ty_b_argreduce(g, x, TY_MAX, 2, false);
    out(g, "take", ty_b_take(g, x, ty_b_unsqueeze(g, picked, 2), 2));
    return g;
}

/* Parts side by side along the last axis as the gradient of a split makes them: a sum of padded parts. */
static ty_val side_by_side(ty_graph *g, const ty_val *part, int n)
{
    int64_t width = 0, at = 0;
    ty_val sum = TY_NONE;
    int rank = ty_graph_type(g, part[0])->rank;
    for (int i = 0; i < n; i++)
        width += ty_graph_type(g, part[i])->dim[rank - 1];
    for (int i = 0; i < n; i++) {
        int64_t own = ty_graph_type(g, part[i])->dim[rank - 1], lo[2] = {0}, hi[2] = {0};
        lo[rank - 1] = at;
        hi[rank - 1] = width - at - own;
        ty_val padded = ty_b_pad(g, part[i], lo, hi, 0);
        sum = i ? ty_b_add(g, sum, padded) : padded;
        at += own;
    }
    return sum;
}

/* Loops are cut where a part ends, inside blocks of columns too. The last one has more parts than there are pieces. */
static ty_graph *make_pieces(uint64_t seed)
{
    (void)seed;
    ty_graph *g = ty_graph_new();
    ty_val a = input(g, "a", 2, DIMS(90, 40)), b = input(g, "b", 2, DIMS(90, 70)), c = input(g, "c", 2, DIMS(90, 33));
    ty_val parts[3] = {a, ty_b_neg(g, b), c}, many[10];
    ty_val whole = ty_b_add_s(g, ty_b_square(g, side_by_side(g, parts, 3)), 0.25);
    out(g, "whole", ty_b_exp(g, side_by_side(g, parts + 1, 2)));
    out(g, "columns", ty_b_sum(g, whole, 1, false));
    out(g, "row maxima", ty_b_reduce(g, whole, TY_MAX, 2, false));
    ty_val flat[3] = {ty_b_flatten(g, a), ty_b_flatten(g, b), ty_b_flatten(g, c)};
    out(g, "flat", ty_b_add_s(g, side_by_side(g, flat, 3), 3));
    for (int i = 0; i < 10; i++)
        many[i] = ty_b_mul_s(g, i & 1 ? a : c, i + 1);
    out(g, "many columns", ty_b_sum(g, ty_b_square(g, side_by_side(g, many, 10)), 1, false));
    return g;
}

/* Row chains, column sums and what reads them. */
static ty_graph *make_reductions(uint64_t seed)
{
    (void)seed;
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", 2, DIMS(70, 131)), y = input(g, "y", 4, DIMS(3, 5, 7, 9));
    out(g, "softmax", ty_b_softmax(g, x, 1, false));
    out(g, "log softmax", ty_b_softmax(g, x, 1, true));
    out(g, "softmax of columns", ty_b_softmax(g, x, 0, false));
    out(g, "norm", ty_b_norm(g, x, TY_NONE, TY_NONE, 1, 1e-5, false));
    out(g, "columns", ty_b_sum(g, ty_b_square(g, x), 1, false));
    out(g, "relu and columns", ty_b_mul(g, ty_b_relu(g, x), ty_b_mean(g, ty_b_relu(g, x), 1, true)));
    out(g, "largest of columns", ty_b_reduce(g, x, TY_MAX, 1, false));
    ty_val wide = ty_b_mul(g, ty_b_reshape(g, x, 2, DIMS(1, 9170)), ty_b_reshape(g, y, 2, DIMS(945, 1)));
    ty_val few = ty_b_slice_axis(g, wide, 0, 0, 11);
    out(g, "wide columns", ty_b_sum(g, few, 1, false)); /* more than one run */
    out(g, "largest of wide columns", ty_b_reduce(g, few, TY_MAX, 1, false));
    out(g, "least", ty_b_reduce(g, x, TY_MIN, 3, false));
    out(g, "product", ty_b_reduce(g, x, TY_PROD, 2, false));
    ty_type plane = ty_type_make(TY_I64, 2, DIMS(70, 131)); /* in the first rows one NaN each, on the diagonal */
    ty_val row = ty_b_iota(g, plane, 0), on = ty_b_eq(g, row, ty_b_iota(g, plane, 1));
    ty_val hit = ty_b_binary(g, TY_OP_AND, on, ty_b_lt(g, row, ty_b_full_like(g, row, 35)));
    ty_val holed = ty_b_select(g, hit, ty_b_full_like(g, x, NAN), x);
    out(g, "largest or NaN", ty_b_reduce(g, holed, TY_MAX, 2, false));
    out(g, "least or NaN", ty_b_reduce(g, holed, TY_MIN, 2, false));
    out(g, "largest of all or NaN", ty_b_reduce(g, holed, TY_MAX, 3, false));
    ty_val mean = ty_b_mean(g, y, 13, true), var = ty_b_mean(g, ty_b_square(g, ty_b_sub(g, y, mean)), 13, true);
    out(g, "channel norm", ty_b_mul(g, ty_b_sub(g, y, mean), ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, var, 1e-5))));
    out(g, "middle", ty_b_sum(g, y, 6, false));
    out(g, "all", ty_b_mean(g, y, 15, false));
    ty_val large = ty_b_broadcast(g, x, 3, DIMS(21, 70, 131)); /* cut in two steps: split.c */
    out(g, "all of a large one", ty_b_mean(g, ty_b_square(g, large), 7, false));
    out(g, "largest of a large one", ty_b_reduce(g, large, TY_MAX, 7, true));
    return g;
}

/* Every way of a product (compiler/target/cpu/onednn_dot.c): all transpositions, alone and in batches, odd and thin
 * sizes, and a long sum over a transposed side. */
static ty_graph *make_products(uint64_t seed)
{
    static const int64_t size[][4] = {
        {1, 33, 17, 5}, {1, 1, 70, 3}, {1, 64, 1, 129}, {1, 70, 31, 1600}, {3, 20, 9, 31}};
    const int64_t *s = size[seed];
    ty_graph *g = ty_graph_new();
    ty_val a[2] = {input(g, "a", 3, DIMS(s[0], s[1], s[3])), input(g, "a'", 3, DIMS(s[0], s[3], s[1]))};
    ty_val b[2] = {input(g, "b", 3, DIMS(s[0], s[3], s[2])), input(g, "b'", 3, DIMS(s[0], s[2], s[3]))};
    static const char *const names[] = {"NN", "TN", "NT", "TT"}, *const added[] = {"NN+", "TN+", "NT+", "TT+"};
    ty_val c = input(g, "c", 3, DIMS(s[0], s[1], s[2])), sum = ty_b_mul_s(g, c, 0.5);
    for (int i = 0; i < 4; i++) {
        out(g, names[i], ty_b_dot(g, a[i & 1], b[i >> 1], i & 1, i >> 1));
        out(g, added[i], ty_b_dot_add(g, a[i & 1], b[i >> 1], c, i & 1, i >> 1)); /* c stays as it is */
        sum = ty_b_dot_add(g, a[i & 1], b[i >> 1], sum, i & 1, i >> 1);           /* in its place */
    }
    out(g, "all four", sum);
    return g;
}

/* A loss and its gradient through products, a norm, and a softmax. */
static ty_graph *make_gradient(uint64_t seed)
{
    (void)seed;
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", 2, DIMS(24, 20)), w = input(g, "w", 2, DIMS(33, 20)), b = input(g, "b", 1, DIMS(33));
    ty_val h = ty_b_add(g, ty_b_dot(g, x, w, false, true), b);
    ty_val y = ty_b_softmax(g, ty_b_norm(g, ty_b_unary(g, TY_OP_TANH, h), TY_NONE, TY_NONE, 1, 1e-5, false), 1, true);
    ty_val loss = ty_b_neg(g, ty_b_mean(g, ty_b_slice_axis(g, y, 1, 3, 4), 3, false));
    ty_val wrt[3] = {x, w, b}, grad[3];
    ty_error err = {0};
    assert_int_equal(ty_pass_autodiff(g, loss, wrt, 3, grad, &err), 0);
    out(g, "loss", loss);
    out(g, "dx", grad[0]);
    out(g, "dw", grad[1]);
    out(g, "db", grad[2]);
    return g;
}

/* Parameters in one flat state with momentum beside it; the gradient is assembled in place. */
static ty_graph *make_update(uint64_t seed)
{
    (void)seed;
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", 2, DIMS(8, 16));
    ty_state flat = {.name = "param", .type = ty_type_make(TY_F32, 1, DIMS(1600)), .role = TY_STATE_PARAM};
    int param = ty_graph_add_state(g, &flat);
    flat.name = "momentum";
    int momentum = ty_graph_add_state(g, &flat);
    ty_state counter = {.name = "step", .type = ty_type_scalar(TY_I64), .role = TY_STATE_COUNTER};
    int step = ty_graph_add_state(g, &counter);
    ty_val p = ty_b_state(g, param), m = ty_b_state(g, momentum), k = ty_b_add_s(g, ty_b_state(g, step), 1);
    ty_val w = ty_b_reshape(g, ty_b_slice(g, p, DIMS(0), DIMS(512), NULL), 2, DIMS(16, 32));
    ty_val v = ty_b_reshape(g, ty_b_slice(g, p, DIMS(512), DIMS(1600), NULL), 2, DIMS(32, 34));
    ty_val h = ty_b_unary(g, TY_OP_TANH, ty_b_add_s(g, ty_b_dot(g, x, w, false, false), 0.3));
    ty_val loss = ty_b_mean(g, ty_b_square(g, ty_b_add_s(g, ty_b_dot(g, h, v, false, false), -1)), 3, false);
    ty_val wrt[2] = {w, v}, grad[2];
    ty_error err = {0};
    assert_int_equal(ty_pass_autodiff(g, loss, wrt, 2, grad, &err), 0);
    ty_val parts[2] = {ty_b_flatten(g, grad[0]), ty_b_flatten(g, grad[1])}, flat_grad = ty_b_concat(g, parts, 2, 0);
    ty_val next = ty_b_add(g, ty_b_mul_s(g, m, 0.9), flat_grad);
    ty_val rate = ty_b_div(g, ty_b_scalar(g, TY_F32, 0.5), ty_b_cast(g, k, TY_F32));
    ty_graph_add_assign(g, momentum, next, TY_TAPE_LAST);
    ty_graph_add_assign(g, param, ty_b_sub(g, p, ty_b_mul(g, next, rate)), TY_TAPE_LAST);
    ty_graph_add_assign(g, step, k, TY_TAPE_LAST);
    ty_graph_add_output(g, "loss", loss, TY_TAPE_LAST);
    ty_graph_add_output(g, "norm", ty_b_unary(g, TY_OP_SQRT, ty_b_sum(g, ty_b_square(g, flat_grad), 1, false)),
                        TY_TAPE_LAST);
    return g;
}

/* ---- random graphs ---- */

typedef struct wild {
    ty_graph *g;
    uint64_t seed, draws;
    ty_val pool[64];
    int n;
} wild;

static int64_t wild_draw(wild *w, int64_t n)
{
    return (int64_t)ty_rng_below(w->seed, 1, 0, w->draws++, (uint64_t)n);
}

static ty_val wild_pick(wild *w)
{
    return w->pool[w->n - 1 - wild_draw(w, w->n < 8 ? w->n : 8)];
}

static uint32_t wild_axes(wild *w, ty_val v)
{
    uint32_t all = ty_b_all_axes(w->g, v);
    uint32_t axes = (uint32_t)wild_draw(w, (int64_t)all + 1);
    return axes ? axes : all;
}

static ty_val wild_unary(wild *w, ty_val x)
{
    static const ty_op ops[] = {TY_OP_TANH, TY_OP_SIN, TY_OP_ERF, TY_OP_NEG, TY_OP_ABS, TY_OP_COS};
    return wild_draw(w, 4) == 0 ? ty_b_relu(w->g, x) : ty_b_unary(w->g, ops[wild_draw(w, 6)], x);
}

/* With itself reduced, or with another value of the same shape. */
static ty_val wild_binary(wild *w, ty_val x)
{
    ty_graph *g = w->g;
    ty_val y = ty_b_unary(g, TY_OP_TANH, ty_b_mean(g, x, wild_axes(w, x), true));
    for (int i = 0; i < w->n; i++)
        if (w->pool[i] != x && ty_type_same_shape(ty_graph_type(g, w->pool[i]), ty_graph_type(g, x)) && wild_draw(w, 2))
            y = w->pool[i];
    switch (wild_draw(w, 4)) {
    case 0:
        return ty_b_add(g, x, y);
    case 1:
        return ty_b_sub(g, x, y);
    case 2:
        return ty_b_unary(g, TY_OP_TANH, ty_b_mul(g, x, y));
    default:
        return ty_b_max(g, x, y);
    }
}

static ty_val wild_move(wild *w, ty_val x)
{
    ty_graph *g = w->g;
    int rank = ty_b_rank(g, x);
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0}, perm[TY_MAX_RANK], elems = ty_type_elems(ty_graph_type(g, x));
    for (int i = 0; i < rank; i++)
        perm[i] = (i + 1) % rank;
    int axis = (int)wild_draw(w, rank);
    switch (wild_draw(w, 6)) {
    case 0:
        return ty_b_transpose(g, x, perm);
    case 1:
        return elems % 6 == 0 ? ty_b_reshape(g, x, 2, DIMS(6, elems / 6)) : ty_b_reshape(g, x, 1, &elems);
    case 2:
        lo[axis] = 1, hi[axis] = 2;
        return ty_b_pad(g, x, lo, hi, 0.5);
    case 3:
        return ty_b_dim(g, x, axis) > 2 ? ty_b_slice_axis(g, x, axis, 1, ty_b_dim(g, x, axis)) : x;
    case 4:
        return ty_b_reverse(g, x, wild_axes(w, x));
    default:
        return ty_b_concat(g, (ty_val[]){x, ty_b_unary(g, TY_OP_SIN, x)}, 2, axis);
    }
}

static ty_val wild_reduce(wild *w, ty_val x)
{
    static const ty_combine how[] = {TY_MAX, TY_MIN};
    ty_graph *g = w->g;
    bool keep = ty_b_rank(g, x) < 3;
    if (wild_draw(w, 2))
        return ty_b_mean(g, x, wild_axes(w, x), keep);
    return ty_b_reduce(g, x, how[wild_draw(w, 2)], wild_axes(w, x), keep);
}

static ty_val wild_composite(wild *w, ty_val x)
{
    ty_graph *g = w->g;
    int last = ty_b_rank(g, x) - 1;
    if (wild_draw(w, 2))
        return ty_b_softmax(g, x, (int)wild_draw(w, last + 1), false);
    return ty_b_norm(g, x, TY_NONE, TY_NONE, 1, 0.1, false);
}

static ty_val wild_dot(wild *w, ty_val x)
{
    ty_graph *g = w->g;
    int64_t elems = ty_type_elems(ty_graph_type(g, x)), columns = ty_b_dim(g, x, ty_b_rank(g, x) - 1);
    ty_val flat = ty_b_reshape(g, x, 2, DIMS(elems / columns, columns));
    ty_val gram = ty_b_dot(g, flat, flat, wild_draw(w, 2), false);
    if (gram == TY_NONE) { /* only one of the two shapes fits */
        ty_graph_clear_error(g);
        gram = ty_b_dot(g, flat, flat, true, false);
    }
    return ty_b_unary(g, TY_OP_TANH, ty_b_mul_s(g, gram, 1.0 / (double)elems));
}

static ty_graph *make_wild(uint64_t seed)
{
    wild w = {.g = ty_graph_new(), .seed = seed};
    w.pool[w.n++] = input(w.g, "x", 3, DIMS(4, 6, 9));
    w.pool[w.n++] = input(w.g, "y", 2, DIMS(12, 10));
    while (w.n < 40) {
        ty_val x = wild_pick(&w), v;
        if (ty_b_rank(w.g, x) == 0 || ty_type_elems(ty_graph_type(w.g, x)) > 20000)
            x = w.pool[wild_draw(&w, 2)];
        switch (wild_draw(&w, 9)) {
        case 0:
        case 1:
            v = wild_unary(&w, x);
            break;
        case 2:
        case 3:
            v = wild_binary(&w, x);
            break;
        case 4:
        case 5:
            v = wild_move(&w, x);
            break;
        case 6:
            v = wild_reduce(&w, x);
            break;
        case 7:
            v = wild_composite(&w, x);
            break;
        default:
            v = wild_dot(&w, x);
            break;
        }
        assert_false(ty_graph_failed(w.g, NULL));
        w.pool[w.n++] = v;
        if (w.n % 5 == 0)
            out(w.g, ty_arena_printf(ty_graph_arena(w.g), "v%d", w.n), v);
    }
    return w.g;
}

/* Written into zeros that have no memory: by the native call, by the reference, and while the zeros are asked for too.
 */
static ty_graph *make_scatter_into_zeros(uint64_t seed)
{
    (void)seed;
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", 2, DIMS(50, 40)), zeros = ty_b_full(g, TY_F32, 2, DIMS(30, 40), 0);
    ty_val all = ty_b_iota(g, ty_type_make(TY_I64, 1, DIMS(50)), 0);
    ty_val index = ty_b_binary(g, TY_OP_REM, ty_b_mul_s(g, all, 7), ty_b_scalar(g, TY_I64, 30));
    out(g, "native", ty_b_scatter(g, zeros, index, x, 0, TY_SUM));
    out(g, "reference", ty_b_scatter(g, ty_b_cast(g, zeros, TY_BF16), index, ty_b_cast(g, x, TY_BF16), 0, TY_MAX));
    out(g, "zeros", zeros);
    return g;
}

/* Numbers of rows that die where floats of as many bytes are born: one memory is not two types in a kernel. */
static ty_graph *make_types_apart(uint64_t seed)
{
    (void)seed;
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", 1, DIMS(64)), zeros = ty_b_full(g, TY_F32, 1, DIMS(4), 0);
    ty_val number = ty_b_mul_s(g, ty_b_iota(g, ty_type_make(TY_I32, 1, DIMS(64)), 0), 3);
    ty_val index = ty_b_binary(g, TY_OP_REM, number, ty_b_scalar(g, TY_I32, 4));
    out(g, "found", ty_b_gather(g, ty_b_scatter(g, zeros, index, x, 0, TY_SUM), index, 0));
    return g;
}

/* ---- tests ---- */

static void test_narrow(void **state)
{
    (void)state;
    judge(make_narrow, TY_F16, TY_RUN_EVAL, 1, 4e-6);
    judge(make_narrow, TY_BF16, TY_RUN_EVAL, 1, 4e-6);
}

static void test_elementwise(void **state)
{
    (void)state;
    judge(make_elementwise, 0, TY_RUN_EVAL, 1, 4e-6);
}
static void test_integers(void **state)
{
    (void)state;
    judge(make_integers, 0, TY_RUN_EVAL, 1, 0);
}
static void test_movement(void **state)
{
    (void)state;
    judge(make_movement, 0, TY_RUN_EVAL, 1, 2e-6);
}
static void test_pieces(void **state)
{
    (void)state;
    judge(make_pieces, 0, TY_RUN_EVAL, 1, 4e-6);
}
static void test_reductions(void **state)
{
    (void)state;
    judge(make_reductions, 0, TY_RUN_EVAL, 1, 1e-5);
}
static void test_products(void **state)
{
    (void)state;
    for (uint64_t size = 0; size < 5; size++)
        judge(make_products, size, TY_RUN_EVAL, 2, size == 3 ? 1e-4 : 1e-5); /* sums of 1600 numbers */
}

static void test_gradient(void **state)
{
    (void)state;
    judge(make_gradient, 0, TY_RUN_EVAL, 1, 1e-5);
}
static void test_update(void **state)
{
    (void)state;
    judge(make_update, 0, TY_RUN_LAST, 5, 1e-5);
}

static void test_scatter_into_zeros(void **state)
{
    (void)state;
    judge(make_scatter_into_zeros, 0, TY_RUN_EVAL, 2, 1e-6);
}

static void test_types_apart(void **state)
{
    (void)state;
    judge(make_types_apart, 0, TY_RUN_EVAL, 1, 1e-6);
}

static void test_random_graphs(void **state)
{
    (void)state;
    const char *n = getenv("TY_RANDOM_GRAPHS"), *first = getenv("TY_RANDOM_FIRST");
    uint64_t from = first ? strtoull(first, NULL, 10) : 1, count = n ? strtoull(n, NULL, 10) : 12;
    for (uint64_t seed = from; seed < from + count; seed++) {
        print_message("seed %llu\n", (unsigned long long)seed);
        judge(make_wild, seed, TY_RUN_EVAL, 1, 3e-5);
    }
}

/* The same program twice, and with one thread or two where no library product is in it, gives the same bits. */
static void test_bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    ty_program *p[2] = {compile(make_reductions(0), TY_TAPE_EVAL, TY_BACKEND_CPU, 1),
                        compile(make_reductions(0), TY_TAPE_EVAL, TY_BACKEND_CPU, 2)};
    float *x = noise(70 * 131, 1, 1), *y = noise(3 * 5 * 7 * 9, 2, 1);
    const void *inputs[] = {x, y};
    ty_error err = {0};
    for (int i = 0; i < 2; i++)
        assert_int_equal(ty_program_run(p[i], TY_RUN_EVAL, inputs, &err), 0);
    for (int i = 0; i < ty_program_n_outputs(p[0], TY_RUN_EVAL); i++) {
        const char *name = ty_program_output_name(p[0], TY_RUN_EVAL, i);
        const ty_tensor *a = ty_program_output(p[0], TY_RUN_EVAL, name),
                        *b = ty_program_output(p[1], TY_RUN_EVAL, name);
        assert_memory_equal(a->data, b->data, ty_type_bytes(&a->type));
    }
    free(x);
    free(y);
    ty_program_free(p[0]);
    ty_program_free(p[1]);
}

/* Each call says what memory it moves, and is timed. */
static void test_calls(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", 2, DIMS(1000, 70)), b = input(g, "b", 1, DIMS(70));
    out(g, "rows", ty_b_reduce(g, ty_b_add(g, x, b), TY_SUM, 2, false));
    ty_program *p = compile(g, TY_TAPE_EVAL, TY_BACKEND_CPU, 2);
    float *inputs[] = {noise(70000, 1, 1), noise(70, 2, 1)};
    ty_error err = {0};
    ty_call_info info;
    int64_t ns[1] = {-1};
    assert_int_equal(ty_program_n_calls(p, TY_RUN_EVAL), 1);
    assert_int_equal(ty_program_n_calls(p, TY_RUN_LAST), 0);
    ty_program_call(p, TY_RUN_EVAL, 0, &info);
    assert_int_equal(info.kind, TY_CALL_KERNEL);
    assert_string_equal(info.how, "rows");
    assert_int_equal(info.read_bytes, 4 * (70000 + 70));
    assert_int_equal(info.written_bytes, 4 * 1000);
    assert_int_equal(ty_program_run_timed(p, TY_RUN_EVAL, (const void *const *)(const void *)inputs, ns, &err), 0);
    assert_in_range(ns[0], 1, 1000000000);
    free(inputs[0]);
    free(inputs[1]);
    ty_program_free(p);
}

static void test_compiler_is_missing(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.threads = 1, .cc = "/nonexistent/cc"};
    assert_int_equal(ty_program_of_graph(make_reductions(0), TY_TAPE_EVAL, &opt, &p, &err), -1);
    assert_int_equal(err.code, TY_E_COMPILER);
    assert_non_null(strstr(err.message, "/nonexistent/cc"));
}

/* Who reads an output after the run would find what the run has put in its place. */
static void test_output_of_written_state_is_refused(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.threads = 1};
    ty_graph *g = ty_graph_new();
    ty_val w = ty_b_state(g, ty_graph_add_counter(g, "w", ty_type_scalar(TY_F64), NULL));
    ty_graph_add_assign(g, 0, ty_b_add_s(g, w, 1), TY_TAPE_LAST);
    ty_graph_add_output(g, "old", ty_b_reshape(g, w, 1, (int64_t[]){1}), TY_TAPE_LAST);
    assert_int_equal(ty_program_of_graph(g, TY_TAPE_LAST, &opt, &p, &err), -1);
    assert_int_equal(err.code, TY_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "output \"old\" is the old value of state \"w\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_output_of_written_state_is_refused),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_movement),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_update),
        cmocka_unit_test(test_scatter_into_zeros),
        cmocka_unit_test(test_types_apart),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_bits_do_not_depend_on_threads),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_compiler_is_missing),
    };
    return cmocka_run_group_tests_name("compiled", tests, NULL, NULL);
}
