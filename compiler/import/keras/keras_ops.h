/* keras_ops.h - what the functions that import operations of keras.ops see. Private to compiler/import/keras.
 *
 * An operation is one row of keras_ops.def and one function on a keras_call: what the Operation was constructed with is
 * the configuration (keras_int(c, "axis", -1) ...; Keras writes defaults out), what it was called with the arguments.
 *
 * Types follow Keras' lattice (keras/src/backend/common/dtypes.py): a Python number adapts to the tensor beside it, an
 * integer beside a float becomes one.
 */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_OPS_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_OPS_H

#include "compiler/import/keras/keras.h"

/* An argument as a value. Numbers and nested lists of numbers become constants. */
typedef struct keras_operand {
    ty_val v;     /* TY_NONE: absent, or failed */
    bool is_weak; /* a Python number */
} keras_operand;

/* ---- arguments
 * -------------------------------------------------------------------------------------------------------
 */

keras_operand keras_op_read(keras_call *c, const keras_arg *a);
/* Argument i as it is; TY_NONE and failed if it is not there. */
ty_val keras_op_in(keras_call *c, int i, const char *name);
/* The same; TY_NONE if it is not given. */
ty_val keras_op_optional(keras_call *c, int i, const char *name);
/* Argument 0 as floats: integers and bools become float32. */
ty_val keras_op_float(keras_call *c);
/* Arguments 0 and 1 in the type that both promote to; floats: at least float32. False: failed. */
bool keras_op_pair(keras_call *c, bool floats, ty_val *a, ty_val *b);
/* The tensors of a list, in the type that all promote to; -1: failed. */
int keras_op_list(keras_call *c, const keras_arg *a, ty_val **out);

ty_dtype keras_promote(ty_dtype a, bool a_weak, ty_dtype b, bool b_weak);
ty_val keras_to(ty_graph *g, keras_operand x, ty_dtype dtype);

/* ---- configuration -------------------------------------------------------------------------------------------------
 */

/* `axis` of the configuration as a mask, all axes where it is null. False: failed. */
bool keras_op_axes(keras_call *c, const char *key, int rank, uint32_t *axes);
/* One axis; null gives -1 and the operation is meant for the flattened value. False: failed. */
bool keras_op_axis(keras_call *c, const char *key, int64_t absent, int rank, int *axis);
/* A type by name under a key; `absent` where null. */
ty_dtype keras_op_dtype(keras_call *c, const char *key, ty_dtype absent);
/* What the tensor of indices names in an axis of `dim`: negative ones count from the end. */
ty_val keras_op_index(keras_call *c, ty_val index, int64_t dim);

#endif
