/* stage.c - hosts and their configuration. Channels are stage_channels.c. */
#define _GNU_SOURCE
#include "estimator_spec/stage.h"

#include "base/file.h"
#include "base/json.h"
#include "container/config/paths.h"
#include "estimator_spec/stage_parts.h"
#include "estimator_spec/tree.h"

#include <stdlib.h>
#include <string.h>

static const char only_group[] = "homogeneousCluster"; /* the platform's name where a job has no groups */

const char *ty_stage_text(const ty_doc *map, const char *path)
{
    const ty_doc *d = ty_tree_find(map, path);
    return d && d->kind == TY_DOC_STRING ? d->string : NULL;
}

/* ---- hosts ---- */

static int compare_hosts(const void *x, const void *y)
{
    return strcmp(((const ty_stage_host *)x)->name, ((const ty_stage_host *)y)->name);
}

static int add_hosts(ty_stage *s, ty_arena *a, const char *group, const char *type, int64_t count, ty_error *err)
{
    if (count < 1 || s->n_hosts + count > TY_STAGE_MAX_HOSTS)
        return ty_error_set(err, TY_E_LIMIT, "expected 1 to %d hosts, found %lld", TY_STAGE_MAX_HOSTS,
                            (long long)(s->n_hosts + count));
    for (int64_t i = 0; i < count; i++) {
        ty_stage_host *h = &s->hosts[s->n_hosts++];
        h->name = ty_arena_printf(a, "algo-%d", s->n_hosts);
        h->group = group;
        h->instance_type = type;
        h->tree = ty_arena_printf(a, "%s/%s", s->folder, h->name);
        h->checkpoints = ty_arena_printf(a, "%s/checkpoints", h->tree);
    }
    return 0;
}

int ty_stage_hosts(ty_stage *s, ty_arena *a, ty_error *err)
{
    const ty_doc *machines = ty_doc_find(s->body, "ResourceConfig");
    const ty_doc *groups = ty_doc_find(machines, "InstanceGroups"), *count = ty_doc_find(machines, "InstanceCount");
    const char *type = ty_stage_text(machines, "InstanceType");
    int rc = 0;
    s->hosts = TY_NEW_ARRAY(a, ty_stage_host, TY_STAGE_MAX_HOSTS);
    s->n_hosts = 0;
    if (ty_doc_len(groups) > 0 && s->nodes > 0)
        return ty_error_set(err, TY_E_USAGE, "--nodes does not go with instance groups, whose counts are in the job");
    for (size_t i = 0; i < ty_doc_len(groups) && rc == 0; i++) {
        const ty_doc *g = ty_doc_at(groups, i), *n = ty_doc_find(g, "InstanceCount");
        rc = add_hosts(s, a, ty_stage_text(g, "InstanceGroupName"), ty_stage_text(g, "InstanceType"),
                       n && n->kind == TY_DOC_INT ? n->integer : 0, err);
    }
    if (ty_doc_len(groups) == 0)
        rc = add_hosts(s, a, only_group, type ? type : "local",
                       s->nodes > 0                         ? s->nodes
                       : count && count->kind == TY_DOC_INT ? count->integer
                                                            : 1,
                       err);
    if (rc == 0)
        qsort(s->hosts, (size_t)s->n_hosts, sizeof *s->hosts, compare_hosts);
    return rc;
}

/* ---- configuration ---- */

static int write_config(const ty_stage_host *h, const char *name, ty_buf *text, ty_arena *a, ty_error *err)
{
    ty_buf_addc(text, '\n');
    int rc = text->failed ? ty_error_set(err, TY_E_LIMIT, "%s is too large", name)
                          : ty_file_write(ty_arena_printf(a, "%s/input/config/%s", h->tree, name), text->data,
                                          text->len, 0644, err);
    ty_buf_fini(text);
    return rc;
}

static void begin_config(ty_json_writer *w, ty_buf *text)
{
    ty_buf_init(text, 1 << 22);
    ty_json_writer_init(w, text, TY_JSON_SPACED);
    ty_json_open_map(w, NULL);
}

/* A path below /opt/ml as the host sees it. Texts of hyperparameters are JSON and begin with a quote. */
static const char *seen_path(const ty_stage *s, const ty_stage_host *h, const char *text, ty_arena *a)
{
    size_t quote = text[0] == '"', n = strlen(TY_PATHS_DEFAULT_BASE);
    if (s->in_containers || strncmp(text + quote, TY_PATHS_DEFAULT_BASE "/", n + 1) != 0)
        return text;
    return ty_arena_printf(a, "%s%s%s", quote ? "\"" : "", h->tree, text + quote + n);
}

/* Those that name a folder of the container. */
static bool is_place(const char *hyperparameter)
{
    return strcmp(hyperparameter, "sagemaker_submit_directory") == 0 || strcmp(hyperparameter, "model_dir") == 0;
}

static int write_hyperparameters(const ty_stage *s, const ty_stage_host *h, ty_arena *a, ty_error *err)
{
    const ty_doc *map = ty_doc_find(s->body, "HyperParameters");
    ty_buf text;
    ty_json_writer w;
    begin_config(&w, &text);
    for (size_t i = 0; i < ty_doc_len(map); i++) {
        const ty_doc *d = ty_doc_at(map, i);
        ty_json_put_string(&w, d->key, is_place(d->key) ? seen_path(s, h, d->string, a) : d->string);
    }
    ty_json_close(&w);
    return write_config(h, "hyperparameters.json", &text, a, err);
}

static void put_hosts(const ty_stage *s, ty_json_writer *w, const char *group)
{
    ty_json_open_list(w, "hosts");
    for (int i = 0; i < s->n_hosts; i++)
        if (!group || strcmp(s->hosts[i].group, group) == 0)
            ty_json_put_string(w, NULL, s->hosts[i].name);
    ty_json_close(w);
}

static bool is_first_of_group(const ty_stage *s, int host)
{
    for (int i = 0; i < host; i++)
        if (strcmp(s->hosts[i].group, s->hosts[host].group) == 0)
            return false;
    return true;
}

static int write_resources(const ty_stage *s, const ty_stage_host *h, ty_arena *a, ty_error *err)
{
    ty_buf text;
    ty_json_writer w;
    begin_config(&w, &text);
    ty_json_put_string(&w, "current_host", h->name);
    ty_json_put_string(&w, "current_instance_type", h->instance_type);
    ty_json_put_string(&w, "current_group_name", h->group);
    put_hosts(s, &w, NULL);
    ty_json_open_list(&w, "instance_groups");
    for (int i = 0; i < s->n_hosts; i++) {
        if (!is_first_of_group(s, i))
            continue;
        ty_json_open_map(&w, NULL);
        ty_json_put_string(&w, "instance_group_name", s->hosts[i].group);
        ty_json_put_string(&w, "instance_type", s->hosts[i].instance_type);
        put_hosts(s, &w, s->hosts[i].group);
        ty_json_close(&w);
    }
    ty_json_close(&w);
    ty_json_put_string(&w, "network_interface_name", s->interface);
    ty_json_close(&w);
    return write_config(h, "resourceconfig.json", &text, a, err);
}

/* A file that says where something lies in the container: {"LocalPath": ...}. */
static int write_place(const ty_stage_host *h, const char *name, const char *path, ty_arena *a, ty_error *err)
{
    ty_buf text;
    ty_json_writer w;
    begin_config(&w, &text);
    ty_json_put_string(&w, "LocalPath", path);
    ty_json_close(&w);
    return write_config(h, name, &text, a, err);
}

/* Checkpoints may have a place outside of /opt/ml: without containers it is in the tree all the same. */
static int write_checkpoints(const ty_stage *s, ty_stage_host *h, ty_arena *a, ty_error *err)
{
    const char *path = ty_stage_text(s->body, "CheckpointConfig.LocalPath"), *base = TY_PATHS_DEFAULT_BASE "/";
    if (!ty_doc_find(s->body, "CheckpointConfig"))
        return 0;
    if (!path)
        path = TY_PATHS_DEFAULT_BASE "/checkpoints";
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path = ty_arena_strndup(a, path, n - 1);
    bool is_inside = strncmp(path, base, strlen(base)) == 0;
    if (is_inside)
        h->checkpoints = ty_arena_printf(a, "%s/%s", h->tree, path + strlen(base));
    else if (s->in_containers)
        h->mounts[h->n_mounts++] = (ty_stage_mount){h->checkpoints, path, true};
    return write_place(h, "checkpointconfig.json", s->in_containers ? path : h->checkpoints, a, err);
}

static int write_tensorboard(const ty_stage *s, const ty_stage_host *h, ty_arena *a, ty_error *err)
{
    const char *path = ty_stage_text(s->body, "TensorBoardOutputConfig.LocalPath");
    if (!ty_doc_find(s->body, "TensorBoardOutputConfig"))
        return 0;
    if (!path || (!s->in_containers && strncmp(path, TY_PATHS_DEFAULT_BASE "/", 8) != 0))
        path = TY_PATHS_DEFAULT_BASE "/output/tensorboard";
    return write_place(h, "tensorboardoutputconfig.json", seen_path(s, h, path, a), a, err);
}

/* ---- trees ---- */

static int make_folders(const ty_stage_host *h, ty_arena *a, ty_error *err)
{
    static const char *const names[] = {"input/config", "input/data", "code", "model", "output/data"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (ty_file_mkdirs(ty_arena_printf(a, "%s/%s", h->tree, names[i]), 0755, err) < 0)
            return -1;
    return 0;
}

static int lay_host(const ty_stage *s, ty_stage_host *h, ty_arena *a, ty_error *err)
{
    if (make_folders(h, a, err) < 0 || write_hyperparameters(s, h, a, err) < 0 || write_resources(s, h, a, err) < 0 ||
        write_checkpoints(s, h, a, err) < 0 || write_tensorboard(s, h, a, err) < 0)
        return -1;
    return ty_file_mkdirs(h->checkpoints, 0755, err);
}

int ty_stage_lay(ty_stage *s, ty_arena *a, ty_error *err)
{
    if (ty_stage_check_channels(s, a, err) < 0)
        return -1;
    for (int i = 0; i < s->n_hosts; i++)
        if (lay_host(s, &s->hosts[i], a, err) < 0)
            return -1;
    return ty_stage_lay_channels(s, a, err);
}
