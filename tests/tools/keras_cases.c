/* keras_cases.c - trains every case of a folder like shared/data/keras-cases and compares with what Keras got.
 *
 *     keras_cases [-v] [--interpreter | --gpu] [--threads N] DIR [NAME...]
 *
 * A case is a folder with a model as Keras or TensorFlow saved it, recipe.yaml, batches, expected.json and final.npz;
 * the README beside them says what all of it means. Loss, optimizer and all else come from the model file by the way
 * of a recipe, as in `trainyard train`; from recipe.yaml where the file has none. Each case runs in a process of its
 * own. What a deviation may be is said in expected.json; the share of it that was used up is printed.
 */
#include "base/file.h"
#include "base/json.h"
#include "base/yaml.h"
#include "base/zip.h"
#include "compiler/compiler.h"
#include "compiler/import/keras/keras_recipe.h"
#include "compiler/passes/loss.h"

#include "container/input/npy.h"
#include "entrypoint/recipe.h"
#include "entrypoint/spec.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LR_TOLERANCE  1e-6
#define CASE_SECONDS  300
#define MAX_NPZ_BYTES ((size_t)64 << 20)
#define MAX_FIELDS    16

typedef struct settings {
    bool verbose;
    ty_backend backend;
    int threads;
} settings;

/* One input of the step: all its batches, [N, batch, ...]. */
typedef struct field {
    const char *name; /* of the recipe's field */
    ty_tensor stack;
    bool is_weight; /* of samples: ones in evaluation */
} field;

enum { WORST_LOSS, WORST_LR, WORST_NORM, WORST_EVAL, WORST_WEIGHT, N_WORST };

typedef struct keras_case {
    ty_arena arena;
    const char *folder;
    settings set;
    const ty_doc *recipe, *expected;
    ty_model *model;
    ty_recipe settings;
    ty_spec_plan plan;
    ty_train_spec spec;
    ty_program *program;
    field field[MAX_FIELDS];
    int n_fields;
    int64_t n_batches, steps;
    int n_faults;
    double worst[N_WORST]; /* largest share of the tolerance, by kind */
} keras_case;

/* ---- small things ---- */

static void die(const char *what, const ty_error *err)
{
    char text[6000];
    ty_error_format(err, text, sizeof text);
    printf("  %s: %s\n", what, text);
    fflush(stdout);
    _exit(1);
}

static const char *path_in(keras_case *c, const char *name)
{
    return ty_arena_printf(&c->arena, "%s/%s", c->folder, name);
}

static double number_of(const ty_doc *d, double absent)
{
    return !d ? absent : d->kind == TY_DOC_INT ? (double)d->integer : d->kind == TY_DOC_FLOAT ? d->number : absent;
}

static double number(const ty_doc *map, const char *key, double absent)
{
    return number_of(ty_doc_find(map, key), absent);
}

static const char *text(const ty_doc *map, const char *key)
{
    const ty_doc *d = ty_doc_find(map, key);
    return d && d->kind == TY_DOC_STRING ? d->string : NULL;
}

/* allowed: absolute. */
static void compare(keras_case *c, int kind, double got, double want, double allowed, const char *fmt, ...)
    TY_PRINTF(6, 7);
static void compare(keras_case *c, int kind, double got, double want, double allowed, const char *fmt, ...)
{
    double share = fabs(got - want) / allowed;
    if (!(share <= c->worst[kind]))
        c->worst[kind] = isnan(share) ? INFINITY : share;
    if (share <= 1 && !c->set.verbose)
        return;
    char what[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    if (!(share <= 1) && (++c->n_faults <= 8 || c->set.verbose))
        printf("  %s: expected %.9g, found %.9g: %.3g times what is allowed\n", what, want, got, share);
    else if (share <= 1 && kind != WORST_WEIGHT)
        printf("  %s: %.9g, found %.9g\n", what, want, got);
}

/* ---- data ---- */

static void add_field(keras_case *c, const char *name, const char *file, bool is_weight)
{
    ty_error err;
    field *f = &c->field[c->n_fields++];
    if (c->n_fields > MAX_FIELDS || ty_npy_read(path_in(c, file), &f->stack, &err) < 0)
        die(file, &err);
    f->name = name;
    f->is_weight = is_weight;
    c->n_batches = f->stack.type.dim[0];
}

static void read_fields(keras_case *c)
{
    const ty_doc *inputs = ty_doc_find(c->recipe, "inputs"), *targets = ty_doc_find(c->recipe, "targets");
    for (size_t i = 0; i < ty_doc_len(inputs); i++)
        add_field(c, ty_doc_at(inputs, i)->key, ty_doc_at(inputs, i)->string, false);
    bool one = ty_doc_len(targets) == 1;
    for (size_t i = 0; i < ty_doc_len(targets); i++)
        add_field(c, one ? "target of the case" : ty_model_output(c->model, (int)i)->name,
                  ty_doc_at(targets, i)->string, false);
    if (text(c->recipe, "sample_weight"))
        add_field(c, "weights of the case", text(c->recipe, "sample_weight"), true);
}

/* The elements as the step wants them. */
static void convert(keras_case *c, field *f, ty_dtype to)
{
    ty_type type = f->stack.type;
    int64_t n = ty_type_elems(&type);
    ty_dtype from = (ty_dtype)type.dtype;
    if (from == to)
        return;
    type.dtype = (uint8_t)to;
    char *out = TY_NEW_ARRAY(&c->arena, char, (int64_t)ty_type_bytes(&type) + 1);
    for (int64_t i = 0; i < n; i++) {
        double v = from == TY_F32 ? (double)((const float *)f->stack.data)[i] : ((const int32_t *)f->stack.data)[i];
        if (to == TY_F32)
            ((float *)(void *)out)[i] = (float)v;
        else if (to == TY_I64)
            ((int64_t *)(void *)out)[i] = (int64_t)v;
        else
            ((int32_t *)(void *)out)[i] = (int32_t)v;
    }
    f->stack = (ty_tensor){.type = type, .data = out};
}

/* ---- names ---- */

/* The only weight whose last word is that of the name ("gamma"), or -1. */
static int only_one_called(const ty_model *m, const char *name)
{
    const char *word = strrchr(name, '/');
    int found = -1;
    for (int i = 0; word && i < ty_model_n_weights(m); i++) {
        const char *own = strrchr(ty_model_weight(m, i)->name, '/');
        if (own && strcmp(own, word) == 0)
            found = found == -1 ? i : -2;
    }
    return found < 0 ? -1 : found;
}

/* By its name, by its name without the outermost model's, as the checkpoint has it, or by its last word. */
static const ty_model_value *weight_of(keras_case *c, const char *name)
{
    const char *slash = strchr(name, '/'), *key = text(ty_doc_find(c->recipe, "names"), name), *end;
    int i = ty_model_find_weight(c->model, name);
    if (i < 0 && slash)
        i = ty_model_find_weight(c->model, slash + 1);
    if (i < 0 && key && (end = strstr(key, "/.ATTRIBUTES")))
        i = ty_model_find_weight(c->model, ty_arena_strndup(&c->arena, key, (size_t)(end - key)));
    if (i < 0)
        i = only_one_called(c->model, name);
    return i < 0 ? NULL : ty_model_weight(c->model, i);
}

/* ---- recipe ---- */

static ty_doc *class_of(keras_case *c, const char *key)
{
    const ty_doc *d = ty_doc_find(c->recipe, key), *type = ty_doc_find(d, "type");
    ty_doc *out = TY_NEW(&c->arena, ty_doc);
    if (!d || !type)
        return out;
    *out = *d;
    out->key = key;
    out->items = TY_NEW_ARRAY(&c->arena, ty_doc, 2);
    out->n_items = 2;
    out->items[0] = *type;
    out->items[0].key = "class_name";
    out->items[1] = *d;
    out->items[1].key = "config";
    return out;
}

/* Loss and optimizer of recipe.yaml, as a Keras file would have them. */
static void add_settings(keras_case *c, ty_buf *out)
{
    ty_model_value output = *ty_model_output(c->model, 0);
    ty_doc map = *c->recipe;
    map.items = (ty_doc[]){*class_of(c, "loss"), *class_of(c, "optimizer")};
    map.n_items = 2;
    const char *recipe;
    ty_error err;
    if (keras_recipe(&(keras_recipe_of){&map, NULL, &output, 1}, &c->arena, &recipe, &err) < 0)
        die("recipe.yaml", &err);
    ty_buf_adds(out, recipe);
    const ty_doc *trained = ty_doc_find(c->recipe, "trained");
    ty_buf_adds(out, "frozen: [");
    for (int i = 0, n = 0; i < ty_model_n_weights(c->model); i++) {
        bool is = false;
        for (size_t k = 0; k < ty_doc_len(trained); k++)
            is = is || weight_of(c, ty_doc_at(trained, k)->string) == ty_model_weight(c->model, i);
        if (!is && !ty_model_weight_is_running(c->model, i))
            ty_buf_addf(out, "%s\"%s\"", n++ ? ", " : "", ty_model_weight(c->model, i)->name);
    }
    ty_buf_adds(out, "]\n");
}

static void recipe_text(keras_case *c, ty_buf *out)
{
    ty_buf_addf(out, "model: %s\nbatch_size: %.0f\ndata: {train: {path: nowhere, fields: [", text(c->recipe, "model"),
                number(c->recipe, "batch", 0));
    for (int i = 0; i < c->n_fields; i++)
        ty_buf_addf(out, "%s\"%s\"", i ? ", " : "", c->field[i].name);
    ty_buf_adds(out, "]}, validation: {path: nowhere}}\n");
    if (!ty_doc_find(c->recipe, "compiled") || !ty_doc_find(c->recipe, "compiled")->boolean)
        add_settings(c, out);
}

static void load_recipe(keras_case *c, const char *yaml, const ty_recipe_override *o, int n)
{
    ty_error err;
    if (ty_recipe_parse("the case", yaml, strlen(yaml), c->folder, o, n, &c->arena, &c->settings, &err) < 0)
        die("recipe", &err);
}

/* Weights of samples and classes are no settings of a file: they come from outside, as in fit(). */
static void read_recipe(keras_case *c)
{
    ty_buf buf;
    ty_buf_init(&buf, 1 << 20);
    recipe_text(c, &buf);
    load_recipe(c, buf.data, NULL, 0);
    ty_recipe_override o[2];
    int n = 0;
    const char *kind = ty_loss_text(c->settings.loss[0].term.kind);
    const ty_doc *classes = ty_doc_find(c->recipe, "class_weight");
    if (text(c->recipe, "sample_weight"))
        o[n++] = (ty_recipe_override){ty_arena_printf(&c->arena, "loss.0.%s.sample_weights", kind),
                                      "weights of the case", "test"};
    if (classes) {
        const char *list = "";
        for (size_t i = 0; i < ty_doc_len(classes); i++)
            list = ty_arena_printf(&c->arena, "%s%s%.17g", list, i ? ", " : "", number_of(ty_doc_at(classes, i), 1));
        o[n++] = (ty_recipe_override){ty_arena_printf(&c->arena, "loss.0.%s.class_weights", kind),
                                      ty_arena_printf(&c->arena, "[%s]", list), "test"};
    }
    if (n)
        load_recipe(c, buf.data, o, n);
    ty_buf_fini(&buf);
}

/* A data set that has shapes and nothing else. */
static ty_dataset shapes_of(keras_case *c)
{
    ty_dataset ds = {.n_fields = c->n_fields, .field = TY_NEW_ARRAY(&c->arena, ty_field_info, c->n_fields)};
    for (int i = 0; i < c->n_fields; i++) {
        const ty_type *all = &c->field[i].stack.type;
        ds.field[i] = (ty_field_info){.name = c->field[i].name,
                                      .type = ty_type_make((ty_dtype)all->dtype, all->rank - 2, all->dim + 2)};
    }
    return ds;
}

static void read_spec(keras_case *c)
{
    ty_error err;
    read_fields(c);
    read_recipe(c);
    if (ty_spec_plan_make(&c->settings, c->model, &c->arena, &c->plan, &err) < 0)
        die("plan", &err);
    for (int i = 0; i < c->n_fields; i++)
        convert(c, &c->field[i], c->plan.fields[i].dtype);
    ty_dataset shapes = shapes_of(c);
    c->steps = (int64_t)number(c->recipe, "steps", 0);
    if (ty_spec_build(&c->settings, &c->plan, &shapes, 1, c->n_batches, c->steps, true, &c->arena, &c->spec, &err) < 0)
        die("spec", &err);
    c->spec.eval_valid_rows = false;
    c->spec.ema_written = false;
}

/* ---- running ---- */

static const field *field_of(const keras_case *c, int input)
{
    for (int i = 0; i < c->n_fields; i++)
        if (strcmp(c->field[i].name, c->plan.feeds[input].field) == 0)
            return &c->field[i];
    return NULL;
}

static void run(keras_case *c, ty_run tape, int64_t batch)
{
    const void *inputs[MAX_FIELDS];
    static float ones[1 << 16];
    ty_error err;
    for (int i = 0; i < (1 << 16); i++)
        ones[i] = 1;
    for (int i = 0; i < c->spec.n_inputs; i++) {
        const field *f = field_of(c, i);
        size_t bytes = ty_type_bytes(&f->stack.type) / (size_t)f->stack.type.dim[0];
        inputs[i] = f->is_weight && tape == TY_RUN_EVAL ? (const char *)ones
                                                        : (const char *)f->stack.data + (size_t)batch * bytes;
    }
    if (ty_program_run(c->program, tape, inputs, &err) < 0)
        die("run", &err);
}

static double result(const keras_case *c, ty_run tape, const char *name)
{
    const ty_tensor *t = ty_program_output(c->program, tape, name);
    if (!t || t->type.dtype != TY_F32 || t->type.rank != 0) {
        ty_error err;
        ty_error_set(&err, TY_E_INTERNAL, "expected an output \"%s\" f32[]", name);
        die("outputs", &err);
    }
    return (double)*(const float *)t->data;
}

/* Of batches [first, last]: the quotient of sums. */
static double quotient(keras_case *c, const char *name, int64_t first, int64_t last)
{
    double sum = 0, count = 0;
    for (int64_t b = first; b <= last; b++) {
        run(c, TY_RUN_EVAL, b % c->n_batches);
        sum += result(c, TY_RUN_EVAL, ty_arena_printf(&c->arena, "%s.sum", name));
        count += result(c, TY_RUN_EVAL, ty_arena_printf(&c->arena, "%s.count", name));
    }
    return sum / count;
}

static bool has_metric(const keras_case *c, const char *name)
{
    for (int i = 0; i < c->spec.n_metrics; i++)
        if (strcmp(c->spec.metrics[i].name, name) == 0)
            return true;
    return strcmp(name, "loss") == 0;
}

/* Losses of single outputs are no result of ours. */
static void evaluate(keras_case *c, const char *key, int64_t first, int64_t last)
{
    const ty_doc *want = ty_doc_find(c->expected, key);
    for (size_t i = 0; i < ty_doc_len(want); i++) {
        const char *name = ty_doc_at(want, i)->key;
        double w = number_of(ty_doc_at(want, i), NAN);
        size_t len = strlen(name);
        bool part = len > 5 && strcmp(name + len - 5, "_loss") == 0;
        if (!has_metric(c, name) && !part && ty_doc_find(c->recipe, "compiled")->boolean) {
            printf("  %s: no metric \"%s\"\n", key, name);
            c->n_faults++;
        }
        if (!has_metric(c, name))
            continue;
        double tolerance = number(ty_doc_find(ty_doc_find(c->expected, "tolerance"), key), name, 1e-5);
        compare(c, WORST_EVAL, quotient(c, name, first, last), w, fmax(tolerance * fabs(w), 1e-9), "%s.%s", key, name);
    }
}

static void train(keras_case *c)
{
    const ty_doc *tolerance = ty_doc_find(c->expected, "tolerance");
    for (int64_t t = 0; t < c->steps; t++) {
        run(c, TY_RUN_LAST, t % c->n_batches);
        double want = number_of(ty_doc_at(ty_doc_find(c->expected, "losses"), (size_t)t), NAN);
        double rate = number_of(ty_doc_at(ty_doc_find(c->expected, "lr"), (size_t)t), NAN);
        double norm = number_of(ty_doc_at(ty_doc_find(c->expected, "grad_norm"), (size_t)t), NAN);
        compare(c, WORST_LOSS, result(c, TY_RUN_LAST, "loss"), want,
                number(tolerance, t ? "losses" : "first_loss", 1e-5) * fabs(want), "loss of step %" PRId64, t);
        compare(c, WORST_LR, result(c, TY_RUN_LAST, "lr"), rate, LR_TOLERANCE * fabs(rate) + 1e-30,
                "rate of step %" PRId64, t);
        compare(c, WORST_NORM, result(c, TY_RUN_LAST, "grad_norm"), norm,
                number(tolerance, "grad_norm", 1e-5) * fabs(norm), "gradient of step %" PRId64, t);
    }
}

/* ---- weights at the end ---- */

static const float *present_bytes(const keras_case *c, const ty_model_value *w)
{
    for (int i = 0; i < ty_program_n_tensors(c->program); i++) {
        const char *name;
        bool trained;
        ty_tensor t = ty_program_tensor(c->program, i, &name, &trained);
        if (strcmp(name, w->name) == 0)
            return t.data;
    }
    return w->data;
}

static bool is_undetermined(const keras_case *c, const char *name, int64_t at)
{
    const ty_doc *ranges = ty_doc_find(ty_doc_find(c->expected, "undetermined"), name);
    for (size_t i = 0; i < ty_doc_len(ranges); i++) {
        const ty_doc *r = ty_doc_at(ranges, i);
        if (at >= ty_doc_at(r, 0)->integer && at < ty_doc_at(r, 1)->integer)
            return true;
    }
    return false;
}

static void compare_tensor(keras_case *c, const char *name, const ty_array *want, const ty_model_value *w)
{
    int64_t n = (int64_t)(want->n_bytes / sizeof(float)), elems = 1;
    for (int k = 0; k < w->rank; k++)
        elems *= w->dim[k];
    if (elems != n || want->dtype != TY_F32) {
        printf("  %s: expected %" PRId64 " elements, found %" PRId64 "\n", name, n, elems);
        c->n_faults++;
        return;
    }
    double allowed = number(ty_doc_find(ty_doc_find(c->expected, "tolerance"), "weights"), name, 1e-5);
    const char *have = (const char *)present_bytes(c, w);
    for (int64_t i = 0; i < n; i++) {
        float a, b;
        memcpy(&a, want->data + (size_t)i * sizeof a, sizeof a);
        memcpy(&b, have + (size_t)i * sizeof b, sizeof b);
        if (!is_undetermined(c, name, i))
            compare(c, WORST_WEIGHT, (double)b, (double)a, allowed, "%s[%" PRId64 "]", name, i);
    }
}

static void compare_member(keras_case *c, const ty_zip *zip, const ty_zip_entry *entry, int *n)
{
    ty_error err;
    const uint8_t *bytes;
    uint8_t *owned;
    ty_array array;
    char *name = ty_arena_strndup(&c->arena, entry->name, entry->name_bytes - strlen(".npy"));
    if (ty_zip_read(zip, entry, MAX_NPZ_BYTES, &bytes, &owned, &err) < 0 ||
        ty_npy_parse(bytes, (size_t)entry->plain_bytes, &array, &err) < 0)
        die(name, &err);
    const ty_model_value *w = weight_of(c, name);
    if (w) {
        compare_tensor(c, name, &array, w);
        (*n)++;
    } else if (ty_doc_find(ty_doc_find(ty_doc_find(c->expected, "tolerance"), "weights"), name)) {
        printf("  %s: the model has no such weight\n", name);
        c->n_faults++;
    }
    free(owned);
}

static void compare_weights(keras_case *c, const char *file)
{
    ty_error err;
    ty_buf bytes;
    ty_zip zip;
    ty_zip_walk walk = {0};
    ty_zip_entry entry;
    ty_buf_init(&bytes, MAX_NPZ_BYTES);
    if (ty_program_fetch_states(c->program, &err) < 0)
        die("weights", &err);
    if (ty_file_read(path_in(c, file), &bytes, &err) < 0 ||
        ty_zip_open((const uint8_t *)bytes.data, bytes.len, &zip, &err) < 0)
        die(file, &err);
    int more, n = 0;
    while ((more = ty_zip_next(&zip, &walk, &entry, &err)) > 0)
        compare_member(c, &zip, &entry, &n);
    if (more < 0)
        die(file, &err);
    if (n == 0) {
        printf("  %s: no weight of the model is in it\n", file);
        c->n_faults++;
    }
    ty_buf_fini(&bytes);
}

/* ---- a case ---- */

static void compile(keras_case *c)
{
    ty_error err;
    ty_compile_options opt = {.backend = c->set.backend, .threads = c->set.threads};
    if (ty_compile_train(c->model, &c->spec, &opt, &c->program, &err) < 0)
        die("compile", &err);
    int64_t trained = ty_program_report(c->program)->n_trained;
    compare(c, WORST_WEIGHT, (double)trained, number(c->expected, "parameters", -1), 0.5, "parameters");
}

/* Averages are what a program writes that was asked for them: the run again, to look at those. */
static void follow_averages(keras_case *c)
{
    ty_program_free(c->program);
    c->spec.ema_written = true;
    compile(c);
    for (int64_t t = 0; t < c->steps; t++)
        run(c, TY_RUN_LAST, t % c->n_batches);
    compare_weights(c, "ema.npz");
}

static void follow(keras_case *c)
{
    evaluate(c, "eval_before", 0, 0);
    train(c);
    evaluate(c, "eval_after", c->steps > 1 ? c->steps - 2 : 0, c->steps - 1);
    compare_weights(c, "final.npz");
    if (ty_file_exists(path_in(c, "ema.npz")))
        follow_averages(c);
}

static int run_case(const char *folder, const char *name, const settings *set)
{
    keras_case *c = calloc(1, sizeof *c);
    ty_error err;
    c->folder = folder;
    c->set = *set;
    ty_arena_init(&c->arena);
    ty_doc *recipe, *expected;
    if (ty_yaml_read(&c->arena, path_in(c, "recipe.yaml"), NULL, NULL, NULL, &recipe, &err) < 0 ||
        ty_json_read(&c->arena, path_in(c, "expected.json"), NULL, &expected, &err) < 0 ||
        ty_model_open(path_in(c, text(recipe, "model")), &c->model, &err) < 0)
        die(name, &err);
    c->recipe = recipe;
    c->expected = expected;
    read_spec(c);
    compile(c);
    follow(c);
    printf(
        "%-6s %-26s of tolerance: loss %3.0f%%, rate %3.0f%%, gradient %3.0f%%, evaluation %3.0f%%, weights %3.0f%%\n",
        c->n_faults ? "FAILED" : "ok", name, 100 * c->worst[WORST_LOSS], 100 * c->worst[WORST_LR],
        100 * c->worst[WORST_NORM], 100 * c->worst[WORST_EVAL], 100 * c->worst[WORST_WEIGHT]);
    if (c->n_faults > 8 && !set->verbose)
        printf("  %d deviations in all\n", c->n_faults);
    int failed = c->n_faults != 0;
    ty_program_free(c->program);
    ty_model_free(c->model);
    ty_arena_fini(&c->arena);
    free(c);
    return failed;
}

/* In a child. */
static bool run_apart(const char *folder, const char *name, const settings *set)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(CASE_SECONDS);
        int rc = run_case(folder, name, set);
        fflush(stdout);
        exit(rc);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return false;
    if (WIFSIGNALED(status))
        printf("FAILED %-26s died of signal %d\n", name, WTERMSIG(status));
    else if (WEXITSTATUS(status) > 0)
        printf("FAILED %s\n", name);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- all of them ---- */

static bool wanted(const char *name, char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return n == 0;
}

static int run_all(const char *dir, char *const *names, int n_names, const settings *set)
{
    ty_arena arena;
    ty_error err;
    ty_file_entry *entries;
    size_t n;
    int passed = 0, failed = 0;
    ty_arena_init(&arena);
    if (!ty_file_is_folder(dir)) {
        printf("skip: no folder %s\n0 passed, 0 failed, 1 skipped\n", dir);
        return 0;
    }
    if (ty_file_list(dir, &arena, &entries, &n, &err) < 0)
        die(dir, &err);
    for (size_t i = 0; i < n; i++) {
        const char *folder = ty_arena_printf(&arena, "%s/%s", dir, entries[i].name);
        if (!ty_file_exists(ty_arena_printf(&arena, "%s/recipe.yaml", folder)) ||
            !wanted(entries[i].name, names, n_names))
            continue;
        bool ok = run_apart(folder, entries[i].name, set);
        passed += ok;
        failed += !ok;
    }
    ty_arena_fini(&arena);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed || passed == 0;
}

int main(int argc, char **argv)
{
    settings set = {0};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++)
        if (strcmp(argv[i], "-v") == 0)
            set.verbose = true;
        else if (strcmp(argv[i], "--interpreter") == 0)
            set.backend = TY_BACKEND_INTERPRETER;
        else if (strcmp(argv[i], "--gpu") == 0)
            set.backend = TY_BACKEND_CUDA;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            set.threads = atoi(argv[++i]);
        else
            i = argc;
    if (i >= argc) {
        fprintf(stderr, "usage: keras_cases [-v] [--interpreter | --gpu] [--threads N] DIR [NAME...]\n");
        return 64;
    }
    return run_all(argv[i], argv + i + 1, argc - i - 1, &set);
}
