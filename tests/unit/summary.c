/* summary.c - what a model says of itself before it is trained: layers, shapes, arithmetic, faults. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/step_case.h"

static ty_model_summary summarize(const ty_model *m, ty_summary_options o, ty_arena *a)
{
    ty_error err = {0};
    ty_model_summary s;
    if (ty_model_summarize(m, &o, a, &s, &err) < 0)
        fail_msg("%s", err.message);
    return s;
}

static const ty_layer_facts *layer_of(const ty_model_summary *s, const char *name)
{
    for (int i = 0; i < s->n_layers; i++)
        if (strcmp(s->layer[i].name, name) == 0)
            return &s->layer[i];
    fail_msg("no layer \"%s\"", name);
    return NULL;
}

/* x [N, 4] w1 [4, 8] + b1, ReLU, w2 [8, 3] + b2: products of 2 * 4 * 8 and 2 * 8 * 3; the gradient has both for the
 * second layer, and the weights' alone for the first. Bias additions count 1 a number, ReLUs select. */
static void test_arithmetic(void **state)
{
    (void)state;
    ty_arena a;
    ty_arena_init(&a);
    ty_model *m = two_layers();
    ty_model_summary s = summarize(m, (ty_summary_options){0}, &a);
    assert_int_equal(s.n_faults_all, 0);
    assert_int_equal(s.batch, 2);
    assert_true(s.forward_flop[TY_WORK_PRODUCT] == 2 * 4 * 8 + 2 * 8 * 3);
    assert_true(s.backward_flop[TY_WORK_PRODUCT] == 2 * 4 * 8 + 2 * 2 * 8 * 3);
    assert_true(layer_of(&s, "first")->forward_flop == 2 * 4 * 8);
    assert_true(layer_of(&s, "second")->backward_flop == 2 * 2 * 8 * 3);
    assert_int_equal(layer_of(&s, "first")->n_numbers, 32);
    assert_string_equal(layer_of(&s, "second")->op, "MatMul");
    assert_string_equal(layer_of(&s, "second")->shape, "f32[N,3]");
    assert_int_equal(s.n_numbers, 32 + 8 + 24 + 3 + 16);
    assert_int_equal(s.n_trainable, 32 + 8 + 24 + 3); /* nothing reads "idle" */
    assert_int_equal(s.weight_bytes, 4 * (32 + 8 + 24 + 3 + 16));
    ty_model_free(m);
    ty_arena_fini(&a);
}

/* The batch does not show in what a sample costs. */
static void test_batch(void **state)
{
    (void)state;
    ty_arena a;
    ty_arena_init(&a);
    ty_model *m = two_layers();
    ty_model_summary two = summarize(m, (ty_summary_options){0}, &a),
                     many = summarize(m, (ty_summary_options){.batch = 50}, &a);
    assert_int_equal(many.batch, 50);
    assert_true(many.forward_flop[TY_WORK_PRODUCT] == two.forward_flop[TY_WORK_PRODUCT]);
    assert_true(many.backward_flop[TY_WORK_PRODUCT] == two.backward_flop[TY_WORK_PRODUCT]);
    ty_model_free(m);
    ty_arena_fini(&a);
}

static void test_all_faults_at_once(void **state)
{
    (void)state;
    ty_arena a;
    model_text t;
    ty_arena_init(&a);
    model_begin(&t, 18);
    model_input(&t, "x", 1, SHAPE(-1, 4));
    model_floats(&t, "w", SHAPE(5, 3), numbers(15, 0));
    model_node(&t, "Reluu", "x", "a", "slip");
    model_node(&t, "Unique", "x", "b", "round");
    model_node(&t, "MatMul", "x,w", "c", "narrow");
    model_output(&t, "a", 1);
    model_output(&t, "c", 1);
    ty_model *m = open_text(&t);
    ty_model_summary s = summarize(m, (ty_summary_options){0}, &a);
    assert_int_equal(s.n_faults, 3);
    assert_int_equal(s.n_faults_all, 3);
    assert_int_equal(s.n_layers, 0);
    const struct {
        const char *place, *detail, *help;
    } expected[] = {{"slip", "float32 [2, 4]", "Relu?"},
                    {"round", "float32 [2, 4]", "depends on the data"},
                    {"narrow", "[5, 3]", ""}};
    for (int i = 0; i < 3; i++) {
        assert_non_null(strstr(s.fault[i].place, expected[i].place));
        assert_non_null(strstr(s.fault[i].detail, expected[i].detail));
        if (!strstr(s.fault[i].help, expected[i].help))
            fail_msg("expected \"%s\", found \"%s\"", expected[i].help, s.fault[i].help);
    }
    ty_model_free(m);
    ty_arena_fini(&a);
}

/* A free dimension that is not the batch gets a size, which can be given. */
static void test_other_dims(void **state)
{
    (void)state;
    ty_arena a;
    model_text t;
    ty_arena_init(&a);
    model_begin(&t, 18);
    model_input(&t, "x", 1, SHAPE(3, -1, 4));
    model_floats(&t, "w", SHAPE(4, 2), numbers(8, 0));
    model_node(&t, "MatMul", "x,w", "y", "m");
    model_output(&t, "y", 1);
    ty_model *m = open_text(&t);
    ty_model_summary s = summarize(m, (ty_summary_options){0}, &a);
    assert_int_equal(s.batch, 3); /* the file's own */
    assert_int_equal(s.n_assumed, 1);
    assert_string_equal(s.assumed[0].name, "N");
    assert_string_equal(s.layer[0].shape, "f32[3,64,2]");
    const ty_free_dim dim = {"N", 10};
    s = summarize(m, (ty_summary_options){.dims = &dim, .n_dims = 1}, &a);
    assert_int_equal(s.n_assumed, 0);
    assert_true(s.forward_flop[TY_WORK_PRODUCT] == 2 * 10 * 4 * 2);
    ty_model_free(m);
    ty_arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_all_faults_at_once),
        cmocka_unit_test(test_other_dims),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
