/* Which channel a rank reads, whether it is a stream, and which part of it is the rank's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "entrypoint/channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As a job lists them: by name. */
static const ty_job_channel channels[] = {
    {.name = "evaluation", .mode = TY_JOB_PIPE},  {.name = "train", .mode = TY_JOB_PIPE},
    {.name = "train-1", .mode = TY_JOB_PIPE},     {.name = "train-10", .mode = TY_JOB_PIPE},
    {.name = "train-9", .mode = TY_JOB_PIPE},     {.name = "train-more", .mode = TY_JOB_PIPE},
    {.name = "training", .mode = TY_JOB_PIPE},    {.name = "words", .mode = TY_JOB_FILE},
    {.name = "words-1", .mode = TY_JOB_FAST_FILE}};
static const ty_job job = {.channels = channels, .n_channels = sizeof channels / sizeof channels[0]};

static void channels_go_by_their_numbers(void **state)
{
    (void)state;
    static const char *const expected[] = {"train", "train-1", "train-9", "train-10", NULL};
    int n;
    for (int local = 0; local < 5; local++) {
        ty_place place = {.local = local, .locals = 5, .hosts = 1};
        const ty_job_channel *c = ty_channel_of_rank(&job, "train", &place, &n);
        assert_int_equal(n, 4);
        if (expected[local])
            assert_string_equal(c->name, expected[local]);
        else
            assert_null(c);
    }
    ty_place second = {.local = 1, .locals = 2, .hosts = 1};
    assert_string_equal(ty_channel_of_rank(&job, "words", &second, &n)->name,
                        "words"); /* a folder has any number of readers */
    assert_int_equal(n, 1);
    assert_null(ty_channel_of_rank(&job, "test", &second, &n));
    assert_int_equal(n, 0);
}

typedef struct access_row {
    ty_access_facts facts;
    bool streams;
} access_row;

static void access_follows_mode_format_and_size(void **state)
{
    (void)state;
    static const access_row rows[] = {
        {{TY_ACCESS_AUTO, TY_JOB_PIPE, false, 0, 100, true, false}, true},
        {{TY_ACCESS_RANDOM, TY_JOB_PIPE, false, 0, 100, true, false}, true}, /* which the session refuses */
        {{TY_ACCESS_AUTO, TY_JOB_FAST_FILE, true, 10, 100, false, false}, true},
        {{TY_ACCESS_AUTO, TY_JOB_FAST_FILE, true, 10, 100, true, false}, false},
        {{TY_ACCESS_AUTO, TY_JOB_FAST_FILE, false, 10, 100, false, false}, false},
        {{TY_ACCESS_RANDOM, TY_JOB_FAST_FILE, true, 10, 100, false, false}, false},
        {{TY_ACCESS_AUTO, TY_JOB_FILE, true, 10, 100, false, false}, false},
        {{TY_ACCESS_AUTO, TY_JOB_FILE, true, 51, 100, false, false}, true},
        {{TY_ACCESS_STREAM, TY_JOB_FILE, false, 1, 100, true, false}, true},
        {{TY_ACCESS_AUTO, TY_JOB_FAST_FILE, true, 10, 100, false, true}, false},
        {{TY_ACCESS_AUTO, TY_JOB_FAST_FILE, true, 51, 100, false, true}, true},
        {{TY_ACCESS_AUTO, TY_JOB_FILE, true, 51, 100, false, true}, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *why = NULL;
        if (ty_access_streams(&rows[i].facts, &why) != rows[i].streams)
            fail_msg("row %zu: expected %s (%s)", i, rows[i].streams ? "a stream" : "numbers", why);
        assert_non_null(why);
    }
}

typedef struct part_row {
    const char *name;
    ty_stream_part_facts facts;
    int64_t index, n;
    bool by_file, is_uneven;
} part_row;

/* Rank 5 of 3 hosts with 2 each is the second one of the third host. */
#define PLACE .place = {.host = 2, .hosts = 3, .local = 1, .locals = 2, .rank = 5, .ranks = 6}
#define ALONE .place = {.hosts = 1, .locals = 1, .ranks = 1}

static void parts_follow_the_table(void **state)
{
    (void)state;
    static const part_row rows[] = {
        {"own data, by key", {PLACE, .own_data = true, .sharded = true}, 0, 1, false, true},
        {"own data", {PLACE, .own_data = true}, 2, 3, false, true},
        {"by key", {PLACE, .sharded = true}, 1, 2, false, true},
        {"neither", {PLACE}, 5, 6, false, false},
        {"few files", {PLACE, .n_files = 23, .even_files = true}, 5, 6, false, false},
        {"files", {PLACE, .n_files = 24, .even_files = true}, 5, 6, true, true},
        {"uneven files", {PLACE, .n_files = 24}, 5, 6, false, false},
        {"files where it is said", {PLACE, .n_files = 7, .wanted = TY_PART_FILE}, 5, 6, true, true},
        {"records where it is said",
         {PLACE, .n_files = 99, .even_files = true, .wanted = TY_PART_RECORD},
         5,
         6,
         false,
         false},
        {"none", {PLACE, .wanted = TY_PART_NONE}, 0, 1, false, true},
        {"one reader of each host", {PLACE, .one_reader = true}, 2, 3, false, true},
        {"one reader of each host, by key", {PLACE, .one_reader = true, .sharded = true}, 0, 1, false, true},
        {"alone", {ALONE, .n_files = 99, .even_files = true, .wanted = TY_PART_FILE}, 0, 1, false, false},
        {"alone, none", {ALONE, .wanted = TY_PART_NONE}, 0, 1, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const part_row *r = &rows[i];
        ty_stream_part p = ty_stream_part_of(&r->facts);
        if (p.index != r->index || p.n != r->n || p.by_file != r->by_file || p.is_uneven != r->is_uneven)
            fail_msg("%s: found part %lld of %lld%s%s: %s", r->name, (long long)p.index, (long long)p.n,
                     p.by_file ? " by file" : "", p.is_uneven ? ", uneven" : "", p.why);
    }
}

/* By the table each record of each host's data is some rank's, and no two ranks'. */
static void parts_are_all_of_it(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++)
        for (int sharded = 0; sharded < 2; sharded++) {
            int taken[3][2][12] = {0}; /* host, channel, record */
            for (int rank = 0; rank < 6; rank++) {
                ty_stream_part_facts f = {
                    .place = {rank / 2, 3, rank % 2, 2, rank, 6}, .own_data = own, .sharded = sharded};
                ty_stream_part p = ty_stream_part_of(&f);
                int host = sharded ? rank / 2 : 0, channel = own ? rank % 2 : 0;
                for (int64_t r = p.index; r < 12; r += p.n)
                    taken[host][channel][r]++;
            }
            for (int host = 0; host < (sharded ? 3 : 1); host++)
                for (int channel = 0; channel < (own ? 2 : 1); channel++)
                    for (int r = 0; r < 12; r++)
                        assert_int_equal(taken[host][channel][r], 1);
        }
}

static void a_fifo_shows_a_channel(void **state)
{
    (void)state;
    char folder[] = "/tmp/channel-XXXXXX", path[64], fifo[80];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/train", folder);
    assert_false(ty_channel_has_fifo(path));
    snprintf(fifo, sizeof fifo, "%s_x", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_false(ty_channel_has_fifo(path));
    unlink(fifo);
    snprintf(fifo, sizeof fifo, "%s_3", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_true(ty_channel_has_fifo(path));
    unlink(fifo);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_go_by_their_numbers), cmocka_unit_test(access_follows_mode_format_and_size),
        cmocka_unit_test(parts_follow_the_table),       cmocka_unit_test(parts_are_all_of_it),
        cmocka_unit_test(a_fifo_shows_a_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
