/* input_cycles.c - reading ahead begun and ended many times: no thread, descriptor or memory is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/prefetch.h"
#include "input_files.h"

#include <dirent.h>
#include <malloc.h>

enum { WARM = 64, CYCLES = WARM + 200, ROWS = 5000, BATCH = 16 };

static int entries_of(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = 0;
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static size_t allocated(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void put_rows(void)
{
    char *text = malloc(ROWS * 40), *p = text;
    assert_non_null(text);
    for (int i = 0; i < ROWS; i++)
        p += sprintf(p, "%d 1:%d 2:%d 3:0.5\n", i % 2, i, i % 7);
    files_put("rows.libsvm", text, (size_t)(p - text));
    free(text);
}

static void take(ty_prefetch *p, int n)
{
    ty_error err = {0};
    for (int i = 0; i < n; i++) {
        const ty_batch *batch;
        assert_ok(ty_prefetch_next(p, &batch, &err), &err);
        assert_non_null(batch);
        if (i % 5 != 4) /* some are still held when it ends */
            ty_prefetch_release(p, batch);
    }
}

static void nothing_is_left_of_two_hundred_cycles(void **state)
{
    (void)state;
    ty_field f[2] = {ty_field_make("label"), ty_field_make("features")};
    ty_error err = {0};
    int threads = 0, descriptors = 0;
    size_t bytes = 0;
    put_rows();
    for (int i = 0; i < CYCLES; i++) {
        ty_dataset *ds;
        ty_prefetch *p;
        assert_ok(files_open("rows.libsvm", f, 2, (ty_data_source){0}, &ds, &err), &err);
        ty_prefetch_config config = {.dataset = ds,
                                     .sampler = {.batch_size = BATCH, .shuffle = true, .stream = TY_STREAM_SHUFFLE},
                                     .depth = 6,
                                     .n_workers = 1 + i % 4};
        assert_ok(ty_prefetch_start(&config, &p, &err), &err);
        take(p, i % 9);
        ty_prefetch_stop(p);
        ty_dataset_close(ds);
        if (i == WARM) { /* what libraries keep for good, and what threads keep by, is there by now */
            threads = entries_of("/proc/self/task");
            descriptors = entries_of("/proc/self/fd");
            bytes = allocated();
        }
    }
    assert_int_equal(entries_of("/proc/self/task"), threads);
    assert_int_equal(entries_of("/proc/self/fd"), descriptors);
    if (allocated() > bytes + 16384)
        fail_msg("%zu bytes more than after the first cycles", allocated() - bytes);
}

/* The ring takes what it says, and a run does not make it grow. */
static void memory_stays_what_was_said(void **state)
{
    (void)state;
    ty_field f[2] = {ty_field_make("label"), ty_field_make("features")};
    f[1].max_length = 0;
    ty_error err = {0};
    ty_dataset *ds;
    ty_prefetch *p;
    put_rows();
    f[1].shape_given = true;
    f[1].rank = 1;
    f[1].dim[0] = 2000;
    assert_ok(files_open("rows.libsvm", f, 2, (ty_data_source){0}, &ds, &err), &err);
    size_t before = allocated();
    ty_prefetch_config config = {.dataset = ds, .sampler = {.batch_size = 256}, .depth = 8, .n_workers = 3};
    assert_ok(ty_prefetch_start(&config, &p, &err), &err);
    size_t said = ty_prefetch_bytes(p), most = 0;
    for (int i = 0; i < 200; i++) {
        const ty_batch *batch;
        assert_ok(ty_prefetch_next(p, &batch, &err), &err);
        ty_prefetch_release(p, batch);
        size_t now = allocated() - before;
        most = now > most ? now : most;
    }
    ty_prefetch_stop(p);
    ty_dataset_close(ds);
    if (most > said + said / 20)
        fail_msg("%zu bytes were said, %zu taken", said, most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left_of_two_hundred_cycles),
        cmocka_unit_test(memory_stays_what_was_said),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
