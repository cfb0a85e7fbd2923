/* memory.c - limits of control groups, by trees of files that look like the kernel's. */
#include "base/file.h"
#include "entrypoint/memory.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char root[] = "/tmp/ty-unit-memory-XXXXXX";

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return ty_file_remove_tree(root, NULL);
}

static void put(const char *path, const char *text)
{
    char full[512];
    ty_error err = {0};
    snprintf(full, sizeof full, "%s%s", root, path);
    *strrchr(full, '/') = 0;
    if (ty_file_mkdirs(full, 0755, &err) < 0)
        fail_msg("%s", err.message);
    full[strlen(full)] = '/';
    if (ty_file_write(full, text, strlen(text), 0644, &err) < 0)
        fail_msg("%s", err.message);
}

static void limit_is(uint64_t expected, const char *why_expected)
{
    const char *why;
    uint64_t found = ty_memory_limit_at(root, &why);
    if (found != expected)
        fail_msg("expected %llu, found %llu", (unsigned long long)expected, (unsigned long long)found);
    assert_string_equal(why, why_expected);
}

static void test_limits(void **state)
{
    (void)state;
    put("/proc/meminfo", "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\n");
    put("/proc/self/cgroup", "");
    limit_is(600 * 1024, "available memory");
    put("/proc/self/cgroup", "0::/jobs/one\n");
    limit_is(600 * 1024, "available memory"); /* no such files */
    put("/sys/fs/cgroup/jobs/one/memory.max", "max\n");
    limit_is(600 * 1024, "available memory");
    put("/sys/fs/cgroup/jobs/memory.max", "409600\n");
    limit_is(409600, "the container's limit"); /* of the group around it */
    put("/sys/fs/cgroup/jobs/one/memory.max", "204800\n");
    limit_is(204800, "the container's limit");
    put("/sys/fs/cgroup/memory.max", "102400\n"); /* a container sees its own group as the root */
    limit_is(102400, "the container's limit");
    put("/proc/self/cgroup", "12:cpuset:/\n9:memory:/docker/abc\n");
    limit_is(600 * 1024, "available memory");
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n"); /* version 1: no limit */
    limit_is(600 * 1024, "available memory");
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "51200\n");
    limit_is(51200, "the container's limit");
}

static void test_now(void **state)
{
    (void)state;
    ty_memory before = ty_memory_now();
    size_t n = (size_t)32 << 20;
    char *bytes = malloc(n);
    memset(bytes, 1, n);
    ty_memory after = ty_memory_now();
    assert_true(after.resident - before.resident > n / 2 && after.anonymous - before.anonymous > n / 2);
    assert_true(after.peak >= after.resident && after.resident > after.anonymous);
    assert_int_equal(bytes[n / 2], 1);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits), cmocka_unit_test(test_now)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
