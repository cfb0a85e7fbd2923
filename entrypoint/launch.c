/* launch.c - see launch.h. */
#define _GNU_SOURCE
#include "entrypoint/launch.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/home.h"
#include "base/log.h"
#include "base/version.h"
#include "dist/agent/agent.h"
#include "dist/agent/remote_mpirun.h"
#include "dist/mishap.h"
#include "dist/server/seal.h"
#include "entrypoint/report.h"
#include "entrypoint/spawn.h"
#include "entrypoint/stop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

enum { LAUNCH_FACTS = 4, LAUNCH_STOP_MS = 110000, LAUNCH_TELL_MS = 120000, LAUNCH_FACT_CHARS = 250 };

typedef struct launch {
    const ty_launch *l;
    ty_arena *a;
    ty_agent_options options;
    ty_agent_fact facts[LAUNCH_FACTS];
    const char **envp; /* of ranks; malloc'd */
} launch;

/* ---- options ---- */

/* "name=address" or "name=address:port" of this host in the list; NULL: it is not there. IPv6: name=[::1]:7777. */
static const char *launch_address(launch *x, const char *list, const char *name, int *port)
{
    size_t len = strlen(name);
    for (const char *p = list; p && *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ',')) {
        if (strncmp(p, name, len) != 0 || p[len] != '=')
            continue;
        const char *text = ty_arena_strndup(x->a, p + len + 1, strcspn(p + len + 1, ","));
        const char *end = text[0] == '[' ? strchr(text, ']') : NULL, *colon = strchr(end ? end : text, ':');
        if (colon)
            *port = (int)strtol(colon + 1, NULL, 10);
        size_t n = end ? (size_t)(end - text) - 1 : colon ? (size_t)(colon - text) : strlen(text);
        return ty_arena_strndup(x->a, text + (end != NULL), n);
    }
    return NULL;
}

static void launch_hosts(launch *x)
{
    const ty_cluster *c = x->l->cluster;
    const ty_resources *r = &x->l->config->resources;
    const char *addresses = getenv(TY_ADDRESSES_VARIABLE);
    int n = c ? c->n_hosts : (int)r->n_hosts;
    ty_agent_host *hosts = TY_NEW_ARRAY(x->a, ty_agent_host, n);
    for (int i = 0; i < n; i++) {
        hosts[i] = (ty_agent_host){.name = c ? c->host[i].name : r->hosts[i],
                                   .ranks = c ? c->host[i].ranks : 1,
                                   .servers = c ? c->host[i].servers : 0};
        hosts[i].address = launch_address(x, addresses, hosts[i].name, &hosts[i].port);
    }
    for (int i = 0; x->l->by_mpirun && i < n; i++) /* mpirun itself is the only rank that agents start */
        hosts[i].ranks = i == 0;
    x->options.hosts = hosts;
    x->options.n_hosts = n;
    x->options.self = c ? c->self : (int)r->host_index;
}

static void launch_secret(launch *x)
{
    const ty_container_config *c = x->l->config;
    const char *secret = getenv(TY_SECRET_VARIABLE);
    if (!secret || !*secret) {
        secret = ty_arena_printf(x->a, "%s %s", c->inherited.job_name ? c->inherited.job_name : "",
                                 c->inherited.job_arn ? c->inherited.job_arn : "");
        for (size_t i = 0; i < c->resources.n_hosts; i++)
            secret = ty_arena_printf(x->a, "%s %s", secret, c->resources.hosts[i]);
    }
    x->options.secret = secret;
    x->options.secret_bytes = strlen(secret);
}

/* Ranks do not get the secret, but what servers and workers prove to each other is made of it. */
static int launch_server_key(launch *x, const char **out, ty_error *err)
{
    uint8_t key[TY_SEAL_KEY_BYTES];
    char hex[TY_SHA256_HEX_BYTES];
    *out = NULL;
    if (!x->l->cluster || x->l->cluster->n_servers == 0)
        return 0;
    if (ty_seal_key(x->options.secret, x->options.secret_bytes, x->options.job, key, err) < 0)
        return -1;
    *out = ty_arena_printf(x->a, TY_SERVER_KEY_VARIABLE "=%s", ty_sha256_hex(key, hex));
    return 0;
}

/* A rank needs neither the secret nor the note pipe of our supervisor. */
static int launch_environment(launch *x, ty_error *err)
{
    static const char *const left_out[] = {TY_SECRET_VARIABLE, TY_NOTE_FD_VARIABLE, TY_ADDRESSES_VARIABLE,
                                           TY_SERVER_KEY_VARIABLE, NULL};
    const char *server_key;
    if (launch_server_key(x, &server_key, err) < 0)
        return -1;
    x->envp = ty_spawn_environment(x->l->envp ? x->l->envp : (const char *const *)environ, left_out, server_key);
    x->options.envp = x->envp;
    return x->envp ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for the environment of ranks");
}

/* What must be the same on all hosts, or ranks would wait for each other later. */
static void launch_facts(launch *x)
{
    const ty_error *trouble = x->l->trouble;
    const char *host = x->l->config->resources.current_host;
    const char *state = "good";
    if (trouble)
        state = ty_arena_printf(x->a, "%s: %.*s%s%.*s", host, 160, trouble->message, trouble->place[0] ? ", at " : "",
                                60, trouble->place);
    x->facts[0] = (ty_agent_fact){"the job's configuration", ty_arena_printf(x->a, "%.*s", LAUNCH_FACT_CHARS, state)};
    x->facts[1] = (ty_agent_fact){"the version of trainyard", TY_VERSION};
    const char *map = trouble ? "" : ty_cluster_text(x->l->cluster, x->a);
    x->facts[2] = (ty_agent_fact){"ranks on each host", ty_arena_printf(x->a, "%.*s", LAUNCH_FACT_CHARS, map)};
    x->options.facts = x->facts;
    x->options.n_facts = trouble ? 1 : 3;
}

/* ---- mpirun ---- */

/* The variables that the platform's toolkit hands to all ranks by name. */
static const char *const *launch_exported(launch *x, const char *const *envp)
{
    int n = 0, kept = 0;
    while (envp[n])
        n++;
    const char **names = TY_NEW_ARRAY(x->a, const char *, n + 1);
    for (int i = 0; i < n; i++)
        if (strncmp(envp[i], "SM_", 3) == 0 || strncmp(envp[i], "PYTHONPATH=", 11) == 0)
            names[kept++] = ty_arena_strndup(x->a, envp[i], strcspn(envp[i], "="));
    return names;
}

/* The platform's command line for mpirun, which finds other hosts through our agents. */
static int launch_mpirun(launch *x, ty_error *err)
{
    const ty_cluster *c = x->l->cluster;
    const char *self = ty_home_program();
    const char **names = TY_NEW_ARRAY(x->a, const char *, c->n_hosts);
    int *room = TY_NEW_ARRAY(x->a, int, c->n_hosts);
    for (int i = 0; i < c->n_hosts; i++) {
        names[i] = c->host[i].name;
        room[i] = c->host[i].room;
    }
    if (!*self)
        return ty_error_set(err, TY_E_INTERNAL, "cannot tell where this program lies: /proc/self/exe");
    ty_mpirun m = {.hosts = names,
                   .n_hosts = c->n_hosts,
                   .processes = room,
                   .n_processes = c->n_ranks,
                   .interface = x->l->config->resources.network_interface,
                   .options = c->mpi_options,
                   .data_parallel = c->data_parallel_library,
                   .instance_type = c->instance_type,
                   .names = launch_exported(x, x->options.envp),
                   .envp = x->options.envp,
                   .argv = x->l->argv};
    char **words;
    if (ty_mpirun_command(&m, x->a, &words, err) < 0)
        return -1;
    x->options.argv = (const char *const *)words;
    x->options.mpirun_client = ty_arena_printf(x->a, "%s rsh", self);
    return 0;
}

/* A fault that was asked for happens once: to the ranks that are started first. */
static void launch_between(void *ctx, int generation)
{
    launch *x = ctx;
    size_t n = strlen(TY_MISHAP_VARIABLE), kept = 0;
    for (size_t i = 0; x->envp[i]; i++)
        if (generation == 0 || strncmp(x->envp[i], TY_MISHAP_VARIABLE, n) != 0 || x->envp[i][n] != '=')
            x->envp[kept++] = x->envp[i];
    x->envp[kept] = NULL;
}

static bool launch_is_stopping(void *unused)
{
    (void)unused;
    return ty_stop_count() > 0;
}

static int launch_options(launch *x, ty_error *err)
{
    const ty_launch *l = x->l;
    const ty_recipe_distributed *how = l->how;
    x->options = (ty_agent_options)TY_AGENT_DEFAULTS;
    ty_agent_options *o = &x->options;
    o->job = l->config->inherited.job_name ? l->config->inherited.job_name : "job";
    o->platform_interface = l->config->resources.network_interface;
    o->argv = l->argv;
    o->cwd = l->cwd;
    o->tf_config = l->cluster ? l->cluster->tf_config : NULL;
    o->record_folder = l->config->paths.output_data;
    o->stop_ms = LAUNCH_STOP_MS;
    o->stopping = launch_is_stopping;
    o->between = launch_between;
    o->ctx = x;
    if (how) {
        o->interface = how->interface;
        o->port = (int)how->port;
        o->meet_ms = (int)(how->meet_seconds < 2000000 ? how->meet_seconds * 1000 : 2000000000);
        o->stall_end_ms = (int)(how->stall_seconds * 1000);
        if (how->stall_seconds > 0 && how->stall_seconds < 60)
            o->stall_warn_ms = o->stall_end_ms / 2;
        o->max_restarts = (int)how->restarts;
    }
    if (l->trouble) /* nobody is worth much waiting for */
        o->meet_ms = LAUNCH_TELL_MS;
    launch_hosts(x);
    launch_secret(x);
    launch_facts(x);
    o->without_mpi = l->cluster && l->cluster->n_servers > 0;
    return launch_environment(x, err);
}

/* ---- the end ---- */

static void launch_take_culprit(const launch *x, const ty_agent_end *from, ty_launch_end *end, ty_error *err)
{
    const ty_culprit *c = &from->first;
    end->rank = c->rank;
    end->step = c->step;
    end->is_named = c->pid > 0 || c->rank < 0; /* what a stall waits for stands at the end of its sentence */
    snprintf(end->phase, sizeof end->phase, "%s", c->phase);
    if (c->host >= 0 && c->host < x->options.n_hosts)
        snprintf(end->host, sizeof end->host, "%s", x->options.hosts[c->host].name);
    ty_error_set(err, TY_E_RANK, "%s", c->text);
    if (from->generation > 0)
        ty_error_detail(err, "after %d restart%s", from->generation, from->generation > 1 ? "s" : "");
}

int ty_launch_ranks(const ty_launch *l, ty_arena *a, ty_launch_end *end, ty_error *err)
{
    launch x = {.l = l, .a = a};
    ty_agent_end over = {0};
    *end = (ty_launch_end){.rank = -1, .step = -1};
    int rc = launch_options(&x, err);
    if (l->cluster && l->cluster->n_servers > 0)
        ty_log_info("dist", "workers + parameter servers of each host (%s): %s", l->cluster->strategy_at,
                    ty_cluster_text(l->cluster, a));
    else if (l->cluster)
        ty_log_info("dist", "%d ranks on %d host%s (%s by %s): %s", l->cluster->n_ranks, l->cluster->n_hosts,
                    l->cluster->n_hosts == 1 ? "" : "s", ty_strategy_name(l->cluster->strategy),
                    l->cluster->strategy_at, ty_cluster_text(l->cluster, a));
    bool began = rc == 0 && (!l->by_mpirun || launch_mpirun(&x, err) == 0) && ty_agent_run(&x.options, &over, err) == 0;
    free(x.envp);
    if (!began) {
        end->status = ty_error_exit_status(err->code);
        return -1;
    }
    end->status = over.status;
    end->stopped = over.stopped;
    if (over.stopped && over.status == 0 && over.generation < 0) /* no rank was ever started */
        end->status = 128 + (ty_stop_count() > 0 ? ty_stop_signal() : SIGTERM);
    if (!over.failed)
        return 0;
    launch_take_culprit(&x, &over, end, err);
    return -1;
}
