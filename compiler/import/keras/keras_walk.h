/* keras_walk.h - the model while it is read and walked: what stands behind a keras_call. Private to the driver
 * (keras_tree.c, keras_graph.c, keras_walk.c, keras_args.c, keras_weights.c ...); families of layers need keras.h
 * alone.
 */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_WALK_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_WALK_H

#include "compiler/import/keras/keras.h"
#include "compiler/import/keras/keras_model.h"
#include "compiler/import/names.h"

enum {
    KERAS_MAX_FAULTS = 20,
    KERAS_MAX_DEPTH = 32,        /* of models, wrappers, layers inside layers */
    KERAS_MAX_LAYERS = 20000,    /* in the tree */
    KERAS_MAX_CALLS = 200000,    /* of a walk */
    KERAS_MAX_INITIAL = 1 << 30, /* numbers in weights without a file: a configuration could ask for any number */
    KERAS_MAX_ARRAY = 1 << 22,   /* numbers of a NumPy array among arguments */
    KERAS_STAND_IN_BATCH = 3,    /* what free dimensions are bound to while the model is opened ... */
    KERAS_STAND_IN_DIM = 128,
    KERAS_STAND_IN_SHIFT = 1 /* ... and how much larger a second time: outputs that follow are free */
};

typedef struct keras_faults {
    ty_error at[KERAS_MAX_FAULTS];
    int n, n_all;
} keras_faults;

/* One call of a layer in the graph of a net. */
typedef struct keras_node {
    keras_layer *layer;
    const ty_doc *data; /* {"args", "kwargs"}, or Keras 2's list of inputs; NULL in a Sequential: what came before */
} keras_node;

/* An input or output of a net. */
typedef struct keras_port {
    const char *name;         /* of the input layer; of outputs: the layer's, or the key */
    int node;                 /* outputs: whose result; inputs: number of the InputLayer's node */
    int tensor;               /* outputs: which of its results */
    ty_dtype dtype;           /* inputs */
    int rank;                 /* inputs; -1: unknown */
    int64_t dim[TY_MAX_RANK]; /* -1: free */
} keras_port;

struct keras_net {
    bool is_sequential, is_keras2; /* Keras 2 counts a call that a model makes of itself */
    keras_layer **layer;
    int n_layers;
    int *first_node; /* by layer: its node 0; its others follow */
    int *n_calls;    /* by layer */
    keras_node *node;
    int n_nodes;
    int *order; /* nodes, inputs before those who read them */
    keras_port *input, *output;
    int n_inputs, n_outputs;
    bool input_is_dict;
    ty_names names; /* layers by name */
};

struct ty_keras {
    keras_file file;
    ty_arena arena, file_arena;
    const char *class_name; /* of the outermost model */
    keras_layer *root;
    keras_weight **weight;
    int n_weights, weights_room;
    int n_layers;
    ty_names weight_names;
    ty_names tensors; /* of the file, by path */
    ty_names shared;  /* shared_object_id -> number in shared_layer */
    keras_layer **shared_layer;
    int n_shared;
    keras_faults faults; /* found while opening; with any, weights are what the file lists */
    ty_model_value *input, *output, *listed;
    bool *running;
    int n_inputs, n_outputs, n_listed;
    int64_t n_calls;
    uint32_t stamp;
    uint64_t seed; /* of initializers */
    struct cmodel_classes *classes;
    int64_t max_initial;
    char text[160];
};

typedef struct keras_item {
    ty_val *out, *mask;
    int n_out;
    bool is_ready;
} keras_item;

typedef struct keras_walk {
    struct ty_keras *m;
    ty_graph *g;
    ty_arena arena; /* lives as long as the walk */
    bool training;
    bool is_opening;       /* weights are declared, with stand-ins */
    const ty_val *weights; /* by number; NULL: constants */
    ty_val *stand_in;      /* opening: by number */
    int stand_in_room;
    ty_val seed, step;
    int replicas;
    int64_t n_random, n_calls;
    int depth;
    ty_model_update *update;
    int n_updates, updates_room;
    ty_val *penalty;
    int n_penalties, penalties_room;
    ty_val *unmasked; /* keras_drop_mask */
    int n_unmasked, unmasked_room;
    keras_faults faults;
} keras_walk;

/* From a file that is open, which is the model's from then on. max_initial: numbers in weights that it does not have.
 */
int keras_open_parsed(const keras_file *file, const char *layers, int64_t max_initial, struct ty_keras **out,
                      ty_error *err);

/* ---- reading the configuration (keras_tree.c, keras_graph.c) ---- */

/* Makes the tree. Faults (unknown classes ...) are stored in m->faults; -1 for what leaves no model at all. */
int keras_read_tree(struct ty_keras *m, ty_error *err);
/* A layer from {"class_name", "config"}; NULL after storing a fault. attribute: where its parent keeps it, or NULL. */
keras_layer *keras_make_layer(struct ty_keras *m, keras_layer *parent, const ty_doc *serialized, const char *name,
                              const char *group);
/* The layers and the graph of a Sequential or Functional. */
int keras_read_net(struct ty_keras *m, keras_layer *layer, ty_error *err);
/* Nodes, ports and order of a Functional whose layers are there. */
int keras_read_graph(struct ty_keras *m, keras_layer *layer, ty_error *err);
const keras_row *keras_find_row(const char *class_name);
/* "BatchNormalization" -> "batch_normalization", as Keras does. */
const char *keras_snake_case(ty_arena *a, const char *class_name);
/* [null, 10] -> rank and dims, free ones -1; false if d is no shape. */
bool keras_read_shape(const ty_doc *d, int *rank, int64_t *dim);
/* The text of a string; NULL for others. */
const char *keras_string(const ty_doc *d);

/* A reference to a result: [layer, node, tensor] or {"class_name": "__keras_tensor__", ...}. */
typedef struct keras_ref {
    const char *layer;
    int64_t node, tensor;
} keras_ref;
bool keras_read_ref(const ty_doc *d, keras_ref *out);     /* of Keras 3's arguments */
bool keras_read_history(const ty_doc *d, keras_ref *out); /* ["dense", 0, 0] */
/* Number of the node that a reference names, or -1. from_output: as a model's output, where models count one more. */
int keras_find_node(const struct keras_net *net, const keras_ref *ref, bool from_output);

/* ---- policies (keras_policy.c) ---- */

/* The name of a layer's policy ("float32", "mixed_bfloat16"); NULL if the configuration has none. */
const char *keras_policy_name(const ty_doc *config);
/* Whether layers of this policy are computed as in float32 or in mixed precision; else why not, in *why. */
bool keras_policy_ok(const char *name, const char **why);

/* ---- classes of a C source (keras_custom.c) ---- */

int keras_open_classes(struct ty_keras *m, const char *path, ty_error *err); /* NULL: none */
void keras_close_classes(struct ty_keras *m);
/* Whether the source has the layer's class, which is then its row. */
bool keras_find_custom(struct ty_keras *m, keras_layer *layer);
const void *keras_initialize_custom(ty_arena *a, const keras_weight *weight, uint64_t seed);

/* ---- walking (keras_walk.c, keras_args.c) ---- */

void keras_walk_init(keras_walk *w, struct ty_keras *m, ty_graph *g);
void keras_walk_fini(keras_walk *w);
/* The whole model on values for its inputs. outputs, masks: as many as the root has outputs. False: there are faults.
 */
bool keras_walk_model(keras_walk *w, const ty_val *inputs, ty_val *outputs, ty_val *masks);
/* Arguments of a node. False: one of the results that they name is not there. */
bool keras_read_arguments(keras_walk *w, const struct keras_net *net, const keras_item *items, const ty_doc *data,
                          keras_arg *args, keras_arg *kwargs, bool *ready, ty_error *err);
/* Tensors of an argument, flattened as Keras does; appended from *n on. Returns out, larger if need be. */
typedef struct keras_flat {
    ty_val *val, *mask;
    int n, room;
} keras_flat;
void keras_flatten(keras_walk *w, const keras_arg *arg, keras_flat *out);
/* One call of a layer or operation whose arguments are there. */
bool keras_walk_call(keras_walk *w, keras_layer *layer, const keras_arg *args, const keras_arg *kwargs, bool bare,
                     keras_item *out);
void keras_faults_add(keras_faults *f, const ty_error *err);
/* -1 and the first fault with a note on the others, or 0. */
int keras_faults_result(const keras_faults *f, ty_error *err);

/* ---- weights (keras_weights.c, keras_init.c, keras_penalty.c) ---- */

/* After a walk that declared them: order, numbers, tensors of the file, or initial values. Faults go to m->faults. */
void keras_bind_weights(struct ty_keras *m);
/* Values for the weights that are declared already, while the model is opened. */
void keras_stand_ins(keras_walk *w);
ty_val keras_weight_value(keras_walk *w, const keras_weight *weight);
/* Initial values of a weight as its initializer gives them; `seed` of the model. NULL and *err: none of Keras'. */
const void *keras_initialize(ty_arena *a, const keras_weight *weight, uint64_t seed, ty_error *err);
/* The value of a regularizer for x; TY_NONE and no fault for none. -1: not one of Keras'. */
int keras_regularize(ty_graph *g, const ty_doc *regularizer, ty_val x, ty_val *out, ty_error *err);
int keras_constrain(const ty_doc *constraint, const ty_type *type, ty_constraint *out, ty_error *err);
void keras_add_penalty(keras_walk *w, ty_val v);

#endif
