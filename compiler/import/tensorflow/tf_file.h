/* tf_file.h - the inside of an open TensorFlow file. Private to compiler/import/tensorflow. */
#ifndef TY_COMPILER_IMPORT_TENSORFLOW_TF_FILE_H
#define TY_COMPILER_IMPORT_TENSORFLOW_TF_FILE_H

#include "compiler/import/names.h"
#include "compiler/import/tensorflow/tf_bundle.h"

#define TF_MAX_CALL_DEPTH 100 /* of functions that call each other */

typedef enum tf_kind {
    TF_SAVED_MODEL, /* a folder */
    TF_GRAPH_DEF,   /* a frozen graph */
    TF_META_GRAPH   /* PREFIX.meta with a checkpoint beside it */
} tf_kind;

/* Where an input of a node comes from: an argument of the function, or an output of another node (by number). */
typedef enum tf_in_kind { TF_IN_NODE, TF_IN_ARG, TF_IN_CONTROL } tf_in_kind;

typedef struct tf_in {
    tf_in_kind kind;
    int at, out;
} tf_in;

/* A node of the file. Name, op and names of inputs are known from the start, the rest once it is asked for. */
typedef struct tf_raw {
    tf_raw_node node;
    const tf_attr *attr;
    int n_attrs;
    const tf_in *in;
    int n_in;
    bool has_attrs, has_in;
    int variable; /* that it stands for, or whose weight it is; -1 */
} tf_raw;

/* Nodes that see each other's names: the file's graph, or one function. */
typedef struct tf_body {
    const char *name; /* of the function; NULL: the file's graph */
    tf_raw *raw;
    int n;
    ty_names names, args;
    const tf_raw_function *def; /* NULL: the file's graph */
    const tf_in *ret;           /* one a result */
    int n_ret;
    const int *control; /* nodes that run whatever the results need */
    int n_control;
    signed char has_effects; /* assigns to variables: 1, does not: 0, not known yet: -1 */
    bool is_open;            /* being asked for effects: functions may call themselves */
} tf_body;

struct tf_signature_ends {
    const tf_in *input, *output; /* in the file's graph */
    const int *effect;           /* nodes to run besides */
    int n_effects;
};

struct tf_file {
    ty_arena arena;
    tf_kind kind;
    const char *path;   /* as messages name it: the protobuf file */
    const char *folder; /* of a SavedModel */
    ty_file_view view;
    ty_bytes bytes;      /* of the SavedModel, MetaGraphDef or GraphDef: the view */
    int meta_index;      /* which MetaGraphDef of a SavedModel */
    tf_meta_graph *meta; /* NULL: a bare GraphDef */
    tf_graph_def *graph;
    tf_body *body;
    ty_bytes *function_bytes;
    tf_function **function; /* NULL: nobody asked yet */
    ty_names function_names;
    int n_functions;
    tf_variable *variable;
    tf_entry **entry;                 /* of the checkpoint, one a variable; NULL: none */
    const tf_saved_variable **object; /* one a variable; NULL: none */
    const int *variable_node;
    int n_variables;
    tf_bundle bundle;
    bool has_bundle;
    tf_signature *signature;
    int n_signatures;
    const tf_signature *chosen, *train;
    int depth; /* of functions asked for effects */
    const char *text;
};

/* ---- nodes and functions (tf_body.c) ---- */

/* A body of n NodeDefs; inputs are looked at later. */
int tf_body_read(tf_file *f, tf_body *b, const ty_wire_list *nodes, ty_error *err);
int tf_body_attrs(tf_file *f, const tf_body *b, tf_raw *raw, ty_error *err);
int tf_body_inputs(tf_file *f, const tf_body *b, tf_raw *raw, ty_error *err);
/* "name", "name:1" (the file's graph) or "name:output:1" (functions), "^name". */
int tf_body_resolve(tf_file *f, const tf_body *b, const char *text, tf_in *out, ty_error *err);
/* A view of a raw node for tf_find_attr and its like. */
tf_node tf_raw_view(const tf_raw *raw);
/* Lists the functions of the library by name. */
int tf_library_index(tf_file *f, ty_error *err);
/* The function that a node calls, if it is a call (PartitionedCall, or the function's name as op): its number; else
 * -1. */
int tf_called(tf_file *f, const tf_body *b, tf_raw *raw, ty_error *err);

/* ---- meaning of operators (tf_effects.c) ---- */

bool tf_op_is_variable(const char *op);
bool tf_op_assigns(const char *op);
bool tf_op_reads(const char *op);
/* Checks and messages that are left out together with what only they need. */
bool tf_op_is_stripped(const char *op);
bool tf_op_is_control_flow(const char *op);
/* Whether anything in the body, or what it calls, assigns to a variable. */
bool tf_body_has_effects(tf_file *f, const tf_body *b);
/* Whether a node assigns, itself or in functions that it calls. */
bool tf_raw_has_effects(tf_file *f, const tf_body *b, tf_raw *raw);

/* ---- opening ---- */

int tf_read_signatures(tf_file *f, const tf_options *opt, ty_error *err);
int tf_read_variables(tf_file *f, ty_error *err);
/* What the graph of objects says (tf_objects.c): which tensors of the checkpoint variables are, and whether they are
 * trained. */
int tf_bind_objects(tf_file *f, ty_error *err);
int tf_mark_trainable(tf_file *f, ty_error *err);
/* Marks the variables that the chosen signatures use and gives them the names of their objects. */
int tf_name_variables(tf_file *f, ty_error *err);

#endif
