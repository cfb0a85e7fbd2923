/* onnx_merged.c - weights that an exporter has merged become separate again.
 *
 * PyTorch's tracing exporter looks for initializers of equal value, as a network that was not trained has many: the
 * scales of all norms are ones, biases and running means zeros, and copies of a layer are alike altogether. In a file
 * made for inference it keeps one of them and writes an Identity for each other one, whose output has the name of the
 * weight that it replaces (torch/csrc/jit/passes/onnx/deduplicate_initializers.cpp). Read to the letter, such a file
 * trains them as one. Weights that a network really shares are one parameter, with one name and no Identity. In a file
 * made for training only those are merged that lie in the same memory; they stay one.
 */
#include "compiler/import/onnx_tree.h"

#include <string.h>

enum { TENSOR_DIMS = 1, TENSOR_DATA_TYPE = 2, TENSOR_NAME = 8, LEAST_IR_VERSION = 4 };

/* An export for inference has no Dropout, and of a BatchNormalization only its first result. */
static bool is_for_training(const onnx_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const onnx_node *node = ONNX_AT(graph->nodes, onnx_node, i);
        if (onnx_is_op(node, "Dropout") || (onnx_is_op(node, "BatchNormalization") && node->outputs.n > 1))
            return true;
    }
    return false;
}

static bool may_have_merged(const onnx_model *model)
{
    return strcmp(model->producer, "pytorch") == 0 && model->ir_version >= LEAST_IR_VERSION &&
           !is_for_training(model->graph);
}

/* The exporter calls its own values by numbers, or by paths. */
static bool is_parameter_name(const char *name)
{
    return name[strspn(name, "0123456789")] && !strpbrk(name, "/:");
}

static bool is_among(const ty_wire_list *values, const char *name)
{
    for (size_t i = 0; i < values->n; i++)
        if (strcmp(ONNX_AT(*values, onnx_value_info, i)->name, name) == 0)
            return true;
    return false;
}

/* The initializer, of those in `list`, that stands for the weight this node's output is called after; or -1. */
static int merged_with(const ty_onnx *m, const ty_onnx_initializer *list, const onnx_node *node)
{
    if (!onnx_is_op(node, "Identity") || node->inputs.n != 1 || node->outputs.n != 1)
        return -1;
    const char *name = ONNX_TEXT(node->outputs, 0);
    int with = ty_names_find(&m->by_name, ONNX_TEXT(node->inputs, 0));
    if (with < 0 || !is_parameter_name(name) || ty_names_find(&m->by_name, name) >= 0 ||
        is_among(&m->tree.graph->inputs, name) || is_among(&m->tree.graph->outputs, name))
        return -1;
    ty_dtype dtype = (ty_dtype)list[with].type.dtype;
    return dtype < TY_N_DTYPES && ty_dtype_is_float(dtype) ? with : -1;
}

static size_t put_int(uint8_t *out, uint32_t number, int64_t value)
{
    size_t n = ty_wire_put_varint(out, number << 3);
    return n + ty_wire_put_varint(out + n, (uint64_t)value);
}

/* A TensorProto without its data. */
static ty_bytes tensor_head(ty_arena *arena, const ty_onnx_initializer *init)
{
    size_t n_name = strlen(init->name), n = 0;
    uint8_t *out = ty_arena_alloc(arena, (size_t)(TY_MAX_RANK + 2) * TY_WIRE_HEAD_BYTES + n_name);
    for (int k = 0; k < init->type.rank; k++)
        n += put_int(out + n, TENSOR_DIMS, init->type.dim[k]);
    n += put_int(out + n, TENSOR_DATA_TYPE, onnx_data_type((ty_dtype)init->type.dtype));
    n += ty_wire_put_head(out + n, TENSOR_NAME, n_name);
    memcpy(out + n, init->name, n_name);
    return (ty_bytes){out, n + n_name};
}

void onnx_part_merged(ty_onnx *m)
{
    const ty_wire_list *nodes = &m->tree.graph->nodes;
    int n = m->n_initializers;
    if (!may_have_merged(&m->tree))
        return;
    ty_onnx_initializer *all = TY_NEW_ARRAY(&m->arena, ty_onnx_initializer, (size_t)n + nodes->n);
    m->parted = TY_NEW_ARRAY(&m->arena, ty_bytes, nodes->n + 1);
    m->is_parted = TY_NEW_ARRAY(&m->arena, bool, nodes->n + 1);
    memcpy(all, m->initializers, sizeof *all * (size_t)n);
    for (size_t i = 0; i < nodes->n; i++) {
        const onnx_node *node = ONNX_AT(*nodes, onnx_node, i);
        int with = merged_with(m, all, node);
        if (with < 0)
            continue;
        all[n] = all[with];
        all[n].name = ONNX_TEXT(node->outputs, 0);
        ty_names_put(&m->by_name, all[n].name, n);
        m->parted[m->n_parted++] = tensor_head(&m->arena, &all[n]);
        m->is_parted[i] = true;
        n++;
    }
    m->initializers = all;
    m->n_initializers = n;
}
