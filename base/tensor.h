/* tensor.h - element types and a view of a dense tensor.
 *
 * A view never owns its data. Data are dense, row-major (C order), little-endian.
 */
#ifndef TY_BASE_TENSOR_H
#define TY_BASE_TENSOR_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ty_dtype {
#define DTYPE(NAME, text, descr, bytes, is_float, is_signed) TY_##NAME,
#include "dtypes.def"
#undef DTYPE
    TY_N_DTYPES
} ty_dtype;

#define TY_MAX_RANK 8

/* Element type and static shape. Unused dims are 0, so that equal types are equal bytes. */
typedef struct ty_type {
    uint8_t dtype; /* ty_dtype */
    uint8_t rank;  /* 0 (scalar) to TY_MAX_RANK */
    uint8_t pad[6];
    int64_t dim[TY_MAX_RANK];
} ty_type;

typedef struct ty_tensor {
    ty_type type;
    void *data; /* type_bytes(type) bytes, not owned */
} ty_tensor;

ty_type ty_type_make(ty_dtype dtype, int rank, const int64_t *dim);
static inline ty_type ty_type_scalar(ty_dtype dtype)
{
    return (ty_type){.dtype = (uint8_t)dtype};
}
bool ty_type_same(const ty_type *a, const ty_type *b);       /* dtype and shape */
bool ty_type_same_shape(const ty_type *a, const ty_type *b); /* shape alone */
int64_t ty_type_elems(const ty_type *t);                     /* product of dims; 1 for a scalar */
size_t ty_type_bytes(const ty_type *t);
/* Number of elements with overflow check: -1 if a dim is negative or the product of dims and element size passes
 * INT64_MAX. For shapes that come from files. */
int64_t ty_dims_elems_checked(int rank, const int64_t *dim, size_t elem_bytes);
/* "f32[64,1,8,8]" into out; returns out. 160 bytes always suffice. */
const char *ty_type_text(const ty_type *t, char *out, size_t n);

size_t ty_dtype_bytes(ty_dtype d);
bool ty_dtype_is_float(ty_dtype d);
bool ty_dtype_is_signed(ty_dtype d);                  /* signed integer */
const char *ty_dtype_text(ty_dtype d);                /* "f32" */
const char *ty_dtype_descr(ty_dtype d);               /* numpy's "<f4"; "" where numpy has none */
bool ty_dtype_parse(const char *text, ty_dtype *out); /* accepts "f32", "float32", "int64", "bool" ... */

/* Conversions of the 16-bit floats, round to nearest even, NaN kept. */
float ty_f16_to_f32(uint16_t h);
uint16_t ty_f32_to_f16(float f);
uint16_t ty_f64_to_f16(double f);
float ty_bf16_to_f32(uint16_t h);
uint16_t ty_f32_to_bf16(float f);

#endif
