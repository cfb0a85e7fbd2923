/* local.c - a job from its file to what is left of it. */
#define _GNU_SOURCE
#include "entrypoint/local.h"

#include "base/file.h"
#include "base/json.h"
#include "dist/mishap.h"
#include "entrypoint/follow.h"
#include "entrypoint/launch_variables.h"
#include "entrypoint/local_engine.h"
#include "entrypoint/local_fetch.h"
#include "entrypoint/local_process.h"
#include "entrypoint/local_run.h"
#include "entrypoint/managed.h"
#include "estimator_spec/collect.h"
#include "estimator_spec/request.h"
#include "estimator_spec/tree.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REASON_BYTES = 1024 };

typedef struct local {
    const ty_local_options *o;
    ty_arena *a;
    ty_jobspec job;
    ty_doc body;
    const char *image, *into, *name;
    bool in_containers;
    ty_engine engine;
    ty_local_fetch fetch;
    ty_stage stage;
    ty_local_host *hosts; /* [stage.n_hosts] */
    ty_local_feeder_of *feeders;
    int n_feeders;
    ty_local_run run;
} local;

/* ---- a stop before the hosts run ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    interrupted = number;
}

static void watch_interrupt(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

/* ---- what is to be run, and how ---- */

static const char *text_at(const local *l, const char *path)
{
    const ty_doc *d = ty_tree_find(&l->body, path);
    return d && d->kind == TY_DOC_STRING ? d->string : NULL;
}

static int choose_way(local *l, const char **why, ty_error *err)
{
    *why = "as asked for";
    l->image = l->o->image ? l->o->image : text_at(l, "AlgorithmSpecification.TrainingImage");
    l->in_containers = l->o->way == TY_LOCAL_DOCKER;
    if (l->in_containers && !l->image)
        return ty_error_set(err, TY_E_USAGE, "--docker: the job names no image, and neither does --image");
    if (l->o->way == TY_LOCAL_EITHER && l->image) {
        l->in_containers = ty_engine_has(l->image, l->a, why);
        if (l->in_containers)
            *why = ty_arena_printf(l->a, "docker has %s", l->image);
    } else if (l->o->way == TY_LOCAL_EITHER) {
        *why = "the job names no image";
    }
    if (!l->in_containers && ty_tree_find(&l->body, "AlgorithmSpecification.ContainerEntrypoint")) {
        ty_error_set(err, TY_E_UNSUPPORTED, "container.entrypoint is a program of the image, and there is none (%s)",
                     *why);
        return ty_error_help(err, "give an image that docker has: --image, --docker");
    }
    return 0;
}

static int make_into(local *l, ty_error *err)
{
    const char *folder = l->o->into ? l->o->into : l->name;
    char real[PATH_MAX];
    if (ty_file_mkdirs(folder, 0755, err) < 0)
        return -1;
    if (!realpath(folder, real))
        return ty_error_errno(err, TY_E_CREATE, errno, "\"%s\"", folder);
    l->into = ty_arena_strdup(l->a, real);
    return ty_collect_check(l->into, l->a, err);
}

static int read_job(local *l, const char *file, ty_error *err)
{
    const char *why;
    ty_jobspec_world world = ty_managed_world();
    world.is_local = true;
    if (ty_managed_load_in(&world, file, l->a, &l->job, err) < 0 ||
        ty_jobspec_request(&l->job, l->a, &l->body, err) < 0)
        return -1;
    l->name = text_at(l, "TrainingJobName");
    if (!l->name)
        return ty_error_set(err, TY_E_CONFIG, "%s: the request has no TrainingJobName", file);
    if (choose_way(l, &why, err) < 0)
        return -1;
    l->stage = (ty_stage){.job = &l->job,
                          .body = &l->body,
                          .folder = "",
                          .nodes = l->o->nodes,
                          .interface = l->in_containers ? "eth0" : "lo",
                          .in_containers = l->in_containers,
                          .inputs = l->o->inputs,
                          .n_inputs = l->o->n_inputs,
                          .fetch = ty_local_fetch_folder,
                          .ctx = &l->fetch};
    const ty_field_value *region = &l->job.value[TY_FIELD_REGION];
    l->fetch = (ty_local_fetch){.region = ty_field_is_said(region) ? region->text : NULL, .stop = &interrupted};
    if (ty_stage_hosts(&l->stage, l->a, err) < 0)
        return -1;
    int n = l->stage.n_hosts;
    fprintf(stderr, "local: %s: %d host%s as %s%s (%s)\n", l->name, n, n == 1 ? "" : "s",
            l->in_containers ? "container"
            : n == 1         ? "process"
                             : "processe",
            n == 1 ? "" : "s", why);
    ty_managed_warn(&l->job);
    return 0;
}

/* ---- hosts ---- */

static int host_variables(local *l, const ty_local_variables *all, int i, const char *addresses, ty_error *err)
{
    ty_local_host *h = &l->hosts[i];
    ty_local_variables v = *all;
    if (l->in_containers) {
        h->argv = ty_engine_command(&l->engine, &l->stage, &l->stage.hosts[i], all->names, l->o->words, l->a);
    } else {
        ty_local_variables_copy(all, &v, l->a);
        v.names = TY_NEW_ARRAY(l->a, const char *, all->n_names + 4);
        ty_local_variables_set(&v, "SAGEMAKER_BASE_DIR", l->stage.hosts[i].tree, l->a);
        ty_local_variables_set(&v, TY_ADDRESSES_VARIABLE, addresses, l->a);
        if (ty_local_command(l->o->words, &h->argv, l->a, err) < 0)
            return -1;
    }
    h->envp = v.list;
    return 0;
}

static int make_hosts(local *l, ty_error *err)
{
    const char *addresses = NULL, *secret = ty_local_secret(l->a);
    int n = l->stage.n_hosts, cores = ty_local_cores();
    ty_local_variables all;
    ty_local_variables_init(&all, &l->stage, l->o->fault, l->a);
    if (!secret)
        return ty_error_set(err, TY_E_INTERNAL, "no random numbers");
    ty_local_variables_set(&all, TY_SECRET_VARIABLE, secret, l->a);
    if (!l->in_containers && ty_local_addresses(&l->stage, &addresses, l->a, err) < 0)
        return -1;
    if (l->in_containers && n > 1 && !ty_tree_find(&l->body, "Environment.OMP_NUM_THREADS"))
        ty_local_variables_set(&all, "OMP_NUM_THREADS", ty_arena_printf(l->a, "%d", cores > n ? cores / n : 1), l->a);
    l->hosts = TY_NEW_ARRAY(l->a, ty_local_host, n);
    for (int i = 0; i < n; i++) {
        const ty_stage_host *at = &l->stage.hosts[i];
        int first = i * cores / n, end = (i + 1) * cores / n;
        l->hosts[i] = (ty_local_host){.name = at->name,
                                      .container = l->in_containers ? ty_engine_container(&l->engine, at, l->a) : NULL,
                                      .log = ty_arena_printf(l->a, "%s/logs/%s.log", l->into, at->name),
                                      .first_core = first,
                                      .n_cores = n == 1 || l->in_containers ? 0
                                                 : end > first              ? end - first
                                                                            : 1};
        if (host_variables(l, &all, i, addresses, err) < 0)
            return -1;
    }
    return 0;
}

static int make_feeders(local *l, ty_error *err)
{
    l->feeders = TY_NEW_ARRAY(l->a, ty_local_feeder_of, l->stage.n_hosts * TY_STAGE_MOUNTS);
    for (int i = 0; i < l->stage.n_hosts; i++)
        for (int k = 0; k < l->stage.hosts[i].n_feeds; k++) {
            const ty_stage_feed *feed = &l->stage.hosts[i].feeds[k];
            ty_local_feeder_of *f = &l->feeders[l->n_feeders++];
            *f = (ty_local_feeder_of){.channel = feed->channel, .host = i};
            if (ty_local_feeder(&l->stage.hosts[i], feed, &f->argv, l->a, err) < 0)
                return -1;
        }
    return 0;
}

static int prepare(local *l, ty_error *err)
{
    l->stage.folder = ty_arena_printf(l->a, "%s/hosts", l->into);
    if (ty_stage_hosts(&l->stage, l->a, err) < 0 || ty_stage_lay(&l->stage, l->a, err) < 0 ||
        ty_file_mkdirs(ty_arena_printf(l->a, "%s/logs", l->into), 0755, err) < 0)
        return -1;
    for (int i = 0; ty_doc_find(&l->body, "CheckpointConfig") && i < l->stage.n_hosts; i++)
        if (ty_collect_restore(l->into, l->stage.hosts[i].checkpoints, l->a, err) < 0)
            return -1;
    if (l->in_containers && ty_engine_open(&l->engine, l->image, l->o->engine_options, l->a, err) < 0)
        return -1;
    return make_feeders(l, err) < 0 ? -1 : make_hosts(l, err);
}

/* ---- the end ---- */

static int collect(local *l, ty_collect *c, ty_error *err)
{
    int n = l->stage.n_hosts, failed = l->run.first_failed;
    const char *compression = text_at(l, "OutputDataConfig.CompressionType");
    bool keeps = ty_doc_find(&l->body, "CheckpointConfig") != NULL;
    ty_collect_host *hosts = TY_NEW_ARRAY(l->a, ty_collect_host, n);
    for (int i = 0; i < n; i++) {
        const ty_stage_host *at = &l->stage.hosts[failed > 0 ? (i + failed) % n : i];
        hosts[i] = (ty_collect_host){at->tree, keeps ? at->checkpoints : NULL};
    }
    *c = (ty_collect){
        .hosts = hosts, .n_hosts = n, .into = l->into, .as_files = compression && strcmp(compression, "NONE") == 0};
    return ty_collect_all(c, l->a, err);
}

/* As the platform words it. */
static void tell_reason(const local *l)
{
    const ty_local_host *h = &l->hosts[l->run.first_failed];
    const char *path = ty_arena_printf(l->a, "%s/output/failure", l->stage.hosts[l->run.first_failed].tree);
    char text[REASON_BYTES + 1] = "";
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, REASON_BYTES, f) : 0;
    if (f)
        fclose(f);
    while (n > 0 && (text[n - 1] == '\n' || ((unsigned char)text[n - 1] & 0xc0) == 0x80))
        n--;
    text[n] = 0;
    fprintf(stderr, "reason  AlgorithmError: ");
    for (char *line = text, *end; line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = 0;
        ty_follow_put(stderr, line);
        fputs(end ? "\n        " : "", stderr);
    }
    fprintf(stderr, ", exit code: %d\n", h->status);
}

static int report(const local *l, const ty_collect *c)
{
    static const struct {
        const char *word;
        int status;
    } ends[] = {{"Completed", 0},
                {"Failed", TY_EXIT_JOB_FAILED},
                {"Stopped", TY_EXIT_JOB_STOPPED},
                {"Stopped, MaxRuntimeExceeded", TY_EXIT_JOB_OUT_OF_TIME}};
    const ty_local_run *run = &l->run;
    int end = run->first_failed >= 0 ? 1 : run->is_out_of_time ? 3 : run->stop_signal ? 2 : 0;
    if (l->o->fault && !run->mishap_seen)
        fprintf(stderr, "warning: the fault %s did not happen: that rank reported no such step\n", l->o->fault);
    if (c->n_clashes > 0)
        fprintf(stderr,
                "warning: %d files of model and output/data have one name on several hosts: one of each is kept\n",
                c->n_clashes);
    fprintf(stderr, "local: %s: %s after %.1f s\n", l->name, ends[end].word, run->seconds);
    if (end == 1)
        tell_reason(l);
    if (c->model)
        fprintf(stderr, "model   %s\n", c->model);
    fprintf(stderr, "output  %s/output\n", l->into);
    return ends[end].status;
}

static int run_hosts(local *l, ty_error *err)
{
    ty_collect c;
    const ty_field_value *max_run = &l->job.value[TY_FIELD_MAX_RUN];
    if (prepare(l, err) < 0)
        return -1;
    l->run = (ty_local_run){.hosts = l->hosts,
                            .n_hosts = l->stage.n_hosts,
                            .feeders = l->feeders,
                            .n_feeders = l->n_feeders,
                            .max_run_s = max_run->integer,
                            .kill = ty_engine_kill,
                            .interrupted = &interrupted};
    if (ty_local_run_all(&l->run, err) < 0 || collect(l, &c, err) < 0)
        return -1;
    return report(l, &c);
}

/* Whatever happened: no container, no network, no tree. */
static int clean_up(local *l, int status, ty_error *err)
{
    ty_error ignored = {0};
    ty_local_fetch_close(&l->fetch);
    if (l->in_containers)
        ty_engine_close(&l->engine, &l->stage, l->a);
    if (!l->o->keep && ty_file_remove_tree(l->stage.folder, status < 0 ? &ignored : err) < 0)
        status = -1;
    if (status < 0) { /* if they are empty */
        rmdir(ty_arena_printf(l->a, "%s/logs", l->into));
        rmdir(l->into);
    }
    return status;
}

int ty_local(const char *file, const ty_local_options *o, ty_arena *a, ty_error *err)
{
    local *l = TY_NEW(a, local);
    *l = (local){.o = o, .a = a};
    if (read_job(l, file, err) < 0 || make_into(l, err) < 0)
        return -1;
    watch_interrupt();
    return clean_up(l, run_hosts(l, err), err);
}
