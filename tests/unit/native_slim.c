/* native_slim.c - convolutions to few channels and the gradient of their weights against the reference, and which ones
 * are taken. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/conv_case.h"

static const conv_case cases[] = {
    {3, 12, 17, 32, 3, 3, 3, 1, 1, 1, 1},  {1, 5, 6, 16, 1, 3, 3, 1, 1, 0, 0},  {2, 9, 11, 17, 2, 5, 5, 1, 1, 2, 2},
    {2, 9, 8, 20, 4, 2, 4, 2, 3, 0, 1},    {1, 1, 1, 48, 3, 3, 3, 1, 1, 1, 1},  {2, 40, 33, 64, 3, 3, 3, 1, 1, 1, 1},
    {1, 6, 5, 16, 4, 7, 7, 1, 1, 6, 6},    {1, 4, 23, 33, 2, 1, 3, 1, 2, 0, 0}, {1, 30, 4, 16, 1, 3, 1, 3, 1, 0, 0},
    {2, 16, 15, 160, 3, 5, 3, 1, 1, 1, 2}, {20, 8, 8, 24, 3, 4, 4, 2, 2, 1, 1},
};

static void results_are_those_of_the_definition(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_type types[2];
        case_types(&cases[i], types);
        types[1] = case_weights(&cases[i]);
        native_agrees(TY_OP_CONV, case_attr(&cases[i]), types, 2, NATIVE_NOISE, 2e-5);
    }
}

static void gradients_are_those_of_the_definition(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_type types[2];
        case_types(&cases[i], types);
        native_agrees(TY_OP_CONV_DW, case_attr(&cases[i]), types, 2, NATIVE_NOISE, 2e-5);
    }
}

/* Whether each of the two takes it. */
static void expect_taken(const conv_case *c, const ty_attr *attr, bool taken)
{
    ty_type types[2], w = case_weights(c);
    case_types(c, types);
    for (int back = 0; back < 2; back++) {
        const ty_type in[2] = {types[0], back ? types[1] : w};
        const ty_library_shape shape = {
            .attr = attr, .in = in, .n_in = 2, .res = back ? &w : &types[1], .n_res = 1, .threads = 1};
        ty_library_call call = {0};
        int rc = (back ? ty_native_prepare_slim_dw : ty_native_prepare_slim)(&shape, &call, NULL);
        assert_int_equal(rc == 0, taken);
        assert_true(!taken || strncmp(call.text, "native-slim:", 12) == 0);
        ty_library_release(&call);
    }
}

static void what_is_taken(void **state)
{
    (void)state;
    const conv_case fits = cases[0], wide = {1, 8, 8, 32, 5, 3, 3, 1, 1, 1, 1},
                    thin = {1, 8, 8, 15, 3, 3, 3, 1, 1, 1, 1};
    const conv_case high = {1, 20, 8, 32, 3, 17, 3, 1, 1, 0, 1};
    ty_attr attr = case_attr(&fits), dilated = attr, first = attr, apart = attr;
    dilated.dil[1] = 2;
    first.flags = 0;
    apart.groups = 3;
    expect_taken(&fits, &attr, true);
    expect_taken(&fits, &dilated, false);
    expect_taken(&fits, &first, false);
    expect_taken(&fits, &apart, false);
    expect_taken(&wide, &attr, false); /* more filters than sums fit into registers */
    expect_taken(&thin, &attr, false); /* channels that fill no vector */
    expect_taken(&high, &attr, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_the_definition),
        cmocka_unit_test(gradients_are_those_of_the_definition),
        cmocka_unit_test(what_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
