/* What an export has lost is told, with the node; what has lost nothing is left alone. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/onnx_model.h"

static void begin(model_text *m)
{
    model_begin(m, 18);
    model_input(m, "x", 1, 4, (int64_t[]){1, 1, 3, 3});
    model_output(m, "y", 1);
}

static void weights(model_text *m, const char *name, int rank)
{
    model_floats(m, name, rank, (int64_t[]){1, 1, 1, 1}, (float[]){1});
}

/* Exactly one warning that holds `text`, or none if it is NULL. */
static void expect_warning(model_text *m, const char *text)
{
    ty_onnx *o = model_open(m);
    ty_arena arena;
    ty_onnx_warning list[TY_ONNX_MAX_WARNINGS];
    ty_arena_init(&arena);
    int n = ty_onnx_warnings(o, &arena, list);
    if (n != (text != NULL))
        fail_msg("%d warnings: %s", n, n ? list[0].text : "");
    if (text && !strstr(list[0].text, text))
        fail_msg("expected \"%s\" in \"%s\"", text, list[0].text);
    if (text)
        assert_non_null(strstr(list[0].help, "export"));
    ty_arena_fini(&arena);
    ty_onnx_free(o);
    ty_buf_fini(&m->file);
}

static void test_folded(void **state)
{
    (void)state;
    model_text m;
    begin(&m);
    weights(&m, "onnx::Conv_12", 4);
    weights(&m, "onnx::Conv_13", 1);
    model_node(&m, "Conv", "x,onnx::Conv_12,onnx::Conv_13", "y", "/conv1/Conv");
    expect_warning(&m, "folded into convolutions and is not trained as such: node #0 \"/conv1/Conv\" (Conv)");
    begin(&m);
    weights(&m, "w", 4);
    weights(&m, "stem/bn/FusedBatchNormV3", 1);
    model_node(&m, "Conv", "x,w,stem/bn/FusedBatchNormV3", "y", "stem");
    expect_warning(&m, "folded");
}

static void test_nothing_lost(void **state)
{
    (void)state;
    model_text m;
    begin(&m);
    weights(&m, "conv1.weight", 4);
    weights(&m, "conv1.bias", 1);
    for (int i = 0; i < 4; i++)
        weights(&m, (const char *[]){"scale", "bias", "mean", "var"}[i], 1);
    model_floats(&m, "ratio", 0, NULL, (float[]){0.5f});
    model_node(&m, "Conv", "x,conv1.weight,conv1.bias", "a", "");
    model_node(&m, "BatchNormalization", "a,scale,bias,mean,var", "b", "");
    model_node(&m, "Dropout", "b,ratio", "y", "");
    expect_warning(&m, NULL);
}

static void test_statistics(void **state)
{
    (void)state;
    model_text m;
    begin(&m);
    for (int i = 0; i < 3; i++)
        weights(&m, (const char *[]){"scale", "bias", "var"}[i], 1);
    model_ints(&m, "shape", 1, (int64_t[]){1});
    model_node(&m, "ConstantOfShape", "shape", "mean", "");
    model_node(&m, "BatchNormalization", "x,scale,bias,mean,var", "y", "bn");
    expect_warning(&m, "running statistics of batch norm are no initializers and are not updated: node #1 \"bn\"");
}

static void test_dropout(void **state)
{
    (void)state;
    model_text m;
    begin(&m);
    model_floats(&m, "ratio", 0, NULL, (float[]){0});
    model_node(&m, "Dropout", "x,ratio", "a", "drop1");
    model_node(&m, "Dropout", "a,ratio", "y", "drop2");
    expect_warning(&m, "dropout with ratio 0 drops nothing: node #0 \"drop1\" (Dropout) and 1 more");
    begin(&m);
    model_node(&m, "Identity", "x", "y", "/encoder/Dropout/Identity");
    expect_warning(&m, "dropout was taken out");
}

static void test_constant_weights(void **state)
{
    (void)state;
    model_text m;
    begin(&m);
    model_ints(&m, "shape", 4, (int64_t[]){1, 1, 1, 1});
    model_node(&m, "ConstantOfShape", "shape", "w", "");
    model_node(&m, "Conv", "x,w", "y", "c");
    expect_warning(&m, "weights made by nodes are constants and are not trained: node #1 \"c\" (Conv)");
}

static void layer_norm(model_text *m, const char *in, const char *scale, const char *out, const char *module)
{
    char inputs[64], place[64];
    snprintf(inputs, sizeof inputs, "%s,%s", in, scale);
    snprintf(place, sizeof place, ": Net/%s: LayerNorm/mul: aten.mul", module);
    node_metadata(m, "namespace", place);
    model_node(m, "Mul", inputs, out, "");
}

static void begin_marked(model_text *m, const float *scale)
{
    begin(m);
    model_floats(m, "norm1.weight", 1, (int64_t[]){3}, scale);
    model_kind(m, "norm1.weight", "PARAMETER");
}

/* Equal weights of two modules; of one module that is used twice; of two that share a weight that was learnt. */
static void test_merged(void **state)
{
    (void)state;
    model_text m;
    const float ones[] = {1, 1, 1}, learnt[] = {1, 1, 2};
    begin_marked(&m, ones);
    layer_norm(&m, "x", "norm1.weight", "a", "norm1");
    layer_norm(&m, "a", "norm1.weight", "y", "norm2");
    expect_warning(&m, "are one in the file and trained as one: \"norm1.weight\"");
    begin_marked(&m, ones);
    layer_norm(&m, "x", "norm1.weight", "a", "norm1");
    layer_norm(&m, "a", "norm1.weight", "y", "norm1");
    expect_warning(&m, NULL);
    begin_marked(&m, learnt);
    layer_norm(&m, "x", "norm1.weight", "a", "norm1");
    layer_norm(&m, "a", "norm1.weight", "y", "norm2");
    expect_warning(&m, NULL);
}

static void test_folded_tables(void **state)
{
    (void)state;
    model_text m;
    const float ones[] = {1, 1, 1}, cosines[] = {1, 0.5f, 0};
    begin_marked(&m, ones);
    model_floats(&m, "unsqueeze_14", 1, (int64_t[]){3}, cosines);
    layer_norm(&m, "x", "norm1.weight", "a", "norm1");
    layer_norm(&m, "a", "unsqueeze_14", "y", "rotary");
    expect_warning(&m, "does not call parameters, of folded weights perhaps, are trained: \"unsqueeze_14\"");
    begin_marked(&m, ones);
    model_floats(&m, "cosines", 1, (int64_t[]){3}, cosines);
    model_kind(&m, "cosines", "BUFFER");
    layer_norm(&m, "x", "norm1.weight", "a", "norm1");
    layer_norm(&m, "a", "cosines", "y", "rotary");
    expect_warning(&m, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folded),           cmocka_unit_test(test_nothing_lost),
        cmocka_unit_test(test_statistics),       cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_constant_weights), cmocka_unit_test(test_merged),
        cmocka_unit_test(test_folded_tables),
    };
    return cmocka_run_group_tests_name("onnx_warn", tests, NULL, NULL);
}
