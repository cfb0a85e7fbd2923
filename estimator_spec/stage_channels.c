/* stage_channels.c - where a channel's content is, who gets what of it, and inputdataconfig.json. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/json.h"
#include "estimator_spec/pack.h"
#include "estimator_spec/stage_parts.h"
#include "estimator_spec/tree.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what a channel is ---- */

static const ty_doc *channel_at(const ty_stage *s, size_t i)
{
    return ty_doc_at(ty_doc_find(s->body, "InputDataConfig"), i);
}

static size_t n_channels(const ty_stage *s)
{
    return ty_doc_len(ty_doc_find(s->body, "InputDataConfig"));
}

static const char *mode_of(const ty_stage *s, const ty_doc *channel)
{
    const char *own = ty_stage_text(channel, "InputMode");
    const char *all = ty_stage_text(s->body, "AlgorithmSpecification.TrainingInputMode");
    return own ? own : all ? all : "File";
}

static bool is_sharded(const ty_doc *channel)
{
    const char *how = ty_stage_text(channel, "DataSource.S3DataSource.S3DataDistributionType");
    return how && strcmp(how, "ShardedByS3Key") == 0;
}

static bool is_for(const ty_doc *channel, const ty_stage_host *h)
{
    const ty_doc *groups =
        ty_doc_find(ty_doc_find(ty_doc_find(channel, "DataSource"), "S3DataSource"), "InstanceGroupNames");
    for (size_t i = 0; i < ty_doc_len(groups); i++)
        if (strcmp(ty_doc_at(groups, i)->string, h->group) == 0)
            return true;
    return ty_doc_len(groups) == 0;
}

/* ---- where its content is ---- */

static const char *beside_job(const ty_stage *s, const char *path, ty_arena *a)
{
    if (strncmp(path, "file://", 7) == 0)
        path += 7;
    return path[0] == '/' || !s->job->folder ? path : ty_arena_printf(a, "%s/%s", s->job->folder, path);
}

static bool is_source(const ty_stage *s, const char *uri)
{
    return uri && s->job->source.is_packed && strcmp(uri, s->job->source.uri) == 0;
}

/* A path of this machine; NULL: it has to be fetched or packed. */
static const char *path_of(const ty_stage *s, const ty_doc *channel, ty_arena *a)
{
    const char *name = ty_stage_text(channel, "ChannelName");
    const char *uri = ty_stage_text(channel, "DataSource.S3DataSource.S3Uri");
    for (int i = 0; i < s->n_inputs; i++)
        if (strcmp(s->inputs[i].channel, name) == 0)
            return strncmp(s->inputs[i].path, "file://", 7) == 0 ? s->inputs[i].path + 7 : s->inputs[i].path;
    for (int i = 0; i < s->job->n_channels; i++) {
        const char *local = s->job->channels[i].value[TY_FIELD_CHANNEL_LOCAL].text;
        if (local && strcmp(s->job->channels[i].name, name) == 0)
            return beside_job(s, local, a);
    }
    return uri && strncmp(uri, "file://", 7) == 0 ? beside_job(s, uri, a) : NULL;
}

static int refuse(const char *name, ty_error *err, const char *why)
{
    ty_error_set(err, TY_E_CHANNEL, "channel \"%s\": %s", name, why);
    return ty_error_help(err, "give a folder of this machine: --input %s=FOLDER, or inputs.%s.local in the job file",
                         name, name);
}

static int check_channel(const ty_stage *s, const ty_doc *channel, ty_arena *a, ty_error *err)
{
    const char *name = ty_stage_text(channel, "ChannelName"), *path = path_of(s, channel, a);
    const char *uri = ty_stage_text(channel, "DataSource.S3DataSource.S3Uri");
    const char *type = ty_stage_text(channel, "DataSource.S3DataSource.S3DataType");
    if (path && !ty_file_exists(path))
        return ty_error_set(err, TY_E_CHANNEL, "channel \"%s\": there is no \"%s\"", name, path);
    if (path || is_source(s, uri))
        return 0;
    if (!uri)
        return refuse(name, err, "it lies in a file system that is not here");
    if (type && strcmp(type, "S3Prefix") != 0)
        return refuse(name, err, ty_arena_printf(a, "type %s is not read here", type));
    return 0;
}

static int check_input(const ty_stage *s, const ty_stage_input *input, ty_error *err)
{
    for (size_t i = 0; i < n_channels(s); i++)
        if (strcmp(ty_stage_text(channel_at(s, i), "ChannelName"), input->channel) == 0)
            return 0;
    return ty_error_set(err, TY_E_USAGE, "--input: the job has no channel \"%s\"", input->channel);
}

int ty_stage_check_channels(const ty_stage *s, ty_arena *a, ty_error *err)
{
    for (int i = 0; i < s->n_inputs; i++)
        if (check_input(s, &s->inputs[i], err) < 0)
            return -1;
    for (size_t i = 0; i < n_channels(s); i++)
        if (check_channel(s, channel_at(s, i), a, err) < 0)
            return -1;
    return 0;
}

static int pack_source(const ty_stage *s, const char *folder, ty_arena *a, ty_error *err)
{
    ty_packed_file *files;
    int n;
    if (ty_pack_list(s->job, a, &files, &n, err) < 0)
        return -1;
    return ty_pack_save(files, n, ty_arena_printf(a, "%s/sourcedir.tar.gz", folder), err);
}

/* The content's absolute path, fetched or packed if it has to be. */
static int bring(const ty_stage *s, const ty_doc *channel, const char **out, ty_arena *a, ty_error *err)
{
    const char *name = ty_stage_text(channel, "ChannelName"), *path = path_of(s, channel, a);
    const char *uri = ty_stage_text(channel, "DataSource.S3DataSource.S3Uri");
    char real[PATH_MAX];
    if (!path) {
        path = ty_arena_printf(a, "%s/channels/%s", s->folder, name);
        if (ty_file_mkdirs(path, 0755, err) < 0)
            return -1;
        int rc = is_source(s, uri) ? pack_source(s, path, a, err)
                 : s->fetch        ? s->fetch(s->ctx, uri, path, err)
                                   : refuse(name, err, ty_arena_printf(a, "it lies in S3 (%s)", uri));
        if (rc < 0)
            return -1;
    }
    if (!realpath(path, real))
        return ty_error_errno(err, TY_E_CHANNEL, errno, "channel \"%s\": \"%s\"", name, path);
    *out = ty_arena_strdup(a, real);
    return 0;
}

/* ---- what a host gets of it ---- */

static int give_file(const ty_stage *s, const char *from, const char *to, ty_arena *a, ty_error *err)
{
    const char *slash = strrchr(to, '/');
    if (ty_file_mkdirs(ty_arena_strndup(a, to, (size_t)(slash - to)), 0755, err) < 0)
        return -1;
    if (!s->in_containers)
        return symlink(from, to) == 0 ? 0 : ty_error_errno(err, TY_E_CREATE, errno, "\"%s\"", to);
    return ty_file_share(from, to, err);
}

/* Every n-th object of the list, as keys are sorted. */
static int give_share(const ty_stage *s, const char *from, const char *to, int share, int n_shares, ty_arena *a,
                      ty_error *err)
{
    ty_packed_file *files;
    int n, object = 0;
    if (ty_pack_list_folder(from, a, &files, &n, err) < 0 || ty_file_mkdirs(to, 0755, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        if (files[i].is_folder || object++ % n_shares != share)
            continue;
        if (give_file(s, files[i].path, ty_arena_printf(a, "%s/%s", to, files[i].name), a, err) < 0)
            return -1;
    }
    return 0;
}

static int give_folder(const ty_stage *s, ty_stage_host *h, const char *from, const char *name, ty_arena *a,
                       ty_error *err)
{
    const char *to = ty_arena_printf(a, "%s/input/data/%s", h->tree, name);
    if (!s->in_containers)
        return symlink(from, to) == 0 ? 0 : ty_error_errno(err, TY_E_CREATE, errno, "\"%s\"", to);
    h->mounts[h->n_mounts++] = (ty_stage_mount){from, ty_arena_printf(a, "/opt/ml/input/data/%s", name), false};
    return ty_file_mkdirs(to, 0755, err);
}

static bool is_piped(const ty_stage *s, const ty_doc *channel)
{
    return strcmp(mode_of(s, channel), "Pipe") == 0;
}

static const char *attributes_of(const ty_doc *channel, ty_arena *a)
{
    const ty_doc *list = ty_tree_find(channel, "DataSource.S3DataSource.AttributeNames");
    const char *out = NULL;
    for (size_t i = 0; i < ty_doc_len(list); i++)
        out = out ? ty_arena_printf(a, "%s,%s", out, ty_doc_at(list, i)->string) : ty_doc_at(list, i)->string;
    return out;
}

static void give_feed(ty_stage_host *h, const ty_doc *channel, const char *from, int share, int n_shares, ty_arena *a)
{
    const char *wrapper = ty_stage_text(channel, "RecordWrapperType");
    const char *compression = ty_stage_text(channel, "CompressionType");
    const ty_doc *seed = ty_tree_find(channel, "ShuffleConfig.Seed");
    h->feeds[h->n_feeds++] = (ty_stage_feed){.channel = ty_stage_text(channel, "ChannelName"),
                                             .from = from,
                                             .share = share,
                                             .n_shares = n_shares,
                                             .wraps = wrapper && strcmp(wrapper, "RecordIO") == 0,
                                             .inflates = compression && strcmp(compression, "Gzip") == 0,
                                             .seed = seed ? seed->raw : NULL,
                                             .attributes = attributes_of(channel, a)};
}

static int give(const ty_stage *s, const ty_doc *channel, const char *from, ty_arena *a, ty_error *err)
{
    const char *name = ty_stage_text(channel, "ChannelName");
    bool is_folder = ty_file_is_folder(from);
    int share = 0, n_shares = 0, rc = 0;
    for (int i = 0; i < s->n_hosts; i++)
        n_shares += is_for(channel, &s->hosts[i]);
    for (int i = 0; i < s->n_hosts && rc == 0; i++) {
        ty_stage_host *h = &s->hosts[i];
        const char *to = ty_arena_printf(a, "%s/input/data/%s", h->tree, name);
        if (!is_for(channel, h))
            continue;
        int mine = share++;
        if (is_piped(s, channel))
            give_feed(h, channel, from, is_sharded(channel) ? mine : 0, is_sharded(channel) ? n_shares : 1, a);
        else if (!is_folder && is_sharded(channel) && mine > 0)
            rc = ty_file_mkdirs(to, 0755, err); /* one object, which the first host has */
        else if (!is_folder)
            rc = give_file(s, from, ty_arena_printf(a, "%s%s", to, strrchr(from, '/')), a, err);
        else if (is_sharded(channel) && n_shares > 1)
            rc = give_share(s, from, to, mine, n_shares, a, err);
        else
            rc = give_folder(s, h, from, name, a, err);
    }
    return rc;
}

/* ---- what it is told ---- */

static void put_channel(const ty_stage *s, ty_json_writer *w, const ty_doc *channel)
{
    const char *wrapper = ty_stage_text(channel, "RecordWrapperType");
    ty_json_open_map(w, ty_stage_text(channel, "ChannelName"));
    if (ty_stage_text(channel, "ContentType"))
        ty_json_put_string(w, "ContentType", ty_stage_text(channel, "ContentType"));
    ty_json_put_string(w, "TrainingInputMode", mode_of(s, channel));
    ty_json_put_string(w, "S3DistributionType", is_sharded(channel) ? "ShardedByS3Key" : "FullyReplicated");
    ty_json_put_string(w, "RecordWrapperType", wrapper ? wrapper : "None");
    ty_json_close(w);
}

static int write_channels(const ty_stage *s, const ty_stage_host *h, ty_arena *a, ty_error *err)
{
    ty_buf text;
    ty_json_writer w;
    ty_buf_init(&text, 1 << 20);
    ty_json_writer_init(&w, &text, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    for (size_t i = 0; i < n_channels(s); i++)
        if (is_for(channel_at(s, i), h))
            put_channel(s, &w, channel_at(s, i));
    ty_json_close(&w);
    ty_buf_addc(&text, '\n');
    int rc = text.failed ? ty_error_set(err, TY_E_LIMIT, "inputdataconfig.json is too large")
                         : ty_file_write(ty_arena_printf(a, "%s/input/config/inputdataconfig.json", h->tree), text.data,
                                         text.len, 0644, err);
    ty_buf_fini(&text);
    return rc;
}

int ty_stage_lay_channels(ty_stage *s, ty_arena *a, ty_error *err)
{
    for (size_t i = 0; i < n_channels(s); i++) {
        const char *from;
        if (bring(s, channel_at(s, i), &from, a, err) < 0 || give(s, channel_at(s, i), from, a, err) < 0)
            return -1;
    }
    for (int i = 0; i < s->n_hosts; i++)
        if (write_channels(s, &s->hosts[i], a, err) < 0)
            return -1;
    return 0;
}
