/* Storage of graphs: hash-consing, interning, sticky errors, states and effects, reachability, speed. */
#include "tests/unit/evaluate.h"

#include "compiler/ir/verify.h"

#include <time.h>

static void test_equal_nodes_are_one(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(4)), y = new_input(g, TY_F32, SHAPE(4));
    assert_int_equal(ty_b_exp(g, x), ty_b_exp(g, x));
    assert_int_not_equal(ty_b_exp(g, x), ty_b_exp(g, y));
    assert_int_equal(ty_b_add(g, x, y), ty_b_add(g, y, x));
    assert_int_not_equal(ty_b_sub(g, x, y), ty_b_sub(g, y, x));
    uint32_t n = ty_graph_n_nodes(g);
    ty_b_mul(g, ty_b_exp(g, x), ty_b_add(g, y, x));
    assert_int_equal(ty_graph_n_nodes(g), n + 1);
    assert_int_not_equal(ty_b_transpose(g, new_input(g, TY_F32, SHAPE(2, 3)), (int64_t[]){1, 0}), TY_NONE);
    ty_graph_free(g);
}

static void test_constants_by_content_and_address(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    float a[2] = {1, 2}, b[2] = {1, 2};
    ty_type type = ty_type_make(TY_F32, SHAPE(2)), big_type = ty_type_make(TY_F32, SHAPE(2000));
    ty_val v = ty_b_const(g, type, a);
    assert_int_equal(v, ty_b_const(g, type, b));
    a[0] = 7; /* copied: does not change the graph */
    assert_float_equal(((const float *)ty_graph_const_data(g, v))[0], 1, 0);
    float *big = calloc(2000, sizeof *big), *same = calloc(2000, sizeof *same);
    ty_val w = ty_b_const(g, big_type, big);
    assert_ptr_equal(ty_graph_const_data(g, w), big);
    assert_int_equal(w, ty_b_const(g, big_type, big));
    assert_int_not_equal(w, ty_b_const(g, big_type, same));
    ty_val r = ty_b_reshape(g, w, SHAPE(40, 50)); /* shares the data */
    assert_ptr_equal(ty_graph_const_data(g, r), big);
    assert_null(ty_graph_const_data(g, new_input(g, TY_F32, SHAPE(2))));
    ty_val copied = ty_b_const_copy(g, big_type, same); /* is another's memory no more, and is copied once */
    size_t used = ty_graph_arena(g)->used_bytes;
    assert_int_equal(copied, ty_b_const_copy(g, big_type, big));
    assert_int_equal(ty_graph_arena(g)->used_bytes, used);
    assert_ptr_not_equal(ty_graph_const_data(g, copied), same);
    ty_graph_free(g);
    free(big);
    free(same);
}

static void test_errors_are_sticky(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_val x = new_input(g, TY_F32, SHAPE(2, 3)), y = new_input(g, TY_F32, SHAPE(4));
    ty_graph_origin(g, "layers.0 (Add #3)");
    assert_int_equal(ty_b_add(g, x, y), TY_NONE);
    assert_true(ty_graph_failed(g, &err));
    assert_int_equal(err.code, TY_E_SHAPE);
    assert_non_null(strstr(err.message, "f32[2,3]"));
    assert_non_null(strstr(err.message, "f32[4]"));
    assert_string_equal(err.place, "layers.0 (Add #3)");
    assert_int_equal(ty_b_exp(g, x), TY_NONE);
    assert_int_equal(ty_b_exp(g, TY_NONE), TY_NONE);
    assert_int_equal(ty_graph_fail(g, TY_E_INTERNAL, "later"), TY_NONE);
    ty_graph_failed(g, &err);
    assert_int_equal(err.code, TY_E_SHAPE);
    assert_int_equal(ty_graph_add_output(g, "y", x, TY_TAPE_EVAL), -1);
    ty_graph_clear_error(g);
    assert_false(ty_graph_failed(g, NULL));
    assert_int_not_equal(ty_b_exp(g, x), TY_NONE);
    ty_graph_free(g);
}

/* Runs `wrong`, which must fail with the code and words. */
static void expect_refused(ty_graph *g, ty_code code, const char *words)
{
    ty_error err = {0};
    if (!ty_graph_failed(g, &err))
        fail_msg("not refused; expected \"%s\"", words);
    if (err.code != code || !strstr(err.message, words))
        fail_msg("expected code %d \"%s\", found %d \"%s\"", code, words, err.code, err.message);
    ty_graph_clear_error(g);
}

static void test_wrong_calls_are_refused(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2, 3)), i = new_input(g, TY_I32, SHAPE(2, 3));
    ty_graph_emit(g, TY_OP_ADD, NULL, (ty_val[]){x}, 1);
    expect_refused(g, TY_E_GRAPH, "takes 2 inputs, found 1");
    ty_graph_emit(g, (ty_op)999, NULL, NULL, 0);
    expect_refused(g, TY_E_GRAPH, "no op number 999");
    ty_graph_emit(g, TY_OP_EXP, NULL, (ty_val[]){ty_val_make(77, 0)}, 1);
    expect_refused(g, TY_E_GRAPH, "no value of this graph");
    ty_graph_emit(g, TY_OP_EXP, NULL, (ty_val[]){ty_val_make(0, 1)}, 1);
    expect_refused(g, TY_E_GRAPH, "no value of this graph");
    ty_b_add(g, x, i);
    expect_refused(g, TY_E_SHAPE, "expected f32[2,3], found i32[2,3]");
    ty_b_exp(g, i);
    expect_refused(g, TY_E_SHAPE, "expected a float");
    ty_b_input(g, 9);
    expect_refused(g, TY_E_GRAPH, "input 9");
    ty_b_state(g, 0);
    expect_refused(g, TY_E_GRAPH, "state 0");
    ty_b_reshape(g, x, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 6));
    expect_refused(g, TY_E_SHAPE, "rank 9");
    ty_b_full(g, TY_F32, SHAPE(INT64_C(1) << 40, INT64_C(1) << 40), 0);
    expect_refused(g, TY_E_SHAPE, "");
    ty_attr attr = {.type = ty_type_make(TY_F64, SHAPE(2, 3)), .index = 0};
    ty_graph_emit(g, TY_OP_INPUT, &attr, NULL, 0);
    expect_refused(g, TY_E_GRAPH, "not f64[2,3]");
    ty_graph_add_input(g, "x0", ty_type_scalar(TY_F32));
    expect_refused(g, TY_E_GRAPH, "two inputs");
    ty_graph_add_output(g, "y", TY_NONE, TY_TAPE_EVAL);
    expect_refused(g, TY_E_GRAPH, "has no value");
    ty_graph_free(g);
}

static void test_unused_attributes_do_not_split_nodes(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2, 3));
    ty_attr a = {.axis = 3, .value = 5, .n = 2, .lo = {1, 0, 7, 7}, .hi = {3}};
    ty_attr b = {.n = 2, .lo = {1, 0}};
    assert_int_equal(ty_graph_emit(g, TY_OP_TRANSPOSE, &a, &x, 1), ty_graph_emit(g, TY_OP_TRANSPOSE, &b, &x, 1));
    ty_attr cast = {.type = ty_type_make(TY_F16, SHAPE(9, 9))};
    assert_int_equal(ty_graph_emit(g, TY_OP_CAST, &cast, &x, 1), ty_b_cast(g, x, TY_F16));
    ty_graph_free(g);
}

static void test_states_and_assigns(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    float first[2] = {1, 2};
    ty_segment parts[2] = {{"a", ty_type_make(TY_F32, SHAPE(2)), 0}, {"b", ty_type_make(TY_F32, SHAPE(3)), 4}};
    const void *init[2] = {first, NULL};
    ty_state s = {"arena", ty_type_make(TY_F32, SHAPE(8)), TY_STATE_PARAM, parts, 2, init};
    assert_int_equal(ty_graph_add_state(g, &s), 0);
    parts[0].name = "changed";
    assert_string_equal(ty_graph_state(g, 0)->segments[0].name, "a");
    ty_state whole = {.name = "step", .type = ty_type_scalar(TY_I64), .role = TY_STATE_COUNTER};
    assert_int_equal(ty_graph_add_state(g, &whole), 1);
    assert_int_equal(ty_graph_state(g, 1)->n_segments, 1);
    assert_string_equal(ty_graph_state(g, 1)->segments[0].name, "step");
    ty_val p = ty_b_state(g, 0);
    assert_int_equal(ty_graph_add_assign(g, 0, ty_b_mul_s(g, p, 2), TY_TAPE_LAST), 0);
    assert_int_equal(ty_graph_add_assign(g, 0, p, TY_TAPE_INIT), 1);
    expect_ok(g);
    assert_int_equal(ty_graph_add_assign(g, 0, p, TY_TAPE_LAST | TY_TAPE_EVAL), -1);
    expect_refused(g, TY_E_GRAPH, "assigned twice");
    assert_int_equal(ty_graph_add_assign(g, 1, p, TY_TAPE_LAST), -1);
    expect_refused(g, TY_E_GRAPH, "not f32[8]");
    assert_int_equal(ty_graph_add_assign(g, 5, p, TY_TAPE_LAST), -1);
    expect_refused(g, TY_E_GRAPH, "state 5");
    assert_int_equal(ty_graph_add_state(g, &whole), -1);
    expect_refused(g, TY_E_GRAPH, "two states");
    parts[1].offset = 1;
    s.name = "other";
    assert_int_equal(ty_graph_add_state(g, &s), -1);
    expect_refused(g, TY_E_GRAPH, "overlaps");
    parts[1].offset = 6;
    assert_int_equal(ty_graph_add_state(g, &s), -1);
    expect_refused(g, TY_E_GRAPH, "outside");
    ty_graph_free(g);
}

static void test_live_nodes_by_tape(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2)), a = ty_b_exp(g, x), b = ty_b_log(g, x), dead = ty_b_neg(g, a);
    ty_graph_add_output(g, "a", a, TY_TAPE_LAST);
    ty_graph_add_output(g, "b", b, TY_TAPE_EVAL);
    ty_graph_add_output(g, "a", b, TY_TAPE_EVAL);
    expect_ok(g);
    ty_graph_add_output(g, "a", b, TY_TAPE_EVAL | TY_TAPE_LAST);
    expect_refused(g, TY_E_GRAPH, "two outputs");
    uint8_t live[16];
    ty_graph_mark_live(g, TY_TAPE_LAST, live);
    assert_true(live[ty_val_node(x)] && live[ty_val_node(a)]);
    assert_false(live[ty_val_node(b)] || live[ty_val_node(dead)]);
    ty_graph_mark_live(g, TY_TAPE_EVAL, live);
    assert_true(live[ty_val_node(b)] && !live[ty_val_node(a)]);
    ty_graph_mark_live(g, TY_TAPE_INIT, live);
    assert_false(live[ty_val_node(x)]);
    ty_graph_free(g);
}

static void test_origins(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2));
    char name[] = "first";
    ty_graph_origin(g, name);
    ty_val a = ty_b_exp(g, x);
    name[0] = 'F';
    ty_graph_origin(g, "second");
    assert_int_equal(ty_b_exp(g, x), a);
    assert_string_equal(ty_graph_origin_of(g, ty_val_node(a)), "first");
    assert_string_equal(ty_graph_origin_of(g, ty_val_node(ty_b_neg(g, a))), "second");
    assert_string_equal(ty_graph_origin_of(g, ty_val_node(x)), "");
    ty_graph_free(g);
}

static void test_a_hundred_thousand_nodes(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(8, 16)), y = new_input(g, TY_F32, SHAPE(16));
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (int i = 0; ty_graph_n_nodes(g) < 100000; i++) {
        ty_val t = ty_b_mul_s(g, ty_b_add(g, x, y), 1 + i * 0x1p-20);
        x = i % 7 ? ty_b_unary(g, TY_OP_TANH, t) : ty_b_reshape(g, ty_b_slice_axis(g, t, 0, 0, 8), SHAPE(8, 16));
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    double s = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
    expect_ok(g);
    assert_int_equal(ty_graph_verify(g, NULL), 0);
    print_message("100000 nodes in %.3f s\n", s);
    assert_true(s < 5); /* about 0.1 s; sanitizers and busy machines take their share */
    ty_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_nodes_are_one),
        cmocka_unit_test(test_constants_by_content_and_address),
        cmocka_unit_test(test_errors_are_sticky),
        cmocka_unit_test(test_wrong_calls_are_refused),
        cmocka_unit_test(test_unused_attributes_do_not_split_nodes),
        cmocka_unit_test(test_states_and_assigns),
        cmocka_unit_test(test_live_nodes_by_tape),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_a_hundred_thousand_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
