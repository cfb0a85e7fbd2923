/* strict.c - with strict determinism the number of threads does not show in a single bit, convolutions included. */
#include "compiler/compiler.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { BATCH = 192, STEPS = 3 };

static ty_program *compile(const ty_model *model, const ty_train_spec *spec, int threads)
{
    ty_error err = {0};
    ty_program *p;
    ty_compile_options opt = {.threads = threads, .deterministic_strict = true};
    if (ty_compile_train(model, spec, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

static void same_states(const ty_program *a, const ty_program *b)
{
    assert_true(ty_program_n_states(a) > 0);
    for (int i = 0; i < ty_program_n_states(a); i++) {
        const char *name;
        ty_tensor x = ty_program_state(a, i, &name), y = ty_program_state(b, i, NULL);
        if (memcmp(x.data, y.data, ty_type_bytes(&x.type)) != 0)
            fail_msg("state \"%s\" depends on the number of threads", name);
    }
}

static void test_threads_do_not_show(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_model *model;
    if (ty_model_open("examples/digits/model.onnx", &model, &err) < 0)
        fail_msg("%s", err.message);
    const ty_binding inputs[] = {{"image", ty_type_make(TY_F32, 4, (int64_t[]){BATCH, 1, 8, 8})},
                                 {"label", ty_type_make(TY_I64, 1, (int64_t[]){BATCH})}};
    const ty_loss_term loss = {.kind = TY_LOSS_SOFTMAX_CROSS_ENTROPY,
                               .output = "logits",
                               .target = "label",
                               .weight = 1,
                               .ignore_index = -100,
                               .class_axis = -1};
    const ty_train_spec spec = {.inputs = inputs,
                                .n_inputs = 2,
                                .loss = &loss,
                                .n_loss = 1,
                                .accumulate = 1,
                                .no_eval = true,
                                .optimizer = {.kind = TY_OPT_SGD, .lr = 0.05, .momentum = 0.9},
                                .batch_norm_statistics = true};
    ty_program *one = compile(model, &spec, 1), *three = compile(model, &spec, 3);
    float *image = malloc(sizeof(float) * BATCH * 64);
    int64_t *label = malloc(sizeof(int64_t) * BATCH);
    for (int i = 0; i < BATCH * 64; i++)
        image[i] = ty_rng_uniform(ty_rng_u32(3, 0, 0, (uint64_t)i));
    for (int i = 0; i < BATCH; i++)
        label[i] = i % 10;
    const void *batch[] = {image, label};
    for (int step = 0; step < STEPS; step++) {
        assert_int_equal(ty_program_run(one, TY_RUN_LAST, batch, &err), 0);
        assert_int_equal(ty_program_run(three, TY_RUN_LAST, batch, &err), 0);
        same_states(one, three);
    }
    free(image);
    free(label);
    ty_program_free(one);
    ty_program_free(three);
    ty_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_do_not_show)};
    return cmocka_run_group_tests_name("strict", tests, NULL, NULL);
}
