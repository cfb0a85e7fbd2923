/* keras_window.h - planes and windows: what convolutions, poolings and resizings share. Private to
 * compiler/import/keras.
 *
 * Data of Keras are [N, spatial.., C] (channels_last) or [N, C, spatial..]. The graph's sliding ops are written for the
 * second. So a layer turns what it gets, and its result back; compiler/passes/straighten.c takes the turns between two
 * layers out again.
 */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_WINDOW_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_WINDOW_H

#include "compiler/import/keras/keras.h"

enum { KERAS_WINDOW_MOST = 1 << 24 }; /* no size, stride or dilation is larger: products of two fit int64_t */

typedef enum keras_padding { KERAS_PAD_VALID, KERAS_PAD_SAME, KERAS_PAD_CAUSAL } keras_padding;

typedef struct keras_window {
    ty_attr attr; /* n, size, step, dil; lo and hi by keras_window_place */
    keras_padding padding;
    bool first;                  /* the layer's data are [N, C, spatial..] */
    int64_t extent[TY_MAX_RANK]; /* (size - 1) dil + 1 */
} keras_window;

/* Input 0 has n spatial axes; false (and failed) if not. */
bool keras_has_planes(keras_call *c, int n);
/* Channels of [N, spatial.., C] or [N, C, spatial..]; the axis of spatial axis i. */
int keras_channel_axis(bool first, int n);
int keras_space_axis(bool first, int i);
/* To [N, C, spatial..] and back: x itself if that is the layer's own order. */
ty_val keras_to_first(keras_call *c, ty_val x, bool first);
ty_val keras_from_first(keras_call *c, ty_val x, bool first);

/* Sizes under `key` (spread over n axes; `absent` where it is missing), strides, dilation_rate if `dilates`, padding,
 * data_format. Strides that are missing or null are 1, or the sizes of a pool. */
bool keras_window_read(keras_call *c, int n, const char *key, int64_t absent, bool is_pool, keras_window *w);
/* The same of a layer whose input has other axes, too. */
bool keras_window_settings(keras_call *c, int n, const char *key, int64_t absent, bool is_pool, keras_window *w);
/* A kernel [window.., a, b] as [b, a, window..], as the graph's convolutions have it. */
ty_val keras_window_turned(keras_call *c, ty_val kernel);
/* Paddings over x [N, C, spatial..], as TensorFlow counts them: an odd one is behind. Fails where no window fits. */
bool keras_window_place(keras_call *c, keras_window *w, ty_val x);

/* A constant of floats of a type; the numbers of `v` by row. */
ty_val keras_const(keras_call *c, ty_dtype dtype, int rank, const int64_t *dim, const double *v);
/* Along an axis: y[o] = sum of matrix[o][i] x[i], matrix [out, in] by row. */
ty_val keras_along(keras_call *c, ty_val x, int axis, int64_t out, const double *matrix);
/* Along an axis: y[o] = x[index[o]]. */
ty_val keras_pick(keras_call *c, ty_val x, int axis, int64_t out, const int64_t *index);
/* [d] against the axis of a value of some rank: 1s around it. */
ty_val keras_on_axis(keras_call *c, ty_val v, int axis, int rank);

#endif
