/* record.h - tensors in SageMaker's Record (application/x-recordio-protobuf), one message a RecordIO record.
 *
 * Source: sagemaker-python-sdk, amazon/record.proto (proto2). A record has two maps of tensors, features and label,
 * whose usual key is "values". A tensor with keys is sparse: key i is the flat place of value i, and its shape is
 * given.
 */
#ifndef TY_CONTAINER_INPUT_RECORD_H
#define TY_CONTAINER_INPUT_RECORD_H

#include "base/error.h"
#include "base/tensor.h"

#include <stddef.h>
#include <stdint.h>

typedef struct ty_record_tensor {
    ty_dtype dtype; /* F32, F64, or I64 for the format's int32 */
    bool is_there;
    bool is_sparse;
    int64_t n;              /* values that are stored */
    int64_t width;          /* product of the shape; -1: no shape, then n */
    const uint8_t *message; /* private: of the tensor */
    size_t n_message;
    /* A value of type Bytes, which is no tensor (is_there is false): its first byte string, and how many it has. */
    const uint8_t *bytes; /* NULL: none */
    size_t n_bytes;
    int64_t n_pieces;
} ty_record_tensor;

/* The tensor of a name: "features" and "label" for their "values", "features.KEY", "label.KEY", or KEY of features.
 * Checks the tensor as a whole, lengths and keys. */
int ty_record_find(const uint8_t *record, size_t n, const char *name, ty_record_tensor *out, ty_error *err);

/* How many elements it stands for: n, or the width of a sparse one. */
int64_t ty_record_elems(const ty_record_tensor *t);
/* These in `dtype`, sparse ones with zeros between them. scratch: 16 n bytes, at a multiple of 8, where it is sparse.
 */
void ty_record_decode(const ty_record_tensor *t, void *out, void *scratch);

/* Names of all tensors, as ty_record_find knows them. */
typedef int ty_record_visit(void *ctx, const char *name, ty_error *err);
int ty_record_walk(const uint8_t *record, size_t n, ty_record_visit *visit, void *ctx, ty_error *err);

#endif
