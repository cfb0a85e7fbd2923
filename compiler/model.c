/* model.c - model files behind one face: a table of formats, the first row that knows the file opens it.
 *
 * Inputs, outputs and weights are listed once at opening; everything else goes to the format's functions.
 */
#include "compiler/model.h"

#include "base/file.h"
#include "compiler/composites.h"
#include "compiler/import/cmodel.h"
#include "compiler/import/onnx.h"
#include "compiler/ir/build.h"
#include "compiler/passes/precision.h"
#include "compiler/passes/raise.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct model_format {
    bool (*matches)(const char *path, const uint8_t *head, size_t n);
    /* Sets impl and the lists. kept: as ty_model_open_kept. */
    int (*open)(ty_model *m, const char *path, const char *kept, ty_error *err);
    void (*close)(void *impl);
    int (*import)(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err);
    int (*check)(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max);
    int (*write)(const ty_model *m, const char *path, ty_file_writer *w, ty_find_weight *find, void *ctx,
                 ty_error *err);
    bool (*has_data_file)(const ty_model *m);                         /* NULL: never */
    void (*drop_pages)(const void *impl);                             /* NULL: has none to drop */
    int (*keep)(const void *impl, const char *folder, ty_error *err); /* NULL: has no code */
} model_format;

struct ty_model {
    const model_format *format;
    void *impl;
    char text[160]; /* "onnx opset 18" */
    ty_model_value *input, *output, *weight;
    bool *running; /* one a weight */
    int n_inputs, n_outputs, n_weights;
    int64_t n_nodes;
    ty_model_warning *warning;
    int n_warnings;
    ty_arena arena;
};

/* ---- ONNX ------------------------------------------------------------------------------------------------------- */

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

static int onnx_open(ty_model *m, const char *path, const char *kept, ty_error *err)
{
    ty_onnx *x;
    (void)kept;
    if (ty_onnx_open(path, &x, err) < 0)
        return -1;
    m->impl = x;
    m->n_nodes = ty_onnx_n_nodes(x);
    snprintf(m->text, sizeof m->text, "onnx opset %" PRId64, ty_onnx_opset(x));
    onnx_list(m, x);
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

/* ---- C source --------------------------------------------------------------------------------------------------- */

static bool cmodel_matches(const char *path, const uint8_t *head, size_t n)
{
    size_t len = strlen(path);
    (void)head, (void)n;
    return len > 2 && strcmp(path + len - 2, ".c") == 0;
}

static int cmodel_open(ty_model *m, const char *path, const char *kept, ty_error *err)
{
    ty_cmodel *c;
    if (ty_cmodel_open(path, kept, &c, err) < 0)
        return -1;
    const ty_cmodel_lists *l = ty_cmodel_list(c);
    m->impl = c;
    m->n_nodes = l->n_calls;
    snprintf(m->text, sizeof m->text, "%s", l->format);
    m->input = l->input;
    m->n_inputs = l->n_inputs;
    m->output = l->output;
    m->n_outputs = l->n_outputs;
    m->weight = l->weight;
    m->n_weights = l->n_weights;
    m->running = l->running;
    return 0;
}

static void cmodel_close(void *impl)
{
    ty_cmodel_free(impl);
}

static int cmodel_import(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values,
                         ty_error *err)
{
    return ty_cmodel_import(m->impl, g, b, values, err);
}

/* Building ends at the first fault. */
static int cmodel_check(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max)
{
    ty_model_values values;
    ty_error first;
    if (ty_cmodel_import(m->impl, g, b, &values, &first) == 0)
        return 0;
    if (max > 0)
        faults[0] = first;
    return 1;
}

/* The source has no weights in it: they belong into the safetensors file beside it. */
static int cmodel_write(const ty_model *m, const char *path, ty_file_writer *w, ty_find_weight *find, void *ctx,
                        ty_error *err)
{
    size_t n;
    const char *text = ty_cmodel_source(m->impl, &n);
    (void)path, (void)find, (void)ctx;
    return ty_file_writer_add(w, text, n, err);
}

static int cmodel_keep_code(const void *impl, const char *folder, ty_error *err)
{
    return ty_cmodel_keep(impl, folder, err);
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static const model_format model_formats[] = {
    {cmodel_matches, cmodel_open, cmodel_close, cmodel_import, cmodel_check, cmodel_write, NULL, NULL,
     cmodel_keep_code},
    {onnx_matches, onnx_open, onnx_close, onnx_import, onnx_check, onnx_write, onnx_has_data_file, onnx_drop_pages,
     NULL},
};

int ty_model_keep(const ty_model *m, const char *folder, ty_error *err)
{
    return m->format->keep ? m->format->keep(m->impl, folder, err) : 0;
}

void ty_model_drop_pages(const ty_model *m)
{
    if (m->format->drop_pages)
        m->format->drop_pages(m->impl);
}

static int model_read_head(const char *path, uint8_t *head, size_t max, size_t *n, ty_error *err)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return ty_error_errno(err, TY_E_NONE, errno, "model \"%s\"", path);
    *n = fread(head, 1, max, f);
    bool failed = ferror(f);
    int reason = errno;
    fclose(f);
    return failed ? ty_error_errno(err, TY_E_NONE, reason, "model \"%s\"", path) : 0;
}

static int model_detect(const char *path, const model_format **out, ty_error *err)
{
    uint8_t head[64];
    size_t n = 0;
    if (model_read_head(path, head, sizeof head, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof model_formats / sizeof *model_formats; i++)
        if (model_formats[i].matches(path, head, n)) {
            *out = &model_formats[i];
            return 0;
        }
    ty_error_set(err, TY_E_MODEL_FILE, "model: expected an ONNX file or C source, found %s",
                 n ? "something else" : "an empty file");
    ty_error_at(err, "%s", path);
    return ty_error_help(err,
                         "export the model to ONNX, with its weights, and name the file *.onnx, or write a model.c");
}

int ty_model_open(const char *path, ty_model **out, ty_error *err)
{
    return ty_model_open_kept(path, NULL, out, err);
}

int ty_model_open_kept(const char *path, const char *kept, ty_model **out, ty_error *err)
{
    const model_format *format = NULL;
    *out = NULL;
    if (model_detect(path, &format, err) < 0)
        return -1;
    ty_model *m = calloc(1, sizeof *m);
    if (!m)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a model");
    ty_arena_init(&m->arena);
    m->format = format;
    if (format->open(m, path, kept, err) < 0) {
        ty_model_free(m);
        return -1;
    }
    *out = m;
    return 0;
}

void ty_model_free(ty_model *m)
{
    if (!m)
        return;
    if (m->impl)
        m->format->close(m->impl);
    ty_arena_fini(&m->arena);
    free(m);
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

const char *ty_model_format(const ty_model *m)
{
    return m->text;
}

int ty_model_n_inputs(const ty_model *m)
{
    return m->n_inputs;
}

const ty_model_value *ty_model_input(const ty_model *m, int i)
{
    return &m->input[i];
}

int ty_model_n_outputs(const ty_model *m)
{
    return m->n_outputs;
}

const ty_model_value *ty_model_output(const ty_model *m, int i)
{
    return &m->output[i];
}

int ty_model_n_weights(const ty_model *m)
{
    return m->n_weights;
}

const ty_model_value *ty_model_weight(const ty_model *m, int i)
{
    return &m->weight[i];
}

int64_t ty_model_n_nodes(const ty_model *m)
{
    return m->n_nodes;
}

int ty_model_n_warnings(const ty_model *m)
{
    return m->n_warnings;
}

const ty_model_warning *ty_model_warning_at(const ty_model *m, int i)
{
    return &m->warning[i];
}

static int model_find(const ty_model_value *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return i;
    return -1;
}

int ty_model_find_input(const ty_model *m, const char *name)
{
    return model_find(m->input, m->n_inputs, name);
}

int ty_model_find_output(const ty_model *m, const char *name)
{
    return model_find(m->output, m->n_outputs, name);
}

int ty_model_find_weight(const ty_model *m, const char *name)
{
    return model_find(m->weight, m->n_weights, name);
}

bool ty_model_weight_is_running(const ty_model *m, int weight)
{
    return m->running[weight];
}

/* A model is imported into a draft of its own, in which what it is bound to are inputs, and raised from there. */
typedef struct model_draft {
    ty_graph *g;
    ty_val *bound; /* by input of the draft */
    int n_bound;
} model_draft;

/* Constants stay constants, since importers look at them. */
static ty_val model_bind(model_draft *d, const ty_graph *g, ty_val v)
{
    if (v == TY_NONE)
        return TY_NONE;
    const void *data = ty_graph_const_data(g, v);
    if (data)
        return ty_b_const(d->g, *ty_graph_type(g, v), data);
    char name[32];
    snprintf(name, sizeof name, "bound %d", d->n_bound);
    d->bound[d->n_bound++] = v;
    return ty_b_input(d->g, ty_graph_add_input(d->g, name, *ty_graph_type(g, v)));
}

static const ty_val *model_bind_all(model_draft *d, ty_graph *g, const ty_val *v, int n)
{
    ty_val *out = TY_NEW_ARRAY(ty_graph_arena(d->g), ty_val, n + 1);
    for (int i = 0; i < n; i++)
        out[i] = model_bind(d, g, v[i]);
    return out;
}

/* What the draft gave, in g. In mixed precision there is a graph in between, which stands for the draft. */
static int model_carry_over(const model_draft *d, ty_graph *g, const ty_precision_rules *precision, ty_val *held, int n,
                            ty_error *err)
{
    if (!precision)
        return ty_pass_raise(d->g, g, d->bound, held, n, err);
    model_draft raised = {.g = ty_graph_new()};
    ty_val *same = TY_NEW_ARRAY(ty_graph_arena(raised.g), ty_val, d->n_bound + 1);
    for (int i = 0; i < d->n_bound; i++) {
        const ty_input *input = ty_graph_input(d->g, i);
        same[i] = ty_b_input(raised.g, ty_graph_add_input(raised.g, input->name, input->type));
    }
    int rc = ty_pass_raise(d->g, raised.g, same, held, n, err);
    if (rc == 0)
        rc = ty_pass_precision(raised.g, g, d->bound, precision, held, n, err);
    ty_graph_free(raised.g);
    return rc;
}

/* Outputs and updates are all that the draft is asked for. */
static int model_raise(const ty_model *m, const model_draft *d, ty_graph *g, const ty_precision_rules *precision,
                       ty_model_values *values, ty_error *err)
{
    int n = m->n_outputs + values->n_updates;
    ty_val *held = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, n + 1);
    ty_model_update *updates = TY_NEW_ARRAY(ty_graph_arena(g), ty_model_update, values->n_updates + 1);
    memcpy(held, values->outputs, sizeof *held * (size_t)m->n_outputs);
    for (int i = 0; i < values->n_updates; i++)
        held[m->n_outputs + i] = values->updates[i].value;
    if (model_carry_over(d, g, precision, held, n, err) < 0)
        return -1;
    for (int i = 0; i < values->n_updates; i++)
        updates[i] = (ty_model_update){values->updates[i].weight, held[m->n_outputs + i]};
    *values = (ty_model_values){held, updates, values->n_updates, {{0}}};
    return ty_composites_count(g, held, n, &values->found, err);
}

int ty_model_import(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err)
{
    model_draft d = {.g = ty_graph_new()};
    d.bound = TY_NEW_ARRAY(ty_graph_arena(d.g), ty_val, m->n_inputs + m->n_weights + 2);
    ty_model_binding own = {.mode = b->mode, .inputs = model_bind_all(&d, g, b->inputs, m->n_inputs)};
    if (b->weights)
        own.weights = model_bind_all(&d, g, b->weights, m->n_weights);
    own.seed = model_bind(&d, g, b->seed);
    own.step = model_bind(&d, g, b->step);
    own.batch_norm_replicas = b->batch_norm_replicas;
    int rc = m->format->import(m, d.g, &own, values, err);
    if (rc == 0)
        rc = model_raise(m, &d, g, b->precision, values, err);
    ty_graph_free(d.g);
    return rc;
}

bool ty_model_has_data_file(const ty_model *m)
{
    return m->format->has_data_file && m->format->has_data_file(m);
}

/* ---- writing, checking ------------------------------------------------------------------------------------------ */

int ty_model_write(const ty_model *m, const char *path, ty_find_weight *find, void *ctx, ty_error *err)
{
    ty_file_writer w;
    if (ty_file_writer_open(&w, path, 0644, err) < 0)
        return -1;
    if (m->format->write(m, path, &w, find, ctx, err) < 0) {
        ty_file_writer_abandon(&w);
        return -1;
    }
    return ty_file_writer_commit(&w, err);
}

static int model_bind_batch(const ty_model *m, ty_graph *g, int64_t batch, ty_val *inputs, ty_error *err)
{
    for (int i = 0; i < m->n_inputs; i++) {
        const ty_model_value *v = &m->input[i];
        if (v->rank < 0 || v->dtype >= TY_N_DTYPES)
            return ty_error_set(err, TY_E_SHAPE, "input \"%s\": the file gives no %s", v->name,
                                v->rank < 0 ? "shape" : "element type that is known here");
        ty_type type = {.dtype = (uint8_t)v->dtype, .rank = (uint8_t)v->rank};
        for (int k = 0; k < v->rank; k++)
            type.dim[k] = v->dim[k] < 0 ? batch : v->dim[k];
        inputs[i] = ty_b_input(g, ty_graph_add_input(g, v->name, type));
    }
    return ty_graph_failed(g, err) ? -1 : 0;
}

int ty_model_faults(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max)
{
    return m->format->check(m, g, b, faults, max);
}

int ty_model_count_composites(const ty_model *m, int64_t batch, ty_composite_count *out, ty_error *err)
{
    ty_graph *g = ty_graph_new();
    ty_val *inputs = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, m->n_inputs + 1);
    ty_model_binding b = {.mode = TY_MODEL_TRAIN, .inputs = inputs};
    ty_model_values values;
    b.seed = b.step = ty_b_scalar(g, TY_I64, 0);
    int rc = model_bind_batch(m, g, batch, inputs, err);
    if (rc == 0)
        rc = ty_model_import(m, g, &b, &values, err);
    if (rc == 0)
        *out = values.found;
    ty_graph_free(g);
    return rc;
}
