/* keras_encode.h - whole numbers as rows: what layers share that make them. Private to keras_layers_encode.c and
 * keras_layers_lookup.c. */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_ENCODE_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_ENCODE_H

#include "compiler/import/keras/keras.h"

typedef enum encode_mode { ENCODE_MULTI_HOT, ENCODE_ONE_HOT, ENCODE_COUNT, ENCODE_INT } encode_mode;

/* output_mode; fails for sparse rows. */
encode_mode keras_encode_read(keras_call *c, bool can_be_int);
/* Sets rows of `depth`. One place after another of axis 1 is added up, or whether any is there is asked; a last axis of
 * 1 is none. weights: of what is counted, or TY_NONE. */
void keras_encode_set(keras_call *c, ty_val x, encode_mode mode, int64_t depth, ty_val weights);

#endif
