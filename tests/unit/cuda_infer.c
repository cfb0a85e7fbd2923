/* cuda_infer.c - models applied on a GPU, with what follows products and convolutions as part of them, and on a GPU
 * whose libraries have no such thing, or not all of it: compiled again without what they lack, they compute the same.
 * Needs a training case, and a GPU or a library that stands in for its driver (tests/cuda_run.sh). */
#include "tests/unit/onnx_model.h"

#include "base/file.h"
#include "compiler/apart.h"
#include "compiler/model.h"
#include "compiler/ops/linear.h"
#include "compiler/program.h"

#include <unistd.h>

enum { ROWS = 3, COLUMNS = 196, MOST = 4096 };

static ty_model *open_model(const char *name)
{
    static char path[4096];
    const char *root = getenv("TY_SHARED");
    ty_model *m;
    ty_error err = {0};
    snprintf(path, sizeof path, "%s/data/train-cases/%s/model.onnx", root ? root : "../shared", name);
    if (access(path, R_OK) < 0) {
        print_message("skip: %s is not there\n", path);
        skip();
    }
    if (ty_model_open(path, &m, &err) < 0)
        fail_msg("%s", err.message);
    return m;
}

/* Outputs of the model for made-up rows; their number is returned, that of the kernels told. */
static int64_t apply(ty_model *m, const ty_type *type, const ty_compile_options *opt, float *y, int *n_kernels)
{
    static float x[ROWS * COLUMNS];
    ty_error err = {0};
    ty_program *p;
    const ty_binding in = {ty_model_input(m, 0)->name, *type};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)sin(0.37 * i);
    if (ty_compile_infer(m, &in, 1, opt, &p, &err) < 0) {
        if (err.code != TY_E_NOT_FOUND)
            fail_msg("%s", err.message);
        print_message("skip: %s\n", err.message);
        ty_model_free(m);
        skip();
    }
    if (ty_program_run(p, TY_RUN_EVAL, (const void *[]){x}, &err) < 0)
        fail_msg("%s", err.message);
    const ty_tensor *out = ty_program_output(p, TY_RUN_EVAL, ty_model_output(m, 0)->name);
    int64_t n = ty_type_elems(&out->type);
    assert_in_range(n, 1, MOST);
    for (int64_t i = 0; i < n; i++)
        y[i] = ((const float *)out->data)[i];
    *n_kernels = ty_program_report(p)->n_kernels;
    ty_program_free(p);
    return n;
}

/* switch_: of the stand-in, by which its library refuses; how: when, and in which words. */
static void expect_same_without(const char *name, ty_type type, const char *switch_, const char *how)
{
    static float expected[MOST], with[MOST], without[MOST];
    const ty_compile_options judge = {.backend = TY_BACKEND_INTERPRETER},
                             gpu = {.threads = 1, .backend = TY_BACKEND_CUDA};
    int kernels, fewer, more;
    ty_model *m = open_model(name);
    int64_t n = apply(m, &type, &gpu, with, &fewer);
    setenv(switch_, how, 1);
    apply(m, &type, &gpu, without, &more);
    unsetenv(switch_);
    apply(m, &type, &judge, expected, &kernels);
    if (fewer >= more && getenv("TY_FAKE_GPUS")) /* a real one has them */
        fail_msg("%s: %d kernels, without %d", name, fewer, more);
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(with[i] - expected[i]) < 1e-5f && fabsf(without[i] - expected[i]) < 1e-5f))
            fail_msg("%s, output %lld: expected %.7g, found %.7g and %.7g", name, (long long)i, (double)expected[i],
                     (double)with[i], (double)without[i]);
    ty_model_free(m);
}

static void test_products_without_epilogues(void **state)
{
    static const char *const how[] = {"none", "invalid", "late"};
    (void)state;
    for (size_t i = 0; i < sizeof how / sizeof *how; i++)
        expect_same_without("mlp_gelu", ty_type_make(TY_F32, 2, (int64_t[]){ROWS, COLUMNS}), "TY_FAKE_EPILOGUES",
                            how[i]);
}

static void test_convolutions_alone(void **state)
{
    static const char *const how[] = {"none", "late"};
    (void)state;
    for (size_t i = 0; i < sizeof how / sizeof *how; i++)
        expect_same_without("resnet_basic", ty_type_make(TY_F32, 4, (int64_t[]){ROWS, 1, 14, 14}), "TY_FAKE_FUSIONS",
                            how[i]);
}

/* ---- one kind of them is lacking ---- */

typedef struct kinds {
    int relu, gelu;   /* products */
    int added, alone; /* convolutions, with a tensor that is added and without */
} kinds;

static kinds count_kinds(const ty_graph *g)
{
    kinds n = {0};
    uint8_t *live = calloc(ty_graph_n_nodes(g), 1);
    ty_graph_mark_live(g, TY_TAPE_ALL, live);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        bool conv = live[id] && ty_graph_op(g, id) == TY_OP_CONV_BIAS;
        bool linear = live[id] && ty_graph_op(g, id) == TY_OP_LINEAR;
        n.added += conv && ty_graph_node(g, id)->n_in > 3;
        n.alone += conv && ty_graph_node(g, id)->n_in == 3;
        n.relu += linear && ty_graph_attr(g, id)->index == TY_LINEAR_RELU;
        n.gelu += linear && ty_graph_attr(g, id)->index == TY_LINEAR_GELU;
    }
    free(live);
    return n;
}

/* What the program consists of at last. */
static kinds kinds_of(ty_model *m, const ty_type *type, const char *switch_, const char *how)
{
    const ty_compile_options gpu = {.threads = 1, .backend = TY_BACKEND_CUDA};
    const ty_binding in = {ty_model_input(m, 0)->name, *type};
    ty_error err = {0};
    ty_program *p;
    setenv(switch_, how, 1);
    int rc = ty_compile_infer(m, &in, 1, &gpu, &p, &err);
    unsetenv(switch_);
    if (rc < 0 && err.code == TY_E_NOT_FOUND) {
        ty_model_free(m);
        skip();
    }
    if (rc < 0)
        fail_msg("%s", err.message);
    kinds n = count_kinds(p->graph);
    ty_program_free(p);
    return n;
}

/* Two hidden layers, with a ReLU and a GELU. */
static ty_model *two_activations(void)
{
    static float weights[16 * 24];
    char path[] = "/tmp/ty-infer-XXXXXX.onnx";
    ty_error err = {0};
    model_text t;
    ty_model *m = NULL;
    for (int i = 0; i < 16 * 24; i++)
        weights[i] = (float)sin(i);
    model_begin(&t, 20);
    model_input(&t, "x", 1, SHAPE(-1, 16));
    model_floats(&t, "w0", SHAPE(16, 24), weights);
    model_floats(&t, "w1", SHAPE(24, 16), weights);
    model_floats(&t, "w2", SHAPE(16, 8), weights);
    model_floats(&t, "b0", SHAPE(24), weights);
    model_floats(&t, "b1", SHAPE(16), weights);
    model_node(&t, "Gemm", "x,w0,b0", "s0", "");
    model_node(&t, "Relu", "s0", "h0", "");
    model_node(&t, "Gemm", "h0,w1,b1", "s1", "");
    attr_text(&t, "approximate", "tanh");
    model_node(&t, "Gelu", "s1", "h1", "");
    model_node(&t, "MatMul", "h1,w2", "y", "");
    model_output(&t, "y", 1);
    model_end(&t);
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    close(fd);
    if (ty_file_write(path, t.file.data, t.file.len, 0600, &err) < 0 || ty_model_open(path, &m, &err) < 0)
        fail_msg("%s", err.message);
    unlink(path);
    ty_buf_fini(&t.file);
    return m;
}

static void test_other_products_keep_theirs(void **state)
{
    static const char *const how[] = {"none 6", "invalid 6", "late 6"}; /* RELU_BIAS */
    const ty_type x = ty_type_make(TY_F32, SHAPE(ROWS, 16));
    (void)state;
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        ty_model *m = two_activations();
        kinds with = kinds_of(m, &x, "TY_FAKE_EPILOGUES", "no"), without = kinds_of(m, &x, "TY_FAKE_EPILOGUES", how[i]);
        assert_int_equal(with.relu, 1);
        assert_int_equal(with.gelu, 1);
        if (getenv("TY_FAKE_GPUS")) {
            assert_int_equal(without.relu, 0);
            assert_int_equal(without.gelu, 1);
        }
        ty_model_free(m);
    }
}

static void test_other_convolutions_keep_theirs(void **state)
{
    static const char *const how[] = {"none z", "late z"};
    const ty_type x = ty_type_make(TY_F32, SHAPE(ROWS, 1, 14, 14));
    (void)state;
    ty_model *m = open_model("resnet_basic");
    kinds with = kinds_of(m, &x, "TY_FAKE_FUSIONS", "no");
    assert_true(with.added > 0 && with.alone > 0);
    for (size_t i = 0; i < sizeof how / sizeof *how && getenv("TY_FAKE_GPUS"); i++) {
        kinds without = kinds_of(m, &x, "TY_FAKE_FUSIONS", how[i]);
        assert_int_equal(without.added, 0);
        assert_true(without.alone > 0);
    }
    ty_model_free(m);
}

/* So that the program is compiled again once, not once for each kind. */
static void test_all_that_is_refused_is_told(void **state)
{
    static const ty_linear_kind kinds[] = {TY_LINEAR_RELU, TY_LINEAR_GELU, TY_LINEAR_SUM_B};
    const ty_compile_options gpu = {.threads = 1, .backend = TY_BACKEND_CUDA};
    ty_error err = {0};
    ty_program *p;
    ty_apart expected = 0;
    (void)state;
    if (!getenv("TY_FAKE_GPUS"))
        skip();
    ty_graph *g = ty_graph_new();
    ty_val a = new_input(g, TY_F32, SHAPE(8, 8)), b = new_input(g, TY_F32, SHAPE(8, 8));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bool biases = ty_linear_operand(kinds[i]) == TY_LINEAR_COLUMNS;
        ty_val in[3] = {a, b, biases ? new_input(g, TY_F32, SHAPE(8)) : TY_NONE};
        ty_val y = ty_graph_emit(g, TY_OP_LINEAR, &(ty_attr){.index = kinds[i]}, in, biases ? 3 : 2);
        ty_graph_add_output(g, (const char *[]){"r", "g", "s"}[i], y, TY_TAPE_EVAL);
        expected |= ty_apart_linear(kinds[i], TY_F32);
    }
    setenv("TY_FAKE_EPILOGUES", "none", 1);
    int rc = ty_program_of_graph(g, TY_TAPE_EVAL, &gpu, &p, &err);
    unsetenv("TY_FAKE_EPILOGUES");
    assert_int_equal(rc, -1);
    assert_int_equal(err.code, TY_E_NO_EPILOGUE);
    assert_int_equal(err.which, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_without_epilogues),  cmocka_unit_test(test_convolutions_alone),
        cmocka_unit_test(test_other_products_keep_theirs),  cmocka_unit_test(test_other_convolutions_keep_theirs),
        cmocka_unit_test(test_all_that_is_refused_is_told),
    };
    return cmocka_run_group_tests_name("cuda_infer", tests, NULL, NULL);
}
