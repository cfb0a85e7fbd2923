/* command_infer.c - `trainyard run MODEL`: inference on npy files, or on raw rows with the transforms that were
 * learnt; results as npy files. */
#include "base/file.h"
#include "base/json.h"
#include "compiler/compiler.h"
#include "container/input/npy.h"
#include "entrypoint/cache_folder.h"
#include "entrypoint/command.h"
#include "entrypoint/complain.h"
#include "entrypoint/infer_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT, DATA, OUTPUT_DIR, LAYERS, SIGNATURE, THREADS, JSON, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [INPUT] = {"--input", "NAME=FILE", "npy file of a model input; NAME= may be left out if there is only one", true},
    [DATA] = {"--data", "FILE", "raw rows, made inputs as preprocessing.json beside the model says", false},
    [OUTPUT_DIR] = {"--output-dir", "DIR", "folder of the results (default .)", false},
    [LAYERS] = {"--layers", "FILE", "C source of layers whose classes a Keras file names", false},
    [SIGNATURE] = {"--signature", "NAME", "of a TensorFlow model: which is applied (default: its own)", false},
    [THREADS] = {"--threads", "N", "0, the default: all cores", false},
    [JSON] = {"--json", NULL, "one JSON object on stdout", false},
};

typedef struct inference {
    ty_arena *arena;
    ty_model *model;
    ty_program *program;
    ty_tensor *tensors; /* [n inputs], data owned */
    ty_binding *bindings;
    const void **pointers;
    int n;
    const ty_infer_rows *rows; /* NULL: inputs are npy files */
} inference;

static int find_input(const inference *f, const char *name, size_t len)
{
    for (int i = 0; i < f->n; i++) {
        const char *candidate = ty_model_input(f->model, i)->name;
        if (strlen(candidate) == len && memcmp(candidate, name, len) == 0)
            return i;
    }
    return -1;
}

static const char *input_names(inference *f)
{
    const char *list = "";
    for (int i = 0; i < f->n; i++)
        list = ty_arena_printf(f->arena, "%s%s%s", list, i ? ", " : "", ty_model_input(f->model, i)->name);
    return list;
}

static int read_input(inference *f, const char *word, ty_error *err)
{
    const char *equals = strchr(word, '=');
    int at = equals ? find_input(f, word, (size_t)(equals - word)) : f->n == 1 ? 0 : -1;
    if (at < 0) {
        ty_error_set(err, TY_E_USAGE, "--input %s names no input of the model", word);
        return ty_error_help(err, "inputs: %s", input_names(f));
    }
    if (f->tensors[at].data)
        return ty_error_set(err, TY_E_USAGE, "input \"%s\" is given twice", ty_model_input(f->model, at)->name);
    const char *path = equals ? equals + 1 : word;
    if (ty_npy_read(path, &f->tensors[at], err) < 0)
        return ty_error_at(err, "%s", path);
    const ty_model_value *v = ty_model_input(f->model, at);
    char found[160];
    if (f->tensors[at].type.dtype != v->dtype) {
        ty_error_set(err, TY_E_TYPE, "input \"%s\" needs %s, the file holds %s", v->name, ty_dtype_text(v->dtype),
                     ty_type_text(&f->tensors[at].type, found, sizeof found));
        return ty_error_at(err, "%s", path);
    }
    f->bindings[at] = (ty_binding){v->name, f->tensors[at].type};
    f->pointers[at] = f->tensors[at].data;
    return 0;
}

/* What the rows have for an input that no file is given for. */
static int read_row_input(inference *f, int i, const char *path, ty_error *err)
{
    const ty_model_value *v = ty_model_input(f->model, i);
    char found[160];
    if (ty_infer_rows_read(f->rows, path, v->name, f->arena, &f->tensors[i], err) < 0)
        return -1;
    if (f->tensors[i].type.dtype != v->dtype)
        return ty_error_set(err, TY_E_TYPE, "input \"%s\" needs %s, the rows make %s", v->name, ty_dtype_text(v->dtype),
                            ty_type_text(&f->tensors[i].type, found, sizeof found));
    if (f->tensors[i].type.rank != v->rank) /* as in training */
        ty_spec_take_shape(v, &f->tensors[i].type);
    f->bindings[i] = (ty_binding){v->name, f->tensors[i].type};
    f->pointers[i] = f->tensors[i].data;
    return 0;
}

static int read_rows(inference *f, const ty_arguments_given *given, ty_error *err)
{
    ty_infer_rows *rows = TY_NEW(f->arena, ty_infer_rows);
    if (ty_infer_rows_open(given->words[0], f->arena, rows, err) < 0)
        return -1;
    f->rows = rows;
    for (int i = 0; i < f->n; i++)
        if (!f->tensors[i].data && read_row_input(f, i, given->value[DATA], err) < 0)
            return -1;
    return 0;
}

static int read_inputs(inference *f, const ty_arguments_given *given, ty_error *err)
{
    f->n = ty_model_n_inputs(f->model);
    f->tensors = TY_NEW_ARRAY(f->arena, ty_tensor, f->n);
    f->bindings = TY_NEW_ARRAY(f->arena, ty_binding, f->n);
    f->pointers = TY_NEW_ARRAY(f->arena, const void *, f->n);
    for (int i = 0; i < given->n_repeated; i++)
        if (read_input(f, given->repeated[i], err) < 0)
            return -1;
    if (given->value[DATA] && read_rows(f, given, err) < 0)
        return -1;
    for (int i = 0; i < f->n; i++)
        if (!f->tensors[i].data) {
            ty_error_set(err, TY_E_USAGE, "input \"%s\" is not given", ty_model_input(f->model, i)->name);
            return ty_error_help(err, "add --input %s=FILE.npy; inputs: %s", ty_model_input(f->model, i)->name,
                                 input_names(f));
        }
    return 0;
}

/* A tensor name as a file name: what might lead elsewhere becomes '_'. */
static const char *file_name(inference *f, const char *folder, const char *name)
{
    char *out = ty_arena_printf(f->arena, "%s/%s.npy", folder, name);
    for (char *p = out + strlen(folder) + 1; *p; p++)
        if (*p == '/' || *p == '\\' || (unsigned char)*p < 0x20)
            *p = '_';
    if (out[strlen(folder) + 1] == '.')
        out[strlen(folder) + 1] = '_';
    return out;
}

static int write_outputs(inference *f, const char *folder, bool json, ty_error *err)
{
    ty_buf text;
    ty_json_writer w;
    char type[160];
    if (ty_file_mkdirs(folder, 0755, err) < 0)
        return -1;
    ty_buf_init(&text, (size_t)1 << 20);
    ty_json_writer_init(&w, &text, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    for (int i = 0; i < ty_model_n_outputs(f->model); i++) {
        const char *name = ty_model_output(f->model, i)->name;
        const ty_tensor *t = ty_program_output(f->program, TY_RUN_EVAL, name);
        const char *path = file_name(f, folder, name);
        if (!t)
            continue;
        if (ty_npy_write(path, t, err) < 0) {
            ty_buf_fini(&text);
            return -1;
        }
        const char *labels = ty_arena_printf(f->arena, "%.*s.labels.txt", (int)strlen(path) - 4, path);
        bool has_labels = false;
        if (f->rows && ty_infer_rows_label(f->rows, t, labels, &has_labels, err) < 0) {
            ty_buf_fini(&text);
            return -1;
        }
        if (!json && has_labels)
            printf("%s  labels  %s\n", name, labels);
        if (!json)
            printf("%s  %s  %s\n", name, ty_type_text(&t->type, type, sizeof type), path);
        ty_json_open_map(&w, name);
        ty_json_put_string(&w, "type", ty_type_text(&t->type, type, sizeof type));
        ty_json_put_string(&w, "file", path);
        if (has_labels)
            ty_json_put_string(&w, "labels", labels);
        ty_json_close(&w);
    }
    ty_json_close(&w);
    if (json)
        puts(text.data);
    ty_buf_fini(&text);
    return 0;
}

static int infer(inference *f, const ty_arguments_given *given, ty_error *err)
{
    const char *folder = given->value[OUTPUT_DIR] ? given->value[OUTPUT_DIR] : ".";
    ty_compile_options o = {.backend = TY_BACKEND_CPU,
                            .threads = given->value[THREADS] ? atoi(given->value[THREADS]) : 0,
                            .cache_dir = ty_cache_folder(f->arena)};
    const ty_model_choice choice = {.signature = given->value[SIGNATURE], .layers = given->value[LAYERS]};
    if (ty_model_open_as(given->words[0], NULL, &choice, &f->model, err) < 0 || read_inputs(f, given, err) < 0 ||
        ty_compile_infer(f->model, f->bindings, f->n, &o, &f->program, err) < 0 ||
        ty_program_run(f->program, TY_RUN_EVAL, f->pointers, err) < 0)
        return -1;
    return write_outputs(f, folder, given->value[JSON] != NULL, err);
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    inference f = {.arena = a};
    int status = infer(&f, given, err);
    for (int i = 0; f.tensors && i < f.n; i++)
        free(f.tensors[i].data);
    ty_program_free(f.program);
    ty_model_free(f.model);
    return status;
}

const ty_command_row ty_command_infer = {
    "run",
    "MODEL",
    "apply a model to npy files, or to raw rows",
    "    trainyard run run/model/model.onnx --input x=digits.npy --output-dir predictions\n"
    "    trainyard run run/model/model.onnx --data passengers.csv --output-dir predictions\n",
    options,
    N_OPTIONS,
    1,
    1,
    false,
    false,
    run};
