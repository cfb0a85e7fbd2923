/* The interpreter: states and tapes, rounding, results that outlive their nodes, and what it refuses. */
#include "tests/unit/evaluate.h"

static void test_states_change_after_the_run(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    float init[2] = {1, 2};
    ty_state a = {.name = "a", .type = ty_type_make(TY_F32, SHAPE(2)), .init = (const void *const[]){init}};
    ty_state b = {.name = "b", .type = ty_type_make(TY_F32, SHAPE(2))};
    ty_graph_add_state(g, &a);
    ty_graph_add_state(g, &b);
    ty_val va = ty_b_state(g, 0), vb = ty_b_state(g, 1);
    ty_graph_add_assign(g, 0, ty_b_add_s(g, vb, 10), TY_TAPE_LAST); /* both read what was before */
    ty_graph_add_assign(g, 1, va, TY_TAPE_LAST);
    ty_graph_add_assign(g, 1, ty_b_mul_s(g, vb, 3), TY_TAPE_MICRO);
    int out = ty_graph_add_output(g, "a", va, TY_TAPE_LAST);
    ty_interp *it;
    assert_int_equal(ty_interp_new(g, &it, NULL), 0);
    assert_int_equal(ty_interp_run(it, TY_TAPE_LAST, NULL, false, NULL), 0);
    assert_true(ty_interp_output(it, out)->f[1] == 2);
    assert_true(ty_interp_state(it, 0)->f[0] == 10 && ty_interp_state(it, 1)->f[1] == 2);
    assert_int_equal(ty_interp_run(it, TY_TAPE_MICRO, NULL, false, NULL), 0);
    assert_null(ty_interp_output(it, out)); /* this tape does not make it */
    assert_true(ty_interp_state(it, 0)->f[0] == 10 && ty_interp_state(it, 1)->f[1] == 6);
    ty_interp_state(it, 1)->f[0] = 5;
    assert_int_equal(ty_interp_run(it, TY_TAPE_LAST, NULL, false, NULL), 0);
    assert_true(ty_interp_state(it, 0)->f[0] == 15 && ty_interp_state(it, 1)->f[0] == 10);
    ty_interp_free(it);
    ty_graph_free(g);
}

static void test_segments_are_initialised(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    float w[2] = {3, 4};
    ty_segment parts[3] = {{"a", ty_type_make(TY_F32, SHAPE(2)), 0},
                           {"b", ty_type_make(TY_F32, SHAPE(2)), 3},
                           {"c", ty_type_make(TY_F32, SHAPE(1)), 5}};
    ty_state s = {"arena", ty_type_make(TY_F32, SHAPE(6)), TY_STATE_PARAM, parts, 3, (const void *const[]){NULL, w, w}};
    ty_graph_add_state(g, &s);
    expect_floats(g, ty_b_state(g, 0), NULL, 6, (double[]){0, 0, 0, 3, 4, 3});
    ty_graph_free(g);
}

static void test_rounding(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(1)), y = ty_b_mul(g, ty_b_add_s(g, x, 1), ty_b_add_s(g, x, 1));
    float data = 0x1p-20f;
    const void *in[] = {&data};
    double exact = (1 + 0x1p-20) * (1 + 0x1p-20);
    assert_true(*(double *)evaluate(g, y, in, false) == exact);
    assert_true(*(double *)evaluate(g, y, in, true) == (double)(float)exact);
    ty_val h = ty_b_cast(g, ty_b_cast(g, x, TY_BF16), TY_F32);
    data = 1 + 0x1p-9f;
    assert_true(*(double *)evaluate(g, h, in, false) == 1); /* a cast always rounds */
    ty_graph_free(g);
}

static void test_inputs_of_every_dtype(void **state)
{
    (void)state;
    static const struct {
        ty_dtype dtype;
        uint64_t bytes;
        double value;
    } cases[] = {{TY_BOOL, 1, 1},
                 {TY_I8, 0xff, -1},
                 {TY_U8, 0xff, 255},
                 {TY_I16, 0x8000, -32768},
                 {TY_U16, 0x8000, 32768},
                 {TY_I32, 0xfffffffe, -2},
                 {TY_U32, 0xfffffffe, 4294967294.0},
                 {TY_I64, UINT64_MAX, -1},
                 {TY_F16, 0x3e00, 1.5},
                 {TY_BF16, 0xbfc0, -1.5},
                 {TY_F32, 0x40200000, 2.5},
                 {TY_F64, 0x3ff8000000000000, 1.5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_graph *g = ty_graph_new();
        ty_val x = new_input(g, cases[i].dtype, SHAPE(1));
        const void *in[] = {&cases[i].bytes};
        const void *found = evaluate(g, x, in, true);
        double value = ty_dtype_is_float(cases[i].dtype) ? *(const double *)found : (double)*(const int64_t *)found;
        if (value != cases[i].value)
            fail_msg("%s: %g, expected %g", ty_dtype_text(cases[i].dtype), value, cases[i].value);
        ty_graph_free(g);
    }
}

static void test_values_used_late_and_twice(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F64, SHAPE(2)), v = x;
    for (int i = 0; i < 20; i++)
        v = ty_b_sub(g, ty_b_add(g, v, x), ty_b_mul_s(g, x, 0.5));
    ty_val y = ty_b_add(g, ty_b_mul(g, v, v), x);
    ty_graph_add_output(g, "v", v, TY_TAPE_EVAL);
    ty_graph_add_output(g, "again", v, TY_TAPE_EVAL);
    const void *in[] = {(double[]){1, 2}};
    expect_floats(g, y, in, 2, (double[]){122, 486});
    ty_graph_free(g);
}

static void test_refusals_name_the_node(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val i = new_input(g, TY_I32, SHAPE(2)), one = ty_b_full_like(g, i, 1);
    ty_graph_origin(g, "divider");
    ty_graph_add_output(g, "q", ty_b_div(g, one, i), TY_TAPE_EVAL);
    ty_interp *it;
    ty_error err = {0};
    assert_int_equal(ty_interp_new(g, &it, NULL), 0);
    const void *in[] = {(int32_t[]){1, 0}}, *none[] = {NULL};
    assert_int_equal(ty_interp_run(it, TY_TAPE_EVAL, in, false, &err), -1);
    assert_int_equal(err.code, TY_E_DATA_VALUE);
    assert_non_null(strstr(err.message, "= div: integer division by zero at element 1"));
    assert_string_equal(err.place, "divider");
    err = (ty_error){0};
    assert_int_equal(ty_interp_run(it, TY_TAPE_EVAL, none, false, &err), -1);
    assert_non_null(strstr(err.message, "input \"x0\""));
    in[0] = (int32_t[]){1, 2}; /* and it goes on after an error */
    assert_int_equal(ty_interp_run(it, TY_TAPE_EVAL, in, false, &err), 0);
    assert_int_equal(ty_interp_output(it, 0)->i[1], 0);
    ty_interp_free(it);
    ty_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states_change_after_the_run),
        cmocka_unit_test(test_segments_are_initialised),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_inputs_of_every_dtype),
        cmocka_unit_test(test_values_used_late_and_twice),
        cmocka_unit_test(test_refusals_name_the_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
