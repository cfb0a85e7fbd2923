/* native_thin.c - convolutions of few channels and the gradient of their weights against the reference, and which ones
 * are taken. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/conv_case.h"

static void gradients_are_those_of_the_definition(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {3, 28, 28, 1, 32, 3, 3, 1, 1, 0, 0},  {2, 11, 26, 1, 64, 3, 3, 1, 1, 1, 1}, /* few taps */
        {2, 9, 60, 3, 96, 2, 2, 2, 2, 1, 0},   {2, 9, 50, 3, 32, 3, 3, 1, 1, 1, 1},
        {3, 11, 99, 1, 64, 5, 5, 2, 2, 2, 2},  {1, 4, 52, 4, 96, 2, 4, 1, 1, 0, 0},
        {1, 20, 103, 3, 64, 7, 7, 2, 2, 3, 2}, {5, 6, 148, 2, 32, 1, 3, 1, 3, 0, 0},
        {1, 6, 151, 2, 32, 3, 2, 2, 3, 0, 0}, /* columns that nobody reads */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_type types[2];
        case_types(&cases[i], types);
        native_agrees(TY_OP_CONV_DW, case_attr(&cases[i]), types, 2, NATIVE_NOISE, 2e-5);
    }
}

static void results_are_those_of_the_definition(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {3, 28, 28, 1, 32, 3, 3, 1, 1, 0, 0}, {2, 11, 9, 1, 64, 3, 3, 1, 1, 1, 1}, {1, 9, 14, 2, 96, 2, 2, 2, 2, 1, 0},
        {3, 6, 31, 1, 32, 1, 9, 1, 3, 2, 5},  {1, 3, 3, 1, 32, 3, 3, 1, 1, 0, 0},  {2, 4, 5, 4, 32, 1, 2, 3, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_type types[2];
        case_types(&cases[i], types);
        types[1] = case_weights(&cases[i]);
        native_agrees(TY_OP_CONV, case_attr(&cases[i]), types, 2, NATIVE_NOISE, 2e-6);
    }
}

static bool is_taken(const conv_case *c, uint32_t flags, int64_t dilation)
{
    ty_type types[2];
    ty_attr attr = case_attr(c);
    ty_library_call call = {0};
    attr.flags = flags;
    attr.dil[0] = dilation;
    case_types(c, types);
    const ty_library_shape shape = {.attr = &attr, .in = types, .n_in = 2, .res = &attr.type, .n_res = 1, .threads = 1};
    bool taken = ty_native_prepare_thin_dw(&shape, &call, NULL) == 0;
    ty_library_release(&call);
    return taken;
}

static void what_is_taken(void **state)
{
    (void)state;
    static const struct {
        conv_case shape;
        bool taken;
    } rows[] = {
        {{8, 224, 224, 3, 64, 7, 7, 2, 2, 3, 2}, true},
        {{64, 28, 28, 1, 32, 3, 3, 1, 1, 0, 0}, true},  /* few taps */
        {{64, 16, 16, 1, 32, 3, 3, 1, 1, 0, 0}, false}, /* short rows */
        {{64, 32, 32, 3, 32, 3, 3, 1, 1, 1, 1}, false},
        {{8, 64, 64, 3, 48, 3, 3, 1, 1, 1, 1}, false}, /* half a panel */
        {{8, 64, 64, 8, 64, 3, 3, 1, 1, 1, 1}, false}, /* many channels */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(is_taken(&rows[i].shape, TY_SLIDING_LAST, 1), rows[i].taken);
    assert_false(is_taken(&rows[0].shape, 0, 1));
    assert_false(is_taken(&rows[0].shape, TY_SLIDING_LAST, 2));
}

static void what_is_taken_forward(void **state)
{
    (void)state;
    static const struct {
        conv_case shape;
        bool taken;
    } rows[] = {
        {{64, 28, 28, 1, 32, 3, 3, 1, 1, 0, 0}, true},
        {{64, 28, 28, 1, 48, 3, 3, 1, 1, 0, 0}, false}, /* half a panel */
        {{64, 28, 28, 3, 32, 3, 3, 1, 1, 0, 0}, false}, /* many taps */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_type types[2], in[2];
        ty_attr attr = case_attr(&rows[i].shape);
        ty_library_call call = {0};
        case_types(&rows[i].shape, types);
        in[0] = types[0];
        in[1] = case_weights(&rows[i].shape);
        const ty_library_shape shape = {.attr = &attr, .in = in, .n_in = 2, .res = &types[1], .n_res = 1, .threads = 1};
        assert_int_equal(ty_native_prepare_thin(&shape, &call, NULL) == 0, rows[i].taken);
        ty_library_release(&call);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_the_definition),
        cmocka_unit_test(gradients_are_those_of_the_definition),
        cmocka_unit_test(what_is_taken),
        cmocka_unit_test(what_is_taken_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
