/* input_cycles.c - reading ahead begun and ended many times: no thread, descriptor or memory is left; nor does it take
 * more memory than it says. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_tryjoin_np */
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/image/plan.h"
#include "container/input/prefetch.h"
#include "input_feeder.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

enum { WARM = 64, CYCLES = WARM + 200, N_ROWS = 5000, BATCH = 16 };

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

/* Whether no more than `most` threads are left. One that was joined may be listed for a moment still: the kernel wakes
 * who waits for it before it takes it off the list. So too many are counted again, for up to ten seconds. */
static bool threads_are(int most)
{
    for (int i = 0; entries_of("/proc/self/task") > most; i++) {
        if (i == 10000)
            return false;
        usleep(1000);
    }
    return true;
}

static size_t allocated(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void put_rows(void)
{
    char *text = malloc(N_ROWS * 40), *p = text;
    assert_non_null(text);
    for (int i = 0; i < N_ROWS; i++)
        p += sprintf(p, "%d 1:%d 2:%d 3:0.5\n", i % 2, i, i % 7);
    files_put("rows.libsvm", text, (size_t)(p - text));
    free(text);
}

static void take_some(ty_prefetch *p, int n)
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
        take_some(p, i % 9);
        ty_prefetch_stop(p);
        ty_dataset_close(ds);
        if (i == WARM) { /* what libraries keep for good, and what threads keep by, is there by now */
            threads = entries_of("/proc/self/task");
            descriptors = entries_of("/proc/self/fd");
            bytes = allocated();
        }
    }
    assert_true(threads_are(threads));
    assert_int_equal(entries_of("/proc/self/fd"), descriptors);
    if (allocated() > bytes + 16384)
        fail_msg("%zu bytes more than after the first cycles", allocated() - bytes);
}

/* ---- every kind of data ---- */

#if defined(__SANITIZE_THREAD__) /* each takes twenty times as long, and races show in a few */
enum { EACH = 20 };
#else
enum { EACH = 100 };
#endif

/* What is open in this process. */
typedef struct left {
    int threads, descriptors;
} left;

static left count_left(void)
{
    return (left){entries_of("/proc/self/task"), entries_of("/proc/self/fd")};
}

#define assert_nothing_is_left(before)                                       \
    do {                                                                     \
        assert_true(threads_are((before).threads));                          \
        assert_int_equal(entries_of("/proc/self/fd"), (before).descriptors); \
    } while (0)

/* Opened, read ahead of and left at some batch, again and again; now and then closed before anything is read. */
static void cycle(const ty_data_source *src, int i)
{
    ty_dataset *ds;
    ty_prefetch *p;
    ty_error err = {0};
    assert_ok(ty_dataset_open(src, &ds, &err), &err);
    ty_prefetch_config config = {.dataset = ds,
                                 .sampler = {.batch_size = 2, .shuffle = i % 2, .stream = TY_STREAM_SHUFFLE},
                                 .depth = 6,
                                 .n_workers = 1 + i % 4};
    if (i % 5) {
        assert_ok(ty_prefetch_start(&config, &p, &err), &err);
        take_some(p, i % 6);
        ty_prefetch_stop(p);
    }
    ty_dataset_close(ds);
}

static void a_hundred_data_sets_leave_nothing(void **state)
{
    (void)state;
    for (int k = 0; k < N_FILE_KINDS; k++) {
        put_files((kind)k);
        ty_stream_config c = config_of((kind)k);
        ty_data_source src = {.paths = c.paths,
                              .n_paths = 1,
                              .format = c.format,
                              .fields = c.fields,
                              .n_fields = c.n_fields,
                              .csv_header = TY_CSV_HEADER_NO};
        left before = count_left();
        for (int i = 0; i < EACH; i++) {
            src.no_map = i % 3 == 0;
            cycle(&src, i);
        }
        assert_nothing_is_left(before);
    }
}

/* Arrays, and pictures in folders, whose files are opened by those who read them. */
static void a_hundred_arrays_and_pictures_leave_nothing(void **state)
{
    (void)state;
    static const char *const paths[3] = {"array/x.npy", "idx/x.idx", "folders"};
    uint8_t idx[8 + 4 + 40] = {0, 0, 8, 2, 0, 0, 0, 20, 0, 0, 0, 2};
    char npy[128 + 80], name[64];
    memset(npy, ' ', sizeof npy);
    memcpy(npy, "\x93NUMPY\1\0\x76", 10);
    memcpy(npy + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (20, 2), }", 60);
    npy[127] = '\n';
    files_put(paths[0], npy, 128 + 40);
    files_put(paths[1], idx, sizeof idx);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "folders/%d/%d.pgm", i % 2, i);
        files_put(name, "P5 2 1 255\nab", 13);
    }
    for (int k = 0; k < 3; k++) {
        const char *path = files_path(paths[k]);
        ty_field f[2] = {ty_field_make(k == 2 ? "image" : "x"), ty_field_make("label")};
        ty_data_source src = {.paths = &path, .n_paths = 1, .fields = f, .n_fields = k == 2 ? 2 : 1};
        left before = count_left();
        for (int i = 0; i < EACH; i++) {
            src.no_map = i % 3 == 0;
            cycle(&src, i);
        }
        assert_nothing_is_left(before);
    }
}

static void a_hundred_streams_leave_nothing(void **state)
{
    (void)state;
    run_batch got[32];
    for (int k = 0; k < N_FILE_KINDS; k++) {
        put_files((kind)k);
        ty_stream_config c = config_of((kind)k);
        left before = count_left();
        for (int i = 0; i < EACH; i++) {
            ty_stream *s = open_stream(&c);
            reading r = start(s, (ty_stream_order){.shuffle_rows = i % 50}, (ty_position){0}, 0, 1 + i % 3);
            take(&r, got, i % 20);
            stop(&r);
            ty_stream_close(s);
        }
        assert_nothing_is_left(before);
    }
}

/* A stream that is stopped while it waits for a writer that never comes. */
static void stop_waiting(kind k)
{
    run_batch got[32];
    feeder f = {0};
    feed_kind(&f, k, 1);
    ty_stream_config c = pipe_of(k);
    c.timeout_ms = 3600000;
    ty_stream *s = open_stream(&c);
    reading r = start(s, (ty_stream_order){0}, (ty_position){0}, 0, 2);
    take(&r, got, 13);
    fed(&f);
    stop(&r);
    ty_stream_close(s);
}

static void a_hundred_fifos_leave_nothing(void **state)
{
    (void)state;
    run_batch got[32];
    for (int k = 0; k < N_KINDS; k++) {
        put_files((kind)k);
        left before = count_left();
        feeder f = {0};
        feed_kind(&f, (kind)k, 0);
        ty_stream_config c = pipe_of((kind)k);
        for (int i = 0; i < EACH; i++) {
            ty_stream *s = open_stream(&c);
            if (i % 5) {
                reading r = start(s, (ty_stream_order){.shuffle_rows = i % 50}, (ty_position){0}, 0, 1 + i % 3);
                take(&r, got, i % 20);
                stop(&r);
            }
            ty_stream_close(s);
        }
        unfeed(&f);
        stop_waiting((kind)k);
        assert_nothing_is_left(before);
    }
}

/* ---- memory ---- */

enum { SIDE = 500, PICTURES = 24 };

/* Pictures of 750 KB each, which become 8 x 8 pixels. */
static void put_pictures(void)
{
    size_t n = (size_t)SIDE * SIDE * 3;
    char *text = calloc(1, n + 64), name[64];
    assert_non_null(text);
    int head = sprintf(text, "P6\n%d %d\n255\n", SIDE, SIDE);
    for (int i = 0; i < PICTURES; i++) {
        snprintf(name, sizeof name, "pictures/%d/%d.ppm", i % 2, i);
        files_put(name, text, (size_t)head + n);
    }
    free(text);
}

/* The limit holds for what pictures are decoded in too: of threads there are as many as fit. */
static void decoders_are_within_the_limit(void **state)
{
    (void)state;
    ty_field f[2] = {ty_field_make("image"), ty_field_make("label")};
    ty_image_plan plan = ty_image_plan_make();
    ty_error err = {0};
    ty_dataset *ds;
    ty_prefetch *p;
    plan.height = plan.width = 8;
    f[0].image = &plan;
    put_pictures();
    assert_ok(files_open("pictures", f, 2, (ty_data_source){0}, &ds, &err), &err);
    size_t one = ty_dataset_work_bytes(ds), pixels = (size_t)SIDE * SIDE * 3, most = 0, before = allocated();
    assert_in_range(one, 2 * pixels, 2 * pixels + pixels / 4); /* the file and its pixels */
    for (int fit = 1; fit <= 3; fit++) {
        ty_prefetch_config config = {.dataset = ds,
                                     .sampler = {.batch_size = 4, .shuffle = true, .stream = TY_STREAM_SHUFFLE},
                                     .depth = 8,
                                     .n_workers = 8,
                                     .memory_bytes = (size_t)fit * one + 16384};
        assert_ok(ty_prefetch_start(&config, &p, &err), &err);
        assert_int_equal(ty_prefetch_work_bytes(p), (size_t)fit * one);
        for (int i = 0; i < 40; i++) {
            const ty_batch *batch;
            assert_ok(ty_prefetch_next(p, &batch, &err), &err);
            for (int k = 0; k < 100; k++) {
                size_t now = allocated() - before;
                most = now > most ? now : most;
            }
            ty_prefetch_release(p, batch);
        }
        assert_true(ty_prefetch_bytes(p) + ty_prefetch_work_bytes(p) <= config.memory_bytes);
        ty_prefetch_stop(p);
        if (most > config.memory_bytes + config.memory_bytes / 20)
            fail_msg("%zu bytes were said, %zu taken", config.memory_bytes, most);
    }
    ty_prefetch_config config = {.dataset = ds, .sampler = {.batch_size = 4}, .memory_bytes = one};
    assert_int_equal(ty_prefetch_start(&config, &p, &err), -1);
    assert_says(&err, "are for what one thread decodes in");
    ty_dataset_close(ds);
}

/* So it does for the numbers of all samples in their order. */
static void the_order_is_within_the_limit(void **state)
{
    (void)state;
    ty_field f[2] = {ty_field_make("label"), ty_field_make("features")};
    ty_error err = {0};
    ty_dataset *ds;
    ty_prefetch *p;
    put_rows();
    assert_ok(files_open("rows.libsvm", f, 2, (ty_data_source){0}, &ds, &err), &err);
    ty_prefetch_config config = {.dataset = ds,
                                 .sampler = {.batch_size = 1, .shuffle = true, .stream = TY_STREAM_SHUFFLE},
                                 .depth = 16,
                                 .memory_bytes = N_ROWS * 4 + 4096};
    assert_ok(ty_prefetch_start(&config, &p, &err), &err);
    assert_in_range(ty_prefetch_bytes(p), 2, 4096);
    ty_prefetch_stop(p);
    config.memory_bytes = N_ROWS * 4;
    assert_int_equal(ty_prefetch_start(&config, &p, &err), -1);
    assert_says(&err, "of it 20000 are for the order of all samples");
    config.sampler.shuffle = false;
    assert_ok(ty_prefetch_start(&config, &p, &err), &err);
    ty_prefetch_stop(p);
    ty_dataset_close(ds);
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
        cmocka_unit_test(a_hundred_data_sets_leave_nothing),
        cmocka_unit_test(a_hundred_arrays_and_pictures_leave_nothing),
        cmocka_unit_test(a_hundred_streams_leave_nothing),
        cmocka_unit_test(a_hundred_fifos_leave_nothing),
        cmocka_unit_test(memory_stays_what_was_said),
        cmocka_unit_test(decoders_are_within_the_limit),
        cmocka_unit_test(the_order_is_within_the_limit),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
