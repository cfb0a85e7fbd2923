/* keras_optimizer.h - the variables of Keras' optimizers: which there are, and in which order they lie in a file.
 *
 * Source: keras/src/optimizers of Keras 3.15, BaseOptimizer.__init__ and build() of each class. All begin with
 * iteration and, without a schedule, learning_rate; then averages (use_ema) and gradient sums; then what the class
 * adds.
 */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_OPTIMIZER_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_OPTIMIZER_H

#include "compiler/import/keras/keras_write.h"

typedef struct keras_variable {
    const char *name; /* "adam/dense_kernel_momentum": as Keras calls it */
    ty_type type;
    const void *data; /* in the arena, or the program's */
} keras_variable;

/* Number of variables; 0: the file has no optimizer, or these moments are not of it. keras_file: its compile settings,
 * and the type of what it has. */
int keras_optimizer_variables(const keras_file *f, const keras_trained *t, ty_arena *arena, keras_variable **out);

#endif
