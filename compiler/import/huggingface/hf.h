/* hf.h - a folder as Hugging Face's hub and save_pretrained() have it, as a model: config.json, model.safetensors and,
 * beside them, a tokenizer.
 *
 * The file has no graph: config.json names a class ("BertForSequenceClassification"), whose network is built here by
 * code of our own (hf_models.def lists the families), with the names, shapes and numbers of Transformers' class.
 * Weights are found by name; those of a head that the file does not have, since it was trained for something else,
 * start anew, as Transformers starts them.
 */
#ifndef TY_COMPILER_IMPORT_HUGGINGFACE_HF_H
#define TY_COMPILER_IMPORT_HUGGINGFACE_HF_H

#include "compiler/import/cmodel_lists.h"

typedef struct ty_hf ty_hf;

/* Whether path is such a folder, or the config.json in it. */
bool ty_hf_matches(const char *path);
int ty_hf_open(const char *path, const ty_model_choice *choice, ty_hf **out, ty_error *err);
void ty_hf_free(ty_hf *h);
const ty_cmodel_lists *ty_hf_list(const ty_hf *h);
/* As ty_model_import(). From one thread at a time. */
int ty_hf_import(const ty_hf *h, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err);
/* Weights that start anew start from this seed. */
int ty_hf_reseed(ty_hf *h, uint64_t seed, ty_error *err);
/* Whether weights are pages of the files; 16-bit ones have become memory of their own. */
bool ty_hf_is_mapped(const ty_hf *h);
void ty_hf_drop_pages(const ty_hf *h);

const char *ty_hf_class(const ty_hf *h); /* "BertForSequenceClassification" */
/* How Hugging Face's Trainer would train this class: text of a recipe, YAML; NULL: it has no loss. */
const char *ty_hf_recipe(const ty_hf *h);
/* The same of a folder that need not be open; it lies in the arena or is static. */
int ty_hf_read_recipe(const char *path, const ty_model_choice *choice, ty_arena *a, const char **out, ty_error *err);
/* config.json as it belongs beside the trained weights. names: of n classes, which count if the head has as many; n 0:
 * they are not known. */
int ty_hf_write_config(const ty_hf *h, const char *const *names, int64_t n, ty_buf *out, ty_error *err);
/* What the folder says of its inputs, and its other files; they live as long as the model. */
const ty_model_preparation *ty_hf_preparation(const ty_hf *h);
const char *const *ty_hf_companions(const ty_hf *h, int *n);

#endif
