/* Files: bounded reading, durable writing, trees. Full disks and dead fsyncs are rehearsed with /dev/full and limits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static const char *in_folder(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, 256, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/trainyard-file-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    return ty_file_remove_tree(folder, NULL);
}

static size_t count_entries(void)
{
    ty_arena a;
    ty_arena_init(&a);
    ty_file_entry *entries;
    size_t n = 0;
    assert_int_equal(ty_file_list(folder, &a, &entries, &n, NULL), 0);
    ty_arena_fini(&a);
    return n;
}

static void test_write_and_read(void **state)
{
    (void)state;
    ty_error err = {0};
    const char *path = in_folder("a.bin");
    umask(022); /* which the caller's mask must not decide */
    assert_int_equal(ty_file_write(path, "old bytes", 9, 0600, &err), 0);
    assert_int_equal(ty_file_write(path, "new\0", 4, 0640, &err), 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    ty_buf b;
    ty_buf_init(&b, 4);
    assert_int_equal(ty_file_read(path, &b, &err), 0);
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.data, "new\0", 4);
    ty_buf_fini(&b);
    assert_int_equal(count_entries(), 1);
    assert_int_equal(ty_file_size(path), 4);
}

static void test_reading_is_bounded(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_buf b;
    ty_buf_init(&b, 3);
    assert_int_equal(ty_file_write(in_folder("four"), "1234", 4, 0644, &err), 0);
    assert_int_equal(ty_file_read(in_folder("four"), &b, &err), -1);
    assert_int_equal(err.code, TY_E_LIMIT);
    ty_buf_fini(&b);
    /* A file of /proc says that it is empty, and is not. */
    ty_buf_init(&b, 10);
    assert_int_equal(ty_file_read("/proc/self/status", &b, &err), -1);
    assert_int_equal(err.code, TY_E_LIMIT);
    ty_buf_fini(&b);
    ty_buf_init(&b, 1 << 20);
    assert_int_equal(ty_file_read("/proc/self/status", &b, &err), 0);
    assert_true(b.len > 100);
    ty_buf_fini(&b);
}

static void test_only_regular_files(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_buf b;
    ty_buf_init(&b, 100);
    assert_int_equal(ty_file_read(folder, &b, &err), -1);
    assert_non_null(strstr(err.message, "found a folder"));
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(ty_file_read(in_folder("pipe"), &b, &err), -1); /* and does not hang */
    assert_int_equal(ty_file_read(in_folder("absent"), &b, &err), -1);
    assert_int_equal(err.code, TY_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "absent"));
    ty_buf_fini(&b);
    assert_int_equal(ty_file_size(in_folder("pipe")), -1);
}

static void test_failed_writes_leave_the_old_file_and_nothing_else(void **state)
{
    (void)state;
    ty_error err = {0};
    const char *path = in_folder("kept");
    assert_int_equal(ty_file_write(path, "old", 3, 0644, &err), 0);
    size_t before = count_entries();
    /* A file size limit makes write() fail in the middle, like a full disk. */
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old_limit, limit;
    getrlimit(RLIMIT_FSIZE, &old_limit);
    limit = old_limit;
    limit.rlim_cur = 1000;
    setrlimit(RLIMIT_FSIZE, &limit);
    char big[4096] = {0};
    int rc = ty_file_write(path, big, sizeof big, 0644, &err);
    setrlimit(RLIMIT_FSIZE, &old_limit);
    assert_int_equal(rc, -1);
    assert_int_equal(err.code, TY_E_LIMIT);
    assert_non_null(strstr(err.message, "cannot write"));
    assert_int_equal(count_entries(), before);
    assert_int_equal(ty_file_size(path), 3);
}

static void test_writer_names_its_step(void **state)
{
    (void)state;
    ty_error err = {0};
    assert_int_equal(ty_file_write(in_folder("no/such/folder"), "x", 1, 0644, &err), -1);
    assert_non_null(strstr(err.message, "cannot open folder"));
    assert_int_equal(ty_file_write(in_folder(""), "x", 1, 0644, &err), -1);
    assert_non_null(strstr(err.message, "no file name"));
    assert_int_equal(mkdir(in_folder("taken"), 0755), 0);
    size_t before = count_entries();
    assert_int_equal(ty_file_write(in_folder("taken"), "x", 1, 0644, &err), -1);
    assert_non_null(strstr(err.message, "rename failed"));
    assert_int_equal(count_entries(), before);
    int full = open("/dev/full", O_WRONLY);
    assert_int_equal(ty_file_write_all(full, "x", 1, "/dev/full", &err), -1);
    assert_int_equal(err.code, TY_E_NO_SPACE);
    close(full);
}

static void test_streaming_writer(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_file_writer w;
    const char *path = in_folder("stream");
    assert_int_equal(ty_file_writer_open(&w, path, 0644, &err), 0);
    assert_false(ty_file_exists(path));
    assert_true(ty_file_is_temporary(w.temporary));
    for (int i = 0; i < 1000; i++)
        assert_int_equal(ty_file_writer_add(&w, "0123456789", 10, &err), 0);
    assert_int_equal(w.n_bytes, 10000);
    assert_false(ty_file_exists(path));
    assert_int_equal(ty_file_writer_commit(&w, &err), 0);
    assert_int_equal(ty_file_size(path), 10000);
    ty_file_writer_abandon(&w);
    assert_int_equal(ty_file_size(path), 10000);

    size_t before = count_entries();
    assert_int_equal(ty_file_writer_open(&w, path, 0644, &err), 0);
    assert_int_equal(ty_file_writer_add(&w, "x", 1, &err), 0);
    ty_file_writer_abandon(&w);
    ty_file_writer_abandon(&w);
    assert_int_equal(ty_file_writer_add(&w, "x", 1, &err), -1);
    assert_int_equal(ty_file_writer_commit(&w, &err), -1);
    assert_int_equal(count_entries(), before);
    assert_int_equal(ty_file_size(path), 10000);
}

static void test_temporary_names(void **state)
{
    (void)state;
    assert_true(ty_file_is_temporary(".model.bin.tmp-123-0"));
    assert_false(ty_file_is_temporary("model.bin.tmp-123-0"));
    assert_false(ty_file_is_temporary(".model.bin"));
    assert_false(ty_file_is_temporary(".x.tmp-12-"));
    assert_false(ty_file_is_temporary(".x.tmp-12-3.bin"));
    assert_false(ty_file_is_temporary(".tmp-1-2"));
}

static void test_mkdirs(void **state)
{
    (void)state;
    ty_error err = {0};
    assert_int_equal(ty_file_mkdirs(in_folder("a//b/c/"), 0755, &err), 0);
    assert_int_equal(ty_file_mkdirs(in_folder("a/b/c"), 0755, &err), 0);
    assert_true(ty_file_is_folder(in_folder("a/b/c")));
    assert_int_equal(ty_file_mkdirs("/", 0755, &err), 0);
    assert_int_equal(ty_file_write(in_folder("file"), "", 0, 0644, &err), 0);
    assert_int_equal(ty_file_mkdirs(in_folder("file"), 0755, &err), -1);
    assert_int_equal(err.code, TY_E_CREATE);
    assert_int_equal(ty_file_mkdirs(in_folder("file/below"), 0755, &err), -1);
    assert_int_equal(ty_file_mkdirs("", 0755, &err), -1);
}

static void test_list_is_sorted_and_typed(void **state)
{
    (void)state;
    ty_error err = {0};
    assert_int_equal(ty_file_mkdirs(in_folder("list/d"), 0755, &err), 0);
    assert_int_equal(ty_file_write(in_folder("list/b"), "12345", 5, 0644, &err), 0);
    assert_int_equal(ty_file_write(in_folder("list/B"), "", 0, 0644, &err), 0);
    assert_int_equal(symlink("nowhere", in_folder("list/l")), 0);
    ty_arena a;
    ty_arena_init(&a);
    ty_file_entry *entries;
    size_t n;
    assert_int_equal(ty_file_list(in_folder("list"), &a, &entries, &n, &err), 0);
    assert_int_equal(n, 4);
    assert_string_equal(entries[0].name, "B");
    assert_string_equal(entries[1].name, "b");
    assert_int_equal(entries[1].kind, 'f');
    assert_int_equal(entries[1].n_bytes, 5);
    assert_int_equal(entries[2].kind, 'd');
    assert_int_equal(entries[3].kind, 'l');
    assert_int_equal(ty_file_list(in_folder("nowhere"), &a, &entries, &n, &err), -1);
    assert_int_equal(err.code, TY_E_NOT_FOUND);
    ty_arena_fini(&a);
}

static void test_remove_tree_follows_no_link(void **state)
{
    (void)state;
    ty_error err = {0};
    assert_int_equal(ty_file_mkdirs(in_folder("keep"), 0755, &err), 0);
    assert_int_equal(ty_file_write(in_folder("keep/me"), "x", 1, 0644, &err), 0);
    assert_int_equal(ty_file_mkdirs(in_folder("tree/x/y"), 0755, &err), 0);
    assert_int_equal(ty_file_write(in_folder("tree/x/y/z"), "x", 1, 0644, &err), 0);
    assert_int_equal(symlink("../../keep", in_folder("tree/x/link")), 0);
    assert_int_equal(ty_file_remove_tree(in_folder("tree"), &err), 0);
    assert_false(ty_file_exists(in_folder("tree")));
    assert_true(ty_file_exists(in_folder("keep/me")));
    assert_int_equal(ty_file_remove_tree(in_folder("tree"), &err), 0);
    assert_int_equal(symlink("keep", in_folder("link")), 0);
    assert_int_equal(ty_file_remove_tree(in_folder("link"), &err), 0);
    assert_true(ty_file_exists(in_folder("keep/me")));
    assert_int_equal(ty_file_remove(in_folder("keep/me"), &err), 0);
    assert_int_equal(ty_file_remove(in_folder("keep/me"), &err), 0);
}

static void test_map(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_file_view view;
    assert_int_equal(ty_file_write(in_folder("m"), "mapped", 6, 0644, &err), 0);
    assert_int_equal(ty_file_map(in_folder("m"), &view, &err), 0);
    assert_int_equal(view.n_bytes, 6);
    assert_memory_equal(view.bytes, "mapped", 6);
    ty_file_unmap(&view);
    ty_file_unmap(&view);
    assert_int_equal(ty_file_write(in_folder("m"), "", 0, 0644, &err), 0);
    assert_int_equal(ty_file_map(in_folder("m"), &view, &err), 0);
    assert_int_equal(view.n_bytes, 0);
    assert_non_null(view.bytes);
    ty_file_unmap(&view);
    assert_int_equal(ty_file_map(folder, &view, &err), -1);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_write_and_read),
        IN_FOLDER(test_reading_is_bounded),
        IN_FOLDER(test_only_regular_files),
        IN_FOLDER(test_failed_writes_leave_the_old_file_and_nothing_else),
        IN_FOLDER(test_writer_names_its_step),
        IN_FOLDER(test_streaming_writer),
        IN_FOLDER(test_mkdirs),
        IN_FOLDER(test_list_is_sorted_and_typed),
        IN_FOLDER(test_remove_tree_follows_no_link),
        IN_FOLDER(test_map),
        cmocka_unit_test(test_temporary_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
