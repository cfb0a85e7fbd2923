/* rank_served.c - see rank_served.h. */
#include "entrypoint/rank_served.h"

#include "base/hash.h"
#include "base/log.h"
#include "dist/agent/ranks_environment.h"
#include "dist/server/server.h"
#include "entrypoint/doing.h"
#include "entrypoint/launch.h"
#include "entrypoint/served.h"
#include "entrypoint/stop.h"

#include <stdlib.h>
#include <string.h>

enum { RANK_TURN_MS = 200 };

/* What all ranks of the job work out alike, and which of them this is. */
typedef struct rank_place {
    const char **server; /* [n_servers] "10.0.1.7:2223" */
    int server_number;   /* -1: a worker */
    int worker, local, locals;
    uint8_t key[TY_SEAL_KEY_BYTES];
} rank_place;

/* ---- where ---- */

static int rank_addresses(const ty_cluster *c, int64_t port, ty_arena *a, const char ***out, ty_error *err)
{
    const char *text = getenv(TY_RANK_ADDRESSES_VARIABLE);
    const char **host = TY_NEW_ARRAY(a, const char *, c->n_hosts), **server = TY_NEW_ARRAY(a, const char *, c->n_hosts);
    char *rest = ty_arena_strdup(a, text ? text : "");
    for (int i = 0; i < c->n_hosts; i++) {
        int same = 0;
        host[i] = strsep(&rest, ",");
        if (host[i] == NULL || host[i][0] == '\0')
            return ty_error_set(err, TY_E_INTERNAL,
                                TY_RANK_ADDRESSES_VARIABLE ": expected %d addresses, found \"%.200s\"", c->n_hosts,
                                text ? text : "");
        for (int k = 0; k < i; k++)
            same += strcmp(host[k], host[i]) == 0;
        server[i] = ty_arena_printf(a, strchr(host[i], ':') ? "[%s]:%d" : "%s:%d", host[i], (int)port + same);
    }
    *out = server;
    return 0;
}

static int rank_key(uint8_t key[TY_SEAL_KEY_BYTES], ty_error *err)
{
    const char *text = getenv(TY_SERVER_KEY_VARIABLE);
    char digits[3] = "";
    if (text == NULL || strlen(text) != 2 * TY_SEAL_KEY_BYTES || strspn(text, "0123456789abcdef") != strlen(text))
        return ty_error_set(err, TY_E_INTERNAL, "%s: expected %d hexadecimal digits", TY_SERVER_KEY_VARIABLE,
                            2 * TY_SEAL_KEY_BYTES);
    for (int i = 0; i < TY_SEAL_KEY_BYTES; i++) {
        memcpy(digits, text + 2 * i, 2);
        key[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    unsetenv(TY_SERVER_KEY_VARIABLE);
    return 0;
}

static int rank_find(const ty_cluster *c, const ty_recipe *recipe, ty_arena *a, rank_place *p, ty_error *err)
{
    const ty_cluster_host *h = &c->host[c->self];
    const char *text = getenv("LOCAL_RANK");
    int local = text ? atoi(text) : -1, workers = h->ranks - h->servers;
    if (local < 0 || local >= h->ranks)
        return ty_error_set(err, TY_E_INTERNAL, "LOCAL_RANK: expected 0 to %d, found \"%.20s\"", h->ranks - 1,
                            text ? text : "");
    *p = (rank_place){.server_number = local < workers ? -1 : c->self,
                      .worker = h->first_worker + local,
                      .local = local,
                      .locals = workers};
    return rank_addresses(c, recipe->distributed.servers.port, a, &p->server, err) < 0 ? -1 : rank_key(p->key, err);
}

/* ---- a server ---- */

static int rank_serve(const rank_place *p, ty_job_end *end, ty_error *err)
{
    ty_server *server;
    ty_server_options o = {.transport = {.name = "ucx", .listen = p->server[p->server_number]},
                           .first_shard = p->server_number,
                           .n_shards = 1,
                           .job = TY_SERVED_JOB,
                           .key = p->key};
    ty_stop_ends_after(TY_STOP_NEVER);
    ty_doing_now(TY_DOING_SERVE);
    if (ty_server_start(&o, &server, err) < 0) {
        ty_error_help(err, "if the port is taken, give another one: distributed.server_port");
        return -1;
    }
    ty_log_info("server", "shard %d is served at %s", p->server_number, ty_server_address(server));
    /* A stop reaches workers as well: those that are here save and leave, and nobody else will come. */
    while (!ty_server_wait(server, RANK_TURN_MS))
        if (ty_stop_count() > 0)
            ty_server_expect_no_more(server);
    *end = ty_stop_count() > 0 ? TY_JOB_STOPPED : TY_JOB_COMPLETE;
    return ty_server_stop(server, err);
}

/* ---- a worker ---- */

static const ty_partitioner_kind rank_partitioners[] = {[TY_RECIPE_PARTS_MIN_SIZE] = TY_PARTITION_MIN_SIZE,
                                                        [TY_RECIPE_PARTS_MAX_SIZE] = TY_PARTITION_MAX_SIZE,
                                                        [TY_RECIPE_PARTS_FIXED] = TY_PARTITION_FIXED};

/* Workers compute on CPUs, also where there is a GPU, unless the recipe insists. */
static void rank_on_cpu(ty_job *job, const ty_recipe *recipe, ty_arena *a)
{
    if (recipe->device != TY_DEVICE_AUTO)
        return;
    ty_recipe_override *list = TY_NEW_ARRAY(a, ty_recipe_override, job->n_overrides + 1);
    memcpy(list, job->overrides, (size_t)job->n_overrides * sizeof *list);
    list[job->n_overrides++] = (ty_recipe_override){"device", "cpu", "strategy parameter_server"};
    job->overrides = list;
}

static int rank_work(const rank_place *p, const ty_cluster *c, ty_job *job, const ty_recipe *recipe, ty_arena *a,
                     ty_job_end *end, ty_job_progress *progress, ty_error *err)
{
    const ty_recipe_servers *how = &recipe->distributed.servers;
    ty_served_options served = {.servers = p->server,
                                .n_servers = c->n_servers,
                                .worker = p->worker,
                                .workers = c->n_workers,
                                .mode = how->mode,
                                .partitioner = {rank_partitioners[how->partitioner], how->part_bytes, 0},
                                .key = p->key,
                                .is_job = true,
                                .local = p->local,
                                .locals = p->locals,
                                .host = c->self,
                                .hosts = c->n_hosts,
                                .patience_ms = recipe->distributed.stall_seconds * 1000};
    if (how->mode == TY_SERVER_BOUNDED)
        served.staleness = (int)how->staleness;
    if (how->mode == TY_SERVER_SYNC)
        served.backup = (int)how->backup_workers;
    rank_on_cpu(job, recipe, a);
    job->served = &served;
    return ty_job_train(job, end, progress, err);
}

int ty_rank_with_servers(ty_job *job, const ty_recipe *recipe, const ty_cluster *cluster, ty_job_end *end,
                         ty_job_progress *progress, ty_error *err)
{
    ty_arena a;
    rank_place p;
    ty_arena_init(&a);
    int rc = rank_find(cluster, recipe, &a, &p, err);
    if (rc == 0)
        rc = p.server_number >= 0 ? rank_serve(&p, end, err)
                                  : rank_work(&p, cluster, job, recipe, &a, end, progress, err);
    ty_arena_fini(&a);
    return rc;
}
