/* command_check.c - `trainyard check MODEL`: what a model is, and everything in it that cannot be trained, at once. */
#include "base/json.h"
#include "base/quantity.h"
#include "compiler/compiler.h"
#include "entrypoint/command.h"
#include "entrypoint/complain.h"
#include "entrypoint/data_look.h"
#include "entrypoint/model_print.h"
#include "entrypoint/recipe.h"
#include "entrypoint/spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH,
    DIM,
    LAYERS,
    SIGNATURE,
    ARCHITECTURE,
    LABELS,
    RECIPE,
    DATA_DIR,
    ALL,
    JSON,
    N_OPTIONS,
    MAX_BATCH = 1 << 24
};

static const ty_option options[N_OPTIONS] = {
    [BATCH] = {"--batch", "N", "rows that stand for a free batch dimension (default 2)", false},
    [DIM] = {"--dim", "NAME=N", "size of another free dimension (default 64)", true},
    [LAYERS] = {"--layers", "FILE", "C source of layers whose classes a Keras file names; left out: the recipe's",
                false},
    [SIGNATURE] = {"--signature", "NAME",
                   "of a TensorFlow model: which is looked at; left out: the recipe's, or its own", false},
    [ARCHITECTURE] = {"--architecture", "CLASS", "of a Hugging Face folder: the class that is meant", false},
    [LABELS] = {"--labels", "N", "of a Hugging Face folder: classes of the head", false},
    [RECIPE] = {"--recipe", "FILE", "check too that this train.yaml and its data fit the model", false},
    [DATA_DIR] = {"--data-dir", "DIR", "with --recipe: folder that has the channels as folders or files", false},
    [ALL] = {"--all", NULL, "list every layer, also those without weights that compute little", false},
    [JSON] = {"--json", NULL, "one JSON object on stdout", false},
};

typedef struct check {
    ty_arena *arena;
    const ty_arguments_given *given;
    const char *path;
    ty_model *model;
    ty_recipe recipe; /* {0} without one */
    ty_model_summary summary;
    ty_data_look data[2];
    int n_data;
} check;

/* ---- text ---- */

static void print_arithmetic(const char *what, const double *a, const double *b)
{
    char text[32];
    const char *before = ": ";
    double each[TY_N_WORKS];
    for (int i = 0; i < TY_N_WORKS; i++)
        each[i] = a[i] + (b ? b[i] : 0);
    printf("  %-11s %s a sample", what, ty_si_text(ty_model_total_flop(each), "FLOP", text, sizeof text));
    for (int i = 0; i < TY_N_WORKS; i++)
        if (each[i] > 0) {
            printf("%s%s %s", before, ty_work_text((ty_work)i), ty_si_text(each[i], "", text, sizeof text));
            before = ", ";
        }
    puts("");
}

static void print_totals(const ty_model_summary *s)
{
    char a[32], b[32], c[32], found[320];
    printf("  weights     %s numbers, %s of them trained, %s\n", ty_count_text(s->n_numbers, a, sizeof a),
           ty_count_text(s->n_trainable, b, sizeof b), ty_bytes_text(s->weight_bytes, c, sizeof c));
    print_arithmetic("forward", s->forward_flop, NULL);
    print_arithmetic("training", s->forward_flop, s->backward_flop);
    if (ty_composite_count_text(&s->found, found, sizeof found)[0])
        printf("  found       %s\n", found);
}

static void print_fault(const ty_error *fault)
{
    char text[TY_ERROR_MESSAGE_BYTES + TY_ERROR_PLACE_BYTES + TY_ERROR_DETAIL_BYTES * 2 + TY_ERROR_HELP_BYTES + 128];
    size_t n = ty_error_format(fault, text, sizeof text);
    printf("%s%s", text, n > 0 && text[n - 1] == '\n' ? "" : "\n");
}

static void print_notes(const ty_model *m, const ty_model_summary *s)
{
    for (int i = 0; i < ty_model_n_warnings(m); i++)
        printf("warning: %s\n   = help: %s\n", ty_model_warning_at(m, i)->text, ty_model_warning_at(m, i)->help);
    for (int i = 0; i < s->n_untrainable; i++)
        printf("note: output \"%s\" has no gradient: no loss can read it\n", s->untrainable[i]);
    for (int i = 0; i < s->n_assumed; i++)
        printf("note: free dimension \"%s\" was taken as %lld\n   = help: --dim %s=N tries another size\n",
               s->assumed[i].name, (long long)s->assumed[i].value, s->assumed[i].name);
}

static void print_data(const check *c)
{
    char count[32];
    for (int i = 0; i < c->n_data; i++) {
        const ty_data_look *d = &c->data[i];
        if (d->why) {
            printf("note: %s was not looked at: %s\n", d->name, d->why);
            if (d->help)
                printf("   = help: %s\n", d->help);
        } else if (d->n_samples < 0) {
            printf("  %-15s fits: %s, %s\n", d->name, d->format, d->path);
        } else {
            printf("  %-15s fits: %s samples, %s, %s\n", d->name, ty_count_text(d->n_samples, count, sizeof count),
                   d->format, d->path);
        }
    }
}

static const char *verdict(const check *c)
{
    bool all = true;
    for (int i = 0; i < c->n_data; i++)
        all &= c->data[i].why == NULL;
    if (!c->given->value[RECIPE])
        return "all of it can be trained";
    return all ? "all of it can be trained, and recipe and data fit" : "all of it can be trained, and the recipe fits";
}

static void print_text(const check *c)
{
    const ty_model *m = c->model;
    const ty_model_summary *s = &c->summary;
    char count[32];
    printf("%s: %s, %s nodes\n", c->path, ty_model_format(m), ty_count_text(ty_model_n_nodes(m), count, sizeof count));
    ty_model_print_values("input", ty_model_n_inputs(m), m, ty_model_input);
    ty_model_print_values("output", ty_model_n_outputs(m), m, ty_model_output);
    if (s->n_faults == 0) {
        ty_model_print_layers(s, c->given->value[ALL] != NULL);
        print_totals(s);
    }
    print_data(c);
    print_notes(m, s);
    for (int i = 0; i < s->n_faults; i++)
        print_fault(&s->fault[i]);
    if (s->n_faults_all == 0)
        puts(verdict(c));
    else
        printf("%d fault%s%s\n", s->n_faults_all, s->n_faults_all == 1 ? "" : "s",
               s->n_faults_all > s->n_faults ? " in all" : "");
}

/* ---- JSON ---- */

static void put_flop(ty_json_writer *w, const ty_model_summary *s)
{
    ty_json_open_map(w, "flop_per_sample");
    ty_json_put_float(w, "forward", ty_model_total_flop(s->forward_flop));
    ty_json_put_float(w, "training", ty_model_total_flop(s->forward_flop) + ty_model_total_flop(s->backward_flop));
    ty_json_open_map(w, "by_work");
    for (int i = 0; i < TY_N_WORKS; i++) {
        if (s->forward_flop[i] + s->backward_flop[i] == 0)
            continue;
        ty_json_open_map(w, ty_work_text((ty_work)i));
        ty_json_put_float(w, "forward", s->forward_flop[i]);
        ty_json_put_float(w, "training", s->forward_flop[i] + s->backward_flop[i]);
        ty_json_close(w);
    }
    ty_json_close(w);
    ty_json_close(w);
}

static void put_faults(ty_json_writer *w, const ty_model_summary *s)
{
    char code[16];
    ty_json_open_list(w, "faults");
    for (int i = 0; i < s->n_faults; i++) {
        const ty_error *f = &s->fault[i];
        snprintf(code, sizeof code, "E%04d", (int)f->code);
        ty_json_open_map(w, NULL);
        ty_json_put_string(w, "code", code);
        ty_json_put_string(w, "message", f->message);
        ty_json_put_string(w, "place", f->place[0] ? f->place : NULL);
        ty_json_put_string(w, "detail", f->detail[0] ? f->detail : NULL);
        ty_json_put_string(w, "help", f->help[0] ? f->help : NULL);
        ty_json_close(w);
    }
    ty_json_close(w);
}

static void put_notes(ty_json_writer *w, const ty_model *m, const ty_model_summary *s)
{
    ty_json_open_list(w, "warnings");
    for (int i = 0; i < ty_model_n_warnings(m); i++) {
        ty_json_open_map(w, NULL);
        ty_json_put_string(w, "text", ty_model_warning_at(m, i)->text);
        ty_json_put_string(w, "help", ty_model_warning_at(m, i)->help);
        ty_json_close(w);
    }
    ty_json_close(w);
    ty_json_open_list(w, "outputs_without_gradient");
    for (int i = 0; i < s->n_untrainable; i++)
        ty_json_put_string(w, NULL, s->untrainable[i]);
    ty_json_close(w);
    ty_json_open_map(w, "assumed_dims");
    for (int i = 0; i < s->n_assumed; i++)
        ty_json_put_int(w, s->assumed[i].name, s->assumed[i].value);
    ty_json_close(w);
    ty_json_open_map(w, "composites");
    for (int i = 0; i < TY_N_COMPOSITES; i++)
        if (s->found.n[i] > 0)
            ty_json_put_int(w, ty_composite_text((ty_composite)i), s->found.n[i]);
    ty_json_close(w);
}

static void put_data(ty_json_writer *w, const check *c)
{
    ty_json_open_list(w, "data");
    for (int i = 0; i < c->n_data; i++) {
        const ty_data_look *d = &c->data[i];
        ty_json_open_map(w, NULL);
        ty_json_put_string(w, "name", d->name);
        ty_json_put_string(w, "path", d->path);
        ty_json_put_bool(w, "looked_at", d->why == NULL);
        ty_json_put_string(w, "why_not", d->why);
        ty_json_put_string(w, "format", d->format);
        if (d->n_samples >= 0)
            ty_json_put_int(w, "samples", d->n_samples);
        ty_json_close(w);
    }
    ty_json_close(w);
}

static void print_json(const check *c)
{
    const ty_model *m = c->model;
    const ty_model_summary *s = &c->summary;
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, (size_t)64 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "schema", 1);
    ty_json_put_string(&w, "model", c->path);
    ty_json_put_string(&w, "format", ty_model_format(m));
    ty_json_put_bool(&w, "trainable", s->n_faults_all == 0);
    ty_json_put_int(&w, "n_faults", s->n_faults_all);
    put_faults(&w, s);
    ty_json_put_int(&w, "nodes", ty_model_n_nodes(m));
    ty_model_put_values(&w, m, "inputs", ty_model_n_inputs(m), ty_model_input);
    ty_model_put_values(&w, m, "outputs", ty_model_n_outputs(m), ty_model_output);
    ty_json_put_int(&w, "numbers", s->n_numbers);
    ty_json_put_int(&w, "trained_numbers", s->n_trainable);
    ty_json_put_int(&w, "weight_bytes", (int64_t)s->weight_bytes);
    ty_json_put_int(&w, "batch", s->batch);
    put_flop(&w, s);
    if (c->given->value[RECIPE])
        put_data(&w, c);
    put_notes(&w, m, s);
    ty_model_put_layers(&w, s);
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

/* ---- the command ---- */

static int parse_count(const char *option, const char *text, int64_t *out, ty_error *err)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (errno == 0 && *end == 0 && end != text && *out >= 1 && *out <= MAX_BATCH)
        return 0;
    return ty_error_set(err, TY_E_USAGE, "%s needs a number from 1 to %d, found \"%s\"", option, MAX_BATCH, text);
}

static int parse_dims(check *c, ty_summary_options *o, ty_error *err)
{
    ty_free_dim *dims = TY_NEW_ARRAY(c->arena, ty_free_dim, c->given->n_repeated + 1);
    for (int i = 0; i < c->given->n_repeated; i++) {
        const char *word = c->given->repeated[i], *equals = strrchr(word, '=');
        if (!equals || equals == word)
            return ty_error_set(err, TY_E_USAGE, "--dim needs NAME=N, found \"%s\"", word);
        dims[i].name = ty_arena_strndup(c->arena, word, (size_t)(equals - word));
        if (parse_count("--dim", equals + 1, &dims[i].value, err) < 0)
            return -1;
    }
    o->dims = dims;
    o->n_dims = c->given->n_repeated;
    return 0;
}

/* The recipe first: it says what is meant of the model. */
static int check_open(check *c, ty_error *err)
{
    const char *recipe = c->given->value[RECIPE], *layers = c->given->value[LAYERS];
    const char *signature = c->given->value[SIGNATURE];
    if (recipe && ty_recipe_load(recipe, NULL, 0, c->arena, &c->recipe, err) < 0)
        return -1;
    if (layers)
        c->recipe.choice.layers = layers;
    if (signature)
        c->recipe.choice.signature = signature;
    if (c->given->value[ARCHITECTURE])
        c->recipe.choice.architecture = c->given->value[ARCHITECTURE];
    if (c->given->value[LABELS] && parse_count("--labels", c->given->value[LABELS], &c->recipe.choice.labels, err) < 0)
        return -1;
    return ty_model_open_as(c->path, NULL, &c->recipe.choice, &c->model, err);
}

static int check_recipe(check *c, ty_error *err)
{
    ty_spec_plan plan;
    if (ty_data_look_for_fields(&c->recipe, c->model, c->given->value[DATA_DIR], c->arena, err) < 0)
        return -1;
    if (ty_spec_plan_make(&c->recipe, c->model, c->arena, &plan, err) < 0)
        return -1;
    c->n_data = ty_data_look_at(&c->recipe, &plan, c->given->value[DATA_DIR], c->arena, c->data, err);
    return c->n_data < 0 ? -1 : 0;
}

static int check_model(check *c, ty_error *err)
{
    ty_summary_options o = {0};
    if ((c->given->value[BATCH] && parse_count("--batch", c->given->value[BATCH], &o.batch, err) < 0) ||
        parse_dims(c, &o, err) < 0 || check_open(c, err) < 0 || (c->given->value[RECIPE] && check_recipe(c, err) < 0) ||
        ty_model_summarize(c->model, &o, c->arena, &c->summary, err) < 0)
        return -1;
    (c->given->value[JSON] ? print_json : print_text)(c);
    return c->summary.n_faults > 0 ? ty_error_exit_status(c->summary.fault[0].code) : 0;
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    check c = {.given = given, .path = given->words[0], .arena = a};
    int status = check_model(&c, err);
    ty_model_free(c.model);
    return status;
}

static const char page[] =
    "Imports the model as training will and builds its gradient, without reading a weight. Faults are listed all at\n"
    "once, each with its node, its inputs and what to do. Exit status: 0 it can be trained, 65 it cannot (or is no\n"
    "model, or data do not fit it), 66 no such file, 78 the recipe does not fit model or data, 2 wrong arguments.\n\n"
    "With --recipe, data that are here are looked at too: headers and first rows, types and shapes; no values.\n\n"
    "FLOP: 2 for a multiply-add, 1 for other arithmetic, 0 for moving and comparing; a sample's share of a batch.\n\n"
    "--json has these keys, and may get more: schema 1, model, format, trainable, n_faults, faults [code, message,\n"
    "place, detail, help], nodes, inputs and outputs [name, dtype, shape: numbers or names], numbers,\n"
    "trained_numbers, weight_bytes, batch, flop_per_sample {forward, training, by_work}, warnings [text, help],\n"
    "outputs_without_gradient, assumed_dims, composites, with --recipe data [name, path, looked_at, why_not, format,\n"
    "samples], layers [name, operator, output, numbers, forward_flop,\n"
    "backward_flop]. What cannot be read at all is one object {error}.\n\n"
    "    trainyard check model.onnx --batch 64\n"
    "    trainyard check model.onnx --dim seq=512 --json\n"
    "    trainyard check model.onnx --recipe train.yaml --data-dir data\n";

const ty_command_row ty_command_check = {
    "check", "MODEL", "say what a model is, and everything in it that cannot be trained",
    page,    options, N_OPTIONS,
    1,       1,       false,
    false,   run};
