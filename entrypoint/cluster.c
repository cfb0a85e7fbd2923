/* cluster.c - strategy first, then hosts, then ranks. */
#include "entrypoint/cluster.h"

#include "base/log.h"
#include "container/config/reserved.h"
#include "container/config/tf_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct cluster_maker {
    ty_cluster *c;
    ty_arena *a;
    const ty_container_config *config;
    const ty_hardware *hardware;
    const ty_recipe *recipe; /* NULL: a program */
    const char *flag;        /* the reserved flag that counts; NULL: none is on */
    ty_error *err;
} cluster_maker;

#define CLUSTER_LIBRARY_FLAG "sagemaker_distributed_dataparallel_enabled"

/* In the order in which the platform's own images look at them: the first that is on counts. */
static const struct {
    const char *flag;
    ty_strategy strategy;
    const char *ranks, *all_ranks, *options; /* hyperparameters with the numbers that go with it, or NULL */
} cluster_flags[] = {
    {"sagemaker_parameter_server_enabled", TY_STRATEGY_PARAMETER_SERVER, NULL, NULL, NULL},
    {"sagemaker_mpi_enabled", TY_STRATEGY_DATA_PARALLEL, "sagemaker_mpi_num_of_processes_per_host",
     "sagemaker_mpi_num_processes", "sagemaker_mpi_custom_mpi_options"},
    {CLUSTER_LIBRARY_FLAG, TY_STRATEGY_DATA_PARALLEL, "sagemaker_mpi_num_of_processes_per_host", NULL,
     "sagemaker_distributed_dataparallel_custom_mpi_options"},
    {"sagemaker_multi_worker_mirrored_strategy_enabled", TY_STRATEGY_MULTI_WORKER_MIRRORED, NULL, NULL, NULL},
};
enum { CLUSTER_FLAGS = sizeof cluster_flags / sizeof cluster_flags[0] };

/* GPUs of instance types, for hosts that are not ours; a prefix each, the longest first. */
static const struct {
    const char *type;
    int gpus;
} cluster_gpus[] = {
    {"ml.p2.xlarge", 1},  {"ml.p2.8xlarge", 8},   {"ml.p2.16xlarge", 16}, {"ml.p3.2xlarge", 1},
    {"ml.p3.8xlarge", 4}, {"ml.p3.16xlarge", 8},  {"ml.p3dn.", 8},        {"ml.p4d.", 8},
    {"ml.p4de.", 8},      {"ml.p5.4xlarge", 1},   {"ml.p5.", 8},          {"ml.p5e.", 8},
    {"ml.p5en.", 8},      {"ml.p6-b200.", 8},     {"ml.p6-b300.", 8},     {"ml.g4dn.12xlarge", 4},
    {"ml.g4dn.", 1},      {"ml.g5.12xlarge", 4},  {"ml.g5.24xlarge", 4},  {"ml.g5.48xlarge", 8},
    {"ml.g5.", 1},        {"ml.g6.12xlarge", 4},  {"ml.g6.24xlarge", 4},  {"ml.g6.48xlarge", 8},
    {"ml.g6.", 1},        {"ml.g6e.12xlarge", 4}, {"ml.g6e.24xlarge", 4}, {"ml.g6e.48xlarge", 8},
    {"ml.g6e.", 1},
};

static const ty_value *cluster_value(const cluster_maker *m, const char *key)
{
    return key ? ty_value_get(&m->config->hyperparameters.framework, key) : NULL;
}

/* The row of the flag that counts, or NULL. One that asks for servers says nothing on one host. */
static int cluster_flag_row(const cluster_maker *m)
{
    for (int i = 0; i < CLUSTER_FLAGS; i++)
        if (ty_reserved_flag(cluster_value(m, cluster_flags[i].flag), NULL) &&
            (cluster_flags[i].strategy != TY_STRATEGY_PARAMETER_SERVER || m->config->distribution.n_hosts > 1))
            return i;
    return -1;
}

/* ---- strategy ---- */

static int cluster_conflict(const cluster_maker *m, int row)
{
    ty_error_set(m->err, TY_E_CONFIG, "strategy is %s (%s), and hyperparameter \"%s\" asks for %s",
                 ty_strategy_name(m->recipe->strategy), ty_recipe_origin(m->recipe, "strategy"),
                 cluster_flags[row].flag, ty_strategy_name(cluster_flags[row].strategy));
    return ty_error_help(m->err, "leave one of them out: strategy: auto takes what the hyperparameters say");
}

static void cluster_tell_dropped(const cluster_maker *m, int row)
{
    for (int i = row + 1; i < CLUSTER_FLAGS; i++)
        if (ty_reserved_flag(cluster_value(m, cluster_flags[i].flag), NULL) &&
            cluster_flags[i].strategy != cluster_flags[row].strategy)
            ty_log_warning("config", "hyperparameter \"%s\" is on, and so \"%s\" is not looked at",
                           cluster_flags[row].flag, cluster_flags[i].flag);
}

static bool cluster_takes_part(const cluster_maker *m, int row)
{
    return row < 0 || m->config->distribution.takes_part;
}

static int cluster_strategy(cluster_maker *m, int row)
{
    ty_cluster *c = m->c;
    ty_strategy said = m->recipe ? m->recipe->strategy : TY_STRATEGY_AUTO;
    c->strategy = said;
    c->strategy_at = m->recipe ? ty_recipe_origin(m->recipe, "strategy") : "the job";
    if (row >= 0 && said != TY_STRATEGY_AUTO && said != cluster_flags[row].strategy)
        return cluster_conflict(m, row);
    if (row >= 0) {
        cluster_tell_dropped(m, row);
        m->flag = cluster_flags[row].flag;
        c->strategy = cluster_flags[row].strategy;
        c->strategy_at = ty_arena_printf(m->a, "hyperparameter \"%s\"", m->flag);
    } else if (said == TY_STRATEGY_AUTO) {
        bool several = m->recipe && (m->config->resources.n_hosts > 1 || m->recipe->processes_per_host > 1);
        c->strategy = several ? TY_STRATEGY_DATA_PARALLEL : TY_STRATEGY_ONE_DEVICE;
        c->strategy_at = "the job";
    }
    return 0;
}

/* ---- hosts ---- */

/* What the client that made the job says, else the platform's file: what mpirun's line asks EFA's settings for. */
static const char *cluster_type_of_job(const cluster_maker *m)
{
    const ty_value *v = cluster_value(m, "sagemaker_instance_type");
    const char *said = v && v->kind != TY_VALUE_NULL ? ty_value_text(v) : NULL;
    return said && *said ? said : m->config->resources.instance_type;
}

static const char *cluster_instance_type(const ty_resources *r, const char *host)
{
    for (size_t g = 0; g < r->n_groups; g++)
        for (size_t i = 0; i < r->groups[g].n_hosts; i++)
            if (strcmp(r->groups[g].hosts[i], host) == 0)
                return r->groups[g].instance_type;
    return r->instance_type;
}

static int cluster_hosts(cluster_maker *m, bool takes_part, ty_cluster_host **out)
{
    ty_cluster *c = m->c;
    const ty_resources *r = &m->config->resources;
    const char *const *names = m->flag ? m->config->distribution.hosts : r->hosts;
    size_t n = m->flag ? m->config->distribution.n_hosts : r->n_hosts;
    /* A program that nobody asked to spread runs on each host by itself, as it always did. */
    bool alone = !takes_part || (!m->recipe && !m->flag);
    if (alone) {
        names = &r->current_host;
        n = 1;
    }
    ty_cluster_host *host = TY_NEW_ARRAY(m->a, ty_cluster_host, n);
    c->self = -1;
    for (size_t i = 0; i < n; i++) {
        bool is_master = i == 0 && c->strategy == TY_STRATEGY_PARAMETER_SERVER;
        host[i] = (ty_cluster_host){.name = names[i],
                                    .role = is_master ? "master" : "worker",
                                    .instance_type = cluster_instance_type(r, names[i])};
        if (strcmp(names[i], r->current_host) == 0)
            c->self = (int)i;
    }
    c->host = *out = host;
    c->n_hosts = (int)n;
    if (c->self < 0)
        return ty_error_set(m->err, TY_E_CONFIG, "this host, \"%s\", is not among the hosts that train together",
                            r->current_host);
    return 0;
}

static int cluster_check_hosts(const cluster_maker *m)
{
    const ty_cluster *c = m->c;
    bool of_one = c->strategy == TY_STRATEGY_ONE_DEVICE || c->strategy == TY_STRATEGY_MIRRORED ||
                  c->strategy == TY_STRATEGY_TOWER;
    if (!of_one || c->n_hosts == 1 || !m->recipe)
        return 0;
    ty_error_set(m->err, TY_E_CONFIG, "strategy is %s (%s), which trains on one host; this job has %d",
                 ty_strategy_name(c->strategy), c->strategy_at, c->n_hosts);
    return ty_error_help(m->err, "strategy: auto trains on all of them; or ask for one instance");
}

/* ---- ranks ---- */

static int cluster_number(const cluster_maker *m, const char *key, int *out)
{
    const ty_value *v = cluster_value(m, key);
    char *end;
    *out = 0;
    if (!v || v->kind == TY_VALUE_NULL)
        return 0;
    const char *text = v->kind == TY_VALUE_INT ? v->text : ty_value_text(v);
    errno = 0;
    long long n = text ? strtoll(text, &end, 10) : -1;
    if (!text || end == text || *end || errno)
        return ty_error_set(m->err, TY_E_TYPE, "hyperparameter \"%s\": expected a number of ranks, found %s", key,
                            text ? text : ty_value_kind_name(v->kind));
    if (n < 0 || n > TY_CLUSTER_MAX_RANKS)
        return ty_error_set(m->err, TY_E_RANGE, "hyperparameter \"%s\": expected 1 to %d ranks, found %s", key,
                            TY_CLUSTER_MAX_RANKS, text);
    *out = (int)n;
    return 0;
}

static int cluster_gpus_of(const cluster_maker *m, const char *type)
{
    if (strcmp(type, m->config->resources.instance_type) == 0)
        return m->hardware->num_gpus;
    for (size_t i = 0; i < sizeof cluster_gpus / sizeof cluster_gpus[0]; i++)
        if (strncmp(type, cluster_gpus[i].type, strlen(cluster_gpus[i].type)) == 0)
            return cluster_gpus[i].gpus;
    return 0;
}

/* Ranks a host that somebody named; 0: nobody did. */
static int cluster_given(const cluster_maker *m, int row, int *out)
{
    const char *key = row >= 0 ? cluster_flags[row].ranks : NULL;
    int by_recipe = m->recipe ? (int)m->recipe->processes_per_host : 0;
    if (cluster_number(m, key, out) < 0)
        return -1;
    if (*out > 0 && by_recipe > 0 && *out != by_recipe) {
        ty_error_set(m->err, TY_E_CONFIG, "processes_per_host is %d (%s), and hyperparameter \"%s\" is %d", by_recipe,
                     ty_recipe_origin(m->recipe, "processes_per_host"), key, *out);
        return ty_error_help(m->err, "leave one of them out");
    }
    if (by_recipe > 1 && m->c->strategy == TY_STRATEGY_ONE_DEVICE) {
        ty_error_set(m->err, TY_E_CONFIG, "processes_per_host is %d (%s), and strategy is one_device (%s)", by_recipe,
                     ty_recipe_origin(m->recipe, "processes_per_host"), m->c->strategy_at);
        return ty_error_help(m->err, "strategy: data_parallel");
    }
    *out = *out > 0 ? *out : by_recipe;
    return 0;
}

/* As on the platform: each host has a server beside its workers. A user's program starts its own. */
static int cluster_servers(const cluster_maker *m)
{
    return m->recipe && m->c->strategy == TY_STRATEGY_PARAMETER_SERVER;
}

/* A rank has a GPU if there are any, whether it is a program or ours; those of ours that compute on CPUs are one a host
 * and use all cores. */
static int cluster_default_ranks(const cluster_maker *m, const ty_cluster_host *h)
{
    const ty_recipe *r = m->recipe;
    bool has_gpus = m->c->strategy == TY_STRATEGY_DATA_PARALLEL;
    if (r) {
        has_gpus |= m->c->strategy == TY_STRATEGY_MULTI_WORKER_MIRRORED;
        has_gpus &= r->device != TY_DEVICE_CPU;
    }
    int gpus = !has_gpus ? 0 : r && r->n_gpus ? r->n_gpus : cluster_gpus_of(m, h->instance_type);
    return gpus > 0 ? gpus : 1;
}

static int cluster_count(cluster_maker *m, int row, ty_cluster_host *host)
{
    ty_cluster *c = m->c;
    int each, all;
    if (cluster_given(m, row, &each) < 0 || cluster_number(m, row >= 0 ? cluster_flags[row].all_ranks : NULL, &all) < 0)
        return -1;
    for (int i = 0; i < c->n_hosts; i++) {
        int ranks = each > 0 ? each : cluster_default_ranks(m, &host[i]);
        host[i].room = ranks;
        if (all > 0) /* hosts are filled one after the other, as mpirun does */
            ranks = c->n_ranks + ranks > all ? all - c->n_ranks : ranks;
        host[i].servers = cluster_servers(m);
        host[i].ranks = ranks + host[i].servers;
        host[i].first_rank = c->n_ranks;
        host[i].first_worker = c->n_workers;
        c->n_ranks += host[i].ranks;
        c->n_workers += ranks;
        c->n_servers += host[i].servers;
        if (c->n_ranks > TY_CLUSTER_MAX_RANKS)
            return ty_error_set(m->err, TY_E_RANGE, "%d hosts have more than %d ranks together", c->n_hosts,
                                TY_CLUSTER_MAX_RANKS);
    }
    if (all > c->n_ranks)
        return ty_error_set(m->err, TY_E_CONFIG, "hyperparameter \"%s\" is %d, and %d hosts have room for %d ranks",
                            cluster_flags[row].all_ranks, all, c->n_hosts, c->n_ranks);
    return 0;
}

static void cluster_tell_tensorflow(cluster_maker *m)
{
    ty_cluster *c = m->c;
    const char **names = TY_NEW_ARRAY(m->a, const char *, c->n_hosts);
    for (int i = 0; i < c->n_hosts; i++)
        names[i] = c->host[i].name;
    if (c->strategy == TY_STRATEGY_PARAMETER_SERVER)
        c->tf_config = ty_tf_config_parameter_server(m->a, names, (size_t)c->n_hosts, (size_t)c->self, false);
    if (c->strategy == TY_STRATEGY_MULTI_WORKER_MIRRORED)
        c->tf_config = ty_tf_config_mirrored(m->a, names, (size_t)c->n_hosts, (size_t)c->self);
}

/* Programs are started as ranks where the platform would start them under MPI; with the other strategies it starts one
 * process a host and tells it the cluster. */
static bool cluster_starts_ranks(const cluster_maker *m)
{
    if (m->recipe)
        return m->c->n_ranks > 1;
    return m->flag && m->c->strategy == TY_STRATEGY_DATA_PARALLEL && m->c->n_ranks > 1;
}

int ty_cluster_make(ty_cluster *c, ty_arena *a, const ty_container_config *config, const ty_hardware *hardware,
                    const ty_recipe *recipe, ty_error *err)
{
    cluster_maker m = {.c = c, .a = a, .config = config, .hardware = hardware, .recipe = recipe, .err = err};
    ty_cluster_host *host;
    int row = cluster_flag_row(&m);
    bool takes_part = cluster_takes_part(&m, row);
    *c = (ty_cluster){.instance_type = cluster_type_of_job(&m)};
    if (cluster_strategy(&m, takes_part ? row : -1) < 0 || cluster_hosts(&m, takes_part, &host) < 0 ||
        cluster_check_hosts(&m) < 0 || cluster_count(&m, takes_part ? row : -1, host) < 0)
        return -1;
    const char *options = m.flag ? ty_value_text(cluster_value(&m, cluster_flags[row].options)) : NULL;
    c->mpi_options = options && *options ? options : NULL;
    c->data_parallel_library = m.flag && strcmp(m.flag, CLUSTER_LIBRARY_FLAG) == 0;
    c->starts_ranks = cluster_starts_ranks(&m);
    cluster_tell_tensorflow(&m);
    return 0;
}

const char *ty_cluster_text(const ty_cluster *c, ty_arena *a)
{
    const char *text = "";
    for (int i = 0; i < c->n_hosts; i++) {
        const ty_cluster_host *h = &c->host[i];
        text = ty_arena_printf(a, "%s%s%s:%d", text, i ? " " : "", h->name, h->ranks - h->servers);
        if (h->servers)
            text = ty_arena_printf(a, "%s+%d", text, h->servers);
    }
    return text;
}
