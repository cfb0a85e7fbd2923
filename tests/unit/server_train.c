/* The parameter server and its clients as threads: dist/server/server.h, client.h. Gradients are whole numbers and the
 * rate is 1, so that sums are exact and a push that is lost or counted twice shows in the last digit. */
#include "base/file.h"
#include "dist/server/client.h"
#include "dist/server/seal.h"
#include "dist/server/server.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { BIAS, KERNEL, TABLE, HASHED, N_VARIABLES, WIDTH = 3, ROWS = 50, DENSE = 17, MAX = 4 };

/* A bias in one part, a kernel in parts by div, a table in parts by mod, a hashed table. */
static void catalogue_make(ty_catalogue *c, ty_arena *arena, int shards, int workers, ty_server_mode mode)
{
    static const ty_rule sum = {.kind = TY_RULE_SGD, .rate = 1};
    ty_error err = {0};
    *c = (ty_catalogue){.mode = mode, .workers = workers, .shards = shards, .n_variables = N_VARIABLES};
    c->variable = TY_NEW_ARRAY(arena, ty_shard_variable, N_VARIABLES);
    c->variable[BIAS] = (ty_shard_variable){.name = "bias", .rows = 5, .width = 1, .parts = 1, .rule = sum};
    c->variable[KERNEL] = (ty_shard_variable){.name = "kernel", .rows = DENSE, .width = WIDTH, .parts = 3, .rule = sum};
    c->variable[TABLE] = (ty_shard_variable){
        .name = "table", .table = true, .mod = true, .rows = ROWS, .width = WIDTH, .parts = 4, .rule = sum};
    c->variable[HASHED] = (ty_shard_variable){
        .name = "hashed", .table = true, .hashed = true, .mod = true, .width = WIDTH, .parts = 2, .rule = sum};
    if (ty_catalogue_place(c, arena, &err) < 0)
        fail_msg("%s", err.message);
}

typedef struct net { /* servers and what they have in common */
    ty_arena arena;
    ty_catalogue catalogue;
    int n_servers, drop;
    char name[MAX][64];
    const char *names[MAX];
    ty_server *server[MAX];
    const char *folder;
    bool (*stopping)(void);
} net;

static int64_t nets;
static const uint8_t key[TY_SEAL_KEY_BYTES] = "what all of a job have in common";

static void net_server(net *n, int i, bool resume)
{
    ty_error err = {0};
    int each = n->catalogue.shards / n->n_servers;
    ty_server_options o = {
        .transport = {.name = "local", .listen = n->name[i], .drop_percent = n->drop, .drop_seed = (uint64_t)i + 100},
        .first_shard = i * each,
        .n_shards = each,
        .job = 7,
        .key = key,
        .folder = n->folder,
        .resume = resume};
    if (ty_server_start(&o, &n->server[i], &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(ty_server_address(n->server[i]), n->name[i]);
}

static void net_begin(net *n, int servers, int shards, int workers, ty_server_mode mode, int drop, const char *folder)
{
    *n = (net){.n_servers = servers, .drop = drop, .folder = folder};
    ty_arena_init(&n->arena);
    catalogue_make(&n->catalogue, &n->arena, shards, workers, mode);
    nets++;
    for (int i = 0; i < servers; i++) {
        snprintf(n->name[i], sizeof n->name[i], "net%d-%d", (int)nets, i);
        n->names[i] = n->name[i];
        net_server(n, i, false);
    }
}

static void net_end(net *n)
{
    ty_error err = {0};
    for (int i = 0; i < n->n_servers; i++)
        assert_int_equal(ty_server_stop(n->server[i], &err), 0);
    ty_arena_fini(&n->arena);
}

static ty_client *net_client(net *n, int worker, uint64_t incarnation)
{
    ty_client *c;
    ty_error err = {0};
    ty_client_options o = {.transport = {.name = "local", .drop_percent = n->drop, .drop_seed = (uint64_t)worker + 1},
                           .servers = n->names,
                           .n_servers = n->n_servers,
                           .job = 7,
                           .key = key,
                           .worker = worker,
                           .incarnation = incarnation,
                           .catalogue = &n->catalogue,
                           .resend_ms = 5,
                           .stopping = n->stopping,
                           .patience_ms = 120000};
    if (ty_client_open(&o, &c, &err) < 0)
        fail_msg("%s", err.message);
    return c;
}

typedef struct values {
    float bias[5], kernel[DENSE * WIDTH], table[ROWS * WIDTH], hashed[ROWS * WIDTH];
    int64_t ids[ROWS], far[ROWS];
    ty_client_dense dense[2];
    ty_client_rows rows[2];
    ty_client_batch all;
} values;

static void values_init(values *v)
{
    *v = (values){0};
    for (int i = 0; i < ROWS; i++) {
        v->ids[i] = ROWS - 1 - i;
        v->far[i] = (int64_t)i * 1000003 - 25;
    }
    v->dense[0] = (ty_client_dense){BIAS, v->bias, 0, false};
    v->dense[1] = (ty_client_dense){KERNEL, v->kernel, 0, false};
    v->rows[0] = (ty_client_rows){TABLE, v->ids, ROWS, v->table};
    v->rows[1] = (ty_client_rows){HASHED, v->far, ROWS, v->hashed};
    v->all = (ty_client_batch){v->dense, 2, v->rows, 2};
}

static void pull(ty_client *c, values *v, uint64_t step)
{
    ty_client_ticket *t;
    ty_error err = {0};
    if (ty_client_pull(c, &v->all, step, &t, &err) < 0 || ty_client_take(c, t, &err) < 0)
        fail_msg("%s", err.message);
}

static void check(int rc, const ty_error *err)
{
    if (rc < 0)
        fail_msg("%s", err->message);
}

/* The chief's part: all values 0. */
static void begin_zero(ty_client *c)
{
    values v;
    ty_error err = {0};
    values_init(&v);
    ty_client_batch set = {v.dense, 2, v.rows, 1};
    check(ty_client_set(c, &set, &err), &err);
    check(ty_client_start(c, 0, &err), &err);
}

/* A push of one step of a worker: -1 everywhere dense, -1 and -2 on some rows, twice on one. */
static void push_one(ty_client *c, int worker, int step)
{
    values v;
    ty_error err = {0};
    values_init(&v);
    for (int i = 0; i < 5; i++)
        v.bias[i] = -1;
    for (int i = 0; i < DENSE * WIDTH; i++)
        v.kernel[i] = -(float)(worker + 1);
    int64_t ids[3] = {step % ROWS, (step + 1) % ROWS, step % ROWS};
    int64_t far[2] = {v.far[step % ROWS], v.far[(step + 7) % ROWS]};
    float rows[3 * WIDTH], hashed[2 * WIDTH];
    for (int i = 0; i < 3 * WIDTH; i++)
        rows[i] = -1;
    for (int i = 0; i < 2 * WIDTH; i++)
        hashed[i] = -3;
    ty_client_rows r[2] = {{TABLE, ids, 3, rows}, {HASHED, far, 2, hashed}};
    check(ty_client_push(c, &(ty_client_batch){v.dense, 2, r, 2}, (uint64_t)step, 1, &err), &err);
}

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

typedef struct job {
    net *n;
    int worker, first, steps;
    ty_client_stat stat;
} job;

static void *work(void *arg)
{
    job *j = arg;
    ty_error err = {0};
    values v;
    ty_client *c = net_client(j->n, j->worker, 1);
    if (j->worker == 0)
        begin_zero(c);
    else
        check(ty_client_wait_ready(c, 20000, &err), &err);
    values_init(&v);
    for (int s = 1; s <= j->steps; s++) {
        pull(c, &v, (uint64_t)s - 1);
        push_one(c, j->worker, s);
        check(ty_client_clock(c, (uint64_t)s, &err), &err);
    }
    check(ty_client_flush(c, &err), &err);
    check(ty_client_stats(c, &j->stat, &err), &err);
    ty_client_close(c, false);
    return NULL;
}

static void run_workers(net *n, int workers, int steps, job *jobs)
{
    pthread_t thread[MAX];
    for (int w = 0; w < workers; w++) {
        jobs[w] = (job){.n = n, .worker = w, .steps = steps};
        assert_int_equal(pthread_create(&thread[w], NULL, work, &jobs[w]), 0);
    }
    for (int w = 0; w < workers; w++)
        pthread_join(thread[w], NULL);
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
    /* Those of 1 to 10 that the first had not sent when it was replaced are lost with it; all others count once. */
    int pushes = (int)v.bias[0];
    assert_true(pushes >= 20 && pushes <= STEPS);
    if (pushes == STEPS) {
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
        cmocka_unit_test(exact_sums),  cmocka_unit_test(worker_again), cmocka_unit_test(saves),
        cmocka_unit_test(sync_backup), cmocka_unit_test(sync_all),     cmocka_unit_test(bounded),
        cmocka_unit_test(sync_leaves), cmocka_unit_test(staleness),    cmocka_unit_test(refusals),
        cmocka_unit_test(goes_on),     cmocka_unit_test(gives_up),     cmocka_unit_test(sync_rows),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
