/* keras_store.h - what keras_file.c keeps of an opened file, for what writes it again (keras_write.c). */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_STORE_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_STORE_H

#include "base/file.h"
#include "base/zip.h"
#include "compiler/import/keras/hdf5_list.h"
#include "compiler/import/keras/keras.h"

#define KERAS_CONFIG_NAME   "config.json"
#define KERAS_METADATA_NAME "metadata.json"
#define KERAS_WEIGHTS_NAME  "model.weights.h5"

typedef struct keras_store {
    ty_file_view main, weights, config, metadata; /* files; weights, config and metadata where they are apart */
    ty_zip zip;                                   /* KERAS_ZIP */
    const uint8_t *h5;                            /* the HDF5 file with the weights; NULL: there is none */
    size_t h5_bytes;
    uint8_t *inflated;        /* h5 of a deflated member */
    hdf5_listing listing;     /* of h5 */
    const char *weights_root; /* of legacy weights: "model_weights/", or "" where there are only weights; NULL: none */
    bool has_old_groups;      /* TensorFlow 2.12 to 2.15: "_layer_checkpoint_dependencies" for "layers" */
} keras_store;

/* Lists of texts are cut where they pass 64 KB: "weight_names", or else "weight_names0", "weight_names1" ... -1: there
 * is none. */
int keras_names(const hdf5_listing *l, const char *path, const char *name, ty_arena *arena, const char ***out);

/* The tensors of a file that was listed: fills tensor, n_tensors, version. */
int keras_take_tensors(keras_file *f, ty_arena *arena, ty_error *err);

#endif
