/* check_inputs.c - channels: what the service refuses once the machines are paid for. */
#include "estimator_spec/job_parts.h"

#include <string.h>

static bool has(const ty_jobspec_item *c, ty_field_id id)
{
    return ty_field_is_said(&c->value[id]);
}

static bool is(const ty_jobspec_item *c, ty_field_id id, const char *word)
{
    return c->value[id].text && strcmp(c->value[id].text, word) == 0;
}

static int refuse_file(job_reader *rd, const ty_jobspec_item *c)
{
    ty_job_refuse_item(rd, c, TY_FIELD_CHANNEL_S3,
                       "channel \"%s\": \"%s\" lies on this machine, where the service "
                       "does not find it",
                       c->name, c->value[TY_FIELD_CHANNEL_S3].text);
    return ty_error_help(rd->err, "write s3://BUCKET/KEY, and the folder here as \"local\" beside it for "
                                  "`trainyard local`");
}

/* Keys that only channels from S3, or only those from a file system, have. */
static int check_kind(job_reader *rd, const ty_jobspec_item *c)
{
    static const ty_field_id of_s3[] = {TY_FIELD_CHANNEL_TYPE,       TY_FIELD_CHANNEL_DISTRIBUTION,
                                        TY_FIELD_CHANNEL_ATTRIBUTES, TY_FIELD_CHANNEL_GROUPS,
                                        TY_FIELD_CHANNEL_EULA,       TY_FIELD_CHANNEL_HUB};
    static const ty_field_id of_fs[] = {TY_FIELD_CHANNEL_FS_TYPE, TY_FIELD_CHANNEL_DIRECTORY, TY_FIELD_CHANNEL_ACCESS};
    bool s3 = has(c, TY_FIELD_CHANNEL_S3), fs = has(c, TY_FIELD_CHANNEL_FS);
    if (s3 && !rd->world->is_local && strncmp(c->value[TY_FIELD_CHANNEL_S3].text, "file://", 7) == 0)
        return refuse_file(rd, c);
    if (rd->world->is_local && !s3 && !fs && has(c, TY_FIELD_CHANNEL_LOCAL))
        return 0;
    if (s3 == fs)
        return ty_job_refuse_item(rd, c, TY_FIELD_CHANNEL_FS,
                                  "channel \"%s\": expected one of \"s3\" and "
                                  "\"file_system\", found %s",
                                  c->name, s3 ? "both" : "neither");
    for (size_t i = 0; fs && i < sizeof of_s3 / sizeof of_s3[0]; i++)
        if (has(c, of_s3[i]))
            return ty_job_refuse_item(rd, c, of_s3[i],
                                      "channel \"%s\": \"%s\" goes with \"s3\", not with "
                                      "\"file_system\"",
                                      c->name, ty_fields[of_s3[i]].key);
    for (size_t i = 0; s3 && i < sizeof of_fs / sizeof of_fs[0]; i++)
        if (has(c, of_fs[i]))
            return ty_job_refuse_item(rd, c, of_fs[i],
                                      "channel \"%s\": \"%s\" goes with \"file_system\", not with "
                                      "\"s3\"",
                                      c->name, ty_fields[of_fs[i]].key);
    return 0;
}

static int check_file_system(job_reader *rd, const ty_jobspec_item *c, const char *mode)
{
    if (!has(c, TY_FIELD_CHANNEL_FS) || rd->world->is_local)
        return 0;
    if (!has(c, TY_FIELD_CHANNEL_FS_TYPE) || !has(c, TY_FIELD_CHANNEL_DIRECTORY))
        return ty_job_refuse_item(rd, c, TY_FIELD_CHANNEL_FS,
                                  "channel \"%s\": a file system needs \"file_system_type\" "
                                  "(EFS or FSxLustre) and \"directory\"",
                                  c->name);
    if (strcmp(mode, "File") != 0)
        return ty_job_refuse_item(rd, c, TY_FIELD_CHANNEL_MODE,
                                  "channel \"%s\": a file system goes with input mode File, "
                                  "found %s",
                                  c->name, mode);
    if (!ty_jobspec_has(rd->job, TY_FIELD_SUBNETS))
        return ty_job_refuse_item(rd, c, TY_FIELD_CHANNEL_FS,
                                  "channel \"%s\": a file system is reached through a VPC: "
                                  "network.subnets and network.security_groups are missing",
                                  c->name);
    return 0;
}

static int check_mode(job_reader *rd, const ty_jobspec_item *c, const char *mode)
{
    static const ty_field_id of_pipe[] = {TY_FIELD_CHANNEL_COMPRESSION, TY_FIELD_CHANNEL_WRAPPER,
                                          TY_FIELD_CHANNEL_SEED};
    for (size_t i = 0; strcmp(mode, "Pipe") != 0 && i < sizeof of_pipe / sizeof of_pipe[0]; i++)
        if (has(c, of_pipe[i]) && !is(c, of_pipe[i], "None"))
            return ty_job_refuse_item(rd, c, of_pipe[i], "channel \"%s\": \"%s\" goes with input mode Pipe, found %s",
                                      c->name, ty_fields[of_pipe[i]].key, mode);
    if (strcmp(mode, "FastFile") == 0 && has(c, TY_FIELD_CHANNEL_S3) && !is(c, TY_FIELD_CHANNEL_TYPE, "S3Prefix"))
        return ty_job_refuse_item(rd, c, TY_FIELD_CHANNEL_TYPE,
                                  "channel \"%s\": input mode FastFile goes with type "
                                  "S3Prefix, found %s",
                                  c->name, c->value[TY_FIELD_CHANNEL_TYPE].text);
    if (has(c, TY_FIELD_CHANNEL_ATTRIBUTES) && !is(c, TY_FIELD_CHANNEL_TYPE, "AugmentedManifestFile"))
        return ty_job_refuse_item(rd, c, TY_FIELD_CHANNEL_ATTRIBUTES,
                                  "channel \"%s\": \"attributes\" goes with type "
                                  "AugmentedManifestFile, found %s",
                                  c->name, c->value[TY_FIELD_CHANNEL_TYPE].text);
    return 0;
}

static int check_groups(job_reader *rd, const ty_jobspec_item *c)
{
    const ty_doc *groups = c->value[TY_FIELD_CHANNEL_GROUPS].node;
    for (size_t i = 0; i < ty_doc_len(groups); i++) {
        bool found = false;
        for (int g = 0; g < rd->job->n_groups; g++)
            found = found || (rd->job->groups[g].name && groups->items[i].string &&
                              strcmp(rd->job->groups[g].name, groups->items[i].string) == 0);
        if (!found)
            return ty_doc_error(&groups->items[i], rd->err, TY_E_CONFIG, NULL,
                                "channel \"%s\": there is no instance group \"%s\"", c->name,
                                groups->items[i].string ? groups->items[i].string : "");
    }
    return 0;
}

static int check_names(job_reader *rd, int i)
{
    const ty_jobspec_item *c = &rd->job->channels[i];
    for (int k = 0; k < i; k++)
        if (strcmp(rd->job->channels[k].name, c->name) == 0)
            return ty_job_refuse_item(rd, &rd->job->channels[k], TY_FIELD_CHANNEL_S3,
                                      "channel \"%s\" is needed for what %s says", c->name,
                                      c->value[TY_FIELD_CHANNEL_S3].origin);
    return 0;
}

int ty_job_check_inputs(job_reader *rd)
{
    if (rd->job->n_channels > 20)
        return ty_job_refuse(rd, TY_FIELD_INPUTS, TY_E_LIMIT,
                             "expected at most 20 channels, found %d with those of "
                             "model and source",
                             rd->job->n_channels);
    for (int i = 0; i < rd->job->n_channels; i++) {
        const ty_jobspec_item *c = &rd->job->channels[i];
        const char *own = c->value[TY_FIELD_CHANNEL_MODE].text, *mode = own ? own : job_text(rd, TY_FIELD_INPUT_MODE);
        if (check_names(rd, i) < 0 || check_kind(rd, c) < 0 || check_file_system(rd, c, mode) < 0 ||
            check_mode(rd, c, mode) < 0 || check_groups(rd, c) < 0)
            return -1;
    }
    return 0;
}
