/* cuda_infer.c - a model applied on a GPU, with its products' epilogues, and on a GPU whose cuBLASLt has none: compiled
 * again without them, it computes the same. Needs a training case, and a GPU or a library that stands in for its driver
 * (tests/cuda_run.sh). */
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

static ty_model *open_model(void)
{
    static char path[4096];
    const char *root = getenv("TY_SHARED");
    ty_model *m;
    ty_error err = {0};
    snprintf(path, sizeof path, "%s/data/train-cases/mlp_gelu/model.onnx", root ? root : "../shared");
    if (access(path, R_OK) < 0) {
        print_message("skip: %s is not there\n", path);
        skip();
    }
    if (ty_model_open(path, &m, &err) < 0)
        fail_msg("%s", err.message);
    return m;
}

/* Outputs of the model for made-up rows; their number is returned, that of the kernels told. */
static int64_t apply(ty_model *m, const ty_compile_options *opt, float *y, int *n_kernels)
{
    static float x[ROWS * COLUMNS];
    ty_error err = {0};
    ty_program *p;
    const ty_binding in = {ty_model_input(m, 0)->name, ty_type_make(TY_F32, 2, (int64_t[]){ROWS, COLUMNS})};
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

static void test_products_without_epilogues(void **state)
{
    static float expected[MOST], with[MOST], without[MOST];
    const ty_compile_options judge = {.backend = TY_BACKEND_INTERPRETER},
                             gpu = {.threads = 1, .backend = TY_BACKEND_CUDA};
    int kernels, fewer, more;
    (void)state;
    ty_model *m = open_model();
    int64_t n = apply(m, &gpu, with, &fewer);
    setenv("TY_FAKE_EPILOGUES", "none", 1);
    apply(m, &gpu, without, &more);
    unsetenv("TY_FAKE_EPILOGUES");
    apply(m, &judge, expected, &kernels);
    assert_true(fewer < more || !getenv("TY_FAKE_GPUS")); /* a real one has them */
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(with[i] - expected[i]) < 1e-5f && fabsf(without[i] - expected[i]) < 1e-5f))
            fail_msg("output %lld: expected %.7g, found %.7g and %.7g", (long long)i, (double)expected[i],
                     (double)with[i], (double)without[i]);
    ty_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products_without_epilogues)};
    return cmocka_run_group_tests_name("cuda_infer", tests, NULL, NULL);
}
