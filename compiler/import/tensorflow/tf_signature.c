/* tf_signature.c - signatures: those of the file, and ones made from the names of nodes.
 *
 * A frozen graph has none: its inputs are its Placeholders, its outputs the values that nobody takes.
 */
#include "compiler/import/tensorflow/tf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PORTS = 4096 };

/* ---- of the file --------------------------------------------------------------------------------------------------
 */

static int compare_entries(const void *a, const void *b)
{
    const tf_info_entry *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

static int read_port(tf_file *f, const tf_info_entry *e, tf_port *port, tf_in *end, ty_error *err)
{
    *port = (tf_port){.name = e->key, .rank = -1};
    if (!e->value || !*e->value->name)
        return ty_error_set(err, TY_E_UNSUPPORTED, "\"%.120s\" is no dense tensor", e->key);
    port->data_type = e->value->data_type >= TF_REF ? e->value->data_type - TF_REF : e->value->data_type;
    if (e->value->shape && !tf_read_shape(e->value->shape, &port->rank, port->dim))
        return ty_error_set(err, TY_E_UNSUPPORTED, "\"%.120s\" has a shape of more than %d dimensions", e->key,
                            TY_MAX_RANK);
    if (tf_body_resolve(f, f->body, e->value->name, end, err) < 0)
        return ty_error_wrap(err, "\"%.120s\"", e->key);
    return 0;
}

/* Inputs or outputs, sorted by name. */
static int read_ports(tf_file *f, const ty_wire_list *list, const tf_port **ports, const tf_in **ends, ty_error *err)
{
    if (list->n > MAX_PORTS)
        return ty_error_set(err, TY_E_LIMIT, "it has %zu inputs or outputs; at most %d are possible", list->n,
                            MAX_PORTS);
    const tf_info_entry **sorted = TY_NEW_ARRAY(&f->arena, const tf_info_entry *, list->n);
    tf_port *port = TY_NEW_ARRAY(&f->arena, tf_port, list->n);
    tf_in *end = TY_NEW_ARRAY(&f->arena, tf_in, list->n);
    for (size_t i = 0; i < list->n; i++)
        sorted[i] = TF_AT(*list, tf_info_entry, i);
    qsort(sorted, list->n, sizeof(sorted[0]), compare_entries);
    for (size_t i = 0; i < list->n; i++)
        if (read_port(f, sorted[i], &port[i], &end[i], err) < 0)
            return -1;
    *ports = port;
    *ends = end;
    return 0;
}

static int read_signature(tf_file *f, const tf_signature_entry *e, tf_signature *s, ty_error *err)
{
    struct tf_signature_ends *ends = TY_NEW(&f->arena, struct tf_signature_ends);
    *s = (tf_signature){.name = e->key,
                        .method = e->value->method,
                        .n_inputs = (int)e->value->inputs.n,
                        .n_outputs = (int)e->value->outputs.n,
                        .ends = ends};
    if (read_ports(f, &e->value->inputs, &s->input, &ends->input, err) < 0 ||
        read_ports(f, &e->value->outputs, &s->output, &ends->output, err) < 0)
        return ty_error_wrap(err, "signature \"%.120s\"", e->key);
    return 0;
}

static bool is_operation(const tf_signature_entry *e)
{
    return !e->value || strncmp(e->key, "__saved_model", 13) == 0 || e->value->outputs.n == 0;
}

static int compare_signatures(const void *a, const void *b)
{
    return strcmp(((const tf_signature *)a)->name, ((const tf_signature *)b)->name);
}

/* A signature that cannot be read (sparse tensors) is refused when it is asked for; others may be fine. */
static void list_signatures(tf_file *f)
{
    const ty_wire_list *list = &f->meta->signatures;
    f->signature = TY_NEW_ARRAY(&f->arena, tf_signature, list->n);
    for (size_t i = 0; i < list->n; i++) {
        const tf_signature_entry *e = TF_AT(*list, tf_signature_entry, i);
        if (!is_operation(e) && read_signature(f, e, &f->signature[f->n_signatures], NULL) == 0)
            f->n_signatures++;
    }
    qsort(f->signature, (size_t)f->n_signatures, sizeof *f->signature, compare_signatures);
}

/* ---- from nodes ---------------------------------------------------------------------------------------------------
 */

static void raw_port(tf_file *f, int at, tf_port *port)
{
    tf_raw *raw = &f->body->raw[at];
    *port = (tf_port){.name = raw->node.name, .rank = -1};
    if (tf_body_attrs(f, f->body, raw, NULL) < 0)
        return;
    tf_node n = tf_raw_view(raw);
    tf_shape shape;
    port->data_type = tf_attr_type(&n, "dtype", tf_attr_type(&n, "T", 0));
    if (tf_attr_shape(&n, &f->arena, "shape", &shape)) {
        port->rank = shape.rank;
        for (int i = 0; i < shape.rank; i++)
            port->dim[i] = shape.dim[i];
    }
}

static bool is_placeholder(const char *op)
{
    return strcmp(op, "Placeholder") == 0 || strcmp(op, "PlaceholderV2") == 0;
}

/* Placeholders that the outputs and what runs besides need, in the order of the file. */
static int find_inputs(tf_file *f, const struct tf_signature_ends *ends, int n_outputs, int *found, int *n_found,
                       ty_error *err)
{
    const tf_body *b = f->body;
    int *stack = malloc(((size_t)b->n + 1) * sizeof *stack), n = 0, rc = 0;
    char *seen = calloc((size_t)b->n + 1, 1);
    if (!stack || !seen)
        rc = ty_error_set(err, TY_E_LIMIT, "no memory for %d nodes", b->n);
    for (int i = 0; i < n_outputs + ends->n_effects && rc == 0; i++) {
        int at = i < n_outputs ? ends->output[i].at : ends->effect[i - n_outputs];
        if (!seen[at])
            seen[stack[n++] = at] = 1;
    }
    while (n > 0 && rc == 0) {
        tf_raw *raw = &b->raw[stack[--n]];
        rc = tf_op_is_stripped(raw->node.op) ? 0 : tf_body_inputs(f, b, raw, err);
        for (int k = 0; k < raw->n_in && rc == 0; k++)
            if (!seen[raw->in[k].at])
                seen[stack[n++] = raw->in[k].at] = 1;
    }
    for (int i = 0; i < b->n && rc == 0; i++)
        if (seen[i] && is_placeholder(b->raw[i].node.op)) {
            if (*n_found == MAX_PORTS)
                rc = ty_error_set(err, TY_E_LIMIT, "more than %d inputs", MAX_PORTS);
            else
                found[(*n_found)++] = i;
        }
    free(stack);
    free(seen);
    return rc;
}

static int add_inputs(tf_file *f, tf_signature *s, struct tf_signature_ends *ends, ty_error *err)
{
    int *found = TY_NEW_ARRAY(&f->arena, int, MAX_PORTS), n = 0;
    if (find_inputs(f, ends, s->n_outputs, found, &n, err) < 0)
        return -1;
    tf_port *port = TY_NEW_ARRAY(&f->arena, tf_port, n);
    tf_in *end = TY_NEW_ARRAY(&f->arena, tf_in, n);
    for (int i = 0; i < n; i++) {
        raw_port(f, found[i], &port[i]);
        end[i] = (tf_in){TF_IN_NODE, found[i], 0};
    }
    s->input = port;
    s->n_inputs = n;
    ends->input = end;
    return 0;
}

static int add_output(tf_file *f, const char *text, tf_port *port, tf_in *end, ty_error *err)
{
    if (tf_body_resolve(f, f->body, text, end, NULL) < 0 || end->kind != TF_IN_NODE)
        return ty_error_set(err, TY_E_MODEL_FILE, "the graph has no output \"%.120s\"", text);
    raw_port(f, end->at, port);
    port->name = text;
    port->rank = -1;
    return 0;
}

static int add_outputs(tf_file *f, tf_signature *s, struct tf_signature_ends *ends, const char *outputs, ty_error *err)
{
    tf_port *port = TY_NEW_ARRAY(&f->arena, tf_port, MAX_PORTS);
    tf_in *end = TY_NEW_ARRAY(&f->arena, tf_in, MAX_PORTS);
    for (const char *at = outputs; *at;) {
        at += strspn(at, ", ");
        size_t n = strcspn(at, ", ");
        if (n == 0)
            break;
        if (s->n_outputs == MAX_PORTS)
            return ty_error_set(err, TY_E_LIMIT, "more than %d outputs", MAX_PORTS);
        const char *text = ty_arena_strndup(&f->arena, at, n);
        if (add_output(f, text, &port[s->n_outputs], &end[s->n_outputs], err) < 0)
            return -1;
        s->n_outputs++;
        at += n;
    }
    s->output = port;
    ends->output = end;
    return 0;
}

int tf_node_signature(tf_file *f, const char *run, const char *outputs, const tf_signature **out, ty_error *err)
{
    tf_signature *s = TY_NEW(&f->arena, tf_signature);
    struct tf_signature_ends *ends = TY_NEW(&f->arena, struct tf_signature_ends);
    *s = (tf_signature){.name = run ? run : "graph", .method = "", .ends = ends};
    if (add_outputs(f, s, ends, outputs, err) < 0)
        return -1;
    if (run) {
        int *effect = TY_NEW(&f->arena, int);
        *effect = ty_names_find(&f->body->names, run);
        if (*effect < 0)
            return ty_error_set(err, TY_E_MODEL_FILE, "the graph has no node \"%.120s\"", run);
        ends->effect = effect;
        ends->n_effects = 1;
    }
    *out = s;
    return add_inputs(f, s, ends, err);
}

/* ---- of a frozen graph --------------------------------------------------------------------------------------------
 */

static bool gives_nothing(const char *op)
{
    static const char *const list[] = {"Const",
                                       "NoOp",
                                       "Shape",
                                       "Placeholder",
                                       "PlaceholderV2",
                                       "Assert",
                                       "VarIsInitializedOp",
                                       "IsVariableInitialized",
                                       "ReadVariableOp", /* a variable's own, which nobody takes */
                                       NULL};
    for (int i = 0; list[i]; i++)
        if (strcmp(op, list[i]) == 0)
            return true;
    return tf_op_is_stripped(op) || tf_op_is_variable(op) || tf_op_assigns(op);
}

/* What a TF1 graph has besides its model: gradients, also of an optimizer in a scope, the saver, a check of variables.
 */
static bool is_besides(const char *name)
{
    static const char *const list[] = {"gradients/", "save/", "report_uninitialized_variables", NULL};
    for (int i = 0; list[i]; i++)
        if (strncmp(name, list[i], strlen(list[i])) == 0)
            return true;
    return strstr(name, "/gradients/") != NULL;
}

/* "w/read", which stands beside each variable. */
static bool is_plain_read(const tf_body *b, const tf_raw *raw)
{
    return strcmp(raw->node.op, "Identity") == 0 && raw->n_in == 1 && tf_op_is_variable(b->raw[raw->in[0].at].node.op);
}

/* Values that nobody takes, by name. */
static const char *find_outputs(tf_file *f, ty_error *err)
{
    const tf_body *b = f->body;
    bool *taken = TY_NEW_ARRAY(&f->arena, bool, b->n);
    for (int i = 0; i < b->n; i++) {
        if (tf_body_inputs(f, b, &b->raw[i], err) < 0)
            return NULL;
        bool counts = !tf_op_is_stripped(b->raw[i].node.op) && !is_besides(b->raw[i].node.name);
        for (int k = 0; k < b->raw[i].n_in && counts; k++)
            taken[b->raw[i].in[k].at] = true;
    }
    const char *out = "";
    int n = 0;
    for (int i = 0; i < b->n && n < 64; i++)
        if (!taken[i] && !gives_nothing(b->raw[i].node.op) && !is_besides(b->raw[i].node.name) &&
            !is_plain_read(b, &b->raw[i]))
            out = ty_arena_printf(&f->arena, "%s%s%s", out, n++ ? "," : "", b->raw[i].node.name);
    return out;
}

/* ---- choosing -----------------------------------------------------------------------------------------------------
 */

const tf_signature *tf_find_signature(const tf_file *f, const char *name)
{
    for (int i = 0; i < f->n_signatures; i++)
        if (strcmp(f->signature[i].name, name) == 0)
            return &f->signature[i];
    return NULL;
}

static const char *names_text(tf_file *f)
{
    const char *out = f->n_signatures ? "" : "none";
    for (int i = 0; i < f->n_signatures && i < 20; i++)
        out = ty_arena_printf(&f->arena, "%s%s\"%s\"", out, i ? ", " : "", f->signature[i].name);
    return out;
}

static int choose_default(tf_file *f, ty_error *err)
{
    static const char *const usual[] = {"serving_default", "serve", "forward"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual && !f->chosen; i++)
        f->chosen = tf_find_signature(f, usual[i]);
    if (!f->chosen && f->n_signatures == 1)
        f->chosen = &f->signature[0];
    if (f->chosen)
        return 0;
    ty_error_set(err, TY_E_MODEL_FILE, "expected a signature \"serving_default\", found %.400s", names_text(f));
    return ty_error_help(err, f->n_signatures ? "say which one in the recipe: signature: NAME"
                                              : "save the model with signatures=...: tf.saved_model.save(model, "
                                                "folder, signatures=model.forward.get_concrete_function(...))");
}

/* A signature by name, or outputs of the graph by theirs. */
static int choose(tf_file *f, const char *name, const tf_signature **out, ty_error *err)
{
    *out = tf_find_signature(f, name);
    if (*out || tf_node_signature(f, NULL, name, out, NULL) == 0)
        return 0;
    ty_error_set(err, TY_E_MODEL_FILE, "expected a signature \"%.120s\", found %.400s", name, names_text(f));
    return ty_error_help(err, "name a signature of the file, or outputs of its graph");
}

/* A signature by name, or "TRAIN_OP, LOSS". */
static int choose_train(tf_file *f, const char *name, ty_error *err)
{
    f->train = tf_find_signature(f, name);
    if (f->train)
        return 0;
    size_t n = strcspn(name, ", ");
    return tf_node_signature(f, ty_arena_strndup(&f->arena, name, n), name + n, &f->train, err);
}

int tf_read_signatures(tf_file *f, const tf_options *opt, ty_error *err)
{
    if (f->meta)
        list_signatures(f);
    if (opt->train_signature && choose_train(f, opt->train_signature, err) < 0)
        return -1;
    if (opt->signature)
        return choose(f, opt->signature, &f->chosen, err);
    if (f->n_signatures || f->kind == TF_SAVED_MODEL) {
        if (opt->train_signature && choose_default(f, NULL) < 0)
            f->chosen = f->train;
        return f->chosen ? 0 : choose_default(f, err);
    }
    const char *outputs = find_outputs(f, err);
    return outputs ? tf_node_signature(f, NULL, outputs, &f->chosen, err) : -1;
}

int tf_n_signatures(const tf_file *f)
{
    return f->n_signatures;
}

const tf_signature *tf_signature_at(const tf_file *f, int i)
{
    return &f->signature[i];
}

const tf_signature *tf_chosen_signature(const tf_file *f)
{
    return f->chosen;
}

const tf_signature *tf_train_signature(const tf_file *f)
{
    return f->train;
}
