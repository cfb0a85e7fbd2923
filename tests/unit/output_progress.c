/* The progress display: what comes out in a terminal and what into a file. */
#define _GNU_SOURCE /* posix_openpt, ptsname */
#include "output_scratch.h"

#include "container/output/progress.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

static ty_progress_state at_step(int64_t step)
{
    return (ty_progress_state){.step = step,
                               .epoch = step / 100,
                               .loss = 0.25,
                               .samples_per_s = 100.5,
                               .data_share = 0.03,
                               .comm_share = -1,
                               .compute_share = 0.97};
}

/* A terminal: fd[0] is where its output is read, fd[1] what the program writes to. */
static void open_terminal(int fd[2], int columns)
{
    fd[0] = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(fd[0] >= 0 && grantpt(fd[0]) == 0 && unlockpt(fd[0]) == 0);
    fd[1] = open(ptsname(fd[0]), O_RDWR | O_NOCTTY);
    assert_true(fd[1] >= 0);
    const struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = 24};
    assert_int_equal(ioctl(fd[0], TIOCSWINSZ, &size), 0);
    assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
}

static size_t read_all(int fd, char *out, size_t n)
{
    size_t at = 0;
    ssize_t got;
    while (at < n - 1 && (got = read(fd, out + at, n - 1 - at)) > 0)
        at += (size_t)got;
    out[at] = 0;
    return at;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

static void test_plain(void **state)
{
    (void)state;
    int fd[2];
    char text[65536];
    ty_progress p;
    assert_int_equal(pipe(fd), 0);
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    ty_progress_init(&p, fd[1], TY_PROGRESS_AUTO, 0, 1000, 0);
    assert_int_equal(p.mode, TY_PROGRESS_PLAIN);
    for (int64_t step = 1; step <= 999; step++) {
        ty_progress_state s = at_step(step);
        ty_progress_update(&p, TY_PROGRESS_STEP, &s, (double)step); /* a second a step: 5 % are 50 s */
    }
    read_all(fd[0], text, sizeof text);
    assert_int_equal(count(text, "\n"), 20);
    assert_int_equal(
        strncmp(text, "step 1/1000 0% | epoch 0 | loss 0.25 | 100.5 samples/s | eta 16m39s | data 3% compute 97%\n",
                86),
        0);
    assert_null(strchr(text, '\r'));
    assert_null(strchr(text, '\x1b'));
    ty_progress_state s = at_step(1000);
    ty_progress_update(&p, TY_PROGRESS_EPOCH, &s, 1000);
    ty_progress_update(&p, TY_PROGRESS_CHECKPOINT, &s, 1000);
    ty_progress_finish(&p, &s, 1000); /* already shown */
    read_all(fd[0], text, sizeof text);
    assert_int_equal(count(text, "\n"), 2);
    close(fd[0]);
    close(fd[1]);
}

static void test_plain_is_rare_in_quick_runs(void **state)
{
    (void)state;
    int fd[2];
    char text[4096];
    ty_progress p;
    assert_int_equal(pipe(fd), 0);
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    ty_progress_init(&p, fd[1], TY_PROGRESS_PLAIN, 0, 1000, 0);
    for (int64_t step = 1; step <= 1000; step++) {
        ty_progress_state s = at_step(step);
        ty_progress_update(&p, TY_PROGRESS_STEP, &s, 0.02 * (double)step);
    }
    read_all(fd[0], text, sizeof text);
    assert_int_equal(count(text, "\n"), 1);
    close(fd[0]);
    close(fd[1]);
}

static void test_bar(void **state)
{
    (void)state;
    int fd[2];
    char text[65536];
    ty_progress p;
    setenv("TERM", "xterm", 1);
    open_terminal(fd, 40);
    ty_progress_init(&p, fd[1], TY_PROGRESS_AUTO, 0, 1000, 0);
    assert_int_equal(p.mode, TY_PROGRESS_BAR);
    for (int64_t step = 1; step <= 1000; step++) {
        ty_progress_state s = at_step(step);
        ty_progress_update(&p, TY_PROGRESS_STEP, &s, 0.001 * (double)step);
    }
    read_all(fd[0], text, sizeof text);
    assert_in_range(count(text, "\r"), 9, 11); /* a second at 10 Hz */
    assert_int_equal(count(text, "\n"), 0);
    /* No line is wider than the terminal, last column spared. */
    for (char *line = strtok(text, "\r"); line; line = strtok(NULL, "\r"))
        assert_in_range(strlen(line), 1, 39 + strlen("\x1b[K"));
    ty_progress_clear(&p);
    read_all(fd[0], text, sizeof text);
    assert_string_equal(text, "\r\x1b[K");
    ty_progress_clear(&p);
    assert_int_equal(read_all(fd[0], text, sizeof text), 0);
    ty_progress_state s = at_step(1000);
    ty_progress_finish(&p, &s, 1);
    read_all(fd[0], text, sizeof text);
    assert_int_equal(count(text, "\n"), 1);
    close(fd[1]);
    close(fd[0]);
}

static void test_bar_follows_width(void **state)
{
    (void)state;
    int fd[2];
    char text[4096];
    ty_progress p;
    ty_progress_state s = at_step(10);
    open_terminal(fd, 200);
    ty_progress_init(&p, fd[1], TY_PROGRESS_BAR, 0, 1000, 0);
    ty_progress_update(&p, TY_PROGRESS_STEP, &s, 1);
    size_t wide = read_all(fd[0], text, sizeof text);
    const struct winsize narrow = {.ws_col = 20, .ws_row = 24};
    ioctl(fd[0], TIOCSWINSZ, &narrow);
    ty_progress_update(&p, TY_PROGRESS_STEP, &s, 2);
    size_t thin = read_all(fd[0], text, sizeof text);
    assert_true(wide > 60);
    assert_int_equal(thin, 1 + 19 + 3);
    close(fd[1]);
    close(fd[0]);
}

static void test_dumb_terminal(void **state)
{
    (void)state;
    int fd[2];
    ty_progress p;
    open_terminal(fd, 80);
    setenv("TERM", "dumb", 1);
    ty_progress_init(&p, fd[1], TY_PROGRESS_AUTO, 0, 1000, 0);
    assert_int_equal(p.mode, TY_PROGRESS_PLAIN);
    unsetenv("TERM");
    ty_progress_init(&p, fd[1], TY_PROGRESS_AUTO, 0, 1000, 0);
    assert_int_equal(p.mode, TY_PROGRESS_PLAIN);
    close(fd[1]);
    close(fd[0]);
}

static void test_json_and_none(void **state)
{
    (void)state;
    int fd[2];
    char text[4096];
    ty_progress p;
    ty_progress_state s = at_step(10);
    assert_int_equal(pipe(fd), 0);
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    ty_progress_init(&p, fd[1], TY_PROGRESS_JSON, 0, 20, 0);
    s.loss = NAN;
    ty_progress_update(&p, TY_PROGRESS_STEP, &s, 5);
    read_all(fd[0], text, sizeof text);
    assert_string_equal(text,
                        "{\"step\":10,\"epoch\":0,\"total_steps\":20,\"loss\":null,\"samples_per_s\":100.5,\"eta_s\":5,"
                        "\"data_share\":0.03,\"compute_share\":0.97}\n");
    ty_progress_init(&p, fd[1], TY_PROGRESS_JSON, 0, 0, 0);
    s.comm_share = 0.25;
    s.comm_ms = 12.5;
    ty_progress_update(&p, TY_PROGRESS_STEP, &s, 5);
    read_all(fd[0], text, sizeof text);
    assert_non_null(strstr(text, ",\"comm_share\":0.25,\"comm_ms\":12.5,\"compute_share\""));
    ty_progress_init(&p, fd[1], TY_PROGRESS_PLAIN, 0, 0, 0);
    ty_progress_update(&p, TY_PROGRESS_EPOCH, &s, 5);
    read_all(fd[0], text, sizeof text);
    assert_non_null(strstr(text, "data 3% comm 25% (12.5 ms a step) compute 97%"));
    s.data_cause = "parsing";
    ty_progress_update(&p, TY_PROGRESS_EPOCH, &s, 5);
    read_all(fd[0], text, sizeof text);
    assert_non_null(strstr(text, "data 3% (parsing) comm 25% (12.5 ms a step) compute 97%"));
    ty_progress_init(&p, fd[1], TY_PROGRESS_NONE, 0, 20, 0);
    ty_progress_update(&p, TY_PROGRESS_EPOCH, &s, 5);
    ty_progress_finish(&p, &s, 5);
    assert_int_equal(read_all(fd[0], text, sizeof text), 0);
    close(fd[0]);
    close(fd[1]);
}

/* A reader that is gone, or does not read: the run goes on. */
static void test_nobody_reads(void **state)
{
    (void)state;
    int fd[2];
    ty_progress p;
    ty_progress_state s = at_step(10);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(fd), 0);
    ty_progress_init(&p, fd[1], TY_PROGRESS_PLAIN, 0, 20, 0);
    for (int i = 0; i < 5000; i++) /* far more than a pipe holds */
        ty_progress_update(&p, TY_PROGRESS_EPOCH, &s, i);
    close(fd[0]);
    ty_progress_update(&p, TY_PROGRESS_EPOCH, &s, 5000);
    close(fd[1]);
    ty_progress_update(&p, TY_PROGRESS_EPOCH, &s, 5001);
}

static void test_words(void **state)
{
    (void)state;
    ty_error err;
    char text[16];
    ty_progress_mode mode;
    static const struct {
        double s;
        const char *text;
    } rows[] = {{0, "0s"},         {42.4, "42s"}, {59.6, "1m00s"}, {312, "5m12s"}, {3720, "1h02m"},
                {273600, "3d04h"}, {-1, "?"},     {NAN, "?"},      {INFINITY, "?"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(ty_progress_duration(rows[i].s, text), rows[i].text);
    assert_ok(ty_progress_mode_parse("json", &mode, &err));
    assert_int_equal(mode, TY_PROGRESS_JSON);
    assert_error(ty_progress_mode_parse("fancy", &mode, &err), TY_E_USAGE, "found \"fancy\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),         cmocka_unit_test(test_plain_is_rare_in_quick_runs),
        cmocka_unit_test(test_bar),           cmocka_unit_test(test_bar_follows_width),
        cmocka_unit_test(test_dumb_terminal), cmocka_unit_test(test_json_and_none),
        cmocka_unit_test(test_nobody_reads),  cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests_name("output: progress", tests, NULL, NULL);
}
