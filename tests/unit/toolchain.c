/* toolchain.c - what the environment says of the compiler and its folder; a name that is set to nothing says nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/toolchain.h"

#include <stdlib.h>

static void set(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void test_folder(void **state)
{
    (void)state;
    static const struct {
        const char *value, *folder;
    } rows[] = {{NULL, "/tmp"}, {"", "/tmp"}, {"/var/tmp", "/var/tmp"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set("TMPDIR", rows[i].value);
        assert_string_equal(ty_toolchain_folder(), rows[i].folder);
    }
}

static void test_compiler(void **state)
{
    (void)state;
    set("CC", NULL);
    const char *own = ty_toolchain_cc();
    assert_true(*own);
    set("CC", "");
    assert_string_equal(ty_toolchain_cc(), own);
    set("CC", "another");
    assert_string_equal(ty_toolchain_cc(), "another");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folder), cmocka_unit_test(test_compiler)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
