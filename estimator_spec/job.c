/* job.c - job.yaml into a ty_jobspec: sections, channels, groups. What follows from them is in derive.c, what must hold
 * in check_*.c. */
#include "estimator_spec/job.h"

#include "base/yaml.h"
#include "estimator_spec/job_parts.h"

#include <stdio.h>
#include <string.h>

/* Sections in the order in which they are read: one inside another after it. */
static const struct {
    ty_field_id node;
    const char *name;
} sections[] = {
    {TY_FIELD_FRAMEWORK, "framework"},
    {TY_FIELD_RESOURCES, "resources"},
    {TY_FIELD_SOURCE, "source"},
    {TY_FIELD_MODEL, "model"},
    {TY_FIELD_DISTRIBUTION, "distribution"},
    {TY_FIELD_MPI, "distribution.mpi"},
    {TY_FIELD_SMD, "distribution.smdistributed"},
    {TY_FIELD_SMDDP, "distribution.smdistributed.dataparallel"},
    {TY_FIELD_PS, "distribution.parameter_server"},
    {TY_FIELD_MWMS, "distribution.multi_worker_mirrored_strategy"},
    {TY_FIELD_TORCH, "distribution.torch_distributed"},
    {TY_FIELD_DDP, "distribution.pytorchddp"},
    {TY_FIELD_XLA, "distribution.pytorchxla"},
    {TY_FIELD_COMPILER, "compiler"},
    {TY_FIELD_OUTPUT, "output"},
    {TY_FIELD_CHECKPOINTS, "checkpoints"},
    {TY_FIELD_STOPPING, "stopping"},
    {TY_FIELD_NETWORK, "network"},
    {TY_FIELD_TENSORBOARD, "tensorboard"},
    {TY_FIELD_CONTAINER, "container"},
    {TY_FIELD_EXPERIMENT, "experiment"},
};

/* Parameters of the SDK's estimators, for who brings them along. */
static const struct {
    const char *theirs, *ours;
} renamed[] = {
    {"image_uri", "image"},
    {"image_name", "image"},
    {"algorithm_arn", "algorithm"},
    {"base_job_name", "base_name"},
    {"job_name", "name"},
    {"instance_type", "resources.instance_type"},
    {"train_instance_type", "resources.instance_type"},
    {"instance_count", "resources.instance_count"},
    {"train_instance_count", "resources.instance_count"},
    {"instance_groups", "resources.instance_groups"},
    {"volume_size", "resources.volume_gb"},
    {"volume_kms_key", "resources.volume_kms_key"},
    {"keep_alive_period_in_seconds", "resources.keep_alive_seconds"},
    {"training_plan", "resources.training_plan"},
    {"max_run", "stopping.max_run_seconds"},
    {"max_wait", "stopping.max_wait_seconds"},
    {"output_path", "output.path"},
    {"output_kms_key", "output.kms_key"},
    {"disable_output_compression", "output.compression"},
    {"subnets", "network.subnets"},
    {"security_group_ids", "network.security_groups"},
    {"enable_network_isolation", "network.isolation"},
    {"encrypt_inter_container_traffic", "network.encrypt_traffic"},
    {"metric_definitions", "metrics"},
    {"enable_sagemaker_metrics", "metrics_time_series"},
    {"use_spot_instances", "spot"},
    {"checkpoint_s3_uri", "checkpoints.uri"},
    {"checkpoint_local_path", "checkpoints.local_path"},
    {"max_retry_attempts", "retries"},
    {"debugger_hook_config", "debugger"},
    {"disable_profiler", "profiler"},
    {"tensorboard_output_config", "tensorboard"},
    {"container_entry_point", "container.entrypoint"},
    {"container_arguments", "container.arguments"},
    {"enable_remote_debug", "remote_debug"},
    {"enable_infra_check", "infra_check"},
    {"enable_session_tag_chaining", "session_tag_chaining"},
    {"compiler_config", "compiler"},
    {"entry_point", "source.program"},
    {"source_dir", "source.folder"},
    {"dependencies", "source.dependencies"},
    {"code_location", "source.location"},
    {"container_log_level", "source.log_level"},
    {"model_uri", "model.uri"},
    {"model_channel_name", "model.channel"},
    {"model_dir", "framework.model_dir"},
    {"framework_version", "framework.version"},
};

/* ---- errors and warnings ---- */

static int refuse_at(job_reader *rd, const ty_doc *at, ty_code code, const char *message)
{
    if (at)
        return ty_doc_error(at, rd->err, code, NULL, "%s", message);
    ty_error_set(rd->err, code, "%s", message);
    return ty_error_at(rd->err, "%s", rd->job->file);
}

int ty_job_refuse(job_reader *rd, ty_field_id id, ty_code code, const char *fmt, ...)
{
    char message[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    return refuse_at(rd, rd->job->value[id].at, code, message);
}

int ty_job_refuse_item(job_reader *rd, const ty_jobspec_item *item, ty_field_id id, const char *fmt, ...)
{
    char message[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    return refuse_at(rd, item->value[id].at ? item->value[id].at : item->at, TY_E_CONFIG, message);
}

void ty_jobspec_warn(ty_jobspec *job, const char *text)
{
    if (job->n_warnings < TY_JOBSPEC_MAX_WARNINGS)
        job->warnings[job->n_warnings++] = text;
}

void ty_job_warn(job_reader *rd, const char *fmt, ...)
{
    char message[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    ty_jobspec_warn(rd->job, ty_arena_strdup(rd->a, message));
}

static void take_doubt(void *context, const ty_error *doubt)
{
    job_reader *rd = context;
    ty_job_warn(rd, "%s%s%s; %s", doubt->place, doubt->place[0] ? ": " : "", doubt->message, doubt->help);
}

/* ---- reading ---- */

static int refuse_renamed(job_reader *rd, const ty_doc *root)
{
    for (size_t i = 0; i < ty_doc_len(root); i++) {
        const ty_doc *d = ty_doc_at(root, i);
        for (size_t r = 0; d->key && r < sizeof renamed / sizeof renamed[0]; r++)
            if (strcmp(d->key, renamed[r].theirs) == 0) {
                ty_doc_error_key(d, rd->err, TY_E_UNKNOWN_KEY, NULL, "unknown key \"%s\"", d->key);
                return ty_error_help(rd->err, "the SDK's \"%s\" is \"%s\" here", d->key, renamed[r].ours);
            }
    }
    return 0;
}

static int read_item(job_reader *rd, const char *section, const char *what, const ty_doc *d, ty_jobspec_item *item)
{
    item->at = d;
    return ty_fields_read(section, what, d, item->value, rd->a, rd->err);
}

static int read_groups(job_reader *rd)
{
    const ty_doc *list = rd->job->value[TY_FIELD_INSTANCE_GROUPS].node;
    if (!list)
        return 0;
    if (ty_doc_expect(list, TY_DOC_LIST, rd->err) < 0)
        return ty_error_wrap(rd->err, "resources.instance_groups");
    rd->job->groups = TY_NEW_ARRAY(rd->a, ty_jobspec_item, list->n_items + 1);
    for (uint32_t i = 0; i < list->n_items; i++) {
        ty_jobspec_item *g = &rd->job->groups[rd->job->n_groups++];
        if (read_item(rd, "resources.instance_groups.*", "resources.instance_groups", &list->items[i], g) < 0)
            return -1;
        g->name = g->value[TY_FIELD_GROUP_NAME].text;
    }
    return 0;
}

static int read_channel(job_reader *rd, const char *name, const ty_doc *d)
{
    ty_jobspec_item *channel = &rd->job->channels[rd->job->n_channels++];
    channel->name = name;
    if (ty_form_check("channel", name, 0, 0, d, "name of a channel", rd->err) < 0)
        return -1;
    return read_item(rd, "inputs.*", ty_arena_printf(rd->a, "inputs.%s", name), d, channel);
}

/* Two more than the file has: model and code. */
static int read_channels(job_reader *rd)
{
    const ty_doc *map = rd->job->value[TY_FIELD_INPUTS].node;
    rd->job->channels = TY_NEW_ARRAY(rd->a, ty_jobspec_item, ty_doc_len(map) + 3);
    if (map && map->kind == TY_DOC_STRING)
        return read_channel(rd, "training", map);
    if (map && ty_doc_expect(map, TY_DOC_MAP, rd->err) < 0)
        return ty_error_wrap(rd->err, "inputs");
    for (size_t i = 0; i < ty_doc_len(map); i++)
        if (read_channel(rd, map->items[i].key, &map->items[i]) < 0)
            return -1;
    return 0;
}

static int read_all(job_reader *rd, const ty_doc *root)
{
    ty_field_value *values = rd->job->value;
    if (refuse_renamed(rd, root) < 0 || ty_fields_read("", "", root, values, rd->a, rd->err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (ty_fields_read(sections[i].name, sections[i].name, values[sections[i].node].node, values, rd->a, rd->err) <
            0)
            return -1;
    if (read_groups(rd) < 0 || read_channels(rd) < 0 || ty_job_check_maps(rd) < 0 || ty_job_derive(rd) < 0)
        return -1;
    if (ty_job_check_inputs(rd) < 0 || ty_job_check_cluster(rd) < 0)
        return -1;
    return ty_job_check_rest(rd);
}

int ty_jobspec_parse(const char *name, const char *text, size_t len, const char *folder, const ty_jobspec_world *world,
                     ty_arena *a, ty_jobspec *out, ty_error *err)
{
    ty_doc *root;
    ty_doc_limits limits = {.max_bytes = TY_JOBSPEC_MAX_BYTES};
    job_reader rd = {a, out, world, err};
    memset(out, 0, sizeof *out);
    out->file = ty_arena_strdup(a, name);
    out->folder = folder ? ty_arena_strdup(a, folder) : NULL;
    if (ty_yaml_parse(a, out->file, text, len, &limits, take_doubt, &rd, &root, err) < 0)
        return -1;
    return read_all(&rd, root);
}

int ty_jobspec_load(const char *path, const ty_jobspec_world *world, ty_arena *a, ty_jobspec *out, ty_error *err)
{
    ty_doc *root;
    ty_doc_limits limits = {.max_bytes = TY_JOBSPEC_MAX_BYTES};
    job_reader rd = {a, out, world, err};
    const char *slash = strrchr(path, '/');
    memset(out, 0, sizeof *out);
    out->file = ty_arena_strdup(a, path);
    out->folder = !slash ? "." : slash == path ? "/" : ty_arena_strndup(a, path, (size_t)(slash - path));
    if (ty_yaml_read(a, out->file, &limits, take_doubt, &rd, &root, err) < 0)
        return -1;
    return read_all(&rd, root);
}

/* ---- what the commands ask and add ---- */

const char *ty_jobspec_recipe_path(const ty_jobspec *job, ty_arena *a)
{
    const char *recipe = job->value[TY_FIELD_RECIPE].text, *folder = job->value[TY_FIELD_SOURCE_FOLDER].text;
    if (!recipe || !job->source.is_packed || !job->folder)
        return NULL;
    const char *base = folder ? ty_path_within(job->folder, folder, a) : job->folder;
    return ty_path_within(base, recipe, a);
}

void ty_jobspec_derive_node(ty_jobspec *job, ty_field_id id, const ty_doc *node, const char *origin)
{
    job->value[id].node = node;
    job->value[id].origin = origin;
}
