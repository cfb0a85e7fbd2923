/* cmodel_operators.c - every operator that a model in C can call does what its line in trainyard/model.h says. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/cmodel_file.h"

/* y of `expr` over v [6], x [2,3,4] = 0, 1, 2 ..., m [2,3] = 1 .. 6, ids [4] = 2 0 1 2, c [1,1,4,4] = 0 .. 15. */
static const double v_values[] = {-2.5, -1, -0.25, 0.5, 1, 3};

typedef struct op_case {
    const char *expr;
    double (*of)(double); /* of every v, or NULL: the numbers */
    int n;
    double y[24];
} op_case;

#define UNARY(name, formula)          \
    static double of_##name(double x) \
    {                                 \
        return formula;               \
    }
UNARY(relu, x > 0 ? x : 0)
UNARY(leaky, x > 0 ? x : 0.1 * x)
UNARY(elu, x > 0 ? x : 2 * (exp(x) - 1))
UNARY(selu, 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * (exp(x) - 1)))
UNARY(gelu, x / 2 * (1 + erf(x / sqrt(2))))
UNARY(gelu_tanh, x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))))
UNARY(silu, x / (1 + exp(-x)))
UNARY(mish, x *tanh(log(1 + exp(x))))
UNARY(sigmoid, 1 / (1 + exp(-x)))
UNARY(softplus, log(1 + exp(x)))
UNARY(softsign, x / (1 + fabs(x)))
UNARY(hard_sigmoid, fmin(fmax(x + 3, 0), 6) / 6)
UNARY(hard_swish, x *fmin(fmax(x + 3, 0), 6) / 6)
UNARY(clip, fmin(fmax(x, -1.5), 2))
UNARY(neg, -x)
UNARY(sign, x > 0 ? 1 : x < 0 ? -1 : 0)
UNARY(square, x *x)
UNARY(reciprocal, 1 / x)
UNARY(sqrt_abs, sqrt(fabs(x)))
UNARY(rsqrt_abs, 1 / sqrt(fabs(x)))
UNARY(log_abs, log(fabs(x)))
UNARY(log1p_abs, log1p(fabs(x)))
UNARY(affine, 3 * x + 2)
UNARY(where, x > 0.5 ? x : -1)
UNARY(ne_le, (x != 1) + 2 * (x <= 0.5) + 4 * (x >= 1) + 8 * (x < 1))
UNARY(logic, (x > 0 && x < 2) + 2 * (x < -1 || x > 2) + 4 * !(x > 0) + 8 * ((x > 0) != (x > 2)))
UNARY(min_max, fmin(fmax(x, -1), 0.75))
UNARY(pow2, pow(fabs(x), 1.5))
UNARY(rem2, fmod(x, 2))

static const op_case cases[] = {
    {"ty_relu(net, v)", of_relu, 6, {0}},
    {"ty_stop_gradient(net, ty_relu(net, v))", of_relu, 6, {0}},
    {"ty_leaky_relu(net, v, 0.1)", of_leaky, 6, {0}},
    {"ty_elu(net, v, 2)", of_elu, 6, {0}},
    {"ty_selu(net, v)", of_selu, 6, {0}},
    {"ty_gelu(net, v)", of_gelu, 6, {0}},
    {"ty_gelu_tanh(net, v)", of_gelu_tanh, 6, {0}},
    {"ty_silu(net, v)", of_silu, 6, {0}},
    {"ty_mish(net, v)", of_mish, 6, {0}},
    {"ty_sigmoid(net, v)", of_sigmoid, 6, {0}},
    {"ty_tanh(net, v)", tanh, 6, {0}},
    {"ty_softplus(net, v)", of_softplus, 6, {0}},
    {"ty_softsign(net, v)", of_softsign, 6, {0}},
    {"ty_hard_sigmoid(net, v)", of_hard_sigmoid, 6, {0}},
    {"ty_hard_swish(net, v)", of_hard_swish, 6, {0}},
    {"ty_clip(net, v, -1.5, 2)", of_clip, 6, {0}},
    {"ty_neg(net, v)", of_neg, 6, {0}},
    {"ty_abs(net, v)", fabs, 6, {0}},
    {"ty_sign(net, v)", of_sign, 6, {0}},
    {"ty_floor(net, v)", floor, 6, {0}},
    {"ty_ceil(net, v)", ceil, 6, {0}},
    {"ty_round(net, v)", rint, 6, {0}},
    {"ty_square(net, v)", of_square, 6, {0}},
    {"ty_sqrt(net, ty_abs(net, v))", of_sqrt_abs, 6, {0}},
    {"ty_rsqrt(net, ty_abs(net, v))", of_rsqrt_abs, 6, {0}},
    {"ty_reciprocal(net, v)", of_reciprocal, 6, {0}},
    {"ty_exp(net, v)", exp, 6, {0}},
    {"ty_expm1(net, v)", expm1, 6, {0}},
    {"ty_log(net, ty_abs(net, v))", of_log_abs, 6, {0}},
    {"ty_log1p(net, ty_abs(net, v))", of_log1p_abs, 6, {0}},
    {"ty_sin(net, v)", sin, 6, {0}},
    {"ty_cos(net, v)", cos, 6, {0}},
    {"ty_atan(net, v)", atan, 6, {0}},
    {"ty_erf(net, v)", erf, 6, {0}},
    {"ty_shift(net, ty_scale(net, v, 3), 2)", of_affine, 6, {0}},
    {"ty_where(net, ty_gt(net, v, ty_number(net, \"f32\", 0.5)), v, ty_number(net, \"f32\", -1))", of_where, 6, {0}},
    {"bits(net, ty_ne(net, v, n(net, 1)), ty_le(net, v, n(net, 0.5)), ty_ge(net, v, n(net, 1)), ty_lt(net, v, n(net, "
     "1)))",
     of_ne_le,
     6,
     {0}},
    {"bits(net, ty_and(net, ty_gt(net, v, n(net, 0)), ty_lt(net, v, n(net, 2))),"
     " ty_or(net, ty_lt(net, v, n(net, -1)), ty_gt(net, v, n(net, 2))), ty_not(net, ty_gt(net, v, n(net, 0))),"
     " ty_xor(net, ty_gt(net, v, n(net, 0)), ty_gt(net, v, n(net, 2))))",
     of_logic,
     6,
     {0}},
    {"ty_min(net, ty_max(net, v, n(net, -1)), n(net, 0.75))", of_min_max, 6, {0}},
    {"ty_pow(net, ty_abs(net, v), n(net, 1.5))", of_pow2, 6, {0}},
    {"ty_rem(net, v, n(net, 2))", of_rem2, 6, {0}},
    {"ty_div(net, ty_sub(net, m, n(net, 1)), ty_add(net, m, n(net, 1)))", NULL, 6, {0, 1. / 3, .5, .6, 4. / 6, 5. / 7}},
    {"ty_cast(net, ty_eq(net, m, n(net, 3)), \"f32\")", NULL, 6, {0, 0, 1, 0, 0, 0}},
    {"ty_mul(net, m, ty_constant(net, \"f32\", ty_dims(2, 1), ((float[]){10, 100})))",
     NULL,
     6,
     {10, 20, 30, 400, 500, 600}},

    {"ty_reshape(net, m, ty_dims(-1))", NULL, 6, {1, 2, 3, 4, 5, 6}},
    {"ty_flatten(net, ty_slice(net, x, 1, -1, TY_END), 1)", NULL, 8, {8, 9, 10, 11, 20, 21, 22, 23}},
    {"ty_transpose(net, m, ty_dims(1, 0))", NULL, 6, {1, 4, 2, 5, 3, 6}},
    {"ty_expand(net, ty_slice(net, m, 0, 1, 2), ty_dims(2, 3))", NULL, 6, {4, 5, 6, 4, 5, 6}},
    {"ty_squeeze(net, ty_unsqueeze(net, m, -1), 2)", NULL, 6, {1, 2, 3, 4, 5, 6}},
    {"ty_slice(net, m, -1, 1, 99)", NULL, 4, {2, 3, 5, 6}},
    {"ty_pad(net, m, ty_dims(0, 1), ty_dims(1, 0), 7)", NULL, 12, {7, 1, 2, 3, 7, 4, 5, 6, 7, 7, 7, 7}},
    {"ty_reverse(net, m, 1)", NULL, 6, {3, 2, 1, 6, 5, 4}},
    {"ty_concat(net, 1, m, m, ty_slice(net, m, 1, 0, 1))", NULL, 14, {1, 2, 3, 1, 2, 3, 1, 4, 5, 6, 4, 5, 6, 4}},

    {"ty_gather(net, m, ids, 1)", NULL, 8, {3, 1, 2, 3, 6, 4, 5, 6}},
    {"ty_take(net, m, ty_constant(net, \"i64\", ty_dims(2, 1), ((int64_t[]){2, 0})), 1)", NULL, 2, {3, 4}},
    {"ty_one_hot(net, ids, 3)", NULL, 12, {0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1}},
    {"ty_reduce_sum(net, m, ty_dims(-1), true)", NULL, 2, {6, 15}},
    {"ty_reduce_sum(net, m, ty_dims(), false)", NULL, 1, {21}},
    {"ty_reduce_mean(net, m, ty_dims(0), false)", NULL, 3, {2.5, 3.5, 4.5}},
    {"ty_reduce_max(net, m, ty_dims(1), false)", NULL, 2, {3, 6}},
    {"ty_reduce_min(net, m, ty_dims(0, 1), false)", NULL, 1, {1}},
    {"ty_reduce_prod(net, m, ty_dims(1), false)", NULL, 2, {6, 120}},
    {"ty_log_sum_exp(net, m, ty_dims(1), false)", NULL, 2, {3.4076059644, 6.4076059644}},
    {"ty_cast(net, ty_arg_max(net, m, 1), \"f32\")", NULL, 2, {2, 2}},
    {"ty_cast(net, ty_arg_min(net, m, 0), \"f32\")", NULL, 3, {0, 0, 0}},
    {"ty_cumsum(net, m, 1)", NULL, 6, {1, 3, 6, 4, 9, 15}},
    {"ty_matmul(net, m, ty_transpose(net, m, ty_dims(1, 0)))", NULL, 4, {14, 32, 32, 77}},
    {"ty_softmax(net, m, -1)", NULL, 6, {.0900305732, .2447284711, .6652409558, .0900305732, .2447284711, .6652409558}},
    {"ty_log_softmax(net, m, 1)",
     NULL,
     6,
     {-2.4076059644, -1.4076059644, -.4076059644, -2.4076059644, -1.4076059644, -.4076059644}},
    {"ty_iota(net, \"f32\", ty_dims(2, 2), 1)", NULL, 4, {0, 1, 0, 1}},
    {"ty_full(net, \"f32\", ty_dims(2), 5)", NULL, 2, {5, 5}},
    {"n(net, ty_dim(net, x, -1) * 10 + ty_rank(net, x))", NULL, 1, {43}},

    {"ty_max_pool(net, c, 2)", NULL, 4, {5, 7, 13, 15}},
    {"ty_max_pool(net, c, 3, .stride = 2, .padding = 1)", NULL, 4, {5, 7, 13, 15}},
    {"ty_max_pool(net, c, 3, .stride = 2, .ceil = true)", NULL, 4, {10, 11, 14, 15}},
    {"ty_avg_pool(net, c, 2)", NULL, 4, {2.5, 4.5, 10.5, 12.5}},
    {"ty_avg_pool(net, c, 3, .stride = 3, .padding = 1)", NULL, 4, {2.5, 4.5, 10.5, 12.5}},
    {"ty_avg_pool(net, c, 3, .stride = 3, .padding = 1, .count_padding = true)",
     NULL,
     4,
     {10 / 9., 18 / 9., 42 / 9., 50 / 9.}},
    {"ty_max_pool(net, c, 0, .kernels = ty_dims(1, 4))", NULL, 4, {3, 7, 11, 15}},
    {"ty_global_avg_pool(net, c)", NULL, 1, {7.5}},
    {"ty_global_max_pool(net, c)", NULL, 1, {15}},

    {"ty_linear(net, \"l\", m, 2, .weight = ty_filled(2), .bias = ty_ones())", NULL, 4, {13, 13, 31, 31}},
    {"ty_conv(net, \"k\", c, 1, 2, .weight = ty_ones(), .no_bias = true, .stride = 2)", NULL, 4, {10, 18, 42, 50}},
    {"ty_conv(net, \"d\", c, 1, 2, .weight = ty_ones(), .bias = ty_filled(-1), .dilation = 3)", NULL, 1, {29}},
    {"ty_conv_transpose(net, \"t\", ty_slice(net, ty_slice(net, c, 2, 0, 1), 3, 0, 3), 1, 0,"
     " .kernels = ty_dims(1, 3), .strides = ty_dims(1, 2), .weight = ty_ones(), .no_bias = true)",
     NULL,
     7,
     {0, 0, 1, 1, 3, 2, 2}},
    {"ty_layer_norm(net, \"ln\", m, .scale = ty_filled(2), .bias = ty_ones())",
     NULL,
     6,
     {-1.449471, 1, 3.449471, -1.449471, 1, 3.449471}},
    {"ty_rms_norm(net, \"rn\", m, .eps = 1e-9)",
     NULL,
     6,
     {.46291005, .9258201, 1.38873015, .78954203, .98692754, 1.18431305}},
    {"ty_group_norm(net, \"gn\", ty_reshape(net, m, ty_dims(1, 2, 3)), 2)",
     NULL,
     6,
     {-1.224736, 0, 1.224736, -1.224736, 0, 1.224736}},
    {"ty_batch_norm(net, \"bn\", m, .scale = ty_filled(3))",
     NULL,
     6,
     {2.999985, 5.99997, 8.999955, 11.99994, 14.999925, 17.99991}},
    {"ty_embedding(net, \"e\", ids, 3, 1, .weight = ty_filled(4))", NULL, 4, {4, 4, 4, 4}},
    {"ty_dropout(net, m, 0.5)", NULL, 6, {1, 2, 3, 4, 5, 6}},
    {"ty_attention(net, q, q, q, .causal = true)", NULL, 3, {1, 1.8807970780, 2.9479745786}},
    {"ty_attention(net, q, q, q, .causal = true, .mask = ty_reshape(net, ty_ne(net, ty_slice(net, m, 0, 0, 1), "
     "n(net, 2)), ty_dims(1, 1, 1, 3)))",
     NULL,
     3,
     {1, 1, 2.9950547536}},
    {"ty_multi_head_attention(net, \"mha\", ty_reshape(net, m, ty_dims(2, 3, 1)), 1)", NULL, 0, {0}},
    {"ty_parameter(net, \"w\", ty_dims(2), ty_filled(6))", NULL, 2, {6, 6}},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void add_cases(ty_buf *text)
{
    ty_buf_adds(text,
                HEAD "static ty_var n(ty_net *net, double x) { return ty_number(net, \"f32\", x); }\n"
                     "static ty_var bit(ty_net *net, ty_var b, double w)\n"
                     "{ return ty_scale(net, ty_cast(net, b, \"f32\"), w); }\n"
                     "static ty_var bits(ty_net *net, ty_var a, ty_var b, ty_var c, ty_var d)\n"
                     "{ return ty_add(net, ty_add(net, bit(net, a, 1), bit(net, b, 2)),\n"
                     "                ty_add(net, bit(net, c, 4), bit(net, d, 8))); }\n"
                     "void model(ty_net *net)\n{\n"
                     "    ty_var v = ty_input(net, \"v\", \"f32[6]\"), x = ty_input(net, \"x\", \"f32[2,3,4]\");\n"
                     "    ty_var m = ty_input(net, \"m\", \"f32[2,3]\"), ids = ty_input(net, \"ids\", \"i64[4]\");\n"
                     "    ty_var c = ty_input(net, \"c\", \"f32[1, 1, 4, 4]\");\n"
                     "    ty_var q = ty_reshape(net, ty_slice(net, m, 0, 0, 1), ty_dims(1, 1, 3, 1));\n");
    for (int i = 0; i < N_CASES; i++)
        ty_buf_addf(text, "    ty_output(net, \"y%d\", %s);\n", i, cases[i].expr);
    ty_buf_adds(text, "}\n");
}

static void check_case(const op_case *c, const ty_tensor *y)
{
    const float *got = y->data;
    if (c->n && ty_type_elems(&y->type) != c->n)
        fail_msg("%s: %lld elements, expected %d", c->expr, (long long)ty_type_elems(&y->type), c->n);
    for (int i = 0; i < ty_type_elems(&y->type); i++) {
        double expected = c->of ? c->of(v_values[i]) : c->y[i];
        if (!isfinite(got[i]) || (c->n && fabs(got[i] - expected) > 2e-5 * fmax(1, fabs(expected))))
            fail_msg("%s: element %d is %g, expected %g", c->expr, i, got[i], expected);
    }
}

static void run_cases(ty_backend backend)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    add_cases(&text);
    ty_model *model = open_text(text.data);
    ty_buf_fini(&text);
    float v[6], x[24], m[6], c[16];
    int64_t ids[] = {2, 0, 1, 2};
    for (int i = 0; i < 24; i++)
        x[i] = (float)i;
    for (int i = 0; i < 6; i++)
        m[i] = (float)i + 1, v[i] = (float)v_values[i];
    memcpy(c, x, sizeof c);
    ty_error err = {0};
    ty_program *p = infer_as_declared(model, backend);
    assert_int_equal(ty_program_run(p, TY_RUN_EVAL, (const void *[]){v, x, m, ids, c}, &err), 0);
    for (int i = 0; i < N_CASES; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", i);
        check_case(&cases[i], ty_program_output(p, TY_RUN_EVAL, name));
    }
    ty_program_free(p);
    ty_model_free(model);
}

static void test_operators(void **state)
{
    (void)state;
    run_cases(TY_BACKEND_INTERPRETER);
}

static void test_operators_compiled(void **state)
{
    (void)state;
    run_cases(TY_BACKEND_CPU);
}

/* However scores are hidden, an attention is known as one, and so comes in tiles. */
static void test_attention_is_known(void **state)
{
    static const struct {
        const char *how, *found;
    } rows[] = {
        {"", "1 attention"},
        {", .causal = true", "1 causal attention"},
        {", .mask = seen", "1 attention"},
        {", .mask = bias", "1 attention"},
        {", .causal = true, .mask = seen", "1 attention"},
        {", .causal = true, .mask = bias", "1 attention"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_buf text;
        ty_composite_count count;
        ty_error err = {0};
        char found[320];
        ty_buf_init(&text, 1 << 16);
        ty_buf_addf(&text,
                    HEAD
                    "void model(ty_net *net)\n{\n"
                    "    ty_var q = ty_input(net, \"q\", \"f32[2,4,8,16]\"), k = ty_input(net, \"k\", \"i64[2,8]\");\n"
                    "    ty_var zero = ty_full(net, \"i64\", ty_dims(2, 8), 0);\n"
                    "    ty_var seen = ty_reshape(net, ty_ne(net, k, zero), ty_dims(2, 1, 1, 8));\n"
                    "    ty_var bias = ty_scale(net, ty_cast(net, seen, \"f32\"), 0.5);\n"
                    "    (void)bias;\n"
                    "    ty_output(net, \"y\", ty_attention(net, q, q, q%s));\n}\n",
                    rows[i].how);
        ty_model *model = open_text(text.data);
        ty_buf_fini(&text);
        assert_int_equal(ty_model_count_composites(model, 2, &count, &err), 0);
        ty_composite_count_text(&count, found, sizeof found);
        if (strcmp(found, rows[i].found) != 0)
            fail_msg("attention%s: expected \"%s\", found \"%s\"", rows[i].how, rows[i].found, found);
        ty_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_operators, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_operators_compiled, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_attention_is_known, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
