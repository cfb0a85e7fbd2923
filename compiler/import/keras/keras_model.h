/* keras_model.h - a Keras model as the compiler's table of formats sees it (compiler/model_keras.c). */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_MODEL_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_MODEL_H

#include "compiler/model.h"

typedef struct ty_keras ty_keras;
struct keras_file;

/* What the file declares; owned by the model. */
typedef struct ty_keras_lists {
    const char *format; /* "keras 3.15.1 functional" */
    ty_model_value *input, *output, *weight;
    bool *running; /* one a weight: created with trainable=False */
    int n_inputs, n_outputs, n_weights;
    int64_t n_calls; /* of layers and operations */
} ty_keras_lists;

/* Opens a file even if layers of it cannot be trained: ty_keras_faults() says which. Weights are then the data sets of
 * the file under their paths in it. layers: a C source with classes of the user's, or NULL. */
int ty_keras_open(const char *path, const char *layers, ty_keras **out, ty_error *err);
void ty_keras_free(ty_keras *m);
void ty_keras_list(const ty_keras *m, ty_keras_lists *out);
const struct keras_file *ty_keras_file(const ty_keras *m);
/* The data set of weight i in the file; "" if it has none. */
const char *ty_keras_place(const ty_keras *m, int weight);
/* Weights that the file does not have start from this seed. */
int ty_keras_reseed(ty_keras *m, uint64_t seed, ty_error *err);
/* The precision that the layers' policies ask for, and the layers that are kept in float32 beside it (names as
 * ty_layer_of_origin() gives them). In the arena. */
typedef struct ty_keras_policies {
    ty_precision precision;
    const char **float32;
    int n_float32;
} ty_keras_policies;
void ty_keras_read_policies(const ty_keras *m, ty_arena *a, ty_keras_policies *out);
/* The file again with weights from `find` and what the optimizer keeps (NULL: as in the file): keras_write.h. */
int ty_keras_write(const ty_keras *m, ty_find_weight *find, void *ctx, const ty_model_moments *moments,
                   int (*sink)(void *to, const void *bytes, size_t n, ty_error *err), void *to, ty_error *err);
/* ".keras" or ".h5": what that makes. */
const char *ty_keras_suffix(const ty_keras *m);
/* As ty_model_import(), and ty_model_faults(). */
int ty_keras_import(const ty_keras *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err);
int ty_keras_faults(const ty_keras *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max);

#endif
