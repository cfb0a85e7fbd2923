/* hf_weights.h - the weights of a Hugging Face folder: model.safetensors, or the files that
 * model.safetensors.index.json lists ({"weight_map": {"NAME": "model-00001-of-00002.safetensors"}}).
 *
 * float32 is read where it lies in the mapped files. 16-bit floats become float32 once, in memory of their own, since
 * weights are float32 here.
 */
#ifndef TY_COMPILER_IMPORT_HUGGINGFACE_HF_WEIGHTS_H
#define TY_COMPILER_IMPORT_HUGGINGFACE_HF_WEIGHTS_H

#include "base/arena.h"
#include "base/safetensors.h"

typedef struct hf_weights hf_weights;

/* A folder without weights has none (hf_weights_n is 0); weights in PyTorch's own format are refused. */
int hf_weights_open(const char *folder, hf_weights **out, ty_error *err);
void hf_weights_free(hf_weights *w);
size_t hf_weights_n(const hf_weights *w);
/* Weight i of all files. */
const ty_safetensors_entry *hf_weights_at(const hf_weights *w, size_t i);
/* Its number, or -1. */
int hf_weights_find(const hf_weights *w, const char *name);
/* Whether two are the same numbers, in the same shape and element type. */
bool hf_weights_same(hf_weights *w, int a, int b);
/* Its numbers as float32, valid until hf_weights_free. An error if they are no floats of 16 or 32 bits. */
int hf_weights_data(hf_weights *w, int i, const void **out, ty_error *err);
/* Whether all floats are read where they lie in the files. */
bool hf_weights_are_mapped(const hf_weights *w);
/* Gives the memory of the mapped files back to the system. */
void hf_weights_drop_pages(const hf_weights *w);

#endif
