/* The progress page: what a rank writes, as the agent reads it; from another process, and while it is written. */
#include "dist/page.h"

#include "base/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_fresh(void **state)
{
    (void)state;
    ty_page *page;
    int fd;
    assert_int_equal(ty_page_new(&page, &fd, NULL), 0);
    ty_page_view view;
    ty_page_read(page, &view);
    assert_int_equal(view.phase, TY_PHASE_NONE);
    assert_int_equal(view.step, -1);
    assert_false(view.has_error);
    for (int i = 0; i < TY_PAGE_STREAMS; i++)
        assert_true(view.streams[i].begun == 0 && view.streams[i].ended == 0 && view.streams[i].name[0] == 0);
    ty_page_op ops[4];
    assert_int_equal(ty_page_ring(page, ops, 4), 0);
    ty_page_close(page);
    close(fd);
}

/* A child opens the page by its path, writes and is killed: what it wrote last stays. */
static void test_other_process(void **state)
{
    (void)state;
    ty_page *page;
    int fd;
    char path[64];
    assert_int_equal(ty_page_new(&page, &fd, NULL), 0);
    ty_page_path(fd, path);
    pid_t child = fork();
    if (child == 0) {
        setenv(TY_PAGE_VARIABLE, path, 1);
        ty_page *mine = ty_page_from_environment();
        ty_page_step(mine, 812);
        ty_page_phase(mine, TY_PHASE_STEP);
        ty_page_begin(mine, 0, 1, "all-reduce", "dense_1/kernel", 2, 4000);
        ty_page_end(mine, 0);
        ty_page_begin(mine, 0, 2, "all-reduce", "dense_2/kernel", 3, 4096);
        ty_page_error(mine, "the first");
        ty_page_error(mine, "the second");
        if (ty_page_is_aborted(mine)) /* not that anybody has said so */
            _exit(1);
        ty_page_abort(mine); /* as the agent would; here to see it on the other side */
        kill(getpid(), SIGKILL);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_true(ty_page_is_aborted(page));
    assert_false(ty_page_is_aborted(NULL));
    ty_page_view view;
    ty_page_read(page, &view);
    assert_int_equal(view.step, 812);
    assert_string_equal(ty_phase_name(view.phase), "step");
    assert_string_equal(view.error, "the first");
    assert_int_equal(view.streams[0].begun, 2);
    assert_int_equal(view.streams[0].ended, 1);
    assert_int_equal(view.streams[0].bucket, 3);
    assert_int_equal(view.streams[0].n_bytes, 4096);
    assert_string_equal(view.streams[0].name, "dense_2/kernel");
    assert_string_equal(view.streams[0].kind, "all-reduce");
    assert_in_range(view.streams[0].begun_ms, 0, 60000);
    ty_page_op ops[4];
    assert_int_equal(ty_page_ring(page, ops, 4), 2);
    assert_true(ops[0].ended_us >= ops[0].begun_us && ops[0].begun_us > 0);
    assert_int_equal(ops[1].ended_us, 0);
    assert_int_equal(ops[1].step, 812);
    ty_page_close(page);
    close(fd);
}

static void test_ring_keeps_the_newest(void **state)
{
    (void)state;
    ty_page *page;
    int fd;
    assert_int_equal(ty_page_new(&page, &fd, NULL), 0);
    for (uint64_t i = 1; i <= 3000; i++) {
        ty_page_begin(page, (int)(i % 2), (i + 1) / 2, "all-reduce",
                      "a name that is longer than the place for names is cut", -1, 1);
        ty_page_end(page, (int)(i % 2));
    }
    static ty_page_op ops[TY_PAGE_RING];
    assert_int_equal(ty_page_ring(page, ops, TY_PAGE_RING), TY_PAGE_RING);
    assert_int_equal(ops[0].number, (3000 - TY_PAGE_RING + 2) / 2);
    assert_int_equal(ops[TY_PAGE_RING - 1].number, 1500);
    assert_int_equal(ty_page_ring(page, ops, 2), 2);
    assert_int_equal(ops[1].number, 1500);
    ty_page_close(page);
    close(fd);
}

/* Without a page every call is fine; a file that is no page is refused, and memory of a page that is nonsense is read
 * without harm. */
static void test_none_and_nonsense(void **state)
{
    (void)state;
    ty_page_phase(NULL, TY_PHASE_DATA);
    ty_page_step(NULL, 1);
    ty_page_error(NULL, "x");
    ty_page_begin(NULL, 0, 1, "a", "b", 0, 0);
    ty_page_end(NULL, 0);
    ty_page_close(NULL);
    unsetenv(TY_PAGE_VARIABLE);
    assert_null(ty_page_from_environment());
    setenv(TY_PAGE_VARIABLE, "/nowhere/at/all", 1);
    assert_null(ty_page_from_environment());
    ty_error err = {0};
    ty_page *page;
    assert_int_equal(ty_page_open("/dev/null", &page, &err), -1);
    assert_int_equal(err.code, TY_E_DATA);

    int fd;
    assert_int_equal(ty_page_new(&page, &fd, NULL), 0);
    memset((char *)page + 8, 0x91, 8192);
    ty_page_view view;
    ty_page_read(page, &view);
    assert_int_equal(view.phase, TY_PHASE_NONE);
    assert_true(strlen(view.error) < sizeof view.error);
    assert_true(strlen(view.streams[0].name) < sizeof view.streams[0].name);
    assert_true(view.streams[0].ended <= view.streams[0].begun);
    assert_int_equal(ftruncate(fd, 100), -1); /* nobody can take it from under the reader */
    ty_page_close(page);
    close(fd);
}

static void *write_many(void *page)
{
    for (uint64_t i = 1; i <= 200000; i++) {
        char name[2] = {(char)('a' + i % 26), 0};
        ty_page_begin(page, 1, i, name, name, -1, (int64_t)i);
        ty_page_end(page, 1);
    }
    return NULL;
}

static void test_read_while_written(void **state)
{
    (void)state;
    ty_page *page;
    int fd;
    assert_int_equal(ty_page_new(&page, &fd, NULL), 0);
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, write_many, page), 0);
    uint64_t last = 0;
    while (last < 200000) {
        ty_page_view view;
        ty_page_read(page, &view);
        assert_true(view.streams[1].begun >= last && view.streams[1].ended <= view.streams[1].begun);
        last = view.streams[1].begun;
        ty_page_op op;
        if (ty_page_ring(page, &op, 1) == 1)
            assert_true(op.number >= 1 && op.number <= 200000);
    }
    pthread_join(writer, NULL);
    ty_page_close(page);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fresh),
        cmocka_unit_test(test_other_process),
        cmocka_unit_test(test_ring_keeps_the_newest),
        cmocka_unit_test(test_none_and_nonsense),
        cmocka_unit_test(test_read_while_written),
    };
    return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
