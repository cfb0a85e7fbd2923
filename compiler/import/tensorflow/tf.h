/* tf.h - TensorFlow's files: SavedModel folders, frozen GraphDefs, TF1 checkpoints with their graph. Private to
 * compiler/.
 *
 *     tf_file *f;   tf_open("saved_model", &(tf_options){.signature = "forward"}, &f, &err);
 *     f->signature[k], f->variable[v], f->function[i]      what is in it; weights stay in the mapped file
 *     tf_graph *g;  tf_signature_graph(f, signature, arena, &g, &err);
 *     for each g->node[i], in order                        inputs come before their users
 *     tf_write(f, path, find, ctx, &err);                  the same again with other weights
 *
 * A graph as it comes from here is flat: calls of functions are replaced by their bodies, captured variables are the
 * VarHandleOp nodes themselves, and what no result and no assignment needs is not in it (and was never decoded). Calls
 * remain where the caller asked for it (tf_keep_call: layers of Keras that are recognised as a whole) and where a
 * function is the body of control flow (If, While): tf_function_graph() flattens those.
 *
 * Everything lives as long as the file. Reading only: any number of graphs may be made of one file, one thread at a
 * time. Field numbers: the .proto files of TensorFlow 2.21.
 */
#ifndef TY_COMPILER_IMPORT_TENSORFLOW_TF_H
#define TY_COMPILER_IMPORT_TENSORFLOW_TF_H

#include "base/tensor.h"
#include "compiler/import/wire.h"

typedef struct tf_file tf_file;

/* TensorFlow's element types. Variables of TF1 have the same plus 100 ("ref"): tf_type_plain() takes it off. */
enum { TF_FLOAT = 1, TF_STRING = 7, TF_RESOURCE = 20, TF_VARIANT = 21, TF_REF = 100 };

/* The element type of a number in the file; TY_N_DTYPES for those that we have not (text, resources, complex ...). */
ty_dtype tf_dtype(int64_t data_type);
int64_t tf_data_type(ty_dtype dtype);
const char *tf_data_type_text(int64_t data_type); /* "float", "string", "resource", "type 77" is "type" */

/* ---- values of attributes ------------------------------------------------------------------------------------------
 */

/* TensorShapeProto. rank -1: unknown; dim -1: unknown. */
typedef struct tf_shape {
    int rank;
    const int64_t *dim;
} tf_shape;

/* TensorProto as it lies in the file; tf_tensor_value() makes bytes of it. */
typedef struct tf_tensor tf_tensor;

typedef struct tf_attr tf_attr;
typedef struct tf_attr_value tf_attr_value;

/* A function with values of its own attributes. */
typedef struct tf_func {
    const char *name;
    ty_wire_list attrs; /* of tf_attr */
} tf_func;

/* AttrValue: one of these. has_X tells which; message fields are NULL if absent. */
struct tf_attr_value {
    ty_bytes s;
    int64_t i, b, type;
    float f;
    bool has_s, has_i, has_f, has_b, has_type;
    const struct tf_shape_proto *shape; /* read it with tf_attr_shape() */
    const tf_tensor *tensor;
    const tf_func *func;
    const struct tf_attr_list *list;
    const char *placeholder;
};

struct tf_attr {
    const char *key;
    const tf_attr_value *value; /* never NULL once read */
};

/* AttrValue.ListValue. */
struct tf_attr_list {
    ty_wire_list s;    /* ty_bytes */
    ty_wire_list i;    /* int64_t */
    ty_wire_list f;    /* float */
    ty_wire_list b;    /* int64_t */
    ty_wire_list type; /* int64_t */
    ty_wire_list shape, tensor, func;
};

#define TF_AT(wire_list, type, i) (&((const type *)(wire_list).data)[i])

/* ---- graphs --------------------------------------------------------------------------------------------------------
 */

/* An output of a node of the same tf_graph; node -1: none. */
typedef struct tf_edge {
    int node, out;
} tf_edge;

/* Where a node stands: the functions around it, innermost first. NULL: the file's own graph. */
typedef struct tf_scope {
    const char *function;
    const char *call; /* name of the node that calls it */
    const struct tf_scope *parent;
} tf_scope;

typedef struct tf_function tf_function;

/* Ops that stand for something of the file and are no operators: */
#define TF_OP_ARG "_Arg" /* argument node->arg of the graph: a signature's input, a function's argument */

typedef struct tf_node {
    const char *name; /* as in its function: "sequential/dense/MatMul" */
    const char *op;   /* "MatMul" */
    const tf_scope *scope;
    const tf_edge *in;
    int n_in;
    const tf_attr *attr;
    int n_attrs;
    int n_out;                 /* that somebody uses */
    int arg;                   /* of TF_OP_ARG; else -1 */
    int variable;              /* of VarHandleOp, VariableV2, Variable ...: number of the variable, else -1 */
    int constant;              /* Const that is listed as a weight (frozen graphs): number of the variable, else -1 */
    const tf_function *called; /* a call that was kept (tf_keep_call), else NULL */
    bool is_effect;            /* assigns to a variable: takes place in the order of the list */
} tf_node;

/* What a graph takes and gives: a signature's entry, an argument or result of a function. */
typedef struct tf_port {
    const char *name;
    int64_t data_type; /* plain */
    int rank;          /* -1: unknown */
    int64_t dim[TY_MAX_RANK];
} tf_port;

/* Nodes in an order in which inputs come first. Reads of and assignments to variables stand in the order in which they
 * take effect: an importer that goes through the list once, with a present value for each variable, has TensorFlow's
 * meaning. Loops of TF1 are the exception: in[k] of a Merge may be a NextIteration that comes later (has_loops). */
typedef struct tf_graph {
    const char *name; /* "signature \"train\"", "function \"f_12\"" for messages */
    tf_node *node;
    int n_nodes;
    const tf_port *arg;
    int n_args;
    const tf_port *result; /* names and types as far as known */
    const tf_edge *result_edge;
    int n_results;
    bool has_loops;
} tf_graph;

/* Value of an attribute, NULL if absent (the operator's default then counts). */
const tf_attr_value *tf_find_attr(const tf_node *n, const char *key);
int64_t tf_attr_int(const tf_node *n, const char *key, int64_t absent);
double tf_attr_float(const tf_node *n, const char *key, double absent);
bool tf_attr_bool(const tf_node *n, const char *key, bool absent);
int64_t tf_attr_type(const tf_node *n, const char *key, int64_t absent); /* a DataType */
/* A text in the arena; `absent` as given. */
const char *tf_attr_text(const tf_node *n, ty_arena *arena, const char *key, const char *absent);
/* List of integers; false if absent. */
bool tf_attr_ints(const tf_node *n, const char *key, const int64_t **v, int64_t *n_v);
bool tf_attr_floats(const tf_node *n, ty_arena *arena, const char *key, const double **v, int64_t *n_v);
/* Shape; false if absent or beyond TY_MAX_RANK. */
bool tf_attr_shape(const tf_node *n, ty_arena *arena, const char *key, tf_shape *out);
/* Name of a function in an attribute (then_branch, body, f ...), NULL if absent. */
const char *tf_attr_function(const tf_node *n, const char *key);

/* Type and bytes (aligned to 16 if they are not in the file as they should be; else perhaps unaligned: memcpy) of a
 * Const's "value". Unknown element types: *data NULL and dtype TY_N_DTYPES, no error. */
int tf_tensor_value(const tf_tensor *t, ty_arena *arena, ty_type *type, const void **data, ty_error *err);
/* float32 or float64, of which complex numbers of this type are two; TY_N_DTYPES: it is no type of such. */
ty_dtype tf_complex_dtype(int64_t data_type);
/* Of complex64: floats of the real and of the imaginary parts, type that of each. 1, 0: it is of another type, -1. */
int tf_tensor_parts(const tf_tensor *t, ty_arena *arena, ty_type *type, const void *part[2], ty_error *err);
/* Texts of a string tensor: a list of ty_bytes, as many as are written. */
const ty_wire_list *tf_tensor_strings(const tf_tensor *t);
int64_t tf_tensor_data_type(const tf_tensor *t);

/* `node "dense/MatMul" (MatMul) in function "f" called by "g"` for places of errors. Returns out. */
const char *tf_node_place(const tf_node *n, char *out, size_t n_out);

/* ---- functions -----------------------------------------------------------------------------------------------------
 */

struct tf_function {
    const char *name;
    const char *api_implements; /* "lstm_<uuid>", or NULL: interface that Keras says it implements */
    const char *forward;        /* attribute forward_function_name, backward_function_name, or NULL */
    const char *backward;
    const tf_port *arg;
    int n_args;
    const tf_port *result;
    int n_results;
    const struct tf_body *body; /* private */
};

/* Number by name, or -1. */
int tf_find_function(const tf_file *f, const char *name);
/* Decoded when first asked for. tf_function_at() gives NULL where tf_load_function() says why. */
const tf_function *tf_function_at(const tf_file *f, int i);
int tf_load_function(const tf_file *f, int i, const tf_function **out, ty_error *err);
int tf_n_functions(const tf_file *f);

/* Whether a call is to stay a node (op as in the file, `called` set) instead of being replaced by its body. */
typedef bool tf_keep_call(void *ctx, const tf_function *fn);

/* Flattened body of a function: arguments and results in its order. keep may be NULL. Everything in the arena. */
int tf_function_graph(const tf_file *f, const tf_function *fn, tf_keep_call *keep, void *ctx, ty_arena *arena,
                      tf_graph **out, ty_error *err);

/* ---- variables -----------------------------------------------------------------------------------------------------
 */

typedef struct tf_variable {
    const char *name; /* "dense/kernel": as its object calls it where that is unique, else its node */
    const char *key;  /* in the checkpoint; NULL: none there (or a Const of a frozen graph) */
    ty_type type;     /* dtype TY_N_DTYPES: an element type that we have not */
    const void *data; /* its bytes, straight from the file: perhaps unaligned; NULL: the file has none */
    bool trainable;   /* as the file says; of a Const: used as weights are */
    bool is_running;  /* moving statistics of a batch norm */
    bool is_const;    /* a Const node, not a variable */
    bool is_used;     /* by the chosen signatures */
} tf_variable;

int tf_n_variables(const tf_file *f);
const tf_variable *tf_variable_at(const tf_file *f, int i);

/* ---- files ---------------------------------------------------------------------------------------------------------
 */

typedef struct tf_signature {
    const char *name; /* "serving_default" */
    const char *method;
    const tf_port *input, *output; /* sorted by name */
    int n_inputs, n_outputs;
    const struct tf_signature_ends *ends; /* private: tensors of the graph */
} tf_signature;

typedef struct tf_options {
    const char *tags;      /* "serve", "serve,train"; NULL: the one with serve, else the only one */
    const char *signature; /* NULL: serving_default, serve, forward, or the only one with inputs. Of a frozen graph:
                              names of its outputs, separated by commas */
    const char *train_signature; /* of a step of the file's own; or, in TF1, "TRAIN_OP" or "TRAIN_OP, LOSS" */
} tf_options;

/* Folder of a SavedModel (or its saved_model.pb), a GraphDef, or NAME.meta with NAME.index beside it. */
int tf_open(const char *path, const tf_options *opt, tf_file **out, ty_error *err);
/* Whether there is the graph of a checkpoint in a folder: NAME.meta. */
bool tf_has_checkpoint(const char *folder);
void tf_close(tf_file *f);
/* "tensorflow 2.21.0 savedmodel" */
const char *tf_format_text(const tf_file *f);
int64_t tf_n_nodes(const tf_file *f); /* of the file's own graph */
/* Gives mapped pages of weights back to the system. */
void tf_drop_pages(const tf_file *f);

int tf_n_signatures(const tf_file *f);
const tf_signature *tf_signature_at(const tf_file *f, int i);
/* NULL if there is none of this name. */
const tf_signature *tf_find_signature(const tf_file *f, const char *name);
/* The ones that options chose; no train signature: NULL. */
const tf_signature *tf_chosen_signature(const tf_file *f);
const tf_signature *tf_train_signature(const tf_file *f);
/* The sub-graph that makes results from what the caller gives: tensors as the graph names them ("dense/MatMul",
 * "split:1"). run: a node whose assignments are wanted (a train operation of TF1), or NULL. Inputs are the Placeholders
 * that are needed. */
int tf_node_signature(tf_file *f, const char *run, const char *outputs, const tf_signature **out, ty_error *err);

/* Flat graph of a signature: args are its inputs, results its outputs, and with `effects` every assignment that
 * running it would do is in the list. */
int tf_signature_graph(const tf_file *f, const tf_signature *s, tf_keep_call *keep, void *ctx, ty_arena *arena,
                       tf_graph **out, ty_error *err);

/* ---- writing -------------------------------------------------------------------------------------------------------
 */

/* New bytes for a variable that the chosen signatures use: those of its type; NULL keeps the old. */
typedef const void *tf_find_value(void *ctx, const tf_variable *v);
/* The same again with other weights, complete under this name or not at all: a SavedModel as a folder (graph and all
 * else byte for byte, the checkpoint's index and shards with right CRCs, fingerprint.pb with the new checkpoint's
 * hash), a frozen graph as a file, a TF1 checkpoint as PREFIX.meta, PREFIX.index and shards (path: PREFIX.meta, or a
 * folder that holds them). A variable that the file holds twice (Keras' exports do) is written twice. */
int tf_write(const tf_file *f, const char *path, tf_find_value *find, void *ctx, ty_error *err);
/* A name for what is written: "saved_model" and "checkpoint" are folders, "model.pb" a file. */
const char *tf_artifact(const tf_file *f);

#endif
