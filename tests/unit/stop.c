/* stop.c - requests to stop are counted, however late they come before the listener leaves. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "entrypoint/stop.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 300 };

/* In a process of its own, since the count is one for life; ends with it. */
static int count_after(int n_requests, int number)
{
    pid_t pid = fork();
    if (pid == 0) {
        ty_error err = {0};
        if (ty_stop_install(&err) < 0)
            _exit(100);
        for (int i = 0; i < n_requests; i++)
            kill(getpid(), number);
        ty_stop_uninstall();
        _exit(ty_stop_signal() == (n_requests ? number : 0) ? ty_stop_count() : 101);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_none_is_lost(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(count_after(1, i % 2 ? SIGTERM : SIGINT), 1);
}

static void test_none_is_made_up(void **state)
{
    (void)state;
    assert_int_equal(count_after(0, SIGTERM), 0);
    ty_stop_uninstall(); /* never installed here */
    assert_int_equal(ty_stop_count(), 0);
}

/* A rank that has computed nothing yet ends with the signal's status, and nobody waits for it. */
static void test_at_once(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        ty_error err = {0};
        ty_stop_ends_at_once(true);
        if (ty_stop_install(&err) == 0)
            kill(getpid(), SIGTERM);
        for (;;)
            pause();
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
    ty_stop_ends_at_once(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none_is_lost),
        cmocka_unit_test(test_none_is_made_up),
        cmocka_unit_test(test_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
