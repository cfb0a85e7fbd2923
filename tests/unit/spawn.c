/* Starting programs: what they inherit, and that nothing but system calls happens between fork and exec. */
#define _GNU_SOURCE
#include "entrypoint/spawn.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* In place of the C library's: a child that calls it before it has become its program ends here. Another thread may
 * have held the lock of the environment when the child was made. */
static pid_t parent;
int setenv(const char *name, const char *value, int replace)
{
    (void)replace;
    if (getpid() != parent)
        _exit(99);
    size_t n = strlen(name) + strlen(value) + 2;
    char *variable = malloc(n);
    snprintf(variable, n, "%s=%s", name, value);
    return putenv(variable);
}

static int status_of(const ty_spawn_options *o)
{
    ty_error err = {0};
    int wait_status = -1;
    pid_t pid;
    if (ty_spawn(o, &pid, NULL, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

/* A name is all that stands before the first '='. */
static void test_environment(void **state)
{
    (void)state;
    static const char *const from[] = {"KEY=1", "KEY_OF=2", "KE=3", "KEY", "PATH=KEY=4", "KEY=5", NULL};
    static const char *const without[] = {"SECRET", "KEY", NULL};
    static const char *const expected[] = {"KEY_OF=2", "KE=3", "PATH=KEY=4", "ADDED=6", NULL};
    const char **with = ty_spawn_environment(from, without, "ADDED=6");
    const char **alone = ty_spawn_environment(from, without, NULL);
    assert_non_null(with);
    assert_non_null(alone);
    for (int i = 0; i < 4; i++)
        assert_string_equal(with[i], expected[i]);
    assert_null(with[4]);
    assert_string_equal(alone[2], expected[2]);
    assert_null(alone[3]);
    free(with);
    free(alone);
}

/* The descriptor is open in the child, its number in the variable, once, whatever stood there; ours stays as it was. */
static void test_passed_descriptor(void **state)
{
    (void)state;
    static const char *const argv[] = {"sh", "-c",
                                       "[ $(env | grep -c ^PASSED_FD=) = 1 ] && [ \"$KEPT\" = here ] && "
                                       "eval \"echo told >&$PASSED_FD\"",
                                       NULL};
    char text[16] = "";
    int ends[2];
    parent = getpid();
    assert_int_equal(setenv("PASSED_FD", "77", 1), 0);
    assert_int_equal(setenv("KEPT", "here", 1), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    ty_spawn_options o = TY_SPAWN_DEFAULTS;
    o.argv = argv;
    o.passed_fd = ends[1];
    o.passed_fd_name = "PASSED_FD";
    assert_int_equal(status_of(&o), 0);
    assert_int_equal(read(ends[0], text, sizeof text - 1), 5);
    assert_string_equal(text, "told\n");
    assert_string_equal(getenv("PASSED_FD"), "77");
    close(ends[0]);
    close(ends[1]);
}

static void test_no_program(void **state)
{
    (void)state;
    static const char *const argv[] = {"/nowhere/program", NULL};
    ty_spawn_options o = TY_SPAWN_DEFAULTS;
    ty_error err = {0};
    int exec_status = 0;
    pid_t pid;
    o.argv = argv;
    assert_int_equal(ty_spawn(&o, &pid, &exec_status, &err), -1);
    assert_int_equal(exec_status, TY_EXIT_NOT_FOUND);
    assert_non_null(strstr(err.message, "/nowhere/program"));
}

static void test_capture(void **state)
{
    (void)state;
    static const char *const argv[] = {"sh", "-c", "echo out; echo err >&2; exit 3", NULL};
    ty_buf output;
    ty_error err = {0};
    int wait_status = 0;
    ty_buf_init(&output, 6); /* the rest is read and dropped */
    assert_int_equal(ty_spawn_capture(argv, NULL, false, &output, &wait_status, &err), 0);
    assert_int_equal(WEXITSTATUS(wait_status), 3);
    assert_memory_equal(output.data, "out\ner", 6);
    ty_buf_fini(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_passed_descriptor),
        cmocka_unit_test(test_no_program),
        cmocka_unit_test(test_capture),
    };
    return cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}
