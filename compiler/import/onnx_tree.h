/* onnx_tree.h - a parsed ModelProto: plain structs that follow onnx.proto, in an arena beside the mapped file.
 *
 * Private to compiler/import. Strings are never NULL; absent sub-messages are NULL.
 */
#ifndef TY_COMPILER_IMPORT_ONNX_TREE_H
#define TY_COMPILER_IMPORT_ONNX_TREE_H

#include "compiler/import/names.h"
#include "compiler/import/onnx.h"
#include "compiler/import/wire.h"

typedef struct onnx_pair {
    const char *key;
    const char *value;
} onnx_pair;

typedef struct onnx_tensor {
    ty_wire_list dims; /* int64_t */
    int64_t data_type;
    ty_wire_list float_data, double_data;             /* fixed width, perhaps unaligned */
    ty_wire_list int32_data, int64_data, uint64_data; /* int64_t each */
    ty_wire_list string_data;                         /* ty_bytes */
    ty_wire_list external;                            /* onnx_pair */
    const char *name;
    ty_bytes raw;
    int64_t location;
    bool has_raw, has_segment;
} onnx_tensor;

struct onnx_graph;

typedef struct onnx_attr {
    const char *name;
    const char *ref; /* attribute of the enclosing function, or "" */
    float f;
    int64_t i;
    ty_bytes s;
    onnx_tensor *t;
    struct onnx_graph *g;
    ty_wire_list floats, ints, strings; /* float (unaligned), int64_t, ty_bytes */
    int64_t type;
    bool has_f, has_i, has_s;
} onnx_attr;

typedef enum onnx_attr_type {
    ONNX_ATTR_FLOAT = 1,
    ONNX_ATTR_INT,
    ONNX_ATTR_STRING,
    ONNX_ATTR_TENSOR,
    ONNX_ATTR_GRAPH,
    ONNX_ATTR_FLOATS,
    ONNX_ATTR_INTS,
    ONNX_ATTR_STRINGS
} onnx_attr_type;

typedef struct onnx_node {
    ty_wire_list inputs, outputs; /* const char * */
    const char *name, *op_type, *domain, *overload;
    ty_wire_list attrs;    /* onnx_attr */
    ty_wire_list metadata; /* onnx_pair */
} onnx_node;

typedef struct onnx_shape_dim {
    int64_t value;
    const char *param;
    bool has_value;
} onnx_shape_dim;

typedef struct onnx_shape {
    ty_wire_list dims; /* onnx_shape_dim */
} onnx_shape;

typedef struct onnx_tensor_type {
    int64_t elem_type;
    onnx_shape *shape;
} onnx_tensor_type;

typedef struct onnx_type {
    onnx_tensor_type *tensor;
} onnx_type;

typedef struct onnx_value_info {
    const char *name;
    onnx_type *type;
    ty_wire_list metadata; /* onnx_pair */
} onnx_value_info;

typedef struct onnx_graph {
    const char *name;
    ty_wire_list nodes;                   /* onnx_node */
    ty_wire_list initializers;            /* onnx_tensor */
    ty_wire_list inputs, outputs, values; /* onnx_value_info */
    ty_wire_list sparse;                  /* ty_bytes: only counted */
} onnx_graph;

typedef struct onnx_opset {
    const char *domain;
    int64_t version;
} onnx_opset;

typedef struct onnx_function {
    const char *name, *domain, *overload;
    ty_wire_list inputs, outputs, attr_names; /* const char * */
    ty_wire_list attr_defaults;               /* onnx_attr */
    ty_wire_list nodes;
    ty_wire_list opsets;
} onnx_function;

typedef struct onnx_model {
    int64_t ir_version;
    const char *producer, *producer_version;
    onnx_graph *graph;
    ty_wire_list opsets;    /* onnx_opset */
    ty_wire_list functions; /* onnx_function */
} onnx_model;

typedef struct onnx_file {
    const void *data;
    size_t n;
    bool is_mapped;
} onnx_file;

struct ty_onnx {
    ty_arena arena;
    const char *name; /* of the file, for messages */
    ty_bytes bytes;
    onnx_file map;
    int folder; /* descriptor of the model's folder while opening, else -1 */
    onnx_file *externals;
    const char **external_names;
    int n_externals;
    onnx_model tree;
    ty_onnx_value *inputs, *outputs;
    int n_inputs, n_outputs;
    int *input_at;                     /* number of inputs[i] among the graph's own inputs */
    ty_onnx_initializer *initializers; /* in the order of tree.graph->initializers, then those that were merged */
    int n_initializers;
    ty_names by_name; /* initializers, to their numbers */
    ty_bytes *parted; /* of those that were merged (onnx_merged.c): their TensorProtos without data */
    int n_parted;
    bool *is_parted;            /* by node: an Identity that stands for one of them; NULL: none does */
    struct onnx_copies *copies; /* aligned or converted constants, made while importing */
};

/* Metadata of a value_info by which PyTorch's dynamo exporter says what the initializer of that name is. */
#define TY_ONNX_KIND_KEY "pkg.torch.export.graph_signature.InputSpec.kind"

#define ONNX_AT(list, type, i) (&((const type *)(list).data)[i])
#define ONNX_TEXT(list, i)     (((const char *const *)(list).data)[i])

extern const ty_wire_message onnx_model_message, onnx_tensor_message;

/* Initializers for the weights that PyTorch's exporter has merged; their Identity nodes are no nodes any more. */
void onnx_part_merged(ty_onnx *m);
/* Element type of a TensorProto data_type number; TY_N_DTYPES if we have none. */
ty_dtype onnx_dtype(int64_t data_type);
int64_t onnx_data_type(ty_dtype dtype);
/* "float32", "string" ... for messages. */
const char *onnx_data_type_text(int64_t data_type);
/* Type and bytes of a TensorProto. m may be NULL: then external data are refused. Bytes that are not in the input are
 * made in the arena. For unknown element types *data is NULL and dtype TY_N_DTYPES (no error). */
int onnx_tensor_value(ty_onnx *m, ty_arena *arena, const onnx_tensor *t, ty_type *type, const void **data,
                      ty_error *err);
/* External data of a tensor, n_bytes of them; onnx_external.c. */
int onnx_external_value(ty_onnx *m, const onnx_tensor *t, size_t n_bytes, const void **data, ty_error *err);
void onnx_external_close(ty_onnx *m);
/* An aligned copy of data if it is not aligned, made once for each key. */
const void *onnx_aligned(const ty_onnx *m, const void *key, const void *data, size_t n_bytes, size_t align);
/* A constant from a tensor of the file, the same address each time. False: refused, *err says why. */
bool onnx_tensor_const(const ty_onnx *m, ty_graph *g, const onnx_tensor *t, ty_val *v, ty_error *err);
void onnx_copies_new(ty_onnx *m);
void onnx_copies_free(ty_onnx *m);
/* "float32 [batch, 24]" for messages. */
const char *onnx_value_text(const ty_onnx_value *v, char *out, size_t n);
/* Opset version of a domain as an opset_import list has it; -1 if missing. "ai.onnx" is "". */
int64_t onnx_opset_of(const ty_wire_list *opsets, const char *domain);
bool onnx_domain_same(const char *a, const char *b);
/* Whether it is an operator of the default domain. */
bool onnx_is_op(const onnx_node *node, const char *op);
/* Cuts a name from a file to 120 bytes, in the middle. out has 128 bytes. */
const char *onnx_short(const char *name, char *out);

#endif
