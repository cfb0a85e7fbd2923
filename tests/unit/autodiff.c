/* Reverse mode as a pass: what is reached, what adds up, what is zero, what is refused; and lowering of composites. */
#include "tests/unit/evaluate.h"
#include "tests/unit/gradients.h"

#include "compiler/passes/passes.h"

static ty_val total(ty_graph *g, ty_val v)
{
    return ty_b_sum(g, v, ty_b_all_axes(g, v), false);
}

static void differentiate(ty_graph *g, ty_val loss, const ty_val *wrt, int n, ty_val *grad)
{
    ty_error err = {0};
    expect_ok(g);
    if (ty_pass_autodiff(g, loss, wrt, n, grad, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(ty_graph_verify(g, NULL), 0);
}

static void test_contributions_add_up(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F64, SHAPE(3)), dx;
    ty_val y = ty_b_add(g, ty_b_mul(g, x, ty_b_square(g, x)), ty_b_mul_s(g, x, 2)); /* x^3 + 2 x */
    differentiate(g, total(g, y), &x, 1, &dx);
    const void *in[] = {(double[]){1, 2, -3}};
    expect_floats(g, dx, in, 3, (double[]){5, 14, 29});
    ty_graph_free(g);
}

static void test_intermediate_values_and_strangers(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F64, SHAPE(2)), stranger = new_input(g, TY_F64, SHAPE(4, 5));
    ty_val h = ty_b_mul_s(g, x, 3), y = ty_b_square(g, h), loss = total(g, y), later = ty_b_exp(g, h);
    ty_val wrt[] = {x, h, y, loss, stranger, later}, d[6];
    differentiate(g, loss, wrt, 6, d);
    const void *in[] = {(double[]){1, 2}, NULL};
    expect_floats(g, d[0], in, 2, (double[]){18, 36});
    expect_floats(g, d[1], in, 2, (double[]){6, 12});
    expect_floats(g, d[2], in, 2, (double[]){1, 1});
    expect_floats(g, d[3], in, 1, (double[]){1});
    double zero;
    assert_true(ty_graph_splat_value(g, d[4], &zero) && zero == 0);
    assert_true(ty_type_same(ty_graph_type(g, d[4]), ty_graph_type(g, stranger)));
    assert_true(ty_graph_splat_value(g, d[5], &zero) && zero == 0);
    ty_graph_free(g);
}

/* Only paths from wrt are walked: an op without a gradient elsewhere is no obstacle. */
static void test_only_needed_paths(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2)), bits = new_input(g, TY_U32, SHAPE(2)),
           other = new_input(g, TY_F32, SHAPE(2));
    ty_attr to_f32 = {.type = ty_type_scalar(TY_F32)}, to_u32 = {.type = ty_type_scalar(TY_U32)};
    ty_val noise = ty_graph_emit(g, TY_OP_BITCAST, &to_f32, &bits, 1), d;
    differentiate(g, total(g, ty_b_mul(g, x, noise)), &x, 1, &d);
    assert_int_equal(d, noise);
    ty_val through = ty_graph_emit(g, TY_OP_BITCAST, &to_u32, &other, 1); /* an integer ends the path: zero */
    differentiate(g, total(g, ty_b_mul(g, x, ty_b_cast(g, through, TY_F32))), &other, 1, &d);
    double zero;
    assert_true(ty_graph_splat_value(g, d, &zero) && zero == 0);
    ty_graph_free(g);
}

/* Where exp(-x) overflows the slope is 0, not 0 times infinity; and steps of a sigmoid still have their gradients. */
static void test_sigmoid_far_out(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F64, SHAPE(4)), dx, d[2];
    ty_val power = ty_b_exp(g, ty_b_neg(g, x)), s = ty_b_sigmoid(g, x);
    differentiate(g, total(g, s), &x, 1, &dx);
    const void *in[] = {(double[]){-1e4, -800, 0, 1e4}};
    expect_floats(g, dx, in, 4, (double[]){0, 0, 0.25, 0});
    differentiate(g, total(g, s), (ty_val[]){power, x}, 2, d);
    const void *near[] = {(double[]){0, 0, 0, 0}};
    expect_floats(g, d[0], near, 4, (double[]){-0.25, -0.25, -0.25, -0.25});
    expect_floats(g, d[1], near, 4, (double[]){0.25, 0.25, 0.25, 0.25});
    ty_graph_free(g);
}

static void test_refusals(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_val x = new_input(g, TY_F32, SHAPE(1, 1, 4, 4)), d;
    ty_attr pool = {.type = *ty_graph_type(g, x), .n = 2, .size = {2, 2}, .step = {2, 2}, .dil = {1, 1}};
    ty_val y = ty_graph_emit(g, TY_OP_POOL_MAX, &pool, &x, 1);
    ty_graph_origin(g, "pool1");
    ty_val back = ty_graph_emit(g, TY_OP_POOL_MAX_GRAD, &pool, (ty_val[]){y, ty_val_make(ty_val_node(y), 1)}, 2);
    expect_ok(g);
    assert_int_equal(ty_pass_autodiff(g, total(g, back), &x, 1, &d, &err), -1);
    assert_int_equal(err.code, TY_E_NO_GRADIENT);
    assert_non_null(strstr(err.message, "pool_max_grad has no gradient"));
    assert_non_null(strstr(err.place, "pool1"));
    ty_graph_clear_error(g);
    assert_int_equal(ty_pass_autodiff(g, y, &x, 1, &d, &err), -1);
    assert_int_equal(err.code, TY_E_SHAPE);
    assert_int_equal(ty_pass_autodiff(g, TY_NONE, &x, 1, &d, &err), -1);
    ty_graph_free(g);
}

static void test_gradients_name_their_origin(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2)), d;
    ty_graph_origin(g, "net/act");
    ty_val y = ty_b_unary(g, TY_OP_TANH, x);
    ty_graph_origin(g, "");
    differentiate(g, total(g, y), &x, 1, &d);
    assert_string_equal(ty_graph_origin_of(g, ty_val_node(d)), "gradient of net/act");
    ty_graph_free(g);
}

static ty_val build_network(ty_graph *g, const ty_val *x, const void *ctx)
{
    (void)ctx;
    ty_val h = ty_b_unary(g, TY_OP_TANH, ty_b_add(g, ty_b_matmul(g, x[0], x[1]), x[2]));
    h = ty_b_norm(g, h, TY_NONE, x[2], 1, 1e-3, false);
    return ty_b_softmax(g, ty_b_add(g, h, ty_b_sigmoid(g, h)), 1, true);
}

static void test_a_small_network(void **state)
{
    (void)state;
    gradcheck(&(gradcheck_case){
        .name = "network", .build = build_network, .n_in = 3, .in = {GRAD_IN(3, 4), GRAD_IN(4, 5), GRAD_IN(5)}});
}

/* ---- lowering ---- */

static void test_lowering_leaves_no_composite(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new(), *low;
    ty_error err = {0};
    ty_state s = {.name = "w",
                  .type = ty_type_make(TY_F64, SHAPE(4)),
                  .role = TY_STATE_PARAM,
                  .init = (const void *const[]){(double[]){1, 2, 3, 4}}};
    ty_graph_add_state(g, &s);
    ty_val x = new_input(g, TY_F64, SHAPE(3, 4)), w = ty_b_state(g, 0), dw;
    ty_graph_origin(g, "head");
    ty_val y = ty_b_softmax(g, ty_b_norm(g, x, w, TY_NONE, 1, 1e-5, true), 1, false);
    ty_val loss = total(g, ty_b_mul(g, y, x));
    differentiate(g, loss, &w, 1, &dw);
    double *table = ty_arena_alloc(ty_graph_arena(g), 1000 * sizeof *table); /* dies with g */
    table[3] = 7;
    ty_val borrowed = ty_b_slice_axis(g, ty_b_const(g, ty_type_make(TY_F64, SHAPE(1000)), table), 0, 3, 4);
    ty_graph_add_output(g, "y", y, TY_TAPE_LAST | TY_TAPE_EVAL);
    ty_graph_add_output(g, "dw", dw, TY_TAPE_LAST);
    ty_graph_add_output(g, "seven", borrowed, TY_TAPE_LAST);
    ty_graph_add_assign(g, 0, ty_b_sub(g, w, dw), TY_TAPE_LAST);
    if (ty_pass_lower(g, &low, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(ty_graph_verify(low, &err), 0);
    bool named = false;
    for (uint32_t id = 0; id < ty_graph_n_nodes(low); id++) {
        assert_int_not_equal(ty_op_row_of(ty_graph_op(low, id))->class_, TY_CLASS_COMPOSITE);
        named = named || strcmp(ty_graph_origin_of(low, id), "head") == 0;
    }
    assert_true(named);
    assert_string_equal(ty_graph_output(low, 1)->name, "dw");
    assert_int_equal(ty_graph_n_effects(low), 1);
    const void *in[] = {(double[]){1, 2, 3, 4, -1, 0, 1, 0.5, 7, 7, 7, 6}};
    ty_interp *a, *b;
    assert_int_equal(ty_interp_new(g, &a, NULL), 0);
    assert_int_equal(ty_interp_run(a, TY_TAPE_LAST, in, false, NULL), 0);
    double y0 = ty_interp_output(a, 0)->f[5], w0 = ty_interp_state(a, 0)->f[2];
    ty_interp_free(a);
    ty_graph_free(g); /* the new graph stands on its own */
    assert_int_equal(ty_interp_new(low, &b, NULL), 0);
    assert_int_equal(ty_interp_run(b, TY_TAPE_LAST, in, false, NULL), 0);
    assert_true(fabs(ty_interp_output(b, 0)->f[5] - y0) < 1e-12);
    assert_true(fabs(ty_interp_state(b, 0)->f[2] - w0) < 1e-12);
    assert_true(ty_interp_output(b, 2)->f[0] == 7);
    ty_interp_free(b);
    expect_round_trip(low);
    ty_graph_free(low);
}

static void test_lowering_drops_what_nobody_uses(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new(), *low;
    ty_val x = new_input(g, TY_F32, SHAPE(2));
    ty_b_exp(g, x);
    ty_graph_add_output(g, "y", ty_b_neg(g, x), TY_TAPE_EVAL);
    assert_int_equal(ty_pass_lower(g, &low, NULL), 0);
    assert_int_equal(ty_graph_n_nodes(low), 2);
    ty_graph_free(g);
    ty_graph_free(low);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contributions_add_up),
        cmocka_unit_test(test_intermediate_values_and_strangers),
        cmocka_unit_test(test_only_needed_paths),
        cmocka_unit_test(test_sigmoid_far_out),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_gradients_name_their_origin),
        cmocka_unit_test(test_a_small_network),
        cmocka_unit_test(test_lowering_leaves_no_composite),
        cmocka_unit_test(test_lowering_drops_what_nobody_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
