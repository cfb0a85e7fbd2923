/* hf.c - see hf.h. Opening: config.json, the family and head that it names, the lists; weights are hf_bind.c's. */
#include "compiler/import/huggingface/hf.h"

#include "base/json.h"
#include "compiler/import/huggingface/hf_config.h"
#include "compiler/import/huggingface/hf_files.h"
#include "compiler/import/huggingface/hf_model.h"
#include "compiler/import/huggingface/hf_recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FREE_TRAIN = 4, FREE_EVAL = 8 }; /* small: a table of positions may be */

/* ---- building ---------------------------------------------------------------------------------------------------- */

bool hf_failed(const hf_net *n)
{
    return ((const cmodel_net *)n->net)->failed;
}

void hf_fail(hf_net *n, const ty_error *err)
{
    cmodel_net *net = (cmodel_net *)n->net;
    if (net->failed)
        return;
    net->error = *err;
    net->failed = true;
}

static void run_head(ty_net *face)
{
    hf_net *n = ((cmodel_net *)face)->builder;
    n->net = face;
    n->range = hf_number(n, "initializer_range", 0.02);
    n->head->build(n);
}

static void build_network(void *ctx, cmodel_net *net)
{
    const ty_hf *h = ctx;
    hf_net n = h->net;
    net->builder = &n;
    cmodel_build(net, run_head);
    if (net->failed)
        ty_error_at(&net->error, "%s", h->path);
}

static cmodel_source source_of(const ty_hf *h)
{
    return (cmodel_source){h->path, build_network, (void *)(uintptr_t)h, FREE_TRAIN, FREE_EVAL};
}

/* ---- config.json ------------------------------------------------------------------------------------------------- */

#define HF_MODEL(model_type, family) extern const hf_family hf_family_##family;
#include "compiler/import/huggingface/hf_models.def"
#undef HF_MODEL

static const struct {
    const char *model_type;
    const hf_family *family;
} hf_models[] = {
#define HF_MODEL(model_type, family) {model_type, &hf_family_##family},
#include "compiler/import/huggingface/hf_models.def"
#undef HF_MODEL
};

static int refuse_type(const ty_doc *d, const char *type, ty_error *err)
{
    char known[400] = "";
    for (size_t i = 0; i < sizeof hf_models / sizeof *hf_models; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", hf_models[i].model_type);
    ty_doc_error(d, err, TY_E_UNSUPPORTED, NULL, "the network \"%.60s\" cannot be built from its configuration", type);
    return ty_error_help(err, "known are %s; any other can be exported to ONNX", known);
}

static int find_family(ty_hf *h, ty_error *err)
{
    const ty_doc *d = ty_doc_find(h->config, "model_type");
    const char *type;
    if (!d)
        return ty_doc_error(h->config, err, TY_E_MODEL_FILE, NULL, "expected a key \"model_type\", found none");
    if (ty_doc_string(d, &type, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof hf_models / sizeof *hf_models; i++)
        if (strcmp(hf_models[i].model_type, type) == 0) {
            h->net.family = hf_models[i].family;
            return 0;
        }
    return refuse_type(d, type, err);
}

/* The class that is meant: the caller's, else the file's first. */
static int wanted_class(const ty_hf *h, const ty_model_choice *choice, const char **out, ty_error *err)
{
    const ty_doc *list = ty_doc_find(h->config, "architectures"), *first = ty_doc_at(list, 0);
    if (choice->architecture) {
        *out = choice->architecture;
        return 0;
    }
    if (first && list->kind == TY_DOC_LIST)
        return ty_doc_string(first, out, err);
    ty_doc_error(h->config, err, TY_E_MODEL_FILE, NULL, "expected a key \"architectures\" with a class, found none");
    return ty_error_help(err, "say which is meant: architecture: %sForSequenceClassification",
                         h->net.family->class_name);
}

/* "BertForSequenceClassification", "ForSequenceClassification" and "SequenceClassification" mean the same head. */
static bool is_head(const hf_family *f, const hf_head *head, const char *wanted)
{
    size_t n = strlen(f->class_name);
    bool is_for = strncmp(head->suffix, "For", 3) == 0;
    if (strncmp(wanted, f->class_name, n) == 0 && strcmp(wanted + n, head->suffix) == 0)
        return true;
    return strcmp(wanted, head->suffix) == 0 || (is_for && strcmp(wanted, head->suffix + 3) == 0);
}

static int refuse_class(const ty_hf *h, const char *wanted, ty_error *err)
{
    char known[400] = "";
    const hf_family *f = h->net.family;
    for (const hf_head *head = f->head; head->suffix; head++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s%s", head == f->head ? "" : ", ",
                 f->class_name, head->suffix);
    ty_error_set(err, TY_E_UNSUPPORTED, "the class \"%.80s\" cannot be built from its configuration", wanted);
    ty_error_at(err, "%s", h->path);
    return ty_error_help(err, "known are %s: name one by the key `architecture`", known);
}

static int find_head(ty_hf *h, const ty_model_choice *choice, ty_error *err)
{
    const char *wanted;
    const hf_family *f = h->net.family;
    if (wanted_class(h, choice, &wanted, err) < 0)
        return -1;
    for (const hf_head *head = f->head; head->suffix; head++)
        if (is_head(f, head, wanted)) {
            h->net.head = head;
            h->class_name = ty_arena_printf(&h->arena, "%s%s", f->class_name, head->suffix);
            return 0;
        }
    return refuse_class(h, wanted, err);
}

bool hf_has_classes(const ty_hf *h)
{
    return h->net.head->task == HF_CLASSES || h->net.head->task == HF_TOKENS;
}

static int find_labels(ty_hf *h, const ty_model_choice *choice, ty_error *err)
{
    h->labels_given = choice->labels > 0;
    h->net.labels = choice->labels;
    if (h->labels_given && !hf_has_classes(h)) {
        ty_error_set(err, TY_E_CONFIG, "labels: %s has no classes", h->class_name);
        return ty_error_help(err,
                             "leave the key out, or name a class that has: architecture: "
                             "%sForSequenceClassification",
                             h->net.family->class_name);
    }
    return h->labels_given || !hf_has_classes(h) ? 0 : hf_config_labels(h->config, &h->net.labels, err);
}

/* Those that are said to be; or fields of the data, where the words are one of them. */
static void find_inputs(ty_hf *h, const ty_model_choice *choice)
{
    bool named = false;
    for (int i = 0; choice->n_inputs == 0 && i < choice->n_fields; i++)
        named = named || strcmp(choice->fields[i], HF_INPUT_IDS) == 0;
    const char *const *from = named ? choice->fields : choice->inputs;
    const int n = named ? choice->n_fields : choice->n_inputs;
    const char **inputs = TY_NEW_ARRAY(&h->arena, const char *, n + 1);
    for (int i = 0; i < n; i++)
        inputs[i] = ty_arena_strdup(&h->arena, from[i]);
    h->net.inputs = inputs;
    h->net.n_inputs = n;
}

static int read_config(ty_hf *h, const ty_model_choice *choice, ty_error *err)
{
    if (ty_json_read(&h->arena, h->path, NULL, &h->config, err) < 0 || ty_doc_expect(h->config, TY_DOC_MAP, err) < 0 ||
        find_family(h, err) < 0 || find_head(h, choice, err) < 0 || find_labels(h, choice, err) < 0)
        return -1;
    find_inputs(h, choice);
    h->net.config = h->config;
    snprintf(h->format, sizeof h->format, "Hugging Face %s", h->class_name);
    return 0;
}

bool ty_hf_is_mapped(const ty_hf *h)
{
    return hf_weights_are_mapped(h->weights);
}

void ty_hf_drop_pages(const ty_hf *h)
{
    hf_weights_drop_pages(h->weights);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The config.json that is meant, in at most n bytes. */
static bool config_path(const char *path, char *out, size_t n)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int length = ty_file_is_folder(path)             ? snprintf(out, n, "%s/" HF_CONFIG_NAME, path)
                 : strcmp(name, HF_CONFIG_NAME) == 0 ? snprintf(out, n, "%s", path)
                                                     : 0;
    return length > 0 && (size_t)length < n && ty_file_exists(out);
}

/* Keras' configurations have the same name, and a class_name. */
bool ty_hf_matches(const char *path)
{
    char config[4096];
    ty_arena a;
    ty_doc *d = NULL;
    if (!config_path(path, config, sizeof config))
        return false;
    ty_arena_init(&a);
    bool is_ours = ty_json_read(&a, config, NULL, &d, NULL) == 0 && ty_doc_find(d, "model_type");
    ty_arena_fini(&a);
    return is_ours;
}

/* An empty model of this path. */
static ty_hf *new_model(const char *path, ty_error *err)
{
    char config[4096];
    ty_hf *h = calloc(1, sizeof *h);
    if (!h || !config_path(path, config, sizeof config)) {
        free(h);
        ty_error_set(err, TY_E_LIMIT, "no memory for a model, or its path is too long");
        return NULL;
    }
    ty_arena_init(&h->arena);
    h->path = ty_arena_strdup(&h->arena, config);
    bool is_here = strcmp(config, HF_CONFIG_NAME) == 0;
    h->folder = is_here ? "." : ty_arena_strndup(&h->arena, config, strlen(config) - strlen("/" HF_CONFIG_NAME));
    return h;
}

/* Where positions begin behind the padding's row, texts are shorter than the table. */
static int fit_positions(ty_hf *h, ty_error *err)
{
    double pad;
    if (!h->net.family->places_behind_pad || h->preparation.max_length == 0)
        return 0;
    if (hf_config_number(h->config, "pad_token_id", (double)h->net.family->pad, &pad, err) < 0)
        return -1;
    int64_t most = h->preparation.max_length - (int64_t)pad - 1;
    h->preparation.max_length = most > 1 ? most : 1;
    return 0;
}

static ty_label_kind labels_of(hf_task task)
{
    return task == HF_TOKENS      ? TY_LABELS_TAGS
           : task == HF_WORDS     ? TY_LABELS_HIDDEN
           : task == HF_NEXT      ? TY_LABELS_NEXT
           : task == HF_TEXT      ? TY_LABELS_TEXT
           : task == HF_QUESTIONS ? TY_LABELS_ANSWER
                                  : TY_LABELS_GIVEN;
}

/* What is to be known of labels. */
static int prepare_labels(ty_hf *h, ty_error *err)
{
    double start;
    if (hf_config_number(h->config, "decoder_start_token_id", -1, &start, err) < 0)
        return -1;
    h->preparation.labels = labels_of(h->net.head->task);
    h->preparation.start = start >= 0 && start <= INT32_MAX ? (int64_t)start : -1;
    return 0;
}

static int open_all(ty_hf *h, const ty_model_choice *choice, ty_error *err)
{
    const cmodel_source source = source_of(h);
    cmodel_net *net = TY_NEW(&h->arena, cmodel_net);
    h->net.model = h;
    if (read_config(h, choice, err) < 0 || hf_weights_open(h->folder, &h->weights, err) < 0 ||
        cmodel_list_all(&source, &h->arena, net, &h->lists, err) < 0 || hf_bind(h, net, choice->seed, err) < 0)
        return -1;
    h->lists.format = h->format;
    h->companion = hf_files_list(h->folder, &h->arena, &h->n_companions);
    if (hf_files_prepare(h->folder, h->config, &h->arena, &h->preparation, err) < 0)
        return -1;
    h->preparation.is_turned = h->net.family->is_turned;
    return prepare_labels(h, err) < 0 ? -1 : fit_positions(h, err);
}

int ty_hf_open(const char *path, const ty_model_choice *choice, ty_hf **out, ty_error *err)
{
    ty_hf *h = new_model(path, err);
    *out = NULL;
    if (!h)
        return -1;
    if (open_all(h, choice, err) < 0) {
        ty_hf_free(h);
        return -1;
    }
    *out = h;
    return 0;
}

void ty_hf_free(ty_hf *h)
{
    if (!h)
        return;
    hf_weights_free(h->weights);
    for (int i = 0; i < h->n_started; i++)
        free(h->started[i].out);
    ty_arena_fini(&h->arena);
    free(h);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

const ty_cmodel_lists *ty_hf_list(const ty_hf *h)
{
    return &h->lists;
}

int ty_hf_import(const ty_hf *h, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err)
{
    const cmodel_source source = source_of(h);
    return cmodel_import_bound(&source, &h->lists, g, b, values, err);
}

const char *ty_hf_class(const ty_hf *h)
{
    return h->class_name;
}

const char *ty_hf_recipe(const ty_hf *h)
{
    return hf_recipe(h->net.head->task, h->net.labels, h->config);
}

int ty_hf_read_recipe(const char *path, const ty_model_choice *choice, ty_arena *a, const char **out, ty_error *err)
{
    ty_hf *h = new_model(path, err);
    *out = NULL;
    if (!h)
        return -1;
    int rc = read_config(h, choice, err);
    const char *text = rc == 0 ? ty_hf_recipe(h) : NULL;
    *out = text ? ty_arena_strdup(a, text) : NULL;
    ty_hf_free(h);
    return rc;
}

int ty_hf_write_config(const ty_hf *h, const char *const *names, int64_t n, ty_buf *out, ty_error *err)
{
    const int64_t labels = hf_has_classes(h) ? h->net.labels : 0;
    const hf_config_change change = {h->class_name, labels, n > 0 && n == labels ? names : NULL};
    return hf_config_write(h->config, &change, out, err);
}

const ty_model_preparation *ty_hf_preparation(const ty_hf *h)
{
    return &h->preparation;
}

const char *const *ty_hf_companions(const ty_hf *h, int *n)
{
    *n = h->n_companions;
    return h->companion;
}
