/* tf_import.h - a signature of a TensorFlow file becomes nodes of a graph. Private to compiler/.
 *
 * Inputs are bound in the order of the signature's inputs, weights in that of the file's variables: b->weights[v] is
 * the present value of variable v, TY_NONE a constant of its bytes. Outputs follow the signature's. Every variable that
 * is assigned is in values->updates with its last value.
 */
#ifndef TY_COMPILER_IMPORT_TENSORFLOW_TF_IMPORT_H
#define TY_COMPILER_IMPORT_TENSORFLOW_TF_IMPORT_H

#include "compiler/import/tensorflow/tf.h"
#include "compiler/model.h"

/* own_step: the signature is the user's own training step, whose gradients and assignments are in it; else a signature
 * that is differentiated, in which batch normalizations written for inference take the batch's statistics in
 * TY_MODEL_TRAIN. */
typedef struct tf_run {
    const tf_file *file;
    const tf_signature *signature;
    bool own_step;
} tf_run;

int tf_import(const tf_run *run, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err);

/* Everything that tf_import would refuse: faults[0 .. min(result, max) - 1] are filled. Returns the number found. */
int tf_check(const tf_run *run, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max);

#endif
