/* mnist.c - a real model on real data: the ONNX model zoo's mnist-8 on MNIST's 10,000 test images scores 98.91 %. */
#include "compiler/compiler.h"
#include "container/input/dataset.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { IMAGES = 10000, PIXELS = 28 * 28 };

static const char *shared(const char *name)
{
    static char path[512];
    const char *root = getenv("TY_SHARED");
    snprintf(path, sizeof path, "%s/data/%s", root ? root : "../shared", name);
    return path;
}

/* All samples of the one field of a gzipped IDX file, by our own reader; skips the test where there is none. */
static uint8_t *idx_bytes(const char *name, size_t n)
{
    const char *path = shared(name);
    if (access(path, R_OK) != 0) {
        print_message("skip: %s is not there\n", path);
        skip();
    }
    ty_field field = ty_field_make("x");
    ty_data_source source = {.paths = &path, .n_paths = 1, .fields = &field, .n_fields = 1};
    ty_dataset *ds;
    ty_error err = {0};
    if (ty_dataset_open(&source, &ds, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(ds->n_samples, IMAGES);
    assert_int_equal((size_t)ds->n_samples * ds->field[0].row_bytes, n);
    int64_t *all = malloc(IMAGES * sizeof *all);
    uint8_t *bytes = malloc(n);
    assert_true(all && bytes);
    for (int64_t i = 0; i < IMAGES; i++)
        all[i] = i;
    assert_int_equal(ty_dataset_read(ds, 0, all, IMAGES, bytes, &err), 0);
    free(all);
    ty_dataset_close(ds);
    return bytes;
}

static int largest(const float *x)
{
    int best = 0;
    for (int i = 1; i < 10; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

static void test_mnist_8(void **state)
{
    (void)state;
    uint8_t *images = idx_bytes("mnist/t10k-images-idx3-ubyte.gz", IMAGES * PIXELS);
    uint8_t *labels = idx_bytes("mnist/t10k-labels-idx1-ubyte.gz", IMAGES);
    ty_error err = {0};
    ty_model *model;
    ty_program *program;
    if (ty_model_open(shared("models/onnx/mnist-8/model.onnx"), &model, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(ty_model_n_inputs(model), 1);
    const ty_model_value *in = ty_model_input(model, 0); /* one image: the file binds the batch */
    ty_binding binding = {in->name, ty_type_make(in->dtype, in->rank, in->dim)};
    ty_compile_options options = {.threads = 1};
    if (ty_compile_infer(model, &binding, 1, &options, &program, &err) < 0)
        fail_msg("%s", err.message);
    int right = 0;
    for (int k = 0; k < IMAGES; k++) {
        float x[PIXELS];
        const void *inputs[] = {x};
        for (int i = 0; i < PIXELS; i++)
            x[i] = images[k * PIXELS + i];
        assert_int_equal(ty_program_run(program, TY_RUN_EVAL, inputs, &err), 0);
        right += largest(ty_program_output(program, TY_RUN_EVAL, ty_model_output(model, 0)->name)->data) == labels[k];
    }
    assert_int_equal(right, 9891);
    ty_program_free(program);
    ty_model_free(model);
    free(images);
    free(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mnist_8)};
    return cmocka_run_group_tests_name("mnist", tests, NULL, NULL);
}
