/* command_model_info.c - `trainyard model info FILE`. */
#include "base/file.h"
#include "base/json.h"
#include "base/quantity.h"
#include "entrypoint/command_model.h"
#include "entrypoint/model_print.h"
#include "entrypoint/weight_list.h"

#include <stdio.h>
#include <string.h>

enum { N_LISTED_WEIGHTS = 60 };

typedef struct info {
    const char *path;
    const ty_model *model;
    ty_model_summary summary;
    bool all;
} info;

static size_t weight_bytes(const ty_model_value *w)
{
    ty_type type = {.dtype = (uint8_t)w->dtype, .rank = (uint8_t)w->rank};
    if (w->dtype >= TY_N_DTYPES)
        return 0;
    memcpy(type.dim, w->dim, sizeof *w->dim * (size_t)w->rank);
    return ty_type_bytes(&type);
}

/* What training would do with it if no recipe says otherwise. */
static const char *role(const ty_model *m, int i)
{
    const ty_model_value *w = ty_model_weight(m, i);
    if (w->dtype >= TY_N_DTYPES || !ty_dtype_is_float(w->dtype))
        return "constant";
    return ty_model_weight_is_running(m, i) ? "running" : w->trainable_hint ? "trained" : "frozen";
}

/* ---- text ---- */

static void print_facts(const ty_model *m)
{
    for (int i = 0; i < ty_model_n_facts(m); i++)
        printf("  %-15s %s\n", ty_model_fact_at(m, i)->what, ty_model_fact_at(m, i)->text);
}

static void print_weights(const info *f)
{
    int n = ty_model_n_weights(f->model), n_listed = f->all || n <= N_LISTED_WEIGHTS ? n : N_LISTED_WEIGHTS;
    char type[320], bytes[32];
    if (n > 0)
        printf("\n  %-44s %-24s %12s  %s\n", "weight", "type", "bytes", "role");
    for (int i = 0; i < n_listed; i++) {
        const ty_model_value *w = ty_model_weight(f->model, i);
        printf("  %-44s %-24s %12s  %s%s\n", w->name, ty_model_value_text(w, type, sizeof type),
               ty_count_text((int64_t)weight_bytes(w), bytes, sizeof bytes), role(f->model, i),
               w->data ? "" : ", no values");
    }
    if (n_listed < n)
        printf("  %d more (--all)\n", n - n_listed);
}

static void print_recipe(const char *recipe)
{
    puts("\n  its own training settings, as a recipe:");
    for (const char *p = recipe; *p;) {
        size_t n = strcspn(p, "\n");
        printf("    %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

static void print_text(const info *f)
{
    const ty_model *m = f->model;
    char count[32], bytes[32];
    printf("%s: %s, %s nodes\n", f->path, ty_model_format(m), ty_count_text(ty_model_n_nodes(m), count, sizeof count));
    print_facts(m);
    ty_model_print_values("input", ty_model_n_inputs(m), m, ty_model_input);
    ty_model_print_values("output", ty_model_n_outputs(m), m, ty_model_output);
    if (f->summary.n_faults == 0)
        ty_model_print_layers(&f->summary, f->all);
    print_weights(f);
    if (f->summary.n_faults == 0)
        printf("\n  %s numbers, %s of them trained, %s\n", ty_count_text(f->summary.n_numbers, count, sizeof count),
               ty_count_text(f->summary.n_trainable, (char[32]){0}, 32),
               ty_bytes_text(f->summary.weight_bytes, bytes, sizeof bytes));
    if (ty_model_recipe(m))
        print_recipe(ty_model_recipe(m));
    for (int i = 0; i < ty_model_n_warnings(m); i++)
        printf("warning: %s\n   = help: %s\n", ty_model_warning_at(m, i)->text, ty_model_warning_at(m, i)->help);
    if (f->summary.n_faults > 0)
        printf("\n  it cannot be trained as it is: `trainyard check %s` lists why\n", f->path);
}

/* ---- JSON ---- */

static void put_weights(ty_json_writer *w, const ty_model *m)
{
    ty_json_open_list(w, "weights");
    for (int i = 0; i < ty_model_n_weights(m); i++)
        ty_model_put_weight(w, ty_model_weight(m, i), weight_bytes(ty_model_weight(m, i)), role(m, i));
    ty_json_close(w);
}

static void put_notes(ty_json_writer *w, const ty_model *m)
{
    ty_json_open_list(w, "facts");
    for (int i = 0; i < ty_model_n_facts(m); i++) {
        ty_json_open_map(w, NULL);
        ty_json_put_string(w, "what", ty_model_fact_at(m, i)->what);
        ty_json_put_string(w, "text", ty_model_fact_at(m, i)->text);
        ty_json_close(w);
    }
    ty_json_close(w);
    ty_json_open_list(w, "warnings");
    for (int i = 0; i < ty_model_n_warnings(m); i++) {
        ty_json_open_map(w, NULL);
        ty_json_put_string(w, "text", ty_model_warning_at(m, i)->text);
        ty_json_put_string(w, "help", ty_model_warning_at(m, i)->help);
        ty_json_close(w);
    }
    ty_json_close(w);
}

static void print_json(const info *f)
{
    const ty_model *m = f->model;
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, (size_t)64 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "schema", 1);
    ty_json_put_string(&w, "model", f->path);
    ty_json_put_string(&w, "format", ty_model_format(m));
    if (ty_file_size(f->path) >= 0)
        ty_json_put_int(&w, "bytes", ty_file_size(f->path));
    ty_json_put_int(&w, "nodes", ty_model_n_nodes(m));
    put_notes(&w, m);
    ty_model_put_values(&w, m, "inputs", ty_model_n_inputs(m), ty_model_input);
    ty_model_put_values(&w, m, "outputs", ty_model_n_outputs(m), ty_model_output);
    put_weights(&w, m);
    ty_json_put_int(&w, "numbers", f->summary.n_numbers);
    ty_json_put_int(&w, "weight_bytes", (int64_t)f->summary.weight_bytes);
    ty_json_put_string(&w, "recipe", ty_model_recipe(m));
    ty_json_put_bool(&w, "trainable", f->summary.n_faults == 0);
    if (f->summary.n_faults == 0)
        ty_model_put_layers(&w, &f->summary);
    else
        ty_json_put_null(&w, "layers");
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

int ty_model_info(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_model *m = NULL;
    info f = {.path = given->words[1], .all = given->value[TY_MODEL_ALL] != NULL};
    const ty_model_choice choice = ty_model_choice_given(given);
    if (ty_is_safetensors_name(f.path))
        return ty_model_info_tensors(f.path, given, err);
    if (ty_model_open_as(f.path, NULL, &choice, &m, err) < 0)
        return -1;
    f.model = m;
    int rc = ty_model_summarize(m, &(ty_summary_options){0}, a, &f.summary, err);
    if (rc == 0)
        (given->value[TY_MODEL_JSON] ? print_json : print_text)(&f);
    ty_model_free(m);
    return rc;
}
