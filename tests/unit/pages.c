/* base/pages.h: zero, aligned, lazily resident. */
#include "base/pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const size_t sizes[] = {0, 1, 64, 65535, 65536, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 64 << 20};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static void zero_and_aligned(void **state)
{
    (void)state;
    for (int i = 0; i < N_SIZES; i++) {
        char *p = ty_pages_new(sizes[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (sizes[i] >= 65536 ? 4096 : 64), 0);
        for (size_t k = 0; k < sizes[i]; k += 61)
            assert_int_equal(p[k], 0);
        if (sizes[i])
            p[sizes[i] - 1] = 1;
        ty_pages_free(p, sizes[i]);
    }
    ty_pages_free(NULL, 0);
    ty_pages_free(NULL, 64 << 20);
    assert_null(ty_pages_new(SIZE_MAX - 100));
}

static long resident_kb(void)
{
    char line[256];
    long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %ld kB", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb;
}

/* 1 GiB of which nothing is touched costs nothing; a part that is expected to be filled is there at once. */
static void resident_when_touched(void **state)
{
    (void)state;
    size_t bytes = (size_t)1 << 30, part = (size_t)16 << 20;
    long before = resident_kb();
    char *p = ty_pages_new(bytes), *from = ty_pages_new(part);
    assert_non_null(p);
    assert_non_null(from);
    assert_true(resident_kb() - before < 64 << 10);
    memset(from, 7, part);
    ty_pages_expect_update(p + 100, part);
    ty_pages_expect_read(from, part);
    memcpy(p + 100, from, part);
    assert_int_equal(p[99], 0);
    assert_int_equal(p[100], 7);
    assert_int_equal(p[99 + part], 7);
    assert_int_equal(p[100 + part], 0);
    ty_pages_expect_update(p + 2 * part + 100, part);
    assert_int_equal(p[2 * part + 99 + part], 0);
    assert_in_range(resident_kb() - before, 3 * (part >> 10) - 1024, 4 * (part >> 10));
    ty_pages_free(from, part);
    ty_pages_free(p, bytes);
    assert_true(resident_kb() - before < 64 << 10);
}

/* Parts end where a huge page may begin, wherever the first one starts; together they are the whole. */
static void parts_end_at_huge_pages(void **state)
{
    (void)state;
    size_t huge = (size_t)2 << 20, bytes = 3 * huge + 5000;
    char *p = ty_pages_new(bytes);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % huge, 0);
    static const size_t from[] = {0, 1, 4096, 5000};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        size_t at = from[i], parts = 0;
        for (size_t part; at < bytes; at += part, parts++) {
            part = ty_pages_part(p + at, bytes - at);
            assert_in_range(part, 1, huge);
            ty_pages_expect_update(p + at, part);
            assert_true(at + part == bytes || (uintptr_t)(p + at + part) % huge == 0);
        }
        assert_int_equal(at, bytes);
        assert_int_equal(parts, 4);
    }
    for (size_t k = 0; k < bytes; k += 61)
        assert_int_equal(p[k], 0);
    ty_pages_free(p, bytes);
}

static void new_until_touched(void **state)
{
    (void)state;
    const size_t n = (size_t)40 << 20, small = 100 << 10;
    char *p = ty_pages_new(n), *q = ty_pages_new(small);
    assert_true(ty_pages_are_new(p, n));
    p[n - 1] = 0; /* as good as any other number */
    assert_false(ty_pages_are_new(p, n));
    assert_true(ty_pages_are_new(p, n / 2));
    ty_pages_expect_update(p, 4096);
    assert_false(ty_pages_are_new(p, n / 2));
    assert_false(ty_pages_are_new(q, small));
    ty_pages_free(p, n);
    ty_pages_free(q, small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(zero_and_aligned), cmocka_unit_test(resident_when_touched),
                                       cmocka_unit_test(parts_end_at_huge_pages), cmocka_unit_test(new_until_touched)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
