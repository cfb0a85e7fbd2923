/* tf_proto.c - the field tables of TensorFlow's messages. Only what is used is in them; the rest is skipped. */
#include "compiler/import/tensorflow/tf_proto.h"

#include <string.h>

#define FIELD(number, KIND, STRUCT, member)                                \
    {                                                                      \
        number, TY_WIRE_##KIND, offsetof(STRUCT, member), #member, NULL, 0 \
    }
#define SUB(number, KIND, STRUCT, member, msg)                             \
    {                                                                      \
        number, TY_WIRE_##KIND, offsetof(STRUCT, member), #member, &msg, 0 \
    }
#define SEEN(number, KIND, STRUCT, member, seen)                                                \
    {                                                                                           \
        number, TY_WIRE_##KIND, offsetof(STRUCT, member), #member, NULL, offsetof(STRUCT, seen) \
    }
#define MESSAGE(text, STRUCT, fields)                                       \
    {                                                                       \
        text, sizeof(STRUCT), fields, TY_WIRE_COUNT(fields), TY_WIRE_NO_RAW \
    }

/* ---- tensors ---- */

static const ty_wire_field dim_fields[] = {
    FIELD(1, INT, tf_shape_dim, size),
};
static const ty_wire_message dim_message = MESSAGE("TensorShapeProto.Dim", tf_shape_dim, dim_fields);

static const ty_wire_field shape_fields[] = {
    SUB(2, SUBS, tf_shape_proto, dims, dim_message),
    FIELD(3, INT, tf_shape_proto, unknown_rank),
};
static const ty_wire_message shape_message = MESSAGE("TensorShapeProto", tf_shape_proto, shape_fields);

static const ty_wire_field tensor_fields[] = {
    FIELD(1, INT, tf_tensor, data_type),
    SUB(2, SUB, tf_tensor, shape, shape_message),
    SEEN(4, BYTES, tf_tensor, content, has_content),
    FIELD(5, FIXED32S, tf_tensor, float_val),
    FIELD(6, FIXED64S, tf_tensor, double_val),
    FIELD(9, FIXED32S, tf_tensor, scomplex_val),
    FIELD(7, INTS, tf_tensor, int_val),
    FIELD(8, BYTESES, tf_tensor, string_val),
    FIELD(10, INTS, tf_tensor, int64_val),
    FIELD(11, INTS, tf_tensor, bool_val),
    FIELD(13, INTS, tf_tensor, half_val),
    FIELD(16, INTS, tf_tensor, uint32_val),
    FIELD(17, INTS, tf_tensor, uint64_val),
};
const ty_wire_message tf_tensor_message = MESSAGE("TensorProto", struct tf_tensor, tensor_fields);

/* ---- attributes ---- */

static const ty_wire_message func_message;

static const ty_wire_field list_fields[] = {
    FIELD(2, BYTESES, struct tf_attr_list, s),
    FIELD(3, INTS, struct tf_attr_list, i),
    FIELD(4, FIXED32S, struct tf_attr_list, f),
    FIELD(5, INTS, struct tf_attr_list, b),
    FIELD(6, INTS, struct tf_attr_list, type),
    SUB(7, SUBS, struct tf_attr_list, shape, shape_message),
    SUB(8, SUBS, struct tf_attr_list, tensor, tf_tensor_message),
    SUB(9, SUBS, struct tf_attr_list, func, func_message),
};
static const ty_wire_message list_message = MESSAGE("AttrValue.ListValue", struct tf_attr_list, list_fields);

static const ty_wire_field value_fields[] = {
    SUB(1, SUB, tf_attr_value, list, list_message),
    SEEN(2, BYTES, tf_attr_value, s, has_s),
    SEEN(3, INT, tf_attr_value, i, has_i),
    SEEN(4, FLOAT, tf_attr_value, f, has_f),
    SEEN(5, INT, tf_attr_value, b, has_b),
    SEEN(6, INT, tf_attr_value, type, has_type),
    SUB(7, SUB, tf_attr_value, shape, shape_message),
    SUB(8, SUB, tf_attr_value, tensor, tf_tensor_message),
    FIELD(9, TEXT, tf_attr_value, placeholder),
    SUB(10, SUB, tf_attr_value, func, func_message),
};
static const ty_wire_message value_message = MESSAGE("AttrValue", tf_attr_value, value_fields);

static const ty_wire_field attr_fields[] = {
    FIELD(1, TEXT, tf_attr, key),
    SUB(2, SUB, tf_attr, value, value_message),
};
const ty_wire_message tf_attr_message = MESSAGE("attr", tf_attr, attr_fields);

static const ty_wire_field func_fields[] = {
    FIELD(1, TEXT, tf_func, name),
    SUB(2, SUBS, tf_func, attrs, tf_attr_message),
};
static const ty_wire_message func_message = MESSAGE("NameAttrList", tf_func, func_fields);

/* ---- nodes and functions ---- */

static const ty_wire_field node_fields[] = {
    FIELD(1, TEXT, tf_raw_node, name),
    FIELD(2, TEXT, tf_raw_node, op),
    FIELD(3, TEXTS, tf_raw_node, inputs),
    FIELD(5, BYTESES, tf_raw_node, attrs),
};
const ty_wire_message tf_raw_node_message = {"NodeDef", sizeof(tf_raw_node), node_fields, TY_WIRE_COUNT(node_fields),
                                             offsetof(tf_raw_node, whole)};

static const ty_wire_field arg_fields[] = {
    FIELD(1, TEXT, tf_arg_def, name),           FIELD(3, INT, tf_arg_def, type),
    FIELD(4, TEXT, tf_arg_def, type_attr),      FIELD(5, TEXT, tf_arg_def, number_attr),
    FIELD(6, TEXT, tf_arg_def, type_list_attr),
};
static const ty_wire_message arg_message = MESSAGE("OpDef.ArgDef", tf_arg_def, arg_fields);

static const ty_wire_field op_fields[] = {
    FIELD(1, TEXT, tf_op_def, name),
    SUB(2, SUBS, tf_op_def, inputs, arg_message),
    SUB(3, SUBS, tf_op_def, outputs, arg_message),
};
static const ty_wire_message op_message = MESSAGE("OpDef", tf_op_def, op_fields);

static const ty_wire_field pair_fields[] = {
    FIELD(1, TEXT, tf_text_pair, key),
    FIELD(2, TEXT, tf_text_pair, value),
};
static const ty_wire_message pair_message = MESSAGE("FunctionDef.RetEntry", tf_text_pair, pair_fields);

static const ty_wire_field function_fields[] = {
    SUB(1, SUB, tf_raw_function, signature, op_message), FIELD(3, BYTESES, tf_raw_function, nodes),
    SUB(4, SUBS, tf_raw_function, ret, pair_message), SUB(5, SUBS, tf_raw_function, attrs, tf_attr_message),
    SUB(6, SUBS, tf_raw_function, control, pair_message)};
const ty_wire_message tf_raw_function_message = MESSAGE("FunctionDef", tf_raw_function, function_fields);

static const ty_wire_field library_fields[] = {
    FIELD(1, BYTESES, tf_library, functions),
};
static const ty_wire_message library_message = MESSAGE("FunctionDefLibrary", tf_library, library_fields);

static const ty_wire_field graph_fields[] = {
    FIELD(1, BYTESES, tf_graph_def, nodes),
    SUB(2, SUB, tf_graph_def, library, library_message),
};
const ty_wire_message tf_graph_def_message = MESSAGE("GraphDef", tf_graph_def, graph_fields);

/* ---- signatures, collections, objects ---- */

static const ty_wire_field info_fields[] = {
    FIELD(1, TEXT, tf_tensor_info, name),
    FIELD(2, INT, tf_tensor_info, data_type),
    SUB(3, SUB, tf_tensor_info, shape, shape_message),
};
static const ty_wire_message info_message = MESSAGE("TensorInfo", tf_tensor_info, info_fields);

static const ty_wire_field info_entry_fields[] = {
    FIELD(1, TEXT, tf_info_entry, key),
    SUB(2, SUB, tf_info_entry, value, info_message),
};
static const ty_wire_message info_entry_message = MESSAGE("SignatureDef entry", tf_info_entry, info_entry_fields);

static const ty_wire_field signature_fields[] = {
    SUB(1, SUBS, tf_signature_def, inputs, info_entry_message),
    SUB(2, SUBS, tf_signature_def, outputs, info_entry_message),
    FIELD(3, TEXT, tf_signature_def, method),
};
static const ty_wire_message signature_message = MESSAGE("SignatureDef", tf_signature_def, signature_fields);

static const ty_wire_field signature_entry_fields[] = {
    FIELD(1, TEXT, tf_signature_entry, key),
    SUB(2, SUB, tf_signature_entry, value, signature_message),
};
static const ty_wire_message signature_entry_message =
    MESSAGE("signature_def", tf_signature_entry, signature_entry_fields);

static const ty_wire_field meta_info_fields[] = {
    FIELD(4, TEXTS, tf_meta_info, tags),
    FIELD(5, TEXT, tf_meta_info, version),
};
static const ty_wire_message meta_info_message = MESSAGE("MetaInfoDef", tf_meta_info, meta_info_fields);

static const ty_wire_field saver_fields[] = {
    FIELD(3, TEXT, tf_saver_def, restore_op),
};
static const ty_wire_message saver_message = MESSAGE("SaverDef", tf_saver_def, saver_fields);

static const ty_wire_field bytes_list_fields[] = {
    FIELD(1, BYTESES, tf_bytes_list, values),
};
static const ty_wire_message bytes_list_message = MESSAGE("CollectionDef list", tf_bytes_list, bytes_list_fields);

static const ty_wire_field collection_fields[] = {
    SUB(1, SUB, tf_collection, nodes, bytes_list_message),
    SUB(2, SUB, tf_collection, bytes, bytes_list_message),
};
static const ty_wire_message collection_message = MESSAGE("CollectionDef", tf_collection, collection_fields);

static const ty_wire_field collection_entry_fields[] = {
    FIELD(1, TEXT, tf_collection_entry, key),
    SUB(2, SUB, tf_collection_entry, value, collection_message),
};
static const ty_wire_message collection_entry_message =
    MESSAGE("collection_def", tf_collection_entry, collection_entry_fields);

static const ty_wire_field variable_def_fields[] = {
    FIELD(1, TEXT, tf_variable_def, name),
    FIELD(7, INT, tf_variable_def, trainable),
};
const ty_wire_message tf_variable_def_message = MESSAGE("VariableDef", tf_variable_def, variable_def_fields);

static const ty_wire_field child_fields[] = {
    FIELD(1, INT, tf_child, node),
    FIELD(2, TEXT, tf_child, name),
};
static const ty_wire_message child_message = MESSAGE("ObjectReference", tf_child, child_fields);

static const ty_wire_field saved_variable_fields[] = {
    FIELD(3, INT, tf_saved_variable, trainable),
    FIELD(6, TEXT, tf_saved_variable, name),
};
static const ty_wire_message saved_variable_message =
    MESSAGE("SavedVariable", tf_saved_variable, saved_variable_fields);

static const ty_wire_field object_fields[] = {
    SUB(1, SUBS, tf_saved_object, children, child_message),
    SUB(7, SUB, tf_saved_object, variable, saved_variable_message),
};
static const ty_wire_message object_message = MESSAGE("SavedObject", tf_saved_object, object_fields);

static const ty_wire_field saved_function_fields[] = {
    FIELD(2, INTS, tf_saved_function, bound),
};
static const ty_wire_message saved_function_message =
    MESSAGE("SavedConcreteFunction", tf_saved_function, saved_function_fields);

static const ty_wire_field saved_function_entry_fields[] = {
    FIELD(1, TEXT, tf_saved_function_entry, key),
    SUB(2, SUB, tf_saved_function_entry, value, saved_function_message),
};
static const ty_wire_message saved_function_entry_message =
    MESSAGE("concrete_functions", tf_saved_function_entry, saved_function_entry_fields);

static const ty_wire_field objects_fields[] = {
    SUB(1, SUBS, tf_object_graph, nodes, object_message),
    SUB(2, SUBS, tf_object_graph, functions, saved_function_entry_message),
};
static const ty_wire_message objects_message = MESSAGE("SavedObjectGraph", tf_object_graph, objects_fields);

static const ty_wire_field meta_graph_fields[] = {
    SUB(1, SUB, tf_meta_graph, info, meta_info_message),
    SUB(2, SUB, tf_meta_graph, graph, tf_graph_def_message),
    SUB(3, SUB, tf_meta_graph, saver, saver_message),
    SUB(4, SUBS, tf_meta_graph, collections, collection_entry_message),
    SUB(5, SUBS, tf_meta_graph, signatures, signature_entry_message),
    SUB(7, SUB, tf_meta_graph, objects, objects_message),
};
const ty_wire_message tf_meta_graph_message = MESSAGE("MetaGraphDef", tf_meta_graph, meta_graph_fields);
/* The same, but for its tags alone. */
const ty_wire_message tf_meta_info_only_message = {"MetaGraphDef", sizeof(tf_meta_graph), meta_graph_fields, 1,
                                                   TY_WIRE_NO_RAW};

static const ty_wire_field saved_model_fields[] = {
    FIELD(1, INT, tf_saved_model, version),
    FIELD(2, BYTESES, tf_saved_model, metas),
};
const ty_wire_message tf_saved_model_message = MESSAGE("SavedModel", tf_saved_model, saved_model_fields);

/* ---- the index of a checkpoint ---- */

static const ty_wire_field header_fields[] = {
    FIELD(1, INT, tf_bundle_header, n_shards),
    FIELD(2, INT, tf_bundle_header, endianness),
};
const ty_wire_message tf_bundle_header_message = MESSAGE("BundleHeaderProto", tf_bundle_header, header_fields);

static const ty_wire_field extent_fields[] = {
    FIELD(1, INT, tf_extent, start),
    SEEN(2, INT, tf_extent, length, has_length),
};
static const ty_wire_message extent_message = MESSAGE("TensorSliceProto.Extent", tf_extent, extent_fields);

static const ty_wire_field slice_fields[] = {
    SUB(1, SUBS, tf_slice, extents, extent_message),
};
static const ty_wire_message slice_message = MESSAGE("TensorSliceProto", tf_slice, slice_fields);

static const ty_wire_field record_fields[] = {
    FIELD(1, INT, tf_bundle_record, data_type),
    SUB(2, SUB, tf_bundle_record, shape, shape_message),
    FIELD(3, INT, tf_bundle_record, shard),
    FIELD(4, INT, tf_bundle_record, offset),
    FIELD(5, INT, tf_bundle_record, size),
    FIELD(6, FIXED32S, tf_bundle_record, crc),
    SUB(7, SUBS, tf_bundle_record, slices, slice_message),
};
const ty_wire_message tf_bundle_record_message = MESSAGE("BundleEntryProto", tf_bundle_record, record_fields);

/* ---- reading ---- */

int tf_read(const ty_wire_message *message, ty_bytes in, ty_arena *arena, void *out, ty_error *err)
{
    if (ty_wire_read(message, in, arena, TF_MAX_TREE_BYTES, out, err) == 0)
        return 0;
    if (err && *err->place) {
        char at[TY_ERROR_PLACE_BYTES];
        memcpy(at, err->place, sizeof at);
        err->place[0] = 0;
        ty_error_wrap(err, "%.40s of this message", at);
    }
    return -1;
}

bool tf_read_shape(const tf_shape_proto *shape, int *rank, int64_t *dim)
{
    *rank = shape && shape->unknown_rank ? -1 : 0;
    if (!shape || shape->unknown_rank)
        return true;
    if (shape->dims.n > TY_MAX_RANK)
        return false;
    *rank = (int)shape->dims.n;
    for (int i = 0; i < *rank; i++) {
        dim[i] = TF_AT(shape->dims, tf_shape_dim, i)->size;
        if (dim[i] < -1)
            return false;
    }
    return true;
}
