/* tf_body.c - nodes by name, their inputs and attributes, functions: decoded when somebody asks. */
#include "compiler/import/tensorflow/tf_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 10000000, MAX_OUTPUT = 1 << 20 };

/* ---- nodes --------------------------------------------------------------------------------------------------------
 */

static int body_error(const tf_body *b, const char *what, const char *name, ty_error *err)
{
    ty_error_wrap(err, "%s \"%.120s\"", what, name);
    return b->name ? ty_error_wrap(err, "function \"%.120s\"", b->name) : -1;
}

int tf_body_read(tf_file *f, tf_body *b, const ty_wire_list *nodes, ty_error *err)
{
    if (nodes->n > MAX_NODES)
        return ty_error_set(err, TY_E_LIMIT, "a graph of %zu nodes; at most %d are possible", nodes->n, MAX_NODES);
    b->n = (int)nodes->n;
    b->raw = TY_NEW_ARRAY(&f->arena, tf_raw, b->n);
    b->has_effects = -1;
    ty_names_init(&b->names, &f->arena);
    for (int i = 0; i < b->n; i++) {
        tf_raw *raw = &b->raw[i];
        raw->variable = -1;
        if (tf_read(&tf_raw_node_message, *TF_AT(*nodes, ty_bytes, i), &f->arena, &raw->node, err) < 0)
            return ty_error_wrap(err, "node %d", i);
        if (ty_names_find(&b->names, raw->node.name) >= 0) {
            ty_error_set(err, TY_E_MODEL_FILE, "two nodes have this name");
            return body_error(b, "node", raw->node.name, err);
        }
        ty_names_put(&b->names, raw->node.name, i);
    }
    return 0;
}

int tf_body_attrs(tf_file *f, const tf_body *b, tf_raw *raw, ty_error *err)
{
    if (raw->has_attrs)
        return 0;
    static const tf_attr_value nothing = {.placeholder = ""};
    tf_attr *attr = TY_NEW_ARRAY(&f->arena, tf_attr, raw->node.attrs.n);
    for (size_t i = 0; i < raw->node.attrs.n; i++) {
        if (tf_read(&tf_attr_message, *TF_AT(raw->node.attrs, ty_bytes, i), &f->arena, &attr[i], err) < 0)
            return body_error(b, "node", raw->node.name, err);
        if (!attr[i].value)
            attr[i].value = &nothing;
    }
    raw->attr = attr;
    raw->n_attrs = (int)raw->node.attrs.n;
    raw->has_attrs = true;
    return 0;
}

tf_node tf_raw_view(const tf_raw *raw)
{
    return (tf_node){.name = raw->node.name,
                     .op = raw->node.op,
                     .attr = raw->attr,
                     .n_attrs = raw->n_attrs,
                     .variable = -1,
                     .constant = -1,
                     .arg = -1};
}

/* ---- inputs -------------------------------------------------------------------------------------------------------
 */

/* Operators with several named outputs, in their order; the name of any other operator's output says nothing. */
static const struct {
    const char *op;
    const char *outputs[7];
} named_outputs[] = {
    {"BatchNormWithGlobalNormalizationGrad", {"dx", "dm", "dv", "db", "dg"}},
    {"BlockLSTM", {"i", "cs", "f", "o", "ci", "co", "h"}},
    {"BlockLSTMV2", {"i", "cs", "f", "o", "ci", "co", "h"}},
    {"BroadcastGradientArgs", {"r0", "r1"}},
    {"CTCLoss", {"loss", "gradient"}},
    {"CTCLossV2", {"loss", "gradient"}},
    {"CudnnRNN", {"output", "output_h", "output_c", "reserve_space"}},
    {"CudnnRNNBackprop", {"input_backprop", "input_h_backprop", "input_c_backprop", "params_backprop"}},
    {"CudnnRNNBackpropV2", {"input_backprop", "input_h_backprop", "input_c_backprop", "params_backprop"}},
    {"CudnnRNNBackpropV3", {"input_backprop", "input_h_backprop", "input_c_backprop", "params_backprop"}},
    {"CudnnRNNV2", {"output", "output_h", "output_c", "reserve_space", "host_reserved"}},
    {"CudnnRNNV3", {"output", "output_h", "output_c", "reserve_space", "host_reserved"}},
    {"FakeQuantWithMinMaxVarsGradient", {"backprops_wrt_input", "backprop_wrt_min", "backprop_wrt_max"}},
    {"FusedBatchNorm", {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}},
    {"FusedBatchNormV2", {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}},
    {"FusedBatchNormV3",
     {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"}},
    {"FusedBatchNormGrad", {"x_backprop", "scale_backprop", "offset_backprop", "reserve_space_3", "reserve_space_4"}},
    {"FusedBatchNormGradV2", {"x_backprop", "scale_backprop", "offset_backprop", "reserve_space_3", "reserve_space_4"}},
    {"FusedBatchNormGradV3", {"x_backprop", "scale_backprop", "offset_backprop", "reserve_space_4", "reserve_space_5"}},
    {"GRUBlockCell", {"r", "u", "c", "h"}},
    {"ListDiff", {"out", "idx"}},
    {"LogMatrixDeterminant", {"sign", "log_abs_determinant"}},
    {"LSTMBlockCell", {"i", "cs", "f", "o", "ci", "co", "h"}},
    {"Lu", {"lu", "p"}},
    {"MaxPoolWithArgmax", {"output", "argmax"}},
    {"Merge", {"output", "value_index"}},
    {"NonMaxSuppressionV4", {"selected_indices", "valid_outputs"}},
    {"NonMaxSuppressionV5", {"selected_indices", "selected_scores", "valid_outputs"}},
    {"Qr", {"q", "r"}},
    {"RefMerge", {"output", "value_index"}},
    {"RefSwitch", {"output_false", "output_true"}},
    {"SelfAdjointEigV2", {"e", "v"}},
    {"SoftmaxCrossEntropyWithLogits", {"loss", "backprop"}},
    {"SparseSoftmaxCrossEntropyWithLogits", {"loss", "backprop"}},
    {"StatelessRandomGetKeyCounter", {"key", "counter"}},
    {"StatelessRandomGetKeyCounterAlg", {"key", "counter", "alg"}},
    {"Svd", {"s", "u", "v"}},
    {"Switch", {"output_false", "output_true"}},
    {"TensorArrayConcatV3", {"value", "lengths"}},
    {"TensorArrayGradV3", {"grad_handle", "flow_out"}},
    {"TensorArrayV3", {"handle", "flow"}},
    {"TensorListConcat", {"tensor", "lengths"}},
    {"TensorListConcatV2", {"tensor", "lengths"}},
    {"TensorListPopBack", {"output_handle", "tensor"}},
    {"TopK", {"values", "indices"}},
    {"TopKV2", {"values", "indices"}},
    {"ApproxTopK", {"values", "indices"}},
    {"Unique", {"y", "idx"}},
    {"UniqueV2", {"y", "idx"}},
    {"UniqueWithCounts", {"y", "idx", "count"}},
    {"UniqueWithCountsV2", {"y", "idx", "count"}},
};

static int output_number(const char *op, const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof named_outputs / sizeof *named_outputs; i++) {
        if (strcmp(named_outputs[i].op, op) != 0)
            continue;
        for (int k = 0; k < 7 && named_outputs[i].outputs[k]; k++)
            if (strncmp(named_outputs[i].outputs[k], name, n) == 0 && named_outputs[i].outputs[k][n] == 0)
                return k;
    }
    return 0;
}

static int parse_number(const char *text, int *out)
{
    char *end;
    long v = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
    if (v < 0 || v > MAX_OUTPUT || *end)
        return -1;
    *out = (int)v;
    return 0;
}

/* What stands behind the name of a node: ":output:1" in functions, ":1" elsewhere. */
static int parse_output(const tf_body *b, const tf_raw *from, const char *tail, int *out)
{
    *out = 0;
    if (!*tail)
        return 0;
    if (!b->def)
        return parse_number(tail + 1, out);
    const char *colon = strchr(tail + 1, ':');
    int base = output_number(from->node.op, tail + 1, colon ? (size_t)(colon - tail - 1) : strlen(tail + 1));
    if (colon && parse_number(colon + 1, out) < 0)
        return -1;
    *out += base;
    return 0;
}

int tf_body_resolve(tf_file *f, const tf_body *b, const char *text, tf_in *in, ty_error *err)
{
    bool is_control = *text == '^';
    const char *name = text + is_control, *colon = strchr(name, ':');
    if (colon)
        name = ty_arena_strndup(&f->arena, name, (size_t)(colon - name));
    *in = (tf_in){is_control ? TF_IN_CONTROL : TF_IN_NODE, 0, 0};
    in->at = b->def && !is_control ? ty_names_find(&b->args, name) : -1;
    if (in->at >= 0) {
        in->kind = TF_IN_ARG;
        return 0;
    }
    in->at = ty_names_find(&b->names, name);
    if (in->at < 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "its input \"%.120s\" does not exist", text);
    if (!is_control && parse_output(b, &b->raw[in->at], colon ? colon : "", &in->out) < 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "its input \"%.120s\" is no name of an output", text);
    return 0;
}

int tf_body_inputs(tf_file *f, const tf_body *b, tf_raw *raw, ty_error *err)
{
    if (raw->has_in)
        return 0;
    int n = (int)raw->node.inputs.n;
    tf_in *in = TY_NEW_ARRAY(&f->arena, tf_in, n);
    for (int i = 0; i < n; i++)
        if (tf_body_resolve(f, b, *TF_AT(raw->node.inputs, char *, i), &in[i], err) < 0)
            return body_error(b, "node", raw->node.name, err);
    raw->in = in;
    raw->n_in = n;
    raw->has_in = true;
    return 0;
}

/* ---- functions ----------------------------------------------------------------------------------------------------
 */

/* The first counted field 1 of a message, or nothing. */
static ty_bytes first_field(ty_bytes in)
{
    ty_wire_item item;
    while (ty_wire_next(&in, &item, NULL) > 0)
        if (item.number == 1 && item.type == 2)
            return item.body;
    return (ty_bytes){NULL, 0};
}

int tf_library_index(tf_file *f, ty_error *err)
{
    const ty_wire_list *list = f->graph->library ? &f->graph->library->functions : NULL;
    f->n_functions = list ? (int)list->n : 0;
    f->function_bytes = TY_NEW_ARRAY(&f->arena, ty_bytes, f->n_functions);
    f->function = TY_NEW_ARRAY(&f->arena, tf_function *, f->n_functions);
    ty_names_init(&f->function_names, &f->arena);
    for (int i = 0; i < f->n_functions; i++) {
        f->function_bytes[i] = *TF_AT(*list, ty_bytes, i);
        ty_bytes name = first_field(first_field(f->function_bytes[i]));
        if (!name.data || memchr(name.data, 0, name.n))
            return ty_error_set(err, TY_E_MODEL_FILE, "function %d has no name", i);
        ty_names_put(&f->function_names, ty_arena_strndup(&f->arena, (const char *)name.data, name.n), i);
    }
    return 0;
}

int tf_n_functions(const tf_file *f)
{
    return f->n_functions;
}

int tf_find_function(const tf_file *f, const char *name)
{
    return ty_names_find(&f->function_names, name);
}

static const tf_port *read_ports(tf_file *f, const ty_wire_list *args)
{
    tf_port *port = TY_NEW_ARRAY(&f->arena, tf_port, args->n);
    for (size_t i = 0; i < args->n; i++) {
        const tf_arg_def *a = TF_AT(*args, tf_arg_def, i);
        port[i] = (tf_port){.name = a->name, .data_type = a->type, .rank = -1};
    }
    return port;
}

static const char *function_attr(tf_file *f, const tf_raw_function *def, const char *key)
{
    tf_node view = {.attr = def->attrs.data, .n_attrs = (int)def->attrs.n};
    for (int i = 0; i < view.n_attrs; i++)
        if (!view.attr[i].value)
            return NULL;
    return tf_attr_text(&view, &f->arena, key, NULL);
}

static int read_results(tf_file *f, tf_body *b, ty_error *err)
{
    const ty_wire_list *outputs = &b->def->signature->outputs;
    tf_in *ret = TY_NEW_ARRAY(&f->arena, tf_in, outputs->n);
    for (size_t i = 0; i < outputs->n; i++) {
        const char *name = TF_AT(*outputs, tf_arg_def, i)->name, *from = NULL;
        for (size_t k = 0; k < b->def->ret.n && !from; k++)
            if (strcmp(TF_AT(b->def->ret, tf_text_pair, k)->key, name) == 0)
                from = TF_AT(b->def->ret, tf_text_pair, k)->value;
        if (!from || *from == '^')
            return ty_error_set(err, TY_E_MODEL_FILE, "its result \"%.120s\" comes from nowhere", name);
        if (tf_body_resolve(f, b, from, &ret[i], err) < 0)
            return ty_error_wrap(err, "result \"%.120s\"", name);
    }
    b->ret = ret;
    b->n_ret = (int)outputs->n;
    int *control = TY_NEW_ARRAY(&f->arena, int, b->def->control.n);
    for (size_t i = 0; i < b->def->control.n; i++) {
        control[i] = ty_names_find(&b->names, TF_AT(b->def->control, tf_text_pair, i)->value);
        if (control[i] < 0)
            return ty_error_set(err, TY_E_MODEL_FILE, "its control output \"%.120s\" does not exist",
                                TF_AT(b->def->control, tf_text_pair, i)->value);
    }
    b->control = control;
    b->n_control = (int)b->def->control.n;
    return 0;
}

static int read_function(tf_file *f, ty_bytes bytes, tf_function *fn, tf_body *b, ty_error *err)
{
    tf_raw_function *def = TY_NEW(&f->arena, tf_raw_function);
    if (tf_read(&tf_raw_function_message, bytes, &f->arena, def, err) < 0)
        return -1;
    if (!def->signature)
        return ty_error_set(err, TY_E_MODEL_FILE, "it has no signature");
    *b = (tf_body){.name = def->signature->name, .def = def};
    ty_names_init(&b->args, &f->arena);
    for (size_t i = 0; i < def->signature->inputs.n; i++)
        ty_names_put(&b->args, TF_AT(def->signature->inputs, tf_arg_def, i)->name, (int)i);
    if (tf_body_read(f, b, &def->nodes, err) < 0 || read_results(f, b, err) < 0)
        return -1;
    *fn = (tf_function){.name = b->name,
                        .api_implements = function_attr(f, def, "api_implements"),
                        .forward = function_attr(f, def, "forward_function_name"),
                        .backward = function_attr(f, def, "backward_function_name"),
                        .arg = read_ports(f, &def->signature->inputs),
                        .n_args = (int)def->signature->inputs.n,
                        .result = read_ports(f, &def->signature->outputs),
                        .n_results = (int)def->signature->outputs.n,
                        .body = b};
    return 0;
}

int tf_load_function(const tf_file *file, int i, const tf_function **out, ty_error *err)
{
    tf_file *f = (tf_file *)(uintptr_t)file; /* what is decoded is kept */
    if (!f->function[i]) {
        tf_function *fn = TY_NEW(&f->arena, tf_function);
        if (read_function(f, f->function_bytes[i], fn, TY_NEW(&f->arena, tf_body), err) < 0) {
            ty_error_wrap(err, "function %d of the library", i);
            return ty_error_at(err, "%s", f->path);
        }
        f->function[i] = fn;
    }
    *out = f->function[i];
    return 0;
}

const tf_function *tf_function_at(const tf_file *f, int i)
{
    const tf_function *fn;
    return i >= 0 && i < f->n_functions && tf_load_function(f, i, &fn, NULL) == 0 ? fn : NULL;
}

int tf_called(tf_file *f, const tf_body *b, tf_raw *raw, ty_error *err)
{
    const char *op = raw->node.op;
    bool is_call = strcmp(op, "PartitionedCall") == 0 || strcmp(op, "StatefulPartitionedCall") == 0;
    if (!is_call)
        return tf_find_function(f, op);
    if (tf_body_attrs(f, b, raw, err) < 0)
        return -2;
    tf_node view = tf_raw_view(raw);
    const char *name = tf_attr_function(&view, "f");
    int i = name ? tf_find_function(f, name) : -1;
    if (i >= 0)
        return i;
    ty_error_set(err, TY_E_MODEL_FILE, "it calls the function \"%.120s\", which is not in the file", name ? name : "");
    body_error(b, "node", raw->node.name, err);
    return -2;
}
