/* idx.h - the IDX format of the MNIST files: two zero bytes, type, rank, big-endian sizes, data.
 */
#ifndef TY_CONTAINER_INPUT_IDX_H
#define TY_CONTAINER_INPUT_IDX_H

#include "base/error.h"
#include "container/input/array.h"

/* Reads the header and checks that exactly the promised data follow. The array points into `bytes`. Errors say the
 * offset; the caller adds the file as the place. */
int ty_idx_parse(const uint8_t *bytes, size_t n, ty_array *out, ty_error *err);

#endif
