/* keras_recipe.h - a Keras file's own training settings as text of a recipe. Private to compiler/.
 *
 * compile_config of a .keras file, training_config of a legacy .h5 file: optimizer, schedule, clipping, averages,
 * accumulation, loss, loss weights and metrics become the sections of a recipe that mean the same (README.md and
 * `trainyard help recipe` have them): loss, metrics, optimizer, schedule, clip, ema, update_every, unmerged_rows,
 * precision.
 */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_RECIPE_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_RECIPE_H

#include "base/doc.h"
#include "compiler/import/keras/keras_model.h"

typedef struct keras_recipe_of {
    const ty_doc *compile;             /* compile_config or training_config; NULL: the file has none */
    const ty_keras_policies *policies; /* of its layers; NULL: float32 */
    const ty_model_value *outputs;     /* of the model, as the recipe names them */
    int n_outputs;
} keras_recipe_of;

/* *out: YAML, a section a line, in the arena; NULL if the file says nothing. A loss, optimizer or schedule of a class
 * that is not known is refused by its name, and so is a setting that has no meaning here; metrics that are not known
 * are left out with a warning. */
int keras_recipe(const keras_recipe_of *in, ty_arena *arena, const char **out, ty_error *err);

#endif
