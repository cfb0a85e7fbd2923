/* named_tensor.h - a tensor with its name, as models and checkpoints store it.
 *
 * Owns nothing: name and data are the caller's and must outlive the call they are given to. Data are dense, row-major,
 * little-endian; data may be NULL when the type has no elements.
 */
#ifndef TY_BASE_NAMED_TENSOR_H
#define TY_BASE_NAMED_TENSOR_H

#include "base/tensor.h"

typedef struct ty_named_tensor {
    const char *name; /* UTF-8, not empty */
    ty_type type;
    void *data; /* ty_type_bytes(&type) bytes; read when saving, filled when restoring */
} ty_named_tensor;

#endif
