/* Elementwise ops and leaves: values at ordinary and at awkward points, and gradients by central differences. */
#include "tests/unit/evaluate.h"
#include "tests/unit/gradients.h"

#include "base/rng.h"
#include "compiler/ops/ref.h"

#include <math.h>

/* ---- floats ---- */

static void test_unary_values(void **state)
{
    (void)state;
    static const struct {
        ty_op op;
        double x, y;
    } cases[] = {
        {TY_OP_NEG, 2, -2},
        {TY_OP_ABS, -2.5, 2.5},
        {TY_OP_FLOOR, -1.5, -2},
        {TY_OP_RINT, 0.5, 0},
        {TY_OP_RINT, 1.5, 2},
        {TY_OP_RINT, -2.5, -2},
        {TY_OP_SQRT, 9, 3},
        {TY_OP_SQRT, -1, NAN},
        {TY_OP_RSQRT, 4, 0.5},
        {TY_OP_RSQRT, 0, INFINITY},
        {TY_OP_EXP, 0, 1},
        {TY_OP_EXP, 1000, INFINITY},
        {TY_OP_EXPM1, 1e-20, 1e-20},
        {TY_OP_LOG, 1, 0},
        {TY_OP_LOG, 0, -INFINITY},
        {TY_OP_LOG1P, 1e-20, 1e-20},
        {TY_OP_SIN, 0, 0},
        {TY_OP_COS, 0, 1},
        {TY_OP_TANH, 100, 1},
        {TY_OP_ERF, -10, -1},
        {TY_OP_ATAN, INFINITY, 1.5707963267948966},
        {TY_OP_TANH, NAN, NAN},
        {TY_OP_ABS, -INFINITY, INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_graph *g = ty_graph_new();
        ty_val x = new_input(g, TY_F64, SHAPE(1));
        const void *in[] = {&cases[i].x};
        expect_floats(g, ty_b_unary(g, cases[i].op, x), in, 1, &cases[i].y);
        ty_graph_free(g);
    }
}

static void test_binary_values(void **state)
{
    (void)state;
    static const struct {
        ty_op op;
        double a, b, y;
    } cases[] = {
        {TY_OP_ADD, 1, 2, 3},        {TY_OP_SUB, 1, 2, -1},     {TY_OP_MUL, 3, -2, -6},   {TY_OP_DIV, 1, 4, 0.25},
        {TY_OP_DIV, 1, 0, INFINITY}, {TY_OP_REM, 7, 3, 1},      {TY_OP_REM, -7, 3, -1},   {TY_OP_REM, 7, -3, 1},
        {TY_OP_POW, 2, 10, 1024},    {TY_OP_POW, -8, 2.5, NAN}, {TY_OP_MAX, 1, 2, 2},     {TY_OP_MAX, NAN, 2, NAN},
        {TY_OP_MAX, 1, NAN, NAN},    {TY_OP_MIN, 1, 2, 1},      {TY_OP_MIN, NAN, 2, NAN}, {TY_OP_MIN, 1, NAN, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_graph *g = ty_graph_new();
        ty_val a = new_input(g, TY_F64, SHAPE(1)), b = new_input(g, TY_F64, SHAPE(1));
        const void *in[] = {&cases[i].a, &cases[i].b};
        expect_floats(g, ty_b_binary(g, cases[i].op, a, b), in, 1, &cases[i].y);
        ty_graph_free(g);
    }
}

static void test_comparisons(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val a = new_input(g, TY_F64, SHAPE(4)), b = new_input(g, TY_F64, SHAPE(4));
    const void *in[] = {(double[]){1, 2, 3, NAN}, (double[]){2, 2, 2, NAN}};
    expect_ints(g, ty_b_eq(g, a, b), in, 4, (int64_t[]){0, 1, 0, 0});
    expect_ints(g, ty_b_lt(g, a, b), in, 4, (int64_t[]){1, 0, 0, 0});
    expect_ints(g, ty_b_le(g, a, b), in, 4, (int64_t[]){1, 1, 0, 0});
    expect_ints(g, ty_b_ne(g, a, b), in, 4, (int64_t[]){1, 0, 1, 1});
    expect_floats(g, ty_b_select(g, ty_b_lt(g, a, b), a, b), in, 4, (double[]){1, 2, 2, NAN});
    ty_graph_free(g);
    g = ty_graph_new();
    a = new_input(g, TY_U64, SHAPE(2)), b = new_input(g, TY_U64, SHAPE(2));
    const void *big[] = {(uint64_t[]){UINT64_MAX, 1}, (uint64_t[]){1, UINT64_MAX}};
    expect_ints(g, ty_b_lt(g, a, b), big, 2, (int64_t[]){0, 1});
    expect_ints(g, ty_b_max(g, a, b), big, 2, (int64_t[]){-1, -1}); /* by bit pattern */
    ty_graph_free(g);
}

/* ---- integers ---- */

typedef struct int_case {
    ty_dtype dtype;
    ty_op op;
    int64_t a, b, y;
} int_case;

static const int_case int_cases[] = {
    {TY_I8, TY_OP_ADD, 127, 1, -128},
    {TY_U8, TY_OP_SUB, 0, 1, 255},
    {TY_I32, TY_OP_MUL, 1 << 20, 1 << 20, 0},
    {TY_I64, TY_OP_MUL, INT64_MAX, 2, -2},
    {TY_I32, TY_OP_DIV, -7, 2, -3},
    {TY_I32, TY_OP_DIV, INT32_MIN, -1, INT32_MIN},
    {TY_I64, TY_OP_DIV, INT64_MIN, -1, INT64_MIN},
    {TY_U64, TY_OP_DIV, -1, 2, INT64_MAX},
    {TY_I32, TY_OP_REM, -7, 2, -1},
    {TY_I64, TY_OP_REM, INT64_MIN, -1, 0},
    {TY_U64, TY_OP_REM, -1, 10, 5},
    {TY_I64, TY_OP_POW, 3, 5, 243},
    {TY_I64, TY_OP_POW, -2, 3, -8},
    {TY_I64, TY_OP_POW, 2, -1, 0},
    {TY_I64, TY_OP_POW, -1, -3, -1},
    {TY_I64, TY_OP_POW, 0, 0, 1},
    {TY_U8, TY_OP_POW, 2, 8, 0},
    {TY_I64, TY_OP_AND, 12, 10, 8},
    {TY_I64, TY_OP_OR, 12, 10, 14},
    {TY_I64, TY_OP_XOR, 12, 10, 6},
    {TY_BOOL, TY_OP_XOR, 1, 1, 0},
    {TY_I32, TY_OP_SHL, 1, 31, INT32_MIN},
    {TY_I32, TY_OP_SHL, 1, 32, 0},
    {TY_I32, TY_OP_SHR, -8, 1, -4},
    {TY_I32, TY_OP_SHR, -8, 40, -1},
    {TY_U32, TY_OP_SHR, 0x80000000, 31, 1},
    {TY_U64, TY_OP_SHR, -1, 63, 1},
    {TY_I16, TY_OP_MIN, -5, 3, -5},
    {TY_U8, TY_OP_NOT, 1, 0, 254},
    {TY_BOOL, TY_OP_NOT, 1, 0, 0},
    {TY_I8, TY_OP_NEG, -128, 0, -128},
    {TY_I8, TY_OP_ABS, -5, 0, 5},
};

static void test_integer_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof int_cases / sizeof int_cases[0]; i++) {
        const int_case *c = &int_cases[i];
        ty_graph *g = ty_graph_new();
        ty_val x[2] = {new_input(g, c->dtype, SHAPE(1)), new_input(g, c->dtype, SHAPE(1))};
        const void *in[] = {&c->a, &c->b}; /* little-endian: the low bytes are the narrow number */
        ty_val y = ty_graph_emit(g, c->op, NULL, x, ty_op_row_of(c->op)->min_in);
        const int64_t *found = evaluate(g, y, in, false);
        if (*found != c->y)
            fail_msg("%s of %s (%lld, %lld): expected %lld, found %lld", ty_op_row_of(c->op)->text,
                     ty_dtype_text(c->dtype), (long long)c->a, (long long)c->b, (long long)c->y, (long long)*found);
        ty_graph_free(g);
    }
}

static void test_wrong_dtypes_are_refused(void **state)
{
    (void)state;
    static const struct {
        ty_op op;
        ty_dtype dtype;
    } cases[] = {{TY_OP_NEG, TY_U8},  {TY_OP_NEG, TY_BOOL}, {TY_OP_EXP, TY_I32}, {TY_OP_FLOOR, TY_BOOL},
                 {TY_OP_NOT, TY_F32}, {TY_OP_ADD, TY_BOOL}, {TY_OP_AND, TY_F64}, {TY_OP_SHL, TY_F32}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_graph *g = ty_graph_new();
        ty_val x = new_input(g, cases[i].dtype, SHAPE(2));
        ty_graph_emit(g, cases[i].op, NULL, (ty_val[]){x, x}, ty_op_row_of(cases[i].op)->min_in);
        ty_error err = {0};
        if (!ty_graph_failed(g, &err))
            fail_msg("%s of %s was accepted", ty_op_row_of(cases[i].op)->text, ty_dtype_text(cases[i].dtype));
        assert_int_equal(err.code, TY_E_SHAPE);
        ty_graph_free(g);
    }
}

/* ---- casts ---- */

static void test_casts_from_floats(void **state)
{
    (void)state;
    static const struct {
        double x;
        ty_dtype to;
        int64_t y;
    } cases[] = {
        {2.9, TY_I32, 2},          {-2.9, TY_I32, -2},         {300, TY_U8, 255},         {-5, TY_U8, 0},
        {1e30, TY_I64, INT64_MAX}, {-1e30, TY_I64, INT64_MIN}, {1e30, TY_U64, -1},        {0x1p63, TY_U64, INT64_MIN},
        {NAN, TY_I32, 0},          {NAN, TY_BOOL, 1},          {0.3, TY_BOOL, 1},         {-0.0, TY_BOOL, 0},
        {-200, TY_I8, -128},       {127.9, TY_I8, 127},        {INFINITY, TY_I16, 32767}, {-INFINITY, TY_U32, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_graph *g = ty_graph_new();
        ty_val x = new_input(g, TY_F64, SHAPE(1));
        const void *in[] = {&cases[i].x};
        expect_ints(g, ty_b_cast(g, x, cases[i].to), in, 1, &cases[i].y);
        ty_graph_free(g);
    }
}

static void test_casts_to_floats_round_once(void **state)
{
    (void)state;
    static const struct {
        int64_t x;
        ty_dtype from, to;
        double y;
    } cases[] = {{(INT64_C(1) << 54) + (INT64_C(1) << 30) + 1, TY_I64, TY_F32, 0x1p54 + 0x1p31},
                 {-1, TY_U64, TY_F64, 0x1p64},
                 {70000, TY_I32, TY_F16, INFINITY},
                 {257, TY_I32, TY_BF16, 256},
                 {-3, TY_I8, TY_F32, -3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_graph *g = ty_graph_new();
        ty_val x = new_input(g, cases[i].from, SHAPE(1));
        const void *in[] = {&cases[i].x};
        expect_floats(g, ty_b_cast(g, x, cases[i].to), in, 1, &cases[i].y);
        ty_graph_free(g);
    }
    /* Just above the middle of two bfloat16: by way of f32 it would look like the middle and go to the even one. */
    assert_true(ty_ref_round_one(TY_BF16, 1 + 0x1p-8 + 0x1p-40) == 1 + 0x1p-7);
    assert_true(ty_ref_round_one(TY_BF16, -1 - 0x1p-8 - 0x1p-40) == -1 - 0x1p-7);
    assert_true(ty_ref_round_one(TY_BF16, 1 + 0x1p-8) == 1);
    assert_true(ty_ref_round_one(TY_F16, 1 + 0x1p-11 + 0x1p-40) == 1 + 0x1p-10);
}

static void test_integer_casts_wrap_and_bits_stay(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_I32, SHAPE(2)), f = new_input(g, TY_F32, SHAPE(1));
    const void *in[] = {(int32_t[]){300, -1}, (float[]){-2}};
    expect_ints(g, ty_b_cast(g, x, TY_U8), in, 2, (int64_t[]){44, 255});
    expect_ints(g, ty_b_cast(g, x, TY_U64), in, 2, (int64_t[]){300, -1});
    expect_ints(g, ty_b_cast(g, x, TY_BOOL), in, 2, (int64_t[]){1, 1});
    ty_attr u32 = {.type = ty_type_scalar(TY_U32)};
    expect_ints(g, ty_graph_emit(g, TY_OP_BITCAST, &u32, &f, 1), in, 1, (int64_t[]){0xc0000000});
    ty_attr f64 = {.type = ty_type_scalar(TY_F64)};
    assert_int_equal(ty_graph_emit(g, TY_OP_BITCAST, &f64, &f, 1), TY_NONE);
    ty_graph_free(g);
}

/* ---- leaves ---- */

static void test_iota_and_rng(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    expect_ints(g, ty_b_iota(g, ty_type_make(TY_I32, SHAPE(2, 3)), 1), NULL, 6, (int64_t[]){0, 1, 2, 0, 1, 2});
    expect_floats(g, ty_b_iota(g, ty_type_make(TY_F32, SHAPE(2, 2)), 0), NULL, 4, (double[]){0, 0, 1, 1});
    expect_ints(g, ty_b_iota(g, ty_type_scalar(TY_I64), 0), NULL, 1, (int64_t[]){0});
    ty_val seed = new_input(g, TY_I64, 0, NULL), step = new_input(g, TY_I64, 0, NULL);
    const void *in[] = {(int64_t[]){-5}, (int64_t[]){9}};
    int64_t words[6];
    for (int i = 0; i < 6; i++)
        words[i] = ty_rng_u32((uint64_t)-5, 3, 9, (uint64_t)i);
    expect_ints(g, ty_b_rng(g, seed, step, 3, SHAPE(2, 3)), in, 6, words);
    ty_b_rng(g, seed, step, -1, SHAPE(2));
    assert_true(ty_graph_failed(g, NULL));
    ty_graph_clear_error(g);
    ty_b_iota(g, ty_type_make(TY_I32, SHAPE(2, 3)), 2);
    assert_true(ty_graph_failed(g, NULL));
    ty_graph_free(g);
}

/* ---- gradients ---- */

static ty_val build_unary(ty_graph *g, const ty_val *x, const void *op)
{
    return ty_b_unary(g, *(const ty_op *)op, x[0]);
}

static ty_val build_binary(ty_graph *g, const ty_val *x, const void *op)
{
    return ty_b_binary(g, *(const ty_op *)op, x[0], x[1]);
}

static void test_unary_gradients(void **state)
{
    (void)state;
    static const struct {
        ty_op op;
        double lo, hi, gap;
    } cases[] = {
        {TY_OP_NEG, -1, 1, 0},   {TY_OP_ABS, -1, 1, 0.1},   {TY_OP_FLOOR, 0.2, 0.8, 0}, {TY_OP_RINT, -0.4, 0.4, 0},
        {TY_OP_SQRT, 0.5, 3, 0}, {TY_OP_RSQRT, 0.5, 3, 0},  {TY_OP_EXP, -2, 2, 0},      {TY_OP_EXPM1, -2, 2, 0},
        {TY_OP_LOG, 0.5, 3, 0},  {TY_OP_LOG1P, -0.5, 3, 0}, {TY_OP_SIN, -3, 3, 0},      {TY_OP_COS, -3, 3, 0},
        {TY_OP_TANH, -2, 2, 0},  {TY_OP_ERF, -2, 2, 0},     {TY_OP_ATAN, -3, 3, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gradcheck_case c = {.name = ty_op_row_of(cases[i].op)->text,
                            .build = build_unary,
                            .ctx = &cases[i].op,
                            .n_in = 1,
                            .in = {GRAD_IN(3, 4)},
                            .lo = cases[i].lo,
                            .hi = cases[i].hi,
                            .gap = cases[i].gap};
        gradcheck(&c);
        c.in[0] = (gradcheck_input)GRAD_SCALAR;
        gradcheck(&c);
        c.in[0] = (gradcheck_input)GRAD_IN(2, 1, 3, 2);
        gradcheck(&c);
    }
}

static void test_binary_gradients(void **state)
{
    (void)state;
    static const struct {
        ty_op op;
        double lo, hi, gap;
    } cases[] = {
        {TY_OP_ADD, -1, 1, 0},   {TY_OP_SUB, -1, 1, 0},  {TY_OP_MUL, -1, 1, 0},   {TY_OP_DIV, 0.5, 2, 0},
        {TY_OP_REM, 1, 8, 0.13}, {TY_OP_POW, 0.5, 2, 0}, {TY_OP_MAX, -1, 1, 0.1}, {TY_OP_MIN, -1, 1, 0.1},
    };
    static const gradcheck_input shapes[][2] = {
        {GRAD_IN(3, 4), GRAD_IN(3, 4)}, {GRAD_IN(3, 1), GRAD_IN(4)}, {GRAD_SCALAR, GRAD_IN(2, 3)}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t k = 0; k < 3; k++) {
            gradcheck_case c = {.name = ty_op_row_of(cases[i].op)->text,
                                .build = build_binary,
                                .ctx = &cases[i].op,
                                .n_in = 2,
                                .lo = cases[i].lo,
                                .hi = cases[i].hi,
                                .gap = cases[i].gap};
            c.in[0] = shapes[k][0];
            c.in[1] = shapes[k][1];
            gradcheck(&c);
        }
}

static ty_val build_same_twice(ty_graph *g, const ty_val *x, const void *op)
{
    return ty_b_binary(g, *(const ty_op *)op, x[0], x[0]);
}

static ty_val build_pow_number(ty_graph *g, const ty_val *x, const void *exponent)
{
    return ty_b_binary(g, TY_OP_POW, x[0], ty_b_scalar(g, TY_F64, *(const double *)exponent));
}

static ty_val build_number_pow(ty_graph *g, const ty_val *x, const void *base)
{
    return ty_b_binary(g, TY_OP_POW, ty_b_scalar(g, TY_F64, *(const double *)base), x[0]);
}

static void test_powers_and_repeated_operands(void **state)
{
    (void)state;
    static const double exponents[] = {0, 1, 2, 3, 0.5, -1, -2, 2.5, 1.0 / 3};
    static const ty_op ops[] = {TY_OP_ADD, TY_OP_MUL, TY_OP_DIV, TY_OP_SUB, TY_OP_POW};
    static const double base = 2.5;
    for (size_t i = 0; i < sizeof exponents / sizeof exponents[0]; i++)
        gradcheck(&(gradcheck_case){.name = "pow by a number",
                                    .build = build_pow_number,
                                    .ctx = &exponents[i],
                                    .n_in = 1,
                                    .in = {GRAD_IN(5)},
                                    .lo = 0.5,
                                    .hi = 2});
    gradcheck(&(gradcheck_case){
        .name = "a number to a power", .build = build_number_pow, .ctx = &base, .n_in = 1, .in = {GRAD_IN(5)}});
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        gradcheck(&(gradcheck_case){.name = "same operand twice",
                                    .build = build_same_twice,
                                    .ctx = &ops[i],
                                    .n_in = 1,
                                    .in = {GRAD_IN(2, 3)},
                                    .lo = 0.5,
                                    .hi = 2});
}

static ty_val build_select(ty_graph *g, const ty_val *x, const void *ctx)
{
    (void)ctx;
    return ty_b_select(g, ty_b_lt(g, x[0], ty_b_full_like(g, x[0], 0)), ty_b_mul(g, x[0], x[1]), x[2]);
}

static ty_val build_derived(ty_graph *g, const ty_val *x, const void *which)
{
    switch (*(const int *)which) {
    case 0:
        return ty_b_relu(g, x[0]);
    case 1:
        return ty_b_sigmoid(g, x[0]);
    case 2:
        return ty_b_softplus(g, x[0]);
    case 3:
        return ty_b_square(g, x[0]);
    case 4:
        return ty_b_mean(g, x[0], 1, true);
    case 5:
        return ty_b_mul(g, x[0], ty_b_sigmoid(g, x[0]));
    default:
        return ty_b_cast(g, ty_b_cast(g, x[0], TY_F32), TY_F64);
    }
}

static void test_select_and_derived_gradients(void **state)
{
    (void)state;
    gradcheck(&(gradcheck_case){.name = "select",
                                .build = build_select,
                                .n_in = 3,
                                .in = {GRAD_IN(3, 4), GRAD_IN(3, 4), GRAD_IN(4)},
                                .gap = 0.1});
    static const int which[] = {0, 1, 2, 3, 4, 5};
    for (int i = 0; i < 6; i++)
        gradcheck(&(gradcheck_case){.name = "derived",
                                    .build = build_derived,
                                    .ctx = &which[i],
                                    .n_in = 1,
                                    .in = {GRAD_IN(3, 4)},
                                    .gap = 0.15});
    /* The cast itself rounds: differences must be wide enough not to see its steps. */
    static const int cast = 6;
    gradcheck(&(gradcheck_case){.name = "cast",
                                .build = build_derived,
                                .ctx = &cast,
                                .n_in = 1,
                                .in = {GRAD_IN(3, 4)},
                                .h = 0.01,
                                .tolerance = 1e-4});
}

/* Where differences have no say: at kinks, by convention. */
static void test_gradients_at_kinks(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F64, SHAPE(3)), b = new_input(g, TY_F64, SHAPE(3));
    ty_val y[] = {ty_b_relu(g, x), ty_b_unary(g, TY_OP_ABS, x), ty_b_max(g, x, b), ty_b_softplus(g, x),
                  ty_b_binary(g, TY_OP_POW, x, b)};
    double zeros[3] = {0, 0, 0}, powers[3] = {0, 2, 0};
    const void *in[] = {zeros, zeros}, *in_pow[] = {zeros, powers};
    double expected[5] = {0, 0, 0.5, 0.5, 0};
    for (int i = 0; i < 5; i++) {
        ty_val wrt[2] = {x, b}, d[2];
        expect_ok(g);
        assert_int_equal(ty_pass_autodiff(g, ty_b_sum(g, y[i], 1, false), wrt, 2, d, NULL), 0);
        expect_floats(g, d[0], i == 4 ? in_pow : in, 3, (double[]){expected[i], expected[i], expected[i]});
        if (i == 4)
            expect_floats(g, d[1], in_pow, 3, zeros);
    }
    ty_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary_values),
        cmocka_unit_test(test_binary_values),
        cmocka_unit_test(test_comparisons),
        cmocka_unit_test(test_integer_values),
        cmocka_unit_test(test_wrong_dtypes_are_refused),
        cmocka_unit_test(test_casts_from_floats),
        cmocka_unit_test(test_casts_to_floats_round_once),
        cmocka_unit_test(test_integer_casts_wrap_and_bits_stay),
        cmocka_unit_test(test_iota_and_rng),
        cmocka_unit_test(test_unary_gradients),
        cmocka_unit_test(test_binary_gradients),
        cmocka_unit_test(test_powers_and_repeated_operands),
        cmocka_unit_test(test_select_and_derived_gradients),
        cmocka_unit_test(test_gradients_at_kinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
