/* hdf5_change.h - an HDF5 file again with other data sets, or a new one. Made in a jail by libhdf5, in memory. */
#ifndef TY_COMPILER_IMPORT_KERAS_HDF5_CHANGE_H
#define TY_COMPILER_IMPORT_KERAS_HDF5_CHANGE_H

#include "base/arena.h"
#include "base/jail.h"
#include "base/tensor.h"

/* A data set: overwritten where it has this shape and type (or is of other floats, which these become), else replaced;
 * new where there is none, with all groups above it. */
typedef struct hdf5_value {
    const char *path;
    ty_type type;
    const void *data; /* dense, little-endian */
} hdf5_value;

/* An attribute: a list of texts of fixed length, as Keras keeps names (cut into NAME0, NAME1 ... where it passes
 * HDF5's limit), or one text. Replaces what is there. */
typedef struct hdf5_text {
    const char *path; /* of a group, which is made if need be */
    const char *name;
    const char *const *item;
    int n_items;
    bool is_list;
} hdf5_text;

typedef struct hdf5_change {
    const char *name;     /* for messages: "model.keras: model.weights.h5" */
    const uint8_t *bytes; /* the file as it is; n 0: a new one */
    size_t n;
    const char *const *removed; /* data sets, and groups with all in them; first of all */
    int n_removed;
    const hdf5_value *value;
    int n_values;
    const hdf5_text *text;
    int n_texts;
} hdf5_change;

/* The new file is in out->bytes, until it is released. */
int hdf5_change_file(const hdf5_change *c, ty_arena *arena, ty_jail_result *out, ty_error *err);

#endif
