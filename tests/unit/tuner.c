/* tuner.c - how many threads decode: machines that are a few numbers, and a ring whose threads change under way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/tuner.h"
#include "input_files.h"

/* Times in ms a batch. Decoding scales with threads up to `cores`, and slows the step beyond free ones. */
typedef struct machine {
    double step, parse, draw, source;
    int cores;
} machine;

static ty_tuner_look look_at(const machine *m, int n)
{
    double parse = m->parse / (n < m->cores ? n : m->cores), input = parse;
    const char *cause = "parsing";
    if (m->draw > input)
        input = m->draw, cause = "framing";
    if (m->source > input)
        input = m->source, cause = "reading";
    double batch = input > m->step ? input : m->step;
    ty_tuner_look look = {.rate = 1 / batch, .step_share = (batch - m->step) / batch, .cause = cause, .n_workers = n};
    if (look.step_share <= 0.02)
        look.cause = "the step";
    look.room_share = (n * batch - m->parse - m->draw - m->source) / (n * batch);
    return look;
}

/* How many it comes to rest at; fails if it does not. */
static int rest(const machine *m, int start, int max)
{
    ty_tuner t = {0};
    int n = start, quiet = 0;
    for (int i = 0; i < 200 && quiet < 20; i++) {
        ty_tuner_look look = look_at(m, n);
        int next = ty_tuner_decide(&t, &look, max);
        assert_in_range(next, 1, max);
        quiet = next == n ? quiet + 1 : 0;
        n = next;
    }
    assert_int_equal(quiet, 20);
    return n;
}

static void it_comes_to_rest_where_the_step_no_longer_waits(void **state)
{
    (void)state;
    assert_int_equal(rest(&(machine){10, 4, 0.1, 0, 8}, 1, 8), 1);  /* enough from the start */
    assert_int_equal(rest(&(machine){10, 35, 0.1, 0, 8}, 1, 8), 4); /* 35 / 4 < 10 */
    assert_int_equal(rest(&(machine){10, 35, 0.1, 0, 8}, 1, 2), 2); /* no more than there are */
    assert_int_equal(rest(&(machine){10, 90, 0.1, 0, 3}, 1, 8), 3); /* a fourth does not help: taken back */
    assert_int_equal(rest(&(machine){10, 3, 0.1, 50, 8}, 1, 8), 1); /* the disk is slow: threads do not help */
    assert_int_equal(rest(&(machine){10, 3, 40, 0, 8}, 1, 8), 1);   /* framing is one thread's work */
    assert_int_equal(rest(&(machine){10, 8, 0.1, 0, 8}, 6, 8), 1);  /* idle ones go */
    assert_int_equal(rest(&(machine){10, 19, 0.1, 0, 8}, 8, 8), 3); /* two would be at 95 %: the third stays */
}

/* A step that waits beside threads that wait: deeper until it no longer helps, and never back and forth. */
static void an_uneven_rate_makes_the_ring_deeper(void **state)
{
    (void)state;
    ty_tuner t = {0};
    ty_tuner_look look = {.step_share = 0.1, .room_share = 0.2, .rate = 10, .cause = "parsing", .n_workers = 2};
    look.depth = 4;
    look.max_depth = 16;
    assert_int_equal(ty_tuner_depth(&t, &look, 2), 8);
    look.depth = 8;
    look.rate = 11;
    assert_int_equal(ty_tuner_depth(&t, &look, 2), 16);
    look.depth = 16;
    assert_int_equal(ty_tuner_depth(&t, &look, 2), 8); /* as fast as before */
    look.depth = 8;
    for (int i = 0; i < 10; i++)
        assert_int_equal(ty_tuner_depth(&t, &look, 2), 8);
    const ty_tuner_look others[] = {{.step_share = 0.01,
                                     .room_share = 0.5,
                                     .rate = 10,
                                     .cause = "the step",
                                     .n_workers = 2,
                                     .depth = 4,
                                     .max_depth = 9},
                                    {.step_share = 0.5,
                                     .room_share = 0.01,
                                     .rate = 10,
                                     .cause = "parsing",
                                     .n_workers = 2,
                                     .depth = 4,
                                     .max_depth = 9},
                                    {.step_share = 0.5,
                                     .room_share = 0.5,
                                     .rate = 10,
                                     .cause = "parsing",
                                     .n_workers = 2,
                                     .depth = 4,
                                     .max_depth = 4}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        t = (ty_tuner){0};
        assert_int_equal(ty_tuner_depth(&t, &others[i], 2), 4);
    }
    t = (ty_tuner){0};
    look.depth = 4;
    assert_int_equal(ty_tuner_depth(&t, &look, 3), 4); /* a third thread first */
    t = (ty_tuner){.is_fixed = true};
    assert_int_equal(ty_tuner_depth(&t, &look, 2), 4);
}

static void what_is_fixed_stays(void **state)
{
    (void)state;
    ty_tuner t = {.is_fixed = true};
    ty_tuner_look look = look_at(&(machine){10, 90, 0.1, 0, 8}, 2);
    assert_int_equal(ty_tuner_decide(&t, &look, 8), 2);
}

static void measurements_are_subtracted(void **state)
{
    (void)state;
    ty_prefetch_waits before = {100, 10, 1, 2, 3, 4, 2, ""}, after = {200, 90, 1, 2, 83, 5, 2, ""};
    ty_prefetch_waits w = ty_prefetch_waits_between(&before, &after);
    assert_true(w.elapsed_ms == 100 && w.step_ms == 80 && w.parse_ms == 80 && w.room_ms == 1 && w.n_workers == 2);
    assert_string_equal(w.cause, "parsing");
}

static ty_dataset *open_rows(void)
{
    char text[8192];
    size_t n = 0;
    for (int i = 0; i < 500; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d,%d\n", i, -i);
    files_puts("rows.csv", text);
    ty_field f = ty_field_make("x");
    f.columns = "0-1";
    ty_dataset *ds = NULL;
    ty_error err = {0};
    assert_ok(files_open("rows.csv", &f, 1, (ty_data_source){0}, &ds, &err), &err);
    return ds;
}

static ty_prefetch_config config_of(const ty_dataset *ds)
{
    return (ty_prefetch_config){.dataset = ds, .sampler = {.batch_size = 4, .seed = 3}, .until_epoch = 4};
}

/* However threads come and go: the same batches. */
static void workers_change_and_batches_do_not(void **state)
{
    (void)state;
    ty_dataset *ds = open_rows();
    ty_prefetch_config c = config_of(ds);
    c.max_workers = 6;
    c.max_depth = 16;
    ty_prefetch *p;
    ty_error err = {0};
    ty_tuner t = {.least_ms = 1e-6};
    const ty_batch *b;
    assert_ok(ty_prefetch_start(&c, &p, &err), &err);
    assert_int_equal(ty_prefetch_max_workers(p), 6);
    assert_int_equal(ty_prefetch_depth(p), 8);
    for (int i = 0; i < 500; i++) {
        if (i % 7 == 0)
            ty_prefetch_set_workers(p, 1 + i * 5 % 8);
        if (i % 5 == 0)
            ty_prefetch_set_depth(p, 2 + i * 7 % 15);
        assert_ok(ty_prefetch_next(p, &b, &err), &err);
        assert_true(((const float *)b->field[0].data)[0] == (float)(i % 125 * 4));
        ty_prefetch_release(p, b);
        ty_tuner_batch(&t, p);
    }
    assert_ok(ty_prefetch_next(p, &b, &err), &err);
    assert_null(b);
    assert_non_null(t.cause);
    ty_prefetch_set_workers(p, 3);
    ty_prefetch_stop(p);
    ty_dataset_close(ds);
}

static void the_ring_keeps_to_its_memory(void **state)
{
    (void)state;
    ty_dataset *ds = open_rows();
    ty_prefetch_config c = config_of(ds);
    ty_prefetch *p;
    ty_error err = {0};
    c.max_workers = 10;
    assert_ok(ty_prefetch_start(&c, &p, &err), &err);
    assert_int_equal(ty_prefetch_depth(p), 12);
    size_t batch = ty_prefetch_bytes(p) / 12;
    ty_prefetch_stop(p);
    c.memory_bytes = 5 * batch + batch / 2;
    assert_ok(ty_prefetch_start(&c, &p, &err), &err);
    assert_int_equal(ty_prefetch_depth(p), 5);
    assert_true(ty_prefetch_bytes(p) <= c.memory_bytes);
    ty_prefetch_stop(p);
    c.memory_bytes = 2 * batch - 1;
    assert_int_equal(ty_prefetch_start(&c, &p, &err), -1);
    assert_int_equal(err.code, TY_E_LIMIT);
    assert_says(&err, "data_memory");
    ty_dataset_close(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_comes_to_rest_where_the_step_no_longer_waits),
        cmocka_unit_test(an_uneven_rate_makes_the_ring_deeper),
        cmocka_unit_test(what_is_fixed_stays),
        cmocka_unit_test(measurements_are_subtracted),
        cmocka_unit_test(workers_change_and_batches_do_not),
        cmocka_unit_test(the_ring_keeps_to_its_memory),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
