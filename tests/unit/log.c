#define _GNU_SOURCE /* pipe2, O_DIRECT */
/* Log lines: form, levels, splitting, nothing forged. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int ends[2];
static char seen[1 << 17];

/* A pipe of packets: each read returns exactly what one write() wrote. */
static int start(void **state)
{
    (void)state;
    ty_log_set_level(TY_LOG_INFO);
    ty_log_set_format(TY_LOG_TEXT);
    ty_log_set_label("");
    if (pipe2(ends, O_DIRECT | O_NONBLOCK) < 0)
        return -1;
    ty_log_set_fd(ends[1]);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    ty_log_set_fd(2);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* The next write, without its time; "" if there is none. */
static const char *next_line(void)
{
    ssize_t n = read(ends[0], seen, sizeof seen - 1);
    if (n <= 0)
        return "";
    seen[n] = 0;
    assert_true(n <= 4096);
    assert_int_equal(seen[n - 1], '\n');
    assert_ptr_equal(strchr(seen, '\n'), seen + n - 1); /* one line a write */
    return seen + (seen[0] == '{' ? 0 : strlen("2026-01-05T10:11:12.345Z "));
}

static void test_form(void **state)
{
    (void)state;
    ty_log_warning("data", "retry %d of %d", 2, 5);
    assert_string_equal(next_line(), "W data: retry 2 of 5\n");
    assert_int_equal(seen[10], 'T');
    assert_int_equal(seen[23], 'Z');
    ty_log_set_label("algo-1/3");
    ty_log_info("train", "step");
    assert_string_equal(next_line(), "I algo-1/3 train: step\n");
    ty_log_error("train", "%s", "");
    assert_string_equal(next_line(), "E algo-1/3 train: \n");
}

static void test_levels(void **state)
{
    (void)state;
    ty_log_debug("a", "no");
    assert_string_equal(next_line(), "");
    ty_log_set_level(TY_LOG_DEBUG);
    ty_log_debug("a", "yes");
    assert_string_equal(next_line(), "D a: yes\n");
    ty_log_set_level(TY_LOG_QUIET);
    ty_log_error("a", "no");
    assert_string_equal(next_line(), "");
    assert_false(ty_log_enabled(TY_LOG_ERROR));
}

static void test_nothing_can_be_forged(void **state)
{
    (void)state;
    ty_log_info("a", "x\n2026-01-05T10:11:12.345Z E forged\r\x1b[2J\x7f\xc2\x9b"
                     "31m \xc3\xa9");
    assert_string_equal(next_line(), "I a: x\\n2026-01-05T10:11:12.345Z E forged\\x0d\\x1b[2J\\x7f\\x9b31m \xc3\xa9\n");
}

static void test_long_messages_are_split(void **state)
{
    (void)state;
    char message[10001];
    for (size_t i = 0; i + 1 < sizeof message; i += 2)
        memcpy(message + i, "\xc3\xa9", 2);
    message[10000] = 0;
    for (int json = 0; json < 2; json++) {
        ty_log_set_format(json ? TY_LOG_JSON : TY_LOG_TEXT);
        ty_log_info("a", "%s", message);
        size_t n_chars = 0;
        int n_lines = 0;
        for (const char *line; *(line = next_line()); n_lines++) {
            for (const char *at = line; (at = strstr(at, "\xc3\xa9")); at += 2)
                n_chars++;
            assert_true((strstr(line, "...\xc3\xa9") != NULL) == (n_lines > 0));
        }
        assert_int_equal(n_chars, 5000);
        assert_in_range(n_lines, 3, 6);
    }
}

static void test_json_lines(void **state)
{
    (void)state;
    ty_log_set_format(TY_LOG_JSON);
    ty_log_set_label("algo-1");
    ty_log_warning("data", "a \"quoted\"\nword \x1b");
    const char *line = next_line();
    ty_arena arena;
    ty_arena_init(&arena);
    ty_doc *d;
    ty_error err = {0};
    assert_int_equal(ty_json_parse(&arena, "log", line, strlen(line), NULL, &d, &err), 0);
    assert_string_equal(ty_doc_find(d, "level")->string, "warning");
    assert_string_equal(ty_doc_find(d, "label")->string, "algo-1");
    assert_string_equal(ty_doc_find(d, "area")->string, "data");
    assert_string_equal(ty_doc_find(d, "message")->string, "a \"quoted\"\nword \x1b");
    assert_int_equal(strlen(ty_doc_find(d, "time")->string), 24);
    ty_arena_fini(&arena);
}

static void test_control_characters_in_json_stay_within_a_line(void **state)
{
    (void)state;
    char message[5000];
    memset(message, 1, sizeof message - 1);
    message[sizeof message - 1] = 0;
    ty_log_set_format(TY_LOG_JSON);
    ty_log_info("a", "%s", message);
    int n_lines = 0;
    while (*next_line())
        n_lines++;
    assert_in_range(n_lines, 8, 20);
}

static void test_environment(void **state)
{
    (void)state;
    ty_error err = {0};
    setenv("TY_LOG", "debug", 1);
    setenv("TY_LOG_FORMAT", "json", 1);
    assert_int_equal(ty_log_from_environment(&err), 0);
    ty_log_debug("a", "x");
    assert_int_equal(next_line()[0], '{');
    setenv("TY_LOG", "loud", 1);
    assert_int_equal(ty_log_from_environment(&err), -1);
    assert_non_null(strstr(err.message, "TY_LOG=loud"));
    assert_true(ty_log_enabled(TY_LOG_DEBUG));
    setenv("TY_LOG", "", 1);
    setenv("TY_LOG_FORMAT", "xml", 1);
    assert_int_equal(ty_log_from_environment(&err), -1);
    unsetenv("TY_LOG");
    unsetenv("TY_LOG_FORMAT");
}

static void test_errno_is_left_alone(void **state)
{
    (void)state;
    ty_log_set_fd(-1);
    errno = ENOENT;
    ty_log_info("a", "to nowhere");
    assert_int_equal(errno, ENOENT);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(test_form),
        TEST(test_levels),
        TEST(test_nothing_can_be_forged),
        TEST(test_long_messages_are_split),
        TEST(test_json_lines),
        TEST(test_control_characters_in_json_stay_within_a_line),
        TEST(test_environment),
        TEST(test_errno_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
