/* keras_models.c - whole Keras files of other people (../shared/data/models/keras): they give the results that others
 * computed, in the interpreter and compiled, and a step of training runs. */
#include "compiler/compiler.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *shared(const char *name)
{
    static char path[1024];
    const char *root = getenv("TY_SHARED");
    snprintf(path, sizeof path, "%s/data/models/keras/%s", root ? root : "../shared", name);
    return path;
}

/* The numbers of an array of float32 behind the header of a .npy file. */
static float *read_array(const char *name, size_t *n)
{
    uint8_t head[10];
    FILE *f = fopen(shared(name), "rb");
    if (!f) {
        print_message("skip: %s is not there\n", shared(name));
        skip();
    }
    assert_int_equal(fread(head, 1, sizeof head, f), sizeof head);
    long start = 10 + head[8] + 256 * head[9];
    fseek(f, 0, SEEK_END);
    *n = (size_t)(ftell(f) - start) / sizeof(float);
    float *v = malloc(*n * sizeof *v + 1);
    assert_non_null(v);
    fseek(f, start, SEEK_SET);
    assert_int_equal(fread(v, sizeof *v, *n, f), *n);
    fclose(f);
    return v;
}

static ty_model *open_model(const char *name)
{
    ty_model *m;
    ty_error err = {0};
    if (ty_model_open(shared(name), &m, &err) < 0)
        fail_msg("%s\n%s", err.message, err.help);
    return m;
}

/* As many rows as there are numbers. */
static ty_binding bound_input(const ty_model *m, size_t n)
{
    const ty_model_value *x = ty_model_input(m, 0);
    ty_binding b = {x->name, ty_type_make(x->dtype, x->rank, x->dim)};
    b.type.dim[0] = 1;
    b.type.dim[0] = (int64_t)n / ty_type_elems(&b.type);
    return b;
}

static void same_results(const ty_model *m, ty_backend backend, const float *x, size_t n_x, const float *y, size_t n_y)
{
    ty_program *p;
    ty_error err = {0};
    ty_binding in = bound_input(m, n_x);
    ty_compile_options opt = {.backend = backend, .threads = 2};
    const void *inputs[] = {x};
    if (ty_compile_infer(m, &in, 1, &opt, &p, &err) < 0 || ty_program_run(p, TY_RUN_EVAL, inputs, &err) < 0)
        fail_msg("%s\n%s", err.message, err.help);
    const ty_tensor *found = ty_program_output(p, TY_RUN_EVAL, ty_model_output(m, 0)->name);
    assert_non_null(found);
    assert_int_equal(ty_type_elems(&found->type), n_y);
    for (size_t i = 0; i < n_y; i++) {
        float v = ((const float *)found->data)[i];
        if (!(fabsf(v - y[i]) <= 1e-5f + 1e-4f * fabsf(y[i])))
            fail_msg("element %zu: expected %.9g, found %.9g", i, (double)y[i], (double)v);
    }
    ty_program_free(p);
}

static void step_runs(const ty_model *m, const float *x, size_t n_x)
{
    ty_program *p;
    ty_error err = {0};
    ty_binding in[] = {bound_input(m, n_x), {.name = "y"}};
    in[1].type = ty_type_make(TY_I64, 1, in[0].type.dim);
    ty_loss_term loss = {.kind = TY_LOSS_SOFTMAX_CROSS_ENTROPY,
                         .output = ty_model_output(m, 0)->name,
                         .target = "y",
                         .weight = 1,
                         .pos_weight = 1,
                         .ignore_index = -100,
                         .class_axis = -1};
    ty_train_spec spec = {.inputs = in,
                          .n_inputs = 2,
                          .loss = &loss,
                          .n_loss = 1,
                          .optimizer = {.kind = TY_OPT_SGD, .lr = 1e-4},
                          .schedule = {.kind = TY_SCHED_CONSTANT},
                          .accumulate = 1,
                          .seed = 1,
                          .batch_norm_statistics = true,
                          .no_eval = true};
    ty_compile_options opt = {.threads = 2};
    int64_t *y = calloc((size_t)in[1].type.dim[0], sizeof *y);
    const void *inputs[] = {x, y};
    float losses[3];
    if (ty_compile_train(m, &spec, &opt, &p, &err) < 0)
        fail_msg("%s\n%s", err.message, err.help);
    for (int i = 0; i < 3; i++) {
        if (ty_program_run(p, TY_RUN_LAST, inputs, &err) < 0)
            fail_msg("%s", err.message);
        losses[i] = *(const float *)ty_program_output(p, TY_RUN_LAST, "loss")->data;
    }
    if (!isfinite(losses[2]) || losses[2] == losses[0]) /* dropout: it need not fall */
        fail_msg("losses %g, %g, %g", (double)losses[0], (double)losses[1], (double)losses[2]);
    ty_program_free(p);
    free(y);
}

static void judge(const char *name, const char *file)
{
    char path[256];
    size_t n_x, n_y;
    snprintf(path, sizeof path, "%s/golden/input.npy", name);
    float *x = read_array(path, &n_x);
    snprintf(path, sizeof path, "%s/golden/output.npy", name);
    float *y = read_array(path, &n_y);
    snprintf(path, sizeof path, "%s/%s", name, file);
    ty_model *m = open_model(path);
    same_results(m, TY_BACKEND_INTERPRETER, x, n_x, y, n_y);
    same_results(m, TY_BACKEND_CPU, x, n_x, y, n_y);
    step_runs(m, x, n_x);
    ty_model_free(m);
    free(x);
    free(y);
}

static void resnet8(void **state)
{
    (void)state;
    judge("resnet8_cifar10", "pretrainedResnet.h5");
}

static void streaming_wakeword(void **state)
{
    (void)state;
    judge("streaming_wakeword", "str_ww_ref_model.h5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(resnet8), cmocka_unit_test(streaming_wakeword)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
