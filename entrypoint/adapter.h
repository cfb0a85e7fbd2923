/* adapter.h - low-rank adapters as files of their own, as PEFT keeps them: adapter_config.json, and
 * adapter_model.safetensors with two narrow matrices of each adapted one and the weights that were trained beside them.
 * `PeftModel.from_pretrained(model, FOLDER)` puts them onto the model that training began with.
 *
 * Format: huggingface/peft, LoraConfig and save_pretrained() (0.19): of a linear layer NAME with weights [out, in],
 * base_model.model.NAME.lora_A.weight is [r, in] and lora_B.weight [out, r], and the layer's weights grow by
 * lora_alpha / r times B A.
 */
#ifndef TY_ENTRYPOINT_ADAPTER_H
#define TY_ENTRYPOINT_ADAPTER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/named_tensor.h"

#include <stdbool.h>
#include <stddef.h>

struct ty_lora;

#define TY_ADAPTER_FOLDER  "adapter"
#define TY_ADAPTER_CONFIG  "adapter/adapter_config.json"
#define TY_ADAPTER_WEIGHTS "adapter/adapter_model.safetensors"

typedef struct ty_adapter_files {
    const ty_named_tensor *tensors;
    size_t n_tensors;
    const char *config; /* text of adapter_config.json */
} ty_adapter_files;

/* trained: [n], all that the program trains, by the names of its weights (TY_LORA_LEFT, TY_LORA_RIGHT). turned: weights
 * of linear layers are [in, out]. base: what the adapters belong to. All lies in the arena, or is the caller's. */
int ty_adapter_make(const ty_named_tensor *trained, size_t n, const struct ty_lora *lora, bool turned, const char *base,
                    ty_arena *a, ty_adapter_files *out, ty_error *err);

#endif
