/* data_plan.c - what `trainyard data plan` says, for jobs that are a few facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "entrypoint/data_plan.h"

#include <string.h>

static ty_data_plan_facts facts_of(int hosts, int processes)
{
    ty_place place = {.hosts = hosts, .locals = processes, .ranks = hosts * processes};
    return (ty_data_plan_facts){.is_train = true,
                                .format = "tfrecord",
                                .access = {.is_records = true, .bytes = 1000000, .memory_bytes = 1 << 30},
                                .part = {.place = place, .n_files = 16, .even_files = true},
                                .n_alike = 1,
                                .samples = 1000,
                                .batch_size = 96,
                                .epochs = 3,
                                .shuffles = true,
                                .shuffle_rows = 8192,
                                .row_bytes = 100,
                                .shuffle_limit = 1 << 20,
                                .block_bytes = 1 << 10,
                                .depth = 4,
                                .workers = 1,
                                .max_workers = 2,
                                .cores = 2};
}

static int stage_at(const ty_data_plan *p, const char *name)
{
    for (int i = 0; i < TY_DATA_PLAN_STAGES; i++)
        if (strcmp(p->stage[i].name, name) == 0)
            return i;
    return -1;
}

#define assert_says(text, part)                             \
    do {                                                    \
        if (strstr((text), (part)) == NULL)                 \
            fail_msg("expected \"%s\" in: %s", part, text); \
    } while (0)

static void every_stage_stands_once_with_its_reason(void **state)
{
    (void)state;
    static const char *const names[] = {"shard", "cache", "shuffle", "batch", "parse", "repeat", "prefetch"};
    for (int mode = TY_JOB_FILE; mode <= TY_JOB_PIPE; mode++)
        for (int hosts = 1; hosts <= 3; hosts++) {
            ty_data_plan_facts f = facts_of(hosts, 2);
            ty_data_plan p;
            f.access.mode = (ty_job_mode)mode;
            ty_data_plan_make(&f, &p);
            for (int i = 0; i < TY_DATA_PLAN_STAGES; i++) {
                int at = stage_at(&p, names[i]);
                assert_true(at >= 0 && p.stage[at].what[0] && p.stage[at].why[0]);
            }
            assert_true(stage_at(&p, "shuffle") < stage_at(&p, "batch"));
            assert_true(stage_at(&p, "batch") < stage_at(&p, "parse"));
            assert_int_equal(stage_at(&p, "prefetch"), TY_DATA_PLAN_STAGES - 1);
        }
}

static void files_that_fit_are_read_by_number(void **state)
{
    (void)state;
    ty_data_plan_facts f = facts_of(2, 2);
    ty_data_plan p;
    ty_data_plan_make(&f, &p);
    assert_false(p.streams);
    assert_int_equal(p.rank_rows, 24);
    assert_int_equal(p.batches, 10); /* 1000 / 96 */
    assert_int_equal(p.part.n, 4);
    assert_false(p.is_agreed);
    assert_int_equal(p.ring_bytes, 24 * 100 * 4);
    assert_int_equal(p.order_bytes, 4000);
    assert_int_equal(p.block_bytes, 0);
    f.remainder = TY_REMAINDER_PAD;
    ty_data_plan_make(&f, &p);
    assert_int_equal(p.batches, 11);
    f.part.sharded = true;
    ty_data_plan_make(&f, &p);
    assert_true(p.is_agreed);
    assert_int_equal(p.part.n, 2);
    assert_string_equal(p.problem, "");
}

static void streams_are_shared_by_the_table(void **state)
{
    (void)state;
    ty_data_plan_facts f = facts_of(2, 2);
    ty_data_plan p;
    f.access.wanted = TY_ACCESS_STREAM;
    f.samples = 0;
    ty_data_plan_make(&f, &p); /* 16 files, 4 parts: by file, first of all */
    assert_true(p.streams && p.part.by_file && p.is_agreed);
    assert_int_equal(stage_at(&p, "shard"), 0);
    assert_says(p.stage[0].what, "files 0, 4, 8 ... of 16");
    assert_int_equal(p.batches, 0);
    assert_int_equal(p.order_bytes, 1 << 20);
    assert_int_equal(p.block_bytes, 1 << 10);
    f.part.n_files = 15;
    ty_data_plan_make(&f, &p); /* too few: rows, behind the buffer */
    assert_true(!p.part.by_file && stage_at(&p, "shard") > stage_at(&p, "shuffle"));
    assert_false(p.is_agreed);
    f.part.wanted = TY_PART_NONE;
    ty_data_plan_make(&f, &p);
    assert_int_equal(p.part.n, 1);
}

static void pipes_have_a_reader_each(void **state)
{
    (void)state;
    ty_data_plan_facts f = facts_of(1, 4);
    ty_data_plan p;
    f.access.mode = TY_JOB_PIPE;
    f.part.n_files = 0;
    f.n_alike = 3;
    ty_data_plan_make(&f, &p);
    assert_says(p.problem, "4 processes a host and 3 channels");
    f.n_alike = 4;
    ty_data_plan_make(&f, &p);
    assert_string_equal(p.problem, "");
    assert_says(p.stage[stage_at(&p, "repeat")].what, "a FIFO each");
    assert_says(p.stage[stage_at(&p, "cache")].why, "each epoch anew");
}

static void what_would_be_refused_is_said(void **state)
{
    (void)state;
    ty_data_plan_facts f = facts_of(1, 5);
    ty_data_plan p;
    ty_data_plan_make(&f, &p);
    assert_says(p.problem, "96 cannot be divided among 5 ranks");
    f = facts_of(1, 1);
    f.samples = 95;
    ty_data_plan_make(&f, &p);
    assert_says(p.problem, "95 samples are fewer than a batch of 96");
    f.batch_size = 0;
    ty_data_plan_make(&f, &p);
    assert_string_equal(p.problem, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stage_stands_once_with_its_reason), cmocka_unit_test(files_that_fit_are_read_by_number),
        cmocka_unit_test(streams_are_shared_by_the_table),         cmocka_unit_test(pipes_have_a_reader_each),
        cmocka_unit_test(what_would_be_refused_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
