/* model_onnx.c - the row of ONNX models in the table of formats. */
#include "compiler/import/onnx.h"
#include "compiler/model_format.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void onnx_drop_pages(const void *impl)
{
    ty_onnx_drop_pages(impl);
}

/* ONNX has no signature: a protobuf whose first field is the ir_version (tag 0x08), or the name says so. */
static bool onnx_matches(const char *path, const uint8_t *head, size_t n)
{
    size_t len = strlen(path);
    return (len > 5 && strcmp(path + len - 5, ".onnx") == 0) || (n > 1 && head[0] == 0x08 && head[1] < 0x80);
}

static ty_model_value onnx_value(const ty_onnx_value *v)
{
    ty_model_value out = {.name = v->name, .dtype = v->dtype, .rank = v->rank};
    memcpy(out.dim, v->dim, sizeof out.dim);
    memcpy(out.dim_name, v->dim_name, sizeof out.dim_name);
    return out;
}

static ty_model_value onnx_weight(const ty_onnx_initializer *w)
{
    ty_model_value out = {.name = w->name, .dtype = (ty_dtype)w->type.dtype, .rank = w->type.rank, .data = w->data};
    memcpy(out.dim, w->type.dim, sizeof out.dim);
    out.trainable_hint =
        out.dtype < TY_N_DTYPES && ty_dtype_is_float(out.dtype) && !w->is_running && w->mark != TY_ONNX_BUFFER;
    return out;
}

static void onnx_list(ty_model *m, const ty_onnx *x)
{
    m->n_inputs = ty_onnx_n_inputs(x);
    m->input = TY_NEW_ARRAY(&m->arena, ty_model_value, m->n_inputs);
    for (int i = 0; i < m->n_inputs; i++)
        m->input[i] = onnx_value(ty_onnx_input(x, i));
    m->n_outputs = ty_onnx_n_outputs(x);
    m->output = TY_NEW_ARRAY(&m->arena, ty_model_value, m->n_outputs);
    for (int i = 0; i < m->n_outputs; i++)
        m->output[i] = onnx_value(ty_onnx_output(x, i));
    m->n_weights = ty_onnx_n_initializers(x);
    m->weight = TY_NEW_ARRAY(&m->arena, ty_model_value, m->n_weights);
    m->running = TY_NEW_ARRAY(&m->arena, bool, m->n_weights);
    for (int i = 0; i < m->n_weights; i++) {
        m->weight[i] = onnx_weight(ty_onnx_initializer_at(x, i));
        m->running[i] = ty_onnx_initializer_at(x, i)->is_running;
    }
}

static void onnx_warn(ty_model *m, const ty_onnx *x)
{
    ty_onnx_warning list[TY_ONNX_MAX_WARNINGS];
    m->n_warnings = ty_onnx_warnings(x, &m->arena, list);
    m->warning = TY_NEW_ARRAY(&m->arena, ty_model_warning, m->n_warnings);
    for (int i = 0; i < m->n_warnings; i++)
        m->warning[i] = (ty_model_warning){list[i].text, list[i].help};
}

static void onnx_say(ty_model *m, const ty_onnx *x)
{
    ty_model_fact *fact = TY_NEW_ARRAY(&m->arena, ty_model_fact, 3);
    if (ty_onnx_producer(x)[0])
        fact[m->n_facts++] = (ty_model_fact){"written by", ty_onnx_producer(x)};
    fact[m->n_facts++] = (ty_model_fact){"IR version", ty_arena_printf(&m->arena, "%" PRId64, ty_onnx_ir_version(x))};
    if (ty_onnx_n_merged(x))
        fact[m->n_facts++] =
            (ty_model_fact){"merged weights", ty_arena_printf(&m->arena, "%d, separate again", ty_onnx_n_merged(x))};
    m->fact = fact;
}

static int onnx_open(ty_model *m, const char *path, const char *kept, ty_error *err)
{
    ty_onnx *x;
    (void)kept;
    if (ty_onnx_open(path, &x, err) < 0)
        return -1;
    m->impl = x;
    m->artifact = "model.onnx";
    m->n_nodes = ty_onnx_n_nodes(x);
    snprintf(m->text, sizeof m->text, "onnx opset %" PRId64, ty_onnx_opset(x));
    onnx_list(m, x);
    onnx_say(m, x);
    onnx_warn(m, x);
    return 0;
}

static void onnx_close(void *impl)
{
    ty_onnx_free(impl);
}

static ty_onnx_binding onnx_binding(const ty_model_binding *b)
{
    return (ty_onnx_binding){.mode = b->mode == TY_MODEL_TRAIN ? TY_ONNX_TRAIN : TY_ONNX_EVAL,
                             .inputs = b->inputs,
                             .initializers = b->weights,
                             .seed = b->seed,
                             .step = b->step,
                             .batch_norm_replicas = b->batch_norm_replicas};
}

static int onnx_import(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values,
                       ty_error *err)
{
    ty_onnx_binding binding = onnx_binding(b);
    ty_onnx_values got;
    if (ty_onnx_import(m->impl, g, &binding, &got, err) < 0)
        return -1;
    ty_model_update *updates = TY_NEW_ARRAY(ty_graph_arena(g), ty_model_update, got.n_updates);
    for (int i = 0; i < got.n_updates; i++)
        updates[i] = (ty_model_update){got.updates[i].initializer, got.updates[i].value};
    *values = (ty_model_values){.outputs = got.outputs, .updates = updates, .n_updates = got.n_updates};
    return 0;
}

static ty_error *onnx_find_fault(ty_error *faults, int n, const ty_error *fault)
{
    for (int i = 0; i < n; i++)
        if (strcmp(faults[i].place, fault->place) == 0)
            return &faults[i];
    return NULL;
}

/* First what no shape could heal, then what these shapes break at other places. Where both know a node, the import also
 * knows its inputs. */
static int onnx_check(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max)
{
    int found = ty_onnx_check(m->impl, faults, max);
    int stored = found < max ? found : max;
    ty_onnx_binding binding = onnx_binding(b);
    ty_onnx_values got;
    ty_error first;
    if (ty_onnx_import(m->impl, g, &binding, &got, &first) == 0)
        return found;
    int known = stored;
    for (int i = 0; i < got.n_faults; i++) {
        ty_error *same = onnx_find_fault(faults, known, &got.faults[i]);
        if (same)
            *same = got.faults[i];
        else if (stored < max)
            faults[stored++] = got.faults[i];
        found += !same;
    }
    return found;
}

static int onnx_sink_file(void *ctx, const void *bytes, size_t n, ty_error *err)
{
    return ty_file_writer_add(ctx, bytes, n, err);
}

static bool onnx_has_data_file(const ty_model *m)
{
    return ty_onnx_needs_two_files(m->impl);
}

/* The second file appears before the model that names it. */
static int onnx_write_two(const ty_onnx *x, const ty_onnx_payload *payloads, int n, const char *path, ty_file_writer *w,
                          ty_error *err)
{
    char data_path[PATH_MAX];
    ty_file_writer data;
    if (snprintf(data_path, sizeof data_path, "%s" TY_MODEL_DATA_SUFFIX, path) >= (int)sizeof data_path)
        return ty_error_set(err, TY_E_LIMIT, "the path \"%s\" is too long", path);
    if (ty_file_writer_open(&data, data_path, 0644, err) < 0)
        return -1;
    const char *slash = strrchr(data_path, '/');
    if (ty_onnx_write_two_files(x, payloads, n, slash ? slash + 1 : data_path, onnx_sink_file, w, onnx_sink_file, &data,
                                err) < 0) {
        ty_file_writer_abandon(&data);
        return -1;
    }
    return ty_file_writer_commit(&data, err);
}

static int onnx_write(const ty_model *m, const char *path, ty_file_writer *w, ty_find_weight *find, void *ctx,
                      ty_error *err)
{
    const ty_onnx *x = m->impl;
    ty_onnx_payload *payloads = calloc((size_t)m->n_weights + 1, sizeof *payloads);
    if (!payloads)
        return ty_error_set(err, TY_E_LIMIT, "no memory to list %d weights", m->n_weights);
    int n = 0;
    for (int i = 0; i < m->n_weights; i++) {
        const void *data = find(ctx, m->weight[i].name, &ty_onnx_initializer_at(x, i)->type);
        if (data)
            payloads[n++] = (ty_onnx_payload){i, data};
    }
    int rc = onnx_has_data_file(m) ? onnx_write_two(x, payloads, n, path, w, err)
                                   : ty_onnx_write(x, payloads, n, onnx_sink_file, w, err);
    free(payloads);
    return rc;
}

const model_format ty_model_onnx = {.matches = onnx_matches,
                                    .open = onnx_open,
                                    .close = onnx_close,
                                    .import = onnx_import,
                                    .check = onnx_check,
                                    .write = onnx_write,
                                    .has_data_file = onnx_has_data_file,
                                    .drop_pages = onnx_drop_pages};
