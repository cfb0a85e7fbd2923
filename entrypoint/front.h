/* front.h - model_with_preprocessing.onnx: the trained model with the transforms of its fields inside (the recipe's
 * export: {preprocessing: true}).
 *
 * What ONNX has operators for becomes nodes (compiler/export/front.h). Fields that are hashed, crossed, cut into tokens
 * or pieces, or lists of any length stay inputs as they are after preprocessing, and the log names them. Pictures stay,
 * too.
 */
#ifndef TY_ENTRYPOINT_FRONT_H
#define TY_ENTRYPOINT_FRONT_H

#include "container/input/dataset.h"
#include "entrypoint/spec.h"

/* fields: of the training data ds, settled. model: path of an ONNX file. *is_written is false, and the log says why,
 * where the file would be the model again or the model is one that nothing can be put in front of. */
int ty_front_write(const ty_spec_plan *plan, const ty_field *fields, const ty_dataset *ds, const char *model,
                   const char *path, bool *is_written, ty_error *err);

#endif
