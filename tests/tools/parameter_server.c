/* Parameter servers and workers as processes: tests/dist/server.sh.
 *
 *     parameter_server server LISTEN FIRST SHARDS [folder=F] [resume] [drop=P]
 *         prints "at ADDRESS", serves until all workers have left
 *     parameter_server worker ADDRESSES SHARDS WORKER WORKERS STEPS [save=S] [hold=S] [pause=MS] [drop=P]
 *         pushes whole numbers at rate 1, step after step, prints "step N" each; worker 0 sets first values and saves
 *         after step S; stops itself (SIGSTOP) after the first step S of hold until it is told to go on.
 *         Where a server was started again, all is pushed again: each step counts once.
 *     parameter_server check ADDRESSES SHARDS WORKERS STEPS
 *         holds every sum against what all workers' steps add up to; makes the workers leave
 * ADDRESSES are separated by commas. */
#include "dist/server/client.h"
#include "dist/server/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BIAS, TABLE, HASHED, N_VARIABLES, WIDTH = 4, ROWS = 1000, NAMED = 32 };

typedef struct settings {
    const char *folder;
    int resume, drop, save, hold, pause;
    const char *servers[64];
    int n_servers;
} settings;

static void die(const ty_error *err)
{
    char text[4096];
    ty_error_format(err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static settings parse(char **args, int n, char *addresses)
{
    settings s = {0};
    for (int i = 0; i < n; i++) {
        if (strncmp(args[i], "folder=", 7) == 0)
            s.folder = args[i] + 7;
        else if (strcmp(args[i], "resume") == 0)
            s.resume = 1;
        else if (sscanf(args[i], "drop=%d", &s.drop) + sscanf(args[i], "save=%d", &s.save) +
                     sscanf(args[i], "hold=%d", &s.hold) + sscanf(args[i], "pause=%d", &s.pause) <=
                 0)
            exit(64);
    }
    for (char *a = addresses ? strtok(addresses, ",") : NULL; a && s.n_servers < 64; a = strtok(NULL, ","))
        s.servers[s.n_servers++] = a;
    return s;
}

static int serve(const char *listen, int first, int shards, const settings *s)
{
    ty_server *server;
    ty_error err = {0};
    ty_server_options o = {.transport = {.name = "ucx", .listen = listen, .drop_percent = s->drop, .drop_seed = 5},
                           .first_shard = first,
                           .n_shards = shards,
                           .job = 11,
                           .folder = s->folder,
                           .resume = s->resume,
                           .silence_ms = 0};
    if (ty_server_start(&o, &server, &err) < 0)
        die(&err);
    printf("at %s\n", ty_server_address(server));
    fflush(stdout);
    while (!ty_server_wait(server, 1000))
        ;
    if (ty_server_stop(server, &err) < 0)
        die(&err);
    return 0;
}

static void catalogue_make(ty_catalogue *c, ty_shard_variable v[N_VARIABLES], ty_arena *arena, int shards, int workers)
{
    static const ty_rule sum = {.kind = TY_RULE_SGD, .rate = 1};
    ty_error err = {0};
    ty_partitioner even = {TY_PARTITION_FIXED, 0, shards};
    v[BIAS] = (ty_shard_variable){.name = "bias", .rows = 7, .width = 1, .parts = 1, .rule = sum};
    v[TABLE] =
        (ty_shard_variable){.name = "table", .table = true, .mod = true, .rows = ROWS, .width = WIDTH, .rule = sum};
    v[TABLE].parts = ty_partition_count(&even, ROWS, WIDTH * 4);
    v[HASHED] = (ty_shard_variable){
        .name = "hashed", .table = true, .hashed = true, .mod = true, .width = WIDTH, .parts = shards, .rule = sum};
    *c = (ty_catalogue){.workers = workers, .shards = shards, .variable = v, .n_variables = N_VARIABLES};
    if (ty_catalogue_place(c, arena, &err) < 0)
        die(&err);
}

/* Ids of a step of a worker: some of them twice. */
static void ids_of(int worker, int step, int64_t ids[NAMED])
{
    for (int i = 0; i < NAMED; i++)
        ids[i] = (step * 37 + i * i * 13 + worker * 101) % ROWS;
}

static void push(ty_client *c, int worker, int step)
{
    static const float ones[NAMED * WIDTH] = {0};
    float bias[7], rows[NAMED * WIDTH], hashed[NAMED * WIDTH];
    int64_t ids[NAMED], far[NAMED];
    ty_error err = {0};
    ids_of(worker, step, ids);
    for (int i = 0; i < 7; i++)
        bias[i] = -(float)(worker + 1);
    for (int i = 0; i < NAMED * WIDTH; i++) {
        rows[i] = ones[i] - 1;
        hashed[i] = ones[i] - 2;
    }
    for (int i = 0; i < NAMED; i++)
        far[i] = ids[i] * 1000000007;
    ty_client_dense d = {BIAS, bias, 0, false};
    ty_client_rows r[2] = {{TABLE, ids, NAMED, rows}, {HASHED, far, NAMED, hashed}};
    if (ty_client_push(c, &(ty_client_batch){&d, 1, r, 2}, (uint64_t)step, 1, &err) < 0)
        die(&err);
}

static void pull_all(ty_client *c, float bias[7], float *table, float *hashed)
{
    static int64_t ids[ROWS], far[ROWS];
    ty_client_ticket *t;
    ty_error err = {0};
    for (int64_t i = 0; i < ROWS; i++) {
        ids[i] = i;
        far[i] = i * 1000000007;
    }
    ty_client_dense d = {BIAS, bias, 0, false};
    ty_client_rows r[2] = {{TABLE, ids, ROWS, table}, {HASHED, far, ROWS, hashed}};
    if (ty_client_pull(c, &(ty_client_batch){&d, 1, r, 2}, 0, &t, &err) < 0 || ty_client_take(c, t, &err) < 0)
        die(&err);
}

static ty_client *client_open(const settings *s, const ty_catalogue *c, int worker)
{
    ty_client *client;
    ty_error err = {0};
    ty_client_options o = {.transport = {.name = "ucx", .drop_percent = s->drop, .drop_seed = (uint64_t)worker},
                           .servers = s->servers,
                           .n_servers = s->n_servers,
                           .job = 11,
                           .worker = worker,
                           .catalogue = c,
                           .resend_ms = 20,
                           .patience_ms = 300000};
    if (ty_client_open(&o, &client, &err) < 0)
        die(&err);
    return client;
}

static void first_values(ty_client *client)
{
    static float bias[7], table[ROWS * WIDTH];
    static int64_t ids[ROWS];
    ty_error err = {0};
    for (int64_t i = 0; i < ROWS; i++)
        ids[i] = i;
    ty_client_dense d = {BIAS, bias, 0, false};
    ty_client_rows r = {TABLE, ids, ROWS, table};
    if (ty_client_set(client, &(ty_client_batch){&d, 1, &r, 1}, &err) < 0 || ty_client_start(client, 0, &err) < 0)
        die(&err);
}

static int work(const settings *s, const ty_catalogue *c, int worker, int steps)
{
    ty_client *client = client_open(s, c, worker);
    ty_error err = {0};
    int restarts = 0;
    if (worker == 0 && !ty_client_ready(client))
        first_values(client);
    if (ty_client_wait_ready(client, 300000, &err) < 0)
        die(&err);
    do {
        restarts = ty_client_restarts(client);
        for (int step = 1; step <= steps; step++) {
            static float bias[7], table[ROWS * WIDTH], hashed[ROWS * WIDTH];
            pull_all(client, bias, table, hashed);
            push(client, worker, step);
            if (worker == 0 && step == s->save && ty_client_save(client, "half", &err) < 0)
                die(&err);
            printf("step %d\n", step);
            fflush(stdout);
            if (restarts == 0 && step == s->hold) /* else a slow test would see the step when all is over */
                raise(SIGSTOP);
            if (s->pause) /* the tests need time to kill somebody */
                nanosleep(&(struct timespec){0, s->pause * 1000000L}, NULL);
        }
        if (ty_client_flush(client, &err) < 0)
            die(&err);
    } while (ty_client_restarts(client) != restarts);
    printf("done\n");
    ty_client_close(client, false);
    return 0;
}

static int check(const settings *s, const ty_catalogue *c, int workers, int steps)
{
    static float bias[7], table[ROWS * WIDTH], hashed[ROWS * WIDTH], expected[ROWS];
    ty_client *client = client_open(s, c, 0);
    ty_error err = {0};
    ty_client_stat stat;
    int wrong = 0, weight = 0;
    for (int w = 0; w < workers; w++) {
        weight += (w + 1) * steps;
        for (int step = 1; step <= steps; step++) {
            int64_t ids[NAMED];
            ids_of(w, step, ids);
            for (int i = 0; i < NAMED; i++)
                expected[ids[i]]++;
        }
    }
    pull_all(client, bias, table, hashed);
    for (int i = 0; i < 7; i++)
        wrong += bias[i] != (float)weight;
    for (int i = 0; i < ROWS * WIDTH; i++)
        wrong += (table[i] != expected[i / WIDTH]) + (hashed[i] != 2 * expected[i / WIDTH]);
    if (ty_client_stats(client, &stat, &err) < 0)
        die(&err);
    printf("%d wrong of %d; %ld pushes, %ld repeated, %ld again, staleness mean %.2f, p99 %ld, max %ld\n", wrong,
           7 + 2 * ROWS * WIDTH, (long)stat.pushes, (long)stat.repeated, (long)stat.again, stat.staleness_mean,
           (long)stat.staleness_p99, (long)stat.staleness_max);
    for (int w = 1; w < workers; w++)
        if (ty_client_leave_for(client, w, &err) < 0)
            die(&err);
    ty_client_close(client, true);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    ty_catalogue c;
    ty_shard_variable v[N_VARIABLES];
    ty_arena arena;
    if (argc >= 5 && strcmp(argv[1], "server") == 0) {
        settings s = parse(argv + 5, argc - 5, NULL);
        return serve(argv[2], atoi(argv[3]), atoi(argv[4]), &s);
    }
    if (argc < 6)
        return 64;
    ty_arena_init(&arena);
    bool worker = strcmp(argv[1], "worker") == 0;
    settings s = parse(argv + (worker ? 7 : 6), argc - (worker ? 7 : 6), argv[2]);
    catalogue_make(&c, v, &arena, atoi(argv[3]), atoi(argv[worker ? 5 : 4]));
    int rc = worker ? work(&s, &c, atoi(argv[4]), atoi(argv[6])) : check(&s, &c, atoi(argv[4]), atoi(argv[5]));
    ty_arena_fini(&arena);
    return rc;
}
