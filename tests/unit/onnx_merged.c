/* Weights that PyTorch's exporter has merged are on their own again: listed, trained apart, written as such. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/onnx_model.h"

#include <stdlib.h>

static const float ones[] = {1, 1}, twos[] = {2, 2}, threes[] = {3, 3};

/* y = x * norm1.weight * (a weight of the same value, by an Identity that is called `name`) */
static void begin(model_text *t, const char *producer, const char *name)
{
    char inputs[64];
    model_begin(t, 17);
    put_text(&t->file, 2, producer);
    model_input(t, "x", 1, SHAPE(2));
    model_floats(t, "norm1.weight", SHAPE(2), ones);
    model_node(t, "Identity", "norm1.weight", name, "Identity_0");
    model_node(t, "Mul", "x,norm1.weight", "a", "");
    snprintf(inputs, sizeof inputs, "a,%s", name);
    model_node(t, "Mul", inputs, "y", "");
    model_output(t, "y", 1);
}

static void end(model_text *t, ty_onnx *m)
{
    ty_onnx_free(m);
    ty_buf_fini(&t->file);
}

static void expect_merged(model_text *t, int n)
{
    ty_onnx *m = model_open(t);
    assert_int_equal(ty_onnx_n_merged(m), n);
    assert_int_equal(ty_onnx_n_initializers(m), 1 + n);
    end(t, m);
}

static void test_what_is_one(void **state)
{
    (void)state;
    model_text t;
    begin(&t, "pytorch", "norm2.weight");
    expect_merged(&t, 1);
    begin(&t, "pytorch", "0.weight");
    expect_merged(&t, 1);
    begin(&t, "pytorch", "norm2.weight"); /* the first is written as such, so that the second would be one by then */
    model_node(&t, "Identity", "norm2.weight", "norm3.weight", "");
    expect_merged(&t, 2);
    begin(&t, "tf2onnx", "norm2.weight"); /* others write Identity for other reasons */
    expect_merged(&t, 0);
    begin(&t, "pytorch", "/norm2/Identity_output_0"); /* no parameters, but values of the exporter's */
    expect_merged(&t, 0);
    begin(&t, "pytorch", "17");
    expect_merged(&t, 0);
    begin(&t, "pytorch", "norm2.weight"); /* a weight, and a result */
    model_output(&t, "norm2.weight", 1);
    expect_merged(&t, 0);
    begin(&t, "pytorch", "norm2.weight"); /* two values of a name: refused when it is imported */
    model_input(&t, "norm2.weight", 1, SHAPE(2));
    expect_merged(&t, 0);
    begin(&t, "pytorch", "norm2.weight"); /* made for training: what is merged lies in the same memory */
    model_node(&t, "Dropout", "y", "z", "");
    expect_merged(&t, 0);
    begin(&t, "pytorch", "norm2.weight");
    model_node(&t, "BatchNormalization", "y,norm1.weight,norm1.weight,norm1.weight,norm1.weight", "z,mean,var", "");
    expect_merged(&t, 0);
}

static void test_integers_stay(void **state)
{
    (void)state;
    model_text t;
    model_begin(&t, 17);
    put_text(&t.file, 2, "pytorch");
    model_ints(&t, "one.table", 2, (int64_t[]){1, 2});
    model_node(&t, "Identity", "one.table", "other.table", "");
    model_output(&t, "y", 7);
    model_node(&t, "Neg", "other.table", "y", "");
    expect_merged(&t, 0);
}

/* Running statistics begin as the biases do. */
static void test_statistics(void **state)
{
    (void)state;
    model_text t;
    model_begin(&t, 17);
    put_text(&t.file, 2, "pytorch");
    model_input(&t, "x", 1, SHAPE(3, 2));
    model_floats(&t, "bn.bias", SHAPE(2), ones);
    model_node(&t, "Identity", "bn.bias", "bn.running_mean", "");
    model_node(&t, "Identity", "bn.bias", "bn.running_var", "");
    model_node(&t, "BatchNormalization", "x,bn.bias,bn.bias,bn.running_mean,bn.running_var", "y", "");
    model_output(&t, "y", 1);
    ty_onnx *m = model_open(&t);
    assert_int_equal(ty_onnx_n_merged(m), 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ty_onnx_initializer_at(m, i)->is_running, i > 0);
    end(&t, m);
}

/* x * w0 * w1, where the initializers are bound to w0 and w1. */
static void test_apart(void **state)
{
    (void)state;
    model_text t;
    begin(&t, "pytorch", "norm2.weight");
    ty_onnx *m = model_open(&t);
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2));
    ty_val w[] = {new_input(g, TY_F32, SHAPE(2)), new_input(g, TY_F32, SHAPE(2))};
    ty_onnx_binding b = {.mode = TY_ONNX_TRAIN, .inputs = &x, .initializers = w, .seed = TY_NONE, .step = TY_NONE};
    ty_onnx_values values;
    ty_error err = {0};
    if (ty_onnx_import(m, g, &b, &values, &err) < 0)
        fail_msg("%s", err.message);
    const float in[3][2] = {{1, 1}, {2, 3}, {5, 7}};
    expect_floats(g, values.outputs[0], (const void *const[]){in[0], in[1], in[2]}, 2, (const double[]){10, 21});
    ty_graph_free(g);
    end(&t, m);
}

static int sink_add(void *ctx, const void *bytes, size_t n, ty_error *err)
{
    (void)err;
    return ty_buf_add(ctx, bytes, n);
}

static void expect_weights(const ty_onnx *m, const float *first, const float *second)
{
    assert_int_equal(ty_onnx_n_initializers(m), 2);
    assert_int_equal(ty_onnx_n_merged(m), 0);
    assert_int_equal(ty_onnx_n_nodes(m), 2);
    assert_memory_equal(ty_onnx_initializer_at(m, ty_onnx_find_initializer(m, "norm1.weight"))->data, first, 8);
    assert_memory_equal(ty_onnx_initializer_at(m, ty_onnx_find_initializer(m, "norm2.weight"))->data, second, 8);
}

/* With other weights or without, what is written has no Identity, and each weight under its name. */
static void test_written(void **state)
{
    (void)state;
    const struct {
        ty_onnx_payload payload[2];
        int n;
        const float *expected[2];
    } cases[] = {
        {{{0, twos}, {1, threes}}, 2, {twos, threes}},
        {{{0, twos}}, 1, {twos, ones}}, /* a frozen one keeps the value that it shared */
        {{{1, threes}}, 1, {ones, threes}},
        {{{0, NULL}}, 0, {ones, ones}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_text t;
        ty_buf out;
        ty_onnx *again;
        ty_error err = {0};
        begin(&t, "pytorch", "norm2.weight");
        ty_onnx *m = model_open(&t);
        ty_buf_init(&out, 1 << 20);
        assert_int_equal(ty_onnx_write(m, cases[i].payload, cases[i].n, sink_add, &out, &err), 0);
        assert_int_equal(out.len, ty_onnx_written_bytes(m, cases[i].payload, cases[i].n));
        if (ty_onnx_open_memory("again", out.data, out.len, &again, &err) < 0)
            fail_msg("%s: %s", err.place, err.message);
        expect_weights(again, cases[i].expected[0], cases[i].expected[1]);
        ty_onnx_free(again);
        ty_buf_fini(&out);
        end(&t, m);
    }
}

/* Above 1 KiB they go to the second file, each to its own place. */
static void test_written_outside(void **state)
{
    (void)state;
    static float big[3][300];
    model_text t;
    ty_buf out, outside;
    ty_error err = {0};
    for (int i = 0; i < 900; i++)
        big[i / 300][i % 300] = (float)(i / 300);
    model_begin(&t, 17);
    put_text(&t.file, 2, "pytorch");
    model_floats(&t, "a", SHAPE(300), big[0]);
    model_node(&t, "Identity", "a", "b", "");
    model_node(&t, "Add", "a,b", "y", "");
    model_output(&t, "y", 1);
    ty_onnx *m = model_open(&t);
    ty_buf_init(&out, 1 << 20);
    ty_buf_init(&outside, 1 << 20);
    ty_onnx_payload p[] = {{0, big[1]}, {1, big[2]}};
    assert_int_equal(ty_onnx_write_two_files(m, p, 2, "data", sink_add, &out, sink_add, &outside, &err), 0);
    assert_int_equal(outside.len, 4096 + sizeof big[2]);
    assert_memory_equal(outside.data, big[1], sizeof big[1]);
    assert_memory_equal(outside.data + 4096, big[2], sizeof big[2]);
    assert_true(out.len < 700);
    ty_buf_fini(&out);
    ty_buf_fini(&outside);
    end(&t, m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_one), cmocka_unit_test(test_integers_stay),
        cmocka_unit_test(test_statistics),  cmocka_unit_test(test_apart),
        cmocka_unit_test(test_written),     cmocka_unit_test(test_written_outside),
    };
    return cmocka_run_group_tests_name("onnx_merged", tests, NULL, NULL);
}
