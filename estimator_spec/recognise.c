/* recognise.c - a body, member by member, into keys of a job file. */
#include "estimator_spec/recognise.h"

#include "base/json.h"
#include "estimator_spec/fields.h"
#include "estimator_spec/tree.h"

#include <string.h>

#define CODE_CHANNEL "/opt/ml/input/data/code/sourcedir.tar.gz"
#define MODEL_TYPE   "application/x-sagemaker-model"

enum { MAX_VALUE = 2500 }; /* of a hyperparameter, the service's limit in characters; longer ones are not looked into */

typedef struct recogniser {
    const ty_doc *body;
    const ty_recognise_as *as;
    ty_arena *a;
    ty_doc job;
    bool code_is_source;
} recogniser;

static bool is_text(const ty_doc *d)
{
    return d && d->kind == TY_DOC_STRING;
}

static bool is_word(const ty_doc *d, const char *word)
{
    return is_text(d) && strcmp(d->string, word) == 0;
}

static void put(recogniser *r, ty_field_id id, ty_doc value)
{
    ty_tree_put(r->a, &r->job, ty_field_path(id, r->a), value);
}

static void put_text(recogniser *r, ty_field_id id, const char *text)
{
    put(r, id, ty_tree_string(r->a, text));
}

/* ---- one value ---- */

static bool is_choice(const char *choices, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = choices; n > 0 && (p = strstr(p, word)); p += n)
        if ((p == choices || p[-1] == '|') && (p[n] == '|' || p[n] == 0))
            return true;
    return false;
}

static bool is_text_list(const ty_doc *d, const ty_field_row *f)
{
    if (d->kind != TY_DOC_LIST || d->n_items == 0 || (f->max > 0 && d->n_items > f->max))
        return false;
    for (uint32_t i = 0; i < d->n_items; i++)
        if (!is_text(&d->items[i]))
            return false;
    return true;
}

/* Whether the key of a row takes this value. */
static bool is_taken(const ty_field_row *f, const ty_doc *d)
{
    ty_error refusal = {0};
    switch (f->type) {
    case TY_FIELD_INT:
        return d->kind == TY_DOC_INT &&
               ((f->min == 0 && f->max == 0) || ((double)d->integer >= f->min && (double)d->integer <= f->max));
    case TY_FIELD_BOOL:
        return d->kind == TY_DOC_BOOL;
    case TY_FIELD_CHOICE:
        return is_text(d) && is_choice(f->form, d->string);
    case TY_FIELD_NODE:
        return is_text_list(d, f);
    case TY_FIELD_TEXT:
    case TY_FIELD_WORD:
        return is_text(d) && ty_form_check(f->form, d->string, f->min, f->max, d, f->key, &refusal) == 0;
    }
    return false;
}

static bool is_default(const ty_field_row *f, const ty_doc *d)
{
    return f->fallback && d->kind != TY_DOC_LIST && d->kind != TY_DOC_MAP && strcmp(f->fallback, d->raw) == 0;
}

/* ---- rows ---- */

/* What has a function of its own below, or says itself in another way. */
static bool is_own(ty_field_id id)
{
    static const ty_field_id own[] = {
        TY_FIELD_METRICS, TY_FIELD_METRICS_TIME_SERIES, TY_FIELD_TAGS, TY_FIELD_DEBUGGER, TY_FIELD_PROFILER,
        TY_FIELD_INPUTS,  TY_FIELD_INSTANCE_GROUPS};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (own[i] == id)
            return true;
    return false;
}

static void take_rows(recogniser *r)
{
    for (int id = 0; id < TY_N_FIELDS; id++) {
        const ty_field_row *f = &ty_fields[id];
        if (!f->body || f->body[0] == '#' || strchr(f->section, '*') || is_own((ty_field_id)id))
            continue;
        const ty_doc *d = ty_tree_find(r->body, f->body);
        if (d && is_taken(f, d) && !is_default(f, d))
            put(r, (ty_field_id)id, *d);
    }
}

/* Rows of a channel or group that are in d, as a map. */
static ty_doc take_item(recogniser *r, const char *section, const ty_doc *d)
{
    ty_doc item = ty_tree_map();
    for (int id = 0; id < TY_N_FIELDS; id++) {
        const ty_field_row *f = &ty_fields[id];
        if (!f->body || strcmp(f->section, section) != 0)
            continue;
        const ty_doc *value = ty_tree_find(d, f->body);
        if (value && is_taken(f, value) && !is_default(f, value))
            ty_tree_put_key(r->a, &item, f->key, *value);
    }
    return item;
}

/* The SDK's default output is not said. */
static void drop_default_output(recogniser *r)
{
    const ty_doc *role = ty_tree_find(r->body, "RoleArn"),
                 *path = ty_tree_find(r->body, "OutputDataConfig.S3OutputPath");
    const char *account = is_text(role) ? strstr(role->string, ":iam::") : NULL;
    ty_doc *output = (ty_doc *)ty_tree_find(&r->job, "output");
    if (!account || !output || !r->as->region)
        return;
    if (is_word(path, ty_arena_printf(r->a, "s3://sagemaker-%s-%.12s/", r->as->region, account + 6)))
        ty_tree_remove(output, "path");
    if (output->n_items == 0)
        ty_tree_remove(&r->job, "output");
}

static void take_groups(recogniser *r)
{
    const ty_doc *groups = ty_tree_find(r->body, "ResourceConfig.InstanceGroups");
    ty_doc list = ty_tree_list();
    for (size_t i = 0; i < ty_doc_len(groups); i++)
        ty_tree_add(r->a, &list, take_item(r, "resources.instance_groups.*", &groups->items[i]));
    if (list.n_items)
        put(r, TY_FIELD_INSTANCE_GROUPS, list);
}

/* ---- maps ---- */

/* [{"Name": "loss", "Regex": X}] as {loss: X}, unless it is not such a list, or a name stands twice in it. */
static void take_pairs(recogniser *r, ty_field_id id, const char *key_name, const char *value_name)
{
    const ty_doc *list = ty_tree_find(r->body, ty_fields[id].body);
    ty_doc map = ty_tree_map();
    if (!list || list->kind != TY_DOC_LIST || (double)list->n_items > ty_fields[id].max)
        return;
    for (uint32_t i = 0; i < list->n_items; i++) {
        const ty_doc *key = ty_tree_find(&list->items[i], key_name), *value = ty_tree_find(&list->items[i], value_name);
        if (!is_text(key) || !is_text(value) || list->items[i].n_items != 2 || ty_doc_find(&map, key->string))
            return;
        ty_tree_put_key(r->a, &map, key->string, *value);
    }
    put(r, id, map);
}

static void take_environment(recogniser *r)
{
    const ty_doc *map = ty_tree_find(r->body, "Environment");
    ty_doc out = ty_tree_map();
    for (uint32_t i = 0; map && map->kind == TY_DOC_MAP && i < map->n_items; i++)
        if (is_text(&map->items[i]) && ty_form_fits("variable", map->items[i].key))
            ty_tree_put_key(r->a, &out, map->items[i].key, map->items[i]);
    if (map && map->kind == TY_DOC_MAP)
        put(r, TY_FIELD_ENVIRONMENT, out);
}

/* ---- hyperparameters of the platform ---- */

/* The value of a hyperparameter, out of its JSON; NULL if there is none, or it is no JSON. */
static const ty_doc *decode(const ty_doc *body, const char *name, ty_arena *a)
{
    const ty_doc *map = ty_doc_find(body, "HyperParameters"), *text = ty_doc_find(map, name);
    ty_doc_limits limits = {.max_depth = TY_JSON_MAX_DEPTH / 4};
    ty_error refusal = {0};
    ty_doc *value;
    if (!is_text(text) || strlen(text->string) > MAX_VALUE ||
        ty_json_parse(a, name, text->string, strlen(text->string), &limits, &value, &refusal) < 0)
        return NULL;
    return value;
}

const char *ty_recognise_hyperparameter(const ty_doc *body, const char *name, ty_arena *a)
{
    const ty_doc *d = decode(body, name, a);
    return is_text(d) ? d->string : NULL;
}

/* Rows of distribution and compiler whose place is a hyperparameter. A section's first row is its switch: it is said,
 * since without it there would be no section. */
static void take_sections(recogniser *r)
{
    bool compiles = decode(r->body, "sagemaker_training_compiler_enabled", r->a) != NULL;
    for (int id = 0; id < TY_N_FIELDS; id++) {
        const ty_field_row *f = &ty_fields[id];
        if (!f->body || f->body[0] != '#' || f->send == TY_SEND_OWN || (id == TY_FIELD_XLA_ENABLED && !compiles))
            continue;
        const ty_doc *d = decode(r->body, f->body + 1, r->a);
        if (d && is_taken(f, d) && (strcmp(f->key, "enabled") == 0 || !is_default(f, d)))
            put(r, (ty_field_id)id, *d);
    }
}

static void take_strategies(recogniser *r)
{
    static const struct {
        ty_field_id id;
        bool for_pytorch;
    } torch[] = {{TY_FIELD_TORCH_ENABLED, true}, {TY_FIELD_DDP_ENABLED, false}};
    const ty_doc *options = decode(r->body, ty_fields[TY_FIELD_SMDDP_OPTIONS].body + 1, r->a);
    const ty_doc *groups = decode(r->body, ty_fields[TY_FIELD_DIST_GROUPS].body + 1, r->a);
    bool is_pytorch = strcmp(r->as->framework, "pytorch") == 0;
    if (is_text(options) && options->string[0] && is_taken(&ty_fields[TY_FIELD_SMDDP_OPTIONS], options))
        put(r, TY_FIELD_SMDDP_OPTIONS, *options);
    for (size_t i = 0; i < sizeof torch / sizeof torch[0]; i++) {
        const ty_doc *on = decode(r->body, ty_fields[torch[i].id].body + 1, r->a);
        if (on && on->kind == TY_DOC_BOOL && on->boolean && (torch[i].for_pytorch || !is_pytorch))
            put(r, torch[i].id, *on);
    }
    if (groups && is_taken(&ty_fields[TY_FIELD_DIST_GROUPS], groups) &&
        ty_doc_len(ty_tree_find(&r->job, "resources.instance_groups")) != 1)
        put(r, TY_FIELD_DIST_GROUPS, *groups);
}

/* ---- source and channels ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n > k && strcmp(text + n - k, end) == 0;
}

/* The archive lies in S3: named by the hyperparameter, or by the channel `code`, the last one, where that is what the
 * container reads. */
static void take_source(recogniser *r)
{
    const char *program = ty_recognise_hyperparameter(r->body, "sagemaker_program", r->a);
    const char *uri = ty_recognise_hyperparameter(r->body, "sagemaker_submit_directory", r->a);
    const ty_doc *level = decode(r->body, "sagemaker_container_log_level", r->a);
    const ty_doc *list = ty_tree_find(r->body, "InputDataConfig"), *code = ty_doc_at(list, ty_doc_len(list) - 1);
    if (!program || !uri || !*program || strlen(program) > ty_fields[TY_FIELD_PROGRAM].max)
        return;
    if (code && !is_word(ty_tree_find(code, "ChannelName"), "code"))
        code = NULL;
    const ty_doc *lies = code ? ty_tree_find(code, "DataSource.S3DataSource.S3Uri") : NULL;
    bool by_channel = strcmp(uri, CODE_CHANNEL) == 0 && is_text(lies);
    if (by_channel)
        uri = lies->string;
    if (!ty_form_fits("s3", uri) || strlen(uri) > ty_fields[TY_FIELD_SOURCE_URI].max)
        return;
    bool is_recipe =
        strcmp(r->as->framework, "trainyard") == 0 && (ends_with(program, ".yaml") || ends_with(program, ".yml"));
    r->code_is_source = by_channel;
    put_text(r, is_recipe ? TY_FIELD_RECIPE : TY_FIELD_PROGRAM, program);
    put_text(r, TY_FIELD_SOURCE_URI, uri);
    if (level && is_taken(&ty_fields[TY_FIELD_LOG_LEVEL], level) && !is_default(&ty_fields[TY_FIELD_LOG_LEVEL], level))
        put(r, TY_FIELD_LOG_LEVEL, *level);
}

/* A channel as `model: URI` makes it; it stands behind all others but the code's. */
static bool is_model(const ty_doc *channel)
{
    const ty_doc *s3 = ty_tree_find(channel, "DataSource.S3DataSource");
    return is_word(ty_tree_find(channel, "ContentType"), MODEL_TYPE) &&
           is_word(ty_tree_find(channel, "InputMode"), "File") && channel->n_items == 4 && ty_doc_len(s3) == 3 &&
           is_text(ty_tree_find(s3, "S3Uri"));
}

static void take_model(recogniser *r, const ty_doc *channel)
{
    const ty_doc *name = ty_tree_find(channel, "ChannelName");
    put(r, TY_FIELD_MODEL_URI, *ty_tree_find(channel, "DataSource.S3DataSource.S3Uri"));
    if (!is_default(&ty_fields[TY_FIELD_MODEL_CHANNEL], name))
        put(r, TY_FIELD_MODEL_CHANNEL, *name);
}

/* `train: s3://bucket/key` for a channel that says no more. */
static ty_doc shorten(ty_doc item, const char *first)
{
    return item.n_items == 1 && strcmp(item.items[0].key, first) == 0 ? item.items[0] : item;
}

/* Channels whose names no key can have are left to the patch, with all others: lists are replaced whole. */
static void take_channels(recogniser *r)
{
    const ty_doc *list = ty_tree_find(r->body, "InputDataConfig");
    ty_doc inputs = ty_tree_map();
    size_t n = ty_doc_len(list);
    n -= r->code_is_source;
    for (size_t i = 0; i < n; i++) {
        const ty_doc *name = ty_tree_find(&list->items[i], "ChannelName");
        if (!is_text(name) || !ty_form_fits("channel", name->string) || ty_doc_find(&inputs, name->string))
            return;
        if (i + 1 == n && is_model(&list->items[i]))
            take_model(r, &list->items[i]);
        else
            ty_tree_put_key(r->a, &inputs, name->string, shorten(take_item(r, "inputs.*", &list->items[i]), "s3"));
    }
    bool is_one = inputs.n_items == 1 && strcmp(inputs.items[0].key, "training") == 0 && is_text(&inputs.items[0]);
    if (inputs.n_items)
        put(r, TY_FIELD_INPUTS, is_one ? inputs.items[0] : inputs);
}

/* ---- framework and region ---- */

/* "2.11" of "2.11.0-gpu-py39": digits and dots that a text begins with, if that is a version. */
static const char *leading_version(recogniser *r, const char *text)
{
    const char *version = ty_arena_strndup(r->a, text, strspn(text, "0123456789."));
    return strlen(version) <= 16 && ty_form_fits("version", version) ? version : NULL;
}

/* Images of the platform have the versions in their tag: 2.11.0-gpu-py39, 1.10.2-transformers4.17.0-gpu-py38. */
static void take_framework(recogniser *r)
{
    const ty_doc *image = ty_tree_find(r->body, "AlgorithmSpecification.TrainingImage");
    const char *slash = is_text(image) ? strrchr(image->string, '/') : NULL, *tag = slash ? strchr(slash, ':') : NULL;
    bool hugging_face = strcmp(r->as->framework, "huggingface") == 0;
    if (strcmp(r->as->framework, "trainyard") == 0)
        return;
    put_text(r, TY_FIELD_FRAMEWORK_NAME, r->as->framework);
    if (!tag || strcmp(r->as->framework, "generic") == 0 || !strstr(slash, r->as->framework))
        return;
    const char *version = leading_version(r, tag + 1), *transformers = strstr(tag, "transformers");
    const char *own =
        hugging_face && transformers ? leading_version(r, transformers + strlen("transformers")) : version;
    ty_field_id base = strstr(slash, "tensorflow") ? TY_FIELD_TENSORFLOW_VERSION : TY_FIELD_PYTORCH_VERSION;
    if (own && (!hugging_face || transformers))
        put_text(r, TY_FIELD_FRAMEWORK_VERSION, own);
    if (hugging_face && version)
        put_text(r, base, version);
}

const char *ty_recognise_region(const ty_doc *body, const char *arn, ty_arena *a)
{
    const ty_doc *output = ty_tree_find(body, "OutputDataConfig.S3OutputPath");
    const ty_doc *image = ty_tree_find(body, "AlgorithmSpecification.TrainingImage");
    const char *region = ty_recognise_hyperparameter(body, "sagemaker_region", a);
    for (int colon = 0; arn && !region && colon < 3; colon++)
        arn = strchr(arn, ':') ? strchr(arn, ':') + 1 : NULL;
    if (!region && arn)
        region = ty_arena_strndup(a, arn, strcspn(arn, ":"));
    /* s3://sagemaker-REGION-ACCOUNT/ */
    if (!region && is_text(output) && strncmp(output->string, "s3://sagemaker-", 15) == 0) {
        const char *end = strchr(output->string + 15, '/');
        if (end && end - output->string > 15 + 13)
            region = ty_arena_strndup(a, output->string + 15, (size_t)(end - output->string) - 15 - 13);
    }
    /* ACCOUNT.dkr.ecr.REGION.amazonaws.com/ */
    const char *mark = !region && is_text(image) ? strstr(image->string, ".dkr.ecr.") : NULL;
    if (mark)
        region = ty_arena_strndup(a, mark + 9, strcspn(mark + 9, "./"));
    return region && strlen(region) <= ty_fields[TY_FIELD_REGION].max && ty_form_fits("region", region) ? region : NULL;
}

/* ---- all ---- */

/* `output: s3://bucket/key` for sections of which only the first key is given, where that reads well. */
static void shorten_sections(recogniser *r, ty_doc *map, const char *path)
{
    static const struct {
        const char *section, *first;
    } short_ones[] = {{"framework", "name"},
                      {"output", "path"},
                      {"checkpoints", "uri"},
                      {"model", "uri"},
                      {"compiler", "enabled"},
                      {"distribution.mpi", "enabled"},
                      {"distribution.smdistributed.dataparallel", "enabled"},
                      {"distribution.parameter_server", "enabled"},
                      {"distribution.multi_worker_mirrored_strategy", "enabled"},
                      {"distribution.torch_distributed", "enabled"},
                      {"distribution.pytorchddp", "enabled"},
                      {"distribution.pytorchxla", "enabled"}};
    for (uint32_t i = 0; i < map->n_items; i++) {
        ty_doc *d = &map->items[i];
        const char *here = *path ? ty_arena_printf(r->a, "%s.%s", path, d->key) : d->key, *key = d->key;
        for (size_t k = 0; d->kind == TY_DOC_MAP && k < sizeof short_ones / sizeof short_ones[0]; k++)
            if (strcmp(here, short_ones[k].section) == 0) {
                *d = shorten(*d, short_ones[k].first);
                d->key = key;
            }
        if (d->kind == TY_DOC_MAP && strncmp(here, "distribution", 12) == 0)
            shorten_sections(r, d, here);
    }
}

ty_doc ty_recognise(const ty_doc *body, const ty_recognise_as *as, ty_arena *a)
{
    recogniser r = {.body = body, .as = as, .a = a, .job = ty_tree_map()};
    take_rows(&r);
    if (as->region)
        put_text(&r, TY_FIELD_REGION, as->region);
    drop_default_output(&r);
    take_framework(&r);
    take_groups(&r);
    if (!as->plain)
        take_source(&r);
    take_channels(&r);
    if (!as->plain) {
        take_sections(&r);
        take_strategies(&r);
    }
    take_environment(&r);
    take_pairs(&r, TY_FIELD_TAGS, "Key", "Value");
    take_pairs(&r, TY_FIELD_METRICS, "Name", "Regex");
    shorten_sections(&r, &r.job, "");
    return r.job;
}

/* ---- what the request shows ---- */

static bool same(const ty_doc *x, const ty_doc *y)
{
    return x && y ? ty_tree_equal(x, y) : x == y;
}

static void rest_of_switches(recogniser *r, const ty_doc *made)
{
    const ty_doc *series = ty_tree_find(r->body, ty_fields[TY_FIELD_METRICS_TIME_SERIES].body);
    const ty_doc *off = ty_tree_find(r->body, "ProfilerConfig.DisableProfiler");
    const ty_doc *is_off = ty_tree_find(made, "ProfilerConfig.DisableProfiler");
    if (series && series->kind == TY_DOC_BOOL &&
        !same(series, ty_tree_find(made, ty_fields[TY_FIELD_METRICS_TIME_SERIES].body)))
        put(r, TY_FIELD_METRICS_TIME_SERIES, *series);
    if (!ty_tree_find(r->body, "DebugHookConfig") && ty_tree_find(made, "DebugHookConfig"))
        put(r, TY_FIELD_DEBUGGER, ty_tree_bool(false));
    if (off && off->kind == TY_DOC_BOOL && off->boolean && !same(off, is_off))
        put(r, TY_FIELD_PROFILER, ty_tree_bool(false));
}

/* TensorFlow's estimator derives it; what was sent may be another, or none. */
static void rest_of_model_dir(recogniser *r, const ty_doc *made)
{
    const char *sent = ty_recognise_hyperparameter(r->body, "model_dir", r->a);
    const char *derived = ty_recognise_hyperparameter(made, "model_dir", r->a);
    if (!derived || (sent && strcmp(sent, derived) == 0))
        return;
    bool is_said = sent && *sent && strcmp(sent, "false") != 0 && strlen(sent) <= ty_fields[TY_FIELD_MODEL_DIR].max;
    ty_doc *framework = (ty_doc *)ty_tree_find(&r->job, "framework");
    if (is_text(framework)) {
        ty_doc map = ty_tree_map();
        ty_tree_put_key(r->a, &map, "name", *framework);
        ty_tree_put_key(r->a, &r->job, "framework", map);
    }
    if (is_said)
        put_text(r, TY_FIELD_MODEL_DIR, sent);
    else
        put(r, TY_FIELD_MODEL_DIR, ty_tree_bool(false));
}

/* Texts as JSON that is written the same way are values, others texts. */
static bool is_value(const ty_doc *value, const char *text)
{
    ty_buf out;
    ty_buf_init(&out, strlen(text) + 1);
    ty_json_add_doc(&out, value, TY_JSON_PYTHON);
    bool whole = !out.failed && strcmp(out.data, text) == 0;
    ty_buf_fini(&out);
    return whole;
}

/* Whether the keys so far send a hyperparameter of this name, with whatever value. */
static bool is_sent(const recogniser *r, const ty_doc *made, const char *name)
{
    const ty_doc *dir = ty_tree_find(&r->job, "framework.model_dir");
    if (dir && strcmp(name, "model_dir") == 0)
        return dir->kind == TY_DOC_STRING;
    return ty_doc_find(ty_doc_find(made, "HyperParameters"), name) != NULL;
}

static void rest_of_hyperparameters(recogniser *r, const ty_doc *made)
{
    const ty_doc *map = ty_doc_find(r->body, "HyperParameters");
    ty_doc values = ty_tree_map(), texts = ty_tree_map();
    for (uint32_t i = 0; map && map->kind == TY_DOC_MAP && i < map->n_items; i++) {
        const ty_doc *d = &map->items[i], *value = decode(r->body, d->key, r->a);
        if (!is_text(d) || is_sent(r, made, d->key))
            continue;
        if (value && is_value(value, d->string))
            ty_tree_put_key(r->a, &values, d->key, *value);
        else
            ty_tree_put_key(r->a, &texts, d->key, *d);
    }
    if (values.n_items)
        put(r, TY_FIELD_HYPERPARAMETERS, values);
    if (texts.n_items)
        put(r, TY_FIELD_RAW_HYPERPARAMETERS, texts);
}

void ty_recognise_rest(const ty_doc *body, const ty_doc *made, const ty_recognise_as *as, ty_doc *job, ty_arena *a)
{
    recogniser r = {.body = body, .as = as, .a = a, .job = *job};
    rest_of_switches(&r, made);
    rest_of_model_dir(&r, made);
    rest_of_hyperparameters(&r, made);
    if (!same(ty_tree_find(body, "InputDataConfig"), ty_tree_find(made, "InputDataConfig"))) {
        ty_tree_remove(&r.job, "inputs");
        ty_tree_remove(&r.job, "model");
    }
    *job = r.job;
}
