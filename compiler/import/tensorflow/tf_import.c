/* tf_import.c - walks the nodes of a graph and hands each to the function of its operation.
 *
 * tf.h gives flat graphs in an order of execution, in which nothing is that the results do not need. So there is one
 * pass over a list, with an item for each output. Bodies of control flow, and layers that are known as a whole, are
 * graphs of their own that are walked in the same way.
 */
#include "compiler/import/tensorflow/tf_import.h"

#include "base/suggest.h"
#include "compiler/import/tensorflow/tf_ops.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_NODES = 400000,  /* once loops are unrolled */
    MAX_ITEMS = 1 << 22, /* outputs of one graph */
    MAX_DEPTH = 32,
    MAX_COMPUTED_BYTES = 1 << 30
};

#define TF_ROW(name, min_in, max_in, fn, arg)  void tf_op_##fn(tf_ctx *c);
#define TF_ANY(name, min_in, max_in, fn, arg)  void tf_op_##fn(tf_ctx *c);
#define TF_EACH(name, min_in, max_in, fn, arg) void tf_op_##fn(tf_ctx *c);
#include "compiler/import/tensorflow/tf_ops.def"
#undef TF_ROW
#undef TF_ANY
#undef TF_EACH

static const tf_op_row op_rows[] = {
#define TF_ROW(name, min_in, max_in, fn, arg)  {#name, min_in, max_in, tf_op_##fn, arg, false, false},
#define TF_ANY(name, min_in, max_in, fn, arg)  {#name, min_in, max_in, tf_op_##fn, arg, true, false},
#define TF_EACH(name, min_in, max_in, fn, arg) {#name, min_in, max_in, tf_op_##fn, arg, false, true},
#include "compiler/import/tensorflow/tf_ops.def"
#undef TF_ROW
#undef TF_ANY
#undef TF_EACH
};

enum { N_OP_ROWS = sizeof op_rows / sizeof *op_rows };

/* One graph on its way: items of all outputs, node after node. */
typedef struct tf_walk {
    const tf_graph *graph;
    tf_item *item;
    int *first; /* by node: its output 0 */
    const tf_item *arg;
    int n_args;
} tf_walk;

/* ---- faults -------------------------------------------------------------------------------------------------------
 */

static void store_fault(tf_importer *imp, ty_error *err)
{
    if (imp->n_faults < imp->max_faults)
        imp->faults[imp->n_faults] = *err;
    imp->n_faults++;
}

static void store_node_fault(tf_ctx *c)
{
    char place[400];
    ty_error_at(&c->err, "%s", tf_node_place(c->node, place, sizeof place));
    store_fault(c->imp, &c->err);
}

static void fault_limit(tf_importer *imp, const char *text)
{
    ty_error err = {0};
    if (imp->is_full)
        return;
    imp->is_full = true;
    ty_error_set(&err, TY_E_LIMIT, "%s", text);
    store_fault(imp, &err);
}

/* What we have no row for: what to do instead, where that is known. */
static void fail_unknown(tf_ctx *c)
{
    static const struct {
        const char *part, *help;
    } hints[] = {
        {"String", "text is no number: do what works on it in the data, and feed the step what comes out"},
        {"ParseExample", "trainyard reads records itself: export a signature that takes the parsed tensors"},
        {"ParseSingleExample", "trainyard reads records itself: export a signature that takes the parsed tensors"},
        {"Decode", "files are decoded by trainyard's data formats: export a signature that takes tensors"},
        {"LookupTable", "look words up when the data is made, and feed their numbers"},
        {"HashTable", "look words up when the data is made, and feed their numbers"},
        {"Iterator", "export a function that takes one batch; trainyard reads the data"},
        {"Dataset", "export a function that takes one batch; trainyard reads the data"},
        {"Ragged", "pad to a fixed length, and feed a mask"},
        {"Sparse", "feed dense tensors"},
        {"XlaCallModule", "export it as TensorFlow's operations: jax2tf.convert(f, native_serialization=False)"},
        {"PyFunc", "code in Python cannot come along: write it with TensorFlow's operations"},
        {"Unique", "the number of results depends on the data; a step has fixed shapes"},
        {"NonMaxSuppression", "the number of results depends on the data; a step has fixed shapes"},
        {"Quantize", "train the model before it is quantized"},
    };
    tf_fail(c, TY_E_UNSUPPORTED, "this operation is not supported");
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strstr(c->node->op, hints[i].part)) {
            tf_help(c, "%s", hints[i].help);
            return;
        }
    ty_suggestion nearest = {.word = c->node->op};
    for (int i = 0; i < N_OP_ROWS; i++)
        ty_suggest_offer(&nearest, op_rows[i].name);
    if (nearest.best)
        tf_help(c, "the nearest that is supported is %s", nearest.best);
}

/* ---- nodes --------------------------------------------------------------------------------------------------------
 */

static void index_rows(tf_importer *imp)
{
    ty_names_init(&imp->op_rows, &imp->arena);
    for (int i = 0; i < N_OP_ROWS; i++)
        ty_names_put(&imp->op_rows, op_rows[i].name, i);
}

static const tf_op_row *find_row(const tf_importer *imp, const char *op)
{
    int i = ty_names_find(&imp->op_rows, op);
    return i < 0 ? NULL : &op_rows[i];
}

/* The items that a node reads. False if one is faulty or dead: then its outputs are, without a second message. A Merge
 * looks at what is dead itself. */
static bool bind_inputs(const tf_walk *w, tf_ctx *c, tf_item_kind *why)
{
    tf_item *in = tf_alloc(c, (size_t)c->node->n_in, sizeof *in);
    bool takes_dead = strcmp(c->node->op, "Merge") == 0;
    bool sound = true;
    for (int i = 0; i < c->node->n_in; i++) {
        tf_edge e = c->node->in[i];
        in[i] = (tf_item){.kind = TF_DEAD, .variable = -1, .val = TY_NONE};
        if (e.node >= 0 && e.node < w->graph->n_nodes && e.out >= 0 && e.out < w->graph->node[e.node].n_out)
            in[i] = w->item[w->first[e.node] + e.out];
        if (in[i].kind == TF_FAULTY || (in[i].kind == TF_DEAD && !takes_dead)) {
            *why = sound || *why != TF_FAULTY ? in[i].kind : *why;
            sound = false;
        }
    }
    c->in = in;
    c->n_in = c->node->n_in;
    return sound;
}

static bool is_tensor(const tf_item *item)
{
    return item->kind == TF_TENSOR || item->kind == TF_VARIABLE;
}

bool tf_needs_numbers(tf_ctx *c, int i)
{
    if (is_tensor(&c->in[i]) || c->in[i].kind == TF_COMPLEX)
        return true;
    tf_fail_input(c, i, TY_E_UNSUPPORTED, "comes from %s, which gives no tensor of numbers",
                  c->in[i].origin ? c->in[i].origin : "nowhere");
    tf_help(c, "do what comes before it when the data is made, and export a signature that begins here");
    return false;
}

static void refuse_complex(tf_ctx *c, int i)
{
    tf_fail_input(c, i, TY_E_UNSUPPORTED, "comes from %s and holds complex numbers", c->in[i].origin);
    tf_help(c, "take their real part, imaginary part or absolute value before");
}

static void check_inputs(tf_ctx *c)
{
    if (c->n_in < c->row->min_in || (c->row->max_in >= 0 && c->n_in > c->row->max_in)) {
        tf_fail(c, TY_E_MODEL_FILE, "%d inputs, expected %d%s", c->n_in, c->row->min_in,
                c->row->max_in == c->row->min_in ? "" : " or more");
        return;
    }
    for (int i = 0; i < c->n_in && !c->row->any && !c->failed; i++)
        if (tf_needs_numbers(c, i) && c->in[i].kind == TF_COMPLEX && !c->row->each)
            refuse_complex(c, i);
}

/* Layer and operation, as reports show them: what a node stands in, or itself. */
void tf_origin(tf_ctx *c)
{
    char text[300];
    const char *slash = strrchr(c->node->name, '/');
    int n = slash ? (int)(slash - c->node->name) : (int)strlen(c->node->name);
    snprintf(text, sizeof text, "%.*s (%.60s)", n < 200 ? n : 200, c->node->name, c->node->op);
    ty_graph_origin(c->g, text);
}

/* What a constructor of the graph had to say. */
static void take_graph_error(tf_ctx *c)
{
    ty_error err;
    if (!ty_graph_failed(c->g, &err))
        return;
    ty_graph_clear_error(c->g);
    if (c->failed)
        return;
    c->failed = true;
    c->err = err;
    c->err.place[0] = 0; /* ours says more */
    ty_error_wrap(&c->err, "%s", c->node->op);
}

static void check_outputs(tf_ctx *c)
{
    for (int i = 0; i < c->n_out && !c->failed; i++)
        if ((c->out[i].kind == TF_TENSOR || c->out[i].kind == TF_COMPLEX) && c->out[i].val == TY_NONE)
            tf_fail(c, TY_E_UNSUPPORTED, "output %d cannot be computed from these inputs", i);
}

static bool has_complex(const tf_ctx *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].kind == TF_COMPLEX)
            return true;
    return false;
}

/* One part of all inputs that are complex; what is not is the same for both: shapes, axes. */
static tf_item *part_of(tf_ctx *c, bool imaginary)
{
    tf_item *in = tf_alloc(c, (size_t)c->n_in, sizeof *in);
    for (int i = 0; i < c->n_in; i++) {
        in[i] = c->in[i];
        if (in[i].kind != TF_COMPLEX)
            continue;
        in[i].kind = TF_TENSOR;
        if (imaginary)
            in[i].val = in[i].imag != TY_NONE ? in[i].imag : ty_b_full_like(c->g, in[i].val, 0);
    }
    return in;
}

static void run_each(tf_ctx *c)
{
    const tf_item *both = c->in;
    tf_item *real = tf_alloc(c, (size_t)c->n_out, sizeof *real);
    tf_item *parts[] = {part_of(c, false), part_of(c, true)};
    c->in = parts[0];
    c->row->fn(c);
    memcpy(real, c->out, (size_t)c->n_out * sizeof *real);
    c->in = parts[1];
    if (!c->failed)
        c->row->fn(c);
    c->in = both;
    for (int i = 0; i < c->n_out && !c->failed; i++)
        if (c->out[i].kind == TF_TENSOR)
            tf_set_parts(c, i, real[i].val, c->out[i].val);
}

static void run_node(tf_ctx *c)
{
    if (!c->row) {
        fail_unknown(c);
        return;
    }
    check_inputs(c);
    if (c->failed)
        return;
    tf_origin(c);
    if (c->row->each && has_complex(c))
        run_each(c);
    else
        c->row->fn(c);
    take_graph_error(c);
    check_outputs(c);
}

static void import_node(tf_importer *imp, tf_walk *w, int index)
{
    const tf_node *node = &w->graph->node[index];
    tf_ctx c = {.imp = imp, .g = imp->g, .node = node, .row = find_row(imp, node->op)};
    tf_item_kind why = TF_FAULTY;
    c.out = &w->item[w->first[index]];
    c.n_out = node->n_out;
    for (int i = 0; i < c.n_out; i++)
        c.out[i] = (tf_item){.kind = TF_UNSET, .val = TY_NONE, .variable = -1, .origin = node->op};
    bool sound = bind_inputs(w, &c, &why);
    if (node->arg >= 0 && node->arg < w->n_args && c.n_out > 0)
        c.out[0] = w->arg[node->arg];
    else if (sound)
        run_node(&c);
    if (c.failed && !c.quiet)
        store_node_fault(&c);
    for (int i = 0; i < c.n_out && (c.failed || !sound); i++)
        c.out[i].kind = c.failed ? TF_FAULTY : why;
}

static bool has_room(tf_importer *imp)
{
    if (++imp->serial > MAX_NODES)
        fault_limit(imp, "more than 400000 operations once loops are unrolled");
    else if (imp->arena.used_bytes + ty_graph_arena(imp->g)->used_bytes - imp->start_bytes > MAX_COMPUTED_BYTES)
        fault_limit(imp, "constants computed in the graph need more than 1 GiB");
    return !imp->is_full;
}

/* Places for the outputs of all nodes, none of them set. Which outputs a node has is what the file says of it. */
static bool place_items(tf_importer *imp, tf_walk *w)
{
    int64_t n = 0;
    w->first = TY_NEW_ARRAY(&imp->arena, int, w->graph->n_nodes + 1);
    for (int i = 0; i < w->graph->n_nodes && n <= MAX_ITEMS; i++) {
        w->first[i] = (int)n;
        n += w->graph->node[i].n_out > 0 ? w->graph->node[i].n_out : 0;
    }
    if (n > MAX_ITEMS) {
        fault_limit(imp, "the nodes of a graph have more than 4194304 outputs");
        return false;
    }
    w->item = TY_NEW_ARRAY(&imp->arena, tf_item, n + 1);
    for (int64_t i = 0; i < n; i++)
        w->item[i] = (tf_item){.kind = TF_UNSET, .val = TY_NONE, .variable = -1};
    return true;
}

/* Returns the items of the results, in the importer's arena. */
static tf_item *walk_graph(tf_importer *imp, const tf_graph *graph, const tf_item *arg, int n_args)
{
    tf_walk w = {.graph = graph, .arg = arg, .n_args = n_args};
    bool has_items = place_items(imp, &w);
    for (int i = 0; i < graph->n_nodes && has_items && has_room(imp); i++)
        import_node(imp, &w, i);
    tf_item *result = TY_NEW_ARRAY(&imp->arena, tf_item, graph->n_results + 1);
    for (int i = 0; i < graph->n_results; i++) {
        tf_edge e = graph->result_edge[i];
        bool found =
            has_items && e.node >= 0 && e.node < graph->n_nodes && e.out >= 0 && e.out < graph->node[e.node].n_out;
        result[i] = found ? w.item[w.first[e.node] + e.out] : (tf_item){.kind = TF_UNSET, .val = TY_NONE};
    }
    return result;
}

/* ---- bodies -------------------------------------------------------------------------------------------------------
 */

const tf_graph *tf_body(tf_ctx *c, const char *function)
{
    static const tf_graph broken; /* stands for one that cannot be had, which was said of the first call */
    tf_importer *imp = c->imp;
    const tf_function *fn;
    tf_graph *made = NULL;
    int f = function ? tf_find_function(imp->file, function) : -1;
    if (f < 0) {
        tf_fail(c, TY_E_MODEL_FILE, "the file has no function \"%.100s\"", function ? function : "");
        return NULL;
    }
    if (!imp->body[f]) {
        bool is_sound = tf_load_function(imp->file, f, &fn, &c->err) == 0 &&
                        tf_function_graph(imp->file, fn, NULL, NULL, &imp->arena, &made, &c->err) == 0;
        imp->body[f] = is_sound ? made : &broken;
        c->failed = c->failed || !is_sound;
    } else if (imp->body[f] == &broken)
        c->failed = c->quiet = true;
    return imp->body[f] == &broken ? NULL : imp->body[f];
}

bool tf_call(tf_ctx *c, const char *function, const tf_item *in, int n_in, tf_item *out, int n_out)
{
    tf_importer *imp = c->imp;
    const tf_graph *graph = tf_body(c, function);
    if (!graph)
        return false;
    if (imp->depth >= MAX_DEPTH) {
        tf_fail(c, TY_E_LIMIT, "function \"%.100s\" nests too deep", function);
        return false;
    }
    if (graph->n_args != n_in || graph->n_results < n_out) {
        tf_fail(c, TY_E_MODEL_FILE, "function \"%.100s\" has %d arguments and %d results, expected %d and %d", function,
                graph->n_args, graph->n_results, n_in, n_out);
        return false;
    }
    int before = imp->n_faults;
    imp->depth++;
    const tf_item *result = walk_graph(imp, graph, in, n_in);
    imp->depth--;
    memcpy(out, result, sizeof *out * (size_t)n_out);
    if (imp->n_faults > before)
        c->failed = c->quiet = true;
    return !c->failed;
}

/* ---- the signature ------------------------------------------------------------------------------------------------
 */

static bool port_fits(const tf_port *p, const ty_type *t)
{
    bool fits = t && tf_dtype(p->data_type) == (ty_dtype)t->dtype && (p->rank < 0 || p->rank == t->rank);
    for (int i = 0; fits && i < p->rank; i++)
        fits = p->dim[i] < 0 || p->dim[i] == t->dim[i];
    return fits;
}

static tf_item *bind_arguments(tf_importer *imp, const tf_graph *graph)
{
    tf_item *arg = TY_NEW_ARRAY(&imp->arena, tf_item, graph->n_args + 1);
    for (int i = 0; i < graph->n_args; i++) {
        ty_val v = imp->binding->inputs[i];
        char found[160] = "nothing";
        ty_error err = {0};
        arg[i] = tf_tensor_item(v);
        arg[i].origin = TF_OP_ARG;
        if (v == TY_NONE && tf_dtype(graph->arg[i].data_type) == TY_N_DTYPES) {
            arg[i].kind = TF_OTHER;
            continue;
        }
        if (port_fits(&graph->arg[i], v == TY_NONE ? NULL : ty_graph_type(imp->g, v)))
            continue;
        if (v != TY_NONE)
            ty_type_text(ty_graph_type(imp->g, v), found, sizeof found);
        ty_error_set(&err, TY_E_SHAPE, "input \"%.100s\" is %s of %d dimensions in the model, bound to %s",
                     graph->arg[i].name, tf_data_type_text(graph->arg[i].data_type), graph->arg[i].rank, found);
        store_fault(imp, &err);
        arg[i].kind = TF_FAULTY;
    }
    return arg;
}

static void take_outputs(tf_importer *imp, const tf_graph *graph, const tf_item *result, ty_model_values *values)
{
    ty_val *out = TY_NEW_ARRAY(ty_graph_arena(imp->g), ty_val, graph->n_results + 1);
    for (int i = 0; i < graph->n_results; i++) {
        ty_error err = {0};
        out[i] = result[i].kind == TF_TENSOR ? result[i].val : TY_NONE;
        if (result[i].kind == TF_VARIABLE)
            out[i] = tf_present(imp, result[i].variable);
        if (out[i] != TY_NONE || imp->n_faults)
            continue;
        ty_error_set(&err, TY_E_UNSUPPORTED, "output \"%.100s\" is no tensor of numbers: it comes from %s",
                     graph->result[i].name, result[i].origin ? result[i].origin : "nowhere");
        store_fault(imp, &err);
    }
    values->outputs = out;
}

static void take_updates(tf_importer *imp, ty_model_values *values)
{
    int n = tf_n_variables(imp->file);
    ty_model_update *update = TY_NEW_ARRAY(ty_graph_arena(imp->g), ty_model_update, n + 1);
    for (int i = 0; i < n; i++)
        if (imp->assigned[i] && imp->now[i] != imp->binding->weights[i])
            update[values->n_updates++] = (ty_model_update){i, imp->now[i]};
    values->updates = update;
}

static int import_all(tf_importer *imp, const tf_run *run, ty_model_values *values, ty_error *err)
{
    tf_graph *graph;
    int n = tf_n_variables(imp->file);
    if (tf_signature_graph(run->file, run->signature, NULL, NULL, &imp->arena, &graph, err) < 0)
        return -1;
    imp->now = TY_NEW_ARRAY(&imp->arena, ty_val, n + 1);
    imp->assigned = TY_NEW_ARRAY(&imp->arena, bool, n + 1);
    imp->body = TY_NEW_ARRAY(&imp->arena, const tf_graph *, tf_n_functions(run->file) + 1);
    for (int i = 0; i < n; i++) {
        imp->now[i] = TY_NONE;
        imp->assigned[i] = false;
    }
    index_rows(imp);
    const tf_item *arg = bind_arguments(imp, graph);
    const tf_item *result = walk_graph(imp, graph, arg, graph->n_args);
    take_outputs(imp, graph, result, values);
    if (imp->binding->weights)
        take_updates(imp, values);
    ty_graph_origin(imp->g, "");
    return 0;
}

static int import_with(const tf_run *run, ty_graph *g, const ty_model_binding *b, ty_model_values *values,
                       ty_error *faults, int max, ty_error *err)
{
    *values = (ty_model_values){0};
    if (ty_graph_failed(g, err))
        return -1;
    tf_importer imp = {.file = run->file, .g = g, .binding = b, .own_step = run->own_step, .faults = faults};
    imp.max_faults = max;
    ty_arena_init(&imp.arena);
    imp.start_bytes = ty_graph_arena(g)->used_bytes;
    int rc = import_all(&imp, run, values, err);
    ty_arena_fini(&imp.arena);
    return rc < 0 ? -1 : imp.n_faults;
}

enum { MAX_TOLD = 20 };

int tf_import(const tf_run *run, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err)
{
    ty_error fault[MAX_TOLD];
    int n = import_with(run, g, b, values, fault, MAX_TOLD, err);
    if (n <= 0)
        return n;
    *err = fault[0];
    if (n > 1)
        ty_error_detail(err, "note: %d faults in all; trainyard check lists them", n);
    return -1;
}

int tf_check(const tf_run *run, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max)
{
    ty_model_values values;
    ty_error err = {0};
    int n = import_with(run, g, b, &values, faults, max, &err);
    if (n < 0 && max > 0)
        faults[0] = err;
    return n < 0 ? 1 : n;
}
