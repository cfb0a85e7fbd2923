/* train_case.h - a case of a folder like shared/data/train-cases as tests/tools/train_cases.c holds it, and how its
 * recipe becomes a ty_train_spec. What cannot be read ends the process, which is the case's own.
 */
#ifndef TY_TESTS_TRAIN_CASE_H
#define TY_TESTS_TRAIN_CASE_H

#include "base/json.h"
#include "compiler/compiler.h"
#include "container/input/npy.h"
#include "tests/unit/exchange_threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_INPUTS 16
#define MAX_TERMS  4
#define SKIPPED    77 /* exit status: nothing computes an op of the case on a GPU */

typedef struct settings {
    bool verbose, grid, tf32, strict;
    ty_backend backend;
    int threads, replicas, n_gpus, n_ranks;
    bool shard;
    int64_t bucket_bytes; /* 0: 4096 */
    ty_dtype wire;
    ty_cross_device cross_device;
    const char *dump, *cuda, *cache;
    ty_precision precision;
    double within; /* relative, of the curve of losses in mixed precision */
} settings;

typedef struct test_case {
    ty_arena arena;
    const char *folder;
    const ty_doc *recipe, *expected;
    ty_model *model;
    ty_train_spec spec;
    ty_loss_term term[MAX_TERMS];
    ty_binding binding[MAX_INPUTS];
    ty_tensor stack[MAX_INPUTS]; /* all batches of an input: [N, batch, ...] */
    int64_t n_batches;
    int64_t steps;
    ty_program *program; /* of rank 0 */
    ty_program *rank[EXCHANGE_MAX_REPLICAS];
    exchange_group group;
    exchange_member member[EXCHANGE_MAX_REPLICAS];
    settings set;
    int n_faults;
    double worst[5]; /* largest share of the tolerance, by kind */
} test_case;

enum { WORST_LOSS, WORST_LR, WORST_NORM, WORST_EVAL, WORST_WEIGHT };

/* ---- small things ---------------------------------------------------------------------------------------------------
 */

static void die(const char *what, const ty_error *err)
{
    char text[6000];
    ty_error_format(err, text, sizeof text);
    printf("  %s: %s\n", what, text);
    fflush(stdout);
    _exit(1);
}

static const char *path_in(test_case *c, const char *name)
{
    return ty_arena_printf(&c->arena, "%s/%s", c->folder, name);
}

static double number(const ty_doc *map, const char *key, double absent)
{
    double v = absent;
    const ty_doc *d = ty_doc_find(map, key);
    ty_error err;
    if (d && ty_doc_float(d, &v, &err) < 0)
        die(key, &err);
    return v;
}

static bool flag(const ty_doc *map, const char *key)
{
    bool v = false;
    const ty_doc *d = ty_doc_find(map, key);
    ty_error err;
    if (d && ty_doc_bool(d, &v, &err) < 0)
        die(key, &err);
    return v;
}

static const char *text(const ty_doc *map, const char *key)
{
    const ty_doc *d = ty_doc_find(map, key);
    return d && d->kind == TY_DOC_STRING ? d->string : NULL;
}

/* Row of a table of names; dies if there is none. */
static int row_of(const char *what, const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (name && names[i] && strcmp(name, names[i]) == 0) /* names that no case has are left out */
            return i;
    ty_error err;
    ty_error_set(&err, TY_E_CONFIG, "unknown %s \"%s\"", what, name ? name : "");
    die("recipe.yaml", &err);
    return -1;
}

/* ---- names ----------------------------------------------------------------------------------------------------------
 */

/* The weight of the model that PyTorch calls so: by `names`, else by itself. NULL if the file has none. */
static const ty_model_value *weight_of(const test_case *c, const char *pytorch, bool *transposed)
{
    const ty_doc *names = ty_doc_find(c->recipe, "names");
    *transposed = false;
    for (size_t i = 0; i < ty_doc_len(names); i++) {
        const ty_doc *entry = ty_doc_at(names, i);
        if (strcmp(text(entry, "tensor"), pytorch) == 0) {
            *transposed = flag(entry, "transposed");
            pytorch = entry->key;
            break;
        }
    }
    for (int i = 0; i < ty_model_n_weights(c->model); i++)
        if (strcmp(ty_model_weight(c->model, i)->name, pytorch) == 0)
            return ty_model_weight(c->model, i);
    return NULL;
}

/* A list of PyTorch's names as names of the file; what the file has not is left out. NULL-terminated. */
static const char *const *name_list(test_case *c, const ty_doc *list, int *n)
{
    const char **out = TY_NEW_ARRAY(&c->arena, const char *, ty_doc_len(list) + 1);
    int count = 0;
    for (size_t i = 0; i < ty_doc_len(list); i++) {
        bool transposed;
        const ty_model_value *w = weight_of(c, ty_doc_at(list, i)->string, &transposed);
        if (w)
            out[count++] = w->name;
    }
    if (n)
        *n = count;
    return out;
}

static const char *const *plain_list(test_case *c, const ty_doc *list, int *n)
{
    const char **out = TY_NEW_ARRAY(&c->arena, const char *, ty_doc_len(list) + 1);
    for (size_t i = 0; i < ty_doc_len(list); i++)
        out[i] = ty_doc_at(list, i)->string;
    *n = (int)ty_doc_len(list);
    return out;
}

/* ---- recipe to spec -------------------------------------------------------------------------------------------------
 */

/* Among how many GPUs or ranks a batch is divided. */
static int n_parts(const test_case *c)
{
    return c->set.n_gpus > 1 ? c->set.n_gpus : c->set.n_ranks > 1 ? c->set.n_ranks : 1;
}

/* The part of a batch that one of them gets. */
static void divide(test_case *c, ty_type *batch)
{
    int n = n_parts(c);
    if (batch->dim[0] % n) {
        printf("skip: %s: %" PRId64 " rows for %d replicas\n", c->folder, batch->dim[0], n);
        fflush(stdout);
        exit(SKIPPED);
    }
    batch->dim[0] /= n;
}

static void add_input(test_case *c, const char *name, const char *file)
{
    for (int i = 0; i < c->spec.n_inputs; i++)
        if (strcmp(c->binding[i].name, name) == 0)
            return;
    int k = c->spec.n_inputs++;
    ty_error err;
    if (k == MAX_INPUTS || ty_npy_read(path_in(c, file), &c->stack[k], &err) < 0)
        die(file, &err);
    const ty_type *all = &c->stack[k].type;
    c->binding[k] = (ty_binding){name, ty_type_make((ty_dtype)all->dtype, all->rank - 1, all->dim + 1)};
    c->n_batches = all->dim[0];
    if (n_parts(c) > 1 && all->rank > 1)
        divide(c, &c->binding[k].type);
}

static void read_term(test_case *c, const ty_doc *d)
{
    static const char *const kinds[TY_N_LOSS_KINDS] = {
        "mse", "mae", "huber", "binary_cross_entropy_with_logits", "softmax_cross_entropy", "nll", "kl_div", "mean"};
    ty_loss_term *t = &c->term[c->spec.n_loss++];
    const ty_doc *classes = ty_doc_find(d, "class_weights");
    double *weights = TY_NEW_ARRAY(&c->arena, double, ty_doc_len(classes) + 1);
    ty_error err;
    for (size_t i = 0; i < ty_doc_len(classes); i++)
        if (ty_doc_float(ty_doc_at(classes, i), &weights[i], &err) < 0)
            die("class_weights", &err);
    *t = (ty_loss_term){.kind = (ty_loss_kind)row_of("loss", text(d, "type"), kinds, TY_N_LOSS_KINDS),
                        .output = text(d, "output"),
                        .target = text(d, "target"),
                        .sample_weight = text(d, "sample_weights"),
                        .weight = number(d, "weight", 1),
                        .delta = number(d, "delta", 1),
                        .pos_weight = number(d, "pos_weight", 1),
                        .label_smoothing = number(d, "label_smoothing", 0),
                        .ignore_index = (int64_t)number(d, "ignore_index", -100),
                        .class_axis = (int)number(d, "class_axis", -1),
                        .class_weights = weights,
                        .n_class_weights = (int)ty_doc_len(classes)};
    if (t->target)
        add_input(c, t->target, t->target);
    if (t->sample_weight)
        add_input(c, t->sample_weight, t->sample_weight);
}

static ty_optimizer read_optimizer(const ty_doc *d)
{
    static const char *const kinds[TY_N_OPTIMIZER_KINDS] = {"sgd",    "adam",    "adamw",   "nadam",
                                                            "adamax", "rmsprop", "adagrad", "adadelta"};
    return (ty_optimizer){.kind = (ty_optimizer_kind)row_of("optimizer", text(d, "type"), kinds, TY_N_OPTIMIZER_KINDS),
                          .lr = number(d, "lr", 0),
                          .weight_decay = number(d, "weight_decay", 0),
                          .momentum = number(d, "momentum", 0),
                          .dampening = number(d, "dampening", 0),
                          .nesterov = flag(d, "nesterov"),
                          .amsgrad = flag(d, "amsgrad"),
                          .centered = flag(d, "centered"),
                          .beta1 = number(d, "beta1", 0),
                          .beta2 = number(d, "beta2", 0),
                          .eps = number(d, "eps", 0),
                          .alpha = number(d, "alpha", 0),
                          .rho = number(d, "rho", 0),
                          .momentum_decay = number(d, "momentum_decay", 0),
                          .lr_decay = number(d, "lr_decay", 0),
                          .initial_accumulator = number(d, "initial_accumulator", 0)};
}

static ty_schedule read_schedule(const ty_doc *d)
{
    static const char *const kinds[TY_N_SCHEDULE_KINDS] = {"constant",   "step",          "exponential",
                                                           "polynomial", "warmup_cosine", "one_cycle"};
    const char *anneal = text(d, "anneal");
    return (ty_schedule){.kind = (ty_schedule_kind)row_of("schedule", text(d, "type"), kinds, TY_N_SCHEDULE_KINDS),
                         .step_size = number(d, "step_size", 1),
                         .gamma = number(d, "gamma", 1),
                         .total = number(d, "total", 1),
                         .power = number(d, "power", 1),
                         .warmup = number(d, "warmup", 0),
                         .start_factor = number(d, "start_factor", 0),
                         .cosine = number(d, "cosine", 0),
                         .min_lr = number(d, "min_lr", 0),
                         .pct_start = number(d, "pct_start", 0),
                         .div_factor = number(d, "div_factor", 1),
                         .final_div_factor = number(d, "final_div_factor", 1),
                         .anneal_linear = anneal && strcmp(anneal, "linear") == 0};
}

static void read_clip(test_case *c, const ty_doc *d)
{
    static const char *const kinds[] = {"none", "value", "global_norm"};
    if (!d)
        return;
    c->spec.clip = (ty_clip_kind)row_of("clip", text(d, "type"), kinds, 3);
    c->spec.clip_max = number(d, "max", 0);
}

static void read_tied(test_case *c, const ty_doc *groups)
{
    const char *const **list = TY_NEW_ARRAY(&c->arena, const char *const *, ty_doc_len(groups) + 1);
    for (size_t i = 0; i < ty_doc_len(groups); i++)
        list[i] = name_list(c, ty_doc_at(groups, i), NULL);
    c->spec.tied = list;
    c->spec.n_tied = (int)ty_doc_len(groups);
}

static void read_spec(test_case *c)
{
    const ty_doc *r = c->recipe, *inputs = ty_doc_find(r, "inputs"), *loss = ty_doc_find(r, "loss");
    c->spec = (ty_train_spec){.inputs = c->binding,
                              .precision = c->set.precision,
                              .replicas = c->set.replicas,
                              .batch_norm_across = n_parts(c) > 1,
                              .bucket_bytes = c->set.bucket_bytes ? c->set.bucket_bytes : 4096,
                              .wire = c->set.wire,
                              .optimizer_sharding = c->set.shard,
                              .no_outputs = c->set.replicas > 1,
                              .loss = c->term,
                              .optimizer = read_optimizer(ty_doc_find(r, "optimizer")),
                              .schedule = read_schedule(ty_doc_find(r, "schedule")),
                              .accumulate = (int)number(r, "accumulate", 1),
                              .batch_norm_statistics = true};
    for (size_t i = 0; i < ty_doc_len(inputs); i++)
        add_input(c, ty_doc_at(inputs, i)->key, ty_doc_at(inputs, i)->string);
    for (size_t i = 0; i < ty_doc_len(loss) && i < MAX_TERMS; i++)
        read_term(c, ty_doc_at(loss, i));
    read_clip(c, ty_doc_find(r, "clip"));
    c->spec.frozen = name_list(c, ty_doc_find(r, "frozen"), &c->spec.n_frozen);
    c->spec.no_decay = name_list(c, ty_doc_find(r, "no_decay"), &c->spec.n_no_decay);
    c->spec.buffers = plain_list(c, ty_doc_find(r, "buffers"), &c->spec.n_buffers);
    read_tied(c, ty_doc_find(r, "tied"));
    c->steps = (int64_t)number(r, "steps", 0);
}

#endif
