/* Movement ops: values against plain loops over indices, refusals, and gradients by central differences. */
#include "tests/unit/evaluate.h"
#include "tests/unit/gradients.h"

static const double counted[24] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                   12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};

static void test_values(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F64, SHAPE(2, 3)), y = new_input(g, TY_F64, SHAPE(1, 3));
    const void *in[] = {counted, counted};
    expect_floats(g, ty_b_transpose(g, x, (int64_t[]){1, 0}), in, 6, (double[]){0, 3, 1, 4, 2, 5});
    expect_floats(g, ty_b_reshape(g, x, SHAPE(3, 2)), in, 6, counted);
    expect_floats(g, ty_b_broadcast(g, y, SHAPE(2, 3)), in, 6, (double[]){0, 1, 2, 0, 1, 2});
    expect_floats(g, ty_b_slice(g, x, (int64_t[]){0, 0}, (int64_t[]){2, 3}, (int64_t[]){1, 2}), in, 4,
                  (double[]){0, 2, 3, 5});
    expect_floats(g, ty_b_slice_axis(g, x, 0, 1, 2), in, 3, (double[]){3, 4, 5});
    expect_floats(g, ty_b_pad(g, y, (int64_t[]){1, 0}, (int64_t[]){0, 2}, 9), in, 10,
                  (double[]){9, 9, 9, 9, 9, 0, 1, 2, 9, 9});
    expect_floats(g, ty_b_concat(g, (ty_val[]){y, x, y}, 3, 0), in, 12, (double[]){0, 1, 2, 0, 1, 2, 3, 4, 5, 0, 1, 2});
    expect_floats(g, ty_b_concat(g, (ty_val[]){x, x}, 2, 1), in, 12, (double[]){0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
    expect_floats(g, ty_b_reverse(g, x, 1), in, 6, (double[]){3, 4, 5, 0, 1, 2});
    expect_floats(g, ty_b_reverse(g, x, 3), in, 6, (double[]){5, 4, 3, 2, 1, 0});
    expect_floats(g, ty_b_slice_axis(g, x, 0, 1, 1), in, 0, NULL);
    ty_graph_free(g);
}

static void test_transposes_of_rank_three(void **state)
{
    (void)state;
    static const int64_t perms[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int p = 0; p < 6; p++) {
        ty_graph *g = ty_graph_new();
        ty_val x = new_input(g, TY_F64, SHAPE(2, 3, 4)), y = ty_b_transpose(g, x, perms[p]);
        const void *in[] = {counted};
        const double *found = evaluate(g, y, in, false);
        const int64_t *dim = ty_graph_type(g, y)->dim;
        for (int64_t k = 0; k < 24; k++) {
            int64_t at[3] = {k / (dim[1] * dim[2]), k / dim[2] % dim[1], k % dim[2]}, of_x[3];
            for (int i = 0; i < 3; i++)
                of_x[perms[p][i]] = at[i];
            assert_true(found[k] == counted[of_x[0] * 12 + of_x[1] * 4 + of_x[2]]);
        }
        ty_graph_free(g);
    }
}

static void test_integers_move_too(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_U8, SHAPE(3));
    const void *in[] = {(uint8_t[]){1, 2, 255}};
    expect_ints(g, ty_b_pad(g, ty_b_reverse(g, x, 1), (int64_t[]){1}, (int64_t[]){0}, -1), in, 4,
                (int64_t[]){255, 255, 2, 1});
    ty_graph_free(g);
}

static void test_wrong_arguments_are_refused(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2, 3)), i = new_input(g, TY_I32, SHAPE(2, 3));
#define REFUSED(CALL, WORDS)                                               \
    do {                                                                   \
        ty_error err = {0};                                                \
        assert_int_equal(CALL, TY_NONE);                                   \
        assert_true(ty_graph_failed(g, &err));                             \
        if (!strstr(err.message, WORDS))                                   \
            fail_msg("expected \"%s\", found \"%s\"", WORDS, err.message); \
        ty_graph_clear_error(g);                                           \
    } while (0)
    REFUSED(ty_b_reshape(g, x, SHAPE(7)), "6 elements");
    REFUSED(ty_b_reshape(g, x, SHAPE(-1, -6)), "result");
    REFUSED(ty_b_transpose(g, x, ((int64_t[]){0, 0})), "each axis");
    REFUSED(ty_b_transpose(g, x, ((int64_t[]){0, 2})), "each axis");
    REFUSED(ty_b_broadcast(g, x, SHAPE(2, 4)), "equal or 1");
    REFUSED(ty_b_broadcast(g, x, SHAPE(3)), "does not broadcast");
    REFUSED(ty_b_slice_axis(g, x, 1, 2, 4), "not a part");
    REFUSED(ty_b_slice_axis(g, x, 1, 2, 1), "not a part");
    REFUSED(ty_b_slice_axis(g, x, 5, 0, 1), "no axis 5");
    REFUSED(ty_b_slice(g, x, ((int64_t[]){0, 0}), ((int64_t[]){2, 3}), ((int64_t[]){1, 0})), "not a part");
    REFUSED(ty_b_pad(g, x, ((int64_t[]){-1, 0}), ((int64_t[]){0, 0}), 0), "0 or more");
    REFUSED(ty_b_pad(g, x, ((int64_t[]){INT64_MAX, 0}), ((int64_t[]){0, 0}), 0), "padding");
    REFUSED(ty_b_pad(g, i, ((int64_t[]){1, 0}), ((int64_t[]){0, 0}), 1e30), "a value of i32");
    REFUSED(ty_b_pad(g, i, ((int64_t[]){1, 0}), ((int64_t[]){0, 0}), 0.5), "a value of i32");
    REFUSED(ty_b_concat(g, ((ty_val[]){x, i}), 2, 0), "expected f32");
    REFUSED(ty_b_concat(g, ((ty_val[]){x, ty_b_flatten(g, x)}), 2, 0), "expected f32");
    REFUSED(ty_b_concat(g, &x, 1, 2), "axis");
    REFUSED(ty_b_reverse(g, x, 4), "axes 0x4");
    REFUSED(ty_b_squeeze(g, x, 0), "not 1");
    REFUSED(ty_b_unsqueeze(g, x, 4), "axis 4");
    ty_graph_free(g);
}

/* ---- gradients ---- */

static ty_val build_moved(ty_graph *g, const ty_val *x, const void *which)
{
    ty_val v = x[0]; /* [4, 1, 5] */
    switch (*(const int *)which) {
    case 0:
        return ty_b_reshape(g, v, SHAPE(2, 10));
    case 1:
        return ty_b_transpose(g, v, (int64_t[]){2, 0, 1});
    case 2:
        return ty_b_broadcast(g, v, SHAPE(2, 4, 3, 5));
    case 3:
        return ty_b_slice(g, v, (int64_t[]){1, 0, 2}, (int64_t[]){4, 1, 4}, NULL);
    case 4:
        return ty_b_slice(g, v, (int64_t[]){0, 0, 1}, (int64_t[]){4, 1, 5}, (int64_t[]){3, 1, 2});
    case 5:
        return ty_b_slice(g, v, (int64_t[]){1, 0, 0}, (int64_t[]){4, 1, 5}, (int64_t[]){2, 1, 3});
    case 6:
        return ty_b_pad(g, v, (int64_t[]){1, 0, 2}, (int64_t[]){0, 3, 1}, 2.5);
    case 7:
        return ty_b_concat(g, (ty_val[]){v, ty_b_exp(g, v), v}, 3, 2);
    case 8:
        return ty_b_reverse(g, v, 5);
    case 9:
        return ty_b_flatten(g, v);
    case 10:
        return ty_b_mul(g, ty_b_slice_axis(g, v, 2, 0, 2), ty_b_slice_axis(g, v, 2, 3, 5));
    default:
        return ty_b_slice_axis(g, ty_b_concat(g, (ty_val[]){v, ty_b_neg(g, v)}, 2, 0), 0, 3, 6);
    }
}

static void test_gradients(void **state)
{
    (void)state;
    static const int which[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    for (int i = 0; i < 12; i++) {
        char name[32];
        snprintf(name, sizeof name, "movement %d", i);
        gradcheck(&(gradcheck_case){
            .name = name, .build = build_moved, .ctx = &which[i], .n_in = 1, .in = {GRAD_IN(4, 1, 5)}});
    }
}

static ty_val build_steps(ty_graph *g, const ty_val *x, const void *ctx)
{
    const int64_t *c = ctx;
    return ty_b_slice(g, x[0], &c[0], &c[1], &c[2]);
}

/* Every slice of 7 elements: the zeros behind the last element may or may not fit. */
static void test_gradients_of_all_strided_slices(void **state)
{
    (void)state;
    for (int64_t lo = 0; lo < 7; lo++)
        for (int64_t hi = lo + 1; hi <= 7; hi++)
            for (int64_t step = 1; step <= 4; step++) {
                int64_t c[3] = {lo, hi, step};
                gradcheck(&(gradcheck_case){
                    .name = "strided slice", .build = build_steps, .ctx = c, .n_in = 1, .in = {GRAD_IN(7)}});
            }
}

static ty_val build_two(ty_graph *g, const ty_val *x, const void *ctx)
{
    (void)ctx;
    return ty_b_concat(g, (ty_val[]){x[0], x[1], x[0]}, 3, 1);
}

static void test_gradient_of_concat_of_two(void **state)
{
    (void)state;
    gradcheck(&(gradcheck_case){.name = "concat", .build = build_two, .n_in = 2, .in = {GRAD_IN(2, 3), GRAD_IN(2, 1)}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_transposes_of_rank_three),
        cmocka_unit_test(test_integers_move_too),
        cmocka_unit_test(test_wrong_arguments_are_refused),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_gradients_of_all_strided_slices),
        cmocka_unit_test(test_gradient_of_concat_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
