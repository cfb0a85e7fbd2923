/* tf_proto.h - TensorFlow's messages as plain structs, decoded by compiler/import/wire.h. Private to
 * compiler/import/tensorflow.
 *
 * Nodes and functions stay bytes until somebody needs them: a file has thousands that no signature reaches. Field
 * numbers: the .proto files of TensorFlow 2.21.
 */
#ifndef TY_COMPILER_IMPORT_TENSORFLOW_TF_PROTO_H
#define TY_COMPILER_IMPORT_TENSORFLOW_TF_PROTO_H

#include "compiler/import/tensorflow/tf.h"

/* Memory for the decoded tree; weights are not part of it. */
#define TF_MAX_TREE_BYTES ((size_t)1 << 30)

typedef struct tf_shape_dim {
    int64_t size;
} tf_shape_dim;

typedef struct tf_shape_proto {
    ty_wire_list dims; /* tf_shape_dim */
    int64_t unknown_rank;
} tf_shape_proto;

struct tf_tensor {
    int64_t data_type;
    tf_shape_proto *shape; /* NULL: a scalar */
    ty_bytes content;
    bool has_content;
    ty_wire_list half_val, int_val, int64_val, bool_val, uint32_val, uint64_val; /* int64_t */
    ty_wire_list float_val, double_val, scomplex_val;                            /* fixed width */
    ty_wire_list string_val;                                                     /* ty_bytes */
};

typedef struct tf_raw_node {
    const char *name, *op;
    ty_wire_list inputs; /* const char * */
    ty_wire_list attrs;  /* ty_bytes, one an entry of the map */
    ty_bytes whole;
} tf_raw_node;

typedef struct tf_arg_def {
    const char *name, *type_attr, *number_attr, *type_list_attr;
    int64_t type;
} tf_arg_def;

typedef struct tf_op_def {
    const char *name;
    ty_wire_list inputs, outputs; /* tf_arg_def */
} tf_op_def;

typedef struct tf_text_pair {
    const char *key, *value;
} tf_text_pair;

typedef struct tf_raw_function {
    tf_op_def *signature;
    ty_wire_list attrs;        /* tf_attr */
    ty_wire_list nodes;        /* ty_bytes */
    ty_wire_list ret, control; /* tf_text_pair */
} tf_raw_function;

typedef struct tf_library {
    ty_wire_list functions; /* ty_bytes */
} tf_library;

typedef struct tf_graph_def {
    ty_wire_list nodes; /* ty_bytes */
    tf_library *library;
} tf_graph_def;

typedef struct tf_tensor_info {
    const char *name;
    int64_t data_type;
    tf_shape_proto *shape;
} tf_tensor_info;

typedef struct tf_info_entry {
    const char *key;
    tf_tensor_info *value;
} tf_info_entry;

typedef struct tf_signature_def {
    ty_wire_list inputs, outputs; /* tf_info_entry */
    const char *method;
} tf_signature_def;

typedef struct tf_signature_entry {
    const char *key;
    tf_signature_def *value;
} tf_signature_entry;

typedef struct tf_meta_info {
    ty_wire_list tags; /* const char * */
    const char *version;
} tf_meta_info;

typedef struct tf_saver_def {
    const char *restore_op;
} tf_saver_def;

typedef struct tf_bytes_list {
    ty_wire_list values; /* ty_bytes */
} tf_bytes_list;

typedef struct tf_collection {
    tf_bytes_list *nodes, *bytes;
} tf_collection;

typedef struct tf_collection_entry {
    const char *key;
    tf_collection *value;
} tf_collection_entry;

typedef struct tf_variable_def {
    const char *name;
    int64_t trainable;
} tf_variable_def;

typedef struct tf_child {
    int64_t node;
    const char *name;
} tf_child;

typedef struct tf_saved_variable {
    const char *name;
    int64_t trainable;
} tf_saved_variable;

typedef struct tf_saved_object {
    ty_wire_list children; /* tf_child */
    tf_saved_variable *variable;
} tf_saved_object;

typedef struct tf_saved_function {
    ty_wire_list bound; /* int64_t: objects whose values its last arguments are */
} tf_saved_function;

typedef struct tf_saved_function_entry {
    const char *key;
    tf_saved_function *value;
} tf_saved_function_entry;

typedef struct tf_object_graph {
    ty_wire_list nodes;     /* tf_saved_object */
    ty_wire_list functions; /* tf_saved_function_entry */
} tf_object_graph;

typedef struct tf_meta_graph {
    tf_meta_info *info;
    tf_graph_def *graph;
    tf_saver_def *saver;
    ty_wire_list collections; /* tf_collection_entry */
    ty_wire_list signatures;  /* tf_signature_entry */
    tf_object_graph *objects;
} tf_meta_graph;

typedef struct tf_saved_model {
    int64_t version;
    ty_wire_list metas; /* ty_bytes */
} tf_saved_model;

typedef struct tf_extent {
    int64_t start, length;
    bool has_length; /* else: to the end */
} tf_extent;

typedef struct tf_slice {
    ty_wire_list extents; /* tf_extent */
} tf_slice;

typedef struct tf_bundle_header {
    int64_t n_shards, endianness;
} tf_bundle_header;

typedef struct tf_bundle_record {
    int64_t data_type;
    tf_shape_proto *shape;
    int64_t shard, offset, size;
    ty_wire_list crc;    /* 4 bytes each; the last counts */
    ty_wire_list slices; /* tf_slice */
} tf_bundle_record;

extern const ty_wire_message tf_attr_message, tf_raw_node_message, tf_raw_function_message, tf_graph_def_message,
    tf_meta_graph_message, tf_meta_info_only_message, tf_saved_model_message, tf_variable_def_message,
    tf_bundle_header_message, tf_bundle_record_message, tf_tensor_message;

/* Reads one message of the file into the arena. An error has no place yet, and says which byte of the message. */
int tf_read(const ty_wire_message *message, ty_bytes in, ty_arena *arena, void *out, ty_error *err);

/* Rank and dims of a shape. False: more dims than TY_MAX_RANK, or a dim below -1. NULL is a scalar. */
bool tf_read_shape(const tf_shape_proto *shape, int *rank, int64_t *dim);

#endif
