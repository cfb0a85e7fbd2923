/* server_case.h - parameter servers and their clients in one process, and a training whose sums are known: gradients
 * are whole numbers and the rate is 1, so that a push that is lost or counted twice shows in the last digit.
 *
 *     net n;
 *     net_begin(&n, 2, 2, 3, TY_SERVER_ASYNC, 10, NULL);   2 servers, 2 shards, 3 workers, every tenth message lost
 *     run_workers(&n, 3, 20, jobs);                        20 steps of each, on threads
 *     ty_client *c = net_client(&n, 0, 2);                 worker 0 again, as incarnation 2
 *     net_end(&n);
 *
 * Include after cmocka.h.
 */
#ifndef TY_TESTS_UNIT_SERVER_CASE_H
#define TY_TESTS_UNIT_SERVER_CASE_H

#include "dist/server/client.h"
#include "dist/server/seal.h"
#include "dist/server/server.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { BIAS, KERNEL, TABLE, HASHED, N_VARIABLES, WIDTH = 3, ROWS = 50, DENSE = 17, MAX = 4 };

/* A bias in one part, a kernel in parts by div, a table in parts by mod, a hashed table. */
static inline void catalogue_make(ty_catalogue *c, ty_arena *arena, int shards, int workers, ty_server_mode mode)
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

static inline void net_server(net *n, int i, bool resume)
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

static inline void net_begin(net *n, int servers, int shards, int workers, ty_server_mode mode, int drop,
                             const char *folder)
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

static inline void net_end(net *n)
{
    ty_error err = {0};
    for (int i = 0; i < n->n_servers; i++)
        assert_int_equal(ty_server_stop(n->server[i], &err), 0);
    ty_arena_fini(&n->arena);
}

static inline ty_client *net_client(net *n, int worker, uint64_t incarnation)
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

static inline void values_init(values *v)
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

static inline void pull(ty_client *c, values *v, uint64_t step)
{
    ty_client_ticket *t;
    ty_error err = {0};
    if (ty_client_pull(c, &v->all, step, &t, &err) < 0 || ty_client_take(c, t, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void check(int rc, const ty_error *err)
{
    if (rc < 0)
        fail_msg("%s", err->message);
}

/* The chief's part: all values 0. */
static inline void begin_zero(ty_client *c)
{
    values v;
    ty_error err = {0};
    values_init(&v);
    ty_client_batch set = {v.dense, 2, v.rows, 1};
    check(ty_client_set(c, &set, &err), &err);
    check(ty_client_start(c, 0, &err), &err);
}

/* A push of one step of a worker: -1 everywhere dense, -1 and -2 on some rows, twice on one. */
static inline void push_one(ty_client *c, int worker, int step)
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

typedef struct job {
    net *n;
    int worker, first, steps;
    ty_client_stat stat;
} job;

static inline void *work(void *arg)
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

static inline void run_workers(net *n, int workers, int steps, job *jobs)
{
    pthread_t thread[MAX];
    for (int w = 0; w < workers; w++) {
        jobs[w] = (job){.n = n, .worker = w, .steps = steps};
        assert_int_equal(pthread_create(&thread[w], NULL, work, &jobs[w]), 0);
    }
    for (int w = 0; w < workers; w++)
        pthread_join(thread[w], NULL);
}

#endif
