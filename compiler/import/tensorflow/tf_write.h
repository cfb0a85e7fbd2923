/* tf_write.h - pieces of writing. Private to compiler/import/tensorflow. */
#ifndef TY_COMPILER_IMPORT_TENSORFLOW_TF_WRITE_H
#define TY_COMPILER_IMPORT_TENSORFLOW_TF_WRITE_H

#include "compiler/import/tensorflow/tf_file.h"

/* The file's protobuf with new values in Const nodes (by number of the variable; NULL: the old), all else byte for
 * byte. */
int tf_write_proto(const tf_file *f, const void *const *value, ty_file_writer *w, ty_error *err);
/* fingerprint.pb for a checkpoint with this index. */
int tf_write_fingerprint(ty_bytes old, ty_bytes index, const char *path, ty_error *err);

#endif
