/* hf_recipe.h - how a class is trained where nobody says otherwise. */
#ifndef TY_COMPILER_IMPORT_HUGGINGFACE_HF_RECIPE_H
#define TY_COMPILER_IMPORT_HUGGINGFACE_HF_RECIPE_H

#include "compiler/import/huggingface/hf_net.h"

/* Sections of a recipe, YAML: the loss of the class in transformers/loss/loss_utils.py, and the defaults of
 * TrainingArguments: AdamW with 5e-5, falling to 0 in a line, clipped at 1, 3 epochs in batches of 8. NULL: no loss. */
const char *hf_recipe(hf_task task, int64_t labels, const ty_doc *config);

#endif
