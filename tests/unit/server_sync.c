/* server_sync.c - steps that workers make together: the mean of a step, whom it waits for, and the words by which all
 * agree on something. dist/server/server.h, client.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/server_case.h"

/* A step of sync mode is the mean of the first two of three; the third comes too late for each step or takes the place
 * of another, and in the end every shard has seen each step once. */
static void sync_backup(void **state)
{
    (void)state;
    enum { STEPS = 25 };
    net n;
    job jobs[MAX];
    net_begin(&n, 2, 2, 3, TY_SERVER_SYNC, 0, NULL);
    n.catalogue.backup = 1;
    run_workers(&n, 3, STEPS, jobs);
    values v;
    values_init(&v);
    ty_client *c = net_client(&n, 0, 2);
    ty_client_stat stat;
    ty_error err = {0};
    pull(c, &v, 0);
    check(ty_client_stats(c, &stat, &err), &err);
    assert_int_equal(stat.version, STEPS);
    assert_int_equal(stat.pushes, 2 * STEPS * 2);
    assert_int_equal(stat.late, STEPS * 2);
    for (int i = 0; i < 5; i++)
        assert_true(v.bias[i] == STEPS); /* the mean of -1 and -1, each step */
    ty_client_close(c, true);
    net_end(&n);
}

/* Without backup the mean of all; a worker that left is waited for no more. */
static void sync_all(void **state)
{
    (void)state;
    enum { STEPS = 10 };
    net n;
    job jobs[MAX];
    values v;
    ty_error err = {0};
    net_begin(&n, 1, 2, 2, TY_SERVER_SYNC, 10, NULL);
    run_workers(&n, 2, STEPS, jobs);
    ty_client *c = net_client(&n, 1, 2);
    values_init(&v);
    pull(c, &v, STEPS);
    for (int i = 0; i < DENSE * WIDTH; i++)
        assert_true(v.kernel[i] == 1.5f * STEPS);
    ty_client *narrow = net_client(&n, 0, 2);
    ty_client_ticket *t;
    check(ty_client_pull(narrow, &(ty_client_batch){.dense = v.dense, .n_dense = 1}, STEPS, &t, &err), &err);
    check(ty_client_take(narrow, t, &err), &err);
    assert_int_equal(ty_client_version(narrow, false), STEPS); /* also of the shard that has nothing of it */
    ty_client_close(narrow, false);
    check(ty_client_leave_for(c, 0, &err), &err);
    push_one(c, 1, STEPS + 1);
    pull(c, &v, STEPS + 1);
    assert_true(v.bias[0] == STEPS + 1);
    ty_client_close(c, true);
    assert_true(ty_server_wait(n.server[0], 5000));
    net_end(&n);
}

/* Who leaves right after its last push is in that step's mean, and the others are waited for all the same. */
static void sync_leaves(void **state)
{
    (void)state;
    net n;
    ty_client *c[3];
    ty_client_stat stat;
    ty_error err = {0};
    values v;
    net_begin(&n, 1, 1, 3, TY_SERVER_SYNC, 0, NULL);
    for (int w = 0; w < 3; w++)
        c[w] = net_client(&n, w, 2);
    begin_zero(c[0]);
    for (int w = 0; w < 2; w++) {
        push_one(c[w], w, 1);
        check(ty_client_flush(c[w], &err), &err);
        check(ty_client_leave(c[w], 60000, &err), &err);
    }
    check(ty_client_stats(c[2], &stat, &err), &err);
    assert_int_equal(stat.version, 0);
    push_one(c[2], 2, 1);
    values_init(&v);
    pull(c[2], &v, 1);
    for (int i = 0; i < DENSE * WIDTH; i++)
        assert_true(v.kernel[i] == 2);
    check(ty_client_stats(c[2], &stat, &err), &err);
    assert_true(stat.version == 1 && stat.pushes == 3 && stat.late == 0);
    for (int w = 0; w < 3; w++)
        ty_client_close(c[w], w == 2);
    net_end(&n);
}

/* The mean of a step is over the rows of all: 8 of the first worker, 4 of the second, none of the third, whose values
 * are no numbers. */
static void sync_rows(void **state)
{
    (void)state;
    static const uint32_t rows[3] = {8, 4, 0};
    net n;
    ty_client *c[3];
    ty_error err = {0};
    values v;
    net_begin(&n, 1, 1, 3, TY_SERVER_SYNC, 10, NULL);
    for (int w = 0; w < 3; w++)
        c[w] = net_client(&n, w, 2);
    begin_zero(c[0]);
    for (int step = 1; step <= 4; step++) {
        for (int i = 0; i < 3; i++) {
            int w = (i + step) % 3; /* whoever comes first */
            int64_t ids[1] = {5};
            float row[WIDTH];
            values_init(&v);
            for (int k = 0; k < DENSE * WIDTH; k++)
                v.kernel[k] = rows[w] ? -(float)(w + 1) : NAN;
            for (int k = 0; k < WIDTH; k++)
                row[k] = v.kernel[0];
            ty_client_rows r = {TABLE, ids, 1, row};
            ty_client_batch all = {&v.dense[1], 1, &r, 1};
            check(ty_client_push_rows(c[w], &all, rows[w], (uint64_t)step, 1, &err), &err);
        }
        values_init(&v);
        pull(c[0], &v, (uint64_t)step);
    }
    for (int k = 0; k < DENSE * WIDTH; k++)
        assert_true(fabsf(v.kernel[k] - 4 * 16.0f / 12) < 1e-5f);
    for (int i = 0; i < ROWS; i++)
        assert_true(fabsf(v.table[i * WIDTH] - (v.ids[i] == 5 ? 4 * 16.0f / 12 : 0)) < 1e-5f);
    for (int w = 0; w < 3; w++)
        ty_client_close(c[w], true);
    net_end(&n);
}

static uint32_t word_of(int worker, int question)
{
    return (uint32_t)(question * 7 + worker * 5) % 11;
}

/* Worker 2 says half as many words as the others, and leaves. */
static void *ask_words(void *arg)
{
    job *j = arg;
    ty_error err = {0};
    ty_client *c = net_client(j->n, j->worker, 1);
    if (j->worker == 0)
        begin_zero(c);
    else
        check(ty_client_wait_ready(c, 20000, &err), &err);
    int last = j->worker == 2 ? j->steps / 2 : j->steps;
    for (int q = 1; q <= last; q++) {
        uint32_t least, most, low = UINT32_MAX, high = 0;
        check(ty_client_agree(c, (uint64_t)q, word_of(j->worker, q), &least, &most, &err), &err);
        for (int w = 0; w < (q <= j->steps / 2 ? 3 : 2); w++) {
            low = word_of(w, q) < low ? word_of(w, q) : low;
            high = word_of(w, q) > high ? word_of(w, q) : high;
        }
        if (least != low || most != high)
            return "other words";
    }
    ty_client_close(c, true);
    return NULL;
}

/* All hear the same words on each question, also of one that leaves right after its last; messages are lost. */
static void words(void **state)
{
    (void)state;
    net n;
    job jobs[3];
    pthread_t thread[3];
    net_begin(&n, 1, 2, 3, TY_SERVER_SYNC, 10, NULL);
    for (int w = 0; w < 3; w++) {
        jobs[w] = (job){.n = &n, .worker = w, .steps = 40};
        assert_int_equal(pthread_create(&thread[w], NULL, ask_words, &jobs[w]), 0);
    }
    for (int w = 0; w < 3; w++) {
        void *wrong;
        pthread_join(thread[w], &wrong);
        assert_null(wrong);
    }
    net_end(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sync_backup), cmocka_unit_test(sync_all), cmocka_unit_test(sync_leaves),
        cmocka_unit_test(sync_rows),   cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
