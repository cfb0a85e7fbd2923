/* Errors: filling, growing, printing, the table of codes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void test_set_and_wrap(void **state)
{
    (void)state;
    ty_error err = {0};
    assert_int_equal(ty_error_set(&err, TY_E_SHAPE, "output \"%s\" has shape [4, 3]", "y"), -1);
    assert_int_equal(ty_error_wrap(&err, "loss \"mse\""), -1);
    assert_int_equal(ty_error_wrap(&err, "step graph"), -1);
    assert_int_equal(err.code, TY_E_SHAPE);
    assert_string_equal(err.message, "step graph: loss \"mse\": output \"y\" has shape [4, 3]");
}

static void test_set_forgets_what_was(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_error_set(&err, TY_E_DATA, "first");
    ty_error_at(&err, "a:1");
    ty_error_help(&err, "help");
    ty_error_detail(&err, "line");
    err.which = 5;
    ty_error_set(&err, TY_E_IO, "second");
    assert_int_equal(err.which, 0);
    assert_string_equal(err.place, "");
    assert_string_equal(err.help, "");
    assert_string_equal(err.detail, "");
}

static void test_arguments_may_alias(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_error_set(&err, TY_E_IO, "inner");
    ty_error_set(&err, TY_E_IO, "outer <%s>", err.message);
    assert_string_equal(err.message, "outer <inner>");
    ty_error_wrap(&err, "%s", err.message);
    assert_string_equal(err.message, "outer <inner>: outer <inner>");
}

static void test_innermost_place_stays(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_error_set(&err, TY_E_SYNTAX, "x");
    ty_error_at(&err, "inner:%d", 3);
    ty_error_at(&err, "outer");
    ty_error_help(&err, "do this");
    ty_error_help(&err, "do that");
    assert_string_equal(err.place, "inner:3");
    assert_string_equal(err.help, "do this");
}

static void test_control_characters_are_escaped(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_error_set(&err, TY_E_DATA, "a\nb\tc\x1b[31m\x7f \xc2\x9b \xc3\xa9");
    assert_string_equal(err.message, "a\\nb\\tc\\x1b[31m\\x7f \\x9b \xc3\xa9");
}

static void test_long_messages_are_cut_with_a_mark(void **state)
{
    (void)state;
    char big[TY_ERROR_MESSAGE_BYTES * 2];
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = 0;
    ty_error err = {0};
    for (int i = 0; i < 5; i++) {
        ty_error_wrap(&err, "%s", big);
        ty_error_detail(&err, "%s", big);
    }
    assert_true(strlen(err.message) < sizeof err.message);
    assert_string_equal(err.message + strlen(err.message) - 3, "...");
    assert_true(strlen(err.detail) < sizeof err.detail);
}

static void test_errno_chooses_the_code(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_error_errno(&err, TY_E_NONE, ENOSPC, "cannot write %s", "f");
    assert_int_equal(err.code, TY_E_NO_SPACE);
    assert_string_equal(err.message, "cannot write f: No space left on device");
    ty_error_errno(&err, TY_E_NONE, ENOENT, "x");
    assert_int_equal(err.code, TY_E_NOT_FOUND);
    ty_error_errno(&err, TY_E_NONE, EROFS, "x");
    assert_int_equal(err.code, TY_E_PERMISSION);
    ty_error_errno(&err, TY_E_NONE, EIO, "x");
    assert_int_equal(err.code, TY_E_IO);
    ty_error_errno(&err, TY_E_CREATE, EIO, "x");
    assert_int_equal(err.code, TY_E_CREATE);
}

static void test_null_is_fine(void **state)
{
    (void)state;
    assert_int_equal(ty_error_set(NULL, TY_E_IO, "x"), -1);
    assert_int_equal(ty_error_errno(NULL, TY_E_IO, EIO, "x"), -1);
    assert_int_equal(ty_error_wrap(NULL, "x"), -1);
    assert_int_equal(ty_error_at(NULL, "x"), -1);
    assert_int_equal(ty_error_help(NULL, "x"), -1);
    assert_int_equal(ty_error_detail(NULL, "x"), -1);
}

static void test_format_with_line_place(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_error_set(&err, TY_E_UNKNOWN_KEY, "unknown key \"instance_typ\" in \"resources\"");
    ty_error_at(&err, "job.yaml:14:5");
    ty_error_detail(&err, "   14 |     instance_typ: ml.p4d.24xlarge");
    ty_error_detail(&err, "      |     ^^^^^^^^^^^^ did you mean \"instance_type\"?");
    char out[1024];
    size_t len = ty_error_format(&err, out, sizeof out);
    assert_string_equal(out, "error[E0107]: job.yaml:14:5: unknown key \"instance_typ\" in \"resources\"\n"
                             "   14 |     instance_typ: ml.p4d.24xlarge\n"
                             "      |     ^^^^^^^^^^^^ did you mean \"instance_type\"?\n");
    assert_int_equal(len, strlen(out));
}

static void test_format_with_other_place(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_error_set(&err, TY_E_ATTRIBUTE, "unsupported attribute value in ConvTranspose");
    ty_error_at(&err, "model.onnx: graph \"main\", node #87");
    ty_error_detail(&err, "input  0  \"x.41\"");
    ty_error_help(&err, "set strides to [2, 2]");
    char out[1024], cut[20];
    size_t len = ty_error_format(&err, out, sizeof out);
    assert_string_equal(out, "error[E0312]: unsupported attribute value in ConvTranspose\n"
                             "  --> model.onnx: graph \"main\", node #87\n"
                             "   |\n"
                             "   |   input  0  \"x.41\"\n"
                             "   |\n"
                             "   = help: set strides to [2, 2]\n");
    assert_int_equal(ty_error_format(&err, cut, sizeof cut), len);
    assert_string_equal(cut, "error[E0312]: unsup");
    assert_int_equal(ty_error_format(&err, NULL, 0), len);
}

static void test_codes(void **state)
{
    (void)state;
    assert_int_equal(ty_error_exit_status(TY_E_USAGE), 64);
    assert_int_equal(ty_error_exit_status(TY_E_STOPPED), 143);
    assert_int_equal(ty_error_exit_status(TY_E_NONE), 0);
    assert_int_equal(ty_error_exit_status((ty_code)4711), 70);
    assert_non_null(ty_error_meaning(TY_E_UNKNOWN_KEY));
    assert_null(ty_error_meaning((ty_code)4711));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_wrap),
        cmocka_unit_test(test_set_forgets_what_was),
        cmocka_unit_test(test_arguments_may_alias),
        cmocka_unit_test(test_innermost_place_stays),
        cmocka_unit_test(test_control_characters_are_escaped),
        cmocka_unit_test(test_long_messages_are_cut_with_a_mark),
        cmocka_unit_test(test_errno_chooses_the_code),
        cmocka_unit_test(test_null_is_fine),
        cmocka_unit_test(test_format_with_line_place),
        cmocka_unit_test(test_format_with_other_place),
        cmocka_unit_test(test_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
