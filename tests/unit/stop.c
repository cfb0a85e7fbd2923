/* stop.c - requests to stop are counted, however late they come before the listener leaves. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "entrypoint/stop.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
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

/* A process that says when it would end, is asked, and then perhaps that it goes on, which it does for 300 ms. */
static int end_of(int ends_after_ms, bool goes_on)
{
    pid_t pid = fork();
    if (pid == 0) {
        ty_error err = {0};
        ty_stop_ends_after(ends_after_ms);
        if (ty_stop_install(&err) == 0)
            kill(getpid(), SIGTERM);
        while (goes_on && ty_stop_count() == 0)
            sched_yield();
        if (goes_on)
            ty_stop_ends_after(TY_STOP_NEVER);
        poll(NULL, 0, goes_on ? 300 : -1);
        _exit(7);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* A rank that has computed nothing yet ends with the signal's status, and nobody waits for it. */
static void test_at_once(void **state)
{
    (void)state;
    assert_int_equal(end_of(0, false), 128 + SIGTERM);
}

/* One that meets the others ends as well, but has the time to find that they have met. */
static void test_a_little_later(void **state)
{
    (void)state;
    int64_t start_us = ty_clock_us();
    assert_int_equal(end_of(100, false), 128 + SIGTERM);
    assert_in_range(ty_clock_us() - start_us, 100000, 10000000);
    int end = 0; /* on a machine that stands still for so long the time may be over before the word is given */
    for (int tries = 0; end != 7 && tries < 20; tries++)
        end = end_of(200, true);
    assert_int_equal(end, 7);
}

/* It was asked before anybody knew what a request ends: a rank that has just been started. */
static void test_asked_before(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        ty_error err = {0};
        if (ty_stop_install(&err) == 0)
            kill(getpid(), SIGTERM);
        while (ty_stop_count() == 0)
            sched_yield();
        ty_stop_ends_after(0);
        alarm(60);
        for (;;)
            pause();
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
}

static bool yes(void)
{
    return true;
}

static bool no(void)
{
    return false;
}

static int n_asked;

static bool later(void)
{
    return ++n_asked > 2;
}

static void test_at_once_if_it_is_over(void **state)
{
    (void)state;
    ty_stop_ends_if(yes);
    assert_int_equal(end_of(TY_STOP_NEVER, false), 128 + SIGTERM);
    ty_stop_ends_if(no);
    assert_int_equal(end_of(TY_STOP_NEVER, true), 7);
    ty_stop_ends_if(NULL);
    assert_int_equal(end_of(TY_STOP_NEVER, true), 7);
}

/* What was being written is whole, and who would wait for others is told that they are gone. */
static void test_as_soon_as_it_is_over(void **state)
{
    (void)state;
    ty_stop_ends_if(later);
    assert_int_equal(end_of(TY_STOP_NEVER, false), 128 + SIGTERM);
    ty_stop_ends_if(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none_is_lost),
        cmocka_unit_test(test_none_is_made_up),
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_a_little_later),
        cmocka_unit_test(test_asked_before),
        cmocka_unit_test(test_at_once_if_it_is_over),
        cmocka_unit_test(test_as_soon_as_it_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
