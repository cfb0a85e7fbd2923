/* The buffer: always a string, never past its maximum, failure sticks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

static int addf(ty_buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = ty_buf_vaddf(b, fmt, args);
    va_end(args);
    return rc;
}

static void test_appends(void **state)
{
    (void)state;
    ty_buf b;
    ty_buf_init(&b, 1000);
    assert_string_equal(b.data, "");
    assert_int_equal(ty_buf_adds(&b, "ab"), 0);
    assert_int_equal(ty_buf_addc(&b, 'c'), 0);
    assert_int_equal(ty_buf_addf(&b, "-%03d", 7), 0);
    assert_int_equal(addf(&b, "%c%d", 'n', 12), 0); /* behind what is there, and again after growing */
    assert_int_equal(ty_buf_add(&b, "\0x", 2), 0);
    assert_memory_equal(b.data, "abc-007n12\0x", 13);
    assert_int_equal(b.len, 12);
    ty_buf_clear(&b);
    assert_string_equal(b.data, "");
    ty_buf_fini(&b);
    assert_string_equal(b.data, "");
}

static void test_the_maximum_holds_to_the_byte(void **state)
{
    (void)state;
    for (size_t max = 0; max < 200; max++) {
        ty_buf b;
        ty_buf_init(&b, max);
        for (size_t i = 0; i < max; i++)
            assert_int_equal(ty_buf_addc(&b, 'x'), 0);
        assert_int_equal(b.len, max);
        assert_int_equal(ty_buf_addc(&b, 'y'), -1);
        assert_true(b.failed);
        assert_int_equal(b.len, max);
        assert_int_equal(strlen(b.data), max);
        ty_buf_fini(&b);
    }
}

static void test_failure_sticks_until_clear(void **state)
{
    (void)state;
    ty_buf b;
    ty_buf_init(&b, 4);
    ty_buf_adds(&b, "ab");
    assert_int_equal(ty_buf_addf(&b, "%s", "cde"), -1);
    assert_int_equal(addf(&b, "%c", 'c'), -1);
    assert_int_equal(ty_buf_addc(&b, 'c'), -1);
    assert_string_equal(b.data, "ab");
    assert_null(ty_buf_reserve(&b, 1));
    ty_buf_clear(&b);
    assert_int_equal(ty_buf_adds(&b, "abcd"), 0);
    assert_int_equal(ty_buf_add(&b, "x", SIZE_MAX), -1);
    ty_buf_fini(&b);
}

static void test_reserve_and_detach(void **state)
{
    (void)state;
    ty_buf b;
    ty_buf_init(&b, 100);
    char *room = ty_buf_reserve(&b, 10);
    memcpy(room, "hello", 5);
    b.len += 5;
    assert_string_equal(b.data, "hello");
    size_t len;
    char *mine = ty_buf_detach(&b, &len);
    assert_int_equal(len, 5);
    assert_string_equal(mine, "hello");
    free(mine);
    mine = ty_buf_detach(&b, &len); /* an empty one can be had too */
    assert_string_equal(mine, "");
    free(mine);
    ty_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_the_maximum_holds_to_the_byte),
        cmocka_unit_test(test_failure_sticks_until_clear),
        cmocka_unit_test(test_reserve_and_detach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
