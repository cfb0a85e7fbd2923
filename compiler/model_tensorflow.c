/* model_tensorflow.c - TensorFlow's files as a format of compiler/model.c.
 *
 * Inputs and outputs are those of the signature that is applied. Of a file that trains itself, the inputs that only its
 * training step has come behind them; both computations share the variables.
 */
#include "compiler/import/tensorflow/tf_import.h"
#include "compiler/model_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct tensorflow {
    tf_file *file;
    const tf_signature *applied, *trains; /* trains: NULL unless the file's own step is wanted */
    int *variable;                        /* by weight: its number in the file */
} tensorflow;

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), k = strlen(end);
    return n >= k && strcmp(path + n - k, end) == 0;
}

static bool tensorflow_matches(const char *path, const uint8_t *head, size_t n)
{
    char inside[4096];
    struct stat st;
    (void)head, (void)n;
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return ends_with(path, ".pb") || ends_with(path, ".meta") || ends_with(path, ".index");
    for (int chunked = 0; chunked < 2; chunked++) {
        int length = snprintf(inside, sizeof inside, "%s/saved_model.%s", path, chunked ? "cpb" : "pb");
        if (length < (int)sizeof inside && access(inside, F_OK) == 0)
            return true;
    }
    return tf_has_checkpoint(path);
}

/* ---- lists --------------------------------------------------------------------------------------------------------
 */

static ty_model_value port_value(const tf_port *p)
{
    ty_model_value v = {.name = p->name, .dtype = tf_dtype(p->data_type), .rank = p->rank};
    memcpy(v.dim, p->dim, sizeof v.dim);
    return v;
}

static int find_port(const tf_port *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return i;
    return -1;
}

static void list_ports(ty_model *m, const tensorflow *t)
{
    const tf_signature *s = t->applied;
    int more = t->trains ? t->trains->n_inputs : 0;
    m->input = TY_NEW_ARRAY(&m->arena, ty_model_value, s->n_inputs + more + 1);
    for (int i = 0; i < s->n_inputs; i++)
        m->input[m->n_inputs++] = port_value(&s->input[i]);
    for (int i = 0; i < more; i++)
        if (find_port(s->input, s->n_inputs, t->trains->input[i].name) < 0) {
            m->input[m->n_inputs] = port_value(&t->trains->input[i]);
            m->input[m->n_inputs++].only_trains = true;
        }
    m->output = TY_NEW_ARRAY(&m->arena, ty_model_value, s->n_outputs + 1);
    for (int i = 0; i < s->n_outputs; i++)
        m->output[m->n_outputs++] = port_value(&s->output[i]);
}

/* Variables that the signatures use and that a graph can hold. */
static void list_weights(ty_model *m, tensorflow *t)
{
    int n = tf_n_variables(t->file);
    m->weight = TY_NEW_ARRAY(&m->arena, ty_model_value, n + 1);
    m->running = TY_NEW_ARRAY(&m->arena, bool, n + 1);
    t->variable = TY_NEW_ARRAY(&m->arena, int, n + 1);
    for (int i = 0; i < n; i++) {
        const tf_variable *v = tf_variable_at(t->file, i);
        if (!v->is_used || v->type.dtype >= TY_N_DTYPES || !v->data)
            continue;
        ty_model_value w = {.name = v->name, .dtype = (ty_dtype)v->type.dtype, .rank = v->type.rank, .data = v->data};
        memcpy(w.dim, v->type.dim, sizeof w.dim);
        w.trainable_hint = v->trainable && !v->is_running && ty_dtype_is_float(w.dtype);
        m->running[m->n_weights] = v->is_running;
        t->variable[m->n_weights] = i;
        m->weight[m->n_weights++] = w;
    }
}

/* Variables that applying the model assigns (seeds, counters, statistics that move): not trained, but changed. */
static int mark_assigned(ty_model *m, const tensorflow *t, ty_error *err)
{
    ty_arena arena;
    tf_graph *g;
    ty_arena_init(&arena);
    int rc = tf_signature_graph(t->file, t->applied, NULL, NULL, &arena, &g, err);
    for (int i = 0; rc == 0 && i < g->n_nodes; i++) {
        int at = g->node[i].is_effect && g->node[i].n_in > 0 ? g->node[i].in[0].node : -1;
        int variable = at >= 0 ? g->node[at].variable : -1;
        for (int k = 0; k < m->n_weights; k++)
            if (variable >= 0 && t->variable[k] == variable) {
                m->running[k] = true;
                m->weight[k].trainable_hint = false;
            }
    }
    ty_arena_fini(&arena);
    return rc;
}

static const char *ports_text(ty_arena *a, const tf_port *list, int n)
{
    const char *out = "";
    for (int i = 0; i < n; i++) {
        const char *dims = list[i].rank < 0 ? "?" : "";
        for (int k = 0; k < list[i].rank; k++)
            dims = list[i].dim[k] < 0 ? ty_arena_printf(a, "%s%s?", dims, k ? "," : "")
                                      : ty_arena_printf(a, "%s%s%" PRId64, dims, k ? "," : "", list[i].dim[k]);
        out = ty_arena_printf(a, "%s%s%s %s[%s]", out, i ? ", " : "", list[i].name,
                              tf_data_type_text(list[i].data_type), dims);
    }
    return out;
}

/* Each signature with what it takes and gives; which one is meant. */
static void say_signatures(ty_model *m, const tensorflow *t)
{
    int n = tf_n_signatures(t->file);
    ty_model_fact *fact = TY_NEW_ARRAY(&m->arena, ty_model_fact, n + 1);
    for (int i = 0; i < n; i++) {
        const tf_signature *s = tf_signature_at(t->file, i);
        fact[m->n_facts++] = (ty_model_fact){s == t->applied ? "signature, used" : "signature",
                                             ty_arena_printf(&m->arena, "%s: %s -> %s", s->name,
                                                             ports_text(&m->arena, s->input, s->n_inputs),
                                                             ports_text(&m->arena, s->output, s->n_outputs))};
    }
    m->fact = fact;
}

static int tensorflow_open(ty_model *m, const char *path, const char *kept, ty_error *err)
{
    tensorflow *t = TY_NEW(&m->arena, tensorflow);
    tf_options options = {.signature = m->choice.signature, .train_signature = m->choice.train_signature};
    (void)kept;
    if (tf_open(path, &options, &t->file, err) < 0)
        return -1;
    m->impl = t;
    t->applied = tf_chosen_signature(t->file);
    t->trains = tf_train_signature(t->file);
    m->own_step = t->trains != NULL;
    m->n_nodes = tf_n_nodes(t->file);
    m->artifact = tf_artifact(t->file);
    snprintf(m->text, sizeof m->text, "%s", tf_format_text(t->file));
    list_ports(m, t);
    list_weights(m, t);
    say_signatures(m, t);
    return mark_assigned(m, t, err);
}

static void tensorflow_close(void *impl)
{
    tf_close(((tensorflow *)impl)->file);
}

static void tensorflow_drop_pages(const void *impl)
{
    tf_drop_pages(((const tensorflow *)impl)->file);
}

/* ---- importing ----------------------------------------------------------------------------------------------------
 */

/* What b means for the signature of a run: inputs by name, weights by number of the variable. */
static ty_model_binding bind_run(const ty_model *m, const tensorflow *t, ty_graph *g, const ty_model_binding *b,
                                 tf_run *run)
{
    ty_arena *arena = ty_graph_arena(g);
    bool own = t->trains && b->mode == TY_MODEL_TRAIN;
    *run = (tf_run){t->file, own ? t->trains : t->applied, own};
    int n = tf_n_variables(t->file);
    ty_val *inputs = TY_NEW_ARRAY(arena, ty_val, run->signature->n_inputs + 1);
    ty_val *weights = b->weights ? TY_NEW_ARRAY(arena, ty_val, n + 1) : NULL;
    for (int i = 0; i < run->signature->n_inputs; i++) {
        int k = ty_model_find_input(m, run->signature->input[i].name);
        inputs[i] = k < 0 ? TY_NONE : b->inputs[k];
    }
    for (int i = 0; i < n && weights; i++)
        weights[i] = TY_NONE;
    for (int i = 0; i < m->n_weights && weights; i++)
        weights[t->variable[i]] = b->weights[i];
    ty_model_binding out = *b;
    out.inputs = inputs;
    out.weights = weights;
    return out;
}

/* The loss of the file's own step: the first of its results that is one float. */
static int take_loss(const ty_model *m, const tf_run *run, ty_graph *g, ty_model_values *values, ty_error *err)
{
    const ty_val *result = values->outputs;
    ty_val *none = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, m->n_outputs + 1);
    for (int i = 0; i < m->n_outputs; i++)
        none[i] = TY_NONE;
    values->outputs = none;
    for (int i = 0; i < run->signature->n_outputs; i++) {
        const ty_type *t = ty_graph_type(g, result[i]);
        if (t->rank > 0 || !ty_dtype_is_float((ty_dtype)t->dtype))
            continue;
        values->loss = &result[i];
        return 0;
    }
    if (run->signature->n_outputs == 0)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "the training signature \"%s\" gives no loss: none of its results is one float",
                 run->signature->name);
    return ty_error_help(err, "let the training function return its loss, and export it again");
}

static int tensorflow_import(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values,
                             ty_error *err)
{
    const tensorflow *t = m->impl;
    tf_run run;
    ty_model_binding own = bind_run(m, t, g, b, &run);
    if (tf_import(&run, g, &own, values, err) < 0)
        return -1;
    ty_model_update *update = TY_NEW_ARRAY(ty_graph_arena(g), ty_model_update, values->n_updates + 1);
    int n = 0;
    for (int i = 0; i < values->n_updates; i++)
        for (int k = 0; k < m->n_weights; k++)
            if (t->variable[k] == values->updates[i].weight)
                update[n++] = (ty_model_update){k, values->updates[i].value};
    values->updates = update;
    values->n_updates = n;
    return run.own_step ? take_loss(m, &run, g, values, err) : 0;
}

static int tensorflow_check(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max)
{
    const tensorflow *t = m->impl;
    tf_run run;
    ty_model_binding own = bind_run(m, t, g, b, &run);
    return tf_check(&run, g, &own, faults, max);
}

/* ---- writing ------------------------------------------------------------------------------------------------------
 */

typedef struct finding {
    ty_find_weight *find;
    void *ctx;
} finding;

static const void *find_value(void *ctx, const tf_variable *v)
{
    const finding *f = ctx;
    return f->find(f->ctx, v->name, &v->type);
}

static int tensorflow_write(const ty_model *m, const char *path, ty_find_weight *find, void *ctx, ty_error *err)
{
    const tensorflow *t = m->impl;
    finding f = {find, ctx};
    return tf_write(t->file, path, find_value, &f, err);
}

const model_format ty_model_tensorflow = {.matches = tensorflow_matches,
                                          .open = tensorflow_open,
                                          .close = tensorflow_close,
                                          .import = tensorflow_import,
                                          .check = tensorflow_check,
                                          .write_to = tensorflow_write,
                                          .drop_pages = tensorflow_drop_pages};
