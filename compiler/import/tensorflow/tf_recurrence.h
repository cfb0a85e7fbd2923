/* tf_recurrence.h - a While that is a recurrent layer. Private to compiler/import/tensorflow. */
#ifndef TY_COMPILER_IMPORT_TENSORFLOW_TF_RECURRENCE_H
#define TY_COMPILER_IMPORT_TENSORFLOW_TF_RECURRENCE_H

#include "compiler/import/tensorflow/tf_ops.h"

/* Sets the outputs of a While from `state`, its inputs, if its body is a step of an LSTM, GRU or SimpleRNN over a list:
 * true, also if it failed. False: it is none, and nothing is set. */
bool tf_loop_is_layer(tf_ctx *c, const char *cond, const char *body, const tf_item *state);

#endif
