/* tf_window.h - what convolutions and pools share: where channels lie, and windows with TensorFlow's paddings.
 *
 * The graph's windows work on [N, C, spatial..]. Where a file says channels last, values are turned for the operation
 * and back; the pass over layouts takes those turns away again.
 */
#ifndef TY_COMPILER_IMPORT_TENSORFLOW_TF_WINDOW_H
#define TY_COMPILER_IMPORT_TENSORFLOW_TF_WINDOW_H

#include "compiler/import/tensorflow/tf_ops.h"

typedef struct tf_window {
    int n;     /* spatial axes */
    bool last; /* channels-last */
    int64_t size[TY_MAX_RANK], step[TY_MAX_RANK], dil[TY_MAX_RANK], lo[TY_MAX_RANK], hi[TY_MAX_RANK];
} tf_window;

/* Layout of x, strides, dilations and padding for windows of `size` (n entries) over spatial dims `in` (n entries). */
bool tf_window_layout(tf_ctx *c, tf_window *w, int rank);
bool tf_window_read(tf_ctx *c, tf_window *w, const int64_t *size, const int64_t *in);
/* Spatial dim i of a type as the file has it; dim of channels. */
int64_t tf_window_spatial(const tf_window *w, const int64_t *dim, int i);
int64_t tf_window_channels(const tf_window *w, const int64_t *dim);
ty_attr tf_window_attr(const tf_window *w);
/* To [N, C, spatial..], and back. */
ty_val tf_window_first(tf_ctx *c, const tf_window *w, ty_val x);
ty_val tf_window_back(tf_ctx *c, const tf_window *w, ty_val y);
/* A type of the file as [N, C, spatial..]. */
ty_type tf_window_type(const tf_window *w, ty_dtype dtype, const int64_t *dim);

#endif
