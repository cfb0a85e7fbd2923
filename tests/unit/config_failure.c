/* The failure file: what it says, that it fits, that it is written once, that it keeps secrets. */
#include "config_tree.h"

#include "container/config/exit_status.h"
#include "container/config/failure.h"
#include "container/config/redact.h"
#include "container/config/utf8.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static ty_failure example(ty_error *err)
{
    ty_failure f = ty_failure_none();

    ty_error_set(err, TY_E_UNKNOWN_KEY, "unknown key \"epoch\"");
    ty_error_at(err, "train.yaml:14:5");
    ty_error_help(err, "did you mean \"epochs\"?");
    f.error = err;
    return f;
}

static void test_config_error(void **state)
{
    char text[TY_FAILURE_MAX_BYTES + 1];
    ty_error err = {0};
    ty_failure f = example(&err);

    (void)state;
    size_t len = ty_failure_text(&f, text);
    assert_int_equal(len, strlen(text));
    assert_string_equal(text, "E0107 train.yaml:14:5: unknown key \"epoch\"\nhelp: did you mean \"epochs\"?\n");
}

static void test_rank(void **state)
{
    char text[TY_FAILURE_MAX_BYTES + 1];
    ty_error err = {0};
    ty_failure f = ty_failure_none();

    (void)state;
    ty_error_set(&err, TY_E_USER_PROGRAM, "train.py");
    f.error = &err;
    f.host = "algo-2";
    f.rank = 3;
    f.phase = "train";
    f.step = 812;
    f.exit_status = 137;
    f.time_ms = 1773480612804;
    f.stderr_tail = "first\r\nprogress 1%\rprogress 99%\n\x1b[31mlast\x1b[0m \xff bad\a\n\n";
    ty_failure_text(&f, text);
    assert_string_equal(text, "E0520 rank 3 (algo-2): train.py: killed by SIGKILL (often: out of memory)\n"
                              "at: host algo-2, rank 3, phase train, step 812, 2026-03-14T09:30:12.804Z\n"
                              "first\nprogress 99%\nlast \xef\xbf\xbd bad\n");
}

/* What names rank and end by itself is not told again, before it or behind it. */
static void test_rank_once(void **state)
{
    static const struct {
        const char *message;
        bool names_culprit;
        const char *line;
    } rows[] = {
        {"rank 3 (algo-2, pid 312) was killed by signal 9 (KILL) in step 812; stopping 8 ranks", true,
         "E0540 rank 3 (algo-2, pid 312) was killed by signal 9 (KILL) in step 812; stopping 8 ranks\n"},
        {"rank 3, a parameter server (algo-2, pid 312) ended", true,
         "E0540 rank 3, a parameter server (algo-2, pid 312) ended\n"},
        {"stall: all-reduce #7 waits 61 s. Missing: 3", false,
         "E0540 rank 3 (algo-2): stall: all-reduce #7 waits 61 s. Missing: 3: exit code 3\n"},
    };
    char text[TY_FAILURE_MAX_BYTES + 1];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_error err = {0};
        ty_failure f = ty_failure_none();
        ty_error_set(&err, TY_E_RANK, "%s", rows[i].message);
        f.error = &err;
        f.host = "algo-2";
        f.rank = 3;
        f.names_culprit = rows[i].names_culprit;
        f.exit_status = i == 0 ? 137 : 3;
        ty_failure_text(&f, text);
        text[strcspn(text, "\n") + 1] = '\0';
        assert_string_equal(text, rows[i].line);
    }
}

static void test_nothing_known(void **state)
{
    char text[TY_FAILURE_MAX_BYTES + 1];
    ty_failure f = ty_failure_none();

    (void)state;
    ty_failure_text(&f, text);
    assert_string_equal(text, "failed for a reason that was not recorded\n");
    f.exit_status = 3;
    ty_failure_text(&f, text);
    assert_string_equal(text, "exit code 3\n");
}

static bool is_utf8(const char *text)
{
    uint32_t cp;

    for (size_t n = strlen(text); n > 0;) {
        size_t len = ty_utf8_next(text, n, &cp);
        if (cp >= 0xd800 && cp < 0xe000)
            return false;
        text += len;
        n -= len;
    }
    return true;
}

/* However much there is to say: at most 1,024 bytes, valid UTF-8, cause first, help last. */
static void test_limits(void **state)
{
    char text[TY_FAILURE_MAX_BYTES + 1], tail[20000], name[700];
    (void)state;

    for (size_t width = 1; width <= 300; width += 13) {
        ty_error err = {0};
        ty_failure f = ty_failure_none();
        size_t n = 0;
        while (n + width * 2 + 2 < sizeof tail) {
            for (size_t i = 0; i < width; i++)
                n += (size_t)sprintf(tail + n, "\xc3\xa9");
            tail[n++] = '\n';
        }
        tail[n] = '\0';
        memset(name, 'x', sizeof name);
        memcpy(name + width, "\xe4\xb8\xad\xf0\x9f\x98\x80", 7);
        name[width * 2 + 7] = '\0';
        ty_error_set(&err, TY_E_DATA, "%s", name);
        ty_error_at(&err, "%s", name);
        ty_error_help(&err, "HELP %s", name);
        f.error = &err;
        f.stderr_tail = tail;
        f.host = name;
        f.rank = 1;
        assert_in_range(ty_failure_text(&f, text), 1, TY_FAILURE_MAX_BYTES);
        assert_true(is_utf8(text));
        assert_int_equal(strncmp(text, "E0121 rank 1", 12), 0);
        assert_in_range(strcspn(text, "\n"), 1, 200);
        assert_contains(text, "\nhelp: HELP x");
        assert_int_equal(text[strlen(text) - 1], '\n');
    }
}

static void test_long_message_in_full(void **state)
{
    char text[TY_FAILURE_MAX_BYTES + 1];
    ty_error err = {0};
    ty_failure f = ty_failure_none();

    (void)state;
    ty_error_set(&err, TY_E_SHAPE, "%0300d END", 7);
    f.error = &err;
    ty_failure_text(&f, text);
    assert_contains(text, "...\n");
    assert_contains(text, "07 END\n");
}

static void test_secrets(void **state)
{
    static const char *const leaks[] = {
        "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG", "5d672d79c15b13162d9279b0855cfba6", "hunter2",
        "Bearer abc.def",
    };
    char text[TY_FAILURE_MAX_BYTES + 1];
    ty_failure f = ty_failure_none();

    (void)state;
    f.stderr_tail = "id AKIAIOSFODNN7EXAMPLE\nAWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG\n"
                    "GET https://b.s3/k?X-Amz-Signature=5d672d79c15b13162d9279b0855cfba6&x=1\n"
                    "{\"password\": \"hunter2\", \"user\": \"ann\"}\nauthorization: Bearer abc.def\n"
                    "the password is wrong\n";
    ty_failure_text(&f, text);
    for (size_t i = 0; i < sizeof leaks / sizeof leaks[0]; i++)
        assert_null(strstr(text, leaks[i]));
    assert_contains(text, "&x=1\n");
    assert_contains(text, "\"user\": \"ann\"");
    assert_contains(text, "the password is wrong");
    assert_true(ty_name_is_secret("MY_API_KEY"));
    assert_true(ty_name_is_secret("db_Password"));
    assert_false(ty_name_is_secret("epochs"));
}

static void test_write(void **state)
{
    tree *t = *state;
    const char *path = tree_path(t, "failure"), *twin = tree_path(t, "failure.json");
    ty_failure_outcome outcome;
    ty_error err = {0};
    ty_failure f = example(&err);
    ty_file_entry *entries;
    size_t n;

    f.exit_status = 139;
    f.host = "algo-1";
    f.stderr_tail = "a\n\"b\"\n";
    assert_int_equal(ty_failure_write(&f, path, twin, &outcome, NULL), 0);
    assert_int_equal(outcome, TY_FAILURE_WRITTEN);
    assert_contains(tree_read(t, path),
                    "E0107 host algo-1: train.yaml:14:5: unknown key \"epoch\": killed by SIGSEGV\n");
    assert_string_equal(
        tree_read(t, twin),
        "{\"code\": \"E0107\", \"message\": \"unknown key \\\"epoch\\\"\", \"place\": \"train.yaml:14:5\", "
        "\"help\": \"did you mean \\\"epochs\\\"?\", \"host\": \"algo-1\", \"exit_status\": 139, "
        "\"signal\": \"SIGSEGV\", \"stderr_tail\": \"a\\n\\\"b\\\"\"}\n");
    assert_int_equal(ty_file_list(t->base, &t->arena, &entries, &n, NULL), 0);
    assert_int_equal(n, 2); /* nothing temporary is left */
}

static void test_users_own_wins(void **state)
{
    tree *t = *state;
    const char *path = tree_write(t, "failure", "the user's reason"), *twin = tree_path(t, "failure.json");
    ty_failure_outcome outcome;
    ty_error err = {0};
    ty_failure f = example(&err);

    assert_int_equal(ty_failure_write(&f, path, twin, &outcome, NULL), 0);
    assert_int_equal(outcome, TY_FAILURE_KEPT);
    assert_string_equal(tree_read(t, path), "the user's reason");
    assert_contains(tree_read(t, twin), "E0107");
    tree_write(t, "failure", "");
    assert_int_equal(ty_failure_write(&f, path, NULL, &outcome, NULL), 0);
    assert_int_equal(outcome, TY_FAILURE_WRITTEN);
    assert_contains(tree_read(t, path), "E0107");
}

static void test_unwritable(void **state)
{
    tree *t = *state;
    ty_error err = {0}, failed = {0};
    ty_failure f = example(&err);

    assert_int_equal(ty_failure_write(&f, tree_path(t, "absent/failure"), NULL, NULL, &failed), -1);
    assert_int_equal(failed.code, TY_E_NOT_FOUND);
    assert_contains(failed.message, "absent/failure");
}

/* Of many processes one wins, and the file is one of the texts, whole. */
static void test_race(void **state)
{
    tree *t = *state;
    const char *path = tree_path(t, "failure");
    int written = 0;
    pid_t pids[16];

    for (int i = 0; i < 16; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            ty_failure_outcome outcome = TY_FAILURE_KEPT;
            ty_failure f = ty_failure_none();
            f.rank = i;
            int rc = ty_failure_write(&f, path, NULL, &outcome, NULL);
            _exit(rc < 0 ? 2 : outcome == TY_FAILURE_WRITTEN);
        }
    }
    for (int i = 0; i < 16; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        written += WEXITSTATUS(status);
    }
    assert_int_equal(written, 1);
    assert_contains(tree_read(t, path), ": failed for a reason that was not recorded\n");
}

static int status_of_child(int exit_code, int signal_number)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (signal_number > 0) {
            signal(signal_number, SIG_DFL);
            kill(getpid(), signal_number);
        }
        _exit(exit_code);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return ty_exit_status_of_wait(status);
}

static void test_exit_status(void **state)
{
    char text[64];
    (void)state;

    for (int code = 0; code < 256; code += 5)
        assert_int_equal(status_of_child(code, 0), code);
    assert_int_equal(status_of_child(0, SIGTERM), 143);
    assert_int_equal(status_of_child(0, SIGKILL), 137);
    assert_string_equal(ty_signal_name(SIGTERM), "SIGTERM");
    assert_null(ty_signal_name(0));
    assert_null(ty_signal_name(1000));
    assert_string_equal(ty_signal_name(SIGRTMIN + 2), "SIGRTMIN+2");
    ty_exit_status_text(3, text, sizeof text);
    assert_string_equal(text, "exit code 3");
    ty_exit_status_text(78, text, sizeof text);
    assert_string_equal(text, "exit code 78 (the configuration is wrong)");
    ty_exit_status_text(139, text, sizeof text);
    assert_string_equal(text, "killed by SIGSEGV");
    ty_exit_status_text(250, text, sizeof text);
    assert_string_equal(text, "exit code 250");
    assert_true(ty_exit_status_is_temporary(TY_EXIT_TEMPORARY));
    assert_false(ty_exit_status_is_temporary(TY_EXIT_CONFIG));
}

/* Our codes end in statuses of the table. */
static void test_error_exit_statuses(void **state)
{
    (void)state;
    assert_int_equal(ty_error_exit_status(TY_E_USAGE), TY_EXIT_USAGE);
    assert_int_equal(ty_error_exit_status(TY_E_DATA), TY_EXIT_DATA);
    assert_int_equal(ty_error_exit_status(TY_E_CHANNEL), TY_EXIT_NO_INPUT);
    assert_int_equal(ty_error_exit_status(TY_E_INTERNAL), TY_EXIT_INTERNAL);
    assert_int_equal(ty_error_exit_status(TY_E_LIMIT), TY_EXIT_LIMIT);
    assert_int_equal(ty_error_exit_status(TY_E_CREATE), TY_EXIT_CREATE);
    assert_int_equal(ty_error_exit_status(TY_E_IO), TY_EXIT_IO);
    assert_int_equal(ty_error_exit_status(TY_E_PERMISSION), TY_EXIT_PERMISSION);
    assert_int_equal(ty_error_exit_status(TY_E_CONFIG), TY_EXIT_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_config_error),
        TREE_TEST(test_rank),
        TREE_TEST(test_rank_once),
        TREE_TEST(test_nothing_known),
        TREE_TEST(test_limits),
        TREE_TEST(test_long_message_in_full),
        TREE_TEST(test_secrets),
        TREE_TEST(test_write),
        TREE_TEST(test_users_own_wins),
        TREE_TEST(test_unwritable),
        TREE_TEST(test_race),
        TREE_TEST(test_exit_status),
        TREE_TEST(test_error_exit_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
