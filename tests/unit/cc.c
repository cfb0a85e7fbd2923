/* cc.c - the C compiler as a process: what ends it, and who goes with it. Compilers here are scripts that hold on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/toolchain.h"
#include "compiler/target/cpu/cc.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { UNITS = 3, PATIENCE_MS = 60000, SOON_MS = 20000 };

static const char *const texts[UNITS] = {"int a;", "int b;", "int c;"};
static char folder[] = "/tmp/ty-cc-XXXXXX", script[64], pids[64];
static bool over;

static bool is_over(void)
{
    return over;
}

/* A compiler: `body`, in which each process that holds on has left its number in the file of pids. */
static ty_cc_options compiler(const char *body)
{
    char text[512];
    ty_error err = {0};
    snprintf(text, sizeof text, "#!/bin/sh\nnote() { echo $1 >>%s; }\n%s\n", pids, body);
    assert_int_equal(ty_file_write(script, text, strlen(text), 0700, &err), 0);
    remove(pids);
    return (ty_cc_options){script, folder};
}

static int read_pids(pid_t *pid, int max)
{
    FILE *f = fopen(pids, "r");
    int n = 0;
    while (f && n < max && fscanf(f, "%d", &pid[n]) == 1)
        n++;
    if (f)
        fclose(f);
    return n;
}

static void await_pids(pid_t *pid, int n)
{
    int64_t end = ty_clock_ms() + PATIENCE_MS;
    while (read_pids(pid, n) < n && ty_clock_ms() < end)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(read_pids(pid, n), n);
}

/* Gone, or dead and waiting for whoever adopts it. */
static bool is_gone(pid_t pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    const char *end = n ? strrchr(text, ')') : NULL;
    return !end || end[2] == 'Z';
}

static void expect_gone(const pid_t *pid, int n)
{
    int64_t end = ty_clock_ms() + PATIENCE_MS;
    for (int i = 0; i < n; i++) {
        while (!is_gone(pid[i]) && ty_clock_ms() < end)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_true(is_gone(pid[i]));
    }
}

static const struct {
    const char *what, *body;
    int processes; /* a unit */
} holders[] = {
    {"listens", "note $$; exec sleep 1000", 1},
    {"listens, and has started another", "sleep 1000 & note $!; note $$; wait", 2},
    {"listens, what it has started is deaf", "(trap '' TERM; exec sleep 1000) & note $!; sleep 0.2; note $$; wait", 2},
    {"deaf", "trap '' TERM; note $$; sleep 1000", 1},
    {"deaf, and has started another", "trap '' TERM; sleep 1000 & note $!; note $$; wait; sleep 1000", 2},
};
enum { N_HOLDERS = sizeof holders / sizeof *holders };

static void test_ends_if(void **state)
{
    (void)state;
    for (int i = 0; i < N_HOLDERS; i++) {
        ty_error err = {0};
        ty_cc_job *job;
        pid_t pid[2 * UNITS];
        const ty_cc_options options = compiler(holders[i].body);
        over = false;
        assert_int_equal(ty_cc_start(texts, UNITS, &options, &job, &err), 0);
        await_pids(pid, UNITS * holders[i].processes);
        over = true;
        int64_t begin = ty_clock_ms();
        assert_int_equal(ty_cc_wait(job, &err), -1);
        assert_true(ty_clock_ms() - begin < SOON_MS);
        assert_int_equal(err.code, TY_E_STOPPED);
        expect_gone(pid, UNITS * holders[i].processes);
        ty_cc_abandon(job);
    }
    over = false;
}

/* Whoever gives up waits for nobody either. */
static void test_abandon(void **state)
{
    (void)state;
    for (int i = 0; i < N_HOLDERS; i++) {
        ty_error err = {0};
        ty_cc_job *job;
        pid_t pid[2 * UNITS];
        struct stat st;
        const ty_cc_options options = compiler(holders[i].body);
        assert_int_equal(ty_cc_start(texts, UNITS, &options, &job, &err), 0);
        await_pids(pid, UNITS * holders[i].processes);
        char left[512];
        snprintf(left, sizeof left, "%s", ty_cc_folder(job));
        assert_int_equal(stat(left, &st), 0);
        int64_t begin = ty_clock_ms();
        ty_cc_abandon(job);
        assert_true(ty_clock_ms() - begin < SOON_MS);
        expect_gone(pid, UNITS * holders[i].processes);
        assert_int_equal(stat(left, &st), -1);
    }
}

/* One that was started behind the signal knows of nothing: the question alone ends it. One that is done is done. */
static void test_over_before(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_cc_job *job;
    ty_cc_options options = compiler("exec sleep 1000");
    over = true;
    assert_int_equal(ty_cc_start(texts, UNITS, &options, &job, &err), 0);
    assert_int_equal(ty_cc_wait(job, &err), -1);
    assert_int_equal(err.code, TY_E_STOPPED);
    ty_cc_abandon(job);
    over = false;
    options = compiler("exit 0");
    assert_int_equal(ty_cc_start(texts, UNITS, &options, &job, &err), 0);
    assert_int_equal(ty_cc_wait(job, &err), 0);
    ty_cc_abandon(job);
}

static void test_failures(void **state)
{
    (void)state;
    static const struct {
        const char *body, *words;
    } rows[] = {
        {"echo what is wrong >&2; exit 3", "the C compiler failed with status 3: what is wrong"},
        {"echo why >&2; kill -SEGV $$", "the C compiler was ended by signal 11: why"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_error err = {0};
        ty_cc_job *job;
        const ty_cc_options options = compiler(rows[i].body);
        assert_int_equal(ty_cc_start(texts, UNITS, &options, &job, &err), 0);
        assert_int_equal(ty_cc_wait(job, &err), -1);
        assert_int_equal(err.code, TY_E_COMPILER);
        assert_non_null(strstr(err.message, rows[i].words));
        ty_cc_abandon(job);
    }
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(script, sizeof script, "%s/cc", folder);
    snprintf(pids, sizeof pids, "%s/pids", folder);
    ty_toolchain_ends_if(is_over);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ty_toolchain_ends_if(NULL);
    return ty_file_remove_tree(folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_if),
        cmocka_unit_test(test_abandon),
        cmocka_unit_test(test_over_before),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
