/* request.c - rows of fields.def to their places in the body; then what a row cannot say. */
#include "estimator_spec/request.h"

#include "base/json.h"
#include "estimator_spec/hyperparameters.h"
#include "estimator_spec/tree.h"

#include <stdlib.h>
#include <string.h>

typedef struct writer {
    const ty_jobspec *job;
    ty_arena *a;
    ty_doc body;
    ty_error *err;
} writer;

static const char *text_of(const writer *w, ty_field_id id)
{
    return w->job->value[id].text;
}

/* ---- by the table ---- */

static ty_doc value_of(writer *w, ty_field_id id, const ty_field_value *v)
{
    if (ty_fields[id].type == TY_FIELD_INT)
        return ty_tree_int(w->a, v->integer);
    if (ty_fields[id].type == TY_FIELD_BOOL)
        return ty_tree_bool(v->boolean);
    return ty_tree_string(w->a, v->text);
}

static bool is_sent(const ty_field_row *f, const ty_field_value *v)
{
    return f->send == TY_SEND_ALWAYS || (f->send == TY_SEND_GIVEN && ty_field_is_said(v)) ||
           (f->send == TY_SEND_TRUE && (v->boolean || v->integer != 0));
}

/* Rows of one kind of section into a map: the file's, or those of a channel or group. */
static void put_rows(writer *w, const char *item_section, const ty_field_value *values, ty_doc *map)
{
    for (int id = 0; id < TY_N_FIELDS; id++) {
        const ty_field_row *f = &ty_fields[id];
        bool is_item = strchr(f->section, '*') != NULL;
        bool wanted = item_section ? strcmp(f->section, item_section) == 0 : !is_item;
        if (wanted && f->body && f->body[0] != '#' && is_sent(f, &values[id]))
            ty_tree_put(w->a, map, f->body, value_of(w, (ty_field_id)id, &values[id]));
    }
}

static void put_list(writer *w, const char *path, const ty_doc *list, ty_doc *map)
{
    if (list)
        ty_tree_put(w->a, map, path, *list);
}

/* ---- lists and maps ---- */

static void put_groups(writer *w)
{
    ty_doc list = ty_tree_list();
    for (int i = 0; i < w->job->n_groups; i++) {
        ty_doc group = ty_tree_map();
        put_rows(w, "resources.instance_groups.*", w->job->groups[i].value, &group);
        ty_tree_add(w->a, &list, group);
    }
    if (list.n_items)
        ty_tree_put(w->a, &w->body, "ResourceConfig.InstanceGroups", list);
}

static ty_doc channel_of(writer *w, const ty_jobspec_item *c)
{
    static const ty_field_id of_s3[] = {TY_FIELD_CHANNEL_TYPE, TY_FIELD_CHANNEL_DISTRIBUTION};
    static const ty_field_id of_fs[] = {TY_FIELD_CHANNEL_FS_TYPE, TY_FIELD_CHANNEL_ACCESS};
    const ty_field_id *own = c->value[TY_FIELD_CHANNEL_FS].text ? of_fs : of_s3;
    ty_doc channel = ty_tree_map();
    ty_tree_put(w->a, &channel, "ChannelName", ty_tree_string(w->a, c->name));
    put_rows(w, "inputs.*", c->value, &channel);
    for (int i = 0; i < 2 && c->value[own[i]].text; i++)
        ty_tree_put(w->a, &channel, ty_fields[own[i]].body, ty_tree_string(w->a, c->value[own[i]].text));
    put_list(w, ty_fields[TY_FIELD_CHANNEL_ATTRIBUTES].body, c->value[TY_FIELD_CHANNEL_ATTRIBUTES].node, &channel);
    put_list(w, ty_fields[TY_FIELD_CHANNEL_GROUPS].body, c->value[TY_FIELD_CHANNEL_GROUPS].node, &channel);
    return channel;
}

static void put_channels(writer *w)
{
    ty_doc list = ty_tree_list();
    for (int i = 0; i < w->job->n_channels; i++)
        ty_tree_add(w->a, &list, channel_of(w, &w->job->channels[i]));
    if (list.n_items)
        ty_tree_put(w->a, &w->body, "InputDataConfig", list);
}

/* {loss: EXPRESSION} becomes [{"Name": "loss", "Regex": EXPRESSION}]. */
static void put_pairs(writer *w, ty_field_id id, const char *key_name, const char *value_name)
{
    const ty_doc *map = w->job->value[id].node;
    ty_doc list = ty_tree_list();
    for (size_t i = 0; i < ty_doc_len(map); i++) {
        ty_doc pair = ty_tree_map();
        ty_tree_put(w->a, &pair, key_name, ty_tree_string(w->a, map->items[i].key));
        ty_tree_put(w->a, &pair, value_name, ty_tree_string(w->a, map->items[i].raw));
        ty_tree_add(w->a, &list, pair);
    }
    if (map)
        ty_tree_put(w->a, &w->body, ty_fields[id].body, list);
}

static int compare_keys(const void *x, const void *y)
{
    return strcmp(((const ty_doc *)x)->key, ((const ty_doc *)y)->key);
}

static void put_environment(writer *w)
{
    const ty_doc *map = w->job->value[TY_FIELD_ENVIRONMENT].node;
    ty_doc out = ty_tree_map();
    for (size_t i = 0; i < ty_doc_len(map); i++)
        ty_tree_put_key(w->a, &out, map->items[i].key, ty_tree_string(w->a, map->items[i].raw));
    if (out.n_items)
        qsort(out.items, out.n_items, sizeof *out.items, compare_keys);
    if (map)
        ty_tree_put(w->a, &w->body, "Environment", out);
}

static int put_hyperparameters(writer *w)
{
    ty_hyperparameter *list;
    int n;
    ty_doc map = ty_tree_map();
    if (ty_hyperparameters(w->job, w->a, &list, &n, w->err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        ty_tree_put_key(w->a, &map, list[i].name, ty_tree_string(w->a, list[i].text));
    if (n)
        ty_tree_put(w->a, &w->body, "HyperParameters", map);
    return 0;
}

/* ---- what has a rule of its own ---- */

static void put_output(writer *w)
{
    ty_tree_put(w->a, &w->body, "OutputDataConfig.S3OutputPath",
                ty_tree_string(w->a, text_of(w, TY_FIELD_OUTPUT_PATH)));
    if (strcmp(text_of(w, TY_FIELD_OUTPUT_COMPRESSION), "NONE") == 0)
        ty_tree_put(w->a, &w->body, "OutputDataConfig.CompressionType", ty_tree_string(w->a, "NONE"));
}

/* The SDK turns both on; what is not wanted is left out for the debugger and said for the profiler. */
static void put_debugging(writer *w)
{
    const char *output = text_of(w, TY_FIELD_OUTPUT_PATH);
    if (w->job->has_debugger) {
        ty_tree_put(w->a, &w->body, "DebugHookConfig.S3OutputPath", ty_tree_string(w->a, output));
        ty_tree_put(w->a, &w->body, "DebugHookConfig.CollectionConfigurations", ty_tree_list());
    }
    if (w->job->has_profiler)
        ty_tree_put(w->a, &w->body, "ProfilerConfig.S3OutputPath", ty_tree_string(w->a, output));
    ty_tree_put(w->a, &w->body, "ProfilerConfig.DisableProfiler", ty_tree_bool(!w->job->has_profiler));
}

static void put_rest(writer *w)
{
    const ty_field_value *v = w->job->value;
    if (v[TY_FIELD_METRICS_TIME_SERIES].origin)
        ty_tree_put(w->a, &w->body, ty_fields[TY_FIELD_METRICS_TIME_SERIES].body,
                    ty_tree_bool(v[TY_FIELD_METRICS_TIME_SERIES].boolean));
    put_list(w, ty_fields[TY_FIELD_ENTRYPOINT].body, v[TY_FIELD_ENTRYPOINT].node, &w->body);
    put_list(w, ty_fields[TY_FIELD_ARGUMENTS].body, v[TY_FIELD_ARGUMENTS].node, &w->body);
    put_list(w, ty_fields[TY_FIELD_SUBNETS].body, v[TY_FIELD_SUBNETS].node, &w->body);
    put_list(w, ty_fields[TY_FIELD_SECURITY_GROUPS].body, v[TY_FIELD_SECURITY_GROUPS].node, &w->body);
}

int ty_jobspec_request(const ty_jobspec *job, ty_arena *a, ty_doc *out, ty_error *err)
{
    writer w = {job, a, ty_tree_map(), err};
    ty_tree_put(a, &w.body, "TrainingJobName", ty_tree_string(a, text_of(&w, TY_FIELD_NAME)));
    ty_tree_put(a, &w.body, "RoleArn", ty_tree_string(a, text_of(&w, TY_FIELD_ROLE)));
    put_rows(&w, NULL, job->value, &w.body);
    put_pairs(&w, TY_FIELD_METRICS, "Name", "Regex");
    put_rest(&w);
    put_groups(&w);
    put_channels(&w);
    put_output(&w);
    put_environment(&w);
    put_pairs(&w, TY_FIELD_TAGS, "Key", "Value");
    put_debugging(&w);
    if (put_hyperparameters(&w) < 0)
        return -1;
    const ty_doc *patch = job->value[TY_FIELD_REQUEST].node;
    *out = patch ? ty_tree_patched(a, &w.body, patch) : w.body;
    return 0;
}

void ty_json_add_lines(ty_buf *out, const ty_doc *d, int indent)
{
    bool is_map = d->kind == TY_DOC_MAP;
    if ((!is_map && d->kind != TY_DOC_LIST) || d->n_items == 0) {
        ty_json_add_doc(out, d, TY_JSON_SPACED);
        return;
    }
    ty_buf_addc(out, is_map ? '{' : '[');
    for (uint32_t i = 0; i < d->n_items; i++) {
        ty_buf_addf(out, "%s\n%*s", i ? "," : "", indent + 2, "");
        if (is_map) {
            ty_json_add_string(out, d->items[i].key, TY_JSON_SPACED);
            ty_buf_adds(out, ": ");
        }
        ty_json_add_lines(out, &d->items[i], indent + 2);
    }
    ty_buf_addf(out, "\n%*s%c", indent, "", is_map ? '}' : ']');
}
