/* input_resume.c - a stream goes on where it stopped: at every position of an epoch, in every format, from files and
 * FIFOs, with every way to divide and to end it, to the same bits. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_tryjoin_np */
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "input_feeder.h"

/* Order differs from epoch to epoch and by seed; workers do not matter; resumed at any batch the rest is the same. */
static void resumed_anywhere_it_is_the_same(void **state)
{
    (void)state;
    static const ty_stream_order orders[] = {
        {.tail = TY_TAIL_DROP},
        {.tail = TY_TAIL_PAD},
        {.tail = TY_TAIL_DROP, .shuffle_rows = 16, .seed = 1},
        {.tail = TY_TAIL_PAD, .shuffle_rows = 1000, .seed = 1},
        {.tail = TY_TAIL_PAD, .shuffle_rows = 7, .seed = 1, .shard_by = TY_SHARD_ROWS, .shard = 1, .n_shards = 3},
        {.tail = TY_TAIL_DROP, .shuffle_rows = 7, .seed = 1, .shard_by = TY_SHARD_RECORDS, .shard = 1, .n_shards = 3},
        {.tail = TY_TAIL_PAD, .fills = true, .shuffle_rows = 7, .seed = 1, .shard = 2, .n_shards = 3},
        {.tail = TY_TAIL_DROP, .shuffle_rows = 7, .seed = 1, .augment = true},
    };
    for (int k = 0; k < N_FILE_KINDS; k++) {
        put_files((kind)k);
        ty_stream_config c = config_of((kind)k);
        c.block_bytes = k % 2 ? 100 : 0;
        ty_stream *s = open_stream(&c);
        for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
            run_batch all[64], rest[64];
            reading r = start(s, orders[o], (ty_position){0}, 2, 1);
            int n = take(&r, all, 64);
            stop(&r);
            assert_true(n > 4 && n < 64);
            for (int workers = 2; workers <= 5; workers += 3) {
                r = start(s, orders[o], (ty_position){0}, 2, workers);
                assert_int_equal(take(&r, rest, 64), n);
                stop(&r);
                assert_memory_equal(rest, all, (size_t)n * sizeof *all);
            }
            for (int from = 0; from < n; from++) {
                r = start(s, orders[o], all[from].at, 2, 1);
                assert_int_equal(take(&r, rest, 64), n - from);
                stop(&r);
                assert_memory_equal(rest, all + from, (size_t)(n - from) * sizeof *all);
            }
            bool same_again = memcmp(all[0].label, all[n / 2].label, sizeof all[0].label) == 0;
            assert_int_equal(same_again, orders[o].shuffle_rows == 0);
            /* Behind the end of an epoch comes the next one. */
            r = start(s, orders[o], (ty_position){0, 60}, 2, 1);
            assert_int_equal(take(&r, rest, 64), n / 2);
            stop(&r);
            assert_memory_equal(rest, all + n / 2, (size_t)(n / 2) * sizeof *all);
        }
        ty_stream_close(s);
    }
}

/* ---- FIFOs ---- */

/* What gives the same batches from files. */
static kind file_kind(kind k)
{
    return k == ATTRIBUTES ? JSON : k;
}

/* The same batches as from the files, in every format, whole and in shards, FIFO after FIFO. */
static void fifos_give_what_files_give(void **state)
{
    (void)state;
    static const ty_stream_order orders[] = {
        {.tail = TY_TAIL_PAD},
        {.tail = TY_TAIL_DROP, .shuffle_rows = 16, .seed = 1},
        {.tail = TY_TAIL_PAD, .shuffle_rows = 7, .seed = 1, .shard = 1, .n_shards = 3},
    };
    for (int k = 0; k < N_KINDS; k++) {
        put_files((kind)k);
        for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
            run_batch files[64], fifos[64];
            ty_stream_config c = config_of(file_kind((kind)k));
            ty_stream *s = open_stream(&c);
            reading r = start(s, orders[o], (ty_position){0}, 3, 1);
            int n = take(&r, files, 64);
            stop(&r);
            uint64_t hash = s->first_hash;
            ty_stream_close(s);

            feeder f = {0};
            feed_kind(&f, (kind)k, 3);
            c = pipe_of((kind)k);
            s = open_stream(&c);
            assert_int_equal(s->n_files, 0);
            assert_true(k == ATTRIBUTES || s->first_hash == hash);
            r = start(s, orders[o], (ty_position){0}, 3, 2);
            assert_int_equal(take(&r, fifos, 64), n);
            assert_memory_equal(fifos, files, (size_t)n * sizeof *files);
            stop(&r);
            ty_stream_close(s);
            fed(&f);
            assert_int_equal(next_fifo(), 3);
        }
    }
}

/* Another process after a restart: FIFO 0 again is taken as the epoch in which the run stopped. */
static void check_fifos_resumed(kind k, ty_stream_order o)
{
    run_batch all[64], rest[64];
    ty_stream_config c = config_of(file_kind(k));
    ty_stream *s = open_stream(&c);
    reading r = start(s, o, (ty_position){0}, 2, 1);
    int n = take(&r, all, 64);
    stop(&r);
    ty_stream_close(s);
    for (int from = 0; from < n; from++) {
        feeder f = {0};
        feed_kind(&f, k, 2 - all[from].at.epoch);
        c = pipe_of(k);
        s = open_stream(&c);
        r = start(s, o, all[from].at, 2, 2);
        assert_int_equal(take(&r, rest, 64), n - from);
        stop(&r);
        ty_stream_close(s);
        fed(&f);
        assert_memory_equal(rest, all + from, (size_t)(n - from) * sizeof *all);
    }
}

/* Every format, with each way to divide a channel and to end an epoch. */
static void fifos_are_resumed_at_every_batch(void **state)
{
    (void)state;
    static const ty_stream_order orders[] = {
        {.tail = TY_TAIL_DROP, .shuffle_rows = 10, .seed = 8},
        {.tail = TY_TAIL_PAD, .shuffle_rows = 10, .seed = 8, .shard = 1, .n_shards = 2},
        {.tail = TY_TAIL_PAD, .fills = true, .shuffle_rows = 10, .seed = 8, .shard = 1, .n_shards = 2},
        {.tail = TY_TAIL_PAD, .shard_by = TY_SHARD_RECORDS, .shard = 1, .n_shards = 2},
        {.tail = TY_TAIL_DROP, .augment = true},
    };
    for (int k = 0; k < N_KINDS; k++) {
        put_files((kind)k);
        for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++)
            check_fifos_resumed((kind)k, orders[o]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumed_anywhere_it_is_the_same),
        cmocka_unit_test(fifos_give_what_files_give),
        cmocka_unit_test(fifos_are_resumed_at_every_batch),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
