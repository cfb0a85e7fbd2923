/* hf_files.h - what lies in a Hugging Face folder beside configuration and weights. */
#ifndef TY_COMPILER_IMPORT_HUGGINGFACE_HF_FILES_H
#define TY_COMPILER_IMPORT_HUGGINGFACE_HF_FILES_H

#include "base/arena.h"
#include "base/doc.h"
#include "compiler/compiler.h"

/* Paths of the files that are there of those that belong beside any weights: of the tokenizer, of the preparation of
 * pictures, settings of generation. */
const char **hf_files_list(const char *folder, ty_arena *a, int *n);
/* What tokenizer and pictures must be like: tokenizer.json, the number of positions in `config`,
 * preprocessor_config.json. */
int hf_files_prepare(const char *folder, const ty_doc *config, ty_arena *a, ty_model_preparation *out, ty_error *err);

#endif
