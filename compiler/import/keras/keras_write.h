/* keras_write.h - a file of Keras again, in its own form, with other weights and with what the optimizer keeps.
 *
 * Nothing else changes: configuration, metadata and assets are passed on byte for byte. An archive stays one (members
 * stored, as Keras writes them) and so does a legacy file. A configuration apart, or a folder, comes out as an archive;
 * weights apart in the legacy form come out as such.
 */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_WRITE_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_WRITE_H

#include "base/zip.h"
#include "compiler/import/keras/keras.h"

typedef struct keras_value {
    const char *path; /* in the file: keras_weight.place */
    const char *name; /* of the object that has it, for groups that are new: "dense"; or NULL */
    ty_type type;
    const void *data;
} keras_value;

/* What an optimizer keeps, for the variables that are trained, in Keras' order (model.trainable_variables). */
typedef struct keras_trained {
    const ty_model_moments *moments;
    const keras_weight *const *weight;
    int n_weights;
} keras_trained;

/* ".keras" or ".h5": what keras_file_write makes of it. */
const char *keras_file_suffix(const keras_file *f);

/* Values that the file has no place for are added, others than those named stay. trained NULL, or moments that are not
 * those of the file's optimizer: its state stays as it was. */
int keras_file_write(const keras_file *f, const keras_value *values, int n_values, const keras_trained *trained,
                     ty_zip_sink *sink, void *ctx, ty_error *err);

#endif
