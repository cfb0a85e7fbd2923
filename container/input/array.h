/* array.h - a dense array inside foreign bytes, as npy and IDX files hold them: any byte order, either axis order.
 */
#ifndef TY_CONTAINER_INPUT_ARRAY_H
#define TY_CONTAINER_INPUT_ARRAY_H

#include "base/tensor.h"

#include <stddef.h>
#include <stdint.h>

typedef struct ty_array {
    ty_dtype dtype;
    bool big_endian;
    bool fortran; /* the first index varies fastest */
    int rank;
    int64_t dim[TY_MAX_RANK];
    const uint8_t *data; /* borrowed; may be unaligned */
    size_t n_bytes;      /* exactly what dtype and dims need */
} ty_array;

/* True when the bytes are what a tensor holds already: little-endian, C order. */
bool ty_array_is_native(const ty_array *a);
/* Copies all elements to `out` (n_bytes) in C order and little-endian. */
void ty_array_copy_native(const ty_array *a, void *out);

#endif
