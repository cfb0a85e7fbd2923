/* server_train.c - the parameter server and its clients, each at its own pace: what is lost or comes twice counts once,
 * saves, bounded staleness, refusals. dist/server/server.h, client.h; server_sync.c has the steps that are made
 * together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/unit/server_case.h"

/* What `times[step]` pushes of each step must add up to; weight: sum of worker + 1 over all pushes. */
static void expect_sums(const values *v, const int *times, int steps, int pushes, int weight)
{
    float table[ROWS] = {0}, hashed[ROWS] = {0};
    for (int s = 1; s <= steps; s++) {
        table[s % ROWS] += 2 * (float)times[s];
        table[(s + 1) % ROWS] += (float)times[s];
        hashed[s % ROWS] += 3 * (float)times[s];
        hashed[(s + 7) % ROWS] += 3 * (float)times[s];
    }
    for (int i = 0; i < 5; i++)
        assert_true(v->bias[i] == (float)pushes);
    for (int i = 0; i < DENSE * WIDTH; i++)
        assert_true(v->kernel[i] == (float)weight);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < WIDTH; k++) {
            assert_true(v->table[i * WIDTH + k] == table[v->ids[i]]);
            assert_true(v->hashed[i * WIDTH + k] == hashed[i]);
        }
}

/* 1 to 3 servers, 1 to 3 workers, messages lost both ways. */
static void exact_sums(void **state)
{
    (void)state;
    static const struct {
        int servers, shards, workers, drop;
    } cases[] = {{1, 1, 1, 0}, {1, 2, 3, 10}, {2, 2, 2, 10}, {3, 3, 3, 10}, {3, 6, 1, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum { STEPS = 20 };
        net n;
        job jobs[MAX];
        values v;
        int times[STEPS + 1], weight = 0;
        net_begin(&n, cases[i].servers, cases[i].shards, cases[i].workers, TY_SERVER_ASYNC, cases[i].drop, NULL);
        run_workers(&n, cases[i].workers, STEPS, jobs);
        for (int s = 0; s <= STEPS; s++)
            times[s] = cases[i].workers;
        for (int w = 0; w < cases[i].workers; w++)
            weight += (w + 1) * STEPS;
        ty_client *c = net_client(&n, 0, 2);
        values_init(&v);
        pull(c, &v, 0);
        expect_sums(&v, times, STEPS, STEPS * cases[i].workers, weight);
        ty_client_close(c, true);
        if (cases[i].drop)
            assert_true(jobs[0].stat.repeated + jobs[0].stat.early > 0);
        net_end(&n);
    }
}

/* Whether all of `steps` pushes of worker 0 have come to every server: a part of a push may be lost at one alone. */
static bool all_came(const values *v, int steps)
{
    float rows = 0, hashed = 0;
    bool all = true;
    for (int i = 0; i < 5; i++)
        all &= v->bias[i] == (float)steps;
    for (int i = 0; i < DENSE * WIDTH; i++)
        all &= v->kernel[i] == (float)steps;
    for (int i = 0; i < ROWS; i++) {
        rows += v->table[i * WIDTH];
        hashed += v->hashed[i * WIDTH];
    }
    return all && rows == 3 * (float)steps && hashed == 6 * (float)steps;
}

/* A worker that disappears with questions open, and is started again from an earlier step: each step counts once, and
 * what its predecessor might still send is refused. */
static void worker_again(void **state)
{
    (void)state;
    enum { STEPS = 30 };
    net n;
    values v;
    int times[STEPS + 1];
    ty_error err = {0};
    net_begin(&n, 2, 2, 1, TY_SERVER_ASYNC, 10, NULL);
    ty_client *first = net_client(&n, 0, 1);
    begin_zero(first);
    for (int s = 1; s <= 20; s++)
        push_one(first, 0, s);
    ty_client *second = net_client(&n, 0, 2);
    assert_true(ty_client_ready(second));
    int rc = 0;
    for (int s = 11; s <= STEPS; s++)
        push_one(second, 0, s);
    check(ty_client_flush(second, &err), &err);
    rc = ty_client_push(first, &(ty_client_batch){0}, 21, 1, &err);
    if (rc == 0)
        rc = ty_client_flush(first, &err);
    values_init(&v);
    pull(second, &v, 0);
    /* Those of 1 to 10 that the first had not sent to a server when it was replaced are lost with it there; all others
     * count once. */
    for (int i = 0; i < 5; i++)
        assert_in_range((int)v.bias[i], STEPS - 10, STEPS);
    for (int i = 0; i < DENSE * WIDTH; i++)
        assert_in_range((int)v.kernel[i], STEPS - 10, STEPS);
    if (all_came(&v, STEPS)) {
        for (int s = 0; s <= STEPS; s++)
            times[s] = 1;
        expect_sums(&v, times, STEPS, STEPS, STEPS);
    }
    ty_client_close(first, false);
    ty_client_close(second, true);
    assert_true(ty_server_wait(n.server[0], 5000));
    net_end(&n);
}

/* Saved with 3 shards, loaded with 2 and with 1, with other parts and placement; a server that is started again goes on
 * from the save, and the pushes that are sent again for it count once. */
static void saves(void **state)
{
    (void)state;
    enum { STEPS = 12 };
    char folder[] = "/tmp/ty-server-XXXXXX";
    assert_non_null(mkdtemp(folder));
    net n;
    job jobs[MAX];
    values v;
    ty_error err = {0};
    int times[STEPS + 1];
    for (int s = 0; s <= STEPS; s++)
        times[s] = 1;
    net_begin(&n, 3, 3, 1, TY_SERVER_ASYNC, 0, folder);
    run_workers(&n, 1, STEPS - 4, jobs);
    ty_client *c = net_client(&n, 0, 2);
    assert_int_equal(ty_client_save(c, "../out", &err), -1);
    check(ty_client_save(c, "step-8", &err), &err);
    for (int s = STEPS - 3; s <= STEPS; s++)
        push_one(c, 0, s);
    check(ty_client_flush(c, &err), &err);
    assert_int_equal(ty_server_stop(n.server[1], &err), 0);
    net_server(&n, 1, true);
    for (int s = STEPS - 5; s <= STEPS; s++)
        push_one(c, 0, s);
    check(ty_client_flush(c, &err), &err);
    values_init(&v);
    pull(c, &v, 0);
    expect_sums(&v, times, STEPS, STEPS, STEPS);
    assert_int_equal(ty_client_restarts(c), 1);
    check(ty_client_save(c, "step-12", &err), &err);
    ty_client_close(c, true);
    net_end(&n);
    for (int shards = 1; shards <= 2; shards++) {
        net m;
        net_begin(&m, shards, shards, 2, TY_SERVER_ASYNC, 0, folder);
        m.catalogue.variable[KERNEL].mod = shards == 1;
        m.catalogue.variable[TABLE].mod = shards == 2;
        m.catalogue.variable[TABLE].parts = 7;
        check(ty_catalogue_place(&m.catalogue, &m.arena, &err), &err);
        c = net_client(&m, 1, 1);
        assert_false(ty_client_ready(c));
        check(ty_client_load(c, shards == 1 ? "step-12" : "step-8", &err), &err);
        values_init(&v);
        pull(c, &v, 0);
        int steps = shards == 1 ? STEPS : STEPS - 4;
        expect_sums(&v, times, steps, steps, steps);
        assert_int_equal(ty_client_load(c, "absent", &err), -1);
        ty_client_close(c, true);
        net_end(&m);
    }
    check(ty_file_remove_tree(folder, &err), &err);
}

typedef struct runner {
    ty_client *client;
    pthread_mutex_t lock;
    int done;
} runner;

static void *run_ahead(void *arg)
{
    runner *r = arg;
    ty_error err = {0};
    for (int s = 1; s <= 6; s++) {
        check(ty_client_clock(r->client, (uint64_t)s, &err), &err);
        pthread_mutex_lock(&r->lock);
        r->done = s;
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

static int runner_done(runner *r)
{
    pthread_mutex_lock(&r->lock);
    int done = r->done;
    pthread_mutex_unlock(&r->lock);
    return done;
}

/* With staleness 2 a worker gets to step 2 while the other stands at 0, and one further for each of its steps. */
static void bounded(void **state)
{
    (void)state;
    net n;
    ty_error err = {0};
    net_begin(&n, 1, 1, 2, TY_SERVER_BOUNDED, 10, NULL);
    n.catalogue.staleness = 2;
    ty_client *slow = net_client(&n, 1, 1);
    runner r = {.client = net_client(&n, 0, 1), .lock = PTHREAD_MUTEX_INITIALIZER};
    begin_zero(slow);
    pthread_t thread;
    pthread_create(&thread, NULL, run_ahead, &r);
    for (int s = 1; s <= 4; s++) {
        assert_true(runner_done(&r) <= s + 1);
        check(ty_client_clock(slow, (uint64_t)s, &err), &err);
    }
    pthread_join(thread, NULL);
    assert_int_equal(r.done, 6);
    ty_client_close(r.client, true);
    ty_client_close(slow, true);
    net_end(&n);
}

/* What was computed from an old pull is counted as old. */
static void staleness(void **state)
{
    (void)state;
    net n;
    values v;
    ty_error err = {0};
    ty_client_stat stat;
    net_begin(&n, 1, 1, 2, TY_SERVER_ASYNC, 0, NULL);
    ty_client *a = net_client(&n, 0, 1), *b = net_client(&n, 1, 1);
    begin_zero(a);
    values_init(&v);
    pull(b, &v, 0);
    for (int s = 1; s <= 9; s++) {
        pull(a, &v, 0);
        push_one(a, 0, s);
    }
    check(ty_client_flush(a, &err), &err);
    push_one(b, 1, 1);
    check(ty_client_flush(b, &err), &err);
    check(ty_client_stats(b, &stat, &err), &err);
    assert_int_equal(stat.staleness_max, 9);
    assert_int_equal(stat.staleness_p99, 9);
    assert_true(stat.staleness_mean > 0.89 && stat.staleness_mean < 0.91);
    ty_client_close(a, true);
    ty_client_close(b, true);
    net_end(&n);
}

/* Refusals have words, and change nothing. */
static void refusals(void **state)
{
    (void)state;
    net n;
    values v;
    ty_error err = {0};
    net_begin(&n, 1, 1, 1, TY_SERVER_ASYNC, 0, NULL);
    ty_client *c = net_client(&n, 0, 1);
    values_init(&v);
    push_one(c, 0, 1);
    assert_int_equal(ty_client_flush(c, &err), -1);
    assert_non_null(strstr(err.message, "nobody has set"));
    begin_zero(c);
    int64_t wrong = ROWS;
    float row[WIDTH] = {0};
    ty_client_rows r = {TABLE, &wrong, 1, row};
    assert_int_equal(ty_client_push(c, &(ty_client_batch){.rows = &r, .n_rows = 1}, 2, 1, &err), -1);
    assert_non_null(strstr(err.message, "id 50 is not one"));
    assert_int_equal(ty_client_save(c, "tag", &err), -1);
    assert_non_null(strstr(err.message, "no folder"));
    pull(c, &v, 0);
    assert_true(v.bias[0] == 0);
    ty_catalogue other = n.catalogue;
    ty_shard_variable changed[N_VARIABLES];
    memcpy(changed, other.variable, sizeof changed);
    changed[BIAS].rows = 6;
    other.variable = changed;
    check(ty_catalogue_place(&other, &n.arena, &err), &err);
    ty_client *second;
    ty_client_options o = {
        .transport = {.name = "local"}, .servers = n.names, .n_servers = 1, .job = 7, .key = key, .catalogue = &other};
    assert_int_equal(ty_client_open(&o, &second, &err), -1);
    assert_non_null(strstr(err.message, "\"bias\": expected 5 rows of 1, found 6 rows of 1"));
    o.catalogue = &n.catalogue;
    o.job = 8;
    o.resend_ms = 5;
    o.patience_ms = 100;
    assert_int_equal(ty_client_open(&o, &second, &err), -1);
    assert_non_null(strstr(err.message, "has not answered"));
    ty_client_close(c, true);
    net_end(&n);
}

/* What a checkpoint has: the rule's memory and how many pushes it is of; and waiting for others to leave. */
static void goes_on(void **state)
{
    (void)state;
    net n;
    ty_error err = {0};
    ty_client_ticket *t;
    float weight[5] = {0}, memory[5] = {1, 2, 3, 4, 5}, gradient[5] = {1, 1, 1, 1, 1}, seen[5];
    net_begin(&n, 2, 2, 2, TY_SERVER_ASYNC, 0, NULL);
    n.catalogue.variable[BIAS].rule = (ty_rule){.kind = TY_RULE_SGD, .rate = 1, .momentum = 0.5};
    ty_client *c = net_client(&n, 0, 5), *other = net_client(&n, 1, 5);
    ty_client_dense parts[] = {{BIAS, weight, 0, false}, {BIAS, memory, 1, false}};
    ty_client_dense pushed = {BIAS, gradient, 0, false}, wrong = {BIAS, gradient, 2, false},
                    slot = {BIAS, seen, 1, false};
    check(ty_client_set(c, &(ty_client_batch){.dense = parts, .n_dense = 2}, &err), &err);
    check(ty_client_start(c, 40, &err), &err);
    check(ty_client_push(c, &(ty_client_batch){.dense = &pushed, .n_dense = 1}, 1, 1, &err), &err);
    check(ty_client_flush(c, &err), &err);
    check(ty_client_pull(c, &(ty_client_batch){.dense = &slot, .n_dense = 1}, 0, &t, &err), &err);
    check(ty_client_take(c, t, &err), &err);
    for (int i = 0; i < 5; i++)
        assert_true(seen[i] == 0.5F * memory[i] + 1);
    assert_int_equal(ty_client_version(c, true), 41);
    check(ty_client_push(c, &(ty_client_batch){.dense = &wrong, .n_dense = 1}, 2, 1, &err), &err);
    assert_int_equal(ty_client_flush(c, &err), -1);
    assert_non_null(strstr(err.message, "slot"));
    assert_int_equal(ty_client_alone(c, false, 50, &err), -1);
    check(ty_client_leave(other, 60000, &err), &err);
    check(ty_client_alone(c, false, 0, &err), &err);
    check(ty_client_alone(c, true, 60000, &err), &err);
    ty_client_close(other, false);
    ty_client_close(c, true);
    net_end(&n);
}

static bool told_to_stop;

static bool is_told_to_stop(void)
{
    return told_to_stop;
}

/* Who gives up waiting for others goes on: what it pushes then is in, and a flush does not wait for them either. */
static void gives_up(void **state)
{
    (void)state;
    net n;
    values v;
    ty_error err = {0};
    net_begin(&n, 2, 2, 2, TY_SERVER_ASYNC, 10, NULL);
    n.stopping = is_told_to_stop;
    ty_client *c = net_client(&n, 0, 1);
    begin_zero(c);
    told_to_stop = true;
    push_one(c, 0, 1);
    assert_int_equal(ty_client_alone(c, false, 0, &err), -1);
    assert_int_equal(err.code, TY_E_STOPPED);
    check(ty_client_flush(c, &err), &err);
    push_one(c, 0, 2);
    assert_int_equal(ty_client_alone(c, false, 20, &err), -1);
    assert_int_equal(err.code, TY_E_IO);
    check(ty_client_flush(c, &err), &err);
    values_init(&v);
    pull(c, &v, 0);
    assert_true(v.bias[0] == 2);
    check(ty_client_alone(c, true, 120000, &err), &err); /* nobody else came */
    check(ty_client_leave(c, 120000, &err), &err);
    ty_client_close(c, false);
    net_end(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_sums), cmocka_unit_test(worker_again), cmocka_unit_test(saves),
        cmocka_unit_test(bounded),    cmocka_unit_test(staleness),    cmocka_unit_test(refusals),
        cmocka_unit_test(goes_on),    cmocka_unit_test(gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
