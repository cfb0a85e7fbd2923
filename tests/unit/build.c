/* Constructors: broadcasting, folding, identities, and that simplified graphs mean the same as plain ones. */
#include "tests/unit/evaluate.h"

#include "base/rng.h"
#include "compiler/ir/storage.h"
#include "compiler/ir/verify.h"
#include "compiler/ops/sliding.h"

#include <math.h>

static bool is_op(const ty_graph *g, ty_val v, ty_op op)
{
    return v != TY_NONE && ty_graph_op(g, ty_val_node(v)) == op;
}

static void expect_shape(const ty_graph *g, ty_val v, int rank, const int64_t *dim)
{
    expect_ok(g);
    ty_type type = ty_type_make(ty_b_dtype(g, v), rank, dim);
    char a[160], b[160];
    if (!ty_type_same(&type, ty_graph_type(g, v)))
        fail_msg("expected %s, found %s", ty_type_text(&type, a, sizeof a),
                 ty_type_text(ty_graph_type(g, v), b, sizeof b));
}

static void expect_splat(const ty_graph *g, ty_val v, double expected)
{
    double s;
    expect_ok(g);
    assert_true(ty_graph_splat_value(g, v, &s));
    assert_true(s == expected);
}

static void test_broadcasting(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val a = new_input(g, TY_F64, SHAPE(2, 1, 3)), b = new_input(g, TY_F64, SHAPE(4, 1)),
           s = new_input(g, TY_F64, 0, NULL);
    expect_shape(g, ty_b_add(g, a, b), SHAPE(2, 4, 3));
    expect_shape(g, ty_b_sub(g, s, a), SHAPE(2, 1, 3));
    expect_shape(g, ty_b_select(g, ty_b_lt(g, s, b), a, b), SHAPE(2, 4, 3));
    double x[6] = {0, 1, 2, 3, 4, 5}, y[4] = {10, 20, 30, 40}, z[1] = {2};
    const void *in[] = {x, y, z};
    const double *found = evaluate(g, ty_b_sub(g, a, b), in, false);
    for (int i = 0; i < 24; i++)
        assert_true(found[i] == x[i / 12 * 3 + i % 3] - y[i / 3 % 4]);
    ty_val sum = ty_b_unbroadcast(g, ty_b_broadcast(g, b, SHAPE(2, 4, 3)), ty_graph_type(g, b));
    expect_shape(g, sum, SHAPE(4, 1));
    expect_floats(g, sum, in, 4, (double[]){60, 120, 180, 240});
    expect_shape(g, ty_b_unbroadcast(g, a, ty_graph_type(g, s)), 0, NULL);
    ty_graph_free(g);
}

/* Products of constants are computed until that would take longer than a user notices. */
static void test_folding_ends(void **state)
{
    (void)state;
    enum { N = 120 };
    static float ones[48 * 1024];
    ty_graph *g = ty_graph_new();
    ty_val x[3], big;
    for (int i = 0; i < 3 * N * N; i++)
        ones[i] = (float)(1 + i / (N * N));
    for (int i = 0; i < 3; i++)
        x[i] = ty_b_const(g, ty_type_make(TY_F32, SHAPE(N, N)), ones + i * N * N);
    big = ty_b_const(g, ty_type_make(TY_F32, SHAPE(92, 512)), ones);
    assert_true(is_op(g, ty_b_dot(g, big, big, false, true), TY_OP_DOT)); /* 92 * 512 * 92 multiplications */
    assert_true(is_op(g, ty_b_dot(g, x[0], x[1], false, false), TY_OP_CONST));
    assert_true(is_op(g, ty_b_dot(g, x[0], x[2], false, false), TY_OP_CONST));
    assert_true(is_op(g, ty_b_dot(g, x[1], x[2], false, false), TY_OP_DOT)); /* the third of them is too many */
    assert_true(is_op(g, ty_b_add(g, x[1], x[2]), TY_OP_CONST));
    expect_ok(g);
    ty_graph_free(g);
}

static void test_folding(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val a = ty_b_const(g, ty_type_make(TY_F32, SHAPE(2)), (float[]){1, 0.1f});
    ty_val b = ty_b_add(g, ty_b_exp(g, a), a);
    assert_true(is_op(g, b, TY_OP_CONST));
    assert_float_equal(((const float *)ty_graph_const_data(g, b))[0], (float)((double)(float)exp(1) + 1), 0);
    ty_val i = ty_b_const(g, ty_type_make(TY_I64, SHAPE(3)), (int64_t[]){7, -7, INT64_MIN});
    ty_val two = ty_b_scalar(g, TY_I64, 2), zero = ty_b_scalar(g, TY_I64, 0);
    ty_val q = ty_b_div(g, i, two);
    assert_memory_equal(ty_graph_const_data(g, q), ((int64_t[]){3, -3, INT64_MIN / 2}), 24);
    assert_false(is_op(g, ty_b_div(g, i, zero), TY_OP_CONST)); /* has no value: stays */
    expect_ok(g);
    ty_val seed = ty_b_scalar(g, TY_I64, 1);
    assert_true(is_op(g, ty_b_rng(g, seed, seed, 0, SHAPE(4)), TY_OP_RNG));
    ty_val dims = ty_b_concat(g, (ty_val[]){ty_b_slice_axis(g, i, 0, 0, 1), ty_b_full(g, TY_I64, SHAPE(2), 5)}, 2, 0);
    assert_memory_equal(ty_graph_const_data(g, dims), ((int64_t[]){7, 5, 5}), 24);
    ty_val half = ty_b_scalar(g, TY_F16, 1.0 + 0x1p-11 + 0x1p-13); /* rounded once, up */
    expect_splat(g, half, 1.0 + 0x1p-10);
    ty_graph_free(g);
}

static void test_large_weights_are_left_alone(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    float *w = calloc(300000, sizeof *w);
    w[1] = 1;
    ty_val big = ty_b_const(g, ty_type_make(TY_F32, SHAPE(300, 1000)), w);
    size_t before = ty_graph_arena(g)->used_bytes;
    assert_true(is_op(g, ty_b_transpose(g, big, (int64_t[]){1, 0}), TY_OP_TRANSPOSE));
    assert_true(is_op(g, ty_b_mul_s(g, big, 2), TY_OP_MUL));
    assert_ptr_equal(ty_graph_const_data(g, ty_b_flatten(g, big)), w);
    assert_true(ty_graph_arena(g)->used_bytes - before < 100000);
    ty_graph_free(g);
    free(w);
}

static void test_splats(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val one = ty_b_full(g, TY_F32, SHAPE(100, 100), 1);
    assert_true(is_op(g, one, TY_OP_BROADCAST));
    expect_splat(g, one, 1);
    ty_val e = ty_b_exp(g, ty_b_add_s(g, one, 1));
    expect_splat(g, e, (double)(float)exp(2));
    expect_shape(g, e, SHAPE(100, 100));
    expect_splat(g, ty_b_transpose(g, ty_b_reshape(g, e, SHAPE(10, 1000)), (int64_t[]){1, 0}), (double)(float)exp(2));
    expect_splat(g, ty_b_slice_axis(g, one, 1, 3, 9), 1);
    expect_splat(g, ty_b_sum(g, one, 1, false), 100);
    expect_splat(g, ty_b_cast(g, ty_b_full(g, TY_F32, SHAPE(70), 3.7), TY_I32), 3);
    double s;
    assert_false(ty_graph_splat_value(g, new_input(g, TY_F32, SHAPE(2)), &s));
    assert_false(ty_graph_splat_value(g, TY_NONE, &s));
    ty_val big = ty_b_const(g, ty_type_scalar(TY_I64), &(int64_t){INT64_MAX});
    assert_false(ty_graph_splat_value(g, big, &s));
    ty_graph_free(g);
}

static void test_elementwise_identities(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2, 3)), i = new_input(g, TY_I32, SHAPE(2, 3));
    ty_val b = ty_b_lt(g, x, ty_b_exp(g, x));
    assert_int_equal(ty_b_add_s(g, x, 0), x);
    assert_int_equal(ty_b_add(g, ty_b_full_like(g, x, 0), x), x);
    assert_int_equal(ty_b_sub(g, x, ty_b_full_like(g, x, 0)), x);
    assert_int_equal(ty_b_mul_s(g, x, 1), x);
    assert_true(is_op(g, ty_b_mul_s(g, x, -1), TY_OP_NEG));
    assert_int_equal(ty_b_div(g, x, ty_b_full_like(g, x, 1)), x);
    assert_true(is_op(g, ty_b_div(g, x, ty_b_full_like(g, x, 8)), TY_OP_MUL));
    assert_true(is_op(g, ty_b_div(g, x, ty_b_full_like(g, x, 3)), TY_OP_DIV));
    assert_true(is_op(g, ty_b_mul_s(g, x, 0), TY_OP_MUL)); /* NaN * 0 is NaN */
    assert_true(is_op(g, ty_b_sub(g, x, x), TY_OP_SUB));
    expect_splat(g, ty_b_mul_s(g, i, 0), 0);
    expect_splat(g, ty_b_sub(g, i, i), 0);
    assert_int_equal(ty_b_neg(g, ty_b_neg(g, x)), x);
    assert_int_equal(ty_b_unary(g, TY_OP_NOT, ty_b_unary(g, TY_OP_NOT, b)), b);
    assert_int_equal(ty_b_select(g, b, x, x), x);
    assert_int_equal(ty_b_select(g, ty_b_full(g, TY_BOOL, SHAPE(2, 3), 1), x, ty_b_exp(g, x)), x);
    assert_int_equal(ty_b_select(g, ty_b_unary(g, TY_OP_NOT, b), x, ty_b_exp(g, x)),
                     ty_b_select(g, b, ty_b_exp(g, x), x));
    ty_val half = ty_b_cast(g, x, TY_BF16), wide = ty_b_cast(g, half, TY_F32), none = ty_b_full_like(g, x, 0);
    assert_int_equal(ty_b_select(g, b, none, wide),
                     ty_b_cast(g, ty_b_select(g, b, ty_b_full_like(g, half, 0), half), TY_F32));
    assert_true(is_op(g, ty_b_select(g, b, ty_b_full_like(g, x, 0.1), wide), TY_OP_SELECT));
    assert_true(is_op(g, ty_b_select(g, ty_b_le(g, wide, none), none, wide), TY_OP_SELECT)); /* a ReLU */
    assert_int_equal(ty_b_max(g, x, x), x);
    assert_int_equal(ty_b_binary(g, TY_OP_AND, b, ty_b_full(g, TY_BOOL, SHAPE(2, 3), 1)), b);
    expect_splat(g, ty_b_eq(g, i, i), 1);
    assert_true(is_op(g, ty_b_eq(g, x, x), TY_OP_EQ)); /* tells NaN */
    assert_int_equal(ty_b_binary(g, TY_OP_POW, x, ty_b_full_like(g, x, 2)), ty_b_square(g, x));
    assert_true(is_op(g, ty_b_binary(g, TY_OP_POW, x, ty_b_full_like(g, x, 0.5)), TY_OP_SQRT));
    ty_graph_free(g);
}

static void test_cast_identities(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(3)), i = new_input(g, TY_I32, SHAPE(3));
    assert_int_equal(ty_b_cast(g, x, TY_F32), x);
    assert_int_equal(ty_b_cast(g, ty_b_cast(g, x, TY_F64), TY_F32), x);
    assert_int_equal(ty_b_cast(g, ty_b_cast(g, x, TY_F64), TY_I8), ty_b_cast(g, x, TY_I8));
    assert_int_not_equal(ty_b_cast(g, ty_b_cast(g, x, TY_F16), TY_F32), x); /* rounds */
    assert_int_equal(ty_b_cast(g, ty_b_cast(g, i, TY_F64), TY_I32), i);
    assert_int_not_equal(ty_b_cast(g, ty_b_cast(g, i, TY_F64), TY_I8), ty_b_cast(g, i, TY_I8)); /* saturates, wraps */
    assert_int_not_equal(ty_b_cast(g, ty_b_cast(g, i, TY_U32), TY_I64), ty_b_cast(g, i, TY_I64));
    ty_graph_free(g);
}

static void test_movement_identities(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2, 3, 4)), y = new_input(g, TY_F32, SHAPE(2, 5, 4));
    assert_int_equal(ty_b_reshape(g, x, SHAPE(2, 3, 4)), x);
    assert_int_equal(ty_b_reshape(g, ty_b_reshape(g, x, SHAPE(24)), SHAPE(2, 3, 4)), x);
    assert_int_equal(ty_b_transpose(g, x, (int64_t[]){0, 1, 2}), x);
    ty_val t = ty_b_transpose(g, x, (int64_t[]){1, 2, 0});
    assert_int_equal(ty_b_transpose(g, t, (int64_t[]){2, 0, 1}), x);
    assert_int_equal(ty_b_transpose(g, t, (int64_t[]){1, 2, 0}), ty_b_transpose(g, x, (int64_t[]){2, 0, 1}));
    ty_val u = ty_b_unsqueeze(g, x, 1);
    assert_true(is_op(g, ty_b_transpose(g, u, (int64_t[]){1, 0, 2, 3}), TY_OP_RESHAPE));
    assert_int_equal(ty_b_squeeze(g, u, 1), x);
    assert_int_equal(ty_b_broadcast(g, x, SHAPE(2, 3, 4)), x);
    ty_val one = new_input(g, TY_F32, SHAPE(1, 4));
    assert_int_equal(
        ty_b_broadcast(g, ty_b_broadcast(g, one, SHAPE(3, 4)), SHAPE(2, 3, 4)),
        ty_b_broadcast(g, ty_b_reshape(g, ty_b_broadcast(g, one, SHAPE(3, 4)), SHAPE(1, 3, 4)), SHAPE(2, 3, 4)));
    assert_int_equal(ty_b_slice_axis(g, x, 1, 0, 3), x);
    ty_val c = ty_b_concat(g, (ty_val[]){x, y}, 2, 1);
    assert_int_equal(ty_b_slice_axis(g, c, 1, 0, 3), x);
    assert_int_equal(ty_b_slice_axis(g, c, 1, 3, 8), y);
    assert_int_equal(ty_b_slice_axis(g, c, 1, 4, 6), ty_b_slice_axis(g, y, 1, 1, 3));
    assert_true(is_op(g, ty_graph_in(g, ty_val_node(ty_b_slice_axis(g, c, 1, 2, 4)), 0), TY_OP_CONCAT));
    assert_int_equal(ty_b_concat(g, &x, 1, 0), x);
    ty_val empty = ty_b_slice_axis(g, y, 1, 2, 2);
    assert_int_equal(ty_b_concat(g, (ty_val[]){empty, x, empty}, 3, 1), x);
    int64_t lo[3] = {0, 1, 0}, hi[3] = {0, 2, 0}, none[3] = {0};
    assert_int_equal(ty_b_pad(g, x, none, none, 0), x);
    ty_val p = ty_b_pad(g, x, lo, hi, 0);
    assert_int_equal(ty_b_slice_axis(g, p, 1, 1, 4), x);
    assert_int_equal(ty_b_pad(g, ty_b_pad(g, x, lo, none, 0), none, hi, 0), p);
    assert_int_not_equal(ty_b_pad(g, ty_b_pad(g, x, lo, none, 1), none, hi, 0), p);
    assert_int_equal(ty_b_reverse(g, ty_b_reverse(g, x, 5), 5), x);
    assert_int_equal(ty_b_reverse(g, u, 2), u);
    assert_int_equal(ty_b_reduce(g, x, TY_SUM, 0, false), x);
    assert_int_equal(ty_b_sum(g, u, 2, false), x);
    int64_t from[3] = {0, 1, 1}, to[3] = {2, 3, 4}, step[3] = {1, 1, 2};
    ty_val s = ty_b_slice(g, x, from, to, step);
    assert_int_equal(ty_b_slice_axis(g, s, 2, 1, 2),
                     ty_b_slice(g, x, (int64_t[]){0, 1, 3}, (int64_t[]){2, 3, 4}, NULL));
    ty_val k = ty_b_scalar(g, TY_I64, 2);
    assert_int_equal(ty_b_gather(g, x, k, 1), ty_b_reshape(g, ty_b_slice_axis(g, x, 1, 2, 3), SHAPE(2, 4)));
    expect_ok(g);
    assert_int_equal(ty_graph_verify(g, NULL), 0);
    ty_graph_free(g);
}

static void test_derived_forms(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F64, SHAPE(5));
    double data[5] = {-800, -1, 0, 2, NAN};
    const void *in[] = {data};
    expect_floats(g, ty_b_relu(g, x), in, 5, (double[]){0, 0, 0, 2, NAN});
    expect_floats(g, ty_b_sign(g, x), in, 5, (double[]){-1, -1, 0, 1, NAN});
    expect_floats(g, ty_b_sigmoid(g, x), in, 5, (double[]){0, 1 / (1 + exp(1)), 0.5, 1 / (1 + exp(-2)), NAN});
    expect_floats(g, ty_b_softplus(g, x), in, 5, (double[]){0, log1p(exp(-1)), log(2), 2 + log1p(exp(-2)), NAN});
    expect_ints(g, ty_b_ne(g, x, x), in, 5, (int64_t[]){0, 0, 0, 0, 1});
    expect_floats(g, ty_b_mean(g, ty_b_slice_axis(g, x, 0, 1, 4), 1, true), in, 1, (double[]){1.0 / 3});
    ty_graph_free(g);
}

static void test_matmul_shapes(void **state)
{
    (void)state;
    static const struct {
        int ra, rb, ry;
        int64_t a[4], b[4], y[4];
    } cases[] = {
        {2, 2, 2, {2, 3}, {3, 4}, {2, 4}},
        {1, 1, 0, {3}, {3}, {0}},
        {1, 2, 1, {3}, {3, 4}, {4}},
        {2, 1, 1, {2, 3}, {3}, {2}},
        {3, 2, 3, {5, 2, 3}, {3, 4}, {5, 2, 4}},
        {2, 3, 3, {2, 3}, {5, 3, 4}, {5, 2, 4}},
        {4, 3, 4, {2, 1, 2, 3}, {5, 3, 4}, {2, 5, 2, 4}},
        {3, 1, 2, {5, 2, 3}, {3}, {5, 2}},
        {1, 3, 2, {3}, {5, 3, 4}, {5, 4}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_graph *g = ty_graph_new();
        ty_val a = new_input(g, TY_F64, cases[i].ra, cases[i].a), b = new_input(g, TY_F64, cases[i].rb, cases[i].b);
        expect_shape(g, ty_b_matmul(g, a, b), cases[i].ry, cases[i].y);
        ty_graph_free(g);
    }
}

/* A swap of the last two axes becomes a flag of the product; any other permutation stays. */
static void test_products_read_transposed(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val a = new_input(g, TY_F64, SHAPE(2, 3, 4)), b = new_input(g, TY_F64, SHAPE(2, 3, 5));
    ty_val at = ty_b_transpose(g, a, (int64_t[]){0, 2, 1}), bt = ty_b_transpose(g, b, (int64_t[]){0, 2, 1});
    assert_int_equal(ty_b_dot(g, at, b, false, false), ty_b_dot(g, a, b, true, false));
    assert_int_equal(ty_b_dot(g, at, bt, false, true), ty_b_dot(g, a, b, true, false));
    assert_int_equal(ty_b_dot(g, a, bt, true, true), ty_b_dot(g, a, b, true, false));
    ty_val c = new_input(g, TY_F64, SHAPE(2, 4, 5));
    assert_int_equal(ty_b_dot_add(g, at, bt, c, false, true), ty_b_dot_add(g, a, b, c, true, false));
    ty_val moved = ty_b_transpose(g, new_input(g, TY_F64, SHAPE(4, 2, 3)), (int64_t[]){1, 2, 0});
    ty_val y = ty_b_dot(g, moved, b, true, false);
    assert_int_equal(ty_graph_in(g, ty_val_node(y), 0), moved);
    expect_ok(g);
    ty_graph_free(g);
}

/* conv(x padded by these numbers along each axis), whose own padding is 1, 0; the pad is somewhere in front of it. */
static ty_val conv_of_padded(ty_graph *g, ty_val x, const int64_t *lo, const int64_t *hi, double value, bool turned)
{
    ty_attr attr = {.n = 2, .step = {2, 1}, .dil = {1, 1}, .lo = {1, 0}, .groups = 1};
    ty_val w = new_input(g, TY_F32, SHAPE(4, 3, 3, 3)), v = ty_b_pad(g, x, lo, hi, value);
    if (turned)
        v = ty_b_transpose(g, v, (int64_t[]){0, 3, 1, 2});
    return ty_graph_emit(g, TY_OP_CONV, &attr, (ty_val[]){v, w}, 2);
}

static const ty_attr *attr_of(const ty_graph *g, ty_val v)
{
    return ty_graph_attr(g, ty_val_node(v));
}

/* Zeros around an image are padding of the convolution, wherever the channels are; what a window reaches is the limit.
 */
static void test_windows_take_zeros(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    static const int64_t none[4] = {0}, one[4] = {0, 0, 1, 1}, two[4] = {0, 0, 2, 0}, far[4] = {0, 0, 3, 0};
    static const int64_t channel[4] = {0, 1, 0, 0}, last[4] = {0, 1, 2, 0};
    ty_val x = new_input(g, TY_F32, SHAPE(2, 3, 8, 8)), y = new_input(g, TY_F32, SHAPE(2, 8, 8, 3));
    ty_val v = conv_of_padded(g, x, one, two, 0, false);
    assert_int_equal(ty_graph_in(g, ty_val_node(v), 0), x);
    assert_true(attr_of(g, v)->lo[0] == 2 && attr_of(g, v)->lo[1] == 1 && attr_of(g, v)->hi[0] == 2);
    static const int64_t row[4] = {0, 1, 0, 0};
    v = conv_of_padded(g, y, row, last, 0, true);
    assert_int_equal(ty_graph_in(g, ty_val_node(v), 0), ty_b_transpose(g, y, (int64_t[]){0, 3, 1, 2}));
    assert_true(attr_of(g, v)->lo[0] == 2 && attr_of(g, v)->hi[0] == 1 && attr_of(g, v)->hi[1] == 2);
    ty_attr sums = {.n = 2, .size = {2, 3}, .step = {1, 1}, .dil = {1, 1}, .flags = TY_SLIDING_LAST};
    v = ty_graph_emit(g, TY_OP_POOL_SUM, &sums, (ty_val[]){ty_b_pad(g, y, row, last, 0)}, 1);
    assert_true(is_op(g, ty_graph_in(g, ty_val_node(v), 0), TY_OP_INPUT) && attr_of(g, v)->hi[1] == 2);
    assert_true(is_op(g, ty_graph_in(g, ty_val_node(conv_of_padded(g, x, none, one, 1, false)), 0), TY_OP_PAD));
    assert_true(is_op(g, ty_graph_in(g, ty_val_node(conv_of_padded(g, x, two, none, 0, false)), 0), TY_OP_PAD));
    assert_true(is_op(g, ty_graph_in(g, ty_val_node(conv_of_padded(g, x, none, far, 0, false)), 0), TY_OP_PAD));
    ty_val thin = new_input(g, TY_F32, SHAPE(2, 2, 8, 8));
    assert_true(is_op(g, ty_graph_in(g, ty_val_node(conv_of_padded(g, thin, channel, none, 0, false)), 0), TY_OP_PAD));
    expect_ok(g);
    ty_graph_free(g);
}

/* ---- simplified graphs against plain ones ---- */

#define PAIRS 60
typedef struct pair_pool {
    ty_graph *simple, *plain;
    ty_val a[PAIRS], b[PAIRS]; /* the same values in both */
    int n;
    uint64_t random;
} pair_pool;

static uint32_t pick(pair_pool *p, uint32_t n)
{
    return (uint32_t)ty_rng_below(7, 0, 0, 64 * p->random++, n);
}

/* The op as written: inferred and hash-consed, but neither folded nor simplified. */
static ty_val emit_plain(ty_graph *g, ty_op op, const ty_attr *attr, const ty_val *in, int n_in)
{
    graph_draft d;
    return ty_graph_draft(g, op, attr, in, n_in, &d) ? ty_graph_append(g, &d) : TY_NONE;
}

static void pair_add(pair_pool *p, ty_op op, const ty_attr *attr, const int *in, int n_in)
{
    ty_val a[4], b[4];
    for (int i = 0; i < n_in; i++) {
        a[i] = p->a[in[i]];
        b[i] = p->b[in[i]];
    }
    p->a[p->n] = ty_graph_emit(p->simple, op, attr, a, n_in);
    p->b[p->n] = emit_plain(p->plain, op, attr, b, n_in);
    expect_ok(p->simple);
    expect_ok(p->plain);
    if (!ty_type_same(ty_graph_type(p->simple, p->a[p->n]), ty_graph_type(p->plain, p->b[p->n])))
        fail_msg("%s changed its type", ty_op_row_of(op)->text);
    p->n++;
}

/* A value of the same dtype and shape as k, maybe itself. */
static int pair_like(pair_pool *p, int k)
{
    for (int tries = 0; tries < 50; tries++) {
        int j = (int)pick(p, (uint32_t)p->n);
        if (ty_type_same(ty_graph_type(p->plain, p->b[j]), ty_graph_type(p->plain, p->b[k])))
            return j;
    }
    return k;
}

static void pair_elementwise(pair_pool *p, int k)
{
    static const ty_op float_ops[] = {TY_OP_ADD, TY_OP_SUB,   TY_OP_MUL,  TY_OP_MAX,  TY_OP_MIN, TY_OP_NEG,
                                      TY_OP_ABS, TY_OP_FLOOR, TY_OP_TANH, TY_OP_RINT, TY_OP_POW, TY_OP_DIV};
    static const ty_op int_ops[] = {TY_OP_ADD, TY_OP_SUB, TY_OP_MUL, TY_OP_MAX, TY_OP_MIN, TY_OP_NEG, TY_OP_ABS,
                                    TY_OP_AND, TY_OP_OR,  TY_OP_XOR, TY_OP_NOT, TY_OP_SHL, TY_OP_SHR};
    static const ty_op bool_ops[] = {TY_OP_AND, TY_OP_OR, TY_OP_XOR, TY_OP_NOT, TY_OP_EQ, TY_OP_LT, TY_OP_LE};
    ty_dtype d = ty_b_dtype(p->plain, p->b[k]);
    ty_op op = d == TY_BOOL           ? bool_ops[pick(p, 7)]
               : ty_dtype_is_float(d) ? float_ops[pick(p, 12)]
                                      : int_ops[pick(p, 13)];
    if ((op == TY_OP_NEG || op == TY_OP_ABS) && !ty_dtype_is_float(d) && !ty_dtype_is_signed(d))
        op = TY_OP_MAX;
    int in[2] = {k, pair_like(p, k)};
    pair_add(p, op, NULL, in, ty_op_row_of(op)->min_in);
}

static void pair_move(pair_pool *p, int k)
{
    const ty_type t = *ty_graph_type(p->plain, p->b[k]);
    ty_attr attr = {.type = t, .n = t.rank, .axis = t.rank ? pick(p, t.rank) : 0};
    int in[3] = {k, k, pair_like(p, k)};
    static const ty_op ops[] = {TY_OP_RESHAPE, TY_OP_TRANSPOSE, TY_OP_SLICE,  TY_OP_PAD,
                                TY_OP_CONCAT,  TY_OP_REVERSE,   TY_OP_REDUCE, TY_OP_BROADCAST};
    ty_op op = ops[pick(p, 8)];
    for (int i = 0; i < t.rank; i++) {
        int64_t dim = t.dim[i];
        attr.lo[i] = op == TY_OP_TRANSPOSE ? (i + 1) % t.rank : pick(p, 2) && dim > 1;
        attr.hi[i] = op == TY_OP_PAD ? pick(p, 2) : dim - (pick(p, 2) && dim > 2);
        attr.step[i] = 1 + pick(p, 2);
        attr.axes |= pick(p, 2) << i;
    }
    if (op == TY_OP_RESHAPE && pick(p, 2))
        attr.type = ty_type_make((ty_dtype)t.dtype, 1, (int64_t[]){ty_type_elems(&t)});
    for (int i = 0; op == TY_OP_BROADCAST && i < t.rank; i++)
        attr.type.dim[i] = t.dim[i] == 1 ? 1 + pick(p, 3) : t.dim[i];
    if ((op == TY_OP_REDUCE && (t.dtype == TY_BOOL || ty_type_elems(&t) == 0)) || (op == TY_OP_CONCAT && t.rank == 0) ||
        ty_type_elems(&t) > 400)
        return;
    if (op == TY_OP_REDUCE)
        attr.mode = pick(p, 3);
    pair_add(p, op, &attr, in + (op == TY_OP_CONCAT), op == TY_OP_CONCAT ? 2 : 1);
}

static void pair_other(pair_pool *p, int k)
{
    static const ty_dtype dtypes[] = {TY_F64, TY_I16, TY_I64, TY_I32, TY_BOOL, TY_U8};
    int other = pair_like(p, k);
    if (pick(p, 2)) {
        pair_add(p, TY_OP_CAST, &(ty_attr){.type = ty_type_scalar(dtypes[pick(p, 6)])}, &k, 1);
        return;
    }
    const ty_type *t = ty_graph_type(p->plain, p->b[k]);
    if (t->rank >= 2 && t->dtype == TY_F64 && ty_type_elems(t) <= 400 && pick(p, 3) == 0) {
        pair_add(p, TY_OP_DOT, &(ty_attr){.flags = pick(p, 2) ? 1 : 2}, (int[]){k, other}, 2); /* a' a or a a' */
        return;
    }
    pair_add(p, pick(p, 2) ? TY_OP_LT : TY_OP_EQ, NULL, (int[]){k, other}, 2);
    pair_add(p, TY_OP_SELECT, NULL, (int[]){p->n - 1, k, other}, 3);
}

/* A window over k with zeros around it, in either layout: a sum, or a convolution. Its weights
 * are an input, so that they are finite: infinity times a zero is nothing that padding adds. */
static void pair_window(pair_pool *p, int k)
{
    const ty_type t = *ty_graph_type(p->plain, p->b[k]);
    if (!ty_type_same(&t, ty_graph_type(p->plain, p->b[0])))
        return;
    ty_attr pad = {.n = 3, .lo = {0, 0, pick(p, 3)}, .hi = {0, 0, pick(p, 4)}};
    pair_add(p, TY_OP_PAD, &pad, &k, 1);
    ty_attr attr = {.n = 1, .step = {1 + pick(p, 2)}, .dil = {1}, .lo = {pick(p, 2)}, .groups = 1};
    int in[2] = {p->n - 1, 3 * (int)pick(p, 2)};
    if (pick(p, 2)) {
        pair_add(p, TY_OP_TRANSPOSE, &(ty_attr){.n = 3, .lo = {0, 2, 1}}, in, 1);
        attr.flags = TY_SLIDING_LAST;
        in[0] = p->n - 1;
    }
    attr.size[0] = 1 + pick(p, 4);
    ty_op op = pick(p, 3) ? TY_OP_CONV : TY_OP_POOL_SUM;
    pair_add(p, op, &attr, in, ty_op_row_of(op)->min_in);
}

static void pair_start(pair_pool *p)
{
    static const ty_dtype dtypes[] = {TY_F64, TY_I32, TY_BOOL, TY_F64};
    p->simple = ty_graph_new();
    p->plain = ty_graph_new();
    p->n = 0;
    for (int i = 0; i < 4; i++, p->n++) {
        p->a[p->n] = new_input(p->simple, dtypes[i], SHAPE(3, 1, 4));
        p->b[p->n] = new_input(p->plain, dtypes[i], SHAPE(3, 1, 4));
    }
    for (int i = 0; i < 12; i++, p->n++) {
        double value = i / 3 - 1; /* -1 to 2 of three dtypes */
        ty_dtype dtype = dtypes[i % 3];
        p->a[p->n] = ty_b_full(p->simple, dtype, SHAPE(3, 1, 4), value);
        p->b[p->n] = ty_b_full(p->plain, dtype, SHAPE(3, 1, 4), value);
    }
}

static void expect_same_number(double a, double b, int seed, int k)
{
    if (a != b && !(isnan(a) && isnan(b)) && !(fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b))))
        fail_msg("graph %d, value %d: simplified %.17g, plain %.17g", seed, k, a, b);
}

static void pair_compare(pair_pool *p, int seed)
{
    double x[12], y[12];
    int32_t i[12];
    uint8_t b[12];
    for (int k = 0; k < 12; k++) {
        x[k] = (int)pick(p, 5) - 2 + 0.25 * pick(p, 2);
        y[k] = (int)pick(p, 9) - 4;
        i[k] = (int)pick(p, 7) - 3;
        b[k] = (uint8_t)pick(p, 2);
    }
    const void *inputs[] = {x, i, b, y};
    for (int k = 16; k < p->n; k++) {
        int64_t n = ty_type_elems(ty_graph_type(p->plain, p->b[k]));
        const void *f1 = evaluate(p->simple, p->a[k], inputs, false), *f2 = evaluate(p->plain, p->b[k], inputs, false);
        bool is_float = ty_dtype_is_float(ty_b_dtype(p->plain, p->b[k]));
        for (int64_t e = 0; e < n; e++)
            expect_same_number(is_float ? ((const double *)f1)[e] : (double)((const int64_t *)f1)[e],
                               is_float ? ((const double *)f2)[e] : (double)((const int64_t *)f2)[e], seed, k);
    }
}

static void test_simplified_means_the_same(void **state)
{
    (void)state;
    uint32_t simple_nodes = 0, plain_nodes = 0;
    for (int seed = 0; seed < 150; seed++) {
        pair_pool p = {.random = (uint64_t)seed * 100000};
        pair_start(&p);
        while (p.n < PAIRS - 2) {
            int k = (int)pick(&p, (uint32_t)p.n), kind = (int)pick(&p, 5);
            if (pick(&p, 6) == 0)
                pair_window(&p, k);
            else if (kind < 2)
                pair_elementwise(&p, k);
            else if (kind < 4)
                pair_move(&p, k);
            else
                pair_other(&p, k);
        }
        assert_int_equal(ty_graph_verify(p.simple, NULL), 0);
        assert_int_equal(ty_graph_verify(p.plain, NULL), 0);
        simple_nodes += ty_graph_n_nodes(p.simple);
        plain_nodes += ty_graph_n_nodes(p.plain);
        expect_round_trip(p.simple);
        expect_round_trip(p.plain);
        pair_compare(&p, seed);
        ty_graph_free(p.simple);
        ty_graph_free(p.plain);
    }
    print_message("%u nodes became %u\n", plain_nodes, simple_nodes);
    assert_true(simple_nodes < plain_nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcasting),
        cmocka_unit_test(test_folding),
        cmocka_unit_test(test_folding_ends),
        cmocka_unit_test(test_large_weights_are_left_alone),
        cmocka_unit_test(test_splats),
        cmocka_unit_test(test_elementwise_identities),
        cmocka_unit_test(test_cast_identities),
        cmocka_unit_test(test_movement_identities),
        cmocka_unit_test(test_derived_forms),
        cmocka_unit_test(test_matmul_shapes),
        cmocka_unit_test(test_products_read_transposed),
        cmocka_unit_test(test_windows_take_zeros),
        cmocka_unit_test(test_simplified_means_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
