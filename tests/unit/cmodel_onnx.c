/* cmodel_onnx.c - operators of ONNX called from a model in C: numbers, results, what is left out, and mistakes. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/import/onnx_call.h"
#include "tests/unit/cmodel_file.h"

#define NONE "(ty_var){0}"

/* y of an expression over m [2,3] = 1 .. 6, d [1,4,1,2] = 0 .. 7, one [1,1,1] = 1; r: results of a call before it. */
static const struct onnx_case {
    const char *before, *expr;
    int n;
    double y[8];
} cases[] = {
    {"",
     "ty_onnx(net, \"Asinh\", ty_vars(m), NULL)",
     6,
     {0.881373587, 1.44363548, 1.81844646, 2.09471255, 2.31243834, 2.49177985}},
    {"",
     "ty_onnx(net, \"Clip\", ty_vars(m, " NONE ", ty_number(net, \"f32\", 2.5)), NULL)",
     6,
     {1, 2, 2.5, 2.5, 2.5, 2.5}},
    {"", "ty_onnx(net, \"Clip\", ty_vars(m, ty_number(net, \"f32\", 2.5)), NULL)", 6, {2.5, 2.5, 3, 4, 5, 6}},
    {"",
     "ty_onnx(net, \"ReduceL2\", ty_vars(m, ty_constant(net, \"i64\", ty_dims(1), (int64_t[]){1})), \"keepdims: 0\")",
     2,
     {3.74165739, 8.77496439}},
    {"", "ty_onnx(net, \"DepthToSpace\", ty_vars(d), \"blocksize: 2, mode: CRD\")", 8, {0, 2, 1, 3, 4, 6, 5, 7}},
    {"", "ty_onnx(net, \"ThresholdedRelu\", ty_vars(m), \"alpha: 3\")", 6, {0, 0, 0, 4, 5, 6}},
    {"", "ty_onnx(net, \"Einsum\", ty_vars(m, m), \"equation: 'ij,kj->ik'\")", 4, {14, 32, 32, 77}},
    {"",
     "ty_onnx(net, \"com.microsoft.FastGelu\", ty_vars(m), NULL)",
     6,
     {0.841191991, 1.95459769, 2.99636261, 3.99992975, 4.99999977, 6}},
    {"ty_onnx_results(net, \"TopK\", ty_vars(m, ty_constant(net, \"i64\", ty_dims(1), (int64_t[]){2})), \"axis: 1\", "
     "r, 2);",
     "ty_add(net, r[0], ty_cast(net, r[1], \"f32\"))",
     4,
     {5, 3, 8, 6}},
    {"ty_onnx_results(net, \"Split\", ty_vars(m), \"axis: 1, num_outputs: 3\", r, 3);",
     "ty_sub(net, r[2], r[0])",
     2,
     {2, 2}},
    /* sigmoid(o) tanh(sigmoid(i) tanh(c)) with the gates i, o, f, c of one step at 0.1, 0.2, 0.3, 0.4 */
    {"ty_var w = ty_constant(net, \"f32\", ty_dims(1, 4, 1), ((float[]){0.1f, 0.2f, 0.3f, 0.4f}));\n"
     "    ty_var u = ty_full(net, \"f32\", ty_dims(1, 4, 1), 0);\n"
     "    ty_onnx_results(net, \"LSTM\", ty_vars(one, w, u), \"hidden_size: 1, activations: [Sigmoid, Tanh, Tanh]\", "
     "r, 3);",
     "r[1]",
     1,
     {0.108241087}},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void add_cases(ty_buf *text)
{
    ty_buf_adds(
        text,
        HEAD "void model(ty_net *net)\n{\n    ty_var r[3], m = ty_input(net, \"m\", \"f32[2,3]\");\n"
             "    ty_var d = ty_input(net, \"d\", \"f32[1,4,1,2]\"), one = ty_input(net, \"one\", \"f32[1,1,1]\");\n");
    for (int i = 0; i < N_CASES; i++)
        ty_buf_addf(text, "    %s\n    ty_output(net, \"y%d\", %s);\n", cases[i].before, i, cases[i].expr);
    ty_buf_adds(text, "}\n");
}

static void check_case(int i, const ty_tensor *y)
{
    assert_int_equal(ty_type_elems(&y->type), cases[i].n);
    for (int k = 0; k < cases[i].n; k++)
        if (!(fabs((double)((const float *)y->data)[k] - cases[i].y[k]) <= 2e-6 * fmax(1, fabs(cases[i].y[k]))))
            fail_msg("%s: element %d is %.9g, expected %.9g", cases[i].expr, k, (double)((const float *)y->data)[k],
                     cases[i].y[k]);
}

static void run_cases(ty_backend backend)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    add_cases(&text);
    ty_model *model = open_text(text.data);
    ty_buf_fini(&text);
    const float m[] = {1, 2, 3, 4, 5, 6}, d[] = {0, 1, 2, 3, 4, 5, 6, 7}, one[] = {1};
    ty_error err = {0};
    ty_program *p = infer_as_declared(model, backend);
    assert_int_equal(ty_program_run(p, TY_RUN_EVAL, (const void *[]){m, d, one}, &err), 0);
    for (int i = 0; i < N_CASES; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", i);
        check_case(i, ty_program_output(p, TY_RUN_EVAL, name));
    }
    ty_program_free(p);
    ty_model_free(model);
}

static void test_numbers(void **state)
{
    (void)state;
    run_cases(TY_BACKEND_INTERPRETER);
}

static void test_numbers_compiled(void **state)
{
    (void)state;
    run_cases(TY_BACKEND_CPU);
}

/* ---- mistakes: what is said, with the line of the call ------------------------------------------------------------
 */

static const struct {
    const char *call, *message, *help;
} mistakes[] = {
    {"ty_onnx(net, \"NotThere\", ty_vars(x), NULL)", "unsupported operator NotThere", ""},
    {"ty_onnx(net, \"org.other.Gelu\", ty_vars(x), NULL)", "imports no operator set \"org.other\"", ""},
    {"ty_onnx(net, \"Softmax\", ty_vars(x), \"axes: 1\")", "no attribute \"axes\"", "did you mean \"axis\"?"},
    {"ty_onnx(net, \"Softmax\", ty_vars(x), \"axis: 7\")", "axis", ""},
    {"ty_onnx(net, \"Softmax\", ty_vars(x), \"axis: [1\")", "attributes \"axis: [1\"", ""},
    {"ty_onnx(net, \"Softmax\", ty_vars(x), \"axis: {a: 1}\")", "must be a number, a text, or a list", ""},
    {"ty_onnx(net, \"Softmax\", ty_vars(x), \"axis: one\")", "must be an integer", ""},
    {"ty_onnx(net, \"MatMul\", ty_vars(x), NULL)", "needs at least 2 inputs", ""},
    {"ty_onnx(net, \"Abs\", ty_vars(x, x), NULL)", "takes at most 1 inputs, found 2", ""},
    {"ty_onnx(net, \"SplitToSequence\", ty_vars(x), NULL)", "is a sequence", ""},
    {"ty_onnx(net, \"If\", ty_vars(ty_gt(net, x, x)), NULL)", "If", ""},
    {"ty_onnx(net, \"RandomUniformLike\", ty_vars(x), NULL)", "in training only", ""},
    {"ty_onnx(net, \"MatMul\", ty_vars(x, x), NULL)", "MatMul", ""},
    {"ty_onnx(net, \"RNN\", ty_vars(ty_full(net, \"f32\", ty_dims(1, 1, 1), 0), ty_full(net, \"f32\", ty_dims(1, 2, "
     "1), 0), "
     "ty_full(net, \"f32\", ty_dims(1, 2, 2), 0)), \"hidden_size: 3\")",
     "is not the 2 of the weights", ""},
    {"(ty_onnx_results(net, \"Abs\", ty_vars(x), NULL, &x, 0), x)", "expected 1 to 64 results", ""},
    {"ty_onnx(net, \"Abs\", ty_vars((ty_var){77777}), NULL)", "not of this network", ""},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        char text[600];
        ty_model *m;
        ty_error err = {0};
        snprintf(text, sizeof text,
                 HEAD "void model(ty_net *net)\n{\n    ty_var x = ty_input(net, \"x\", \"f32[2,3]\");\n"
                      "    ty_output(net, \"y\", %s);\n}\n",
                 mistakes[i].call);
        if (ty_model_open(write_text("model.c", text), &m, &err) == 0)
            fail_msg("%s: was taken", mistakes[i].call);
        bool told = strstr(err.message, mistakes[i].message) || strstr(err.detail, mistakes[i].message);
        if (!told || !strstr(err.help, mistakes[i].help) || !strstr(err.place, "model.c:5"))
            fail_msg("%s: %s: %s (%s; help: %s)", mistakes[i].call, err.place, err.message, err.detail, err.help);
    }
}

/* ---- the table ----------------------------------------------------------------------------------------------------
 */

/* Every row that opset 23 has answers to its name; without inputs most say that one is missing. */
static void test_all_rows(void **state)
{
    (void)state;
    int n, n_later = 0;
    const onnx_op_row *row = onnx_op_rows(&n);
    for (int i = 0; i < n; i++) {
        ty_graph *g = ty_graph_new();
        ty_val out[1];
        ty_error err = {0};
        onnx_call call = {.domain = row[i].domain, .op_type = row[i].op_type, .where = "model.c:1", .n_out = 1};
        call.seed = call.step = TY_NONE;
        if (onnx_call_emit(&call, g, out, &err) < 0 && strstr(err.message, "it came with opset"))
            n_later++;
        else if (strstr(err.message, "unsupported operator") || strstr(err.message, "operator set"))
            fail_msg("%s %s: %s", row[i].domain, row[i].op_type, err.message);
        ty_graph_free(g);
    }
    assert_true(n >= 180);
    assert_true(n_later <= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_numbers, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_numbers_compiled, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_mistakes, make_folder, remove_folder),
        cmocka_unit_test(test_all_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
