/* cmodel.c - models written in C: what they list, that they compute and train as the same network from ONNX does, that
 * every operator does what its line in trainyard/model.h says, and that every mistake is answered with file and line.
 */
#include "base/file.h"
#include "compiler/compiler.h"
#include "compiler/import/cmodel_load.h"
#include "container/output/safetensors.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define C_DIGITS    "examples/digits-c/model.c"
#define ONNX_DIGITS "examples/digits/model.onnx"
#define HEAD        "#include <trainyard/model.h>\n"

/* ---- files ------------------------------------------------------------------------------------------------------ */

static char folder[300];

static int make_folder(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/trainyard-test-XXXXXX", base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return ty_file_remove_tree(folder, NULL);
}

static const char *in_folder(const char *name)
{
    static char path[4][400];
    static int turn;
    char *out = path[turn++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

static const char *write_text(const char *name, const char *text)
{
    const char *path = in_folder(name);
    assert_int_equal(ty_file_write(path, text, strlen(text), 0644, NULL), 0);
    return path;
}

static ty_model *open_model(const char *path)
{
    ty_model *m;
    ty_error err = {0};
    if (ty_model_open(path, &m, &err) < 0)
        fail_msg("%s: %s: %s\n%s", path, err.place, err.message, err.detail);
    return m;
}

static ty_model *open_text(const char *text)
{
    return open_model(write_text("model.c", text));
}

/* ---- what is listed --------------------------------------------------------------------------------------------- */

static void test_lists_as_onnx(void **state)
{
    (void)state;
    ty_model *c = open_model(C_DIGITS), *onnx = open_model(ONNX_DIGITS);
    assert_string_equal(ty_model_format(c), "C source");
    assert_int_equal(ty_model_n_inputs(c), 1);
    assert_int_equal(ty_model_input(c, 0)->dim[0], -1);
    assert_string_equal(ty_model_input(c, 0)->dim_name[0], "batch");
    assert_int_equal(ty_model_n_outputs(c), 1);
    assert_int_equal(ty_model_output(c, 0)->dim[0], -1);
    assert_string_equal(ty_model_output(c, 0)->dim_name[0], "batch");
    assert_int_equal(ty_model_output(c, 0)->dim[1], 10);
    assert_int_equal(ty_model_n_weights(c), ty_model_n_weights(onnx));
    for (int i = 0; i < ty_model_n_weights(c); i++) {
        const ty_model_value *a = ty_model_weight(c, i), *b = ty_model_weight(onnx, i);
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->rank, b->rank);
        assert_memory_equal(a->dim, b->dim, sizeof a->dim);
        assert_int_equal(a->trainable_hint, b->trainable_hint);
    }
    ty_model_free(c);
    ty_model_free(onnx);
}

/* ---- what is computed ------------------------------------------------------------------------------------------- */

static void fill(float *x, int64_t n, double phase)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(0.5 + 0.5 * sin(0.37 * (double)i + phase));
}

static void infer_digits(const char *path, int64_t batch, const float *x, float *logits)
{
    ty_model *m = open_model(path);
    ty_error err = {0};
    ty_program *p;
    ty_binding in = {"image", ty_type_make(TY_F32, 4, (int64_t[]){batch, 1, 8, 8})};
    ty_compile_options opt = {.backend = TY_BACKEND_INTERPRETER};
    if (ty_compile_infer(m, &in, 1, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(ty_program_run(p, TY_RUN_EVAL, (const void *[]){x}, &err), 0);
    memcpy(logits, ty_program_output(p, TY_RUN_EVAL, "logits")->data, sizeof *logits * (size_t)batch * 10);
    ty_program_free(p);
    ty_model_free(m);
}

static void copy_digits_source(const char *name)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    assert_int_equal(ty_file_read(C_DIGITS, &text, NULL), 0);
    write_text(name, text.data);
    ty_buf_fini(&text);
}

/* The weights of the ONNX file beside the C source: both networks are one. */
static void test_same_numbers_as_onnx(void **state)
{
    (void)state;
    ty_model *onnx = open_model(ONNX_DIGITS);
    ty_named_tensor t[32];
    int n = ty_model_n_weights(onnx);
    for (int i = 0; i < n; i++) {
        const ty_model_value *w = ty_model_weight(onnx, i);
        ty_type type = ty_type_make(w->dtype, w->rank, w->dim);
        t[i] = (ty_named_tensor){w->name, type, malloc(ty_type_bytes(&type))};
        memcpy(t[i].data, w->data, ty_type_bytes(&type));
    }
    copy_digits_source("net.c");
    assert_int_equal(ty_safetensors_write(in_folder("net.safetensors"), t, (size_t)n, NULL, 0, NULL), 0);
    float x[3 * 64], a[30], b[30], fresh[30];
    fill(x, 3 * 64, 0.1);
    infer_digits(ONNX_DIGITS, 3, x, a);
    infer_digits(in_folder("net.c"), 3, x, b);
    infer_digits(C_DIGITS, 3, x, fresh);
    for (int i = 0; i < 30; i++)
        assert_true(fabsf(a[i] - b[i]) < 1e-5f);
    assert_true(fabsf(a[0] - fresh[0]) > 1e-3f);
    ty_model *c = open_model(in_folder("net.c"));
    assert_string_equal(ty_model_format(c), "C source, weights of net.safetensors");
    ty_model_free(c);
    for (int i = 0; i < n; i++)
        free(t[i].data);
    ty_model_free(onnx);
}

/* Five fixed batches; the label is what a fixed rule makes of the image. */
static double train_digits(const char *path, int steps, float *mean_of_norm1)
{
    enum { BATCH = 16 };
    ty_model *m = open_model(path);
    ty_loss_term loss = {.kind = TY_LOSS_SOFTMAX_CROSS_ENTROPY,
                         .output = "logits",
                         .target = "label",
                         .weight = 1,
                         .ignore_index = -100,
                         .class_axis = -1};
    ty_binding in[] = {{"image", ty_type_make(TY_F32, 4, (int64_t[]){BATCH, 1, 8, 8})},
                       {"label", ty_type_make(TY_I64, 1, (int64_t[]){BATCH})}};
    ty_train_spec spec = {.inputs = in,
                          .n_inputs = 2,
                          .loss = &loss,
                          .n_loss = 1,
                          .accumulate = 1,
                          .seed = 1,
                          .batch_norm_statistics = true,
                          .optimizer = {.kind = TY_OPT_SGD, .lr = 0.05, .momentum = 0.9}};
    ty_compile_options opt = {.backend = TY_BACKEND_CPU, .threads = 1};
    ty_error err = {0};
    ty_program *p;
    if (ty_compile_train(m, &spec, &opt, &p, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    float x[BATCH * 64], last = 0;
    int64_t label[BATCH];
    for (int s = 0; s < steps; s++) {
        for (int r = 0; r < BATCH; r++) {
            label[r] = (r + s % 5) % 10;
            fill(x + r * 64, 64, (double)label[r] + 0.01 * r);
        }
        assert_int_equal(ty_program_run(p, TY_RUN_LAST, (const void *[]){x, label}, &err), 0);
        last = *(float *)ty_program_output(p, TY_RUN_LAST, "loss")->data;
    }
    for (int i = 0; i < ty_program_n_tensors(p); i++) {
        const char *name;
        bool trained;
        ty_tensor t = ty_program_tensor(p, i, &name, &trained);
        if (strcmp(name, "norm1.running_mean") == 0) {
            *mean_of_norm1 = *(float *)t.data;
            assert_false(trained);
        }
    }
    assert_int_equal(ty_program_report(p)->n_trained, 13754);
    ty_program_free(p);
    ty_model_free(m);
    return last;
}

static void test_trains(void **state)
{
    (void)state;
    float mean = 0, again = 0;
    double first = train_digits(C_DIGITS, 1, &mean);
    assert_true(first > 1.5 && first < 4);
    double last = train_digits(C_DIGITS, 60, &mean);
    assert_true(last < 0.3 * first);
    assert_true(mean != 0);
    assert_true(train_digits(C_DIGITS, 60, &again) == last && again == mean);
}

/* One step over x = 1 .. 8 as [8,1]: mean 4.5, unbiased variance 6. */
static void test_batch_norm_learns_statistics(void **state)
{
    (void)state;
    ty_model *m = open_text(HEAD "void model(ty_net *net)\n{\n    ty_var x = ty_input(net, \"x\", \"f32[batch,1]\");\n"
                                 "    x = ty_batch_norm(net, \"bn\", x, .momentum = 0.25);\n"
                                 "    ty_var seen = ty_buffer(net, \"seen\", ty_dims(), ty_filled(3));\n"
                                 "    ty_update(net, seen, ty_shift(net, seen, 2));\n"
                                 "    ty_output(net, \"y\", ty_mul(net, x, x));\n}\n");
    ty_loss_term loss = {.kind = TY_LOSS_MEAN, .output = "y", .weight = 1};
    ty_binding in = {"x", ty_type_make(TY_F32, 2, (int64_t[]){8, 1})};
    ty_train_spec spec = {.inputs = &in,
                          .n_inputs = 1,
                          .loss = &loss,
                          .n_loss = 1,
                          .accumulate = 1,
                          .batch_norm_statistics = true,
                          .optimizer = {.kind = TY_OPT_SGD, .lr = 0.1}};
    ty_compile_options opt = {.backend = TY_BACKEND_INTERPRETER};
    ty_error err = {0};
    ty_program *p;
    if (ty_compile_train(m, &spec, &opt, &p, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    float x[] = {1, 2, 3, 4, 5, 6, 7, 8};
    assert_int_equal(ty_program_run(p, TY_RUN_LAST, (const void *[]){x}, &err), 0);
    static const struct {
        const char *name;
        double value;
    } rows[] = {{"bn.running_mean", 0.25 * 4.5}, {"bn.running_var", 0.75 + 0.25 * 6}, {"seen", 5}};
    int found = 0;
    for (int i = 0; i < ty_program_n_tensors(p); i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            const char *name;
            bool trained;
            ty_tensor t = ty_program_tensor(p, i, &name, &trained);
            if (strcmp(name, rows[k].name) != 0)
                continue;
            found++;
            if (fabs(*(float *)t.data - rows[k].value) > 1e-5)
                fail_msg("%s is %g, expected %g", name, *(float *)t.data, rows[k].value);
        }
    assert_int_equal(found, 3);
    ty_program_free(p);
    ty_model_free(m);
}

/* ---- every operator --------------------------------------------------------------------------------------------- */

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
    ty_binding in[5];
    for (int i = 0; i < 5; i++) {
        const ty_model_value *d = ty_model_input(model, i);
        in[i] = (ty_binding){d->name, ty_type_make(d->dtype, d->rank, d->dim)};
    }
    ty_compile_options opt = {.backend = backend, .threads = 1};
    ty_error err = {0};
    ty_program *p;
    if (ty_compile_infer(model, in, 5, &opt, &p, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
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

/* ---- weights ---------------------------------------------------------------------------------------------------- */

#define NET(body)                                                                                    \
    HEAD "void model(ty_net *net)\n{\n    ty_var x = ty_input(net, \"x\", \"f32[batch,4]\");\n" body \
         "    ty_output(net, \"y\", x);\n}\n"

static const ty_model_value *weight_named(const ty_model *m, const char *name)
{
    for (int i = 0; i < ty_model_n_weights(m); i++)
        if (strcmp(ty_model_weight(m, i)->name, name) == 0)
            return ty_model_weight(m, i);
    fail_msg("no weight %s", name);
    return NULL;
}

static void moments(const ty_model *m, const char *name, double *mean, double *deviation, double *largest)
{
    const ty_model_value *w = weight_named(m, name);
    const float *data = w->data;
    int64_t n = w->dim[0] * w->dim[1];
    double sum = 0, square = 0;
    *largest = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += data[i];
        square += (double)data[i] * data[i];
        *largest = fmax(*largest, fabs(data[i]));
    }
    *mean = sum / (double)n;
    *deviation = sqrt(square / (double)n - *mean * *mean);
}

static void test_initializers(void **state)
{
    (void)state;
    static const struct {
        const char *init;
        double mean, deviation, largest;
    } rows[] = {{"ty_uniform(1, 3)", 2, 1 / sqrt(3), 3},
                {"ty_normal(-1, 0.5)", -1, 0.5, 4},
                {"ty_kaiming_uniform()", 0, sqrt(2. / 50), sqrt(6. / 50)},
                {"ty_kaiming_normal()", 0, sqrt(2. / 50), 1.3},
                {"ty_xavier_uniform(2)", 0, 2 * sqrt(2. / 250), 2 * sqrt(6. / 250)},
                {"ty_xavier_normal(1)", 0, sqrt(2. / 250), 0.6},
                {"ty_filled(3)", 3, 0, 3},
                {"ty_ones()", 1, 0, 1},
                {"ty_zeros()", 0, 0, 0}};
    ty_buf text;
    ty_buf_init(&text, 1 << 16);
    ty_buf_adds(&text, HEAD "void model(ty_net *net)\n{\n    ty_var x = ty_input(net, \"x\", \"f32[]\");\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ty_buf_addf(&text, "    ty_parameter(net, \"w%zu\", ty_dims(200, 50), %s);\n", i, rows[i].init);
    ty_buf_adds(&text, "    ty_output(net, \"y\", x);\n}\n");
    ty_model *m = open_text(text.data);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[16];
        double mean, deviation, largest;
        snprintf(name, sizeof name, "w%zu", i);
        moments(m, name, &mean, &deviation, &largest);
        if (fabs(mean - rows[i].mean) > 0.03 || fabs(deviation - rows[i].deviation) > 0.03 * rows[i].deviation + 1e-9 ||
            largest > rows[i].largest * 1.000001)
            fail_msg("%s: mean %g, deviation %g, largest %g", rows[i].init, mean, deviation, largest);
    }
    ty_model_free(m);
    ty_buf_fini(&text);
}

/* A weight's start depends on seed and name alone, not on what else there is. */
static void test_start_is_a_function_of_the_name(void **state)
{
    (void)state;
    ty_model *a = open_text(NET("    x = ty_linear(net, \"b\", x, 4);\n"));
    float first[16];
    memcpy(first, weight_named(a, "b.weight")->data, sizeof first);
    assert_true(fabsf(first[0]) <= 0.5f && first[0] != first[1]);
    ty_model_free(a);
    ty_model *b = open_text(NET("    x = ty_linear(net, \"b\", ty_linear(net, \"a\", x, 4), 4);\n"));
    assert_memory_equal(weight_named(b, "b.weight")->data, first, sizeof first);
    assert_memory_not_equal(weight_named(b, "a.weight")->data, first, sizeof first);
    ty_model_free(b);
    ty_model *c = open_text(NET("    ty_seed(net, 2);\n    x = ty_linear(net, \"b\", x, 4);\n"));
    assert_memory_not_equal(weight_named(c, "b.weight")->data, first, sizeof first);
    ty_model_free(c);
}

static void test_scopes_and_sharing(void **state)
{
    (void)state;
    ty_model *m = open_text(NET("    for (int i = 0; i < 2; i++) {\n"
                                "        ty_scope(net, ty_text(net, \"layers.%d\", i));\n"
                                "        x = ty_linear(net, \"fc\", x, 4, .no_bias = true);\n"
                                "        x = ty_linear(net, \"fc\", x, 4, .no_bias = true);\n"
                                "        ty_end(net);\n    }\n"
                                "    x = ty_linear(net, \"last\", x, 4);\n"));
    assert_int_equal(ty_model_n_weights(m), 4);
    weight_named(m, "layers.0.fc.weight");
    weight_named(m, "layers.1.fc.weight");
    weight_named(m, "last.bias");
    ty_model_free(m);
}

static void test_writes_its_source(void **state)
{
    (void)state;
    static const char text[] = NET("    x = ty_relu(net, x); /* kept */\n");
    ty_model *m = open_text(text);
    ty_buf back;
    ty_buf_init(&back, 1 << 16);
    assert_int_equal(ty_model_write(m, in_folder("out.c"), NULL, NULL, NULL), 0);
    assert_int_equal(ty_file_read(in_folder("out.c"), &back, NULL), 0);
    assert_string_equal(back.data, text);
    ty_buf_fini(&back);
    ty_model_free(m);
}

/* ---- mistakes --------------------------------------------------------------------------------------------------- */

typedef struct mistake {
    const char *text;
    ty_code code;
    int line;            /* of the place; 0: the file alone */
    const char *message; /* part of it */
} mistake;

static const mistake mistakes[] = {
    {NET("    x = ty_relu(net, y);\n"), TY_E_MODEL_FILE, 5, "undeclared"},
    {NET("    x = ty_relu(net, 3);\n"), TY_E_MODEL_FILE, 5, "incompatible type"},
    {"int model(int x)\n{\n    return x\n}\n", TY_E_MODEL_FILE, 3, "expected"},
    {HEAD "void model(ty_net *net)\n{\n    extern void absent(ty_net *);\n    absent(net);\n}\n", TY_E_MODEL_FILE, 0,
     "absent"},
    {HEAD "void build(ty_net *net)\n{\n    (void)net;\n}\n", TY_E_MODEL_FILE, 0, "no function model"},
    {"void model(void *net)\n{\n    (void)net;\n}\n", TY_E_MODEL_FILE, 0, "no function model"},
    {"__attribute__((visibility(\"default\"))) void model(void *net)\n{\n    (void)net;\n}\n", TY_E_MODEL_FILE, 0,
     "version"},
    {"#include <trainyard/absent.h>\n", TY_E_MODEL_FILE, 1, "absent.h"},
    {HEAD "void model(ty_net *net)\n{\n    ty_input(net, \"x\", \"f32[4]\");\n}\n", TY_E_MODEL_FILE, 0, "no output"},
    {HEAD "void model(ty_net *net)\n{\n    ty_output(net, \"x\", ty_number(net, \"f32\", 1));\n}\n", TY_E_MODEL_FILE, 0,
     "no input"},
    {NET("    x = ty_add(net, x, ty_full(net, \"f32\", ty_dims(3), 1));\n"), TY_E_SHAPE, 5, "ty_add"},
    {NET("    ty_var z = {0};\n    x = ty_add(net,\n               x, z);\n"), TY_E_GRAPH, 6,
     "variable 2 has no value"},
    {NET("    ty_input(net, \"x\", \"f32[2]\");\n"), TY_E_GRAPH, 5, "twice"},
    {NET("    ty_output(net, \"y\", x);\n"), TY_E_GRAPH, 6, "twice"},
    {NET("    ty_input(net, \"z\", \"f33[2]\");\n"), TY_E_TYPE, 5, "f33"},
    {NET("    ty_input(net, \"z\", \"f32[2,]\");\n"), TY_E_TYPE, 5, "f32[2,]"},
    {NET("    ty_input(net, \"z\", \"f32[2\");\n"), TY_E_TYPE, 5, "f32[2"},
    {NET("    ty_input(net, \"z\", \"f32[-2]\");\n"), TY_E_TYPE, 5, "f32[-2]"},
    {NET("    ty_input(net, \"z\", \"f32[1,1,1,1,1,1,1,1,1]\");\n"), TY_E_TYPE, 5, "expected a type"},
    {NET("    ty_input(net, \"z\", \"f32[9999999999,9999999999]\");\n"), TY_E_SHAPE, 5, "too large"},
    {NET("    ty_input(net, \"a b\", \"f32[2]\");\n"), TY_E_GRAPH, 5, "blank"},
    {NET("    x = ty_reshape(net, x, ty_dims(3, -1));\n    x = ty_reshape(net, x, ty_dims(5, -1));\n"), TY_E_SHAPE, 5,
     "do not fill"},
    {NET("    x = ty_transpose(net, x, ty_dims(0, 0));\n"), TY_E_ATTRIBUTE, 5, "permutation"},
    {NET("    x = ty_softmax(net, x, 2);\n"), TY_E_ATTRIBUTE, 5, "axis 2"},
    {NET("    ty_dim(net, x, 2);\n"), TY_E_MODEL_FILE, 5, "axis"},
    {NET("    x = ty_conv(net, \"c\", x, 1, 3);\n"), TY_E_SHAPE, 5, "3 to 5 axes"},
    {NET("    x = ty_conv(net, \"c\", ty_reshape(net, x, ty_dims(0, 1, 4)), 1, 0);\n"), TY_E_ATTRIBUTE, 5, "kernels"},
    {NET("    x = ty_conv(net, \"c\", ty_reshape(net, x, ty_dims(0, 2, 2)), 3, 1, .groups = 2);\n"), TY_E_ATTRIBUTE, 5,
     "groups"},
    {NET("    x = ty_dropout(net, x, 1);\n"), TY_E_ATTRIBUTE, 5, "outside [0, 1)"},
    {NET("    x = ty_linear(net, \"a\", x, 4);\n    x = ty_linear(net, \"a\", x, 5);\n"), TY_E_SHAPE, 6, "a.weight"},
    {NET("    x = ty_linear(net, \"a\", x, 0);\n"), TY_E_ATTRIBUTE, 5, "at least 1"},
    {NET("    ty_scope(net, \"a\");\n"), TY_E_GRAPH, 6, "not ended"},
    {NET("    ty_end(net);\n"), TY_E_GRAPH, 5, "without ty_scope"},
    {NET("    ty_update(net, x, x);\n"), TY_E_GRAPH, 5, "only a buffer"},
    {NET("    x = ty_cast(net, x, \"float33\");\n"), TY_E_TYPE, 5, "float33"},
    {NET("    ty_fail(net, \"width %d\", (int)ty_dim(net, x, 1));\n"), TY_E_MODEL_FILE, 5, "width 4"},
    {NET("    if (ty_training(net))\n        x = ty_linear(net, \"a\", x, 4);\n"
         "    else\n        x = ty_linear(net, \"b\", x, 4);\n"),
     TY_E_MODEL_FILE, 0, "\"b.weight\" differs"},
    {NET("    if (ty_training(net))\n        ty_output(net, \"more\", x);\n"), TY_E_MODEL_FILE, 0, "differs"},
    {NET("    if (!ty_training(net))\n        ty_random(net, ty_dims(4));\n"), TY_E_UNSUPPORTED, 6, "training only"},
    {NET("    x = ty_linear(net, \"a\", x, 4);\n    *(volatile int *)0 = 1;\n"), TY_E_MODEL_FILE, 5,
     "crashed: signal 11"},
    {HEAD "#include <stdlib.h>\nvoid model(ty_net *net)\n{\n    (void)net;\n    exit(0);\n}\n", TY_E_MODEL_FILE, 0,
     "ended its process"},
};

static void check_mistake(const mistake *t)
{
    char place[420];
    ty_error err = {0};
    ty_model *m = NULL;
    const char *path = write_text("model.c", t->text);
    if (ty_model_open(path, &m, &err) == 0)
        fail_msg("accepted:\n%s", t->text);
    assert_null(m);
    snprintf(place, sizeof place, t->line ? "%s:%d" : "%s", path, t->line);
    size_t n = strlen(place);
    if (err.code != t->code || strncmp(err.place, place, n) != 0 || (err.place[n] && err.place[n] != ':') ||
        (!strstr(err.message, t->message) && !strstr(err.detail, t->message)))
        fail_msg("%s\nE%04d at \"%s\": %s\n%s\nexpected E%04d at \"%s\" with \"%s\"", t->text, err.code, err.place,
                 err.message, err.detail, t->code, place, t->message);
}

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        check_mistake(&mistakes[i]);
}

/* The user's own line is shown. */
static void test_shows_the_line(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_model *m;
    assert_int_equal(ty_model_open(write_text("model.c", NET("    x = ty_softmax(net, x, 7);\n")), &m, &err), -1);
    assert_non_null(strstr(err.detail, "5 |     x = ty_softmax(net, x, 7);"));
}

static void write_program(const char *name, const char *text)
{
    assert_int_equal(chmod(write_text(name, text), 0755), 0);
}

static void test_compiler_troubles(void **state)
{
    (void)state;
    cmodel_object o;
    ty_error err = {0};
    char cc[400];
    const char *path = write_text("model.c", NET(""));
    assert_int_equal(cmodel_load(path, "/absent/cc", 5000, &o, &err), -1);
    assert_int_equal(err.code, TY_E_COMPILER);
    write_program("slow", "#!/bin/sh\nsleep 30 &\nsleep 30\n");
    snprintf(cc, sizeof cc, "%s/slow", folder);
    assert_int_equal(cmodel_load(path, cc, 200, &o, &err), -1);
    assert_int_equal(err.code, TY_E_COMPILER);
    assert_non_null(strstr(err.message, "did not end within 0.2 s"));
    write_program("dies", "#!/bin/sh\nkill -9 $$\n");
    snprintf(cc, sizeof cc, "%s/dies", folder);
    assert_int_equal(cmodel_load(path, cc, 5000, &o, &err), -1);
    assert_non_null(strstr(err.message, "signal 9"));
}

/* Files that are no safetensors, or not of this model. */
static void refuse_weights(const void *bytes, size_t n, const char *message)
{
    ty_error err = {0};
    ty_model *m;
    assert_int_equal(ty_file_write(in_folder("model.safetensors"), bytes, n, 0644, NULL), 0);
    if (ty_model_open(write_text("model.c", NET("    x = ty_linear(net, \"a\", x, 2, .no_bias = true);\n")), &m,
                      &err) == 0)
        fail_msg("accepted: %s", message);
    if (!strstr(err.message, message))
        fail_msg("%s\nexpected: %s", err.message, message);
}

static void refuse_header(const char *json, size_t n_data, const char *message)
{
    char bytes[512] = {0};
    bytes[0] = (char)strlen(json);
    memcpy(bytes + 8, json, strlen(json));
    refuse_weights(bytes, 8 + strlen(json) + n_data, message);
}

static void test_damaged_weights(void **state)
{
    (void)state;
    refuse_weights("", 0, "within 0 bytes");
    refuse_weights("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "within 10 bytes");
    refuse_header("[]", 0, "expected map");
    refuse_header("{\"z\":{}}", 0, "no weight \"z\"");
    refuse_header("{\"a.weight\":{}}", 0, "expected dtype and shape");
    refuse_header("{\"a.weight\":{\"dtype\":\"F16\",\"shape\":[2,4],\"data_offsets\":[0,16]}}", 16, "expected F32");
    refuse_header("{\"a.weight\":{\"dtype\":\"F32\",\"shape\":[4,2],\"data_offsets\":[0,32]}}", 32,
                  "f32[2,4] in the source");
    refuse_header("{\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[0,32]}}", 31, "within 31");
    refuse_header("{\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[-32,0]}}", 32, "within 32");
    refuse_header("{\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2,4]}}", 32, "data_offsets");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lists_as_onnx, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_same_numbers_as_onnx, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_trains, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_batch_norm_learns_statistics, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_operators, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_operators_compiled, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_initializers, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_start_is_a_function_of_the_name, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_scopes_and_sharing, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_writes_its_source, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_mistakes, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_shows_the_line, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_compiler_troubles, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_damaged_weights, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
