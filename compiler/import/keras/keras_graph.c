/* keras_graph.c - who reads whose results: nodes of a Functional model, or the row of a Sequential.
 *
 * Keras 3 writes a node as {"args": [...], "kwargs": {...}} with tensors as {"class_name": "__keras_tensor__",
 * "config":
 * {"keras_history": [layer, node, tensor]}}; Keras 2 as a list of [layer, node, tensor, kwargs]. Models as layers have
 * one call more than were made of them where Keras 2 counts, and among the outputs of Keras 3 (functional.py:
 * "Functional models start with a pre-existing node").
 */
#include "compiler/import/keras/keras_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- references ---------------------------------------------------------------------------------------------------
 */

bool keras_read_history(const ty_doc *d, keras_ref *out)
{
    if (!d || d->kind != TY_DOC_LIST || (d->n_items != 3 && d->n_items != 4))
        return false;
    const ty_doc *layer = ty_doc_at(d, 0), *node = ty_doc_at(d, 1), *tensor = ty_doc_at(d, 2);
    if (layer->kind != TY_DOC_STRING || node->kind != TY_DOC_INT || tensor->kind != TY_DOC_INT)
        return false;
    *out = (keras_ref){layer->string, node->integer, tensor->integer};
    return true;
}

bool keras_read_ref(const ty_doc *d, keras_ref *out)
{
    const char *class_name = keras_string(ty_doc_find(d, "class_name"));
    return class_name && strcmp(class_name, "__keras_tensor__") == 0 &&
           keras_read_history(ty_doc_find(ty_doc_find(d, "config"), "keras_history"), out);
}

static bool graph_begins_with_input(const keras_layer *layer)
{
    return layer->net && layer->net->n_layers > 0 &&
           (!layer->net->is_sequential || layer->net->layer[0]->what == KERAS_IS_INPUT);
}

int keras_find_node(const struct keras_net *net, const keras_ref *ref, bool from_output)
{
    int at = ty_names_find(&net->names, ref->layer);
    if (at < 0)
        return -1;
    const keras_layer *layer = net->layer[at];
    bool is_functional = layer->net && !layer->net->is_sequential;
    bool counts_itself = net->is_keras2 ? graph_begins_with_input(layer) : from_output && is_functional;
    int64_t number = ref->node - (counts_itself && ref->node > 0 ? 1 : 0);
    return number >= 0 && number < net->n_calls[at] ? net->first_node[at] + (int)number : -1;
}

/* Calls visit() for each reference in the data of a node. False as soon as it does. */
typedef bool graph_visit(void *ctx, const keras_ref *ref);

static bool graph_visit_refs(const ty_doc *d, bool is_keras2, graph_visit *visit, void *ctx)
{
    keras_ref ref;
    if (is_keras2 ? keras_read_history(d, &ref) : keras_read_ref(d, &ref)) {
        if (strcmp(ref.layer, "_CONSTANT_VALUE") != 0 && !visit(ctx, &ref))
            return false;
        const ty_doc *kwargs = is_keras2 ? ty_doc_at(d, 3) : NULL;
        return !kwargs || graph_visit_refs(kwargs, true, visit, ctx);
    }
    for (size_t i = 0; i < ty_doc_len(d); i++)
        if (!graph_visit_refs(ty_doc_at(d, i), is_keras2, visit, ctx))
            return false;
    return true;
}

/* ---- an order -----------------------------------------------------------------------------------------------------
 */

typedef struct graph_edges {
    const struct keras_net *net;
    int *from, *to; /* nodes */
    int n, room;
    int reader; /* node whose data are visited */
    ty_arena *a;
    const char *missing;
} graph_edges;

static void graph_add_edge(graph_edges *e, int from, int to)
{
    if (e->n == e->room) {
        int room = e->room ? 2 * e->room : 64;
        int *froms = TY_NEW_ARRAY(e->a, int, room), *tos = TY_NEW_ARRAY(e->a, int, room);
        if (e->n) {
            memcpy(froms, e->from, sizeof *froms * (size_t)e->n);
            memcpy(tos, e->to, sizeof *tos * (size_t)e->n);
        }
        e->from = froms, e->to = tos, e->room = room;
    }
    e->from[e->n] = from;
    e->to[e->n++] = to;
}

static bool graph_visit_edge(void *ctx, const keras_ref *ref)
{
    graph_edges *e = ctx;
    int from = keras_find_node(e->net, ref, false);
    if (from < 0)
        e->missing = ref->layer;
    else
        graph_add_edge(e, from, e->reader);
    return from >= 0;
}

static int graph_collect(ty_keras *m, const struct keras_net *net, graph_edges *e, ty_error *err)
{
    *e = (graph_edges){.net = net, .a = &m->arena};
    for (int i = 0; i < net->n_nodes; i++) {
        e->reader = i;
        if (i > 0 && net->node[i].layer == net->node[i - 1].layer)
            graph_add_edge(e, i - 1, i); /* calls of one layer stay in order: statistics follow it */
        if (net->node[i].data && !graph_visit_refs(net->node[i].data, net->is_keras2, graph_visit_edge, e))
            return ty_error_set(err, TY_E_MODEL_FILE, "layer \"%.120s\" reads layer \"%.120s\", which has no such call",
                                net->node[i].layer->name, e->missing);
    }
    return 0;
}

typedef struct graph_rank {
    int depth, node;
} graph_rank;

static int graph_deepest_first(const void *a, const void *b)
{
    const graph_rank *x = a, *y = b;
    return x->depth != y->depth ? (x->depth < y->depth) - (x->depth > y->depth) : x->node - y->node;
}

/* Keras runs the calls that are farthest from the outputs first. What a call does to others beside its results (masks
 * that it takes away) depends on that. net->order has readers behind what they read. */
static void graph_by_depth(ty_keras *m, struct keras_net *net, const int *first, const int *reader)
{
    graph_rank *rank = TY_NEW_ARRAY(&m->arena, graph_rank, net->n_nodes + 1);
    for (int at = net->n_nodes - 1; at >= 0; at--) {
        int node = net->order[at];
        rank[node].node = node;
        for (int k = first[node]; k < first[node + 1]; k++)
            if (rank[reader[k]].depth >= rank[node].depth)
                rank[node].depth = rank[reader[k]].depth + 1;
    }
    qsort(rank, (size_t)net->n_nodes, sizeof *rank, graph_deepest_first);
    for (int i = 0; i < net->n_nodes; i++)
        net->order[i] = rank[i].node;
}

/* Kahn's algorithm: a node follows when all that it reads is there, the first in the file first. */
static int graph_sort(ty_keras *m, struct keras_net *net, const graph_edges *e, ty_error *err)
{
    int n = net->n_nodes, done = 0, *open = TY_NEW_ARRAY(&m->arena, int, n + 1),
        *first = TY_NEW_ARRAY(&m->arena, int, n + 2), *reader = TY_NEW_ARRAY(&m->arena, int, e->n + 1);
    for (int i = 0; i < e->n; i++) {
        open[e->to[i]]++;
        first[e->from[i] + 2]++;
    }
    for (int i = 2; i <= n; i++)
        first[i] += first[i - 1];
    for (int i = 0; i < e->n; i++)
        reader[first[e->from[i] + 1]++] = e->to[i];
    net->order = TY_NEW_ARRAY(&m->arena, int, n + 1);
    for (int i = 0; i < n; i++)
        if (open[i] == 0)
            net->order[done++] = i;
    for (int at = 0; at < done; at++)
        for (int k = first[net->order[at]]; k < first[net->order[at] + 1]; k++)
            if (--open[reader[k]] == 0)
                net->order[done++] = reader[k];
    if (done < n)
        return ty_error_set(err, TY_E_MODEL_FILE, "the graph of layers has a loop");
    graph_by_depth(m, net, first, reader);
    return 0;
}

/* ---- inputs and outputs -------------------------------------------------------------------------------------------
 */

static ty_dtype graph_input_dtype(const ty_doc *dtype)
{
    const char *text = keras_string(dtype);
    ty_dtype out = TY_F32;
    if (!text || !ty_dtype_parse(text, &out))
        return text && strcmp(text, "string") == 0 ? TY_N_DTYPES : TY_F32;
    return ty_dtype_is_float(out) ? TY_F32 : out;
}

static keras_port graph_input_port(const keras_layer *layer, int node)
{
    keras_port port = {.name = layer->name, .node = node, .rank = -1};
    const ty_doc *shape = ty_doc_find(layer->config, "batch_shape");
    if (!shape)
        shape = ty_doc_find(layer->config, "batch_input_shape");
    if (!keras_read_shape(shape, &port.rank, port.dim))
        port.rank = -1;
    port.dtype = graph_input_dtype(ty_doc_find(layer->config, "dtype"));
    return port;
}

static void graph_add_port(ty_keras *m, keras_port **list, int *n, keras_port port)
{
    if ((*n & (*n - 1)) == 0) {
        keras_port *bigger = TY_NEW_ARRAY(&m->arena, keras_port, 2 * *n + 1);
        if (*n)
            memcpy(bigger, *list, sizeof *bigger * (size_t)*n);
        *list = bigger;
    }
    (*list)[(*n)++] = port;
}

static int graph_compare_keys(const void *a, const void *b)
{
    return strcmp((*(const ty_doc *const *)a)->key, (*(const ty_doc *const *)b)->key);
}

/* The entries of a map in the order in which Keras flattens one. */
static const ty_doc **graph_sorted(ty_keras *m, const ty_doc *d)
{
    const ty_doc **item = TY_NEW_ARRAY(&m->arena, const ty_doc *, d->n_items + 1);
    for (uint32_t i = 0; i < d->n_items; i++)
        item[i] = ty_doc_at(d, i);
    if (d->kind == TY_DOC_MAP)
        qsort(item, d->n_items, sizeof *item, graph_compare_keys);
    return item;
}

/* The tensors of input_layers or output_layers. */
static int graph_read_ports(ty_keras *m, struct keras_net *net, const ty_doc *d, const char *key, bool is_output,
                            ty_error *err)
{
    keras_ref ref;
    if (keras_read_history(d, &ref)) {
        int node = keras_find_node(net, &ref, is_output);
        if (node < 0 || ref.tensor < 0 || ref.tensor >= KERAS_MAX_OUTPUTS)
            return ty_error_set(err, TY_E_MODEL_FILE,
                                "the model's %s name call %lld of layer \"%.120s\", which it has not",
                                is_output ? "outputs" : "inputs", (long long)ref.node, ref.layer);
        const keras_layer *layer = net->node[node].layer;
        if (!is_output && layer->what != KERAS_IS_INPUT)
            return ty_error_set(err, TY_E_MODEL_FILE, "the model's input \"%.120s\" is no InputLayer", ref.layer);
        if (is_output)
            graph_add_port(m, &net->output, &net->n_outputs,
                           (keras_port){.name = key ? key : layer->name, .node = node, .tensor = (int)ref.tensor});
        else
            graph_add_port(m, &net->input, &net->n_inputs, graph_input_port(layer, node));
        return 0;
    }
    if (!d || (d->kind != TY_DOC_LIST && d->kind != TY_DOC_MAP))
        return ty_error_set(err, TY_E_MODEL_FILE, "expected references to layers as %s",
                            is_output ? "outputs" : "inputs");
    const ty_doc **item = graph_sorted(m, d);
    for (uint32_t i = 0; i < d->n_items; i++)
        if (graph_read_ports(m, net, item[i], d->kind == TY_DOC_MAP ? item[i]->key : key, is_output, err) < 0)
            return -1;
    return 0;
}

/* ---- nodes --------------------------------------------------------------------------------------------------------
 */

static bool graph_is_keras2(const struct keras_net *net)
{
    for (int i = 0; i < net->n_layers; i++) {
        const ty_doc *nodes = ty_doc_find(net->layer[i]->data, "inbound_nodes");
        if (ty_doc_len(nodes))
            return ty_doc_at(nodes, 0)->kind != TY_DOC_MAP || !ty_doc_find(ty_doc_at(nodes, 0), "args");
    }
    return false;
}

static int graph_read_functional(ty_keras *m, keras_layer *layer, const ty_doc *list, ty_error *err)
{
    struct keras_net *net = layer->net;
    size_t n_nodes = 0;
    for (int i = 0; i < net->n_layers; i++)
        n_nodes += 1 + ty_doc_len(ty_doc_find(ty_doc_at(list, (size_t)i), "inbound_nodes"));
    net->node = TY_NEW_ARRAY(&m->arena, keras_node, n_nodes + 1);
    for (int i = 0; i < net->n_layers; i++) {
        /* of this entry: a layer that is shared with another model has its own data there */
        const ty_doc *nodes = ty_doc_find(ty_doc_at(list, (size_t)i), "inbound_nodes");
        net->first_node[i] = net->n_nodes;
        net->n_calls[i] = net->layer[i]->what == KERAS_IS_INPUT ? 1 : (int)ty_doc_len(nodes);
        for (int k = 0; k < net->n_calls[i]; k++)
            net->node[net->n_nodes++] =
                (keras_node){net->layer[i], net->layer[i]->what == KERAS_IS_INPUT ? NULL : ty_doc_at(nodes, (size_t)k)};
    }
    net->is_keras2 = graph_is_keras2(net);
    graph_edges edges;
    const ty_doc *inputs = ty_doc_find(layer->config, "input_layers");
    net->input_is_dict = inputs && inputs->kind == TY_DOC_MAP;
    if (graph_collect(m, net, &edges, err) < 0 || graph_sort(m, net, &edges, err) < 0 ||
        graph_read_ports(m, net, inputs, NULL, false, err) < 0 ||
        graph_read_ports(m, net, ty_doc_find(layer->config, "output_layers"), NULL, true, err) < 0)
        return -1;
    return net->n_inputs && net->n_outputs
               ? 0
               : ty_error_set(err, TY_E_MODEL_FILE, "the model has no %s", net->n_inputs ? "outputs" : "inputs");
}

/* The shape of what a Sequential without an InputLayer takes: what it was built with, or what Keras 2 has in its first
 * layer. */
static keras_port graph_sequential_port(const keras_layer *layer)
{
    const struct keras_net *net = layer->net;
    keras_port port = {.name = "input_layer", .rank = -1, .dtype = TY_F32};
    const ty_doc *first = net->n_layers ? net->layer[0]->data : NULL;
    const ty_doc *shapes[] = {ty_doc_find(layer->config, "build_input_shape"),
                              ty_doc_find(ty_doc_find(layer->data, "build_config"), "input_shape"),
                              ty_doc_find(ty_doc_find(first, "config"), "batch_input_shape"),
                              ty_doc_find(ty_doc_find(first, "build_config"), "input_shape")};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (keras_read_shape(shapes[i], &port.rank, port.dim) && port.rank > 0)
            return port;
    port.rank = -1;
    return port;
}

static int graph_read_sequential(ty_keras *m, keras_layer *layer, ty_error *err)
{
    struct keras_net *net = layer->net;
    bool has_input = net->layer[0]->what == KERAS_IS_INPUT;
    keras_port port = has_input ? graph_input_port(net->layer[0], 0) : graph_sequential_port(layer);
    net->node = TY_NEW_ARRAY(&m->arena, keras_node, net->n_layers + 1);
    net->order = TY_NEW_ARRAY(&m->arena, int, net->n_layers + 1);
    if (!has_input) {
        keras_layer *input = TY_NEW(&m->arena, keras_layer);
        *input = (keras_layer){.what = KERAS_IS_INPUT, .class_name = "InputLayer", .name = port.name, .parent = layer};
        net->node[net->n_nodes++].layer = input;
    }
    for (int i = 0; i < net->n_layers; i++) {
        if (net->layer[i]->what == KERAS_IS_INPUT && i > 0)
            return ty_error_set(err, TY_E_MODEL_FILE, "an InputLayer stands behind other layers");
        net->node[net->n_nodes++].layer = net->layer[i];
    }
    for (int i = 0; i < net->n_nodes; i++)
        net->order[i] = i;
    graph_add_port(m, &net->input, &net->n_inputs, port);
    const keras_layer *last = net->node[net->n_nodes - 1].layer;
    graph_add_port(m, &net->output, &net->n_outputs, (keras_port){.name = last->name, .node = net->n_nodes - 1});
    return 0;
}

int keras_read_graph(ty_keras *m, keras_layer *layer, ty_error *err)
{
    struct keras_net *net = layer->net;
    net->first_node = TY_NEW_ARRAY(&m->arena, int, net->n_layers + 1);
    net->n_calls = TY_NEW_ARRAY(&m->arena, int, net->n_layers + 1);
    return net->is_sequential ? graph_read_sequential(m, layer, err)
                              : graph_read_functional(m, layer, ty_doc_find(layer->config, "layers"), err);
}
