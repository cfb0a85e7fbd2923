/* cuda_infer.c - models applied on a GPU, with what follows products and convolutions as part of them, and on a GPU
 * whose libraries have no such thing: compiled again without, they compute the same. Needs a training case, and a GPU
 * or a library that stands in for its driver (tests/cuda_run.sh). */
#include "compiler/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products_without_epilogues),
                                       cmocka_unit_test(test_convolutions_alone)};
    return cmocka_run_group_tests_name("cuda_infer", tests, NULL, NULL);
}
