/* The arena: zeroed, aligned, apart, freed at once. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"

#include <string.h>

static void test_objects_are_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    enum { N = 3000 };
    ty_arena a;
    ty_arena_init(&a);
    static unsigned char *objects[N];
    for (size_t i = 0; i < N; i++) {
        size_t n_bytes = i % 97 + (i % 500 == 0 ? 300000 : 0);
        objects[i] = ty_arena_alloc(&a, n_bytes);
        assert_int_equal((uintptr_t)objects[i] % 16, 0);
        for (size_t j = 0; j < n_bytes; j++)
            assert_int_equal(objects[i][j], 0);
        memset(objects[i], (int)(i % 255 + 1), n_bytes);
    }
    for (size_t i = 0; i < N; i++) {
        size_t n_bytes = i % 97 + (i % 500 == 0 ? 300000 : 0);
        for (size_t j = 0; j < n_bytes; j++)
            assert_int_equal(objects[i][j], i % 255 + 1);
    }
    ty_arena_fini(&a);
    assert_null(a.head);
    assert_int_equal(a.used_bytes, 0);
}

static void test_empty_objects_are_unique(void **state)
{
    (void)state;
    ty_arena a;
    ty_arena_init(&a);
    void *first = ty_arena_alloc(&a, 0), *second = ty_arena_alloc(&a, 0);
    assert_non_null(first);
    assert_ptr_not_equal(first, second);
    ty_arena_fini(&a);
}

static void test_texts(void **state)
{
    (void)state;
    ty_arena a;
    ty_arena_init(&a);
    assert_string_equal(ty_arena_strdup(&a, "abc"), "abc");
    assert_string_equal(ty_arena_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(ty_arena_strndup(&a, "ab", 10), "ab");
    assert_string_equal(ty_arena_printf(&a, "%s-%d", "x", 42), "x-42");
    assert_string_equal(ty_arena_printf(&a, "%s", ""), "");
    int *numbers = TY_NEW_ARRAY(&a, int, 5);
    assert_int_equal(numbers[4], 0);
    assert_memory_equal(ty_arena_copy(&a, "xyz", 3), "xyz", 3);
    ty_arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_are_zeroed_aligned_and_apart),
        cmocka_unit_test(test_empty_objects_are_unique),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
