/* npy.h - NumPy's array files, versions 1 to 3, read and written.
 *
 * Source of the format: numpy/lib/format.py. Object arrays are pickles, which are programs: they are refused.
 * bfloat16 has no name in NumPy; the ml_dtypes package stores it as '<V2', and so it is read and written here.
 */
#ifndef TY_CONTAINER_INPUT_NPY_H
#define TY_CONTAINER_INPUT_NPY_H

#include "base/buf.h"
#include "base/error.h"
#include "base/tensor.h"
#include "container/input/array.h"

/* Reads the header at the start of `bytes` and checks that the data it promises are there; bytes behind them are
 * tolerated. The array points into `bytes`. Errors say the offset; the caller adds the file as the place. */
int ty_npy_parse(const uint8_t *bytes, size_t n, ty_array *out, ty_error *err);

/* Appends magic, version 1.0 and header text as NumPy writes them: data start at a multiple of 64 bytes. */
int ty_npy_header(const ty_type *type, ty_buf *out, ty_error *err);

/* Reads a whole file, gzip allowed. out->data is the caller's: free(). 64-byte aligned, never NULL. */
int ty_npy_read(const char *path, ty_tensor *out, ty_error *err);

/* Writes a whole file: complete or absent, an older one replaced. */
int ty_npy_write(const char *path, const ty_tensor *t, ty_error *err);

#endif
