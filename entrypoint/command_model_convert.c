/* command_model_convert.c - `trainyard model convert IN OUT`: the suffix of OUT says what is written. */
#include "base/file.h"
#include "base/json.h"
#include "base/quantity.h"
#include "compiler/export/onnx.h"
#include "base/safetensors.h"
#include "entrypoint/command_model.h"
#include "entrypoint/weight_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBER = 1 << 24 };

typedef struct conversion {
    const ty_arguments_given *given;
    ty_arena *a;
    const char *from, *to;
    bool json;
} conversion;

static int parse_number(const char *option, const char *text, int64_t *out, ty_error *err)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (errno == 0 && *end == 0 && end != text && *out >= 1 && *out <= MAX_NUMBER)
        return 0;
    return ty_error_set(err, TY_E_USAGE, "%s needs a number from 1 to %d, found \"%s\"", option, MAX_NUMBER, text);
}

static int parse_options(const conversion *c, ty_onnx_export *opt, ty_error *err)
{
    const char *const *value = c->given->value;
    int64_t opset = 0;
    ty_free_dim *dims = TY_NEW_ARRAY(c->a, ty_free_dim, c->given->n_repeated + 1);
    if ((value[TY_MODEL_BATCH] && parse_number("--batch", value[TY_MODEL_BATCH], &opt->batch, err) < 0) ||
        (value[TY_MODEL_OPSET] && parse_number("--opset", value[TY_MODEL_OPSET], &opset, err) < 0))
        return -1;
    if (value[TY_MODEL_OPSET] && (opset < TY_ONNX_EXPORT_MIN_OPSET || opset > TY_ONNX_EXPORT_MAX_OPSET))
        return ty_error_set(err, TY_E_USAGE, "--opset needs a number from %d to %d, found %s", TY_ONNX_EXPORT_MIN_OPSET,
                            TY_ONNX_EXPORT_MAX_OPSET, value[TY_MODEL_OPSET]);
    for (int i = 0; i < c->given->n_repeated; i++) {
        const char *word = c->given->repeated[i], *equals = strrchr(word, '=');
        if (!equals || equals == word)
            return ty_error_set(err, TY_E_USAGE, "--dim needs NAME=N, found \"%s\"", word);
        dims[i].name = ty_arena_strndup(c->a, word, (size_t)(equals - word));
        if (parse_number("--dim", equals + 1, &dims[i].value, err) < 0)
            return -1;
    }
    opt->opset = (int)opset;
    opt->dims = dims;
    opt->n_dims = c->given->n_repeated;
    return 0;
}

/* ---- ONNX ---- */

static void print_onnx(const conversion *c, const ty_onnx_exported *done)
{
    char bytes[32], batch[48];
    snprintf(batch, sizeof batch, "batch of %lld", (long long)done->batch);
    printf("%s: onnx opset %d, %d nodes, %d initializers, %s, %s\n", c->to, done->opset, done->n_nodes,
           done->n_initializers, done->batch ? batch : "free batch", ty_bytes_text(done->n_bytes, bytes, sizeof bytes));
    if (done->two_files)
        printf("  weights are in %s" TY_MODEL_DATA_SUFFIX "\n", c->to);
    if (done->why_static)
        printf("note: the batch is fixed: %s\n   = help: --batch N chooses its size\n", done->why_static);
    if (done->n_unused > 0)
        printf("note: %d weight%s not in the file: nothing reads %s when the model is applied\n", done->n_unused,
               done->n_unused == 1 ? " is" : "s are", done->n_unused == 1 ? "it" : "them");
}

static void print_onnx_json(const conversion *c, const ty_onnx_exported *done)
{
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, 1 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "schema", 1);
    ty_json_put_string(&w, "file", c->to);
    ty_json_put_string(&w, "format", "onnx");
    ty_json_put_int(&w, "opset", done->opset);
    if (done->batch)
        ty_json_put_int(&w, "batch", done->batch);
    else
        ty_json_put_null(&w, "batch");
    ty_json_put_string(&w, "why_static", done->why_static);
    ty_json_put_int(&w, "nodes", done->n_nodes);
    ty_json_put_int(&w, "initializers", done->n_initializers);
    ty_json_put_int(&w, "unused_weights", done->n_unused);
    ty_json_put_int(&w, "bytes", (int64_t)done->n_bytes);
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

static int to_onnx(const conversion *c, ty_error *err)
{
    ty_model *m = NULL;
    ty_onnx_export opt = {0};
    ty_onnx_exported done;
    const ty_model_choice choice = ty_model_choice_given(c->given);
    if (parse_options(c, &opt, err) < 0 || ty_model_open_as(c->from, NULL, &choice, &m, err) < 0)
        return -1;
    int rc = ty_onnx_export_model(m, c->to, &opt, c->a, &done, err);
    if (rc == 0)
        (c->json ? print_onnx_json : print_onnx)(c, &done);
    ty_model_free(m);
    return rc;
}

/* ---- safetensors ---- */

static void print_tensors(const conversion *c, int n)
{
    ty_buf out;
    ty_json_writer w;
    if (!c->json) {
        printf("%s: %d weight%s\n", c->to, n, n == 1 ? "" : "s");
        return;
    }
    ty_buf_init(&out, 1 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "schema", 1);
    ty_json_put_string(&w, "file", c->to);
    ty_json_put_string(&w, "format", "safetensors");
    ty_json_put_int(&w, "weights", n);
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

static int write_tensors(const conversion *c, const ty_weight_list *l, ty_error *err)
{
    static const ty_safetensors_meta meta = {"format", "pt"};
    ty_named_tensor *list = TY_NEW_ARRAY(c->a, ty_named_tensor, l->n + 1);
    size_t n = 0;
    for (int i = 0; i < l->n; i++) {
        const ty_listed_weight *w = &l->weight[i];
        if (w->type.dtype >= TY_N_DTYPES)
            return ty_error_set(err, TY_E_UNSUPPORTED, "weight \"%s\" has an element type that .safetensors lacks",
                                w->name);
        if (!w->data)
            return ty_error_set(err, TY_E_CONFIG, "weight \"%s\" has no values yet", w->name);
        list[n++] = (ty_named_tensor){w->name, w->type, (void *)w->data};
    }
    return ty_safetensors_write(c->to, list, n, &meta, 1, err);
}

static int to_safetensors(const conversion *c, ty_error *err)
{
    ty_weight_list l;
    if (c->given->value[TY_MODEL_BATCH] || c->given->value[TY_MODEL_OPSET] || c->given->n_repeated)
        return ty_error_set(err, TY_E_USAGE, "--batch, --dim and --opset are for .onnx");
    const ty_model_choice choice = ty_model_choice_given(c->given);
    if (ty_weight_list_open(c->from, &choice, c->a, &l, err) < 0)
        return -1;
    int rc = write_tensors(c, &l, err);
    if (rc == 0)
        print_tensors(c, l.n);
    ty_weight_list_close(&l);
    return rc;
}

/* ---- the verb ---- */

static const struct {
    const char *suffix;
    int (*run)(const conversion *c, ty_error *err);
} targets[] = {{".onnx", to_onnx}, {".safetensors", to_safetensors}};

static bool ends_with(const char *text, const char *suffix)
{
    size_t n = strlen(text), k = strlen(suffix);
    return n > k && strcmp(text + n - k, suffix) == 0;
}

int ty_model_convert(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    conversion c = {given, a, given->words[1], given->words[2], given->value[TY_MODEL_JSON] != NULL};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (ends_with(c.to, targets[i].suffix))
            return ty_file_try(c.to, err) < 0 ? -1 : targets[i].run(&c, err);
    ty_error_set(err, TY_E_USAGE, "\"%s\": nothing is converted to this format", c.to);
    if (ends_with(c.to, ".keras") || ends_with(c.to, ".h5"))
        return ty_error_help(err,
                             "Keras does it: keras.models.load_model(\"%.100s\").save(\"%.100s\"); here a file becomes "
                             "*.onnx or *.safetensors",
                             c.from, c.to);
    return ty_error_help(err,
                         "name the file *.onnx (the model) or *.safetensors (its weights); training writes a model "
                         "in the format that it came in");
}
