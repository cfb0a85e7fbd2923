/* keras.h - Keras models: what the parts of the importer share. Private to compiler/import/keras.
 *
 * A file gives configuration and tensors (keras_file). The configuration becomes a tree of layers (keras_layer); models
 * inside models are layers with a graph of calls of their own. A layer class is one row of keras_layers.def and two
 * functions, both on a call, that is, on one application of a layer to values of a graph (keras_call):
 *
 *     void keras_create_dense(keras_call *c)      declares weights and sublayers; once a layer, at its first call
 *     void keras_call_dense(keras_call *c)        emits the layer and sets its outputs; for every call
 *
 * The model is walked when it is opened, with stand-ins for free dimensions, so that no layer needs a formula for its
 * shape: create() sees types of values, and what call() emitted has its type. It is walked again for every import.
 * What cannot be done is refused with keras_fail(), once; return then. Failures of graph constructors need no check:
 * they are sticky, and the driver turns them into a fault of this layer. But do not ask TY_NONE for its shape.
 *
 * Shapes are static. Axis 0 is the batch. Meanings are those of Keras 3.15; formulas: its sources, keras/src/layers.
 */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_H

#include "base/doc.h"
#include "compiler/ir/build.h"
#include "compiler/model.h"

/* ---- the file (keras_file.c) --------------------------------------------------------------------------------------
 */

/* A data set of the file, as HDF5 has it. */
typedef struct keras_tensor {
    const char *path; /* "layers/dense/vars/0"; legacy files: "model_weights/dense/dense/kernel:0" */
    /* Legacy files: the layer (attribute layer_names) whose attribute weight_names lists it, in that order. Else NULL.
     */
    const char *layer;
    ty_type type;
    const void *data; /* row-major, little-endian; lives as long as the file */
} keras_tensor;

typedef enum keras_form {
    KERAS_ZIP,    /* NAME.keras: config.json, metadata.json, model.weights.h5 (or .npz) */
    KERAS_LEGACY, /* NAME.h5: attributes model_config, training_config; model_weights */
    KERAS_FOLDER, /* config.json, with or without model.weights.h5 beside it */
    KERAS_CONFIG  /* NAME.json, a configuration alone */
} keras_form;

typedef struct keras_file {
    const char *path; /* as opened, for messages */
    keras_form form;
    const ty_doc *config;       /* {"class_name": ..., "config": ...} of the outermost model */
    const ty_doc *compile;      /* compile_config or training_config; NULL: the file has none */
    const ty_doc *metadata;     /* NULL: none */
    const char *version;        /* "3.15.1"; legacy: attribute keras_version; "" if unknown */
    const keras_tensor *tensor; /* in the order of the file; legacy files: layers and weights in the order of their
                                   lists. The optimizer's too ("optimizer/vars/0", "optimizer_weights/...") */
    int n_tensors;
    bool has_weights; /* false: a configuration alone, weights are initialised */
    void *impl;       /* keras_file.c's */
} keras_file;

/* Whether the path is for keras_file_open, by the first bytes of the file; of a folder there are none. */
bool keras_file_matches(const char *path, const uint8_t *head, size_t n);
int keras_file_open(const char *path, ty_arena *arena, keras_file *out, ty_error *err);
void keras_file_close(keras_file *f); /* for {0} too */
/* A member of a .keras archive, in the arena; *text NULL: there is none. */
int keras_file_member(const keras_file *f, const char *name, ty_arena *arena, const char **text, ty_error *err);

/* ---- weights and layers -------------------------------------------------------------------------------------------
 */

struct keras_call;
struct ty_net;
struct keras_layer;

typedef struct keras_weight {
    const char *name;  /* variable path without the outermost model's name, unique: "gru/gru_cell/recurrent_kernel" */
    const char *label; /* name inside the layer: "recurrent_kernel" */
    const char *place; /* data set of the file: "layers/gru/cell/vars/1"; "" if there is none */
    ty_type type;
    const ty_doc *initializer;      /* configuration, or NULL: */
    const char *initializer_absent; /* "glorot_uniform"; as Keras' defaults are spelt */
    int64_t ones_lo, ones_hi;       /* elements of the last axis that start as 1 whatever the initializer gives */
    uint32_t in_axes, out_axes;     /* that count for its fans; 0, 0: by the shape */
    const ty_doc *regularizer, *constraint;
    bool is_statistic;          /* created with trainable=False: batches change it, or nothing does */
    bool trainable;             /* that, and its layer and all layers around it are trainable */
    const keras_tensor *tensor; /* NULL: initialised */
    struct keras_layer *layer;
    const struct ty_init *start; /* of weights that a C source declares; NULL: as above */
    int number;                  /* in the model */
    uint32_t stamp;              /* the driver's */
} keras_weight;

typedef struct keras_row {
    const char *class_name;
    int masks; /* keras_masks */
    void (*create)(struct keras_call *c);
    void (*call)(struct keras_call *c);
    int arg; /* tells rows that share functions apart */
} keras_row;

/* What becomes of masks of inputs (Keras: supports_masking, compute_mask). */
typedef enum keras_masks {
    KERAS_MASK_STOP, /* outputs have none */
    KERAS_MASK_PASS, /* output i has that of input i of the first argument (compute_mask as inherited) */
    KERAS_MASK_OWN   /* call() sets c->mask_out */
} keras_masks;

typedef enum keras_what {
    KERAS_IS_UNKNOWN, /* its class; the fault is stored */
    KERAS_IS_ROW,     /* of keras_layers.def */
    KERAS_IS_NET,     /* Sequential, Functional */
    KERAS_IS_INPUT,
    KERAS_IS_OPERATION, /* of keras_ops.def */
    KERAS_IS_PART       /* holds weights for its parent (keras_part) */
} keras_what;

typedef struct keras_layer {
    keras_what what;
    const keras_row *row;          /* ROW */
    const struct keras_op_row *op; /* OPERATION */
    const char *class_name, *name;
    const char *origin;   /* the user's words for it: "tower/look (Conv2D)" */
    const char *path;     /* of its variables: "tower/look" */
    const char *group;    /* of the file: "layers/functional/layers/conv2d" */
    const ty_doc *config; /* map; of a part its parent's */
    const ty_doc *data;   /* {"class_name", "config", "build_config" ...}; NULL for parts */
    struct keras_layer *parent;
    bool trainable; /* itself and all around it */
    bool created;
    keras_weight **weight; /* its own, in the order of declaration */
    int n_weights;
    struct keras_layer **sub; /* in the order in which Keras tracks them */
    int n_subs;
    struct keras_net *net;              /* of Sequential and Functional: their graph of calls; else NULL */
    void (*custom)(struct ty_net *net); /* ROW of a class that a C source brings */
    void *note;                         /* what create() leaves for call(), in the model's arena */
} keras_layer;

/* ---- arguments and values -----------------------------------------------------------------------------------------
 */

typedef enum keras_kind {
    KERAS_NONE, /* None, null */
    KERAS_TENSOR,
    KERAS_BOOL,
    KERAS_INT,
    KERAS_FLOAT,
    KERAS_TEXT,
    KERAS_LIST, /* lists and tuples */
    KERAS_DICT,
    KERAS_SLICE,   /* item[0 .. 2]: start, stop, step */
    KERAS_ELLIPSIS /* ... */
} keras_kind;

/* An argument of a call, as the configuration has it, with tensors in place of references. NumPy arrays among the
 * arguments are constant tensors. */
typedef struct keras_arg {
    keras_kind kind;
    const char *key; /* in a dict, and of keyword arguments; else NULL */
    ty_val val;      /* TENSOR */
    ty_val mask;     /* TENSOR: bool, over its leading axes; TY_NONE: it has none */
    union {
        bool flag;
        int64_t integer;
        double number;
        const char *text;
    };
    struct keras_arg *item;
    int n_items;
    const ty_doc *doc; /* what it was read from; NULL for what calls of ours pass */
} keras_arg;

/* One application of a layer. */
typedef struct keras_call {
    struct keras_walk *walk; /* keras_walk.h */
    ty_graph *g;
    keras_layer *layer;
    const ty_doc *config;           /* the layer's; NULL for parts */
    const keras_arg *args, *kwargs; /* lists: positional and keyword arguments as given */
    bool training;                  /* batch statistics, dropout: the mode of the import, or argument `training` */
    /* Tensors of the first argument, flattened as Keras does (lists in order, dicts by sorted key). */
    const ty_val *in;
    const ty_val *mask; /* one an input: given as argument `mask`, else what its producer attached; TY_NONE: none */
    int n_in;
    /* Set by call() with keras_set(); TY_NONE in mask_out: that output has no mask. */
    ty_val *out, *mask_out;
    int n_out, out_room;
    const ty_doc *blamed; /* configuration value that the fault is about, or NULL */
    bool failed, quiet;   /* quiet: the fault is stored already */
    ty_error err;
} keras_call;

enum { KERAS_MAX_OUTPUTS = 256 };

/* Output i. Outputs are numbered from 0 without gaps. */
void keras_set(keras_call *c, int i, ty_val v);
void keras_set_mask(keras_call *c, int i, ty_val mask);
/* An argument by position (0: the first) or name; NULL if it is not given, or None. Position -1: by name only. */
const keras_arg *keras_argument(const keras_call *c, int position, const char *name);
/* The tensor of such an argument; TY_NONE if it is not given. */
ty_val keras_argument_tensor(const keras_call *c, int position, const char *name);
void *keras_alloc(keras_call *c, size_t n, size_t elem_bytes); /* lives as long as the walk */
void *keras_keep(keras_call *c, size_t n, size_t elem_bytes);  /* as long as the model: for layer->note */

/* ---- configuration of a layer (keras_config.c) --------------------------------------------------------------------
 * A key that is missing or null gives `absent`, which is Keras' default. A value of another kind fails the call.
 */

const ty_doc *keras_config(const keras_call *c, const char *key); /* NULL if missing or null */
/* A text that the layer keeps beside its weights ("vocabulary.txt"); NULL: it keeps none, or failed. */
const char *keras_asset(keras_call *c, const char *name);
int64_t keras_int(keras_call *c, const char *key, int64_t absent);
double keras_number(keras_call *c, const char *key, double absent);
bool keras_flag(keras_call *c, const char *key, bool absent);
const char *keras_text(keras_call *c, const char *key, const char *absent);
/* Number of the text among `choices` (NULL-terminated); fails and gives 0 for others. */
int keras_choice(keras_call *c, const char *key, const char *absent, const char *const *choices);
/* Exactly n numbers, from a list of n or one number n times; `fill` n times if absent. False (and failed) otherwise. */
bool keras_ints(keras_call *c, const char *key, int n, int64_t fill, int64_t *out);
/* A list of any length up to max, or one number; -1 if absent or failed. */
int keras_list(keras_call *c, const char *key, int max, int64_t *out);
/* data_format of the layer: true for "channels_first". */
bool keras_channels_first(keras_call *c);
/* An axis made non-negative; false (and failed) if it is outside [-rank, rank). */
bool keras_axis(keras_call *c, int64_t axis, int rank, int *out);

/* ---- weights and sublayers ----------------------------------------------------------------------------------------
 */

/* What add_weight() is told. Keys name entries of the layer's configuration; NULL: none. */
typedef struct keras_spec {
    const char *label; /* "kernel" */
    int rank;
    int64_t dim[TY_MAX_RANK];
    const char *initializer;        /* key: "kernel_initializer" */
    const char *initializer_absent; /* without that key or under it null; NULL: "glorot_uniform" */
    int64_t ones_lo, ones_hi;       /* elements of the last axis that start as 1 instead: an LSTM's forget gate */
    uint32_t in_axes, out_axes;     /* bits: axes that count as inputs and outputs of the kernel; 0, 0: by the shape */
    const char *regularizer, *constraint; /* keys */
    bool is_statistic;                    /* trainable=False */
    ty_dtype dtype;                       /* 0 is TY_BOOL, which no weight of a layer is: float32 then */
    const ty_doc *from;                   /* another configuration that the keys are of; NULL: the layer's */
} keras_spec;

/* In create(). In the order of add_weight() in Keras' build(). */
void keras_add_weight(keras_call *c, const keras_spec *spec);
/* The value of a weight of this layer, of its type; TY_NONE if the layer declared none of that label. */
ty_val keras_var(const keras_call *c, const char *label);
/* The same after earlier calls of this layer in the same step have changed it (keras_update). */
ty_val keras_var_now(const keras_call *c, const char *label);
/* The new value of a statistic after a training step; in training calls only. */
void keras_update(keras_call *c, const char *label, ty_val value);

/* A sublayer that the configuration describes ({"class_name", "config"}), kept by its parent as `attribute` ("cell",
 * "forward_layer": its group in the file). name: overrides the configuration's; NULL: as there. In create(); NULL after
 * failing. Sublayers appear among layer->sub in the order of these calls. */
keras_layer *keras_sub(keras_call *c, const char *attribute, const ty_doc *serialized, const char *name);
/* A sublayer of a class of ours whose configuration is that of its parent (LSTM's LSTMCell: "cell", "lstm_cell"), or
 * class_name NULL: a part that only holds weights ("query_dense", "query"). Weights of it are declared with
 * keras_add_weight_to. */
keras_layer *keras_part(keras_call *c, const char *attribute, const char *name, const char *class_name);
void keras_add_weight_to(keras_call *c, keras_layer *part, const keras_spec *spec);
ty_val keras_var_of(const keras_call *c, const keras_layer *part, const char *label);

/* Applies a layer: creates it if this is its first call, emits it, hands masks on. True: sub->out ... are set. False:
 * failed, and c with it (quietly). `like` has what is not said here: NULL args: in[] are the first argument. */
typedef struct keras_apply {
    keras_layer *layer;
    const ty_val *in, *mask; /* first argument; mask NULL: none */
    int n_in;
    bool in_is_list;
    const keras_arg *kwargs; /* a list with keys, or NULL */
    bool bare;               /* its call() alone, not __call__: no activity regularizer of its own, no masks */
    /* results, alive as long as the walk */
    ty_val *out, *mask_out;
    int n_out;
} keras_apply;
bool keras_apply_layer(keras_call *c, keras_apply *a);
/* Creates without emitting: for a layer whose weights its parent reads with keras_var_of. in: what it would be called
 * with. */
bool keras_create_layer(keras_call *c, keras_layer *layer, const ty_val *in, int n_in);

/* ---- what layers share --------------------------------------------------------------------------------------------
 */

/* keras/src/activations by a name, {"class_name": "function", "config": name}, or a layer without weights; NULL and
 * null are linear. Fails for what is not known. (keras_activation.c) */
ty_val keras_activation(keras_call *c, const ty_doc *activation, ty_val x);
ty_val keras_activation_named(keras_call *c, const char *name, ty_val x);
/* With settings: leaky_relu, elu; x within [lo, hi], with slope 1 at the bounds. */
ty_val keras_leaky(ty_graph *g, ty_val x, double slope);
ty_val keras_elu(ty_graph *g, ty_val x, double alpha);
ty_val keras_clip(ty_graph *g, ty_val x, double lo, double hi);
/* "relu"; "linear" for NULL and null; NULL: no name says it (a layer, a function of the user's). */
const char *keras_activation_name(const ty_doc *activation);

/* bool, with an axis of n more: true where x is the place's number; of a number outside, nowhere. x has fewer than
 * TY_MAX_RANK axes. (keras_ops_index.c) */
ty_val keras_one_hot(ty_graph *g, ty_val x, int64_t n, int axis);
/* x as float32 (integers and bools converted: what a layer does to an input that it computes with). */
ty_val keras_float(keras_call *c, ty_val x);
/* bool mask [batch, T] against x: with as many axes as `rank`, 1s behind. */
ty_val keras_mask_to(keras_call *c, ty_val mask, int rank);
/* Random numbers of this call, another stream each time: uniform f32 in [0, 1), standard normal. */
ty_val keras_uniform(keras_call *c, int rank, const int64_t *dim);
ty_val keras_normal(keras_call *c, int rank, const int64_t *dim);
/* Whose batches share the statistics of a batch norm: 1 if each has its own. */
int keras_replicas(const keras_call *c);
/* From now on v has no mask, for whoever reads it later (MultiHeadAttention does so to its inputs). */
void keras_drop_mask(keras_call *c, ty_val v);
/* Adds a f32[] to the loss. Weight and activity regularizers of configurations are the driver's. */
void keras_add_loss(keras_call *c, ty_val loss);

/* ---- faults -------------------------------------------------------------------------------------------------------
 */

void keras_fail(keras_call *c, ty_code code, const char *fmt, ...) TY_PRINTF(3, 4);
/* Blames a key of the layer's configuration: its value is shown, `expected` behind it. */
void keras_fail_key(keras_call *c, const char *key, const char *expected, ...) TY_PRINTF(3, 4);
void keras_help(keras_call *c, const char *fmt, ...) TY_PRINTF(2, 3);

/* ---- operations of keras.ops (keras_ops.def, keras_ops*.c) ---------------------------------------------------------
 * A node of a Functional model that is no layer: class name Add, GetItem, Matmul ..., module keras.src.ops.numpy and
 * the like. c->layer has its name and configuration (what the Operation was constructed with: axis, keepdims), c->args
 * and c->kwargs what it was called with, c->in the tensors of the first argument. Masks stop.
 */
typedef struct keras_op_row {
    const char *class_name;
    const char *module; /* NULL: any */
    void (*call)(keras_call *c);
    int arg;
} keras_op_row;
const keras_op_row *keras_find_op(const char *class_name, const char *module);

#endif
