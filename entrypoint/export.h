/* export.h - the trained model into its folder: the model file in its own format, the weights as safetensors, and
 * model.json; with transforms of fields preprocessing.json, and where it is wanted the model with them inside.
 */
#ifndef TY_ENTRYPOINT_EXPORT_H
#define TY_ENTRYPOINT_EXPORT_H

#include "base/buf.h"
#include "base/error.h"
#include "base/named_tensor.h"
#include "entrypoint/outputs.h"

#include <stdint.h>

#define TY_FRONT_NAME "model_with_preprocessing.onnx"

typedef struct ty_export {
    const char *folder;
    const char *model_name; /* "model.onnx", or a folder: "saved_model" */
    const char *data_name;  /* "model.onnx.data", which write_model makes too; NULL: it does not */
    const char *format;     /* "onnx opset 18" */
    const char *origin;     /* path of the model that training began with */
    const char *recipe_json;
    int64_t step, epoch;
    bool has_index; /* as in ty_modelinfo */
    int64_t index_base, index_width;
    const char *preprocessing; /* text of preprocessing.json, or NULL: there is none */
    const char *tokenizer;     /* the content of tokenizer.json, tokenizer_bytes long; NULL: none */
    size_t tokenizer_bytes;
    const char *const *companions; /* files that are copied beside the model under their names */
    int n_companions;
    const struct ty_adapter_files *adapter; /* of low-rank adapters; NULL: not wanted */
    const ty_value_named *metrics;
    int n_metrics;
    const ty_named_tensor *weights;
    size_t n_weights;
    /* Writes the model file, durable and atomic. */
    int (*write_model)(void *ctx, const char *path, ty_error *err);
    /* Writes the model with its preprocessing from the model file, or does not; NULL: nobody asked for it. */
    int (*write_front)(void *ctx, const char *model, const char *path, bool *is_written, ty_error *err);
    void *ctx;
} ty_export;

/* Early: can the folder be written at all? */
int ty_export_check(const char *folder, ty_error *err);
int ty_export_write(const ty_export *e, ty_error *err);
/* Appends a line "  path  size" for every regular file right in the folder. */
void ty_export_list(const char *folder, ty_buf *out);

#endif
