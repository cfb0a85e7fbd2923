/* Every operator of the three tiers that exporters emit or training files hold has a row, from the schema that is in
 * force at opset 7 (or from its first one, if later) on: A what vision, language and tabular models need, B what makes
 * most others work, C the rest of the elementwise and reducing operators. Versions are those of the onnx package. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/import/onnx_import.h"

#include <string.h>

static const struct {
    const char *op, *domain;
    char tier;
    int since;
} listed[] = {
    {"Add", "", 'A', 7},
    {"Sub", "", 'A', 7},
    {"Mul", "", 'A', 7},
    {"Div", "", 'A', 7},
    {"Neg", "", 'A', 6},
    {"Pow", "", 'A', 7},
    {"Sqrt", "", 'A', 6},
    {"Exp", "", 'A', 6},
    {"Log", "", 'A', 6},
    {"Relu", "", 'A', 6},
    {"Sigmoid", "", 'A', 6},
    {"Tanh", "", 'A', 6},
    {"Erf", "", 'A', 9},
    {"Softmax", "", 'A', 1},
    {"LogSoftmax", "", 'A', 1},
    {"MatMul", "", 'A', 1},
    {"Gemm", "", 'A', 7},
    {"Conv", "", 'A', 1},
    {"MaxPool", "", 'A', 1},
    {"AveragePool", "", 'A', 7},
    {"GlobalAveragePool", "", 'A', 1},
    {"BatchNormalization", "", 'A', 7},
    {"LayerNormalization", "", 'A', 17},
    {"Dropout", "", 'A', 7},
    {"Reshape", "", 'A', 5},
    {"Transpose", "", 'A', 1},
    {"Concat", "", 'A', 4},
    {"Split", "", 'A', 2},
    {"Slice", "", 'A', 1},
    {"Squeeze", "", 'A', 1},
    {"Unsqueeze", "", 'A', 1},
    {"Flatten", "", 'A', 1},
    {"Expand", "", 'A', 8},
    {"Gather", "", 'A', 1},
    {"Cast", "", 'A', 6},
    {"Where", "", 'A', 9},
    {"Identity", "", 'A', 1},
    {"Constant", "", 'A', 1},
    {"ConstantOfShape", "", 'A', 9},
    {"Shape", "", 'A', 1},
    {"ReduceMean", "", 'A', 1},
    {"ReduceSum", "", 'A', 1},
    {"ReduceMax", "", 'A', 1},
    {"Clip", "", 'A', 6},
    {"Equal", "", 'A', 7},
    {"Sum", "", 'A', 6},
    {"Gelu", "", 'B', 20},
    {"Attention", "", 'B', 23},
    {"RMSNormalization", "", 'B', 23},
    {"RotaryEmbedding", "", 'B', 23},
    {"ConvTranspose", "", 'B', 1},
    {"Resize", "", 'B', 10},
    {"Pad", "", 'B', 2},
    {"Tile", "", 'B', 6},
    {"Range", "", 'B', 11},
    {"Trilu", "", 'B', 14},
    {"OneHot", "", 'B', 9},
    {"CumSum", "", 'B', 11},
    {"Greater", "", 'B', 7},
    {"Less", "", 'B', 7},
    {"GreaterOrEqual", "", 'B', 12},
    {"LessOrEqual", "", 'B', 12},
    {"Not", "", 'B', 1},
    {"And", "", 'B', 7},
    {"Or", "", 'B', 7},
    {"Xor", "", 'B', 7},
    {"Min", "", 'B', 6},
    {"Max", "", 'B', 6},
    {"Mod", "", 'B', 10},
    {"Abs", "", 'B', 6},
    {"Sign", "", 'B', 9},
    {"Reciprocal", "", 'B', 6},
    {"Floor", "", 'B', 6},
    {"Ceil", "", 'B', 6},
    {"Round", "", 'B', 11},
    {"Sin", "", 'B', 7},
    {"Cos", "", 'B', 7},
    {"LeakyRelu", "", 'B', 6},
    {"PRelu", "", 'B', 7},
    {"Elu", "", 'B', 6},
    {"Selu", "", 'B', 6},
    {"HardSigmoid", "", 'B', 6},
    {"HardSwish", "", 'B', 14},
    {"Swish", "", 'B', 24},
    {"Mish", "", 'B', 18},
    {"Softplus", "", 'B', 1},
    {"InstanceNormalization", "", 'B', 6},
    {"GroupNormalization", "", 'B', 18},
    {"ReduceMin", "", 'B', 1},
    {"ReduceL2", "", 'B', 1},
    {"ReduceSumSquare", "", 'B', 1},
    {"ReduceLogSumExp", "", 'B', 1},
    {"ArgMax", "", 'B', 1},
    {"TopK", "", 'B', 1},
    {"GatherElements", "", 'B', 11},
    {"ScatterND", "", 'B', 11},
    {"ScatterElements", "", 'B', 11},
    {"Einsum", "", 'B', 12},
    {"CastLike", "", 'B', 15},
    {"Mean", "", 'B', 6},
    {"IsNaN", "", 'B', 9},
    {"LSTM", "", 'B', 7},
    {"SoftmaxCrossEntropyLoss", "", 'B', 12},
    {"NegativeLogLikelihoodLoss", "", 'B', 12},
    {"Adam", "ai.onnx.preview.training", 'B', 1},
    {"Adagrad", "ai.onnx.preview.training", 'B', 1},
    {"Momentum", "ai.onnx.preview.training", 'B', 1},
    {"GRU", "", 'C', 7},
    {"RNN", "", 'C', 7},
    {"GlobalMaxPool", "", 'C', 1},
    {"LpPool", "", 'C', 2},
    {"LRN", "", 'C', 1},
    {"LpNormalization", "", 'C', 1},
    {"MeanVarianceNormalization", "", 'C', 9},
    {"DepthToSpace", "", 'C', 1},
    {"SpaceToDepth", "", 'C', 1},
    {"GatherND", "", 'C', 11},
    {"Scatter", "", 'C', 9},
    {"EyeLike", "", 'C', 9},
    {"Size", "", 'C', 1},
    {"ReduceProd", "", 'C', 1},
    {"ReduceL1", "", 'C', 1},
    {"ReduceLogSum", "", 'C', 1},
    {"ArgMin", "", 'C', 1},
    {"Softsign", "", 'C', 1},
    {"Celu", "", 'C', 12},
    {"ThresholdedRelu", "", 'C', 10},
    {"Shrink", "", 'C', 9},
    {"Hardmax", "", 'C', 1},
    {"SwiGLU", "", 'C', 28},
    {"Acos", "", 'C', 7},
    {"Acosh", "", 'C', 9},
    {"Asin", "", 'C', 7},
    {"Asinh", "", 'C', 9},
    {"Atan", "", 'C', 7},
    {"Atanh", "", 'C', 9},
    {"Cosh", "", 'C', 9},
    {"Sinh", "", 'C', 9},
    {"Tan", "", 'C', 7},
    {"IsInf", "", 'C', 10},
    {"BitwiseAnd", "", 'C', 18},
    {"BitwiseOr", "", 'C', 18},
    {"BitwiseXor", "", 'C', 18},
    {"BitwiseNot", "", 'C', 18},
    {"BitShift", "", 'C', 11},
    {"CumProd", "", 'C', 26},
    {"ReverseSequence", "", 'C', 10},
    {"Upsample", "", 'C', 7},
    {"Det", "", 'C', 11},
};

static const onnx_op_row *find(const char *domain, const char *op)
{
    int n;
    const onnx_op_row *rows = onnx_op_rows(&n);
    for (int i = 0; i < n; i++)
        if (strcmp(rows[i].domain, domain) == 0 && strcmp(rows[i].op_type, op) == 0)
            return &rows[i];
    return NULL;
}

static void test_every_listed_operator_has_a_row(void **state)
{
    (void)state;
    int failed = 0;
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        const onnx_op_row *row = find(listed[i].domain, listed[i].op);
        if (row && row->since <= listed[i].since)
            continue;
        failed++;
        if (row)
            print_message("tier %c: %s is imported from opset %d, and there is one of %d\n", listed[i].tier,
                          listed[i].op, (int)row->since, listed[i].since);
        else
            print_message("tier %c: %s has no row\n", listed[i].tier, listed[i].op);
    }
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_listed_operator_has_a_row)};
    return cmocka_run_group_tests_name("onnx_tiers", tests, NULL, NULL);
}
