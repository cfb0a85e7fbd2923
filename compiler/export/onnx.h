/* onnx.h - any model that can be imported, written as an ONNX file: what it computes when it is applied.
 *
 *     ty_onnx_export opt = {0};                                       free batch, the usual opset
 *     ty_onnx_exported done;
 *     ty_onnx_export_model(model, "model.onnx", &opt, &arena, &done, &err);
 *     done.why_static: NULL, or why the batch could not be left free
 *
 * The model is imported for evaluation into the graph language; each node becomes one or a few ONNX nodes by its op's
 * row in rows.def. Weights are initializers under their names, inputs and outputs keep theirs, a node is named after
 * its layer. Composites (layer norm, softmax, GELU, recurrent layers ...) become ONNX's operators where the opset has
 * them and are taken apart where not.
 *
 * The graph language knows static shapes alone. So the model is imported at two batch sizes: where the two graphs
 * differ, a dimension or a constant follows the batch, and is written so (follow.c). What cannot follow makes the file
 * static in its batch.
 *
 * Format: onnx.proto and Operators.md of https://github.com/onnx/onnx.
 */
#ifndef TY_COMPILER_EXPORT_ONNX_H
#define TY_COMPILER_EXPORT_ONNX_H

#include "compiler/compiler.h"

#define TY_ONNX_EXPORT_OPSET     20 /* the first with Gelu; read by ONNX Runtime 1.17 and later */
#define TY_ONNX_EXPORT_MIN_OPSET 17 /* the first with LayerNormalization */
#define TY_ONNX_EXPORT_MAX_OPSET 23

typedef struct ty_onnx_export {
    int64_t batch;           /* rows of the file's batch; 0: free */
    int opset;               /* 0: TY_ONNX_EXPORT_OPSET */
    const ty_free_dim *dims; /* sizes of free dims other than the batch, which the file then has */
    int n_dims;
} ty_onnx_export;

/* Texts lie in the arena. */
typedef struct ty_onnx_exported {
    int opset;
    int64_t batch;          /* 0: free */
    const char *why_static; /* the batch should have been free; NULL: it is, or was not asked to be */
    int n_nodes, n_initializers;
    int n_unused; /* weights that evaluation does not read: not in the file */
    uint64_t n_bytes;
    bool two_files; /* weights are in PATH.data (TY_MODEL_DATA_SUFFIX) */
} ty_onnx_exported;

/* Writes the file, whole or not at all. Refuses, with the layer, ops that ONNX has no words for (TY_E_UNSUPPORTED),
 * free dims without a size (TY_E_CONFIG), and all that importing refuses. */
int ty_onnx_export_model(const ty_model *m, const char *path, const ty_onnx_export *opt, ty_arena *a,
                         ty_onnx_exported *out, ty_error *err);

#endif
