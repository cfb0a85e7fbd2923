/* file.c - nodes and constants become a ModelProto, written piece by piece: weights are never copied.
 *
 * Field numbers: onnx.proto. Above 2 GiB weights go to a second file, as external data.
 */
#include "compiler/export/proto.h"
#include "compiler/export/writer.h"
#include "compiler/import/onnx_tree.h"
#include "compiler/model.h"

#include "base/file.h"
#include "base/version.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MODEL_IR_VERSION = 1, MODEL_PRODUCER, MODEL_PRODUCER_VERSION, MODEL_GRAPH = 7, MODEL_OPSET };
enum { GRAPH_NODE = 1, GRAPH_NAME, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT, GRAPH_VALUE_INFO };
enum { NODE_INPUT = 1, NODE_OUTPUT, NODE_NAME, NODE_OP_TYPE };
enum { TENSOR_DIMS = 1, TENSOR_TYPE, TENSOR_NAME = 8, TENSOR_RAW, TENSOR_EXTERNAL = 13, TENSOR_LOCATION };
enum { INFO_NAME = 1, INFO_TYPE, INFO_METADATA = 4 };
enum { TYPE_TENSOR = 1, TYPE_ELEM = 1, TYPE_SHAPE, SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM };
enum { PAIR_KEY = 1, PAIR_VALUE, OPSET_VERSION = 2 };
enum { FILE_OUTSIDE_MIN_BYTES = 1024, FILE_ALIGNMENT = 4096, FILE_MAX_NODES_BYTES = 1 << 30 };

typedef struct file_parts {
    ty_buf before; /* the model's own fields */
    ty_buf graph;  /* all of the graph but initializers */
    ty_buf *head;  /* by initializer: key, length, and its fields in front of the bytes */
    bool two_files;
    uint64_t n_initializer_bytes;
} file_parts;

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* text, or text_2, text_3 .. if it is taken. */
static const char *file_unique(export_ctx *c, ty_names *taken, const char *text)
{
    const char *name = text;
    int k = ty_names_find(taken, text);
    if (k >= 0) {
        do
            name = ty_arena_printf(c->a, "%s_%d", text, ++k);
        while (ty_names_find(taken, name) >= 0);
        ty_names_put(taken, text, k);
    }
    ty_names_put(taken, name, 1);
    return name;
}

static void file_name_all(export_ctx *c)
{
    ty_names values, nodes;
    ty_names_init(&values, c->a);
    ty_names_init(&nodes, c->a);
    for (int i = 0; i < ty_model_n_inputs(c->m); i++)
        ty_names_put(&values, ty_model_input(c->m, i)->name, 1);
    for (int i = 0; i < ty_model_n_outputs(c->m); i++)
        ty_names_put(&values, ty_model_output(c->m, i)->name, 1);
    for (int i = 0; i < ty_model_n_weights(c->m); i++)
        ty_names_put(&values, ty_model_weight(c->m, i)->name, 1);
    for (int i = 0; i < c->n_initializers; i++)
        if (!c->initializers[i].value->name)
            c->initializers[i].value->name = file_unique(c, &values, "constant");
    for (int i = 0; i < c->n_nodes; i++) {
        export_node *n = &c->nodes[i];
        n->name = file_unique(c, &nodes, ty_arena_printf(c->a, "%s%s%s", n->layer, n->layer[0] ? "/" : "", n->op_type));
        for (int k = 0; k < n->n_out; k++)
            if (!n->out[k]->name)
                n->out[k]->name = file_unique(c, &values, ty_arena_printf(c->a, "%s:%d", n->name, k));
    }
}

/* Results get the outputs' names; what has another name, or two, is passed on by an Identity. */
static void file_name_outputs(export_ctx *c)
{
    for (int i = 0; i < ty_graph_n_outputs(c->g); i++) {
        const ty_output *o = ty_graph_output(c->g, i);
        export_value *v = export_of(c, o->val);
        if (!v->is_result || v->name)
            v = export_apply(c, "Identity", v, NULL, NULL);
        v->name = ty_model_output(c->m, i)->name;
    }
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* TypeProto. A dim that follows the batch alone has its name; any other that changes is unknown. */
static void file_type(ty_buf *out, ty_dtype dtype, int rank, const export_dim *dim, const char *batch_name)
{
    ty_buf shape, tensor, one;
    ty_buf_init(&shape, 1 << 16);
    ty_buf_init(&tensor, 1 << 16);
    ty_buf_init(&one, 1 << 12);
    for (int i = 0; i < rank; i++) {
        ty_buf_clear(&one);
        if (dim[i].per == 0)
            ty_proto_int(&one, DIM_VALUE, dim[i].plus);
        else if (dim[i].per == 1 && dim[i].plus == 0)
            ty_proto_text(&one, DIM_PARAM, batch_name);
        ty_proto_message(&shape, SHAPE_DIM, &one);
    }
    ty_proto_int(&tensor, TYPE_ELEM, onnx_data_type(dtype));
    ty_proto_message(&tensor, TYPE_SHAPE, &shape);
    ty_proto_message(out, TYPE_TENSOR, &tensor);
    ty_buf_fini(&one);
    ty_buf_fini(&tensor);
    ty_buf_fini(&shape);
}

static void file_info(ty_buf *out, uint32_t number, const char *name, ty_dtype dtype, int rank, const export_dim *dim,
                      const char *batch_name, const char *kind)
{
    ty_buf info, type, pair;
    ty_buf_init(&info, 1 << 18);
    ty_buf_init(&type, 1 << 16);
    ty_buf_init(&pair, 1 << 12);
    file_type(&type, dtype, rank, dim, batch_name);
    ty_proto_text(&info, INFO_NAME, name);
    ty_proto_message(&info, INFO_TYPE, &type);
    if (kind) {
        ty_proto_text(&pair, PAIR_KEY, TY_ONNX_KIND_KEY);
        ty_proto_text(&pair, PAIR_VALUE, kind);
        ty_proto_message(&info, INFO_METADATA, &pair);
    }
    ty_proto_message(out, number, &info);
    ty_buf_fini(&pair);
    ty_buf_fini(&type);
    ty_buf_fini(&info);
}

static const char *file_batch_name(const export_ctx *c)
{
    for (int i = 0; i < ty_model_n_inputs(c->m); i++)
        if (c->inputs[i] == c->batch_value && ty_model_input(c->m, i)->dim_name[c->batch_axis])
            return ty_model_input(c->m, i)->dim_name[c->batch_axis];
    return "batch";
}

static void file_signature(export_ctx *c, ty_buf *out)
{
    const char *batch = file_batch_name(c);
    export_dim dim[TY_MAX_RANK];
    for (int i = 0; i < ty_model_n_inputs(c->m); i++) {
        ty_type first = ty_graph_input(c->g, i)->type, second = ty_graph_input(export_twin_graph(c), i)->type;
        for (int k = 0; k < first.rank; k++)
            dim[k] = export_dim_from(c, first.dim[k], second.dim[k]);
        file_info(out, GRAPH_INPUT, ty_model_input(c->m, i)->name, (ty_dtype)first.dtype, first.rank, dim, batch, NULL);
    }
    for (int i = 0; i < ty_graph_n_outputs(c->g); i++) {
        ty_val v = ty_graph_output(c->g, i)->val;
        const ty_type *t = ty_graph_type(c->g, v);
        export_dims_of(c, v, dim);
        file_info(out, GRAPH_OUTPUT, ty_graph_output(c->g, i)->name, (ty_dtype)t->dtype, t->rank, dim, batch, NULL);
    }
}

/* What is no weight that is trained says so, as PyTorch's exporter does: constants of formulas are initializers too.
 */
static void file_kinds(export_ctx *c, ty_buf *out)
{
    export_dim dim[TY_MAX_RANK];
    for (int i = 0; i < c->n_initializers; i++) {
        const export_initializer *init = &c->initializers[i];
        if (!ty_dtype_is_float((ty_dtype)init->type.dtype))
            continue;
        if (init->weight >= 0 && ty_model_weight(c->m, init->weight)->trainable_hint)
            continue;
        for (int k = 0; k < init->type.rank; k++)
            dim[k] = (export_dim){0, init->type.dim[k]};
        file_info(out, GRAPH_VALUE_INFO, init->value->name, (ty_dtype)init->type.dtype, init->type.rank, dim, "",
                  "BUFFER");
    }
}

/* ---- nodes and tensors ------------------------------------------------------------------------------------------- */

static void file_nodes(const export_ctx *c, ty_buf *out)
{
    ty_buf body;
    ty_buf_init(&body, FILE_MAX_NODES_BYTES);
    for (int i = 0; i < c->n_nodes; i++) {
        const export_node *n = &c->nodes[i];
        ty_buf_clear(&body);
        for (int k = 0; k < n->n_in; k++)
            ty_proto_text(&body, NODE_INPUT, n->in[k] ? n->in[k]->name : "");
        for (int k = 0; k < n->n_out; k++)
            ty_proto_text(&body, NODE_OUTPUT, n->out[k]->name);
        ty_proto_text(&body, NODE_NAME, n->name);
        ty_proto_text(&body, NODE_OP_TYPE, n->op_type);
        ty_buf_add(&body, c->attrs.data + n->attrs_at, n->attrs_bytes);
        ty_proto_message(out, GRAPH_NODE, &body);
    }
    ty_buf_fini(&body);
}

static bool file_is_outside(const file_parts *f, const export_initializer *init)
{
    return f->two_files && ty_type_bytes(&init->type) >= FILE_OUTSIDE_MIN_BYTES;
}

static void file_pair(ty_buf *out, const char *key, const char *value)
{
    ty_buf pair;
    ty_buf_init(&pair, 1 << 16);
    ty_proto_text(&pair, PAIR_KEY, key);
    ty_proto_text(&pair, PAIR_VALUE, value);
    ty_proto_message(out, TENSOR_EXTERNAL, &pair);
    ty_buf_fini(&pair);
}

static void file_place_outside(ty_buf *body, const char *data_name, uint64_t offset, size_t n)
{
    char text[24];
    file_pair(body, "location", data_name);
    snprintf(text, sizeof text, "%" PRIu64, offset);
    file_pair(body, "offset", text);
    snprintf(text, sizeof text, "%zu", n);
    file_pair(body, "length", text);
    ty_proto_int(body, TENSOR_LOCATION, 1);
}

static uint64_t file_after(uint64_t at, size_t n)
{
    return (at + n + FILE_ALIGNMENT - 1) / FILE_ALIGNMENT * FILE_ALIGNMENT;
}

/* Everything of the tensors but their bytes. */
static void file_heads(const export_ctx *c, file_parts *f, const char *data_name)
{
    ty_buf body;
    uint64_t at = 0;
    ty_buf_init(&body, 1 << 20);
    f->n_initializer_bytes = 0;
    for (int i = 0; i < c->n_initializers; i++) {
        const export_initializer *init = &c->initializers[i];
        size_t n = ty_type_bytes(&init->type);
        ty_buf_clear(&body);
        for (int k = 0; k < init->type.rank; k++)
            ty_proto_int(&body, TENSOR_DIMS, init->type.dim[k]);
        ty_proto_int(&body, TENSOR_TYPE, onnx_data_type((ty_dtype)init->type.dtype));
        ty_proto_text(&body, TENSOR_NAME, init->value->name);
        bool outside = file_is_outside(f, init);
        if (outside) {
            file_place_outside(&body, data_name, at, n);
            at = file_after(at, n);
        } else
            ty_proto_head(&body, TENSOR_RAW, n);
        ty_buf_init(&f->head[i], 1 << 21);
        ty_proto_head(&f->head[i], GRAPH_INITIALIZER, body.len + (outside ? 0 : n));
        ty_buf_add(&f->head[i], body.data, body.len);
        f->n_initializer_bytes += f->head[i].len + (outside ? 0 : n);
    }
    ty_buf_fini(&body);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int64_t file_ir_version(int opset)
{
    return opset >= 23 ? 11 : opset >= 21 ? 10 : opset >= 19 ? 9 : 8;
}

static void file_model(const export_ctx *c, file_parts *f)
{
    ty_buf opset;
    ty_buf_init(&opset, 1 << 8);
    ty_proto_text(&opset, 1, "");
    ty_proto_int(&opset, OPSET_VERSION, c->opset);
    ty_proto_int(&f->before, MODEL_IR_VERSION, file_ir_version(c->opset));
    ty_proto_text(&f->before, MODEL_PRODUCER, "trainyard");
    ty_proto_text(&f->before, MODEL_PRODUCER_VERSION, TY_VERSION);
    ty_proto_message(&f->before, MODEL_OPSET, &opset);
    ty_proto_head(&f->before, MODEL_GRAPH, f->graph.len + f->n_initializer_bytes);
    ty_buf_fini(&opset);
}

static int file_add_initializers(const export_ctx *c, const file_parts *f, ty_file_writer *w, ty_error *err)
{
    for (int i = 0; i < c->n_initializers; i++) {
        const export_initializer *init = &c->initializers[i];
        if (ty_file_writer_add(w, f->head[i].data, f->head[i].len, err) < 0)
            return -1;
        if (!file_is_outside(f, init) && ty_file_writer_add(w, init->data, ty_type_bytes(&init->type), err) < 0)
            return -1;
    }
    return 0;
}

static int file_write_model(const export_ctx *c, const file_parts *f, const char *path, ty_onnx_exported *out,
                            ty_error *err)
{
    ty_file_writer w;
    if (ty_file_writer_open(&w, path, 0644, err) < 0)
        return -1;
    if (ty_file_writer_add(&w, f->before.data, f->before.len, err) < 0 ||
        ty_file_writer_add(&w, f->graph.data, f->graph.len, err) < 0 || file_add_initializers(c, f, &w, err) < 0) {
        ty_file_writer_abandon(&w);
        return -1;
    }
    out->n_bytes += w.n_bytes;
    return ty_file_writer_commit(&w, err);
}

static int file_add_outside(const export_ctx *c, const file_parts *f, ty_file_writer *w, ty_error *err)
{
    static const uint8_t zeros[FILE_ALIGNMENT];
    for (int i = 0; i < c->n_initializers; i++) {
        size_t n = ty_type_bytes(&c->initializers[i].type);
        if (!file_is_outside(f, &c->initializers[i]))
            continue;
        size_t gap = (size_t)(file_after(w->n_bytes, 0) - w->n_bytes);
        if (ty_file_writer_add(w, zeros, gap, err) < 0 || ty_file_writer_add(w, c->initializers[i].data, n, err) < 0)
            return -1;
    }
    return 0;
}

static int file_write_data(const export_ctx *c, const file_parts *f, const char *path, ty_onnx_exported *out,
                           ty_error *err)
{
    ty_file_writer w;
    if (ty_file_writer_open(&w, path, 0644, err) < 0)
        return -1;
    if (file_add_outside(c, f, &w, err) < 0) {
        ty_file_writer_abandon(&w);
        return -1;
    }
    out->n_bytes += w.n_bytes;
    return ty_file_writer_commit(&w, err);
}

static void file_free_heads(const export_ctx *c, file_parts *f)
{
    for (int i = 0; i < c->n_initializers; i++)
        ty_buf_fini(&f->head[i]);
}

/* Of what training would change: others may be shapes and tables that have become part of the nodes. */
static int file_count_unused(const export_ctx *c)
{
    int n = 0;
    for (int i = 0; i < ty_model_n_weights(c->m); i++) {
        bool found = !ty_model_weight(c->m, i)->trainable_hint && !ty_model_weight_is_running(c->m, i);
        for (int k = 0; k < c->n_initializers && !found; k++)
            found = c->initializers[k].weight == i;
        n += !found;
    }
    return n;
}

static int file_write(export_ctx *c, file_parts *f, const char *path, ty_onnx_exported *out, ty_error *err)
{
    const char *data_path = ty_arena_printf(c->a, "%s" TY_MODEL_DATA_SUFFIX, path), *slash = strrchr(data_path, '/');
    const char *data_name = slash ? slash + 1 : data_path;
    file_heads(c, f, data_name);
    if (f->graph.len + f->n_initializer_bytes > INT_MAX - (1 << 16)) {
        file_free_heads(c, f);
        f->two_files = true;
        file_heads(c, f, data_name);
    }
    file_model(c, f);
    if (f->graph.failed || f->before.failed || f->graph.len + f->n_initializer_bytes > INT_MAX - (1 << 16))
        return ty_error_set(err, TY_E_LIMIT, "the graph is too large for an ONNX file");
    if (f->two_files && file_write_data(c, f, data_path, out, err) < 0)
        return -1;
    return file_write_model(c, f, path, out, err);
}

int export_write_file(export_ctx *c, const char *path, ty_onnx_exported *out, ty_error *err)
{
    file_parts f = {.head = TY_NEW_ARRAY(c->a, ty_buf, c->n_initializers + 1)};
    file_name_outputs(c);
    file_name_all(c);
    ty_buf_init(&f.before, 1 << 16);
    ty_buf_init(&f.graph, FILE_MAX_NODES_BYTES);
    file_nodes(c, &f.graph);
    ty_proto_text(&f.graph, GRAPH_NAME, "model");
    file_signature(c, &f.graph);
    file_kinds(c, &f.graph);
    int rc = c->attrs.failed ? ty_error_set(err, TY_E_LIMIT, "the graph is too large for an ONNX file")
                             : file_write(c, &f, path, out, err);
    out->n_nodes = c->n_nodes;
    out->n_initializers = c->n_initializers;
    out->n_unused = file_count_unused(c);
    out->batch = c->other ? 0 : c->batch[0];
    out->two_files = f.two_files;
    for (int i = 0; i < c->n_initializers; i++)
        if (f.head[i].data)
            ty_buf_fini(&f.head[i]);
    ty_buf_fini(&f.graph);
    ty_buf_fini(&f.before);
    return rc;
}
